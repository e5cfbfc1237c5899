"""The executor against the naive evaluator, on generated programs and with and without checks."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, reject, settings

from tests.naive.differential import differences
from tests.naive.evaluator import Inexact
from tests.naive.programs import Program, programs
from tests.settings import examples

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking a program of this size takes minutes; the one found is small enough to read."""

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=examples(1500), deadline=None, phases=NO_SHRINKING, suppress_health_check=SLOW_TO_DRAW)
@given(programs())
def test_the_executor_agrees_with_the_naive_evaluator(program: Program) -> None:
    agree(program, checks=True)


@settings(max_examples=examples(500), deadline=None, phases=NO_SHRINKING, suppress_health_check=SLOW_TO_DRAW)
@given(programs())
def test_checks_change_no_bit(program: Program) -> None:
    agree(program, checks=False)


def agree(program: Program, *, checks: bool) -> None:
    try:
        found = differences(program, checks=checks)
    except Inexact:
        reject()
    assert not found, "\n".join([*found[:5], program.text])
