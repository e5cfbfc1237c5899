"""However a program is run, the numbers are the same: together or apart, checked or not, with arrays lent or copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.kernels import BENCHMARKS
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.errors import KtirError
from ktir.interp import batches, executor, groups
from ktir.interp.executor import Program
from tests.naive.differential import arrays
from tests.naive.programs import program
from tests.settings import examples

Patch = Callable[[pytest.MonkeyPatch], None]
STRATEGIES: Mapping[str, Patch] = {
    "one iteration after the other": lambda patch: patch.setattr(batches, "ITERATIONS_AT_MOST", 1),
    "one core after the other": lambda patch: patch.setattr(groups, "ELEMENTS", 1),
    "arrays copied": lambda patch: patch.setattr(executor, "way_of", lambda pointer: None),  # pyright: ignore[reportUnknownLambdaType]
}


def outcomes(text: str, arguments: Mapping[str, Any], name: str | None = None) -> list[Any]:
    """The bits of all outputs without and with checks, or the class of the fault."""
    found: list[Any] = []
    for checks in (False, True):
        try:
            done = Program(parse_module(text, context=create_context(experimental=True))).run(
                name, arguments, checks=checks
            )
        except KtirError as fault:
            found.append(type(fault))
        else:
            found.append({key: values.tobytes() for key, values in done.outputs.items()})
    return found


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**62))
def test_generated_programs(seed: int) -> None:
    made = program(seed)
    inputs = arrays(made.arguments)
    plain = outcomes(made.text, inputs)
    assert plain[0] == plain[1]
    for apply in STRATEGIES.values():
        with pytest.MonkeyPatch.context() as patch:
            apply(patch)
            assert outcomes(made.text, inputs) == plain


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_at_a_time(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over rows on many cores: all strategies have something to do."""
    case = BENCHMARKS["softmax-1024"]()
    before = {key: values.copy() for key, values in case.inputs.items()}
    plain = outcomes(case.text, case.inputs, "kernel")
    STRATEGIES[strategy](monkeypatch)
    assert outcomes(case.text, case.inputs, "kernel") == plain
    assert plain[0] == plain[1] and set(plain[0]) == {case.output}
    for key, values in before.items():
        np.testing.assert_array_equal(case.inputs[key], values)


def test_what_is_given_back_is_not_what_was_passed() -> None:
    case = BENCHMARKS["long-kernel"]()
    done = Program(parse_module(case.text)).run("kernel", case.inputs)
    assert not any(np.shares_memory(done.outputs[case.output], values) for values in case.inputs.values())
