"""The ``ktir`` command: run, compile, check and report from a shell.

Each subcommand is a file of :mod:`ktir.tools.commands` with ``HELP``, ``EXAMPLES``, ``add_arguments`` and ``run``.
Nothing that takes time is imported before a subcommand runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from ktir.errors import KtirError
from ktir.tools.console import FAULT, INTERNAL, INTERRUPTED, OK, USAGE, Console, problem_data
from ktir.version import DIALECTS, SPECIFICATION, VERSION

COMMANDS = ("run", "compile", "check", "report", "doctor")
TRACEBACK_VARIABLE = "KTIR_TRACEBACK"


class UsageError(Exception):
    """The command line is wrong; ``usage`` is the synopsis to show."""

    def __init__(self, message: str, usage: str = "") -> None:
        super().__init__(message)
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that usage errors can be JSON as well."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())


def version_text() -> str:
    """The versions of the tool, the specification and the dialects."""
    dialects = ", ".join(f"{name} {version}" for name, version in DIALECTS.items())
    return f"ktir {VERSION}\nspecification: {SPECIFICATION}\ndialects: {dialects}"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="ktir",
        description="Compile, check, run and time KernelTile IR on a CPU.",
        epilog="ktir COMMAND --help shows examples. ktir-opt transforms IR text.",
    )
    parser.add_argument("--version", action="version", version=version_text())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = _command(name)
        sub = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
        sub.add_argument("--json", action="store_true", help="one JSON object on standard output instead of text")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    console = Console(as_json="--json" in words)
    try:
        parsed = build_parser().parse_args(words)
        return _command(parsed.command).run(parsed, console)
    except UsageError as error:
        data = {"error": {"code": "Usage", "message": str(error)}}
        return console.failure(data, f"{error.usage}ktir: error: {error}", USAGE)
    except KtirError as error:
        return console.failure({"error": problem_data(error)}, console.describe(error), FAULT)
    except RecursionError:
        return _report(console, "NestingTooDeep", "the input is nested too deep", FAULT)
    except KeyboardInterrupt:
        return _report(console, "Interrupted", "interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        text = f"{type(error).__name__}: {error}; a fault of ktir, please report it with {TRACEBACK_VARIABLE}=1 set"
        return _report(console, "Internal", text, INTERNAL)


def _command(name: str) -> Any:
    return import_module(f"ktir.tools.commands.{name}")


def _report(console: Console, code: str, message: str, status: int) -> int:
    return console.failure({"error": {"code": code, "message": message}}, f"ktir: error: {message} [{code}]", status)


if __name__ == "__main__":
    sys.exit(main())
