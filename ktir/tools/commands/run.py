"""``ktir run``: execute a KTIR file on the CPU, look inside, compare it with another version, model its time.

A file that is a conformance case brings its own arguments and expected results: they are used when there is no
``--arg`` and no ``--random``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ktir.errors import ArgumentError, KtirError
from ktir.tools import tracing
from ktir.tools.console import FAULT, OK, USAGE, Console, problem_data

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from ktir.api import RunResult
    from ktir.arrays import Array
    from ktir.conformance.case import Case
    from ktir.module import Module

HELP = "execute a KTIR file on the CPU, look inside, compare versions, model its time"
EXAMPLES = """  ktir run spec/cases/row_softmax.ktir                       (a case: its header's inputs, checked)
  ktir run add.ktir --arg x=x.npy --arg n=4096 --out y=y.npy
  ktir run add.ktir --random x=67x1000xf16 --seed 7 --out y=y.npz --out z=y.npz
  ktir run add.ktir --arg x=x.npy --trace-values --trace-against reference.npz --rtol 1e-3
  ktir run add.ktir --arg x=x.npy --watch %sum@5 --watch %i --explain core=5
  ktir run --bisect old.ktir new.ktir                        (random inputs where none are given)
  ktir run add.ktir --func add --arg x=x.npy --arg y=y.npy --machine spyre --time --report r.html --trace t.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ktir.tools.arguments import FORMS, name_and_shape, name_and_value, report_file, trace_file

    parser.add_argument("file", metavar="FILE", type=Path, help="a KTIR text")
    parser.add_argument("--func", metavar="NAME", help="the function to run; default: main, or the only kernel")
    parser.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[], type=name_and_value, help=f"an argument: {FORMS}"
    )
    parser.add_argument(
        "--random",
        metavar="NAME[=SHAPExTYPE]",
        action="append",
        default=[],
        type=name_and_shape,
        help="a random array, such as x=67x1000xf16, or of the size of the function's views: floats of a normal "
        "distribution, integers 0 and 1",
    )
    parser.add_argument("--seed", metavar="N", type=tracing.count, default=0, help="of random arrays; default: 0")
    parser.add_argument(
        "--out",
        metavar="NAME=FILE",
        action="append",
        default=[],
        type=name_and_value,
        help="write an output array: .npy, .npz or .safetensors; several may go to one file",
    )
    parser.add_argument(
        "--machine", metavar="NAME", help="run within this machine's sizes; default: the case's, or no limits"
    )
    parser.add_argument("--no-checks", action="store_true", help="do not track uninitialised data, padding and races")
    parser.add_argument(
        "--numerics",
        choices=("f16", "dl16"),
        default="f16",
        help="what f16 is: that of IEEE, or the accelerator's format of 1 sign, 6 exponent and 9 mantissa bits",
    )
    parser.add_argument("--max-steps", metavar="N", type=tracing.count, help="stop after so many operations")
    parser.add_argument(
        "--max-bytes", metavar="N", type=tracing.count, help="stop where a memory or a value gets larger than that"
    )
    parser.add_argument(
        "--experimental", action="store_true", help="allow operations of the design that no released dialect has"
    )
    parser.add_argument("--time", action="store_true", help="model the time on the machine (default machine: spyre)")
    parser.add_argument(
        "--report", metavar="FILE", type=report_file, help="write the timing report: .html, .json, .txt or trace.json"
    )
    parser.add_argument(
        "--trace", metavar="FILE.json", type=trace_file, help="write a trace of the modelled time for Perfetto"
    )
    tracing.add_options(parser)


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
    return _bisect(arguments, console) if arguments.bisect is not None else _execute(arguments, console)


def _execute(arguments: argparse.Namespace, console: Console) -> int:
    from ktir import api

    job = _job(arguments)
    timing = arguments.time or arguments.report is not None or arguments.trace is not None
    outputs = [(name, Path(file)) for name, file in arguments.out]
    extra = (arguments.report, arguments.trace, arguments.trace_save)
    _refuse_outputs(job, outputs, [file for file in extra if file])
    machine = job.machine or ("spyre" if timing else None)
    looking = tracing.looking(arguments, console)
    try:
        with nullcontext() if looking.watch else console.step(f"running {job.function}"):  # watches print meanwhile
            result = api.run(
                job.module,
                job.function,
                job.arguments,
                machine=machine,
                checks=not arguments.no_checks,
                timing=timing,
                trace=looking.observers,
                numerics=arguments.numerics,
                max_steps=arguments.max_steps,
                max_bytes=arguments.max_bytes,
                experimental=arguments.experimental,
            )
        differences = job.case.check(result.outputs) if job.case else {}
    except KtirError as error:
        if looking.text and not console.as_json:
            print(looking.text)
        return console.failure({"error": problem_data(error), **looking.data}, console.describe(error), FAULT)
    looking.finish()
    _write_outputs(result, outputs)
    for diagnostic in result.diagnostics:
        console.show(diagnostic)
    report = result.report
    if report is not None:
        if arguments.report is not None:
            report.save(arguments.report)
        if arguments.trace is not None:
            report.save(arguments.trace, "trace")
    texts = [*_lines(job, result, differences), *([report.text] if report is not None else [])]
    texts += ["", looking.text] if looking.text else []
    console.result({**_data(job, result, differences), **looking.data}, "\n".join(texts))
    return OK


def _bisect(arguments: argparse.Namespace, console: Console) -> int:
    """Exit status 0 where the versions are the same, 1 where they differ, 2 where that cannot be said."""
    from ktir import api

    try:
        files = (arguments.bisect, arguments.file)
        first, second = files if arguments.bisect_comes_first else reversed(files)
        job = _job(arguments)
        with console.step(f"comparing {first} and {second}"):
            found = api.bisect(
                first,
                second,
                arguments.func or (job.case.function if job.case else None),
                job.arguments,
                machine=job.machine,
                checks=not arguments.no_checks,
                tolerance=tracing.tolerance_of(arguments),
                seed=arguments.seed,
                numerics=arguments.numerics,
                experimental=arguments.experimental,
            )
    except KtirError as error:
        return console.failure({"error": problem_data(error)}, console.describe(error), USAGE)
    console.result({"ok": True, **found.data}, str(found))
    return OK if found.same else FAULT


def _job(arguments: argparse.Namespace) -> _Job:
    from ktir import api
    from ktir.conformance.case import has_header, parse_case
    from ktir.interp.made_arguments import shape_of_argument, unwritten
    from ktir.tools.arguments import read_arguments

    module = api.parse(arguments.file, experimental=arguments.experimental)
    source = module.source or ""
    plain = not arguments.arg and not arguments.random
    case = parse_case(source, module.file) if plain and has_header(source) else None
    function = module.entry(arguments.func or (case.function if case else None))
    given = read_arguments(module.functions[function], arguments.arg, arguments.random, arguments.seed)
    values = dict(case.inputs if case else fitting(module.functions[function], given.values))
    for name, _ in arguments.out:
        if name not in values:
            values[name] = unwritten(shape_of_argument(module.functions[function], name, values))
    return _Job(
        module,
        function,
        values,
        arguments.machine or (case.machine if case else None),
        case,
        (arguments.file, *given.files, *(file for file in (arguments.bisect, arguments.trace_against) if file)),
    )


def fitting(function: FuncOp, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values``, with bits that a file had no word for as what the function takes."""
    import numpy as np

    from ktir.array_files import with_elements
    from ktir.interp.executor import argument_name
    from ktir.interp.made_arguments import elements_of_argument

    found = dict(values)
    for argument in function.body.block.args:
        name = argument_name(argument)
        value: object = found.get(name)
        if isinstance(value, np.ndarray) and cast("Array", value).dtype.type is np.void:
            elements = elements_of_argument(argument)
            if len(elements) == 1:
                found[name] = with_elements(cast("Array", value), next(iter(elements)).name, f"argument {name}")
    return found


def _refuse_outputs(job: _Job, outputs: Sequence[tuple[str, Path]], others: Sequence[Path]) -> None:
    """Refuses before the run what could not be written after it."""
    from ktir.array_files import refuse_names
    from ktir.files import refuse_outputs

    arrays: dict[Path, list[str]] = {}
    for name, file in outputs:
        arrays.setdefault(file, []).append(name)
    refuse_outputs([*arrays, *others], job.inputs)
    for file, names in arrays.items():
        refuse_names(file, names)


def _write_outputs(result: RunResult, outputs: Sequence[tuple[str, Path]]) -> None:
    from ktir.array_files import write_arrays

    for name, _ in outputs:
        if name not in result.outputs:
            stored = ", ".join(result.outputs) or "nothing"
            raise ArgumentError(f"nothing was stored to {name!r}", remedy=f"stored to: {stored}")
    files: dict[Path, dict[str, Any]] = {}
    for name, file in outputs:
        files.setdefault(file, {})[name] = result.outputs[name]
    for file, arrays in files.items():
        write_arrays(file, arrays)


def _lines(job: _Job, result: RunResult, differences: Mapping[str, float]) -> list[str]:
    numerics = "" if result.numerics == "f16" else f", f16 as {result.numerics}"
    lines = [f"{job.function}: {result.operations} operations in {result.launches} launch(es){numerics}"]
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
        "numerics": result.numerics,
        "outputs": outputs,
        "diagnostics": [problem_data(diagnostic) for diagnostic in result.diagnostics],
        "report": json.loads(result.report.json) if result.report is not None else None,
    }
