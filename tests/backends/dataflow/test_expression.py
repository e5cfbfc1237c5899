"""Index expressions against direct evaluation over all cores and iterations."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from ktir.backends.dataflow.expression import Computed, Expression, Linear, from_affine
from ktir.errors import LimitExceeded
from tests.settings import examples

CORES = 3
COUNTS = (3, 4)


@st.composite
def affine(draw: st.DrawFn, depth: int = 3) -> AffineExpr:
    """Expressions over d0, d1 (loop indices) and d2 (a table)."""
    if depth == 0 or draw(st.booleans()):
        choice = draw(st.integers(0, 3))
        return AffineExpr.constant(draw(st.integers(-9, 9))) if choice == 3 else AffineExpr.dimension(choice)
    left = draw(affine(depth - 1))
    match draw(st.integers(0, 4)):
        case 0:
            return left + draw(affine(depth - 1))
        case 1:
            return left * draw(st.integers(-5, 5))
        case 2:
            return left // draw(st.integers(1, 5))
        case 3:
            return left % draw(st.integers(1, 5))
        case _:
            return left.ceil_div(draw(st.integers(1, 5)))


OPERANDS: tuple[Expression, ...] = (Linear(0, ((0, 1),)), Linear(0, ((1, 1),)), Linear((5, -7, 12)))


@settings(max_examples=examples(3000))
@given(affine())
def test_values_and_bounds_are_those_of_the_affine_expression(expression: AffineExpr) -> None:
    resolved = from_affine(expression, OPERANDS, ())
    evaluate = resolved.evaluator()
    for core in range(CORES):
        values = []
        for indices in product(*(range(count) for count in COUNTS)):
            expected = expression.eval([*indices, (5, -7, 12)[core]], [])
            assert resolved.value(core, indices) == evaluate(core, indices) == expected
            values.append(expected)
        assert resolved.bounds(core, [range(count) for count in COUNTS]) == (min(values), max(values))
        remainder = resolved.remainder(core, 4)
        assert remainder is None or {value % 4 for value in values} == {remainder}


def test_division_that_simplifies_stays_linear() -> None:
    eight = AffineExpr.dimension(0) * 8
    assert isinstance(from_affine(eight // 4, OPERANDS, ()), Linear)
    assert isinstance(from_affine((eight + 3) % 4, OPERANDS, ()), Linear)
    assert isinstance(from_affine(AffineExpr.dimension(0) % 4, OPERANDS, ()), Computed)


def test_bounds_with_a_huge_period_are_refused() -> None:
    with pytest.raises(LimitExceeded):
        from_affine(AffineExpr.dimension(0) % 10**7, OPERANDS, ()).bounds(0, [range(10**8), range(1)])
