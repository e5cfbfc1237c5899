"""The parts of xDSL's parser that every token passes through, without their detours, and types read once.

What is accepted is the same but for two things that MLIR accepts and xDSL does not, or not in the same way: blocks may
be called by a number (``^0``), and a memref's layout that is the identity is left out of its type.
"""

# The functions that are replaced here are private or shared by all of xDSL's parsers.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    FileLineColLoc,
    IntAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute, Block, TypeAttribute
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

from ktir.dialect.text.lexer import PUNCTUATION, QuickToken

_SIMPLE_TYPE = re.compile(r"(?:tensor|memref|vector|!ktdp\.access_tile)<[0-9a-zA-Z?*]+>")
"""A type whose text says everything: no alias, no attribute in it."""


_AFFINE = re.compile(r"affine_(?:map|set)<[^/\"]{0,4000}?\)>(?!=)")
"""A map or set as far as it can go; whether it ends there is known once it was read."""

Element = TypeVar("Element")


class QuickOperand(UnresolvedOperand):
    """A name that stands for a value; its span is made only where somebody asks."""

    def __init__(self, token: MLIRToken, index: int) -> None:
        self.token, self.index, self.name = token, index, token.text[1:]

    @property
    def span(self) -> Span:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.token.span

    @property
    def operand_name(self) -> str:
        return self.name


class QuickParser(Parser):
    """xDSL's parser with short ways for tokens, punctuation, names of values and types."""

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self._types: dict[str, TypeAttribute] = {}
        self._affine: dict[str, Attribute] = {}
        self._numbers: dict[int, IntAttr[int]] = {}

    # ---------------------------------------------------------------------------------------------------------- tokens

    @property
    def pos(self) -> Position:
        token = self._parser_state.current_token
        return token.start if isinstance(token, QuickToken) else token.span.start

    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> MLIRToken:
        state = self._parser_state
        token = state.current_token
        assert expected_kind is None or token.kind is expected_kind, f"unexpected token {token}"
        state.current_token = state.lexer.lex()
        return token

    def _parse_optional_token(self, expected_kind: MLIRTokenKind) -> MLIRToken | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def _parse_token(self, expected_kind: MLIRTokenKind, error_msg: str) -> MLIRToken:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            self.raise_error(error_msg, token.span)
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_punctuation(self, punctuation: Any) -> Any:
        state = self._parser_state
        if state.current_token.kind is not PUNCTUATION[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: Any, context_msg: str = "") -> Any:
        state = self._parser_state
        token = state.current_token
        if token.kind is not PUNCTUATION[punctuation]:
            self.raise_error(f"Expected '{punctuation}'{context_msg}", token.span)
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_optional_keyword(self, keyword: str) -> str | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT or token.text != keyword:
            return None
        state.current_token = state.lexer.lex()
        return keyword

    def parse_optional_characters(self, text: str) -> str | None:
        state = self._parser_state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    # ---------------------------------------------------------------------------------------------------------- values

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not MLIRTokenKind.PERCENT_IDENT:
            return None
        state.current_token = following = state.lexer.lex()
        index = 0
        if following.kind is MLIRTokenKind.HASH_IDENT:
            number = following.text[1:]
            if not number.isdecimal():
                self.raise_error("Expected integer as SSA value tuple index", following.span)
            index = int(number)
            state.current_token = state.lexer.lex()
        return QuickOperand(token, index)

    def parse_unresolved_operand(self, msg: str = "operand expected") -> UnresolvedOperand:
        operand = self.parse_optional_unresolved_operand()
        if operand is None:
            self.raise_error(msg)
        return operand

    # ----------------------------------------------------------------------------------------------------------- lists

    def parse_list(
        self,
        delimiter: Parser.Delimiter,
        parse: Callable[[], Element],
        separator: str = ",",
        context_msg: str = "",
    ) -> list[Element]:
        ends: tuple[str, str] | None = delimiter.value
        if ends is not None:
            self.parse_characters(ends[0], context_msg)
            if self.parse_optional_characters(ends[1]) is not None:
                return []
        elements = [parse()]
        while self.parse_optional_characters(separator) is not None:
            elements.append(parse())
        if ends is not None:
            self.parse_characters(ends[1], context_msg)
        return elements

    # ----------------------------------------------------------------------------------------------------------- types

    def parse_type(self) -> TypeAttribute:
        type = self.parse_optional_type()
        if type is None:
            self.raise_error("type expected")
        return type

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        token = self._parser_state.current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return None
        name = token.text
        if (known := self._types.get(name)) is not None:
            self._consume_token()
            return known
        type = super()._parse_optional_integer_or_float_type()
        if type is not None:
            self._types[name] = type
        return type

    def _parse_optional_builtin_parametrized_type(self) -> TypeAttribute | None:
        return self._known_or_read(super()._parse_optional_builtin_parametrized_type)

    def parse_optional_type(self) -> TypeAttribute | None:
        if self._parser_state.current_token.kind is MLIRTokenKind.EXCLAMATION_IDENT:
            return self._known_or_read(super().parse_optional_type)
        return super().parse_optional_type()

    def _known_or_read(self, read: Callable[[], TypeAttribute | None]) -> TypeAttribute | None:
        """The type that stands here; one whose text says everything is read once."""
        lexer = self._parser_state.lexer
        match = _SIMPLE_TYPE.match(lexer.input.content, self.pos)
        if match is None:
            return read()
        text = match.group()
        if (known := self._types.get(text)) is not None:
            lexer.pos = match.end()
            self._parser_state.current_token = lexer.lex()
            return known
        type = read()
        if type is not None:
            self._types[text] = type
        return type

    def parse_optional_attribute(self) -> Attribute | None:
        """As xDSL's; a map or set whose text was read before is the same one."""
        token = self._parser_state.current_token
        if token.text not in ("affine_map", "affine_set"):
            return super().parse_optional_attribute()
        lexer = self._parser_state.lexer
        match = _AFFINE.match(lexer.input.content, self.pos)
        if match is None:
            return super().parse_optional_attribute()
        text = match.group()
        if (known := self._affine.get(text)) is not None:
            lexer.pos = match.end()
            self._parser_state.current_token = lexer.lex()
            return known
        attribute = super().parse_optional_attribute()
        between = lexer.input.content[match.end() : self.pos]
        if attribute is not None and self.pos >= match.end() and not between.strip():
            self._affine[text] = attribute
        return attribute

    def _parse_memref_attrs(self) -> MemRefType | UnrankedMemRefType:
        type = super()._parse_memref_attrs()
        if not isinstance(type, MemRefType) or not isinstance(type.layout, AffineMapAttr):
            return type
        layout = type.layout.data
        if layout != layout.identity(type.get_num_dims()):
            return type
        return MemRefType(type.element_type, type.shape, NoneAttr(), type.memory_space)

    # ---------------------------------------------------------------------------------------------------------- blocks

    def parse_optional_successor(self) -> Block | None:
        token = self._parse_optional_token(MLIRTokenKind.CARET_IDENT)
        return None if token is None else self._get_block_from_name(token.span)

    def _parse_block(self) -> Block:
        """A block; one called by a number has no name of its own."""
        token = self._parser_state.current_token
        name = token.text[1:]
        if token.kind is not MLIRTokenKind.CARET_IDENT or not name.isdecimal():
            return super()._parse_block()
        if name in self.blocks and self.blocks[name][1] is not None:
            self.raise_error(f"re-declaration of block '{name}'", token.span)
        block = self._get_block_from_name(token.span)
        self.blocks[name] = (block, token.span)
        self.forward_block_references.pop(name, None)
        self._consume_token()
        self._parse_optional_block_arg_list(block)
        self.parse_punctuation(":")
        self._parse_block_body(block)
        return block

    # ------------------------------------------------------------------------------------------------------- locations

    def _file_location(self, file: StringAttr, line: int, column: int) -> FileLineColLoc:
        """A place in a file. Its parts are what they should be, so nothing is checked."""
        location = FileLineColLoc.__new__(FileLineColLoc)
        object.__setattr__(location, "filename", file)
        object.__setattr__(location, "line", self._number(line))
        object.__setattr__(location, "column", self._number(column))
        return location

    def _number(self, number: int) -> IntAttr[int]:
        known = self._numbers.get(number)
        if known is None:
            known = self._numbers[number] = IntAttr(number)
        return known
