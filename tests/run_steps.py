"""What ``make test`` runs: each step in turn, all of them whatever fails, and a table of results and times at the end.

Run as ``python -m tests.run_steps`` from the root of the repository; ``python -m tests.run_steps lit pytest`` runs
only the steps named. With ``KTIR_TEST_SCALE=1`` the pages of reports are looked at in Chromium as well. Exits with 1
when a step failed, with 2 when a name is unknown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

STEPS: Mapping[str, Sequence[str]] = {
    "ruff": [str(BIN / "ruff"), "check"],
    "format": [str(BIN / "ruff"), "format", "--check", "--quiet"],
    "pyright": [str(BIN / "pyright"), "--pythonpath", sys.executable],
    "lit": [str(BIN / "lit"), "-q", "-j2", "tests/filecheck"],
    "pytest": [sys.executable, "-m", "pytest", "-n", "2", "--durations=10"],
    "demo": [sys.executable, "examples/minilm_demo.py", "--sentences", "1", "--output", "build/demo"],
    "page": [sys.executable, "scripts/page_check.py", "--pictures", "build/pages"],
}
FULL_ONLY = ("page",)
"""Steps that need what this folder cannot install, a browser: a part of ``make test-full``, which fails without it."""
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


@dataclass(frozen=True)
class Result:
    """How a step ended: its exit status and how many seconds it took."""

    name: str
    status: int
    seconds: float


def run(name: str) -> Result:
    """Runs one step with its output on this terminal."""
    print(
        f"\n=== {name}: {' '.join(Path(word).name if word.startswith('/') else word for word in STEPS[name])}",
        flush=True,
    )
    began = time.perf_counter()
    status = subprocess.run(STEPS[name], cwd=ROOT, env=os.environ | ENVIRONMENT, check=False).returncode
    return Result(name, status, time.perf_counter() - began)


def table(results: Sequence[Result]) -> str:
    """One line a step, and the total."""
    rows = [f"{r.name:<10}{'ok' if r.status == 0 else f'failed ({r.status})':<14}{r.seconds:>8.1f} s" for r in results]
    return "\n".join(["", *rows, f"{'total':<24}{sum(r.seconds for r in results):>8.1f} s"])


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in STEPS]:
        print(f"unknown steps: {', '.join(unknown)}; known: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    whole = os.environ.get("KTIR_TEST_SCALE") == "1"
    results = [run(name) for name in names or STEPS if names or whole or name not in FULL_ONLY]
    print(table(results))
    return int(any(result.status for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
