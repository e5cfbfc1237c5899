"""The iteration space of a kernel: which dimensions of its values are walked together, and how each may be walked.

Structured operations tie dimensions of their operands and results by indexing maps, views by what they regroup, folds
by their regions. What is tied is one *iteration dimension*; they are named ``d0``, ``d1``, .. in the order in which the
body first walks them. Neighbouring dimensions that always occur together, and lie so in memory, are one.

Kinds. *parallel*: in all results, so its tiles are independent and may go to different cores. *fold*: folded away by
reductions of which none needs another's result, so it can be a loop that carries their accumulators. *whole*:
everything else, such as the axis of a softmax, which is reduced and walked again: a tile holds all of it.

Words. *load*: a value that is only a view of an operand. *store*: what becomes a result. Both know the axes
(:mod:`ktir.maths.access`) by which each of their dimensions is found in the buffer. A body whose dimensions do not fit
together, or whose views cannot be found in the buffers, has no iteration space (:class:`Unfit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from ktir.analysis.factors import Factor, Factors, Mismatch
from ktir.analysis.layout_rules import layouts_of
from ktir.dialect.ktg import NOT_FOLDED, FoldOp, GatherOp, KernelOp, YieldOp
from ktir.machine import Machine
from ktir.maths.access import Axis, regroup

Kind = Literal["parallel", "fold", "whole"]
Names = tuple[str, ...]


class Unfit(Exception):
    """The body has no iteration space; the message says why."""


@dataclass(frozen=True, slots=True)
class IterationDim:
    """A dimension of the space."""

    name: str
    extent: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Load:
    """A view of operand number ``operand``: the axis of each of its dimensions, and the place of its first element."""

    value: SSAValue
    operand: int
    axes: Mapping[str, Axis]
    offset: int


@dataclass(frozen=True, slots=True)
class Store:
    """Result number ``result`` is made of ``value``: the axis of each dimension, and the place of its first element."""

    value: SSAValue
    result: int
    axes: Mapping[str, Axis]
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    """Operand number ``operand`` is gathered from: its row axis, and the axes of its columns by dimension."""

    operand: int
    rows: Axis
    columns: Mapping[str, Axis]


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """What :func:`iteration_space` found.

    ``value_dims`` has, per dimension of each tensor of the body, the iteration dimensions it is a product of (outer
    first; none for one element); ``loop_dims`` the same per loop of each structured operation. ``folds`` are the
    operations that fold each group of fold dimensions, in order. ``indexed`` are the dimensions whose iteration number
    the body looks at, ``end`` is the operation that yields the results.
    """

    dims: tuple[IterationDim, ...]
    value_dims: Mapping[SSAValue, tuple[Names, ...]]
    loop_dims: Mapping[Operation, tuple[Names, ...]]
    loads: Mapping[SSAValue, Load]
    tables: Mapping[SSAValue, Table]
    stores: tuple[Store, ...]
    folds: Mapping[Names, tuple[Operation, ...]]
    indexed: frozenset[str]
    end: YieldOp

    def __getitem__(self, name: str) -> IterationDim:
        return next(dim for dim in self.dims if dim.name == name)

    def of_kind(self, kind: Kind) -> tuple[IterationDim, ...]:
        """The dimensions of one kind, in order."""
        return tuple(dim for dim in self.dims if dim.kind == kind)

    @property
    def made(self) -> list[SSAValue]:
        """The tensors that operations of the body compute, at any depth."""
        nested = [result for op in self.loop_dims for result in op.results]
        other = [value for value in self.value_dims if isinstance(value.owner, FoldOp | GatherOp)]
        return [*nested, *other]

    def names(self, value: SSAValue) -> Names:
        """All iteration dimensions of ``value``, each once, outer first."""
        return tuple(dict.fromkeys(name for names in self.value_dims[value] for name in names))

    def axes(self, name: str) -> Iterator[Axis]:
        """Every axis by which dimension ``name`` is loaded or stored."""
        for access in (*self.loads.values(), *self.stores):
            if name in access.axes:
                yield access.axes[name]
        yield from (table.columns[name] for table in self.tables.values() if name in table.columns)


def is_free(value: SSAValue) -> bool:
    """Whether ``value`` is made of nothing, so that it can be made again wherever it is used: splats and empties."""
    owner = value.owner
    match owner:
        case tensor.EmptyOp() | tensor.SplatOp():
            return True
        case linalg.FillOp():
            return isinstance(owner.outputs[0].owner, tensor.EmptyOp) and not isinstance(owner.inputs[0], BlockArgument)
        case arith.ConstantOp():
            return not isinstance(value.type, TensorType) or is_splat(owner)
        case _:
            return False


def is_splat(op: arith.ConstantOp) -> bool:
    """Whether a tensor constant holds one number everywhere."""
    return isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat()


VIEWS = (tensor.CollapseShapeOp, tensor.ExpandShapeOp, linalg.TransposeOp, linalg.BroadcastOp, tensor.ExtractSliceOp)
"""Operations that show the elements of a tensor in another order or number."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor value."""
    return cast("TensorType[Attribute]", value.type).get_shape()


def reassociation(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> list[list[int]]:
    """The groups of dimensions of the longer side."""
    return [[entry.value.data for entry in group.data] for group in op.reassociation.data]


def view_source(value: SSAValue) -> SSAValue | None:
    """The tensor that ``value`` is a view of, or None if it is no view."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, Operation) and isinstance(owner, VIEWS) else None


def sliced_dims(op: tensor.ExtractSliceOp) -> list[int]:
    """Per dimension of the result the dimension of the source; a slice may drop dimensions of one element."""
    result = shape_of(op.result)
    dims: list[int] = []
    for dim, size in enumerate(op.static_sizes.get_values()):
        if len(dims) < len(result) and size == result[len(dims)]:
            dims.append(dim)
        elif size != 1:
            raise Unfit("a slice whose result does not follow its sizes")
    if len(dims) != len(result):
        raise Unfit("a slice whose result does not follow its sizes")
    return dims


# --------------------------------------------------------------------------------------------------- tying dimensions


_Dim = tuple[Factor, ...]
_Key = SSAValue | tuple[Operation, int]


@dataclass
class _Ties:
    """The factors of every dimension, while the body is read."""

    factors: Factors = field(default_factory=Factors)
    values: dict[_Key, list[_Dim]] = field(default_factory=dict["_Key", "list[_Dim]"])
    loops: dict[Operation, list[_Dim]] = field(default_factory=dict[Operation, "list[_Dim]"])
    blocks: dict[Factor, Factor] = field(default_factory=dict[Factor, Factor])
    """The factor of a fold's blocks, and the folded dimension it runs through."""
    indexed: list[_Dim] = field(default_factory=list["_Dim"])
    tables: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])

    def value(self, value: SSAValue) -> list[_Dim]:
        if value not in self.values:
            self.values[value] = [self.factors.dimension(size) for size in shape_of(value)]
        return self.values[value]

    def operand(self, op: Operation, position: int) -> list[_Dim]:
        """The dimensions of an operand; a free one is made for this use alone."""
        value = op.operands[position]
        if not is_free(value):
            return self.value(value)
        key = (op, position)
        if key not in self.values:
            self.values[key] = [self.factors.dimension(size) for size in shape_of(value)]
        return self.values[key]

    def tie(self, left: Sequence[_Dim], right: Sequence[_Dim]) -> None:
        for one, other in zip(left, right, strict=True):
            self.factors.unify(one, other)

    def read(self, region: Region) -> None:
        for op in region.block.ops:
            self._read_op(op)

    def _read_op(self, op: Operation) -> None:
        match op:
            case LinalgStructuredOperation() if isinstance(op, linalg.FillOp) and is_free(op.results[0]):
                pass
            case linalg.TransposeOp():
                order = op.permutation.get_values()
                source = self.operand(op, 0)
                self.tie(self.value(op.results[0]), [source[dim] for dim in order])
            case LinalgStructuredOperation():
                self._read_structured(op)
            case linalg.BroadcastOp():
                added = op.dimensions.get_values()
                result = self.value(op.results[0])
                self.tie(self.operand(op, 0), [each for dim, each in enumerate(result) if dim not in added])
            case tensor.CollapseShapeOp():
                self._read_reshape(op, self.operand(op, 0), self.value(op.result))
            case tensor.ExpandShapeOp():
                self._read_reshape(op, self.value(op.result), self.operand(op, 0))
            case tensor.ExtractSliceOp():
                self._read_slice(op)
            case FoldOp():
                self._read_fold(op)
            case GatherOp():
                result, table = self.value(op.result), self.value(op.table)
                self.tie(result, [*self.value(op.indices), table[1]])
                self.tables[op.table] = None
            case YieldOp() | tensor.EmptyOp() | tensor.SplatOp():
                pass
            case arith.ConstantOp() if not isinstance(op.result.type, TensorType) or is_splat(op):
                pass
            case _:
                raise Unfit(f"{op.name} has no place in a kernel")

    def _read_structured(self, op: LinalgStructuredOperation) -> None:
        loops = [self.factors.dimension(extent) for extent in loop_extents(op)]
        self.loops[op] = loops
        for position, attribute in enumerate(op.get_indexing_maps()):
            for dims, expression in zip(self.operand(op, position), attribute.data.results, strict=True):
                match expression:
                    case AffineDimExpr(position=loop):
                        self.factors.unify(dims, loops[loop])
                    case AffineConstantExpr(value=0) if not dims:
                        pass
                    case _:
                        raise Unfit(f"the indexing map {attribute.data} selects more than dimensions")
        for position, result in enumerate(op.results):
            self.tie(self.value(result), self.operand(op, len(op.inputs) + position))
        for inner in op.body.block.ops:
            match inner:
                case linalg.IndexOp():
                    self.indexed.append(loops[int(inner.dim.value.data)])
                case _:
                    pass

    def _read_reshape(
        self,
        op: tensor.CollapseShapeOp | tensor.ExpandShapeOp,
        long: Sequence[_Dim],
        short: Sequence[_Dim],
    ) -> None:
        for group, dim in zip(reassociation(op), short, strict=False):
            self.factors.unify([factor for member in group for factor in long[member]], dim)

    def _read_slice(self, op: tensor.ExtractSliceOp) -> None:
        shown = op.source
        while (whole := view_source(shown)) is not None:
            shown = whole
        if not isinstance(shown, BlockArgument) or not isinstance(shown.block.parent_op(), KernelOp):
            raise Unfit("a slice of a value that the kernel computes")
        source, result = self.operand(op, 0), self.value(op.result)
        for position, dim in enumerate(sliced_dims(op)):
            if shape_of(op.source)[dim] == shape_of(op.result)[position]:
                self.factors.unify(source[dim], result[position])

    def _read_fold(self, op: FoldOp) -> None:
        folded = self.factors.dimension(op.extent.value.data)
        block = self.factors.dimension(op.tile.value.data)
        if block != folded and folded:
            self.blocks.update(dict.fromkeys(block, folded[0]))
        arguments = op.step.block.args
        for position, dim in enumerate(op.folded):
            operand = self.operand(op, position)
            if dim != NOT_FOLDED:
                self.factors.unify(operand[dim], folded)
            self.tie(self.value(arguments[position]), [block if at == dim else each for at, each in enumerate(operand)])
        for region in (op.init, op.step, op.finish):
            self.read(region)
        self._tie_yield(op.init, arguments[len(op.folded) :])
        self._tie_yield(op.step, arguments[len(op.folded) :])
        self._tie_yield(op.init, op.finish.block.args)
        self._tie_yield(op.finish, op.results)

    def _tie_yield(self, region: Region, values: Sequence[SSAValue]) -> None:
        last = cast("YieldOp", region.block.last_op)
        for position, value in enumerate(values):
            self.tie(self.operand(last, position), self.value(value))

    def present(self, dim: Iterable[Factor]) -> _Dim:
        """The final factors of a dimension, blocks standing for what they run through."""
        return tuple(
            part for factor in self.factors.resolve(dim) for part in self.factors.resolve([self._folded(factor)])
        )

    def _folded(self, factor: Factor) -> Factor:
        for block, folded in self.blocks.items():
            if self.factors.resolve([block]) == (factor,):
                return folded
        return factor

    def check_blocks(self) -> None:
        for block, folded in self.blocks.items():
            if len(self.factors.resolve([block])) != 1 or len(self.factors.resolve([folded])) != 1:
                raise Unfit("the folded dimension is cut up")


def loop_extents(op: LinalgStructuredOperation) -> tuple[int, ...]:
    """Iterations of each loop of a structured operation."""
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    extents: dict[int, int] = {}
    for value, map in zip(op.operands, maps, strict=True):
        for size, expression in zip(shape_of(value), map.results, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = size
    if len(extents) != maps[0].num_dims:
        raise Unfit(f"{op.name} has a loop that no operand gives an extent")
    return tuple(extents[loop] for loop in range(maps[0].num_dims))


# --------------------------------------------------------------------------------------------------- views of operands


def _view_axes(value: SSAValue, operand_axes: Sequence[Sequence[Axis]]) -> tuple[int, list[list[Axis]], int] | None:
    """The operand that ``value`` is a view of, the axes each dimension is a product of, and the buffer offset."""
    if isinstance(value, BlockArgument):
        if not isinstance(value.block.parent_op(), KernelOp):
            return None
        return value.index, [[axis] for axis in operand_axes[value.index]], 0
    shown = view_source(value)
    source = _view_axes(shown, operand_axes) if shown is not None else None
    if source is None:
        return None
    operand, axes, offset = source
    match op := value.owner:
        case tensor.CollapseShapeOp():
            grouped = [[axis for member in group for axis in axes[member]] for group in reassociation(op)]
            return operand, grouped, offset
        case tensor.ExpandShapeOp():
            return operand, _expand(op, axes), offset
        case linalg.TransposeOp():
            return operand, [axes[dim] for dim in op.permutation.get_values()], offset
        case linalg.BroadcastOp():
            return operand, _broadcast(op, axes), offset
        case tensor.ExtractSliceOp():
            cut, moved = _slice(op, axes)
            return operand, cut, offset + moved
        case _:
            return None


def _expand(op: tensor.ExpandShapeOp, axes: Sequence[list[Axis]]) -> list[list[Axis]]:
    shape = shape_of(op.result)
    result: list[list[Axis]] = [[] for _ in shape]
    for group, factors in zip(reassociation(op), axes, strict=False):
        parts = regroup(factors, [shape[member] for member in group])
        if parts is None:
            raise Unfit("a dimension is split where its layout is not")
        for member, part in zip(group, parts, strict=True):
            result[member] = [part]
    return result


def _broadcast(op: linalg.BroadcastOp, axes: Sequence[list[Axis]]) -> list[list[Axis]]:
    added = op.dimensions.get_values()
    kept = iter(axes)
    shape = shape_of(op.results[0])
    return [[Axis(size, ())] if dim in added else next(kept) for dim, size in enumerate(shape)]


def _slice(op: tensor.ExtractSliceOp, axes: Sequence[list[Axis]]) -> tuple[list[list[Axis]], int]:
    if op.offsets or op.sizes or op.strides:
        raise Unfit("a slice at a place that is not constant")
    offset = 0
    result: list[list[Axis]] = []
    kept = sliced_dims(op)
    limits = zip(
        op.static_offsets.get_values(), op.static_sizes.get_values(), op.static_strides.get_values(), strict=True
    )
    for dim, (start, size, stride) in enumerate(limits):
        joined = regroup(axes[dim], [prod(axis.extent for axis in axes[dim])])
        found = joined[0].cut(int(start), int(size), int(stride)) if joined is not None else None
        if found is None:
            raise Unfit("a slice that ends inside a digit of the layout")
        offset += found[1]
        if dim in kept:
            result.append([found[0]])
    return result, offset


# ----------------------------------------------------------------------------------------------------------- the space


def iteration_space(kernel: KernelOp, machine: Machine) -> IterationSpace:
    """The iteration space of ``kernel`` with the layouts it names, or the default ones; raises :class:`Unfit`."""
    return _Builder(kernel, machine).build()


def _axes(
    entries: ArrayAttr[Any] | None, values: Sequence[SSAValue], machine: Machine
) -> tuple[list[tuple[Axis, ...]], list[int]]:
    """The axes of each operand or result, and where in its buffer it begins."""
    types = [cast("TensorType[Attribute]", value.type) for value in values]
    found = [
        layout.axes(type.get_shape()) for layout, type in zip(layouts_of(entries, types, machine), types, strict=True)
    ]
    if any(each is None for each in found):
        raise Unfit("a part of a buffer that ends inside a digit of its layout")
    known = [each for each in found if each is not None]
    return [axes for axes, _ in known], [offset for _, offset in known]


class _Builder:
    def __init__(self, kernel: KernelOp, machine: Machine) -> None:
        self.kernel = kernel
        self.ties = _Ties()
        self.operand_axes, self.operand_offsets = _axes(kernel.operand_layouts, kernel.operands, machine)
        self.result_axes, self.result_offsets = _axes(kernel.result_layouts, kernel.results, machine)
        self.yielded = cast("YieldOp", kernel.body.block.last_op)

    def build(self) -> IterationSpace:
        try:
            self.ties.read(self.kernel.body)
            for position, _ in enumerate(self.yielded.operands):
                self.ties.operand(self.yielded, position)
            self.ties.check_blocks()
        except Mismatch as fault:
            raise Unfit(str(fault)) from fault
        self.load_axes = {value: self._load_axes(value) for value in self._loaded_values()}
        for op in self.kernel.body.walk():
            if isinstance(op, GatherOp) and op.indices not in self.load_axes:
                raise Unfit("a gather by indices that no buffer holds")
        self.table_axes = [self._table_axes(value) for value in self.ties.tables]
        self.store_axes = [self._store_axes(position) for position in range(len(self.yielded.operands))]
        groups = self._groups()
        self.group_of = {factor: group for group in groups for factor in group}
        self.name_of = {group: f"d{number}" for number, group in enumerate(groups)}
        return self._space(groups)

    # -- loads and stores, by factor

    def _used_values(self) -> Iterator[SSAValue]:
        """What operations that compute, and the end of the body, use."""
        for op in self.kernel.body.block.ops:
            if not isinstance(op, VIEWS) or isinstance(op, YieldOp):
                yield from (value for value in op.operands if isinstance(value.type, TensorType))

    def _loaded_values(self) -> list[SSAValue]:
        found: dict[SSAValue, None] = {}
        for value in self._used_values():
            if value not in self.ties.tables and _view_axes(value, self.operand_axes) is not None:
                found[value] = None
        return list(found)

    def _load_axes(self, value: SSAValue) -> tuple[int, dict[Factor, Axis], int]:
        found = _view_axes(value, self.operand_axes)
        if found is None:
            raise Unfit("a view of a value that is no operand")
        operand, axes, offset = found
        return operand, self._by_factor(self.ties.value(value), axes), offset

    def _table_axes(self, value: SSAValue) -> dict[Factor, Axis]:
        found = _view_axes(value, self.operand_axes)
        if found is None:
            raise Unfit("a gathered table that is no operand")
        return self._by_factor(self.ties.value(value)[1:], found[1][1:])

    def _store_axes(self, position: int) -> dict[Factor, Axis]:
        axes = [[axis] for axis in self.result_axes[position]]
        return self._by_factor(self.ties.operand(self.yielded, position), axes)

    def _by_factor(self, dims: Sequence[_Dim], axes: Sequence[Sequence[Axis]]) -> dict[Factor, Axis]:
        result: dict[Factor, Axis] = {}
        for dim, parts in zip(dims, axes, strict=True):
            factors = self.ties.present(dim)
            found = regroup(parts, [self.ties.factors.extent(factor) for factor in factors])
            if found is None:
                raise Unfit("a view that the layout of its buffer cannot follow")
            result.update(zip(factors, found, strict=True))
        if len(result) != sum(len(self.ties.present(dim)) for dim in dims):
            raise Unfit("two dimensions of one value are the same")
        return result

    # -- joining factors that always occur together

    def _flat(self, dims: Iterable[Iterable[Factor]]) -> _Dim:
        return tuple(factor for dim in dims for factor in self.ties.present(dim))

    def _sequences(self) -> Iterator[_Dim]:
        """The factors of everything that is walked, in the order in which a value has them."""
        for op, loops in self.ties.loops.items():
            if len(set(self._flat(loops))) != len(self._flat(loops)):
                raise Unfit("two loops of one operation are the same")
            yield from (self._flat(self.ties.value(result)) for result in op.results)
        for op in self.kernel.body.walk():
            if isinstance(op, FoldOp | GatherOp):
                yield from (self._flat(self.ties.value(result)) for result in op.results)
        for value, (_, axes, _) in self.load_axes.items():
            yield tuple(factor for factor in self._flat(self.ties.value(value)) if axes[factor].walks)
        for position in range(len(self.yielded.operands)):
            yield self._flat(self.ties.operand(self.yielded, position))

    def _groups(self) -> list[_Dim]:
        after: dict[Factor, set[Factor | None]] = {}
        before: dict[Factor, set[Factor | None]] = {}
        sequences = list(self._sequences())
        for sequence in sequences:
            if len(set(sequence)) != len(sequence):
                raise Unfit("two dimensions of one value are the same")
            neighbours = [None, *sequence, None]
            for position, factor in enumerate(sequence, start=1):
                before.setdefault(factor, set()).add(neighbours[position - 1])
                after.setdefault(factor, set()).add(neighbours[position + 1])
        groups: list[_Dim] = []
        for factor in self._in_order(after):
            if any(factor in group for group in groups):
                continue
            group = self._chain(factor, after, before)
            groups.append(group)
        return groups

    def _in_order(self, walked: Mapping[Factor, object]) -> list[Factor]:
        """Walked factors by first appearance: loops of operations first, then what is left."""
        order: dict[Factor, None] = {}
        for op in self.kernel.body.walk():
            for dim in self.ties.loops.get(op, ()):
                order.update(dict.fromkeys(self.ties.present(dim)))
        order.update(dict.fromkeys(walked))
        return list(order)

    def _chain(
        self,
        factor: Factor,
        after: Mapping[Factor, set[Factor | None]],
        before: Mapping[Factor, set[Factor | None]],
    ) -> _Dim:
        group = (factor,)
        while (preceding := self._only(before.get(group[0]))) is not None and self._joins(preceding, group, after):
            group = (preceding, *group)
        while (following := self._only(after.get(group[-1]))) is not None:
            if self._only(before.get(following)) != group[-1] or not self._may_join((*group, following)):
                break
            group = (*group, following)
        return group

    def _joins(self, preceding: Factor, group: _Dim, after: Mapping[Factor, set[Factor | None]]) -> bool:
        return self._only(after.get(preceding)) == group[0] and self._may_join((preceding, *group))

    @staticmethod
    def _only(neighbours: set[Factor | None] | None) -> Factor | None:
        return next(iter(neighbours)) if neighbours is not None and len(neighbours) == 1 else None

    def _may_join(self, group: _Dim) -> bool:
        special = {factor for dim in self.ties.indexed for factor in self.ties.present(dim)}
        special |= {factor for folded in self.ties.blocks.values() for factor in self.ties.present([folded])}
        if special & set(group):
            return False
        accesses = [axes for _, axes, _ in self.load_axes.values()] + self.store_axes + self.table_axes
        for axes in accesses:
            parts = [axes[factor] for factor in group if factor in axes]
            if parts and (len(parts) != len(group) or regroup(parts, [prod(part.extent for part in parts)]) is None):
                return False
        sticks = any(len(axes[group[-1]].walks) > 1 or axes[group[-1]].padded for axes in accesses if group[-1] in axes)
        return not sticks or self._ever_one_dimension(group[-2:])

    def _ever_one_dimension(self, pair: _Dim) -> bool:
        return any(set(pair) <= set(self.ties.present(dim)) for dims in list(self.ties.values.values()) for dim in dims)

    # -- putting it together

    def _names(self, dims: Iterable[Iterable[Factor]]) -> tuple[Names, ...]:
        return tuple(
            tuple(dict.fromkeys(self.name_of[self.group_of[f]] for f in self.ties.present(dim) if f in self.group_of))
            for dim in dims
        )

    def _by_name(self, axes: Mapping[Factor, Axis]) -> dict[str, Axis]:
        result: dict[str, Axis] = {}
        for factor in axes:
            group = self.group_of.get(factor)
            if group is None or factor != group[0]:
                continue
            joined = regroup([axes[each] for each in group], [prod(axes[each].extent for each in group)])
            assert joined is not None, "groups are joined only where every access follows"
            result[self.name_of[group]] = joined[0]
        return result

    def _space(self, groups: Sequence[_Dim]) -> IterationSpace:
        value_dims = {
            value: self._names(dims) for value, dims in self.ties.values.items() if isinstance(value, SSAValue)
        }
        loop_dims = {op: self._names(loops) for op, loops in self.ties.loops.items()}
        stores = tuple(
            Store(value, position, self._by_name(self.store_axes[position]), self.result_offsets[position])
            for position, value in enumerate(self.yielded.operands)
        )
        for position, value in enumerate(self.yielded.operands):
            value_dims.setdefault(value, self._names(self.ties.operand(self.yielded, position)))
        kinds = _Kinds(self.kernel, value_dims, loop_dims)
        dims = tuple(
            IterationDim(
                name := self.name_of[group],
                prod(self.ties.factors.extent(factor) for factor in group),
                kinds.kind(name),
            )
            for group in groups
        )
        loads = {
            value: Load(value, operand, self._by_name(axes), self.operand_offsets[operand] + offset)
            for value, (operand, axes, offset) in self.load_axes.items()
        }
        indexed = frozenset(name for names in self._names(self.ties.indexed) for name in names)
        tables = {value: self._table(value) for value in self.ties.tables}
        return IterationSpace(
            dims, value_dims, loop_dims, loads, tables, stores, kinds.folds(dims), indexed, self.yielded
        )

    def _table(self, value: SSAValue) -> Table:
        found = _view_axes(value, self.operand_axes)
        if found is None or found[2] != 0:
            raise Unfit("a gathered table that is no operand")
        rows = regroup(found[1][0], [shape_of(value)[0]])
        if rows is None or len(rows[0].walks) != 1:
            raise Unfit("a gathered table whose rows do not lie at a constant distance")
        columns = self._by_factor(self.ties.value(value)[1:], found[1][1:])
        return Table(found[0], rows[0], self._by_name(columns))


class _Kinds:
    """Which top-level operations walk, and which reduce, each dimension."""

    def __init__(
        self,
        kernel: KernelOp,
        value_dims: Mapping[SSAValue, tuple[Names, ...]],
        loop_dims: Mapping[Operation, tuple[Names, ...]],
    ) -> None:
        self.value_dims, self.loop_dims = value_dims, loop_dims
        self.ops = [op for op in kernel.body.block.ops if op in loop_dims or isinstance(op, FoldOp | GatherOp)]
        self.yielded = cast("YieldOp", kernel.body.block.last_op)
        self.reducers: dict[str, list[Operation]] = {}
        self.inner: set[str] = set()
        self.users: dict[str, list[Operation]] = {}
        for op in self.ops:
            for name in dict.fromkeys(self._walked(op)):
                self.users.setdefault(name, []).append(op)
            for name in dict.fromkeys(self._reduced(op)):
                self.reducers.setdefault(name, []).append(op)
        self.needs = {op: self._upstream(op) for op in self.ops}
        self._make_whole_what_overlaps()

    def _flat(self, dims: Iterable[Names]) -> list[str]:
        return [name for names in dims for name in names]

    def _walked(self, op: Operation) -> list[str]:
        inner = [name for each in op.walk() for name in self._flat(self.loop_dims.get(each, ()))]
        values = [*op.operands, *op.results] if isinstance(op, FoldOp) else list(op.results)
        return [*inner, *(name for value in values for name in self._flat(self.value_dims.get(value, ())))]

    def _reduced(self, op: Operation) -> list[str]:
        if isinstance(op, FoldOp):
            folded = self._folded(op)
            inner = [name for each in op.walk() for name in self._reduced_by_loops(each)]
            self.inner.update(name for name in inner if name not in folded)
            return [*folded, *inner]
        return self._reduced_by_loops(op)

    def _folded(self, op: FoldOp) -> list[str]:
        dims = zip(op.ins, op.folded, strict=True)
        return [name for value, dim in dims if dim != NOT_FOLDED for name in self.value_dims[value][dim]]

    def _reduced_by_loops(self, op: Operation) -> list[str]:
        if op not in self.loop_dims or not isinstance(op, LinalgStructuredOperation):
            return []
        iterators = zip(op.get_iterator_types(), self.loop_dims[op], strict=True)
        return [name for kind, names in iterators if kind.data is IteratorType.REDUCTION for name in names]

    def _upstream(self, op: Operation) -> set[Operation]:
        """Every operation whose result ``op`` needs, directly or not."""
        found: set[Operation] = set()
        pending = list(op.operands)
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, Operation) and owner not in found:
                found.add(owner)
                pending += owner.operands
        return found

    def _can_be_folded(self, name: str) -> bool:
        reducers = self.reducers.get(name, [])
        stored = any(name in self._flat(self.value_dims.get(value, ())) for value in self.yielded.operands)
        independent = not any(reducer in self.needs[user] for reducer in reducers for user in self.users[name])
        return bool(reducers) and name not in self.inner and not stored and independent

    def _make_whole_what_overlaps(self) -> None:
        """Fold dimensions share a loop only if the very same operations fold them."""
        foldable = {name: tuple(ops) for name, ops in self.reducers.items() if self._can_be_folded(name)}
        self.foldable: dict[str, tuple[Operation, ...]] = {}
        for name, ops in foldable.items():
            others = [each for each in foldable.values() if set(each) & set(ops) and set(each) != set(ops)]
            alone = len(ops) == 1 or not any(isinstance(op, FoldOp) for op in ops)
            if not others and alone:
                self.foldable[name] = ops

    def kind(self, name: str) -> Kind:
        if name in self.foldable:
            return "fold"
        in_all = all(name in self._flat(self.value_dims.get(value, ())) for value in self.yielded.operands)
        return "parallel" if in_all and name not in self.reducers else "whole"

    def folds(self, dims: Sequence[IterationDim]) -> dict[Names, tuple[Operation, ...]]:
        """The operations of each group of dimensions that are folded together."""
        groups: dict[tuple[Operation, ...], list[str]] = {}
        for dim in dims:
            if dim.kind == "fold":
                groups.setdefault(self.foldable[dim.name], []).append(dim.name)
        return {tuple(names): ops for ops, names in groups.items()}
