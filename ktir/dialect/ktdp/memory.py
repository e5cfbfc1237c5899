"""Loads and stores: a tensor of the elements at the coordinates of an access tile."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.ktdp.syntax import (
    print_attributes,
)
from ktir.dialect.ktdp.types import (
    AccessTileType,
    parse_short,
    print_short,
)
from ktir.dialect.shaped import is_tensor


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A fresh tensor of the elements at the tile's coordinates."""

    name = "ktdp.load"

    access_tile = operand_def(AccessTileType)
    result = result_def()

    traits = traits_def(MemoryReadEffect())

    def __init__(self, access_tile: SSAValue | Operation, element_type: Attribute) -> None:
        tile = SSAValue.get(access_tile, type=AccessTileType)
        super().__init__(operands=[tile], result_types=[TensorType(element_type, tile.type.get_shape())])

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        tile = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tile_type = parse_short(parser, AccessTileType)
        parser.parse_punctuation("->")
        return cls.build(
            operands=[parser.resolve_operand(tile, tile_type)],
            result_types=[parser.parse_type()],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.access_tile)
        print_attributes(printer, self)
        printer.print_string(" : ")
        print_short(printer, self.access_tile.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if not is_tensor(self.result.type):
            raise VerifyException("result must be a ranked tensor")
        if cast(AccessTileType, self.access_tile.type).get_shape() != self.result.type.get_shape():
            raise VerifyException("access tile shape must match result tensor shape")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a tensor to the tile's coordinates."""

    name = "ktdp.store"

    data = operand_def()
    access_tile = operand_def(AccessTileType)

    traits = traits_def(MemoryWriteEffect())

    def __init__(self, data: SSAValue | Operation, access_tile: SSAValue | Operation) -> None:
        super().__init__(operands=[data, access_tile])

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        data = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        tile = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        data_type = parser.parse_type()
        parser.parse_punctuation(",")
        tile_type = parse_short(parser, AccessTileType)
        return cls.build(
            operands=[parser.resolve_operand(data, data_type), parser.resolve_operand(tile, tile_type)],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.data, self.access_tile), printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.data.type)
        printer.print_string(", ")
        print_short(printer, self.access_tile.type)

    def verify_(self) -> None:
        if not is_tensor(self.data.type):
            raise VerifyException("data_tile must be a ranked tensor")
        if cast(AccessTileType, self.access_tile.type).get_shape() != self.data.type.get_shape():
            raise VerifyException("data tile shape must match access tile shape")
