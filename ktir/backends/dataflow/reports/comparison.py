"""Two reports beside each other: what became slower or faster, kernel by kernel.

Reports are taken as their plain data, so that one that was written months ago can be compared with one of today.
Launches are paired by the name of their kernel, the first with the first. Times are nanoseconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from ktir.backends.dataflow.reports.report import format_bytes, format_time
from ktir.backends.dataflow.reports.text import WIDTH
from ktir.errors import ReportError

FORMAT = "ktir-report-1"
TOTAL = "whole program"
MOST_NAMES = 6
"""Kernels that a note lists."""
Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """What one report says of a launch, or of the whole program."""

    time_ns: float
    bound_ns: float
    bound_by: str
    ddr: int
    ring: int


@dataclass(frozen=True, slots=True)
class Change:
    """A launch, or the whole program, before and after; None where only one report has it."""

    name: str
    before: Side | None
    after: Side | None

    @property
    def difference_ns(self) -> float:
        """How much longer it takes; a launch that is missing takes no time."""
        return (self.after.time_ns if self.after else 0.0) - (self.before.time_ns if self.before else 0.0)

    @property
    def ratio(self) -> float | None:
        """Time after by time before."""
        if self.before is None or self.after is None or not self.before.time_ns:
            return None
        return self.after.time_ns / self.before.time_ns

    def is_within(self, tolerance: float) -> bool:
        """Whether times differ by no more than this share, and nothing else does."""
        if self.before is None or self.after is None:
            return False
        moved = (self.before.ddr, self.before.ring) != (self.after.ddr, self.after.ring)
        return not moved and abs(self.difference_ns) <= tolerance * self.before.time_ns


@dataclass(frozen=True)
class Comparison:
    """``kernels`` are sorted by how much their time changed, most first.

    ``units`` are shares of busy time, None where there is no such unit.
    """

    names: tuple[str, str]
    machines: tuple[str, str]
    total: Change
    kernels: Sequence[Change]
    units: Mapping[str, tuple[float | None, float | None]]
    busiest: tuple[str, str]
    presets: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})

    @property
    def notes(self) -> list[str]:
        """What one has to know before the numbers are compared: other machines, other choices, other kernels."""
        settings = [_settings(*each) for each in zip(self.machines, self.presets, strict=True)]
        notes = [f"on {settings[0]} before, on {settings[1]} after"] if settings[0] != settings[1] else []
        gone = [each.name for each in self.kernels if each.after is None]
        new = [each.name for each in self.kernels if each.before is None]
        if self.kernels and len(gone) + len(new) == len(self.kernels):
            return [*notes, "no kernel is in both: these are different programs, only their totals can be compared"]
        notes += [f"{len(gone)} launches are gone: {_list(gone)}"] if gone else []
        notes += [f"{len(new)} launches are new: {_list(new)}"] if new else []
        return notes

    def same(self, tolerance: float = 0.0) -> bool:
        """Whether no kernel's time differs by more than the share ``tolerance``, and all move the same bytes."""
        return all(each.is_within(tolerance) for each in (self.total, *self.kernels))

    @property
    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "before": self.names[0],
            "after": self.names[1],
            "machines": list(self.machines),
            "presets": [dict(each) for each in self.presets],
            "notes": self.notes,
            "total": _change_data(self.total),
            "kernels": [_change_data(each) for each in self.kernels],
            "units": {name: {"before": a, "after": b} for name, (a, b) in self.units.items()},
            "busiest": {"before": self.busiest[0], "after": self.busiest[1]},
        }

    def __str__(self) -> str:
        out = StringIO()
        console = Console(file=out, width=WIDTH, color_system=None, highlight=False)
        console.print(_kernel_table([self.total, *self.kernels], self.names))
        console.print(_unit_table(self.units))
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        before, after = self.busiest
        lines.append(f"busiest unit: {before}" if before == after else f"busiest unit: {before} before, {after} after")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def compare(before: Data, after: Data, names: tuple[str, str] = ("before", "after")) -> Comparison:
    """Compares two reports given as :attr:`Report.data`.

    Raises :class:`ReportError` for data that is no report of this version.
    """
    sides = [_checked(data, name) for data, name in zip((before, after), names, strict=True)]
    try:
        launches = [dict(_launches(data)) for data in sides]
        found = [
            Change(_label(key), launches[0].get(key), launches[1].get(key)) for key in {**launches[0], **launches[1]}
        ]
        return Comparison(
            names,
            (str(before["machine"]), str(after["machine"])),
            Change(TOTAL, _side(before, before["total_ns"]), _side(after, after["total_ns"])),
            sorted(found, key=lambda change: -abs(change.difference_ns)),
            dict(_busy(before["shares"], after["shares"])),
            (_busiest(before["shares"]), _busiest(after["shares"])),
            (_presets(before), _presets(after)),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ReportError(f"a report is incomplete: {error}", remedy="write it again with ktir report --json") from None


def _presets(data: Data) -> dict[str, str]:
    return {str(name): str(value) for name, value in data["presets"].items()}


def _settings(machine: str, presets: Mapping[str, str]) -> str:
    """``spyre (clock 1.5GHz)``."""
    chosen = ", ".join(f"{name} {value}" for name, value in presets.items())
    return f"{machine} ({chosen})" if chosen else machine


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", .." if len(names) > MOST_NAMES else "")


def _checked(data: Data, name: str) -> Data:
    if data.get("format") != FORMAT:
        raise ReportError(
            f"{name} is no report of the format {FORMAT}", remedy="give what ktir report --json, or Report.save, wrote"
        )
    return data


def _launches(data: Data) -> Iterator[tuple[tuple[str, int], Side]]:
    """Each launch by its kernel's name, and the how manieth of that name it is."""
    seen: dict[str, int] = {}
    for launch in cast("Sequence[Data]", data["launches"]):
        name = str(launch["kernel"]) or f"launch {launch['launch']}"
        seen[name] = seen.get(name, 0) + 1
        yield (name, seen[name]), _side(launch, launch["stop_ns"] - launch["start_ns"])


def _label(key: tuple[str, int]) -> str:
    name, number = key
    return name if number == 1 else f"{name} ({number})"


def _side(data: Data, time_ns: float) -> Side:
    return Side(
        float(time_ns),
        float(data["bound_ns"]),
        str(data["bound_by"]),
        int(data["ddr_read"]) + int(data["ddr_written"]),
        int(data["ring"]),
    )


def _busy(before: Data, after: Data) -> Iterator[tuple[str, tuple[float | None, float | None]]]:
    for name in {**before, **after}:
        yield name, (_share(before, name), _share(after, name))


def _share(shares: Data, name: str) -> float | None:
    return float(shares[name]["busy"]) if name in shares else None


def _busiest(shares: Data) -> str:
    return max(shares, key=lambda name: float(shares[name]["busy"]), default="none")


def _change_data(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "before": _side_data(change.before),
        "after": _side_data(change.after),
        "difference_ns": change.difference_ns,
        "ratio": change.ratio,
    }


def _side_data(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "time_ns": side.time_ns,
        "bound_ns": side.bound_ns,
        "bound_by": side.bound_by,
        "device_memory_bytes": side.ddr,
        "ring_bytes": side.ring,
    }


def _kernel_table(changes: Sequence[Change], names: tuple[str, str]) -> Table:
    table = Table(title=f"{names[0]} -> {names[1]}", title_justify="left")
    for heading in ("kernel", "before", "after", "change", "bound", "by", "device memory", "ring"):
        table.add_column(heading, justify="left" if heading in ("kernel", "by") else "right")
    for each in changes:
        before, after = each.before, each.after
        table.add_row(
            each.name,
            format_time(before.time_ns) if before else "-",
            format_time(after.time_ns) if after else "-",
            f"{each.ratio - 1:+.1%}" if each.ratio is not None else "new" if after else "gone",
            *(_both(before, after, read) for read in READERS),
        )
    return table


def _unit_table(units: Mapping[str, tuple[float | None, float | None]]) -> Table:
    table = Table(title="Units, share of time busy", title_justify="left")
    for heading in ("unit", "before", "after"):
        table.add_column(heading, justify="left" if heading == "unit" else "right")
    for name, shares in units.items():
        table.add_row(name, *("-" if share is None else f"{share:.1%}" for share in shares))
    return table


READERS: tuple[Callable[[Side], str], ...] = (
    lambda side: format_time(side.bound_ns),
    lambda side: side.bound_by,
    lambda side: format_bytes(side.ddr),
    lambda side: format_bytes(side.ring),
)
"""What a row shows of a side, in one text for both where they agree."""


def _both(before: Side | None, after: Side | None, read: Callable[[Side], str]) -> str:
    texts = [read(side) for side in (before, after) if side is not None]
    return texts[0] if len(set(texts)) == 1 else " -> ".join(texts)


__all__ = ["Change", "Comparison", "compare"]
