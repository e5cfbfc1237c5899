"""The look at pages in a browser says when there is no browser, instead of passing."""

import runpy
from pathlib import Path

import pytest

main = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "page_check.py"))["main"]


def test_without_a_browser_it_fails_and_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHROMIUM", "/there/is/none")
    assert main([]) == 2
    assert "apt-get install chromium" in capsys.readouterr().err
