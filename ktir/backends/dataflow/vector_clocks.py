"""Which of two accesses comes first, if either does: a vector clock for each unit, a shadow for bytes that are shared.

A unit's clock says of every unit how much of its work is known to be done. It goes along with what is pushed, sent,
committed and released, and is joined where that is popped, received, acquired and reserved again; at a barrier all
clocks become one. Two accesses that no such chain joins may happen in either order. That a queue is full orders
nothing here: a program must not be right only because a queue is short.

Words. *epoch*: a unit and a reading of its own clock. An epoch is *known* to a unit whose clock has that reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.unit_program import Instruction

Reading = NDArray[np.int64]
Marks = NDArray[np.int32]


class Clocks:
    """The vector clocks of ``units`` units."""

    def __init__(self, units: int) -> None:
        self.of = [np.zeros(units, np.int64) for _ in range(units)]
        for unit, clock in enumerate(self.of):
            clock[unit] = 1

    def stamp(self, unit: int) -> Reading:
        """What goes along with something that ``unit`` gives away; what it does later is not known by it."""
        stamp = self.of[unit].copy()
        self.of[unit][unit] += 1
        return stamp

    def learn(self, unit: int, stamp: Reading) -> None:
        """``unit`` takes something that carries ``stamp``."""
        np.maximum(self.of[unit], stamp, out=self.of[unit])

    def meet(self) -> None:
        """All units at a barrier."""
        everything = np.max(self.of, axis=0)
        for unit, clock in enumerate(self.of):
            clock[:] = everything
            clock[unit] += 1


@dataclass(frozen=True, slots=True)
class Epoch:
    """An access: its unit, the reading of the unit's own clock, and the instruction it belongs to."""

    unit: int
    reading: int
    instruction: Instruction


class Shadow:
    """Who wrote and who read each grain of ``size`` bytes last; a grain is ``grain`` bytes."""

    def __init__(self, clocks: Clocks, size: int, grain: int) -> None:
        self.clocks, self.grain = clocks, grain
        self.writers = np.zeros(-(-size // grain), np.int32)
        self.readers = np.zeros(-(-size // grain), np.int32)
        self.epochs: list[Epoch | None] = [None]
        self.sets: list[frozenset[int]] = [frozenset()]
        self.numbers: dict[frozenset[int], int] = {frozenset(): 0}

    def read(self, unit: int, instruction: Instruction, box: Grains) -> Epoch | None:
        """Notes a read; the epoch of a write that is not known to the reader, if there is one."""
        found = self._unknown(unit, _different(box.of(self.writers, self.grain)))
        readers = box.of(self.readers, self.grain).copy()
        mine = self._epoch(unit, instruction)
        for number in _different(readers):
            kept = {other for other in self.sets[number] if not self._known(unit, other)}
            readers[readers == number] = self._set(frozenset({*kept, mine}))
        box.put(self.readers, self.grain, readers)
        return found

    def write(self, unit: int, instruction: Instruction, box: Grains) -> tuple[Epoch | None, Epoch | None]:
        """Notes a write; the epochs of a read and of a write that are not known to the writer, if there are any."""
        written = self._unknown(unit, _different(box.of(self.writers, self.grain)))
        before = _different(box.of(self.readers, self.grain))
        numbers = {other for number in before for other in self.sets[number]}
        read = self._unknown(unit, numbers)
        box.put(self.writers, self.grain, self._epoch(unit, instruction))
        box.put(self.readers, self.grain, 0)
        return read, written

    def _epoch(self, unit: int, instruction: Instruction) -> int:
        reading = int(self.clocks.of[unit][unit])
        last = self.epochs[-1]
        if last is None or (last.unit, last.reading, last.instruction) != (unit, reading, instruction):
            self.epochs.append(Epoch(unit, reading, instruction))
        return len(self.epochs) - 1

    def _set(self, members: frozenset[int]) -> int:
        if members not in self.numbers:
            self.numbers[members] = len(self.sets)
            self.sets.append(members)
        return self.numbers[members]

    def _known(self, unit: int, number: int) -> bool:
        epoch = self.epochs[number]
        return epoch is None or epoch.unit == unit or self.clocks.of[unit][epoch.unit] >= epoch.reading

    def _unknown(self, unit: int, numbers: Iterable[int]) -> Epoch | None:
        return next((self.epochs[number] for number in numbers if not self._known(unit, number)), None)


def _different(grains: Marks) -> list[int]:
    return [int(number) for number in np.unique(grains)]


class Grains(Protocol):
    """Which grains an access touches."""

    def of(self, grains: Marks, grain: int) -> Marks:
        """The marks of the grains that are touched."""
        ...

    def put(self, grains: Marks, grain: int, marks: Marks | int) -> None:
        """Changes the marks of the grains that are touched."""
        ...


@dataclass(frozen=True, slots=True)
class Box:
    """The grains of a box of bytes from byte ``place`` on: ``counts`` of ``width`` bytes at ``strides``."""

    place: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    width: int

    def of(self, grains: Marks, grain: int) -> Marks:
        """The part of ``grains`` that the box covers."""
        item = grains.itemsize
        counts = (*self.counts, self.width // grain)
        strides = (*(stride // grain * item for stride in self.strides), item)
        return np.ndarray(counts, np.int32, grains.data, self.place // grain * item, strides)

    def put(self, grains: Marks, grain: int, marks: Marks | int) -> None:
        """Changes the part of ``grains`` that the box covers."""
        self.of(grains, grain)[...] = marks


@dataclass(frozen=True, slots=True)
class Scattered:
    """The grains of elements of ``width`` bytes that begin at the bytes ``places``."""

    places: NDArray[np.int64]
    width: int

    def of(self, grains: Marks, grain: int) -> Marks:
        """The marks of all grains, [elements, grains of one]."""
        return grains[self._numbers(grain)]

    def put(self, grains: Marks, grain: int, marks: Marks | int) -> None:
        """Changes the marks of all grains."""
        grains[self._numbers(grain)] = marks

    def _numbers(self, grain: int) -> NDArray[np.int64]:
        return self.places[:, None] // grain + np.arange(self.width // grain)
