"""Text that the operations of ``affine`` share: maps and their operands, and expressions over values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.printer import Printer

from ktir.maths.affine import expression_text


def print_bound(printer: Printer, bound: AffineMapAttr | AffineSetAttr, operands: Sequence[SSAValue]) -> None:
    """``#map(%d0, %d1)[%s0]``"""
    dims = bound.data.num_dims
    printer.print_string(" ")
    printer.print_attribute(bound)
    with printer.in_parens():
        printer.print_list(operands[:dims], printer.print_ssa_value)
    if operands[dims:]:
        with printer.in_square_brackets():
            printer.print_list(operands[dims:], printer.print_ssa_value)


def parse_bound_operands(parser: Parser) -> Sequence[SSAValue]:
    """``(%d0, %d1)[%s0]``"""
    position = parser.pos
    names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    names += parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand) or []
    return parser.resolve_operands(names, [IndexType()] * len(names), position)


def parse_map(parser: Parser) -> AffineMapAttr:
    position = parser.pos
    map = parser.parse_attribute()
    if not isinstance(map, AffineMapAttr):
        parser.raise_error("expected an affine map", position)
    return map


def print_results(
    printer: Printer, results: Sequence[AffineExpr], map: AffineMap, operands: Sequence[SSAValue]
) -> None:
    """Some results of ``map`` with values for its dimensions and symbols: ``%i + 4, symbol(%n)``."""
    placeholders = [f"{{{number}}}" for number in range(map.num_dims + map.num_symbols)]
    dims, symbols = placeholders[: map.num_dims], [f"symbol({each})" for each in placeholders[map.num_dims :]]
    text = ", ".join(expression_text(result, dims=dims, syms=symbols) for result in results)
    for number, part in enumerate(re.split(r"\{(\d+)\}", text)):
        if number % 2:
            printer.print_ssa_value(operands[int(part)])
        else:
            printer.print_string(part)
