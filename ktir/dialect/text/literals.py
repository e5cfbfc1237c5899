"""Attributes that are literals: numbers by their bits, elements of tensors, strings with a type.

xDSL reads the plain forms; here are hexadecimal floats wherever MLIR takes them, ``sparse<..>``, ``"text" : type``,
``distinct[0]<..>`` and attributes of dialects that nobody registered, in the one spelling of each that MLIR keeps.
"""

# xDSL's parser has no public hooks for literals.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.utils.lexer import Position
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

from ktir.dialect.overlay.builtin import DistinctAttr, SparseElementsAttr, TypedStringAttr
from ktir.dialect.text.leniency import tolerate
from ktir.dialect.text.quick_parser import QuickParser

MAX_DENSE_ELEMENTS = 1 << 24
"""Elements of one dense literal: each is held, even where all are the same."""

_SYMBOL = re.compile(r"([a-zA-Z][\w.]*)(?:<(.*)>)?", re.DOTALL)
"""The body of an attribute ``#dialect<body>`` that can be written ``#dialect.name<rest>``."""


_NUMBER = re.compile(r"-?\s*(?:0x[0-9a-fA-F]+|[0-9]+\.?)")
"""A number, as far as its kind goes."""

_BYTES = re.compile(r'<\s*"')
"""The beginning of elements that are given by their bytes."""


def _as_integer(value: int, kind: IntegerType) -> int:
    """The integer of type ``kind`` in the lowest bits of ``value``."""
    width = kind.width.data
    if width == 1:
        return int(value != 0)
    low = value & ((1 << width) - 1)
    is_negative = kind.signedness.data is not Signedness.UNSIGNED and low >> (width - 1)
    return low - (1 << width) if is_negative else low


class LiteralParser(QuickParser):
    """Reads what xDSL does not know among literals."""

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self._distinct: dict[int, Attribute] = {}

    # --------------------------------------------------------------------------------------------------------- strings

    def _parse_optional_builtin_attr(self) -> Attribute | None:
        attribute = super()._parse_optional_builtin_attr()
        if type(attribute) is StringAttr and self.parse_optional_punctuation(":") is not None:
            return TypedStringAttr(attribute, self.parse_type())
        return attribute

    # --------------------------------------------------------------------------------------------------------- numbers

    def parse_optional_builtin_int_or_float_attr(self) -> Any:
        """As xDSL's; a float given as an integer is tolerated, bits have no sign."""
        token = self._current_token
        attribute = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(attribute, FloatAttr) and token.kind is not MLIRTokenKind.FLOAT_LIT:
            self._check_float_written_as(token, attribute)
        return attribute

    def _check_float_written_as(self, token: MLIRToken, attribute: FloatAttr) -> None:
        start = token.span.start
        number = _NUMBER.match(self._parser_state.lexer.input.content, start)
        if number is None or "." in number[0]:
            return
        if number[0].startswith("-0x"):
            self.raise_error("hexadecimal float literal should not have a leading minus", start)
        if not number[0].startswith("0x"):
            tolerate(self, "T4", f"an integer where a float of type {attribute.type} is expected", start)

    # -------------------------------------------------------------------------------------------------------- elements

    def _parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        match self._current_token.text:
            case "sparse":
                self._consume_token()
                return self._parse_sparse()
            case "distinct":
                self._consume_token()
                return self._parse_distinct()
            case _:
                return super()._parse_optional_builtin_parametrized_attr()

    def _parse_dense_literal_type(self) -> Any:
        position = self.pos
        type = super()._parse_dense_literal_type()
        if (elements := prod(type.get_shape())) > MAX_DENSE_ELEMENTS:
            self.raise_error(f"dense literal of {elements} elements; at most {MAX_DENSE_ELEMENTS} are held", position)
        return type

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        """As xDSL's; of a byte that holds an integer of fewer bits, only those bits count."""
        is_bytes = _BYTES.match(self._parser_state.lexer.input.content, self.pos) is not None
        dense: Any = super().parse_dense_int_or_fp_elements_attr(type)
        kind: Any = dense.type.element_type
        if not is_bytes or kind.name != IntegerType.name or kind.width.data % 8 == 0:
            return dense
        return DenseIntOrFPElementsAttr.from_list(
            dense.type, [_as_integer(value, kind) for value in dense.get_values()]
        )

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        element = super()._parse_tensor_literal_element()
        if not isinstance(element.value, int):
            return element
        kind = BitPattern if element.span.text.startswith(("0x", "-0x")) else IntegerLiteral
        return kind(element.is_negative, element.value, element.span)

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        """As xDSL's; floats of an array may be given by their bits."""
        start = self.pos
        self.parse_characters("<", " in dense array")
        kind = self.parse_attribute()
        if not isinstance(kind, AnyFloat) or self.parse_optional_punctuation(":") is None:
            self._resume_at(start)
            return super()._parse_builtin_densearray_attr()
        elements = self.parse_comma_separated_list(self.Delimiter.NONE, self._parse_tensor_literal_element)
        self.parse_characters(">", " in dense array")
        values: list[Any] = [element.to_type(self, kind) for element in elements]
        return DenseArrayBase.from_list(kind, values)

    def _parse_sparse(self) -> SparseElementsAttr:
        """``<indices, values> : type``, the indices a row for each value."""
        position = self.pos
        self.parse_characters("<", " in sparse elements")
        literals: list[tuple[Sequence[Any], list[int]]] = []
        if self.parse_optional_punctuation(">") is None:
            literals.append(self._parse_tensor_literal())
            self.parse_punctuation(",", " between indices and values")
            literals.append(self._parse_tensor_literal())
            self.parse_punctuation(">", " in sparse elements")
        self.parse_punctuation(":", " in sparse elements")
        type = self._parse_dense_literal_type()
        shape = list(type.get_shape())
        if not literals:
            return SparseElementsAttr(
                self._tensor([], [0, len(shape)], i64), self._tensor([], [0], type.element_type), type
            )
        (rows, extents), (values, _) = literals
        extents = extents or [1, len(shape)]
        indices = self._tensor(rows, extents, i64)
        self._check_indices(indices, extents, shape, position)
        return SparseElementsAttr(indices, self._tensor(values, extents[:1], type.element_type), type)

    def _tensor(self, elements: Sequence[Any], shape: Sequence[int], kind: Any) -> DenseIntOrFPElementsAttr:
        values = [element.to_type(self, kind) for element in elements]
        if len(values) == 1:
            values *= prod(shape)
        if len(values) != prod(shape):
            self.raise_error(f"expected {prod(shape)} elements, but got {len(values)}")
        return DenseIntOrFPElementsAttr.from_list(TensorType(kind, shape), values)

    def _check_indices(self, indices: Any, extents: Sequence[int], shape: Sequence[int], position: Position) -> None:
        """Each index has a number for each dimension, and is inside."""
        if (extents[1] if len(extents) == 2 else 1) != len(shape) or len(extents) > 2:
            self.raise_error(f"expected indices of {len(shape)} numbers each", position)
        numbers: Sequence[int] = indices.get_values()
        if not all(0 <= number < shape[at % len(shape)] for at, number in enumerate(numbers)):
            self.raise_error("an index of sparse elements is out of bounds", position)

    # ------------------------------------------------------------------------------------------------------- identities

    def _parse_distinct(self) -> DistinctAttr:
        """``[number]<attribute>``; a number stands for one attribute throughout a text."""
        position = self.pos
        self.parse_characters("[", " in distinct attribute")
        number = self.parse_integer(allow_boolean=False, allow_negative=False)
        self.parse_characters("]", " in distinct attribute")
        self.parse_characters("<", " in distinct attribute")
        referenced: Attribute = UnitAttr()
        if self.parse_optional_punctuation(">") is None:
            referenced = self.parse_attribute()
            self.parse_punctuation(">", " in distinct attribute")
        if self._distinct.setdefault(number, referenced) != referenced:
            self.raise_error("referenced attribute does not match previous definition", position)
        return DistinctAttr(IntAttr(number), referenced)

    # -------------------------------------------------------------------------------------------- unregistered dialects

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: bool) -> Any:
        dialect = attr_or_dialect_name
        is_opaque = "." not in dialect and self._current_token.kind is MLIRTokenKind.LESS
        if not is_opaque or dialect in self.ctx.registered_dialect_names or not self.ctx.allow_unregistered:
            return super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        body = self._parse_dialect_symbol_body()
        simple = _SYMBOL.fullmatch(body)
        name = f"{dialect}.{simple[1] if simple else ''}"
        kind: Any = self.ctx.get_optional_type(name) if is_type else self.ctx.get_optional_attr(name)
        assert kind is not None, "unregistered dialects are allowed"
        if simple is None:
            return kind(name, is_type, True, body)
        return kind(name, is_type, False, simple[2] or "")

    def _resume_at(self, position: Position) -> None:
        self._parser_state.lexer.pos = position
        self._parser_state.current_token = self._parser_state.lexer.lex()


class IntegerLiteral(AttrParser._TensorLiteralElement):
    """A decimal integer or a truth value in a literal, which MLIR does not take for a float."""

    def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType) -> Any:
        if isinstance(type, AnyFloat) and isinstance(self.value, bool):
            parser.raise_error(f"expected a float of type {type}", self.span)
        if isinstance(type, AnyFloat):
            tolerate(parser, "T4", f"an integer where a float of type {type} is expected", self.span.start)
        return super().to_type(parser, type)


class BitPattern(AttrParser._TensorLiteralElement):
    """A hexadecimal number in a literal: for a float type it is the bits, not the value."""

    def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType) -> Any:
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        bits = self.to_int(parser, allow_negative=False)
        if bits >> type.bitwidth:
            parser.raise_error(f"hexadecimal float constant out of range for {type}", self.span)
        return type.unpack(bits.to_bytes(type.compile_time_size, "little"), 1)[0]
