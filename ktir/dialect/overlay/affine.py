"""Repairs of ``affine``: ``apply`` and ``min`` are printed as MLIR does, without a space after the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import affine
from xdsl.dialects.affine import Affine
from xdsl.ir import Dialect, SSAValue
from xdsl.printer import Printer

from ktir.dialect.overlay.repair import replace_text


def _print_map_of(op: Any, operands: Sequence[SSAValue], printer: Printer) -> None:
    dims = op.map.data.num_dims
    printer.print_string(" ")
    printer.print_attribute(op.map)
    with printer.in_parens():
        printer.print_list(operands[:dims], printer.print_ssa_value)
    if operands[dims:]:
        with printer.in_square_brackets():
            printer.print_list(operands[dims:], printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)


def _print_apply(op: affine.ApplyOp, printer: Printer) -> None:
    _print_map_of(op, op.mapOperands, printer)


def _print_min(op: affine.MinOp, printer: Printer) -> None:
    _print_map_of(op, op.arguments, printer)


def _repaired() -> Dialect:
    replace_text(affine.ApplyOp, print=_print_apply)
    replace_text(affine.MinOp, print=_print_min)
    return Affine


AFFINE = _repaired()
