"""The report as trace events: one process a core, one thread a unit, one slice a stretch of work.

Format: the JSON object form of trace events ("Trace Event Format", Google, 2016), which Perfetto and browsers' tracing
pages read; times in microseconds. Used are complete events (``X``), counters (``C``) and metadata (``M``). The launches
are a process of their own, with their bounds, bytes and counters: what a scratchpad holds, and what device memory and
the ring carry a second, on average over the launch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ktir.backends.dataflow.reports.report import Report
from ktir.backends.dataflow.timing import LaunchTime

LAUNCHES = 1_000_000
"""The process that shows the launches; cores are processes 0 and up."""

Event = dict[str, Any]


def as_trace(report: Report) -> str:
    """The events of ``report`` as JSON text."""
    timing = report.timing
    tracks = {track: number for number, track in enumerate(sorted({(u.unit, u.corelet) for u in timing.units}))}
    events = [*_launches(report), *_counters(report), *_names(report, tracks), *_slices(report, tracks)]
    other = {"machine": timing.machine, **timing.presets, "notes": list(report.notes)}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": other})


def _metadata(kind: str, pid: int, tid: int, **args: Any) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": args}


def _launches(report: Report) -> Iterator[Event]:
    yield _metadata("process_name", LAUNCHES, 0, name=f"{report.title}: launches")
    yield _metadata("process_sort_index", LAUNCHES, 0, sort_index=-1)
    yield _metadata("thread_name", LAUNCHES, 0, name="launches")
    for launch, kernel, plan in report.launches:
        yield {
            "ph": "X",
            "pid": LAUNCHES,
            "tid": 0,
            "name": kernel or f"launch {launch.launch}",
            "cat": "launch",
            "ts": launch.start_ns / 1e3,
            "dur": launch.time_ns / 1e3,
            "args": {
                "bound_ns": launch.bound_ns,
                "bound_by": launch.bound_by,
                "cores": launch.cores,
                "device_memory_bytes": launch.ddr_read + launch.ddr_written,
                "compulsory_bytes": launch.ddr_compulsory,
                "ring_bytes": launch.ring,
                "operations": {f"{work.unit} {work.element}": work.operations for work in launch.work},
                **({"plan": plan} if plan else {}),
            },
        }


def _counters(report: Report) -> Iterator[Event]:
    """A value for each launch, from its start on; all are zero at the end."""
    for launch, _, _ in report.launches:
        yield from _counts(launch.start_ns, launch.scratchpad, _rates(launch))
    if report.launches:
        yield from _counts(report.timing.total_ns, 0, {"read": 0.0, "written": 0.0, "ring": 0.0})


def _rates(launch: LaunchTime) -> Mapping[str, float]:
    """Bytes by nanoseconds, which are GB/s."""
    time = launch.time_ns or 1.0
    return {"read": launch.ddr_read / time, "written": launch.ddr_written / time, "ring": launch.ring / time}


def _counts(at_ns: float, scratchpad: int, rates: Mapping[str, float]) -> Iterator[Event]:
    yield _counter("scratchpad of a core, bytes with a tenant", at_ns, bytes=scratchpad)
    yield _counter("device memory, GB/s", at_ns, read=rates["read"], written=rates["written"])
    yield _counter("networks, GB/s", at_ns, sent=rates["ring"])


def _counter(name: str, at_ns: float, **series: float) -> Event:
    return {"ph": "C", "pid": LAUNCHES, "tid": 0, "name": name, "ts": at_ns / 1e3, "args": series}


def _names(report: Report, tracks: Mapping[tuple[str, int], int]) -> Iterator[Event]:
    """The names and the order of the processes and threads."""
    for core in sorted({unit.core for unit in report.timing.units}):
        yield _metadata("process_name", core, 0, name=f"core {core}")
        yield _metadata("process_sort_index", core, 0, sort_index=core)
    for unit in report.timing.units:
        tid = tracks[unit.unit, unit.corelet]
        yield _metadata("thread_name", unit.core, tid, name=f"{unit.unit} {unit.corelet}")
        yield _metadata("thread_sort_index", unit.core, tid, sort_index=tid)


def _slices(report: Report, tracks: Mapping[tuple[str, int], int]) -> Iterator[Event]:
    """In order of time on each track."""
    kernels = {launch.launch: kernel for launch, kernel, _ in report.launches}
    for interval in sorted(report.timing.intervals, key=lambda i: (i.core, tracks[i.unit, i.corelet], i.start_ns)):
        yield {
            "ph": "X",
            "pid": interval.core,
            "tid": tracks[interval.unit, interval.corelet],
            "name": kernels.get(interval.launch) or f"launch {interval.launch}",
            "cat": "busy",
            "ts": interval.start_ns / 1e3,
            "dur": (interval.stop_ns - interval.start_ns) / 1e3,
            "args": {"launch": interval.launch},
        }
