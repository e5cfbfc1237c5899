"""Deliveries that divide contributions between consumers or join them: described in the design of KTIR, in no released
dialect. Only a context that is asked for them knows them.

Words. share: the part of a tensor that one consumer gets. The axes of a list count as one, the first varying slowest;
cut into as many parts as the group has consumers, consumer k in ascending order of tile ids gets part k. Joining is the
inverse: contributions lie one behind the other along the axes, in ascending order of the producers' tile ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar, cast

from xdsl.dialects.builtin import AffineSetAttr, ArrayAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.ktdp.inter_tile import (
    IDENTITIES_MATCH,
    parse_consumer_head,
    parse_identities,
    parse_result_types,
    print_consumer_head,
    print_future_and_results,
    resolve_future,
    verify_consumers,
    verify_dependency,
    verify_reducer,
)
from ktir.dialect.ktdp.syntax import parse_set_property, print_attributes
from ktir.dialect.ktdp.types import TileFutureType

DEPENDENCY = "producer_dependency_per_consumer"
Axes = ArrayAttr[IntegerAttr]


class ShareOperation(IRDLOperation):
    """What the operations have in common. ``AXIS_LISTS`` names their lists of axes in the order of the text;
    ``SPLIT`` is the one along which a contribution is cut, ``JOINED`` the one along which parts are joined."""

    AXIS_LISTS: ClassVar[tuple[str, ...]]
    SPLIT: ClassVar[str | None] = None
    JOINED: ClassVar[str | None] = None

    future = operand_def(TileFutureType)
    shares = var_result_def()

    consumer_tiles_per_group = prop_def(AffineSetAttr)

    @property
    def partials(self) -> tuple[Attribute, ...]:
        return cast(TileFutureType, self.future.type).partial_types.data

    @property
    def dependency(self) -> AffineSetAttr | None:
        """Which producers a consumer hears of; None for all of its group."""
        found = self.properties.get(DEPENDENCY)
        return found if isinstance(found, AffineSetAttr) else None

    def axes(self, name: str | None) -> tuple[int, ...]:
        """One of the lists of axes; empty for None."""
        return () if name is None else tuple(each.value.data for each in cast(Axes, self.properties[name]))

    @classmethod
    def parse(cls, parser: Parser) -> ShareOperation:
        future, properties = parse_consumer_head(parser)
        for name in cls.AXIS_LISTS:
            properties[name] = _parse_axes(parser, name)
        if DEPENDENCY in cls.get_irdl_definition().properties and parser.parse_optional_punctuation(","):
            properties[DEPENDENCY] = parse_set_property(parser, DEPENDENCY)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = resolve_future(parser, future)
        results = parse_result_types(parser)
        return cls.build(operands=[value], result_types=[results], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        self.print_sets(printer)
        print_attributes(printer, self, leave_out=self.get_irdl_definition().properties)
        print_future_and_results(printer, self.future, self.shares.types)

    def print_sets(self, printer: Printer) -> None:
        """Future, consumers, axes and dependencies."""
        print_consumer_head(printer, self.future, self.consumer_tiles_per_group)
        for name in self.AXIS_LISTS:
            printer.print_string(f", {name} = [{', '.join(map(str, self.axes(name)))}]")
        if self.dependency is not None:
            printer.print_string(f", {DEPENDENCY} = ")
            printer.print_attribute(self.dependency)

    def verify_(self) -> None:
        verify_consumers(self.consumer_tiles_per_group.data)
        verify_dependency(self.dependency)
        if len(self.shares) != len(self.partials):
            raise VerifyException(f"gives {len(self.shares)} results for {len(self.partials)} partials")
        for partial, share in zip(self.partials, self.shares.types, strict=True):
            self._verify_type(cast("TensorType[Attribute]", partial), share)

    def _verify_type(self, partial: TensorType[Attribute], share: Attribute) -> None:
        """Results keep rank and element type, and the extents of all axes that no list names."""
        before = partial.get_shape()
        for name in self.AXIS_LISTS:
            axes = self.axes(name)
            if not axes or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= len(before):
                raise VerifyException(
                    f"{name} must be distinct axes of {partial}, in ascending order, not {list(axes)}"
                )
        if not isinstance(share, TensorType) or share.get_element_type() != partial.get_element_type():
            raise VerifyException(f"a result must be a tensor of {partial.get_element_type()}, not {share}")
        after = cast("TensorType[Attribute]", share).get_shape()
        named = {axis for name in self.AXIS_LISTS for axis in self.axes(name)}
        if len(after) != len(before) or any(
            after[axis] != extent for axis, extent in enumerate(before) if axis not in named
        ):
            raise VerifyException(f"a result of {partial} may differ along axes {sorted(named)} only, not be {share}")
        self._verify_counts(before, after)

    def _verify_counts(self, before: Sequence[int], after: Sequence[int]) -> None:
        split, joined = self.axes(self.SPLIT), self.axes(self.JOINED)
        if split and not joined and _rest(before, after, split):
            raise VerifyException(f"the extents along {self.SPLIT} are no multiple of those of the result")
        if joined and not split and _rest(after, before, joined):
            raise VerifyException(f"the extents of the result along {self.JOINED} are no multiple of the partial's")


def _parse_axes(parser: Parser, name: str) -> Axes:
    """``, name = [0, 1]``"""
    parser.parse_punctuation(",")
    parser.parse_keyword(name)
    parser.parse_punctuation("=")
    numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr([IntegerAttr(number, i64) for number in numbers])


def _rest(whole: Sequence[int], part: Sequence[int], axes: Sequence[int]) -> int:
    size = prod(part[axis] for axis in axes)
    return prod(whole[axis] for axis in axes) % size if size else 0


@irdl_op_definition
class InterTileGatherOp(ShareOperation):
    """All contributions of a group, joined, on each of its consumers."""

    name = "ktdp.inter_tile_gather"
    AXIS_LISTS: ClassVar = ("gather_dimensions",)
    JOINED: ClassVar = "gather_dimensions"

    gather_dimensions = prop_def(ArrayAttr)
    producer_dependency_per_consumer = opt_prop_def(AffineSetAttr)


@irdl_op_definition
class InterTileScatterOp(ShareOperation):
    """The contribution of the one producer of a group, divided between its consumers."""

    name = "ktdp.inter_tile_scatter"
    AXIS_LISTS: ClassVar = ("scatter_dimensions",)
    SPLIT: ClassVar = "scatter_dimensions"

    scatter_dimensions = prop_def(ArrayAttr)


@irdl_op_definition
class InterTileAllToAllOp(ShareOperation):
    """Each contribution is divided between the consumers, and what a consumer gets of all of them is joined."""

    name = "ktdp.inter_tile_all_to_all"
    AXIS_LISTS: ClassVar = ("split_dimensions", "concat_dimensions")
    SPLIT: ClassVar = "split_dimensions"
    JOINED: ClassVar = "concat_dimensions"

    split_dimensions = prop_def(ArrayAttr)
    concat_dimensions = prop_def(ArrayAttr)
    producer_dependency_per_consumer = opt_prop_def(AffineSetAttr)


@irdl_op_definition
class InterTileReduceScatterOp(ShareOperation):
    """The combination of all contributions of a group, divided between its consumers; see ``inter_tile_reduce``."""

    name = "ktdp.inter_tile_reduce_scatter"
    AXIS_LISTS: ClassVar = ("scatter_dimensions",)
    SPLIT: ClassVar = "scatter_dimensions"

    future = operand_def(TileFutureType)  # once more, so that it comes before the identities
    identities = var_operand_def()
    reducer = region_def("single_block")

    scatter_dimensions = prop_def(ArrayAttr)
    producer_dependency_per_consumer = opt_prop_def(AffineSetAttr)

    @classmethod
    def parse(cls, parser: Parser) -> InterTileReduceScatterOp:
        future, properties = parse_consumer_head(parser)
        properties["scatter_dimensions"] = _parse_axes(parser, "scatter_dimensions")
        parser.parse_punctuation(",")
        if parser.parse_optional_keyword("identity") is None:
            properties[DEPENDENCY] = parse_set_property(parser, DEPENDENCY)
            parser.parse_punctuation(",")
            parser.parse_keyword("identity")
        identities = parse_identities(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = resolve_future(parser, future)
        results = parse_result_types(parser)
        return cls.build(
            operands=[value, identities],
            result_types=[results],
            properties=properties,
            attributes=attributes,
            regions=[parser.parse_region()],
        )

    def print(self, printer: Printer) -> None:
        self.print_sets(printer)
        printer.print_string(", identity(")
        if self.identities:
            printer.print_list(self.identities, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(self.identities.types, printer.print_attribute)
        printer.print_string(")")
        print_attributes(printer, self, leave_out=self.get_irdl_definition().properties)
        print_future_and_results(printer, self.future, self.shares.types)
        printer.print_string(" ")
        printer.print_region(self.reducer)

    def verify_(self) -> None:
        super().verify_()
        if tuple(self.identities.types) != self.partials:
            raise VerifyException(IDENTITIES_MATCH.replace("result", "future partial"))
        verify_reducer(self.reducer, self.partials)


EXPERIMENTAL = (InterTileReduceScatterOp, InterTileGatherOp, InterTileAllToAllOp, InterTileScatterOp)
"""The operations that have to be asked for."""
