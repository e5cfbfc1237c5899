"""Numbers of a timed run that reports rest on, against values worked out from the programs by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir import api
from ktir.backends.dataflow.timed_results import occupied
from ktir.backends.dataflow.timing import LaunchTime, Tenant, Timing, balance_of
from ktir.conformance.case import parse_case
from ktir.location import Location
from ktir.machine import load
from ktir.program import time_function
from tests.backends.dataflow.test_timed import assert_conserved
from tests.settings import examples

CASES = Path("spec/cases")


def timed(name: str) -> Timing:
    """The modelled run of a case."""
    path = CASES / f"{name}.ktir"
    module = api.parse(path)
    case = parse_case(path.read_text(), str(path))
    return time_function(module, module.entry(case.function), case.inputs, load("spyre")).timing


@pytest.mark.parametrize("name", [path.stem for path in sorted(CASES.glob("*.ktir"))])
def test_the_times_of_a_case_add_up_and_every_hot_spot_has_a_line_of_it(name: str) -> None:
    timing = timed(name)
    assert_conserved(timing)
    lines = (CASES / f"{name}.ktir").read_text().splitlines()
    assert timing.hot_spots and timing.tenants
    for spot in timing.hot_spots:
        assert spot.location is not None and spot.location.file == str(CASES / f"{name}.ktir")
        assert lines[spot.location.line - 1][spot.location.column - 1 :].startswith(
            ("ktdp.", "linalg.", "scf.", "tensor.")
        )
        assert spot.source is None
    for tenant in timing.tenants:
        assert tenant.location is not None and tenant.bytes > 0
        assert tenant.offset + tenant.bytes <= timing.scratchpad_bytes
    assert max(launch.scratchpad for launch in timing.launches) <= timing.scratchpad_used


def multiplies(launch: LaunchTime) -> int:
    return sum(work.operations for work in launch.work if work.kind == "multiply")


def test_a_product_does_two_operations_for_each_multiply_add() -> None:
    """256 x 512 by 512 x 512, as the header of the case says."""
    timing = timed("matmul_k_loop")
    assert sum(multiplies(launch) for launch in timing.launches) == 2 * 256 * 512 * 512
    (work,) = [work for launch in timing.launches for work in launch.work if work.kind == "multiply"]
    assert work.peak == load("spyre").peak_flops("f16")


def test_what_a_relayout_sends_once_is_compulsory() -> None:
    timing = timed("relayout_scratchpads")
    assert 0 < timing.ring_compulsory <= timing.ring


@settings(max_examples=examples(400))
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 4), st.integers(0, 4)), max_size=8))
def test_occupied_bytes_are_those_of_a_map(rows: list[tuple[int, int, int, int]]) -> None:
    tenants = [Tenant("t", at, size, 1, min(a, b), max(a, b), Location("k", 1, 1)) for at, size, a, b in rows]
    for launch in range(5):
        held = np.zeros(128, bool)
        for tenant in tenants:
            if tenant.first <= launch <= tenant.last:
                held[tenant.offset : tenant.offset + tenant.bytes] = True
        assert occupied(tenants, launch) == held.sum()


@pytest.mark.parametrize(("busy", "balance"), [([], 1), ([0, 0], 1), ([4, 4], 1), ([4, 0], 0.5), ([8, 4, 0], 0.5)])
def test_balance_is_average_by_largest(busy: list[float], balance: float) -> None:
    assert balance_of(busy) == balance
