"""Parallel loops of ``scf``: ``parallel`` has its short text, ``forall`` and what ends its body exist.

``forall`` takes the bounds that are known as numbers and the others as values; tensors that all its iterations write
into are ``shared_outs``, and ``in_parallel`` says at the end of the body which part of them an iteration writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IndexType, i64
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    NoTerminator,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.repair import extended, replace_text

Bound = int | UnresolvedOperand

# ------------------------------------------------------------------------------------------------------------ parallel


def _parse_parallel(cls: type[scf.ParallelOp], parser: Parser) -> scf.ParallelOp:
    """``(%i) = (%lower) to (%upper) step (%step) init (%x) -> T { .. }``"""
    variables = parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    lower = _parse_indices(parser)
    parser.parse_keyword("to")
    upper = _parse_indices(parser)
    parser.parse_keyword("step")
    steps = _parse_indices(parser)
    position = parser.pos
    names: list[UnresolvedOperand] = []
    if parser.parse_optional_keyword("init") is not None:
        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    types = _parse_arrow_types(parser)
    initial = parser.resolve_operands(names, types, position)
    body = parser.parse_region([variable.resolve(IndexType()) for variable in variables])
    loop = cls(lower, upper, steps, body, initial)
    loop.attributes |= parser.parse_optional_attr_dict()
    if not names:
        for trait in loop.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(loop, trait)
    return loop


def _parse_indices(parser: Parser) -> Sequence[SSAValue]:
    position = parser.pos
    names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    return parser.resolve_operands(names, [IndexType()] * len(names), position)


def _parse_arrow_types(parser: Parser) -> Sequence[Attribute]:
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return types if types is not None else (parser.parse_type(),)


def _print_parallel(op: scf.ParallelOp, printer: Printer) -> None:
    printer.print_string(" ")
    bounds = (("", op.body.block.args), (" = ", op.lowerBound), (" to ", op.upperBound), (" step ", op.step))
    for word, values in bounds:
        printer.print_string(word)
        with printer.in_parens():
            printer.print_list(values, printer.print_ssa_value)
    if op.initVals:
        printer.print_string(" init (")
        printer.print_list(op.initVals, printer.print_ssa_value)
        printer.print_string(")")
    _print_arrow_types(printer, op.res.types)
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False)
    printer.print_op_attributes(op.attributes)


def _print_arrow_types(printer: Printer, types: Sequence[Attribute]) -> None:
    if not types:
        return
    printer.print_string(" -> ")
    if len(types) == 1:
        printer.print_attribute(types[0])
        return
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


def _print_reduce(op: scf.ReduceOp, printer: Printer) -> None:
    if op.args:
        printer.print_string("(")
        printer.print_list(op.args, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list(op.args.types, printer.print_attribute)
        printer.print_string(")")
    printer.print_string(" ")
    printer.print_list(op.reductions, printer.print_region)
    printer.print_op_attributes(op.attributes)


# -------------------------------------------------------------------------------------------------------------- forall


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """Ends the body of ``forall``: each operation in it puts a part of a result in its place."""

    name = "scf.forall.in_parallel"

    body = region_def("single_block")

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ForallOp), NoTerminator()))

    def __init__(self, body: Region | None = None) -> None:
        super().__init__(regions=[body if body is not None else Region(Block())])

    @classmethod
    def parse(cls, parser: Parser) -> InParallelOp:
        body = parser.parse_region()
        if body.blocks.first is None:
            body.add_block(Block())
        op = cls(body)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ForallOp(IRDLOperation):
    """A loop nest whose iterations may run in any order, or at once."""

    name = "scf.forall"

    dynamicLowerBound = var_operand_def(IndexType)
    dynamicUpperBound = var_operand_def(IndexType)
    dynamicStep = var_operand_def(IndexType)
    outputs = var_operand_def()
    staticLowerBound = prop_def(DenseArrayBase.constr(i64))
    staticUpperBound = prop_def(DenseArrayBase.constr(i64))
    staticStep = prop_def(DenseArrayBase.constr(i64))
    mapping = opt_prop_def(ArrayAttr)
    results_ = var_result_def()
    region = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(InParallelOp))

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        variables = parser.parse_comma_separated_list(
            Parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        position = parser.pos
        if parser.parse_optional_keyword("in") is not None:
            upper = _parse_bounds(parser)
            lower, steps = [0] * len(upper), [1] * len(upper)
        else:
            parser.parse_punctuation("=")
            lower = _parse_bounds(parser)
            parser.parse_keyword("to")
            upper = _parse_bounds(parser)
            parser.parse_keyword("step")
            steps = _parse_bounds(parser)
        if not len(variables) == len(lower) == len(upper) == len(steps):
            parser.raise_error("expected one lower bound, upper bound and step for each variable", position)
        shared: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
        if parser.parse_optional_keyword("shared_outs") is not None:
            shared = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_shared(parser))
        types = _parse_arrow_types(parser)
        outputs = parser.resolve_operands([value for _, value in shared], types, position)
        arguments = [variable.resolve(IndexType()) for variable in variables]
        arguments += [argument.resolve(type) for (argument, _), type in zip(shared, types, strict=True)]
        body = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict()
        properties: dict[str, Attribute] = {
            name: DenseArrayBase.from_list(
                i64, [bound if isinstance(bound, int) else DYNAMIC_INDEX for bound in bounds]
            )
            for name, bounds in (("staticLowerBound", lower), ("staticUpperBound", upper), ("staticStep", steps))
        }
        if (mapping := attributes.pop("mapping", None)) is not None:
            properties["mapping"] = mapping
        loop = cls.build(
            operands=[*(_resolve_dynamic(parser, bounds) for bounds in (lower, upper, steps)), outputs],
            properties=properties,
            attributes=attributes,
            result_types=[types],
            regions=[body],
        )
        if not isinstance(body.block.last_op, InParallelOp):
            body.block.add_op(InParallelOp())
        return loop

    def print(self, printer: Printer) -> None:
        variables = self.region.block.args[: len(self.staticUpperBound)]
        shared = self.region.block.args[len(self.staticUpperBound) :]
        printer.print_string(" (")
        printer.print_list(variables, printer.print_ssa_value)
        printer.print_string(")")
        if self._starts_at_zero():
            printer.print_string(" in ")
            _print_bounds(printer, self.staticUpperBound, self.dynamicUpperBound)
        else:
            for word, static, dynamic in (
                (" = ", self.staticLowerBound, self.dynamicLowerBound),
                (" to ", self.staticUpperBound, self.dynamicUpperBound),
                (" step ", self.staticStep, self.dynamicStep),
            ):
                printer.print_string(word)
                _print_bounds(printer, static, dynamic)
        if shared:
            printer.print_string(" shared_outs(")
            printer.print_list(zip(shared, self.outputs, strict=True), lambda pair: _print_pair(printer, *pair))
            printer.print_string(") -> (")
            printer.print_list(self.results_.types, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        last = self.region.block.last_op
        plain = isinstance(last, InParallelOp) and not last.body.block.ops and not last.attributes
        printer.print_region(
            self.region, print_entry_block_args=False, print_empty_block=False, print_block_terminators=not plain
        )
        shown = dict(self.attributes) | ({"mapping": self.mapping} if self.mapping is not None else {})
        printer.print_op_attributes(shown)

    def _starts_at_zero(self) -> bool:
        return not any(self.staticLowerBound.get_values()) and all(step == 1 for step in self.staticStep.get_values())

    def verify_(self) -> None:
        rank = len(self.staticUpperBound)
        for static, dynamic in (
            (self.staticLowerBound, self.dynamicLowerBound),
            (self.staticUpperBound, self.dynamicUpperBound),
            (self.staticStep, self.dynamicStep),
        ):
            values = list(static.get_values())
            if len(values) != rank or values.count(DYNAMIC_INDEX) != len(dynamic):
                raise VerifyException("expected one lower bound, upper bound and step for each loop")
        outputs = [value.type for value in self.outputs]
        if [value.type for value in self.results_] != outputs:
            raise VerifyException("expected the results to have the types of the shared outputs")
        if list(self.region.block.arg_types) != [IndexType()] * rank + outputs:
            raise VerifyException("expected one index argument for each loop and one argument for each shared output")


def _parse_shared(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def _parse_bounds(parser: Parser) -> list[Any]:
    def bound() -> Bound:
        operand = parser.parse_optional_unresolved_operand()
        return operand if operand is not None else parser.parse_integer(allow_boolean=False)

    return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, bound)


def _resolve_dynamic(parser: Parser, bounds: Sequence[Bound]) -> Sequence[SSAValue]:
    return [parser.resolve_operand(bound, IndexType()) for bound in bounds if not isinstance(bound, int)]


def _print_bounds(printer: Printer, static: Any, dynamic: Sequence[SSAValue]) -> None:
    values = iter(dynamic)

    def bound(number: int) -> None:
        if number == DYNAMIC_INDEX:
            printer.print_ssa_value(next(values))
        else:
            printer.print_string(str(number))

    with printer.in_parens():
        printer.print_list(static.get_values(), bound)


def _print_pair(printer: Printer, argument: SSAValue, value: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(value)


def extended_by_parallel_loops(dialect: Dialect) -> Dialect:
    """``dialect``, which is ``scf``, with its parallel loops."""
    replace_text(scf.ParallelOp, _parse_parallel, _print_parallel)
    replace_text(scf.ReduceOp, print=_print_reduce)
    return extended(dialect, [ForallOp, InParallelOp])
