"""The ``ktir`` command: run, compile, check and report from a shell.

Each subcommand is a file of :mod:`ktir.tools.commands` with ``HELP``, ``EXAMPLES``, ``add_arguments`` and ``run``.
Nothing that takes time is imported before a subcommand runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
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
    """Raises instead of exiting, so that usage errors can be JSON as well, and guesses what a wrong word meant."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - the stubs have one form a call
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Refuses what is left over here, where the options that might be meant are known."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            known = [word for action in self._actions for word in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(rest)}{guess(rest[0].partition('=')[0], known)}")
        return parsed, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, f"there is no {value!r}{guess(str(value), known) or _all_of(known)}")


def guess(word: str, known: Sequence[str]) -> str:
    """``; did you mean ..?`` where a known word looks like ``word``."""
    near = get_close_matches(word, known, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _all_of(known: Sequence[str]) -> str:
    return f"; choose from {', '.join(known)}"


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
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output instead of text")
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
        sub.usage = _usage(sub)
        sub.add_argument(
            "--json",
            action="store_true",
            default=argparse.SUPPRESS,
            help="one JSON object on standard output instead of text",
        )
    return parser


def _usage(parser: argparse.ArgumentParser) -> str:
    """A synopsis of one line; the options are listed below it."""
    words = [str(each.metavar) for each in parser._actions if not each.option_strings]  # pyright: ignore[reportPrivateUsage]
    return " ".join([parser.prog, "[options]", *words])


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
