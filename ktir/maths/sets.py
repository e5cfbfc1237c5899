"""Integer sets: which points they hold.

A set is a conjunction of affine constraints over dimensions, with symbols as parameters (xDSL's ``AffineSet``). Access
tiles, memory views and tile groups are such sets. Most are boxes: one half-open range per dimension.

Words. box: a product of ranges. point: one integer per dimension. bounds: for each dimension the smallest range that
constraints on this dimension alone leave over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

from ktir.errors import UnboundedSet
from ktir.maths.affine import ALWAYS, add, constraint


def box_set(sizes: Sequence[int | None]) -> AffineSet:
    """The points from zero up to, not including, ``sizes``; no dimension at all gives the one empty point.

    A size of None is a symbol; symbols are numbered from left to right.
    """
    symbols = [position for position, size in enumerate(sizes) if size is None]
    constraints: list[AffineConstraintExpr] = []
    for position, size in enumerate(sizes):
        dimension = AffineDimExpr(position)
        constraints.append(constraint(AffineConstraintKind.ge, dimension, AffineConstantExpr(0)))
        last = AffineConstantExpr(size - 1) if size is not None else _before(AffineSymExpr(symbols.index(position)))
        constraints.append(constraint(AffineConstraintKind.le, dimension, last))
    return AffineSet(len(sizes), len(symbols), tuple(constraints) or (ALWAYS,))


def _before(expression: AffineExpr) -> AffineExpr:
    return add(expression, AffineConstantExpr(-1))


def identity_order(rank: int) -> AffineMap:
    """The order in which the last dimension varies fastest."""
    return AffineMap(rank, 0, tuple(AffineDimExpr(position) for position in range(rank)))


Linear = tuple[dict[int, int], int]
"""A sum of dimensions with factors, and a constant."""


def linear_form(expression: AffineExpr, symbols: Sequence[int]) -> Linear | None:
    """``expression`` as factors of dimensions and a constant, or None where a quotient or remainder is left over."""
    match expression:
        case AffineConstantExpr(value=value):
            return {}, value
        case AffineSymExpr(position=position):
            return {}, symbols[position]
        case AffineDimExpr(position=position):
            return {position: 1}, 0
        case AffineBinaryOpExpr():
            left, right = linear_form(expression.lhs, symbols), linear_form(expression.rhs, symbols)
            return None if left is None or right is None else _combine(expression.kind, left, right)
        case _:
            return None


def _combine(kind: AffineBinaryOpKind, left: Linear, right: Linear) -> Linear | None:
    (left_factors, left_constant), (right_factors, right_constant) = left, right
    if kind is AffineBinaryOpKind.Add:
        factors = {
            position: factor
            for position in left_factors.keys() | right_factors.keys()
            if (factor := left_factors.get(position, 0) + right_factors.get(position, 0))
        }
        return factors, left_constant + right_constant
    if kind is AffineBinaryOpKind.Mul:
        if not right_factors:
            return {
                p: f * right_constant for p, f in left_factors.items() if right_constant
            }, left_constant * right_constant
        return _combine(kind, right, left) if not left_factors else None
    if left_factors or right_factors or right_constant == 0:
        return None
    return {}, AffineBinaryOpExpr(kind, AffineConstantExpr(left_constant), AffineConstantExpr(right_constant)).eval(
        (), ()
    )


def bounds(set: AffineSet, symbols: Sequence[int] = ()) -> tuple[tuple[int | None, int | None], ...]:
    """Per dimension the half-open range that constraints on it alone allow; None where there is no bound."""
    low: list[int | None] = [None] * set.num_dims
    high: list[int | None] = [None] * set.num_dims
    for each in set.constraints:
        form = linear_form(each.lhs, symbols)
        if form is None or len(form[0]) != 1:
            continue
        ((position, factor),), constant = form[0].items(), form[1]
        smallest, largest = -(constant // factor), (-constant) // factor  # of factor * d + constant >= 0
        exact = each.kind is AffineConstraintKind.eq
        if exact and constant % factor:
            low[position], high[position] = 0, 0
            continue
        if factor > 0 or exact:
            low[position] = smallest if low[position] is None else max(low[position] or 0, smallest)
        if factor < 0 or exact:
            stop = largest + 1
            high[position] = stop if high[position] is None else min(high[position] or 0, stop)
    return tuple(zip(low, high, strict=True))


def as_box(set: AffineSet, symbols: Sequence[int] = ()) -> tuple[tuple[int, int], ...] | None:
    """The set as half-open ranges, or None if it is not a box. An empty set has an empty range."""
    forms = [linear_form(each.lhs, symbols) for each in set.constraints]
    if any(form is None or len(form[0]) > 1 for form in forms):
        return None
    for each, form in zip(set.constraints, forms, strict=True):
        if form is not None and not form[0]:
            holds = form[1] == 0 if each.kind is AffineConstraintKind.eq else form[1] >= 0
            if not holds:
                return ((0, 0),) * max(1, set.num_dims) if set.num_dims else None
    ranges = bounds(set, symbols)
    if any(start is None or stop is None for start, stop in ranges):
        return None
    return tuple((start or 0, max(start or 0, stop or 0)) for start, stop in ranges)


def contains(set: AffineSet, point: Sequence[int], symbols: Sequence[int] = ()) -> bool:
    """Whether ``point`` satisfies every constraint."""
    for each in set.constraints:
        value = each.lhs.eval(point, symbols) - each.rhs.eval(point, symbols)
        if each.kind is AffineConstraintKind.eq and value != 0:
            return False
        if each.kind is AffineConstraintKind.ge and value < 0:
            return False
        if each.kind is AffineConstraintKind.le and value > 0:
            return False
    return True


def points(set: AffineSet, symbols: Sequence[int] = ()) -> Iterator[tuple[int, ...]]:
    """All points, the last dimension fastest; raises :class:`UnboundedSet` where a dimension has no constant bounds."""
    ranges = [_range(position, *limits) for position, limits in enumerate(bounds(set, symbols))]
    return (point for point in product(*ranges) if contains(set, point, symbols))


def _range(position: int, start: int | None, stop: int | None) -> range:
    if start is None or stop is None:
        raise UnboundedSet(
            f"dimension d{position} of the set has no constant {'lower' if start is None else 'upper'} bound",
            remedy=f"add a constraint on d{position} alone",
        )
    return range(start, stop)


@dataclass
class Enumeration:
    """Lists sets of one dimension, as long as no more than ``left`` candidates have to be looked at in all."""

    left: int

    def integers(self, set: AffineSet, symbols: Sequence[int] = (), *, least: int | None = None) -> list[int] | None:
        """The integers from ``least`` on that are in ``set``; None where it has no constant bounds, or too many."""
        if set.num_dims != 1 or set.num_symbols != len(symbols):
            return None
        try:
            ((start, stop),) = bounds(set, symbols)
            if stop is None or (start is None and least is None):
                return None
            first = max(limit for limit in (start, least) if limit is not None)
            self.left -= max(0, stop - first)
            return None if self.left < 0 else [n for n in range(first, stop) if contains(set, (n,), symbols)]
        except (ZeroDivisionError, OverflowError):  # a divisor that is zero here; a range that is too long
            return None
