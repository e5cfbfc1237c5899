"""``ktir report``: model the time of a saved package."""

from __future__ import annotations

import argparse
from pathlib import Path

from ktir.tools.console import OK, Console

HELP = "model the time of a saved package and report where it goes"
EXAMPLES = """  ktir report minilm.ktirpkg
  ktir report minilm.ktirpkg --html report.html --trace trace.json
  ktir report minilm.ktirpkg --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("package", metavar="PKG", type=Path, help="a package that ktir compile or Program.save wrote")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a self-contained page")
    parser.add_argument("--trace", metavar="FILE", type=Path, help="write a trace for Perfetto: *trace.json")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Prints the report."""
    import json

    from ktir import api
    from ktir.files import refuse_input

    files = [file for file in (arguments.html, arguments.trace) if file is not None]
    for file in files:
        refuse_input(file, [arguments.package])
    program = api.load(arguments.package)
    with console.step("simulating"):
        report = program.report()
    for file in files:
        report.save(file)
    console.result({"ok": True, **json.loads(report.json)}, report.text)
    return OK
