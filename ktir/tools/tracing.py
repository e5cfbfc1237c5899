"""What ``ktir run`` can tell of a run beside its outputs: the options, and what becomes of what they saw."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktir.tools.console import Console

if TYPE_CHECKING:
    from ktir.interp.observation import Observer
    from ktir.interp.tracing.explain import Explain
    from ktir.interp.tracing.numbers import Tolerance
    from ktir.interp.tracing.recording import Recording
    from ktir.interp.tracing.trace import Trace
    from ktir.interp.tracing.watch import Change, Watch

DETAILS = ("operation", "core", "execution")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that watch a run."""
    group = parser.add_argument_group("looking inside")
    group.add_argument(
        "--trace-values",
        action="store_true",
        help="a table of what each operation gives: shape, min, max, mean, NaNs",
    )
    group.add_argument(
        "--trace-detail", choices=DETAILS, default="operation", help="what a row of the table is; default: operation"
    )
    group.add_argument(
        "--trace-against",
        metavar="FILE",
        type=Path,
        help="compare with another run: a KTIR file, a file of --trace-save, or arrays (.npz, .safetensors) named like "
        "values or arguments",
    )
    group.add_argument(
        "--trace-save", metavar="FILE.npz", type=npz_file, help="keep all values for a later --trace-against"
    )
    group.add_argument(
        "--watch",
        metavar="%NAME[@CORE]",
        action="append",
        default=[],
        help="print a value whenever it changes; may be repeated",
    )
    group.add_argument(
        "--explain", metavar="core=N", type=core_number, help="list what a core reads and writes, with a picture"
    )
    group.add_argument(
        "--limit", metavar="N", type=count, default=4, help="accesses --explain lists of an operation; 0 for all"
    )
    group.add_argument(
        "--bisect",
        metavar="OTHER",
        action=_BeforeOrAfter,
        type=Path,
        help="run OTHER as well and name the first operation that gives something else; exit status 0 same, 1 "
        "different, 2 trouble",
    )
    group.add_argument("--rtol", metavar="X", type=tolerance, help="allowed difference, relative to the wanted value")
    group.add_argument("--atol", metavar="X", type=tolerance, help="allowed absolute difference")


class _BeforeOrAfter(argparse.Action):
    """Keeps a value, and whether it stands before the file on the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.bisect = values
        namespace.bisect_comes_first = getattr(namespace, "file", None) is None


def core_number(text: str) -> int:
    """``core=5``, ``5``; for argparse's ``type=``."""
    match = re.fullmatch(r"(?:core\s*=\s*)?(\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not core=N")
    return int(match[1])


def npz_file(text: str) -> Path:
    """A path that ends as numpy's archives do; for argparse's ``type=``."""
    if not text.endswith(".npz"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .npz")
    return Path(text)


def count(text: str) -> int:
    """A number that is not negative; for argparse's ``type=``."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def tolerance(text: str) -> float:
    """A finite number that is not negative; for argparse's ``type=``."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value


def tolerance_of(arguments: argparse.Namespace) -> Tolerance | None:
    """What ``--rtol`` and ``--atol`` allow; None where neither is given."""
    from ktir.interp.tracing.numbers import Tolerance

    if arguments.rtol is None and arguments.atol is None:
        return None
    return Tolerance(arguments.rtol or 0.0, arguments.atol or 0.0)


@dataclass(frozen=True)
class Looking:
    """The observers that the options ask for."""

    trace: Trace | None = None
    watch: Watch | None = None
    explain: Explain | None = None
    recording: Recording | None = None
    save: Path | None = None

    @property
    def observers(self) -> list[Observer]:
        return [each for each in (self.trace, self.watch, self.explain, self.recording) if each is not None]

    def finish(self) -> None:
        """Checks what only the run could tell, and writes what is to be kept."""
        if self.explain is not None:
            self.explain.require_core()
        if self.watch is not None:
            self.watch.require_cores()
        if self.recording is not None and self.save is not None:
            self.recording.save(self.save)

    @property
    def data(self) -> dict[str, Any]:
        """What was seen, as JSON."""
        data: dict[str, Any] = {}
        if self.trace is not None:
            data["trace"] = self.trace.data
        if self.watch is not None:
            data["watch"] = [change.data for change in self.watch.changes]
        if self.explain is not None:
            data["explain"] = self.explain.data
        return data

    @property
    def text(self) -> str:
        """What was seen, for people; changes of watched values were printed when they happened."""
        return "\n\n".join(str(each) for each in (self.explain, self.trace) if each is not None)


def looking(arguments: argparse.Namespace, console: Console) -> Looking:
    """What the options ask for."""
    from ktir.interp.tracing.explain import Explain
    from ktir.interp.tracing.recording import Recording
    from ktir.interp.tracing.trace import Trace
    from ktir.interp.tracing.watch import Watch

    def tell(change: Change) -> None:
        if not console.as_json:
            print(change, flush=True)

    wanted = arguments.trace_values or arguments.trace_against is not None or arguments.trace_detail != "operation"
    return Looking(
        Trace(arguments.trace_against, tolerance=tolerance_of(arguments), detail=arguments.trace_detail)
        if wanted
        else None,
        Watch(arguments.watch, tell) if arguments.watch else None,
        Explain(arguments.explain, arguments.limit or None) if arguments.explain is not None else None,
        Recording() if arguments.trace_save is not None else None,
        arguments.trace_save,
    )


__all__ = ["Looking", "add_options", "looking", "tolerance_of"]
