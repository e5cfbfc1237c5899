"""``ktir.parse``: what is tolerated is accepted with warnings, and refused in strict mode."""

import pytest

import ktir
from ktir.errors import ParseError
from tests.dialect.texts import EVERY_OPERATION, TOLERATED


@pytest.mark.parametrize("rule", sorted(TOLERATED))
def test_warnings_come_with_the_module(rule: str) -> None:
    module = ktir.parse(TOLERATED[rule])
    assert module.diagnostics and all(f"(rule {rule})" in each.message for each in module.diagnostics)
    with pytest.raises(ParseError, match=rf"rule {rule}\)"):
        ktir.parse(TOLERATED[rule], strict=True)


def test_a_text_in_order_has_none() -> None:
    assert ktir.parse(EVERY_OPERATION, strict=True).diagnostics == ()
