"""The published results: value, source, and which programs ours is the time of.

A row is *calibration* where the description of device memory was fitted to it, otherwise *blind*: it took no part in
any choice of a value. Bars are goals for blind rows: 8 % where device memory decides, 15 % for products. Rows without a
bar are compared by order or for information; why, is in docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from benchmarks.fidelity import device_memory, formulas, mlp, partial_sums, relayout, softmax
from benchmarks.fidelity.product import Split, decode, small, wide
from ktir.backends.dataflow.timing import Timing
from ktir.machine import Machine

MEMORY_BAR, PRODUCT_BAR = 8.0, 15.0
"""Per cent."""


@dataclass(frozen=True)
class Run:
    """A program to time. ``whole``: all launches count, else the last alone. ``long``: takes more than some seconds."""

    build: Callable[..., ModuleOp]
    arguments: tuple[object, ...]
    whole: bool = True
    long: bool = False

    def nanoseconds(self, timing: Timing) -> float:
        """What counts of the time of the program."""
        last = timing.launches[-1]
        return timing.total_ns if self.whole else last.stop_ns - last.start_ns

    def __str__(self) -> str:
        return f"{self.build.__module__.rsplit('.')[-1]}.{self.build.__name__}{self.arguments}"


Kind = Literal["calibration", "memory", "product", "ratio", "information"]


@dataclass(frozen=True)
class Row:
    """A published result. ``published``: a value, or a range from and to. ``ours``: of the nanoseconds of ``runs``."""

    name: str
    kind: Kind
    published: float | tuple[float, float]
    unit: str
    source: str
    runs: tuple[Run, ...]
    ours: Callable[[Sequence[float]], float]
    order: tuple[float, float] | None = None
    """Between which ours has to be so that the order is as published."""

    @property
    def bar(self) -> float | None:
        """The error that is the goal, in per cent."""
        return {"memory": MEMORY_BAR, "product": PRODUCT_BAR}.get(self.kind)

    @property
    def long(self) -> bool:
        """Whether it takes more than a few seconds."""
        return any(run.long for run in self.runs)

    def error(self, ours: float) -> float:
        """Per cent of the published value, of the nearer end of a range; nought within it."""
        low, high = self.published if isinstance(self.published, tuple) else (self.published, self.published)
        nearest = min(max(ours, low), high)
        return 100 * (ours - nearest) / nearest


def microseconds(times: Sequence[float]) -> float:
    """The time of the only run."""
    (only,) = times
    return only / 1e3


def milliseconds(times: Sequence[float]) -> float:
    """The time of the only run."""
    (only,) = times
    return only / 1e6


def ratio(times: Sequence[float]) -> float:
    """The first run's time over the second's."""
    first, second = times
    return first / second


# ----------------------------------------------------------------------------------------------------- device memory

COST_MODEL = "torch-spyre cost_model.py"
READ = 4 << 20
"""Bytes that a core reads to find a rate."""
SHARES = {1: 0.11, 2: 0.22, 4: 0.43, 8: 0.54, 16: 0.54, 32: 1.0}


def calibration() -> Iterator[Row]:
    """What the description of device memory was fitted to."""
    reads = {cores: Run(device_memory.reads, (cores, READ)) for cores in SHARES}
    copy = Run(device_memory.copies, (32, READ))
    rate = "GB/s"
    yield Row("reads of 32 cores", "calibration", 150.0, rate, COST_MODEL, (reads[32],), lambda t: 32 * READ / t[0])
    yield Row("balanced copy of 32 cores", "calibration", 105.0, rate, COST_MODEL, (copy,), lambda t: 64 * READ / t[0])
    for cores, share in SHARES.items():
        yield Row(
            f"reads of {cores} cores, share of 150 GB/s",
            "calibration",
            share,
            "",
            f"{COST_MODEL}, red_bw_cores_g",
            (reads[cores],),
            lambda t, cores=cores: cores * READ / t[0] / 150,
        )


def memory() -> Iterator[Row]:
    """Kernels of which device memory decides the time."""
    issue = "torch-spyre issue 4032"
    decoded = {1: ((1, 25), 1.762), 2: ((2, 16), 1.463), 4: ((4, 8), 1.389), 8: ((8, 4), 1.377), 16: ((8, 4), 1.365)}
    for rows, (split, published) in decoded.items():
        run = Run(decode, (rows, 25600, Split(*split)), long=True)
        name = f"decode {rows} x 4096 x 25600 on {split[0]} x {split[1]} cores"
        yield Row(name, "memory", published, "ms", issue, (run,), milliseconds)
    suite = "torch-spyre performance suite, June 2026"
    for columns, published in ((1024, 0.056), (4096, 0.214), (12800, 0.721)):
        run = Run(decode, (4, columns, Split(4, 8)), long=columns > 1024)
        name = f"decode 4 x 4096 x {columns} on 4 x 8 cores"
        yield Row(name, "memory", published, "ms", suite, (run,), milliseconds)
    array = 64 * 16384 * 2  # 64 rows were published; so many columns take 52 us by the published formula
    probe = f"{COST_MODEL}, rung G"
    added, broadcast = (Run(device_memory.kernel, (array, operands)) for operands in (2, 1))
    yield Row("add of 64 x 16384", "memory", 52.0, "us", probe, (added,), microseconds)
    yield Row("add of a broadcast row to 64 x 16384", "memory", (30.0, 33.0), "us", probe, (broadcast,), microseconds)
    large = Run(device_memory.kernel, (512 * 4096 * 2, 2))
    yield Row("add of 512 x 4096", "memory", 0.127, "ms", suite, (large,), milliseconds)
    replicated = Run(device_memory.reads, (32, 64 << 10))
    ladder = "torch-spyre pull request 4454, its test"
    yield Row("each of 32 cores reads 64 KiB, 8 the same", "memory", 29.7, "us", ladder, (replicated,), microseconds)
    yield Row(
        "broadcast against add, ratio of times",
        "ratio",
        (30 / 52, 33 / 52),
        "",
        probe,
        (broadcast, added),
        ratio,
        (0.0, 0.999),
    )


# ---------------------------------------------------------------------------------------------------------- products

PUBLISHED_SPLIT, ROW_SPLIT = Split(8, 4), Split(32, 1)


def products() -> Iterator[Row]:
    """Wide products, their splits, and the MLP block made of them."""
    yield from _wide()
    yield from _blocks()


def _wide() -> Iterator[Row]:
    suite = "torch-spyre performance suite, June 2026"
    planner = "torch-spyre pull request 2407"
    published = {1024: (0.090, 1.76), 4096: (0.318, 2.59), 12800: (1.020, 2.07)}
    runs = {columns: Run(wide, (columns, PUBLISHED_SPLIT), long=columns > 1024) for columns in published}
    for columns, (time, _) in published.items():
        name = f"512 x 4096 x {columns} on 8 x 4 cores"
        yield Row(name, "product", time, "ms", suite, (runs[columns],), milliseconds)
    for columns, (_, gain) in published.items():
        by_rows = Run(wide, (columns, ROW_SPLIT), long=True)
        name = f"512 x 4096 x {columns}, 32 x 1 against 8 x 4 cores"
        yield Row(name, "ratio", gain, "", planner, (by_rows, runs[columns]), ratio, (1.3, 3.5))
    together = Run(wide, (1024, Split(32, 1, group=32)), long=True)
    name = "512 x 4096 x 1024, 32 x 1 in one group of 32 against 8 x 4 cores"
    yield Row(name, "information", published[1024][1], "", planner, (together, runs[1024]), ratio)


def _blocks() -> Iterator[Row]:
    """The MLP block, by that reading of its utilisations that the clock of the named preset implies."""
    source = "torch-spyre pull request 2765"
    up = Run(wide, (mlp.MIDDLE, PUBLISHED_SPLIT), long=True)
    unpinned = up, Run(mlp.between, (PUBLISHED_SPLIT,)), Run(mlp.down, (PUBLISHED_SPLIT,), long=True)
    pinned, by_rows = (
        (
            Run(mlp.up_pinned, (split,), long=True),
            Run(mlp.swiglu_pinned, (split,), whole=False),
            Run(mlp.down_pinned, (split,), whole=False, long=True),
        )
        for split in (PUBLISHED_SPLIT, ROW_SPLIT)
    )

    def pinned_ns(times: Sequence[float]) -> float:
        return mlp.pinned_ns(PUBLISHED_SPLIT, times)

    def by_rows_ns(times: Sequence[float]) -> float:
        return mlp.pinned_ns(ROW_SPLIT, times)

    for name, utilisation, runs, time in (
        ("MLP block, pinned", 79, pinned, pinned_ns),
        ("MLP block, unpinned", 66, unpinned, mlp.unpinned_ns),
        ("MLP block, M/32", 33, by_rows, by_rows_ns),
    ):
        published = mlp.published_ms(utilisation)
        yield Row(name, "product", published, "ms", source, runs, lambda t, time=time: time(t) / 1e6)
    name = "MLP block, unpinned against pinned"
    yield Row(
        name,
        "ratio",
        79 / 66,
        "",
        source,
        (*unpinned, *pinned),
        lambda t: mlp.unpinned_ns(t[:3]) / pinned_ns(t[3:]),
        (1.001, 10.0),
    )
    name = "MLP block, M/32 against unpinned"
    yield Row(
        name,
        "ratio",
        (66 / 33, 2.5),
        "",
        source,
        (*by_rows, *unpinned),
        lambda t: by_rows_ns(t[:3]) / mlp.unpinned_ns(t[3:]),
        (1.001, 10.0),
    )


# -------------------------------------------------------------------------------------------------------------- ring


def ring() -> Iterator[Row]:
    """Exchanges between cores."""
    measured = "torch-spyre pull request 3844, 53 geometries"
    fit = f"{COST_MODEL}, relayout_ns"
    geometries = {
        (split, run): Run(relayout.exchange, (split, run), whole=False)
        for split in relayout.SPLITS
        for run in relayout.RUNS
    }
    everything = tuple(geometries.values())
    fastest, slowest = "relayout of 2.1 MB, fastest geometry", "relayout of 2.1 MB, slowest geometry"
    yield Row(fastest, "information", 2.3, "us", measured, everything, lambda t: min(t) / 1e3)
    yield Row(slowest, "information", 24.2, "us", measured, everything, lambda t: max(t) / 1e3)
    for (split, run), each in geometries.items():
        name = f"relayout of 2.1 MB, parts of 1/{split}, runs of {run} B"
        yield Row(name, "information", relayout.published_ns(split, run) / 1e3, "us", fit, (each,), microseconds)
    near, far = (Run(partial_sums.chains, (adjacent,), whole=False) for adjacent in (True, False))
    yield Row(
        "partial sums, partners 8 apart against adjacent",
        "ratio",
        (1.0, inf),
        "",
        "torch-spyre pull request 1986, without a figure",
        (far, near),
        ratio,
        (1.001, 100.0),
    )


def stages() -> Iterator[Row]:
    """Stages of a softmax: each not slower than the one before."""
    source = "torch-spyre scratchpad document, 1 core, median of 1000"
    for number, (before, after) in enumerate(pairwise(softmax.STAGES)):
        runs = Run(softmax.softmax, (number + 1,)), Run(softmax.softmax, (number,))
        name = f"softmax, {after.name} against {before.name}"
        yield Row(name, "ratio", after.microseconds / before.microseconds, "", source, runs, ratio, (0.0, 1.0))


FAMILIES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "calibration": calibration,
    "device memory": memory,
    "products": products,
    "ring": ring,
    "softmax": stages,
}
"""Rows that have programs in common are of one family."""


def all_rows() -> tuple[Row, ...]:
    """Every row that is a time or made of times."""
    return tuple(row for family in FAMILIES.values() for row in family())


# ------------------------------------------------------------------------------------------------- peaks and the sweep


@dataclass(frozen=True)
class Peak:
    """A published peak and what the description of a machine says, in 10^12 operations a second."""

    name: str
    machine: str
    presets: tuple[tuple[str, str], ...]
    element: str
    published: str
    source: str


PEAKS = (
    Peak(
        "spyre at 1.5 GHz, dl16",
        "spyre",
        (("clock", "1.5GHz"),),
        "dl16",
        "98.304",
        "planning document, work_division.py",
    ),
    Peak("spyre at 1.1 GHz, dl16", "spyre", (("clock", "1.1GHz"),), "dl16", "72.1", "from published utilisations"),
    Peak("RaPiD, fp8", "rapid", (), "fp8", "26.2", "RaPiD, JSSC 2022"),
    Peak("RaPiD, int4", "rapid", (), "int4", "104.9", "RaPiD, JSSC 2022"),
)


def peak(machine: Machine, element: str) -> float:
    """10^12 operations a second of all matrix units; a multiplication with an addition is two."""
    return 2 * machine.rate("pe", "mac", element) * 2 * machine.cores * machine.clock.ghz / 1e3


@dataclass(frozen=True)
class Swept:
    """A shape of the sweep: what the published formula says, and the program."""

    name: str
    formula_ns: float
    run: Run


def sweep() -> Iterator[Swept]:
    """Shapes without a published time: products, copies and kernels of several operands."""
    for rows in (64, 256, 512):
        for depth, columns in ((512, 1024), (1024, 1024), (1024, 2048), (2048, 1024)):
            run = Run(small, (rows, depth, columns), long=depth > 512)
            yield Swept(f"{rows} x {depth} x {columns}", formulas.product_ns(rows, depth, columns, 8, 4), run)
    for size in (1 << 20, 3 << 20, 8 << 20):
        copied = Run(device_memory.copies, (32, size // 32))
        yield Swept(f"copy of {size} bytes", formulas.memory_ns(size, size), copied)
        for operands in (1, 2):
            run = Run(device_memory.kernel, (size, operands))
            yield Swept(f"{operands} operands of {size} bytes", formulas.memory_ns(operands * size, size), run)
