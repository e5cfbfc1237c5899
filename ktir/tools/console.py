"""What the commands share: where output goes, how errors look, how long steps show that they live.

Results go to standard output, everything else to standard error. With ``--json`` standard output holds one JSON object
and nothing else. Exit statuses: 0 for success, 1 when the input is at fault (a :class:`ktir.KtirError`, a failed
check), 2 for wrong usage, 70 for a fault of the tool itself, 130 after an interrupt.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from ktir.errors import Diagnostic, KtirError
from ktir.location import Location, location_data

OK, FAULT, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130


@dataclass(frozen=True)
class Console:
    """Prints results as text or as JSON. ``sources`` holds texts that have no file, by the name in their locations."""

    as_json: bool = False
    sources: Mapping[str, str] | None = None

    def result(self, data: Mapping[str, Any], text: str) -> None:
        """One result: ``data`` for machines, ``text`` for people."""
        print(as_json(data) if self.as_json else text)

    def failure(self, data: Mapping[str, Any], text: str, status: int) -> int:
        """The end of a command that failed: ``data`` beside ``"ok": false``, or ``text`` on standard error."""
        if self.as_json:
            print(as_json({"ok": False, **data}))
        else:
            self.note(text)
        return status

    def note(self, text: str) -> None:
        """Something on the side, on standard error."""
        print(text, file=sys.stderr)

    @contextmanager
    def step(self, text: str) -> Generator[None]:
        """Shows that a step of unknown length is under way, on a terminal only."""
        if not sys.stderr.isatty():
            yield
            return
        from rich.console import Console as RichConsole

        with RichConsole(stderr=True).status(text):
            yield

    def show(self, problem: KtirError | Diagnostic) -> None:
        """A problem with the line it is about, on standard error."""
        print(self.describe(problem), file=sys.stderr)

    def describe(self, problem: KtirError | Diagnostic) -> str:
        """The problem's own text with the source line and a caret put under its first line."""
        head, *rest = str(problem).split("\n")
        return "\n".join([head, *self._excerpt(problem.location), *rest])

    def _excerpt(self, location: Location | None) -> list[str]:
        line = self._line(location) if location else None
        if location is None or line is None:
            return []
        margin = f"{location.line:>5} | "
        blank = "".join(c if c == "\t" else " " for c in line[: max(0, location.column - 1)])
        return [f"{margin}{line}", f"{' ' * (len(margin) - 2)}| {blank}^"]

    def _line(self, location: Location) -> str | None:
        text = (self.sources or {}).get(location.file)
        if text is None:
            try:
                with open(location.file, encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                return None
        lines = text.splitlines()
        return lines[location.line - 1] if 0 < location.line <= len(lines) else None


def as_json(data: Mapping[str, Any]) -> str:
    """``data`` as text; numbers that JSON does not have as the strings ``nan``, ``inf`` and ``-inf``."""
    return json.dumps(_finite(data), indent=1, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("Sequence[Any]", value)]
    return value


def problem_data(problem: KtirError | Diagnostic) -> dict[str, Any]:
    """A problem for JSON output."""
    return {
        "code": problem.code,
        "severity": getattr(problem, "severity", "error"),
        "message": problem.message,
        "location": location_data(problem.location),
        "remedy": problem.remedy,
    }
