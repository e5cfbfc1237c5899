"""``ktir report``: model the time of a saved package, or compare two reports."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from zipfile import is_zipfile

from ktir.errors import FileUnusable, KtirError, ReportError
from ktir.tools.console import FAULT, OK, USAGE, Console, problem_data

HELP = "model the time of a saved package and report where it goes, or compare two reports"
EXAMPLES = """  ktir report minilm.ktirpkg
  ktir report minilm.ktirpkg --html report.html --trace trace.json
  ktir report minilm.ktirpkg --json > before.json
  ktir report diff before.json minilm.ktirpkg --tolerance 0.02      (exit status 0 same, 1 different, 2 trouble)"""
COMPARE = "diff"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ktir.tools.arguments import page_file, trace_file

    parser.add_argument(
        "words",
        metavar="PKG | diff A B",
        nargs="+",
        help="a package that ktir compile or Program.save wrote; with diff two of: a package, a report in JSON",
    )
    parser.add_argument("--html", metavar="FILE.html", type=page_file, help="write a self-contained page")
    parser.add_argument("--trace", metavar="FILE.json", type=trace_file, help="write a trace for Perfetto")
    parser.add_argument(
        "--tolerance",
        metavar="X",
        type=share,
        help="with diff: the share by which a time may differ and count as the same; default: 0",
    )


def share(text: str) -> float:
    """A number from 0 on; for argparse's ``type=``."""
    from ktir.tools.tracing import tolerance

    return tolerance(text)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Prints the report, or what differs between two."""
    first, *rest = arguments.words
    if first == COMPARE and rest:
        return _compare(rest, arguments, console)
    if arguments.tolerance is not None:
        return _usage(console, "--tolerance is for diff A B")
    if rest:
        return _usage(console, f"one package is reported at a time, not {1 + len(rest)}; two are compared by diff A B")
    return _report(Path(first), arguments, console)


def _report(package: Path, arguments: argparse.Namespace, console: Console) -> int:
    from ktir import api
    from ktir.files import refuse_outputs

    refuse_outputs([file for file in (arguments.html, arguments.trace) if file is not None], [package])
    program = api.load(package)
    with console.step("simulating"):
        report = program.report()
    if arguments.html is not None:
        report.save(arguments.html, "html")
    if arguments.trace is not None:
        report.save(arguments.trace, "trace")
    console.result({"ok": True, **json.loads(report.json)}, report.text)
    return OK


def _compare(words: Sequence[str], arguments: argparse.Namespace, console: Console) -> int:
    from ktir.backends.dataflow.reports.comparison import compare

    if len(words) != 2:
        return _usage(console, f"diff compares two reports, not {len(words)}")
    if arguments.html is not None or arguments.trace is not None:
        return _usage(console, "diff writes no page and no trace; use --json, or report each side")
    try:
        with console.step("comparing"):
            before, after = (_data(Path(word)) for word in words)
        found = compare(before, after, (words[0], words[1]))
    except KtirError as error:
        return console.failure({"error": problem_data(error)}, console.describe(error), USAGE)
    same = found.same(arguments.tolerance or 0.0)
    console.result({"ok": True, "same": same, **found.data}, str(found))
    return OK if same else FAULT


def _usage(console: Console, message: str) -> int:
    data = {"error": {"code": "Usage", "message": message}}
    return console.failure(data, f"usage: ktir report [options] PKG | diff A B\nktir: error: {message}", USAGE)


def _data(path: Path) -> Mapping[str, Any]:
    """The report in a JSON file, of ``ktir run --time --json`` too, or of a package that is simulated now."""
    if is_zipfile(path):  # a package, whatever its name
        from ktir import api

        return api.load(path).report().data
    try:
        data: object = json.loads(path.read_bytes())
    except OSError as error:
        raise FileUnusable(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ReportError(
            f"{path} is no report: {error}", remedy="give a package, or what ktir report --json wrote"
        ) from None
    if not isinstance(data, dict):
        raise ReportError(f"{path} is no report", remedy="give a package, or what ktir report --json wrote")
    whole = cast("dict[str, Any]", data)
    inner: object = whole.get("report")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else whole
