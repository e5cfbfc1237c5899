"""Skips what the units of one core repeat among themselves while nobody else touches what they use.

Units of a core that exchange streams settle into a rhythm of their own, which the rhythm of device memory or of another
core need not share, so that the machine as a whole comes back to a state late or never. Here the units of a core that
are inside operations which concern the core alone, the *team*, are looked at by themselves: whenever the first of them
to go on, the *reference*, ends a part of a long operation or goes round a loop. When their state comes back, with times
counted from now, what happened in between is a *rhythm*; it is known from then on for every core that runs the same
code, unless it depends on where in a loop they are.

The team then *coasts* (:mod:`ktir.backends.dataflow.coasting`) until the rhythm ends or something else touches it: a
unit that joins it or comes back from a network, or a burst of device memory at a port of the scratchpad that the rhythm
uses. Before that is handled, the team is brought up to it. The result is the same to the tick.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from ktir.backends.dataflow.coasting import Coasting, Rhythm, rooms
from ktir.backends.dataflow.periodicity import step
from ktir.backends.dataflow.simulation_state import Event
from ktir.backends.dataflow.token_machine import Actor, Phase, Place, TokenQueue

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation

MOST_RECENT: Final = 64
"""States of a core that are compared with the present one."""
MOST_RHYTHMS: Final = 1 << 12
"""Rhythms that are kept."""
PATIENCE: Final = 8
"""Parts that others end before one of them becomes the reference."""
LONG: Final = 4
"""Chunks that have to be left of an operation so that looking is worth it."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """When a state was seen, where the units were, and what they had spent, counted and met at the ports till then."""

    time: int
    places: tuple[Place, ...]
    spent: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    bursts: tuple[int, ...]


@dataclass(slots=True)
class _Core:
    """What was seen of a core since somebody else touched it. ``layout``: names and corelets of its queues.
    ``bursts``: those of device memory at its two ports."""

    number: int
    actors: list[Actor] = field(default_factory=list[Actor])
    queues: list[TokenQueue] = field(default_factory=list[TokenQueue])
    layout: tuple[tuple[str, int], ...] = ()
    bursts: list[int] = field(default_factory=lambda: [0, 0])
    disturbed: bool = True
    reference: Actor | None = None
    laps: int = -1
    idle: int = 0
    recent: dict[object, _Seen] = field(default_factory=dict[object, _Seen])
    coasting: Coasting | None = None


class LocalRepetition:
    """Watches the cores of a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.forget()
        tokens = simulation.tokens
        self.passed = self.numbers = 0
        self.members = [False] * len(tokens.actors)
        self.cores = [_Core(core) for core in range(simulation.program.cores)]
        for queue in tokens.instances:
            self.cores[queue.place[0]].queues.append(queue)
        for actor in tokens.actors:
            self.cores[actor.core].actors.append(actor)
        for core in self.cores:
            core.layout = tuple([(queue.name, queue.place[1]) for queue in core.queues])

    def forget(self) -> None:
        """Forgets what is known, which is of no use in another launch."""
        self.rhythms: dict[object, Rhythm] = {}
        self.states: dict[object, int] = {}
        self.watched: dict[object, tuple[bool, bool]] = {}

    # ----------------------------------------------------------------------------------------------- who touches a team

    def disturb(self, core: int) -> None:
        """Something is about to touch the team of ``core``."""
        watched = self.cores[core]
        watched.disturbed = True
        if watched.coasting is not None:
            self._interrupt(watched, watched.coasting)

    def moved_on(self, actor: Actor) -> None:
        """``actor`` has ended an operation, or waited for a ring of tiles, and passed all that takes no time."""
        inside, number = self.simulation.inside(actor), actor.number
        silent, self.passed = self.simulation.tokens.passed == self.passed, self.simulation.tokens.passed
        member, self.members[number] = self.members[number], inside
        if (member or inside) and not (member and inside and silent):
            self.disturb(actor.core)

    def burst(self, core: int, port: int) -> None:
        """A burst of device memory is about to use a port of the scratchpad of ``core``."""
        watched = self.cores[core]
        watched.bursts[port] += 1
        if watched.coasting is not None and watched.coasting.rhythm.ports[port]:
            self._interrupt(watched, watched.coasting)

    def coasting(self, cores: Collection[int]) -> list[Coasting]:
        """The teams of ``cores`` that coast."""
        return [core.coasting for core in self.cores if core.number in cores and core.coasting is not None]

    def was_moved(self, cores: Collection[int], later: int) -> None:
        """An island was moved on by ``later`` ticks. What was seen of it before is no longer a little while ago."""
        for core in self.cores:
            if core.number in cores:
                core.disturbed = True
        for coasting in self.coasting(cores):
            coasting.since += later
            coasting.plan()

    def end(self, coasting: Coasting, now: int) -> None:
        """The rhythm has come to its end."""
        self.cores[coasting.core].coasting = None
        coasting.end(now)

    def _interrupt(self, core: _Core, coasting: Coasting) -> None:
        core.coasting = None
        coasting.interrupt(self.simulation.now)
        self.simulation.catch_up()

    # ---------------------------------------------------------------------------------------------- looking for rhythms

    def look(self, actor: Actor, now: int) -> None:
        """Lets the team of ``actor``, which has just finished a part of an operation, coast if it is in a rhythm."""
        core = self.cores[actor.core]
        if core.coasting is not None or actor.phase is None or not self.members[actor.number]:
            return
        if core.disturbed:
            core.recent.clear()
            core.disturbed, core.reference, core.laps = False, actor, actor.cursor.laps
        if core.reference is not actor:
            core.idle += 1
            if core.idle < PATIENCE:
                return
            core.reference, core.laps = actor, actor.cursor.laps
        core.idle = 0
        if actor.cursor.laps == core.laps and actor.phase.quanta - actor.done <= LONG * self.simulation.chunk:
            return
        core.laps = actor.cursor.laps
        team = [other for other in core.actors if other.phase is not None and self.members[other.number]]
        for other in team:
            self.simulation.account_wait(other, now)
        rhythm = self._rhythm(core, team, actor, now)
        if rhythm is not None:
            core.coasting = Coasting(self.simulation, core.number, team, rhythm, now)
            core.coasting.plan()

    def _rhythm(self, core: _Core, team: list[Actor], actor: Actor, now: int) -> Rhythm | None:
        """The rhythm in which ``team`` is and that has room for a period."""
        state = self._state(core, team, now)
        rhythm = self.rhythms.get(state)
        if rhythm is None or rooms(self.simulation, team, rhythm) <= 0:
            rhythm = self._learn(core, team, team.index(actor), state, now)
        return rhythm if rhythm is not None and rooms(self.simulation, team, rhythm) > 0 else None

    def _state(self, core: _Core, team: list[Actor], now: int) -> object:
        units = tuple([self._unit(actor, now) for actor in team])
        queues = tuple([(queue.filled, queue.space) for queue in core.queues])
        watched = self.watched.get(_standing(team), (False, False))
        ports = zip(self.simulation.ports[core.number], watched, strict=True)
        return (
            core.layout,
            units,
            queues,
            tuple([max(0, port.free - now) if watches else -1 for port, watches in ports]),
        )

    def _unit(self, actor: Actor, now: int) -> object:
        cursor, waits, clock = actor.cursor, actor.waits_for, self.simulation.clocks[actor.number]
        instruction, done, periodicity = cursor.instruction, actor.done, self.simulation.periodicity
        assert instruction is not None
        residues = periodicity.residues(actor, instruction)
        return (
            actor.code.number,
            cursor.place,
            actor.phase_number,
            done and done % periodicity.grain(actor, instruction),
            done > 0,
            actor.wait,
            waits.name if isinstance(waits, TokenQueue) else None,
            clock.since - now if clock.since > now else 0,
            clock.array_free - now if clock.array_free > now else 0,
            clock.filled,
            *[self._event(event, now) for event in self.simulation.pending[actor.number].values()],
            *[cursor.indices[depth] % modulus for depth, modulus in residues],
        )

    def _event(self, event: Event, now: int) -> tuple[int, int, int]:
        """When it happens, what kind it is, and the quanta that it ends."""
        time, order, _, _, payload = event
        quanta = cast("tuple[Actor, Phase, int]", payload)[2] if isinstance(payload, tuple) else 0
        return time - now, order, quanta

    def _learn(self, core: _Core, team: list[Actor], reference: int, state: object, now: int) -> Rhythm | None:
        """The rhythm that brought the core back to ``state``, if it was seen before since it was last disturbed."""
        seen = _Seen(
            now,
            tuple([actor.place for actor in team]),
            tuple([self.simulation.spent_by(actor) for actor in team]),
            tuple(self.simulation.launch.counts[core.number]),
            tuple(core.bursts),
        )
        before = core.recent.get(state)
        if before is None and len(core.recent) >= MOST_RECENT:
            core.recent.clear()
        core.recent[state] = seen
        moves = _moves(before.places, seen.places) if before is not None else ()
        if before is None or not moves or before.time == now:
            return None
        counted = self._counted(before.counts, seen.counts)
        ports = self._ports(counted)
        if not self._undisturbed(core, team, ports, before, seen):
            return None
        spent = tuple([_gains(old, new) for old, new in zip(before.spent, seen.spent, strict=True)])
        number = self._number(state)
        rhythm = Rhythm(number, now - before.time, reference, moves, spent, counted, ports)
        if self._is_general(team, moves):
            self.rhythms[state] = rhythm
        return rhythm

    def _number(self, state: object) -> int:
        """The number of a state; one that was given away is never given to another state, for islands remember them."""
        if state not in self.states:
            if len(self.states) >= MOST_RHYTHMS:
                self.forget()
            self.numbers += 1
            self.states[state] = self.numbers
        return self.states[state]

    def _counted(self, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """What was counted for operations inside the core."""
        places = self.simulation.inside_counts[self.simulation.launch.number]
        return tuple([(place, after[place] - before[place]) for place in places if after[place] > before[place]])

    def _ports(self, counted: tuple[tuple[int, int], ...]) -> tuple[bool, bool]:
        """The ports that operations use for which something was counted."""
        used = [self.simulation.inside_counts[self.simulation.launch.number][place] for place, _ in counted]
        return any(read for read, _ in used), any(write for _, write in used)

    def _undisturbed(
        self, core: _Core, team: list[Actor], ports: tuple[bool, bool], before: _Seen, seen: _Seen
    ) -> bool:
        """Whether the ports used were part of the state, and no burst of device memory met the team there.

        Ports that are not used are left out, because bursts come to them in a rhythm of their own.
        """
        standing = _standing(team)
        watched = self.watched.get(standing, (False, False))
        wanted = (ports[0] or watched[0], ports[1] or watched[1])
        if wanted != watched:
            self.watched[standing] = wanted
            core.recent.clear()
            return False
        return not any(used and old != new for used, old, new in zip(ports, before.bursts, seen.bursts, strict=True))

    def _is_general(self, team: list[Actor], moves: tuple[tuple[int, int, int], ...]) -> bool:
        """Whether a rhythm is the same on every core and wherever in its loops the team is."""
        periodicity = self.simulation.periodicity
        return all(periodicity.uniform(team[member], component) for member, component, _ in moves) and not any(
            actor.cursor.instruction and periodicity.residues(actor, actor.cursor.instruction) for actor in team
        )


def _standing(team: list[Actor]) -> tuple[tuple[int, int], ...]:
    """Which operations a team is at."""
    return tuple([(actor.code.number, actor.cursor.place) for actor in team])


def _gains(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([new - old for old, new in zip(before, after, strict=True)])


def _moves(before: tuple[Place, ...], after: tuple[Place, ...]) -> tuple[tuple[int, int, int], ...] | None:
    """Member, component and stride of those that have moved; None if one has not moved in one component alone."""
    moves: list[tuple[int, int, int]] = []
    for member, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            moved = step(old, new)
            if moved is None:
                return None
            moves.append((member, *moved))
    return tuple(moves)
