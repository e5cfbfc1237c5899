"""Diagnostics that a test text expects, and whether they came.

A comment ``expected-error @+1 {{text}}`` expects an error that contains ``text`` one line below. Also ``-warning``,
``-note`` and ``-remark``; ``-re`` after the kind makes ``{{..}}`` inside the text a regular expression; the place is
``@+N``, ``@-N``, ``@above``, ``@below``, ``@unknown`` or the comment's own line. As in mlir-opt, every expectation must
be met and every diagnostic expected.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ktir.errors import Diagnostic, KtirError

_EXPECTATION = re.compile(
    r"expected-(?P<kind>error|warning|note|remark)(?P<regex>-re)?\s*"
    r"(?P<place>@(?:[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Expectation:
    """``line`` is None for a diagnostic without a place; ``at`` is where the expectation itself stands."""

    kind: str
    line: int | None
    at: int
    text: str
    is_regex: bool

    def matches(self, kind: str, line: int | None, message: str) -> bool:
        if (self.kind, self.line) != (kind, line):
            return False
        if not self.is_regex:
            return self.text in message
        pieces = re.split(r"\{\{(.*?)\}\}", self.text)
        pattern = "".join(f"(?:{piece})" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces))
        return re.search(pattern, message) is not None


@dataclass(frozen=True)
class Emitted:
    """A diagnostic that came: its kind, its line or None, its text."""

    kind: str
    line: int | None
    message: str

    @staticmethod
    def of(problem: KtirError | Diagnostic) -> Iterator[Emitted]:
        kind = problem.severity if isinstance(problem, Diagnostic) else "error"
        yield Emitted(kind, problem.location.line if problem.location else None, problem.message)
        for place, note in problem.related if isinstance(problem, KtirError) else ():
            yield Emitted("note", place.line, note)


def expectations(text: str, first_line: int = 1) -> list[Expectation]:
    """What ``text``, whose first line has number ``first_line``, expects."""
    lines = text.splitlines()
    return [
        Expectation(
            match["kind"],
            _line(match["place"], index, lines, first_line),
            first_line + index,
            match["text"],
            bool(match["regex"]),
        )
        for index, line in enumerate(lines)
        for match in _EXPECTATION.finditer(line)
    ]


def _line(place: str | None, index: int, lines: Sequence[str], first_line: int) -> int | None:
    match place:
        case None:
            return first_line + index
        case "@unknown":
            return None
        case "@above" | "@below":
            step = -1 if place == "@above" else 1
            at = index + step
            while 0 <= at < len(lines) and _EXPECTATION.search(lines[at]):
                at += step
            return first_line + at
        case _:
            return first_line + index + int(place[1:])


def mismatches(
    expected: Sequence[Expectation],
    problems: Iterable[KtirError | Diagnostic],
    must_be_expected: Container[str] = ("error", "warning"),
) -> list[str]:
    """What is wrong, a sentence each: expectations nobody met, and diagnostics nobody expected.

    Only diagnostics of the kinds in ``must_be_expected`` have to be.
    """
    open_expectations = list(expected)
    complaints: list[str] = []
    for problem in problems:
        for emitted in Emitted.of(problem):
            met = next(
                (each for each in open_expectations if each.matches(emitted.kind, emitted.line, emitted.message)), None
            )
            if met is not None:
                open_expectations.remove(met)
            elif emitted.kind in must_be_expected:
                where = "" if emitted.line is None else f"line {emitted.line}: "
                complaints.append(f"{where}unexpected {emitted.kind}: {emitted.message}")
    complaints += [
        f'line {each.at}: expected {each.kind} "{each.text}" was not produced'
        + ("" if each.line in (None, each.at) else f" at line {each.line}")
        for each in open_expectations
    ]
    return complaints
