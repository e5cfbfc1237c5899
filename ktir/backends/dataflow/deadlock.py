"""V4: whether a program reaches its end with the depths it declares; if not, why; and how deep is deep enough.

Each queue has one writer and one reader that block, so the order of the units does not matter: one maximal run of the
tokens decides for all of them. For the same reason more room never does harm, so that lowering the capacities one after
the other, each as far as it goes, leads to a vector of which no entry can be lowered. *Peer*: the actor on the other
side of what an actor waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from ktir.backends.dataflow.core_kinds import core_kinds
from ktir.backends.dataflow.periodicity import Periodicity
from ktir.backends.dataflow.steady_state import SteadyState
from ktir.backends.dataflow.token_machine import Actor, TokenMachine, TokenQueue, TokenRing
from ktir.backends.dataflow.unit_program import Instruction, Program
from ktir.errors import DataflowDeadlock, LimitExceeded

MOST_QUANTA: Final = 64
"""Quanta granted at once; the verdict does not depend on it."""
MOST_STEPS: Final = 8
"""Grants of an actor before the others have their turn; fewer than a look for a rhythm lets pass, for one actor too."""
MOST_TURNS: Final = 200_000_000
"""Steps of a run of the tokens before it is given up."""
_PLENTY: Final = 1 << 20
"""A capacity that is as good as none."""
_REMEDY: Final = (
    "deepen the queue or add a slot to the buffer that is full, or move the operation that would empty it forward"
)


def run_to_verdict(
    program: Program, depths: Sequence[int] | None = None, slots: Sequence[int] | None = None
) -> DataflowDeadlock | None:
    """Runs the tokens of ``program`` with real capacities; the error if it stops before its end.

    ``depths`` and ``slots`` replace what queues and buffers declare, in order of declaration. The cost does not grow
    with the counts of loops.
    """
    machine = TokenMachine(representatives(program), depths, slots)
    steady = SteadyState(machine, Periodicity(machine, MOST_QUANTA), machine.actors)
    ready = deque(machine.actors)
    steps = 0
    while ready:
        actor = ready.popleft()
        taken = _take_steps(machine, actor)
        if taken == MOST_STEPS:
            ready.append(actor)
        steps += taken + 1
        if steps > MOST_TURNS:
            raise LimitExceeded(
                f"the tokens came neither to an end nor into a rhythm in {MOST_TURNS} steps", location=program.location
            )
        ready.extend(machine.woken)
        machine.woken.clear()
        if steady.marks.due(taken + 1):
            steady.visit([other.number for other in ready])
    return explain(machine) if machine.unfinished() else None


@dataclass(frozen=True, slots=True)
class Depths:
    """Capacities that suffice together, by name: vectors of ``queues`` (0 for one that nothing passes), ``slots`` of
    rings of tiles. With any one of them lower, the program stops before its end."""

    queues: Mapping[str, int]
    slots: Mapping[str, int]


def minimal_depths(program: Program) -> Depths | None:
    """A jointly minimal vector of capacities; None if no capacities let the program reach its end.

    It is at most what the program declares, unless that is too little.
    """
    capacities = [queue.depth for queue in program.queues] + [buffer.slots for buffer in program.buffers]
    queues = len(program.queues)

    def suffices(trial: Sequence[int]) -> bool:
        return run_to_verdict(program, trial[:queues], trial[queues:]) is None

    if not suffices(capacities):
        capacities = [_PLENTY if capacity else 0 for capacity in capacities]
        if not suffices(capacities):
            return None
    for entry, capacity in enumerate(capacities):
        least = 0
        while least < capacity:
            middle = (least + capacity) // 2
            if suffices([*capacities[:entry], middle, *capacities[entry + 1 :]]):
                capacity = middle
            else:
                least = middle + 1
        capacities[entry] = capacity
    return Depths(
        {queue.name: depth for queue, depth in zip(program.queues, capacities, strict=False)},
        {b.name: slots for b, slots in zip(program.buffers, capacities[queues:], strict=True) if b.slots},
    )


def representatives(program: Program) -> Program:
    """The program on one core of each kind, where cores meet at barriers only: what one does, all of its kind do.

    Cores are of one kind if they run the same code, as often. A program in which cores exchange messages, or share
    rings of tiles in device memory, is returned as it is.
    """
    instructions = [instruction for code in program.units for instruction in code.instructions]
    shared = any(buffer.slots and not buffer.per_core for buffer in program.buffers)
    if shared or any(instruction.link is not None for instruction in instructions):
        return program
    of_launches = list(core_kinds(program).values())
    kinds: dict[Hashable, int] = {}
    for core in range(program.cores):
        kinds.setdefault(tuple(of_cores[core] for of_cores in of_launches), core)
    kept = set(kinds.values())
    units = [replace(code, cores=tuple(core for core in code.cores if core in kept)) for code in program.units]
    return replace(program, units=tuple(code for code in units if code.cores))


def _take_steps(machine: TokenMachine, actor: Actor) -> int:
    """Lets ``actor`` go on until it waits or has had its turn; how many grants it took."""
    for step in range(MOST_STEPS):
        phase = machine.next_phase(actor)
        quanta = machine.grant(actor, phase, MOST_QUANTA) if phase is not None else 0
        if phase is None or not quanta:
            return step
        instruction = cast("Instruction", actor.cursor.instruction)
        if id(instruction) in machine.ends:
            for channel in machine.channels_of(actor, instruction)[1]:
                machine.fill(channel, quanta)
        machine.complete(actor, phase, quanta)
    return MOST_STEPS


def explain(machine: TokenMachine) -> DataflowDeadlock:
    """The error that says what waits for what: a cycle if there is one."""
    waiting = machine.unfinished()
    chain = _cycle(machine, waiting[0])
    closed = len(chain) > 1 and chain[0] is chain[-1]
    lines = [_why(actor) for actor in (chain[:-1] if closed else chain)]
    first = chain[0].cursor.instruction or waiting[0].cursor.instruction
    kind = "they wait for each other in a ring" if closed else "this is why"
    related = tuple(
        (instruction.location, _why(actor))
        for actor in chain[1:]
        if (instruction := actor.cursor.instruction) is not None and instruction.location is not None
    )
    return DataflowDeadlock(
        f"{len(waiting)} units can never go on; {kind}:\n  " + "\n  ".join(lines),
        location=first.location if first else None,
        remedy=_REMEDY if closed else None,
        related=related,
    )


def _cycle(machine: TokenMachine, start: Actor) -> list[Actor]:
    chain, seen = [start], {start.number: 0}
    while (peer := _peer(machine, chain[-1])) is not None:
        chain.append(peer)
        if peer.number in seen:
            return chain[seen[peer.number] :]
        seen[peer.number] = len(chain) - 1
    return chain


def _peer(machine: TokenMachine, actor: Actor) -> Actor | None:
    """Whom ``actor`` waits for, if that actor is not at its end."""
    thing = actor.waits_for
    if actor.at_barrier:
        return next((other for other in machine.unfinished() if not other.at_barrier), None)
    if isinstance(thing, TokenQueue):
        return thing.producer if actor.wait == "starved" else thing.consumer
    if isinstance(thing, TokenRing):
        if actor.wait == "starved":
            return min(thing.producers, key=lambda producer: thing.committed[producer.number], default=None)
        return min(thing.consumers, key=lambda consumer: thing.released[consumer.number], default=None)
    return None


def _why(actor: Actor) -> str:
    thing = actor.waits_for
    where = actor.cursor.describe()
    if actor.cursor.instruction is None:
        return f"{where}, will never do more"
    if actor.at_barrier:
        return f"{where}, waits for the others at the barrier"
    if isinstance(thing, TokenRing):
        what = "a full tile" if actor.wait == "starved" else f"a free one of the {thing.slots} tiles"
        return f"{where}, waits for {what} of buffer {thing.buffer.name}"
    if thing is None:
        return f"{where}, waits"
    state = "is empty" if actor.wait == "starved" else f"is full with {thing.depth} vectors"
    return f"{where}, waits because queue {thing.name} {state}"
