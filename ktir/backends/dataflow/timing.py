"""What a timed simulation says: numbers for reports, in nanoseconds of the model and in bytes.

Words. *busy*: the unit works, latencies of its own transfers included. *starved*: it waits for input, for a barrier, or
has ended. *blocked*: it waits for room in an output. *stalled*: it waits for a resource that others hold. The four add
up to the total for every unit. *bound*: the least time any schedule of the same work could take on the machine.
*compulsory*: the bytes that any schedule has to move; every word that is read or written in device memory once, every
box that another core needs over the networks once. *operations*: a multiply-add counts two; a vector operation counts
one for each element and each issue, so that an exponential of four issues counts four, and a unit that is never idle
does as many a second as its peak says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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
class UnitTotal:
    """How all instances of one kind of unit together spent a launch; the four times add up to ``instances`` launches.

    ``balance``: the busy time of the average core by that of the busiest one; 1 where all cores do the same, or none
    does anything.
    """

    unit: str
    instances: int
    busy_ns: float
    starved_ns: float
    blocked_ns: float
    stalled_ns: float
    balance: float


Arithmetic = Literal["multiply", "vector"]
"""Multiply-adds of a matrix unit, or operations of a vector unit."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch asks of the compute units of one name: ``operations`` on elements rated as ``element``.

    ``peak``: operations a second of all instances on the machine together.
    """

    unit: str
    kind: Arithmetic
    element: str
    operations: int
    peak: float


@dataclass(frozen=True, slots=True)
class Tenant:
    """A buffer that has ``bytes`` of every scratchpad, all its slots, from launch ``first`` to launch ``last``."""

    name: str
    offset: int
    bytes: int
    slots: int
    first: int
    last: int
    location: Location | None


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """One launch, from barrier to barrier. ``cores`` are those that had work; bytes are as moved, not as needed,
    but for the compulsory ones. ``scratchpad`` are the bytes of a core's scratchpad that have a tenant.
    ``ddr_requests`` are the bursts that device memory is asked for, ``ddr_ns`` the least time it needs for them."""

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
    ring_compulsory: int
    scratchpad: int
    units: tuple[UnitTotal, ...] = ()
    work: tuple[Work, ...] = ()
    ddr_requests: int = 0
    ddr_ns: float = 0.0

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
    """Time that units of one name were busy with what they do for one operation of the KTIR, over all cores.

    ``location`` is its line in the KTIR, ``source`` that in the model it was compiled from, where there is one.
    """

    location: Location | None
    source: Location | None
    unit: str
    operation: str
    launch: int
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
    ring_compulsory: int
    scratchpad_used: int
    scratchpad_bytes: int
    tenants: tuple[Tenant, ...]
    events: int

    @property
    def shares(self) -> Mapping[str, Mapping[str, float]]:
        """For each kind of unit the share of its instances' time per state; each row adds up to 1."""
        kinds: dict[str, list[UnitTime]] = {}
        for unit in self.units:
            kinds.setdefault(unit.unit, []).append(unit)
        return {name: _share(units) for name, units in kinds.items()}

    @property
    def balance(self) -> Mapping[str, float]:
        """For each kind of unit the busy time of the average core by that of the busiest; see :class:`UnitTotal`."""
        cores: dict[str, dict[int, float]] = {}
        for unit in self.units:
            busy = cores.setdefault(unit.unit, {})
            busy[unit.core] = busy.get(unit.core, 0.0) + unit.busy_ns
        return {name: balance_of(list(busy.values())) for name, busy in cores.items()}


def balance_of(busy: Sequence[float]) -> float:
    """The average by the largest; 1 where nothing is busy."""
    most = max(busy, default=0)
    return sum(busy) / len(busy) / most if most else 1.0


def _share(units: list[UnitTime]) -> dict[str, float]:
    whole = sum(unit.total_ns for unit in units) or 1.0
    return {
        "busy": sum(unit.busy_ns for unit in units) / whole,
        "starved": sum(unit.starved_ns for unit in units) / whole,
        "blocked": sum(unit.blocked_ns for unit in units) / whole,
        "stalled": sum(unit.stalled_ns for unit in units) / whole,
    }
