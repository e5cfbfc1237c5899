"""Tokens of MLIR text, quickly: one regular expression for all of them, and tokens that hold their text.

xDSL's lexer tries one expression after another for each token and makes a frozen ``Span`` for it; that is a quarter of
the time of reading a text. Here one match gives the token, and its span is made only where somebody asks. What the
expression does not know, and every error, is left to xDSL's lexer at the same position.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import cast

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Position, Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
    StringLiteral,
)

_SKIPPED = r"(?:[ \t\n\r\f\v]++|//[^\n]*+)*+"
_SUFFIX = r"(?:[0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+)"

_TOKEN = re.compile(
    _SKIPPED + r"(?:"
    rf"(%{_SUFFIX})"
    r"|([a-zA-Z_][a-zA-Z0-9_$.]*+)"
    r"|(->|\{-\#|\#-\}|[:,()}\[\]<>=+/*?|{-])"
    r"|([0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?+)"
    r"|(0x[0-9a-fA-F]++|[0-9]++)"
    rf"|(\#{_SUFFIX})"
    rf"|(!{_SUFFIX})"
    rf"|(\^{_SUFFIX})"
    r"|(@[a-zA-Z_][a-zA-Z0-9_$.]*+)"
    r")"
)
"""Whatever stands between tokens, then a token; the number of the group is its kind."""

_KINDS = (
    None,
    MLIRTokenKind.PERCENT_IDENT,
    MLIRTokenKind.BARE_IDENT,
    None,
    MLIRTokenKind.FLOAT_LIT,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.HASH_IDENT,
    MLIRTokenKind.EXCLAMATION_IDENT,
    MLIRTokenKind.CARET_IDENT,
    MLIRTokenKind.AT_IDENT,
)
"""The kind of each group of :data:`_TOKEN`; for the third the text says it."""

PUNCTUATION = MappingProxyType(dict(KIND_BY_PUNCTUATION_SPELLING))


class QuickToken:
    """A token that knows its text; it stands in for xDSL's ``Token``, whose text is cut out again at each question."""

    __slots__ = ("_input", "end", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: Position, end: Position, input: Input) -> None:
        self.kind, self.text, self.start, self.end, self._input = kind, text, start, end, input

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self._input)

    @property
    def content(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{self.kind.name} {self.text!r}"


class KtirLexer(MLIRLexer):
    """xDSL's lexer made quick, with string literals read in linear time whether they end or not."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        match = _TOKEN.match(self.input.content, self.pos)
        if match is None:
            return super().lex()
        group = match.lastindex or 0
        start, self.pos = match.span(group)
        text = match[group]
        kind = _KINDS[group] or PUNCTUATION[text]
        return cast(MLIRToken, QuickToken(kind, text, start, self.pos, self.input))

    def _lex_prefixed_ident(self, start_pos: Position) -> MLIRToken:
        if self.input.content.startswith(("% ", "%("), start_pos):
            return self._form_token(MLIRTokenKind.SLASH, start_pos)  # the remainder of old subscripts
        return super()._lex_prefixed_ident(start_pos)

    def _lex_bare_identifier(self, start_pos: Position) -> MLIRToken:
        if not self.input.content[start_pos].isascii():
            raise ParseError(Span(start_pos, start_pos + 1, self.input), "unexpected character")
        return super()._lex_bare_identifier(start_pos)

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        """A literal whose bytes are UTF-8 is a string, however they are written."""
        token = super()._lex_string_literal(start_pos)
        if token.kind is MLIRTokenKind.BYTES_LIT:
            try:
                StringLiteral.from_span(token.span).bytes_contents.decode()
            except UnicodeDecodeError:
                return token
            return Token(MLIRTokenKind.STRING_LIT, token.span)
        return token
