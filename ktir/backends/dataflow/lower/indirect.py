"""Indirect access tiles: rows of device memory picked by elements of index views.

One descriptor gathers rows that are picked by one number each. Where several subscripts are indirect, the vector unit
adds up what their indices contribute first, so that one number picks an element. A variable that is divided by a
constant in one subscript and taken modulo it in another (a page and a place in the page) is two variables here.

Words. picks: what the elements of an index view add to the address of a row. along: the variables that walk the index
views; the others walk a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineDimExpr, AffineExpr, AffineMap

from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.context import Lowering, refuse
from ktir.backends.dataflow.lower.memory import MemoryView, in_memory, number_of, permutation_of, stored_data
from ktir.backends.dataflow.lower.plan import Gather, View, element_bytes
from ktir.backends.dataflow.lower.tensors import NotViewable, Pending, Tensor, collapsed
from ktir.backends.dataflow.lower.values import CoreValue, constant
from ktir.dialect import ktdp
from ktir.maths.affine import constant_value, walk
from ktir.maths.sets import as_box, linear_form


@dataclass(frozen=True)
class Picks:
    """``index`` has one element for each point of the variables that walk the index views; an element moves a row by
    ``stride`` bytes."""

    index: View
    stride: int


@dataclass(frozen=True)
class IndirectTile:
    """Rows of ``memory`` from ``base`` bytes on, moved by ``picks``.

    ``variables`` are the extents of the space; those of ``along`` walk the index views, the others walk a row by
    ``row_strides`` bytes. ``groups`` are the dimensions of the result, each as the variables that it is made of.
    """

    memory: MemoryView
    picks: tuple[Picks, ...]
    base: CoreValue
    variables: tuple[int, ...]
    along: tuple[int, ...]
    row_strides: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def row(self) -> tuple[int, ...]:
        """The variables that walk a row."""
        return tuple(v for v in range(len(self.variables)) if v not in self.along)

    @property
    def walk(self) -> tuple[int, ...]:
        """All variables in the order in which a descriptor walks them."""
        return (*self.along, *self.row)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the variables of the result, in order."""
        return tuple(self.variables[v] for group in self.groups for v in group)


# --------------------------------------------------------------------------------------------------------- construction


@dataclass(frozen=True)
class Variables:
    """The space of a tile: ``starts`` and ``extents``, and the variables that each one of the text has become."""

    starts: tuple[int, ...]
    extents: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    divisors: Mapping[int, int]

    @staticmethod
    def of(ranges: Sequence[tuple[int, int]], divisors: Mapping[int, int]) -> Variables:
        """Splits each variable that has a divisor into a quotient and a remainder."""
        starts: list[int] = []
        extents: list[int] = []
        parts: list[tuple[int, ...]] = []
        for variable, (start, stop) in enumerate(ranges):
            divisor = divisors.get(variable)
            first = len(starts)
            if divisor is None:
                starts.append(start)
                extents.append(stop - start)
            else:
                starts += [start // divisor, 0]
                extents += [(stop - start) // divisor, divisor]
            parts.append(tuple(range(first, len(starts))))
        return Variables(tuple(starts), tuple(extents), tuple(parts), divisors)

    def rewritten(self, expression: AffineExpr, captured: int) -> AffineExpr:
        """``expression`` over the parts; dimensions below ``captured`` are no variables."""
        again = partial(self.rewritten, captured=captured)
        match expression:
            case AffineDimExpr(position) if position >= captured:
                parts = self.parts[position - captured]
                whole = AffineDimExpr(captured + parts[0])
                divisor = self.divisors.get(position - captured)
                return whole if divisor is None else whole * divisor + AffineDimExpr(captured + parts[1])
            case AffineBinaryOpExpr(kind, AffineDimExpr(position), rhs) if (
                position >= captured
                and self.divisors.get(position - captured) == constant_value(rhs)
                and kind in (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod)
            ):
                return AffineDimExpr(captured + self.parts[position - captured][kind is AffineBinaryOpKind.Mod])
            case AffineBinaryOpExpr(kind, lhs, rhs):
                return AffineBinaryOpExpr(kind, again(lhs), again(rhs))
            case _:
                return expression


def divisors_of(maps: Sequence[AffineMap], captured: int, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The variables that are divided, or taken modulo, by one constant that divides their range."""
    found: dict[int, set[int]] = {}
    for map in maps:
        for part in (part for result in map.results for part in walk(result)):
            match part:
                case AffineBinaryOpExpr(
                    AffineBinaryOpKind.FloorDiv | AffineBinaryOpKind.Mod, AffineDimExpr(position), rhs
                ) if position >= captured and (divisor := constant_value(rhs)) is not None:
                    found.setdefault(position - captured, set()).add(divisor)
                case _:
                    pass
    return {
        variable: min(divisors)
        for variable, divisors in found.items()
        if len(divisors) == 1 and all(end % min(divisors) == 0 for end in ranges[variable])
    }


def construct_indirect_tile(lowering: Lowering, op: ktdp.ConstructIndirectAccessTileOp) -> None:
    """Subscripts by index views pick rows; the others step through a row."""
    memory = lowering.get(op.base, MemoryView, op, "the base")
    captured = [lowering.integer(value, op) for value in op.captured]
    ranges = as_box(op.variables_space_set.data, [number_of(lowering, op, s, "a symbol") for s in op.symbol_operands])
    if ranges is None:
        refuse(op, "its variables walk no box")
    order = permutation_of(op, op.variables_space_order.data)
    subscripts = list(op.subscripts())
    maps = [map for _, map in subscripts]
    space = Variables.of(ranges[: len(order)], divisors_of(maps, len(captured), ranges))
    linear = Linear(lowering, op, captured, space)
    base, row_strides = constant(0, lowering.cores), (0,) * len(space.extents)
    walks: list[tuple[View, tuple[int, ...], int]] = []
    for (view, map), stride in zip(subscripts, memory.strides, strict=True):
        if view is None:
            start, steps = linear.address(map, (stride,))
            base = base + start
            row_strides = tuple(total + step for total, step in zip(row_strides, steps, strict=True))
            continue
        index_memory = lowering.get(view, MemoryView, op, "the index view")
        start, steps = linear.address(map, index_memory.strides)
        walks.append((in_memory(lowering, op, index_memory).moved(start), steps, stride))
    along = tuple(v for v in range(len(space.extents)) if any(steps[v] for _, steps, _ in walks))
    if any(row_strides[v] for v in along):
        refuse(op, "a variable walks both the index and a row", "use a variable of its own for each")
    picks = tuple(
        Picks(view.shaped([space.extents[v] for v in along], [steps[v] for v in along]), stride)
        for view, steps, stride in walks
    )
    groups = tuple(space.parts[variable] for variable in order)
    lowering.values[op.tile] = IndirectTile(memory, picks, base, space.extents, along, row_strides, groups)


@dataclass(frozen=True)
class Linear:
    """Subscripts of an operation as addresses: a first one, and a step for each variable of ``space``."""

    lowering: Lowering
    op: Operation
    captured: Sequence[CoreValue]
    space: Variables

    def address(self, map: AffineMap, strides: Sequence[int]) -> tuple[CoreValue, tuple[int, ...]]:
        """The byte that ``map`` reaches first, from the start of a view with ``strides``, and the steps from there."""
        start = constant(0, self.lowering.cores)
        steps = [0] * len(self.space.extents)
        for result, stride in zip(map.results, strides, strict=True):
            value, along = self._subscript(result)
            start = start + value * stride
            steps = [total + step * stride for total, step in zip(steps, along, strict=True)]
        return start, tuple(steps)

    def _subscript(self, expression: AffineExpr) -> tuple[CoreValue, list[int]]:
        captured = len(self.captured)
        form = linear_form(self.space.rewritten(expression, captured), [])
        if form is None:
            refuse(self.op, f"the subscript {expression} is not linear", "split the variable by hand")
        factors, offset = form
        value = constant(offset, self.lowering.cores)
        for position, known in enumerate(self.captured):
            value = value + known * factors.get(position, 0)
        along = [factors.get(captured + v, 0) for v in range(len(self.space.extents))]
        return value + sum(f * start for f, start in zip(along, self.space.starts, strict=True)), along


# ----------------------------------------------------------------------------------------------------- loads and stores


def gather(lowering: Lowering, tile: IndirectTile) -> View:
    """Rows lie one behind the other in the tile, in the order of the index."""
    rows = _rows(lowering, tile)
    target, view = lowering.loaded_tile([tile.variables[v] for v in tile.walk], tile.memory.element)
    lowering.planner.add(lowering.hardware.load, _indirect(lowering, tile, rows, target, scatters=False))
    at = {variable: position for position, variable in enumerate(tile.walk)}
    strides = [view.strides[at[v]] for group in tile.groups for v in group]
    return _joined(lowering, tile, view.shaped(tile.shape, strides))


def _joined(lowering: Lowering, tile: IndirectTile, view: View) -> View:
    """The parts of each dimension as one."""
    positions = iter(range(len(tile.shape)))
    groups = [[next(positions) for _ in group] for group in tile.groups]
    try:
        return collapsed(view, groups)
    except NotViewable:
        return collapsed(lowering.dense(view), groups)


def scatter(lowering: Lowering, op: ktdp.StoreOp, tile: IndirectTile, data: Tensor) -> None:
    """Writes lines of the tensor to the rows that the index picks."""
    rows = _rows(lowering, tile)
    view = stored_data(lowering, data)
    strides: dict[int, int] = {}
    for group, stride in zip(tile.groups, view.strides, strict=True):
        for variable in reversed(group):
            strides[variable] = stride
            stride *= tile.variables[variable]
    arranged = view.shaped([tile.variables[v] for v in tile.walk], [strides[v] for v in tile.walk])
    if len(tile.along) != 1:
        arranged = lowering.dense(arranged)
    lowering.planner.origin = op
    lowering.planner.add(lowering.hardware.store, _indirect(lowering, tile, rows, arranged, scatters=True))


@dataclass(frozen=True)
class Rows:
    """Which rows: a tile of numbers, and the bytes from one row to the next."""

    numbers: View
    stride: int


def _rows(lowering: Lowering, tile: IndirectTile) -> Rows:
    if not tile.picks:
        refuse(lowering.planner.origin, "no subscript is indirect", "use ktdp.construct_access_tile")
    loaded = [(_loaded(lowering, picks.index), picks.stride) for picks in tile.picks]
    if len(loaded) == 1:
        return Rows(*loaded[0])
    width = element_bytes(tile.memory.element)
    factors = [stride // width for _, stride in loaded]
    inputs = tuple(view for view, _ in loaded)
    body = partial(_total, factors)
    total = Pending(inputs[0].shape, i64, inputs, body)
    return Rows(lowering.dense(total), width)


def _loaded(lowering: Lowering, index: View) -> View:
    target, view = lowering.loaded_tile(index.shape, index.element)
    moves.load(lowering.planner, index, target)
    return view


def _total(factors: Sequence[int], args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
    """The elements from the first row, of all indices together."""
    made: list[Operation] = []
    total: SSAValue | None = None
    for argument, factor in zip(args, factors, strict=True):
        wide = _widened(argument, made)
        scale = arith.ConstantOp(IntegerAttr(factor, i64))
        product = arith.MuliOp(wide, scale.result)
        made += [scale, product]
        if total is None:
            total = product.result
        else:
            added = arith.AddiOp(total, product.result)
            made.append(added)
            total = added.result
    assert total is not None
    return made, total


def _widened(value: SSAValue, made: list[Operation]) -> SSAValue:
    if value.type == i64:
        return value
    integer = isinstance(value.type, IntegerType)
    made.append(arith.ExtSIOp(value, i64) if integer else arith.IndexCastOp(value, i64))
    return made[-1].results[0]


def _indirect(lowering: Lowering, tile: IndirectTile, rows: Rows, lines: View, *, scatters: bool) -> Gather:
    memory = tile.memory
    storage = lowering.places.in_global(lowering.planner.origin, memory, lowering.planner.active)
    table = View(
        storage,
        memory.address - storage.offset + tile.base,
        tuple(tile.variables[v] for v in tile.row),
        tuple(tile.row_strides[v] for v in tile.row),
        memory.element,
    )
    line_stride = lines.strides[len(tile.along) - 1] if tile.along else 0
    return Gather(table, rows.numbers, lines, rows.stride, line_stride, scatters)


__all__ = ["IndirectTile", "construct_indirect_tile", "gather", "scatter"]
