"""Times the executor against eager PyTorch in f32: a table, and the same as JSON.

    python -m benchmarks.executor [--json FILE] [--only NAME,..] [--threads N] [--repeat N]

Times are CPU seconds of this process, the least of some runs after a first one. *load* is parsing and compiling. Every
result is compared with the eager one, and the results with and without checks bit by bit; exits with 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of CPU time; ``right`` says whether the results are."""

    name: str
    load: float
    plain: float
    checked: float
    eager: float
    right: bool


def least(run: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """The result of ``run`` and the least CPU time of some runs, in milliseconds."""
    result, times = run(), list[float]()
    for _ in range(repeat):
        began = time.process_time()
        result = run()
        times.append(time.process_time() - began)
    return result, 1e3 * min(times)


def measure(name: str, repeat: int) -> Row:
    import numpy as np
    import torch

    from benchmarks.kernels import BENCHMARKS
    from ktir.dialect.text.parser import parse_module
    from ktir.interp.executor import Program

    case = BENCHMARKS[name]()
    began = time.process_time()
    program = Program(parse_module(case.text, name))
    program.entry("kernel").compiled()
    load = 1e3 * (time.process_time() - began)
    plain, plain_time = least(lambda: program.run("kernel", case.inputs, checks=False), repeat)
    checked, checked_time = least(lambda: program.run("kernel", case.inputs, checks=True), repeat)
    tensors = {key: torch.from_numpy(value).float() for key, value in case.inputs.items()}
    expected, eager_time = least(lambda: case.eager(**tensors), repeat + 1)
    found = plain.outputs[case.output]
    near = np.allclose(found.astype(np.float32), expected.numpy(), rtol=1e-2, atol=case.tolerance)
    right = bool(near) and found.tobytes() == checked.outputs[case.output].tobytes()
    return Row(name, load, plain_time, checked_time, eager_time, right)


def table(rows: Sequence[Row]) -> str:
    """One line a benchmark."""
    lines = [f"{'':<16}{'load':>8}{'run':>10}{'checked':>10}{'eager':>10}{'run/eager':>11}{'checks':>8}   CPU ms"]
    for row in rows:
        ratio, overhead = row.plain / row.eager, row.checked / row.plain
        lines.append(
            f"{row.name:<16}{row.load:>8.1f}{row.plain:>10.1f}{row.checked:>10.1f}{row.eager:>10.1f}{ratio:>10.1f}x"
            f"{overhead:>7.2f}x   {'right' if row.right else 'WRONG'}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:

    options = _options(arguments)
    rows = [measure(name, options.repeat) for name in options.only.split(",")]
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return int(not all(row.right for row in rows))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options. The number of threads is set before numpy is imported, which reads it only then."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args(arguments)
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, str(options.threads))
    from benchmarks.kernels import BENCHMARKS

    options.only = options.only or ",".join(BENCHMARKS)
    if unknown := [name for name in options.only.split(",") if name not in BENCHMARKS]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
