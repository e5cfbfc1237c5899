"""Skips what the units of one core repeat among themselves while they have nothing to do with anyone else.

Two units of a core that exchange a long stream settle into a rhythm of their own, which the rhythm of device memory or
of another core need not share, so that the machine as a whole never comes back to a state. Here the units of a core
that are inside a long operation (the *busy* ones) are looked at alone. When their state comes back, with times counted
from now, what happened in between is a *rhythm*, known from then on for every core that runs the same code. It is
skipped as often as it fits before the *horizon*: the first event of the core that is not one of the busy units'. The
result is the same to the tick.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from ktir.backends.dataflow.simulation_state import Event
from ktir.backends.dataflow.token_machine import Actor, Phase, TokenQueue, TokenRing

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation

MOST_RECENT: Final = 64
"""States of a core that are compared with the present one."""
LONG: Final = 4
"""Chunks that have to be left of an operation so that looking is worth it."""


@dataclass(frozen=True, slots=True)
class _Rhythm:
    """What the busy units of a core do in ``period`` ticks: quanta and ticks spent in each way, by unit."""

    period: int
    strides: tuple[int, ...]
    gains: tuple[tuple[int, ...], ...]


_Seen = tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]]
"""When a state was seen, with the quanta done and the ticks spent till then by the busy units."""


@dataclass(slots=True)
class _Core:
    """What was seen of a core since somebody else's last event there; ``reference`` is the first of the busy units that
    went on after it, when it goes on the core is looked at."""

    actors: list[Actor]
    queues: list[TokenQueue]
    disturbed: bool = True
    reference: Actor | None = None
    recent: dict[object, _Seen] = field(default_factory=dict[object, _Seen])


class LocalRepetition:
    """Watches the cores of a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.rhythms: dict[object, _Rhythm] = {}
        tokens = simulation.tokens
        self.cores = [
            _Core([], [queue for queue in tokens.instances if queue.place[0] == core])
            for core in range(simulation.program.cores)
        ]
        for actor in tokens.actors:
            self.cores[actor.core].actors.append(actor)

    def disturb(self, core: int) -> None:
        """Something happened on ``core`` that is not a step inside an operation."""
        self.cores[core].disturbed = True

    def look(self, actor: Actor, now: int) -> None:
        """Skips repetitions around ``actor``, which has just finished a part of a long operation."""
        core, simulation = self.cores[actor.core], self.simulation
        if core.disturbed:
            core.recent.clear()
            core.disturbed, core.reference = False, actor
        elif core.reference is not actor:
            return
        busy = [other for other in core.actors if simulation.inside(other)]
        horizon = self._horizon(core, busy, now)
        if horizon <= now:
            return
        for other in busy:
            simulation.account_wait(other, now)
        state = self._state(core, busy, now)
        rhythm = self.rhythms.get(state) or self._learn(core, busy, state, now)
        if rhythm is None:
            return
        rooms = [
            (other.phase.quanta - simulation.chunk - other.done) // stride
            for other, stride in zip(busy, rhythm.strides, strict=True)
            if stride and other.phase is not None
        ]
        times = min([*rooms, (horizon - now - 1) // rhythm.period])
        if times > 0:
            self._skip(busy, rhythm, times, now)

    def _horizon(self, core: _Core, busy: list[Actor], now: int) -> int:
        """The first moment at which somebody else may touch the core."""
        simulation, horizon = self.simulation, self.simulation.FOREVER
        for actor in core.actors:
            if actor in busy:
                continue
            waits = actor.waits_for
            if simulation.on_network(actor) or (isinstance(waits, TokenRing) and not waits.buffer.per_core):
                return now
            horizon = min(horizon, simulation.next_service(actor))
            for event in simulation.pending[actor.number].values():
                horizon = min(horizon, event[0])
        return horizon

    def _state(self, core: _Core, busy: list[Actor], now: int) -> object:
        simulation = self.simulation
        units = tuple(
            (
                actor.code.number,
                actor.cursor.place,
                actor.phase_number,
                actor.done % simulation.grain(actor),
                actor.done > 0,
                actor.wait,
                actor.waits_for.name if isinstance(actor.waits_for, TokenQueue) else None,
                *simulation.clock_state(actor, now),
                *(self._event(event, now) for event in simulation.pending[actor.number].values()),
            )
            for actor in busy
        )
        queues = tuple((queue.filled, queue.space) for queue in core.queues)
        ports = tuple(max(0, port.free - now) for port in simulation.ports[busy[0].core])
        return units, queues, ports

    def _event(self, event: Event, now: int) -> tuple[int, int, int]:
        """When it happens, what kind it is, and the quanta that it ends."""
        time, order, _, _, payload = event
        quanta = cast("tuple[Actor, Phase, int]", payload)[2] if isinstance(payload, tuple) else 0
        return time - now, order, quanta

    def _learn(self, core: _Core, busy: list[Actor], state: object, now: int) -> _Rhythm | None:
        """The rhythm that brought the core back to ``state``, if it was seen before since it was last disturbed."""
        done = tuple(actor.done for actor in busy)
        spent = tuple(self.simulation.spent_by(actor) for actor in busy)
        if state not in core.recent:
            if len(core.recent) >= MOST_RECENT:
                core.recent.clear()
            core.recent[state] = (now, done, spent)
            return None
        before, done_before, spent_before = core.recent[state]
        strides = tuple(after - first for first, after in zip(done_before, done, strict=True))
        if now == before or not any(strides):
            return None
        gains = tuple(
            tuple(after - first for first, after in zip(one, other, strict=True))
            for one, other in zip(spent_before, spent, strict=True)
        )
        self.rhythms[state] = rhythm = _Rhythm(now - before, strides, gains)
        return rhythm

    def _skip(self, busy: list[Actor], rhythm: _Rhythm, times: int, now: int) -> None:
        simulation, later = self.simulation, times * rhythm.period
        for actor, stride, gains in zip(busy, rhythm.strides, rhythm.gains, strict=True):
            actor.done += times * stride
            simulation.spend(actor, gains, times, later)
            simulation.move_events(actor, later)
        for port in simulation.ports[busy[0].core]:
            if port.free > now:
                port.free += later
