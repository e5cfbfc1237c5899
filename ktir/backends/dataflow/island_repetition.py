"""Skips what an island of cores repeats: the state of its tokens with all times in it, counted from now.

The skipping itself is :mod:`ktir.backends.dataflow.steady_state`; here is what a state is when there is a clock, and
what moves on with it. Islands have to do with each other at barriers only, so one may be moved on without the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify
from typing import TYPE_CHECKING, cast

from ktir.backends.dataflow.coasting import Coasting
from ktir.backends.dataflow.islands import LaunchMap
from ktir.backends.dataflow.local_repetition import LocalRepetition
from ktir.backends.dataflow.simulation_state import Event, Payload, Request, Server, number_of
from ktir.backends.dataflow.steady_state import Repetition, SteadyState
from ktir.backends.dataflow.token_machine import Actor

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation


class IslandRepetition:
    """Watches the units of ``cores``, an island of ``launch``, until the next barrier."""

    def __init__(self, simulation: Simulation, local: LocalRepetition, launch: LaunchMap, cores: Sequence[int]) -> None:
        self.simulation, self.local, self.cores = simulation, local, frozenset(cores)
        self.actors = [actor for actor in simulation.tokens.actors if actor.core in self.cores]
        used = {simulation.server_of(core) for core in self.cores & launch.requesting}
        self.servers = [simulation.servers[number] for number in sorted(used)]
        self.links = simulation.links if self.cores & launch.networked else dict[tuple[str, int, int], int]()
        self.steady = SteadyState(simulation.tokens, simulation.periodicity, self.actors)
        self.due = self.steady.marks.due

    def skip(self, now: int) -> None:
        """Skips whole periods if the present state has come back."""
        coasting = self.local.coasting(self.cores)
        for each in coasting:
            each.advance(now)
        away = {actor.number for each in coasting for actor in each.team}
        away.update(number for server in self.servers for number in server.order)
        for actor in self.actors:
            if actor.number not in away:
                self.simulation.account_wait(actor, now)
        state = [*self._timed_state(now), *((each.core, each.rhythm.state, each.since - now) for each in coasting)]
        ahead = {number: step for each in coasting for number, step in each.ahead.items()}
        repetition = self.steady.visit(state, now, self._totals(), ahead)
        if repetition is not None:
            self._add_totals(repetition)
            self._move_times(repetition, now)
            self.local.was_moved(self.cores, repetition.times * repetition.period)

    def _timed_state(self, now: int) -> list[object]:
        """All times that matter later, counted from ``now``, and what waits for shared resources."""
        simulation = self.simulation
        state: list[object] = [
            (time - now, order, self._code(payload, now))
            for time, order, _, _, payload in sorted(filter(self._concerns, simulation.events))
            if payload.__class__ is not Coasting
        ]
        for actor in self.actors:
            clock = simulation.clocks[actor.number]
            state.append(
                (
                    clock.since - now,
                    max(0, clock.array_free - now),
                    clock.filled,
                    tuple(each - now for each in clock.in_flight if each > now),
                )
            )
        state.extend(max(0, port.free - now) for core in self.cores for port in simulation.ports[core])
        state.extend((link, free - now) for link, free in sorted(self.links.items()) if free > now)
        for server in self.servers:
            waiting = tuple(self._code(server.pending[number], now) for number in server.order)
            state.append((server.busy, server.last, server.writes, waiting))
        return state

    def _concerns(self, event: Event) -> bool:
        """Whether an event is one of the island's that will happen."""
        return event[3] not in self.simulation.dead and self.simulation.core_of(event) in self.cores

    def _code(self, payload: object, now: int) -> object:
        """A plain value that stands for what an event or a server holds."""
        match payload:
            case Actor() | Server():
                return payload.number
            case Request():
                work = (payload.bytes, payload.requests, payload.writes, payload.unit_ticks, payload.port_ticks)
                return (payload.actor.number, payload.quanta, payload.issued - now, *work)
            case _:
                return tuple(each if isinstance(each, int) else number_of(each) for each in cast("Payload", payload))

    def _totals(self) -> list[int]:
        spent = self.simulation.spent
        ways = (spent.busy, spent.starved, spent.blocked, spent.stalled)
        by_actor = [way[actor.number] for actor in self.actors for way in ways]
        return by_actor + [count for core in self.cores for count in self.simulation.launch.counts[core]]

    def _add_totals(self, repetition: Repetition) -> None:
        gains, times = iter(repetition.gains), repetition.times
        spent = self.simulation.spent
        for actor in self.actors:
            clock, number = self.simulation.clocks[actor.number], actor.number
            for way in (spent.busy, spent.starved, spent.blocked, spent.stalled):
                gain = next(gains)
                way[number] += times * gain
                if way is spent.busy and gain and clock.intervals:
                    launch, start, stop = clock.intervals[-1]
                    clock.intervals[-1] = (launch, start, stop + times * repetition.period)
        for core in self.cores:
            counts = self.simulation.launch.counts[core]
            counts[:] = [count + times * next(gains) for count in counts]

    def _move_times(self, repetition: Repetition, now: int) -> None:
        """Moves all of the island's that lies ahead; what was over before ``now`` stays over."""
        later, simulation = repetition.times * repetition.period, self.simulation
        self._move_events(later)
        for actor in self.actors:
            clock = simulation.clocks[actor.number]
            clock.since += later
            clock.array_free += later
            clock.in_flight = [each + later for each in clock.in_flight]
        for core in self.cores:
            for port in simulation.ports[core]:
                port.free += later
        for link in self.links:
            self.links[link] += later
        for server in self.servers:
            for request in server.pending.values():
                request.issued += later

    def _move_events(self, later: int) -> None:
        simulation = self.simulation
        for number, event in enumerate(simulation.events):
            if self._concerns(event):
                simulation.replace_event(number, (event[0] + later, *event[1:]))
        heapify(simulation.events)
