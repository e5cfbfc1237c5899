"""The units of a core that are taken out of a simulation while they repeat a known rhythm, and how they come back.

A *team* are units of one core. A *rhythm* is what they do in a *period*, after which all is as before but how far they
have got. While a team *coasts* its units have no events; what they would have done is added up when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktir.backends.dataflow.simulation_state import FINISH
from ktir.backends.dataflow.token_machine import Actor

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What a team does in ``period`` ticks, the last of which is an event of ``reference``, a member.

    ``moves``: member, component of its place, and how far it goes. ``spent``: ticks in each way, by member.
    ``counted``: ticks by place in the counts of the core. ``ports``: whether the scratchpad's ports for reading and
    for writing are used. ``state``: the number of the state in which it begins and ends.
    """

    state: int
    period: int
    reference: int
    moves: tuple[tuple[int, int, int], ...]
    spent: tuple[tuple[int, ...], ...]
    counted: tuple[tuple[int, int], ...]
    ports: tuple[bool, bool]


class Coasting:
    """``team`` of ``core`` in ``rhythm``, whose present period began at ``since``."""

    def __init__(self, simulation: Simulation, core: int, team: Sequence[Actor], rhythm: Rhythm, since: int) -> None:
        self.simulation, self.core, self.team, self.rhythm = simulation, core, team, rhythm
        self.since, self.reference = since, team[rhythm.reference]
        self.events = [
            (time - since, order, actor, payload)
            for actor in team
            for time, order, _, _, payload in simulation.withdraw(actor)
        ]

    def plan(self) -> None:
        """Sets, or sets again, the moment at which the rhythm ends."""
        simulation = self.simulation
        simulation.withdraw(self.reference)
        end = self.since + rooms(simulation, self.team, self.rhythm) * self.rhythm.period
        simulation.schedule(end, FINISH, self.reference.number, self)

    @property
    def ahead(self) -> dict[int, tuple[int, int]]:
        """By number of a unit, the component of its place, and how far it may have got in the present period."""
        return {self.team[member].number: (component, stride) for member, component, stride in self.rhythm.moves}

    def advance(self, now: int) -> None:
        """Adds up the periods that have ended before ``now``."""
        self._add((now - self.since - 1) // self.rhythm.period)

    def end(self, now: int) -> None:
        """Puts the units back where they are when the last period has just ended, at ``now``."""
        self._add((now - self.since) // self.rhythm.period)
        self._put_back()

    def interrupt(self, now: int) -> None:
        """Puts the units back where they are at the beginning of the period under way, which may lie before ``now``."""
        self.simulation.withdraw(self.reference)
        self.advance(now)
        self._put_back()

    def _add(self, times: int) -> None:
        if times <= 0:
            return
        simulation, rhythm, later = self.simulation, self.rhythm, times * self.rhythm.period
        for member, component, stride in rhythm.moves:
            self.team[member].go_on(component, times * stride)
        for actor, spent in zip(self.team, rhythm.spent, strict=True):
            simulation.spend(actor, spent, times, later)
        counts = simulation.launch.counts[self.core]
        for place, ticks in rhythm.counted:
            counts[place] += times * ticks
        for port, used in zip(simulation.ports[self.core], rhythm.ports, strict=True):
            if used and port.free > self.since:
                port.free += later
        self.since += later

    def _put_back(self) -> None:
        for ahead, order, actor, payload in self.events:
            self.simulation.schedule(self.since + ahead, order, actor.number, payload)


def rooms(simulation: Simulation, team: Sequence[Actor], rhythm: Rhythm) -> int:
    """How many periods ``team`` may go on in ``rhythm``."""
    least = simulation.FOREVER
    for member, component, stride in rhythm.moves:
        actor = team[member]
        now = actor.place[component]
        least = min(least, simulation.periodicity.room(actor, component, now - stride, now))
    return least
