"""Bisecting: a changed operation is named where it stands, and what does not matter is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import ktir
from ktir.conformance.case import parse_case
from ktir.errors import ArgumentError, OutOfBounds
from ktir.interp.tracing.bisect import Bisection
from tests.interp.tracing.programs import DOUBLE, PER_CORE, SQUARE_PLUS, inputs, line_with

CASES = sorted((Path(__file__).parents[3] / "spec" / "cases").glob("*.ktir"))
SOFTMAX = next(path for path in CASES if path.stem == "row_softmax")


def bisect(first: str, second: str, tolerance: ktir.Tolerance | None = None) -> Bisection:
    found = ktir.bisect(first, second, arguments=inputs(), tolerance=tolerance)
    json.dumps(found.data)
    assert str(found)
    return found


def line_of(found: Bisection) -> int:
    assert found.mismatch is not None and found.mismatch.point.site.location is not None
    return found.mismatch.point.site.location.line


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_program_is_the_same_as_itself(path: Path) -> None:
    case = parse_case(path.read_text(), str(path))
    found = ktir.bisect(path, path.read_text(), case.function, case.inputs, machine=case.machine)
    assert found.same and not found.only_first and not found.only_second and found.compared > 10


CHANGES = [
    ("mulf %v, %v", "addf %v, %v", "%s ="),
    ("addf %s, %v", "subf %s, %v", "%r ="),
    ("addf %s, %v", "addf %s, %s", "%r ="),
    ("%first = arith.muli %core, %c4", "%first = arith.muli %core, %c1", "%first ="),
    ("arith.constant 4", "arith.constant 3", "%c4 ="),
    ("%xv[%row, 0]", "%xv[%i, 0]", "ktdp.load"),
    ("%yv[%row, 0]", "%yv[%i, 0]", "ktdp.store"),
]


@pytest.mark.parametrize(("old", "new", "place"), CHANGES)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_changed_operation_is_named(old: str, new: str, place: str, backwards: bool) -> None:
    """Also where an operation before it was added, and every value has another name."""
    changed = SQUARE_PLUS.replace(old, new)
    assert changed != SQUARE_PLUS
    changed = changed.replace("%core =", "%unused = arith.constant 77 : index\n%core =")
    first, second = (changed, SQUARE_PLUS) if backwards else (SQUARE_PLUS, changed)
    found = ktir.bisect(first, second, arguments=inputs(), checks=False)
    assert not found.same and line_of(found) == line_with(second, place)
    assert len(found.only_first if backwards else found.only_second) == 1


def test_other_names_are_no_difference() -> None:
    renamed = re.sub(r"%(\w+)\b", r"%renamed_\1", SQUARE_PLUS)
    for name in ("x", "y"):  # names of arguments are how they are passed
        renamed = renamed.replace(f"%renamed_{name}:", f"%{name}:").replace(f"view %renamed_{name},", f"view %{name},")
    found = bisect(SQUARE_PLUS, renamed)
    assert found.same and not found.only_first and not found.only_second


def test_numbered_values_are_paired_by_what_they_compute() -> None:
    names = {"s": 100, "r": 101, "v": 7, "row": 3, "xt": 4, "yt": 5, "first": 0}
    numbers = re.sub(rf"%({'|'.join(names)})\b", lambda found: f"%{names[found[1]]}", SQUARE_PLUS)
    assert bisect(SQUARE_PLUS, numbers).same
    wrong = numbers.replace("arith.mulf", "arith.maximumf")
    assert line_of(bisect(SQUARE_PLUS, wrong)) == line_with(wrong, "arith.maximumf")


def test_an_operation_in_between_is_the_difference_of_the_next_one() -> None:
    longer = SQUARE_PLUS.replace(
        "%r = arith.addf %s, %v", "%extra = arith.mulf %s, %s : tensor<1x16xf32>\n%r = arith.addf %extra, %v"
    )
    found = bisect(SQUARE_PLUS, longer)
    assert line_of(found) == line_with(longer, "%r =")
    assert [op.name for op in found.only_second] == ["arith.mulf"]


def test_a_moved_operation_is_no_difference() -> None:
    text = SQUARE_PLUS.replace("%r = arith.addf", "%t = arith.negf %v : tensor<1x16xf32>\n%r = arith.addf")
    moved = SQUARE_PLUS.replace("%s = arith.mulf", "%t = arith.negf %v : tensor<1x16xf32>\n%s = arith.mulf")
    found = bisect(text, moved)
    assert found.same and not found.only_first and not found.only_second


def test_a_missing_store_is_a_difference_of_the_outputs() -> None:
    found = bisect(DOUBLE, re.sub(r"(?m)^.*ktdp.store.*\n", "", DOUBLE))
    assert not found.same and found.mismatch is None and found.outputs == {"y": None}
    assert [op.name for op in found.only_first] == ["ktdp.store"]


def test_a_version_that_stops_differs_and_says_where() -> None:
    stops = DOUBLE.replace("scf.for %i = %c0 to %c4", "%c5 = arith.constant 9 : index\nscf.for %i = %c0 to %c5")
    found = bisect(DOUBLE, stops)
    assert not found.same and isinstance(found.errors[1], OutOfBounds)
    assert "stops" in str(found) and "OutOfBounds" in str(found)


def test_what_stops_both_is_raised() -> None:
    stops = DOUBLE.replace("constant 4", "constant 9")
    with pytest.raises(OutOfBounds):
        bisect(stops, stops)


def test_rounding_is_within_a_tolerance() -> None:
    other = SQUARE_PLUS.replace("arith.addf %s, %v", "arith.addf %s, %w").replace(
        "%s = arith", "%k = arith.constant dense<1.0001> : tensor<1x16xf32>\n%w = arith.mulf %v, %k "
        ": tensor<1x16xf32>\n%s = arith",
    )  # fmt: skip
    assert not bisect(SQUARE_PLUS, other).same
    assert bisect(SQUARE_PLUS, other, ktir.Tolerance(1e-2, 1e-2)).same


def test_the_values_of_both_versions_are_shown() -> None:
    found = bisect(SQUARE_PLUS, SQUARE_PLUS.replace("mulf %v, %v", "addf %v, %v"))
    x = inputs()["x"][0, 0]
    data = found.data["first_difference"]
    assert (data["core"], data["iteration"], data["coordinates"]) == (0, {"%i": 0}, [0, 0])
    assert (data["got"], data["wanted"]) == (float(x + x), float(x * x))
    assert found.data["outputs"]["y"]["elements"] == inputs()["y"].size


def test_a_difference_inside_a_body_is_pointed_at() -> None:
    text = SOFTMAX.read_text()
    changed = text.replace("arith.subf", "arith.addf")
    case = parse_case(text, str(SOFTMAX))
    found = ktir.bisect(text, changed, case.function, case.inputs)
    assert found.mismatch is not None and found.mismatch.point.values[0].name == "%e"
    assert f"-:{line_with(changed, 'arith.addf %a, %m16')}:" in str(found)


def test_random_arguments_are_made_where_none_are_given() -> None:
    assert ktir.bisect(SQUARE_PLUS, SQUARE_PLUS).same
    assert not ktir.bisect(SQUARE_PLUS, SQUARE_PLUS.replace("mulf", "maximumf"), seed=4).same


def test_programs_with_other_arguments_cannot_be_compared() -> None:
    with pytest.raises(ArgumentError):
        ktir.bisect(DOUBLE, DOUBLE.replace("%y", "%z"))


def test_loops_of_another_length_are_told() -> None:
    shorter = SQUARE_PLUS.replace("scf.for %i = %c0 to %c4", "%c2 = arith.constant 2 : index\nscf.for %i = %c0 to %c2")
    found = bisect(SQUARE_PLUS, shorter)
    assert found.mismatch is None and not found.same
    assert {(n, m) for _, _, n, m in found.repeated} == {(PER_CORE, 2)}
    wrong = found.outputs["y"]
    assert wrong is not None and wrong.coordinates == (2, 0) and np.isclose(wrong.got, 0)
