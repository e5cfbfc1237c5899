"""A compiled model: call it, time it, read its plan, save it.

Words. *image*: the level-K module with its parameters, which is what an executor needs. *executor*: who runs a call:
``dataflow``, the functional simulator of the unit programs, or ``ktir``, the executor of the level-K text. *plan*: the
decisions for each kernel, read off the IR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ktir.arrays import Array, dtype_name, is_array, is_torch, to_numpy, to_torch
from ktir.dialect.locations import location_of, source_place_of
from ktir.errors import ArgumentError, UninitialisedRead, UnsupportedInput
from ktir.location import Location
from ktir.module import Module
from ktir.signature import Caller, Signature

if TYPE_CHECKING:
    from ktir.backends.dataflow.lower import LaunchArguments, LoweredProgram
    from ktir.backends.dataflow.reports.report import Report
    from ktir.backends.dataflow.run import Runner
    from ktir.backends.dataflow.timing import Timing
    from ktir.dialect.ktg import KernelOp
    from ktir.frontend.torch.captured import Captured
    from ktir.machine.description import Machine

DECISIONS = (
    "core_split",
    "tiles",
    "loop_order",
    "buffer_depth",
    "store_batch",
    "operand_places",
    "result_places",
    "operand_layouts",
    "result_layouts",
)
"""Properties of a kernel in the order a plan shows them."""

PRINTED = "module.ktir"
"""What the text of a module that was not read from a file is called, as in a package."""

Executor = Literal["dataflow", "ktir"]


@dataclass(frozen=True)
class Options:
    """How a model is compiled and run.

    ``executor``: who runs calls. ``checks``: whether the KTIR executor tracks uninitialised bytes, padding and races.
    ``name``: what reports call the program. ``numerics``: what f16 is on both executors, that of IEEE or the
    accelerator's DL16; times do not depend on it.
    """

    executor: Executor = "dataflow"
    checks: bool = True
    name: str | None = None
    numerics: Literal["f16", "dl16"] = "f16"


@dataclass(frozen=True)
class KernelPlan:
    """The decisions for one kernel, as the text of their attributes; ``cores`` are those its grid has."""

    name: str
    cores: int
    decisions: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Plan:
    """The decisions for each kernel, in launch order."""

    kernels: tuple[KernelPlan, ...]

    @property
    def data(self) -> list[dict[str, Any]]:
        """As JSON."""
        return [{"name": k.name, "cores": k.cores, "decisions": dict(k.decisions)} for k in self.kernels]

    @staticmethod
    def from_json(data: Sequence[Mapping[str, Any]]) -> Plan:
        """The inverse of :attr:`data`."""
        return Plan(tuple(KernelPlan(str(k["name"]), int(k["cores"]), dict(k["decisions"])) for k in data))

    def __str__(self) -> str:
        """One line a kernel; layouts, which are long, are in :attr:`data` alone."""
        lines = [f"{'kernel':<28}{'cores':>6}  decisions"]
        for kernel in self.kernels:
            decisions = ", ".join(f"{name} = {text}" for name, text in kernel.decisions.items() if "layout" not in name)
            lines.append(f"{kernel.name:<28}{kernel.cores:>6}  {decisions}")
        return "\n".join(lines)


@dataclass(frozen=True)
class LastRun:
    """What the most recent call executed, by executor: operations of its level, and launches."""

    executor: Executor
    operations: int
    launches: int


@dataclass
class Lowering:
    """What was made from a module: ``of`` is that module as it was then."""

    of: ModuleOp
    lowered: LoweredProgram
    machine: Machine

    @cached_property
    def timing(self) -> Timing:
        """The modelled run; what a kernel that launches share does has the line of the model of each launch."""
        from ktir.backends.dataflow.timed import simulate

        timing, moved = simulate(self.lowered.module, self.machine), self.lowered.moved
        spots = [replace(spot, source=moved.get(spot.launch, spot.source)) for spot in timing.hot_spots]
        return replace(timing, hot_spots=tuple(spots))

    @cached_property
    def runner(self) -> Runner:
        """The dataflow program, ready to run on data."""
        from ktir.backends.dataflow.run import Runner

        return Runner(self.lowered)


class Program:
    """What :func:`ktir.compile` and :func:`ktir.load` return. Call it as the model is called."""

    def __init__(
        self,
        *,
        name: str,
        module: Module,
        graph: Module | None,
        machine: Machine,
        caller: Caller,
        parameters: Mapping[str, Any],
        plan: Plan,
        operators: Mapping[str, int],
        options: Options | None = None,
    ) -> None:
        self.name, self.module, self.graph, self.machine = name, module, graph, machine
        self.plan, self.operators, self.options = plan, operators, options or Options()
        self.last_run: LastRun | None = None
        self._caller, self._parameters = caller, parameters
        self._lowering: Lowering | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model returns for these arguments, computed by the executor of the options."""
        return self.call(self.options.executor, *args, **kwargs)

    def call(self, executor: Executor, /, *args: Any, **kwargs: Any) -> Any:
        """The same on a chosen executor."""
        caller = self._plain if _only_numpy((args, kwargs)) else self._caller
        convert = _unchanged if isinstance(caller, Signature) else to_torch
        return caller.call(args, kwargs, lambda values: [convert(each) for each in self._execute(executor, values)])

    @property
    def lowered(self) -> LoweredProgram:
        """The dataflow program with the places of its buffers; verified. Made anew after the module was edited."""
        return self._current.lowered

    @property
    def dataflow(self) -> Module:
        """The dataflow program (``dfp``)."""
        return Module(self.lowered.module)

    @property
    def timing(self) -> Timing:
        """The modelled run, unit by unit."""
        return self._current.timing

    def time(self) -> float:
        """Modelled seconds of one call on the machine, host transfers not counted."""
        return self.timing.total_ns * 1e-9

    def report(self, counts: Mapping[str, int] | None = None) -> Report:
        """Where the modelled time goes; ``counts`` are further numbers to show."""
        from ktir.backends.dataflow.reports.report import Report

        plans = {
            kernel.name: ", ".join(f"{name} {text}" for name, text in kernel.decisions.items() if "layout" not in name)
            for kernel in self.plan.kernels
        }
        return Report(
            self.name,
            self.timing,
            self.machine,
            self.lowered.kernels,
            plans,
            counts or {},
            texts=texts_of(self.module),
            sources=self.lowered.sources,
        )

    def save(self, path: str | Path) -> Path:
        """Writes a package that :func:`ktir.load` reads without the model's code."""
        from ktir.package import Content, save_package

        content = Content(
            name=self.name,
            module=str(self.module),
            graph=str(self.graph) if self.graph is not None else None,
            machine=_recipe(self.machine),
            plan=self.plan.data,
            operators=self.operators,
            parameters={name: to_numpy(value) for name, value in self._parameters.items()},
            signature=self._plain,
            sources=tuple(place and (place.file, place.line, place.column) for place in model_places(self.module)),
        )
        return save_package(Path(path), content)

    def _execute(self, executor: Executor, values: Mapping[str, Any]) -> list[Array]:
        if executor not in get_args(Executor):
            raise ArgumentError(f"no executor is called {executor!r}", remedy=f"use {' or '.join(get_args(Executor))}")
        arguments = {name: to_numpy(value) for name, value in {**self._parameters, **values}.items()}
        return self._on_dataflow(arguments) if executor == "dataflow" else self._on_ktir(arguments)

    def _on_dataflow(self, arguments: Mapping[str, Array]) -> list[Array]:
        done = self._current.runner.run(arguments)
        self.last_run = LastRun("dataflow", done.statistics.operations, done.statistics.launches)
        for name in self._result_names:
            if name not in done.outputs:
                raise UninitialisedRead(
                    f"the module never writes the result {name}",
                    location=location_of(self.module.functions["main"]),
                    remedy="let a kernel store to its buffer, and transfer the buffer to the result",
                )
        return [done.outputs[name] for name in self._result_names]

    def _on_ktir(self, arguments: Mapping[str, Array]) -> list[Array]:
        from ktir.interp.executor import execute

        options = self.options
        execution = execute(
            self.module.op,
            "main",
            arguments,
            machine=self.machine,
            checks=options.checks,
            numerics=options.numerics,
        )
        self.last_run = LastRun("ktir", execution.statistics.operations, execution.statistics.launches)
        return execution.results

    @property
    def _current(self) -> Lowering:
        """What is made from the module as it is now: a person may have edited it since."""
        made = self._lowering
        same = made is not None and made.lowered.numerics == self.options.numerics
        if made is None or not same or not made.of.is_structurally_equivalent(self.module.op):
            lowered = lower(self.module, self.machine, numerics=self.options.numerics)
            made = self._lowering = Lowering(self.module.op.clone(), lowered, self.machine)
        return made

    @cached_property
    def _result_names(self) -> list[str]:
        return result_names(self.module)

    @cached_property
    def _plain(self) -> Signature:
        """The calling convention as plain data: for packages, and for calls without torch."""
        if isinstance(self._caller, Signature):
            return self._caller
        from ktir.saving import signature_of

        return signature_of(cast("Captured", self._caller))


def _only_numpy(value: object) -> bool:
    """Whether there are numpy arrays among nested arguments and no torch tensor."""
    kinds = {is_torch(leaf) for leaf in _leaves(value) if is_array(leaf)}
    return kinds == {False}


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for child in cast("Sequence[object]", value):
            yield from _leaves(child)
    elif isinstance(value, Mapping):
        for child in cast("Mapping[object, object]", value).values():
            yield from _leaves(child)
    else:
        yield value


def _unchanged(array: Array) -> Array:
    return array


# ----------------------------------------------------------------------------------------------------------- compiling


def compile_model(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], machine: Machine, options: Options | None
) -> Program:
    """See :func:`ktir.compile`."""
    try:
        from ktir.frontend.torch.capture import capture
    except ModuleNotFoundError as error:
        raise _no_torch(error) from None
    name = (options.name if options else None) or type(model).__name__
    return compile_captured(capture(model, args, kwargs), machine, options, name)


def compile_captured(captured: Captured, machine: Machine, options: Options | None, name: str) -> Program:
    """The part of compiling that follows the capture: both doors meet here."""
    from ktir.dialect.context import create_context
    from ktir.passes.pipeline import run_pipeline

    module, context = captured.module.clone(), create_context(machine)
    run_pipeline("graph", context, module)
    run_pipeline("decide", context, module)
    plan = plan_of_graph(Module(module))
    run_pipeline("lower", context, module)
    return Program(
        name=name,
        module=Module(module),
        graph=Module(captured.module),
        machine=machine,
        caller=captured,
        parameters=captured.parameters,
        plan=plan,
        operators=captured.operators,
        options=options,
    )


def _no_torch(error: ModuleNotFoundError) -> UnsupportedInput:
    return UnsupportedInput(f"compiling a model needs PyTorch: {error}", remedy="pip install 'ktir[torch]'")


def lower(
    module: Module,
    machine: Machine,
    function: str = "main",
    launch: LaunchArguments | None = None,
    *,
    numerics: Literal["f16", "dl16"] = "f16",
) -> LoweredProgram:
    """A verified dataflow program for one call of ``function``, whose operations know their lines in ``module``."""
    from ktir.backends.dataflow.lower import lower_to_dfp
    from ktir.backends.dataflow.verify import check
    from ktir.dialect.text.places import with_text_places

    placed = with_text_places(module.op, module.file, PRINTED)
    lowered = lower_to_dfp(placed, machine, function, launch, numerics=numerics)
    check(lowered.module, machine)
    return lowered


def time_function(module: Module, function: str, values: Mapping[str, Any], machine: Machine) -> Report:
    """The modelled time of one call of ``function`` with arrays and scalars ``values``."""
    from ktir.backends.dataflow.lower import ArrayArgument
    from ktir.backends.dataflow.reports.report import Report
    from ktir.backends.dataflow.timed import simulate

    launch = {
        name: ArrayArgument(value.shape, dtype_name(value)) if is_array(value) else value
        for name, value in values.items()
    }
    lowered = lower(module, machine, function, launch)
    return Report(function, simulate(lowered.module, machine), machine, lowered.kernels, texts=texts_of(module))


# ----------------------------------------------------------------------------------------------------- reading the text


def result_names(module: Module) -> list[str]:
    """Names of the arguments of ``@main`` that take its results, in the order of the results."""
    found: list[tuple[int, str]] = []
    for attributes in module.functions["main"].arg_attrs or ():
        number, name = attributes.data.get("ktg.result"), attributes.data.get("ktg.name")
        if isinstance(number, IntegerAttr) and isinstance(name, StringAttr):
            found.append((number.value.data, name.data))
    return [name for _, name in sorted(found)]


def texts_of(module: Module) -> dict[str, str]:
    """The texts that operations of ``module`` may stand in, by the name of the file: as it was read, and as printed."""
    read = {} if module.source is None else {module.file: module.source}
    return {PRINTED: str(module), **read}


def model_places(module: Module) -> list[Location | None]:
    """For each operation in order of a walk the place in the model it was made for, where that is known."""
    if module.source is None:
        return [location_of(op) for op in module.op.walk()]
    return [source_place_of(op) for op in module.op.walk()]


def plan_of(module: Module) -> Plan:
    """What the kernels of a level-K module show of the decisions: their grids."""
    functions = module.functions
    return Plan(tuple(KernelPlan(name, _grid_size(functions[name])) for name in module.kernels))


def plan_of_graph(module: Module) -> Plan:
    """The decisions that the kernels of a graph carry, in launch order."""
    from ktir.dialect.ktg import KernelOp

    kernels = [op for op in module.op.walk() if isinstance(op, KernelOp)]
    return Plan(tuple(_kernel_plan(kernel, number) for number, kernel in enumerate(kernels)))


def _kernel_plan(kernel: KernelOp, number: int) -> KernelPlan:
    name = kernel.sym_name.data if kernel.sym_name is not None else f"kernel_{number}"
    cores = prod(cut.cuts for cut in kernel.core_split.data) if kernel.core_split is not None else 1
    decisions = {key: _short(kernel.properties[key]) for key in DECISIONS if key in kernel.properties}
    return KernelPlan(name, cores, decisions)


def _short(decision: Attribute) -> str:
    """The text of a decision without the names of its attributes: ``[d0 : 8]``, ``6 : i64`` as ``6``."""
    return re.sub(r"#(?:ktg|ktdp)\.\w+<(.*?)>(?=,|\]|$)", r"\1", str(decision)).removesuffix(" : i64")


def _grid_size(function: FuncOp) -> int:
    grid = cast("ArrayAttr[IntegerAttr[Any]]", function.attributes["grid"])
    return prod(extent.value.data for extent in grid)


def _recipe(machine: Machine) -> dict[str, Any]:
    """How to load the same machine again."""
    changed = [path for path, origin in machine.provenance.items() if origin.source == "override"]
    return {
        "name": machine.name,
        "settings": dict(machine.presets),
        "overrides": {path: _value_at(machine, path) for path in changed},
    }


def _value_at(machine: Machine, path: str) -> Any:
    """The value of a machine at a dotted path such as ``memory.lx.usable``."""
    group, *way = path.split(".")
    table = {"memory": machine.memories, "scope": machine.scopes, "unit": machine.units, "queue": machine.queues}
    found: Any = table.get(group) or (machine.nets if group == "net" else {"core": machine.clock})
    for name in way:
        found = cast("Mapping[str, Any]", found)[name] if isinstance(found, Mapping) else getattr(found, name)
    return found
