"""A table of what every operation computed: shape, smallest, largest, mean, NaNs, and where it first differs from a
reference.

One row for each number or tensor that an operation gives, and for each store; on all cores and in all iterations
together, or for each core, or for each execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ktir.interp.observation import Point
from ktir.interp.tracing.accesses import tile_at, view_name
from ktir.interp.tracing.numbers import Difference, Lanes, Summaries, Summary, Tolerance, lanes_of
from ktir.interp.tracing.recording import STORED, Visit, Visits
from ktir.interp.tracing.references import Iteration, Mismatch, Reference, iteration_of
from ktir.interp.values import Frame
from ktir.location import location_data

LEFT = 5
"""Columns of the table that are texts."""
Detail = Literal["operation", "core", "execution"]


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of an operation, on all cores that were at it together."""

    turn: int
    visit: int
    iteration: Iteration
    summary: Summary


@dataclass(slots=True)
class Traced:
    """One row. ``number`` is that of the result, :data:`STORED` for a store; ``runs`` counts executions."""

    point: Point
    number: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    runs: int = 0
    summaries: Summaries = field(default_factory=Summaries)
    executions: list[Execution] = field(default_factory=lambda: [])
    mismatch: Mismatch | None = None
    mismatches: int = 0

    @property
    def location(self) -> str:
        where = self.point.site.location
        return str(where) if where is not None else f"@{self.point.function}"


class Trace:
    """Observes a run and tells of its values.

    ``against`` is what they are compared with: another program (a path, a text, a module), a recording or its file,
    arrays by name or their file. ``tolerance`` None stands for exact equality with another run, and for what is usual
    for the element type with arrays. ``detail`` says how fine the rows are.
    """

    def __init__(
        self, against: Any = None, *, tolerance: Tolerance | None = None, detail: Detail = "operation"
    ) -> None:
        self.against, self.tolerance, self.detail = against, tolerance, detail
        self.reference: Reference | None = None
        self._clear({})

    def _clear(self, names: Mapping[SSAValue, str]) -> None:
        self.rows: list[Traced] = []
        self.first: Mismatch | None = None
        """The first mismatch in the order of the run."""
        self._by_key: dict[tuple[Operation, int], Traced] = {}
        self._visits = Visits()
        self._names = names

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        """Forgets an earlier run."""
        self._clear(names)
        if self.reference is not None:
            self.reference.begin(module, names)

    def entered(self, point: Point, frame: Frame) -> None:
        """Arguments of blocks are results of operations, or counters."""

    def executed(self, point: Point, frame: Frame) -> None:
        values = list(_values(point, frame, self._names))
        if not values:
            return
        if self.reference is not None:
            self.reference.stored(point, frame)
        for visit in self._visits.of(point, frame):
            for number, name, lanes in values:
                row = self._row(point, number, name, lanes)
                self._note(row, visit, lanes.rows(visit.rows), frame)
                if self.reference is not None:
                    self._compare(row, self._mismatch(self.reference, point, number, visit, lanes, frame))

    def _mismatch(
        self, reference: Reference, point: Point, number: int, visit: Visit, lanes: Lanes, frame: Frame
    ) -> Mismatch | None:
        if number == STORED:
            return reference.places(point, visit, frame)
        return reference.compare(point, number, visit, lanes, frame)

    def finish(self) -> None:
        for found in self.reference.left() if self.reference is not None else ():
            self._compare(self._by_key[found.point.op, STORED], found)

    def _row(self, point: Point, number: int, name: str, lanes: Lanes) -> Traced:
        found = self._by_key.get((point.op, number))
        if found is None:
            found = Traced(point, number, name, lanes.shape, element_name(point, number))
            self._by_key[point.op, number] = found
            self.rows.append(found)
        return found

    def _note(self, row: Traced, visit: Visit, lanes: Lanes, frame: Frame) -> None:
        row.runs += 1
        row.summaries.add(lanes, visit.cores)
        if self.detail == "execution":
            now = Summaries()
            now.add(lanes, visit.cores)
            iteration = iteration_of(row.point, frame, int(visit.rows[0]))
            row.executions.append(Execution(visit.turn, visit.number, iteration, now.whole()))

    def _compare(self, row: Traced, found: Mismatch | None) -> None:
        if found is None:
            return
        row.mismatches += 1
        row.mismatch = row.mismatch or found
        self.first = self.first or found

    # ------------------------------------------------------------------------------------------------------------- text

    @property
    def data(self) -> list[dict[str, Any]]:
        """The rows as JSON, in the order in which operations first ran."""
        return [self._row_data(row) for row in self.rows]

    def _row_data(self, row: Traced) -> dict[str, Any]:
        data: dict[str, Any] = {
            "location": location_data(row.point.site.location),
            "function": row.point.function,
            "operation": row.point.op.name,
            "name": row.name,
            "shape": list(row.shape),
            "dtype": row.dtype,
            "executions": row.runs,
            "cores": len(row.summaries.cores),
            **row.summaries.whole().data,
        }
        if self.detail == "core":
            data["per_core"] = [{"core": core, **each.data} for core, each in sorted(row.summaries.cores.items())]
        if self.detail == "execution":
            data["per_execution"] = [
                {"launch": e.turn, "execution": e.visit, "iteration": dict(e.iteration), **e.summary.data}
                for e in row.executions
            ]
        if self.reference is not None:
            data["mismatches"] = row.mismatches
            data["first_mismatch"] = None if row.mismatch is None else mismatch_data(row.mismatch)
        return data

    def __str__(self) -> str:
        """The table; a mismatch stands under its row."""
        rows: list[list[str]] = []
        notes: dict[int, str] = {}
        for row in self.rows:
            for where, runs, summary in self._lines(row):
                shape = "x".join(map(str, row.shape)) or "scalar"
                kind = f"{shape} {row.dtype}"
                rows.append([row.location, row.point.op.name, row.name, where, kind, runs, *_columns(summary, row)])
            if row.mismatch is not None:
                more = f"; wrong in {row.mismatches} of {row.runs} executions" if row.mismatches > 1 else ""
                notes[len(rows)] = f"  ^ {mismatch_text(row.mismatch)}{more}"
        lines = [table([list(self._head()), *rows], notes)]
        if self.reference is not None:
            lines.append(self._verdict())
        return "\n".join(lines)

    def _verdict(self) -> str:
        if self.first is None:
            return "no difference from the reference"
        where = self.first.point.site
        return f"first difference: {where.location} '{where.operation}': {mismatch_text(self.first)}"

    def _head(self) -> Iterator[str]:
        where = {"operation": "", "core": "core", "execution": "iteration"}[self.detail]
        yield from (
            "location",
            "operation",
            "value",
            where,
            "type",
            "runs",
            "min",
            "max",
            "mean",
            "nan",
            "inf",
            "undefined",
        )

    def _lines(self, row: Traced) -> Iterator[tuple[str, str, Summary]]:
        if self.detail == "operation":
            yield "", str(row.runs), row.summaries.whole()
        elif self.detail == "core":
            for core, summary in sorted(row.summaries.cores.items()):
                yield str(core), str(row.runs), summary
        else:
            for each in row.executions:
                yield iteration_text(each.iteration), "1", each.summary


def element_name(point: Point, number: int) -> str:
    """The word of the IR for the elements of a value."""
    kind: Any = point.values[number].value.type if number >= 0 else point.operands[0].value.type
    return str(getattr(kind, "element_type", kind)).removeprefix("!")


def _values(point: Point, frame: Frame, names: Mapping[SSAValue, str]) -> Iterator[tuple[int, str, Lanes]]:
    """Number, name and elements of what a point has to show."""
    for number, each in enumerate(point.values):
        lanes = lanes_of(frame.regs[each.slot])
        if lanes is not None:
            yield number, each.name, lanes
    if point.op.name == "ktdp.store":
        data, tile = point.operands[0], tile_at(point, frame)
        lanes = lanes_of(frame.regs[data.slot])
        if lanes is not None and tile is not None:
            yield STORED, f"{data.name} -> {view_name(point, tile.view, names)}", lanes


def _columns(summary: Summary, row: Traced) -> list[str]:
    numbers = [summary.low, summary.high, summary.total / max(1, summary.finite)] if summary.finite else []
    texts = [number_text(each) for each in numbers] or ["-", "-", "-"]
    floats = not row.dtype.startswith(("i", "index"))
    counts = [summary.nan, summary.inf] if floats else [0, 0]
    return [*texts, *(str(count) if count else "" for count in (*counts, summary.undefined))]


def number_text(value: float | int) -> str:
    """A number with the digits that people compare."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def iteration_text(iteration: Iteration) -> str:
    """``i=2 k=0``, without the ``%``."""
    return " ".join(f"{name.lstrip('%')}={value}" for name, value in iteration)


def mismatch_text(mismatch: Mismatch) -> str:
    """What is wrong, in a sentence."""
    found = mismatch.found
    what = f"{mismatch.where}{list(found.coordinates)}" if mismatch.where else f"element {list(found.coordinates)}"
    at = f", {iteration_text(mismatch.iteration)}" if mismatch.iteration else ""
    if mismatch.note:
        return f"core {mismatch.core}{at}: {mismatch.note}"
    if not found.coordinates:
        return f"core {mismatch.core}{at}: it is {number_text(found.got)}, wanted {number_text(found.wanted)}"
    return (
        f"core {mismatch.core}{at}: {what} is {number_text(found.got)}, wanted {number_text(found.wanted)}; "
        f"{found.wrong} of {found.elements} elements are wrong, by up to {found.largest:.3g}"
    )


def mismatch_data(mismatch: Mismatch) -> dict[str, Any]:
    """The same as JSON."""
    found = mismatch.found
    return {
        "location": location_data(mismatch.point.site.location),
        "operation": mismatch.point.op.name,
        "argument": mismatch.where or None,
        "core": mismatch.core,
        "iteration": dict(mismatch.iteration),
        "note": mismatch.note or None,
        **({} if mismatch.note else element_data(found)),
    }


def element_data(found: Difference) -> dict[str, Any]:
    """The first wrong element, and how many there are."""
    return {
        "coordinates": list(found.coordinates),
        "got": found.got,
        "wanted": found.wanted,
        "wrong": found.wrong,
        "elements": found.elements,
        "largest_difference": found.largest,
    }


def table(rows: Sequence[Sequence[str]], notes: Mapping[int, str]) -> str:
    """Columns as wide as they have to be, empty ones left out; ``notes`` go under their row."""
    used = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:]) or not rows[1:]]
    widths = [max(len(row[column]) for row in rows) for column in used]
    left = range(LEFT)
    lines: list[str] = []
    for number, row in enumerate(rows):
        cells = [
            row[column].ljust(width) if column in left else row[column].rjust(width)
            for column, width in zip(used, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
        if number in notes:
            lines.append(notes[number])
    return "\n".join(lines)


__all__ = ["Detail", "Trace", "Traced", "iteration_text", "mismatch_data", "mismatch_text", "number_text"]
