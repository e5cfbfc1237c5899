"""The console sessions of the tutorial give what the tutorial shows. A line ``...`` stands for any lines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ktir.tools import ktir_main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
NUMBER = r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)


def sessions(block: str) -> list[tuple[str, list[str]]]:
    """Commands, and the lines they print."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def matches(shown: list[str], printed: list[str]) -> bool:
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and alike(shown[0], printed[0]) and matches(shown[1:], printed[1:])


def alike(one: str, other: str) -> bool:
    """Whether two lines are the same but for the last digits of numbers, which depend on the processor."""
    left, right = (re.split(NUMBER, " ".join(line.split())) for line in (one, other))
    if left[::2] != right[::2]:
        return False
    return all(float(a) == pytest.approx(float(b), rel=1e-2) for a, b in zip(left[1::2], right[1::2], strict=True))


def test_the_sessions_are_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spec").symlink_to(ROOT / "spec")
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) > 3
    for command, shown in (session for block in BLOCKS for session in sessions(block)):
        if not command.startswith("ktir "):
            subprocess.run(command, shell=True, check=True)
            continue
        ktir_main.main(command.split()[1:])
        captured = capsys.readouterr()
        printed = captured.out + captured.err
        assert matches(shown, printed.splitlines()), f"$ {command}\n{printed}"
