"""Integer sets against the plain definition: a point is in the set when it satisfies every constraint."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import (
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineSet,
    AffineSymExpr,
)

from ktir.errors import UnboundedSet
from ktir.maths.affine import constraint
from ktir.maths.sets import Enumeration, as_box, bounds, box_set, contains, points
from tests.settings import examples

REACH = 4


@st.composite
def constraints(draw: st.DrawFn, dims: int) -> AffineConstraintExpr:
    """``sum of a_d * d + b * s0 + c  >= 0`` or ``== 0`` with small factors."""
    total = AffineConstantExpr(draw(st.integers(-8, 8))) + draw(st.integers(-2, 2)) * AffineSymExpr(0)
    for dimension in range(dims):
        total = total + draw(st.sampled_from([0, 0, 1, -1, 2, -2, 3])) * AffineDimExpr(dimension)
    kind = draw(st.sampled_from([AffineConstraintKind.ge, AffineConstraintKind.ge, AffineConstraintKind.eq]))
    return constraint(kind, total, AffineConstantExpr(0))


@st.composite
def bounded_sets(draw: st.DrawFn) -> AffineSet:
    dims = draw(st.integers(1, 3))
    reach = [
        constraint(kind, AffineDimExpr(dimension), AffineConstantExpr(end))
        for dimension in range(dims)
        for kind, end in ((AffineConstraintKind.ge, -REACH), (AffineConstraintKind.le, REACH - 1))
    ]
    return AffineSet(dims, 1, (*reach, *draw(st.lists(constraints(dims), max_size=4))))


def holds(set: AffineSet, point: tuple[int, ...], symbols: tuple[int, ...]) -> bool:
    values = [(each.kind, each.lhs.eval(point, symbols)) for each in set.constraints]
    return all(value == 0 if kind is AffineConstraintKind.eq else value >= 0 for kind, value in values)


@given(bounded_sets(), st.integers(-4, 4))
@settings(max_examples=examples(600), deadline=None)
def test_points_are_those_that_satisfy_every_constraint(set: AffineSet, symbol: int) -> None:
    everywhere = product(range(-REACH, REACH), repeat=set.num_dims)
    assert list(points(set, (symbol,))) == [point for point in everywhere if holds(set, point, (symbol,))]


@given(bounded_sets(), st.integers(-4, 4), st.tuples(*[st.integers(-12, 12)] * 3))
@settings(max_examples=examples(1000), deadline=None)
def test_contains_is_the_definition(set: AffineSet, symbol: int, point: tuple[int, ...]) -> None:
    assert contains(set, point[: set.num_dims], (symbol,)) == holds(set, point[: set.num_dims], (symbol,))


@given(bounded_sets(), st.integers(-4, 4))
@settings(max_examples=examples(600), deadline=None)
def test_a_box_holds_exactly_the_points_of_the_set(set: AffineSet, symbol: int) -> None:
    box = as_box(set, (symbol,))
    if box is not None:
        assert list(product(*(range(*limits) for limits in box))) == list(points(set, (symbol,)))


@given(st.lists(st.integers(0, 5), max_size=4))
def test_a_box_set_is_its_sizes(sizes: list[int]) -> None:
    assert list(points(box_set(sizes))) == list(product(*map(range, sizes)))


def test_a_dimension_without_a_bound_cannot_be_enumerated() -> None:
    half = AffineSet(1, 0, (constraint(AffineConstraintKind.ge, AffineDimExpr(0), AffineConstantExpr(3)),))
    assert bounds(half) == ((3, None),)
    assert as_box(half) is None
    with pytest.raises(UnboundedSet, match="upper bound"):
        points(half)


@given(bounded_sets().filter(lambda set: set.num_dims == 1), st.integers(-4, 4), st.none() | st.integers(-6, 6))
@settings(max_examples=examples(300), deadline=None)
def test_an_enumeration_lists_the_integers_of_a_set(set: AffineSet, symbol: int, least: int | None) -> None:
    expected = [n for (n,) in points(set, (symbol,)) if least is None or n >= least]
    assert Enumeration(1000).integers(set, (symbol,), least=least) == expected


def test_an_enumeration_has_an_end() -> None:
    enumeration = Enumeration(10)
    assert enumeration.integers(box_set([6])) == list(range(6))
    assert enumeration.integers(box_set([6])) is None
    assert Enumeration(10).integers(box_set([2, 2])) is None
