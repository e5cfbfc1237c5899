"""What a timed simulation says: numbers for reports, in nanoseconds of the model and in bytes.

Words. *busy*: the unit works, latencies of its own transfers included. *starved*: it waits for input, for a barrier, or
has ended. *blocked*: it waits for room in an output. *stalled*: it waits for a resource that others hold. The four add
up to the total for every unit. *bound*: the least time any schedule of the same work could take on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktir.location import Location


@dataclass(frozen=True, slots=True)
class UnitTime:
    """How one unit of one core spent the total."""

    core: int
    unit: str
    corelet: int
    busy_ns: float
    starved_ns: float
    blocked_ns: float
    stalled_ns: float

    @property
    def total_ns(self) -> float:
        """The sum: the total of the program."""
        return self.busy_ns + self.starved_ns + self.blocked_ns + self.stalled_ns


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """One launch, from barrier to barrier. ``cores`` are those that had work; bytes are as moved, not as needed."""

    launch: int
    cores: int
    start_ns: float
    stop_ns: float
    bound_ns: float
    bound_by: str
    ddr_read: int
    ddr_written: int
    ddr_compulsory: int
    ring: int

    @property
    def time_ns(self) -> float:
        """How long the launch took."""
        return self.stop_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time in which a unit was busy, short pauses included."""

    core: int
    unit: str
    corelet: int
    launch: int
    start_ns: float
    stop_ns: float


@dataclass(frozen=True, slots=True)
class HotSpot:
    """Time that units of one kind were busy with one operation, over all cores."""

    location: Location | None
    unit: str
    operation: str
    busy_ns: float


@dataclass(frozen=True)
class Timing:
    """The whole of a timed simulation; ``presets`` are the machine's choices that the numbers rest on."""

    machine: str
    presets: Mapping[str, str]
    total_ns: float
    bound_ns: float
    bound_by: str
    launches: tuple[LaunchTime, ...]
    units: tuple[UnitTime, ...]
    intervals: tuple[Interval, ...]
    hot_spots: tuple[HotSpot, ...]
    ddr_read: int
    ddr_written: int
    ddr_compulsory: int
    ring: int
    scratchpad_used: int
    scratchpad_bytes: int
    events: int

    @property
    def shares(self) -> Mapping[str, Mapping[str, float]]:
        """For each kind of unit the share of its instances' time per state; each row adds up to 1."""
        kinds: dict[str, list[UnitTime]] = {}
        for unit in self.units:
            kinds.setdefault(unit.unit, []).append(unit)
        return {name: _share(units) for name, units in kinds.items()}


def _share(units: list[UnitTime]) -> dict[str, float]:
    whole = sum(unit.total_ns for unit in units) or 1.0
    return {
        "busy": sum(unit.busy_ns for unit in units) / whole,
        "starved": sum(unit.starved_ns for unit in units) / whole,
        "blocked": sum(unit.blocked_ns for unit in units) / whole,
        "stalled": sum(unit.stalled_ns for unit in units) / whole,
    }
