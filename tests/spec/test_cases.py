"""Every case of ``spec/cases``: clean under check, right on both executors, never faster than the machine's bound.

The two executors share no code that computes, so a case that both get right is right for two reasons.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ktir
from ktir.arrays import dtype_name
from ktir.backends.dataflow import run as dataflow
from ktir.backends.dataflow.lower import ArrayArgument
from ktir.conformance.case import Case, parse_case
from ktir.program import lower

FILES = sorted((Path(__file__).parents[2] / "spec" / "cases").glob("*.ktir"))

every_case = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@cache
def case(path: Path) -> Case:
    return parse_case(path.read_text(), str(path))


def test_there_are_cases() -> None:
    assert len(FILES) >= 4


@every_case
def test_a_case_says_what_it_shows_and_expects(path: Path) -> None:
    read = case(path)
    assert read.title and read.function and read.expected
    assert all(tolerance.reason for tolerance in read.tolerances.values())


@every_case
def test_check_has_no_findings(path: Path) -> None:
    assert ktir.check(ktir.parse(path, strict=True), machine=case(path).machine) == []


@every_case
@pytest.mark.parametrize("machine", [None, "spyre"])
def test_the_ktir_executor_gives_what_the_case_expects(path: Path, machine: str | None) -> None:
    before = {name: np.array(value) for name, value in case(path).inputs.items()}
    result = ktir.run(path, case(path).function, case(path).inputs, machine=machine)
    case(path).check(result.outputs)
    assert set(result.outputs) == set(case(path).expected)
    assert result.diagnostics == []
    for name, value in case(path).inputs.items():
        np.testing.assert_array_equal(np.asarray(value), before[name], err_msg=f"{name} was changed")


@every_case
def test_checks_change_no_bit(path: Path) -> None:
    runs = [ktir.run(path, case(path).function, case(path).inputs, checks=checks) for checks in (True, False)]
    for name, array in runs[0].outputs.items():
        assert array.tobytes() == runs[1].outputs[name].tobytes()


@every_case
@pytest.mark.parametrize("name", ["spyre", "mesh"])
def test_the_dataflow_simulator_gives_what_the_case_expects_in_any_order_of_units(path: Path, name: str) -> None:
    read, machine = case(path), ktir.machine(name)
    arrays = {name: value for name, value in read.inputs.items() if isinstance(value, np.ndarray)}
    launch = {name: ArrayArgument(array.shape, dtype_name(array)) for name, array in arrays.items()}
    lowered = lower(ktir.parse(path), machine, read.function or "main", launch)
    plain = dataflow.run(lowered, arrays)
    read.check(plain.outputs)
    shuffled = dataflow.run(lowered, arrays, unit_order_seed=7)
    assert all(plain.outputs[name].tobytes() == shuffled.outputs[name].tobytes() for name in read.expected)


@every_case
def test_modelled_time_is_not_below_the_bound(path: Path) -> None:
    timing = ktir.run(path, case(path).function, case(path).inputs, machine="spyre", timing=True).timing
    assert timing is not None
    assert timing.total_ns >= timing.bound_ns > 0
    assert all(launch.time_ns >= launch.bound_ns for launch in timing.launches)


def test_a_wrong_kernel_is_found_wrong() -> None:
    path = next(path for path in FILES if path.stem == "row_softmax")
    text = path.read_text().replace("arith.divf %a32, %s", "arith.mulf %a32, %s")
    result = ktir.run(text, case(path).function, case(path).inputs)
    with pytest.raises(ktir.KtirError, match="UnexpectedResult"):
        case(path).check(result.outputs)
