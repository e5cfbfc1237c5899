"""``affine.parallel``: its short text; its reductions are numbers, as in MLIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import affine
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import BaseAttr, PropertyDef
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.affine_text import print_results
from ktir.dialect.overlay.repair import redefine, replace_text
from ktir.dialect.text.affine_reader import Subscripts

REDUCTIONS = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu"),
    *("minimumf", "minnumf", "mins", "minu", "mulf", "muli", "ori", "xori"),
)
"""The ways in which results of iterations are combined, in the order of their numbers."""


def _parse_parallel(cls: type[affine.ParallelOp], parser: Parser) -> affine.ParallelOp:
    """``(%i, ..) = (bounds) to (bounds) [step (..)] [reduce ("kind", ..) -> (types)] {..}``"""
    variables = parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    lower = _parse_bounds(parser, "max")
    parser.parse_keyword("to")
    upper = _parse_bounds(parser, "min")
    steps = [1] * len(variables)
    if parser.parse_optional_keyword("step") is not None:
        steps = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
    kinds: Sequence[int] = ()
    types: Sequence[Attribute] = ()
    if parser.parse_optional_keyword("reduce") is not None:
        kinds = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_reduction(parser))
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    body = parser.parse_region([variable.resolve(IndexType()) for variable in variables])
    if not isinstance(body.block.last_op, affine.YieldOp):
        body.block.add_op(affine.YieldOp.get())
    return cls.build(
        operands=[[*lower.pop("operands"), *upper.pop("operands")]],
        properties={
            "lowerBoundsMap": lower["map"],
            "lowerBoundsGroups": lower["groups"],
            "upperBoundsMap": upper["map"],
            "upperBoundsGroups": upper["groups"],
            "steps": _numbers(steps),
            "reductions": _numbers(kinds),
        },
        attributes=parser.parse_optional_attr_dict(),
        result_types=[types],
        regions=[body],
    )


def _parse_bounds(parser: Parser, word: str) -> dict[str, Any]:
    """``(0, max(%n, 4))``: a map, how many of its results each loop has, and its operands."""
    position, subscripts = parser.pos, Subscripts(parser)

    def bound() -> list[Any]:
        if parser.parse_optional_keyword(word) is None:
            return [subscripts.expression()]
        return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, subscripts.expression)

    groups = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, bound)
    names = [*subscripts.dims.values(), *subscripts.symbols.values()]
    return {
        "map": AffineMapAttr(subscripts.map_of([result for group in groups for result in group])),
        "groups": DenseIntOrFPElementsAttr.from_list(TensorType(i32, [len(groups)]), list(map(len, groups))),
        "operands": parser.resolve_operands(names, [IndexType()] * len(names), position),
    }


def _parse_reduction(parser: Parser) -> int:
    position = parser.pos
    kind = parser.parse_str_literal("reduction kind")
    if kind not in REDUCTIONS:
        parser.raise_error(f"invalid reduction value: {kind}; it is one of {', '.join(REDUCTIONS)}", position)
    return REDUCTIONS.index(kind)


def _numbers(values: Sequence[int]) -> ArrayAttr[IntegerAttr[Any]]:
    return ArrayAttr(IntegerAttr(value, i64) for value in values)


def _print_parallel(op: affine.ParallelOp, printer: Printer) -> None:
    lower, upper, operands = op.lowerBoundsMap, op.upperBoundsMap, list(op.map_operands)
    first = lower.data.num_dims + lower.data.num_symbols
    printer.print_string(" ")
    with printer.in_parens():
        printer.print_list(op.body.block.args, printer.print_ssa_value)
    printer.print_string(" = ")
    _print_bounds(printer, lower, op.lowerBoundsGroups, operands[:first], "max")
    printer.print_string(" to ")
    _print_bounds(printer, upper, op.upperBoundsGroups, operands[first:], "min")
    steps = [step.value.data for step in op.steps]
    if any(step != 1 for step in steps):
        printer.print_string(f" step ({', '.join(map(str, steps))})")
    if op.res:
        kinds = ", ".join(f'"{REDUCTIONS[kind]}"' for kind in _values(op.reductions))
        printer.print_string(f" reduce ({kinds}) -> (")
        printer.print_list(op.res.types, printer.print_attribute)
        printer.print_string(")")
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False, print_block_terminators=bool(op.res))
    printer.print_op_attributes(op.attributes)


def _print_bounds(printer: Printer, bounds: AffineMapAttr, groups: Any, operands: Any, word: str) -> None:
    results = iter(bounds.data.results)

    def bound(size: int) -> None:
        group = [next(results) for _ in range(size)]
        if size != 1:
            printer.print_string(f"{word}(")
        print_results(printer, group, bounds.data, operands)
        if size != 1:
            printer.print_string(")")

    with printer.in_parens():
        printer.print_list(groups.get_values(), bound)


def _values(array: ArrayAttr[Any]) -> list[int]:
    return [each.value.data for each in array]


def _verify_parallel(op: affine.ParallelOp) -> None:
    loops = len(op.body.block.args)
    for bounds, groups in (
        (op.lowerBoundsMap.data, op.lowerBoundsGroups.get_values()),
        (op.upperBoundsMap.data, op.upperBoundsGroups.get_values()),
    ):
        if sum(groups) != len(bounds.results) or len(groups) != loops:
            raise VerifyException("expected a group of bounds for each loop")
    inputs = sum(map.data.num_dims + map.data.num_symbols for map in (op.lowerBoundsMap, op.upperBoundsMap))
    if len(op.map_operands) != inputs:
        raise VerifyException(f"expected {inputs} operands for the bounds, but got {len(op.map_operands)}")
    if len(op.steps) != loops or any(step <= 0 for step in _values(op.steps)):
        raise VerifyException("expected a positive step for each loop")
    if len(op.reductions) != len(op.res) or any(not 0 <= kind < len(REDUCTIONS) for kind in _values(op.reductions)):
        raise VerifyException("expected a reduction for each result")
    last = op.body.block.last_op
    if last is None or list(last.operand_types) != list(op.res.types):
        raise VerifyException("expected the yielded values to have the types of the results")


def repair_parallel() -> None:
    replace_text(affine.ParallelOp, _parse_parallel, _print_parallel)
    numbers = PropertyDef(BaseAttr(ArrayAttr))
    redefine(affine.ParallelOp, properties={"reductions": numbers}, verify=_verify_parallel)
