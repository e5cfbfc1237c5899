"""Operations of the ``ktdp`` dialect: one compute tile's view of memory, and what compute tiles do together.

A *memory view* gives a region of memory sizes and strides. An *access tile* is a set of coordinates of a view; it is
loaded into a tensor or stored from one. Offsets, sizes and strides count elements of the view's element type. The
``inter_tile`` operations are the only order between compute tiles inside a kernel: producers deliver partial tensors to
a future, consumers take them or reduce them.

Words. base: the view an access tile selects from. order: the map by which the points of a set are put in sequence,
rightmost result innermost. group: the compute tiles that work on one delivery, numbered by the future's ``groups``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ktir.dialect.ktdp.attrs import MemorySpace, MemorySpaceAttr, MemorySpaceAttribute, memory_space_of
from ktir.dialect.ktdp.types import (
    AccessTileType,
    RuntimeArgType,
    TileFutureType,
    parse_future,
    parse_short,
    print_short,
)
from ktir.dialect.text.affine_reader import Subscripts, value_key
from ktir.dialect.text.leniency import tolerate
from ktir.errors import UnboundedSet
from ktir.maths.affine import canonical_map, canonical_set, expression_text, sorted_expression, substitute
from ktir.maths.sets import bounds, box_set, identity_order, points

MixedIndex = int | SSAValue
"""A size or stride: known, or the value that holds it."""

ENUMERATION_LIMIT = 1 << 16
"""How many points of a set a verifier rule looks at; a larger set is not checked."""

# ---------------------------------------------------------------------------------------------------------------- text


def _print_attributes(printer: Printer, op: IRDLOperation, *, leave_out: Iterable[str] = ()) -> None:
    """Prints all properties and attributes in one dictionary, in alphabetical order."""
    hidden = {"operandSegmentSizes", *leave_out}
    shown = {name: value for name, value in sorted((op.properties | op.attributes).items()) if name not in hidden}
    if shown:
        printer.print_op_attributes(shown)


def _split_attributes(
    kind: type[IRDLOperation], entries: dict[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """What of ``entries`` is a property of ``kind``, and the rest."""
    names = kind.get_irdl_definition().properties
    return (
        {name: value for name, value in entries.items() if name in names},
        {name: value for name, value in entries.items() if name not in names},
    )


def _parse_index_list(parser: Parser, what: str) -> tuple[list[UnresolvedOperand], list[int]]:
    """``sizes: [4, %n]`` into the values and, with ``DYNAMIC_INDEX`` in their place, the numbers."""
    parser.parse_keyword(what)
    parser.parse_punctuation(":")
    values: list[UnresolvedOperand] = []

    def entry() -> int:
        if (value := parser.parse_optional_unresolved_operand()) is not None:
            values.append(value)
            return DYNAMIC_INDEX
        return parser.parse_integer(allow_boolean=False)

    return values, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, entry)


def _print_index_list(printer: Printer, entries: Sequence[MixedIndex]) -> None:
    def entry(value: MixedIndex) -> None:
        if isinstance(value, int):
            printer.print_string(str(value))
        else:
            printer.print_ssa_value(value)

    with printer.in_square_brackets():
        printer.print_list(entries, entry)


def _mixed(static: Sequence[int], dynamic: Sequence[SSAValue]) -> tuple[MixedIndex, ...]:
    values = iter(dynamic)
    return tuple(next(values) if entry == DYNAMIC_INDEX else entry for entry in static)


def _parse_values(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def _parse_optional_symbols(parser: Parser) -> list[UnresolvedOperand]:
    return _parse_values(parser) if parser.parse_optional_keyword("symbols") is not None else []


def _print_symbols(printer: Printer, symbols: Sequence[SSAValue]) -> None:
    if symbols:
        printer.print_string(" symbols(")
        printer.print_list(symbols, printer.print_ssa_value)
        printer.print_string(")")


def _resolve_indices(parser: Parser, operands: Iterable[UnresolvedOperand]) -> list[SSAValue]:
    return [parser.resolve_operand(operand, IndexType()) for operand in operands]


def _print_expression(
    printer: Printer, expression: AffineExpr, dims: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()
) -> None:
    """Prints ``expression`` with the values' own names for its variables."""
    text = expression_text(
        expression,
        dims=[f"{{d{position}}}" for position in range(len(dims))],
        syms=[f"{{s{position}}}" for position in range(len(symbols))],
    )
    for part in re.split(r"\{(\w\d+)\}", text):
        if part.startswith("d") and part[1:].isdigit():
            printer.print_ssa_value(dims[int(part[1:])])
        elif part.startswith("s") and part[1:].isdigit():
            printer.print_string("symbol(")
            printer.print_ssa_value(symbols[int(part[1:])])
            printer.print_string(")")
        else:
            printer.print_string(part)


def _parse_set_property(parser: Parser, keyword: str) -> AffineSetAttr:
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, AffineSetAttr):
        parser.raise_error(f"expected an integer set for '{keyword}'", position)
    return attribute


def _rank(type: Attribute) -> int | None:
    return type.get_num_dims() if isa(type, MemRefType[Attribute] | TensorType[Attribute]) else None


# ---------------------------------------------------------------------------------------------------------- identity


@irdl_op_definition
class GetComputeTileIdOp(IRDLOperation):
    """The executing tile's coordinates on the grid of the function, leading axes first."""

    name = "ktdp.get_compute_tile_id"

    tile_ids = var_result_def(IndexType)

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
        _print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_list(self.tile_ids.types, printer.print_attribute)

    def verify_(self) -> None:
        if not self.tile_ids:
            raise VerifyException("must return at least one index (num tile-grid dims >= 1)")


# ------------------------------------------------------------------------------------------------------- memory views


@irdl_op_definition
class ConstructMemoryViewOp(IRDLOperation):
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
            operands=[offset, _values(sizes), _values(strides)],
            result_types=[result_type],
            properties={
                "static_sizes": DenseArrayBase.from_list(i64, _numbers(sizes)),
                "static_strides": DenseArrayBase.from_list(i64, _numbers(strides)),
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
        return _mixed(self.static_sizes.get_values(), self.sizes)

    def mixed_strides(self) -> tuple[MixedIndex, ...]:
        return _mixed(self.static_strides.get_values(), self.strides)

    def owned_set(self) -> AffineSet:
        """``coordinate_set``, or all coordinates of a view of static sizes that names none."""
        return self.coordinate_set.data if self.coordinate_set else box_set(self.static_sizes.get_values())

    @classmethod
    def parse(cls, parser: Parser) -> ConstructMemoryViewOp:
        position = parser.pos
        offset = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        sizes, static_sizes = _parse_index_list(parser, "sizes")
        parser.parse_punctuation(",")
        strides, static_strides = _parse_index_list(parser, "strides")
        properties, attributes = _split_attributes(cls, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        result_type = parser.parse_type()
        for required, meaning in (("coordinate_set", "all its sizes"), ("memory_space", "global memory")):
            if required not in properties:
                tolerate(parser, "Q5", f"'{required}' is missing; {meaning} is assumed", position)
        return cls.build(
            operands=[
                parser.resolve_operand(offset, IndexType()),
                _resolve_indices(parser, sizes),
                _resolve_indices(parser, strides),
            ],
            result_types=[result_type],
            properties={
                **properties,
                "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
                "static_strides": DenseArrayBase.from_list(i64, static_strides),
            },
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.offset)
        printer.print_string(", sizes: ")
        _print_index_list(printer, self.mixed_sizes())
        printer.print_string(", strides: ")
        _print_index_list(printer, self.mixed_strides())
        _print_attributes(printer, self, leave_out=("static_sizes", "static_strides"))
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
        if not isa(self.view.type, MemRefType[Attribute]):
            raise VerifyException("result must be a memref type")
        if _rank(self.view.type) != len(sizes):
            raise VerifyException("result memref rank does not match sizes/strides length")
        self._verify_sizes(sizes, self.view.type.get_shape())

    def _verify_sizes(self, sizes: Sequence[int], shape: Sequence[int]) -> None:
        for position, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
            if size != DYNAMIC_INDEX and size < 0:
                raise VerifyException(f"sizes[{position}] must be non-negative, but got: {size}")
            if size != DYNAMIC_INDEX and extent != DYNAMIC_INDEX and size != extent:
                raise VerifyException(f"sizes[{position}]={size} does not match memref dimension {extent}")


def _values(entries: Sequence[MixedIndex]) -> list[SSAValue]:
    return [entry for entry in entries if not isinstance(entry, int)]


def _numbers(entries: Sequence[MixedIndex]) -> list[int]:
    return [entry if isinstance(entry, int) else DYNAMIC_INDEX for entry in entries]


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
        _print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)

    def verify_(self) -> None:
        result = self.view.type
        if not isa(result, MemRefType[Attribute]):
            raise VerifyException("result must be a memref type")
        parts = list(self.views.types)
        ranked = [part for part in parts if isa(part, MemRefType[Attribute])]
        if len(ranked) != len(parts):
            raise VerifyException("all inputs must be memref types")
        if any(part.get_element_type() != result.get_element_type() for part in ranked):
            raise VerifyException("all input memrefs must have the same element type as the result")
        if any(part.get_num_dims() != result.get_num_dims() for part in ranked):
            raise VerifyException("all input memrefs must have the same rank as the result")


# ------------------------------------------------------------------------------------------------------- access tiles


@irdl_op_definition
class ConstructAccessTileOp(IRDLOperation):
    """The coordinates ``base_map(indices) + p`` of ``base``, for each point ``p`` of ``access_tile_set``.

    Points are enumerated lexicographically by ``access_tile_order``; dimension ``k`` of the tile has the extent of the
    set along input dimension ``order_k``.
    """

    name = "ktdp.construct_access_tile"

    base = operand_def()
    indices = var_operand_def(IndexType)
    symbol_operands = var_operand_def(IndexType)
    tile = result_def(AccessTileType)

    base_map = prop_def(AffineMapAttr)
    access_tile_set = prop_def(AffineSetAttr)
    access_tile_order = prop_def(AffineMapAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        base: SSAValue | Operation,
        base_map: AffineMap,
        indices: Sequence[SSAValue | Operation],
        access_tile_set: AffineSet,
        access_tile_order: AffineMap,
        result_type: AccessTileType,
        symbol_operands: Sequence[SSAValue | Operation] = (),
    ) -> None:
        super().__init__(
            operands=[base, indices, symbol_operands],
            result_types=[result_type],
            properties={
                "base_map": AffineMapAttr(canonical_map(base_map)),
                "access_tile_set": AffineSetAttr(canonical_set(access_tile_set)),
                "access_tile_order": AffineMapAttr(canonical_map(access_tile_order)),
            },
        )

    @classmethod
    def box(
        cls, base: SSAValue | Operation, indices: Sequence[MixedIndex | Operation], shape: Sequence[int]
    ) -> ConstructAccessTileOp:
        """The box of ``shape`` that begins at ``indices``, in row-major order."""
        values: list[SSAValue] = []
        results: list[AffineExpr] = []
        for index in indices:
            if isinstance(index, int):
                results.append(AffineConstantExpr(index))
                continue
            value = SSAValue.get(index)
            if value not in values:
                values.append(value)
            results.append(AffineDimExpr(values.index(value)))
        return cls(
            base,
            AffineMap(len(values), 0, tuple(results)),
            values,
            box_set(shape),
            identity_order(len(shape)),
            AccessTileType(shape),
        )

    @classmethod
    def parse(cls, parser: Parser) -> ConstructAccessTileOp:
        base = parser.parse_unresolved_operand()
        subscripts = Subscripts(parser)
        base_map = subscripts.map_of(subscripts.bracket())
        symbols = _parse_optional_symbols(parser)
        position = parser.pos
        properties, attributes = _split_attributes(cls, parser.parse_optional_attr_dict())
        cls._check_text(parser, position, base_map, properties, len(symbols))
        parser.parse_punctuation(":")
        base_value = parser.resolve_operand(base, parser.parse_type())
        parser.parse_punctuation("->")
        indices = _resolve_indices(parser, (*subscripts.dims.values(), *subscripts.symbols.values()))
        return cls.build(
            operands=[base_value, indices, _resolve_indices(parser, symbols)],
            result_types=[parser.parse_type()],
            properties={**properties, "base_map": AffineMapAttr(base_map)},
            attributes=attributes,
        )

    @staticmethod
    def _check_text(
        parser: Parser, position: int, base_map: AffineMap, properties: dict[str, Attribute], symbols: int
    ) -> None:
        """What the reference dialect finds while it parses."""
        tile_set, order = properties.get("access_tile_set"), properties.get("access_tile_order")
        if not isinstance(tile_set, AffineSetAttr):
            parser.raise_error("Access tile set is missing in the operation", position)
        if not isinstance(order, AffineMapAttr):
            parser.raise_error("Access tile order is missing in the operation", position)
        dims = tile_set.data.num_dims
        if dims != len(base_map.results):
            parser.raise_error("Access tile set and Base input dimensions should match", position)
        if tile_set.data.num_symbols != symbols:
            parser.raise_error(
                f"access_tile_set has {tile_set.data.num_symbols} symbols but got {symbols} symbol operands", position
            )
        if order.data.num_dims != len(order.data.results):
            parser.raise_error(
                "Number of input dimensions and output dimensions in the access tile order should match", position
            )
        if order.data.num_dims != dims:
            parser.raise_error(
                "Number of dimensions in the access tile order and access tile set must match!", position
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.base)
        base_map = self.base_map.data
        dims, symbols = self.indices[: base_map.num_dims], self.indices[base_map.num_dims :]
        with printer.in_square_brackets():
            printer.print_list(base_map.results, lambda result: _print_expression(printer, result, dims, symbols))
        _print_symbols(printer, self.symbol_operands)
        _print_attributes(printer, self, leave_out=("base_map",))
        printer.print_string(" : ")
        printer.print_attribute(self.base.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.tile.type)

    def verify_(self) -> None:
        base_map, tile_set, order = self.base_map.data, self.access_tile_set.data, self.access_tile_order.data
        dims = tile_set.num_dims
        if dims != len(base_map.results):
            raise VerifyException(
                f"access_tile_set dimensions ({dims}) must match base_map dims ({len(base_map.results)})"
            )
        if base_map.num_dims + base_map.num_symbols != len(self.indices):
            raise VerifyException(
                f"base_map expects {base_map.num_dims + base_map.num_symbols} operands but got {len(self.indices)}"
            )
        _verify_symbols("access_tile_set", tile_set, self.symbol_operands)
        if order.num_dims != len(order.results):
            raise VerifyException(
                f"access_tile_order must have equal number of inputs ({order.num_dims}) and outputs "
                f"({len(order.results)})"
            )
        if len(order.results) != dims:
            raise VerifyException(
                f"access_tile_order dimensions ({len(order.results)}) must match access_tile_set dimensions ({dims})"
            )
        rank = len(self.tile.type.get_shape())
        if rank != dims:
            raise VerifyException(f"result type rank ({rank}) must match access_tile_set dimensions ({dims})")
        base_rank = _rank(self.base.type)
        if base_rank is None:
            raise VerifyException("base must be a ranked memref or tensor type")
        if base_rank != dims:
            raise VerifyException(f"number of subscripts ({dims}) must match base rank ({base_rank})")


def _verify_symbols(name: str, set: AffineSet, operands: Sequence[SSAValue]) -> None:
    if set.num_symbols != len(operands):
        raise VerifyException(f"{name} has {set.num_symbols} symbols but got {len(operands)} symbol operands")


@irdl_op_definition
class RegionTerminatorOp(IRDLOperation):
    """Ends the hidden region of an indirect access tile; never printed."""

    name = "ktdp.region_terminator"

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict"


@irdl_op_definition
class ConstructIndirectAccessTileOp(IRDLOperation):
    """Coordinates of ``base`` of which some are read from memory.

    For each point ``v`` of ``variables_space_set``, in lexicographic order of ``variables_space_order``, coordinate
    ``d`` is ``map_d(captured, v)``, or what the index view of ``d`` holds at ``map_d(captured, v)``. Coordinates are
    absolute in ``base``. Index views are read when the tile is loaded or stored. The hidden region only declares the
    intermediate variables.
    """

    name = "ktdp.construct_indirect_access_tile"

    base = operand_def()
    index_views = var_operand_def()
    captured = var_operand_def(IndexType)
    symbol_operands = var_operand_def(IndexType)
    tile = result_def(AccessTileType)
    variables = region_def("single_block")

    per_dim_subscript_kinds = prop_def(ArrayAttr)
    per_dim_subscript_maps = prop_def(ArrayAttr)
    variables_space_set = prop_def(AffineSetAttr)
    variables_space_order = prop_def(AffineMapAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        base: SSAValue | Operation,
        subscripts: Sequence[tuple[SSAValue | Operation | None, AffineMap]],
        captured: Sequence[SSAValue | Operation],
        variables_space_set: AffineSet,
        variables_space_order: AffineMap,
        result_type: AccessTileType,
        symbol_operands: Sequence[SSAValue | Operation] = (),
    ) -> None:
        """``subscripts``: per dimension of ``base`` the index view, or None, and its map over captured values and
        variables."""
        super().__init__(
            operands=[base, [view for view, _ in subscripts if view is not None], captured, symbol_operands],
            result_types=[result_type],
            properties={
                "per_dim_subscript_kinds": ArrayAttr(BoolAttr.from_bool(view is not None) for view, _ in subscripts),
                "per_dim_subscript_maps": ArrayAttr(AffineMapAttr(canonical_map(map)) for _, map in subscripts),
                "variables_space_set": AffineSetAttr(canonical_set(variables_space_set)),
                "variables_space_order": AffineMapAttr(canonical_map(variables_space_order)),
            },
            regions=[_variables_region([None] * variables_space_set.num_dims)],
        )

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Per dimension of the base, whether its coordinate is read from an index view."""
        return tuple(isinstance(kind, IntegerAttr) and bool(kind.value.data) for kind in self.per_dim_subscript_kinds)

    @property
    def maps(self) -> tuple[AffineMap, ...]:
        """Per dimension of the base, the map over captured values and variables."""
        return tuple(map.data for map in self.per_dim_subscript_maps if isinstance(map, AffineMapAttr))

    def subscripts(self) -> Iterator[tuple[SSAValue | None, AffineMap]]:
        """Per dimension of the base, its index view or None, and its map."""
        views = iter(self.index_views)
        return ((next(views) if kind else None, map) for kind, map in zip(self.kinds, self.maps, strict=True))

    @classmethod
    def parse(cls, parser: Parser) -> ConstructIndirectAccessTileOp:
        if parser.parse_optional_keyword("intermediate_variables") is None:
            parser.raise_error("error parsing intermediate_variables")
        variables = _parse_values(parser)
        base = parser.parse_unresolved_operand()
        reader = _SubscriptReader(parser)
        subscripts = reader.subscripts()
        symbols = _parse_optional_symbols(parser)
        position = parser.pos
        properties, attributes = _split_attributes(cls, parser.parse_optional_attr_dict())
        cls._check_text(parser, position, properties, len(symbols))
        parser.parse_punctuation(":")
        base_type, view_types, result_type = _parse_indirect_types(parser, sum(s[0] is not None for s in subscripts))
        captured, maps = reader.over(variables, [results for _, results in subscripts])
        views = [view for view, _ in subscripts if view is not None]
        names = [variable.operand_name for variable in variables]
        return cls.build(
            operands=[
                parser.resolve_operand(base, base_type),
                [parser.resolve_operand(view, type) for view, type in zip(views, view_types, strict=True)],
                _resolve_indices(parser, captured),
                _resolve_indices(parser, symbols),
            ],
            result_types=[result_type],
            properties={
                **properties,
                "per_dim_subscript_kinds": ArrayAttr(BoolAttr.from_bool(view is not None) for view, _ in subscripts),
                "per_dim_subscript_maps": ArrayAttr(AffineMapAttr(map) for map in maps),
            },
            attributes=attributes,
            regions=[_variables_region(names)],
        )

    @staticmethod
    def _check_text(parser: Parser, position: int, properties: dict[str, Attribute], symbols: int) -> None:
        space, order = properties.get("variables_space_set"), properties.get("variables_space_order")
        if not isinstance(space, AffineSetAttr):
            parser.raise_error("error parsing attributes: 'variables_space_set' is missing", position)
        if not isinstance(order, AffineMapAttr):
            parser.raise_error("error parsing attributes: 'variables_space_order' is missing", position)
        if space.data.num_symbols != symbols:
            parser.raise_error(
                f"variables_space_set has {space.data.num_symbols} symbols but got {symbols} symbol operands", position
            )

    def print(self, printer: Printer) -> None:
        variables = self.variables.block.args
        printer.print_string(" intermediate_variables(")
        printer.print_list(variables, printer.print_ssa_value)
        printer.print_string(") ")
        printer.print_ssa_value(self.base)
        values = (*self.captured, *variables)

        def subscript(view: SSAValue | None, map: AffineMap) -> None:
            if view is not None:
                printer.print_string("ind(")
                printer.print_ssa_value(view)
                printer.print_string("[")
            else:
                printer.print_string("(")
            printer.print_list(map.results, lambda result: _print_expression(printer, result, values))
            printer.print_string(")" if view is None else "])")

        with printer.in_square_brackets():
            printer.print_list(self.subscripts(), lambda pair: subscript(*pair))
        _print_symbols(printer, self.symbol_operands)
        _print_attributes(printer, self, leave_out=("per_dim_subscript_kinds", "per_dim_subscript_maps"))
        printer.print_string(" : ")
        printer.print_list((self.base.type, *self.index_views.types), printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.tile.type)

    def verify_(self) -> None:
        space, order = self.variables_space_set.data, self.variables_space_order.data
        variables = len(self.variables.block.args)
        if space.num_dims != order.num_dims:
            raise VerifyException(
                f"variables_space_set dimensions ({space.num_dims}) must match variables_space_order inputs "
                f"({order.num_dims})"
            )
        if order.num_dims != len(order.results):
            raise VerifyException(
                f"variables_space_order must have equal number of inputs ({order.num_dims}) and outputs "
                f"({len(order.results)})"
            )
        if variables != space.num_dims:
            raise VerifyException(
                f"number of intermediate variables ({variables}) must match variables_space_set dimensions "
                f"({space.num_dims})"
            )
        _verify_symbols("variables_space_set", space, self.symbol_operands)
        self._verify_subscripts(variables)
        rank = len(self.tile.type.get_shape())
        if rank != space.num_dims:
            raise VerifyException(
                f"result type rank ({rank}) must match variables_space_set dimensions ({space.num_dims})"
            )

    def _verify_subscripts(self, variables: int) -> None:
        kinds, maps = self.per_dim_subscript_kinds.data, self.per_dim_subscript_maps.data
        if len(kinds) != len(maps):
            raise VerifyException(
                f"per_dim_subscript_kinds size ({len(kinds)}) must match per_dim_subscript_maps size ({len(maps)})"
            )
        base_rank = _rank(self.base.type)
        if base_rank is None:
            raise VerifyException("base must be a ranked memref or tensor type")
        if len(kinds) != base_rank:
            raise VerifyException(f"number of subscripts ({len(kinds)}) must match base rank ({base_rank})")
        if not all(isa(kind, BoolAttr) for kind in kinds):
            raise VerifyException("per_dim_subscript_kinds must contain BoolAttr elements")
        for position, map in enumerate(maps):
            if not isinstance(map, AffineMapAttr):
                raise VerifyException(f"per_dim_subscript_maps[{position}] must be an AffineMapAttr")
        if sum(self.kinds) != len(self.index_views):
            raise VerifyException(
                f"number of indirect dimensions ({sum(self.kinds)}) must match number of indirect memrefs "
                f"({len(self.index_views)})"
            )
        expected = len(self.captured) + variables
        for dimension, (view, map) in enumerate(self.subscripts()):
            self._verify_subscript(dimension, view, map, expected)

    def _verify_subscript(self, dimension: int, view: SSAValue | None, map: AffineMap, expected: int) -> None:
        if map.num_dims != expected:
            raise VerifyException(
                f"subscript map for dimension {dimension} has {map.num_dims} dimensions, but expected {expected} "
                "(captured_variables + intermediate_variables)"
            )
        results = len(map.results)
        if view is None and results != 1:
            raise VerifyException(
                f"direct subscript map for dimension {dimension} must produce exactly 1 result, but produces {results}"
            )
        if view is not None and (rank := _rank(view.type)) != results:
            raise VerifyException(
                f"indirect subscript map for dimension {dimension} produces {results} results, but indirect memref has "
                f"rank {rank}"
            )


def _variables_region(names: Sequence[str | None]) -> Region:
    """One index argument per intermediate variable, and the terminator."""
    block = Block(arg_types=[IndexType()] * len(names))
    for argument, name in zip(block.args, names, strict=True):
        argument.name_hint = name if name is not None and SSAValue.is_valid_name(name) else None
    block.add_op(RegionTerminatorOp())
    return Region(block)


class _SubscriptReader:
    """Reads the subscripts of an indirect access tile; which names are variables is only decided afterwards."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.values = Subscripts(parser)

    def subscripts(self) -> list[tuple[UnresolvedOperand | None, list[AffineExpr]]]:
        """Per subscript the index view, or None, and the expressions."""
        subscripts = self.parser.parse_comma_separated_list(self.parser.Delimiter.SQUARE, self._subscript)
        if self.values.symbols:
            self.parser.raise_error("error canonicalizing subscripts: symbol(...) has no meaning here")
        return subscripts

    def _subscript(self) -> tuple[UnresolvedOperand | None, list[AffineExpr]]:
        parser = self.parser
        if parser.parse_optional_keyword("ind") is not None:
            with parser.in_parens():
                view = parser.parse_unresolved_operand()
                return view, self.values.bracket()
        position = parser.pos
        content = parser.lexer.input.content
        expression = self.values.expression()
        if content[position] != "(" or not content[position : parser.pos].rstrip().endswith(")"):
            tolerate(parser, "M2", "a direct subscript must be parenthesised", position)
        return None, [expression]

    def over(
        self, variables: Sequence[UnresolvedOperand], results: Sequence[Sequence[AffineExpr]]
    ) -> tuple[list[UnresolvedOperand], list[AffineMap]]:
        """The captured values, and the maps of them and the variables."""
        names = [value_key(variable) for variable in variables]
        captured = [operand for key, operand in self.values.dims.items() if key not in names]
        places = [*(value_key(operand) for operand in captured), *names]
        dims = [AffineDimExpr(places.index(key)) for key in self.values.dims]
        maps = [
            AffineMap(len(places), 0, tuple(sorted_expression(substitute(result, dims, ())) for result in each))
            for each in results
        ]
        return captured, maps


def _parse_indirect_types(parser: Parser, views: int) -> tuple[Attribute, Sequence[Attribute], Attribute]:
    """``base type, index view types -> tile type``; older text has a comma before the tile type."""
    position = parser.pos
    types: list[Attribute] = [*parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)]
    if isinstance(types[-1], AccessTileType):
        tolerate(parser, "M4", "the result type must follow '->'", position)
        result = types.pop()
    else:
        parser.parse_punctuation("->")
        result = parser.parse_type()
    if len(types) != views + 1:
        parser.raise_error(
            f"expected {views + 1} types (base + {views} indirect memrefs), but got {len(types)}", position
        )
    return types[0], types[1:], result


# ------------------------------------------------------------------------------------------------------ load and store


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
        _print_attributes(printer, self)
        printer.print_string(" : ")
        print_short(printer, self.access_tile.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if not isa(self.result.type, TensorType[Attribute]):
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
        _print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.data.type)
        printer.print_string(", ")
        print_short(printer, self.access_tile.type)

    def verify_(self) -> None:
        if not isa(self.data.type, TensorType[Attribute]):
            raise VerifyException("data_tile must be a ranked tensor")
        if cast(AccessTileType, self.access_tile.type).get_shape() != self.data.type.get_shape():
            raise VerifyException("data tile shape must match access tile shape")


# -------------------------------------------------------------------------------------------------- run-time arguments


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
        _print_attributes(printer, self, leave_out=("kind",))
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


# ---------------------------------------------------------------------------------------------- between compute tiles


class YieldOperation(AbstractYieldOperation[Attribute]):
    """Hands values from a region to the operation around it; ``%v : type`` or nothing."""


@irdl_op_definition
class YieldPartialOp(YieldOperation):
    """One contribution of a producer tile."""

    name = "ktdp.yield_partial"

    traits = lazy_traits_def(lambda: (HasParent(InterTileProduceOp), IsTerminator(), Pure()))


@irdl_op_definition
class YieldReducedOp(YieldOperation):
    """The combination of two contributions."""

    name = "ktdp.yield_reduced"

    traits = lazy_traits_def(lambda: (HasParent(InterTileReduceOp), IsTerminator(), Pure()))


@irdl_op_definition
class InterTileProduceOp(IRDLOperation):
    """Runs ``body`` on the producer tiles of each group; what it yields is the tile's contribution to the future.

    ``producer_tiles_per_group`` is a set of tile ids with the group's number as its symbol; the body's argument is the
    number of the group that the executing tile belongs to.
    """

    name = "ktdp.inter_tile_produce"

    future = result_def(TileFutureType)
    body = region_def("single_block")

    producer_tiles_per_group = prop_def(AffineSetAttr)

    def __init__(self, future_type: TileFutureType, producer_tiles_per_group: AffineSet, body: Region) -> None:
        super().__init__(
            result_types=[future_type],
            properties={"producer_tiles_per_group": AffineSetAttr(canonical_set(producer_tiles_per_group))},
            regions=[body],
        )

    @classmethod
    def parse(cls, parser: Parser) -> InterTileProduceOp:
        producers = _parse_set_property(parser, "producer_tiles_per_group")
        position = parser.pos
        groups = None
        if parser.parse_optional_punctuation(",") is not None:
            tolerate(parser, "M14", "'groups' belongs into the tile_future type", position)
            groups = _parse_set_property(parser, "groups")
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        if parser.parse_optional_punctuation(":") is not None:
            tolerate(parser, "M13", "the types of the partials belong into the tile_future type only", position)
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation("->")
        future = parse_future(parser, groups)
        return cls.build(
            result_types=[future],
            properties={"producer_tiles_per_group": producers},
            attributes=attributes,
            regions=[parser.parse_region()],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" producer_tiles_per_group = ")
        printer.print_attribute(self.producer_tiles_per_group)
        _print_attributes(printer, self, leave_out=("producer_tiles_per_group",))
        printer.print_string(" -> ")
        print_short(printer, self.future.type)
        printer.print_string(" ")
        printer.print_region(self.body)

    def verify_(self) -> None:
        if [argument.type for argument in self.body.block.args] != [IndexType()]:
            raise VerifyException("producer region must take a single `index` group-id argument")
        future, producers = self.future.type, self.producer_tiles_per_group.data
        if producers.num_symbols != 1:
            raise VerifyException("`producer_tiles_per_group` must have exactly one symbol (the group index g)")
        self._verify_disjoint(future.groups.data, producers)
        last = self.body.block.last_op
        if not isinstance(last, YieldPartialOp):
            raise VerifyException("producer region must end with ktdp.yield_partial")
        partials = future.partial_types.data
        if len(last.arguments) != len(partials):
            raise VerifyException(
                f"yield_partial yields {len(last.arguments)} values but the future carries {len(partials)} partial "
                "type(s)"
            )
        for position, (yielded, partial) in enumerate(zip(last.arguments.types, partials, strict=True)):
            if yielded != partial:
                raise VerifyException(
                    f"yield_partial operand #{position} type {yielded} does not match future partial type {partial}"
                )

    @staticmethod
    def _verify_disjoint(groups: AffineSet, producers: AffineSet) -> None:
        """No tile produces for two groups; sets that cannot be enumerated are not judged."""
        group_of: dict[tuple[int, ...], int] = {}
        looked_at = 0
        for (group,) in enumerable_points(groups, ()):
            looked_at += 1 + _box_size(producers, (group,))
            if looked_at > ENUMERATION_LIMIT:
                return
            for tile in enumerable_points(producers, (group,)):
                if group_of.setdefault(tile, group) != group:
                    raise VerifyException(
                        f"producer_tiles_per_group for groups {group_of[tile]} and {group} are not disjoint"
                    )


def _box_size(set: AffineSet, symbols: Sequence[int]) -> int:
    """Points of the box around ``set``, those of unbounded dimensions left out."""
    return prod(max(0, (stop or 0) - (start or 0)) for start, stop in bounds(set, symbols))


def enumerable_points(set: AffineSet, symbols: Sequence[int]) -> list[tuple[int, ...]]:
    """The points of a small set; none of one that is too large or has no constant bounds."""
    try:
        if _box_size(set, symbols) > ENUMERATION_LIMIT:
            return []
        return list(islice(points(set, symbols), ENUMERATION_LIMIT))
    except (UnboundedSet, ZeroDivisionError):
        return []


def _verify_consumers(consumers: AffineSet) -> None:
    if consumers.num_symbols != 1:
        raise VerifyException("`consumer_tiles_per_group` must have exactly one symbol (the group index g)")
    if consumers.num_dims != 1:
        raise VerifyException("`consumer_tiles_per_group` must have exactly one dimension (the tile id i)")


def _verify_dependency(dependency: AffineSetAttr | None) -> None:
    if dependency is None:
        return
    if dependency.data.num_symbols not in (1, 2):
        raise VerifyException("`producer_dependency_per_consumer` must have one symbol (c) or two symbols (c, g)")
    if dependency.data.num_dims != 1:
        raise VerifyException(
            "`producer_dependency_per_consumer` must have exactly one dimension (the producer tile id p)"
        )


def _parse_consumer_head(parser: Parser) -> tuple[UnresolvedOperand, dict[str, Attribute]]:
    """``(%future) consumer_tiles_per_group = #c, producer_dependency_per_consumer = #d``"""
    with parser.in_parens():
        future = parser.parse_unresolved_operand()
    consumers = _parse_set_property(parser, "consumer_tiles_per_group")
    return future, {"consumer_tiles_per_group": consumers}


def _resolve_future(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """Reads the future's type after the colon; old text leaves out the groups, which its definition knows."""
    known = parser.ssa_values.get(operand.operand_name)
    definition = known[operand.index].type if known is not None and operand.index < len(known) else None
    groups = definition.groups if isinstance(definition, TileFutureType) else None
    return parser.resolve_operand(operand, parse_future(parser, groups))


RESULTS_MATCH = "failed to verify that result types must match future partial types"


def _same_but_units(types: Iterable[Attribute], partials: Sequence[Attribute]) -> bool:
    """Whether ``types`` are the ``partials``, each with or without its dimensions of extent one."""
    given = list(types)
    return len(given) == len(partials) and all(map(_is_same_but_units, given, partials))


def _is_same_but_units(type: Attribute, partial: Attribute) -> bool:
    if not isa(type, TensorType[Attribute]) or not isa(partial, TensorType[Attribute]):
        return type == partial
    plain, expected = ([extent for extent in each.get_shape() if extent != 1] for each in (type, partial))
    return plain == expected and type.get_element_type() == partial.get_element_type()


def _parse_result_types(parser: Parser) -> list[Attribute]:
    parser.parse_punctuation("->")
    parenthesised = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    if parenthesised is not None:
        return [*parenthesised]
    return [*parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)]


@irdl_op_definition
class InterTileConsumeOp(IRDLOperation):
    """What one producer delivered, on each consumer tile of its group; no meaning on other tiles."""

    name = "ktdp.inter_tile_consume"

    future = operand_def(TileFutureType)
    delivered = var_result_def()

    consumer_tiles_per_group = prop_def(AffineSetAttr)
    producer_dependency_per_consumer = opt_prop_def(AffineSetAttr)

    def __init__(
        self,
        future: SSAValue | Operation,
        consumer_tiles_per_group: AffineSet,
        producer_dependency_per_consumer: AffineSet | None = None,
    ) -> None:
        value = SSAValue.get(future, type=TileFutureType)
        dependency = producer_dependency_per_consumer
        super().__init__(
            operands=[value],
            result_types=[value.type.partial_types.data],
            properties={
                "consumer_tiles_per_group": AffineSetAttr(canonical_set(consumer_tiles_per_group)),
                "producer_dependency_per_consumer": dependency and AffineSetAttr(canonical_set(dependency)),
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> InterTileConsumeOp:
        future, properties = _parse_consumer_head(parser)
        if parser.parse_optional_punctuation(",") is not None:
            name = "producer_dependency_per_consumer"
            properties[name] = _parse_set_property(parser, name)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = _resolve_future(parser, future)
        return cls.build(
            operands=[value],
            result_types=[_parse_result_types(parser)],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        _print_consumer_head(printer, self.future, self.consumer_tiles_per_group)
        if self.producer_dependency_per_consumer is not None:
            printer.print_string(", producer_dependency_per_consumer = ")
            printer.print_attribute(self.producer_dependency_per_consumer)
        _print_attributes(printer, self, leave_out=("consumer_tiles_per_group", "producer_dependency_per_consumer"))
        _print_future_and_results(printer, self.future, self.delivered.types)

    def verify_(self) -> None:
        if tuple(self.delivered.types) != cast(TileFutureType, self.future.type).partial_types.data:
            raise VerifyException(RESULTS_MATCH)
        _verify_consumers(self.consumer_tiles_per_group.data)
        _verify_dependency(self.producer_dependency_per_consumer)


def _print_consumer_head(printer: Printer, future: SSAValue, consumers: AffineSetAttr) -> None:
    with printer.in_parens():
        printer.print_ssa_value(future)
    printer.print_string(" consumer_tiles_per_group = ")
    printer.print_attribute(consumers)


def _print_future_and_results(printer: Printer, future: SSAValue, results: Iterable[Attribute]) -> None:
    printer.print_string(" : ")
    print_short(printer, future.type)
    printer.print_string(" -> ")
    printer.print_list(results, printer.print_attribute)


@irdl_op_definition
class InterTileReduceOp(IRDLOperation):
    """The combination of all contributions of a group, on its consumer tiles; no meaning on other tiles.

    The reducer takes two contributions and is taken to be associative and commutative; ``identities`` are its neutral
    elements.
    """

    name = "ktdp.inter_tile_reduce"

    future = operand_def(TileFutureType)
    identities = var_operand_def()
    reduced = var_result_def()
    reducer = region_def("single_block")

    consumer_tiles_per_group = prop_def(AffineSetAttr)
    producer_dependency_per_consumer = opt_prop_def(AffineSetAttr)

    def __init__(
        self,
        future: SSAValue | Operation,
        identities: Sequence[SSAValue | Operation],
        consumer_tiles_per_group: AffineSet,
        reducer: Region,
        producer_dependency_per_consumer: AffineSet | None = None,
    ) -> None:
        value = SSAValue.get(future, type=TileFutureType)
        dependency = producer_dependency_per_consumer
        super().__init__(
            operands=[value, identities],
            result_types=[value.type.partial_types.data],
            properties={
                "consumer_tiles_per_group": AffineSetAttr(canonical_set(consumer_tiles_per_group)),
                "producer_dependency_per_consumer": dependency and AffineSetAttr(canonical_set(dependency)),
            },
            regions=[reducer],
        )

    @classmethod
    def parse(cls, parser: Parser) -> InterTileReduceOp:
        future, properties = _parse_consumer_head(parser)
        parser.parse_punctuation(",")
        if parser.parse_optional_keyword("identity") is None:
            name = "producer_dependency_per_consumer"
            properties[name] = _parse_set_property(parser, name)
            parser.parse_punctuation(",")
            parser.parse_keyword("identity")
        identities = _parse_identities(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = _resolve_future(parser, future)
        position = parser.pos
        results = _parse_result_types(parser)
        partials = cast(TileFutureType, value.type).partial_types.data
        if tuple(results) != partials and _same_but_units(results, partials):
            tolerate(parser, "M15", RESULTS_MATCH, position)
        return cls.build(
            operands=[value, identities],
            result_types=[results],
            properties=properties,
            attributes=attributes,
            regions=[parser.parse_region()],
        )

    def print(self, printer: Printer) -> None:
        _print_consumer_head(printer, self.future, self.consumer_tiles_per_group)
        printer.print_string(", ")
        if self.producer_dependency_per_consumer is not None:
            printer.print_string("producer_dependency_per_consumer = ")
            printer.print_attribute(self.producer_dependency_per_consumer)
            printer.print_string(", ")
        printer.print_string("identity(")
        if self.identities:
            printer.print_list(self.identities, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(self.identities.types, printer.print_attribute)
        printer.print_string(")")
        _print_attributes(printer, self, leave_out=("consumer_tiles_per_group", "producer_dependency_per_consumer"))
        _print_future_and_results(printer, self.future, self.reduced.types)
        printer.print_string(" ")
        printer.print_region(self.reducer)

    def verify_(self) -> None:
        partials = cast(TileFutureType, self.future.type).partial_types.data
        if not _same_but_units(self.reduced.types, partials):
            raise VerifyException(RESULTS_MATCH)
        if not _same_but_units(self.identities.types, partials):
            raise VerifyException("failed to verify that identity types must match result types")
        _verify_consumers(self.consumer_tiles_per_group.data)
        _verify_dependency(self.producer_dependency_per_consumer)
        self._verify_reducer(partials)

    def _verify_reducer(self, partials: Sequence[Attribute]) -> None:
        arguments = [argument.type for argument in self.reducer.block.args]
        if len(arguments) != 2 * len(partials):
            raise VerifyException(f"reducer region must take 2*N arguments, got {len(arguments)}")
        pairs = zip(arguments[: len(partials)], arguments[len(partials) :], partials, strict=True)
        for position, (left, right, partial) in enumerate(pairs):
            if left != partial or right != partial:
                raise VerifyException(f"reducer region argument pair #{position} must both have partial type {partial}")
        last = self.reducer.block.last_op
        if not isinstance(last, YieldReducedOp):
            raise VerifyException("reducer region must end with ktdp.yield_reduced")
        if len(last.arguments) != len(partials):
            raise VerifyException(f"yield_reduced yields {len(last.arguments)} values but expected {len(partials)}")
        for position, (yielded, partial) in enumerate(zip(last.arguments.types, partials, strict=True)):
            if yielded != partial:
                raise VerifyException(
                    f"yield_reduced operand #{position} type {yielded} must match partial type {partial}"
                )


def _parse_identities(parser: Parser) -> Sequence[SSAValue]:
    position = parser.pos
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return []
    names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(names, types, position)
