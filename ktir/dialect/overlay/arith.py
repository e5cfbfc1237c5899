"""Repairs of ``arith``.

* ``cmpi`` and ``cmpf`` on tensors give a tensor of i1; stock xDSL gives one i1, which real MLIR refuses.
* ``select`` takes a tensor of conditions, written ``: tensor<..xi1>, tensor<..>``.
* The casts work on tensors, element by element.
* ``trunci`` has overflow flags; several flags are printed with a space between them.
* ``extui`` and ``uitofp`` have ``nneg``, divisions and shifts to the right ``exact``.
* ``extf`` and ``truncf`` have fast-math flags, ``truncf`` a rounding mode.
* ``index_castui`` and ``remf`` exist.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.arith import (
    Arith,
    FastMathFlagsAttr,
    IntegerOverflowAttr,
    IntegerOverflowFlag,
    boolLike,
    floatingPointLike,
    signlessIntegerLike,
)
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    VectorType,
    container_of,
    i1,
    i32,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    OperandDef,
    OptPropertyDef,
    PropertyDef,
    ResultDef,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from ktir.dialect.overlay.repair import extended, redefine, replace_text
from ktir.dialect.text.leniency import tolerate

integerLike = container_of(IntegerType)


def with_element(shaped: Attribute, element: Attribute) -> Attribute:
    """A type of the shape of ``shaped`` with elements of type ``element``."""
    match shaped:
        case TensorType():
            return TensorType(element, shaped.shape, shaped.encoding)
        case VectorType():
            return VectorType(element, shaped.shape, shaped.scalable_dims)
        case UnrankedTensorType():
            return UnrankedTensorType(element)
        case _:
            return element


# --------------------------------------------------------------------------------------------------------- comparisons


def _verify_comparison(op: Any) -> None:
    if op.lhs.type != op.rhs.type:
        raise VerifyException("requires all operands to have the same type")
    if op.result.type != with_element(op.lhs.type, i1):
        raise VerifyException(f"result type {op.result.type} must be i1 with the shape of the operands {op.lhs.type}")


def _widen_comparison(kind: Any, operand: Any) -> None:
    stock_init = kind.__init__

    def __init__(self: Any, operand1: Any, operand2: Any, *arguments: Any, **named: Any) -> None:
        stock_init(self, operand1, operand2, *arguments, **named)
        shaped = with_element(SSAValue.get(operand1).type, i1)
        if shaped != i1:
            self.results[0]._type = shaped

    redefine(
        kind,
        operands={"lhs": OperandDef(operand), "rhs": OperandDef(operand)},
        results={"result": ResultDef(boolLike)},
        verify=_verify_comparison,
    )
    kind.__init__ = __init__


# -------------------------------------------------------------------------------------------------------------- select


def _verify_select(op: arith.SelectOp) -> None:
    if op.cond.type != i1 and op.cond.type != with_element(op.result.type, i1):
        raise VerifyException(
            f"'arith.select' op expected condition type {with_element(op.result.type, i1)}, but got {op.cond.type}"
        )


def _parse_select(cls: type[arith.SelectOp], parser: Parser) -> arith.SelectOp:
    """``%c, %a, %b : T`` or, with shaped conditions, ``%c, %a, %b : C, T``"""
    position = parser.pos
    names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    condition, chosen = i1, parser.parse_type()
    if parser.parse_optional_punctuation(",") is not None:
        condition, chosen = chosen, parser.parse_type()
    elif (known := _known_type(parser, names[0])) != i1 and known == with_element(chosen, i1):
        tolerate(parser, "T3", "a shaped condition needs its type", position)
        condition = with_element(chosen, i1)
    operands = parser.resolve_operands(names, [condition, chosen, chosen], position)
    return cls.build(operands=operands, result_types=[chosen], attributes=attributes)


def _known_type(parser: Parser, operand: UnresolvedOperand) -> Attribute | None:
    """The type of a value that is defined already."""
    values = parser.ssa_values.get(operand.operand_name)
    return values[operand.index].type if values is not None and operand.index < len(values) else None


def _print_select(op: arith.SelectOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if op.cond.type != i1:
        printer.print_attribute(op.cond.type)
        printer.print_string(", ")
    printer.print_attribute(op.result.type)


# --------------------------------------------------------------------------------------------------------------- casts


def _verify_same_shape(op: Any) -> None:
    if op.result.type != with_element(op.input.type, get_element_type_or_self(op.result.type)):
        raise VerifyException(
            f"'{op.name}' op operand type '{op.input.type}' and result type '{op.result.type}' are cast incompatible"
        )


def _width(type: Attribute) -> int:
    element = get_element_type_or_self(type)
    return element.bitwidth if isinstance(element, IntegerType | AnyFloat) else 0


def _verify_widening(op: Any) -> None:
    _verify_same_shape(op)
    if _width(op.result.type) <= _width(op.input.type):
        raise VerifyException(f"result type {op.result.type} must be wider than operand type {op.input.type}")


def _verify_narrowing(op: Any) -> None:
    _verify_same_shape(op)
    if _width(op.result.type) >= _width(op.input.type):
        raise VerifyException(f"result type {op.result.type} must be shorter than operand type {op.input.type}")


def _verify_index_cast(op: Any) -> None:
    _verify_same_shape(op)
    elements = [get_element_type_or_self(op.input.type), get_element_type_or_self(op.result.type)]
    if sum(isinstance(element, IndexType) for element in elements) != 1:
        raise VerifyException(
            f"'{op.name}' op operand type '{op.input.type}' and result type '{op.result.type}' are cast incompatible"
        )


def _widen_cast(kind: Any, source: Any, target: Any, verify: Any) -> None:
    redefine(kind, operands={"input": OperandDef(source)}, results={"result": ResultDef(target)}, verify=verify)


ROUNDING_MODES = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")
"""What happens to what a narrower float cannot hold; the property holds the number of the mode."""


def _parse_truncf(cls: type[arith.TruncFOp], parser: Parser) -> arith.TruncFOp:
    """``%x to_nearest_even fastmath<contract> : f32 to f16``"""
    operand = parser.parse_unresolved_operand()
    properties: dict[str, Attribute] = {}
    if (mode := parser.parse_optional_keyword_in(ROUNDING_MODES)) is not None:
        properties["roundingmode"] = IntegerAttr(ROUNDING_MODES.index(mode), i32)
    if parser.parse_optional_keyword("fastmath") is not None:
        properties["fastmath"] = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    source = parser.parse_type()
    parser.parse_keyword("to")
    op = cls(parser.resolve_operand(operand, source), parser.parse_type())
    op.properties |= properties
    op.attributes |= attributes
    return op


def _verify_truncf(op: arith.TruncFOp) -> None:
    _verify_narrowing(op)
    mode: Any = op.properties.get("roundingmode")
    if mode is not None and (mode.type != i32 or not 0 <= mode.value.data < len(ROUNDING_MODES)):
        raise VerifyException(f"attribute 'roundingmode' must be one of {', '.join(ROUNDING_MODES)}")


def _print_truncf(op: arith.TruncFOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.input)
    if isinstance(mode := op.properties.get("roundingmode"), IntegerAttr):
        printer.print_string(f" {ROUNDING_MODES[mode.value.data]}")
    if isinstance(fastmath := op.properties.get("fastmath"), FastMathFlagsAttr):
        printer.print_string(" fastmath")
        fastmath.print_parameter(printer)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.input.type)
    printer.print_string(" to ")
    printer.print_attribute(op.result.type)


def _print_overflow(self: IntegerOverflowAttr, printer: Printer) -> None:
    flags = [flag.value for flag in IntegerOverflowFlag if flag in self.data]
    with printer.in_angle_brackets():
        printer.print_string(", ".join(flags) or "none")


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """Converts between an integer and an index without a sign."""

    name = "arith.index_castui"

    input = operand_def(signlessIntegerLike)
    result = result_def(signlessIntegerLike)

    traits = traits_def(Pure())

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, value: SSAValue | Operation, target_type: Attribute) -> None:
        super().__init__(operands=[value], result_types=[target_type])

    def verify_(self) -> None:
        _verify_index_cast(self)


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """The remainder of a division rounded towards zero; it has the sign of the dividend."""

    name = "arith.remf"

    traits = traits_def(Pure())


def _repaired() -> Dialect:
    _widen_comparison(arith.CmpiOp, signlessIntegerLike)
    _widen_comparison(arith.CmpfOp, floatingPointLike)
    replace_text(arith.SelectOp, _parse_select, _print_select)
    redefine(arith.SelectOp, operands={"cond": OperandDef(boolLike)}, verify=_verify_select)
    _widen_cast(arith.SIToFPOp, integerLike, floatingPointLike, _verify_same_shape)
    _widen_cast(arith.UIToFPOp, integerLike, floatingPointLike, _verify_same_shape)
    _widen_cast(arith.FPToSIOp, floatingPointLike, integerLike, _verify_same_shape)
    _widen_cast(arith.FPToUIOp, floatingPointLike, integerLike, _verify_same_shape)
    _widen_cast(arith.ExtSIOp, integerLike, integerLike, _verify_widening)
    _widen_cast(arith.ExtUIOp, integerLike, integerLike, _verify_widening)
    for kind in (arith.ExtUIOp, arith.UIToFPOp):
        redefine(
            kind,
            properties={"nonNeg": OptPropertyDef(base(UnitAttr))},
            verify=_verify_widening if kind is arith.ExtUIOp else _verify_same_shape,
            assembly_format="$input (`nneg` $nonNeg^)? attr-dict `:` type($input) `to` type($result)",
        )
    for kind in (arith.DivUIOp, arith.DivSIOp, arith.ShRUIOp, arith.ShRSIOp):
        redefine(
            kind,
            properties={"isExact": OptPropertyDef(base(UnitAttr))},
            assembly_format="$lhs `,` $rhs (`exact` $isExact^)? attr-dict `:` type($result)",
        )
    redefine(
        arith.TruncIOp,
        operands={"input": OperandDef(integerLike)},
        results={"result": ResultDef(integerLike)},
        properties={"overflowFlags": PropertyDef(base(IntegerOverflowAttr), IntegerOverflowAttr("none"))},
        verify=_verify_narrowing,
        assembly_format="$input (`overflow` `` $overflowFlags^)? attr-dict `:` type($input) `to` type($result)",
    )
    redefine(
        arith.ExtFOp,
        properties={"fastmath": OptPropertyDef(base(FastMathFlagsAttr))},
        verify=_verify_widening,
        assembly_format="$input (`fastmath` `` $fastmath^)? attr-dict `:` type($input) `to` type($result)",
    )
    replace_text(arith.TruncFOp, _parse_truncf, _print_truncf)
    redefine(
        arith.TruncFOp,
        properties={
            "roundingmode": OptPropertyDef(base(IntegerAttr)),
            "fastmath": OptPropertyDef(base(FastMathFlagsAttr)),
        },
        verify=_verify_truncf,
    )
    setattr(IntegerOverflowAttr, "print_parameter", _print_overflow)  # noqa: B010  the stock method names its parameters
    _widen_cast(arith.IndexCastOp, signlessIntegerLike, signlessIntegerLike, _verify_index_cast)
    return extended(Arith, [IndexCastUIOp, RemFOp])


ARITH = _repaired()
