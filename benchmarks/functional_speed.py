"""How long functional runs of dataflow programs take beside the KTIR executor, on the same arrays.

    python -m benchmarks.functional_speed [--only TEXT,..] [--repeat N] [--json FILE]
        [--harness DIR --examples DIR]

Kernels are those of ``spec/cases``, and with ``--harness``, the folder of the side-by-side harness for ktir-cpu, all of
its cases, read from ``--examples``; with ``--only`` those that have one of the texts in their name. Times are
milliseconds of CPU time of this process with one thread, the least of some runs that take turns, from arrays in to
arrays out. *run* is the functional run, *plain* and *checked* are the executor without and with checks. What needs no
data is done before: *lower* is parsing and lowering, *prepare* putting the program's executions into batches. *once* is
prepare and the first run together. Results are checked against what the case expects; the exit status is 1 where one is
wrong, 2 where nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import ktir
from benchmarks import peer_adapter, peer_dataflow
from ktir.arrays import dtype_name
from ktir.backends.dataflow.lower import lower_to_dfp
from ktir.backends.dataflow.lower.launches import ArrayArgument
from ktir.backends.dataflow.run import Runner
from ktir.conformance.case import parse_case
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import Program

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ROOT = Path(__file__).parent.parent
Arrays = dict[str, Any]
LIMIT = 6.0
"""How many times as long as the executor a functional run may take."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """``lower`` makes the program, ``execute`` runs the executor with or without checks on arrays that it places;
    ``check`` raises for outputs that are wrong."""

    name: str
    arrays: Arrays
    lower: Callable[[], Any]
    execute: Callable[[bool], float]
    check: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds. ``operations`` of all cores were done in so many ``batches``."""

    name: str
    lower: float
    prepare: float
    run: float
    first: float
    plain: float
    checked: float
    operations: int
    batches: int
    right: bool

    @property
    def ratio(self) -> float:
        """The functional run against the executor without checks."""
        return self.run / self.plain


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and what was found."""
    began = time.process_time()
    found = work()
    return 1e3 * (time.process_time() - began), found


def measured(kernel: Kernel, repeat: int) -> Measured:
    """Runs both in turn."""
    lower, lowered = timed(kernel.lower)
    prepare, runner = timed(lambda: Runner(lowered))
    first, result = timed(lambda: runner.run(kernel.arrays))
    try:
        kernel.check({**kernel.arrays, **result.outputs})
        right = True
    except AssertionError:
        right = False
    runs, plain, checked = [first], list[float](), list[float]()
    for _ in range(repeat):
        runs.append(timed(lambda: runner.run(kernel.arrays))[0])
        plain.append(1e3 * kernel.execute(False))
        checked.append(1e3 * kernel.execute(True))
    statistics = result.statistics
    return Measured(
        kernel.name,
        lower,
        prepare,
        min(runs),
        first,
        min(plain),
        min(checked),
        statistics.operations,
        statistics.batches,
        right,
    )


class NotFoundError(Exception):
    """The kernels that were asked for are not where they should be."""


@dataclass(frozen=True, slots=True)
class Named:
    """A kernel that is read when ``load`` is called."""

    name: str
    load: Callable[[], Kernel]


def of_the_specification() -> list[Named]:
    """The conformance cases."""
    return [Named(path.stem, partial(_case, path)) for path in sorted((ROOT / "spec/cases").glob("*.ktir"))]


def _case(path: Path) -> Kernel:
    text = path.read_text()
    case = parse_case(text, str(path))
    machine = ktir.machine(case.machine or "spyre")
    launch = {
        name: ArrayArgument(value.shape, dtype_name(value)) if isinstance(value, np.ndarray) else value
        for name, value in case.inputs.items()
    }
    program = Program(parse_module(text, str(path)))
    program.entry(case.function).compiled()

    def execute(checks: bool) -> float:
        return timed(lambda: program.run(case.function, dict(case.inputs), checks=checks))[0] / 1e3

    return Kernel(
        path.stem,
        {name: value for name, value in case.inputs.items() if isinstance(value, np.ndarray)},
        lambda: lower_to_dfp(parse_module(text, str(path)), machine, case.function, launch),
        execute,
        case.check,
    )


def of_the_peer(harness: Path, examples: Path) -> list[Named]:
    """The cases of ktir-cpu's example kernels. Raises :class:`NotFoundError` where one of the folders lacks them."""
    if not (harness / "peer_cases.py").is_file():
        raise NotFoundError(f"--harness: there is no peer_cases.py in {harness}")
    sys.path.insert(0, str(harness))
    cases = import_module("peer_cases").CASES
    missing = sorted({case.file for case in cases if not (examples / case.file).is_file()})
    if missing:
        raise NotFoundError(f"--examples: {examples} lacks {len(missing)} of the kernels, such as {missing[0]}")
    return [Named(case.id, partial(_read, case, examples)) for case in cases]


def _read(case: Any, examples: Path) -> Kernel:
    try:
        text = case.text(str(examples))
    except AssertionError as error:
        raise NotFoundError(
            f"--examples: {examples / case.file} is another version than case {case.id} is for"
        ) from error
    return _of_peer(case, text)


def _of_peer(case: Any, text: str) -> Kernel:
    built = case.build()
    arrays, launch = peer_dataflow.arguments(case, built)
    machine = ktir.machine("spyre", **({"scratchpad": f"{case.lx_mb}MiB"} if case.lx_mb else {}))

    def execute(checks: bool) -> float:
        return (peer_adapter.run_checked if checks else peer_adapter.run)(case, text, case.build())["exec_s"]

    return Kernel(
        case.id,
        arrays,
        lambda: lower_to_dfp(parse_module(text, case.file), machine, case.func, launch),
        execute,
        lambda outputs: case.check({name: outputs[name] for name in case.outputs}, built),
    )


def options_of(arguments: list[str]) -> argparse.Namespace:
    """The command line; exits with 2 where it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.functional_speed",
        description="times functional runs of dataflow programs beside the KTIR executor",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT,..", help="only kernels that have one of the texts in their name"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="of which the least time counts (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--harness", type=Path, metavar="DIR", help="the side-by-side harness for ktir-cpu")
    parser.add_argument("--examples", type=Path, metavar="DIR", help="the examples of ktir-cpu")
    options = parser.parse_args(arguments)
    if (options.harness is None) != (options.examples is None):
        parser.error("--harness and --examples go together")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: no folder {options.json.absolute().parent}")
    if options.repeat < 1:
        parser.error("--repeat is at least 1")
    return options


def main(arguments: list[str]) -> int:
    """Prints a line for each kernel and what is over the limit."""
    options = options_of(arguments)
    try:
        named = of_the_specification()
        if options.harness is not None:
            named += of_the_peer(options.harness, options.examples)
        found = [*_all_measured(chosen(named, options.only), options.repeat)]
    except NotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    over = [each.name for each in found if each.ratio > LIMIT]
    print(f"{len(found)} kernels, over {LIMIT:g} times the executor without checks: {', '.join(over) or 'none'}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) | {"ratio": each.ratio} for each in found], indent=1) + "\n")
    return 0 if all(each.right for each in found) else 1


def chosen(named: list[Named], only: str) -> list[Named]:
    """Those with one of the texts of ``only``, which commas part, in their name. Raises where no name has a text."""
    texts = [text for text in only.split(",") if text]
    for text in texts:
        if not any(text in each.name for each in named):
            names = ", ".join(each.name for each in named)
            raise NotFoundError(f"--only: no kernel has {text!r} in its name; there are {names}")
    return [each for each in named if not texts or any(text in each.name for text in texts)]


def _all_measured(named: Iterable[Named], repeat: int) -> Iterator[Measured]:
    """Measures and prints those that have a dataflow program; of the others it is printed why they have none."""
    print(
        f"{'kernel':28}{'lower':>8}{'prepare':>9}{'run':>9}{'plain':>9}{'checked':>9}{'ratio':>7}{'checked':>8}{'once':>7}"
    )
    for each in named:
        try:
            kernel = each.load()
            kernel.lower()
        except ktir.KtirError as error:
            print(f"{each.name:28}{type(error).__name__}: {error.message[:80]}")
            continue
        row = measured(kernel, repeat)
        print(
            f"{row.name:28}{row.lower:8.1f}{row.prepare:9.1f}{row.run:9.2f}{row.plain:9.2f}{row.checked:9.2f}"
            f"{row.ratio:7.1f}{row.run / row.checked:8.1f}{(row.prepare + row.first) / row.plain:7.1f}"
            + ("" if row.right else "  WRONG"),
            flush=True,
        )
        yield row


if __name__ == "__main__":
    if ONE_THREAD.items() <= os.environ.items():
        sys.exit(main(sys.argv[1:]))
    again = [sys.executable, "-m", "benchmarks.functional_speed", *sys.argv[1:]]
    sys.exit(subprocess.run(again, env=os.environ | ONE_THREAD, check=False).returncode)
