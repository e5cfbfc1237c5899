"""Why launches take longer than their bound, and what a person can change: sentences with the time that is in them.

A launch is taken apart by four times, each at least as long as the one before: its bound; what device memory needs
for the bytes as they move; what it needs for them request by request; the busiest unit of the busiest core, or device
memory if that is longer. What lies between two of them has one cause, which is named. The rest, up to the time of the
launch, is time in which nothing is used to the full: one unit waits for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktir.backends.dataflow.costs import ddr_ticks
from ktir.backends.dataflow.timing import HotSpot, LaunchTime, UnitTotal
from ktir.location import Location

if TYPE_CHECKING:
    from ktir.backends.dataflow.reports.report import Report

LEAST_SHARE: Final = 0.05
"""Of the time of its launch: what is less is not told."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``lost_ns`` of a launch beyond its bound are there because of ``what``; ``remedy``: what may help.

    ``location``: the KTIR of the operation that has most to do with it, where there is one.
    """

    launch: int
    kernel: str
    lost_ns: float
    what: str
    remedy: str
    location: Location | None = None


def findings(report: Report) -> Sequence[Finding]:
    """Of all launches, the costliest first."""
    found = [each for launch, name, _ in report.launches for each in _of_launch(report, launch, name)]
    return sorted(found, key=lambda finding: -finding.lost_ns)


def _of_launch(report: Report, launch: LaunchTime, kernel: str) -> Iterator[Finding]:
    spots = [spot for spot in report.timing.hot_spots if spot.launch == launch.launch]
    reached = launch.bound_ns
    for until, (what, remedy, spot) in (
        (_bytes_ns(report, launch), _bytes(report, launch, spots)),
        (launch.ddr_ns, _requests(report, launch, spots)),
        (_busiest_ns(launch), _arithmetic(report, launch, spots)),
        (launch.time_ns, _waiting(report, launch)),
    ):
        lost = min(until, launch.time_ns) - reached
        if lost >= LEAST_SHARE * launch.time_ns:
            place = spot.location if spot is not None else None
            yield Finding(launch.launch, kernel, lost, what, remedy, place)
        reached += max(0.0, lost)


_Told = tuple[str, str, HotSpot | None]
"""What it is, what may help, and the operation that it is about."""


def _bytes_ns(report: Report, launch: LaunchTime) -> float:
    machine = report.machine
    return machine.clock.nanoseconds(ddr_ticks(machine, launch.ddr_read + launch.ddr_written))


def _bytes(report: Report, launch: LaunchTime, spots: Sequence[HotSpot]) -> _Told:
    from ktir.backends.dataflow.reports.report import format_bytes, format_multiple

    moved = launch.ddr_read + launch.ddr_written
    what = (
        f"device memory moves {format_bytes(moved)}, {format_multiple(moved, launch.ddr_compulsory)} the compulsory: "
        "the same words go to several cores, or to one several times"
    )
    remedy = "larger tiles; a split that does not repeat the large operand; one load that is sent to other cores"
    return what, remedy, _moving(report, spots)


def _requests(report: Report, launch: LaunchTime, spots: Sequence[HotSpot]) -> _Told:
    from ktir.backends.dataflow.reports.report import format_bytes

    memory = report.machine.global_memory
    each = (launch.ddr_read + launch.ddr_written) // max(1, launch.ddr_requests)
    what = (
        f"device memory serves {launch.ddr_requests:,} requests of {format_bytes(each)} on average; each takes as long "
        f"as a larger one, up to {format_bytes(memory.burst)}"
    )
    return what, "longer contiguous rows in a tile, or a layout in which a tile is contiguous", _moving(report, spots)


def _moving(report: Report, spots: Sequence[HotSpot]) -> HotSpot | None:
    """The movement between device memory and scratchpads that keeps its units busiest."""
    far = report.machine.global_memory.name
    ends = {unit.name: (*unit.sources, *unit.targets) for unit in report.machine.units.values()}
    return next((spot for spot in spots if far in ends.get(spot.unit, ())), None)


def _busiest(launch: LaunchTime) -> UnitTotal | None:
    return max(launch.units, key=_most_ns, default=None)


def _most_ns(total: UnitTotal) -> float:
    """How long the unit is busy on the core where it is busiest; the average of its corelets."""
    return total.busy_ns / total.instances / total.balance if total.balance else 0.0


def _busiest_ns(launch: LaunchTime) -> float:
    busiest = _busiest(launch)
    return _most_ns(busiest) if busiest is not None else 0.0


def _arithmetic(report: Report, launch: LaunchTime, spots: Sequence[HotSpot]) -> _Told:
    """What keeps the busiest unit busy beyond its share of the work."""
    busiest = _busiest(launch)
    if busiest is None:
        return "", "", None
    what = f"{busiest.unit} of the busiest core works all that time"
    remedy = "less work for it: fewer operations in the kernel, or tiles that fill its rows and vectors"
    cores = report.machine.cores
    if launch.cores < cores:
        what += f"; {launch.cores} of {cores} cores have work"
        remedy = "a split over more cores"
    elif busiest.balance < 0.9:
        what += f", the average one {busiest.balance:.0%} of it"
        remedy = "a split that gives all cores the same"
    return what, remedy, next((spot for spot in spots if spot.unit == busiest.unit), None)


def _waiting(report: Report, launch: LaunchTime) -> _Told:
    """Time in which no resource is used to the full."""
    busiest = _busiest(launch)
    what = "units wait for each other and for latencies"
    if busiest is not None:
        what += f": {busiest.unit}, the busiest one, works {_most_ns(busiest) / launch.time_ns:.0%} of the time"
    what += _longest_wait(launch)
    remedy = "more and smaller tiles a core, so that loads, arithmetic and stores overlap; fewer launches"
    if 2 * launch.cores <= report.machine.cores:
        remedy = f"a split over more than {launch.cores} of {report.machine.cores} cores; {remedy}"
    return what, remedy, None


def _longest_wait(launch: LaunchTime) -> str:
    """The unit that waits longest for what others hold, if that is much."""
    total = max(launch.units, key=lambda unit: unit.stalled_ns / unit.instances, default=None)
    if total is None or total.stalled_ns < 0.2 * total.instances * launch.time_ns:
        return ""
    return f"; {total.unit} is stalled {total.stalled_ns / total.instances / launch.time_ns:.0%} of it"


__all__ = ["Finding", "findings"]
