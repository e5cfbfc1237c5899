"""Repairs of ``scf``.

* A single result type of ``for``, ``if`` and ``execute_region`` need not be in parentheses.
* ``for`` writes its induction type before the body only where it is not ``index``, after two spaces as MLIR does, and
  may compare its induction variable without a sign (``for unsigned``).
* ``while`` needs no parentheses where it carries nothing.
* ``index_switch`` may have empty regions.
* The parallel loops are in :mod:`ktir.dialect.overlay.scf_parallel`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, UnitAttr, i1, i64
from xdsl.dialects.scf import Scf, YieldOp
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.irdl import BaseAttr, OptPropertyDef
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, SingleBlockImplicitTerminator, ensure_terminator
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.repair import redefine, replace_text
from ktir.dialect.overlay.scf_parallel import extended_by_parallel_loops

UNSIGNED = "unsignedCmp"
"""The property of a loop whose bounds are compared without a sign."""


def _parse_types(parser: Parser) -> list[Attribute]:
    """``(T, U)`` or one bare ``T``"""
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [*types] if types is not None else [parser.parse_type()]


def _parse_for(cls: type[scf.ForOp], parser: Parser) -> scf.ForOp:
    unsigned = parser.parse_optional_keyword("unsigned") is not None
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
    if unsigned:
        loop.properties[UNSIGNED] = UnitAttr()
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

    printer.print_string(" unsigned " if UNSIGNED in op.properties else " ")
    printer.print_ssa_value(induction)
    for word, bound in ((" = ", op.lb), (" to ", op.ub), (" step ", op.step)):
        printer.print_string(word)
        printer.print_ssa_value(bound)
    if carried:
        printer.print_string(" iter_args(")
        printer.print_list(zip(carried, op.iter_args, strict=True), lambda pair: _print_carried(pair, printer))
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


def _print_if(op: scf.IfOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.cond)
    if op.output:
        printer.print_string(" -> (")
        printer.print_list(op.output.types, printer.print_attribute)
        printer.print_string(")")
    printer.print_string(" ")
    _print_body(op.true_region, printer, bool(op.output))
    if op.false_region.blocks.first is not None:
        printer.print_string(" else ")
        _print_body(op.false_region, printer, bool(op.output))
    printer.print_op_attributes(op.attributes)


def _print_body(region: Region, printer: Printer, yields: bool) -> None:
    printer.print_region(
        region,
        print_entry_block_args=False,
        print_empty_block=False,
        print_block_terminators=yields or _carries_attributes(region),
    )


def _print_arrow_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Nothing, ``-> T`` or ``-> (T, U)``"""
    if not types:
        return
    printer.print_string(" -> ")
    if len(types) == 1:
        printer.print_attribute(types[0])
        return
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


def _with_yield(region: Region) -> Region:
    if region.blocks.last is None:
        region.add_block(Block())
    block = region.blocks.last
    if block is not None and (block.last_op is None or not block.last_op.has_trait(IsTerminator)):
        block.add_op(YieldOp())
    return region


# --------------------------------------------------------------------------------------------------------------- while


def _parse_while(cls: type[scf.WhileOp], parser: Parser) -> scf.WhileOp:
    position = parser.pos
    carried = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_carried(parser)) or []
    parser.parse_punctuation(":")
    type = parser.parse_function_type()
    initial = parser.resolve_operands([value for _, value in carried], type.inputs.data, position)
    arguments = [argument.resolve(each) for (argument, _), each in zip(carried, type.inputs.data, strict=True)]
    before = parser.parse_region(arguments)
    parser.parse_keyword("do")
    loop = cls(initial, type.outputs.data, before, parser.parse_region())
    attributes = parser.parse_optional_attr_dict_with_keyword()
    loop.attributes |= attributes.data if attributes is not None else {}
    return loop


def _print_while(op: scf.WhileOp, printer: Printer) -> None:
    if op.arguments:
        printer.print_string(" (")
        pairs = zip(op.before_region.block.args, op.arguments, strict=True)
        printer.print_list(pairs, lambda pair: _print_carried(pair, printer))
        printer.print_string(")")
    printer.print_string(" : ")
    printer.print_function_type(op.operand_types, op.result_types)
    printer.print_string(" ")
    printer.print_region(op.before_region, print_entry_block_args=False)
    printer.print_string(" do ")
    printer.print_region(op.after_region, print_empty_block=False)
    printer.print_op_attributes(op.attributes, print_keyword=True)


def _print_carried(pair: tuple[SSAValue, SSAValue], printer: Printer) -> None:
    printer.print_ssa_value(pair[0])
    printer.print_string(" = ")
    printer.print_ssa_value(pair[1])


def _verify_while(op: scf.WhileOp) -> None:
    """What is carried fits: into the condition, from there into the body and the results, and back."""
    before, after = op.before_region.block, op.after_region.block
    condition, last = before.last_op, after.last_op
    if not isinstance(condition, scf.ConditionOp):
        raise VerifyException("expects the 'before' region to terminate with 'scf.condition'")
    if not isinstance(last, YieldOp):
        raise VerifyException("expects the 'after' region to terminate with 'scf.yield'")
    entering, leaving = [value.type for value in op.arguments], [value.type for value in op.res]
    if list(before.arg_types) != entering or [value.type for value in last.operands] != entering:
        raise VerifyException("expects the 'before' region and the yielded values to have the types of the operands")
    if list(after.arg_types) != leaving or [value.type for value in condition.operands[1:]] != leaving:
        raise VerifyException("expects the 'after' region and the condition's values to have the types of the results")


# -------------------------------------------------------------------------------------------- execute_region, switch


def _print_execute_region(op: scf.ExecuteRegionOp, printer: Printer) -> None:
    _print_arrow_types(printer, op.outs.types)
    printer.print_string(" ")
    printer.print_region(op.region, print_entry_block_args=False)
    printer.print_op_attributes(op.attributes)


def _parse_switch(cls: type[scf.IndexSwitchOp], parser: Parser) -> scf.IndexSwitchOp:
    argument = parser.parse_operand(IndexType())
    attributes = parser.parse_optional_attr_dict()
    types = _parse_types(parser) if parser.parse_optional_punctuation("->") is not None else []
    cases: list[int] = []
    regions: list[Region] = []
    while parser.parse_optional_keyword("case") is not None:
        cases.append(parser.parse_integer())
        regions.append(_with_yield(parser.parse_region()))
    parser.parse_keyword("default")
    otherwise = _with_yield(parser.parse_region())
    return cls(argument, DenseArrayBase.from_list(i64, cases), otherwise, regions, types, attributes)


def _print_switch(op: scf.IndexSwitchOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.arg)
    printer.print_op_attributes(op.attributes)
    _print_arrow_types(printer, op.output.types)
    printer.print_string(" ")
    for value, region in zip(op.cases.iter_values(), op.case_regions, strict=True):
        printer.print_string(f"\ncase {value} ")
        printer.print_region(region)
    printer.print_string("\ndefault ")
    printer.print_region(op.default_region, print_block_terminators=bool(op.output))


def _repaired() -> Dialect:
    replace_text(scf.ForOp, _parse_for, _print_for)
    redefine(scf.ForOp, properties={UNSIGNED: OptPropertyDef(BaseAttr(UnitAttr))}, verify=scf.ForOp.verify_)
    replace_text(scf.IfOp, _parse_if, _print_if)
    replace_text(scf.WhileOp, _parse_while, _print_while)
    redefine(scf.WhileOp, verify=_verify_while)
    replace_text(scf.ExecuteRegionOp, print=_print_execute_region)
    replace_text(scf.IndexSwitchOp, _parse_switch, _print_switch)
    return extended_by_parallel_loops(Scf)


SCF = _repaired()
