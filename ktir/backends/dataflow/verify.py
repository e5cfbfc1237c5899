"""Verifies a dataflow program before it runs: the rules, each in a file of its own, run in order.

V1 capability (:mod:`verify_capability`), V2 queues and rings have the right ends (:mod:`verify_ends`), V3 what is
pushed is popped (:mod:`verify_balance`), V7 capacity and overlap and V8 bounds and alignment (:mod:`verify_memory`),
V4 no deadlock at the declared capacities (:mod:`deadlock`). V4 runs last and only on programs that pass the
others, for a program that pushes too little stops as surely as one that cannot go on; V3, V7 and V8 run only where the
units and the ends of queues are right.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ktir.backends.dataflow.deadlock import run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.unit_program import Program
from ktir.backends.dataflow.verify_balance import balance_faults
from ktir.backends.dataflow.verify_capability import capability_faults
from ktir.backends.dataflow.verify_ends import end_faults
from ktir.backends.dataflow.verify_memory import memory_faults
from ktir.errors import Diagnostic, KtirError
from ktir.machine import Machine


def verify(program_module: Operation, machine: Machine) -> list[Diagnostic]:
    """Every fault found in the only ``dfp.program`` of ``program_module``; empty if it may run."""
    return [
        Diagnostic(fault.code, "error", fault.message, fault.location, fault.remedy)
        for fault in faults(program_module, machine)
    ]


def check(program_module: Operation, machine: Machine) -> Program:
    """Raises the first fault; returns the compiled program otherwise."""
    program = compile_program(program_module, machine)
    for fault in program_faults(program):
        raise fault
    return program


def faults(program_module: Operation, machine: Machine) -> Iterator[KtirError]:
    """The faults of a program as errors."""
    try:
        program = compile_program(program_module, machine)
    except KtirError as error:
        yield error
        return
    yield from program_faults(program)


def program_faults(program: Program) -> Iterator[KtirError]:
    """The faults of a compiled program. Later rules rest on the units and ends that the earlier ones found in order."""
    for rules in ((capability_faults, end_faults), (balance_faults, memory_faults), (_deadlock_faults,)):
        sound = True
        for rule in rules:
            for fault in _until_it_fails(rule(program)):
                sound = False
                yield fault
        if not sound:
            return


def _until_it_fails(found: Iterator[KtirError]) -> Iterator[KtirError]:
    """The faults that a rule finds; what keeps the rule itself from going on is one of them."""
    try:
        yield from found
    except KtirError as error:
        yield error


def _deadlock_faults(program: Program) -> Iterator[KtirError]:
    deadlock = run_to_verdict(program)
    if deadlock is not None:
        yield deadlock
