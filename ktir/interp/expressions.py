"""Affine expressions and sets as functions of numbers and arrays, and the points of a set as a pattern of accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

from ktir.errors import DivisionByZero, LimitExceeded
from ktir.interp.numerics import Array, wrap
from ktir.interp.values import Site
from ktir.maths.sets import as_box, bounds

Evaluate = Callable[[Sequence[Any]], Any]
"""A function of the values of all dimensions, then all symbols."""

Kind = AffineBinaryOpKind
POINTS_AT_MOST = 1 << 26


@cache
def evaluator(expression: AffineExpr, dims: int) -> Evaluate:
    """``expression`` as a function; integer arrays broadcast."""
    if isinstance(expression, AffineConstantExpr):
        value = expression.value
        return lambda values: value
    if isinstance(expression, AffineDimExpr):
        position = expression.position
        return lambda values: values[position]
    if isinstance(expression, AffineSymExpr):
        position = dims + expression.position
        return lambda values: values[position]
    assert isinstance(expression, AffineBinaryOpExpr)
    left, right = evaluator(expression.lhs, dims), evaluator(expression.rhs, dims)
    match expression.kind:
        case Kind.Add:
            return lambda values: in_index(left(values) + right(values))
        case Kind.Mul:
            return lambda values: in_index(left(values) * right(values))
        case Kind.FloorDiv:
            return lambda values: left(values) // divisor(right(values))
        case Kind.CeilDiv:
            return lambda values: -(-left(values) // divisor(right(values)))
        case _:
            return lambda values: left(values) % divisor(right(values))


def in_index(value: Any) -> Any:
    """A Python integer as an index holds it, in 64 bits; arrays have wrapped already."""
    return wrap(value, 64) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63 else value


def divisor(value: Any) -> Any:
    """``value``; raises :class:`DivisionByZero` where it is zero, which numpy would let pass."""
    if isinstance(value, int) and value != 0:
        return value
    if isinstance(value, int) or not value.all():
        raise DivisionByZero("an affine expression divides by zero", remedy="keep the divisor positive")
    return value


def evaluators(map: AffineMap) -> tuple[Evaluate, ...]:
    """One function per result of ``map``."""
    return tuple(evaluator(result, map.num_dims) for result in map.results)


def apply(functions: Sequence[Evaluate], values: Sequence[Any], site: Site) -> tuple[Any, ...]:
    """All results; a fault gets the place of the operation."""
    try:
        return tuple(function(values) for function in functions)
    except DivisionByZero as fault:
        raise site.fail(DivisionByZero, "divides by zero in an affine expression", fault.remedy or "") from None


def member(set: AffineSet, values: Sequence[Any]) -> Any:
    """Whether points lie in ``set``, element by element; ``values`` are dimensions, then symbols."""
    inside: Any = True
    for each in set.constraints:
        difference = evaluator(each.lhs, set.num_dims)(values) - evaluator(each.rhs, set.num_dims)(values)
        if each.kind is AffineConstraintKind.eq:
            holds = difference == 0
        elif each.kind is AffineConstraintKind.ge:
            holds = difference >= 0
        else:
            holds = difference <= 0
        inside = inside & holds
    return inside


@dataclass(frozen=True, slots=True)
class Pattern:
    """The points of a set in the order of an access, laid out as ``shape``.

    A box has ``lows`` and ``extents`` per set dimension, and axis k of the shape runs along set dimension ``order[k]``.
    Any other set has ``points``, one row each, in order.
    """

    shape: tuple[int, ...]
    lows: tuple[int, ...]
    extents: tuple[int, ...]
    order: tuple[int, ...]
    points: Array | None = None

    def coordinate(self, dimension: int) -> Array:
        """Coordinate ``dimension`` of each point, with the axes (cores, shape..), extent 1 where it does not vary."""
        if self.points is not None:
            return self.points[:, dimension].reshape(1, *self.shape)
        axis = self.order.index(dimension)
        shape = [1] * (len(self.order) + 1)
        shape[axis + 1] = self.extents[dimension]
        return (self.lows[dimension] + np.arange(self.extents[dimension], dtype=np.int64)).reshape(shape)

    def limits(self, dimension: int) -> tuple[int, int]:
        """Smallest and largest coordinate along ``dimension``."""
        if self.points is None:
            return self.lows[dimension], self.lows[dimension] + self.extents[dimension] - 1
        column = self.points[:, dimension]
        return int(column.min()), int(column.max())

    @property
    def count(self) -> int:
        return prod(self.shape)


def permutation(order: AffineMap) -> tuple[int, ...] | None:
    """The dimension that each result of ``order`` is, or None where it is no permutation."""
    dims = tuple(each.position for each in order.results if isinstance(each, AffineDimExpr))
    return dims if sorted(dims) == list(range(order.num_dims)) and len(dims) == len(order.results) else None


class NotRectangular(Exception):
    """The points of a set do not fill the shape they are to be laid out in."""


@cache
def pattern(set: AffineSet, order: tuple[int, ...], shape: tuple[int, ...], symbols: tuple[int, ...]) -> Pattern:
    """The points of ``set`` in the order ``order``, laid out as ``shape`` (negative extents: whatever the set gives).

    Raises :class:`NotRectangular` where the number of points is not that of the shape.
    """
    box = as_box(set, symbols) if set.num_dims else ()
    if box is not None and (set.num_dims or member(set, symbols)):
        extents = tuple(stop - start for start, stop in box)
        natural = tuple(extents[dimension] for dimension in order)
        if all(given < 0 or given == found for given, found in zip(shape, natural, strict=True)):
            return Pattern(natural, tuple(start for start, _ in box), extents, order)
    points = enumerate_points(set, symbols)
    keys = tuple(points[:, dimension] for dimension in reversed(order))
    points = points[np.lexsort(keys)] if keys else points
    known = tuple(max(0, extent) for extent in shape)
    if any(extent < 0 for extent in shape) or prod(known) != len(points):
        raise NotRectangular(len(points))
    return Pattern(known, (), (), order, points)


def enumerate_points(set: AffineSet, symbols: Sequence[int]) -> Array:
    """All points, one a row, the last dimension fastest."""
    ranges = bounds(set, symbols)
    if any(start is None or stop is None for start, stop in ranges):
        raise LimitExceeded("the set has no constant bounds", remedy="bound each dimension by a constraint of its own")
    axes = [np.arange(start or 0, max(start or 0, stop or 0), dtype=np.int64) for start, stop in ranges]
    if prod(len(axis) for axis in axes) > POINTS_AT_MOST:
        raise LimitExceeded(
            f"the bounding box of a set has more than {POINTS_AT_MOST} points", remedy="use a smaller tile"
        )
    if not axes:
        return np.zeros((1 if member(set, symbols) else 0, 0), np.int64)
    grid = [each.ravel() for each in np.meshgrid(*axes, indexing="ij")]
    inside = np.broadcast_to(member(set, [*grid, *symbols]), grid[0].shape)
    return np.stack(grid, axis=1)[inside]
