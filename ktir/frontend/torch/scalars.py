"""Scalar arithmetic inside the body of a ``linalg.generic``, with the meaning PyTorch gives it.

Each method appends operations to the body and returns the value they make. Operands of one call have one type.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, LocationAttr, f32, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from ktir.frontend.torch.elements import Element, is_float

Number = bool | int | float

ScalarBody = Callable[["ScalarBuilder", list[SSAValue]], SSAValue]
"""What a generic computes for one element: from the scalar operands to the scalar result."""


def _element(value: SSAValue) -> Element:
    return cast("Element", value.type)


class ScalarBuilder:
    """Appends scalar operations to ``block``, each with ``location``."""

    def __init__(self, block: Block, location: LocationAttr) -> None:
        self._block, self._location = block, location

    def emit(self, op: Operation) -> SSAValue:
        op.location = self._location
        self._block.add_op(op)
        return op.results[0]

    def finish(self, value: SSAValue) -> None:
        """End the body with ``value``."""
        end = linalg.YieldOp(value)
        end.location = self._location
        self._block.add_op(end)

    # ------------------------------------------------------------------------------------------- constants and casts

    def constant(self, number: Number, kind: Element) -> SSAValue:
        """``number`` as a constant of type ``kind``, rounded or truncated to it."""
        if is_float(kind):
            return self.emit(arith.ConstantOp(FloatAttr(float(number), cast("AnyFloat", kind))))
        assert isinstance(kind, IntegerType)
        value = int(bool(number)) if kind == i1 else int(number)
        return self.emit(arith.ConstantOp(IntegerAttr(value, kind)))

    def convert(self, value: SSAValue, kind: Element) -> SSAValue:
        """``value`` converted to ``kind`` as ``Tensor.to`` does: to bool is ``!= 0``, to an integer truncates."""
        source = _element(value)
        if source == kind:
            return value
        if is_float(source):
            return self._convert_float(value, kind)
        if is_float(kind):
            widen = arith.UIToFPOp if source == i1 else arith.SIToFPOp
            return self.convert(self.emit(widen(value, f32)), kind)
        return self._convert_integer(value, kind)

    def _convert_float(self, value: SSAValue, kind: Element) -> SSAValue:
        if kind == i1:
            return self.compare("une", value, self.constant(0.0, _element(value)))
        wide = value if _element(value) == f32 else self.emit(arith.ExtFOp(value, f32))
        if kind == f32:
            return wide
        if is_float(kind):
            return self.emit(arith.TruncFOp(wide, cast("AnyFloat", kind)))
        return self.emit(arith.FPToSIOp(wide, cast("IntegerType", kind)))

    def _convert_integer(self, value: SSAValue, kind: Element) -> SSAValue:
        source = _element(value)
        assert isinstance(source, IntegerType) and isinstance(kind, IntegerType)
        if kind == i1:
            return self.compare("ne", value, self.constant(0, source))
        if source == i1:
            return self.emit(arith.ExtUIOp(value, kind))
        if source.width.data < kind.width.data:
            return self.emit(arith.ExtSIOp(value, kind))
        return self.emit(arith.TruncIOp(value, kind))

    # ---------------------------------------------------------------------------------------------------- arithmetic

    def add(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The sum; of booleans, whether one of them holds, as PyTorch has it."""
        if _element(left) == i1:
            return self.either(left, right)
        return self._either_kind(arith.AddfOp, arith.AddiOp, left, right)

    def subtract(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self._either_kind(arith.SubfOp, arith.SubiOp, left, right)

    def multiply(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The product; of booleans, whether both hold."""
        if _element(left) == i1:
            return self.both(left, right)
        return self._either_kind(arith.MulfOp, arith.MuliOp, left, right)

    def divide(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The quotient of two floats."""
        return self.emit(arith.DivfOp(left, right))

    def maximum(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The larger one, NaN if either is NaN."""
        if _element(left) == i1:
            return self.either(left, right)
        return self._either_kind(arith.MaximumfOp, arith.MaxSIOp, left, right)

    def minimum(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The smaller one, NaN if either is NaN."""
        if _element(left) == i1:
            return self.both(left, right)
        return self._either_kind(arith.MinimumfOp, arith.MinSIOp, left, right)

    def negate(self, value: SSAValue) -> SSAValue:
        if is_float(_element(value)):
            return self.emit(arith.NegfOp(value))
        return self.subtract(self.constant(0, _element(value)), value)

    def absolute(self, value: SSAValue) -> SSAValue:
        if is_float(_element(value)):
            return self.emit(math.AbsFOp(value))
        return self.maximum(value, self.negate(value))

    def _either_kind(
        self,
        float_op: Callable[[SSAValue, SSAValue], Operation],
        integer_op: Callable[[SSAValue, SSAValue], Operation],
        left: SSAValue,
        right: SSAValue,
    ) -> SSAValue:
        return self.emit((float_op if is_float(_element(left)) else integer_op)(left, right))

    # --------------------------------------------------------------------------------------------- bits, comparisons

    def both(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.emit(arith.AndIOp(left, right))

    def either(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.emit(arith.OrIOp(left, right))

    def exclusive(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.emit(arith.XOrIOp(left, right))

    def invert(self, value: SSAValue) -> SSAValue:
        """All bits the other way round; ``not`` of a boolean."""
        kind = _element(value)
        return self.exclusive(value, self.constant(1 if kind == i1 else -1, kind))

    def compare(self, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """``predicate`` is one of arith's: ``oeq``, ``une``, .. for floats, ``eq``, ``slt``, .. for integers."""
        compare = arith.CmpfOp if is_float(_element(left)) else arith.CmpiOp
        return self.emit(compare(left, right, predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return self.emit(arith.SelectOp(condition, yes, no))

    # ------------------------------------------------------------------------------------- functions of one f32 value

    def exp(self, x: SSAValue) -> SSAValue:
        return self.emit(math.ExpOp(x))

    def log(self, x: SSAValue) -> SSAValue:
        return self.emit(math.LogOp(x))

    def log2(self, x: SSAValue) -> SSAValue:
        return self.emit(math.Log2Op(x))

    def log1p(self, x: SSAValue) -> SSAValue:
        return self.emit(math.Log1pOp(x))

    def expm1(self, x: SSAValue) -> SSAValue:
        return self.emit(math.ExpM1Op(x))

    def sqrt(self, x: SSAValue) -> SSAValue:
        return self.emit(math.SqrtOp(x))

    def rsqrt(self, x: SSAValue) -> SSAValue:
        return self.emit(math.RsqrtOp(x))

    def erf(self, x: SSAValue) -> SSAValue:
        return self.emit(math.ErfOp(x))

    def tanh(self, x: SSAValue) -> SSAValue:
        return self.emit(math.TanhOp(x))

    def sin(self, x: SSAValue) -> SSAValue:
        return self.emit(math.SinOp(x))

    def cos(self, x: SSAValue) -> SSAValue:
        return self.emit(math.CosOp(x))

    def floor(self, x: SSAValue) -> SSAValue:
        return self.emit(math.FloorOp(x))

    def ceil(self, x: SSAValue) -> SSAValue:
        return self.emit(math.CeilOp(x))

    def round_even(self, x: SSAValue) -> SSAValue:
        """The nearest integer, the even one of two."""
        return self.emit(math.RoundEvenOp(x))

    def power(self, x: SSAValue, exponent: SSAValue) -> SSAValue:
        return self.emit(math.PowFOp(x, exponent))

    def reciprocal(self, x: SSAValue) -> SSAValue:
        return self.divide(self.constant(1.0, _element(x)), x)

    def sigmoid(self, x: SSAValue) -> SSAValue:
        """``1 / (1 + exp(-x))``: 0 and 1 at the infinities, since exp overflows to inf and not to NaN."""
        return self.reciprocal(self.add(self.constant(1.0, _element(x)), self.exp(self.negate(x))))

    def is_infinite(self, x: SSAValue) -> SSAValue:
        return self.compare("oeq", self.absolute(x), self.constant(inf, _element(x)))

    def is_nan(self, x: SSAValue) -> SSAValue:
        return self.compare("uno", x, x)
