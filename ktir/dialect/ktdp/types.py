"""Types of the ``ktdp`` dialect: access tiles, run-time arguments with promises, and futures between compute tiles.

Where an operation fixes the type, its text may drop the prefix: ``<1x64xindex>`` for
``!ktdp.access_tile<1x64xindex>``. :func:`parse_short` reads both, :func:`print_short` writes the short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NoReturn, TypeVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineSetAttr,
    AnyFloat,
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerType,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.ir.affine import AffineSet
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span

from ktir.dialect.text.leniency import tolerate


@irdl_attr_definition
class AccessTileType(ParametrizedAttribute, TypeAttribute):
    """Coordinates of a box of elements, ``!ktdp.access_tile<2x?xindex>``; it carries no element type.

    A dynamic extent is xDSL's ``DYNAMIC_INDEX``, as in tensor types.
    """

    name = "ktdp.access_tile"

    shape: ArrayAttr[IntAttr]

    def __init__(self, shape: Sequence[int] | ArrayAttr[IntAttr]) -> None:
        super().__init__(shape if isinstance(shape, ArrayAttr) else ArrayAttr(IntAttr(extent) for extent in shape))

    def get_shape(self) -> tuple[int, ...]:
        return tuple(extent.data for extent in self.shape)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            if not isinstance(element, IndexType):
                parser.raise_error(f"tile element type must be 'index', but got: {element}")
        return [ArrayAttr(IntAttr(extent) for extent in shape)]

    def print_parameters(self, printer: Printer) -> None:
        extents = ("?" if extent == DYNAMIC_INDEX else str(extent) for extent in self.get_shape())
        with printer.in_angle_brackets():
            printer.print_string("x".join((*extents, "index")))

    def verify(self) -> None:
        if any(extent < 0 and extent != DYNAMIC_INDEX for extent in self.get_shape()):
            raise VerifyException("tile dimension size must be dynamic or >= 0")


@irdl_attr_definition
class RuntimeArgType(ParametrizedAttribute, TypeAttribute):
    """A scalar argument and what its caller promises: ``!ktdp.runtime_arg<i32, granularity=3, upperbound=300>``.

    The value is a positive multiple of the granularity and at most the upper bound.
    """

    name = "ktdp.runtime_arg"
    KEYWORDS: ClassVar = ("granularity", "upperbound")

    payload: Attribute
    granularity: IntAttr | NoneAttr
    upperbound: IntAttr | NoneAttr

    def __init__(
        self,
        payload: Attribute,
        granularity: int | IntAttr | NoneAttr | None = None,
        upperbound: int | IntAttr | NoneAttr | None = None,
    ) -> None:
        super().__init__(payload, _optional_count(granularity), _optional_count(upperbound))

    def promise(self, keyword: str) -> int | None:
        """The ``granularity`` or ``upperbound``, None if there is none."""
        value = self.granularity if keyword == "granularity" else self.upperbound
        return value.data if isinstance(value, IntAttr) else None

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        promises: dict[str, Attribute] = {}
        with parser.in_angle_brackets():
            payload = parser.parse_type()
            while parser.parse_optional_punctuation(",") is not None:
                position = parser.pos
                keyword = parser.parse_optional_identifier()
                if keyword not in cls.KEYWORDS:
                    parser.raise_error("expected 'granularity' or 'upperbound' keyword", position)
                if keyword in promises:
                    parser.raise_error(f"duplicate '{keyword}' keyword", position)
                parser.parse_punctuation("=")
                promises[keyword] = IntAttr(parser.parse_integer(allow_boolean=False))
        return [payload, *(promises.get(keyword, NoneAttr()) for keyword in cls.KEYWORDS)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.payload)
            for keyword in self.KEYWORDS:
                if (value := self.promise(keyword)) is not None:
                    printer.print_string(f", {keyword}={value}")

    def verify(self) -> None:
        if not isinstance(self.payload, IndexType | IntegerType | AnyFloat):
            raise VerifyException(
                "runtime_arg underlying type must be a builtin type (index, integer, or float), but got: "
                f"{self.payload}"
            )
        for keyword in self.KEYWORDS:
            if (value := self.promise(keyword)) is not None and value <= 0:
                raise VerifyException(f"runtime_arg {keyword} must be positive, but got: {value}")


def _optional_count(value: int | IntAttr | NoneAttr | None) -> IntAttr | NoneAttr:
    if isinstance(value, int):
        return IntAttr(value)
    return NoneAttr() if value is None else value


@irdl_attr_definition
class TileFutureType(ParametrizedAttribute, TypeAttribute):
    """What producer tiles will deliver: ``!ktdp.tile_future<(tensor<1x64xf32>), groups = affine_set<(g) : (g == 0)>>``.

    ``partial_types`` are the tensors of one contribution; ``groups`` holds the numbers of the groups of tiles.
    """

    name = "ktdp.tile_future"

    partial_types: ArrayAttr[Attribute]
    groups: AffineSetAttr

    def __init__(self, partial_types: Sequence[Attribute] | ArrayAttr[Attribute], groups: AffineSet | AffineSetAttr):
        super().__init__(
            partial_types if isinstance(partial_types, ArrayAttr) else ArrayAttr(partial_types),
            AffineSetAttr(groups) if isinstance(groups, AffineSet) else groups,
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return _parse_future_parameters(parser, None)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            with printer.in_parens():
                printer.print_list(self.partial_types, printer.print_attribute)
            printer.print_string(", groups = ")
            printer.print_attribute(self.groups)

    def verify(self) -> None:
        if not self.partial_types.data:
            raise VerifyException("tile_future must carry at least one partial type")
        for partial in self.partial_types:
            if not isinstance(partial, TensorType):
                raise VerifyException(f"invalid kind of type specified: expected builtin.tensor, but found '{partial}'")
        if self.groups.data.num_dims != 1:
            raise VerifyException("tile_future `groups` must have exactly one dimension (g)")
        if self.groups.data.num_symbols:
            raise VerifyException("tile_future `groups` must have no symbols")


def _parse_future_parameters(parser: AttrParser, known_groups: AffineSetAttr | None) -> list[Attribute]:
    """``<(T, T), groups = #g>``, or in older texts ``<T, T, groups = #g>``, ``<T, #g>`` and, where the groups are known
    otherwise, ``<T>``."""
    with parser.in_angle_brackets():
        position = parser.pos
        types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        if types is None:
            tolerate(parser, "M12", "the partial types of a tile_future must be parenthesised", position)
            types = [parser.parse_type()]
        groups = _parse_optional_groups(parser)
        while groups is None and parser.parse_optional_punctuation(",") is not None:
            types.append(parser.parse_type())
            groups = _parse_optional_groups(parser)
        for partial in types:
            if not isinstance(partial, TensorType):
                _fail_partial(parser, position, partial)
        if groups is None and known_groups is None:
            parser.raise_error("expected 'groups' and an integer set in tile_future")
    return [ArrayAttr[Attribute](types), groups or known_groups or NoneAttr()]


def _fail_partial(parser: AttrParser, position: int, partial: Attribute) -> NoReturn:
    """The two errors that the reference dialect gives for a partial that is no tensor."""
    span = Span(position, position + 1, parser.lexer.input)
    raise ParseError(
        span, f"invalid kind of type specified: expected builtin.tensor, but found '{partial}'"
    ) from ParseError(span, "failed to parse KTDP_TileFutureType parameter 'partialTypes'")


def _parse_optional_groups(parser: AttrParser) -> AffineSetAttr | None:
    """``, groups = #set`` or ``, #set``; nothing is read where a type follows the comma."""
    after_comma = parser.lexer.input.content[parser.pos + 1 :].lstrip()
    if parser.lexer.input.content[parser.pos] != "," or not after_comma.startswith(("groups", "#", "affine_set")):
        return None
    parser.parse_punctuation(",")
    if parser.parse_optional_keyword("groups") is not None:
        parser.parse_punctuation("=")
    position = parser.pos
    groups = parser.parse_attribute()
    if not isinstance(groups, AffineSetAttr):
        parser.raise_error("expected an integer set for 'groups'", position)
    return groups


ShortType = TypeVar("ShortType", AccessTileType, RuntimeArgType)


def parse_short(parser: AttrParser, kind: type[ShortType]) -> ShortType:
    """Reads a type that must be of ``kind``, with or without its prefix."""
    position = parser.pos
    if _at_bracket(parser):
        try:
            return kind.new(kind.parse_parameters(parser))
        except VerifyException as fault:
            parser.raise_error(str(fault), position)
    full = parser.parse_type()
    if not isinstance(full, kind):
        parser.raise_error(f"expected a !{kind.name} type, but got: {full}", position)
    return full


def parse_future(parser: AttrParser, known_groups: AffineSetAttr | None) -> TileFutureType:
    """Reads a ``tile_future``, with or without its prefix; one that names no groups has ``known_groups``."""
    position = parser.pos
    prefix = f"!{TileFutureType.name}"
    if not _at_bracket(parser) and parser.parse_optional_characters(prefix) is None:
        full = parser.parse_type()
        if not isinstance(full, TileFutureType):
            parser.raise_error(f"expected a {prefix} type, but got: {full}", position)
        return full
    try:
        return TileFutureType.new(_parse_future_parameters(parser, known_groups))
    except VerifyException as fault:
        parser.raise_error(str(fault), position)


def _at_bracket(parser: AttrParser) -> bool:
    return parser.lexer.input.content.startswith("<", parser.pos)


def print_short(printer: Printer, type: Attribute) -> None:
    """Prints ``type`` without its prefix."""
    if isinstance(type, ParametrizedAttribute):
        type.print_parameters(printer)
