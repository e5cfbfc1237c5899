"""The report as one HTML page that loads nothing: the tables are in the page, a short script draws the timeline.

The timeline shows one row for each unit of each core. Very many stretches are thinned before they go into the page:
those that are shorter than a pixel of a wide screen, or a pixel apart, are joined, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from ktir.backends.dataflow.reports.report import STATES, Report, format_bytes, format_time
from ktir.backends.dataflow.timing import Interval

MOST_INTERVALS = 60_000
SCREEN_PIXELS = 4_000
MOST_HOT_SPOTS = 40

Cell = tuple[str, str | float]
"""The content of a table's cell, and what a click on the heading sorts by."""


def as_html(report: Report) -> str:
    """The page. Everything that came from a program's text is escaped."""
    intervals = thin(report.timing.intervals, report.timing.total_ns)
    joined = len(intervals) < len(report.timing.intervals)
    notes = [*report.notes, *(["The timeline joins stretches that are less than a pixel apart."] if joined else [])]
    page = Template(files("ktir.backends.dataflow.reports").joinpath("page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(report.title),
        machine=escape(report.timing.machine),
        cards=_cards(report),
        kernels=_kernels(report),
        units=_units(report),
        hot_spots=_hot_spots(report),
        facts=_facts(report),
        notes="".join(f"<li>{escape(note)}</li>" for note in notes),
        data=_script_data(report, intervals),
    )


def thin(intervals: Sequence[Interval], total_ns: float) -> Sequence[Interval]:
    """The stretches; where they are very many, neighbours of one unit less than a pixel apart are joined."""
    if len(intervals) <= MOST_INTERVALS:
        return intervals
    least = total_ns / SCREEN_PIXELS
    kept: list[Interval] = []
    for interval in sorted(intervals, key=lambda i: (i.core, i.unit, i.corelet, i.start_ns)):
        before = kept[-1] if kept else None
        if before and _track(before) == _track(interval) and interval.start_ns - before.stop_ns < least:
            kept[-1] = Interval(*_track(before), before.launch, before.start_ns, interval.stop_ns)
        else:
            kept.append(interval)
    return kept


def _track(interval: Interval) -> tuple[int, str, int]:
    return interval.core, interval.unit, interval.corelet


def _cards(report: Report) -> str:
    timing = report.timing
    ratio = timing.total_ns / timing.bound_ns if timing.bound_ns else 0.0
    share = timing.scratchpad_used / timing.scratchpad_bytes if timing.scratchpad_bytes else 0.0
    cards = [
        ("modelled time", format_time(timing.total_ns), f"{ratio:.2f} times the bound" if ratio else ""),
        ("bound", format_time(timing.bound_ns), f"set by {timing.bound_by}"),
        ("device memory", format_bytes(timing.ddr_read + timing.ddr_written), f"{format_bytes(timing.ddr_read)} read"),
        ("ring", format_bytes(timing.ring), "between cores"),
        ("scratchpad", format_bytes(timing.scratchpad_used), f"{share:.0%} of what a core has"),
        ("launches", str(len(timing.launches)), f"on {report.machine.cores} cores"),
        *((name, f"{count:,}", "") for name, count in report.counts.items()),
    ]
    return "".join(
        f'<div class="card"><div class="name">{escape(name)}</div><div class="value">{escape(value)}</div>'
        f'<div class="aside">{escape(aside)}</div></div>'
        for name, value, aside in cards
    )


def _kernels(report: Report) -> str:
    most = max((launch.time_ns for launch in report.timing.launches), default=0.0) or 1.0
    return "".join(
        _row(
            [
                (str(launch.launch), launch.launch),
                (escape(name), name),
                (str(launch.cores), launch.cores),
                (_bar(launch.time_ns / most) + format_time(launch.time_ns), launch.time_ns),
                (format_time(launch.bound_ns), launch.bound_ns),
                (escape(launch.bound_by), launch.bound_by),
                _ratio(launch.time_ns, launch.bound_ns),
                (format_bytes(launch.ddr_read), launch.ddr_read),
                (format_bytes(launch.ddr_written), launch.ddr_written),
                (format_bytes(launch.ring), launch.ring),
                (f'<span class="plan">{escape(plan)}</span>', plan),
            ]
        )
        for launch, name, plan in report.launches
    )


def _ratio(time_ns: float, bound_ns: float) -> Cell:
    return (f"{time_ns / bound_ns:.2f}", time_ns / bound_ns) if bound_ns else ("-", 0.0)


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{80 * share:.1f}px"></span>'


def _row(cells: Iterable[Cell]) -> str:
    return "<tr>" + "".join(f'<td data-key="{escape(str(key))}">{content}</td>' for content, key in cells) + "</tr>"


def _units(report: Report) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="stack">'
        + "".join(f'<i class="{s}" style="width:{100 * share[s]:.2f}%" title="{s} {share[s]:.1%}"></i>' for s in STATES)
        + "</td>"
        + "".join(f"<td>{share[s]:.1%}</td>" for s in STATES)
        + "</tr>"
        for name, share in report.timing.shares.items()
    )


def _hot_spots(report: Report) -> str:
    spots = report.timing.hot_spots[:MOST_HOT_SPOTS]
    most = max((spot.busy_ns for spot in spots), default=0.0) or 1.0
    return "".join(
        _row(
            [
                (escape(spot.unit), spot.unit),
                (escape(spot.operation), spot.operation),
                (escape(str(spot.location or "")), str(spot.location or "")),
                (_bar(spot.busy_ns / most) + format_time(spot.busy_ns), spot.busy_ns),
            ]
        )
        for spot in spots
    )


def _facts(report: Report) -> str:
    presets = [f"<tr><td>{escape(k)}</td><td>{escape(v)}</td><td></td></tr>" for k, v in report.timing.presets.items()]
    rows = [
        f"<tr><td>{escape(path)}</td><td>{escape(origin.confidence)}</td>"
        f"<td>{escape(f'{origin.source}; {origin.note}' if origin.note else origin.source)}</td></tr>"
        for path, origin in report.machine.provenance.items()
    ]
    return "".join([*presets, *rows])


def _script_data(report: Report, intervals: Sequence[Interval]) -> str:
    """JSON that cannot end the script element it stands in."""
    tracks = sorted((unit.core, unit.corelet, unit.unit) for unit in report.timing.units)
    number = {track: index for index, track in enumerate(tracks)}
    data = {
        "total": report.timing.total_ns,
        "tracks": tracks,
        "intervals": [
            [number[i.core, i.corelet, i.unit], round(i.start_ns, 1), round(i.stop_ns, 1), i.launch] for i in intervals
        ],
        "launches": [[name, launch.start_ns, launch.stop_ns] for launch, name, _ in report.launches],
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
