"""Affine expressions, maps and sets in canonical form: how they are built, and what they are worth.

The data classes are xDSL's (``AffineExpr``, ``AffineMap``, ``AffineSet``: plain trees). Its operators distribute
products over sums and refuse semi-affine products, so a text read with them does not come back as MLIR prints it. The
constructors here simplify exactly as far as MLIR's do: constants are folded and stand on the right, symbols stand right
of dimensions, equal terms are added up, and nothing is distributed.

Words. dimension: what a map or set ranges over. symbol: a parameter of the whole map. semi-affine: a product, quotient
or remainder by a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import ClassVar

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

Kind = AffineBinaryOpKind
ZERO = AffineConstantExpr(0)


def constant_value(expression: AffineExpr) -> int | None:
    """The number that ``expression`` is, or None."""
    return expression.value if isinstance(expression, AffineConstantExpr) else None


def is_symbolic(expression: AffineExpr) -> bool:
    """Whether no dimension occurs in ``expression``."""
    return not any(isinstance(part, AffineDimExpr) for part in walk(expression))


def walk(expression: AffineExpr) -> Iterator[AffineExpr]:
    """``expression`` and all its parts, without recursion, in no particular order."""
    pending = [expression]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, AffineBinaryOpExpr):
            pending += (part.lhs, part.rhs)


def largest_divisor(expression: AffineExpr) -> int:
    """A number that divides every value of ``expression``; 0 for the constant zero."""
    match expression:
        case AffineConstantExpr(value=value):
            return abs(value)
        case AffineBinaryOpExpr(kind=Kind.Mul):
            return largest_divisor(expression.lhs) * largest_divisor(expression.rhs)
        case AffineBinaryOpExpr(kind=Kind.Add | Kind.Mod):
            return gcd(largest_divisor(expression.lhs), largest_divisor(expression.rhs))
        case AffineBinaryOpExpr(rhs=AffineConstantExpr(value=divisor)) if divisor > 0:
            known = largest_divisor(expression.lhs)
            return known // divisor if known % divisor == 0 else 1
        case _:
            return 1


def _coefficient(expression: AffineExpr) -> tuple[AffineExpr, int]:
    """``expression`` as a term and its constant factor."""
    match expression:
        case AffineBinaryOpExpr(kind=Kind.Mul, lhs=term, rhs=AffineConstantExpr(value=factor)):
            return term, factor
        case _:
            return expression, 1


def _as_remainder(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr | None:
    """``e mod c`` for ``e + (e floordiv c) * -c``, else None."""
    match rhs:
        case AffineBinaryOpExpr(
            kind=Kind.Mul,
            lhs=AffineBinaryOpExpr(kind=Kind.FloorDiv, lhs=divided, rhs=AffineConstantExpr(value=divisor)),
            rhs=AffineConstantExpr(value=factor),
        ) if divided == lhs and factor == -divisor and divisor > 0:
            return mod(lhs, AffineConstantExpr(divisor))
        case _:
            return None


def add(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """The sum, a constant or symbolic part on the right."""
    match lhs, rhs:
        case AffineConstantExpr(value=a), AffineConstantExpr(value=b):
            return AffineConstantExpr(a + b)
        case AffineConstantExpr(), _:
            return add(rhs, lhs)
        case _, AffineConstantExpr(value=0):
            return lhs
        case AffineBinaryOpExpr(kind=Kind.Add, rhs=AffineConstantExpr(value=a)), AffineConstantExpr(value=b):
            return add(lhs.lhs, AffineConstantExpr(a + b))
        case _:
            pass
    if is_symbolic(lhs) and not is_symbolic(rhs):
        return add(rhs, lhs)
    if isinstance(rhs, AffineBinaryOpExpr) and rhs.kind is Kind.Add:
        return add(add(lhs, rhs.lhs), rhs.rhs)  # sums lean left, as their text is read
    (left_term, left_factor), (right_term, right_factor) = _coefficient(lhs), _coefficient(rhs)
    if left_term == right_term:
        return mul(left_term, AffineConstantExpr(left_factor + right_factor))
    if isinstance(lhs, AffineBinaryOpExpr) and lhs.kind is Kind.Add:
        if isinstance(lhs.rhs, AffineConstantExpr):
            return add(add(lhs.lhs, rhs), lhs.rhs)
        if (remainder := _as_remainder(lhs.rhs, rhs)) is not None:
            return add(lhs.lhs, remainder)
    if (remainder := _as_remainder(lhs, rhs)) is not None:
        return remainder
    return AffineBinaryOpExpr(Kind.Add, lhs, rhs)


def mul(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """The product; at most one side may hold dimensions."""
    match lhs, rhs:
        case AffineConstantExpr(value=a), AffineConstantExpr(value=b):
            return AffineConstantExpr(a * b)
        case AffineConstantExpr(), _:
            return mul(rhs, lhs)
        case _, AffineConstantExpr(value=1):
            return lhs
        case _, AffineConstantExpr(value=0):
            return rhs
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr(value=a)), AffineConstantExpr(value=b):
            return mul(lhs.lhs, AffineConstantExpr(a * b))
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr()), _:
            return mul(mul(lhs.lhs, rhs), lhs.rhs)
        case _:
            pass
    if not is_symbolic(rhs):
        return AffineBinaryOpExpr(Kind.Mul, rhs, lhs) if is_symbolic(lhs) else AffineBinaryOpExpr(Kind.Mul, lhs, rhs)
    return AffineBinaryOpExpr(Kind.Mul, lhs, rhs)


def floordiv(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """The quotient rounded down; by zero or less it is left as it stands."""
    divisor = constant_value(rhs)
    if divisor is None or divisor <= 0:
        return AffineBinaryOpExpr(Kind.FloorDiv, lhs, rhs)
    match lhs:
        case AffineConstantExpr(value=value):
            return AffineConstantExpr(value // divisor)
        case _ if divisor == 1:
            return lhs
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr(value=factor)) if factor % divisor == 0:
            return mul(lhs.lhs, AffineConstantExpr(factor // divisor))
        case AffineBinaryOpExpr(kind=Kind.Add) if _one_side_divides(lhs, divisor):
            return add(floordiv(lhs.lhs, rhs), floordiv(lhs.rhs, rhs))
        case _:
            return AffineBinaryOpExpr(Kind.FloorDiv, lhs, rhs)


def _one_side_divides(total: AffineBinaryOpExpr, divisor: int) -> bool:
    return any(largest_divisor(part) % divisor == 0 for part in (total.lhs, total.rhs))


def ceildiv(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """The quotient rounded up; by zero or less it is left as it stands."""
    divisor = constant_value(rhs)
    if divisor is None or divisor <= 0:
        return AffineBinaryOpExpr(Kind.CeilDiv, lhs, rhs)
    match lhs:
        case AffineConstantExpr(value=value):
            return AffineConstantExpr(-(-value // divisor))
        case _ if divisor == 1:
            return lhs
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr(value=factor)) if factor % divisor == 0:
            return mul(lhs.lhs, AffineConstantExpr(factor // divisor))
        case _:
            return AffineBinaryOpExpr(Kind.CeilDiv, lhs, rhs)


def mod(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """The remainder, never negative; by zero or less it is left as it stands."""
    divisor = constant_value(rhs)
    if divisor is None or divisor <= 0:
        return AffineBinaryOpExpr(Kind.Mod, lhs, rhs)
    if isinstance(lhs, AffineConstantExpr):
        return AffineConstantExpr(lhs.value % divisor)
    if largest_divisor(lhs) % divisor == 0:
        return ZERO
    match lhs:
        case AffineBinaryOpExpr(kind=Kind.Add) if largest_divisor(lhs.lhs) % divisor == 0:
            return mod(lhs.rhs, rhs)
        case AffineBinaryOpExpr(kind=Kind.Add) if largest_divisor(lhs.rhs) % divisor == 0:
            return mod(lhs.lhs, rhs)
        case AffineBinaryOpExpr(kind=Kind.Mod, rhs=AffineConstantExpr(value=inner)) if inner % divisor == 0:
            return mod(lhs.lhs, rhs)
        case _:
            return AffineBinaryOpExpr(Kind.Mod, lhs, rhs)


def negate(expression: AffineExpr) -> AffineExpr:
    return mul(expression, AffineConstantExpr(-1))


def subtract(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    return add(lhs, negate(rhs))


def combine(kind: AffineBinaryOpKind, lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """The canonical form of one binary operation."""
    build: dict[AffineBinaryOpKind, Callable[[AffineExpr, AffineExpr], AffineExpr]] = {
        Kind.Add: add,
        Kind.Mul: mul,
        Kind.FloorDiv: floordiv,
        Kind.CeilDiv: ceildiv,
        Kind.Mod: mod,
    }
    return build[kind](lhs, rhs)


def constraint(kind: AffineConstraintKind, lhs: AffineExpr, rhs: AffineExpr) -> AffineConstraintExpr:
    """``lhs kind rhs`` as an expression that is at least, or exactly, zero."""
    if kind is AffineConstraintKind.le:
        kind, lhs, rhs = AffineConstraintKind.ge, rhs, lhs
    return AffineConstraintExpr(kind, subtract(lhs, rhs), ZERO, canonicalize=False)


ALWAYS = AffineConstraintExpr(AffineConstraintKind.eq, ZERO, ZERO, canonicalize=False)
"""The constraint that excludes nothing; it stands alone in a set without any other."""


def canonical_expression(expression: AffineExpr) -> AffineExpr:
    """``expression`` rebuilt from its leaves with the constructors of this module."""
    if not isinstance(expression, AffineBinaryOpExpr):
        return expression
    return combine(expression.kind, canonical_expression(expression.lhs), canonical_expression(expression.rhs))


def canonical_map(map: AffineMap) -> AffineMap:
    return AffineMap(map.num_dims, map.num_symbols, tuple(canonical_expression(result) for result in map.results))


def canonical_set(set: AffineSet) -> AffineSet:
    constraints = tuple(
        constraint(each.kind, canonical_expression(each.lhs), canonical_expression(each.rhs))
        for each in set.constraints
    )
    return AffineSet(set.num_dims, set.num_symbols, constraints or (ALWAYS,))


def substitute(expression: AffineExpr, dims: Sequence[AffineExpr], symbols: Sequence[AffineExpr]) -> AffineExpr:
    """``expression`` with its dimensions and symbols replaced, in canonical form."""
    match expression:
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineSymExpr(position=position):
            return symbols[position]
        case AffineBinaryOpExpr(kind=kind):
            return combine(kind, substitute(expression.lhs, dims, symbols), substitute(expression.rhs, dims, symbols))
        case _:
            return expression


def sorted_expression(expression: AffineExpr) -> AffineExpr:
    """``expression`` with the terms of each sum in the order of their variables, dimensions before symbols."""
    if not isinstance(expression, AffineBinaryOpExpr):
        return expression
    if expression.kind is not Kind.Add:
        return combine(expression.kind, sorted_expression(expression.lhs), sorted_expression(expression.rhs))
    terms = sorted((sorted_expression(term) for term in _terms(expression)), key=_rank)
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _terms(expression: AffineExpr) -> list[AffineExpr]:
    if isinstance(expression, AffineBinaryOpExpr) and expression.kind is Kind.Add:
        return [*_terms(expression.lhs), *_terms(expression.rhs)]
    return [expression]


def _rank(term: AffineExpr) -> tuple[int, int]:
    """Where a term stands in a sorted sum: dimensions, symbols, quotients and remainders, the constant."""
    variable, _ = _coefficient(term)
    match variable:
        case AffineDimExpr(position=position):
            return 0, position
        case AffineSymExpr(position=position):
            return 1, position
        case AffineConstantExpr():
            return 3, 0
        case _:
            return 2, 0


# ----------------------------------------------------------------------------------------------------------------- text


def expression_text(
    expression: AffineExpr, *, dims: Sequence[str] | None = None, syms: Sequence[str] | None = None
) -> str:
    """``expression`` as MLIR prints it; ``dims`` and ``syms`` name the variables, by default d0.. and s0.."""
    return _Text(dims, syms).weak(expression)


def map_text(map: AffineMap) -> str:
    """``(d0, d1)[s0] -> (d0 + s0, d1)``"""
    results = ", ".join(expression_text(result) for result in map.results)
    return f"{_space_text(map.num_dims, map.num_symbols)} -> ({results})"


def set_text(set: AffineSet) -> str:
    """``(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)``"""
    constraints = ", ".join(
        f"{expression_text(each.lhs)} {each.kind.value} 0" for each in canonical_set(set).constraints
    )
    return f"{_space_text(set.num_dims, set.num_symbols)} : ({constraints})"


def _space_text(dims: int, symbols: int) -> str:
    text = f"({', '.join(f'd{position}' for position in range(dims))})"
    return text + (f"[{', '.join(f's{position}' for position in range(symbols))}]" if symbols else "")


class _Text:
    """Prints expressions. weak: below a sum or alone; strong: below a product, where a sum needs parentheses."""

    OPERATORS: ClassVar = {
        Kind.Add: "+",
        Kind.Mul: "*",
        Kind.FloorDiv: "floordiv",
        Kind.CeilDiv: "ceildiv",
        Kind.Mod: "mod",
    }

    def __init__(self, dims: Sequence[str] | None, syms: Sequence[str] | None) -> None:
        self.dims, self.syms = dims, syms

    def strong(self, expression: AffineExpr) -> str:
        text = self.weak(expression)
        return f"({text})" if isinstance(expression, AffineBinaryOpExpr) else text

    def weak(self, expression: AffineExpr) -> str:
        match expression:
            case AffineConstantExpr(value=value):
                return str(value)
            case AffineDimExpr(position=position):
                return self.dims[position] if self.dims else f"d{position}"
            case AffineSymExpr(position=position):
                return self.syms[position] if self.syms else f"s{position}"
            case AffineBinaryOpExpr(kind=Kind.Mul, lhs=term, rhs=AffineConstantExpr(value=-1)):
                return f"-{self.strong(term)}"
            case AffineBinaryOpExpr(kind=Kind.Add):
                return self.sum(expression)
            case AffineBinaryOpExpr():
                return f"{self.strong(expression.lhs)} {self.OPERATORS[expression.kind]} {self.strong(expression.rhs)}"
            case _:
                raise ValueError(f"no text for {expression!r}")

    def sum(self, expression: AffineBinaryOpExpr) -> str:
        left = self.weak(expression.lhs)
        match expression.rhs:
            case AffineConstantExpr(value=value) if value < 0:
                return f"{left} - {-value}"
            case AffineBinaryOpExpr(kind=Kind.Mul, lhs=term, rhs=AffineConstantExpr(value=-1)):
                nested = isinstance(term, AffineBinaryOpExpr) and term.kind is Kind.Add
                return f"{left} - {self.strong(term) if nested else self.weak(term)}"
            case AffineBinaryOpExpr(kind=Kind.Mul, lhs=term, rhs=AffineConstantExpr(value=value)) if value < -1:
                return f"{left} - {self.strong(term)} * {-value}"
            case right:
                return f"{left} + {self.weak(right)}"
