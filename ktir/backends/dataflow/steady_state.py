"""Skips what repeats: a machine of counted loops that comes back to a state is moved on by whole periods, exactly.

A state is everything that decides what happens next, with times counted from now, except how far loops have got. When
it is met a second time, each loop has either stood still or gone on by some iterations, and will do so again in the
same way as long as no loop ends and no condition on its index changes. So many periods are skipped at once: loops get
further, totals grow, times move; the tail is run for real. Nothing is estimated, and the cost of a loop does not depend
on its count.

Words. *place*: how far an actor has got: the indices of its loops, outermost first, then the quanta of its operation.
*stride*: how far one component of a place goes in a period. *room*: how many more periods it may take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Final

from ktir.backends.dataflow.expression import Expression, at
from ktir.backends.dataflow.iteration_space import Condition
from ktir.backends.dataflow.token_machine import Actor, TokenMachine, TokenRing
from ktir.backends.dataflow.unit_program import Instruction, UnitCode

Place = tuple[int, ...]

MOST_STORED: Final = 512
"""States kept in full."""
MOST_SEEN: Final = 1 << 18
"""States of which only the hash is kept."""
PATIENCE: Final = 4096
"""Steps without an iteration of the reference actor after which another is chosen."""


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


class SteadyState:
    """Watches ``machine``, whose actors are granted at most ``most`` quanta at once, for states that come back.

    ``amounts`` are what else the quanta of a phase of an instruction are charged for, and have to divide evenly.
    """

    def __init__(
        self,
        machine: TokenMachine,
        most: int,
        amounts: Callable[[Instruction, int], Sequence[int]] = lambda instruction, phase: (),
    ) -> None:
        self.machine, self.most, self.amounts = machine, most, amounts
        self.influences: dict[int, dict[int, _Influence]] = {}
        for code in machine.program.units:
            self.influences[code.number] = _influences(code)
        self.grains: dict[tuple[int, int], int] = {}
        self.residues: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self.seen: set[int] = set()
        self.stored: dict[int, deque[_Visit]] = {}
        self.order: deque[int] = deque()
        self.spacing = self.next = 1 + len(machine.actors) // 2
        self.reference = machine.actors[0] if machine.actors else None
        self.laps = self.misses = 0

    # --------------------------------------------------------------------------------------------------- when to look

    def due(self, steps: int) -> bool:
        """Whether to :meth:`visit` now, after so many steps: right after an iteration of one actor, now and then.

        To be asked after each step, so that the machine is looked at where it comes by again.
        """
        if self.reference is None:
            return False
        laps = self.reference.cursor.laps
        if laps != self.laps:
            self.laps = laps
            return steps >= self.next
        if steps > self.next + PATIENCE:
            self._choose_reference()
            self.next = steps
        return False

    def _choose_reference(self) -> None:
        """The next actor that is in a loop."""
        actors = self.machine.actors
        start = self.reference.number + 1 if self.reference is not None else 0
        for number in range(start, start + len(actors)):
            actor = actors[number % len(actors)]
            if actor.cursor.instruction is not None and actor.cursor.instruction.depth:
                self.reference = actor
                break
        if self.reference is not None:
            self.laps = self.reference.cursor.laps

    # ----------------------------------------------------------------------------------------------------- what to do

    def visit(self, steps: int, more: Sequence[object], time: int = 0, totals: Sequence[int] = ()) -> Repetition | None:
        """Looks the present state up; moves the actors on by as many periods as may be skipped, if it came back.

        ``more`` is what the state consists of beside the tokens. The caller moves its times and totals.
        """
        self.next = steps + self.spacing * (1 + self.misses // 64)
        visit = _Visit((*self._tokens(), *more), tuple(map(self._place, self.machine.actors)), time, list(totals))
        number = hash(visit.state)
        if number not in self.seen:
            if len(self.seen) < MOST_SEEN:
                self.seen.add(number)
            self.misses += 1
            return None
        found = self._best(visit, self.stored.get(number, ()))
        if found is None:
            self._store(number, visit)
            self.misses += 1
            return None
        earlier, moves, times = found
        for move in moves:
            self._advance(move, times)
        self.misses = 0
        gains = [after - before for before, after in zip(earlier.totals, visit.totals, strict=True)]
        return Repetition(times, time - earlier.time, gains)

    def _store(self, number: int, visit: _Visit) -> None:
        self.stored.setdefault(number, deque()).append(visit)
        self.order.append(number)
        if len(self.order) > MOST_STORED:
            oldest = self.order.popleft()
            self.stored[oldest].popleft()

    def _best(self, visit: _Visit, earlier: Sequence[_Visit]) -> tuple[_Visit, list[_Move], int] | None:
        """The earlier visit of the same state from which most is skipped."""
        best: tuple[_Visit, list[_Move], int] | None = None
        most = 0
        for other in earlier:
            moves = self._moves(other, visit) if other.state == visit.state else None
            times = min((move.room for move in moves), default=0) if moves else 0
            worth = times * sum(move.stride for move in moves) if moves else 0
            if moves and worth > most:
                best, most = (other, moves, times), worth
        return best

    def _advance(self, move: _Move, times: int) -> None:
        cursor = move.actor.cursor
        if move.component < (cursor.instruction.depth if cursor.instruction else 0):
            cursor.indices[move.component] += times * move.stride
        else:
            move.actor.done += times * move.stride

    # ----------------------------------------------------------------------------------------------------- the state

    def _tokens(self) -> list[object]:
        machine = self.machine
        state: list[object] = [self._actor(actor) for actor in machine.actors]
        state.append(
            tuple([(q.number, q.filled, q.space) for q in machine.instances if q.filled or q.space != q.depth])
        )
        state.append(tuple([(number, machine.open[number].state()) for number in sorted(machine.open)]))
        state.append(tuple(actor.number for actor in machine.waiting_at_barrier))
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
            grain = self.grain(actor, instruction)
            fixed = (*fixed, actor.phase_number, actor.done % grain, actor.done > 0)
        residues = self._residues(actor, instruction)
        if residues:
            return (*fixed, *(cursor.indices[depth] % modulus for depth, modulus in residues))
        return fixed

    def grain(self, actor: Actor, instruction: Instruction) -> int:
        """The quanta after which everything that the phase of ``actor`` moves comes out even."""
        key = (id(instruction), actor.phase_number)
        if key not in self.grains:
            phase = actor.phases[actor.phase_number]
            self.grains[key] = phase.grain(*self.amounts(instruction, actor.phase_number))
        return self.grains[key]

    def _residues(self, actor: Actor, instruction: Instruction) -> tuple[tuple[int, int], ...]:
        """Depths of the loops around an instruction whose index matters only up to a multiple, with the modulus."""
        key = (id(instruction), actor.core)
        if key not in self.residues:
            influences = self.influences[actor.code.number]
            moduli = [influences[loop].modulus(actor.core) for loop in instruction.loops]
            self.residues[key] = tuple((depth, modulus) for depth, modulus in enumerate(moduli) if modulus > 1)
        return self.residues[key]

    def _place(self, actor: Actor) -> Place:
        instruction = actor.cursor.instruction
        if instruction is None:
            return ()
        return (*actor.cursor.indices[: instruction.depth], actor.done if actor.phase is not None else 0)

    # -------------------------------------------------------------------------------------------------- what repeats

    def _moves(self, earlier: _Visit, now: _Visit) -> list[_Move] | None:
        """How each actor got from one visit to the other; None if it will not do the same again."""
        moves: list[_Move] = []
        for actor, before, after in zip(self.machine.actors, earlier.places, now.places, strict=True):
            if before == after:
                continue
            component = next(
                number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]
            )
            if before[component + 1 :] != after[component + 1 :]:
                return None
            move = self._move(actor, component, before[component], after[component])
            if move is None:
                return None
            moves.append(move)
        return moves

    def _move(self, actor: Actor, component: int, before: int, after: int) -> _Move | None:
        instruction, stride = actor.cursor.instruction, after - before
        assert instruction is not None and stride > 0
        if component == instruction.depth:
            assert actor.phase is not None
            room = (actor.phase.quanta - self.most - after) // stride
        else:
            limit = actor.cursor.limits[component]
            influence = self.influences[actor.code.number][instruction.loops[component]]
            room = influence.room(actor, before, stride, (limit - 1 - after) // stride)
        return _Move(actor, component, stride, room) if room > 0 else None


@dataclass(frozen=True, slots=True)
class _Influence:
    """What depends on the index of one loop, at ``depth``, besides addresses: conditions, and numbers of cores.

    Each comes with the counts of the loops around it.
    """

    depth: int
    conditions: tuple[tuple[Condition, Instruction], ...]
    peers: tuple[Expression, ...]

    def modulus(self, core: int) -> int:
        """The iterations after which everything that is periodic in the index repeats."""
        values = (*(condition.value for condition, _ in self.conditions), *self.peers)
        laws = [value.law(core, self.depth) for value in values]
        return lcm(*(law.period for law in laws if not law.shift))

    def room(self, actor: Actor, first: int, stride: int, most: int) -> int:
        """How often, at most ``most`` times, the index may go on by ``stride`` with everything as from ``first`` on."""
        core = actor.core
        if any(peer.law(core, self.depth).shift for peer in self.peers):
            return 0
        for condition, instruction in self.conditions:
            if condition.value.law(core, self.depth).shift:
                most = self._room(condition, instruction, actor, first, stride, most)
        return most

    def _room(
        self, condition: Condition, instruction: Instruction, actor: Actor, first: int, stride: int, most: int
    ) -> int:
        """The most periods over which a condition is met always or never, by halving."""
        outer = actor.cursor.indices[: self.depth]
        inner = [max(0, at(count, actor.core) - 1) for count in instruction.counts[self.depth + 1 :]]
        low = [*outer, first, *(0 for _ in inner)]

        def same(times: int) -> bool:
            high = [*outer, first + (times + 1) * stride, *inner]
            return condition.decided(*condition.value.interval(actor.core, low, high)) is not None

        least = 0
        while least < most:
            middle = (least + most + 1) // 2
            if same(middle):
                least = middle
            else:
                most = middle - 1
        return least


def _influences(code: UnitCode) -> dict[int, _Influence]:
    """By the place of each loop of ``code``, what depends on its index."""
    conditions: dict[int, list[tuple[Condition, Instruction]]] = {}
    peers: dict[int, list[Expression]] = {}
    depths: dict[int, int] = {}
    for instruction in code.instructions:
        for depth, loop in enumerate(instruction.loops):
            depths[loop] = depth
            conditions.setdefault(loop, []).extend(
                (condition, instruction) for condition in instruction.conditions if depth in condition.value.depths
            )
            link = instruction.link
            peers.setdefault(loop, []).extend(peer for peer in link.peers if depth in peer.depths) if link else None
    return {
        loop: _Influence(depth, tuple(conditions[loop]), tuple(peers.get(loop, ()))) for loop, depth in depths.items()
    }
