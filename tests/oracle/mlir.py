"""Real MLIR as a judge: does it accept what we print, and does it print what we print?

Real MLIR knows nothing of our dialects, so operations go in generic form with unknown dialects allowed, and attributes
of ours are replaced by stand-ins that hold their text as a string: it refuses memory spaces it does not know and ``>=``
inside the body of a type it does not know. A missing installation fails the tests that ask for it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, BuiltinAttribute, Operation, TypeAttribute

from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import KtirPrinter, print_module, print_operation

OWN_DIALECTS = ("ktdp.", "ktg.", "dfp.")


class StandInPrinter(KtirPrinter):
    """Prints attributes and types of our dialects as opaque ones that hold a string."""

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, MemRefType) and attribute.memory_space.name.startswith(OWN_DIALECTS):
            space = StringAttr(str(attribute.memory_space))
            attribute = MemRefType(attribute.element_type, attribute.shape, attribute.layout, space)
        if isinstance(attribute, BuiltinAttribute) or not attribute.name.startswith(OWN_DIALECTS):
            super().print_attribute(attribute)
            return
        sigil = "!" if isinstance(attribute, TypeAttribute) else "#"
        self.print_string(f"{sigil}{attribute.name.partition('.')[0]}.stand_in<")
        self.print_string_literal(str(attribute))
        self.print_string(">")


def generic_text(op: Operation) -> str:
    """``op`` in generic form with stand-ins."""
    return print_operation(op, generic=True, printer_class=StandInPrinter)


@cache
def _context() -> Any:
    """One context for all texts: making it takes longer than reading most of them."""
    from iree.compiler import ir

    context = ir.Context()
    context.allow_unregistered_dialects = True
    return context


def mlir_reads(text: str) -> Any:
    """The module that real MLIR makes of ``text``, verified; raises what it raises."""
    from iree.compiler import ir

    with _context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        module.operation.verify()
    return module


def mlir_prints(text: str, *, generic: bool = False) -> str:
    """``text`` as real MLIR prints it."""
    return mlir_reads(text).operation.get_asm(print_generic_op_form=generic)


def is_standard(op: Operation) -> bool:
    """Whether real MLIR knows every operation and attribute in ``op``."""
    return "stand_in" not in generic_text(op) and not any(each.name.startswith(OWN_DIALECTS) for each in op.walk())


def assert_real_mlir_accepts(module: ModuleOp | str) -> None:
    """Real MLIR reads the generic text of ``module``, and where it knows all operations our short text, as the same IR.

    A text is read by our own parser first.
    """
    op = parse_module(module) if isinstance(module, str) else module
    generic = generic_text(op)
    try:
        from_generic = mlir_prints(generic, generic=True)
    except Exception as refusal:
        raise AssertionError(f"real MLIR refuses the generic form: {refusal}\n{_numbered(generic)}") from None
    if not is_standard(op):
        return
    pretty = print_module(op)
    try:
        from_pretty = mlir_prints(pretty, generic=True)
    except Exception as refusal:
        raise AssertionError(f"real MLIR refuses our text: {refusal}\n{_numbered(pretty)}") from None
    assert from_pretty == from_generic, f"our text and our generic form differ for MLIR:\n{pretty}\n{from_generic}"


def _numbered(text: str) -> str:
    return "\n".join(f"{number:>4} {line}" for number, line in enumerate(text.splitlines(), start=1))
