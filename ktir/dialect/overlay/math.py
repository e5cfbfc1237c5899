"""Repairs of ``math``: the operations that the stock dialect lacks.

``isnan``, ``isinf``, ``isfinite`` and ``isnormal`` give one i1 for each element; ``clampf`` has bounds in brackets;
``sincos`` has two results; ``erfc`` is like every function of one float.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.arith import FastMathFlagsAttr, boolLike, floatingPointLike
from xdsl.dialects.builtin import i1
from xdsl.dialects.math import FloatingPointLikeUnaryMathOperation, Math
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SameOperandsAndResultType
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.arith import with_element
from ktir.dialect.overlay.repair import extended


class FloatClassification(IRDLOperation):
    """Whether each element is of some class: ``%0 = math.isnan %x : tensor<4xf32>`` gives ``tensor<4xi1>``."""

    operand = operand_def(floatingPointLike)
    result = result_def(boolLike)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))

    def __init__(self, operand: SSAValue | Operation) -> None:
        value = SSAValue.get(operand)
        super().__init__(operands=[value], result_types=[with_element(value.type, i1)])

    @classmethod
    def parse(cls, parser: Parser) -> FloatClassification:
        operand = parser.parse_unresolved_operand()
        fastmath: FastMathFlagsAttr | None = None
        if parser.parse_optional_keyword("fastmath") is not None:
            fastmath = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        attributes: dict[str, Attribute] = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(operand, parser.parse_type()))
        if fastmath is not None:
            op.fastmath = fastmath
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        if self.fastmath != FastMathFlagsAttr("none"):
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)

    def verify_(self) -> None:
        if self.result.type != with_element(self.operand.type, i1):
            raise VerifyException(
                f"result type {self.result.type} must be i1 with the shape of the operand {self.operand.type}"
            )


@irdl_op_definition
class IsNaNOp(FloatClassification):
    """Neither below, equal to nor above any number."""

    name = "math.isnan"
    traits = traits_def(Pure())


@irdl_op_definition
class IsInfOp(FloatClassification):
    """An infinity of either sign."""

    name = "math.isinf"
    traits = traits_def(Pure())


@irdl_op_definition
class IsFiniteOp(FloatClassification):
    """Neither an infinity nor a NaN."""

    name = "math.isfinite"
    traits = traits_def(Pure())


@irdl_op_definition
class IsNormalOp(FloatClassification):
    """Finite, not zero, and with all digits of its type."""

    name = "math.isnormal"
    traits = traits_def(Pure())


@irdl_op_definition
class ErfcOp(FloatingPointLikeUnaryMathOperation):
    """One minus the error function."""

    name = "math.erfc"
    traits = traits_def(Pure(), SameOperandsAndResultType())


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """The value, or the bound that it exceeds."""

    name = "math.clampf"

    T: ClassVar = VarConstraint("T", floatingPointLike)

    value = operand_def(T)
    min = operand_def(T)
    max = operand_def(T)
    result = result_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))

    traits = traits_def(Pure())

    assembly_format = "$value `to` ` ` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"


@irdl_op_definition
class SinCosOp(IRDLOperation):
    """Sine and cosine of the same angle."""

    name = "math.sincos"

    T: ClassVar = VarConstraint("T", floatingPointLike)

    operand = operand_def(T)
    sin = result_def(T)
    cos = result_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))

    traits = traits_def(Pure())

    assembly_format = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($sin)"


MATH = extended(Math, [IsNaNOp, IsInfOp, IsFiniteOp, IsNormalOp, ErfcOp, ClampFOp, SinCosOp])
