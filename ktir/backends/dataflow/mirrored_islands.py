"""Simulates one of several islands of cores that do the same in a launch; the others take over what it did.

Islands are alike in a launch if their cores, one by one, are of the same kind and begin it in the same state: addresses
make no difference to time. The one that is simulated is the *original*. The units of a *mirror* are absent from the
token machine until the barrier, where they are brought to where those of the original are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ktir.backends.dataflow.token_machine import Actor

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation


class Mirror:
    """The cores of an island, one for each of the original's."""

    def __init__(self, simulation: Simulation, original: Sequence[int], cores: Sequence[int]) -> None:
        self.simulation = simulation
        self.cores = list(zip(original, cores, strict=True))
        by_core: dict[int, list[Actor]] = {}
        for actor in simulation.tokens.actors:
            by_core.setdefault(actor.core, []).append(actor)
        self.actors = [
            pair for one, other in self.cores for pair in zip(by_core.get(one, ()), by_core.get(other, ()), strict=True)
        ]
        self.numbers = {one.number: other.number for one, other in self.actors}
        self.before = [simulation.spent_by(one) for one, _ in self.actors]

    def stands_alike(self, now: int) -> bool:
        """Whether at ``now``, the start of the launch, the island is in the state of the original."""
        simulation, tokens = self.simulation, self.simulation.tokens
        return (
            all(simulation.clock_state(one, now) == simulation.clock_state(other, now) for one, other in self.actors)
            and all(tokens.state_of_core(one) == tokens.state_of_core(other) for one, other in self.cores)
            and all(self._port_times(one, now) == self._port_times(other, now) for one, other in self.cores)
        )

    def _port_times(self, core: int, now: int) -> list[int]:
        return [max(0, port.free - now) for port in self.simulation.ports[core]]

    def take_over(self) -> None:
        """Brings the island to where the original is."""
        simulation = self.simulation
        for (original, actor), before in zip(self.actors, self.before, strict=True):
            actor.follow(original)
            self._take_time(original, actor, before)
        for original, core in self.cores:
            simulation.tokens.follow(original, core, self.numbers)
            for port, own in zip(simulation.ports[original], simulation.ports[core], strict=True):
                own.free = port.free
            simulation.launch.counts[core] = list(simulation.launch.counts[original])
            if original in simulation.launch.cores:
                simulation.launch.cores.add(core)

    def _take_time(self, original: Actor, actor: Actor, before: Sequence[int]) -> None:
        simulation = self.simulation
        clock, spent = simulation.clocks[original.number], simulation.spent
        launch = simulation.launch.number
        intervals = [
            *simulation.clocks[actor.number].intervals,
            *(each for each in clock.intervals if each[0] == launch),
        ]
        simulation.clocks[actor.number] = replace(clock, intervals=intervals, in_flight=list(clock.in_flight))
        for way, former in zip((spent.busy, spent.starved, spent.blocked, spent.stalled), before, strict=True):
            way[actor.number] += way[original.number] - former
