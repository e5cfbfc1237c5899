"""Repairs of ``scf``.

* A single result type of ``for`` and ``if`` need not be in parentheses.
* ``for`` writes its induction type before the body only where it is not ``index``, after two spaces as MLIR does.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, i1
from xdsl.dialects.scf import Scf, YieldOp
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, SingleBlockImplicitTerminator, ensure_terminator

from ktir.dialect.overlay.repair import replace_text


def _parse_types(parser: Parser) -> list[Attribute]:
    """``(T, U)`` or one bare ``T``"""
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [*types] if types is not None else [parser.parse_type()]


def _parse_for(cls: type[scf.ForOp], parser: Parser) -> scf.ForOp:
    induction = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    lower = parser.parse_unresolved_operand()
    parser.parse_keyword("to")
    upper = parser.parse_unresolved_operand()
    parser.parse_keyword("step")
    step = parser.parse_unresolved_operand()
    position = parser.pos
    carried: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
    types: list[Attribute] = []
    if parser.parse_optional_keyword("iter_args") is not None:
        carried = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_carried(parser))
        parser.parse_punctuation("->")
        types = _parse_types(parser)
    initial = parser.resolve_operands([value for _, value in carried], types, position)
    induction_type = parser.parse_type() if parser.parse_optional_punctuation(":") is not None else IndexType()
    first, last, stride = (parser.resolve_operand(bound, induction_type) for bound in (lower, upper, step))
    arguments = [argument.resolve(type) for (argument, _), type in zip(carried, types, strict=True)]
    body = parser.parse_region((induction.resolve(induction_type), *arguments))
    loop = cls(first, last, stride, initial, body)
    loop.attributes |= parser.parse_optional_attr_dict()
    if not carried:
        for trait in loop.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(loop, trait)
    return loop


def _parse_carried(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def _print_for(op: scf.ForOp, printer: Printer) -> None:
    induction, *carried = op.body.block.args

    def print_carried(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])

    printer.print_string(" ")
    printer.print_ssa_value(induction)
    for word, bound in ((" = ", op.lb), (" to ", op.ub), (" step ", op.step)):
        printer.print_string(word)
        printer.print_ssa_value(bound)
    if carried:
        printer.print_string(" iter_args(")
        printer.print_list(zip(carried, op.iter_args, strict=True), print_carried)
        printer.print_string(") -> (")
        printer.print_list((argument.type for argument in carried), printer.print_attribute)
        printer.print_string(")")
    if not isinstance(induction.type, IndexType):
        printer.print_string("  : ")
        printer.print_attribute(induction.type)
    printer.print_string(" ")
    printer.print_region(
        op.body,
        print_entry_block_args=False,
        print_empty_block=False,
        print_block_terminators=bool(op.iter_args) or _carries_attributes(op.body),
    )
    printer.print_op_attributes(op.attributes)


def _carries_attributes(region: Region) -> bool:
    """Whether the terminator holds something that leaving it out would lose."""
    last = region.blocks.last.last_op if region.blocks.last else None
    return last is not None and bool(last.attributes)


def _parse_if(cls: type[scf.IfOp], parser: Parser) -> scf.IfOp:
    condition = parser.parse_operand(i1)
    types = _parse_types(parser) if parser.parse_optional_punctuation("->") is not None else []
    then = _with_yield(parser.parse_region())
    otherwise = _with_yield(parser.parse_region()) if parser.parse_optional_keyword("else") is not None else Region()
    op = cls(condition, types, then, otherwise)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _with_yield(region: Region) -> Region:
    if region.blocks.last is None:
        region.add_block(Block())
    block = region.blocks.last
    if block is not None and (block.last_op is None or not block.last_op.has_trait(IsTerminator)):
        block.add_op(YieldOp())
    return region


def _repaired() -> Dialect:
    replace_text(scf.ForOp, _parse_for, _print_for)
    replace_text(scf.IfOp, _parse_if)
    return Scf


SCF = _repaired()
