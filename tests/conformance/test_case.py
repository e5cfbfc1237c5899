"""The case format: what a header means, and that every malformed one is an error at its line."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.conformance.case import Case, Tolerance, compare, has_header, parse_case
from ktir.errors import CaseError, UnexpectedResult
from tests.settings import examples


def case(*lines: str) -> Case:
    return parse_case("\n".join(f"//: {line}" for line in lines), "kernel.ktir")


def value(expression: str) -> np.ndarray:
    return np.asarray(case(f"let v = {expression}", "expect y = v").expected["y"])


def test_a_header_gives_inputs_in_order_and_expected_values() -> None:
    read = case(
        'case "Doubling"',
        "function double",
        'machine "spyre"',
        "input x = f16(iota([2, 3]))",
        "input n = 6",
        "expect y = 2 * x",
    )
    assert (read.title, read.function, read.machine) == ("Doubling", "double", "spyre")
    assert list(read.inputs) == ["x", "n"] and read.inputs["n"] == 6
    assert isinstance(read.inputs["x"], np.ndarray) and read.inputs["x"].dtype == np.float16
    np.testing.assert_array_equal(read.expected["y"], [[0, 2, 4], [6, 8, 10]])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("2 + 3 * 4", 14),
        ("-2 ** 2", -4),
        ("7 // 2 - 7 % 4", 0),
        ("[1, 2, 3]", [1, 2, 3]),
        ("iota([6])[1:4]", [1, 2, 3]),
        ("iota([2, 3])[1, :2]", [3, 4]),
        ("sum(iota([2, 3]), axis = 1, keep = 1)", [[3], [12]]),
        ("max(iota([2, 3]), axis = [0, 1])", 5),
        ("transpose(iota([2, 3]), [1, 0])", [[0, 3], [1, 4], [2, 5]]),
        ("reshape(iota([4]), [2, 2]) @ fill([2], 1)", [1, 5]),
        ("where(iota([3]) < 1, inf, -inf)", [np.inf, -np.inf, -np.inf]),
        ("concat([iota([2]), fill([1], 9)])", [0, 1, 9]),
        ("maximum(iota([3]), 1)", [1, 1, 2]),
    ],
)
def test_expressions(expression: str, expected: object) -> None:
    np.testing.assert_array_equal(value(expression), expected)


def test_arithmetic_is_wide_and_only_element_types_round() -> None:
    np.testing.assert_array_equal(value("f16(fill([1], 2048)) + 1"), [2049.0])
    np.testing.assert_array_equal(value("f16(f16(fill([1], 2048)) + 1)"), [2048.0])
    assert value("bf16(fill([1], 1.01))").dtype == ml_dtypes.bfloat16


def test_random_values_depend_on_the_seed_alone() -> None:
    np.testing.assert_array_equal(value("normal([5], seed = 1)"), value("normal([5], seed = 1)"))
    assert (value("normal([5], seed = 1)") != value("normal([5], seed = 2)")).any()


@pytest.mark.parametrize(
    "line",
    [
        "expect y = ",
        "input x = iota([3])",
        "expect y = unknown",
        "expect y = unknown(3)",
        "expect y = fill([2], 1) @ fill([3], 1)",
        "expect y = iota([3])[7]",
        "expect y = fill([1000000, 1000000], 0)",
        "expect y = normal([3])",
        "expect y = fill([-1], 0)",
        "expect y = 1.5[0]",
        'case "two" case "titles"',
        "let a = 1 let a = 2",
        'tolerance y relative 1 absolute 1 because "y is not expected"',
        "something else",
        "let a = 2 ** 0.5 ** [1] @",
        "expect y = f16(1, 2)",
    ],
)
def test_a_malformed_header_is_an_error_at_its_line(line: str) -> None:
    with pytest.raises(CaseError) as error:
        parse_case(f"module {{}}\n//: {line}\n", "kernel.ktir")
    assert error.value.location is not None and error.value.location.line in (2, 3)


def test_huge_powers_and_deep_nesting_end() -> None:
    assert value("9 ** 9 ** 9") == np.inf
    with pytest.raises(CaseError):
        case("expect y = " + "-" * 20000 + "1")


@given(st.text(max_size=40))
@settings(max_examples=examples(400))
def test_any_text_is_read_or_refused_never_worse(text: str) -> None:
    line = " ".join(text.split())
    try:
        parse_case(f"//: {line}", "kernel.ktir")
    except CaseError as error:
        assert error.location is not None


def test_programs_without_header_lines_are_no_cases() -> None:
    assert not has_header("// a comment\nmodule {}")
    assert has_header('//: case "a"\nmodule {}')


def test_check_names_the_first_wrong_element_and_the_reason_for_the_tolerance() -> None:
    read = case("expect y = iota([4])", 'tolerance y relative 0 absolute 0.5 because "halves"')
    assert read.check({"y": np.array([0, 1, 2.5, 3])}) == {"y": 0.5}
    with pytest.raises(UnexpectedResult, match=r"first at \[2\]: 2.6 where 2 is") as error:
        read.check({"y": np.array([0, 1, 2.6, 3])})
    assert error.value.location is not None and error.value.location.line == 1
    assert "halves" in (error.value.remedy or "")


@pytest.mark.parametrize("outputs", [{}, {"y": np.zeros(3)}])
def test_missing_and_misshapen_outputs_are_wrong(outputs: dict[str, np.ndarray]) -> None:
    with pytest.raises(UnexpectedResult):
        case("expect y = iota([4])").check(outputs)


def test_special_values_must_be_equal() -> None:
    want, loose = np.array([np.inf, -np.inf, np.nan, 1.0]), Tolerance(1.0, 1.0)
    assert not compare(want.copy(), want, loose)[1].any()
    for position in range(3):
        have = want.copy()
        have[position] = 1.0
        assert compare(have, want, loose)[1].tolist() == [i == position for i in range(4)]
    assert compare(np.full(4, np.nan), want, loose)[1].tolist() == [True, True, False, True]
