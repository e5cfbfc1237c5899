"""Runs a dataflow program on data: every unit in its own order, whole descriptors, queues without bound.

The result does not depend on the order in which units run, because each queue, ring of tiles and pair of cores has one
writer and blocking readers. A run therefore has two parts. :func:`prepare` walks the tokens (:mod:`functional_walk`)
and puts executions that do not depend on each other into batches, over cores and iterations; it needs no data and is
done once for a program. :meth:`Prepared.run` executes the batches one after the other. With ``unit_order_seed`` units,
teams of cores and batches are chosen at random, so that tests can say that none of it matters. Capacities of queues
play no role here: the token machine decides about them.

Where units touch bytes in common that could be raced for, cores are walked one by one, what touches such bytes is kept
in the order of the walk, and vector clocks tell a race (:mod:`functional_order`).

Faults raise :class:`DataflowError` at the operation: elements of the wrong type, bytes that nobody wrote, bytes that
two units touch with nothing to order them (V6), addresses outside a buffer, a slot that is not held, elements left over
at the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from ktir.backends.dataflow.conflicts import contested, grain_of
from ktir.backends.dataflow.footprint import Intervals, first_outside, joined, union
from ktir.backends.dataflow.functional_batch import Batch, Team
from ktir.backends.dataflow.functional_memory import ByteMemory, Memories, Storage, Where
from ktir.backends.dataflow.functional_operations import BUILDERS, Executor, Workshop
from ktir.backends.dataflow.functional_order import RaceWatch, UnitName
from ktir.backends.dataflow.functional_teams import singles, teams
from ktir.backends.dataflow.functional_walk import Walk
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.touched import Region, Touch, touches
from ktir.backends.dataflow.unit_program import Program
from ktir.backends.dataflow.vector_clocks import Clocks, Shadow
from ktir.dialect.text.limits import without_collections
from ktir.errors import ArgumentError, DataflowDeadlock, KtirError, LimitExceeded
from ktir.machine import Machine

__all__ = ["ByteMemory", "Prepared", "Statistics", "execute", "prepare", "run"]

MOST_RACED_BYTES = 1 << 26
"""Of a memory that is watched for races, up to the last byte that could be raced for."""
MOST_OPERATIONS = 1 << 25
"""Executions of instructions in a run; each is remembered until the run is prepared."""
MOST_AT_ONCE = 1 << 30
"""Elements that one operation may move."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a functional run did; ``batches`` are the steps it took for all ``operations``."""

    operations: int
    elements_pushed: int
    launches: int
    batches: int


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
    return prepare(program, unit_order_seed=unit_order_seed).run(ddr, initialised=initialised)


def prepare(program: Program, *, unit_order_seed: int | None = None) -> Prepared:
    """Works out the batches of a program. Raises what is wrong with its tokens and addresses."""
    if program.symbols:
        raise ArgumentError(
            f"symbol {program.symbols[0].name} has no value",
            location=program.symbols[0].location,
            remedy="launch the program with values for its symbols first (launch_symbols.launch)",
        )
    choice = None if unit_order_seed is None else random.Random(unit_order_seed)
    _refuse_endless(program)
    touched = list(touches(program))
    raced = {region: int(parts[-1, 1]) for region, parts in contested(touched).items()}
    planner = _Planner(program, touched, raced, choice)
    found = singles(program) if raced else teams(program, choice)
    with without_collections():  # a third of the time otherwise; what is made is kept
        try:
            return planner.planned(found)
        except DataflowDeadlock:
            if all(len(team.cores) == 1 for team in found):
                raise
        return planner.planned(singles(program))


def _refuse_endless(program: Program) -> None:
    """Raises :class:`LimitExceeded` for what would take hours, or more memory than there is."""
    executed = 0
    for _, code, instruction in program.instructions:
        executed += instruction.executions_on(code.cores)
        at_once = [access.box.elements for access in instruction.accesses]
        at_once += [flow.elements for flow in (*instruction.pops, *instruction.pushes)]
        if executed > MOST_OPERATIONS or max(at_once, default=0) > MOST_AT_ONCE:
            what = f"{executed} operations" if executed > MOST_OPERATIONS else f"{max(at_once)} elements at once"
            raise LimitExceeded(
                f"a run with data would execute {what}",
                location=instruction.location,
                remedy="run it with fewer iterations; the timed simulation of a loop does not depend on them",
            )


@dataclass(frozen=True, slots=True)
class Step:
    """A batch made ready. ``done`` are the positions of outputs that nobody needs after it."""

    batch: Batch
    execute: Executor
    done: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """Where launch ``number`` begins."""

    number: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program ready to run, any number of times.

    ``device``: by launch, the bytes of device memory that are read at most and those that are written for certain.
    ``watched``: of each region that could be raced for, how many bytes are watched, in what grains.
    """

    program: Program
    steps: tuple[Step | Launch, ...]
    rings: dict[Where, Storage]
    statistics: Statistics
    device: tuple[tuple[Intervals, Intervals], ...]
    units: tuple[UnitName, ...]
    watched: dict[Region, tuple[int, int]]

    def run(self, ddr: ByteMemory, *, initialised: Sequence[tuple[int, int]] | None = None) -> Statistics:
        """Runs the program on ``ddr``, which it changes; ``initialised`` as for :func:`execute`."""
        if initialised is not None and self._known(initialised):
            initialised = None
        memories = Memories(self.program, self.rings, ddr, initialised)
        memories.watch = watch = self._watch()
        outputs = memories.outputs
        for step in self.steps:
            if isinstance(step, Launch):
                memories.begin(step.number)
                continue
            _executed(step.batch, step.execute, memories)
            if watch is not None:
                watch.after()
            for position in step.done:
                outputs.pop(position, None)
        return self.statistics

    def _watch(self) -> RaceWatch | None:
        """The shadows of the bytes that could be raced for; None where there are none, or too many."""
        if not self.watched:
            return None
        clocks = Clocks(len(self.units))
        shadows = {region: Shadow(clocks, size, grain) for region, (size, grain) in self.watched.items()}
        return RaceWatch(self.units, clocks, shadows)

    def _known(self, initialised: Sequence[tuple[int, int]]) -> bool:
        """Whether every byte of device memory that is read has a value then."""
        known = joined(np.array(initialised, np.int64).reshape(-1, 2))
        for read, written in self.device:
            if first_outside(read, known) is not None:
                return False
            known = union([known, written])
        return True


_CERTAIN = ("copy", "drain", "receive")
"""What writes all that it may write."""


def _from_scratchpad(touch: Touch) -> bool:
    """Whether what is written comes from no device memory, so that it has a value."""
    return all(each.buffer.per_core for each in touch.instruction.accesses[:-1])


def _device(touched: Sequence[Touch]) -> tuple[tuple[Intervals, Intervals], ...]:
    """By launch, the bytes of device memory that are read at most and those that are written for certain."""
    found: dict[int, tuple[list[Intervals], list[Intervals]]] = {}
    for touch in touched:
        if touch.region[1] < 0:
            read, written = found.setdefault(touch.launch, ([], []))
            if not touch.access.writes:
                read.append(touch.footprint.intervals)
            elif touch.footprint.exact and touch.instruction.kind in _CERTAIN and _from_scratchpad(touch):
                written.append(touch.footprint.intervals)
    return tuple((union(read), union(written)) for _, (read, written) in sorted(found.items()))


def _executed(batch: Batch, execute: Executor, memories: Memories) -> None:
    try:
        execute(memories)
    except KtirError as error:
        if error.location is None:
            error.location = batch.instruction.location
        if "core" not in error.message:
            error.message += f" ({batch.describe()})"
        raise


class _Plan:
    """Collects the batches of a walk."""

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.launches: dict[int, int] = {}

    def placed(self, batch: Batch) -> None:
        self.batches[batch.position] = batch

    def barrier(self, launch: int) -> None:
        self.launches[max(self.batches, default=-1) + 1] = launch


class _Planner:
    """Works out the steps of a program for teams of cores. ``raced``: the end of what could be raced for by region."""

    def __init__(
        self, program: Program, touched: list[Touch], raced: dict[Region, int], choice: random.Random | None
    ) -> None:
        self.program, self.touched, self.raced, self.choice = program, touched, raced, choice

    def planned(self, found: Sequence[Team]) -> Prepared:
        """The program ready to run."""
        plan = _Plan()
        walk = Walk(self.program, found, plan, choice=self.choice, raced=self.raced)
        walk.run()
        sizes = {team.number: len(team.cores) for team in found}
        rings = {
            (team, number): Storage(sizes[team], ring.slots(), ring.buffer.size, ring.filled)
            for (team, number), ring in walk.rings.items()
            if team in sizes
        }
        workshop = Workshop(self.program, rings, {where: ring.first for where, ring in walk.rings.items()})
        return Prepared(
            self.program,
            tuple(_steps(plan, workshop)),
            rings,
            Statistics(walk.operations, walk.pushed, walk.launches + 1, len(plan.batches)),
            _device(self.touched),
            tuple(UnitName(unit.number, unit.code.unit, unit.core) for unit in walk.units),
            self._watched(),
        )

    def _watched(self) -> dict[Region, tuple[int, int]]:
        """Size and grain of the shadow of each region that could be raced for, unless that is too far up."""
        return {
            region: (
                max(int(touch.footprint.intervals[-1, 1]) for touch in self.touched if touch.region == region),
                grain_of(self.touched, region),
            )
            for region, stop in self.raced.items()
            if stop <= MOST_RACED_BYTES
        }


def _steps(plan: _Plan, workshop: Workshop) -> Iterator[Step | Launch]:
    """The batches in order, with their executors."""
    done: dict[int, list[int]] = {}
    for batch in plan.batches.values():
        done.setdefault(max(batch.last, batch.position), []).append(batch.position)
    for position in sorted({*plan.batches, *plan.launches}):
        if position in plan.launches:
            yield Launch(plan.launches[position])
        if position in plan.batches:
            batch = plan.batches[position]
            execute = BUILDERS[batch.instruction.kind](batch, workshop)
            yield Step(batch, execute, tuple(done.get(position, ())))
