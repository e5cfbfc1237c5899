"""What steers the program of a unit: constants of the core, counted loops, conditions, barriers, slot tokens."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineSetAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineSet
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasAncestor, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.dfp.attributes import IntegerList, Value, integer, integers, values_of
from ktir.dialect.dfp.structure import UnitOp, UnitOperation
from ktir.dialect.dfp.types import BufferType


@irdl_op_definition
class TableOp(UnitOperation):
    """A constant that differs from core to core: entry ``core`` of ``values``, one per core of the program."""

    name = "dfp.table"
    core = operand_def(IndexType())
    values = prop_def(IntegerList)
    result = result_def(IndexType())
    traits = traits_def(HasAncestor(UnitOp), Pure())

    def __init__(self, core: Value, values: Sequence[int]) -> None:
        super().__init__(operands=[core], properties={"values": integers(values)}, result_types=[IndexType()])

    @classmethod
    def parse(cls, parser: Parser) -> TableOp:
        core = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        op = cls(core, values)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.core)
        printer.print_string(" ")
        with printer.in_square_brackets():
            printer.print_list(values_of(self.values), printer.print_int)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ForOp(UnitOperation):
    """A counted loop: the block argument runs from 0 to ``count``, exclusive; ``count`` is a constant of the core."""

    name = "dfp.for"
    count = operand_def(IndexType())
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), HasAncestor(UnitOp))

    def __init__(self, count: Value, body: Region | None = None) -> None:
        super().__init__(operands=[count], regions=[body or Region(Block(arg_types=[IndexType()]))])

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        if parser.parse_integer() != 0:
            parser.raise_error("expected the loop to start at 0")
        parser.parse_keyword("to")
        count = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region((variable.resolve(IndexType()),))
        if not body.blocks:
            body.add_block(Block(arg_types=[IndexType()]))
        op = cls(count, body)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        printer.print_string(" = 0 to ")
        printer.print_ssa_value(self.count)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        if [argument.type for argument in self.body.block.args] != [IndexType()]:
            raise VerifyException("dfp.for: expected one block argument of type index")


@irdl_op_definition
class IfOp(UnitOperation):
    """Executes its body in the iterations in which ``condition`` holds for the indices and constants ``operands``."""

    name = "dfp.if"
    conditions_on = var_operand_def(IndexType())
    condition = prop_def(AffineSetAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), HasAncestor(UnitOp))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition `(` $conditions_on `)` attr-dict-with-keyword $body"

    def __init__(self, condition: AffineSet, operands: Sequence[Value], body: Region | None = None) -> None:
        super().__init__(
            operands=[operands],
            properties={"condition": AffineSetAttr(condition)},
            regions=[body or Region(Block())],
        )

    def verify_(self) -> None:
        needed = self.condition.data.num_dims + self.condition.data.num_symbols
        if needed != len(self.conditions_on):
            raise VerifyException(f"dfp.if: the condition has {needed} variables, got {len(self.conditions_on)}")


@irdl_op_definition
class BarrierOp(UnitOperation):
    """Waits until every unit of the program has reached its barrier of this launch; starts launch ``launch``.

    It stands outside of loops and conditions; launches are numbered upwards.
    """

    name = "dfp.barrier"
    launch = prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, launch: int) -> None:
        super().__init__(properties={"launch": integer(launch)})


# ---------------------------------------------------------------------------------------------------------- slot tokens


class SlotOperation(UnitOperation):
    """Base of the four operations on the slots of a ring of tiles."""

    buffer = operand_def(BufferType())
    assembly_format = "$buffer attr-dict"

    def __init__(self, buffer: Value) -> None:
        super().__init__(operands=[buffer])


@irdl_op_definition
class ReserveOp(SlotOperation):
    """The producer waits for a free slot; its accesses address this slot until the commit."""

    name = "dfp.reserve"


@irdl_op_definition
class CommitOp(SlotOperation):
    """The producer hands the slot it reserved to all consumers."""

    name = "dfp.commit"


@irdl_op_definition
class AcquireOp(SlotOperation):
    """A consumer waits for the next full slot; it may hold several, its accesses address the oldest."""

    name = "dfp.acquire"


@irdl_op_definition
class ReleaseOp(SlotOperation):
    """A consumer gives its oldest slot back; the slot is free when every consumer has."""

    name = "dfp.release"
