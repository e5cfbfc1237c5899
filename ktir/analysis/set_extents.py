"""The extents of access sets: least and greatest coordinates, exact where the set is a box or small enough to list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias, cast

import numpy as np
from xdsl.ir.affine import AffineConstraintKind, AffineExpr, AffineMap, AffineSet

from ktir.analysis import ranges
from ktir.analysis.accesses import Owned
from ktir.analysis.ranges import Frame, Integers, Value
from ktir.dialect import ktdp
from ktir.dialect.ktdp.doubts import ordered
from ktir.maths import sets

POINTS_OF_A_SET = 1 << 16
"""Points up to which a set that is no box is listed."""


def variable(position: int, low: Value, high: Value, frame: Frame) -> Value:
    """An intermediate variable: every value from ``low`` to ``high`` occurs."""
    if low.literal is not None and low.literal == high.literal:
        return low
    span = (high - low).upper()
    known = low.known and high.known
    return low + ranges.symbol(f"d{position}", frame, 0.0, span, attained=known)


def owned_part(op: ktdp.ConstructMemoryViewOp, sizes: Sequence[Value]) -> Owned | None:
    """The coordinates a view owns, where its set is a constant box or small enough to list."""
    literals = [s.literal for s in sizes]
    if op.coordinate_set is None:
        return None if None in literals else Owned(tuple((0, cast(int, s)) for s in literals))
    dynamic = [s.literal for s, e in zip(sizes, op.mixed_sizes(), strict=True) if not isinstance(e, int)]
    extent = None if None in dynamic else constant_extent(op.coordinate_set.data, cast("list[int]", dynamic))
    if extent is None or not extent[4]:
        return None
    ends = zip(*([cast(int, value.literal) for value in side] for side in extent[:2]), strict=True)
    return Owned(tuple((low, high + 1) for low, high in ends), extent[2])


SetExtent: TypeAlias = "tuple[list[Value], list[Value], Integers | None, int | None, bool]"


def set_extent(set_: AffineSet, symbols: Sequence[Value]) -> SetExtent | None:
    """Least and greatest coordinate per dimension, the points where the set is no box, their number, and whether the
    ends are reached."""
    literals = [s.literal for s in symbols]
    if None not in literals:
        return constant_extent(set_, cast("list[int]", literals))
    low: list[Value | None] = [None] * set_.num_dims
    high: list[Value | None] = [None] * set_.num_dims
    exact = True
    for each in set_.constraints:
        solved = one_sided(each.lhs, each.rhs, each.kind, set_, symbols)
        if solved is None:
            exact = False
            continue
        position, lower, upper = solved
        low[position] = tighter(low[position], lower, ranges.greatest)
        high[position] = tighter(high[position], upper, ranges.least)
    if None in low or None in high:
        return None
    return cast("list[Value]", low), cast("list[Value]", high), None, None, exact


def tighter(old: Value | None, new: Value | None, choose: Callable[[Value, Value], Value]) -> Value | None:
    return new if old is None else old if new is None else choose(old, new)


def one_sided(
    left: AffineExpr, right: AffineExpr, kind: AffineConstraintKind, set_: AffineSet, symbols: Sequence[Value]
) -> tuple[int, Value | None, Value | None] | None:
    """A constraint on one dimension with factor 1 or -1 as (dimension, lower bound, upper bound)."""
    zero = [ranges.constant(0)] * set_.num_dims
    at_zero = ranges.evaluate(left, zero, symbols) - ranges.evaluate(right, zero, symbols)
    factors: dict[int, int] = {}
    for position in range(set_.num_dims):
        unit = [ranges.constant(int(d == position)) for d in range(set_.num_dims)]
        factor = (ranges.evaluate(left, unit, symbols) - ranges.evaluate(right, unit, symbols) - at_zero).literal
        if factor is None:
            return None
        if factor:
            factors[position] = factor
    if len(factors) != 1 or abs(next(iter(factors.values()))) != 1 or not linear(left, right, set_):
        return None
    ((position, factor),) = factors.items()
    end = -at_zero if factor == 1 else at_zero
    if kind is AffineConstraintKind.eq:
        return position, end, end
    at_least = (factor == 1) == (kind is AffineConstraintKind.ge)
    return (position, end, None) if at_least else (position, None, end)


def linear(left: AffineExpr, right: AffineExpr, set_: AffineSet) -> bool:
    symbols = [0] * set_.num_symbols
    return sets.linear_form(left, symbols) is not None and sets.linear_form(right, symbols) is not None


def constant_extent(set_: AffineSet, symbols: Sequence[int]) -> SetExtent | None:
    box = sets.as_box(set_, symbols)
    if box is not None or not set_.num_dims:
        box = box or ()
        count = prod(stop - start for start, stop in box)
        low, high = [ranges.constant(a) for a, _ in box], [ranges.constant(b - 1) for _, b in box]
        return low, high, None, count, True
    limits = sets.bounds(set_, symbols)
    if any(a is None or b is None for a, b in limits):
        return None
    size = prod(max(0, cast(int, b) - cast(int, a)) for a, b in limits)
    if size > POINTS_OF_A_SET:
        ends = [(ranges.constant(cast(int, a)), ranges.constant(cast(int, b) - 1)) for a, b in limits]
        return [a for a, _ in ends], [b for _, b in ends], None, None, False
    points = np.array(list(sets.points(set_, symbols)), np.int64).reshape(-1, set_.num_dims)
    if not len(points):
        return [ranges.constant(0)] * set_.num_dims, [ranges.constant(-1)] * set_.num_dims, points, 0, True
    low, high = ([ranges.constant(int(v)) for v in ends] for ends in (points.min(0), points.max(0)))
    return low, high, points, len(points), True


def permuted(low: Sequence[Value], high: Sequence[Value], order: AffineMap) -> tuple[int, ...] | None:
    """The extents of a set in the order in which its points are listed, where they are constant."""
    spans = [(b - a).literal for a, b in zip(low, high, strict=True)]
    extents = [None if span is None else span + 1 for span in spans]
    return None if None in extents else ordered(cast("list[int]", extents), order)
