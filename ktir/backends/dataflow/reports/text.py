"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table

from ktir.backends.dataflow.reports.report import (
    STATES,
    Report,
    format_bytes,
    format_multiple,
    format_rate,
    format_time,
)
from ktir.backends.dataflow.reports.roofline import Point
from ktir.backends.dataflow.timing import LaunchTime, UnitTotal
from ktir.location import Location

WIDTH = 120
MOST_HOT_SPOTS = 12
MOST_KERNELS = 8
"""Kernels that are shown unit by unit and under the roofs: the slowest ones."""
MOST_TENANTS = 8
MOST_FINDINGS = 6
WHY = "why, and what may help"
ROLE = "what it does"
LEFT = ("kernel", "by", "unit", "operation", "line", "model", "tenant", "text", WHY, ROLE)
"""Headings of columns that hold words."""


WORDS = (
    "busy: the unit works; starved: it waits for input or a barrier, or has ended; blocked: it waits for room in an "
    "output; stalled: it waits for a resource that others hold. Balance: the busy time of the average core by that of "
    "the busiest."
)


def as_text(report: Report) -> str:
    """Plain text of fixed width, so that it can go to a file."""
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, highlight=False).print(renderable(report))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def renderable(report: Report) -> RenderableType:
    """The same for a caller's own console."""
    parts = [_summary, _findings, _kernels, _traffic, _units, _kernel_units, _roofline, _scratchpad, _hot_spots]
    return Group(*(part(report) for part in parts), *(f"note: {note}" for note in (*report.notes, WORDS)))


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        left = heading in LEFT
        table.add_column(heading, justify="left" if left else "right", overflow="fold" if left else "ellipsis")
    return table


def _summary(report: Report) -> Table:
    timing = report.timing
    table = Table(title=f"{report.title} on {timing.machine}", show_header=False, title_justify="left", box=None)
    share = timing.scratchpad_used / timing.scratchpad_bytes if timing.scratchpad_bytes else 0.0
    moved = timing.ddr_read + timing.ddr_written
    rows = {
        "modelled time": format_time(timing.total_ns),
        "bound": f"{format_time(timing.bound_ns)} by {timing.bound_by}",
        "device memory": f"{format_bytes(timing.ddr_read)} read, {format_bytes(timing.ddr_written)} written, "
        f"{format_multiple(moved, timing.ddr_compulsory)} the compulsory {format_bytes(timing.ddr_compulsory)}",
        "networks": f"{format_bytes(timing.ring)}, {format_multiple(timing.ring, timing.ring_compulsory)} the "
        f"compulsory {format_bytes(timing.ring_compulsory)}"
        if timing.ring
        else "0 B",
        "scratchpad, most per core": f"{format_bytes(timing.scratchpad_used)}, {share:.0%} of what a core has",
        **{name: f"{count:,}" for name, count in report.counts.items()},
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _kernels(report: Report) -> Table:
    model = ("model",) if any(report.sources) else ()
    table = _table("Kernels", "launch", "kernel", "cores", "time", "bound", "by", "time/bound", "balance", *model)
    for launch, name, _ in report.launches:
        busiest = max(launch.units, key=_busy_share, default=None)
        table.add_row(
            str(launch.launch),
            name,
            str(launch.cores),
            format_time(launch.time_ns),
            format_time(launch.bound_ns),
            launch.bound_by,
            f"{launch.time_ns / launch.bound_ns:.2f}" if launch.bound_ns else "-",
            f"{busiest.balance:.2f} {busiest.unit}" if busiest is not None else "-",
            *((_place(report.source(launch)),) if model else ()),
        )
    return table


def _busy_share(total: UnitTotal) -> float:
    return total.busy_ns / total.instances


def _traffic(report: Report) -> Table:
    table = _table("Bytes moved", "launch", "kernel", "read", "written", "of compulsory", "networks", "of compulsory")
    for launch, name, _ in report.launches:
        table.add_row(
            str(launch.launch),
            name,
            format_bytes(launch.ddr_read),
            format_bytes(launch.ddr_written),
            format_multiple(launch.ddr_read + launch.ddr_written, launch.ddr_compulsory),
            format_bytes(launch.ring),
            format_multiple(launch.ring, launch.ring_compulsory),
        )
    return table


def _units(report: Report) -> Table:
    table = _table("Units, average over their instances", "unit", *STATES, "balance", ROLE)
    balance = report.timing.balance
    for name, share in report.timing.shares.items():
        table.add_row(name, *(f"{share[state]:.1%}" for state in STATES), f"{balance[name]:.2f}", report.role(name))
    return table


def _findings(report: Report) -> Table:
    found = report.findings
    more = f", the {MOST_FINDINGS} costliest; all are in the page and in JSON" if len(found) > MOST_FINDINGS else ""
    table = _table(f"What takes longer than the bound{more}", "launch", "kernel", "lost", "of launch", WHY)
    times = {launch.launch: launch.time_ns for launch in report.timing.launches}
    for each in found[:MOST_FINDINGS]:
        line = _short(report.line(each.location), 40)
        place = f"\nmost of it: {_place(each.location)}  {line}" if each.location is not None else ""
        table.add_row(
            str(each.launch),
            each.kernel,
            format_time(each.lost_ns),
            f"{each.lost_ns / times[each.launch]:.0%}",
            f"{each.what}\n-> {each.remedy}{place}",
        )
    return table


def _slowest(report: Report) -> Sequence[tuple[LaunchTime, str]]:
    """The slowest launches, in order of the program."""
    ranked = sorted(report.launches, key=lambda row: -row[0].time_ns)[:MOST_KERNELS]
    return [(launch, name) for launch, name, _ in sorted(ranked, key=lambda row: row[0].launch)]


def _title(what: str, report: Report) -> str:
    few = len(report.launches) > MOST_KERNELS
    return f"{what}, the {MOST_KERNELS} slowest; all are in the page and in JSON" if few else what


def _kernel_units(report: Report) -> Table:
    names = list(report.timing.shares)
    table = _table(
        _title("Kernels unit by unit: % busy / starved / blocked / stalled", report), "launch", "kernel", *names
    )
    for launch, kernel in _slowest(report):
        totals = {total.unit: total for total in launch.units}
        table.add_row(str(launch.launch), kernel, *(_percents(totals.get(name), launch) for name in names))
    return table


def _percents(total: UnitTotal | None, launch: LaunchTime) -> str:
    whole = total.instances * launch.time_ns if total is not None else 0.0
    if total is None or not whole:
        return "-"
    times = (total.busy_ns, total.starved_ns, total.blocked_ns, total.stalled_ns)
    return "/".join(f"{100 * time / whole:.0f}" for time in times)


def _roofline(report: Report) -> Table:
    found, slowest = report.roofline, {launch.launch for launch, _ in _slowest(report)}
    table = _table(
        _title(f"Roofs: device memory {format_rate(found.bandwidth, 'B/s')}", report),
        *("kernel", "unit", "op/byte", "rate", "roof", "of roof"),
    )
    for point in (*found.whole, *(point for point in found.points if point.launch in slowest)):
        table.add_row(*_point(point))
    return table


def _point(point: Point) -> Sequence[str]:
    return (
        point.kernel,
        point.unit,
        f"{point.intensity:.3g}" if point.intensity is not None else "-",
        format_rate(point.rate),
        format_rate(point.roof),
        f"{point.share:.1%}",
    )


def _scratchpad(report: Report) -> Table:
    """The tenants of the launch that has the fullest scratchpads."""
    timing = report.timing
    fullest = max(report.launches, key=lambda row: row[0].scratchpad, default=None)
    if fullest is None:
        return _table("Scratchpad", "tenant")
    launch, name, _ = fullest
    here = [tenant for tenant in timing.tenants if tenant.first <= launch.launch <= tenant.last]
    where = f"launch {launch.launch}" + (f", {name}" if name else "")
    table = _table(
        f"Scratchpad where it is fullest ({where}): {format_bytes(launch.scratchpad)} of "
        f"{format_bytes(timing.scratchpad_bytes)} a core",
        *("tenant", "bytes", "slots", "launches", "line", "text"),
    )
    for tenant in sorted(here, key=lambda tenant: -tenant.bytes)[:MOST_TENANTS]:
        table.add_row(
            tenant.name,
            format_bytes(tenant.bytes),
            str(tenant.slots),
            f"{tenant.first}..{tenant.last}" if tenant.last > tenant.first else str(tenant.first),
            _place(tenant.location),
            _short(report.line(tenant.location), 44),
        )
    return table


def _hot_spots(report: Report) -> Table:
    spots = report.timing.hot_spots[:MOST_HOT_SPOTS]
    model = any(spot.source is not None for spot in spots)
    headings = ("launch", "unit", "operation", "line", *(("model",) if model else ()), "text", "busy")
    table = _table("Where units are busy, all cores together", *headings)
    for spot in spots:
        table.add_row(
            str(spot.launch),
            spot.unit,
            spot.operation,
            _place(spot.location),
            *((_place(spot.source),) if model else ()),
            _short(report.line(spot.location), 26),
            format_time(spot.busy_ns),
        )
    return table


def _place(location: Location | None) -> str:
    """File without folder, line, column; paths in full are in the page and in JSON."""
    return f"{Path(location.file).name}:{location.line}:{location.column}" if location is not None else ""


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 2]}.."
