"""Prints IR as text that MLIR reads."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from ktir.dialect.text.limits import recursion_room


def print_module(module: ModuleOp, *, generic: bool = False, debug_info: bool = False) -> str:
    """The text of ``module``; ``generic`` writes every operation in quotes, ``debug_info`` writes locations."""
    out = StringIO()
    printer = Printer(out, print_generic_format=generic, print_debuginfo=debug_info)
    with recursion_room():
        printer.print_op(module)
    return out.getvalue() + "\n"
