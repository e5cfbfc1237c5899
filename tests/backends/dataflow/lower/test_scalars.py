"""Core values against plain integers: on each core and in each iteration, arithmetic means what Python's does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.test import TestOp

from ktir.backends.dataflow.lower.scalars import evaluate
from ktir.backends.dataflow.lower.values import (
    CoreValue,
    LoopVariable,
    NotAffine,
    Quotient,
    Remainder,
    constant,
    per_core,
    variable,
)
from tests.settings import examples

CORES, TRIPS = 3, 4

OPERATIONS = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
    arith.DivSIOp: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    arith.RemSIOp: lambda a, b: a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}


def at(value: CoreValue, core: int, iteration: int) -> int:
    """What a core value is on a core in an iteration."""
    total = int(value.constant[core])
    for atom, factor in value.terms.items():
        number = iteration if isinstance(atom, LoopVariable) else divided(atom, at(atom.dividend, core, iteration))
        total += int(factor[core]) * number
    return total


@st.composite
def expressions(draw: st.DrawFn) -> tuple[CoreValue, list[list[int]]]:
    """A core value made by random operations, and its numbers by core and iteration."""
    loop = LoopVariable("i", np.full(CORES, TRIPS))
    numbers = st.lists(st.integers(-20, 20), min_size=CORES, max_size=CORES)
    values: list[tuple[CoreValue, list[list[int]]]] = [
        (variable(loop), [list(range(TRIPS))] * CORES),
        *((per_core(np.array(n)), [[x] * TRIPS for x in n]) for n in draw(st.lists(numbers, min_size=1, max_size=3))),
        *(
            (constant(n, CORES), [[n] * TRIPS] * CORES)
            for n in draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
        ),
    ]
    operand = TestOp(result_types=[IndexType(), IndexType()])
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(list(OPERATIONS)))
        (left, left_numbers), (right, right_numbers) = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        if kind not in (arith.AddiOp, arith.SubiOp, arith.MuliOp) and not positive(right_numbers):
            continue
        try:
            made = evaluate(kind(*operand.results), [left, right], CORES)
        except NotAffine:
            continue
        assert made is not None
        rows = [
            [OPERATIONS[kind](a, b) for a, b in zip(ours, theirs, strict=True)]
            for ours, theirs in zip(left_numbers, right_numbers, strict=True)
        ]
        values.append((made, rows))
    return values[-1]


def divided(atom: Quotient | Remainder, dividend: int) -> int:
    return dividend // atom.divisor if isinstance(atom, Quotient) else dividend % atom.divisor


def positive(numbers: Sequence[Sequence[int]]) -> bool:
    return all(number > 0 for row in numbers for number in row)


@settings(max_examples=examples(400))
@given(expressions())
def test_arithmetic_means_what_it_says_on_every_core_and_iteration(made: tuple[CoreValue, list[list[int]]]) -> None:
    value, numbers = made
    assert [[at(value, core, i) for i in range(TRIPS)] for core in range(CORES)] == numbers
    assert all(low <= min(row) for low, row in zip(value.minimum(), numbers, strict=True))
    assert all(high >= max(row) for high, row in zip(value.maximum(), numbers, strict=True))


def test_a_comparison_that_ranges_decide_is_a_constant() -> None:
    at_loop = variable(LoopVariable("i", np.array([4, 4])))
    operand = TestOp(result_types=[IndexType(), IndexType()])
    below = evaluate(arith.CmpiOp(*operand.results, "slt"), [at_loop, constant(4, 2)], 2)
    assert below is not None and below.uniform == 1
    with pytest.raises(NotAffine):
        evaluate(arith.CmpiOp(*operand.results, "slt"), [at_loop, constant(3, 2)], 2)


def test_a_remainder_stays_below_its_divisor() -> None:
    """``4 * i mod 16`` takes 0, 4, 8 and 12: bounds of a dividend and a quotient that vary together would not do."""
    at_loop = variable(LoopVariable("i", np.array([32, 3]))) * 4
    remainder = at_loop.modulo(16)
    assert remainder.minimum().tolist() == [0, 0]
    assert remainder.maximum().tolist() == [12, 8]
