"""The static checker against the executor: what it proves happens, and what happens it has not ruled out.

Generated programs are correct; one integer in the text is changed to make most of them wrong in one place.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ktir.analysis.check import examine
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.errors import ArgumentError, ExecutionError, KtirError, LimitExceeded, OutOfBounds
from ktir.interp.executor import execute
from tests.naive.differential import arrays
from tests.naive.programs import Program, program
from tests.settings import examples

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""Another number gives another program, not a smaller one."""

LEGAL_DOUBTS = {"IncompleteCoverage", "AccumulatesOntoEmpty", "VerifyError"}
"""What generated programs do, and people seldom mean; the last: dependencies that name tiles of other groups (R3)."""

SEEDS = st.integers(0, 2**62)


@settings(max_examples=examples(400), deadline=None, phases=NO_SHRINKING)
@given(SEEDS)
def test_a_correct_program_is_not_complained_of_and_little_stays_open(seed: int) -> None:
    """Only where a gather or a while loop goes is not known, and what becomes of a tile's lanes beyond a ragged end."""
    text = program(seed).text
    examination = examine(parse_module(text, "program.ktir", context=create_context(experimental=True)), None)
    assert {d.code for d in examination.findings if d.severity != "note"} <= LEGAL_DOUBTS, text
    asked_in_vain = {topic for topic, tally in examination.tallies.items() if tally.unknown}
    allowed = {"bounds": ("ind(", "scf.while"), "initialisation": ("memref<?",)}
    assert all(any(word in text for word in allowed.get(topic, ())) for topic in asked_in_vain), text


@st.composite
def mutated(draw: st.DrawFn) -> Program:
    """A program with one integer of its index arithmetic, tiles or sets changed."""
    made = program(draw(SEEDS))
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
        for m in re.finditer(pattern, made.text)
    ]
    start, stop = draw(st.sampled_from(places))
    number = draw(st.integers(0, 9))
    return replace(made, text=made.text[:start] + str(number) + made.text[stop:])


@settings(max_examples=examples(1000), deadline=None, phases=NO_SHRINKING)
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
