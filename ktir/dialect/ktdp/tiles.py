"""Access tiles: sets of coordinates of a view.

Words. base: the view a tile selects from. order: the map by which the points of the set are put in sequence, rightmost
result innermost.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    IndexType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.ktdp.syntax import (
    MixedIndex,
    parse_optional_symbols,
    print_attributes,
    print_expression,
    print_symbols,
    rank_of,
    resolve_indices,
    split_attributes,
    verify_symbols,
)
from ktir.dialect.ktdp.types import (
    AccessTileType,
)
from ktir.dialect.text.affine_reader import Subscripts
from ktir.maths.affine import canonical_map, canonical_set
from ktir.maths.sets import box_set, identity_order


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
        symbols = parse_optional_symbols(parser)
        position = parser.pos
        properties, attributes = split_attributes(cls, parser.parse_optional_attr_dict())
        cls._check_text(parser, position, base_map, properties, len(symbols))
        parser.parse_punctuation(":")
        base_value = parser.resolve_operand(base, parser.parse_type())
        parser.parse_punctuation("->")
        indices = resolve_indices(parser, (*subscripts.dims.values(), *subscripts.symbols.values()))
        return cls.build(
            operands=[base_value, indices, resolve_indices(parser, symbols)],
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
            printer.print_list(base_map.results, lambda result: print_expression(printer, result, dims, symbols))
        print_symbols(printer, self.symbol_operands)
        print_attributes(printer, self, leave_out=("base_map",))
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
        verify_symbols("access_tile_set", tile_set, self.symbol_operands)
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
        base_rank = rank_of(self.base.type)
        if base_rank is None:
            raise VerifyException("base must be a ranked memref or tensor type")
        if base_rank != dims:
            raise VerifyException(f"number of subscripts ({dims}) must match base rank ({base_rank})")
