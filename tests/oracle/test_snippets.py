"""One construct a snippet: real MLIR accepts what we print of it, and both say the same."""

import re
from pathlib import Path

import pytest

from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from tests.oracle.mlir import assert_real_mlir_accepts, mlir_prints

SNIPPETS = [
    pytest.param(text, id=f"{path.stem}-{number}")
    for path in sorted((Path(__file__).parent / "snippets").glob("*.mlir"))
    for number, text in enumerate(re.split(r"^// -----.*\n", path.read_text(), flags=re.MULTILINE))
]


@pytest.mark.parametrize("text", SNIPPETS)
def test_mlir_accepts_both_forms_as_the_same(text: str) -> None:
    assert_real_mlir_accepts(text)


@pytest.mark.parametrize("text", SNIPPETS)
def test_our_text_means_what_the_snippet_means(text: str) -> None:
    assert mlir_prints(print_module(parse_module(text)), generic=True) == mlir_prints(text, generic=True)


@pytest.mark.parametrize("text", SNIPPETS)
def test_what_mlir_prints_is_read_as_the_same(text: str) -> None:
    module = parse_module(text)
    for generic in (False, True):
        assert module.is_structurally_equivalent(parse_module(mlir_prints(text, generic=generic)))


@pytest.mark.parametrize("text", SNIPPETS)
def test_our_text_is_what_mlir_prints(text: str) -> None:
    """But for the names of values, which MLIR forgets, and its comments."""
    assert shape_of(print_module(parse_module(text))) == shape_of(mlir_prints(text))


def shape_of(text: str) -> list[str]:
    """The lines of ``text`` without value names and comments."""
    anonymous = re.sub(r"%[\w$.#-]+(:\d+)?(, %[\w$.#-]+(:\d+)?)* = ", "% = ", text)
    anonymous = re.sub(r"%[\w$.#-]+", "%", anonymous)
    return [re.sub(r"\s*// .*", "", line).rstrip() for line in anonymous.rstrip().splitlines()]
