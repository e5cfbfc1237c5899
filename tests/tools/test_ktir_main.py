"""The command line: exit statuses, errors with the line they are about, JSON, and no tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from ktir.tools import ktir_main
from ktir.tools.console import FAULT, INTERNAL, OK, USAGE

CASES = Path(__file__).parents[2] / "spec" / "cases"
SOFTMAX = CASES / "row_softmax.ktir"
ADD = """\
#box = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>
#id = affine_map<(d0) -> (d0)>
func.func @double(%x: index, %y: index, %n: i32) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %a = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = #box, memory_space = #ktdp.memory_space<global>} : memref<64xf32>
  %b = ktdp.construct_memory_view %y, sizes: [64], strides: [1] {coordinate_set = #box, memory_space = #ktdp.memory_space<global>} : memref<64xf32>
  %s = ktdp.construct_access_tile %a[%c0] {access_tile_order = #id, access_tile_set = #box} : memref<64xf32> -> !ktdp.access_tile<64xindex>
  %d = ktdp.construct_access_tile %b[%c0] {access_tile_order = #id, access_tile_set = #box} : memref<64xf32> -> !ktdp.access_tile<64xindex>
  %v = ktdp.load %s : <64xindex> -> tensor<64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %w = linalg.add ins(%v, %v : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  ktdp.store %w, %d : tensor<64xf32>, <64xindex>
  return
}
"""  # noqa: E501 - one operation a line, as printers write it


@pytest.fixture
def add(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    path = tmp_path / "add.ktir"
    path.write_text(ADD)
    return path


@pytest.mark.parametrize("words", [[], ["fly"], ["run"], ["run", "a.ktir", "--arg", "x"], ["check", "a", "b"]])
def test_wrong_usage_ends_with_2_and_a_synopsis(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(words) == USAGE
    assert "usage: ktir" in capsys.readouterr().err


def test_wrong_usage_is_json_when_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(["run", "--json"]) == USAGE
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "Usage"


@pytest.mark.parametrize("command", ktir_main.COMMANDS)
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        ktir_main.main([command, "--help"])
    assert f"examples:\n  ktir {command}" in capsys.readouterr().out


def test_version_names_the_specification_and_the_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        ktir_main.main(["--version"])
    text = capsys.readouterr().out
    assert text.startswith("ktir ") and "specification:" in text and "ktdp" in text and "dfp" in text


def test_help_imports_neither_torch_nor_xdsl_nor_numpy() -> None:
    code = (
        "import sys; from ktir.tools.ktir_main import build_parser; build_parser().format_help();"
        "print([m for m in ('torch', 'xdsl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_error_shows_its_line_with_a_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.ktir"
    path.write_text("func.func @f() {\n  %a = arith.constant 1 : index\n  %b = arith.nosuch %a : index\n  return\n}\n")
    assert ktir_main.main(["check", str(path)]) == FAULT
    lines = capsys.readouterr().err.splitlines()
    assert f"{path}:3:" in lines[0]
    assert lines[1] == "    3 |   %b = arith.nosuch %a : index"
    assert lines[2].rstrip().endswith("^")


@pytest.mark.parametrize("name", ["none.ktir", "."])
def test_a_file_that_cannot_be_read_is_an_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(["run", name]) == FAULT
    assert "[FileUnusable]" in capsys.readouterr().err


def test_run_writes_outputs(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = add.parent / "y.npy"
    words = ["--arg", f"x={add.parent / 'x.npy'}", "--arg", "y=f32[64]", "--arg", "n=64", "--out", f"y={out}"]
    assert ktir_main.main(["run", str(add), *words]) == OK
    np.testing.assert_array_equal(np.load(out), 2 * np.arange(64))
    assert "y: 64 float32" in capsys.readouterr().out


def test_an_output_that_is_not_given_has_the_size_of_its_view(add: Path) -> None:
    out = add.parent / "y.npy"
    words = ["--arg", f"x={add.parent / 'x.npy'}", "--arg", "n=64", "--out", f"y={out}"]
    assert ktir_main.main(["run", str(add), *words]) == OK
    np.testing.assert_array_equal(np.load(out), 2 * np.arange(64))


def test_run_refuses_to_overwrite_an_input(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = add.parent / "x.npy"
    before = x.read_bytes()
    words = ["--arg", f"x={x}", "--arg", "y=f32[64]", "--arg", "n=64"]
    for out in (["--out", f"y={x}"], ["--out", f"y={add}"]):
        assert ktir_main.main(["run", str(add), *words, *out]) == FAULT
        assert "is an input of this run" in capsys.readouterr().err
    assert x.read_bytes() == before and add.read_text() == ADD


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--arg", "x=none.npy"], "FileUnusable"),
        (["--arg", "x=what"], "ArgumentError"),
        (["--arg", "x=f99[3]"], "ArgumentError"),
        (["--arg", "x=1", "--arg", "x=2"], "ArgumentError"),
        (["--arg", "x=f32[64]", "--out", "z=z.npy"], "ArgumentError"),
        (["--arg", "x=f32[64]", "--out", "n=n.npy"], "ArgumentError"),
        (["--arg", "x=f32[64]", "--func", "none"], "FunctionNotFound"),
        (["--arg", "x=f32[64]", "--arg", "n=1"], "ArgumentError"),
        (["--arg", "x=f32[64]", "--arg", "y=f32[64]", "--arg", "n=1", "--machine", "none"], "UnknownMachine"),
    ],
)
def test_wrong_arguments_are_errors(add: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(["run", str(add), "--json", *words]) == FAULT
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_a_fault_of_the_tool_is_told_apart_and_gives_no_traceback(
    add: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with patch("ktir.api.parse", side_effect=AssertionError("broken")):
        assert ktir_main.main(["check", str(add)]) == INTERNAL
    error = capsys.readouterr().err
    assert "AssertionError: broken" in error and "Traceback" not in error


def test_a_case_is_run_with_its_header_and_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html, trace = tmp_path / "r.html", tmp_path / "trace.json"
    words = ["run", str(SOFTMAX), "--time", "--report", str(html), "--trace", str(trace), "--json"]
    assert ktir_main.main(words) == OK
    data = json.loads(capsys.readouterr().out)
    assert data["case"] and data["outputs"]["y_ptr"]["largest_difference"] < 1e-2
    assert data["report"]["total_ns"] >= data["report"]["bound_ns"] > 0
    assert "<canvas" in html.read_text()
    assert json.loads(trace.read_text())["traceEvents"]


def test_check_finds_nothing_in_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(["check", str(SOFTMAX), "--machine", "spyre"]) == OK


def test_doctor_finds_this_installation_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert ktir_main.main(["doctor", "--json"]) == OK
    names = [finding["name"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert {"ktir", "xdsl", "torch", "machine spyre"} <= set(names)


MODEL = """\
import torch

def build():
    return torch.nn.Softmax(-1), (torch.zeros(4, 64),)

def wrong():
    return 3
"""


def test_a_model_is_compiled_saved_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, package = tmp_path / "model.py", tmp_path / "m.ktirpkg"
    source.write_text(MODEL)
    assert ktir_main.main(["compile", f"{source}:build", "--output", str(package), "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["plan"]
    assert ktir_main.main(["compile", f"{source}:build", "--emit", "ktir"]) == OK
    assert "ktdp.construct_access_tile" in capsys.readouterr().out
    page = tmp_path / "r.html"
    assert ktir_main.main(["report", str(package), "--html", str(page), "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["total_ns"] > 0 and page.exists()


@pytest.mark.parametrize("name", ["none", "wrong"])
def test_what_builds_no_model_is_an_error(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "model.py"
    source.write_text(MODEL)
    assert ktir_main.main(["compile", f"{source}:{name}"]) == FAULT
    assert "[UnsupportedInput]" in capsys.readouterr().err


def test_report_refuses_to_overwrite_its_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "m.html"
    package.write_text("precious")
    assert ktir_main.main(["report", str(package), "--html", str(package)]) == FAULT
    assert package.read_text() == "precious"


@pytest.mark.parametrize(
    "words",
    [
        ["report", "none.ktirpkg", "--html", "r.txt"],
        ["report", "none.ktirpkg", "--trace", "r.html"],
        ["report", "none.ktirpkg", "--tolerance", "0.1"],
        ["report", "diff", "a.json", "b.json", "--html", "r.html"],
        ["run", "none.ktir", "--report", "x.doc"],
        ["run", "none.ktir", "--report", "html"],
        ["run", "none.ktir", "--trace", "x.html"],
        ["run", "none.ktir", "--trace-save", "x.json"],
    ],
)
def test_a_name_that_asks_for_another_form_is_wrong_usage_before_anything_is_read(words: list[str]) -> None:
    assert ktir_main.main(words) == USAGE


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--out", "y_ptr=y.txt"], "ArgumentError"),
        (["--out", "y_ptr=y.npy", "--out", "x_ptr=y.npy"], "ArgumentError"),
        (["--out", "y_ptr=y.npz", "--out", "y_ptr=y.npz"], "ArgumentError"),
        (["--report", "a.json", "--trace", "./a.json"], "FileUnusable"),
        (["--out", "y_ptr=a.npz", "--trace-save", "a.npz"], "FileUnusable"),
        (["--report", "folder.html"], "FileUnusable"),
        (["--report", "file/r.html"], "FileUnusable"),
    ],
)
def test_what_could_not_be_written_is_refused_before_the_run(
    words: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("")
    with patch("ktir.api.run", side_effect=AssertionError("it ran")):
        assert ktir_main.main(["run", str(SOFTMAX.resolve()), "--json", *words]) == FAULT
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_the_option_says_the_form_of_a_file(tmp_path: Path) -> None:
    """A trace is a trace whatever comes before ``.json``."""
    trace, page = tmp_path / "t.json", tmp_path / "r.HTM"
    assert ktir_main.main(["run", str(SOFTMAX), "--report", str(page), "--trace", str(trace)]) == OK
    assert json.loads(trace.read_text())["traceEvents"] and page.read_text().startswith("<!doctype html>")


def test_compile_refuses_to_overwrite_the_model(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(MODEL)
    assert ktir_main.main(["compile", f"{source}:build", "--output", str(source)]) == FAULT
    assert source.read_text() == MODEL
