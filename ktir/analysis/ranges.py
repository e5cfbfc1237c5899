"""The values that index arithmetic can take, for all cores and all loop iterations at once.

A *frame* is a set of *points*; a point is one execution of a piece of code: a core, and one iteration of every loop
round it that is enumerated. A frame inside a loop or a branch knows for each of its points the point of the frame
outside. A *value* is an affine form: a constant per point plus a multiple of each *symbol*. What does not depend on
an argument or on memory has no symbols, and is known exactly at every point.

Symbols stand for what is not enumerated: arguments, loaded values, and the iterations of loops too long to list. A
symbol is *attained* when its bounds really occur at the point, so that a bound of a form over such symbols is reached
and not only not exceeded; a *counter*, an attained symbol made from no other, takes every value between them. That
difference is the one between a proven fault and an open question.

Bounds are doubles with infinities: exact up to 2^53, far beyond any address. All counts are elements or iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

Integers: TypeAlias = NDArray[np.int64]
Bounds: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]
Predicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]

Scalar = TypeVar("Scalar", bound=np.generic)

ZERO = np.zeros((), np.int64)
ONE = np.ones((), np.int64)


@dataclass(frozen=True, eq=False)
class Frame:
    """The points at which a piece of code runs.

    ``origin`` maps each point to one of ``outer``, None when they are the same points. ``certain`` tells for each point
    whether it is reached in every run, or only if something undecided turns out so. ``core`` is the flat tile id.
    """

    core: Integers
    certain: Truths
    outer: Frame | None = None
    origin: Integers | None = None

    @property
    def points(self) -> int:
        return len(self.core)

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else 1 + self.outer.depth

    def within(self, origin: Integers, certain: Truths | None = None) -> Frame:
        """The frame whose points stem from the points ``origin`` of this one."""
        reached = self.certain[origin]
        return Frame(self.core[origin], reached if certain is None else reached & certain, self, origin)

    def doubtful(self) -> Frame:
        """The same points, none of them certain to be reached."""
        return Frame(self.core, np.zeros_like(self.certain), self, None)

    def lift(self, values: NDArray[Scalar], of: Frame | None) -> NDArray[Scalar]:
        """Values given at the points of the enclosing frame ``of``, at the points of this one."""
        if values.ndim == 0 or of is self or of is None:
            return values
        assert self.outer is not None, "a value is used outside the code that defines it"
        outer = self.outer.lift(values, of)
        return outer if self.origin is None else outer[self.origin]


def cores(count: int) -> Frame:
    """The outermost frame of a kernel: one point for each core."""
    return Frame(np.arange(count, dtype=np.int64), np.ones(count, np.bool_))


@dataclass(frozen=True, eq=False)
class Symbol:
    """Something between ``lower`` and ``upper`` (given at the points of ``frame``), both included.

    ``below`` bounds it from above by a form of its own, e.g. a loop counter by an argument. ``multiple``: it is a
    multiple of this number. ``sources``: the symbols it was made from; two symbols with a common source may not take
    their bounds together. ``quotients``: the pointer symbol counted in larger units, by the bytes of a unit.
    """

    name: str
    frame: Frame | None
    lower: Bounds
    upper: Bounds
    attained: bool = False
    below: Value | None = None
    multiple: int = 1
    pointer: bool = False
    origin: frozenset[Symbol] = frozenset()
    whole: Symbol | None = None
    divisor: int = 1
    quotients: dict[int, Symbol] = field(default_factory=dict[int, "Symbol"])

    @property
    def is_counter(self) -> bool:
        """Whether every value between the bounds occurs."""
        return self.attained and not self.origin

    def divided(self, by: int) -> Symbol:
        """The pointer divided by a number that divides it, always the same symbol."""
        if by not in self.quotients:
            whole, divisor = self.whole or self, self.divisor * by
            bounds = self.lower / by, self.upper / by
            self.quotients[by] = replace(
                self,
                lower=bounds[0],
                upper=bounds[1],
                multiple=self.multiple // by,
                whole=whole,
                divisor=divisor,
                quotients={},
            )
        return self.quotients[by]

    @property
    def sources(self) -> frozenset[Symbol]:
        return self.origin or frozenset((self,))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Value:
    """``constant`` + sum of ``terms[symbol] * symbol`` at the points of ``frame`` (None: the same everywhere)."""

    constant: Integers
    terms: Mapping[Symbol, Integers] = field(default_factory=dict[Symbol, Integers])
    frame: Frame | None = None

    # -------------------------------------------------------------------------------------------------- questions

    def at(self, frame: Frame) -> Value:
        """The same value at the points of a frame further inside."""
        if self.frame is None or self.frame is frame:
            return self
        terms = {s: frame.lift(c, self.frame) for s, c in self.terms.items()}
        return Value(frame.lift(self.constant, self.frame), terms, frame)

    @property
    def known(self) -> bool:
        """Whether the value has no symbols."""
        return not self.terms

    @property
    def literal(self) -> int | None:
        """The one integer that the value is at every point, if it is."""
        if self.terms or self.constant.size == 0:
            return None
        first = int(self.constant.flat[0])
        return first if self.constant.ndim == 0 or bool((self.constant == first).all()) else None

    def upper(self) -> Bounds:
        """The least proven upper bound at each point."""
        return self._bound(highest=True)

    def lower(self) -> Bounds:
        """The greatest proven lower bound at each point."""
        return self._bound(highest=False)

    def _bound(self, *, highest: bool) -> Bounds:
        direct = self._direct_bound(highest)
        for symbol, coefficient in self.terms.items():
            if symbol.below is None or not highest or not bool((coefficient >= 0).all()):
                continue
            below = symbol.below if self.frame is None else symbol.below.at(self.frame)
            replaced = self - Value(ZERO, {symbol: coefficient}, self.frame) + scale(below, coefficient)
            direct = np.minimum(direct, replaced.upper())
        return direct

    def _direct_bound(self, highest: bool) -> Bounds:
        total = self.constant.astype(np.float64)
        for symbol, coefficient in self.terms.items():
            factor = coefficient.astype(np.float64)
            low, high = (self._lifted(b, symbol.frame) for b in (symbol.lower, symbol.upper))
            rising, falling = (high, low) if highest else (low, high)
            reach = np.where(factor >= 0, rising, falling)
            total = total + np.where(factor == 0, 0.0, factor * np.where(factor == 0, 0.0, reach))
        return total

    def _lifted(self, bound: Bounds, frame: Frame | None) -> Bounds:
        return bound if self.frame is None or bound.ndim == 0 else self.frame.lift(bound, frame)

    def attained(self) -> bool:
        """Whether the bounds are really taken at each point, by some iteration each."""
        seen: set[Symbol] = set()
        for symbol in self.terms:
            if not symbol.attained or seen & symbol.sources:
                return False
            seen |= symbol.sources
        return True

    # ------------------------------------------------------------------------------------------------- arithmetic

    def __add__(self, other: Value) -> Value:
        frame, a, b = together(self, other)
        terms = dict(a.terms)
        for symbol, coefficient in b.terms.items():
            terms[symbol] = terms[symbol] + coefficient if symbol in terms else coefficient
        return Value(a.constant + b.constant, {s: c for s, c in terms.items() if c.any()}, frame)

    def __neg__(self) -> Value:
        return Value(-self.constant, {s: -c for s, c in self.terms.items()}, self.frame)

    def __sub__(self, other: Value) -> Value:
        return self + -other

    def __repr__(self) -> str:
        return " + ".join([str(self.constant.tolist()), *(f"{c}*{s}" for s, c in self.terms.items())])


def together(*values: Value) -> tuple[Frame | None, Value, Value]:
    """The innermost frame of two values, and both at its points."""
    frames = [v.frame for v in values if v.frame is not None]
    if not frames:
        return None, values[0], values[1]
    frame = max(frames, key=lambda f: f.depth)
    return frame, values[0].at(frame), values[1].at(frame)


def constant(number: int) -> Value:
    """An integer that is the same everywhere; kept modulo 2^64, as ``index`` is."""
    return Value(np.asarray(wrapped(number, 64), np.int64))


def wrapped(number: int, bits: int) -> int:
    """The signed integer of ``bits`` bits that ``number`` is stored as."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def symbol(
    name: str,
    frame: Frame | None = None,
    lower: Bounds | float = -np.inf,
    upper: Bounds | float = np.inf,
    *,
    attained: bool = False,
    below: Value | None = None,
    multiple: int = 1,
    pointer: bool = False,
    sources: frozenset[Symbol] = frozenset(),
) -> Value:
    """A new symbol as a value."""
    bounds = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    made = Symbol(name, frame, *bounds, attained, below, multiple, pointer, sources)
    return Value(ZERO, {made: ONE}, frame)


def scale(value: Value, by: Integers) -> Value:
    """``value * by``, for a factor per point of the value's own frame, or one for all."""
    terms = {s: c * by for s, c in value.terms.items()}
    return Value(value.constant * by, {s: c for s, c in terms.items() if c.any()}, value.frame)


def multiply(a: Value, b: Value) -> Value:
    """``a * b``; an interval where both have symbols."""
    frame, a, b = together(a, b)
    if a.known or b.known:
        factor, scaled = (a, b) if a.known else (b, a)
        product = scale(scaled, factor.constant)
        return Value(product.constant, product.terms, frame)
    corners = [x * y for x in (a.lower(), a.upper()) for y in (b.lower(), b.upper())]
    finite = [np.where(np.isnan(c), 0.0, c) for c in corners]
    low, high = np.minimum.reduce(finite), np.maximum.reduce(finite)
    return opaque("product", frame, a, b, lower=low, upper=high)


def sources_of(*values: Value) -> frozenset[Symbol]:
    """The symbols that values were made from."""
    return frozenset(source for value in values for symbol_ in value.terms for source in symbol_.sources)


def opaque(
    name: str, frame: Frame | None, *of: Value, lower: Bounds | float = -np.inf, upper: Bounds | float = np.inf
) -> Value:
    """A value of which only bounds are known."""
    return symbol(name, frame, lower, upper, sources=sources_of(*of))


def floor_divide(a: Value, by: int) -> Value:
    """``a floordiv by`` for a positive ``by``."""
    if a.known:
        return Value(a.constant // by, {}, a.frame)
    if all(divides(by, s, c) for s, c in a.terms.items()):
        return Value(a.constant // by, dict(quotient(by, s, c) for s, c in a.terms.items()), a.frame)
    low, high = np.floor(a.lower() / by), np.floor(a.upper() / by)
    return symbol("quotient", a.frame, low, high, attained=a.attained(), sources=sources_of(a))


def divides(by: int, symbol_: Symbol, coefficient: Integers) -> bool:
    """Whether ``by`` divides ``coefficient * symbol`` whatever the symbol is."""
    pointer = symbol_.pointer and symbol_.multiple % by == 0
    return pointer or not bool((coefficient % by).any())


def quotient(by: int, symbol_: Symbol, coefficient: Integers) -> tuple[Symbol, Integers]:
    """``coefficient * symbol / by`` as a term."""
    if not bool((coefficient % by).any()):
        return symbol_, coefficient // by
    return symbol_.divided(by), coefficient


def modulo(a: Value, by: int) -> Value:
    """``a mod by`` for a positive ``by``; never negative."""
    if a.known:
        return Value(a.constant % by, {}, a.frame)
    if all(divides(by, s, c) for s, c in a.terms.items()):
        return Value(a.constant % by, {}, a.frame)
    low, high = a.lower(), a.upper()
    with np.errstate(invalid="ignore"):
        same = np.floor(low / by) == np.floor(high / by)
    if bool(np.isfinite(low).all()) and bool(same.all()):
        return a - Value((np.floor(low / by) * by).astype(np.int64), {}, a.frame)
    counts = len(a.terms) == 1 and all(s.is_counter and bool((abs(c) == 1).all()) for s, c in a.terms.items())
    full = counts and bool((high - low >= by - 1).all())
    return symbol("remainder", a.frame, 0.0, float(by - 1), attained=full, sources=sources_of(a))


def choose(condition: Value, a: Value, b: Value) -> Value:
    """``a`` where ``condition`` is 1, ``b`` where it is 0, and anything between the two where that is open."""
    frame, a, b = together(a, b)
    frame, condition, a = together(condition, a)
    if frame is not None:
        b = b.at(frame)
    yes, no = condition.lower() == 1, condition.upper() == 0
    if not bool((yes | no).all()):
        low, high = np.minimum(a.lower(), b.lower()), np.maximum(a.upper(), b.upper())
        return opaque("choice", frame, a, b, lower=low, upper=high)
    terms = {s: np.where(no, b.terms.get(s, ZERO), a.terms.get(s, ZERO)) for s in {**a.terms, **b.terms}}
    return Value(np.where(no, b.constant, a.constant), {s: c for s, c in terms.items() if c.any()}, frame)


def least(a: Value, b: Value) -> Value:
    """The smaller of two values."""
    order = compare("sle", a, b)
    if order.known:
        return choose(order, a, b)
    frame, a, b = together(a, b)
    lower, upper = np.minimum(a.lower(), b.lower()), np.minimum(a.upper(), b.upper())
    below = next((each for each in (b, a) if not each.known), None)
    return symbol("least", frame, lower, upper, below=below, sources=sources_of(a, b))


def greatest(a: Value, b: Value) -> Value:
    """The larger of two values."""
    return -least(-a, -b)


def compare(predicate: Predicate, a: Value, b: Value) -> Value:
    """1 where the comparison holds, 0 where it does not, a symbol between 0 and 1 where it is open.

    Unsigned predicates are decided only for values that are not negative.
    """
    if predicate[0] == "u":
        if not (bool((a.lower() >= 0).all()) and bool((b.lower() >= 0).all())):
            return opaque("comparison", together(a, b)[0], a, b, lower=0.0, upper=1.0)
        return compare("s" + predicate[1:], a, b)  # type: ignore[arg-type]
    if predicate in ("ne", "sge", "sgt"):
        opposite: dict[str, Predicate] = {"ne": "eq", "sge": "slt", "sgt": "sle"}
        return constant(1) - compare(opposite[predicate], a, b)
    difference = a - b
    low, high = difference.lower(), difference.upper()
    if predicate == "eq":
        holds, fails = (low == 0) & (high == 0), (low > 0) | (high < 0)
    elif predicate == "slt":
        holds, fails = high < 0, low >= 0
    else:
        holds, fails = high <= 0, low > 0
    open_ = ~(holds | fails)
    known = Value(np.asarray(holds, np.int64), {}, difference.frame)
    if not bool(open_.any()):
        return known
    doubt = opaque("comparison", difference.frame, a, b, lower=0.0, upper=1.0)
    return known + scale(doubt, np.asarray(open_, np.int64))


def narrowed(value: Value, bits: int) -> Value:
    """``value`` as an integer of ``bits`` bits holds it; unknown where it may wrap and is not exactly known."""
    if bits >= 64:
        return value
    half = 1 << (bits - 1)
    if value.known:
        return Value((value.constant + half) % (2 * half) - half, {}, value.frame)
    if bool((value.lower() >= -half).all()) and bool((value.upper() < half).all()):
        return value
    return opaque("wrapped", value.frame, value, lower=float(-half), upper=float(half - 1))


def evaluate(expression: AffineExpr, dims: Sequence[Value], symbols: Sequence[Value]) -> Value:
    """An affine expression of values. Division and remainder by what is not a positive constant are left open."""
    match expression:
        case AffineConstantExpr():
            return constant(expression.value)
        case AffineDimExpr():
            return dims[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr():
            left, right = (evaluate(side, dims, symbols) for side in (expression.lhs, expression.rhs))
            return combine(expression.kind, left, right)
        case _:
            raise AssertionError(f"no such affine expression: {expression}")


def combine(kind: AffineBinaryOpKind, left: Value, right: Value) -> Value:
    if kind is AffineBinaryOpKind.Add:
        return left + right
    if kind is AffineBinaryOpKind.Mul:
        return multiply(left, right)
    by = right.literal
    if by is None or by <= 0:
        return opaque(kind.name, together(left, right)[0], left, right)
    if kind is AffineBinaryOpKind.FloorDiv:
        return floor_divide(left, by)
    if kind is AffineBinaryOpKind.Mod:
        return modulo(left, by)
    return -floor_divide(-left, by)
