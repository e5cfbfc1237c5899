"""The report as one HTML page that loads nothing: tables and figures are in it, a short script draws the timeline.

The timeline shows one row for each unit of each core. Very many stretches are thinned before they go into the page:
those that are shorter than a pixel of a wide screen, or a pixel apart, are joined, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from ktir.backends.dataflow.reports.figures import cores_figure, roofline_figure, scratchpad_figure
from ktir.backends.dataflow.reports.report import STATES, Report, format_bytes, format_multiple, format_time
from ktir.backends.dataflow.timing import Interval, LaunchTime, UnitTotal
from ktir.location import Location

MOST_INTERVALS = 60_000
SCREEN_PIXELS = 4_000
MOST_HOT_SPOTS = 40
MOST_FINDINGS = 40

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
        roofline=roofline_figure(report),
        scratchpad=scratchpad_figure(report),
        cores=cores_figure(report),
        kernels=_kernels(report),
        findings=_findings(report),
        unit_names="".join(f"<th>{escape(name)}</th>" for name in report.timing.shares),
        kernel_units=_kernel_units(report),
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
    moved = timing.ddr_read + timing.ddr_written
    share = timing.scratchpad_used / timing.scratchpad_bytes if timing.scratchpad_bytes else 0.0
    cards = [
        ("modelled time", format_time(timing.total_ns), f"{ratio:.2f} times the bound" if ratio else ""),
        ("bound", format_time(timing.bound_ns), f"set by {timing.bound_by}"),
        ("device memory", format_bytes(moved), _of_compulsory(moved, timing.ddr_compulsory)),
        ("networks", format_bytes(timing.ring), _of_compulsory(timing.ring, timing.ring_compulsory) or "between cores"),
        ("scratchpad", format_bytes(timing.scratchpad_used), f"{share:.0%} of what a core has"),
        ("launches", str(len(timing.launches)), f"on {report.machine.cores} cores"),
        *((name, f"{count:,}", "") for name, count in report.counts.items()),
    ]
    return "".join(
        f'<div class="card"><div class="name">{escape(name)}</div><div class="value">{escape(value)}</div>'
        f'<div class="aside">{escape(aside)}</div></div>'
        for name, value, aside in cards
    )


def _of_compulsory(moved: int, least: int) -> str:
    return f"{format_multiple(moved, least)} the compulsory {format_bytes(least)}" if least else ""


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
                _multiple(launch.ddr_read + launch.ddr_written, launch.ddr_compulsory),
                (format_bytes(launch.ring), launch.ring),
                _multiple(launch.ring, launch.ring_compulsory),
                (format_bytes(launch.scratchpad), launch.scratchpad),
                _place(report.source(launch)),
                (f'<span class="plan">{escape(plan)}</span>', plan),
            ]
        )
        for launch, name, plan in report.launches
    )


def _ratio(time_ns: float, bound_ns: float) -> Cell:
    return (f"{time_ns / bound_ns:.2f}", time_ns / bound_ns) if bound_ns else ("-", 0.0)


def _multiple(moved: int, least: int) -> Cell:
    return format_multiple(moved, least), moved / least if least else 0.0


def _kernel_units(report: Report) -> str:
    """A row for each launch, a stacked bar for each kind of unit."""
    names = list(report.timing.shares)
    rows: list[str] = []
    for launch, kernel, _ in report.launches:
        totals = {total.unit: total for total in launch.units}
        cells: list[Cell] = [(str(launch.launch), launch.launch), (escape(kernel), kernel)]
        cells.append((format_time(launch.time_ns), launch.time_ns))
        rows.append(_row([*cells, *(_unit_cell(totals.get(name), launch) for name in names)]))
    return "".join(rows)


def _unit_cell(total: UnitTotal | None, launch: LaunchTime) -> Cell:
    whole = total.instances * launch.time_ns if total is not None else 0.0
    if total is None or not whole:
        return "-", 0.0
    times = (total.busy_ns, total.starved_ns, total.blocked_ns, total.stalled_ns)
    share = {state: time / whole for state, time in zip(STATES, times, strict=True)}
    title = ", ".join(f"{state} {share[state]:.1%}" for state in STATES)
    bars = "".join(f'<i class="{state}" style="width:{100 * share[state]:.1f}%"></i>' for state in STATES)
    balance = f"; balance over cores {total.balance:.2f}"
    return f'<span class="mini" title="{escape(title + balance)}">{bars}</span>{share["busy"]:.0%}', share["busy"]


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{80 * share:.1f}px"></span>'


def _row(cells: Iterable[Cell]) -> str:
    return "<tr>" + "".join(f'<td data-key="{escape(str(key))}">{content}</td>' for content, key in cells) + "</tr>"


def _units(report: Report) -> str:
    balance = report.timing.balance
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="stack">'
        + "".join(f'<i class="{s}" style="width:{100 * share[s]:.2f}%" title="{s} {share[s]:.1%}"></i>' for s in STATES)
        + "</td>"
        + "".join(f"<td>{share[s]:.1%}</td>" for s in STATES)
        + f"<td>{balance[name]:.2f}</td><td>{escape(report.role(name))}</td></tr>"
        for name, share in report.timing.shares.items()
    )


def _findings(report: Report) -> str:
    """A row for each; one that says so where there is none."""
    times = {launch.launch: launch.time_ns for launch in report.timing.launches}
    most = max((each.lost_ns for each in report.findings), default=0.0) or 1.0
    rows = [
        _row(
            [
                (_bar(each.lost_ns / most) + format_time(each.lost_ns), each.lost_ns),
                (f"{each.lost_ns / times[each.launch]:.0%}", each.lost_ns / times[each.launch]),
                (escape(each.kernel or f"launch {each.launch}"), each.launch),
                (escape(each.what), each.what),
                (escape(each.remedy), each.remedy),
                _place(each.location),
            ]
        )
        for each in report.findings[:MOST_FINDINGS]
    ]
    return "".join(rows) or '<tr><td colspan="6">Each launch takes about as long as its bound.</td></tr>'


def _hot_spots(report: Report) -> str:
    spots = report.timing.hot_spots[:MOST_HOT_SPOTS]
    most = max((spot.busy_ns for spot in spots), default=0.0) or 1.0
    kernels = {launch.launch: name or f"launch {launch.launch}" for launch, name, _ in report.launches}
    return "".join(
        _row(
            [
                (_bar(spot.busy_ns / most) + format_time(spot.busy_ns), spot.busy_ns),
                (escape(spot.unit), spot.unit),
                (escape(spot.operation), spot.operation),
                (escape(kernels.get(spot.launch, "")), spot.launch),
                _place(spot.location),
                (f'<span class="code">{escape(report.line(spot.location))}</span>', report.line(spot.location)),
                _place(spot.source),
            ]
        )
        for spot in spots
    )


def _place(location: Location | None) -> Cell:
    """File without folder and line; the rest under the pointer. Sorted by file, then line."""
    if location is None:
        return "", ""
    name = f"{Path(location.file).name}:{location.line}"
    return f'<span title="{escape(str(location))}">{escape(name)}</span>', f"{location.file}:{location.line:09}"


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
