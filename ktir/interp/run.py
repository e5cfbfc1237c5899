"""The state of one run: memory, limits, what was found, and the launch that is going on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ktir.errors import Diagnostic, GridExceedsMachine, IllegalGrid, LimitExceeded, ScratchpadOverflow
from ktir.interp.accesses import Access
from ktir.interp.memory import Memory
from ktir.interp.numerics import Array
from ktir.interp.values import Frame, Site, Tainted, Value
from ktir.interp.views import View
from ktir.location import Location
from ktir.machine.description import Machine
from ktir.machine.memory_arena import Arena

if TYPE_CHECKING:
    from ktir.interp.checks import Checker

MOST_TILES = 65536


@dataclass(slots=True)
class Launch:
    """One execution of a kernel: ``grid`` extents, x fastest in flat tile ids (Q1); ``number`` counts from 1."""

    grid: tuple[int, ...]
    number: int

    @property
    def tiles(self) -> int:
        return prod(self.grid)

    def coordinate(self, cores: Array, axis: int) -> Array:
        """The coordinate of each core along a grid axis; 0 along an axis that the grid does not have (Q2)."""
        if axis >= len(self.grid):
            return np.zeros(len(cores), np.int64)
        return cores // prod(self.grid[:axis]) % self.grid[axis]


@dataclass(slots=True)
class Run:
    """Counters and limits. ``max_steps`` bounds executed operations (one for all cores together), ``max_bytes`` each
    memory and each value."""

    memory: Memory
    machine: Machine | None
    checker: Checker | None
    max_steps: int
    max_bytes: int
    steps: int = 0
    launches: int = 0
    diagnostics: list[Diagnostic] = field(default_factory=lambda: [])
    depth: int = 0
    stored: dict[tuple[Site, Arena], tuple[int, int]] = field(default_factory=lambda: {})
    """The range of bytes that each operation stored to."""
    in_order: set[Site] = field(default_factory=lambda: set())
    """Loops whose iterations were found to meet in memory."""

    def perform(self, access: Access, values: Value, frame: Frame, site: Site, epochs: Array | None = None) -> None:
        """Carries out a store; ``epochs``: see :meth:`Checker.write`."""
        if self.checker is not None:
            self.checker.write(access, values, frame, site, epochs)
        else:
            plain = values.values if isinstance(values, Tainted) else values
            access.write(access.arena.bytes, access.view.element.dtype, plain)
        self.note_store(access, site)

    def part(self) -> Run:
        """The state of a run by some of the cores beside others; see :meth:`take_over`."""
        left = self.max_steps - self.steps
        return replace(self, max_steps=left, steps=0, diagnostics=[], stored={}, in_order=set(self.in_order))

    def take_over(self, part: Run) -> None:
        """Adds what a part of the cores did."""
        self.steps += part.steps
        self.in_order |= part.in_order
        for diagnostic in part.diagnostics:
            self.warn(diagnostic)
        for key, (low, high) in part.stored.items():
            known_low, known_high = self.stored.get(key, (low, high))
            self.stored[key] = min(low, known_low), max(high, known_high)

    def note_store(self, access: Access, site: Site) -> None:
        """Widens the range of global bytes that an operation stored to."""
        if access.view.local:
            return
        low, high = access.limits()
        size = access.view.element.itemsize
        key = site, access.arena
        known_low, known_high = self.stored.get(key, (low * size, high * size))
        self.stored[key] = (min(low * size, known_low), max((high + 1) * size - 1, known_high))

    def warn(self, diagnostic: Diagnostic) -> None:
        """Notes a finding, once per place."""
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def launch(self, grid: tuple[int, ...], location: Location | None) -> Launch:
        """Begins a launch, which is a barrier between cores. Raises for a grid that cannot run."""
        if not grid or any(extent <= 0 for extent in grid):
            raise IllegalGrid(
                f"a grid of {list(grid)} holds no compute tile",
                location=location,
                remedy="give one to three positive extents",
            )
        tiles = prod(grid)
        if self.machine is not None and tiles > self.machine.cores:
            raise GridExceedsMachine(
                f"a grid of {list(grid)} has {tiles} tiles, {self.machine.name} has {self.machine.cores} cores",
                location=location,
                remedy="use a smaller grid, or run without a machine",
            )
        if tiles > MOST_TILES:
            raise IllegalGrid(
                f"a grid of {list(grid)} has {tiles} tiles, more than {MOST_TILES}",
                location=location,
                remedy="use a smaller grid",
            )
        self.launches += 1
        self.memory.provide_cores(tiles)
        if self.checker is not None:
            self.checker.begin_launch(tiles)
        return Launch(grid, self.launches)

    def require_scratchpad(self, size: int, view: View, frame: Frame, site: Site) -> None:
        """Raises where ``size`` bytes of a scratchpad are more than the machine has, or than the run may use."""
        if self.machine is not None and size > self.machine.scratchpad_bytes:
            raise site.fail(
                ScratchpadOverflow,
                f"reaches byte {size - 1} of a scratchpad through %{view.name}, which has "
                f"{self.machine.scratchpad_bytes} bytes",
                "place the buffer lower, or use a smaller tile",
            )
        if size * self.memory.cores > self.max_bytes:
            raise site.fail(
                LimitExceeded,
                f"reaches byte {size - 1} of a scratchpad through %{view.name}: {self.memory.cores} of that size are "
                f"more than {self.max_bytes} bytes",
                "place the buffer lower, or raise max_bytes",
            )
