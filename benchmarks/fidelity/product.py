"""The schedule of a published matrix product: rows over some of the cores, columns over the others.

Cores with the same columns need the same blocks of the weights, cores with the same rows the same activations. Each
loads a part and sends it to the others, so that device memory is read once; but a group that loads the weights
together has at most eight cores, the planner's own limit (torch-spyre ``cost_model.py``, ``mm_split_long_knee``): more
cores with the same columns are several groups, each of which reads the weights. The activations are loaded in slices
along with the first block of weights and stay; weights come in blocks of columns, of which each corelet takes half;
the sums of a block stay in the matrix unit, and its results are stored as it is done, between the loads of the next, or
with those of some more blocks where they are less than a burst.

Words. split: how many cores share the rows and how many the columns. block: columns of a core whose sums are made
together. slice: the part of the depth that is loaded at a time. step: the part that the matrix unit takes at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import SSAValue

from benchmarks.fidelity.schedule import (
    BURST,
    HALF,
    STICK,
    Mates,
    Schedule,
    collect,
    filling,
    hand_out,
    holding,
    load,
    store,
)
from ktir.dialect import dfp
from tests.backends.dataflow.programs import Index, Unit

STEP = 64
GROUP = 8
"""Cores that load an operand together, at most."""


@dataclass(frozen=True)
class Split:
    """``rows * columns`` cores; core ``c * rows + r`` has the ``r``-th part of the rows and ``c``-th of the columns.

    Which of the two is the faster was not published; this way the weights, the larger operand, go the shorter way.
    ``group``: how many cores load the same weights together, at most.
    """

    rows: int
    columns: int
    group: int = GROUP

    @property
    def cores(self) -> int:
        return self.rows * self.columns

    def row(self, core: int) -> int:
        """Which part of the rows a core has."""
        return core % self.rows

    def column(self, core: int) -> int:
        """Which part of the columns a core has."""
        return core // self.rows

    @cached_property
    def same_rows(self) -> Mates:
        """The cores that need the same activations."""
        return [[c * self.rows + self.row(core) for c in range(self.columns)] for core in range(self.cores)]

    @cached_property
    def same_columns(self) -> Mates:
        """The cores that load the same weights together: neighbours on the ring."""
        group = min(self.rows, self.group)
        return [[core // group * group + r for r in range(group)] for core in range(self.cores)]


@dataclass(frozen=True)
class Product:
    """``rows x depth`` by ``depth x columns`` in half precision."""

    rows: int
    depth: int
    columns: int
    split: Split
    block: int = 128
    slice: int = 512
    corelets: int = 2

    @property
    def own_rows(self) -> int:
        """Rows of a core."""
        return self.rows // self.split.rows

    @property
    def blocks(self) -> int:
        """Blocks of a core."""
        return self.columns // self.split.columns // self.block

    @property
    def slices(self) -> int:
        """Slices of a block."""
        return self.depth // self.slice

    @property
    def width(self) -> int:
        """Columns of a corelet in a block."""
        return self.block // self.corelets

    @property
    def slice_bytes(self) -> int:
        """Of the activations of a core."""
        return self.own_rows * self.slice * HALF

    @property
    def result_bytes(self) -> int:
        """Of a corelet's part of a block."""
        return self.own_rows * self.width * HALF

    @property
    def batch(self) -> int:
        """Blocks whose results are stored together: a burst if they are small, which the published turnaround between
        directions assumes."""
        most = max(1, BURST // self.result_bytes)
        return max(count for count in range(1, most + 1) if self.blocks % count == 0)


class Operand(Protocol):
    """Where slices of an operand come from; ``number`` counts slices from the beginning."""

    tile: SSAValue
    """Slots that units of the core read the slices from."""

    def load(self, u: Unit, number: Index) -> None:
        """What ``hbm_ld`` does for a slice."""
        ...

    def send(self, u: Unit, number: Index) -> None:
        """What ``ring_tx`` does for a slice."""
        ...

    def receive(self, u: Unit, number: Index) -> None:
        """What ``ring_rx`` does for a slice."""
        ...


class Shared:
    """Each core loads a part of each slice from device memory and sends it to its mates."""

    def __init__(self, schedule: Schedule, size: int, total: int, mates: Mates, which: list[int], slots: int) -> None:
        """``size``: bytes of a slice; ``total``: slices of one group's operand; ``which``: the operand of each core."""
        if size % (len(mates[0]) * STICK):  # too small to share: each core loads all of it
            mates = [[core] for core in range(schedule.cores)]
        self.mates, self.size, self.part = mates, size, size // len(mates[0])
        self.array = schedule.array((max(which) + 1) * total * size)
        self.first = [which[c] * total * size + mates[c].index(c) * self.part for c in range(schedule.cores)]
        self.own = schedule.tile(self.part, "hbm_ld", "ring_tx")
        self.tile = schedule.tile(size, "ring_rx", "lx_ld", slots=slots)

    def load(self, u: Unit, number: Index) -> None:
        at = u.apply(lambda i, first: i * self.size + first, number, u.table(*self.first))
        load(u, self.array, at, self.own, self.part)

    def send(self, u: Unit, number: Index) -> None:
        with holding(u, self.own):
            hand_out(u, self.own, 0, self.part, self.mates)

    def receive(self, u: Unit, number: Index) -> None:
        collect(u, self.tile, self.part, self.mates)


class Held:
    """Slices lie in the scratchpads of the mates, ``per_core`` in each, one behind the other."""

    def __init__(self, schedule: Schedule, kept: SSAValue, size: int, per_core: int, mates: Mates) -> None:
        self.kept, self.size, self.per_core, self.mates = kept, size, per_core, mates
        self.tile = schedule.tile(size, "ring_rx", "lx_ld")

    def load(self, u: Unit, number: Index) -> None:
        """Nothing: it is there."""

    def send(self, u: Unit, number: Index) -> None:
        turn = u.table(*[each.index(core) * self.per_core for core, each in enumerate(self.mates)])
        with u.when(lambda i, first: (i - first).ge(0) & (i - first).le(self.per_core - 1), number, turn):
            at = u.apply(lambda i, first: (i - first) * self.size, number, turn)
            hand_out(u, self.kept, at, self.size, self.mates)

    def receive(self, u: Unit, number: Index) -> None:
        first = u.table(*[each[0] for each in self.mates])
        apart = self.mates[0][-1] // max(1, len(self.mates[0]) - 1)
        source = u.apply(lambda i, first: i // self.per_core * apart + first, number, first)
        with filling(u, self.tile):
            u.receive(self.tile, 0, source, [self.size // HALF], [HALF])


def product(schedule: Schedule, p: Product, held: Held | None = None, kept: SSAValue | None = None) -> None:
    """Adds a product to the launch. ``held``: activations that are in the scratchpads already, for one block;
    ``kept``: where results stay, block by block and corelet by corelet, else they go to device memory."""
    split = p.split
    cores = range(split.cores)
    slots = 2 if p.blocks == 1 else p.slices
    activations: Operand = held or Shared(
        schedule, p.slice_bytes, p.slices, split.same_rows, [split.row(core) for core in cores], slots
    )
    weights = Shared(
        schedule,
        p.slice * p.block * HALF,
        p.blocks * p.slices,
        split.same_columns,
        [split.column(core) for core in cores],
        2,
    )
    schedule.does("hbm_ld", _mover(p, activations.load, weights.load))
    schedule.does("ring_tx", _mover(p, activations.send, weights.send))
    schedule.does("ring_rx", _mover(p, activations.receive, weights.receive))
    outs = [schedule.queue("pe", "lx_st") for _ in range(p.corelets)]
    for corelet, out in enumerate(outs):
        feed = schedule.queue("lx_ld", "pe")
        schedule.does("lx_ld", _feeder(p, activations.tile, weights.tile, feed, corelet), corelet)
        schedule.does("pe", _multiplier(p, feed, out), corelet)
    if kept is None:
        _results_to_device(schedule, p, outs)
        return
    for corelet, out in enumerate(outs):
        schedule.does("lx_st", _keeper(p, out, kept, corelet), corelet)


def _mover(p: Product, activations: Callable[[Unit, Index], None], weights: Callable[[Unit, Index], None]):
    """What a unit does for both operands: the activations with the first block, the weights with each."""

    def work(u: Unit) -> None:
        with u.loop(p.slices) as i:
            activations(u, i)
            weights(u, i)
        if p.blocks > 1:
            with u.loop((p.blocks - 1) * p.slices) as i:
                weights(u, u.apply(lambda i: i + p.slices, i))

    return work


def _feeder(p: Product, activations: SSAValue, weights: SSAValue, feed: SSAValue, corelet: int):
    """Streams a step of the weights and the activations that meet it, again and again."""
    row = p.block * HALF

    def steps(u: Unit, slot: int) -> None:
        with holding(u, weights), u.loop(p.slice // STEP) as j:
            at = u.apply(lambda j: j * (STEP * row) + corelet * p.width * HALF, j)
            u.stream(weights, at, feed, [STEP, p.width], [row, HALF])
            at = u.apply(lambda j: j * (STEP * HALF), j)
            u.stream(activations, at, feed, [p.own_rows, STEP], [p.slice * HALF, HALF], slot=slot)

    def work(u: Unit) -> None:
        if p.blocks == 1:
            with u.loop(p.slices), holding(u, activations):
                steps(u, 0)
            return
        for number in range(p.slices):
            u.add(dfp.AcquireOp(activations))
            steps(u, number)
        with u.loop(p.blocks - 1):
            for number in range(p.slices):
                steps(u, number)
        for _ in range(p.slices):
            u.add(dfp.ReleaseOp(activations))

    return work


def _multiplier(p: Product, feed: SSAValue, out: SSAValue):
    def work(u: Unit) -> None:
        with u.loop(p.blocks):
            u.add(dfp.PeClearOp(rows=p.own_rows, n=p.width))
            with u.loop(p.depth // STEP):
                u.add(dfp.PeLoadOp(feed, k=STEP, n=p.width, element=f16))
                u.add(dfp.PeMacOp(feed, rows=p.own_rows, k=STEP, n=p.width, element=f16))
            u.add(dfp.PeEmitOp(out, rows=p.own_rows, n=p.width, element=f16))

    return work


def _keeper(p: Product, out: SSAValue, kept: SSAValue, corelet: int):
    """Results stay in the scratchpad, block by block and corelet by corelet."""

    def work(u: Unit) -> None:
        with u.loop(p.blocks) as i:
            at = u.apply(lambda i: (i * p.corelets + corelet) * p.result_bytes, i)
            u.drain(out, kept, at, [p.result_bytes // HALF], [HALF])

    return work


def _results_to_device(schedule: Schedule, p: Product, outs: list[SSAValue]) -> None:
    """Each batch of blocks is stored as it is done."""
    array = schedule.array(p.rows * p.columns * HALF)
    size = p.batch * p.result_bytes
    tiles = [schedule.tile(size, "lx_st", "hbm_st") for _ in outs]
    first = [core * p.blocks * p.corelets * p.result_bytes for core in range(schedule.cores)]

    def drainer(out: SSAValue, tile: SSAValue):
        def work(u: Unit) -> None:
            with u.loop(p.blocks // p.batch), filling(u, tile), u.loop(p.batch) as j:
                at = u.apply(lambda j: j * p.result_bytes, j)
                u.drain(out, tile, at, [p.result_bytes // HALF], [HALF])

        return work

    def write(u: Unit) -> None:
        begin = u.table(*first)
        with u.loop(p.blocks // p.batch) as i:
            for corelet, tile in enumerate(tiles):
                at = u.apply(lambda i, b, c=corelet: (i * p.corelets + c) * size + b, i, begin)
                store(u, tile, array, at, size)

    for corelet, (out, tile) in enumerate(zip(outs, tiles, strict=True)):
        schedule.does("lx_st", drainer(out, tile), corelet)
    schedule.does("hbm_st", write)


# ----------------------------------------------------------------------------------- the products that were timed


def wide(columns: int, split: Split) -> ModuleOp:
    """512 x 4096 by 4096 x ``columns`` from device memory to device memory."""
    schedule = Schedule(split.cores)
    product(schedule, Product(512, 4096, columns, split))
    return schedule.module()


def small(rows: int, depth: int, columns: int) -> ModuleOp:
    """A product of the sweep on 8 x 4 cores."""
    schedule = Schedule(32)
    product(schedule, Product(rows, depth, columns, Split(8, 4)))
    return schedule.module()


def decode(rows: int, columns: int, split: Split) -> ModuleOp:
    """A few rows by 4096 x ``columns``: one corelet suffices, for device memory is slower than either."""
    schedule = Schedule(split.cores)
    product(schedule, Product(rows, 4096, columns, split, block=STEP, corelets=1))
    return schedule.module()
