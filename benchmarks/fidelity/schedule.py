"""Writing the dataflow program of a published measurement: where things lie, and what each unit does in each launch.

Only time matters, so arrays have sizes and addresses but no contents. What is not published about a schedule, such as
how much a descriptor moves, is chosen so that units overlap as far as the machine lets them.

Words. tile: a ring of slots in the scratchpad of each core. kept: a region of the scratchpad that outlives a launch.
mates: the cores that share an operand, each of which loads a part of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ktir.dialect import dfp
from tests.backends.dataflow.programs import Index, Program, Unit

STICK = 128
"""Bytes of the scratchpad's word."""
BURST = 4096
"""Bytes of the longest burst of device memory (torch-spyre, restickify document)."""
HALF = 2
"""Bytes of an element: all published results are in half precision."""
DESCRIPTION = "spyre"
"""The machine that the measurements ran on."""

Work = Callable[[Unit], None]
Mates = Sequence[Sequence[int]]
"""For each core the cores that share with it, itself among them, in the order of their parts."""


class Schedule:
    """A program for ``cores`` cores under construction, launch by launch."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.program = Program(cores, DESCRIPTION)
        self.launch = 0
        self._work: dict[tuple[str, int], dict[int, Work]] = defaultdict(dict)
        self._device_end = self._declared = 0
        self._placed: list[tuple[int, int, int]] = []

    def array(self, size: int) -> SSAValue:
        """Device memory of ``size`` bytes."""
        at, self._device_end = self._device_end, self._device_end + _whole_sticks(size)
        return self.program.ddr(at, size, self._name("array"))

    def kept(self, size: int, last: int) -> SSAValue:
        """A region of each scratchpad from this launch to launch ``last``."""
        at = self._place(size, last)
        return self.program.lx(at, size, self._name("kept"), launches=(self.launch, last))

    def tile(self, size: int, producer: str, *consumers: str, slots: int = 2) -> SSAValue:
        """A ring of ``slots`` slots of ``size`` bytes in each scratchpad, for this launch."""
        slot = _whole_sticks(size)
        return self.program.lx(
            self._place(slots * slot, self.launch),
            slot,
            self._name("tile"),
            slots=slots,
            producer=producer,
            consumers=consumers,
            launches=(self.launch, self.launch),
        )

    def _place(self, size: int, last: int) -> int:
        """The lowest place in the scratchpads that is free from this launch to launch ``last``."""
        at = 0
        for begin, end, until in sorted(self._placed):
            if until >= self.launch and begin < at + size and at < end:
                at = end
        self._placed.append((at, at + _whole_sticks(size), last))
        return at

    def queue(self, source: str, target: str) -> SSAValue:
        """A hardware queue between two units."""
        return self.program.queue(source, target, name=self._name("queue"))

    def does(self, unit: str, work: Work, corelet: int = 0) -> None:
        """What ``unit`` of every core does in this launch."""
        self._work[unit, corelet][self.launch] = work

    def next_launch(self) -> None:
        """What follows begins when all cores are done with what went before; tiles make room."""
        self.launch += 1

    def module(self) -> ModuleOp:
        """The whole program."""
        for (unit, corelet), work in self._work.items():
            with self.program.unit(unit, corelet=corelet) as u:
                for launch in range(self.launch + 1):
                    if launch:
                        self.program.barrier(u, launch)
                    if launch in work:
                        work[launch](u)
        return self.program.module

    def _name(self, kind: str) -> str:
        self._declared += 1
        return f"{kind}{self._declared}"


def _whole_sticks(size: int) -> int:
    return -(-size // STICK) * STICK


@contextmanager
def filling(u: Unit, tile: SSAValue) -> Iterator[None]:
    """The producer has a slot of ``tile`` to itself."""
    u.add(dfp.ReserveOp(tile))
    yield
    u.add(dfp.CommitOp(tile))


@contextmanager
def holding(u: Unit, *tiles: SSAValue) -> Iterator[None]:
    """A consumer has the oldest slot of each of ``tiles``."""
    for tile in tiles:
        u.add(dfp.AcquireOp(tile))
    yield
    for tile in tiles:
        u.add(dfp.ReleaseOp(tile))


def load(u: Unit, array: SSAValue, at: Index, tile: SSAValue, size: int) -> None:
    """``size`` bytes that follow each other, from device memory to a slot."""
    with filling(u, tile):
        u.move(array, at, tile, 0, size // HALF)


def store(u: Unit, tile: SSAValue, array: SSAValue, at: Index, size: int) -> None:
    """``size`` bytes that follow each other, from a slot to device memory."""
    with holding(u, tile):
        u.move(tile, 0, array, at, size // HALF)


def hand_out(u: Unit, source: SSAValue, at: Index, size: int, mates: Mates) -> None:
    """A core sends ``size`` bytes to its mates, itself among them."""
    box = [size // HALF], [HALF]
    others = [[mate for mate in each if mate != core] for core, each in enumerate(mates)]
    if others[0]:
        u.multicast(source, at, [u.table(*column) for column in zip(*others, strict=True)], *box)
    u.send(source, at, u.core, *box)


def collect(u: Unit, tile: SSAValue, size: int, mates: Mates) -> None:
    """A slot is filled with ``size`` bytes from each mate, one behind the other."""
    with filling(u, tile):
        for number, column in enumerate(zip(*mates, strict=True)):
            u.receive(tile, number * size, u.table(*column), [size // HALF], [HALF])
