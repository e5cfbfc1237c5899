"""Repairs of ``affine``.

* ``apply``, ``min`` and ``max`` are printed as MLIR does, without a space after the map; ``max`` exists.
* ``load`` and ``store`` take values as dimensions and ``symbol(%n)`` as symbols, as MLIR does.
* ``for`` says, where locations are printed, where its variable comes from.
* ``if`` has its short text.
* ``parallel`` is in the module ``affine_parallel``.
* ``delinearize_index`` and ``linearize_index`` exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import affine
from xdsl.dialects.affine import (
    Affine,
    _print_affine_for_bound,  # pyright: ignore[reportPrivateUsage]
)
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AffineSetAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import print_assignment
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.affine_parallel import repair_parallel
from ktir.dialect.overlay.affine_text import parse_bound_operands, parse_map, print_bound, print_results
from ktir.dialect.overlay.repair import extended, replace_text
from ktir.dialect.text.affine_reader import Subscripts
from ktir.dialect.text.printer import KtirPrinter

# ------------------------------------------------------------------------------------------------------ apply, min, max


def _print_apply(op: affine.ApplyOp, printer: Printer) -> None:
    print_bound(printer, op.map, op.mapOperands)
    printer.print_op_attributes(op.attributes)


def _print_min(op: Any, printer: Printer) -> None:
    print_bound(printer, op.map, op.arguments)
    printer.print_op_attributes(op.attributes)


@irdl_op_definition
class MaxOp(IRDLOperation):
    """The largest result of a map."""

    name = "affine.max"

    arguments = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> MaxOp:
        map = parse_map(parser)
        operands = parse_bound_operands(parser)
        return cls.build(
            operands=[operands],
            properties={"map": map},
            attributes=parser.parse_optional_attr_dict(),
            result_types=[IndexType()],
        )

    def print(self, printer: Printer) -> None:
        _print_min(self, printer)

    def verify_(self) -> None:
        expected = self.map.data.num_dims + self.map.data.num_symbols
        if len(self.arguments) != expected:
            raise VerifyException(f"operand count and affine map dimension and symbol count must match: {expected}")


# --------------------------------------------------------------------------------------------------------- load, store


def _parse_access(
    parser: Parser,
) -> tuple[SSAValue, Sequence[SSAValue], AffineMapAttr, Any, dict[str, Attribute]]:
    """``%memref[%i + 4, symbol(%n)] {attributes} : T`` as memref, indices, map, memref type and attributes."""
    base = parser.parse_unresolved_operand()
    subscripts = Subscripts(parser)
    map = subscripts.map_of(subscripts.bracket())
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    type: Any = parser.parse_type()
    if type.name != MemRefType.name:
        parser.raise_error(f"expected a memref, but got {type}", position)
    names = [*subscripts.dims.values(), *subscripts.symbols.values()]
    indices = parser.resolve_operands(names, [IndexType()] * len(names), position)
    return parser.resolve_operand(base, type), indices, AffineMapAttr(map), type, attributes


def _print_access(printer: Printer, op: Any) -> None:
    printer.print_ssa_value(op.memref)
    with printer.in_square_brackets():
        print_results(printer, op.map.data.results, op.map.data, op.indices)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.memref.type)


def _parse_load(cls: type[affine.LoadOp], parser: Parser) -> affine.LoadOp:
    base, indices, map, type, attributes = _parse_access(parser)
    op = cls(base, indices, map, type.get_element_type())
    op.attributes |= attributes
    return op


def _print_load(op: affine.LoadOp, printer: Printer) -> None:
    printer.print_string(" ")
    _print_access(printer, op)


def _parse_store(cls: type[affine.StoreOp], parser: Parser) -> affine.StoreOp:
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    base, indices, map, type, attributes = _parse_access(parser)
    op = cls(parser.resolve_operand(value, type.get_element_type()), base, indices, map)
    op.attributes |= attributes
    return op


def _print_store(op: affine.StoreOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.value)
    printer.print_string(", ")
    _print_access(printer, op)


# ----------------------------------------------------------------------------------------------------------------- for


def _print_for(op: affine.ForOp, printer: Printer) -> None:
    """As the stock text, but it says where the variable comes from if locations are printed."""
    induction, *carried = op.body.block.args
    printer.print_string(" ")
    printer.print_ssa_value(induction)
    if isinstance(printer, KtirPrinter):
        printer.print_argument_location(induction)
    printer.print_string(" = ")
    _print_affine_for_bound(printer, op.lowerBoundMap, op.lowerBoundOperands, "max")
    printer.print_string(" to ")
    _print_affine_for_bound(printer, op.upperBoundMap, op.upperBoundOperands, "min")
    if op.step.value.data != 1:
        printer.print_string(f" step {op.step.value.data}")
    if carried:
        printer.print_string(" iter_args(")
        printer.print_list(zip(carried, op.inits, strict=True), lambda pair: print_assignment(printer, *pair))
        printer.print_string(") -> (")
        printer.print_list(op.res.types, printer.print_attribute)
        printer.print_string(")")
    printer.print_string(" ")
    printer.print_region(
        op.body, print_entry_block_args=False, print_empty_block=False, print_block_terminators=bool(carried)
    )
    printer.print_op_attributes(op.attributes)


# ------------------------------------------------------------------------------------------------------------------ if


def _parse_if(cls: type[affine.IfOp], parser: Parser) -> affine.IfOp:
    position = parser.pos
    condition = parser.parse_attribute()
    if not isinstance(condition, AffineSetAttr):
        parser.raise_error("expected an integer set", position)
    operands = parse_bound_operands(parser)
    types: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation("->") is not None:
        given = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        types = given if given is not None else (parser.parse_type(),)
    then = _with_yield(parser.parse_region())
    otherwise = _with_yield(parser.parse_region()) if parser.parse_optional_keyword("else") is not None else Region()
    return cls.build(
        operands=[operands],
        properties={"condition": condition},
        attributes=parser.parse_optional_attr_dict(),
        result_types=[types],
        regions=[then, otherwise],
    )


def _with_yield(region: Region) -> Region:
    if region.blocks.last is None:
        region.add_block(Block())
    block = region.blocks.last
    if block is not None and (block.last_op is None or not block.last_op.has_trait(IsTerminator)):
        block.add_op(affine.YieldOp.get())
    return region


def _print_if(op: affine.IfOp, printer: Printer) -> None:
    print_bound(printer, op.condition, op.args)
    if len(op.res) == 1:
        printer.print_string(" -> ")
        printer.print_attribute(op.res[0].type)
    elif op.res:
        printer.print_string(" -> (")
        printer.print_list(op.res.types, printer.print_attribute)
        printer.print_string(")")
    printer.print_string(" ")
    printer.print_region(op.then_region, print_block_terminators=bool(op.res))
    if op.else_region.blocks.first is not None:
        printer.print_string(" else ")
        printer.print_region(op.else_region, print_block_terminators=bool(op.res))
    printer.print_op_attributes(op.attributes)


# -------------------------------------------------------------------------------------------------- index arithmetic


@irdl_op_definition
class DelinearizeIndexOp(IRDLOperation):
    """The coordinates of a flat index, row-major; the basis may leave out the slowest extent."""

    name = "affine.delinearize_index"

    linear_index = operand_def(IndexType)
    dynamic_basis = var_operand_def(IndexType)
    static_basis = prop_def(DenseArrayBase.constr(i64))
    multi_index = var_result_def(IndexType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> DelinearizeIndexOp:
        index = parser.parse_operand(IndexType())
        parser.parse_keyword("into")
        dynamic, static = _parse_basis(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls.build(
            operands=[index, dynamic],
            properties={"static_basis": static},
            attributes=attributes,
            result_types=[types],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.linear_index)
        printer.print_string(" into ")
        _print_basis(printer, self.static_basis, self.dynamic_basis)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.multi_index.types, printer.print_attribute)

    def verify_(self) -> None:
        _verify_basis(self.static_basis, self.dynamic_basis)
        extents = len(self.static_basis)
        if not extents <= len(self.multi_index) <= extents + 1:
            raise VerifyException("should return an index for each basis element and up to one extra index")


@irdl_op_definition
class LinearizeIndexOp(IRDLOperation):
    """The flat index of coordinates, row-major; ``disjoint`` promises that they are in bounds."""

    name = "affine.linearize_index"

    multi_index = var_operand_def(IndexType)
    dynamic_basis = var_operand_def(IndexType)
    static_basis = prop_def(DenseArrayBase.constr(i64))
    disjoint = opt_prop_def(BaseAttr(UnitAttr) | EqAttrConstraint(IntegerAttr.from_bool(False)))
    linear_index = result_def(IndexType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> LinearizeIndexOp:
        is_disjoint = parser.parse_optional_keyword("disjoint") is not None
        position = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_keyword("by")
        dynamic, static = _parse_basis(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(
            operands=[parser.resolve_operands(names, [IndexType()] * len(names), position), dynamic],
            properties={
                "static_basis": static,
                "disjoint": UnitAttr() if is_disjoint else IntegerAttr.from_bool(False),
            },
            attributes=attributes,
            result_types=[parser.parse_type()],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" disjoint [" if isinstance(self.disjoint, UnitAttr) else " [")
        printer.print_list(self.multi_index, printer.print_ssa_value)
        printer.print_string("] by ")
        _print_basis(printer, self.static_basis, self.dynamic_basis)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.linear_index.type)

    def verify_(self) -> None:
        _verify_basis(self.static_basis, self.dynamic_basis)
        extents = len(self.static_basis)
        if not extents <= len(self.multi_index) <= extents + 1:
            raise VerifyException("should be passed a basis element for each index except possibly the first")


def _parse_basis(parser: Parser) -> tuple[Sequence[SSAValue], Attribute]:
    """``(4, %n)``"""

    def extent() -> int | UnresolvedOperand:
        operand = parser.parse_optional_unresolved_operand()
        return operand if operand is not None else parser.parse_integer(allow_boolean=False)

    extents = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, extent)
    dynamic = [parser.resolve_operand(each, IndexType()) for each in extents if not isinstance(each, int)]
    static = [each if isinstance(each, int) else DYNAMIC_INDEX for each in extents]
    return dynamic, DenseArrayBase.from_list(i64, static)


def _print_basis(printer: Printer, static: DenseArrayBase[Any], dynamic: Sequence[SSAValue]) -> None:
    values = iter(dynamic)

    def extent(number: int) -> None:
        if number == DYNAMIC_INDEX:
            printer.print_ssa_value(next(values))
        else:
            printer.print_string(str(number))

    with printer.in_parens():
        printer.print_list(static.get_values(), extent)


def _verify_basis(static: DenseArrayBase[Any], dynamic: Sequence[SSAValue]) -> None:
    if list(static.get_values()).count(DYNAMIC_INDEX) != len(dynamic):
        raise VerifyException("mismatch between dynamic and static basis (kDynamic marker but no corresponding entry)")


def _repaired() -> Dialect:
    replace_text(affine.ApplyOp, print=_print_apply)
    replace_text(affine.MinOp, print=_print_min)
    replace_text(affine.LoadOp, _parse_load, _print_load)
    replace_text(affine.StoreOp, _parse_store, _print_store)
    replace_text(affine.ForOp, print=_print_for)
    replace_text(affine.IfOp, _parse_if, _print_if)
    repair_parallel()
    return extended(Affine, [MaxOp, DelinearizeIndexOp, LinearizeIndexOp])


AFFINE = _repaired()
