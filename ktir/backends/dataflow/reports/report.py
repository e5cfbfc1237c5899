"""What a timed run has to tell, as plain numbers, and the forms it is shown in.

Words. *busy*: the unit does work. *starved*: it waits for input. *blocked*: it waits for room in an output. *stalled*:
it waits for a resource that others use (device memory, scratchpad ports, a ring link). The four and the time after a
unit's end add up to the launch. *bound*: the least time any schedule of this program could take on the machine, and the
resource that sets it. Times are nanoseconds of the model, sizes are bytes; nothing here was measured on a device.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ktir.errors import FileUnusable


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch. ``ddr_read``, ``ddr_written`` and ``ring`` are bytes moved during it."""

    launch: int
    name: str
    cores: int
    start_ns: float
    time_ns: float
    bound_ns: float
    bound_by: str
    ddr_read: int
    ddr_written: int
    ring: int
    plan: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """How one unit of one core spent its time over the whole program."""

    core: int
    corelet: int
    name: str
    busy_ns: float
    starved_ns: float
    blocked_ns: float
    stalled_ns: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of a unit's time in one state; ``label`` names what it worked on."""

    core: int
    corelet: int
    unit: str
    start_ns: float
    stop_ns: float
    state: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of the machine description with where it comes from."""

    name: str
    value: str
    source: str
    confidence: str


@dataclass(frozen=True)
class Report:
    """The whole story of a timed run. ``notes`` are sentences the reader must know to read the numbers right."""

    title: str
    machine: str
    cores: int
    total_ns: float
    bound_ns: float
    bound_by: str
    ddr_read: int
    ddr_written: int
    ring: int
    scratchpad_used: int
    scratchpad_bytes: int
    kernels: tuple[Kernel, ...] = ()
    units: tuple[Unit, ...] = ()
    intervals: tuple[Interval, ...] = ()
    facts: tuple[Fact, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def shares(self) -> Mapping[str, Mapping[str, float]]:
        """For each kind of unit the share of the total that its instances are busy, starved, blocked, stalled, idle.

        The average is over the instances that exist in the program.
        """
        kinds: dict[str, list[Unit]] = {}
        for unit in self.units:
            kinds.setdefault(unit.name, []).append(unit)
        return {name: _share(units, self.total_ns) for name, units in kinds.items()}

    @property
    def text(self) -> str:
        """For a terminal, without colours."""
        from ktir.backends.dataflow.reports.text import as_text

        return as_text(self)

    @property
    def json(self) -> str:
        """Everything, as one JSON object with ``"format": "ktir-report-1"``."""
        return json.dumps({"format": "ktir-report-1", **dataclasses.asdict(self), "shares": self.shares}, indent=1)

    @property
    def html(self) -> str:
        """One page that needs nothing else: tables, and a timeline of each core and unit."""
        from ktir.backends.dataflow.reports.html import as_html

        return as_html(self)

    @property
    def trace(self) -> str:
        """Trace events in JSON, for Perfetto or a browser's tracing page."""
        from ktir.backends.dataflow.reports.trace import as_trace

        return as_trace(self)

    def save(self, path: str | Path) -> Path:
        """Writes ``.html``, ``.json`` or ``.txt`` by the ending of ``path``; ``trace.json`` is a trace."""
        from ktir.files import write_whole

        target = Path(path)
        name = target.name.lower()
        forms = {".html": "html", "trace.json": "trace", ".json": "json", ".txt": "text"}
        form = next((form for ending, form in forms.items() if name.endswith(ending)), None)
        if form is None:
            raise FileUnusable(
                f"no form of report for {target}", remedy="end the name in .html, .json, .txt or trace.json"
            )
        return write_whole(target, getattr(self, form).encode())

    def __str__(self) -> str:
        return self.text


def _share(units: list[Unit], total_ns: float) -> dict[str, float]:
    whole = total_ns * len(units) or 1.0
    states: dict[str, float] = {
        "busy": sum(u.busy_ns for u in units) / whole,
        "starved": sum(u.starved_ns for u in units) / whole,
        "blocked": sum(u.blocked_ns for u in units) / whole,
        "stalled": sum(u.stalled_ns for u in units) / whole,
    }
    return {**states, "idle": max(0.0, 1.0 - sum(states.values()))}


def format_time(nanoseconds: float) -> str:
    """Three digits and a unit: ``812 ns``, ``1.53 us``."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= factor:
            return (
                f"{nanoseconds / factor:.3g} {unit}"
                if nanoseconds < 1000 * factor
                else f"{nanoseconds / factor:.0f} {unit}"
            )
    return f"{nanoseconds:.0f} ns"


def format_bytes(count: int) -> str:
    """Binary units: ``640 B``, ``1.5 KiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit returns")
