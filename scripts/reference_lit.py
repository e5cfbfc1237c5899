"""Runs the reference dialect's own IR tests with our ``ktir-opt`` in place of theirs.

    python scripts/reference_lit.py CHECKOUT [lit option...]

CHECKOUT is a working tree of ktir-mlir-frontend, or a git directory of one, whose newest commit is then taken. Every
``ktir-opt`` in a ``RUN`` line becomes ours in strict mode, which calls values as theirs does, every ``FileCheck`` the
Python port of it. Tests of dialects that KTIR does not contain are left out. The exit status is lit's.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
FOREIGN = ("SpyreOp",)
"""Folders of tests for dialects that are no part of KTIR."""

CONFIGURATION = """
import lit.formats

config.name = "reference"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ktir"]
config.excludes = {excludes!r}
config.test_source_root = {source!r}
config.test_exec_root = {output!r}
config.environment["PATH"] = {path!r}
"""


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        checkout = Path(arguments[0])
        if not (checkout / "test").is_dir():
            checkout = taken_from_git(checkout, work / "checkout")
        prepare(checkout / "test", work)
        return subprocess.run([BIN / "lit", *arguments[1:], work / "suite"], check=False).returncode


def taken_from_git(directory: Path, target: Path) -> Path:
    """The tests of the newest commit of a git directory, unpacked."""
    archive = subprocess.run(
        ["git", "-C", directory, "archive", "HEAD", "test"], check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(target, filter="data")
    return target


def prepare(tests: Path, work: Path) -> None:
    """Writes the two tools and the configuration that lit needs."""
    tools, suite = work / "tools", work / "suite"
    tools.mkdir()
    suite.mkdir()
    tool(tools / "ktir-opt", f'exec "{BIN / "ktir-opt"}" --strict --discard-value-names "$@"')
    tool(tools / "FileCheck", f'exec "{BIN / "filecheck"}" "$@"')
    text = CONFIGURATION.format(
        excludes=list(FOREIGN), source=str(tests), output=str(work / "output"), path=f"{tools}:{BIN}:/usr/bin:/bin"
    )
    (suite / "lit.cfg.py").write_text(text, encoding="utf-8")


def tool(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    path.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
