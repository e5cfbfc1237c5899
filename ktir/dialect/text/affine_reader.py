"""Reads affine maps, sets and subscripts from text, in MLIR's canonical form and with semi-affine expressions.

xDSL's reader distributes products, refuses symbols as divisors and knows SSA names only as symbols in square brackets;
KTIR needs all three. Names are looked up by the caller's ``leaf``: a bare identifier in a map, ``%x`` or ``symbol(%x)``
in a subscript.
"""

# The token functions of xDSL's parser are private but there is no other door to them; this module and parser.py are the
# only ones that use them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir.affine import (
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
from xdsl.parser import AttrParser, UnresolvedOperand
from xdsl.parser import Parser as XdslParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ktir.dialect.text.leniency import tolerate
from ktir.maths.affine import ALWAYS, combine, constraint, is_symbolic, negate, substitute, subtract

Leaf = Callable[[], AffineExpr | None]
"""Reads a variable if one stands at the current position."""

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "floordiv": 2, "ceildiv": 2, "mod": 2}
OLD_OPERATORS = {"/": "floordiv", "%": "mod"}
"""How the first specification wrote quotients and remainders in subscripts (rule M3)."""
KINDS = {
    "+": AffineBinaryOpKind.Add,
    "*": AffineBinaryOpKind.Mul,
    "floordiv": AffineBinaryOpKind.FloorDiv,
    "ceildiv": AffineBinaryOpKind.CeilDiv,
    "mod": AffineBinaryOpKind.Mod,
}
MAX_DEPTH = 256
"""How deep parentheses and signs may nest in one expression."""
MAX_TERMS = 2048
"""How many operators one expression may hold."""


@dataclass
class ExpressionReader:
    """Reads one expression after another from ``parser``; variables are what ``leaf`` reads."""

    parser: AttrParser
    leaf: Leaf
    reads_old_operators: bool = False
    depth: int = 0
    terms: int = 0

    def expression(self) -> AffineExpr:
        return self._operators(self._primary(), 1)

    def _operators(self, left: AffineExpr, least: int) -> AffineExpr:
        while (precedence := self._precedence()) >= least:
            operator = self.parser._consume_token()
            self.terms += 1
            if self.terms > MAX_TERMS:
                self.parser.raise_error(f"affine expression has more than {MAX_TERMS} operators", operator.span)
            right = self._primary()
            if self._precedence() > precedence:
                right = self._operators(right, precedence + 1)
            left = self._combine(operator.text, left, right, operator.span.start)
        return left

    def _precedence(self) -> int:
        """Of the operator at the current position; 0 where there is none."""
        text = self.parser._current_token.text
        return PRECEDENCE.get(OLD_OPERATORS.get(text, text) if self.reads_old_operators else text, 0)

    def _combine(self, operator: str, left: AffineExpr, right: AffineExpr, position: int) -> AffineExpr:
        if operator == "-":
            return subtract(left, right)
        if operator in OLD_OPERATORS:
            tolerate(self.parser, "M3", f"'{operator}' is written '{OLD_OPERATORS[operator]}' now", position)
            operator = OLD_OPERATORS[operator]
        if operator == "*" and not is_symbolic(left) and not is_symbolic(right):
            self.parser.raise_error(
                "non-affine expression: at least one of the multiply operands has to be either a constant or symbolic",
                position,
            )
        if operator in ("floordiv", "ceildiv", "mod"):
            if not is_symbolic(right):
                self.parser.raise_error(
                    f"non-affine expression: right operand of {operator} has to be either a constant or symbolic",
                    position,
                )
            if isinstance(right, AffineConstantExpr) and right.value <= 0:
                self.parser.raise_error(
                    f"right operand of {operator} must be positive, but got: {right.value}", position
                )
        return combine(KINDS[operator], left, right)

    def _primary(self) -> AffineExpr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.parser.raise_error(f"nesting deeper than {MAX_DEPTH} levels in an affine expression")
        try:
            return self._shallow_primary()
        finally:
            self.depth -= 1

    def _shallow_primary(self) -> AffineExpr:
        if (variable := self.leaf()) is not None:
            return variable
        parser = self.parser
        if parser.parse_optional_punctuation("(") is not None:
            inner = self.expression()
            parser.parse_punctuation(")", " after affine expression")
            return inner
        if parser._parse_optional_token(MLIRTokenKind.MINUS) is not None:
            return negate(self._primary())
        if (number := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
            return AffineConstantExpr(number)
        parser.raise_error("expected affine expression")


# -------------------------------------------------------------------------------------------------------- maps and sets


def _space(parser: AttrParser) -> dict[str, AffineExpr]:
    """Reads ``(d0, d1)[s0]`` into what each name stands for."""

    def name() -> str:
        token = parser._parse_token(MLIRTokenKind.BARE_IDENT, "expected bare identifier")
        if token.text in names:
            parser.raise_error(f"redefinition of identifier '{token.text}'", token.span)
        names[token.text] = AffineConstantExpr(0)
        return token.text

    names: dict[str, AffineExpr] = {}
    for position, dimension in enumerate(parser.parse_comma_separated_list(parser.Delimiter.PAREN, name)):
        names[dimension] = AffineDimExpr(position)
    symbols = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, name) or []
    for position, symbol in enumerate(symbols):
        names[symbol] = AffineSymExpr(position)
    return names


def _named_leaf(parser: AttrParser, names: dict[str, AffineExpr]) -> Leaf:
    def leaf() -> AffineExpr | None:
        token = parser._current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return None
        if token.text not in names:
            parser.raise_error(f"use of undeclared identifier '{token.text}'", token.span)
        return names[parser._consume_token().text]

    return leaf


def _counts(names: dict[str, AffineExpr]) -> tuple[int, int]:
    dimensions = sum(isinstance(variable, AffineDimExpr) for variable in names.values())
    return dimensions, len(names) - dimensions


def parse_map(parser: AttrParser) -> AffineMap:
    """``(d0, d1)[s0] -> (d0 + s0, d1)``"""
    names = _space(parser)
    parser.parse_punctuation("->", " in affine map")
    results = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: ExpressionReader(parser, _named_leaf(parser, names)).expression()
    )
    return AffineMap(*_counts(names), tuple(results))


def parse_set(parser: AttrParser) -> AffineSet:
    """``(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)``; also ``<=`` and a right side other than zero."""
    names = _space(parser)
    parser.parse_punctuation(":", " in integer set")

    def read_constraint() -> AffineConstraintExpr:
        left = ExpressionReader(parser, _named_leaf(parser, names)).expression()
        kind = _relation(parser)
        return constraint(kind, left, ExpressionReader(parser, _named_leaf(parser, names)).expression())

    constraints = parser.parse_comma_separated_list(parser.Delimiter.PAREN, read_constraint)
    return AffineSet(*_counts(names), tuple(constraints) or (ALWAYS,))


def _relation(parser: AttrParser) -> AffineConstraintKind:
    """``>=``, ``<=`` or ``==``; the lexer gives two tokens for each."""
    start = parser._current_token.span
    text = parser._consume_token().text
    if text in (">", "<", "=") and parser._current_token.text == "=" and parser.pos == start.end:
        parser._consume_token()
        return AffineConstraintKind(text + "=")
    parser.raise_error("expected '== 0' or '>= 0' at end of affine constraint", start)


# ----------------------------------------------------------------------------------------------------------- subscripts


def value_key(operand: UnresolvedOperand) -> str:
    """Name and number: ``x`` or ``x#1``."""
    return f"{operand.operand_name}#{operand.index}" if operand.index else operand.operand_name


@dataclass
class Subscripts:
    """Reads expressions over SSA values and numbers the values as they appear.

    ``dims`` are the values that stand alone, ``symbols`` those written ``symbol(%x)``.
    """

    parser: XdslParser
    dims: dict[str, UnresolvedOperand] = field(default_factory=dict[str, UnresolvedOperand])
    symbols: dict[str, UnresolvedOperand] = field(default_factory=dict[str, UnresolvedOperand])

    def leaf(self) -> AffineExpr | None:
        parser = self.parser
        if (operand := parser.parse_optional_unresolved_operand()) is not None:
            self.dims.setdefault(value_key(operand), operand)
            return AffineDimExpr(list(self.dims).index(value_key(operand)))
        if parser._current_token.text == "symbol":
            return self._symbol()
        return None

    def _symbol(self) -> AffineExpr:
        self.parser._consume_token()
        with self.parser.in_parens():
            operand = self.parser.parse_unresolved_operand()
        self.symbols.setdefault(value_key(operand), operand)
        return AffineSymExpr(list(self.symbols).index(value_key(operand)))

    def expression(self) -> AffineExpr:
        return ExpressionReader(self.parser, self.leaf, reads_old_operators=True).expression()

    def bracket(self) -> list[AffineExpr]:
        """``[%i + 4, symbol(%n)]``"""
        return self.parser.parse_comma_separated_list(self.parser.Delimiter.SQUARE, self.expression)

    def map_of(self, results: Sequence[AffineExpr]) -> AffineMap:
        """The map of all values that ``results`` depend on to ``results``."""
        kept = self.without_idle_values(results)
        return AffineMap(len(self.dims), len(self.symbols), tuple(kept))

    def without_idle_values(self, results: Sequence[AffineExpr]) -> Sequence[AffineExpr]:
        """Forgets values that no result depends on, as ``%i`` in ``%i * 0``; the results over those that are left."""
        used = {leaf for result in results for leaf in result.dfs()}
        dims, symbols = list(self.dims), list(self.symbols)
        kept_dims = [number for number in range(len(dims)) if AffineDimExpr(number) in used]
        kept_symbols = [number for number in range(len(symbols)) if AffineSymExpr(number) in used]
        if len(kept_dims) == len(dims) and len(kept_symbols) == len(symbols):
            return results
        self.dims = {dims[number]: self.dims[dims[number]] for number in kept_dims}
        self.symbols = {symbols[number]: self.symbols[symbols[number]] for number in kept_symbols}
        new_dims: list[AffineExpr] = [AffineDimExpr(bisect_left(kept_dims, number)) for number in range(len(dims))]
        new_symbols = [AffineSymExpr(bisect_left(kept_symbols, number)) for number in range(len(symbols))]
        return [substitute(result, new_dims, new_symbols) for result in results]
