"""``linalg.pack`` and ``linalg.unpack``: a tensor cut into tiles, and back.

The packed type has a dimension for the number of tiles along each dimension of the other type, permuted by
``outer_dims_perm``, and then one for the extent of each tile, in the order of ``inner_dims_pos``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, MemRefType, TensorType, i32, i64
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

PERMUTATION, POSITIONS, SEGMENTS = "outer_dims_perm", "inner_dims_pos", "operandSegmentSizes"


def _parse(cls: Any, parser: Parser) -> Any:
    """``%source [padding_value(..)] [outer_dims_perm = ..] inner_dims_pos = .. inner_tiles = .. into %dest : ..``"""
    position, source = parser.pos, parser.parse_unresolved_operand()
    groups = {"padding_value": _parse_padding(parser)}
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_keyword(PERMUTATION) is not None:
        properties[PERMUTATION] = _parse_numbers(parser)
    parser.parse_keyword(POSITIONS)
    properties[POSITIONS] = _parse_numbers(parser)
    parser.parse_keyword("inner_tiles")
    parser.parse_punctuation("=")
    tiles, static = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
    properties["static_inner_tiles"] = DenseArrayBase.from_list(i64, static)
    parser.parse_keyword("into")
    dest = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    groups["source"] = [parser.resolve_operand(source, parser.parse_type())]
    parser.parse_punctuation("->")
    type = parser.parse_type()
    groups["dest"] = [parser.resolve_operand(dest, type)]
    groups["inner_tiles"] = [*parser.resolve_operands(tiles, [IndexType()] * len(tiles), position)]
    return cls.build(
        operands=[groups[name] for name, _ in cls.get_irdl_definition().operands],
        properties=properties,
        attributes=attributes,
        result_types=[[type] if type.name == TensorType.name else []],
    )


def _parse_padding(parser: Parser) -> list[SSAValue]:
    """``padding_value(%x : T)``"""
    if parser.parse_optional_keyword("padding_value") is None:
        return []
    with parser.in_parens():
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        return [parser.resolve_operand(value, parser.parse_type())]


def _parse_numbers(parser: Parser) -> Attribute:
    """``= [1, 0]``"""
    parser.parse_punctuation("=")
    numbers = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
    return DenseArrayBase.from_list(i64, numbers)


def _print(op: PackOp | UnpackOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.source)
    if isinstance(op, PackOp) and op.padding_value is not None:
        printer.print_string(" padding_value(")
        printer.print_ssa_value(op.padding_value)
        printer.print_string(" : ")
        printer.print_attribute(op.padding_value.type)
        printer.print_string(")")
    for name in (PERMUTATION, POSITIONS):
        if name in op.properties:
            numbers: Any = op.properties[name]
            printer.print_string(f" {name} = [{', '.join(map(str, numbers.get_values()))}]")
    printer.print_string(" inner_tiles = ")
    print_dynamic_index_list(printer, DYNAMIC_INDEX, op.inner_tiles, op.static_inner_tiles.get_values())
    printer.print_string(" into ")
    printer.print_ssa_value(op.dest)
    printer.print_op_attributes(op.attributes, reserved_attr_names=(SEGMENTS,))
    printer.print_string(" : ")
    printer.print_attribute(op.source.type)
    printer.print_string(" -> ")
    printer.print_attribute(op.dest.type)


# --------------------------------------------------------------------------------------------------------------- rules


def _verify(op: PackOp | UnpackOp, whole: Any, packed: Any) -> None:
    """``whole`` is the type that is cut into tiles, ``packed`` the type of all tiles."""
    extents, tiles = list(whole.get_shape()), list(op.static_inner_tiles.get_values())
    positions = list(op.inner_dims_pos.get_values())
    order = list(range(len(extents))) if op.outer_dims_perm is None else list(op.outer_dims_perm.get_values())
    _verify_numbers(extents, positions, tiles, order)
    if tiles.count(DYNAMIC_INDEX) != len(op.inner_tiles):
        raise VerifyException("expected an operand for each dynamic tile")
    counts = _tile_counts(extents, positions, tiles)
    _verify_packed(packed, [counts[number] for number in order], tiles)
    if whole.element_type != packed.element_type:
        raise VerifyException("expected both types to have the same elements")
    if list(op.result.types) != [op.dest.type] * (op.dest.type.name == TensorType.name):
        raise VerifyException("expected the result to have the type of the destination")


def _verify_packed(packed: Any, counts: list[int], tiles: list[int]) -> None:
    shape = list(packed.get_shape())
    if len(shape) != len(counts) + len(tiles):
        raise VerifyException(
            f"packed rank != (unpacked rank + num tiling factors), got {len(shape)} != {len(counts) + len(tiles)}"
        )
    if shape[len(counts) :] != tiles:
        raise VerifyException("mismatch in inner tile sizes specified and shaped of tiled dimension in the packed type")
    if any(DYNAMIC_INDEX not in pair and pair[0] != pair[1] for pair in zip(shape, counts, strict=False)):
        kind = packed.__class__(packed.element_type, [*counts, *tiles])
        raise VerifyException(f"expected '{kind}' for the packed domain value, got '{packed}'")


def _verify_numbers(extents: list[int], positions: list[int], tiles: list[int], order: list[int]) -> None:
    if len(positions) != len(tiles):
        raise VerifyException("tiling factors must equal the number of dimensions to tile")
    if len(set(positions)) != len(positions) or not all(0 <= each < len(extents) for each in positions):
        raise VerifyException("invalid inner_dims_pos vector")
    if sorted(order) != list(range(len(extents))):
        raise VerifyException("invalid outer_dims_perm vector")
    if 0 in tiles:
        raise VerifyException("invalid zero tile factor")


def _tile_counts(extents: Sequence[int], positions: Sequence[int], tiles: Sequence[int]) -> list[int]:
    """How many tiles there are along each dimension."""
    counts = list(extents)
    for position, tile in zip(positions, tiles, strict=True):
        is_known = DYNAMIC_INDEX not in (counts[position], tile)
        counts[position] = -(-counts[position] // tile) if is_known else DYNAMIC_INDEX
    return counts


@irdl_op_definition
class PackOp(IRDLOperation):
    """Cuts the source into tiles; the last ones are filled up with the padding value."""

    name = "linalg.pack"

    source = operand_def(TensorType | MemRefType)
    dest = operand_def(TensorType | MemRefType)
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = opt_prop_def(DenseArrayBase.constr(i64))
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    result = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> PackOp:
        return _parse(cls, parser)

    def print(self, printer: Printer) -> None:
        _print(self, printer)

    def verify_(self) -> None:
        whole: Any = self.source.type
        _verify(self, whole, self.dest.type)
        if self.padding_value is not None:
            if self.padding_value.type != whole.element_type:
                raise VerifyException(
                    f"expected padding_value has '{whole.element_type}' but got: '{self.padding_value.type}'"
                )
            return
        tiles, extents = self.static_inner_tiles.get_values(), whole.get_shape()
        for position, tile in zip(self.inner_dims_pos.get_values(), tiles, strict=True):
            if DYNAMIC_INDEX not in (extents[position], tile) and extents[position] % tile:
                raise VerifyException(
                    "invalid tile factor or output size provided. Only full tiles are supported when padding_value "
                    "is not set"
                )


@irdl_op_definition
class UnpackOp(IRDLOperation):
    """Puts tiles together; what was filled up is dropped."""

    name = "linalg.unpack"

    source = operand_def(TensorType | MemRefType)
    dest = operand_def(TensorType | MemRefType)
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = opt_prop_def(DenseArrayBase.constr(i64))
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    result = var_result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> UnpackOp:
        """MLIR reads both operations alike, and leaves the sizes of the groups of ``pack`` on this one."""
        op = _parse(cls, parser)
        op.attributes[SEGMENTS] = DenseArrayBase.from_list(i32, [1, 1, 0, len(op.inner_tiles)])
        return op

    def print(self, printer: Printer) -> None:
        _print(self, printer)

    def verify_(self) -> None:
        _verify(self, self.dest.type, self.source.type)
