"""Measures one kernel in a process of its own: time, memory, first compile. Prints a line of JSON.

    python -m benchmarks.measure NAME --threads N [--repeat N]

*first compile* is what the first function of a process costs from the parsed module to code ready to run, the import of
the operations included. *growth* is how far the resident memory of the process rises above what it was after importing,
arrays of the caller included. Times are the least of some runs after a first one, with and without checks in turn.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Times:
    """The least times of some runs, in milliseconds: of all processors, and by the clock."""

    cpu: float
    wall: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a kernel costs. Memory in bytes; ``data`` are the arrays of the caller. ``near`` says whether the result is
    that of eager PyTorch, ``same`` whether checks leave its bits alone."""

    name: str
    lines: int
    parse: float
    first_compile: float
    plain: Times
    checked: Times
    eager: Times
    data: int
    growth: int
    growth_checked: int
    near: bool
    same: bool


class Stopwatch:
    """The least of several times of one thing."""

    def __init__(self) -> None:
        self.cpu, self.wall = float("inf"), float("inf")

    def run(self, work: Callable[[], Any]) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        self.cpu = min(self.cpu, 1e3 * (time.process_time() - cpu))
        self.wall = min(self.wall, 1e3 * (time.perf_counter() - wall))
        return result

    @property
    def times(self) -> Times:
        return Times(self.cpu, self.wall)


def resident(entry: str) -> int:
    """A figure of this process's memory by its name in the kernel's report, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(entry))
    return int(line.split()[1]) << 10


def highest_over(before: int, work: Callable[[], Any]) -> tuple[Any, int]:
    """The result of ``work``, and how far the memory rose above ``before`` meanwhile."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest mark so far
    result = work()
    return result, resident("VmHWM") - before


def measure(name: str, threads: int, repeat: int) -> Measured:
    import numpy as np
    import torch

    from benchmarks.kernels import BENCHMARKS
    from ktir.dialect.text.parser import parse_module
    from ktir.interp.executor import Program

    torch.set_num_threads(threads)
    before = resident("VmRSS")
    case = BENCHMARKS[name]()
    parsing, compiling = Stopwatch(), Stopwatch()
    program = Program(parsing.run(lambda: parse_module(case.text, name)))
    compiling.run(program.entry("kernel").compiled)

    def run(checks: bool) -> Any:
        return program.run("kernel", case.inputs, checks=checks).outputs[case.output]

    plain, growth = highest_over(before, lambda: run(False))
    checked, growth_checked = highest_over(before + plain.nbytes, lambda: run(True))
    same = plain.tobytes() == checked.tobytes()
    del checked
    without, having, eager = Stopwatch(), Stopwatch(), Stopwatch()
    for _ in range(repeat):
        without.run(lambda: run(False))
        having.run(lambda: run(True))
    tensors = {
        key: torch.from_numpy(value).float() if value.dtype.kind == "f" else torch.from_numpy(value).long()
        for key, value in case.inputs.items()
    }
    expected = case.eager(**tensors)
    for _ in range(repeat + 2):
        eager.run(lambda: case.eager(**tensors))
    near = np.allclose(plain.astype(np.float32), expected.numpy(), rtol=1e-2, atol=case.tolerance)
    return Measured(
        name,
        case.text.count("\n"),
        parsing.cpu,
        compiling.cpu,
        without.times,
        having.times,
        eager.times,
        sum(value.nbytes for value in case.inputs.values()),
        growth,
        growth_checked,
        bool(near),
        same,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--threads", type=int, required=True, help="threads of numpy and of torch")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind; the least counts")
    options = parser.parse_args()
    for variable in THREADS:  # numpy reads them when it is imported
        os.environ[variable] = str(options.threads)
    print(json.dumps(asdict(measure(options.name, options.threads, options.repeat))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
