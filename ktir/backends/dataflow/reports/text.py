"""The report for a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.table import Table

from ktir.backends.dataflow.reports.report import Report, format_bytes, format_time

WIDTH = 120


def as_text(report: Report) -> str:
    """Plain text of fixed width, so that it can go to a file."""
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, highlight=False).print(renderable(report))
    return out.getvalue()


def renderable(report: Report) -> RenderableType:
    """The same for a caller's own console."""
    parts: list[RenderableType] = [_summary(report), _kernels(report), _units(report)]
    return Group(*parts, *(f"note: {note}" for note in report.notes))


def _summary(report: Report) -> Table:
    table = Table(title=f"{report.title} on {report.machine}", show_header=False, title_justify="left", box=None)
    share = report.scratchpad_used / report.scratchpad_bytes if report.scratchpad_bytes else 0.0
    capacity = format_bytes(report.scratchpad_bytes)
    rows = {
        "modelled time": format_time(report.total_ns),
        "bound": f"{format_time(report.bound_ns)} by {report.bound_by}",
        "device memory": f"{format_bytes(report.ddr_read)} read, {format_bytes(report.ddr_written)} written",
        "ring": format_bytes(report.ring),
        "scratchpad, most per core": f"{format_bytes(report.scratchpad_used)} ({share:.0%} of {capacity})",
        **{name: f"{count}" for name, count in report.counts},
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _kernels(report: Report) -> Table:
    table = Table(title="Kernels", title_justify="left")
    for heading in ("launch", "kernel", "cores", "time", "bound", "by", "time/bound", "read", "written", "ring"):
        table.add_column(heading, justify="left" if heading in ("kernel", "by") else "right")
    for kernel in report.kernels:
        table.add_row(
            str(kernel.launch),
            kernel.name,
            str(kernel.cores),
            format_time(kernel.time_ns),
            format_time(kernel.bound_ns),
            kernel.bound_by,
            f"{kernel.time_ns / kernel.bound_ns:.2f}" if kernel.bound_ns else "-",
            format_bytes(kernel.ddr_read),
            format_bytes(kernel.ddr_written),
            format_bytes(kernel.ring),
        )
    return table


def _units(report: Report) -> Table:
    table = Table(title="Units, average over their instances", title_justify="left")
    states = ("busy", "starved", "blocked", "stalled", "idle")
    for heading in ("unit", *states):
        table.add_column(heading, justify="left" if heading == "unit" else "right")
    for name, share in report.shares.items():
        table.add_row(name, *(f"{share[state]:.1%}" for state in states))
    return table
