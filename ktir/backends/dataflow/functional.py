"""Runs a dataflow program on data: every unit in its own order, whole descriptors, queues without bound.

The result does not depend on the order in which units run, because each queue, ring of tiles and pair of cores has one
writer and blocking readers; ``unit_order_seed`` runs them in a random order so that tests can say so. Capacities of
queues play no role here: the token machine decides about them. Rings of tiles keep their slots, for their bytes exist.

Faults of the data raise :class:`DataflowError` at the operation: elements of the wrong type, bytes that nobody wrote,
bytes that two units touch with nothing to order them (V6), addresses outside a buffer, a slot that is not held,
elements left over at the end.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ktir.backends.dataflow.functional_operations import BUILDERS, Executor
from ktir.backends.dataflow.functional_state import Actor, ByteMemory, State
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.unit_program import Instruction, Program
from ktir.errors import ArgumentError, DataflowDeadlock, KtirError, QueueImbalance
from ktir.machine import Machine

__all__ = ["ByteMemory", "Statistics", "execute", "run"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a functional run did."""

    operations: int
    elements_pushed: int
    launches: int


def execute(
    program_module: Operation,
    machine: Machine,
    ddr: ByteMemory,
    *,
    unit_order_seed: int | None = None,
    initialised: Sequence[tuple[int, int]] | None = None,
) -> Statistics:
    """Runs the only ``dfp.program`` of ``program_module`` on ``ddr``, which it changes.

    ``initialised`` are the byte ranges of ``ddr`` that have a value at the start, [start, stop); all of it by default.
    """
    program = compile_program(program_module, machine)
    return run(program, ddr, unit_order_seed=unit_order_seed, initialised=initialised)


def run(
    program: Program,
    ddr: ByteMemory,
    *,
    unit_order_seed: int | None = None,
    initialised: Sequence[tuple[int, int]] | None = None,
) -> Statistics:
    """Like :func:`execute`, for a program that is compiled already."""
    if program.symbols:
        raise ArgumentError(
            f"symbol {program.symbols[0].name} has no value",
            location=program.symbols[0].location,
            remedy="launch the program with values for its symbols first (launch_symbols.launch)",
        )
    return _Run(program, ddr, initialised).finish(unit_order_seed)


class _Run:
    """Schedules the actors of a program until all are at their ends."""

    def __init__(self, program: Program, ddr: ByteMemory, initialised: Sequence[tuple[int, int]] | None) -> None:
        self.program, self.state = program, State(program, ddr, initialised)
        self.ready = self.state.ready
        self.operations = 0
        self.executors: dict[int, Executor] = {
            id(instruction): BUILDERS[instruction.kind](self.state, instruction)
            for code in program.units
            for instruction in code.instructions
        }

    def finish(self, seed: int | None) -> Statistics:
        """Runs all actors to their ends."""
        self.ready.extend(self.state.actors)
        if seed is None:
            while self.ready:
                self._run_until_blocked(self.ready.popleft())
        else:
            self._run_at_random(random.Random(seed))
        waiting = [actor for actor in self.state.actors if actor.cursor.instruction is not None]
        if waiting:
            raise self._deadlock(waiting)
        self._check_left_over()
        pushed = sum(stream.pushed for stream in (*self.state.queues.values(), *self.state.channels.values()))
        return Statistics(self.operations, pushed, self.state.launches + 1)

    def _run_until_blocked(self, actor: Actor) -> None:
        cursor, executors = actor.cursor, self.executors
        executed = 0
        while (instruction := cursor.instruction) is not None:
            if not self._execute(executors[id(instruction)], actor, instruction):
                break
            cursor.advance()
            executed += 1
        self.operations += executed

    def _run_at_random(self, choice: random.Random) -> None:
        while self.ready:
            self.ready.rotate(choice.randrange(len(self.ready)))
            actor = self.ready.popleft()
            for _ in range(choice.randint(1, 4)):
                instruction = actor.cursor.instruction
                if instruction is None:
                    break
                if not self._execute(self.executors[id(instruction)], actor, instruction):
                    break
                actor.cursor.advance()
                self.operations += 1
            else:
                self.ready.append(actor)

    def _execute(self, executor: Executor, actor: Actor, instruction: Instruction) -> bool:
        try:
            done = executor(actor)
            if self.state.order is not None:
                self.state.order.after()
            return done
        except KtirError as error:
            if error.location is None:
                error.location = instruction.location
            if "core" not in error.message:
                error.message += f" ({actor.cursor.describe()})"
            raise

    def _deadlock(self, waiting: list[Actor]) -> DataflowDeadlock:
        shown = [f"{actor.cursor.describe()} waits for {actor.waits_for}" for actor in waiting[:8]]
        more = f"\n  and {len(waiting) - 8} more" if len(waiting) > 8 else ""
        first = waiting[0].cursor.instruction
        return DataflowDeadlock(
            f"{len(waiting)} units wait and none can go on:\n  " + "\n  ".join(shown) + more,
            location=first.location if first else None,
        )

    def _check_left_over(self) -> None:
        for (core, corelet, number), stream in self.state.queues.items():
            if stream.count:
                queue = self.program.queues[number]
                raise QueueImbalance(
                    f"{stream.count} elements are left in queue {queue.name} of core {core} corelet {corelet}",
                    location=queue.location,
                )
        for (_, source, target), stream in self.state.channels.items():
            if stream.count:
                raise QueueImbalance(
                    f"core {target} did not receive {stream.count} elements that core {source} sent",
                    location=self.program.location,
                )
        for (core, number), ring in self.state.rings.items():
            if any(count != ring.full for count in ring.released.values()):
                buffer = self.program.buffers[number]
                raise QueueImbalance(
                    f"tiles of buffer {buffer.name} of core {core} were not all acquired and released",
                    location=buffer.location,
                )
