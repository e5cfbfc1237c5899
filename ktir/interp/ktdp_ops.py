"""The ``ktdp`` operations of one core: where it is, its windows on memory, loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap, AffineSet

from ktir.dialect.ktdp.attrs import LAYOUT, StickLayoutAttr
from ktir.dialect.ktdp.ops import (
    ConstructAccessTileOp,
    ConstructDistributedMemoryViewOp,
    ConstructIndirectAccessTileOp,
    ConstructMemoryViewOp,
    RuntimeArgExtractOp,
)
from ktir.dialect.ktdp.types import AccessTileType, RuntimeArgType
from ktir.errors import (
    Diagnostic,
    ElementTypeMismatch,
    ExecutionError,
    LimitExceeded,
    TileShapeMismatch,
    UnboundedSet,
    UninitialisedRead,
    UnknownOperation,
)
from ktir.interp.accesses import Access, Pieces
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, element_of, shape_of
from ktir.interp.expressions import NotRectangular, Pattern, apply, evaluators, pattern, permutation
from ktir.interp.extents import Mixed, evaluate, uniform
from ktir.interp.lending import pointer_of
from ktir.interp.numerics import Array, ElementType, is_array
from ktir.interp.resolving import require_covered, resolve
from ktir.interp.values import Frame, Origin, Site, Tainted, Value, demand
from ktir.interp.views import DistributedView, IndirectTile, Partition, Tile, View
from ktir.maths.sets import as_box, bounds
from ktir.maths.stick_layout import StickLayout


def tile_id(compiler: FunctionCompiler, op: Operation) -> Step:
    outs = tuple(compiler.slot(result) for result in op.results)

    def step(frame: Frame) -> None:
        for axis, out in enumerate(outs):
            coordinate = frame.launch.coordinate(frame.cores, axis)
            frame.regs[out] = int(coordinate[0]) if frame.n == 1 else coordinate

    return step


# ---------------------------------------------------------------------------------------------------------------- views


def memory_view(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, ConstructMemoryViewOp)
    site = compiler.site(op)
    offset, out = compiler.slot(op.offset), compiler.slot(op.view)
    sizes = _mixed(compiler, op.mixed_sizes())
    strides = _mixed(compiler, op.mixed_strides())
    dynamic = tuple(slot for _, slot in sizes if slot is not None)
    pointer = pointer_of(op.offset)
    argument = None if pointer is None else pointer.name_hint or f"arg{pointer.index}"
    prototype = View(
        op.space.kind == "ct_local",
        op.space.core,
        0,
        (),
        (),
        element_of(op.view.type),
        op.view.name_hint or "view",
        site,
        op.coordinate_set.data if op.coordinate_set is not None else None,
        argument=argument,
        ragged=tuple(d for d, (_, slot) in enumerate(sizes) if slot is not None) if is_symbolic(op) else (),
    )
    layout = view_layout(op)
    padding = None if layout is None else undefined_padding(layout)

    def step(frame: Frame) -> None:
        regs = frame.regs
        checked = frame.run.checker
        start = demand(regs[offset], site)
        marked = padding
        if marked is None and checked is not None and not prototype.local and isinstance(start, int):
            known = checked.layouts.get(start * prototype.element.itemsize)
            marked = None if known is None else undefined_padding(known)
        lent = None if pointer is None else frame.run.memory.lent.get(pointer)
        regs[out] = replace(
            prototype,
            offset=start if lent is None else start - lent.first,
            lent=None if lent is None else lent.arena,
            sizes=tuple(_collapsed(size) for size in evaluate(sizes, frame, site)),
            strides=tuple(_collapsed(stride) for stride in evaluate(strides, frame, site)),
            symbols=tuple(regs[slot] for slot in dynamic),
            padding=marked if checked is not None else None,
        )

    return step


def is_symbolic(op: ConstructMemoryViewOp) -> bool:
    """Whether the coordinate set depends on sizes that are only known at run time."""
    return op.coordinate_set is not None and op.coordinate_set.data.num_symbols > 0


def _mixed(compiler: FunctionCompiler, numbers: Sequence[int | SSAValue]) -> Mixed:
    return tuple((number, None) if isinstance(number, int) else (0, compiler.slot(number)) for number in numbers)


def _collapsed(value: Any) -> Any:
    """A number that is the same on all cores as one number."""
    return int(value[0]) if is_array(value) and (value == value[0]).all() else value


def view_layout(op: ConstructMemoryViewOp) -> StickLayout | None:
    """The stick layout that the view, or the argument it starts at, carries."""
    attribute = op.attributes.get(LAYOUT)
    if attribute is None and isinstance(op.offset, BlockArgument):
        attribute = argument_attribute(op.offset, LAYOUT)
    return attribute.layout if isinstance(attribute, StickLayoutAttr) else None


def argument_attribute(argument: BlockArgument, name: str) -> Any:
    """An attribute of a function's argument."""
    owner = argument.block.parent_op()
    attributes = None if owner is None else owner.properties.get("arg_attrs")
    if not isinstance(attributes, ArrayAttr):
        return None
    return attributes.data[argument.index].data.get(name)  # type: ignore[union-attr]


@cache
def undefined_padding(layout: StickLayout) -> Array | None:
    """Which elements of a buffer are padding whose content nobody promises, flat; None if there are none."""
    if not layout.is_padded or layout.pad != "undef":
        return None
    return ~valid_places(layout).ravel()


def valid_places(layout: StickLayout) -> Array:
    """Which places of a buffer stand for an element, in the buffer's shape."""
    inside = np.ones(layout.physical_shape, bool)
    for axis, index in enumerate(tensor_indices(layout)):
        inside &= index < layout.extent[axis]
    return inside


def tensor_indices(layout: StickLayout) -> list[Array]:
    """For each tensor dimension the index at each place of the buffer, extent 1 where it does not vary."""
    rank = len(layout.dims)
    indices = [np.zeros((1,) * rank, np.int64) for _ in layout.extent]
    for axis, dim in enumerate(layout.dims):
        along = [1] * rank
        along[axis] = dim.size
        indices[dim.tensor_dim] = indices[dim.tensor_dim] + (np.arange(dim.size) * dim.step).reshape(along)
    return indices


def distributed_view(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, ConstructDistributedMemoryViewOp)
    site = compiler.site(op)
    views, out = tuple(compiler.slot(view) for view in op.views), compiler.slot(op.view)
    if not views:
        raise site.fail(UnknownOperation, "has no partitions", "give it at least one view")
    element, name, static = element_of(op.view.type), op.view.name_hint or "view", shape_of(op.view.type)

    def step(frame: Frame) -> None:
        partitions = tuple(_partition(demand(frame.regs[slot], site), site) for slot in views)
        sizes = tuple(
            size if size >= 0 else max(each.stops[axis] for each in partitions) for axis, size in enumerate(static)
        )
        frame.regs[out] = DistributedView(partitions, sizes, element, name)

    return step


def _partition(view: View, site: Site) -> Partition:
    if not isinstance(cast(object, view), View):
        raise site.fail(UnknownOperation, "has a partition that is distributed itself", "name its partitions instead")
    sizes = tuple(uniform(size, site, "sizes of partitions") for size in view.sizes)
    symbols = tuple(uniform(symbol, site, "symbols of partitions") for symbol in view.symbols)
    view = replace(view, symbols=symbols)
    if view.owned is None:
        return Partition(view, (0,) * len(sizes), sizes, None)
    ranges, is_box = _owned(view.owned, symbols[: view.owned.num_symbols])
    if any(low is None or stop is None for low, stop in ranges):
        raise site.fail(
            UnboundedSet, f"has a partition %{view.name} without bounds", "bound each dimension by a constraint"
        )
    lows, stops = tuple(low or 0 for low, _ in ranges), tuple(stop or 0 for _, stop in ranges)
    return Partition(view, lows, stops, None if is_box else view.owned)


@cache
def _owned(set: AffineSet, symbols: tuple[int, ...]) -> tuple[Sequence[tuple[int | None, int | None]], bool]:
    """The range of each dimension of a set, and whether these are all of it."""
    box = as_box(set, symbols)
    return (bounds(set, symbols), False) if box is None else (box, True)


# ---------------------------------------------------------------------------------------------------------------- tiles


Patterns = Callable[[Frame], Pattern]


def patterns(
    compiler: FunctionCompiler, op: Operation, set: AffineSet, order: AffineMap, symbols: Sequence[SSAValue]
) -> Patterns:
    """The pattern of a tile; worked out once per value of its symbols."""
    site = compiler.site(op)
    kind = op.results[0].type
    assert isinstance(kind, AccessTileType)
    shape, slots = kind.get_shape(), tuple(compiler.slot(value) for value in symbols)
    axes = permutation(order)
    if axes is None:
        raise site.fail(
            UnknownOperation, f"has an order {order} that is no permutation", "use a permutation of the dimensions"
        )

    known: dict[tuple[int, ...], tuple[Pattern, bool]] = {}

    def found(frame: Frame) -> Pattern:
        values = tuple(uniform(demand(frame.regs[slot], site), site, "symbols") for slot in slots)
        if values not in known:
            result = points(values)
            known[values] = result, result.points is not None and set.num_dims > 0 and as_box(set, values) is not None
        result, permuted = known[values]
        if permuted:
            frame.run.warn(
                Diagnostic(
                    "TileShapeMismatch",
                    "warning",
                    f"'{site.operation}' has extents in another order than its tile type {kind}",
                    site.location,
                    "permute the extents of the type as the order says",
                )
            )
        return result

    def points(values: tuple[int, ...]) -> Pattern:
        try:
            return pattern(set, axes, shape, values)
        except NotRectangular as fault:
            raise site.fail(
                TileShapeMismatch,
                f"covers {fault.args[0]} points, which do not fill the tile type {kind}",
                "let the set have as many points as the tile has elements",
            ) from None
        except LimitExceeded as fault:
            raise site.fail(LimitExceeded, fault.message, fault.remedy or "") from None

    return found


def access_tile(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, ConstructAccessTileOp)
    site = compiler.site(op)
    base, out = compiler.slot(op.base), compiler.slot(op.tile)
    indices = tuple(compiler.slot(index) for index in op.indices)
    functions = evaluators(op.base_map.data)
    found = patterns(compiler, op, op.access_tile_set.data, op.access_tile_order.data, op.symbol_operands)

    def step(frame: Frame) -> None:
        regs = frame.regs
        view = _require_view(demand(regs[base], site), site)
        values = [demand(regs[slot], site) for slot in indices]
        regs[out] = Tile(view, apply(functions, values, site), found(frame))

    return step


def _require_view(value: Value, site: Site) -> Any:
    if not isinstance(value, View | DistributedView):
        raise site.fail(
            UnknownOperation, "accesses a tensor", "give it a memory view; use tensor.extract_slice on tensors"
        )
    return value


def indirect_tile(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, ConstructIndirectAccessTileOp)
    site = compiler.site(op)
    base, out = compiler.slot(op.base), compiler.slot(op.tile)
    captured = tuple(compiler.slot(value) for value in op.captured)
    subscripts = tuple(
        (None if view is None else compiler.slot(view), evaluators(map)) for view, map in op.subscripts()
    )
    found = patterns(compiler, op, op.variables_space_set.data, op.variables_space_order.data, op.symbol_operands)

    def step(frame: Frame) -> None:
        regs = frame.regs
        view = _require_view(demand(regs[base], site), site)
        looked_up = tuple((None if slot is None else regs[slot], functions) for slot, functions in subscripts)
        values = tuple(demand(regs[slot], site) for slot in captured)
        regs[out] = IndirectTile(view, found(frame), values, looked_up)

    return step


# ----------------------------------------------------------------------------------------------------- loads and stores


def load(compiler: FunctionCompiler, op: Operation) -> Step:
    site = compiler.site(op)
    source, out, element = compiler.slot(op.operands[0]), compiler.slot(op.results[0]), element_of(op.results[0].type)

    def step(frame: Frame) -> None:
        tile = frame.regs[source]
        _require_element(tile.view.element, element, site)
        access = resolve(tile, frame, site)
        if isinstance(access, Pieces):
            frame.regs[out] = _assembled(access, tile, element, frame, site)
            return
        if frame.batch is not None:
            frame.batch.note(access, frame, site, None, stores=False)
        values = access.read(access.arena.bytes, element.dtype)
        checker = frame.run.checker
        frame.regs[out] = values if checker is None else checker.on_read(access, values, frame, site)

    return step


def _require_element(view: ElementType, tensor: ElementType, site: Site) -> None:
    if view.dtype != tensor.dtype:
        raise site.fail(
            ElementTypeMismatch,
            f"moves a tensor of {tensor.name} through a view of {view.name}",
            "use one element type, and convert with arith.extf or arith.truncf",
        )


def _assembled(pieces: Pieces, tile: Tile | IndirectTile, element: ElementType, frame: Frame, site: Site) -> Value:
    """A tile of a distributed view; coordinates that no partition owns are zero where nobody checks (Q7)."""
    checker = frame.run.checker
    result = np.zeros(pieces.shape, element.dtype)
    mask, origin = None, None
    if checker is not None and pieces.masked is None:
        require_covered(pieces, tile, frame, site)
    elif checker is not None:
        mask, origin = uncovered(pieces), beyond_the_end(pieces, site)
    for piece in pieces.parts:
        if frame.batch is not None:
            frame.batch.note(piece.access, frame, site, piece.rows, stores=False)
        values: Value = piece.access.read(piece.access.arena.bytes, element.dtype)
        if checker is not None:
            values = checker.on_read(piece.access, values, frame, site)
        if isinstance(values, Tainted):
            mask = np.zeros(pieces.shape, bool) if mask is None else mask
            mask[piece.where] = _fitting(values.mask, piece.where)
            values, origin = values.values, values.origin
        result[piece.where] = _fitting(values, piece.where)
    return result if mask is None or origin is None else Tainted(result, mask, origin)


def uncovered(pieces: Pieces) -> Array:
    """Where no part of a tile lies."""
    missing = np.ones(pieces.shape, bool)
    for piece in pieces.parts:
        missing[piece.where] = False
    return missing


def beyond_the_end(pieces: Pieces, site: Site) -> Origin:
    assert pieces.masked is not None
    text = f"'{site.operation}' reads beyond the end of %{pieces.masked.name}"
    return Origin(UninitialisedRead, text, site.location)


def _fitting(values: Array, where: tuple[Any, ...]) -> Array:
    """Values of a piece in the shape that its place in the tile has."""
    return values.ravel() if is_mask(where[0]) else values


def is_mask(where: Any) -> bool:
    """Whether a piece lists its elements one by one."""
    return is_array(where) and where.dtype == np.bool_


def store(compiler: FunctionCompiler, op: Operation) -> Step:
    site = compiler.site(op)
    data, target = compiler.slot(op.operands[0]), compiler.slot(op.operands[1])
    element = element_of(op.operands[0].type)

    def step(frame: Frame) -> None:
        values, tile = frame.regs[data], frame.regs[target]
        _require_element(tile.view.element, element, site)
        if isinstance(values, Tainted) and values.is_unwritten():
            raise values.origin.error(site)
        access = resolve(tile, frame, site)
        if isinstance(access, Pieces):
            _scatter(access, values, tile, frame, site)
            return
        _write(access, values, frame, site)

    return step


def _write(access: Access, values: Value, frame: Frame, site: Site, rows: Array | None = None) -> None:
    """Stores; in a batch of iterations not before all are through. ``rows`` are those of the frame that store."""
    if access.is_empty():
        return
    if frame.batch is None:
        frame.run.perform(access, values, frame, site)
        return
    frame.batch.note(access, frame, site, rows, stores=True)
    frame.batch.wait(access, values, frame, site, rows)


def _scatter(pieces: Pieces, values: Value, tile: Tile | IndirectTile, frame: Frame, site: Site) -> None:
    """Stores to a distributed view: to every partition that owns a coordinate (Q6)."""
    checker = frame.run.checker
    if checker is not None and pieces.masked is None:
        require_covered(pieces, tile, frame, site)
    for piece in pieces.parts:
        _write(piece.access, _part_of(values, piece.where, pieces.shape), frame, site, piece.rows)


def _part_of(values: Value, where: tuple[Any, ...], shape: tuple[int, ...]) -> Value:
    if isinstance(values, Tainted):
        return Tainted(_part_of(values.values, where, shape), _part_of(values.mask, where, shape), values.origin)
    lead = max(shape[0], len(values))
    part = np.broadcast_to(values, (lead, *shape[1:]))
    if is_mask(where[0]):
        return np.broadcast_to(part, shape)[where].reshape(1, -1)
    return part[-1:][(slice(None), *where[1:])] if lead > shape[0] else part[where]


def runtime_argument(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, RuntimeArgExtractOp)
    kind = op.argument.type
    assert isinstance(kind, RuntimeArgType)
    source, out = compiler.slot(op.argument), compiler.slot(op.result)
    promised = None if op.kind_name == "value" else kind.promise(op.kind_name)

    def step(frame: Frame) -> None:
        frame.regs[out] = frame.regs[source] if promised is None else promised

    return step


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "ktdp.get_compute_tile_id": tile_id,
        "ktdp.construct_memory_view": memory_view,
        "ktdp.construct_distributed_memory_view": distributed_view,
        "ktdp.construct_access_tile": access_tile,
        "ktdp.construct_indirect_access_tile": indirect_tile,
        "ktdp.load": load,
        "ktdp.store": store,
        "ktdp.runtime_arg_extract": runtime_argument,
    }
)

__all__ = ["OPERATIONS", "ExecutionError"]
