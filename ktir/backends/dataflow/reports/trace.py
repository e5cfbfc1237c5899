"""The report as trace events: one process a core, one thread a unit, one slice a stretch of work or waiting.

Format: the JSON array form of trace events, times in microseconds. Perfetto and browsers' tracing pages read it.
"""

from __future__ import annotations

import json
from typing import Any

from ktir.backends.dataflow.reports.report import Report

LAUNCHES = -1
"""The process that shows the launches; cores are processes 0 and up."""


def as_trace(report: Report) -> str:
    """The events of ``report`` as JSON text."""
    tracks = {track: number for number, track in enumerate(sorted({(u.name, u.corelet) for u in report.units}))}
    events = [*_launches(report), *_names(report, tracks), *_slices(report, tracks)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"machine": report.machine}})


def _launches(report: Report) -> list[dict[str, Any]]:
    return [
        {"ph": "M", "pid": LAUNCHES, "tid": 0, "name": "process_name", "args": {"name": "launches"}},
        *(
            {
                "ph": "X",
                "pid": LAUNCHES,
                "tid": 0,
                "name": kernel.name,
                "cat": "launch",
                "ts": kernel.start_ns / 1e3,
                "dur": kernel.time_ns / 1e3,
                "args": {"bound_ns": kernel.bound_ns, "bound_by": kernel.bound_by, "cores": kernel.cores},
            }
            for kernel in report.kernels
        ),
    ]


def _names(report: Report, tracks: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    """The names of the processes and threads."""
    cores = sorted({unit.core for unit in report.units})
    processes = [
        {"ph": "M", "pid": core, "tid": 0, "name": "process_name", "args": {"name": f"core {core}"}} for core in cores
    ]
    threads = [
        {
            "ph": "M",
            "pid": unit.core,
            "tid": tracks[unit.name, unit.corelet],
            "name": "thread_name",
            "args": {"name": f"{unit.name} {unit.corelet}"},
        }
        for unit in report.units
    ]
    return [*processes, *threads]


def _slices(report: Report, tracks: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    return [
        {
            "ph": "X",
            "pid": interval.core,
            "tid": tracks.get((interval.unit, interval.corelet), len(tracks)),
            "name": interval.label or interval.state,
            "cat": interval.state,
            "ts": interval.start_ns / 1e3,
            "dur": (interval.stop_ns - interval.start_ns) / 1e3,
        }
        for interval in report.intervals
    ]
