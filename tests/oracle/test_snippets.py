"""One construct a snippet: real MLIR accepts what we print of it, prints the same bytes, and both mean the same."""

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from tests.oracle.mlir import generic_text, mlir_prints

SNIPPETS = {
    f"{path.stem}-{number}": text
    for path in sorted((Path(__file__).parent / "snippets").glob("*.mlir"))
    for number, text in enumerate(re.split(r"^// -----.*\n", path.read_text(), flags=re.MULTILINE))
}
MEMOIZED = "linalg.memoized_indexing_maps"
"""What MLIR notes on an operation when it first asks for its maps; it shows in the generic form alone."""


class Reader:
    """Reads texts that belong together, so that unregistered attributes of two of them can be compared."""

    def __init__(self) -> None:
        self.context = create_context(allow_unregistered=True)

    def read(self, text: str) -> ModuleOp:
        module = parse_module(text, context=self.context)
        for op in module.walk():
            op.attributes.pop(MEMOIZED, None)
        return module


def test_there_are_many_snippets() -> None:
    assert len(SNIPPETS) >= 250


@pytest.mark.parametrize("name", SNIPPETS)
def test_real_mlir_agrees(name: str) -> None:
    text, reader = SNIPPETS[name], Reader()
    theirs, theirs_generic = mlir_prints(text), mlir_prints(text, generic=True)
    module = reader.read(text)
    ours = print_module(module)
    assert mlir_prints(generic_text(module), generic=True) == theirs_generic, "our generic form means something else"
    assert mlir_prints(ours) == theirs, "our text means something else"
    assert print_module(module, mlir_names=True).strip() == theirs.strip(), "our text looks different"
    if MEMOIZED not in theirs_generic:
        ours_generic = print_module(module, generic=True, mlir_names=True)
        assert ours_generic.strip() == theirs_generic.strip(), "our generic form looks different"
    assert print_module(reader.read(ours)) == ours, "our text changes when it is read and printed again"
    assert module.is_structurally_equivalent(reader.read(theirs)), "MLIR's text is read as something else"
    assert module.is_structurally_equivalent(reader.read(theirs_generic)), "MLIR's generic form is read differently"


def test_resources_keep_their_data() -> None:
    text = """
func.func @resource() {
  %cst = arith.constant dense_resource<one_of_a_kind> : tensor<2xf32>
  return
}
{-# dialect_resources: { builtin: { one_of_a_kind: "0x040000000000803F00000040" } } #-}
"""
    assert print_module(parse_module(text)) == mlir_prints(text)
