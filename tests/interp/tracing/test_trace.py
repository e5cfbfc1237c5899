"""Traces: what they say of values is what numpy says, they change nothing, and they find what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ktir
from ktir.conformance.case import parse_case
from ktir.errors import ArgumentError, FileUnusable, LimitExceeded, OutOfBounds, ValueNotFound
from ktir.interp.tracing.recording import Recording, load_recording
from ktir.interp.tracing.trace import Trace, Traced
from tests.interp.kernels import kernel, load, rows_kernel, tile, view
from tests.interp.tracing.programs import (
    COLUMNS,
    CORES,
    DOUBLE,
    PER_CORE,
    ROWS,
    SQUARE_PLUS,
    inputs,
    line_with,
    observed,
)

CASES = sorted((Path(__file__).parents[3] / "spec" / "cases").glob("*.ktir"))


def row_of(trace: Trace, name: str) -> Traced:
    (found,) = [row for row in trace.rows if row.name == name]
    return found


def compared(first: str, second: str, **options: Any) -> Trace:
    """A trace of ``second`` against ``first`` on the usual inputs."""
    trace = Trace(first, **options)
    ktir.run(second, arguments=inputs(), trace=trace)
    return trace


def test_numbers_are_those_of_all_cores_and_iterations() -> None:
    given, trace = inputs(), Trace()
    observed(DOUBLE, given, trace)
    row, x = row_of(trace, "%v"), given["x"].astype(np.float64)
    whole = row.summaries.whole()
    assert (row.runs, row.shape, row.dtype, len(row.summaries.cores)) == (PER_CORE, (1, COLUMNS), "f32", CORES)
    assert (whole.elements, whole.low, whole.high) == (ROWS * COLUMNS, x.min(), x.max())
    np.testing.assert_allclose(whole.total / whole.finite, x.mean())


def test_each_core_has_its_own_numbers() -> None:
    given, trace = inputs(), Trace(detail="core")
    observed(DOUBLE, given, trace)
    for core, part in enumerate(np.split(given["x"], CORES)):
        summary = row_of(trace, "%v").summaries.cores[core]
        assert (summary.low, summary.high) == (part.min(), part.max())
    assert [each["core"] for each in trace.data[0]["per_core"]] == list(range(CORES))


def test_each_execution_has_its_iteration_and_its_numbers() -> None:
    given, trace = inputs(), Trace(detail="execution")
    observed(DOUBLE, given, trace)
    executions = row_of(trace, "%r").executions
    assert [each.iteration for each in executions] == [(("%i", number),) for number in range(PER_CORE)]
    for number, each in enumerate(executions):
        assert each.summary.high == 2 * given["x"].reshape(CORES, PER_CORE, COLUMNS)[:, number].max()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_nans_infinities_and_undefined_elements_are_counted_apart(dtype: Any) -> None:
    kind = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}[np.dtype(dtype).name]
    text = rows_kernel([f"%r = arith.addf %x, %x : tensor<1x8x{kind}>"], 2, 8, kind)
    x = np.array([[1, 2, np.nan, np.inf, -np.inf, 3, 4, 5], [1] * 8]).astype(dtype)
    trace = Trace()
    observed(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, trace)
    data = next(row for row in trace.data if row["name"] == "%r")
    assert (data["nan"], data["inf"], data["undefined"]) == (1, 2, 0)
    assert (data["min"], data["max"], data["mean"]) == (2, 10, (30 + 16) / 13)


def test_a_tensor_that_nobody_wrote_is_undefined() -> None:
    trace = Trace()
    text = rows_kernel(
        ["%e = tensor.empty() : tensor<1x8xf32>", "%r = arith.addf %x, %x : tensor<1x8xf32>"], 2, 8, "f32"
    )
    observed(text, {"x_ptr": np.ones((2, 8), np.float32), "y_ptr": np.ones((2, 8), np.float32)}, trace)
    whole = row_of(trace, "%e").summaries.whole()
    assert (whole.undefined, whole.finite, whole.nan) == (16, 0, 0)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("checks", [True, False])
def test_watching_changes_no_bit(path: Path, checks: bool) -> None:
    case = parse_case(path.read_text(), str(path))
    module = ktir.parse(path)
    every = sorted({result.name_hint for op in module.op.walk() for result in op.results if result.name_hint})
    observers = [Trace(detail="execution"), Recording(), ktir.Explain(0), ktir.Watch(every)]
    plain, traced = (
        ktir.run(module, case.function, case.inputs, machine=case.machine, checks=checks, trace=trace)
        for trace in ((), observers)
    )
    assert plain.outputs.keys() == traced.outputs.keys()
    for name, array in plain.outputs.items():
        assert array.tobytes() == traced.outputs[name].tobytes()


def test_a_program_does_not_differ_from_itself() -> None:
    trace = compared(SQUARE_PLUS, SQUARE_PLUS)
    assert trace.first is None and "no difference from the reference" in str(trace)


def test_the_first_difference_from_another_program_has_place_core_iteration_and_values() -> None:
    changed = SQUARE_PLUS.replace("mulf %v, %v", "addf %v, %v")
    trace, x = compared(SQUARE_PLUS, changed), inputs()["x"]
    found = trace.first
    assert found is not None and found.point.site.location is not None
    assert found.point.site.location.line == line_with(changed, "%s =")
    assert (found.core, found.iteration, found.found.coordinates) == (0, (("%i", 0),), (0, 0))
    assert (found.found.got, found.found.wanted) == (x[0, 0] + x[0, 0], x[0, 0] * x[0, 0])
    assert [row.name for row in trace.rows if row.mismatches] == ["%s", "%r"]


def test_a_tolerance_allows_what_it_says() -> None:
    changed = SQUARE_PLUS.replace("%s = arith.mulf", "%q = arith.mulf").replace("addf %s, %v", "addf %v, %q")
    assert compared(SQUARE_PLUS, changed).first is None
    scaled = rows_loop_times(1.001)
    assert compared(rows_loop_times(1.0), scaled).first is not None
    assert compared(rows_loop_times(1.0), scaled, tolerance=ktir.Tolerance(2e-3)).first is None
    assert compared(rows_loop_times(1.0), scaled, tolerance=ktir.Tolerance(5e-4)).first is not None


def rows_loop_times(factor: float) -> str:
    return DOUBLE.replace(
        "%r = arith.addf %v, %v", f"%k = arith.constant dense<{factor}> : tensor<1x16xf32>\n%r = arith.mulf %v, %k"
    )


def test_executions_are_told_apart_where_cores_part() -> None:
    """Core n runs n iterations; values are compared with those of the same core and iteration."""
    text = kernel(
        [
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%core = ktdp.get_compute_tile_id : index",
            "scf.for %i = %c0 to %core step %c1 {",
            "%a = arith.addi %i, %core : index",
            "%odd = arith.remui %i, %c2 : index",
            "}",
        ],
        "%c2: index",
        [4],
    )
    recording, trace = Recording(), Trace(detail="execution")
    observed(text, {"c2": 2}, recording)
    observed(text, {"c2": 2}, trace)
    assert len(row_of(trace, "%a").executions) == 3
    assert row_of(trace, "%a").summaries.whole().elements == 0 + 1 + 2 + 3
    again = Trace(recording)
    ktir.run(text, arguments={"c2": 2}, trace=again)
    assert again.first is None
    other = Trace(recording)
    ktir.run(text, arguments={"c2": 3}, trace=other)
    assert other.first is not None and other.first.core == 3 and other.first.iteration == (("%i", 2),)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "i1", "i8", "i32", "i64"])
def test_a_saved_recording_is_what_was_recorded(kind: str, tmp_path: Path) -> None:
    from ktir.interp.made_arguments import parse_shaped, random_array

    of = (4, 8)
    text = kernel(
        [
            "%core = ktdp.get_compute_tile_id : index",
            view("%xv", "%x", of, kind),
            tile("%t", "%xv", "%core, 0", (1, 8), of, kind),
            load("%v", "%t", (1, 8), kind),
        ],
        "%x: index",
        [4],
    )
    shaped = parse_shaped(f"4x8x{kind}")
    assert shaped is not None
    x, recording = random_array(shaped, 1), Recording()
    observed(text, {"x": x}, recording)
    path = recording.save(tmp_path / "r.npz")
    same, other = Trace(path), Trace(path)
    ktir.run(text, arguments={"x": x}, trace=same)
    ktir.run(text, arguments={"x": np.roll(x, 1)}, trace=other)
    assert same.first is None and other.first is not None
    assert other.first.found.coordinates[0] == 0


def test_a_damaged_recording_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    entries: list[dict[str, Any]] = [
        {"ktir.module": np.array("func.func @k() {")},
        {"ktir.module": np.array("module {}"), "7.0.0.at": np.zeros((1, 4), int)},
        {"other": np.zeros(3)},
    ]
    for each in entries:
        np.savez(path, allow_pickle=False, **each)
        with pytest.raises(FileUnusable, match="is no trace"):
            load_recording(path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileUnusable, match="is no trace"):
        load_recording(path)


def test_what_is_stored_later_does_not_change_what_was_recorded() -> None:
    """Each core doubles its rows where they lie."""
    text = DOUBLE.replace("%yv[", "%xv[")
    recording, x = Recording(), inputs()["x"]
    observed(text, inputs(), recording)
    (values,) = [kept for (op, _), kept in recording.kept.items() if op.name == "ktdp.load"]
    for (_, visit), ((cores, lanes),) in values.items():
        np.testing.assert_array_equal(lanes.values[:, 0], x[cores * PER_CORE + visit])


@pytest.mark.parametrize("kind", [Trace, Recording, lambda: ktir.Explain(1), lambda: ktir.Watch(["%row"])])
def test_an_observer_can_be_used_again(kind: Any) -> None:
    observer, other = kind(), kind()
    for each, times in ((observer, 2), (other, 1)):
        for _ in range(times):
            ktir.run(DOUBLE, arguments=inputs(), trace=each)
    assert described(observer) == described(other)


def described(observer: Any) -> Any:
    if isinstance(observer, Recording):
        return observer.nbytes, sorted((op.name, len(kept)) for (op, _), kept in observer.kept.items())
    return str(observer) if not isinstance(observer, ktir.Watch) else [str(change) for change in observer.changes]


def test_a_recording_has_a_limit() -> None:
    with pytest.raises(LimitExceeded, match="values of the run"):
        observed(DOUBLE, inputs(), Recording(most_bytes=1000))


# ------------------------------------------------------------------------------------------------- arrays as references


def test_an_argument_is_compared_with_what_it_should_hold_in_the_end() -> None:
    given = inputs()
    wanted = 2 * given["x"]
    wanted[7, 3] += 1
    trace = Trace({"y": wanted})
    ktir.run(DOUBLE, arguments=given, trace=trace)
    found = trace.first
    assert found is not None and found.point.op.name == "ktdp.store"
    assert (found.where, found.found.coordinates) == ("y", (7, 3))
    assert (found.core, found.iteration) == (7 // PER_CORE, (("%i", 7 % PER_CORE),))
    assert found.found.wrong == 1


def test_what_is_overwritten_is_not_compared() -> None:
    """Partial sums in memory are no final values."""
    twice = DOUBLE.replace("ktdp.store %r", "ktdp.store %v", 1)
    text = twice.replace("}\n  return", "}\nscf.for %j = %c0 to %c4 step %c1 {\n" + _second_loop() + "}\n  return")
    given = inputs()
    trace = Trace({"y": 2 * given["x"]})
    ktir.run(text, arguments=given, trace=trace)
    assert trace.first is None


def _second_loop() -> str:
    body = DOUBLE[DOUBLE.index("%row =") : DOUBLE.rindex("}\n  return")]
    for name in ("row", "xt", "v", "r", "yt"):
        body = body.replace(f"%{name} ", f"%{name}2 ").replace(f"%{name},", f"%{name}2,")
    return body.replace("%i", "%j").replace("%xt2, %yt ", "%xt2, %yt2 ")


@pytest.mark.parametrize("form", ["shape", "cores", "visits"])
def test_a_value_is_compared_with_an_array_of_its_name(form: str) -> None:
    x = np.tile(np.arange(COLUMNS, dtype=np.float32), (ROWS, 1)) if form == "shape" else inputs()["x"]
    whole = 2 * x.reshape(CORES, PER_CORE, 1, COLUMNS).swapaxes(0, 1)  # visits, cores, shape
    if form == "cores":
        x = np.repeat(x[::PER_CORE], PER_CORE, axis=0)
        whole = 2 * x.reshape(CORES, PER_CORE, 1, COLUMNS).swapaxes(0, 1)
    wanted = {"shape": whole[0, 0], "cores": whole[0], "visits": whole}[form].copy()
    arguments = {"x": x, "y": np.zeros_like(x)}
    good = Trace({"r": wanted})
    ktir.run(DOUBLE, arguments=arguments, trace=good)
    assert good.first is None
    wanted.reshape(-1, COLUMNS)[-1, 5] += 1
    bad = Trace({"%r": wanted})
    ktir.run(DOUBLE, arguments=arguments, trace=bad)
    assert bad.first is not None and bad.first.found.coordinates == (0, 5)
    assert bad.first.core == (0 if form == "shape" else CORES - 1)


@pytest.mark.parametrize(
    ("name", "shape", "error", "text"),
    [
        ("rr", (1, COLUMNS), ValueNotFound, "did you mean"),
        ("r", (2, COLUMNS), ArgumentError, "has shape"),
        ("r", (CORES - 1, 1, COLUMNS), ArgumentError, "has shape"),
        ("y", (3, 3), ArgumentError, "has 9 elements"),
    ],
)
def test_a_reference_that_does_not_fit_is_an_error(name: str, shape: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ktir.run(DOUBLE, arguments=inputs(), trace=Trace({name: np.zeros(shape, np.float32)}))


def test_a_trace_is_there_after_an_error() -> None:
    trace = Trace()
    with pytest.raises(OutOfBounds):
        observed(DOUBLE.replace("constant 4", "constant 5"), inputs(), trace)
    assert row_of(trace, "%v").runs == ROWS - (CORES - 1) * 5  # what the last core has until it leaves the view


def test_values_without_names_have_the_numbers_of_the_text() -> None:
    text = DOUBLE.replace("%v", "%7").replace("%r ", "%12 ").replace("%r,", "%12,")
    trace = Trace()
    observed(text, inputs(), trace)
    assert {"%7", "%12", "%12 -> %yv"} <= {row.name for row in trace.rows}


def test_a_trace_against_a_program_follows_the_arguments_of_each_run() -> None:
    trace = Trace(SQUARE_PLUS)
    for seed in (1, 2):
        x = np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(np.float32)
        ktir.run(SQUARE_PLUS, arguments={"x": x, "y": np.zeros_like(x)}, trace=trace)
        assert trace.first is None


def test_wrong_elements_are_charged_to_the_store_that_left_them() -> None:
    given = inputs()
    wanted = 2 * given["x"]
    for row in (1, 6, 6, 11):
        wanted[row, :3] += 1
    trace = Trace({"y": wanted})
    ktir.run(DOUBLE, arguments=given, trace=trace)
    (row,) = [row for row in trace.rows if row.mismatches]
    assert row.mismatches == 3  # rows 1, 6 and 11 are of different iterations
    assert row.mismatch is not None and row.mismatch.found.wrong == 3
    assert row.mismatch.iteration == (("%i", 1),) and row.mismatch.core == 0
