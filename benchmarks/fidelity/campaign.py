"""Timing the programs of all rows under both presets, and comparing.

Words. named preset: the one that docs/fidelity.md named before any row was computed; only its errors count. other: the
one beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from statistics import fmean

import ktir
from benchmarks.fidelity.formulas import rank_correlation
from benchmarks.fidelity.rows import PEAKS, Row, Run, Swept, peak
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate_program
from ktir.backends.dataflow.verify import program_faults
from ktir.machine import Machine

NAMED: Mapping[str, str] = {"clock": "1.1GHz", "sfu": "issues"}
OTHER: Mapping[str, str] = {"clock": "1.5GHz", "sfu": "issues"}

Times = dict[Run, float]
"""Nanoseconds."""


def machine(preset: Mapping[str, str]) -> Machine:
    """The machine of the measurements."""
    return ktir.machine("spyre", **preset)


def time_run(run: Run, preset: Mapping[str, str]) -> float:
    """Verifies the program of ``run`` (V1 to V11) and simulates it; nanoseconds. Raises the first fault found."""
    program = compile_program(run.build(*run.arguments), machine(preset))
    for fault in program_faults(program):
        raise fault
    return run.nanoseconds(simulate_program(program))


def time_all(runs: Iterable[Run], preset: Mapping[str, str], jobs: int) -> Times:
    """Times each of ``runs`` once, ``jobs`` at a time, and says on standard error which it is done with."""
    wanted = list(dict.fromkeys(runs))
    times: Times = {}
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(time_run, run, preset): run for run in wanted}
        for number, done in enumerate(as_completed(running), 1):
            times[running[done]] = done.result()
            print(f"{number}/{len(wanted)} {preset['clock']} {running[done]}", file=sys.stderr, flush=True)
    return times


@dataclass(frozen=True)
class Compared:
    """A row with our values under both presets."""

    row: Row
    named: float
    other: float

    @property
    def error(self) -> float:
        """Per cent, under the named preset."""
        return self.row.error(self.named)

    @property
    def as_published(self) -> bool | None:
        """Whether the order is as published, where a row is about an order."""
        if self.row.order is None:
            return None
        low, high = self.row.order
        return low <= self.named <= high


def value(row: Row, times: Times) -> float:
    """Our value of a row."""
    return row.ours([times[run] for run in row.runs])


def compare(rows: Sequence[Row], named: Times, other: Times) -> list[Compared]:
    """Every row with both values."""
    return [Compared(row, value(row, named), value(row, other)) for row in rows]


@dataclass(frozen=True)
class Summary:
    """The errors of a kind of rows: mean and largest magnitude in per cent, and how many are within their bar."""

    kind: str
    bar: float
    rows: int
    within: int
    mean: float
    largest: float


def summaries(compared: Sequence[Compared]) -> Iterator[Summary]:
    """Of the rows with a bar."""
    for kind in ("memory", "product"):
        found = [each for each in compared if each.row.kind == kind]
        if not found:
            continue
        errors = [abs(each.error) for each in found]
        bar = found[0].row.bar or 0.0
        yield Summary(kind, bar, len(found), sum(error <= bar for error in errors), fmean(errors), max(errors))


def times_correlation(compared: Sequence[Compared]) -> float | None:
    """Rank correlation of our times and the published ones over all blind rows that are measured times, of three or
    more."""
    found = [each for each in compared if each.row.kind in ("memory", "product")]
    if len(found) < 3:
        return None
    scale = {"us": 1.0, "ms": 1e3}
    published = [_middle(each.row.published) * scale[each.row.unit] for each in found]
    return rank_correlation(published, [each.named * scale[each.row.unit] for each in found])


def _middle(published: float | tuple[float, float]) -> float:
    return sum(published) / 2 if isinstance(published, tuple) else published


def sweep_correlation(swept: Sequence[Swept], times: Times) -> float:
    """Rank correlation of our times and the published formula over the sweep."""
    return rank_correlation([each.formula_ns for each in swept], [times[each.run] for each in swept])


def peaks() -> Iterator[tuple[str, str, str, float]]:
    """``(name, published, source, ours)``."""
    for each in PEAKS:
        described = ktir.machine(each.machine, **dict(each.presets))
        yield each.name, each.published, each.source, peak(described, each.element)
