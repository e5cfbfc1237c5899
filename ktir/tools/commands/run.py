"""``ktir run``: execute a KTIR file on the CPU, and optionally model its time.

A file that is a conformance case brings its own arguments and expected results: they are used when there is no
``--arg``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktir.errors import ArgumentError
from ktir.tools.console import OK, Console, problem_data

if TYPE_CHECKING:
    from ktir.api import RunResult
    from ktir.conformance.case import Case
    from ktir.module import Module

HELP = "execute a KTIR file on the CPU, and model its time"
EXAMPLES = """  ktir run spec/cases/row_softmax.ktir                       (a case: its header's inputs, checked)
  ktir run add.ktir --arg x=x.npy --arg n=4096 --out y=y.npy
  ktir run add.ktir --func add --arg x=x.npy --arg y=y.npy --machine spyre --time --report r.html --trace t.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ktir.tools.arguments import FORMS, name_and_value

    parser.add_argument("file", metavar="FILE", type=Path, help="a KTIR text")
    parser.add_argument("--func", metavar="NAME", help="the function to run; default: main, or the only kernel")
    parser.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[], type=name_and_value, help=f"an argument: {FORMS}"
    )
    parser.add_argument(
        "--out", metavar="NAME=FILE.npy", action="append", default=[], type=name_and_value, help="write an output array"
    )
    parser.add_argument(
        "--machine", metavar="NAME", help="run within this machine's sizes; default: the case's, or no limits"
    )
    parser.add_argument("--no-checks", action="store_true", help="do not track uninitialised data, padding and races")
    parser.add_argument("--time", action="store_true", help="model the time on the machine (default machine: spyre)")
    parser.add_argument("--report", metavar="FILE", type=Path, help="write the timing report: .html, .json or .txt")
    parser.add_argument("--trace", metavar="FILE", type=Path, help="write a trace for Perfetto: *trace.json")


@dataclass(frozen=True)
class _Job:
    """What is to be run, and what it must give."""

    module: Module
    function: str
    arguments: Mapping[str, Any]
    machine: str | None
    case: Case | None
    inputs: tuple[Path, ...]


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Prints the outputs; a case that gives other values than it expects raises."""
    from ktir import api

    job = _job(arguments)
    timing = arguments.time or arguments.report is not None or arguments.trace is not None
    outputs = [(name, Path(file)) for name, file in arguments.out]
    _refuse_overwriting(job, [file for _, file in outputs] + [f for f in (arguments.report, arguments.trace) if f])
    machine = job.machine or ("spyre" if timing else None)
    with console.step(f"running {job.function}"):
        result = api.run(
            job.module,
            job.function,
            job.arguments,
            machine=machine,
            checks=not arguments.no_checks,
            timing=timing,
        )
    differences = job.case.check(result.outputs) if job.case else {}
    _write_outputs(result, outputs)
    for diagnostic in result.diagnostics:
        console.show(diagnostic)
    report = result.report
    if report is not None:
        for path in (arguments.report, arguments.trace):
            if path is not None:
                report.save(path)
    console.result(
        _data(job, result, differences),
        "\n".join([*_lines(job, result, differences), *([report.text] if report is not None else [])]),
    )
    return OK


def _job(arguments: argparse.Namespace) -> _Job:
    from ktir import api
    from ktir.conformance.case import has_header, parse_case
    from ktir.tools.arguments import read_arguments
    from ktir.tools.outputs import fresh_output

    module = api.parse(arguments.file)
    given = read_arguments(arguments.arg)
    source = module.source or ""
    case = parse_case(source, module.file) if not arguments.arg and has_header(source) else None
    function = module.entry(arguments.func or (case.function if case else None))
    values = dict(case.inputs if case else given.values)
    for name, _ in arguments.out:
        if name not in values:
            values[name] = fresh_output(module.functions[function], name)
    return _Job(
        module,
        function,
        values,
        arguments.machine or (case.machine if case else None),
        case,
        (arguments.file, *given.files),
    )


def _refuse_overwriting(job: _Job, files: Sequence[Path]) -> None:
    from ktir.files import refuse_input

    for file in files:
        refuse_input(file, job.inputs)


def _write_outputs(result: RunResult, outputs: Sequence[tuple[str, Path]]) -> None:
    from io import BytesIO

    import numpy as np

    from ktir.files import write_whole

    for name, file in outputs:
        if name not in result.outputs:
            stored = ", ".join(result.outputs) or "nothing"
            raise ArgumentError(f"nothing was stored to {name!r}", remedy=f"stored to: {stored}")
        data = BytesIO()
        np.save(data, result.outputs[name])
        write_whole(file, data.getvalue())


def _lines(job: _Job, result: RunResult, differences: Mapping[str, float]) -> list[str]:
    lines = [f"{job.function}: {result.operations} operations in {result.launches} launch(es)"]
    for name, array in result.outputs.items():
        text = f"  {name}: {_summary(array)}"
        lines.append(
            f"{text}; as expected, largest difference {differences[name]:.3g}" if name in differences else text
        )
    return lines


def _summary(array: Any) -> str:
    import numpy as np

    shape = "x".join(map(str, array.shape)) or "scalar"
    if not array.size:
        return f"{shape} {array.dtype}"
    values = array.astype(np.float64)
    return f"{shape} {array.dtype}, {values.min():.6g} .. {values.max():.6g}, mean {values.mean():.6g}"


def _data(job: _Job, result: RunResult, differences: Mapping[str, float]) -> dict[str, Any]:
    import json

    outputs: dict[str, dict[str, Any]] = {
        name: {"shape": list(a.shape), "dtype": str(a.dtype)} for name, a in result.outputs.items()
    }
    for name, difference in differences.items():
        outputs[name]["largest_difference"] = difference
    return {
        "ok": True,
        "function": job.function,
        "machine": job.machine,
        "case": job.case.title if job.case else None,
        "operations": result.operations,
        "launches": result.launches,
        "outputs": outputs,
        "diagnostics": [problem_data(diagnostic) for diagnostic in result.diagnostics],
        "report": json.loads(result.report.json) if result.report is not None else None,
    }
