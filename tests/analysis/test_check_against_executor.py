"""The static checker against the executor: what it proves happens, and what happens it has not ruled out.

Generated programs are correct; one integer in the text is changed to make most of them wrong in one place.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ktir.analysis.check import examine
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.errors import ArgumentError, ExecutionError, KtirError, LimitExceeded, OutOfBounds
from ktir.interp.executor import execute
from tests.naive.differential import arrays
from tests.naive.programs import Program, programs
from tests.settings import examples

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking a program of this size takes minutes; the one found is small enough to read."""

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=examples(400), deadline=None, phases=NO_SHRINKING, suppress_health_check=SLOW_TO_DRAW)
@given(programs())
def test_a_correct_program_gets_no_error_and_no_warning(program: Program) -> None:
    found = examine(
        parse_module(program.text, "program.ktir", context=create_context(experimental=True)), None
    ).findings
    assert not [d for d in found if d.severity == "error"], program.text
    open_ = [d for d in found if d.severity == "note"]
    assert not open_ or "ind(" in program.text, program.text


@st.composite
def mutated(draw: st.DrawFn) -> Program:
    """A program with one integer of its index arithmetic, tiles or sets changed."""
    program = draw(programs())
    places = [
        m.span(1)
        for pattern in (
            r"arith\.constant (\d+) : (?:index|i32)",
            r"\* (\d+)",
            r"\+ (\d+)[,\]]",
            r", (\d+)[,\]] *[{]",
            r"-d\d \+ (\d+) >= 0",
            r"strides: \[(\d+)",
            r"grid = \[(\d+)",
        )
        for m in re.finditer(pattern, program.text)
    ]
    start, stop = draw(st.sampled_from(places))
    number = draw(st.integers(0, 9))
    return replace(program, text=program.text[:start] + str(number) + program.text[stop:])


@settings(max_examples=examples(1000), deadline=None, phases=NO_SHRINKING, suppress_health_check=SLOW_TO_DRAW)
@given(mutated())
def test_proven_faults_happen_and_faults_that_happen_are_not_ruled_out(program: Program) -> None:
    try:
        module = parse_module(program.text, "program.ktir", context=create_context(experimental=True))
    except KtirError:
        return
    found = examine(module, None).findings
    errors = {d.code for d in found if d.severity == "error"}
    try:
        ran = execute(module, "k", arrays(program.arguments), max_steps=100_000)
    except (LimitExceeded, ArgumentError):
        return
    except ExecutionError as raised:
        seen = errors | {d.code for d in found} & {"Unknown", raised.code}
        assert seen or outside_every_array(raised), f"{raised}\n{program.text}"
        return
    equal_by_chance = {"WriteConflict"} & {d.code for d in ran.diagnostics}
    assert errors <= equal_by_chance, f"{found[0]}\n{program.text}"


def outside_every_array(error: ExecutionError) -> bool:
    """Whether a view is larger than the array that the caller gave, which the text does not show."""
    beyond = "of global memory" in error.message or "where nothing is placed" in error.message
    return isinstance(error, OutOfBounds) and beyond
