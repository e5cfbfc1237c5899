"""The public functions: parse, check, run, bisect, compile, load, machine.

``import ktir`` gives them all. Programs are given as a path, a text, or what another of these functions returned.
Arrays may be numpy, ml_dtypes or torch; results are of the kind that was passed in, and inputs are never changed. Every
failure is a :class:`ktir.KtirError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp

from ktir.arrays import is_array, like, to_numpy
from ktir.errors import ArgumentError, Diagnostic
from ktir.module import Module, Source, read_source

if TYPE_CHECKING:
    from ktir.analysis.check import Examination
    from ktir.backends.dataflow.reports.report import Report
    from ktir.backends.dataflow.timing import Timing
    from ktir.interp.executor import Numerics
    from ktir.interp.observation import Observer
    from ktir.interp.places import Place, Region
    from ktir.interp.tracing.bisect import Bisection
    from ktir.interp.tracing.numbers import Tolerance
    from ktir.machine.description import Machine
    from ktir.program import Options, Program


@dataclass(frozen=True)
class RunResult:
    """What a run left behind.

    ``outputs`` are the arrays that were stored to, by argument name; ``results`` what the function returned; ``timing``
    and ``report`` the modelled time, when it was asked for; ``diagnostics`` warnings; ``operations`` and ``launches``
    how much was executed; ``numerics`` what f16 was.
    """

    outputs: Mapping[str, Any]
    results: Sequence[Any] = ()
    timing: Timing | None = None
    report: Report | None = None
    diagnostics: Sequence[Diagnostic] = ()
    operations: int = 0
    launches: int = 0
    numerics: Numerics = "f16"


def parse(source: Source, *, strict: bool = False, experimental: bool = False) -> Module:
    """Reads a program from a path or a text and verifies it.

    What people's tools write is accepted although a rule forbids it, with a warning in the module's ``diagnostics``;
    ``strict`` refuses it. ``experimental`` allows operations that the design of KTIR describes and no released dialect
    has: ``ktdp.inter_tile_gather``, ``scatter``, ``all_to_all`` and ``reduce_scatter``.

    Raises :class:`ktir.errors.ParseError`, :class:`ktir.errors.VerifyError` or :class:`ktir.errors.FileUnusable`.
    """
    if isinstance(source, Module):
        return source
    if isinstance(source, ModuleOp):
        return Module(source)
    from ktir.dialect.context import create_context
    from ktir.dialect.text.parser import parse as parse_text

    text, file = read_source(source)
    parsed = parse_text(text, file, strict=strict, context=create_context(experimental=experimental))
    return Module(parsed.module, text, file, parsed.diagnostics)


def machine(name: str | Path | Machine, **values: object) -> Machine:
    """A machine description by name or file, with single values replaced: ``machine("spyre", scratchpad="64MiB")``."""
    return _load_machine(name, values)


def check(
    module: Source, machine: str | Path | Machine | None = None, arguments: Mapping[str, int] | None = None
) -> list[Diagnostic]:
    """What can be said about a program without running it: ownership, bounds, overlaps, coverage, races.

    ``machine`` adds what depends on one: capacities, counts, alignment. Where integer ``arguments`` are given by name,
    only calls with these are meant. The warnings of reading come first.
    """
    return list(examine(module, machine, arguments).findings)


def examine(
    module: Source, machine: str | Path | Machine | None = None, arguments: Mapping[str, int] | None = None
) -> Examination:
    """What :func:`check` gives, as ``findings``, and how many questions were asked, as ``tallies`` by topic."""
    from ktir.analysis.check import examine

    program = parse(module)
    found = examine(program.op, _described(machine), numbers=arguments)
    return replace(found, findings=_with_warnings_of_reading(program, found.findings))


def _with_warnings_of_reading(program: Module, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """``found`` behind the warnings that came with the text, each fault of a place once."""
    known = {(each.code, each.location) for each in found}
    return [*(each for each in program.diagnostics if (each.code, each.location) not in known), *found]


def run(
    module: Source,
    function: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    machine: str | Path | Machine | None = None,
    checks: bool = True,
    timing: bool = False,
    memory: Sequence[Place] = (),
    read: Mapping[str, Region] | None = None,
    trace: Observer | Sequence[Observer] = (),
    numerics: Numerics = "f16",
    max_steps: int | None = None,
    max_bytes: int | None = None,
    experimental: bool = False,
) -> RunResult:
    """Executes a function on the CPU, all cores of its grid together.

    ``function`` is ``main`` or the only kernel unless named. Arrays in ``arguments`` get 128-byte aligned places in
    global memory, scalars are passed on. Without a ``machine`` the grid is as large as the program says and scratchpads
    have no limit. ``checks`` tracks uninitialised bytes, padding, bounds and conflicting writes; it never changes a
    result. ``timing`` models the time on the machine. For programs that name addresses themselves, ``memory`` says
    where arrays lie and ``read`` what to read back, by the name it gets in the outputs.

    ``trace`` is told of every operation: a :class:`ktir.Trace`, :class:`ktir.Watch`, :class:`ktir.Explain`,
    :class:`ktir.Recording`, or several. They hold what they saw, also after an error. Numbers stay the same.
    """
    program, given = parse(module, experimental=experimental), dict(arguments or {})
    entry, described = program.entry(function), _described(machine)
    if timing and described is None:
        raise ArgumentError("timing needs a machine", remedy='pass machine="spyre"')
    values = _plain(given)
    from ktir.interp.executor import MAX_BYTES, MAX_STEPS, execute

    places = [replace(place, array=to_numpy(place.array)) for place in memory]
    observers = list(trace) if isinstance(trace, Sequence) else [trace]
    alike = partial(
        execute,
        machine=described,
        checks=checks,
        memory=places,
        numerics=numerics,
        max_steps=MAX_STEPS if max_steps is None else max_steps,
        max_bytes=MAX_BYTES if max_bytes is None else max_bytes,
    )
    for observer in observers:
        _find_reference(observer, entry, values, alike, experimental)
    execution = alike(program.op, entry, values, read=read, observers=observers, source=program.source)
    report = _timed(program, entry, values, described) if timing and described is not None else None
    arrays = [*given.values(), *(place.array for place in memory)]
    kind = next((value for value in arrays if is_array(value)), None)
    return RunResult(
        outputs={name: like(array, given.get(name, kind)) for name, array in execution.outputs.items()},
        results=[like(array, kind) for array in execution.results],
        timing=report.timing if report else None,
        report=report,
        diagnostics=_with_warnings_of_reading(program, execution.diagnostics),
        operations=execution.statistics.operations,
        launches=execution.statistics.launches,
        numerics=numerics,
    )


def _find_reference(
    observer: Observer, function: str, values: Mapping[str, Any], alike: Callable[..., Any], experimental: bool
) -> None:
    """Gives a trace the values it is to be compared with. Another program runs ``alike``, on the same arguments."""
    from ktir.array_files import is_array_file, read_arrays
    from ktir.interp.tracing.recording import Recording, is_recording, load_recording
    from ktir.interp.tracing.references import Arrays, OtherRun
    from ktir.interp.tracing.trace import Trace

    if not isinstance(observer, Trace) or observer.against is None:
        return
    against = observer.against
    if isinstance(against, str | Path) and is_array_file(against):
        path = Path(against)
        against = load_recording(path) if is_recording(path) else read_arrays(path)
    if isinstance(against, Mapping):
        given = cast("Mapping[str, Any]", against)
        arrays = {name.lstrip("%"): to_numpy(array) for name, array in given.items()}
        observer.reference = Arrays(arrays, observer.tolerance)
        return
    if not isinstance(against, Recording):
        other = parse(against, experimental=experimental)
        entry = other.entry(function if function in other.functions else None)
        against = Recording()
        alike(other.op, entry, values, observers=[against], source=other.source)
    observer.reference = OtherRun(against, observer.tolerance)


def bisect(
    first: Source,
    second: Source,
    function: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    machine: str | Path | Machine | None = None,
    checks: bool = True,
    tolerance: Tolerance | None = None,
    seed: int = 0,
    numerics: Numerics = "f16",
    experimental: bool = False,
) -> Bisection:
    """The first operation in which two versions of a program differ on the same arguments.

    Arrays that are not given are random numbers from ``seed``. Operations are paired although some were added, removed,
    moved or renamed. ``tolerance`` is exact unless given. Raises what both programs raise.
    """
    from ktir.interp.made_arguments import random_arguments
    from ktir.interp.tracing.bisect import Conditions, Version
    from ktir.interp.tracing.bisect import bisect as compare
    from ktir.interp.tracing.numbers import Tolerance

    one, other = (parse(source, experimental=experimental) for source in (first, second))
    entry = one.entry(function)
    counterpart = other.entry(function if function is not None or entry not in other.functions else entry)
    given = _plain(arguments or {})
    values = random_arguments(one.functions[entry], given, seed)
    return compare(
        Version(one.file, one.op, entry, one.source),
        Version(other.file, other.op, counterpart, other.source),
        Conditions(values, _described(machine), checks, tolerance or Tolerance(), numerics),
    )


def compile(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    machine: str | Path | Machine = "spyre",
    options: Options | None = None,
) -> Program:
    """Compiles a model for inputs of the shapes of ``args`` and ``kwargs``.

    ``model`` is a ``torch.nn.Module``, a function, a ``torch.export.ExportedProgram`` or a ``torch.fx.GraphModule``.
    Raises :class:`ktir.errors.UnsupportedOperator` for an operator outside the set, with its shapes and the model's
    line; :class:`ktir.errors.CannotPlan` when no legal plan exists.
    """
    from ktir.program import compile_model

    return compile_model(model, tuple(args), dict(kwargs or {}), _load_machine(machine, {}), options)


def load(path: str | Path, *, machine: str | Path | Machine | None = None) -> Program:
    """A program that :meth:`ktir.Program.save` wrote. Runs no code from the file and needs no model code.

    ``machine`` replaces the one it was compiled for, which is found by name otherwise.
    Raises :class:`ktir.errors.PackageError` for a file that is no package, is damaged, or was made by another version.
    """
    from ktir.package import load_package

    return load_package(Path(path), _described(machine))


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with numpy arrays. Raises :class:`ArgumentError` that names the argument."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        try:
            found[name] = to_numpy(value) if is_array(value) else value
        except ArgumentError as error:
            raise ArgumentError(f"argument {name}: {error.message}", remedy=error.remedy) from None
    return found


def _described(name: str | Path | Machine | None) -> Machine | None:
    return None if name is None else _load_machine(name, {})


def _load_machine(name: str | Path | Machine, values: Mapping[str, object]) -> Machine:
    from ktir.machine.description import Machine
    from ktir.machine.loader import load as load_description

    return name if isinstance(name, Machine) else load_description(name, values)


def _timed(program: Module, entry: str, values: Mapping[str, Any], machine: Machine) -> Report:
    from ktir.program import time_function

    return time_function(program, entry, values, machine)
