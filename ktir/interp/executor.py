"""Runs a function of a module on the CPU: kernels, host programs that launch kernels, and graphs of tensors.

``execute`` binds the caller's arrays, runs the compiled function and gives back what it stored and returned. Arguments
of type ``index`` that are given an array become pointers: the array is placed in global memory, and the pointer counts
elements of its type. The caller's arrays are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation

from ktir.dialect.dl16 import with_dl16
from ktir.dialect.ktdp.attrs import LAYOUT, StickLayoutAttr
from ktir.dialect.ktdp.types import RuntimeArgType
from ktir.dialect.locations import location_of
from ktir.errors import ArgumentError, Diagnostic, FunctionNotFound, IllegalGrid, OutOfBounds
from ktir.interp.buffers import HostBuffer
from ktir.interp.checks import Checker
from ktir.interp.compile import Code, FunctionCompiler, element_of, shape_of
from ktir.interp.dl16 import given_back, placed, taken
from ktir.interp.dl16 import regions as dl16_regions
from ktir.interp.extents import poison
from ktir.interp.groups import run_groups, size_of_groups, uses_scratchpads
from ktir.interp.ktdp_ops import argument_attribute
from ktir.interp.lending import way_of
from ktir.interp.memory import Memory
from ktir.interp.numerics import (
    FLOATS,
    INTEGER_DTYPES,
    Array,
    ElementType,
    element_type,
    float_constant,
    is_array,
    wrap,
)
from ktir.interp.observation import Observation, Observer, observation
from ktir.interp.places import Place, Region
from ktir.interp.run import Launch, Run
from ktir.interp.values import Frame, Site, Tainted, Value
from ktir.location import Location
from ktir.machine.description import Machine
from ktir.machine.memory_arena import Allocation, Arena

GUARD = 512
"""Bytes that alignment and guards take beside an array, at most."""
Numerics = Literal["f16", "dl16"]
"""What f16 means in a run: the IEEE format, or the accelerator's own (see dl16.py)."""
MAX_STEPS = 20_000_000
MAX_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a run did. ``operations`` counts each once for all cores that run it together; ``launches`` are kernels."""

    operations: int
    launches: int


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run gives back: arrays that were stored to by name, returned tensors in order, findings."""

    outputs: dict[str, Array]
    results: list[Array]
    diagnostics: list[Diagnostic]
    statistics: Statistics


def execute(
    module: ModuleOp,
    function: str | None = None,
    arguments: Mapping[str, object] | None = None,
    *,
    machine: Machine | None = None,
    checks: bool = True,
    max_steps: int = MAX_STEPS,
    max_bytes: int = MAX_BYTES,
    memory: Sequence[Place] = (),
    read: Mapping[str, Region] | None = None,
    observers: Sequence[Observer] = (),
    source: str | None = None,
    numerics: Numerics = "f16",
) -> Execution:
    """Runs ``function`` (default: ``@main``, or the only kernel, or the only function) of ``module``.

    ``arguments`` are numpy arrays and numbers by name. ``memory`` places arrays at given addresses, ``read`` names what
    to read back from there. ``observers`` are told of every operation; ``source``, the text of the module, has the
    names they know values by. ``numerics`` says what f16 is: that of IEEE, or the accelerator's DL16.

    Raises an :class:`ArgumentError` for a call that does not fit the signature, and whatever error the program itself
    deserves, with its location.
    """
    if numerics == "dl16":
        module, memory = with_dl16(module), [placed(place) for place in memory]
        arguments = {name: taken(value) for name, value in (arguments or {}).items()}
        read = dl16_regions(read or {})
    program = Program(module, observation(module, observers, source))
    try:
        execution = program.run(
            function,
            arguments or {},
            machine=machine,
            checks=checks,
            max_steps=max_steps,
            max_bytes=max_bytes,
            memory=memory,
            read=read or {},
        )
    finally:
        for observer in observers:
            observer.finish()
    outputs = {name: given_back(array) for name, array in execution.outputs.items()}
    return replace(execution, outputs=outputs, results=[given_back(array) for array in execution.results])


# ------------------------------------------------------------------------------------------------------------- programs


class CompiledFunction:
    """A function, compiled when it is first needed."""

    def __init__(self, program: Program, op: FuncOp) -> None:
        self.program, self.op = program, op
        self.name = op.sym_name.data
        self.location = location_of(op)
        self.grid = grid_of(op)
        self.group = size_of_groups(op)
        self.has_scratchpads = uses_scratchpads(op)
        self.lends = self.grid is not None and program.observation is None and not uses_buffers(op)
        self._compiled: tuple[Code, int] | None = None

    @property
    def code(self) -> Code:
        return self.compiled()[0]

    def compiled(self) -> tuple[Code, int]:
        """The code, and how many registers it needs."""
        if self._compiled is None:
            compiler = FunctionCompiler(self.program.function, self.program.observation)
            code = compiler.region(self.op.body, self.op)
            self._compiled = code, compiler.size
        return self._compiled

    def execute(self, caller: Frame, values: Sequence[Value], site: Site) -> list[Value]:
        """Calls the function with the caller's cores, or launches it on cores of its own."""
        code, size = self.compiled()
        if self.grid is None:
            frame = Frame(caller.run, caller.launch, caller.cores, [None] * size)
            return code.call(frame, values)
        return self.start(caller.run, caller.run.launch(self.grid, site.location or self.location), values)

    def start(self, run: Run, launch: Launch, values: Sequence[Value]) -> list[Value]:
        """Runs all cores of a launch to their end, in groups where that is possible."""
        code, size = self.compiled()
        cores = np.arange(launch.tiles, dtype=np.int64)
        results: list[Value] = []
        if self.group is None or code.results or self.program.observation is not None:
            results = code.call(Frame(run, launch, cores, [None] * size), values)
        else:

            def work(run: Run, group: Array) -> None:
                code.call(Frame(run, launch, group, [None] * size), values)

            run_groups(run, cores, self.group, work, independent=not self.has_scratchpads)
            if run.steps > run.max_steps:
                raise code.past_limit(run.max_steps)
        if run.checker is not None:
            run.checker.finish_launch()
        return results


def uses_buffers(function: FuncOp) -> bool:
    """Whether a function makes buffers of its own."""
    return any(op.name.startswith("memref.") for op in function.walk())


def grid_of(op: FuncOp) -> tuple[int, ...] | None:
    """The extents of a kernel's grid; None for a function that is no kernel."""
    attribute = op.attributes.get("grid")
    if attribute is None:
        return None
    entries = list(cast("ArrayAttr[Attribute]", attribute)) if isinstance(attribute, ArrayAttr) else [attribute]
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(each, IntegerAttr) for each in entries):
        raise IllegalGrid(
            "a grid has to be a list of numbers", location=location_of(op), remedy="write it as grid = [32]"
        )
    return tuple(cast("IntegerAttr[Any]", each).value.data for each in entries)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a run has to know of a module: see the methods of :class:`Program` with these names."""

    granule: int
    buffer_bytes: int
    ordered: bool


class Program:
    """A module ready to run: its functions, each compiled at most once."""

    def __init__(self, module: ModuleOp, observation: Observation | None = None) -> None:
        self.observation = observation
        self.functions = {
            op.sym_name.data: CompiledFunction(self, op) for op in module.walk() if isinstance(op, FuncOp)
        }
        self.module = module
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = Facts(self.granule(), self.buffer_bytes(), self.is_ordered())
        return self._facts

    def is_ordered(self) -> bool:
        """Whether cores wait for each other within a launch."""
        return any(op.name.startswith("ktdp.inter_tile") for op in self.module.walk())

    def function(self, name: str, site: Site) -> CompiledFunction:
        found = self.functions.get(name)
        if found is None or not found.op.body.blocks:
            raise site.fail(
                FunctionNotFound, f"calls @{name}, which has no body here", "define the function in the module"
            )
        return found

    def entry(self, name: str | None) -> CompiledFunction:
        """The function to run."""
        defined = {key: each for key, each in self.functions.items() if each.op.body.blocks}
        if name is not None:
            if name not in defined:
                raise FunctionNotFound(
                    f"there is no function @{name}", remedy=f"the module has: {', '.join(defined) or 'no function'}"
                )
            return defined[name]
        kernels = [each for each in defined.values() if each.grid is not None]
        if "main" in defined:
            return defined["main"]
        if len(kernels) == 1:
            return kernels[0]
        if len(defined) == 1:
            return next(iter(defined.values()))
        raise FunctionNotFound(
            "there is no @main and no single kernel to run",
            remedy=f"name one of: {', '.join(defined) or 'no function'}",
        )

    def granule(self) -> int:
        """The smallest element of any view or buffer, in bytes."""
        kinds = (
            op.results[0].type for op in self.module.walk() if op.name in ("ktdp.construct_memory_view", "memref.alloc")
        )
        return min((element_of(kind).itemsize for kind in kinds), default=16)

    def buffer_bytes(self) -> int:
        """An upper bound of what the buffers of host programs take."""
        total = 0
        for op in self.module.walk():
            if op.name != "memref.alloc":
                continue
            shape = shape_of(op.results[0].type)
            size = int(np.prod([max(1, extent) for extent in shape], dtype=np.int64))
            total += size * element_of(op.results[0].type).itemsize + GUARD
        return total

    def run(
        self,
        name: str | None,
        arguments: Mapping[str, object],
        *,
        machine: Machine | None = None,
        checks: bool = True,
        max_steps: int = MAX_STEPS,
        max_bytes: int = MAX_BYTES,
        memory: Sequence[Place] = (),
        read: Mapping[str, Region] | None = None,
    ) -> Execution:
        """As :func:`execute`, without compiling again what an earlier run compiled."""
        entry = self.entry(name)
        facts = self.facts
        keep_freed_memory()
        checker = Checker(ordered=facts.ordered) if checks else None
        run = Run(Memory(limit=max_bytes, granule=facts.granule), machine, checker, max_steps, max_bytes)
        given = sum(value.nbytes + GUARD for value in arguments.values() if is_array(value))
        run.memory.shared.reserve(given + facts.buffer_bytes)
        binding = Binding(entry, run)
        with np.errstate(all="ignore"):
            launch = run.launch((1,) if entry.grid is None else entry.grid, entry.location)
            binding.place(memory)
            for label, region in (read or {}).items():
                binding.reserve(label, region)
            values = binding.bind(arguments)
            results = entry.start(run, launch, values)
            returned = [_returned(value, entry) for value in results]
            outputs = binding.outputs()
            for label, region in (read or {}).items():
                outputs[label] = binding.read(region, label)
        hosts = 1 if entry.grid is None and run.launches > 1 else 0  # a function that launches others is no kernel
        statistics = Statistics(run.steps, run.launches - hosts)
        return Execution(outputs, [*binding.result_buffers(), *returned], run.diagnostics, statistics)


REUSED_AT_MOST = 32 << 20


def keep_freed_memory() -> None:
    """Lets the values of a run take the memory of earlier ones, instead of fresh pages from the system each time.

    glibc gives freed memory back at once until it has seen a bigger block come and go; 32 MiB is the biggest that
    counts. Elsewhere this does nothing. The block is never touched.
    """
    np.empty(REUSED_AT_MOST - 8192, np.uint8)


def _returned(value: Value, entry: CompiledFunction) -> Array:
    site = Site("func.return", "", entry.location)
    if isinstance(value, Tainted):
        raise value.origin.error(site)
    if is_array(value):
        return np.array(value[0])
    if isinstance(value, int):
        return np.array(value)
    raise site.fail(ArgumentError, "gives back what is no tensor and no number", "return tensors or numbers")


# -------------------------------------------------------------------------------------------------------------- binding


@dataclass(slots=True)
class Pointer:
    """An array in global memory that an argument points to, or one that is lent to it."""

    name: str
    arena: Arena
    allocation: Allocation
    array: Array


@dataclass(slots=True)
class Binding:
    """Brings the caller's arrays into the run, and what was stored back out."""

    entry: CompiledFunction
    run: Run
    pointers: list[Pointer] = field(default_factory=lambda: [])
    buffers: list[tuple[BlockArgument, HostBuffer]] = field(default_factory=lambda: [])

    # ------------------------------------------------------------------------------------------------------------- in

    def bind(self, arguments: Mapping[str, object]) -> list[Value]:
        parameters = list(self.entry.op.body.block.args)
        names = [argument_name(parameter) for parameter in parameters]
        unknown = [name for name in arguments if name not in names]
        if unknown:
            raise self._fault(
                f"@{self.entry.name} has no argument {', '.join(unknown)}",
                f"its arguments are: {', '.join(names) or 'none'}",
            )
        return [self._value(parameter, name, arguments) for parameter, name in zip(parameters, names, strict=True)]

    def _fault(self, message: str, remedy: str) -> ArgumentError:
        return ArgumentError(message, location=self.entry.location, remedy=remedy)

    def _value(self, parameter: BlockArgument, name: str, arguments: Mapping[str, object]) -> Value:
        kind = cast(Any, parameter.type)
        if name not in arguments:
            if isinstance(kind, MemRefType) and argument_attribute(parameter, "ktg.result") is not None:
                return self._buffer(parameter, name, None)
            raise self._fault(f"argument {name} of @{self.entry.name} is missing", f"pass a value for {name}")
        given = arguments[name]
        if isinstance(given, np.generic):
            given = cast(object, given.item())
        if isinstance(kind, MemRefType):
            return self._buffer(parameter, name, given)
        if isinstance(kind, TensorType):
            return self._checked(given, name, element_of(parameter.type), shape_of(parameter.type))[None]
        if isinstance(kind, IndexType) and is_array(given) and given.ndim:
            return self._pointer(parameter, name, given)
        if isinstance(kind, RuntimeArgType):
            return self._promised(kind, name, given)
        return self._scalar(kind, name, given)

    def _scalar(self, kind: Any, name: str, given: object) -> Value:
        element = element_type(kind)
        if is_array(given) and given.ndim == 0:
            given = cast(object, given.item())
        if isinstance(given, bool | int) and element.kind == "int":
            number = int(given)
            low = -1 << (element.bits - 1) if element.bits > 1 else 0
            if not low <= number < 1 << element.bits:
                raise self._fault(f"argument {name} = {number} does not fit {element.name}", "pass a smaller number")
            return wrap(number, element.bits)
        if isinstance(given, float | int) and element.kind == "float":
            return float_constant(float(given), element)
        raise self._fault(
            f"argument {name} is a {_described(given)}, which is no {element.name}", f"pass a number for {element.name}"
        )

    def _promised(self, kind: RuntimeArgType, name: str, given: object) -> Value:
        value = self._scalar(kind.payload, name, given)
        granularity, upper = kind.promise("granularity"), kind.promise("upperbound")
        if self.run.checker is not None and isinstance(value, int):
            if granularity is not None and (value <= 0 or value % granularity):
                raise self._fault(
                    f"argument {name} = {value} is no positive multiple of its granularity {granularity}",
                    "pass a multiple of the granularity",
                )
            if upper is not None and value > upper:
                raise self._fault(
                    f"argument {name} = {value} is above its upper bound {upper}", "pass a smaller number"
                )
        return value

    def _checked(self, given: object, name: str, element: ElementType, shape: tuple[int, ...]) -> Array:
        array = self._array(given, name, element)
        if len(array.shape) != len(shape) or any(
            size not in (extent, array.shape[axis]) or (size >= 0 and size != array.shape[axis])
            for axis, (size, extent) in enumerate(zip(shape, array.shape, strict=True))
        ):
            raise self._fault(
                f"argument {name} has shape {list(array.shape)}, @{self.entry.name} takes "
                f"{[size if size >= 0 else '?' for size in shape]}",
                "pass an array of that shape",
            )
        return array

    def _array(self, given: object, name: str, element: ElementType) -> Array:
        array = np.asarray(given)
        if not same_elements(array.dtype, element):
            raise self._fault(
                f"argument {name} has elements of type {array.dtype}, @{self.entry.name} takes {element.name}",
                f"convert the array to {element.name}",
            )
        return np.ascontiguousarray(array).view(element.dtype) if array.dtype != element.dtype else array

    def _buffer(self, parameter: BlockArgument, name: str, given: object) -> HostBuffer:
        element, shape = element_of(parameter.type), shape_of(parameter.type)
        if given is None:
            if any(size < 0 for size in shape):
                raise self._fault(f"argument {name} of unknown size is missing", f"pass an array for {name}")
            values = np.array(poison(shape, element)[0])
        else:
            values = self._checked(given, name, element, shape)
        buffer = HostBuffer(name, values, element)
        self.buffers.append((parameter, buffer))
        return buffer

    def _pointer(self, parameter: BlockArgument, name: str, array: Array) -> int:
        elements = pointed_elements(parameter)
        if elements and not any(same_elements(array.dtype, element) for element in elements):
            wanted = " or ".join(sorted({element.name for element in elements}))
            raise self._fault(
                f"argument {name} has elements of type {array.dtype}, its views have {wanted}",
                f"convert the array to {wanted}",
            )
        if array.dtype.kind not in "fiubV":
            raise self._fault(f"argument {name} has elements of type {array.dtype}", "pass an array of numbers")
        size, contents = array.dtype.itemsize, np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        way = way_of(parameter) if self.entry.lends else None
        if way is not None and all(element_of(view.view.type).itemsize == size for view in way.views):
            lent = self.run.memory.lend(parameter, name, contents.copy() if way.stored else contents, size)
            arena, first, (allocation,) = lent.arena, lent.first, lent.arena.allocations
        else:
            arena = self.run.memory.shared
            arena.refine(size)
            allocation = arena.hold(name, contents)
            first = allocation.start // size
        if self.run.checker is not None:
            layout = argument_attribute(parameter, LAYOUT)
            self.run.checker.declare(first * size, layout.layout if isinstance(layout, StickLayoutAttr) else None)
            self.run.checker.fill(allocation)
        self.pointers.append(Pointer(name, arena, allocation, array))
        return first

    # -------------------------------------------------------------------------------------------------- given addresses

    def place(self, places: Sequence[Place]) -> None:
        """Puts arrays at given addresses."""
        for number, place in enumerate(places):
            array = np.ascontiguousarray(np.asarray(place.array))
            name = place.name or f"place{number}"
            start, arena = self._start(place.byte, array.nbytes, place.space, place.core, name)
            arena.refine(array.dtype.itemsize)
            allocation = arena.allocate(name, array.nbytes, start=start)
            arena.bytes[allocation.start : allocation.stop] = array.reshape(-1).view(np.uint8)
            if self.run.checker is not None:
                arena.mark_written(allocation)  # not "filled", because others may be placed over it

    def reserve(self, name: str, region: Region) -> None:
        """Makes the place of a region exist."""
        size = int(np.prod(region.shape, dtype=np.int64)) * dtype_named(region.dtype, self.entry.location).itemsize
        start, arena = self._start(region.byte, size, region.space, region.core, name)
        if any(each.start <= start and start + size <= each.stop for each in arena.allocations):
            return
        arena.allocate(name, size, start=start)

    def read(self, region: Region, name: str) -> Array:
        """What a region holds now."""
        dtype = dtype_named(region.dtype, self.entry.location)
        size = int(np.prod(region.shape, dtype=np.int64)) * dtype.itemsize
        start, arena = self._start(region.byte, size, region.space, region.core, name)
        return arena.bytes[start : start + size].view(dtype).reshape(region.shape).copy()

    def _start(self, byte: int, size: int, space: str, core: int | None, name: str) -> tuple[int, Any]:
        memory = self.run.memory
        if byte < 0:
            raise OutOfBounds(f"{name} starts at byte {byte}", remedy="give an address that is not negative")
        if space == "global":
            return byte, memory.shared
        if core is None or not 0 <= core < memory.cores:
            raise ArgumentError(
                f"{name} is in the scratchpad of core {core}, the grid has {memory.cores}",
                remedy="name a core of the grid",
            )
        memory.provide_span(max(byte + size, PLACED_SPAN))
        return core * memory.span + byte, memory.local

    # ------------------------------------------------------------------------------------------------------------- out

    def outputs(self) -> dict[str, Array]:
        """The arrays that were stored to, with the shapes they were passed in."""
        found: dict[str, Array] = {}
        for pointer in self.pointers:
            arena, allocation = pointer.arena, pointer.allocation
            ranges = [each for (_, where), each in self.run.stored.items() if where is arena]
            if any(low < allocation.stop and allocation.start <= high for low, high in ranges):
                raw = arena.bytes[allocation.start : allocation.stop]
                values = raw.view(pointer.array.dtype).reshape(pointer.array.shape)
                found[pointer.name] = values.copy() if arena is self.run.memory.shared else values
        for _, buffer in self.buffers:
            if buffer.stored:
                found[buffer.name] = buffer.values
        return found

    def result_buffers(self) -> list[Array]:
        """The arguments marked as results, in the order of their numbers."""
        numbered: list[tuple[int, Array]] = []
        for parameter, buffer in self.buffers:
            number = argument_attribute(parameter, "ktg.result")
            if isinstance(number, IntegerAttr):
                numbered.append((number.value.data, buffer.values))
        return [values for _, values in sorted(numbered, key=lambda each: each[0])]


PLACED_SPAN = 4096


def argument_name(parameter: BlockArgument) -> str:
    """The name by which callers give an argument: its ``ktg.name``, or what the text calls it."""
    name = argument_attribute(parameter, "ktg.name")
    if isinstance(name, StringAttr):
        return name.data
    return parameter.name_hint or f"arg{parameter.index}"


def same_elements(dtype: np.dtype[Any], element: ElementType) -> bool:
    """Whether elements of a host array are those of an IR type; signs of integers do not matter, and bf16 may come as
    plain 16-bit words."""
    if dtype == element.dtype:
        return True
    if element.kind == "int":
        return dtype.kind in "iu" and dtype.itemsize == element.itemsize
    return element.name == "bf16" and dtype == np.uint16


def pointed_elements(parameter: BlockArgument) -> set[ElementType]:
    """Element types of the views that start at a pointer, or at a sum with it, in this function."""
    found: set[ElementType] = set()
    pending, seen = [cast(Any, parameter)], set[Any]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op: Operation = use.operation
            if op.name == "ktdp.construct_memory_view" and use.index == 0:
                found.add(element_of(op.results[0].type))
            elif op.name in ("arith.addi", "arith.subi"):
                pending.extend(op.results)
    return found


def dtype_named(name: str, location: Location | None) -> np.dtype[Any]:
    """The storage type of an element type given by name."""
    if name in FLOATS:
        return FLOATS[name].dtype
    if name == "index":
        return INTEGER_DTYPES[64]
    if name.startswith("i") and name[1:].isdigit() and int(name[1:]) in INTEGER_DTYPES:
        return INTEGER_DTYPES[int(name[1:])]
    raise ArgumentError(
        f"there is no element type {name}", location=location, remedy="use f16, bf16, f32, f64, i8 .. i64, i1"
    )


def _described(value: object) -> str:
    return f"{value.dtype} array" if is_array(value) else type(value).__name__


__all__ = ["Execution", "IntegerType", "Launch", "Place", "Program", "Region", "Statistics", "execute"]
