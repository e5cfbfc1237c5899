"""The report as one HTML page that loads nothing: the tables are in the page, a short script draws the timeline.

The timeline shows one row for each unit of each core. Very many stretches are thinned before they go into the page:
those shorter than a pixel of a wide screen are joined with their neighbour of the same state, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from ktir.backends.dataflow.reports.report import Interval, Report, format_bytes, format_time

MOST_INTERVALS = 60_000
SCREEN_PIXELS = 4_000
STATES = ("busy", "starved", "blocked", "stalled", "idle")


def as_html(report: Report) -> str:
    """The page. Everything that came from a program's text is escaped."""
    intervals, thinned = thin(report.intervals, report.total_ns)
    notes = [*report.notes, *(["the timeline joins stretches shorter than one pixel"] if thinned else [])]
    page = Template(files("ktir.backends.dataflow.reports").joinpath("page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(report.title),
        machine=escape(report.machine),
        cards=_cards(report),
        kernels=_kernels(report),
        units=_units(report),
        facts=_facts(report),
        notes="".join(f"<li>{escape(note)}</li>" for note in notes),
        data=_script_data(report, intervals),
    )


def thin(intervals: Sequence[Interval], total_ns: float) -> tuple[Sequence[Interval], bool]:
    """At most about :data:`MOST_INTERVALS` stretches, and whether any were joined."""
    if len(intervals) <= MOST_INTERVALS:
        return intervals, False
    least = total_ns / SCREEN_PIXELS
    kept: list[Interval] = []
    last: dict[tuple[int, int, str], int] = {}
    for interval in sorted(intervals, key=lambda i: (i.core, i.corelet, i.unit, i.start_ns)):
        track = (interval.core, interval.corelet, interval.unit)
        before = kept[last[track]] if track in last else None
        if before and (interval.stop_ns - before.start_ns < least or _continues(before, interval, least)):
            kept[last[track]] = _joined(before, interval)
        else:
            last[track] = len(kept)
            kept.append(interval)
    return kept, True


def _continues(before: Interval, after: Interval, least: float) -> bool:
    return before.state == after.state and after.start_ns - before.stop_ns < least


def _joined(a: Interval, b: Interval) -> Interval:
    longer = a if a.stop_ns - a.start_ns >= b.stop_ns - b.start_ns else b
    return Interval(a.core, a.corelet, a.unit, a.start_ns, b.stop_ns, longer.state, longer.label)


def _cards(report: Report) -> str:
    ratio = report.total_ns / report.bound_ns if report.bound_ns else 0.0
    share = report.scratchpad_used / report.scratchpad_bytes if report.scratchpad_bytes else 0.0
    cards = [
        ("modelled time", format_time(report.total_ns), f"{ratio:.2f} times the bound" if ratio else ""),
        ("bound", format_time(report.bound_ns), f"set by {report.bound_by}"),
        ("device memory", format_bytes(report.ddr_read + report.ddr_written), f"{format_bytes(report.ddr_read)} read"),
        ("ring", format_bytes(report.ring), "between cores"),
        ("scratchpad", format_bytes(report.scratchpad_used), f"{share:.0%} of {format_bytes(report.scratchpad_bytes)}"),
        ("launches", str(len(report.kernels)), f"on {report.cores} cores"),
        *((name, f"{count:,}", "") for name, count in report.counts),
    ]
    return "".join(
        f'<div class="card"><div class="name">{escape(name)}</div><div class="value">{escape(value)}</div>'
        f'<div class="aside">{escape(aside)}</div></div>'
        for name, value, aside in cards
    )


def _kernels(report: Report) -> str:
    most = max((kernel.time_ns for kernel in report.kernels), default=0.0) or 1.0
    return "".join(
        _row(
            [
                (str(k.launch), k.launch),
                (escape(k.name), k.name),
                (str(k.cores), k.cores),
                (_bar(k.time_ns / most) + format_time(k.time_ns), k.time_ns),
                (format_time(k.bound_ns), k.bound_ns),
                (escape(k.bound_by), k.bound_by),
                (f"{k.time_ns / k.bound_ns:.2f}" if k.bound_ns else "-", k.time_ns / k.bound_ns if k.bound_ns else 0.0),
                (format_bytes(k.ddr_read), k.ddr_read),
                (format_bytes(k.ddr_written), k.ddr_written),
                (format_bytes(k.ring), k.ring),
                (f'<span class="plan">{escape(k.plan)}</span>', k.plan),
            ]
        )
        for k in report.kernels
    )


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{80 * share:.1f}px"></span>'


def _row(cells: Iterable[tuple[str, str | float]]) -> str:
    """A table row; each cell is its content and what a click on the heading sorts by."""
    return "<tr>" + "".join(f'<td data-key="{escape(str(key))}">{content}</td>' for content, key in cells) + "</tr>"


def _units(report: Report) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="stack">'
        + "".join(f'<i class="{s}" style="width:{100 * share[s]:.2f}%" title="{s} {share[s]:.1%}"></i>' for s in STATES)
        + "</td>"
        + "".join(f"<td>{share[s]:.1%}</td>" for s in STATES)
        + "</tr>"
        for name, share in report.shares.items()
    )


def _facts(report: Report) -> str:
    return "".join(
        f"<tr><td>{escape(f.name)}</td><td>{escape(f.value)}</td><td>{escape(f.confidence)}</td><td>{escape(f.source)}</td></tr>"
        for f in report.facts
    )


def _script_data(report: Report, intervals: Sequence[Interval]) -> str:
    """JSON that cannot end the script element it stands in."""
    tracks = sorted(
        {(u.core, u.corelet, u.name) for u in report.units} | {(i.core, i.corelet, i.unit) for i in intervals}
    )
    number = {track: index for index, track in enumerate(tracks)}
    labels = {label: index for index, label in enumerate(dict.fromkeys(i.label for i in intervals))}
    data = {
        "total": report.total_ns,
        "tracks": tracks,
        "labels": list(labels),
        "states": STATES,
        "intervals": [
            [
                number[i.core, i.corelet, i.unit],
                round(i.start_ns, 1),
                round(i.stop_ns, 1),
                STATES.index(i.state) if i.state in STATES else 0,
                labels[i.label],
            ]
            for i in intervals
        ],
        "launches": [[k.name, k.start_ns, k.start_ns + k.time_ns] for k in report.kernels],
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
