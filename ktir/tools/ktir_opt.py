"""``ktir-opt``: reads IR, runs passes over it, prints it; the options and exit statuses are those of ``mlir-opt``.

Everything heavy is imported once the command line is known, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ktir.errors import Diagnostic, FileUnusable, KtirError, PassFailed, RoundTripError, SeveralFaults
from ktir.tools.console import FAULT, OK, Console
from ktir.tools.opt_arguments import SPLIT_MARKER, argument_parser, wants_dump, with_separate_values
from ktir.version import DIALECTS, SPECIFICATION, VERSION

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from ktir.dialect.context import KtirContext


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except KtirError as fault:
        Console().show(fault)
        return FAULT
    except BrokenPipeError:
        sys.stderr.close()
        return OK


def _run(arguments: list[str]) -> int:
    parser = argument_parser()
    options, unknown = parser.parse_known_args(with_separate_values(arguments))
    if options.version:
        print(_version())
        return OK
    if options.show_dialects:
        return _show_dialects()
    if options.list_passes:
        return _list_passes()
    flags = [_pass_of_flag(flag) for flag in unknown]
    if unknown and (wrong := next((flag for flag, name in zip(unknown, flags, strict=True) if name is None), None)):
        parser.error(f"unknown command line argument '{wrong}'")
    pipeline = ",".join(text for text in (*options.passes, *(flag for flag in flags if flag)) if text)
    text = _read(options.input)
    job = Job(options, pipeline, "<stdin>" if options.input == "-" else options.input, text)
    status = job.run()
    if status == OK or options.output == "-":  # a file is written whole and right, or left as it was
        _write(options.output, job.output())
    return status


def _version() -> str:
    dialects = ", ".join(f"{name} {version}" for name, version in DIALECTS.items())
    return f"ktir-opt {VERSION}\nspecification: {SPECIFICATION}\ndialects: {dialects}"


def _pass_of_flag(flag: str) -> str | None:
    """``--cse`` or ``--tile=x=1`` as a pipeline entry; None where no pass has that name."""
    from ktir.tools.opt_pipeline import all_passes

    match = re.fullmatch(r"--?([\w-]+)(?:=(.*))?", flag, re.DOTALL)
    if match is None or match[1] not in all_passes():
        return None
    return match[1] if match[2] is None else f"{match[1]}{{{match[2]}}}"


def _show_dialects() -> int:
    from ktir.dialect.context import all_dialects

    print("Available Dialects: " + ",".join(sorted(all_dialects())))
    return OK


def _list_passes() -> int:
    from ktir.tools.opt_pipeline import all_passes, options_of

    for name, load in sorted(all_passes().items()):
        kind = load()
        summary = ((kind.__doc__ or "").strip() or (sys.modules[kind.__module__].__doc__ or "").strip()).split("\n")[0]
        print(f"{name}\n    {summary}\n    options: {options_of(kind)}")
    return OK


def _read(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as fault:
        raise FileUnusable(f"{path} is not UTF-8 text: byte {fault.start}") from None
    except OSError as fault:
        raise FileUnusable(f"cannot open input file '{path}': {fault.strerror or fault}") from None


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from pathlib import Path

    from ktir.files import write_whole

    write_whole(Path(path), text.encode())


# -------------------------------------------------------------------------------------------------------------- the job


@dataclass
class Job:
    """One input file: its parts, what each printed and complained about."""

    options: argparse.Namespace
    pipeline: str
    file: str
    text: str
    printed: list[str] = field(default_factory=list[str])
    timings: dict[str, float] = field(default_factory=dict[str, float])

    def run(self) -> int:
        self.passes = self._build_passes()
        failed = False
        for first_line, part in self._parts():
            failed |= not self._run_part(first_line, part)
        if self.options.mlir_timing:
            self._print_timings()
        return FAULT if failed else OK

    def output(self) -> str:
        return f"\n{SPLIT_MARKER}\n".join(self.printed) if self.printed else ""

    def _build_passes(self) -> list[ModulePass]:
        if not self.pipeline:
            return []
        from ktir.tools.opt_pipeline import all_passes, build

        return build(self.pipeline, all_passes())

    def _parts(self) -> Iterator[tuple[int, str]]:
        """The parts of the input with the number of their first line."""
        if not self.options.split_input_file:
            yield 1, self.text
            return
        line = 1
        marker = re.escape(self.options.split_marker)
        for part in re.split(rf"^[ \t]*{marker}(?!-)[^\n]*\n?", self.text, flags=re.MULTILINE):
            yield line, part
            line += part.count("\n") + 1

    def _run_part(self, first_line: int, part: str) -> bool:
        """Whether the part went through, or complained as it expects."""
        problems: list[KtirError | Diagnostic] = []
        text = "\n" * (first_line - 1) + part  # so that lines count from the start of the file
        module = self._process(text, problems)
        if module is not None:
            self.printed.append(self._print(module))
        if self.options.verify_diagnostics:
            return self._compare(part, first_line, problems)
        console = Console(sources={self.file: text})
        for problem in problems:
            console.show(problem)
        return module is not None or self.options.parsing_diagnostics

    def _process(self, text: str, problems: list[KtirError | Diagnostic]) -> ModuleOp | None:
        """The module after all passes, or None after an error."""
        context = self._context()
        try:
            module = self._parse(text, context, problems)
            if module is None:
                return None
            if self.options.verify_roundtrip:
                self._verify_roundtrip(module, context)
            for each in self.passes:
                self._apply(each, module, context)
            self._respell(module)
        except KtirError as fault:
            problems += _with_causes(fault)
            return None
        finally:
            problems += context.diagnostics
        return module

    def _respell(self, module: ModuleOp) -> None:
        if self.options.dialect_version is not None:
            from ktir.passes.migrate import to_version

            to_version(module, self.options.dialect_version)

    def _context(self) -> KtirContext:
        from ktir.dialect.context import create_context

        machine = None
        if self.options.machine is not None:
            from ktir.machine import load

            machine = load(self.options.machine)
        return create_context(
            machine,
            allow_unregistered=self.options.allow_unregistered_dialect,
            experimental=self.options.experimental,
        )

    def _parse(self, text: str, context: KtirContext, problems: list[KtirError | Diagnostic]) -> ModuleOp | None:
        from ktir.dialect.ktdp.doubts import doubts
        from ktir.dialect.text.limits import recursion_room
        from ktir.dialect.text.parser import parse_unverified
        from ktir.dialect.verification import faults

        with self._timed("Parser"):
            parsed = parse_unverified(text, self.file, strict=self.options.strict, context=context)
            problems += parsed.diagnostics
            with recursion_room():
                wrong = [] if self.options.disable_verify else list(faults(parsed.module))
            problems += wrong or doubts(parsed.module)
        return None if wrong else parsed.module

    def _apply(self, each: ModulePass, module: ModuleOp, context: KtirContext) -> None:
        from ktir.dialect.text.limits import recursion_room
        from ktir.dialect.verification import verify

        before = self._print(module) if self.options.mlir_print_ir_after_change else None
        if wants_dump(self.options, "before", each.name):
            self._dump("Before", each, module)
        try:
            with self._timed(each.name), recursion_room():
                _guarded(lambda: each.apply(context, module), each.name)
            if self.options.verify_each and not self.options.disable_verify:
                verify(module)
        except KtirError:
            if self.options.mlir_print_ir_after_failure or self.options.mlir_print_ir_after_all:
                self._dump("After", each, module, " Failed")
            raise
        wanted = wants_dump(self.options, "after", each.name) if before is None else before != self._print(module)
        if wanted:
            self._dump("After", each, module)

    def _verify_roundtrip(self, module: ModuleOp, context: KtirContext) -> None:
        from ktir.dialect.text.limits import recursion_room
        from ktir.dialect.text.parser import parse_module
        from ktir.dialect.text.printer import print_module

        for generic in (False, True):
            again = parse_module(print_module(module, generic=generic), "<printed>", context=context)
            with recursion_room():
                same = module.is_structurally_equivalent(again)
            if not same:
                form = "generic" if generic else "custom"
                raise RoundTripError(f"printing in {form} form and reading again gives different IR")

    def _print(self, module: ModuleOp) -> str:
        from ktir.dialect.text.printer import print_module

        with self._timed("Output"):
            return print_module(
                module,
                generic=self.options.mlir_print_op_generic,
                debug_info=self.options.mlir_print_debuginfo,
                local_scope=self.options.mlir_print_local_scope,
                mlir_names=self.options.discard_value_names,
            )

    def _dump(self, when: str, each: ModulePass, module: ModuleOp, outcome: str = "") -> None:
        print(f"// -----// IR Dump {when} {type(each).__name__}{outcome} ({each.name}) //----- //", file=sys.stderr)
        print(self._print(module), file=sys.stderr)

    def _compare(self, part: str, first_line: int, problems: list[KtirError | Diagnostic]) -> bool:
        from ktir.tools.opt_expectations import expectations, mismatches

        must_be_expected = ("error", "warning") if self.options.diagnostics_level == "all" else ()
        complaints = mismatches(expectations(part, first_line), problems, must_be_expected)
        for complaint in complaints:
            print(f"{self.file}: error: {complaint}", file=sys.stderr)
        return not complaints

    @contextmanager
    def _timed(self, what: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[what] = self.timings.get(what, 0.0) + time.perf_counter() - start

    def _print_timings(self) -> None:
        total = sum(self.timings.values()) or 1.0
        print("  ----Wall Time----  ----Name----", file=sys.stderr)
        for name, seconds in self.timings.items():
            print(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}", file=sys.stderr)
        print(f"  {total:8.4f} (100.0%)  Total", file=sys.stderr)


def _with_causes(fault: KtirError) -> Iterator[KtirError]:
    """Each of the errors, and what was reported about the same place before it."""
    if isinstance(fault, SeveralFaults):
        for each in fault.faults:
            yield from _with_causes(each)
        return
    cause: BaseException | None = fault
    while isinstance(cause, KtirError):
        yield cause
        cause = cause.__cause__


def _guarded(work: Callable[[], None], name: str) -> None:
    """Runs a pass; what a stock pass raises in its own words becomes an error of ours."""
    from xdsl.utils.exceptions import DiagnosticException

    try:
        work()
    except KtirError:
        raise
    except (DiagnosticException, NotImplementedError, RecursionError) as fault:
        message = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise PassFailed(f"pass '{name}' failed: {message}") from None


if __name__ == "__main__":
    sys.exit(main())
