"""The least time a program's work can take on its machine, per launch, whatever the schedule.

Three resources, each at its sustained or peak rate and perfectly shared: device memory, which moves every word that the
launch reads at least once and every word that it writes at least once; the matrix units, without fill or padding; the
vector units, by issues. A launch takes at least the largest; launches are separated by barriers, so the
program takes at least their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.costs import Cost, ddr_ticks
from ktir.backends.dataflow.unit_program import Access, Instruction, Program


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of one launch in ticks, and the resource that sets it; ``ddr_bytes`` are the compulsory ones."""

    launch: int
    ticks: int
    resource: str
    ddr_bytes: int


def launch_bounds(program: Program, costs: dict[int, Cost]) -> list[Bound]:
    """The bound of each launch in order; ``costs`` are by identity of the instruction."""
    works: dict[int, _Work] = {}
    order: list[int] = []
    for code in program.units:
        launch = 0
        for instruction in code.instructions:
            if instruction.kind == "barrier":
                launch = instruction.launch
            if launch not in works:
                works[launch] = _Work(program)
                order.append(launch)
            works[launch].add(code.unit, code.cores, instruction, costs[id(instruction)])
    return [works[launch].bound(launch) for launch in sorted(order)] if order else [Bound(0, 0, "nothing", 0)]


class _Work:
    """What one launch asks of each resource."""

    def __init__(self, program: Program) -> None:
        self.program, self.machine = program, program.machine
        self.compute: dict[str, int] = {}
        self.read: dict[int, _Words] = {}
        self.written: dict[int, _Words] = {}

    def add(self, unit: str, cores: Sequence[int], instruction: Instruction, cost: Cost) -> None:
        times = sum(instruction.executions(core) for core in cores)
        if cost.peak_ticks:
            self.compute[unit] = self.compute.get(unit, 0) + times * cost.peak_ticks
        for access in instruction.accesses:
            if not access.buffer.per_core and not access.indirect and times:
                sides = self.written if access.writes else self.read
                words = sides.setdefault(access.buffer.number, _Words.of(access, self.machine.global_memory.word))
                words.mark(access, cores, instruction)

    def bound(self, launch: int) -> Bound:
        word = self.machine.global_memory.word
        compulsory = sum(words.count for words in (*self.read.values(), *self.written.values())) * word
        terms = {unit: ticks // self.machine.instances(unit) for unit, ticks in self.compute.items()}
        terms["device memory"] = ddr_ticks(self.machine, compulsory)
        resource = max(terms, key=lambda name: terms[name])
        return Bound(launch, terms[resource], resource if terms[resource] else "nothing", compulsory)


MOST_PLACES = 4096
"""Iterations of an access that are enumerated; past it only the first of them count, which keeps the bound a bound."""


@dataclass(slots=True)
class _Words:
    """Which words of a buffer were touched."""

    touched: NDArray[np.bool_]
    word: int
    start: int

    @classmethod
    def of(cls, access: Access, word: int) -> _Words:
        start, stop = access.buffer.extent
        return cls(np.zeros(-(-stop // word) - start // word, np.bool_), word, start)

    @property
    def count(self) -> int:
        return int(self.touched.sum())

    def mark(self, access: Access, cores: Sequence[int], instruction: Instruction) -> None:
        """Marks the words that the access touches on any of ``cores``."""
        offsets: set[int] = set()
        for core in cores:
            ranges = instruction.space(core).ranges
            if all(ranges):
                offsets |= self._offsets(access, core, ranges)
        inside = self._inside(access) + self.start % self.word
        for offset in offsets:
            words = (inside + offset) // self.word
            self.touched[words[(words >= 0) & (words < self.touched.size)]] = True

    def _offsets(self, access: Access, core: int, every: Sequence[range]) -> set[int]:
        depths = sorted(access.offset.depths)
        if not depths:
            return {access.offset.value(core, ())}
        indices = [0] * len(every)
        ranges = [every[depth] for depth in depths]
        if prod(len(each) for each in ranges) > MOST_PLACES:
            ranges = [each[:64] if place else each for place, each in enumerate(ranges)]
        found: set[int] = set()
        for point in product(*ranges):
            for depth, index in zip(depths, point, strict=True):
                indices[depth] = index
            found.add(access.offset.value(core, indices))
            if len(found) >= MOST_PLACES:
                break
        return found

    def _inside(self, access: Access) -> NDArray[Any]:
        """One byte of every word, or more, that the box touches, relative to its offset."""
        box = access.box.merged
        counts, strides = list(box.counts), list(box.strides)
        if strides and 0 < strides[-1] < self.word:
            reach = (counts[-1] - 1) * strides[-1] + box.width
            inner = np.append(np.arange(0, reach - 1, self.word), reach - 1)
            counts, strides = counts[:-1], strides[:-1]
        else:
            inner = np.array([0, box.width - 1])
        for count, stride in zip(reversed(counts), reversed(strides), strict=True):
            inner = (np.arange(count)[:, None] * stride + inner).ravel()
        return np.unique(inner)
