"""The executor against the naive evaluator, on generated programs and with and without checks."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from tests.naive.differential import differences
from tests.naive.evaluator import Inexact
from tests.naive.programs import program
from tests.settings import examples

ONE_BY_ONE = {
    "deadline": None,
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),  # another number gives another program, not a smaller one
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}
SEEDS = st.integers(0, 2**62)


@settings(max_examples=examples(1500), **ONE_BY_ONE)
@given(SEEDS)
def test_the_executor_agrees_with_the_naive_evaluator(seed: int) -> None:
    agree(seed, checks=True)


@settings(max_examples=examples(500), **ONE_BY_ONE)
@given(SEEDS)
def test_checks_change_no_bit(seed: int) -> None:
    agree(seed, checks=False)


def agree(seed: int, *, checks: bool) -> None:
    generated = program(seed)
    try:
        found = differences(generated, checks=checks)
    except Inexact:
        reject()
    assert not found, "\n".join([*found[:5], generated.text])
