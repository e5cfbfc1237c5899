"""What a timed run has to tell, and the forms it is shown in: text, JSON, a page, a trace.

Words are those of :mod:`ktir.backends.dataflow.timing`. Times are nanoseconds of the model, sizes are bytes; nothing
here was measured on a device.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ktir.backends.dataflow.timing import LaunchTime, Timing
from ktir.errors import FileUnusable
from ktir.location import Location, location_data
from ktir.machine.description import Machine

if TYPE_CHECKING:
    from ktir.backends.dataflow.reports.findings import Finding
    from ktir.backends.dataflow.reports.roofline import Roofline

MODELLED = (
    "Times come from a model of the machine; nothing was measured on a device. The values it rests on are listed with "
    "their sources."
)
STATES = ("busy", "starved", "blocked", "stalled")
ARITHMETIC = "Arithmetic on 16 bits is rated as the machine rates f16, whether its values are f16 or DL16."


Form = Literal["html", "json", "text", "trace"]
"""What a report can be written as: the names of the properties of :class:`Report`."""
ENDINGS: Final[Mapping[str, Form]] = {
    ".html": "html",
    ".htm": "html",
    "trace.json": "trace",
    ".json": "json",
    ".txt": "text",
}
"""The first that fits is meant."""


def form_of(path: str | Path) -> Form:
    """The form that a file's name asks for. Raises :class:`FileUnusable` for a name that asks for none."""
    name = Path(path).name.lower()
    for ending, form in ENDINGS.items():
        if name.endswith(ending):
            return form
    raise FileUnusable(f"no form of report for {path}", remedy="end the name in .html, .json, .txt or trace.json")


@dataclass(frozen=True)
class Report:
    """The story of a timed run.

    ``kernels`` names the kernel of each launch; ``plans`` its decisions, by kernel; ``counts`` are further numbers to
    show; ``notes`` are sentences the reader must know to read the numbers right; ``texts`` are the KTIR texts that hot
    spots are in, by file; ``sources`` are the lines of the model that launches are for.
    """

    title: str
    timing: Timing
    machine: Machine
    kernels: tuple[str, ...] = ()
    plans: Mapping[str, str] = field(default_factory=dict[str, str])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = (MODELLED, ARITHMETIC)
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: tuple[Location | None, ...] = ()

    @property
    def launches(self) -> list[tuple[LaunchTime, str, str]]:
        """Each launch with its kernel and the kernel's plan."""
        known = len(self.kernels)
        names = [self.kernels[at] if at < known else "" for at, _ in enumerate(self.timing.launches)]
        return [(each, name, self.plans.get(name, "")) for each, name in zip(self.timing.launches, names, strict=True)]

    def source(self, launch: LaunchTime) -> Location | None:
        """The line of the model that a launch is for, where that is known."""
        at = self.timing.launches.index(launch)
        return self.sources[at] if at < len(self.sources) else None

    @cached_property
    def roofline(self) -> Roofline:
        """Intensity and rate of each kernel, and the machine's ceilings."""
        from ktir.backends.dataflow.reports.roofline import roofline

        return roofline(self)

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """Why launches take longer than their bound, the costliest first."""
        from ktir.backends.dataflow.reports.findings import findings

        return findings(self)

    def role(self, unit: str) -> str:
        """What a unit is there for, in a few words: ``ddr to lx``, ``multiply-adds``."""
        described = self.machine.units.get(unit)
        if described is None:
            return ""
        if described.kind != "compute":
            return f"{' and '.join(described.sources)} to {' and '.join(described.targets)}"
        kinds = {"mac": "multiply-adds", "sfu_map": "vector operations"}
        return " and ".join(name for operation, name in kinds.items() if operation in described.ops)

    def line(self, location: Location | None) -> str:
        """The line of KTIR that ``location`` is in, without indentation; empty where its text is not known."""
        lines = self._lines.get(location.file, []) if location is not None else []
        return lines[location.line - 1].strip() if location is not None and 0 < location.line <= len(lines) else ""

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        return {file: text.splitlines() for file, text in self.texts.items()}

    @property
    def data(self) -> dict[str, Any]:
        """Everything but the timeline, as plain data."""
        timing = dataclasses.asdict(dataclasses.replace(self.timing, intervals=()))
        del timing["intervals"]
        launches = [
            {**dataclasses.asdict(launch), "kernel": name, "plan": plan, "source": location_data(self.source(launch))}
            for launch, name, plan in self.launches
        ]
        return {
            "format": "ktir-report-1",
            "title": self.title,
            **timing,
            "launches": launches,
            "hot_spots": [
                {**dataclasses.asdict(spot), "text": self.line(spot.location)} for spot in self.timing.hot_spots
            ],
            "shares": {name: dict(share) for name, share in self.timing.shares.items()},
            "balance": dict(self.timing.balance),
            "roofline": self.roofline.data,
            "findings": [
                {**dataclasses.asdict(each), "location": location_data(each.location)} for each in self.findings
            ],
            "unit_roles": {name: self.role(name) for name in self.timing.shares},
            "counts": dict(self.counts),
            "notes": list(self.notes),
        }

    @property
    def text(self) -> str:
        """For a terminal, without colours."""
        from ktir.backends.dataflow.reports.text import as_text

        return as_text(self)

    @property
    def json(self) -> str:
        """:attr:`data` as one JSON object."""
        return json.dumps(self.data, indent=1, default=str)

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

    def save(self, path: str | Path, form: Form | None = None) -> Path:
        """Writes one form, by default that of the name: see :func:`form_of`."""
        from ktir.files import write_whole

        target = Path(path)
        return write_whole(target, getattr(self, form or form_of(target)).encode())

    def __str__(self) -> str:
        return self.text


def format_time(nanoseconds: float) -> str:
    """Three digits and a unit: ``812 ns``, ``1.53 us``."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= factor:
            value = nanoseconds / factor
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


def format_bytes(count: int) -> str:
    """Binary units: ``640 B``, ``1.5 KiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit returns")


def format_rate(per_second: float, what: str = "op/s") -> str:
    """Three digits, a decimal prefix and a unit: ``98.3 Top/s``, ``150 GB/s``."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= factor:
            return f"{per_second / factor:.3g} {prefix}{what}"
    return f"{per_second:.3g} {what}"


def format_multiple(moved: int, least: int) -> str:
    """How many times the least that is moved: ``1.00 x``; ``-`` where nothing has to be."""
    return f"{moved / least:.2f} x" if least else "-"
