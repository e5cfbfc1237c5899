"""The least time a program's work can take on its machine, per launch, whatever the schedule.

Three resources, each at its sustained or peak rate and perfectly shared: device memory, which moves every word that the
launch reads at least once and every word that it writes at least once; the matrix units, without fill or padding; the
vector units, by issues. A launch takes at least the largest; launches are separated by barriers, so the
program takes at least their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.costs import Cost, ddr_ticks, peak_operations
from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.expression import Expression
from ktir.backends.dataflow.timing import Arithmetic, Work
from ktir.backends.dataflow.unit_program import Access, Instruction, Program
from ktir.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of one launch in ticks, and the resource that sets it; ``ddr_bytes`` and ``ring_bytes`` are compulsory.

    ``work``: what the launch asks of each compute unit. ``ddr_requests``: bursts that the schedule asks of device
    memory, ``ddr_ticks``: the least it needs for them, each at the sustained rate or the least time of a request.
    """

    launch: int
    ticks: int
    resource: str
    ddr_bytes: int
    ring_bytes: int = 0
    work: tuple[Work, ...] = ()
    ddr_requests: int = 0
    ddr_ticks: int = 0


def launch_bounds(program: Program, costs: dict[int, Cost]) -> list[Bound]:
    """The bound of each launch in order; ``costs`` are by identity of the instruction."""
    works: dict[int, _Asked] = {}
    for launch, code, instruction in program.instructions:
        if launch not in works:
            works[launch] = _Asked(program)
        works[launch].add(code.unit, code.cores, instruction, costs[id(instruction)])
    return [works[launch].bound(launch) for launch in sorted(works)] if works else [Bound(0, 0, "nothing", 0)]


_Box = tuple[int, int, int, Expression, Box, tuple[int, ...], int]
"""What tells one box that a core sends from another: the core, buffer, slot, offset, shape, loops around, and for a
part of a chain, which adds to what it passes on, the instruction."""


class _Asked:
    """What one launch asks of each resource."""

    def __init__(self, program: Program) -> None:
        self.program, self.machine = program, program.machine
        self.compute: dict[str, int] = {}
        self.operations: dict[tuple[str, Arithmetic, str], int] = {}
        self.sent: dict[_Box, int] = {}
        self.read: dict[int, _Words] = {}
        self.written: dict[int, _Words] = {}
        self.moved: list[tuple[int, int, int]] = []
        self.requesting: set[int] = set()

    def add(self, unit: str, cores: Sequence[int], instruction: Instruction, cost: Cost) -> None:
        times = instruction.executions_on(cores)
        if cost.peak_ticks:
            self.compute[unit] = self.compute.get(unit, 0) + times * cost.peak_ticks
            key: tuple[str, Arithmetic, str] = (
                unit,
                "multiply" if instruction.kind == "pe_mac" else "vector",
                cost.element,
            )
            self.operations[key] = self.operations.get(key, 0) + times * cost.operations
        if cost.ring_bytes:
            self._send(cores, instruction, cost.ring_bytes)
        if cost.requests and times:
            self.moved.append((times, cost.ddr_bytes, cost.requests))
            self.requesting |= {core for core in cores if instruction.executions(core)}
        for access in instruction.accesses:
            if not access.buffer.per_core and not access.indirect and times:
                sides = self.written if access.writes else self.read
                words = sides.setdefault(access.buffer.number, _Words.of(access, self.machine.global_memory.word))
                words.mark(access, cores, instruction)

    def _send(self, cores: Sequence[int], instruction: Instruction, amount: int) -> None:
        """Notes what is sent. A box that goes to several cores, one after the other, counts once."""
        read = instruction.accesses[0]
        combined = instruction.number if instruction.kind == "chain" else -1
        for core in cores:
            box = core, read.buffer.number, read.slot, read.offset, read.box, instruction.loops, combined
            self.sent[box] = max(self.sent.get(box, 0), _sends(instruction, core) * amount)

    def bound(self, launch: int) -> Bound:
        word = self.machine.global_memory.word
        compulsory = sum(words.count for words in (*self.read.values(), *self.written.values())) * word
        terms = {unit: ticks // self.machine.instances(unit) for unit, ticks in self.compute.items()}
        terms["device memory"] = ddr_ticks(self.machine, compulsory)
        resource = max(terms, key=lambda name: terms[name])
        work = tuple(
            Work(unit, kind, element, operations, peak_operations(self.machine, unit, kind, element))
            for (unit, kind, element), operations in sorted(self.operations.items())
            if operations
        )
        return Bound(
            launch,
            terms[resource],
            resource if terms[resource] else "nothing",
            compulsory,
            sum(self.sent.values()),
            work,
            sum(times * requests for times, _, requests in self.moved),
            self._ddr_ticks(),
        )

    def _ddr_ticks(self) -> int:
        """What device memory needs for all that moves, as it moves: one burst after the other, no turnaround."""
        clock, memory = self.machine.clock, self.machine.global_memory
        each = memory.request_time_ns(len(self.requesting)) * clock.ghz * clock.ticks_per_cycle
        return sum(
            max(ddr_ticks(self.machine, times * amount), int(times * requests * each))
            for times, amount, requests in self.moved
        )


def _sends(instruction: Instruction, core: int) -> int:
    """How often ``core`` sends to another, at least; 0 where that is hard to count, which keeps the bound a bound."""
    space, link = instruction.space(core), instruction.link
    try:
        ends = [space.times_of(target) for target in link.targets] if link is not None and space.points else []
    except LimitExceeded:
        return 0
    return max((sum(times for peer, times in end.items() if peer >= 0 and peer != core) for end in ends), default=0)


AT_ONCE = 1 << 20
"""Words that are marked together."""
MOST_PLACES = 4096
"""Iterations of an access that are all looked at; past it only the first ``MOST_OF_A_LOOP`` of each loop count, which
keeps the bound a bound."""
MOST_OF_A_LOOP = 64


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
        parts = [self._offsets(access, core, instruction.space(core).ranges) for core in cores]
        offsets = np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
        inside = self._inside(access) + self.start % self.word
        together = max(1, AT_ONCE // inside.size)
        for first in range(0, offsets.size, together):
            words = (inside + offsets[first : first + together, None]) // self.word
            self.touched[words[(words >= 0) & (words < self.touched.size)]] = True

    def _offsets(self, access: Access, core: int, ranges: Sequence[range]) -> NDArray[np.int64]:
        """Where the box begins in the iterations of ``core``, or in the first of them."""
        if not all(ranges):
            return np.zeros(0, np.int64)
        depths = sorted(access.offset.depths)
        counts = [len(ranges[depth]) for depth in depths]
        if prod(counts) > MOST_PLACES:
            counts = [min(count, MOST_OF_A_LOOP) for count in counts]
        points = np.ix_(*(np.asarray(ranges[depth][:count]) for depth, count in zip(depths, counts, strict=True)))
        indices: list[Any] = [0] * len(ranges)
        for depth, index in zip(depths, points, strict=True):
            indices[depth] = index
        return np.unique(np.asarray(access.offset.value(core, indices), np.int64))

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
