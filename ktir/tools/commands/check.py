"""``ktir check``: what can be said about a program without running it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ktir.tools.arguments import name_and_value
from ktir.tools.console import FAULT, OK, Console, problem_data

if TYPE_CHECKING:
    from ktir.analysis.check import Tally
    from ktir.analysis.findings import Topic

HELP = "check a KTIR file: ownership, bounds, overlaps, coverage, races, limits of a machine"
EXAMPLES = """  ktir check softmax.ktir
  ktir check softmax.ktir --machine spyre
  ktir check softmax.ktir --arg n_rows=4096
  ktir check softmax.ktir --strict --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a KTIR text")
    parser.add_argument("--machine", metavar="NAME", help="also check against this machine (name or .toml file)")
    parser.add_argument(
        "--arg",
        metavar="NAME=N",
        action="append",
        default=[],
        type=name_and_integer,
        help="the value of an integer argument; what is not given may be anything",
    )
    parser.add_argument(
        "--experimental", action="store_true", help="allow operations of the design that no released dialect has"
    )
    parser.add_argument("--strict", action="store_true", help="refuse text that breaks a rule of the specification")


def name_and_integer(text: str) -> tuple[str, int]:
    """``NAME=N``; for argparse's ``type=``."""
    name, value = name_and_value(text)
    try:
        return name, int(value, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is not an integer") from None


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Exit status 1 when a finding is an error."""
    from ktir import api

    with console.step("checking"):
        module = api.parse(arguments.file, strict=arguments.strict, experimental=arguments.experimental)
        examination = api.examine(module, machine=arguments.machine, arguments=dict(arguments.arg))
    findings, tallies = examination.findings, examination.tallies
    errors = [finding for finding in findings if finding.severity == "error"]
    console.result(
        {
            "ok": not errors,
            "file": str(arguments.file),
            "diagnostics": [problem_data(finding) for finding in findings],
            "questions": {
                topic: {"asked": tally.asked, "decided": tally.decided, "unknown": tally.unknown}
                for topic, tally in tallies.items()
            },
        },
        "\n".join(
            [*map(console.describe, findings), _summary(len(errors), len(findings) - len(errors)), _questions(tallies)]
        ),
    )
    return FAULT if errors else OK


def _questions(tallies: Mapping[Topic, Tally]) -> str:
    """``96 questions: 95 decided, 1 unknown (bounds 1)``"""
    asked, open_ = (sum(each) for each in ([t.asked for t in tallies.values()], [t.unknown for t in tallies.values()]))
    where = ", ".join(f"{topic} {tally.unknown}" for topic, tally in tallies.items() if tally.unknown)
    return f"{asked} questions: {asked - open_} decided, {open_} unknown" + (f" ({where})" if where else "")


def _summary(errors: int, others: int) -> str:
    if not errors and not others:
        return "no findings"
    return f"{errors} error{'s' * (errors != 1)}, {others} warning{'s' * (others != 1)} or notes"
