"""Repairs of ``memref``.

* Operations that the stock dialect writes in generic form only have their short text.
* ``reinterpret_cast``, ``rank`` and ``dim`` take memrefs of unknown rank; ``copy`` works where an extent is not known.
* A ``global`` may lack a visibility. ``transpose`` exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
)
from xdsl.dialects.memref import MemRef
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    OperandDef,
    OptPropertyDef,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.operations import get_accessors_from_op_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.repair import extended, redefine, replace_text
from ktir.maths.affine import map_text

SHORT_TEXTS: Mapping[type[IRDLOperation], str] = {
    memref.ExtractAlignedPointerAsIndexOp: "$source attr-dict `:` type($source) `->` type($aligned_pointer)",
    memref.CastOp: "$source attr-dict `:` type($source) `to` type($dest)",
    memref.MemorySpaceCastOp: "$source attr-dict `:` type($source) `to` type($dest)",
    memref.CopyOp: "$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
    memref.RankOp: "$source attr-dict `:` type($source)",
}

AnyMemRef = BaseAttr(MemRefType) | BaseAttr(UnrankedMemRefType)

# --------------------------------------------------------------------------------------------------------------- global


def _parse_global(cls: type[memref.GlobalOp], parser: Parser) -> memref.GlobalOp:
    """``"private" constant @name : memref<4xf32> = dense<1.0>``"""
    properties: dict[str, Attribute] = {}
    if (visibility := parser.parse_optional_str_literal()) is not None:
        properties["sym_visibility"] = StringAttr(visibility)
    if parser.parse_optional_keyword("constant") is not None:
        properties["constant"] = UnitAttr()
    properties["sym_name"] = parser.parse_symbol_name()
    parser.parse_punctuation(":")
    position = parser.pos
    type: Any = parser.parse_type()
    if type.name != MemRefType.name:
        parser.raise_error(f"type should be static shaped memref, but got {type}", position)
    properties["type"] = type
    if parser.parse_optional_punctuation("=") is not None:
        properties["initial_value"] = _parse_initial_value(parser, type)
    attributes = parser.parse_optional_attr_dict()
    if (alignment := attributes.pop("alignment", None)) is not None:
        properties["alignment"] = alignment
    return cls.build(properties=properties, attributes=attributes)


def _parse_initial_value(parser: Parser, type: Any) -> Attribute:
    if parser.parse_optional_keyword("uninitialized") is not None:
        return UnitAttr()
    parser.parse_keyword("dense")
    tensor: Any = TensorType(type.get_element_type(), type.get_shape())
    return parser.parse_dense_int_or_fp_elements_attr(tensor)


def _print_global(op: memref.GlobalOp, printer: Printer) -> None:
    if (visibility := op.properties.get("sym_visibility")) is not None:
        printer.print_string(" ")
        printer.print_attribute(visibility)
    printer.print_string(" constant " if op.constant is not None else " ")
    printer.print_symbol_name(op.sym_name)
    printer.print_string(" : ")
    printer.print_attribute(op.type)
    value = op.properties.get("initial_value")
    if isinstance(value, DenseIntOrFPElementsAttr):
        printer.print_string(" = ")
        value.print_without_type(printer)
    elif value is not None:
        printer.print_string(" = uninitialized")
    alignment = {} if op.alignment is None else {"alignment": op.alignment}
    printer.print_op_attributes({**op.attributes, **alignment})


# ----------------------------------------------------------------------------------------------- casts, copy, transpose


def _verify_reinterpret_cast(op: memref.ReinterpretCastOp) -> None:
    result: Any = op.result.type
    for name, static, dynamic in (
        ("offset", op.static_offsets, op.offsets),
        ("size", op.static_sizes, op.sizes),
        ("stride", op.static_strides, op.strides),
    ):
        values = list(static.get_values())
        if values.count(DYNAMIC_INDEX) != len(dynamic):
            raise VerifyException(f"number of dynamic {name} operands does not match the dynamic entries")
        if name != "offset" and len(values) != result.get_num_dims():
            raise VerifyException(f"expected {result.get_num_dims()} {name} values, got {len(values)}")
    sizes = zip(op.static_sizes.get_values(), result.get_shape(), strict=True)
    for number, (size, extent) in enumerate(sizes):
        if size != extent:
            raise VerifyException(f"expected result type with size = {size} instead of {extent} in dim = {number}")


def _verify_copy(op: memref.CopyOp) -> None:
    source: Any = op.source.type
    destination: Any = op.destination.type
    if source.get_element_type() != destination.get_element_type():
        raise VerifyException("Expected source and destination to have the same element type.")
    shapes = source.get_shape(), destination.get_shape()
    if len(shapes[0]) != len(shapes[1]) or any(
        a != b and DYNAMIC_INDEX not in (a, b) for a, b in zip(*shapes, strict=True)
    ):
        raise VerifyException("Expected source and destination to have the same shape.")


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """The same memory with its dimensions in another order."""

    name = "memref.transpose"

    source = operand_def(MemRefType)
    permutation = prop_def(AffineMapAttr)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> TransposeOp:
        source = parser.parse_unresolved_operand()
        permutation = AffineMapAttr(parser.parse_affine_map())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        return cls.build(
            operands=[parser.resolve_operand(source, source_type)],
            properties={"permutation": permutation},
            attributes=attributes,
            result_types=[parser.parse_type()],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f" {map_text(self.permutation.data)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        source: Any = self.source.type
        result: Any = self.result.type
        order = [getattr(each, "position", -1) for each in self.permutation.data.results]
        if sorted(order) != list(range(source.get_num_dims())):
            raise VerifyException("expected a permutation map of the same rank as the input")
        if list(result.get_shape()) != [source.get_shape()[number] for number in order]:
            raise VerifyException(f"result type {result} does not have the permuted shape of {source}")


def _repaired() -> Dialect:
    redefine(memref.ReinterpretCastOp, operands={"source": OperandDef(AnyMemRef)}, verify=_verify_reinterpret_cast)
    redefine(memref.RankOp, operands={"source": OperandDef(AnyMemRef)})
    redefine(memref.CopyOp, verify=_verify_copy)
    redefine(
        memref.GlobalOp,
        properties={
            "sym_visibility": OptPropertyDef(BaseAttr(StringAttr)),
            "initial_value": OptPropertyDef(BaseAttr(UnitAttr) | BaseAttr(DenseIntOrFPElementsAttr)),
        },
        verify=memref.GlobalOp.verify_,
    )
    replace_text(memref.GlobalOp, _parse_global, _print_global)
    for kind, text in SHORT_TEXTS.items():
        kind.get_irdl_definition().assembly_format = text
        for name, accessor in get_accessors_from_op_def(kind.get_irdl_definition(), None).items():
            if name in ("parse", "print"):
                setattr(kind, name, accessor)
    return extended(MemRef, [TransposeOp])


MEMREF = _repaired()
