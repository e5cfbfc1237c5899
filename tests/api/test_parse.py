"""``ktir.parse``: what is tolerated is accepted with warnings, and refused in strict mode."""

import numpy as np
import pytest

import ktir
from ktir.errors import ParseError
from tests.dialect.texts import EVERY_OPERATION, TOLERATED

WITHOUT_SET = """\
#all = #ktdp.memory_space<global>
func.func @k(%x: index) attributes {grid = [1]} {
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {memory_space = #all} : memref<4xf32>
  return
}
"""


@pytest.mark.parametrize("rule", sorted(TOLERATED))
def test_warnings_come_with_the_module(rule: str) -> None:
    module = ktir.parse(TOLERATED[rule])
    assert module.diagnostics and all(f"(rule {rule})" in each.message for each in module.diagnostics)
    with pytest.raises(ParseError, match=rf"rule {rule}\)"):
        ktir.parse(TOLERATED[rule], strict=True)


def test_a_text_in_order_has_none() -> None:
    assert ktir.parse(EVERY_OPERATION, strict=True).diagnostics == ()


def test_warnings_of_reading_come_with_check_and_run() -> None:
    text = WITHOUT_SET
    for found in (ktir.check(text), ktir.run(text, None, {"x": np.zeros(4, np.float32)}).diagnostics):
        assert [(each.code, each.location and each.location.line) for each in found] == [("ToleratedSpelling", 3)]
