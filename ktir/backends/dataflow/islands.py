"""Which cores of a launch have to do with each other: those that do not, need no common clock.

Cores have to do with each other in a launch if they use the same server of device memory, if they use a network, or if
they share a ring of tiles. An *island* is a set of cores that have to do with no other until the barrier at which all
meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ktir.backends.dataflow.expression import at
from ktir.backends.dataflow.unit_program import Instruction, Program

Shared = tuple[str, int]
"""What cores may have in common: a server, a ring of tiles, or the networks."""


@dataclass(frozen=True, slots=True)
class LaunchMap:
    """The islands of a launch; its cores that use device memory, with their servers, and those that use networks."""

    islands: tuple[tuple[int, ...], ...]
    requesting: frozenset[int]
    servers: frozenset[int]
    networked: frozenset[int]


def launch_maps(
    program: Program, uses_memory: Callable[[Instruction], bool], server_of: Callable[[int], int]
) -> dict[int, LaunchMap]:
    """By number, the map of each launch; ``server_of`` a core serves it."""
    uses = {0: _Uses()}
    rings: list[tuple[int, Shared]] = []
    for launch, code, instruction in program.instructions:
        cores = code.cores
        use = uses.setdefault(launch, _Uses())
        if uses_memory(instruction):
            use.memory.update(core for core in cores if _executed(instruction, core))
        if instruction.link is not None:
            use.network.update(core for core in cores if _executed(instruction, core))
        if instruction.ring is not None and not instruction.ring.per_core:
            rings += [(core, ("ring", instruction.ring.number)) for core in cores]
    return {launch: _map(program.cores, use, rings, server_of) for launch, use in uses.items()}


@dataclass(frozen=True, slots=True)
class _Uses:
    """The cores that use device memory in a launch, and those that use a network."""

    memory: set[int] = field(default_factory=set[int])
    network: set[int] = field(default_factory=set[int])


def _executed(instruction: Instruction, core: int) -> bool:
    if instruction.conditions:
        return instruction.executions(core) > 0
    return all(at(count, core) > 0 for count in instruction.counts)


def _map(cores: int, use: _Uses, rings: Sequence[tuple[int, Shared]], server_of: Callable[[int], int]) -> LaunchMap:
    users: dict[Shared, set[int]] = {("networks", 0): use.network}
    for core, ring in rings:
        users.setdefault(ring, set()).add(core)
    for core in use.memory:
        users.setdefault(("server", server_of(core)), set()).add(core)
    islands = [{core} for core in range(cores)]
    for together in users.values():
        touched = [island for island in islands if island & together]
        islands = [island for island in islands if not island & together]
        islands += [set[int]().union(*touched)] if touched else []
    ordered = sorted(tuple(sorted(island)) for island in islands)
    servers = frozenset(map(server_of, use.memory))
    return LaunchMap(tuple(ordered), frozenset(use.memory), servers, frozenset(use.network))
