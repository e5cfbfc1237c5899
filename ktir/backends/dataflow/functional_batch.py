"""Batches: executions of one instruction that a functional run does at once, for all cores of a team.

Words. *team*: cores whose units take the same steps, loop by loop and branch by branch; they differ in addresses only.
*row*: one execution of a batch, by all cores of the team. *position*: the place of a batch in the run. A row may join
any batch of its instruction that comes after all that the row depends on; the first one is taken, so that iterations
that do not depend on each other meet in one batch.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ktir.backends.dataflow.unit_program import Instruction, UnitCode
from ktir.backends.dataflow.vector_clocks import Reading

MOST_ELEMENTS: Final = 1 << 16
"""Elements that a batch moves or makes, and elements of the tiles it touches, unless a single row has more: what keeps
its arrays in the cache and the run from being far ahead with one instruction."""

Row = tuple[int, ...]
"""Indices of the loops around the instruction, outermost first."""


@dataclass(frozen=True, slots=True)
class Team:
    """Cores in lockstep; ``number`` tells teams apart."""

    number: int
    cores: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Batch:
    """``rows`` of ``instruction``; everything else is a list with an entry per row.

    ``tiles``: for each access of a ring the tile it means.
    ``sources``: for each queue that is popped where the elements come from. ``incoming``: for each end of a link and
    each core where a message comes from. ``sums``, ``blocks``: accumulators and stationary block of the matrix unit.
    ``lends``: whether its elements stay in the tile they are read from until somebody takes them. ``elements`` of type
    ``element`` are what a row pushes or sends. ``known``: what its unit knows of the others, where bytes are touched
    that could be raced for. ``last`` is the position of the last batch that reads what this one pushes, sends or holds.
    ``sends``: of a chain, whether it hands on its partial results.
    """

    unit: int
    instruction: Instruction
    code: UnitCode
    team: Team
    position: int
    room: int
    tile_room: int
    rows: list[Row] = field(default_factory=list[Row])
    tiles: list[list[int]] = field(default_factory=list[list[int]])
    sources: list[list[Origin]] = field(default_factory=list["list[Origin]"])
    incoming: list[list[list[Origin]]] = field(default_factory=list["list[list[Origin]]"])
    sums: list[Held] = field(default_factory=list["Held"])
    blocks: list[Held] = field(default_factory=list["Held"])
    lends: bool = False
    elements: int = 0
    element: str = ""
    known: list[Reading] = field(default_factory=list["Reading"])
    last: int = -1
    sends: bool = False

    def describe(self) -> str:
        """Where the batch is, for a reader."""
        lowest, highest, corelet = min(self.team.cores), max(self.team.cores), self.code.corelet
        several = f"cores {lowest} to {highest}" if lowest != highest else f"core {lowest}"
        where = f"{self.code.unit} of {several}" + (f" corelet {corelet}" if corelet else "")
        first, last = map(list[int], (self.rows[0], self.rows[-1]))
        one = f" in iteration {first}" if first else ""
        iterations = f" in iterations {first} to {last}" if first != last else one
        return f"{where}, dfp.{self.instruction.kind}{iterations}"


class Part(NamedTuple):
    """Elements ``start`` to before ``stop`` of a row that a batch pushed or sent; ``core`` counts within its team."""

    batch: Batch
    row: int
    start: int
    stop: int
    core: int = 0


Origin = tuple[Batch, int] | list[Part]
"""Where the elements that a row takes come from: all of a row of a batch, or several parts."""
Held = tuple[Batch, int]
"""What the matrix unit holds: a row of the batch that put it there."""


@dataclass(slots=True)
class Series:
    """The batches of one instruction of one team that have room, by position.

    ``room``: rows of a batch at most, ``tile_room``: tiles that its rows touch. ``ordered``: rows do not overtake each
    other, because they write where others may have written.
    """

    unit: int
    instruction: Instruction
    code: UnitCode
    team: Team
    room: int
    tile_room: int
    ordered: bool
    positions: list[int] = field(default_factory=list[int])
    open: list[Batch] = field(default_factory=list[Batch])
    last: int = -1

    def first_after(self, position: int) -> int:
        """The place of the first open batch that comes after ``position``, and after the last row if need be."""
        return bisect_right(self.positions, max(position, self.last - 1) if self.ordered else position)

    def close(self) -> None:
        """Nothing joins the batches there are."""
        self.positions.clear()
        self.open.clear()
