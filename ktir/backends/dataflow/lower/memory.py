"""Memory views and access tiles of a kernel, and loads and stores on boxes of them.

Words. partition: one memory view of a distributed view, with the box of coordinates it owns. global view: in device
memory. own view: in the scratchpad of the executing core. remote view: in the scratchpad of a core that is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float16Type, MemRefType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from ktir.backends.dataflow.dl16 import to_dl16
from ktir.backends.dataflow.lower import scalars
from ktir.backends.dataflow.lower.context import Lowering, refuse
from ktir.backends.dataflow.lower.hardware import Numerics
from ktir.backends.dataflow.lower.plan import (
    Mask,
    Storage,
    View,
    element_bytes,
    row_major,
)
from ktir.backends.dataflow.lower.tensors import Pending, Splat, Tensor
from ktir.backends.dataflow.lower.values import CoreValue, NotAffine, constant
from ktir.dialect import ktdp
from ktir.dialect.ktdp.attrs import MemorySpace
from ktir.dialect.locations import location_of
from ktir.errors import CapacityExceeded, OutOfBounds
from ktir.maths.lifetimes import Room
from ktir.maths.sets import as_box

Ranges = tuple[tuple[int, int], ...]
"""A half-open range per dimension."""


@dataclass(frozen=True)
class MemoryView:
    """``address``: bytes from the start of the memory; ``strides`` in bytes; ``owned``: its coordinates.

    ``buffer``: the allocation that its pointer came from, if that is known. ``ragged``: its set depends on a dynamic
    size, so a whole tile may reach beyond its end; what lies there is undefined on a load and dropped on a store.
    """

    space: MemorySpace
    address: CoreValue
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    element: Attribute
    owned: Ranges
    buffer: Storage | None = None
    ragged: bool = False


@dataclass(frozen=True)
class DistributedView:
    """Global coordinates over several views; each holds its box from its own first element on."""

    partitions: tuple[MemoryView, ...]
    rank: int


@dataclass(frozen=True)
class AccessTile:
    """The box ``ranges`` from ``base`` on; result dimension ``k`` walks dimension ``order[k]``."""

    memory: MemoryView | DistributedView
    base: tuple[CoreValue, ...]
    ranges: Ranges
    order: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents before the order is applied."""
        return tuple(stop - start for start, stop in self.ranges)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        return tuple(self.extents[dim] for dim in self.order)


# --------------------------------------------------------------------------------------------------------------- places


@dataclass(eq=False)
class Places:
    """The memories of the whole program: allocations of device memory, and scratchpad ranges with the launches that
    touch them."""

    allocations: list[Storage]
    scratchpad_bytes: int
    scratch: dict[Room, Storage] = field(default_factory=dict[Room, Storage])
    touched: dict[Storage, list[int]] = field(default_factory=dict[Storage, list[int]])

    def in_global(self, op: Operation, view: MemoryView, mask: Mask) -> Storage:
        """The allocation that holds the view's first element, on every core of ``mask``."""
        first = view.address.minimum()[mask]
        low, high = int(first.min()), int(view.address.maximum()[mask].max())
        candidates = [view.buffer] if view.buffer is not None else sorted(self.allocations, key=lambda each: each.size)
        for storage in candidates:
            if storage.offset <= low and high < storage.offset + max(1, storage.size):
                return storage
        raise OutOfBounds(
            f"the view starts at byte {low} of global memory, where nothing is allocated",
            location=location_of(op),
            remedy="give the kernel a pointer to an array, or place an array there",
        )

    def in_scratchpad(self, op: Operation, view: MemoryView, mask: Mask, launch: int) -> Storage:
        """The range of scratchpad that the view covers."""
        reach = sum((size - 1) * stride for size, stride in zip(view.sizes, view.strides, strict=True) if size)
        low = int(view.address.minimum()[mask].min())
        high = int(view.address.maximum()[mask].max()) + reach + element_bytes(view.element)
        if low < 0 or high > self.scratchpad_bytes:
            raise CapacityExceeded(
                f"the view covers bytes [{low}, {high}) of a scratchpad of {self.scratchpad_bytes}",
                location=location_of(op),
                remedy="place it lower, or make it smaller",
            )
        room = Room(low, high)
        fresh = Storage(f"region{len(self.scratch)}", "ct_local", low, len(room), op)
        storage = self.scratch.setdefault(room, fresh)
        self.touched.setdefault(storage, []).append(launch)
        return storage


MOST_NUMBERS = 1 << 20
"""Size of the table of numbers, at most."""


@dataclass(eq=False)
class Constants:
    """Constant tensors that are no splats: their bytes go to device memory, behind all allocations."""

    start: int
    alignment: int
    numerics: Numerics = "f16"
    contents: list[tuple[Storage, bytes]] = field(default_factory=list[tuple[Storage, bytes]])
    known: dict[Attribute, Storage] = field(default_factory=dict[Attribute, Storage])
    numbers: Storage = field(default_factory=lambda: Storage("numbers", "global", 0, 0))
    zeros: Storage = field(default_factory=lambda: Storage("zeros", "global", 0, 0))

    def number(self, value: CoreValue, extent: int) -> View | None:
        """The numbers from ``value`` on, ``extent`` of them, as i64 in device memory: a table of all numbers, read from
        the right place. None for numbers that are negative or too large."""
        if value.minimum().min() < 0 or (last := int(value.maximum().max()) + extent) > MOST_NUMBERS:
            return None
        self.numbers.size = max(self.numbers.size, last * 8)
        return View(self.numbers, value * 8, (extent,), (8,), i64)

    def zero(self, shape: Sequence[int], element: Attribute, cores: int) -> View:
        """Zeros in device memory: one row that all others repeat."""
        row = shape[-1:]
        self.zeros.size = max(self.zeros.size, prod(row) * element_bytes(element))
        strides = (*(0 for _ in shape[:-1]), *row_major(row, element))
        return View(self.zeros, constant(0, cores), tuple(shape), strides, element)

    def finish(self) -> None:
        """Places the table of numbers and the zeros behind everything else."""
        for storage, content in (
            (self.numbers, np.arange(self.numbers.size // 8, dtype=np.int64).tobytes()),
            (self.zeros, bytes(self.zeros.size)),
        ):
            if storage.size:
                storage.offset = self.start
                self.contents.append((storage, content))
                self.start += -(-storage.size // self.alignment) * self.alignment

    def view(self, attribute: DenseIntOrFPElementsAttr, shape: Sequence[int], element: Attribute, cores: int) -> View:
        """The constant in device memory."""
        storage = self.known.get(attribute)
        if storage is None:
            content = _packed(attribute, element, self.numerics)
            storage = Storage(f"constant{len(self.contents)}", "global", self.start, len(content))
            self.start += -(-len(content) // self.alignment) * self.alignment
            self.contents.append((storage, content))
            self.known[attribute] = storage
        return View(storage, constant(0, cores), tuple(shape), row_major(shape, element), element)


def _packed(attribute: DenseIntOrFPElementsAttr, element: Attribute, numerics: Numerics) -> bytes:
    """The bytes of a constant as elements lie in memory: packed, a truth value in one byte."""
    if numerics == "dl16" and isinstance(element, Float16Type):
        return to_dl16(np.frombuffer(attribute.data.data, np.float16).astype(np.float32)).tobytes()
    if str(element) != "i1":
        return bytes(attribute.data.data)
    return bytes(int(str(number)) & 1 for number in list[object](attribute.get_values()))


# -------------------------------------------------------------------------------------------------------- constructions


def construct_memory_view(lowering: Lowering, op: ktdp.ConstructMemoryViewOp) -> None:
    """Elements become bytes here: offset and strides count elements of the view's type."""
    type = op.view.type
    assert isinstance(type, MemRefType)
    element = cast("MemRefType[Attribute]", type).element_type
    width = element_bytes(element)
    sizes = tuple(number_of(lowering, op, size, "a size") for size in op.mixed_sizes())
    strides = tuple(number_of(lowering, op, stride, "a stride") * width for stride in op.mixed_strides())
    symbols = [number_of(lowering, op, size, "a size") for size in op.sizes]
    owned = as_box(op.owned_set(), symbols)
    if owned is None:
        refuse(op, "its coordinate set is no box", "give each partition a box of coordinates")
    address = lowering.integer(op.offset, op) * width
    buffer = pointed_to(lowering, op.offset) if op.space.kind == "global" else None
    ragged = op.space.kind == "global" and is_ragged(op)
    lowering.values[op.view] = MemoryView(op.space, address, sizes, strides, element, owned, buffer, ragged)


def is_ragged(op: ktdp.ConstructMemoryViewOp) -> bool:
    """Whether the coordinates of the view depend on a size that the text does not give."""
    return op.owned_set().num_symbols > 0


def pointed_to(lowering: Lowering, pointer: SSAValue) -> Storage | None:
    """The one allocation whose pointer goes into the computation of ``pointer``, if there is one."""
    found: dict[Storage, None] = {}
    pending, seen = [pointer], {pointer}
    while pending:
        value = pending.pop()
        if value in lowering.buffers:
            found[lowering.buffers[value]] = None
        elif isinstance(value.owner, Operation):
            pending += [operand for operand in value.owner.operands if operand not in seen]
            seen.update(value.owner.operands)
    return next(iter(found)) if len(found) == 1 else None


def number_of(lowering: Lowering, op: Operation, entry: int | SSAValue, what: str) -> int:
    """An integer that is the same on all cores and in all iterations."""
    if isinstance(entry, int):
        return entry
    value = lowering.integer(entry, op)
    active = value.constant[lowering.planner.active]
    if not value.is_constant or not len(active) or (active != active[0]).any():
        refuse(op, f"{what} differs from core to core or changes in a loop")
    return int(active[0])


def construct_distributed_view(lowering: Lowering, op: ktdp.ConstructDistributedMemoryViewOp) -> None:
    """Collects the partitions."""
    partitions = tuple(lowering.get(view, MemoryView, op, "the view") for view in op.views)
    type = op.view.type
    assert isinstance(type, MemRefType)
    lowering.values[op.view] = DistributedView(partitions, len(type.get_shape()))


def construct_access_tile(lowering: Lowering, op: ktdp.ConstructAccessTileOp) -> None:
    """Evaluates the base coordinates; the set must be a box."""
    memory = lowering.get(op.base, (MemoryView, DistributedView), op, "the base")
    indices = [lowering.integer(index, op) for index in op.indices]
    map = op.base_map.data
    try:
        base = scalars.evaluate_map(map, indices[: map.num_dims], indices[map.num_dims :], lowering.cores)
    except NotAffine as fault:
        refuse(op, str(fault))
    symbols = [number_of(lowering, op, symbol, "a symbol") for symbol in op.symbol_operands]
    ranges = as_box(op.access_tile_set.data, symbols)
    if ranges is None:
        refuse(op, "its access set is no box", "mask the tensor instead, or access one box at a time")
    order = permutation_of(op, op.access_tile_order.data)
    lowering.values[op.tile] = AccessTile(memory, base, ranges[: len(order)], order)


def permutation_of(op: Operation, map: AffineMap) -> tuple[int, ...]:
    """The dimension that each result of an order walks."""
    order = tuple(r.position for r in map.results if isinstance(r, AffineDimExpr))
    if sorted(order) != list(range(map.num_dims)):
        refuse(op, f"the order {map} is no permutation")
    return order


# ----------------------------------------------------------------------------------------------------- loads and stores


def in_memory(lowering: Lowering, op: Operation, memory: MemoryView) -> View:
    """The first element of ``memory`` as a view of all its elements."""
    active = lowering.planner.active
    if memory.space.kind == "global":
        storage = lowering.places.in_global(op, memory, active)
    else:
        storage = lowering.places.in_scratchpad(op, memory, active, lowering.planner.plan.number)
    return View(storage, memory.address - storage.offset, memory.sizes, memory.strides, memory.element)


def tile_view(lowering: Lowering, op: Operation, tile: AccessTile, memory: MemoryView) -> View:
    """The elements of ``tile`` where they lie."""
    check_inside(lowering, op, tile, memory)
    view = in_memory(lowering, op, memory)
    for coordinate, (start, _), stride in zip(tile.base, tile.ranges, memory.strides, strict=True):
        view = view.moved((coordinate + start) * stride)
    return view.shaped(tile.shape, [memory.strides[dim] for dim in tile.order])


def one_partition(memory: MemoryView) -> DistributedView:
    """``memory`` as the only partition of a view."""
    return DistributedView((memory,), len(memory.sizes))


def reaches_beyond(lowering: Lowering, tile: AccessTile, memory: MemoryView) -> bool:
    """Whether some core reaches outside the view in some iteration."""
    active = lowering.planner.active
    return any(
        bool(((coordinate.minimum() + start)[active] < 0).any() or ((coordinate.maximum() + stop)[active] > size).any())
        for coordinate, (start, stop), size in zip(tile.base, tile.ranges, memory.sizes, strict=True)
    )


def check_inside(lowering: Lowering, op: Operation, tile: AccessTile, memory: MemoryView) -> None:
    """Raises :class:`OutOfBounds` where some core reaches outside the view, in any iteration."""
    active = lowering.planner.active
    for dim, (coordinate, (start, stop), size) in enumerate(zip(tile.base, tile.ranges, memory.sizes, strict=True)):
        low, high = (coordinate.minimum() + start)[active], (coordinate.maximum() + stop)[active]
        if len(low) and (low.min() < 0 or high.max() > size):
            raise OutOfBounds(
                f"the access reaches [{int(low.min())}, {int(high.max())}) along dimension {dim} of a view of {size}",
                location=location_of(op),
                remedy="let the last tile be smaller, or enlarge the view",
            )


def stored_data(lowering: Lowering, data: Tensor) -> View:
    """The data as it lies in the scratchpad, with a second slot in a loop so that the store drains behind."""
    if isinstance(data, View):
        return data
    slots = 2 if lowering.planner.block.loop is not None and isinstance(data, Pending) else 1
    if isinstance(data, Splat):
        return lowering.dense(data)
    return lowering.stored(data, slots=slots)
