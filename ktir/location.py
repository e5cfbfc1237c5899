"""Where something stands in a text that a person wrote: the anchor of every diagnostic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Line and column count from 1, as editors do; ``file`` is as the user named it, ``-`` for standard input."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def location_data(location: Location | None) -> dict[str, str | int] | None:
    """A place for JSON output."""
    if location is None:
        return None
    return {"file": location.file, "line": location.line, "column": location.column}
