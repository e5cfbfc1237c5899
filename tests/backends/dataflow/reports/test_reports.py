"""Reports: every form tells the same numbers, and nothing of a program's text can break out of a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktir
from ktir.backends.dataflow.reports.html import MOST_INTERVALS, SCREEN_PIXELS, thin
from ktir.backends.dataflow.reports.report import Report, format_bytes, format_time
from ktir.backends.dataflow.timing import HotSpot, Interval, LaunchTime, Tenant, Timing, UnitTime, UnitTotal, Work
from ktir.errors import FileUnusable
from ktir.location import Location
from tests.settings import examples

EVIL = "</script><b>k&\"'"
TILE = Tenant(EVIL, 0, 4096, 2, 0, 0, Location("a.ktir", 2, 5))
WORK = Work("pe", "multiply", "f16", 4096, 98e12)


@pytest.fixture(scope="module")
def report() -> Report:
    units = tuple(UnitTime(core, unit, 0, 60.0, 20.0, 15.0, 5.0) for core in range(2) for unit in ("pe", "sfu"))
    halves = UnitTotal("pe", 2, 60.0, 40.0, 12.0, 8.0, 0.75)
    timing = Timing(
        machine="spyre",
        presets={"clock": "1.5GHz"},
        total_ns=100.0,
        bound_ns=50.0,
        bound_by="device memory",
        launches=(
            LaunchTime(0, 2, 0.0, 60.0, 30.0, "device memory", 1024, 0, 1024, 0, 0, 4096, (halves,), (WORK,)),
            LaunchTime(1, 1, 60.0, 100.0, 20.0, "pe", 0, 2048, 2048, 256, 128, 1024),
        ),
        units=units,
        intervals=tuple(Interval(unit.core, unit.unit, 0, 0, 0.0, 60.0) for unit in units),
        hot_spots=(HotSpot(Location("a.ktir", 3, 5), Location("model.py", 7, 1), "pe", "pe_mac", 0, 120.0),),
        ddr_read=1024,
        ddr_written=2048,
        ddr_compulsory=3072,
        ring=256,
        ring_compulsory=128,
        scratchpad_used=4096,
        scratchpad_bytes=1 << 20,
        tenants=(TILE, Tenant("rest", 0, 1024, 1, 1, 1, None)),
        events=10,
    )
    return Report(EVIL, timing, ktir.machine("spyre"), (EVIL, "second"), {"second": "d0 : 2"}, {"operations": 7})


class Page(HTMLParser):
    """Counts the elements of a page and keeps its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1] == "script":
            self.scripts.append(data)


def test_the_page_needs_nothing_else_and_keeps_text_apart_from_code(report: Report) -> None:
    page = Page(report.html)
    assert page.links == [] and "http" not in re.sub(r"<!doctype[^>]*>", "", report.html)
    assert page.elements.count("script") == 2 and page.elements.count("canvas") == 1
    data = json.loads(page.scripts[0])
    assert data["launches"][0][0] == EVIL and len(data["intervals"]) == 4


def test_the_page_lists_every_value_of_the_machine_with_its_source(report: Report) -> None:
    for path in report.machine.provenance:
        assert f"<td>{path}</td>" in report.html


def test_json_holds_the_numbers(report: Report) -> None:
    data = json.loads(report.json)
    assert data["total_ns"] == 100.0 and data["bound_by"] == "device memory"
    assert [launch["kernel"] for launch in data["launches"]] == [EVIL, "second"]
    assert data["launches"][1]["plan"] == "d0 : 2"
    assert data["shares"]["pe"] == {"busy": 0.6, "starved": 0.2, "blocked": 0.15, "stalled": 0.05}


def test_the_trace_has_a_slice_for_each_interval_and_launch(report: Report) -> None:
    events = json.loads(report.trace)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 4 + 2
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in slices if event["cat"] == "busy"} <= named


def test_text_has_both_launches_and_the_busy_line(report: Report) -> None:
    for words in ("second", "60.0%", "a.ktir:3:5", "operations", "not", "2.0 KiB"):
        assert words in report.text


@pytest.mark.parametrize(
    ("name", "form"), [("r.html", "html"), ("r.json", "json"), ("r.txt", "text"), ("a.trace.json", "trace")]
)
def test_save_goes_by_the_ending(report: Report, tmp_path: Path, name: str, form: str) -> None:
    assert report.save(tmp_path / name).read_text() == getattr(report, form)


def test_an_unknown_ending_is_an_error(report: Report, tmp_path: Path) -> None:
    with pytest.raises(FileUnusable, match="no form of report"):
        report.save(tmp_path / "r.pdf")


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e6), st.floats(0, 50)), max_size=60))
@settings(max_examples=examples(200))
def test_few_intervals_are_left_alone(rows: list[tuple[int, float, float]]) -> None:
    intervals = [Interval(core, "pe", 0, 0, start, start + length) for core, start, length in rows]
    assert list(thin(intervals, 1e6)) == intervals


def test_many_intervals_become_at_most_one_a_pixel_and_unit_and_cover_the_same_time() -> None:
    count = MOST_INTERVALS + 1
    intervals = [Interval(0, "pe", 0, 0, float(at), at + 0.5) for at in range(count)]
    kept = thin(intervals, float(count))
    assert len(kept) <= SCREEN_PIXELS
    assert kept[0].start_ns == 0 and kept[-1].stop_ns == intervals[-1].stop_ns


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 ns"), (812, "812 ns"), (1530, "1.53 us"), (2e6, "2 ms"), (5e12, "5000 s")]
)
def test_times(value: float, text: str) -> None:
    assert format_time(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3072.0 GiB")])
def test_sizes(value: int, text: str) -> None:
    assert format_bytes(value) == text
