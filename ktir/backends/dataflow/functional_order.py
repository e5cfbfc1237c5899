"""Catches races in a functional run: vector clocks along everything that units hand each other, a shadow of bytes that
could be raced for.

The clocks go along with the walk of the tokens, which says of each access what its unit knows then; the shadow is kept
in the run, where indirect accesses have their addresses. The run itself is one order of many; the clocks tell of all of
them. Two unordered writes are a fault only if they store different bits.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.unit_program import Access, Instruction
from ktir.backends.dataflow.vector_clocks import Clocks, Epoch, Grains, Reading, Shadow
from ktir.errors import DataflowRace

Array = NDArray[Any]


@dataclass(slots=True)
class UnitName:
    """A unit as messages name it."""

    number: int
    name: str
    core: int


@dataclass(slots=True)
class Stamps:
    """The clocks of what is under way in one stream, with how many elements each came along with."""

    waiting: deque[tuple[int, Reading]] = field(default_factory=deque[tuple[int, Reading]])


class TokenOrder:
    """What comes before what, as far as tokens say: clocks along everything that units hand each other."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.stamps: defaultdict[int, Stamps] = defaultdict(Stamps)
        self.committed: defaultdict[tuple[int, int], list[Reading]] = defaultdict(list)
        self.released: defaultdict[tuple[int, int], list[Reading]] = defaultdict(list)

    def reading(self, unit: int) -> Reading:
        """What ``unit`` knows now."""
        return self.clocks.of[unit].copy()

    def give(self, stream: int, unit: int, count: int) -> None:
        """``unit`` puts ``count`` elements into a stream."""
        self.stamps[stream].waiting.append((count, self.clocks.stamp(unit)))

    def take(self, stream: int, unit: int, count: int) -> None:
        """``unit`` takes ``count`` elements out of a stream."""
        waiting = self.stamps[stream].waiting
        while count and waiting:
            there, stamp = waiting.popleft()
            self.clocks.learn(unit, stamp)
            if there > count:
                waiting.appendleft((there - count, stamp))
            count -= min(count, there)

    def commit(self, ring: int, unit: int) -> None:
        """``unit`` hands a tile on."""
        self.committed[ring, unit].append(self.clocks.stamp(unit))

    def release(self, ring: int, unit: int) -> None:
        """``unit`` gives a tile back."""
        self.released[ring, unit].append(self.clocks.stamp(unit))

    def acquire(self, ring: int, unit: int, tile: int) -> None:
        """``unit`` takes a tile that all producers have committed."""
        for (number, _), stamps in self.committed.items():
            if number == ring:
                self.clocks.learn(unit, stamps[tile])

    def reserve(self, ring: int, unit: int, tile: int) -> None:
        """``unit`` fills a slot again whose tile ``tile`` all consumers gave back."""
        for (number, _), stamps in self.released.items():
            if number == ring and tile >= 0:
                self.clocks.learn(unit, stamps[tile])


class RaceWatch:
    """Who touched which bytes in a run. ``shadows`` are keyed by memory and core, -1 for the device."""

    def __init__(self, units: Sequence[UnitName], clocks: Clocks, shadows: Mapping[tuple[str, int], Shadow]) -> None:
        self.units, self.clocks, self.shadows = units, clocks, shadows
        self.unordered: list[tuple[Array, Array, DataflowRace]] = []

    def touch(
        self,
        unit: int,
        known: Reading,
        instruction: Instruction,
        access: Access,
        grains: Grains,
        bits: Array,
    ) -> None:
        """``unit``, which knows so much, is about to read or write ``grains``; ``bits`` lie there."""
        core = self.units[unit].core
        shadow = self.shadows.get((access.buffer.memory, core if access.buffer.per_core else -1))
        if shadow is None:
            return
        self.clocks.of[unit] = known
        if not access.writes:
            self._refuse(self._race(unit, instruction, access, shadow.read(unit, instruction, grains), "writes"))
            return
        read, written = shadow.write(unit, instruction, grains)
        self._refuse(self._race(unit, instruction, access, read, "reads"))
        race = self._race(unit, instruction, access, written, "writes")
        if race is not None:
            self.unordered.append((bits, bits.copy(), race))

    def after(self) -> None:
        """After an operation: refuses what was written without order, and with other bits."""
        for bits, before, race in self.unordered:
            if not np.array_equal(bits.view(np.uint8), before.view(np.uint8)):
                raise race
        self.unordered.clear()

    def _refuse(self, race: DataflowRace | None) -> None:
        if race is not None:
            raise race

    def _race(
        self, unit: int, instruction: Instruction, access: Access, other: Epoch | None, verb: str
    ) -> DataflowRace | None:
        if other is None:
            return None
        mine, rival = self.units[unit], self.units[other.unit]
        place = other.instruction.location
        return DataflowRace(
            f"{mine.name} of core {mine.core} {'writes' if access.writes else 'reads'} bytes of buffer "
            f"{access.buffer.name} that {rival.name} of core {rival.core} {verb}, and nothing orders the two",
            location=instruction.location,
            remedy="give the buffer slots, or put a barrier between them",
            related=((place, f"dfp.{other.instruction.kind} of {rival.name}"),) if place else (),
        )
