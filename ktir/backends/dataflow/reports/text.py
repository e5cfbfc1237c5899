"""The report for a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.table import Table

from ktir.backends.dataflow.reports.report import STATES, Report, format_bytes, format_time

WIDTH = 120
MOST_HOT_SPOTS = 8


def as_text(report: Report) -> str:
    """Plain text of fixed width, so that it can go to a file."""
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, highlight=False).print(renderable(report))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def renderable(report: Report) -> RenderableType:
    """The same for a caller's own console."""
    parts: list[RenderableType] = [_summary(report), _kernels(report), _units(report), _hot_spots(report)]
    return Group(*parts, *(f"note: {note}" for note in report.notes))


def _summary(report: Report) -> Table:
    timing = report.timing
    table = Table(title=f"{report.title} on {timing.machine}", show_header=False, title_justify="left", box=None)
    share = timing.scratchpad_used / timing.scratchpad_bytes if timing.scratchpad_bytes else 0.0
    rows = {
        "modelled time": format_time(timing.total_ns),
        "bound": f"{format_time(timing.bound_ns)} by {timing.bound_by}",
        "device memory": f"{format_bytes(timing.ddr_read)} read, {format_bytes(timing.ddr_written)} written",
        "ring": format_bytes(timing.ring),
        "scratchpad, most per core": f"{format_bytes(timing.scratchpad_used)}, {share:.0%} of what a core has",
        **{name: f"{count:,}" for name, count in report.counts.items()},
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _kernels(report: Report) -> Table:
    table = Table(title="Kernels", title_justify="left")
    for heading in ("launch", "kernel", "cores", "time", "bound", "by", "time/bound", "read", "written", "ring"):
        table.add_column(heading, justify="left" if heading in ("kernel", "by") else "right")
    for launch, name, _ in report.launches:
        table.add_row(
            str(launch.launch),
            name,
            str(launch.cores),
            format_time(launch.time_ns),
            format_time(launch.bound_ns),
            launch.bound_by,
            f"{launch.time_ns / launch.bound_ns:.2f}" if launch.bound_ns else "-",
            format_bytes(launch.ddr_read),
            format_bytes(launch.ddr_written),
            format_bytes(launch.ring),
        )
    return table


def _units(report: Report) -> Table:
    table = Table(title="Units, average over their instances", title_justify="left")
    for heading in ("unit", *STATES):
        table.add_column(heading, justify="left" if heading == "unit" else "right")
    for name, share in report.timing.shares.items():
        table.add_row(name, *(f"{share[state]:.1%}" for state in STATES))
    return table


def _hot_spots(report: Report) -> Table:
    table = Table(title="Where units are busy, all cores together", title_justify="left")
    for heading in ("unit", "operation", "line", "busy"):
        table.add_column(heading, justify="right" if heading == "busy" else "left")
    for spot in report.timing.hot_spots[:MOST_HOT_SPOTS]:
        table.add_row(spot.unit, spot.operation, str(spot.location or ""), format_time(spot.busy_ns))
    return table
