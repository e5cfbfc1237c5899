"""Places of operations in the text of their module: those that a parser finds, beside what operations knew before."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import UnknownLoc

import ktir
from ktir.dialect.locations import location_attribute, location_of, source_place_of, text_place_of
from ktir.dialect.text.places import with_text_places
from ktir.location import Location
from tests.api.programs import program

TEXTS = [str(path) for path in sorted(Path("spec/cases").glob("*.ktir"))]
MODEL = location_attribute(Location("model.py", 3, 9))


@pytest.mark.parametrize("path", [*TEXTS, None])
def test_lines_and_columns_are_those_that_a_parser_finds(path: str | None) -> None:
    module = ktir.parse(path) if path is not None else program().module
    for number, op in enumerate(module.op.walk()):
        op.location = MODEL if number % 3 else UnknownLoc()
    placed = with_text_places(module.op, module.file, "printed")
    again = ktir.parse(str(module))
    for number, (op, read) in enumerate(zip(placed.walk(), again.op.walk(), strict=True)):
        found, wanted = text_place_of(op), location_of(read)
        around = read.parent_op()
        if found is None or found.file != "printed":  # it is not written: the body of a named operation
            assert around is not None and location_of(around) == wanted
            continue
        assert wanted is not None and (found.line, found.column) == (wanted.line, wanted.column)
        assert source_place_of(op) == (Location("model.py", 3, 9) if number % 3 else None)
        assert location_of(op) == (source_place_of(op) or found)


@pytest.mark.parametrize("path", TEXTS)
def test_what_was_read_from_a_text_is_left_alone(path: str) -> None:
    module = ktir.parse(path)
    assert with_text_places(module.op, module.file, "printed") is module.op
    assert all(source_place_of(op) is None and text_place_of(op) == location_of(op) for op in module.op.walk())
