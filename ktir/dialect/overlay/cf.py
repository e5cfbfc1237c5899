"""Repairs of ``cf``: the cases of ``switch`` are indented as MLIR does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import cf
from xdsl.dialects.cf import Cf
from xdsl.ir import Block, Dialect, SSAValue
from xdsl.printer import Printer


def _print_switch(op: Any, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.flag)
    printer.print_string(" : ")
    printer.print_attribute(op.flag.type)
    printer.print_string(", [")
    with printer.indented():
        printer.print_string("\ndefault: ")
        _print_target(printer, op.default_block, op.default_operands)
        for value, block, operands in _cases(op):
            printer.print_string(f",\n{value}: ")
            _print_target(printer, block, operands)
    printer.print_string("\n]" if op.case_blocks else "]")
    printer.print_op_attributes(op.attributes)


def _cases(op: Any) -> Sequence[tuple[int, Block, Sequence[SSAValue]]]:
    """Value, target and operands of each case."""
    if op.case_values is None:
        return ()
    cases: list[tuple[int, Block, Sequence[SSAValue]]] = []
    first = 0
    segments = op.case_operand_segments.get_values()
    for value, block, count in zip(op.case_values.get_values(), op.case_blocks, segments, strict=True):
        cases.append((value, block, op.case_operands[first : first + count]))
        first += count
    return cases


def _print_target(printer: Printer, block: Block, operands: Sequence[SSAValue]) -> None:
    printer.print_block_name(block)
    if operands:
        with printer.in_parens():
            printer.print_list(operands, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list((operand.type for operand in operands), printer.print_attribute)


def _repaired() -> Dialect:
    setattr(cf.SwitchOp, "print", _print_switch)  # noqa: B010  the stock method names its parameters
    return Cf


CF = _repaired()
