"""Skips what the whole machine repeats: the state of the tokens with all times in it, counted from now.

The skipping itself is :mod:`ktir.backends.dataflow.steady_state`; here is what a state is when there is a clock, and
what moves on with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ktir.backends.dataflow.simulation_state import OF_ACTORS, Payload, Request, Server, number_of, part
from ktir.backends.dataflow.steady_state import Repetition, SteadyState
from ktir.backends.dataflow.token_machine import Actor
from ktir.backends.dataflow.unit_program import Instruction

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation


class MachineRepetition:
    """Watches a simulation as a whole."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.steady = SteadyState(simulation.tokens, simulation.chunk, self._charged)

    def _charged(self, instruction: Instruction, number: int) -> Sequence[int]:
        """What the chunks of a phase are charged for, beside the vectors they move."""
        cost, phases = self.simulation.costs[id(instruction)], len(self.simulation.tokens.phases[id(instruction)])
        whole = (cost.read_port, cost.write_port, cost.ddr_bytes, cost.requests, cost.ring_bytes)
        return (part(cost.work, number, phases), *whole)

    def skip(self, now: int) -> int:
        """Skips whole periods if the present state has come back; the time after them."""
        requesting = {number for server in self.simulation.servers for number in server.order}
        for actor in self.simulation.tokens.actors:
            if actor.number not in requesting:
                self.simulation.account_wait(actor, now)
        repetition = self.steady.visit(self.simulation.event_count, self._timed_state(now), now, self._totals())
        if repetition is None:
            return now
        self._add_totals(repetition)
        self._move_times(repetition, now)
        return now + repetition.times * repetition.period

    def _timed_state(self, now: int) -> list[object]:
        """All times that matter later, counted from ``now``, and what waits for shared resources."""
        state: list[object] = [
            (time - now, order, self._code(payload, now))
            for time, order, _, number, payload in sorted(self.simulation.events)
            if number not in self.simulation.dead
        ]
        for clock in self.simulation.clocks:
            state.append(
                (
                    clock.since - now,
                    max(0, clock.array_free - now),
                    clock.filled,
                    tuple(each - now for each in clock.in_flight if each > now),
                )
            )
        state.extend(max(0, port.free - now) for ports in self.simulation.ports for port in ports)
        state.extend((link, free - now) for link, free in sorted(self.simulation.links.items()) if free > now)
        for server in self.simulation.servers:
            waiting = tuple(self._code(server.pending[number], now) for number in server.order)
            state.append((server.busy, server.last, server.writes, waiting))
        return state

    def _code(self, payload: object, now: int) -> object:
        """A plain value that stands for what an event or a server holds."""
        match payload:
            case Actor():
                return payload.number
            case Server():
                return self.simulation.servers.index(payload)
            case Request():
                work = (payload.bytes, payload.requests, payload.writes, payload.unit_ticks, payload.port_ticks)
                return (payload.actor.number, payload.quanta, payload.issued - now, *work)
            case _:
                return tuple(each if isinstance(each, int) else number_of(each) for each in cast("Payload", payload))

    def _totals(self) -> list[int]:
        spent, launch = self.simulation.spent, self.simulation.launch
        ways = (*spent.busy, *spent.starved, *spent.blocked, *spent.stalled, *spent.by_instruction)
        return [*ways, launch.read, launch.written, launch.ring]

    def _add_totals(self, repetition: Repetition) -> None:
        gains = iter(repetition.gains)
        spent, launch = self.simulation.spent, self.simulation.launch
        for clock, gain in zip(self.simulation.clocks, repetition.gains, strict=False):
            if gain and clock.intervals:
                number, start, stop = clock.intervals[-1]
                clock.intervals[-1] = (number, start, stop + repetition.times * repetition.period)
        for way in (spent.busy, spent.starved, spent.blocked, spent.stalled, spent.by_instruction):
            for number in range(len(way)):
                way[number] += repetition.times * next(gains)
        read, written, ring = gains
        launch.read += repetition.times * read
        launch.written += repetition.times * written
        launch.ring += repetition.times * ring

    def _move_times(self, repetition: Repetition, now: int) -> None:
        """Moves all that lies ahead; what was over before ``now`` stays over."""
        later = repetition.times * repetition.period
        simulation = self.simulation
        live = (event for event in simulation.events if event[3] not in simulation.dead)
        simulation.events[:] = [(event[0] + later, *event[1:]) for event in live]
        simulation.dead.clear()
        for event in simulation.events:
            if event[1] in OF_ACTORS:
                simulation.pending[event[2]][event[3]] = event
        for clock in simulation.clocks:
            clock.since += later
            clock.array_free += later
            clock.in_flight = [each + later for each in clock.in_flight]
        for ports in simulation.ports:
            for port in ports:
                port.free += later
        for link in simulation.links:
            simulation.links[link] += later
        for server in simulation.servers:
            server.until += later
            for request in server.pending.values():
                request.issued += later
