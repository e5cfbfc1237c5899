"""The scripts that read other people's texts: what they count, and when they complain."""

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


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPTS / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_pieces_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "k.ktir").write_text("// -----\n".join([GOOD, NEGATIVE, FOREIGN, TOLERATED]))
    (tmp_path / "whole.mlir").write_text(f"// RUN: ktir-opt %s\n// -----------\n{GOOD}// ------\n")
    (tmp_path / "other.txt").write_text(BAD)
    done = run("corpus_check.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 positive, 1 negative, 1 foreign" in done.stdout
    assert "3 of 3 positive pieces pass" in done.stdout


def test_a_text_that_fails_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "k.ktir"
    path.write_text(f"{GOOD}// -----\n{BAD}")
    done = run("corpus_check.py", tmp_path)
    assert done.returncode == 1
    assert f"{path}:6:3: error: values used but not defined" in done.stdout


def test_strict_refuses_what_is_tolerated(tmp_path: Path) -> None:
    (tmp_path / "k.ktir").write_text(TOLERATED)
    assert run("corpus_check.py", tmp_path, "--strict").returncode == 1


def test_a_listed_text_is_expected_to_fail(tmp_path: Path) -> None:
    path = tmp_path / "0682-KtirSpec" / "examples" / "paged-tensor-copy.mlir"
    path.parent.mkdir(parents=True)
    path.write_text(BAD)
    assert run("corpus_check.py", tmp_path).returncode == 0
    path.write_text(GOOD)
    assert run("corpus_check.py", tmp_path).returncode == 1


@pytest.mark.parametrize(("expected", "status"), [("CHECK: func.func @f", 0), ("CHECK: func.func @g", 1)])
def test_tests_of_a_checkout_run_with_our_tool(tmp_path: Path, expected: str, status: int) -> None:
    (tmp_path / "test" / "SpyreOp").mkdir(parents=True)
    (tmp_path / "test" / "f.mlir").write_text(f'// RUN: ktir-opt "%s" | FileCheck "%s"\n// {expected}\n{GOOD}')
    (tmp_path / "test" / "SpyreOp" / "ops.mlir").write_text("// RUN: false\n")
    done = run("reference_lit.py", tmp_path, "-q")
    assert done.returncode == status, done.stdout + done.stderr
