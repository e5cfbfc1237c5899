"""Why a launch takes longer than its bound: each cause is told where it is one, and no time is told twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktir
from ktir.backends.dataflow.reports.findings import LEAST_SHARE, findings
from ktir.backends.dataflow.reports.report import Report
from ktir.backends.dataflow.timing import HotSpot, LaunchTime, Timing, UnitTotal
from ktir.conformance.case import parse_case
from ktir.location import Location
from tests.settings import examples

CASES = Path(__file__).parents[4] / "spec" / "cases"
MACHINE = ktir.machine("spyre")
GB = 150.0
"""Bytes a nanosecond that device memory sustains."""
LOAD = HotSpot(Location("a.ktir", 3, 5), None, "hbm_ld", "copy", 0, 900.0)
MULTIPLY = HotSpot(Location("a.ktir", 4, 5), None, "pe", "pe_mac", 0, 1000.0)


def report(launch: LaunchTime) -> Report:
    timing = Timing(
        machine="spyre",
        presets={},
        total_ns=launch.stop_ns,
        bound_ns=launch.bound_ns,
        bound_by=launch.bound_by,
        launches=(launch,),
        units=(),
        intervals=(),
        hot_spots=(MULTIPLY, LOAD),
        ddr_read=launch.ddr_read,
        ddr_written=0,
        ddr_compulsory=launch.ddr_compulsory,
        ring=0,
        ring_compulsory=0,
        scratchpad_used=0,
        scratchpad_bytes=1 << 20,
        tenants=(),
        events=1,
    )
    return Report("title", timing, MACHINE, ("kernel",))


def units(pe: float = 100.0, balance: float = 1.0) -> tuple[UnitTotal, ...]:
    """Of one core or more: the matrix unit, busy for ``pe`` ns on the core where it is busiest, and one that is not."""
    return (
        UnitTotal("hbm_ld", 2, 100.0, 1900.0, 0.0, 0.0, 1.0),
        UnitTotal("pe", 2, 2 * pe * balance, 2000.0 - 2 * pe * balance, 0.0, 0.0, balance),
    )


AT_BOUND = LaunchTime(
    launch=0,
    cores=32,
    start_ns=0.0,
    stop_ns=1000.0,
    bound_ns=1000.0,
    bound_by="device memory",
    ddr_read=int(1000 * GB),
    ddr_written=0,
    ddr_compulsory=int(1000 * GB),
    ring=0,
    ring_compulsory=0,
    scratchpad=0,
    units=units(),
    ddr_requests=100,
    ddr_ns=1000.0,
)


def test_a_launch_that_takes_its_bound_has_nothing_to_tell() -> None:
    assert not findings(report(AT_BOUND))
    told = report(AT_BOUND)
    assert "Each launch takes about as long as its bound." in told.html and told.data["findings"] == []


@pytest.mark.parametrize(
    ("changes", "words", "spot"),
    [
        ({"bound_ns": 250.0, "ddr_compulsory": int(250 * GB)}, ("4.00 x the compulsory",), LOAD),
        (
            {"bound_ns": 250.0, "ddr_compulsory": int(250 * GB), "ddr_read": int(250 * GB), "ddr_requests": 300},
            ("300 requests of 125 B",),
            LOAD,
        ),
        (
            {"bound_ns": 250.0, "ddr_read": 0, "ddr_ns": 0.0, "units": units(1000.0)},
            ("pe of the busiest core",),
            MULTIPLY,
        ),
        (
            {"bound_ns": 250.0, "ddr_read": 0, "ddr_ns": 0.0, "units": units(1000.0, 0.5)},
            ("pe of the busiest core", "average one 50%"),
            MULTIPLY,
        ),
        (
            {"bound_ns": 250.0, "ddr_read": 0, "ddr_ns": 0.0, "units": units(1000.0), "cores": 8},
            ("8 of 32 cores have work",),
            MULTIPLY,
        ),
        (
            {"bound_ns": 250.0, "ddr_read": 0, "ddr_ns": 0.0, "units": units(200.0)},
            ("wait for each other", "pe, the busiest one, works 20%"),
            None,
        ),
    ],
    ids=["bytes", "requests", "arithmetic", "balance", "cores", "waiting"],
)
def test_the_cause_is_named_with_the_time_and_the_line(
    changes: Mapping[str, Any], words: tuple[str, ...], spot: HotSpot | None
) -> None:
    told = report(replace(AT_BOUND, **changes))
    (finding,) = findings(told)
    assert all(word in finding.what for word in words) and finding.remedy
    assert finding.lost_ns == pytest.approx(750.0)
    assert finding.location == (spot.location if spot is not None else None)
    assert "750 ns" in told.text and words[0].split()[0] in told.html


times = st.floats(0, 2000)


@settings(max_examples=examples(200))
@given(times, times, times, times, st.integers(1, 32))
def test_what_is_lost_and_the_bound_are_never_more_than_the_time(
    bound: float, moved: float, ddr: float, busy: float, cores: int
) -> None:
    launch = replace(
        AT_BOUND,
        bound_ns=min(bound, 1000.0),
        ddr_read=int(moved * GB),
        ddr_ns=ddr,
        units=units(min(busy, 1000.0)),
        cores=cores,
    )
    found = findings(report(launch))
    assert all(each.lost_ns >= LEAST_SHARE * launch.time_ns for each in found)
    lost = sum(each.lost_ns for each in found)
    assert lost <= launch.time_ns - launch.bound_ns + 1e-6
    if launch.time_ns - launch.bound_ns > 4 * LEAST_SHARE * launch.time_ns:
        assert lost >= launch.time_ns - launch.bound_ns - 4 * LEAST_SHARE * launch.time_ns


def test_requests_of_a_run_are_those_of_its_loads_and_stores() -> None:
    """256 rows of 2 KiB as tiles of two contiguous rows: 128 bursts of 4 KiB read, as many written."""
    case = ktir.parse(CASES / "row_softmax.ktir")
    inputs = parse_case(case.source or "", case.file).inputs
    result = ktir.run(case, "softmax_rows", inputs, machine="spyre", timing=True)
    assert result.report is not None
    (launch,) = result.report.timing.launches
    assert launch.ddr_requests == 256
    assert launch.ddr_ns == pytest.approx((1 << 20) / GB, rel=1e-3) and launch.ddr_ns >= launch.bound_ns
