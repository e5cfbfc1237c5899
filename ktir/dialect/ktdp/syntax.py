"""Text that several operations of the ``ktdp`` dialect share: attributes, index lists, expressions over values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineSetAttr,
    IndexType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineSet
from xdsl.irdl import (
    IRDLOperation,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from ktir.dialect.shaped import is_memref, is_tensor
from ktir.maths.affine import expression_text

MixedIndex = int | SSAValue
"""A size or stride: known, or the value that holds it."""


def print_attributes(printer: Printer, op: IRDLOperation, *, leave_out: Iterable[str] = ()) -> None:
    """Prints all properties and attributes in one dictionary, in alphabetical order."""
    hidden = {"operandSegmentSizes", *leave_out}
    shown = {name: value for name, value in sorted((op.properties | op.attributes).items()) if name not in hidden}
    if shown:
        printer.print_op_attributes(shown)


def split_attributes(
    kind: type[IRDLOperation], entries: dict[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """What of ``entries`` is a property of ``kind``, and the rest."""
    names = kind.get_irdl_definition().properties
    return (
        {name: value for name, value in entries.items() if name in names},
        {name: value for name, value in entries.items() if name not in names},
    )


def parse_index_list(parser: Parser, what: str) -> tuple[list[UnresolvedOperand], list[int]]:
    """``sizes: [4, %n]`` into the values and, with ``DYNAMIC_INDEX`` in their place, the numbers."""
    parser.parse_keyword(what)
    parser.parse_punctuation(":")
    values: list[UnresolvedOperand] = []

    def entry() -> int:
        if (value := parser.parse_optional_unresolved_operand()) is not None:
            values.append(value)
            return DYNAMIC_INDEX
        return parser.parse_integer(allow_boolean=False)

    return values, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, entry)


def print_index_list(printer: Printer, entries: Sequence[MixedIndex]) -> None:
    def entry(value: MixedIndex) -> None:
        if isinstance(value, int):
            printer.print_string(str(value))
        else:
            printer.print_ssa_value(value)

    with printer.in_square_brackets():
        printer.print_list(entries, entry)


def mixed(static: Sequence[int], dynamic: Sequence[SSAValue]) -> tuple[MixedIndex, ...]:
    values = iter(dynamic)
    return tuple(next(values) if entry == DYNAMIC_INDEX else entry for entry in static)


def parse_values(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def parse_optional_symbols(parser: Parser) -> list[UnresolvedOperand]:
    if parser.parse_optional_keyword("symbols") is None:
        return []
    try:
        return parse_values(parser)
    except ParseError as fault:
        parser.raise_error("Failed to parse symbol operands", fault.span.start)


def print_symbols(printer: Printer, symbols: Sequence[SSAValue]) -> None:
    if symbols:
        printer.print_string(" symbols(")
        printer.print_list(symbols, printer.print_ssa_value)
        printer.print_string(")")


def resolve_indices(parser: Parser, operands: Iterable[UnresolvedOperand]) -> list[SSAValue]:
    return [parser.resolve_operand(operand, IndexType()) for operand in operands]


def print_expression(
    printer: Printer, expression: AffineExpr, dims: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()
) -> None:
    """Prints ``expression`` with the values' own names for its variables."""
    text = expression_text(
        expression,
        dims=[f"{{d{position}}}" for position in range(len(dims))],
        syms=[f"{{s{position}}}" for position in range(len(symbols))],
    )
    for part in re.split(r"\{(\w\d+)\}", text):
        if part.startswith("d") and part[1:].isdigit():
            printer.print_ssa_value(dims[int(part[1:])])
        elif part.startswith("s") and part[1:].isdigit():
            printer.print_string("symbol(")
            printer.print_ssa_value(symbols[int(part[1:])])
            printer.print_string(")")
        else:
            printer.print_string(part)


def parse_set_property(parser: Parser, keyword: str) -> AffineSetAttr:
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, AffineSetAttr):
        parser.raise_error(f"expected an integer set for '{keyword}'", position)
    return attribute


def rank_of(type: Attribute) -> int | None:
    return type.get_num_dims() if (is_memref(type) or is_tensor(type)) else None


def values_of(entries: Sequence[MixedIndex]) -> list[SSAValue]:
    return [entry for entry in entries if not isinstance(entry, int)]


def numbers_of(entries: Sequence[MixedIndex]) -> list[int]:
    return [entry if isinstance(entry, int) else DYNAMIC_INDEX for entry in entries]


def verify_symbols(name: str, set: AffineSet, operands: Sequence[SSAValue]) -> None:
    if set.num_symbols != len(operands):
        raise VerifyException(f"{name} has {set.num_symbols} symbols but got {len(operands)} symbol operands")
