"""The command line of ``ktir-opt``: the names of ``mlir-opt``, with one dash or two, and xDSL's names beside them.

Some names mean something else in xDSL's own tool; here they mean what ``mlir-opt`` means. What ``mlir-opt`` takes and
has no use here, such as switching threads off, is taken and ignored, so that test scripts run unchanged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from ktir.tools.console import FAULT

SPLIT_MARKER = "// -----"

WITH_VALUE = {"split-input-file": "split-marker", "verify-diagnostics": "diagnostics-level"}
"""Switches that may have a value after ``=``, and the option that holds it."""

SWITCHES = frozenset(
    {
        *("split-input-file", "verify-diagnostics", "verify-roundtrip", "verify-each", "allow-unregistered-dialect"),
        *("mlir-print-op-generic", "mlir-print-debuginfo", "mlir-print-local-scope", "mlir-timing"),
        *("mlir-print-ir-before-all", "mlir-print-ir-after-all", "mlir-print-ir-after-change"),
        *("mlir-print-ir-after-failure", "mlir-disable-threading", "mlir-print-ir-module-scope", "show-dialects"),
    }
)
"""Switches of ``mlir-opt``, which may be given as ``=true`` or ``=false`` too."""

IGNORED = ("mlir-disable-threading", "mlir-print-ir-module-scope", "mlir-print-stacktrace-on-diagnostic")
"""Switches of ``mlir-opt`` that change nothing here: there is one thread, and modules are printed whole."""


class OptArgumentParser(argparse.ArgumentParser):
    """Ends with the status that LLVM's tools have for a wrong command line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}. Try: '{self.prog} --help'", file=sys.stderr)
        sys.exit(FAULT)


def argument_parser() -> OptArgumentParser:
    """The parser of everything but passes that are given as flags."""
    parser = OptArgumentParser(
        "ktir-opt",
        allow_abbrev=False,
        description="Reads KTIR (or any MLIR of its dialects), runs passes over it and prints it.",
        epilog="A pass can also be given as a flag of its own, with its options: --ktir-tile or --ktir-tile='x=1 y=2'.",
    )
    _add_input(parser)
    _add_printing(parser)
    _add_hidden(parser)
    return parser


def _add_input(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("input", nargs="?", default="-", help="file to read, - for standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="file to write, - for standard output")
    add(
        *("-p", "--pass-pipeline", "-pass-pipeline", "--passes"),
        dest="passes",
        action="append",
        default=[],
        metavar="PIPELINE",
        help="passes to run: a,b{x=1 y=2} or builtin.module(a,b)",
    )
    _flag(parser, "split-input-file", f"treat each part of the input between '{SPLIT_MARKER}' lines on its own")
    _flag(parser, "verify-diagnostics", "check that the diagnostics are those the input expects in its comments")
    _flag(parser, "verify-roundtrip", "check that printing and reading the input again gives the same IR")
    _flag(parser, "verify-each", "verify after every pass", default=True)
    _flag(parser, "strict", "refuse the spellings that are otherwise accepted with a warning")
    _flag(parser, "experimental", "allow operations of the design that no released dialect has")
    _flag(parser, "allow-unregistered-dialect", "accept operations of unknown dialects in generic form")
    add(
        "--dialect-version",
        choices=("old", "new"),
        help="print memory spaces and exchanges in the words of that generation; as written by default",
    )
    add("--machine", metavar="NAME", help="machine description that the passes ask, a name or a file")


def _add_printing(parser: argparse.ArgumentParser) -> None:
    _flag(parser, "mlir-print-op-generic", "print every operation in generic form", "print-op-generic")
    _flag(parser, "mlir-print-debuginfo", "print locations", "print-debuginfo")
    _flag(parser, "discard-value-names", "call values as mlir-opt does; by default they keep their names")
    _flag(parser, "mlir-print-local-scope", "print affine maps and sets where they are used")
    _flag(parser, "mlir-print-ir-before-all", "print the IR before each pass, on standard error")
    _flag(parser, "mlir-print-ir-after-all", "print the IR after each pass, on standard error", "print-between-passes")
    _flag(parser, "mlir-print-ir-after-change", "print the IR only after passes that changed it, on standard error")
    _flag(parser, "mlir-print-ir-after-failure", "print the IR that a pass failed on, on standard error")
    for when in ("before", "after"):
        parser.add_argument(
            *(f"--mlir-print-ir-{when}", f"-mlir-print-ir-{when}"),
            action="append",
            default=[],
            metavar="PASS",
            help=f"print the IR {when} these passes, on standard error",
        )
    _flag(parser, "mlir-timing", "print how long each step took, on standard error", "time-passes")
    _flag(parser, "show-dialects", "print the names of all dialects")
    _flag(parser, "list-passes", "print the names of all passes and what they do")
    _flag(parser, "version", "print the versions of the tool, the specification and the dialects")


def _add_hidden(parser: argparse.ArgumentParser) -> None:
    """xDSL's names, values of switches, and what is ignored."""
    add = parser.add_argument
    add("--no-verify-each", dest="verify_each", action="store_false", help=argparse.SUPPRESS)
    add("--disable-verify", action="store_true", help=argparse.SUPPRESS)
    add("--parsing-diagnostics", action="store_true", help=argparse.SUPPRESS)
    add("-f", "--frontend", choices=("mlir", "ktir"), help=argparse.SUPPRESS)
    add("-t", "--target", choices=("mlir", "ktir"), help=argparse.SUPPRESS)
    add("--split-marker", default=SPLIT_MARKER, help=argparse.SUPPRESS)
    add("--diagnostics-level", choices=("all", "only-expected"), default="all", help=argparse.SUPPRESS)
    for name in IGNORED:
        add(f"--{name}", f"-{name}", action="store_true", help=argparse.SUPPRESS)
    add("--mlir-print-op-on-diagnostic", "-mlir-print-op-on-diagnostic", help=argparse.SUPPRESS)


def _flag(
    parser: argparse.ArgumentParser, name: str, help: str, hidden_alias: str | None = None, *, default: bool = False
) -> None:
    """A switch with one or two dashes, as LLVM's tools take them."""
    destination = name.replace("-", "_")
    parser.add_argument(f"--{name}", f"-{name}", dest=destination, action="store_true", default=default, help=help)
    if hidden_alias is not None:
        parser.add_argument(f"--{hidden_alias}", dest=destination, action="store_true", help=argparse.SUPPRESS)


def with_separate_values(arguments: Sequence[str]) -> list[str]:
    """Writes out what LLVM's tools take for a switch: ``--split-input-file=MARK``, ``--verify-each=false``."""
    separate: list[str] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        switch = name.lstrip("-")
        if not equals or not name.startswith("-"):
            separate.append(argument)
        elif switch in WITH_VALUE:
            separate += [f"--{switch}", f"--{WITH_VALUE[switch]}={value}"]
        elif value in ("true", "1") and switch in SWITCHES:
            separate.append(f"--{switch}")
        elif value in ("false", "0") and switch in SWITCHES:
            separate += ["--no-verify-each"] if switch == "verify-each" else []
        else:
            separate.append(argument)
    return separate


def wants_dump(options: argparse.Namespace, when: str, name: str) -> bool:
    """Whether the IR ``before`` or ``after`` the pass called ``name`` is to be printed, if it changed or not."""
    named: list[str] = getattr(options, f"mlir_print_ir_{when}")
    every: bool = getattr(options, f"mlir_print_ir_{when}_all")
    return every or any(name in each.split(",") for each in named)
