"""The plan of a dataflow program: what every unit does, in one order, before it is split by unit.

A launch is planned as if one machine did everything in the order of the kernel. The plan is a tree of blocks; its
leaves are the steps of single units. Each unit's program is the tree with the other units' steps left out, so the units
can always make progress: the order of the plan is one that works. What lets them run ahead of each other are the tiles:
rings of scratchpad slots with one unit that fills and others that read.

Words. step: one operation of one unit. tile: storage of a tensor value in the scratchpad. writing: the steps between
reserving a slot of a tile and committing it. reading: the steps between acquiring a slot and releasing it. region:
bytes without slots, ordered by launches alone. view: strided elements of a tile or region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, Region, SSAValue

from ktir.backends.dataflow.lower.hardware import Hardware
from ktir.backends.dataflow.lower.values import CoreValue, LoopVariable, PerCore
from ktir.errors import NotLowerable
from ktir.location import Location

S = TypeVar("S")
Mask = NDArray[np.bool_]
"""Which cores take part."""


def element_bytes(element: Attribute) -> int:
    """Bytes of one element in memory; a truth value takes one."""
    match element:
        case IndexType():
            return 8
        case IntegerType():
            return max(1, -(-element.width.data // 8))
        case _ if isinstance(element, AnyFloat):
            return -(-element.bitwidth // 8)
        case _:
            raise NotLowerable(f"elements of type {element} have no size", remedy="use a float or integer type")


def row_major(shape: Sequence[int], element: Attribute) -> tuple[int, ...]:
    """Byte strides of a dense tensor of ``shape``."""
    return tuple(prod(shape[position + 1 :]) * element_bytes(element) for position in range(len(shape)))


ScalarBody = Callable[[Sequence[SSAValue]], tuple[list[Operation], SSAValue]]
"""Makes the operations of a scalar region from its arguments, and says which value is the result."""

# ----------------------------------------------------------------------------------------------------------------- tree


@dataclass(eq=False)
class Block:
    """Items in order. ``loop`` is the loop whose body it is, None for the body of a launch."""

    loop: Loop | None = None
    items: list[Item] = field(default_factory=list["Item"])


@dataclass(eq=False)
class Loop:
    """Runs ``body`` as often as its variable says on each core; never, for a core that takes no part."""

    variable: LoopVariable
    parent: Block
    body: Block = field(init=False)

    def __post_init__(self) -> None:
        self.body = Block(self)


@dataclass(eq=False)
class Step:
    """One operation of ``unit`` of a ``corelet`` in ``parent``, made for ``origin``."""

    unit: str
    corelet: int
    action: Action
    parent: Block
    origin: Operation


SlotAction = Literal["reserve", "commit", "acquire", "release"]


@dataclass(eq=False)
class Handshake:
    """``unit`` of each of ``corelets`` reserves, commits, acquires or releases a slot of ``tile``."""

    unit: str
    corelets: frozenset[int]
    action: SlotAction
    tile: Tile


Item = Loop | Step | Handshake


# -------------------------------------------------------------------------------------------------------------- storage


@dataclass(eq=False)
class Storage:
    """A region: ``size`` bytes of ``memory`` from ``offset``, at the same place in each core's scratchpad.

    ``origin``: the operation that it is known from, where there is one.
    """

    name: str
    memory: str
    offset: int
    size: int
    origin: Operation | None = None


@dataclass(eq=False)
class Tile:
    """``slots`` slots of ``size`` bytes in the scratchpad, filled by ``producer`` alone.

    A tile that nobody reads is emptied by ``idle_consumer``. More than ``least_slots`` let units run ahead.
    """

    name: str
    size: int
    slots: int
    producer: str
    idle_consumer: str
    origin: Operation
    least_slots: int = 1
    writings: list[Writing] = field(default_factory=list["Writing"])
    readings: list[Reading] = field(default_factory=list["Reading"])

    @property
    def consumers(self) -> tuple[str, ...]:
        """Every unit that reads any slot."""
        return tuple(sorted({unit for reading in self.readings for unit in reading.steps})) or (self.idle_consumer,)

    @property
    def filling(self) -> frozenset[int]:
        """The corelets that fill slots."""
        return frozenset(step.corelet for writing in self.writings for step in writing.steps) or frozenset({0})

    def reading(self, unit: str) -> frozenset[int]:
        """The corelets whose ``unit`` reads slots."""
        return frozenset(step.corelet for r in self.readings for step in r.steps.get(unit, ())) or frozenset({0})


@dataclass(eq=False)
class Writing:
    """Fills one slot of ``tile`` in each run of ``block``."""

    tile: Tile
    block: Block
    steps: list[Step] = field(default_factory=list[Step])


@dataclass(eq=False)
class Reading:
    """Reads one slot of ``tile`` in each run of ``block``, by unit. ``anchor`` is the item of ``block`` behind which a
    unit that reads nothing passes the slot on; None for the end of the block."""

    tile: Tile
    block: Block
    anchor: Item | None = None
    steps: dict[str, list[Step]] = field(default_factory=dict[str, list[Step]])


Source = Storage | Reading
Target = Storage | Writing


@dataclass(frozen=True)
class View:
    """Elements of ``place`` from byte ``offset``; one ``strides`` entry of bytes per dimension of ``shape``."""

    place: Storage | Reading | Writing
    offset: CoreValue
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Attribute

    @property
    def count(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def moved(self, by: CoreValue | int) -> View:
        """The same elements ``by`` bytes further on."""
        return View(self.place, self.offset + by, self.shape, self.strides, self.element)

    def shaped(self, shape: Sequence[int], strides: Sequence[int]) -> View:
        """Other elements from the same place on."""
        return View(self.place, self.offset, tuple(shape), tuple(strides), self.element)

    def sliced(self, offsets: Sequence[CoreValue | int], shape: Sequence[int], steps: Sequence[int]) -> View:
        """``shape`` elements from ``offsets``, ``steps`` elements apart."""
        moved = self
        for offset, stride in zip(offsets, self.strides, strict=True):
            moved = moved.moved(offset * stride)
        return moved.shaped(shape, [stride * step for stride, step in zip(self.strides, steps, strict=True)])


# ---------------------------------------------------------------------------------------------------------------- steps


@dataclass(frozen=True)
class Copy:
    """Memory to memory."""

    source: View
    target: View


@dataclass(frozen=True)
class Gather:
    """Rows of ``source``, picked by ``index``, to lines of ``target``; or, where it scatters, the lines to the rows."""

    source: View
    index: View
    target: View
    row_stride: int
    line_stride: int
    scatters: bool = False


@dataclass(frozen=True)
class Stream:
    """A view to a queue, in row-major order of its shape."""

    source: View
    queue: str


@dataclass(frozen=True)
class Drain:
    """A queue to a view."""

    queue: str
    target: View


@dataclass(frozen=True)
class SfuMap:
    """Pointwise work; ``body`` makes the region."""

    inputs: tuple[str, ...]
    output: str
    shape: tuple[int, ...]
    body: Callable[[], Region]


@dataclass(frozen=True)
class SfuReduce:
    """A reduction over the middle of ``outer x length x inner``."""

    input: str
    output: str
    initial: str | None
    outer: int
    length: int
    inner: int
    body: Callable[[], Region]


@dataclass(frozen=True)
class Pe:
    """A step of the matrix unit; sizes that its ``kind`` does not use are zero."""

    kind: Literal["load", "clear", "preload", "mac", "emit"]
    queue: str | None
    element: Attribute | None
    rows: int = 0
    k: int = 0
    n: int = 0


@dataclass(frozen=True)
class Send:
    """A view over the network to another core, or to several at once; each of them once, and not the sender."""

    source: View
    destinations: tuple[CoreValue, ...]


@dataclass(frozen=True)
class Receive:
    """What another core sent, to a view."""

    target: View
    origin: CoreValue


@dataclass(frozen=True)
class Chain:
    """A core's part in adding views along a chain of cores.

    It takes sums from core ``previous``, none where that is negative, and hands them with its own ``source`` to core
    ``next`` or, where that is negative, to ``target``.
    """

    source: View
    target: View
    previous: CoreValue
    next: CoreValue


Action = Copy | Gather | Stream | Drain | SfuMap | SfuReduce | Pe | Send | Receive | Chain


def views_of(action: Action) -> Iterator[View]:
    """The views that ``action`` touches."""
    match action:
        case Copy() | Chain():
            yield from (action.source, action.target)
        case Gather():
            yield from (action.source, action.index, action.target)
        case Stream() | Send():
            yield action.source
        case Drain() | Receive():
            yield action.target
        case _:
            return


# --------------------------------------------------------------------------------------------------------------- launch


@dataclass(eq=False)
class LaunchPlan:
    """All that one launch does. ``number`` counts from zero."""

    number: int
    location: Location | None
    body: Block = field(default_factory=Block)
    tiles: list[Tile] = field(default_factory=list[Tile])


@dataclass(eq=False)
class Planner:
    """Appends to a launch plan. ``block`` is where the next item goes, ``active`` are the cores that run it, on
    ``corelet``."""

    hardware: Hardware
    plan: LaunchPlan
    active: Mask
    corelet: int = 0
    block: Block = field(init=False)
    origin: Operation = field(init=False)

    def __post_init__(self) -> None:
        self.block = self.plan.body

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return len(self.active)

    # -------------------------------------------------------------------------------------------------------- structure

    def add(self, unit: str, action: Action) -> Step:
        """Appends a step and notes which tiles it reads and writes."""
        corelet = self.corelet if self.hardware.instances(unit) > 1 else 0
        step = Step(unit, corelet, action, self.block, self.origin)
        self.block.items.append(step)
        for view in views_of(action):
            if isinstance(view.place, Reading):
                view.place.steps.setdefault(unit, []).append(step)
            elif isinstance(view.place, Writing):
                view.place.steps.append(step)
        return step

    def open_loop(self, name: str, trips: PerCore) -> Loop:
        """Appends a loop; what follows goes into it until :meth:`close_loop`."""
        loop = Loop(LoopVariable(name, np.where(self.active, trips, 0)), self.block)
        self.block.items.append(loop)
        self.block = loop.body
        return loop

    def close_loop(self, loop: Loop) -> None:
        """Goes on behind ``loop``; takes it away again where it holds nothing or no core runs it."""
        self.block = loop.parent
        if not loop.body.items:
            self.block.items.remove(loop)

    def guarded(self, mask: Mask, work: Callable[[], None]) -> None:
        """``work`` on the cores of ``mask`` alone: a loop that runs once there and never elsewhere."""
        mask = mask & self.active
        if (mask == self.active).all():
            return work()
        if not mask.any():
            return None
        everyone = self.active
        loop = self.open_loop("guard", mask.astype(np.int64))
        self.active = mask
        work()
        self.active = everyone
        return self.close_loop(loop)

    def each_corelet(self, shares: Sequence[S], work: Callable[[S], object]) -> None:
        """``work`` on one share after the other, each on a corelet of its own."""
        for corelet, share in enumerate(shares):
            self.corelet = corelet
            work(share)
        self.corelet = 0

    # ---------------------------------------------------------------------------------------------------------- storage

    def carried_tile(self, shape: Sequence[int], element: Attribute) -> Tile:
        """A tile that holds an old value while the next one is made."""
        tile = self.tile(shape, element, self.hardware.drain, slots=2)
        tile.least_slots = 2
        return tile

    def tile(self, shape: Sequence[int], element: Attribute, producer: str, *, slots: int) -> Tile:
        """A new tile with room for a dense tensor."""
        size = max(1, prod(shape)) * element_bytes(element)
        tile = Tile(f"t{len(self.plan.tiles)}", size, slots, producer, self.hardware.feed, self.origin)
        self.plan.tiles.append(tile)
        return tile

    def writing(self, tile: Tile) -> Writing:
        """The next slot of ``tile`` is filled in the current block."""
        writing = Writing(tile, self.block)
        tile.writings.append(writing)
        return writing

    def reading(self, tile: Tile, anchor: Item | None = None) -> Reading:
        """The next slot of ``tile`` is read in the current block."""
        reading = Reading(tile, self.block, anchor)
        tile.readings.append(reading)
        return reading

    def dense(self, place: Storage | Reading | Writing, shape: Sequence[int], element: Attribute) -> View:
        """All of ``place`` as a dense tensor."""
        start = CoreValue(np.zeros(self.cores, dtype=np.int64))
        return View(place, start, tuple(shape), row_major(shape, element), element)

    def value_tile(self, shape: Sequence[int], element: Attribute, producer: str, *, slots: int) -> tuple[View, View]:
        """A tile for one value that is made and used in the current block: where to write it and where to read it."""
        tile = self.tile(shape, element, producer, slots=slots)
        target = self.dense(self.writing(tile), shape, element)
        return target, self.dense(self.reading(tile), shape, element)


# ----------------------------------------------------------------------------------------------------------- handshakes


def insert_handshakes(plan: LaunchPlan) -> None:
    """Puts reserve, commit, acquire and release around what the writings and readings hold.

    They stand in the block of the writing or reading, around the items that contain its first and last step.
    """
    before: dict[Item, list[Handshake]] = {}
    after: dict[Item, list[Handshake]] = {}
    at_start: dict[Block, list[Handshake]] = {}
    at_end: dict[Block, list[Handshake]] = {}
    for tile in plan.tiles:
        reserve = Handshake(tile.producer, tile.filling, "reserve", tile)
        commit = Handshake(tile.producer, tile.filling, "commit", tile)
        for writing in tile.writings:
            items = _items_of(writing.steps, writing.block)
            if not items:
                at_start.setdefault(writing.block, []).extend((reserve, commit))
                continue
            before.setdefault(items[0], []).append(reserve)
            after.setdefault(items[-1], []).append(commit)
        for reading in tile.readings:
            for unit in tile.consumers:
                corelets = tile.reading(unit)
                take, give = Handshake(unit, corelets, "acquire", tile), Handshake(unit, corelets, "release", tile)
                if unit in reading.steps:
                    items = _items_of(reading.steps[unit], reading.block)
                    before.setdefault(items[0], []).append(take)
                    after.setdefault(items[-1], []).append(give)
                elif reading.anchor is not None:
                    after.setdefault(reading.anchor, []).extend((take, give))
                else:
                    at_end.setdefault(reading.block, []).extend((take, give))
    _insert(plan.body, before, after, at_start, at_end)


def _items_of(steps: Sequence[Step], block: Block) -> list[Item]:
    """The items of ``block`` that contain ``steps``, in order."""
    return [item_in(step, block) for step in steps]


def item_in(step: Step, block: Block) -> Item:
    """The item of ``block`` that is or contains ``step``."""
    item: Step | Loop = step
    while item.parent is not block:
        assert item.parent.loop is not None, "a tile is used outside the block that defines it"
        item = item.parent.loop
    return item


def _insert(
    block: Block,
    before: dict[Item, list[Handshake]],
    after: dict[Item, list[Handshake]],
    at_start: dict[Block, list[Handshake]],
    at_end: dict[Block, list[Handshake]],
) -> None:
    items: list[Item] = list(at_start.get(block, ()))
    for item in block.items:
        items += before.get(item, ())
        items.append(item)
        items += after.get(item, ())
        if isinstance(item, Loop):
            _insert(item.body, before, after, at_start, at_end)
    block.items = items + at_end.get(block, [])
