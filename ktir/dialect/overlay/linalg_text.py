"""What the texts of all ``linalg`` operations share: ``ins(..)``, ``outs(..)``, result types, short bodies, casts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, MemRefType, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

# --------------------------------------------------------------------------------------------------- operands, results


def tensors(values: Iterable[SSAValue]) -> list[Attribute]:
    """The types of those of ``values`` that are tensors."""
    types: list[Any] = [value.type for value in values]
    return [type for type in types if isinstance(type, TensorType)]


def element(type: Any) -> Attribute:
    """What a tensor or memref holds; any other type itself."""
    return type.element_type if type.name in (TensorType.name, MemRefType.name) else type


def shape(type: Attribute) -> Sequence[int]:
    """The extents of a tensor or memref; none for any other type."""
    return type.get_shape() if isinstance(type, TensorType | MemRefType) else ()


def parse_operands(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    """``ins(%a, %b : T, U)``, or nothing."""
    if parser.parse_optional_keyword(keyword) is None:
        return ()
    position = parser.pos
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return ()
    names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(names, types, position)


def print_operands(printer: Printer, keyword: str, operands: Sequence[SSAValue]) -> None:
    if operands:
        printer.print_string(f" {keyword}(")
        printer.print_list(operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list((operand.type for operand in operands), printer.print_attribute)
        printer.print_string(")")


def parse_optional_results(parser: Parser) -> Sequence[Attribute]:
    """``-> T``, ``-> (T, U)`` or nothing."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return types if types is not None else (parser.parse_type(),)


def print_optional_results(printer: Printer, types: Sequence[Attribute]) -> None:
    if types:
        printer.print_string(" -> ")
    if len(types) > 1:
        with printer.in_parens():
            printer.print_list(types, printer.print_attribute)
    elif types:
        printer.print_attribute(types[0])


def parse_numbers(parser: Parser, keyword: str) -> list[int]:
    """``dimensions = [0, 1]``"""
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


# --------------------------------------------------------------------------------------------------------- short bodies

Payload = tuple[type[Operation], dict[str, Attribute]]
"""The one operation of a body and its attributes."""


def parse_optional_payload(parser: Parser) -> Payload | None:
    """``{ arith.addf }`` or ``{ arith.addf {fastmath = #arith.fastmath<fast>} }``, or nothing."""
    if parser.parse_optional_punctuation("{") is None:
        return None
    position = parser.pos
    name = parser.parse_identifier()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")
    kind = parser.ctx.get_optional_op(name)
    if kind is None:
        parser.raise_error(f"Operation {name} is not registered", position)
    return kind, attributes


def defaults(kind: Any) -> dict[str, Attribute]:
    """The properties that an operation has when nobody names them."""
    properties = kind.get_irdl_definition().properties
    return {name: each.default_value for name, each in properties.items() if each.default_value is not None}


def payload_body(
    payload: Payload, arguments: Sequence[Attribute], names: Sequence[str], order: Sequence[int]
) -> Region:
    """A body of one operation on the arguments in ``order``; the result has the type of the last argument."""
    kind, attributes = payload
    block = Block(arg_types=arguments)
    for argument, name in zip(block.args, names, strict=True):
        argument.name_hint = name
    combined = kind.create(
        operands=[block.args[number] for number in order],
        result_types=[arguments[-1]],
        properties=defaults(kind) | attributes,
    )
    block.add_ops([combined, linalg.YieldOp(combined.results[0])])
    return Region(block)


def short_form(body: Region, order: Sequence[int]) -> Operation | None:
    """The one operation of ``body`` if it takes the arguments in ``order`` and its result is what is yielded."""
    block = body.block
    operations = list(block.ops)
    if len(operations) != 2 or not order:
        return None
    payload, last = operations
    combines = list(payload.operands) == [block.args[number] for number in order]
    yields = isinstance(last, linalg.YieldOp) and list(last.operands) == list(payload.results)
    return payload if not payload.regions and combines and yields and len(payload.results) == 1 else None


def print_payload(printer: Printer, payload: Operation) -> None:
    """`` { arith.addf }``; of the attributes only fast-math flags that allow nothing are left out, as MLIR does."""
    printer.print_string(f" {{ {payload.name}")
    nothing = arith.FastMathFlagsAttr("none")
    shown = {name: value for name, value in payload.properties.items() if value != nothing}
    printer.print_op_attributes(shown | payload.attributes)
    printer.print_string(" }")


def print_long_body(printer: Printer, body: Region) -> None:
    """The arguments and the body on lines of their own."""
    with printer.indented():
        printer.print_string("\n(")
        printer.print_list(body.block.args, printer.print_block_argument)
        printer.print_string(") ")
        printer.print_region(body, print_entry_block_args=False)


# ---------------------------------------------------------------------------------------------------------------- casts


def cast(value: SSAValue, target: Attribute, *, unsigned: bool = False) -> SSAValue:
    """``value`` as an element of type ``target``, as MLIR converts the operands of a named operation."""
    source: Any = value.type
    kind: Any
    if source == target:
        return value
    match isinstance(source, AnyFloat), isinstance(target, AnyFloat):
        case True, True:
            kind = arith.ExtFOp if source.bitwidth < _width(target) else arith.TruncFOp
        case True, False:
            kind = arith.FPToUIOp if unsigned else arith.FPToSIOp
        case False, True:
            kind = arith.UIToFPOp if unsigned else arith.SIToFPOp
        case _ if source.bitwidth > _width(target):
            kind = arith.TruncIOp
        case _:
            kind = arith.ExtUIOp if unsigned else arith.ExtSIOp
    return SSAValue.get(kind(value, target))


def _width(type: Any) -> int:
    return type.bitwidth
