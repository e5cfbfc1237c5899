"""Index expressions of unit programs: offsets, loop counts and core numbers, as functions of core and loop indices.

An expression is *linear* when it is a constant of the core plus multiples of loop indices; the constants and the
multiples may differ from core to core. What is not linear (a ``floordiv`` or ``mod`` that does not simplify) is kept as
the affine expression it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, lcm, prod

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from ktir.errors import LimitExceeded, VerifyError

PerCore = int | tuple[int, ...]
"""One number for all cores, or one for each."""

Evaluator = Callable[[int, Sequence[int]], int]
"""Value for a core number and the indices of the enclosing loops, outermost first."""

MOST_POINTS = 1_000_000


def at(value: PerCore, core: int) -> int:
    """The number of ``core``."""
    return value if isinstance(value, int) else value[core]


def combine(function: Callable[[int, int], int], left: PerCore, right: PerCore) -> PerCore:
    """``function`` applied core by core."""
    if isinstance(left, int) and isinstance(right, int):
        return function(left, right)
    cores = len(left) if isinstance(left, tuple) else len(right) if isinstance(right, tuple) else 0
    return tuple(function(at(left, core), at(right, core)) for core in range(cores))


def _is_zero(value: PerCore) -> bool:
    return value == 0 or (isinstance(value, tuple) and not any(value))


@dataclass(frozen=True, slots=True)
class Law:
    """``shift`` is what the value gains, always, when an index grows by ``period``."""

    period: int
    shift: int

    def over(self, steps: int) -> int:
        """The gain when the index grows by ``steps``, a multiple of the period."""
        return self.shift * (steps // self.period)


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` plus, for each (depth, factor) of ``terms``, factor times the index of the loop at that depth."""

    constant: PerCore
    terms: tuple[tuple[int, PerCore], ...] = ()

    @property
    def depths(self) -> frozenset[int]:
        """Loops the value depends on."""
        return frozenset(depth for depth, _ in self.terms)

    def value(self, core: int, indices: Sequence[int]) -> int:
        """The value for one core and iteration."""
        return at(self.constant, core) + sum(at(factor, core) * indices[depth] for depth, factor in self.terms)

    def evaluator(self) -> Evaluator:
        """A fast function for :meth:`value`."""
        constant, terms = self.constant, self.terms
        if not terms and isinstance(constant, int):
            return lambda core, indices: constant
        if not terms and isinstance(constant, tuple):
            return lambda core, indices: constant[core]
        if len(terms) == 1 and isinstance(constant, int) and isinstance(terms[0][1], int):
            depth, factor = terms[0][0], terms[0][1]
            return lambda core, indices: constant + factor * indices[depth]
        return self.value

    def bounds(self, core: int, ranges: Sequence[range]) -> tuple[int, int]:
        """Least and largest value over a box of loop indices, no range of which is empty."""
        return self.interval(core, [each.start for each in ranges], [each.stop - 1 for each in ranges])

    def fixed(self, core: int, depth: int, index: int) -> Linear:
        """The value on ``core`` where the index at ``depth`` is ``index``."""
        constant = at(self.constant, core) + sum(at(each, core) * index for place, each in self.terms if place == depth)
        return Linear(constant, tuple((place, at(each, core)) for place, each in self.terms if place != depth))

    def remainder(self, core: int, modulus: int) -> int | None:
        """The remainder by ``modulus`` if it is the same in all iterations."""
        if any(at(factor, core) % modulus for _, factor in self.terms):
            return None
        return at(self.constant, core) % modulus

    def interval(self, core: int, low: Sequence[int], high: Sequence[int]) -> tuple[int, int]:
        """Least and largest value for indices of which ``low <= index <= high``."""
        first = last = at(self.constant, core)
        for depth, factors in self.terms:
            factor = at(factors, core)
            first += factor * (low[depth] if factor > 0 else high[depth])
            last += factor * (high[depth] if factor > 0 else low[depth])
        return first, last

    def law(self, core: int, depth: int) -> Law:
        """How the value changes with the index at ``depth``."""
        return Law(1, next((at(factor, core) for place, factor in self.terms if place == depth), 0))

    def plus(self, other: Linear) -> Linear:
        """The sum."""
        terms = dict(self.terms)
        for depth, factor in other.terms:
            terms[depth] = combine(operator.add, terms.get(depth, 0), factor)
        kept = tuple((depth, factor) for depth, factor in sorted(terms.items()) if not _is_zero(factor))
        return Linear(combine(operator.add, self.constant, other.constant), kept)

    def times(self, factor: PerCore) -> Linear:
        """The product with a constant of the core."""
        terms = tuple((depth, combine(operator.mul, each, factor)) for depth, each in self.terms)
        kept = tuple((depth, each) for depth, each in terms if not _is_zero(each))
        return Linear(combine(operator.mul, self.constant, factor), kept)


@dataclass(frozen=True, slots=True)
class Computed:
    """``left`` and ``right`` joined, not linear; ``right`` is a constant of the core unless they are added."""

    kind: AffineBinaryOpKind
    left: Expression
    right: Expression

    @property
    def depths(self) -> frozenset[int]:
        """Loops the value depends on."""
        return self.left.depths | self.right.depths

    def value(self, core: int, indices: Sequence[int]) -> int:
        """The value for one core and iteration."""
        return _OPERATIONS[self.kind](self.left.value(core, indices), self.right.value(core, indices))

    def evaluator(self) -> Evaluator:
        """A fast function for :meth:`value`."""
        operation, left, right = _OPERATIONS[self.kind], self.left.evaluator(), self.right.evaluator()
        return lambda core, indices: operation(left(core, indices), right(core, indices))

    def bounds(self, core: int, ranges: Sequence[range]) -> tuple[int, int]:
        """Least and largest value over a box of loop indices, no range of which is empty.

        What grows by the same in every period is extreme in the first or the last one.
        """
        depths = sorted(self.depths)
        periods = [self.law(core, depth).period for depth in depths]
        if prod(min(len(ranges[d]), 2 * period) for d, period in zip(depths, periods, strict=True)) > MOST_POINTS:
            raise LimitExceeded(
                f"an address that is not linear in loops of {[len(ranges[depth]) for depth in depths]} iterations",
                remedy="write it with a loop for each term, so that it needs no floordiv or mod",
            )
        values: list[int] = []
        indices = [0] * len(ranges)
        for point in product(*(_ends(ranges[d], period) for d, period in zip(depths, periods, strict=True))):
            for depth, index in zip(depths, point, strict=True):
                indices[depth] = index
            values.append(self.value(core, indices))
        return min(values), max(values)

    def fixed(self, core: int, depth: int, index: int) -> Expression:
        """The value on ``core`` where the index at ``depth`` is ``index``."""
        return binary(self.kind, self.left.fixed(core, depth, index), self.right.fixed(core, depth, index))

    def remainder(self, core: int, modulus: int) -> int | None:
        """Not known without the loop counts."""
        return None

    def interval(self, core: int, low: Sequence[int], high: Sequence[int]) -> tuple[int, int]:
        """Bounds for indices of which ``low <= index <= high``, perhaps not reached."""
        first, last = self.left.interval(core, low, high)
        start, stop = self.right.interval(core, low, high)
        if self.kind is AffineBinaryOpKind.Add:
            return first + start, last + stop
        if self.kind is AffineBinaryOpKind.Mod:
            return (first % start, last % start) if first // start == last // start else (0, start - 1)
        corners = _OPERATIONS[self.kind](first, start), _OPERATIONS[self.kind](last, start)
        return min(corners), max(corners)

    def law(self, core: int, depth: int) -> Law:
        """How the value changes with the index at ``depth``."""
        law = self.left.law(core, depth)
        if self.kind is AffineBinaryOpKind.Add:
            other = self.right.law(core, depth)
            period = lcm(law.period, other.period)
            return Law(period, law.over(period) + other.over(period))
        factor = self.right.value(core, ())
        if self.kind is AffineBinaryOpKind.Mul:
            return Law(law.period, law.shift * factor)
        period = law.period * (factor // gcd(law.shift, factor))
        return Law(period, 0 if self.kind is AffineBinaryOpKind.Mod else law.over(period) // factor)


Expression = Linear | Computed

_OPERATIONS: Mapping[AffineBinaryOpKind, Callable[[int, int], int]] = {
    AffineBinaryOpKind.Add: operator.add,
    AffineBinaryOpKind.Mul: operator.mul,
    AffineBinaryOpKind.FloorDiv: lambda left, right: left // right,
    AffineBinaryOpKind.Mod: lambda left, right: left % right,
    AffineBinaryOpKind.CeilDiv: lambda left, right: -(-left // right),
}


def from_affine(expression: AffineExpr, dimensions: Sequence[Expression], symbols: Sequence[Expression]) -> Expression:
    """``expression`` with its dimensions and symbols replaced."""
    match expression:
        case AffineConstantExpr():
            return Linear(expression.value)
        case AffineDimExpr():
            return dimensions[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr():
            left = from_affine(expression.lhs, dimensions, symbols)
            right = from_affine(expression.rhs, dimensions, symbols)
            return binary(expression.kind, left, right)
        case _:
            raise TypeError(f"no affine expression: {expression}")


def binary(kind: AffineBinaryOpKind, left: Expression, right: Expression) -> Expression:
    """``left`` and ``right`` joined by an affine operation, linear wherever it is.

    Raises :class:`VerifyError` for a product of two indices and for a divisor that is no positive constant.
    """
    if kind is AffineBinaryOpKind.Mul and left.depths == frozenset():
        left, right = right, left
    if kind is not AffineBinaryOpKind.Add and right.depths:
        raise VerifyError("an index of a unit's program is affine in the loops around it")
    if kind not in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul) and _least(right) <= 0:
        raise VerifyError("an index is divided by positive constants only")
    if isinstance(left, Linear) and isinstance(right, Linear):
        joined = _linear(kind, left, right)
        if joined is not None:
            return joined
    return Computed(kind, left, right)


def _ends(indices: range, period: int) -> Sequence[int]:
    """All of ``indices``, or the first and the last ``period`` of them."""
    return indices if len(indices) <= 2 * period else (*indices[:period], *indices[-period:])


def _least(constant: Expression) -> int:
    """The least value over the cores of an expression without loop indices."""
    if isinstance(constant, Linear):
        return min(constant.constant) if isinstance(constant.constant, tuple) else constant.constant
    return 0


def _linear(kind: AffineBinaryOpKind, left: Linear, right: Linear) -> Linear | None:
    if kind is AffineBinaryOpKind.Add:
        return left.plus(right)
    if kind is AffineBinaryOpKind.Mul:
        if not right.terms:
            return left.times(right.constant)
        return right.times(left.constant) if not left.terms else None
    if right.terms or not isinstance(right.constant, int) or right.constant <= 0:
        return None
    divisor = right.constant
    factors = [factor for _, factor in left.terms]
    if any(part % divisor for factor in factors for part in (factor if isinstance(factor, tuple) else (factor,))):
        return None
    constant = combine(_OPERATIONS[kind], left.constant, divisor)
    if kind is AffineBinaryOpKind.Mod:
        return Linear(constant)
    return Linear(constant, tuple((depth, combine(int.__floordiv__, factor, divisor)) for depth, factor in left.terms))
