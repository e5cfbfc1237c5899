"""Reads KTIR text: xDSL's parser with locations, MLIR's canonical affine forms, tolerated spellings and located errors.

Whatever the text holds, the outcome is a verified module, or a :class:`ParseError` or :class:`VerifyError` that says
where.
"""

# xDSL's parser has no public hooks for operations, aliases, dense literals and locations.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineMap, AffineSet
from xdsl.irdl import IRDLOperation, OptPropertyDef
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input, Position, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ktir.dialect.context import create_context
from ktir.dialect.ktdp.doubts import doubts
from ktir.dialect.text.affine_reader import parse_map, parse_set
from ktir.dialect.text.leniency import HasOldForm, ToleratesSpellings
from ktir.dialect.text.lexer import KtirLexer
from ktir.dialect.text.limits import MAX_NESTING, first_too_deep, recursion_room, without_collections
from ktir.dialect.text.literals import LiteralParser
from ktir.dialect.text.old_spellings import PLANNED_OPERATIONS, REMOVED_OPERATIONS, RENAMED_TYPES, new_name
from ktir.dialect.verification import verify
from ktir.errors import Diagnostic, KtirError, NestingTooDeep, ParseError
from ktir.location import Location

TOLERATED = "ToleratedSpelling"
"""The code of every warning about a tolerated spelling."""

MAX_INTEGER_WIDTH = (1 << 24) - 1
"""As in MLIR."""

REMEDIES = {
    "M1": "write 'ktdp.' for 'ktir.'",
    "M2": "write (%i) for a direct subscript, ind(%view[%i]) for an indirect one",
    "M3": "write 'floordiv' for '/' and 'mod' for '%'",
    "M4": "write '-> !ktdp.access_tile<..>'",
    "M5": "write per_dim_subscript_kinds and per_dim_subscript_maps",
    "M6": "write 'f16' for 'fp16'",
    "M12": "write !ktdp.tile_future<(T, ..), groups = #set>",
    "M13": "leave ': T' out before '->'",
    "M14": "write the set as groups = .. inside the tile_future type",
    "M15": "let the result have the type of the partial; drop its unit dimensions by tensor.collapse_shape",
    "M17": "write arith.maximumf or arith.minimumf",
    "Q5": "write the attribute",
    "T1": "move the definition before the first operation of the text",
    "T2": "move the definition before the first use",
    "T3": "write ': tensor<..xi1>, tensor<..>'",
    "T4": "write a decimal point, 1.0 for 1",
}


@dataclass(frozen=True)
class Parsed:
    """A module and the warnings that reading it gave."""

    module: ModuleOp
    diagnostics: tuple[Diagnostic, ...]


def parse_module(text: str, file: str = "-", *, strict: bool = False, context: Context | None = None) -> ModuleOp:
    """The verified module that ``text`` holds; a text without a module is wrapped into one."""
    return parse(text, file, strict=strict, context=context).module


def parse(text: str, file: str = "-", *, strict: bool = False, context: Context | None = None) -> Parsed:
    """As :func:`parse_module`, with the warnings. ``strict`` makes a tolerated spelling a :class:`ParseError`."""
    parsed = parse_unverified(text, file, strict=strict, context=context)
    verify(parsed.module)
    return Parsed(parsed.module, (*parsed.diagnostics, *doubts(parsed.module)))


def parse_unverified(text: str, file: str = "-", *, strict: bool = False, context: Context | None = None) -> Parsed:
    """As :func:`parse`, but the module may break rules of its dialects."""
    lines = Lines(text, file)
    if (position := first_too_deep(text)) is not None:
        raise NestingTooDeep(
            f"brackets are nested deeper than {MAX_NESTING} levels",
            location=lines.location(position),
            remedy="split the text into functions or name parts of it by aliases",
        )
    parser: KtirParser | None = None
    try:
        with recursion_room(), without_collections():
            parser = KtirParser(context or create_context(), text, lines, strict=strict)
            module = parser.parse_module()
        return Parsed(module, tuple(parser.diagnostics))
    except KtirError:
        raise
    except XdslParseError as fault:
        first, *further = (
            ParseError(each.msg, location=lines.location(each.span.start)) for each in _with_causes(fault)
        )
        raise first from (further[0] if further else None)
    except RecursionError:
        raise NestingTooDeep("the text nests too deeply", location=lines.location(0)) from None
    except Exception as fault:  # stock parsers trip over texts they should have reported
        position = parser.pos if parser is not None else 0
        message = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise ParseError(message, location=lines.location(position)) from fault


def _with_causes(fault: XdslParseError) -> Iterator[XdslParseError]:
    """An error of a parser, and the one that came of it."""
    yield fault
    if isinstance(fault.__cause__, XdslParseError):
        yield fault.__cause__


_INTEGER_TYPE = re.compile(r"[su]?i(\d+)")
_ALIAS_DEFINITION = re.compile(r"^[ \t]*([#!][\w$.-]+)[ \t]*=[ \t]*", re.MULTILINE)


class Lines:
    """Turns positions of a text into lines and columns."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    def location(self, position: int) -> Location:
        line = bisect_right(self.starts, position) - 1
        return Location(self.file, line + 1, position - self.starts[line] + 1)


class KtirParser(LiteralParser, ToleratesSpellings):
    """xDSL's parser, repaired where KTIR needs it."""

    def __init__(self, context: Context, text: str, lines: Lines, *, strict: bool) -> None:
        super().__init__(context, "", lines.file)
        self._resume_from(ParserState(KtirLexer(Input(text, lines.file))))
        self.lines, self.strict = lines, strict
        self.file_name = StringAttr(lines.file)
        self.diagnostics: list[Diagnostic] = []
        self.said_unknown = UnknownLoc()
        self.resolved_ahead: set[str] = set()
        self.argument_locations: dict[Position, LocationAttr] = {}

    # ------------------------------------------------------------------------------------------------ tolerated texts

    def tolerate(self, rule: str, message: str, position: int) -> None:
        place, remedy = self.lines.location(position), REMEDIES.get(rule)
        if self.strict:
            raise ParseError(f"{message} (rule {rule})", location=place, remedy=remedy)
        self.diagnostics.append(Diagnostic(TOLERATED, "warning", f"{message} (rule {rule})", place, remedy))

    # ------------------------------------------------------------------------------------------ operations, locations

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module that the whole text is, or a module around its operations; no text at all is an empty module."""
        operations: list[Operation] = []
        while self._current_token.kind is not MLIRTokenKind.EOF:
            if self._current_token.kind in (MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT):
                self._parse_alias_def()
            elif self._current_token.kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self._parse_file_metadata_dictionary()
            elif (operation := self.parse_optional_operation()) is not None:
                operations.append(operation)
            else:
                self.raise_error("expected an operation or an alias definition")
        if self.forward_ssa_references:
            self._fail_undefined()
        if len(operations) == 1 and isinstance(operations[0], ModuleOp):
            return operations[0]
        module = ModuleOp(operations)
        module.location = self._file_location(self.file_name, 0, 0)
        return module

    def _fail_undefined(self) -> None:
        """Raises the error of values that no operation defines, where the first of them is used."""
        names = list(self.forward_ssa_references)
        wanted = "|".join(re.escape(name) for name in names)
        use = re.compile(rf'//[^\n]*|"(?:[^"\\\n]|\\.)*"|%(?:{wanted})(?![\w$.-])')
        places = (match.start() for match in use.finditer(self.lines.text) if match[0].startswith("%"))
        raise ParseError(
            f"values used but not defined: {', '.join(f'%{name}' for name in names)}",
            location=self.lines.location(next(places, 0)),
            remedy="define them before their use",
        )

    def parse_operation(self) -> Operation:
        results_span = self._current_token.span
        bound_results = self._parse_op_result_list()
        name_position = self.pos
        op = self._parse_named_operation()
        if self._has_no_location(op):
            op.location = self._place(name_position)
        self._place_implied(op)
        expected = sum(size for _, size in bound_results)
        if expected and len(op.results) != expected:
            self.raise_error(
                f"operation defines {len(op.results)} results but was provided {expected} to bind", results_span
            )
        first = 0
        for span, size in bound_results:
            self._register_ssa_definition(span.text[1:], op.results[first : first + size], span)
            first += size
        return op

    def _parse_named_operation(self) -> Operation:
        span = self._current_token.span
        custom = self._parse_optional_token(MLIRTokenKind.BARE_IDENT)
        name = custom.text if custom else self.expect(self.parse_optional_str_literal, "operation name expected")
        kind = self._operation_kind(name, span)
        self._parser_state.dialect_stack.append(kind.dialect_name())
        try:
            if not custom:
                return self._parse_generic_operation(kind)
            op = kind.parse(self)
        except VerifyException as fault:
            self.raise_error(str(fault), span)
        finally:
            self._parser_state.dialect_stack.pop()
        if (location := self.parse_optional_location()) is not None:
            op.location = location
        return op

    def _operation_kind(self, name: str, span: Span) -> type[Operation]:
        stack = self._parser_state.dialect_stack
        if (kind := self.ctx.get_optional_op(name, dialect_stack=stack)) is not None:
            return kind
        if (renamed := new_name(name)) is not None:
            rule, present = renamed
            if (kind := self.ctx.get_optional_op(present)) is not None:
                self.tolerate(rule, f"'{name}' is called '{present}' now", span.start)
                return kind
        if name in REMOVED_OPERATIONS:
            raise ParseError(
                f"'{name}' was removed from the dialect, and no rule translates it (rule M16)",
                location=self.lines.location(span.start),
                remedy=REMOVED_OPERATIONS[name],
            )
        if name in PLANNED_OPERATIONS:
            raise ParseError(
                f"'{name}' is planned; no version of the dialect defines it",
                location=self.lines.location(span.start),
                remedy="allow it with --experimental (experimental=True), or write the exchange with "
                "ktdp.inter_tile_consume or _reduce",
            )
        self.raise_error(f"Operation {name} is not registered", span)

    def _parse_block_body(self, block: Block) -> None:
        """Operations, and between them definitions of aliases, which belong at the top of a text."""
        while True:
            super()._parse_block_body(block)
            if self._current_token.kind not in (MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT):
                return
            self.tolerate("T1", "an alias is defined inside an operation", self.pos)
            self._parse_alias_def()

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        position = self.pos
        op = super()._parse_generic_operation(op_type)
        if isinstance(op, HasOldForm):
            for rule, message in op.modernise():
                self.tolerate(rule, message, position)
        if isinstance(op, IRDLOperation):
            for name, definition in op.get_irdl_definition().properties.items():
                default = None if isinstance(definition, OptPropertyDef) else definition.default_value
                if default is not None:
                    op.properties.setdefault(name, default)
        return op

    def _place_implied(self, op: Operation) -> None:
        """Operations that the text of ``op`` only implies, such as terminators, stand where it stands."""
        for region in op.regions:
            for block in region.blocks:
                for implied in block.ops:
                    if self._has_no_location(implied):
                        implied.location = op.location

    def _has_no_location(self, owner: Operation | BlockArgument) -> bool:
        """Whether the text says nothing of where ``owner`` comes from; ``loc(unknown)`` says something."""
        location = owner.location
        return type(location) is UnknownLoc and location is not self.said_unknown

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        is_number = name.isdecimal()
        for value in values:
            if not is_number:
                value._name = name  # xDSL's own setter leaves out a number at the end of a name
            if type(value) is BlockArgument and self._has_no_location(value):
                value.location = self.argument_locations.pop(span.start, None) or self._place(span.start)

    def _place(self, position: Position) -> LocationAttr:
        place = self.lines.location(position)
        return self._file_location(self.file_name, place.line, place.column)

    def parse_argument(self, *, expect_type: bool = True) -> Any:
        """``%x : type`` or ``%x`` and, as MLIR prints it with debug information, its location."""
        argument = super().parse_argument(expect_type=expect_type)
        if (location := self.parse_optional_location()) is not None:
            self.argument_locations[argument.name.start] = location
        return argument

    # --------------------------------------------------------------------------------------------------------- aliases

    def _parse_alias_def(self) -> None:
        name = self._current_token.text
        if name not in self.resolved_ahead:
            super()._parse_alias_def()
            return
        self.resolved_ahead.discard(name)
        self._consume_token()
        self.parse_punctuation("=", " after attribute alias name")
        self.parse_attribute()

    def _parse_location(self) -> LocationAttr:
        if self._current_token.kind is MLIRTokenKind.HASH_IDENT:
            self._resolve_ahead(self._current_token.text)
        if self._current_token.text == "fused":
            return self._parse_fused_location()
        if self.parse_optional_keyword("unknown") is not None:
            return self.said_unknown
        return super()._parse_location()

    def _parse_fused_location(self) -> LocationAttr:
        """``fused<"metadata">[..]``; the metadata is kept."""
        from xdsl.dialects.builtin import FusedLoc, NoneAttr

        self._consume_token()
        metadata: Any = NoneAttr()
        if self.parse_optional_punctuation("<") is not None:
            metadata = self.parse_attribute()
            self.parse_punctuation(">")
        places = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
        return FusedLoc(tuple(places), metadata)

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: bool) -> Any:
        alias = ("!" if is_type else "#") + attr_or_dialect_name
        is_alias = "." not in alias and self._current_token.kind is not MLIRTokenKind.LESS
        if is_alias and alias not in self.attribute_aliases and alias in self.alias_definitions:
            self.tolerate("T2", f"alias '{alias}' is used before its definition", self.pos - len(alias))
            self._resolve_ahead(alias)
        return super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)

    @cached_property
    def alias_definitions(self) -> dict[str, int]:
        """Where the value of each alias begins that stands at the start of a line."""
        return {match[1]: match.end() for match in _ALIAS_DEFINITION.finditer(self.lines.text)}

    def _resolve_ahead(self, alias: str) -> None:
        """Reads the definition of an alias that only follows later in the text."""
        if alias in self.attribute_aliases:
            return
        if alias not in self.alias_definitions:
            self.raise_error(f"undefined symbol alias '{alias}'")
        here = self.pos
        self.attribute_aliases[alias] = UnknownLoc()  # ends a cycle of aliases
        self._resume_from(self.alias_definitions[alias])
        self.attribute_aliases[alias] = self.parse_attribute()
        self.resolved_ahead.add(alias)
        self._resume_from(here)

    # ------------------------------------------------------------------------------------------------ attributes, types

    def parse_affine_map(self) -> AffineMap:
        return parse_map(self)

    def parse_affine_set(self) -> AffineSet:
        return parse_set(self)

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        width = _INTEGER_TYPE.fullmatch(self._current_token.text)
        if width is not None and (len(width[1]) > 8 or int(width[1]) > MAX_INTEGER_WIDTH):
            self.raise_error(f"integer bitwidth is limited to {MAX_INTEGER_WIDTH} bits")
        type = super()._parse_optional_integer_or_float_type()
        if type is None and self._current_token.text in RENAMED_TYPES:
            token = self._consume_token()
            type = RENAMED_TYPES[token.text]
            self.tolerate("M6", f"'{token.text}' is called '{type}' now", token.span.start)
        return type

    def parse_shape_delimiter(self) -> None:
        if self._parse_optional_shape_delimiter() is None:
            self.raise_error("expected 'x' in dimension list")

    def _parse_dialect_type_or_attribute_body(self, *arguments: Any, **named: Any) -> Any:
        position = self.pos
        try:
            return super()._parse_dialect_type_or_attribute_body(*arguments, **named)
        except VerifyException as fault:
            self.raise_error(str(fault), position)
