"""Reports: every form tells the same numbers, and nothing of a program's text can break out of a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

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
TEXTS = {"a.ktir": "func\n    %b<c = ktdp.load\n    %x = ktdp.load\n"}
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
    return Report(
        EVIL, timing, ktir.machine("spyre"), (EVIL, "second"), {"second": "d0 : 2"}, {"operations": 7}, texts=TEXTS
    )


VOID = ("meta", "br", "img", "input", "link", "hr")
REFERENCES = ("src", "href", "xlink:href", "action", "data", "poster", "srcset", "style")


class Page(HTMLParser):
    """The elements of a page, what they refer to, its scripts and its figures; tags have to be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.references: list[str] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.references += [value or "" for name, value in attrs if name in REFERENCES and name != "style"]
        self.references += [value or "" for name, value in attrs if name == "style" and "url" in (value or "")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def figures(page: str) -> list[ElementTree.Element]:
    """The figures of a page, which are XML."""
    return [
        ElementTree.fromstring(part)
        for part in re.findall(r"<figure[^>]*>(<svg.*?</svg>)(?=<p|</figure>)", page, re.DOTALL)
    ]


def test_the_page_needs_nothing_else_and_keeps_text_apart_from_code(report: Report) -> None:
    page = Page(report.html)
    assert page.references == []
    for word in ("http", "@import", "url(", "fetch(", "import(", "XMLHttpRequest", "WebSocket"):
        assert word not in re.sub(r"<!doctype[^>]*>", "", report.html)
    assert page.elements.count("script") == 2 and page.elements.count("canvas") == 1
    data = json.loads(page.scripts[0])
    assert data["launches"][0][0] == EVIL and len(data["intervals"]) == 4


def test_the_page_has_its_figures_with_axes_and_a_title_for_each_mark(report: Report) -> None:
    roofline, scratchpad, cores = figures(report.html)
    texts = [[text.text or "" for text in figure.iter("text")] for figure in (roofline, scratchpad, cores)]
    assert "operations per byte of device memory (op/byte)" in texts[0] and "98 Top/s" in " ".join(texts[0])
    assert "operations per second (op/s)" in texts[0] and "device memory 150 GB/s" in texts[0]
    assert "time" in texts[1] and "address in the scratchpad of a core" in texts[1] and "core" in texts[2]
    whole, mark = roofline.iter("circle")
    assert "whole" in whole.attrib["class"] and "whole" not in mark.attrib["class"]
    for word in (EVIL, "4 op/byte", "68.3 Gop/s", "11.4%", "600 Gop/s"):
        assert word in ElementTree.tostring(mark, "unicode", "text")
    tenants = [ElementTree.tostring(rect, "unicode", "text") for rect in scratchpad.iter("rect")]
    assert len(tenants) == 2 and EVIL in tenants[0] and "4.0 KiB in 2 slots" in tenants[0]
    assert "%b<c = ktdp.load" in tenants[0]
    cells = [
        ElementTree.tostring(rect, "unicode", "text") for rect in cores.iter("rect") if rect.find("title") is not None
    ]
    assert len(cells) == 4 and all("busy 60.0%" in cell for cell in cells)


def test_marks_stand_where_the_axes_say(report: Report) -> None:
    """An intensity of 4 op/byte and 68.3 Gop/s, read off the figure's own ticks."""
    roofline = figures(report.html)[0]
    grid = [line.attrib for line in roofline.iter("line") if line.attrib["class"] == "grid"]
    upright = [float(line["x1"]) for line in grid if line["x1"] == line["x2"]]
    level = [float(line["y1"]) for line in grid if line["y1"] == line["y2"]]
    ticks = [text.text or "" for text in roofline.iter("text") if text.attrib["class"] == "tick"]
    first_x, first_y = float(ticks[0]), 1e9 if "Gop" in ticks[len(upright)] else 1e6
    assert ticks[len(upright)].split()[0] in ("1", "10", "100")
    first_y *= float(ticks[len(upright)].split()[0])
    _, mark = (circle.attrib for circle in roofline.iter("circle"))
    decade_x, decade_y = upright[1] - upright[0], level[1] - level[0]
    intensity = first_x * 10 ** ((float(mark["cx"]) - upright[0]) / decade_x)
    rate = first_y * 10 ** ((float(mark["cy"]) - level[0]) / decade_y)
    assert intensity == pytest.approx(4, rel=0.01) and rate == pytest.approx(4096 / 60e-9, rel=0.01)


def test_the_page_lists_every_value_of_the_machine_with_its_source(report: Report) -> None:
    for path in report.machine.provenance:
        assert f"<td>{path}</td>" in report.html


def test_json_holds_the_numbers(report: Report) -> None:
    data = json.loads(report.json)
    assert data["total_ns"] == 100.0 and data["bound_by"] == "device memory"
    assert [launch["kernel"] for launch in data["launches"]] == [EVIL, "second"]
    assert data["launches"][1]["plan"] == "d0 : 2"
    assert data["balance"] == {"pe": 1.0, "sfu": 1.0}
    assert data["launches"][0]["units"][0]["balance"] == 0.75
    assert data["launches"][0]["scratchpad"] == 4096 and data["tenants"][0]["slots"] == 2
    spot = data["hot_spots"][0]
    assert (spot["location"]["line"], spot["source"]["file"], spot["text"]) == (3, "model.py", "%x = ktdp.load")
    whole, point = data["roofline"]["points"]
    assert (whole["kernel"], point["kernel"], point["operations_per_byte"]) == ("whole program", EVIL, 4)
    assert point["operations_per_second"] == pytest.approx(4096 / 60e-9)
    assert point["roof_operations_per_second"] == 4 * 150e9 == 4 * data["roofline"]["bytes_per_second"]
    assert whole["operations_per_byte"] == pytest.approx(4096 / 3072)
    assert data["shares"]["pe"] == {"busy": 0.6, "starved": 0.2, "blocked": 0.15, "stalled": 0.05}


def test_text_has_both_launches_and_the_busy_line(report: Report) -> None:
    for words in (
        *("second", "60.0%", "a.ktir:3:5", "model.py:7:1", "%x = ktdp.load", "operations", "not", "2.0 KiB"),
        *("50/33/10/7", "1.00 x", "2.00 x", "68.3 Gop/s", "11.4%", "0.75 pe"),
    ):
        assert words in report.text


@pytest.mark.parametrize(
    ("name", "form"),
    [("r.html", "html"), ("R.HTM", "html"), ("r.json", "json"), ("r.txt", "text"), ("a.trace.json", "trace")],
)
def test_save_goes_by_the_ending(report: Report, tmp_path: Path, name: str, form: str) -> None:
    assert report.save(tmp_path / name).read_text() == getattr(report, form)


def test_the_form_can_be_said_whatever_the_name(report: Report, tmp_path: Path) -> None:
    assert report.save(tmp_path / "t.json", "trace").read_text() == report.trace


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
