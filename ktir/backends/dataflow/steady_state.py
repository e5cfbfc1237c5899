"""Skips what repeats: a machine of counted loops that comes back to a state is moved on by whole periods, exactly.

A state is everything that decides what happens next, with times counted from now, except how far loops have got. When
it is met a second time, each loop has either stood still or gone on by some iterations, and will do so again in the
same way as long as no loop ends and no condition on its index changes. So many periods are skipped at once: loops get
further, totals grow, times move; the tail is run for real. Nothing is estimated, and the cost of a loop does not depend
on its count.

Words. *place*: how far an actor has got. *stride*: how far one component of a place goes in a period. *room*: how many
more periods it may take. *mark*: a moment at which one actor, the *reference*, begins another iteration: whatever the
period, it is met at a mark again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ktir.backends.dataflow.periodicity import Periodicity, step
from ktir.backends.dataflow.token_machine import Actor, Place, TokenMachine, TokenRing

Ahead = Mapping[int, tuple[int, int]]
"""By number of an actor, a component of its place, and how far ahead of it the actor may be."""

MOST_STORED: Final = 512
"""States that are kept."""
PATIENCE: Final = 4
"""Looks that would fit before it is asked whether the reference is still a good one."""
LONG_WINDOW: Final = 1024
"""Looks that would fit in a window over which too few marks are given."""
STUBBORN: Final = 16
"""Windows in which the reference may give no mark while others do; a long iteration has parts in which it waits."""
ENOUGH: Final = 2
"""Marks that an actor has to give in a window to be the reference."""
MISSES: Final = 128
"""Visits in vain after which only every second mark is looked at, and so on to one in ``MOST_SPARSE``."""
MOST_SPARSE: Final = 16


@dataclass(frozen=True, slots=True)
class Repetition:
    """``times`` periods were skipped, each ``period`` long; ``gains`` is what the totals grow by in one."""

    times: int
    period: int
    gains: list[int]


@dataclass(frozen=True, slots=True)
class _Visit:
    state: tuple[object, ...]
    places: tuple[Place, ...]
    time: int
    totals: list[int]


@dataclass(frozen=True, slots=True)
class _Move:
    """Component ``component`` of an actor's place goes on by ``stride`` in a period, at most ``room`` times."""

    actor: Actor
    component: int
    stride: int
    room: int


class Marks:
    """When to look at a group of actors that takes steps: at iterations of one of them, no more often than it is worth.

    Where no loop goes round for long, parts of a long operation are taken for iterations. ``spacing``: the steps that
    cost as much as a look.
    """

    def __init__(self, actors: Sequence[Actor]) -> None:
        self.actors = actors
        self.spacing = 1 + len(actors) // 2
        self.reference: Actor | None = None
        self.by_parts = False
        self.steps = self.laps = self.count = self.misses = self.idle = 0
        self.every = 1
        self.next = PATIENCE * self.spacing
        self.since, self.progress = 0, self._progress()

    def due(self, steps: int = 1) -> bool:
        """Whether to look now, so many steps after it was asked the last time; to be asked after each step."""
        self.steps += steps
        if self.steps >= self.next:
            self.next = self.steps + PATIENCE * (self.spacing + steps)
            self._choose(self.steps)
        reference = self.reference
        if reference is None:
            return False
        laps = reference.parts if self.by_parts else reference.cursor.laps
        if laps == self.laps:
            return False
        self.laps = laps
        self.count += 1
        return self.count % (self.every * min(1 << self.misses // MISSES, MOST_SPARSE)) == 0

    def _progress(self) -> list[tuple[int, int]]:
        return [(actor.cursor.laps, actor.parts) for actor in self.actors]

    def _choose(self, steps: int) -> None:
        """Looks what marks each actor gave, over a window that is long enough for some iterations."""
        now, elapsed = self._progress(), steps - self.since
        laps = [new[0] - old[0] for old, new in zip(self.progress, now, strict=True)]
        parts = [new[1] - old[1] for old, new in zip(self.progress, now, strict=True)]
        if max(laps, default=0) >= ENOUGH:
            self._refer(laps, elapsed, by_parts=False)
        elif not any(laps) and max(parts, default=0) >= ENOUGH:
            self._refer(parts, elapsed, by_parts=True)
        elif elapsed < LONG_WINDOW * self.spacing:
            return
        self.since, self.progress = steps, now

    def _refer(self, counts: Sequence[int], elapsed: int, *, by_parts: bool) -> None:
        """Keeps the reference if it still gives a fair number of marks; else takes the actor that gives most of those
        that do not ask for more looks than are worth it."""
        most = max(1, elapsed // self.spacing)
        best = max((count for count in counts if count <= most), default=0) or min(filter(None, counts))
        reference = self.reference
        marks = counts[self.actors.index(reference)] if reference is not None and by_parts == self.by_parts else 0
        self.idle = 0 if marks else self.idle + 1
        if reference is None or by_parts < self.by_parts or self.idle > STUBBORN or marks > 2 * best:
            reference, marks, self.by_parts = self.actors[counts.index(best)], best, by_parts
            self.count = self.misses = self.idle = 0
        self.reference, self.laps = reference, reference.parts if self.by_parts else reference.cursor.laps
        if marks:
            self.every = 1
            while self.every * elapsed < marks * self.spacing:
                self.every *= 2


class SteadyState:
    """Watches ``actors`` of ``machine``, which have to do with nobody else, for states that come back."""

    def __init__(self, machine: TokenMachine, periodicity: Periodicity, actors: Sequence[Actor]) -> None:
        self.machine, self.periodicity, self.actors = machine, periodicity, actors
        self.cores = frozenset(actor.core for actor in actors)
        self.marks = Marks(actors)
        self.stored: dict[int, deque[_Visit]] = {}
        self.order: deque[int] = deque()

    def visit(
        self, more: Sequence[object], time: int = 0, totals: Sequence[int] = (), ahead: Ahead | None = None
    ) -> Repetition | None:
        """Looks the present state up; moves the actors on by as many periods as may be skipped, if it came back.

        ``more`` is what the state consists of beside the tokens. The caller moves its times and totals. Actors that may
        be ``ahead`` of their place keep room for that.
        """
        visit = _Visit((*self._tokens(), *more), tuple([actor.place for actor in self.actors]), time, list(totals))
        number = hash(visit.state)
        found = self._best(visit, self.stored.get(number, ()), ahead or {})
        if found is None:
            self._store(number, visit)
            self.marks.misses += 1
            return None
        earlier, moves, times = found
        for move in moves:
            move.actor.go_on(move.component, times * move.stride)
        self.marks.misses = 0
        gains = [after - before for before, after in zip(earlier.totals, visit.totals, strict=True)]
        return Repetition(times, time - earlier.time, gains)

    def _store(self, number: int, visit: _Visit) -> None:
        self.stored.setdefault(number, deque()).append(visit)
        self.order.append(number)
        if len(self.order) > MOST_STORED:
            oldest = self.order.popleft()
            self.stored[oldest].popleft()

    def _best(self, visit: _Visit, earlier: Sequence[_Visit], ahead: Ahead) -> tuple[_Visit, list[_Move], int] | None:
        """The earlier visit of the same state from which most is skipped."""
        best: tuple[_Visit, list[_Move], int] | None = None
        most = 0
        for other in earlier:
            moves = self._moves(other, visit, ahead) if other.state == visit.state else None
            times = min((move.room for move in moves), default=0) if moves else 0
            worth = times * sum(move.stride for move in moves) if moves else 0
            if moves and worth > most:
                best, most = (other, moves, times), worth
        return best

    # ----------------------------------------------------------------------------------------------------- the state

    def _tokens(self) -> list[object]:
        machine, cores = self.machine, self.cores
        state: list[object] = [self._actor(actor) for actor in self.actors]
        state.append(
            tuple(
                [
                    (q.number, q.filled, q.space)
                    for q in machine.instances
                    if (q.filled or q.space != q.depth) and q.place[0] in cores
                ]
            )
        )
        state.append(
            tuple([(ring.number, ring.state()) for _, ring in sorted(machine.open.items()) if ring.core in cores])
        )
        return state

    def _actor(self, actor: Actor) -> tuple[object, ...]:
        cursor, waits = actor.cursor, actor.waits_for
        instruction = cursor.instruction
        if instruction is None:
            return (cursor.place,)
        fixed: tuple[object, ...] = (
            cursor.place,
            actor.at_barrier,
            actor.wait,
            None if waits is None else (waits.__class__ is TokenRing, waits.number),
        )
        if actor.phase is not None:
            grain = self.periodicity.grain(actor, instruction)
            fixed = (*fixed, actor.phase_number, actor.done % grain, actor.done > 0)
        residues = self.periodicity.residues(actor, instruction)
        if residues:
            return (*fixed, *(cursor.indices[depth] % modulus for depth, modulus in residues))
        return fixed

    # -------------------------------------------------------------------------------------------------- what repeats

    def _moves(self, earlier: _Visit, now: _Visit, ahead: Ahead) -> list[_Move] | None:
        """How each actor got from one visit to the other; None if it will not do the same again."""
        moves: list[_Move] = []
        for actor, before, after in zip(self.actors, earlier.places, now.places, strict=True):
            if before == after:
                continue
            moved = step(before, after)
            if moved is None:
                return None
            component, stride = moved
            room = self.periodicity.room(actor, component, before[component], after[component])
            if actor.number in ahead and ahead[actor.number][0] == component:
                room -= -(-ahead[actor.number][1] // stride)
            if room <= 0:
                return None
            moves.append(_Move(actor, component, stride, room))
        return moves
