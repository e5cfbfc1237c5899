"""The tokens of a functional run: what is under way in queues and rings, what units hold, and what keeps order.

They say which executions depend on which; the elements themselves are not here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ktir.backends.dataflow.cursor import Cursor
from ktir.backends.dataflow.functional_batch import Batch, Held, Part, Team
from ktir.backends.dataflow.unit_program import Buffer, UnitCode

Step = Callable[[], bool]
"""Takes the next step of a unit if its tokens are there."""


class Sink(Protocol):
    """What becomes of batches."""

    def placed(self, batch: Batch) -> None:
        """A row has joined ``batch``."""
        ...

    def barrier(self, launch: int) -> None:
        """A launch begins; whatever was placed comes before it."""
        ...


@dataclass(slots=True, eq=False)
class Stream:
    """Elements under way in a queue or between two cores; a number tells streams apart."""

    number: int
    parts: deque[Part] = field(default_factory=deque[Part])
    count: int = 0
    pushed: int = 0
    waiters: list[Unit] = field(default_factory=list["Unit"])


class Ring:
    """Tiles of a ring of slots on a team: how many were reserved, committed, acquired, released by each code.

    By tile: ``first`` and ``last`` batch that touches it, the last that ``written`` it, the bytes ``covered`` so far.
    ``filled``: so far no byte of a tile was read that is not certain to be written.
    """

    def __init__(self, number: int, buffer: Buffer) -> None:
        self.number, self.buffer = number, buffer
        self.reserved: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.acquired: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.waiters: list[Unit] = []
        self.first: list[int] = []
        self.last: list[int] = []
        self.written: list[int] = []
        self.covered: list[list[tuple[int, int]]] = []
        self.filled = True

    def free(self, producer: int) -> int:
        """Slots that ``producer`` may reserve."""
        reserved = self.reserved[producer]
        return self.buffer.slots - reserved + min(self.released.values(), default=reserved)

    @property
    def full(self) -> int:
        """Tiles that every producer has committed so far."""
        return min(self.committed.values(), default=0)

    def know(self, tile: int) -> None:
        """Makes room for what is known of ``tile``."""
        while tile >= len(self.first):
            self.first.append(-1)
            self.last.append(-1)
            self.written.append(-1)
            self.covered.append([])

    def touched(self, tile: int, position: int) -> None:
        """A batch touches ``tile``."""
        if self.first[tile] < 0 or position < self.first[tile]:
            self.first[tile] = position
        if position > self.last[tile]:
            self.last[tile] = position

    def overlaps(self, tile: int, low: int, high: int) -> bool:
        """Notes that bytes of ``tile`` are written; whether some were before."""
        covered = self.covered[tile]
        if not covered or low >= covered[-1][1]:
            if covered and low == covered[-1][1]:
                covered[-1] = covered[-1][0], high
            else:
                covered.append((low, high))
            return False
        if all(high <= first or low >= last for first, last in covered):
            joined: list[tuple[int, int]] = []
            for first, last in sorted([*covered, (low, high)]):
                if joined and joined[-1][1] == first:
                    joined[-1] = joined[-1][0], last
                else:
                    joined.append((first, last))
            covered[:] = joined
            return False
        if not any(first <= low and high <= last for first, last in covered):
            self.filled = False
            covered[:] = [(min(low, covered[0][0]), max(high, covered[-1][1]))]
        return True

    def read(self, tile: int, low: int, high: int) -> None:
        """Notes that bytes of ``tile`` are read."""
        covered = self.covered[tile]
        if covered and covered[0][0] <= low and high <= covered[0][1]:
            return
        self.filled = self.filled and any(first <= low and high <= last for first, last in covered)

    def slots(self) -> int:
        """How many tiles have to have bytes of their own: tile n + slots is first touched after the last use of n."""
        if not self.first:
            return 1
        starts, following = [0] * len(self.first), 1 << 62
        for tile in range(len(self.first) - 1, -1, -1):
            following = min(following, self.first[tile]) if self.first[tile] >= 0 else following
            starts[tile] = following
        most, after = 1, 0
        for tile, last in enumerate(self.last):
            after = max(after, tile + 1)
            while after < len(starts) and starts[after] <= last:
                after += 1
            most = max(most, after - tile)
        return min(most, len(self.first))


@dataclass(slots=True, eq=False)
class Guard:
    """The last batch that touched plain bytes which a unit reads and writes, or writes by several instructions; or
    which several units touch."""

    position: int = -1


Guards = Mapping[int, Sequence[Guard]]
"""The guards of instructions, by their identity."""


class Unit:
    """A unit of a team at work: its place in the code and what its matrix unit holds."""

    def __init__(self, number: int, code: UnitCode, team: Team) -> None:
        self.number, self.code, self.team = number, code, team
        self.core = team.cores[0]
        self.cursor = Cursor(code, self.core)
        self.waits_for = ""
        self.steps: dict[int, Step] = {}
        self.sums: Held | None = None
        self.sums_shape, self.block_shape = (0, 0), (0, 0)
        self.sums_used = -1
        self.block: Held | None = None


def renamed(buffer: Buffer) -> bool:
    """Whether each tile of the buffer has bytes of its own in the run."""
    return bool(buffer.slots) and buffer.per_core
