"""The roofline of a run: what each kernel does per byte of device memory, how fast, and how fast the machine allows.

Words. *intensity*: operations for each byte that a launch moves to or from device memory. *rate*: operations a second,
over the whole time of the launch. *roof*: the most the machine allows at that intensity, the peak of the compute unit
or the intensity times the sustained rate of device memory, whichever is lower. Operations are counted as
:mod:`ktir.backends.dataflow.timing` says. Source of the form: Williams, Waterman, Patterson, Roofline: an insightful
visual performance model for multicore architectures, CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ktir.backends.dataflow.timing import Arithmetic, LaunchTime, Work

if TYPE_CHECKING:
    from ktir.backends.dataflow.reports.report import Report

TOTAL = "whole program"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The peak of all instances of a compute unit, in operations a second, on elements rated as ``element``."""

    unit: str
    kind: Arithmetic
    element: str
    peak: float

    @property
    def name(self) -> str:
        """The unit and the element type."""
        return f"{self.unit} {self.element}"


@dataclass(frozen=True, slots=True)
class Point:
    """A launch, or the whole program where ``launch`` is None, on one compute unit.

    ``intensity`` is None where no byte of device memory is moved; ``roof`` is the unit's peak then.
    """

    kernel: str
    launch: int | None
    unit: str
    kind: Arithmetic
    operations: int
    bytes: int
    time_ns: float
    intensity: float | None
    rate: float
    roof: float

    @property
    def share(self) -> float:
        """The rate by the roof: 1 where the machine allows no more."""
        return self.rate / self.roof if self.roof else 0.0


@dataclass(frozen=True)
class Roofline:
    """``bandwidth``: sustained bytes a second of device memory. Ceilings are those of what the program computes on."""

    bandwidth: float
    ceilings: tuple[Ceiling, ...]
    points: tuple[Point, ...]
    whole: tuple[Point, ...]

    @property
    def data(self) -> dict[str, Any]:
        """As JSON; rates are operations a second, the intensity operations a byte."""
        return {
            "bytes_per_second": self.bandwidth,
            "ceilings": [
                {"unit": c.unit, "element": c.element, "operations_per_second": c.peak} for c in self.ceilings
            ],
            "points": [_point_data(point) for point in (*self.whole, *self.points)],
        }


def roofline(report: Report) -> Roofline:
    """The roofline of a report."""
    timing = report.timing
    bandwidth = report.machine.global_memory.sustained_gbs * 1e9
    points = [
        point
        for launch, name, _ in report.launches
        for point in _points(name or f"launch {launch.launch}", launch.launch, launch.work, launch, bandwidth)
    ]
    everything = [work for launch in timing.launches for work in launch.work]
    ceilings = {(w.unit, w.kind, w.element): Ceiling(w.unit, w.kind, w.element, w.peak) for w in everything}
    whole = LaunchTime(
        -1, 0, 0.0, timing.total_ns, 0.0, "", timing.ddr_read, timing.ddr_written, timing.ddr_compulsory, 0, 0, 0
    )
    return Roofline(
        bandwidth,
        tuple(sorted(ceilings.values(), key=lambda ceiling: -ceiling.peak)),
        tuple(points),
        tuple(_points(TOTAL, None, everything, whole, bandwidth)),
    )


def _points(kernel: str, number: int | None, work: Sequence[Work], launch: LaunchTime, bandwidth: float) -> list[Point]:
    moved = launch.ddr_read + launch.ddr_written
    parts: dict[tuple[str, Arithmetic], list[Work]] = {}
    for each in work:
        parts.setdefault((each.unit, each.kind), []).append(each)
    found: list[Point] = []
    for (unit, kind), shares in parts.items():
        operations = sum(each.operations for each in shares)
        peak = operations / sum(each.operations / each.peak for each in shares)
        intensity = operations / moved if moved else None
        roof = peak if intensity is None else min(peak, intensity * bandwidth)
        rate = operations / (launch.time_ns * 1e-9) if launch.time_ns else 0.0
        found.append(Point(kernel, number, unit, kind, operations, moved, launch.time_ns, intensity, rate, roof))
    return found


def _point_data(point: Point) -> Mapping[str, Any]:
    return {
        "kernel": point.kernel,
        "launch": point.launch,
        "unit": point.unit,
        "operations": point.operations,
        "device_memory_bytes": point.bytes,
        "operations_per_byte": point.intensity,
        "operations_per_second": point.rate,
        "roof_operations_per_second": point.roof,
    }


__all__ = ["TOTAL", "Ceiling", "Point", "Roofline", "roofline"]
