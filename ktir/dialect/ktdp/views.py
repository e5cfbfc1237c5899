"""Memory views: regions of memory given sizes and strides.

Offsets, sizes and strides count elements of the view's element type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineSetAttr,
    DenseArrayBase,
    IndexType,
    MemRefType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
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

from ktir.dialect.ktdp.attrs import MemorySpace, MemorySpaceAttr, MemorySpaceAttribute, memory_space_of
from ktir.dialect.ktdp.syntax import (
    MixedIndex,
    mixed,
    numbers_of,
    parse_index_list,
    print_attributes,
    print_index_list,
    rank_of,
    resolve_indices,
    split_attributes,
    values_of,
)
from ktir.dialect.shaped import is_memref
from ktir.dialect.text.leniency import HasOldForm, tolerate
from ktir.maths.affine import canonical_set
from ktir.maths.sets import box_set


@irdl_op_definition
class ConstructMemoryViewOp(IRDLOperation, HasOldForm):
    """A strided view of memory: element ``c`` lies ``offset + sum(c_d * stride_d)`` elements after the start.

    Nothing is allocated. ``coordinate_set`` says which coordinates the view owns; its symbols stand, left to right, for
    the dynamic sizes. Where it is missing the view owns all its sizes; where ``memory_space`` is, it is global.
    """

    name = "ktdp.construct_memory_view"

    offset = operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    view = result_def()

    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    memory_space = opt_prop_def(MemorySpaceAttribute)
    coordinate_set = opt_prop_def(AffineSetAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        offset: SSAValue | Operation,
        sizes: Sequence[MixedIndex],
        strides: Sequence[MixedIndex],
        result_type: Attribute,
        memory_space: MemorySpaceAttribute | MemorySpace | None = None,
        coordinate_set: AffineSet | None = None,
    ) -> None:
        if isinstance(memory_space, MemorySpace):
            memory_space = MemorySpaceAttr.of(memory_space)
        super().__init__(
            operands=[offset, values_of(sizes), values_of(strides)],
            result_types=[result_type],
            properties={
                "static_sizes": DenseArrayBase.from_list(i64, numbers_of(sizes)),
                "static_strides": DenseArrayBase.from_list(i64, numbers_of(strides)),
                "memory_space": memory_space,
                "coordinate_set": None if coordinate_set is None else AffineSetAttr(canonical_set(coordinate_set)),
            },
        )

    @classmethod
    def build_static(
        cls,
        offset: SSAValue | Operation,
        sizes: Sequence[int],
        strides: Sequence[int],
        element_type: Attribute,
        memory_space: MemorySpaceAttribute | MemorySpace | None = None,
        coordinate_set: AffineSet | None = None,
    ) -> ConstructMemoryViewOp:
        """A view of known sizes; by default in global memory, owning the box of its sizes."""
        return cls(
            offset,
            sizes,
            strides,
            MemRefType(element_type, sizes),
            memory_space or MemorySpaceAttr("global"),
            coordinate_set or box_set(sizes),
        )

    @property
    def space(self) -> MemorySpace:
        """The memory the view lies in."""
        return memory_space_of(self.memory_space)

    def mixed_sizes(self) -> tuple[MixedIndex, ...]:
        return mixed(self.static_sizes.get_values(), self.sizes)

    def mixed_strides(self) -> tuple[MixedIndex, ...]:
        return mixed(self.static_strides.get_values(), self.strides)

    def owned_set(self) -> AffineSet:
        """``coordinate_set``, or all coordinates of a view that names none; symbols stand for the dynamic sizes."""
        if self.coordinate_set is not None:
            return self.coordinate_set.data
        return box_set([None if size == DYNAMIC_INDEX else size for size in self.static_sizes.get_values()])

    @classmethod
    def parse(cls, parser: Parser) -> ConstructMemoryViewOp:
        position = parser.pos
        offset = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        sizes, static_sizes = parse_index_list(parser, "sizes")
        parser.parse_punctuation(",")
        strides, static_strides = parse_index_list(parser, "strides")
        properties, attributes = split_attributes(cls, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        result_type = parser.parse_type()
        view = cls.build(
            operands=[
                parser.resolve_operand(offset, IndexType()),
                resolve_indices(parser, sizes),
                resolve_indices(parser, strides),
            ],
            result_types=[result_type],
            properties={
                **properties,
                "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
                "static_strides": DenseArrayBase.from_list(i64, static_strides),
            },
            attributes=attributes,
        )
        for rule, message in view.modernise():
            tolerate(parser, rule, message, position)
        return view

    def modernise(self) -> Iterator[tuple[str, str]]:
        """The two attributes that texts leave out."""
        for required, meaning in (("coordinate_set", "all its sizes"), ("memory_space", "global memory")):
            if required not in self.properties:
                yield "Q5", f"'{required}' is missing; {meaning} is assumed"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.offset)
        printer.print_string(", sizes: ")
        print_index_list(printer, self.mixed_sizes())
        printer.print_string(", strides: ")
        print_index_list(printer, self.mixed_strides())
        print_attributes(printer, self, leave_out=("static_sizes", "static_strides"))
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)

    def verify_(self) -> None:
        sizes, strides = self.static_sizes.get_values(), self.static_strides.get_values()
        if len(sizes) != len(strides):
            raise VerifyException("static_sizes and static_strides must have equal length")
        for name, static, dynamic in (("size", sizes, self.sizes), ("stride", strides, self.strides)):
            if len(dynamic) != list(static).count(DYNAMIC_INDEX):
                raise VerifyException(
                    f"number of dynamic {name} operands does not match kDynamic entries in static_{name}s"
                )
        if not is_memref(self.view.type):
            raise VerifyException("result must be a memref type")
        if rank_of(self.view.type) != len(sizes):
            raise VerifyException("result memref rank does not match sizes/strides length")
        self._verify_sizes(sizes, self.view.type.get_shape())

    def _verify_sizes(self, sizes: Sequence[int], shape: Sequence[int]) -> None:
        for position, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
            if size != DYNAMIC_INDEX and size < 0:
                raise VerifyException(f"sizes[{position}] must be non-negative, but got: {size}")
            if size != DYNAMIC_INDEX and extent != DYNAMIC_INDEX and size != extent:
                raise VerifyException(f"sizes[{position}]={size} does not match memref dimension {extent}")


@irdl_op_definition
class ConstructDistributedMemoryViewOp(IRDLOperation):
    """One view by global coordinates over several: each part owns the coordinates of its ``coordinate_set``."""

    name = "ktdp.construct_distributed_memory_view"

    views = var_operand_def()
    view = result_def()

    traits = traits_def(Pure())

    def __init__(self, views: Sequence[SSAValue], result_type: Attribute) -> None:
        super().__init__(operands=[views], result_types=[result_type])

    @classmethod
    def parse(cls, parser: Parser) -> ConstructDistributedMemoryViewOp:
        position = parser.pos
        parser.parse_punctuation("(")
        names: list[UnresolvedOperand] = []
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(")") is None:
            names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
            parser.parse_punctuation(":")
            types = [*parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)]
            parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        views = parser.resolve_operands(names, types, position)
        return cls.build(operands=[views], result_types=[parser.parse_type()], attributes=attributes)

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            if self.views:
                printer.print_list(self.views, printer.print_ssa_value)
                printer.print_string(" : ")
                printer.print_list(self.views.types, printer.print_attribute)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)

    def verify_(self) -> None:
        result = self.view.type
        if not is_memref(result):
            raise VerifyException("result must be a memref type")
        parts = list(self.views.types)
        ranked = [part for part in parts if is_memref(part)]
        if len(ranked) != len(parts):
            raise VerifyException("all inputs must be memref types")
        if any(part.get_element_type() != result.get_element_type() for part in ranked):
            raise VerifyException("all input memrefs must have the same element type as the result")
        if any(part.get_num_dims() != result.get_num_dims() for part in ranked):
            raise VerifyException("all input memrefs must have the same rank as the result")
