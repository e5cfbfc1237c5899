"""The scripts that read other people's texts: what they count, and when they complain."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
TEXTS = Path(__file__).parents[1] / "dialect"

GOOD = "func.func @f() {\n  func.return\n}\n"
BAD = "func.func @f() {\n  func.return %x : index\n}\n"
NEGATIVE = "// expected-error @below {{no}}\n" + BAD
FOREIGN = "func.func @f() {\n  tt.return\n}\n"
TOLERATED = (TEXTS / "tolerated" / "M6.ktir").read_text()


check = runpy.run_path(str(SCRIPTS / "corpus_check.py"))["main"]


def test_pieces_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.ktir").write_text("// -----\n".join([GOOD, NEGATIVE, FOREIGN, TOLERATED]))
    (tmp_path / "whole.mlir").write_text(f"// RUN: ktir-opt %s\n// -----------\n{GOOD}// ------\n")
    (tmp_path / "other.txt").write_text(BAD)
    assert check([str(tmp_path)]) == 0
    report = capsys.readouterr().out
    assert "2 positive, 1 negative, 1 foreign" in report
    assert "3 of 3 positive pieces pass" in report


def test_a_text_that_fails_is_named_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ktir"
    path.write_text(f"{GOOD}// -----\n{BAD}")
    assert check([str(tmp_path)]) == 1
    assert f"{path}:6:15: error: values used but not defined" in capsys.readouterr().out


def test_strict_refuses_what_is_tolerated(tmp_path: Path) -> None:
    (tmp_path / "k.ktir").write_text(TOLERATED)
    assert check([str(tmp_path), "--strict"]) == 1


def test_a_listed_text_is_expected_to_fail(tmp_path: Path) -> None:
    path = tmp_path / "0682-KtirSpec" / "examples" / "paged-tensor-copy.mlir"
    path.parent.mkdir(parents=True)
    path.write_text(BAD)
    assert check([str(tmp_path)]) == 0
    path.write_text(GOOD)
    assert check([str(tmp_path)]) == 1


@pytest.mark.parametrize(("expected", "status"), [("CHECK: func.func @f", 0), ("CHECK: func.func @g", 1)])
def test_tests_of_a_checkout_run_with_our_tool(tmp_path: Path, expected: str, status: int) -> None:
    (tmp_path / "test" / "SpyreOp").mkdir(parents=True)
    (tmp_path / "test" / "f.mlir").write_text(f'// RUN: ktir-opt "%s" | FileCheck "%s"\n// {expected}\n{GOOD}')
    (tmp_path / "test" / "SpyreOp" / "ops.mlir").write_text("// RUN: false\n")
    command = [sys.executable, SCRIPTS / "reference_lit.py", tmp_path, "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
