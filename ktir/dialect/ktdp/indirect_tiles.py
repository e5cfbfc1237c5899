"""Access tiles of which some coordinates are read from memory: gathers and scatters.

Words. subscript: what one dimension of the base is indexed by; *direct* is an expression, *indirect* an element of an
index view. intermediate variable: a dimension of the set that the subscripts range over. captured: a value from
outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, MemoryReadEffect, Pure
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Span

from ktir.dialect.ktdp.syntax import (
    parse_optional_symbols,
    parse_values,
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
from ktir.dialect.text.affine_reader import Subscripts, value_key
from ktir.dialect.text.leniency import HasOldForm, tolerate
from ktir.maths.affine import canonical_map, canonical_set, sorted_expression, substitute


@irdl_op_definition
class RegionTerminatorOp(IRDLOperation):
    """Ends the hidden region of an indirect access tile; never printed."""

    name = "ktdp.region_terminator"

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict"


@irdl_op_definition
class ConstructIndirectAccessTileOp(IRDLOperation, HasOldForm):
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
        variables = parse_values(parser)
        base = parser.parse_unresolved_operand()
        reader = _SubscriptReader(parser)
        subscripts = reader.subscripts()
        symbols = parse_optional_symbols(parser)
        position = parser.pos
        properties, attributes = split_attributes(cls, parser.parse_optional_attr_dict())
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
                resolve_indices(parser, captured),
                resolve_indices(parser, symbols),
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

    def modernise(self) -> Iterator[tuple[str, str]]:
        """The first specification named one index view, or none, for each dimension in ``memory_view_names``.

        Sums are put in the order that the custom form has, so that both forms are read as the same maps.
        """
        if self._rename_old_attributes():
            yield "M5", "'memory_view_subscripts' is called 'per_dim_subscript_maps' now"
        maps = self.properties.get("per_dim_subscript_maps")
        if isa(maps, ArrayAttr[AffineMapAttr]):
            self.properties["per_dim_subscript_maps"] = ArrayAttr(AffineMapAttr(_in_order(map.data)) for map in maps)

    def _rename_old_attributes(self) -> bool:
        """Whether there were any."""
        old = {name: self._take(name) for name in ("memory_view_names", "memory_view_subscripts", "common_variables")}
        maps, names = old["memory_view_subscripts"], old["memory_view_names"]
        if maps is None:
            return False
        if not isinstance(maps, ArrayAttr):
            raise VerifyException("memory_view_subscripts must be an array of affine maps")
        subscripts = cast(ArrayAttr[Attribute], maps)
        segments = self.properties.get("operandSegmentSizes")
        if isa(segments, DenseArrayBase[IntegerType]) and len(segments) == 3:  # symbols came later
            self.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, (*segments.get_values(), 0))
        self.properties["per_dim_subscript_maps"] = subscripts
        self.properties["per_dim_subscript_kinds"] = ArrayAttr(
            BoolAttr.from_bool(kind) for kind in _old_kinds(names, len(subscripts.data), len(self.index_views))
        )
        return True

    def _take(self, name: str) -> Attribute | None:
        return self.properties.pop(name, None) or self.attributes.pop(name, None)

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
            printer.print_list(map.results, lambda result: print_expression(printer, result, values))
            printer.print_string(")" if view is None else "])")

        with printer.in_square_brackets():
            printer.print_list(self.subscripts(), lambda pair: subscript(*pair))
        print_symbols(printer, self.symbol_operands)
        print_attributes(printer, self, leave_out=("per_dim_subscript_kinds", "per_dim_subscript_maps"))
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
        verify_symbols("variables_space_set", space, self.symbol_operands)
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
        base_rank = rank_of(self.base.type)
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
        if view is not None and (rank := rank_of(view.type)) != results:
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


def _in_order(map: AffineMap) -> AffineMap:
    """``map`` with the terms of its sums in order of the variables."""
    return AffineMap(map.num_dims, map.num_symbols, tuple(sorted_expression(result) for result in map.results))


def _old_kinds(names: Attribute | None, dimensions: int, views: int) -> list[bool]:
    """Which dimensions are indirect: those with a view in ``names``, or all or none where that is the only reading."""
    if isinstance(names, ArrayAttr):
        entries = cast(ArrayAttr[Attribute], names).data
        kinds = [not isinstance(entry, UnitAttr | NoneAttr) and entry != StringAttr("") for entry in entries]
        if len(kinds) == dimensions and sum(kinds) == views:
            return kinds
    elif views in (0, dimensions):
        return [views > 0] * dimensions
    raise VerifyException("memory_view_names does not say which dimensions are indirect (rule M5)")


Parsed = TypeVar("Parsed")

_SUBSCRIPT = re.compile(r"[%(\d-]|symbol\b")
"""How an expression begins."""
_BARE_VIEW = re.compile(r"(%)?[\w$.-]+(?:#\d+)?\s*\[")


class _SubscriptReader:
    """Reads the subscripts of an indirect access tile; which names are variables is only decided afterwards."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.values = Subscripts(parser)

    def subscripts(self) -> list[tuple[UnresolvedOperand | None, list[AffineExpr]]]:
        """Per subscript the index view, or None, and the expressions."""
        subscripts: list[tuple[UnresolvedOperand | None, list[AffineExpr]]] = []
        self.parser.parse_punctuation("[")
        while self.parser.parse_optional_punctuation("]") is None:
            if subscripts and self.parser.parse_optional_punctuation(",") is None:
                self.parser.raise_error("expecting a comma between subscripts")
            subscripts.append(self._subscript())
        if self.values.symbols:
            self.parser.raise_error("error canonicalizing subscripts: symbol(...) has no meaning here")
        results = iter(self.values.without_idle_values([result for _, each in subscripts for result in each]))
        return [(view, [next(results) for _ in each]) for view, each in subscripts]

    def _subscript(self) -> tuple[UnresolvedOperand | None, list[AffineExpr]]:
        parser = self.parser
        if parser.parse_optional_keyword("ind") is not None:
            with parser.in_parens():
                view = parser.parse_unresolved_operand()
                return view, self._expressions(self.values.bracket)
        position, content = parser.pos, parser.lexer.input.content
        if (view := self._view_without_ind()) is not None:
            return view, self._expressions(self.values.bracket)
        if _SUBSCRIPT.match(content, position) is None:
            parser.raise_error("unexpected token in subscript list, expected 'ind', '(', or ']'")
        expression = self._expressions(self.values.expression)
        if content[position] != "(" or not content[position : parser.pos].rstrip().endswith(")"):
            tolerate(parser, "M2", "a direct subscript must be parenthesised", position)
        return None, [expression]

    def _expressions(self, parse: Callable[[], Parsed]) -> Parsed:
        try:
            return parse()
        except ParseError as fault:
            self.parser.raise_error(f"error parsing the subscript: {fault.msg}", fault.span.start)

    def _view_without_ind(self) -> UnresolvedOperand | None:
        """The view of an indirect subscript in old text, ``%view[..]`` or ``view[..]``; nothing is read of another."""
        parser = self.parser
        match = _BARE_VIEW.match(parser.lexer.input.content, parser.pos)
        if match is None:
            return None
        tolerate(parser, "M2", "an indirect subscript must be written ind(%view[..])", parser.pos)
        if match[1]:
            return parser.parse_unresolved_operand()
        position = parser.pos
        name = parser.parse_identifier()
        # An operand's span begins with its '%'; here it takes the character before the name in its place.
        return UnresolvedOperand(Span(position - 1, position + len(name), parser.lexer.input), 0)

    def over(
        self, variables: Sequence[UnresolvedOperand], results: Sequence[Sequence[AffineExpr]]
    ) -> tuple[list[UnresolvedOperand], list[AffineMap]]:
        """The captured values, and the maps of them and the variables."""
        names = [value_key(variable) for variable in variables]
        captured = [operand for key, operand in self.values.dims.items() if key not in names]
        places = [*(value_key(operand) for operand in captured), *names]
        dims = [AffineDimExpr(places.index(key)) for key in self.values.dims]
        maps = [
            _in_order(AffineMap(len(places), 0, tuple(substitute(result, dims, ()) for result in each)))
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
        try:
            result = parser.parse_type()
        except ParseError as fault:
            parser.raise_error(f"error parsing result types: {fault.msg}", fault.span.start)
    if len(types) != views + 1:
        parser.raise_error(
            f"expected {views + 1} types (base + {views} indirect memrefs), but got {len(types)}", position
        )
    return types[0], types[1:], result
