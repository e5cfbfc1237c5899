"""The trace: every event is of the form that the trace event format demands, and its numbers are the report's.

``SCHEMA`` is the part of the format that is used: for each phase the keys that an event must have, with their types,
and those that it may have. https://ui.perfetto.dev reads complete events (X), counters (C) and metadata (M).
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ktir import api
from ktir.backends.dataflow.reports.report import Report
from ktir.conformance.case import parse_case
from ktir.machine import load
from ktir.program import time_function

CASES = Path("spec/cases")
NUMBER = (int, float)
Keys = dict[str, type | tuple[type, ...]]

COMMON: Keys = {"ph": str, "pid": int, "tid": int, "name": str}
SCHEMA: dict[str, tuple[Keys, Keys]] = {
    "X": ({**COMMON, "cat": str, "ts": NUMBER, "dur": NUMBER}, {"args": dict}),
    "C": ({**COMMON, "ts": NUMBER, "args": dict}, {}),
    "M": ({**COMMON, "args": dict}, {}),
}
METADATA: dict[str, Keys] = {
    "process_name": {"name": str},
    "process_sort_index": {"sort_index": int},
    "thread_name": {"name": str},
    "thread_sort_index": {"sort_index": int},
}
TOP: Keys = {"traceEvents": list, "displayTimeUnit": str, "otherData": dict}


def reported(name: str) -> Report:
    path = CASES / f"{name}.ktir"
    module = api.parse(path)
    case = parse_case(path.read_text(), str(path))
    return time_function(module, module.entry(case.function), case.inputs, load("spyre"))


@pytest.fixture(scope="module", params=[path.stem for path in sorted(CASES.glob("*.ktir"))])
def report(request: pytest.FixtureRequest) -> Report:
    return reported(request.param)


@pytest.fixture(scope="module")
def events(report: Report) -> list[dict[str, Any]]:
    return json.loads(report.trace)["traceEvents"]


def assert_keys(found: dict[str, Any], needed: Keys, allowed: Keys) -> None:
    assert set(needed) <= set(found) <= set(needed) | set(allowed), found
    for key, kinds in {**needed, **allowed}.items():
        if key in found:
            assert isinstance(found[key], kinds) and not isinstance(found[key], bool), (key, found)


def test_every_event_has_the_keys_of_its_phase(report: Report, events: list[dict[str, Any]]) -> None:
    whole = json.loads(report.trace)
    assert_keys(whole, TOP, {})
    assert whole["displayTimeUnit"] in ("ms", "ns")
    for event in events:
        assert_keys(event, *SCHEMA[event["ph"]])
        if event["ph"] == "M":
            assert_keys(event["args"], METADATA[event["name"]], {})
        elif event["ph"] == "C":
            assert event["args"] and all(isinstance(value, NUMBER) and value >= 0 for value in event["args"].values())
        else:
            assert event["ts"] >= 0 and event["dur"] >= 0


def test_every_process_and_thread_with_events_has_one_name(events: list[dict[str, Any]]) -> None:
    names: dict[str, list[tuple[int, ...]]] = {
        "process_name": [(event["pid"],) for event in events if event["name"] == "process_name"],
        "thread_name": [(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"],
    }
    assert all(len(found) == len(set(found)) for found in names.values())
    slices = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    assert slices <= set(names["thread_name"])
    assert {(event["pid"],) for event in events} == set(names["process_name"])


def test_slices_of_a_track_follow_each_other_and_counters_go_forward(events: list[dict[str, Any]]) -> None:
    ends: defaultdict[tuple[int, int], float] = defaultdict(float)
    for event in events:
        if event["ph"] == "X":
            track = event["pid"], event["tid"]
            assert event["ts"] >= ends[track] - 1e-6
            ends[track] = event["ts"] + event["dur"]
    times: defaultdict[str, list[float]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            times[event["name"]].append(event["ts"])
    assert times and all(found == sorted(found) for found in times.values())


def test_durations_add_up_to_what_the_report_says(report: Report, events: list[dict[str, Any]]) -> None:
    timing = report.timing
    launches = [event for event in events if event["ph"] == "X" and event["cat"] == "launch"]
    assert [event["name"] for event in launches] == list(report.kernels)
    assert sum(event["dur"] for event in launches) == pytest.approx(timing.total_ns / 1e3)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spent: defaultdict[tuple[int, str], float] = defaultdict(float)
    for event in events:
        if event["ph"] == "X" and event["cat"] == "busy":
            spent[event["pid"], names[event["pid"], event["tid"]]] += event["dur"]
    for unit in timing.units:
        stretches = [i for i in timing.intervals if (i.core, i.unit, i.corelet) == (unit.core, unit.unit, unit.corelet)]
        wanted = sum(i.stop_ns - i.start_ns for i in stretches) / 1e3
        assert spent[unit.core, f"{unit.unit} {unit.corelet}"] == pytest.approx(wanted)
        assert wanted >= (unit.busy_ns + unit.stalled_ns) / 1e3 - 1e-6  # short pauses are in a slice


def test_counters_show_what_scratchpads_hold_and_end_at_nothing(report: Report, events: list[dict[str, Any]]) -> None:
    held = [event for event in events if event["ph"] == "C" and "scratchpad" in event["name"]]
    assert [event["args"]["bytes"] for event in held] == [*(each.scratchpad for each in report.timing.launches), 0]
    moved = [event for event in events if event["ph"] == "C" and "device memory" in event["name"]]
    for event, launch in zip(moved, report.timing.launches, strict=False):
        assert event["args"]["read"] * launch.time_ns == pytest.approx(launch.ddr_read)
        assert event["args"]["written"] * launch.time_ns == pytest.approx(launch.ddr_written)
    assert set(moved[-1]["args"].values()) == {0}
