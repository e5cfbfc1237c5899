"""``ktir run`` with the options that look inside: what is printed, the JSON, the exit statuses, the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ktir.array_files import read_array, write_arrays
from ktir.tools import ktir_main
from ktir.tools.console import FAULT, OK, USAGE
from tests.interp.kernels import kernel, load, store, tile, view
from tests.interp.tracing.programs import COLUMNS, PER_CORE, ROWS, SQUARE_PLUS, line_with

RANDOM = ["--random", "x", "--random", "y"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.ktir"
    path.write_text(SQUARE_PLUS)
    return path


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    path = tmp_path / "q.ktir"
    path.write_text(SQUARE_PLUS.replace("mulf", "maximumf"))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, status: int = OK) -> str:
    """What the command prints on standard output."""
    got = ktir_main.main(["run", *map(str, words)])
    captured = capsys.readouterr()
    assert got == status, captured.err
    return captured.out


def run_json(capsys: pytest.CaptureFixture[str], *words: object, status: int = OK) -> Any:
    return json.loads(run(capsys, *words, "--json", status=status))


def test_a_table_of_values(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, program, *RANDOM, "--trace-values")
    line = next(line for line in text.splitlines() if " %s " in line)
    assert f"{program}:{line_with(SQUARE_PLUS, '%s =')}:" in line and "arith.mulf" in line and "1x16 f32" in line
    rows = run_json(capsys, program, *RANDOM, "--trace-detail", "core")["trace"]
    (row,) = [row for row in rows if row["name"] == "%s"]
    assert row["executions"] == PER_CORE and row["elements"] == ROWS * COLUMNS and row["min"] >= 0
    assert [each["core"] for each in row["per_core"]] == [0, 1, 2]


def test_a_comparison_with_another_file_and_with_a_saved_trace(
    program: Path, changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = program.parent / "t.npz"
    run(capsys, program, *RANDOM, "--trace-save", saved)
    for against in (program, saved):
        text = run(capsys, changed, *RANDOM, "--trace-against", against)
        assert f"first difference: {changed}:{line_with(SQUARE_PLUS, '%s =')}:" in text
        assert "no difference" in run(capsys, program, *RANDOM, "--trace-against", against)


def test_a_comparison_with_arrays(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = program.parent
    out, wanted = folder / "y.npz", folder / "wanted.npz"
    run(capsys, program, *RANDOM, "--out", f"y={out}")
    y = read_array(out, "y")
    y[5, 2] += 1
    write_arrays(wanted, {"y": y})
    found = run_json(capsys, program, *RANDOM, "--trace-against", wanted)
    (row,) = [row for row in found["trace"] if row["mismatches"]]
    assert row["operation"] == "ktdp.store"
    assert (row["first_mismatch"]["argument"], row["first_mismatch"]["coordinates"]) == ("y", [5, 2])
    relaxed = run(capsys, program, *RANDOM, "--trace-against", wanted, "--atol", "2")
    assert "no difference" in relaxed


def test_a_watch_prints_as_it_goes(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, program, *RANDOM, "--watch", "%row@1", "--watch", "i").splitlines()
    assert sum("%row core 1" in line for line in lines) == sum("%i cores 0..2" in line for line in lines) == PER_CORE
    found = run_json(capsys, program, *RANDOM, "--watch", "%row@1")["watch"]
    assert [each["value"] for each in found] == ["4", "5", "6", "7"]


def test_an_explanation_of_a_core(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, program, *RANDOM, "--explain", "core=2", "--limit", "1")
    assert "core 2 loads and stores:" in text and "and 3 more" in text and f"|{'R' * COLUMNS}|" in text
    found = run_json(capsys, program, *RANDOM, "--explain", "2")["explain"]
    assert found["core"] == 2 and len(found["accesses"][0]["executions"]) == PER_CORE


@pytest.mark.parametrize("option_first", [True, False])
def test_bisecting_names_the_operation_and_sets_the_status(
    option_first: bool, program: Path, changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--bisect", program, changed] if option_first else [program, "--bisect", changed]
    text = run(capsys, *words, status=FAULT)
    line = line_with(SQUARE_PLUS, "%s =")
    assert f"first:  {program}:{line}:" in text and f"second: {changed}:{line}:" in text
    found = run_json(capsys, *words, status=FAULT)
    assert not found["same"] and found["first_difference"]["second"]["location"]["line"] == line
    assert run_json(capsys, program, "--bisect", program)["same"]
    run(capsys, program, "--bisect", program.parent / "none.ktir", status=USAGE)
    run(capsys, program, "--bisect", program, "--machine", "none", status=USAGE)


def test_what_was_seen_is_shown_before_an_error(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(SQUARE_PLUS.replace("constant 4", "constant 5"))
    assert ktir_main.main(["run", str(program), *RANDOM, "--trace-values"]) == FAULT
    captured = capsys.readouterr()
    assert " %s " in captured.out and "[OutOfBounds]" in captured.err
    found = run_json(capsys, program, *RANDOM, "--trace-values", status=FAULT)
    assert found["error"]["code"] == "OutOfBounds" and found["trace"]


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--watch", "%rowe"], FAULT, "did you mean %row"),
        (["--watch", "%row@3"], FAULT, "no core 3"),
        (["--explain", "core=3"], FAULT, "no core 3"),
        (["--explain", "all"], USAGE, "is not core=N"),
        (["--limit", "-1"], USAGE, "--limit"),
        (["--trace-save", "t"], USAGE, "does not end in .npz"),
        (["--rtol", "nan"], USAGE, "not a number from 0 on"),
        (["--trace-against", "none.npz"], FAULT, "cannot read none.npz"),
        (["--trace-details", "core"], USAGE, "did you mean --trace-detail"),
        (["--trace-detail", "cores"], USAGE, "did you mean core"),
        (["--random", "z"], FAULT, "no argument 'z'"),
        (["--random", "n=3xf99"], FAULT, "no element type 'f99'"),
        (["--random", "n=large"], FAULT, "'large'"),
    ],
)
def test_wrong_options_say_what_would_be_right(
    words: list[str], status: int, text: str, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ktir_main.main(["run", str(program), *RANDOM, *words]) == status
    assert text in capsys.readouterr().err


def test_a_file_of_a_trace_is_not_written_over_an_input(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = write_arrays(program.parent / "r.npz", {"y": np.zeros((ROWS, COLUMNS), np.float32)})
    before = reference.read_bytes()
    for words in (
        ["--trace-save", reference, "--trace-against", reference],
        ["--trace-against", reference, "--out", f"y={reference}"],
    ):
        text = run_json(capsys, program, *RANDOM, *words, status=FAULT)["error"]["message"]
        assert "is an input of this run" in text
    assert program.read_text() == SQUARE_PLUS and reference.read_bytes() == before


@pytest.mark.parametrize(("word", "guessed"), [("rnu", "run"), ("chek", "check"), ("docter", "doctor")])
def test_a_wrong_command_is_guessed(word: str, guessed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main([word]) == USAGE
    assert f"did you mean {guessed}?" in capsys.readouterr().err


def test_a_wrong_name_in_a_model_file_is_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "model.py"
    source.write_text("def build():\n    return None\n")
    assert ktir_main.main(["compile", f"{source}:biuld"]) == FAULT
    assert "did you mean build?" in capsys.readouterr().err
    assert ktir_main.main(["report", str(source)]) == FAULT
    assert "ktir run --time" in capsys.readouterr().err


def test_json_may_stand_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(["--json", "doctor"]) == OK
    assert json.loads(capsys.readouterr().out)["ok"]


# --------------------------------------------------------------------------------------------------------------- arrays


def copying(kind: str) -> str:
    return kernel(
        [
            view("%xv", "%x", (4, 8), kind),
            view("%yv", "%y", (4, 8), kind),
            tile("%xt", "%xv", "0, 0", (4, 8), (4, 8), kind),
            tile("%yt", "%yv", "0, 0", (4, 8), (4, 8), kind),
            load("%v", "%xt", (4, 8), kind),
            store("%v", "%yt", (4, 8), kind),
        ],
        "%x: index, %y: index",
    )


DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.parametrize("kind", DTYPES)
def test_every_element_type_goes_through_every_format(
    kind: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also bits whose type only the program knows."""
    program, x, y = tmp_path / "c.ktir", tmp_path / f"x{suffix}", tmp_path / f"y{suffix}"
    program.write_text(copying(kind))
    array = (np.random.default_rng(5).standard_normal((4, 8)) * 3).astype(DTYPES[kind])
    write_arrays(x, {"x": array})
    run(capsys, program, "--arg", f"x={x}", "--out", f"y={y}")
    assert read_array(y, "y", kind).tobytes() == array.tobytes()
    assert {each.name for each in tmp_path.iterdir()} == {program.name, x.name, y.name}


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.zeros((4, 8), np.float64), "ArgumentError"),
        (np.zeros((4, 8), np.complex64), "ArgumentError"),
        (np.zeros((4, 8), "V2"), "ArgumentError"),
        (np.zeros((4, 7), np.float32), "ArgumentError"),
    ],
)
def test_an_array_that_does_not_fit_is_an_error_that_names_it(
    array: np.ndarray, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "c.ktir"
    program.write_text(copying("f32"))
    np.save(tmp_path / "x.npy", array)
    error = run_json(capsys, program, "--arg", f"x={tmp_path / 'x.npy'}", "--arg", "y=f32[4,8]", status=FAULT)["error"]
    assert error["code"] == code and error["remedy"]
    assert "argument x" in error["message"]


def test_an_entry_of_a_file_is_named_after_a_colon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, many = tmp_path / "c.ktir", tmp_path / "many.npz"
    program.write_text(copying("f32"))
    write_arrays(many, {"a": np.ones((4, 8), np.float32), "b": np.full((4, 8), 2, np.float32)})
    out = tmp_path / "y.npz"
    run(capsys, program, "--arg", f"x={many}:b", "--out", f"y={out}")
    assert (read_array(out, "y") == 2).all()
    error = run_json(capsys, program, "--arg", f"x={many}:c", "--out", f"y={out}", status=FAULT)["error"]
    assert "argument x" in error["message"] and "'c'" in error["message"] and "a, b" in error["remedy"]


def test_outputs_of_one_file_are_written_together(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SQUARE_PLUS.replace("%y: index", "%y: index, %z: index").replace(
        "scf.for", view("%zv", "%z", (12, 16)) + "\nscf.for", 1
    )
    text = text.replace(
        "}\n  return",
        tile("%zt", "%zv", "%row, 0", (1, 16), (12, 16)) + "\n" + store("%v", "%zt", (1, 16)) + "\n}\n  return",
    )
    program.write_text(text)
    out = program.parent / "both.npz"
    run(capsys, program, "--random", "x", "--out", f"y={out}", "--out", f"z={out}")
    assert read_array(out, "y").shape == read_array(out, "z").shape == (12, 16)


def test_random_inputs_depend_on_the_seed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs: list[np.ndarray] = []
    for seed in (1, 1, 2):
        out = program.parent / f"y{len(outputs)}.npy"
        run(capsys, program, "--random", "x=12x16xf32", "--seed", seed, "--out", f"y={out}")
        outputs.append(np.load(out))
    assert (outputs[0] == outputs[1]).all() and (outputs[0] != outputs[2]).any()
