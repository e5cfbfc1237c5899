"""What compute tiles do together, the only order between them inside a kernel: producers deliver partial tensors to a
future, consumers take them or reduce them.

Words. group: the compute tiles that work on one delivery, numbered by the future's ``groups``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineSetAttr,
    IndexType,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineSet
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.ktdp.syntax import (
    parse_set_property,
    print_attributes,
)
from ktir.dialect.ktdp.types import (
    TileFutureType,
    parse_future,
    print_short,
)
from ktir.dialect.shaped import is_tensor
from ktir.dialect.text.leniency import HasOldForm, tolerate
from ktir.maths.affine import canonical_set
from ktir.maths.sets import Enumeration

ENUMERATION_LIMIT = 1 << 16
"""How many numbers of groups and tiles a verifier rule looks at; what lies beyond is not judged."""


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

    traits = lazy_traits_def(lambda: (HasReducingParent(InterTileReduceOp), IsTerminator(), Pure()))


class HasReducingParent(HasParent):
    """Ends a reducer. Faults are told in the reference's words, which know no experimental operation."""

    def verify(self, op: Operation) -> None:
        from ktir.dialect.ktdp.shares import InterTileReduceScatterOp

        if not isinstance(op.parent_op(), InterTileReduceScatterOp):
            super().verify(op)


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
        producers = parse_set_property(parser, "producer_tiles_per_group")
        position = parser.pos
        groups = None
        if parser.parse_optional_punctuation(",") is not None:
            tolerate(parser, "M14", "'groups' belongs into the tile_future type", position)
            groups = parse_set_property(parser, "groups")
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
        print_attributes(printer, self, leave_out=("producer_tiles_per_group",))
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
        """Rule R1: no tile produces for two groups; sets that cannot be enumerated are not judged."""
        enumeration = Enumeration(ENUMERATION_LIMIT)
        group_of: dict[int, int] = {}
        for group in enumeration.integers(groups) or ():
            for tile in enumeration.integers(producers, (group,), least=0) or ():
                if group_of.setdefault(tile, group) != group:
                    raise VerifyException(
                        f"producer_tiles_per_group for groups {group_of[tile]} and {group} are not disjoint"
                    )


def verify_consumers(consumers: AffineSet) -> None:
    if consumers.num_symbols != 1:
        raise VerifyException("`consumer_tiles_per_group` must have exactly one symbol (the group index g)")
    if consumers.num_dims != 1:
        raise VerifyException("`consumer_tiles_per_group` must have exactly one dimension (the tile id i)")


def verify_dependency(dependency: AffineSetAttr | None) -> None:
    if dependency is None:
        return
    if dependency.data.num_symbols not in (1, 2):
        raise VerifyException("`producer_dependency_per_consumer` must have one symbol (c) or two symbols (c, g)")
    if dependency.data.num_dims != 1:
        raise VerifyException(
            "`producer_dependency_per_consumer` must have exactly one dimension (the producer tile id p)"
        )


def parse_consumer_head(parser: Parser) -> tuple[UnresolvedOperand, dict[str, Attribute]]:
    """``(%future) consumer_tiles_per_group = #c, producer_dependency_per_consumer = #d``"""
    with parser.in_parens():
        future = parser.parse_unresolved_operand()
    consumers = parse_set_property(parser, "consumer_tiles_per_group")
    return future, {"consumer_tiles_per_group": consumers}


def resolve_future(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """Reads the future's type after the colon; old text leaves out the groups, which its definition knows."""
    known = parser.ssa_values.get(operand.operand_name)
    definition = known[operand.index].type if known is not None and operand.index < len(known) else None
    groups = definition.groups if isinstance(definition, TileFutureType) else None
    return parser.resolve_operand(operand, parse_future(parser, groups))


RESULTS_MATCH = "failed to verify that result types must match future partial types"
IDENTITIES_MATCH = "failed to verify that identity types must match result types"


def _same_but_units(types: Iterable[Attribute], partials: Sequence[Attribute]) -> bool:
    """Whether ``types`` are the ``partials``, each with or without its dimensions of extent one."""
    given = list(types)
    return len(given) == len(partials) and all(map(_is_same_but_units, given, partials))


def _is_same_but_units(type: Attribute, partial: Attribute) -> bool:
    if not is_tensor(type) or not is_tensor(partial):
        return type == partial
    plain, expected = ([extent for extent in each.get_shape() if extent != 1] for each in (type, partial))
    return plain == expected and type.get_element_type() == partial.get_element_type()


def parse_result_types(parser: Parser) -> list[Attribute]:
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
        future, properties = parse_consumer_head(parser)
        if parser.parse_optional_punctuation(",") is not None:
            name = "producer_dependency_per_consumer"
            properties[name] = parse_set_property(parser, name)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = resolve_future(parser, future)
        return cls.build(
            operands=[value],
            result_types=[parse_result_types(parser)],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_consumer_head(printer, self.future, self.consumer_tiles_per_group)
        if self.producer_dependency_per_consumer is not None:
            printer.print_string(", producer_dependency_per_consumer = ")
            printer.print_attribute(self.producer_dependency_per_consumer)
        print_attributes(printer, self, leave_out=("consumer_tiles_per_group", "producer_dependency_per_consumer"))
        print_future_and_results(printer, self.future, self.delivered.types)

    def verify_(self) -> None:
        if tuple(self.delivered.types) != cast(TileFutureType, self.future.type).partial_types.data:
            raise VerifyException(RESULTS_MATCH)
        verify_consumers(self.consumer_tiles_per_group.data)
        verify_dependency(self.producer_dependency_per_consumer)


def print_consumer_head(printer: Printer, future: SSAValue, consumers: AffineSetAttr) -> None:
    with printer.in_parens():
        printer.print_ssa_value(future)
    printer.print_string(" consumer_tiles_per_group = ")
    printer.print_attribute(consumers)


def print_future_and_results(printer: Printer, future: SSAValue, results: Iterable[Attribute]) -> None:
    printer.print_string(" : ")
    print_short(printer, future.type)
    printer.print_string(" -> ")
    printer.print_list(results, printer.print_attribute)


@irdl_op_definition
class InterTileReduceOp(IRDLOperation, HasOldForm):
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
        start = parser.pos
        future, properties = parse_consumer_head(parser)
        parser.parse_punctuation(",")
        if parser.parse_optional_keyword("identity") is None:
            name = "producer_dependency_per_consumer"
            properties[name] = parse_set_property(parser, name)
            parser.parse_punctuation(",")
            parser.parse_keyword("identity")
        identities = parse_identities(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = resolve_future(parser, future)
        results = parse_result_types(parser)
        reduce = cls.build(
            operands=[value, identities],
            result_types=[results],
            properties=properties,
            attributes=attributes,
            regions=[parser.parse_region()],
        )
        for rule, message in reduce.modernise():
            tolerate(parser, rule, message, start)
        return reduce

    def modernise(self) -> Iterator[tuple[str, str]]:
        """Results and identities that lost unit dimensions of the partials."""
        future, results, identities = self.future.type, tuple(self.reduced.types), tuple(self.identities.types)
        if not isinstance(future, TileFutureType):
            return
        partials = future.partial_types.data
        if results != partials and _same_but_units(results, partials):
            yield "M15", RESULTS_MATCH
        elif identities != partials and _same_but_units(identities, partials):
            yield "M15", IDENTITIES_MATCH

    def print(self, printer: Printer) -> None:
        print_consumer_head(printer, self.future, self.consumer_tiles_per_group)
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
        print_attributes(printer, self, leave_out=("consumer_tiles_per_group", "producer_dependency_per_consumer"))
        print_future_and_results(printer, self.future, self.reduced.types)
        printer.print_string(" ")
        printer.print_region(self.reducer)

    def verify_(self) -> None:
        partials = cast(TileFutureType, self.future.type).partial_types.data
        if not _same_but_units(self.reduced.types, partials):
            raise VerifyException(RESULTS_MATCH)
        if not _same_but_units(self.identities.types, partials):
            raise VerifyException(IDENTITIES_MATCH)
        verify_consumers(self.consumer_tiles_per_group.data)
        verify_dependency(self.producer_dependency_per_consumer)
        verify_reducer(self.reducer, partials)


def verify_reducer(reducer: Region, partials: Sequence[Attribute]) -> None:
    """Raises where a region does not take two contributions and yield one."""
    arguments = [argument.type for argument in reducer.block.args]
    if len(arguments) != 2 * len(partials):
        raise VerifyException(f"reducer region must take 2*N arguments, got {len(arguments)}")
    pairs = zip(arguments[: len(partials)], arguments[len(partials) :], partials, strict=True)
    for position, (left, right, partial) in enumerate(pairs):
        if left != partial or right != partial:
            raise VerifyException(f"reducer region argument pair #{position} must both have partial type {partial}")
    last = reducer.block.last_op
    if not isinstance(last, YieldReducedOp):
        raise VerifyException("reducer region must end with ktdp.yield_reduced")
    if len(last.arguments) != len(partials):
        raise VerifyException(f"yield_reduced yields {len(last.arguments)} values but expected {len(partials)}")
    for position, (yielded, partial) in enumerate(zip(last.arguments.types, partials, strict=True)):
        if yielded != partial:
            raise VerifyException(f"yield_reduced operand #{position} type {yielded} must match partial type {partial}")


def parse_identities(parser: Parser) -> Sequence[SSAValue]:
    position = parser.pos
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return []
    names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(names, types, position)
