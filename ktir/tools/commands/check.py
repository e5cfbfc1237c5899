"""``ktir check``: what can be said about a program without running it."""

from __future__ import annotations

import argparse
from pathlib import Path

from ktir.tools.console import FAULT, OK, Console, problem_data

HELP = "check a KTIR file: ownership, bounds, overlaps, padding, races"
EXAMPLES = """  ktir check softmax.ktir
  ktir check softmax.ktir --machine spyre
  ktir check softmax.ktir --strict --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a KTIR text")
    parser.add_argument("--machine", metavar="NAME", help="also check against this machine (name or .toml file)")
    parser.add_argument("--strict", action="store_true", help="refuse text that breaks a rule of the specification")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Exit status 1 when a finding is an error."""
    from ktir import api

    with console.step("checking"):
        module = api.parse(arguments.file, strict=arguments.strict)
        findings = api.check(module, machine=arguments.machine)
    errors = [finding for finding in findings if finding.severity == "error"]
    console.result(
        {"ok": not errors, "file": str(arguments.file), "diagnostics": [problem_data(finding) for finding in findings]},
        "\n".join([*map(console.describe, findings), _summary(len(errors), len(findings) - len(errors))]),
    )
    return FAULT if errors else OK


def _summary(errors: int, others: int) -> str:
    if not errors and not others:
        return "no findings"
    return f"{errors} error{'s' * (errors != 1)}, {others} warning{'s' * (others != 1)} or notes"
