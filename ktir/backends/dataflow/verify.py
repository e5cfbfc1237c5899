"""Verifies a dataflow program before it runs: the rules, each in a file of its own, run in order.

V1 capability (:mod:`verify_capability`), V2 queues and rings have the right ends (:mod:`verify_ends`), V3 what is
pushed is popped (:mod:`verify_balance`), V5 slots (:mod:`verify_slots`), V7 capacity and overlap and V8 bounds and
alignment (:mod:`verify_memory`), V9 nothing unwritten is read (:mod:`verify_written`, :mod:`verify_matrix`) and V11
outputs are written once (:mod:`verify_written`), V10 cores agree (:mod:`verify_partners`), V4 no deadlock at the
declared capacities (:mod:`deadlock`), V6 no races (:mod:`verify_races`).

Later rules rest on what the earlier ones found in order: the ends of queues first; then what can be counted; then what
is touched; deadlock only then, for a program that pushes too little stops as surely as one that cannot go on; races at
last, for they take a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from xdsl.ir import Operation

from ktir.backends.dataflow.deadlock import run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.touched import Touch, touches
from ktir.backends.dataflow.unit_program import Program
from ktir.backends.dataflow.verify_balance import balance_faults
from ktir.backends.dataflow.verify_capability import capability_faults
from ktir.backends.dataflow.verify_ends import end_faults
from ktir.backends.dataflow.verify_matrix import matrix_faults
from ktir.backends.dataflow.verify_memory import memory_faults
from ktir.backends.dataflow.verify_partners import partner_faults
from ktir.backends.dataflow.verify_races import race_findings
from ktir.backends.dataflow.verify_slots import slot_faults
from ktir.backends.dataflow.verify_written import written_faults
from ktir.errors import Diagnostic, KtirError, Severity
from ktir.machine import Machine

Finding = tuple[KtirError, Severity]


def verify(program_module: Operation, machine: Machine) -> list[Diagnostic]:
    """Everything found in the only ``dfp.program`` of ``program_module``; it may run if there is no error among it."""
    return [
        Diagnostic(fault.code, severity, fault.message, fault.location, fault.remedy)
        for fault, severity in findings(program_module, machine)
    ]


def check(program_module: Operation, machine: Machine) -> Program:
    """Raises the first error; returns the compiled program otherwise."""
    program = compile_program(program_module, machine)
    for fault in program_faults(program):
        raise fault
    return program


def findings(program_module: Operation, machine: Machine) -> Iterator[Finding]:
    """What is found in a program, as errors with their severity."""
    try:
        program = compile_program(program_module, machine)
    except KtirError as error:
        yield error, "error"
        return
    yield from program_findings(program)


def program_faults(program: Program) -> Iterator[KtirError]:
    """The errors of a compiled program."""
    return (fault for fault, severity in program_findings(program) if severity == "error")


def program_findings(program: Program) -> Iterator[Finding]:
    """What is found in a compiled program; nothing more once a group of rules has found an error."""
    for rules in _rules(program):
        sound = True
        for rule in rules:
            for fault, severity in _until_it_fails(rule):
                sound = sound and severity != "error"
                yield fault, severity
        if not sound:
            return


def _until_it_fails(found: Iterator[Finding]) -> Iterator[Finding]:
    """What a rule finds; what keeps the rule itself from going on is part of it."""
    try:
        yield from found
    except KtirError as error:
        yield error, "error"


def _errors(rule: Callable[[Program], Iterator[KtirError]], program: Program) -> Iterator[Finding]:
    for fault in rule(program):
        yield fault, "error"


def _deadlock_faults(program: Program) -> Iterator[KtirError]:
    deadlock = run_to_verdict(program)
    if deadlock is not None:
        yield deadlock


def _rules(program: Program) -> tuple[tuple[Iterator[Finding], ...], ...]:
    """The rules in groups; each begins when it is asked for its first finding."""

    @cache
    def touched() -> list[Touch]:
        return list(touches(program))

    return (
        (_errors(capability_faults, program), _errors(end_faults, program)),
        (
            _errors(balance_faults, program),
            _errors(slot_faults, program),
            _errors(memory_faults, program),
            _errors(partner_faults, program),
        ),
        (_errors(lambda program: written_faults(program, touched()), program), _errors(matrix_faults, program)),
        (_errors(_deadlock_faults, program),),
        (_races(program, touched),),
    )


def _races(program: Program, touched: Callable[[], list[Touch]]) -> Iterator[Finding]:
    yield from race_findings(program, touched())
