"""Iterations under conditions: counted, bounded and told apart as by walking them all."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from ktir.backends.dataflow.expression import Linear, from_affine
from ktir.backends.dataflow.iteration_space import Condition, Space
from ktir.errors import LimitExceeded
from tests.backends.dataflow.test_expression import OPERANDS, affine
from tests.settings import examples

COUNTS = (4, (3, 5, 0))
INDEX = OPERANDS[0]


@st.composite
def conditions(draw: st.DrawFn) -> list[Condition]:
    return [
        Condition(from_affine(draw(affine(2)), OPERANDS, ()), draw(st.booleans()))
        for _ in range(draw(st.integers(0, 2)))
    ]


def walked(core: int, found: list[Condition]) -> list[tuple[int, ...]]:
    counts = (COUNTS[0], COUNTS[1][core])
    return [point for point in product(*map(range, counts)) if all(condition.holds(core, point) for condition in found)]


@settings(max_examples=examples(3000))
@given(conditions(), affine(2), st.integers(0, 2))
def test_points_bounds_and_values_are_those_of_a_walk(
    found: list[Condition], expression: AffineExpr, core: int
) -> None:
    space, value = Space.of(core, COUNTS, found), from_affine(expression, OPERANDS, ())
    points = walked(core, found)
    assert space.points == len(points)
    values = [value.value(core, point) for point in points]
    assert space.times_of(value) == Counter(values)
    if points:
        assert space.bounds(value) == (min(values), max(values))


@settings(max_examples=examples(1000))
@given(affine(), st.integers(0, 2), st.integers(0, 1))
def test_laws_intervals_and_fixed_values(expression: AffineExpr, core: int, depth: int) -> None:
    value = from_affine(expression, OPERANDS, ())
    law = value.law(core, depth)
    low, high = [0, 1], [5, 9]
    least, most = value.interval(core, low, high)
    for point in product(range(6), range(1, 10)):
        further = [index + law.period * (place == depth) for place, index in enumerate(point)]
        assert value.value(core, further) - value.value(core, point) == law.shift
        assert least <= value.value(core, point) <= most
        assert value.fixed(core, depth, point[depth]).value(core, point) == value.value(core, point)


def test_loops_of_any_length_are_counted() -> None:
    """A condition on one index, on a remainder, and on one long and one short index."""
    even = Condition(from_affine(AffineExpr.dimension(0) % 2, OPERANDS, ()), True)
    first = Condition(Linear(-1, ((0, -1),)), False)
    corner = Condition(Linear(-10, ((0, 1), (1, -1))), False)
    assert Space.of(0, (10**9,), [even]).points == 5 * 10**8
    assert Space.of(0, (10**9,), [first]).points == 0
    assert Space.of(0, (10**9, 3), [corner]).points == 3 * 10**9 - (10 + 11 + 12)
    with pytest.raises(LimitExceeded):
        assert Space.of(0, (10**9, 10**9), [corner]).points
