"""What a kernel is told about its launch: the tile that executes, and run-time arguments with their promises."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.ktdp.syntax import (
    print_attributes,
)
from ktir.dialect.ktdp.types import (
    RuntimeArgType,
    parse_short,
    print_short,
)


@irdl_op_definition
class GetComputeTileIdOp(IRDLOperation):
    """The executing tile's coordinates on the grid of the function, leading axes first."""

    name = "ktdp.get_compute_tile_id"

    tile_ids = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, axes: int = 1) -> None:
        super().__init__(result_types=[[IndexType()] * axes])

    @classmethod
    def parse(cls, parser: Parser) -> GetComputeTileIdOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.build(result_types=[types], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_list(self.tile_ids.types, printer.print_attribute)

    def verify_(self) -> None:
        if not self.tile_ids:
            raise VerifyException("must return at least one index (num tile-grid dims >= 1)")
        for position, type in enumerate(self.tile_ids.types):
            if not isinstance(type, IndexType):
                raise VerifyException(f"result #{position} must be variadic of index, but got '{type}'")


@irdl_op_definition
class RuntimeArgExtractOp(IRDLOperation):
    """The value of a run-time argument, or one of the promises its type carries."""

    name = "ktdp.runtime_arg_extract"
    KINDS: ClassVar = ("value", "granularity", "upperbound")

    argument = operand_def(RuntimeArgType)
    result = result_def()
    kind = prop_def(IntegerAttr)

    traits = traits_def(Pure())

    def __init__(self, kind: str, argument: SSAValue | Operation) -> None:
        value = SSAValue.get(argument, type=RuntimeArgType)
        super().__init__(
            operands=[value],
            result_types=[value.type.payload if kind == "value" else IndexType()],
            properties={"kind": IntegerAttr(self.KINDS.index(kind), 32)},
        )

    @property
    def kind_name(self) -> str:
        """``value``, ``granularity`` or ``upperbound``."""
        return self.KINDS[self.kind.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> RuntimeArgExtractOp:
        position = parser.pos
        kind = parser.parse_optional_identifier()
        if kind not in cls.KINDS:
            parser.raise_error("expected 'value', 'granularity' or 'upperbound'", position)
        parser.parse_keyword("from")
        argument = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type = parse_short(parser, RuntimeArgType)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation("->")
        return cls.build(
            operands=[parser.resolve_operand(argument, type)],
            result_types=[parser.parse_type()],
            properties={"kind": IntegerAttr(cls.KINDS.index(kind), 32)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind_name} from ")
        printer.print_ssa_value(self.argument)
        printer.print_string(" : ")
        print_short(printer, self.argument.type)
        print_attributes(printer, self, leave_out=("kind",))
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if not 0 <= self.kind.value.data < len(self.KINDS):
            raise VerifyException(f"kind must be 0, 1 or 2, but got: {self.kind.value.data}")
        argument, result = cast(RuntimeArgType, self.argument.type), self.result.type
        if self.kind_name == "value":
            if result != argument.payload:
                raise VerifyException(
                    f"result type ({result}) must match runtime_arg underlying type ({argument.payload}) when "
                    "extracting value"
                )
            return
        if argument.promise(self.kind_name) is None:
            raise VerifyException(f"cannot extract {self.kind_name} from runtime_arg that doesn't have one")
        if not isinstance(result, IndexType):
            raise VerifyException(f"result type must be index when extracting {self.kind_name}, but got {result}")
