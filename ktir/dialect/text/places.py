"""Where the operations of a module stand in its text: line and column of each name, without parsing the text again.

An operation that was read from a text knows its line; one that a pass made knows the line of the model at most. Reports
want both, so that operations of one line of the model can be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from xdsl.dialects.builtin import FusedLoc, LocationAttr, ModuleOp
from xdsl.ir import Operation

from ktir.dialect.locations import TEXT, location_of, with_text_place
from ktir.dialect.text.printer import KtirPrinter, print_operation
from ktir.location import Location

RESULTS = re.compile(r"\s*(?:%[^=]*=\s*)?")
"""What stands before the name of an operation."""


def with_text_places(module: ModuleOp, file: str, printed: str) -> ModuleOp:
    """``module`` if all its operations are from the text ``file``; else a copy whose operations know, beside what they
    knew, their places in its text as printed, which is called ``printed``.
    """
    if all(_is_placed(op, file) for op in module.walk()):
        return module
    places = dict(_places(module, printed))
    copy = module.clone()
    for op, twin in zip(module.walk(), copy.walk(), strict=True):
        if op in places:
            twin.location = with_text_place(op.location, places[op])
    return copy


def _is_placed(op: Operation, file: str) -> bool:
    location: LocationAttr = op.location
    if isinstance(location, FusedLoc) and location.metadata == TEXT:
        return True
    place = location_of(op)
    return place is not None and place.file == file


def _places(module: ModuleOp, file: str) -> Iterator[tuple[Operation, Location]]:
    marks: list[tuple[Operation, int]] = []

    class Recorder(KtirPrinter):
        """Notes the line that an operation begins in."""

        def print_op(self, op: Operation) -> None:
            marks.append((op, self._current_line))
            super().print_op(op)

    lines = print_operation(module, printer_class=Recorder).splitlines()
    first = sum(1 for _ in takewhile(lambda line: line.startswith(("#", "!")), lines))  # the aliases before the module
    for op, mark in marks:
        found = RESULTS.match(lines[first + mark])
        yield op, Location(file, first + mark + 1, (found.end() if found else 0) + 1)


__all__ = ["with_text_places"]
