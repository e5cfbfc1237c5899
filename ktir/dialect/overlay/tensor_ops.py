"""Operations of ``tensor`` that the stock dialect lacks.

``gather`` and ``scatter`` move slices whose places a tensor of indices names; ``parallel_insert_slice`` puts a slice
into a shared output of ``scf.forall``; ``rank`` and ``bitcast`` are what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


def _shape(type: Attribute) -> tuple[int, ...]:
    if not isinstance(type, TensorType):
        raise VerifyException(f"expected a ranked tensor, but got {type}")
    return type.get_shape()


# ------------------------------------------------------------------------------------------------------ gather, scatter


def _sliced_shapes(whole: Sequence[int], indices: Sequence[int], dims: Sequence[int]) -> list[tuple[int, ...]]:
    """Shapes of all slices together: the places, then one slice with its unit dimensions or without them."""
    places = tuple(indices[:-1])
    kept = tuple(1 if number in dims else extent for number, extent in enumerate(whole))
    reduced = tuple(extent for number, extent in enumerate(whole) if number not in dims)
    return [(*places, *kept), (*places, *reduced)]


def _verify_places(what: str, whole: Attribute, indices: Attribute, slices: Attribute, dims: Sequence[int]) -> None:
    rank, shape = len(_shape(whole)), _shape(indices)
    if not dims:
        raise VerifyException(f"{what}_dims must be non-empty")
    if list(dims) != sorted(set(dims)) or not 0 <= dims[0] <= dims[-1] < rank:
        raise VerifyException(f"{what}_dims values must be strictly increasing and below the rank {rank}")
    if not shape or shape[-1] != len(dims):
        raise VerifyException(f"{what}_dims length must match the size of last dimension of indices")
    if _shape(slices) not in (allowed := _sliced_shapes(_shape(whole), shape, dims)):
        raise VerifyException(f"the slices have shape {_shape(slices)}, expected {allowed[0]} or {allowed[1]}")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Slices of a tensor, each at the place that the last dimension of ``indices`` names."""

    name = "tensor.gather"

    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        source = parser.parse_unresolved_operand()
        indices, dims, unique = _parse_places(parser, "gather_dims")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        operands = parser.resolve_operands([source, indices], type.inputs.data, position)
        return cls.build(
            operands=operands,
            properties={"gather_dims": dims, "unique": unique},
            attributes=attributes,
            result_types=[_one(parser, type.outputs.data, position)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        _print_places(printer, self, "gather_dims", self.gather_dims)

    def verify_(self) -> None:
        dims = self.gather_dims.get_values()
        _verify_places("gather", self.source.type, self.indices.type, self.result.type, dims)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """A tensor with slices replaced, each at the place that the last dimension of ``indices`` names."""

    name = "tensor.scatter"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    indices = operand_def(TensorType)
    scatter_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ScatterOp:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        indices, dims, unique = _parse_places(parser, "scatter_dims")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        operands = parser.resolve_operands([source, dest, indices], type.inputs.data, position)
        return cls.build(
            operands=operands,
            properties={"scatter_dims": dims, "unique": unique},
            attributes=attributes,
            result_types=[_one(parser, type.outputs.data, position)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)
        _print_places(printer, self, "scatter_dims", self.scatter_dims)

    def verify_(self) -> None:
        dims = self.scatter_dims.get_values()
        _verify_places("scatter", self.dest.type, self.indices.type, self.source.type, dims)
        if self.unique is None:
            raise VerifyException("requires 'unique' attribute to be set")
        if self.result.type != self.dest.type:
            raise VerifyException("expected the result to have the type of the destination")


def _parse_places(parser: Parser, keyword: str) -> tuple[UnresolvedOperand, Attribute, Attribute | None]:
    """``[%indices] gather_dims([0]) unique``"""
    parser.parse_punctuation("[")
    indices = parser.parse_unresolved_operand()
    parser.parse_punctuation("]")
    parser.parse_keyword(keyword)
    with parser.in_parens():
        dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    unique = UnitAttr() if parser.parse_optional_keyword("unique") is not None else None
    return indices, DenseArrayBase.from_list(i64, dims), unique


def _one(parser: Parser, types: Sequence[Attribute], position: int) -> Attribute:
    if len(types) != 1:
        parser.raise_error(f"expected one result, but got {len(types)}", position)
    return types[0]


def _print_places(printer: Printer, op: GatherOp | ScatterOp, keyword: str, dims: Any) -> None:
    with printer.in_square_brackets():
        printer.print_ssa_value(op.indices)
    printer.print_string(f" {keyword}([{', '.join(map(str, dims.get_values()))}])")
    if op.unique is not None:
        printer.print_string(" unique")
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_function_type(op.operand_types, op.result_types)


# ------------------------------------------------------------------------------------------------- slices of forall


@irdl_op_definition
class ParallelInsertSliceOp(IRDLOperation):
    """Says which part of a shared output an iteration of ``scf.forall`` writes."""

    name = "tensor.parallel_insert_slice"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> ParallelInsertSliceOp:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        lists = [parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _extent(parser)) for _ in range(3)]
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        part = parser.parse_type()
        parser.parse_keyword("into")
        whole = parser.parse_type()
        dynamic = [
            [parser.resolve_operand(each, IndexType()) for each in extents if not isinstance(each, int)]
            for extents in lists
        ]
        static = [
            DenseArrayBase.from_list(i64, [each if isinstance(each, int) else DYNAMIC_INDEX for each in extents])
            for extents in lists
        ]
        return cls.build(
            operands=[parser.resolve_operand(source, part), parser.resolve_operand(dest, whole), *dynamic],
            properties=dict(zip(("static_offsets", "static_sizes", "static_strides"), static, strict=True)),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)
        for static, dynamic in (
            (self.static_offsets, self.offsets),
            (self.static_sizes, self.sizes),
            (self.static_strides, self.strides),
        ):
            values = iter(dynamic)
            with printer.in_square_brackets():
                for number, extent in enumerate(static.get_values()):
                    printer.print_string(", " if number else "")
                    if extent == DYNAMIC_INDEX:
                        printer.print_ssa_value(next(values))
                    else:
                        printer.print_string(str(extent))
            printer.print_string("" if static is self.static_strides else " ")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" into ")
        printer.print_attribute(self.dest.type)


def _extent(parser: Parser) -> int | UnresolvedOperand:
    operand = parser.parse_optional_unresolved_operand()
    return operand if operand is not None else parser.parse_integer(allow_boolean=False)


# -------------------------------------------------------------------------------------------------------- rank, bitcast


@irdl_op_definition
class RankOp(IRDLOperation):
    """How many dimensions a tensor has."""

    name = "tensor.rank"

    tensor = operand_def(BaseAttr(TensorType) | BaseAttr(UnrankedTensorType))
    result = result_def(IndexType)

    traits = traits_def(Pure())

    assembly_format = "$tensor attr-dict `:` type($tensor)"


@irdl_op_definition
class BitcastOp(IRDLOperation):
    """The same bits, seen as elements of another type of the same width."""

    name = "tensor.bitcast"

    source = operand_def(TensorType)
    dest = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    def verify_(self) -> None:
        if _shape(self.source.type) != _shape(self.dest.type):
            raise VerifyException("expected source and result to have the same shape")


OPERATIONS = (GatherOp, ScatterOp, ParallelInsertSliceOp, RankOp, BitcastOp)
