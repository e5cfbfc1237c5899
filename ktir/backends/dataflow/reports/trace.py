"""The report as trace events: one process a core, one thread a unit, one slice a stretch of work.

Format: the JSON array form of trace events, times in microseconds. Perfetto and browsers' tracing pages read it.
"""

from __future__ import annotations

import json
from typing import Any

from ktir.backends.dataflow.reports.report import Report

LAUNCHES = 1_000_000
"""The process that shows the launches; cores are processes 0 and up."""

Event = dict[str, Any]


def as_trace(report: Report) -> str:
    """The events of ``report`` as JSON text."""
    timing = report.timing
    tracks = {track: number for number, track in enumerate(sorted({(u.unit, u.corelet) for u in timing.units}))}
    events = [*_launches(report), *_names(report, tracks), *_slices(report, tracks)]
    other = {"machine": timing.machine, **timing.presets}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": other})


def _launches(report: Report) -> list[Event]:
    name: Event = {"ph": "M", "pid": LAUNCHES, "tid": 0, "name": "process_name", "args": {"name": "launches"}}
    return [
        name,
        *(
            {
                "ph": "X",
                "pid": LAUNCHES,
                "tid": 0,
                "name": kernel or f"launch {launch.launch}",
                "cat": "launch",
                "ts": launch.start_ns / 1e3,
                "dur": launch.time_ns / 1e3,
                "args": {"bound_ns": launch.bound_ns, "bound_by": launch.bound_by, "cores": launch.cores},
            }
            for launch, kernel, _ in report.launches
        ),
    ]


def _names(report: Report, tracks: dict[tuple[str, int], int]) -> list[Event]:
    """The names of the processes and threads."""
    cores = sorted({unit.core for unit in report.timing.units})
    processes: list[Event] = [
        {"ph": "M", "pid": core, "tid": 0, "name": "process_name", "args": {"name": f"core {core}"}} for core in cores
    ]
    threads: list[Event] = [
        {
            "ph": "M",
            "pid": unit.core,
            "tid": tracks[unit.unit, unit.corelet],
            "name": "thread_name",
            "args": {"name": f"{unit.unit} {unit.corelet}"},
        }
        for unit in report.timing.units
    ]
    return [*processes, *threads]


def _slices(report: Report, tracks: dict[tuple[str, int], int]) -> list[Event]:
    kernels = {launch.launch: kernel for launch, kernel, _ in report.launches}
    return [
        {
            "ph": "X",
            "pid": interval.core,
            "tid": tracks[interval.unit, interval.corelet],
            "name": kernels.get(interval.launch) or f"launch {interval.launch}",
            "cat": "busy",
            "ts": interval.start_ns / 1e3,
            "dur": (interval.stop_ns - interval.start_ns) / 1e3,
        }
        for interval in report.timing.intervals
    ]
