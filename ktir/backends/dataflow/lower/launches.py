"""What a program launches: the host function run ahead of time, or one kernel with the arguments it is given.

Device buffers get their place in device memory here (a buffer of ``@main`` already has one), so that every pointer is a
number. Words. launch: a kernel with the integers it is called with. transfer: a copy between a host tensor and a device
buffer, done by the host outside the program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias, cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ktir.backends.dataflow.lower import scalars
from ktir.backends.dataflow.lower.context import refuse
from ktir.backends.dataflow.lower.plan import Storage, element_bytes
from ktir.backends.dataflow.lower.values import CoreValue, NotAffine, constant
from ktir.dialect import ktdp
from ktir.dialect.ktdp.attrs import ADDRESS, LAYOUT
from ktir.dialect.locations import location_of
from ktir.errors import ArgumentError, FunctionNotFound, GridExceedsMachine, IllegalGrid
from ktir.machine.description import Machine
from ktir.maths.stick_layout import StickLayout


@dataclass(frozen=True)
class ArrayArgument:
    """An array that a launch is given: ``element`` as in the IR, ``f16``. ``byte``: where it has to lie.

    One with a place and a name that no argument has is an *image*: memory for kernels with addresses in their text.
    """

    shape: tuple[int, ...]
    element: str
    byte: int | None = None


Argument: TypeAlias = "int | float | ArrayArgument"
LaunchArguments: TypeAlias = Mapping[str, Argument]
"""Arguments of a function by name."""


@dataclass(frozen=True)
class Launch:
    """A kernel and its arguments: integers (pointers count elements), floats, or None for one that is unused.

    ``buffers``: for each argument the allocation it points into, None where it is no pointer.
    """

    kernel: func.FuncOp
    arguments: tuple[int | float | None, ...]
    buffers: tuple[Storage | None, ...]
    call: Operation | None


@dataclass(frozen=True)
class Placed:
    """An array in device memory, from ``offset`` on: dense, or in sticks as ``layout`` says."""

    name: str
    offset: int
    shape: tuple[int, ...]
    element: str
    layout: StickLayout | None = None

    @property
    def size(self) -> int:
        """Bytes it takes, padding included."""
        count = prod(self.shape) if self.layout is None else self.layout.elements
        return count * _bytes_of(self.element)


@dataclass(eq=False)
class Trace:
    """All launches in order, the allocations, and what the host copies before the first and after the last launch."""

    launches: list[Launch] = field(default_factory=list[Launch])
    allocations: list[Storage] = field(default_factory=list[Storage])
    inputs: list[Placed] = field(default_factory=list[Placed])
    outputs: list[Placed] = field(default_factory=list[Placed])

    @property
    def end(self) -> int:
        """The first byte behind all allocations."""
        return max((storage.offset + storage.size for storage in self.allocations), default=0)


def _bytes_of(element: str) -> int:
    bits = re.search(r"\d+", element)
    return max(1, -(-int(bits[0]) // 8)) if bits else 8


def grid_of(kernel: func.FuncOp) -> tuple[int, ...]:
    """The grid of a kernel; one tile where it has none."""
    grid = kernel.attributes.get("grid")
    match grid:
        case None:
            extents: tuple[int, ...] = (1,)
        case ArrayAttr():
            extents = tuple(cast("IntegerAttr", e).value.data for e in grid)
        case DenseArrayBase():
            extents = tuple(int(e) for e in cast("DenseArrayBase[IntegerType]", grid).get_values())
        case _:
            extents = ()
    if not extents or any(extent <= 0 for extent in extents):
        raise IllegalGrid(f"the grid {grid} has no tiles", location=location_of(kernel), remedy="use positive extents")
    return extents


def find_function(module: ModuleOp, name: str | None) -> func.FuncOp:
    """The function of that name; without a name ``@main``, or the only function."""
    return pick_function(functions_of(module), name)


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions of ``module`` by name."""
    return {op.sym_name.data: op for op in module.walk() if isinstance(op, func.FuncOp)}


def pick_function(functions: Mapping[str, func.FuncOp], name: str | None) -> func.FuncOp:
    """See :func:`find_function`."""
    if name is None:
        name = "main" if "main" in functions else next(iter(functions)) if len(functions) == 1 else None
    if name is None or name not in functions:
        wanted = f"no function @{name}" if name else "several functions and no @main"
        raise FunctionNotFound(f"the module has {wanted}", remedy=f"it has {', '.join(f'@{f}' for f in functions)}")
    return functions[name]


def trace(module: ModuleOp, machine: Machine, function: str | None, arguments: LaunchArguments) -> Trace:
    """The launches of ``function``, called with ``arguments``."""
    entry = find_function(module, function)
    calls = [op for op in entry.walk() if isinstance(op, func.CallOp)]
    memrefs = any(isinstance(argument.type, MemRefType) for argument in entry.body.block.args)
    tracer = _Tracer(module, machine, arguments, Trace())
    if "grid" not in entry.attributes and (calls or memrefs):
        tracer.host(entry)
    else:
        tracer.kernel(entry)
    for launch in tracer.result.launches:
        if (tiles := prod(grid_of(launch.kernel))) > machine.cores:
            raise GridExceedsMachine(
                f"@{launch.kernel.sym_name.data} runs on {tiles} tiles, {machine.name} has {machine.cores} cores",
                location=location_of(launch.kernel),
                remedy="use a smaller grid",
            )
    return tracer.result


def argument_names(entry: func.FuncOp) -> list[str]:
    """Names of the arguments: ``ktg.name`` where given, else the name in the text, else the position."""
    attributes = list(entry.arg_attrs) if entry.arg_attrs is not None else []
    names: list[str] = []
    for number, argument in enumerate(entry.body.block.args):
        given = attributes[number].data.get("ktg.name") if number < len(attributes) else None
        names.append(given.data if isinstance(given, StringAttr) else argument.name_hint or f"arg{number}")
    return names


class _Tracer:
    def __init__(self, module: ModuleOp, machine: Machine, arguments: LaunchArguments, result: Trace) -> None:
        self.module, self.machine, self.arguments, self.result = module, machine, arguments, result
        self.values: dict[SSAValue, object] = {}
        self.buffers: dict[SSAValue, Storage] = {}
        self.functions = functions_of(module)
        self.next_free = 0

    # ----------------------------------------------------------------------------------------------------------- kernel

    def kernel(self, entry: func.FuncOp) -> None:
        """One launch. Pointers go to arrays; the same pointer value counts elements of the array's type."""
        names = argument_names(entry)
        images = {
            name: given
            for name, given in self.arguments.items()
            if name not in names and isinstance(given, ArrayArgument) and given.byte is not None
        }
        if unknown := self.arguments.keys() - {*names, *images}:
            raise ArgumentError(
                f"@{entry.sym_name.data} has no argument {', '.join(sorted(unknown))}",
                location=location_of(entry),
                remedy=f"it takes {', '.join(names) or 'none'}",
            )
        fixed = [a for a in self.arguments.values() if isinstance(a, ArrayArgument) and a.byte is not None]
        self.next_free = max((self._end(a.byte or 0, a) for a in fixed), default=0)
        values: list[int | float | None] = []
        buffers: list[Storage | None] = []
        for name, argument in zip(names, entry.body.block.args, strict=True):
            given = self.arguments.get(name)
            buffers.append(None)
            if given is None:
                if argument.uses:
                    raise ArgumentError(f"argument {name} is missing", location=location_of(entry))
                values.append(None)
            elif isinstance(given, ArrayArgument):
                placed = self._place(name, given)
                buffers[-1] = self.result.allocations[-1]
                values.append(placed.offset // _bytes_of(given.element))
            else:
                values.append(given)
        self._place_images(images)
        self.result.launches.append(Launch(entry, tuple(values), tuple(buffers), None))

    def _place_images(self, images: Mapping[str, ArrayArgument]) -> None:
        """Images lie in one allocation: views at literal addresses may cross from one to the next."""
        placed = [Placed(name, image.byte or 0, image.shape, image.element) for name, image in images.items()]
        if placed:
            self._allocate("memory", 0, max(each.offset + each.size for each in placed))
            self.result.inputs += placed
            self.result.outputs += placed

    def _place(self, name: str, array: ArrayArgument) -> Placed:
        offset = self.next_free if array.byte is None else array.byte
        placed = Placed(name, offset, array.shape, array.element)
        if array.byte is None:
            self.next_free = self._aligned(offset + max(1, placed.size))
        self._allocate(name, offset, placed.size)
        self.result.inputs.append(placed)
        self.result.outputs.append(placed)
        return placed

    def _end(self, start: int, array: ArrayArgument) -> int:
        return self._aligned(start + prod(array.shape) * _bytes_of(array.element))

    def _aligned(self, offset: int) -> int:
        step = max(128, self.machine.alignment)
        return -(-offset // step) * step

    def _allocate(self, name: str, offset: int, size: int, origin: Operation | None = None) -> None:
        self.result.allocations.append(Storage(name, "global", offset, max(1, size), origin))

    # ------------------------------------------------------------------------------------------------------------- host

    def host(self, entry: func.FuncOp) -> None:
        """Runs the host function: allocations, transfers, launches, loops with constant bounds."""
        self._allocate_buffers(entry)
        for name, argument in zip(argument_names(entry), entry.body.block.args, strict=True):
            type: Attribute = argument.type
            if type.name == MemRefType.name:
                self.values[argument] = host_array(name, type)
                continue
            given = self.arguments.get(name)
            if isinstance(given, ArrayArgument):
                self.values[argument] = constant(self._place(name, given).offset // _bytes_of(given.element), 1)
                self.buffers[argument] = self.result.allocations[-1]
            elif isinstance(given, int | float):
                self.values[argument] = given if isinstance(argument.type, AnyFloat) else constant(int(given), 1)
            else:
                raise ArgumentError(f"argument {name} is missing", location=location_of(entry))
        self._block(entry.body.block)

    def _allocate_buffers(self, entry: func.FuncOp) -> None:
        """Places the buffers that have no address behind those that have one."""
        allocations = [op for op in entry.walk() if isinstance(op, memref.AllocOp)]
        addressed = {op: a.value.data for op in allocations if isinstance(a := op.attributes.get(ADDRESS), IntegerAttr)}
        self.next_free = max((self._aligned(a + _memref_bytes(op)) for op, a in addressed.items()), default=0)
        for number, op in enumerate(allocations):
            size = _memref_bytes(op)
            offset = addressed.get(op)
            if offset is None:
                offset = self.next_free
                self.next_free = self._aligned(offset + size)
            name = op.memref.name_hint or f"b{number}"
            type = op.memref.type
            layout = op.attributes.get(LAYOUT)
            self._allocate(f"{name}.{number}", offset, size, op)
            self.buffers[op.memref] = self.result.allocations[-1]
            self.values[op.memref] = Placed(
                name,
                offset,
                tuple(type.get_shape()),
                str(type.element_type),
                layout.layout if isinstance(layout, ktdp.StickLayoutAttr) else None,
            )

    def _block(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case func.CallOp():
                    self._call(op)
                case scf.ForOp():
                    self._loop(op)
                case memref.AllocOp() | memref.DeallocOp() | func.ReturnOp() | scf.YieldOp():
                    pass
                case arith.ConstantOp(value=FloatAttr() as number):
                    self.values[op.result] = number.value.data
                case _ if op.name == "ktg.transfer":
                    self._transfer(op)
                case _ if op.name == "memref.extract_aligned_pointer_as_index":
                    self._pointer(op)
                case _:
                    self._integer(op)

    def _buffer(self, value: SSAValue, op: Operation) -> Placed:
        buffer = self.values.get(value)
        if not isinstance(buffer, Placed):
            refuse(op, "its buffer is not an allocation or argument of the host function")
        return buffer

    def _pointer(self, op: Operation) -> None:
        memref_value = op.operands[0]
        placed = self._on_device(self._buffer(memref_value, op))
        known = self.buffers.get(memref_value)
        found = (each for each in self.result.allocations if each.offset == placed.offset and each.name == placed.name)
        self.values[op.results[0]] = constant(placed.offset, 1)
        self.buffers[op.results[0]] = known if known is not None else next(found)

    def _on_device(self, buffer: Placed) -> Placed:
        """A host array that kernels use directly gets a place, and is copied both ways."""
        if buffer.offset >= 0:
            return buffer
        known = next((p for p in self.result.inputs if p.name == buffer.name and p.layout is None), None)
        if known is not None:
            return known
        placed = Placed(buffer.name, self.next_free, buffer.shape, buffer.element)
        self.next_free = self._aligned(placed.offset + max(1, placed.size))
        self._allocate(buffer.name, placed.offset, placed.size)
        self.result.inputs.append(placed)
        self.result.outputs.append(placed)
        return placed

    def _transfer(self, op: Operation) -> None:
        """Host to device before the launches or device to host after them."""
        source, target = (self._buffer(operand, op) for operand in op.operands)
        if source.offset < 0 <= target.offset:
            if self.result.launches:
                refuse(op, "it copies to the device behind a launch", "copy all inputs before the first launch")
            self.result.inputs.append(_under(source, target))
        elif target.offset < 0 <= source.offset:
            self.result.outputs.append(_under(target, source))
        else:
            refuse(op, "it does not copy between a host tensor and a device buffer")

    def _integer(self, op: Operation) -> None:
        operands = [self.values.get(operand) for operand in op.operands]
        known = [operand for operand in operands if isinstance(operand, CoreValue)]
        if len(known) == len(operands):
            try:
                value = scalars.evaluate(op, known, 1)
            except NotAffine as fault:
                refuse(op, str(fault))
            if value is not None and len(op.results) == 1:
                self.values[op.results[0]] = value
                pointed = [self.buffers[operand] for operand in op.operands if operand in self.buffers]
                if pointed:
                    self.buffers[op.results[0]] = pointed[0]
                return
        refuse(op, "the host function may only allocate, transfer, compute integers and launch")

    def _loop(self, op: scf.ForOp) -> None:
        lower, upper, step = (self._known(bound, op) for bound in (op.lb, op.ub, op.step))
        if step <= 0 or op.iter_args:
            refuse(op, "a loop of launches has a positive step and carries nothing")
        for number in range(lower, upper, step):
            self.values[op.body.block.args[0]] = constant(number, 1)
            self._block(op.body.block)

    def _known(self, value: SSAValue, op: Operation) -> int:
        found = self.values.get(value)
        if not isinstance(found, CoreValue) or (number := found.uniform) is None:
            refuse(op, "its bounds are not constant")
        return number

    def _call(self, op: func.CallOp) -> None:
        kernel = pick_function(self.functions, op.callee.string_value())
        values: list[int | float | None] = []
        for operand in op.arguments:
            found = self.values.get(operand)
            if isinstance(found, CoreValue):
                found = found.uniform
            if not isinstance(found, int | float):
                refuse(op, "an argument is no number that is known ahead")
            values.append(found)
        if op.results:
            refuse(op, "a kernel returns nothing")
        buffers = tuple(self.buffers.get(operand) for operand in op.arguments)
        self.result.launches.append(Launch(kernel, tuple(values), buffers, op))


def host_array(name: str, type: Attribute) -> Placed:
    """A tensor of the host, which has no place on the device."""
    kind = cast("MemRefType[Attribute]", type)
    return Placed(name, -1, tuple(kind.get_shape()), str(kind.element_type))


def _under(host: Placed, device: Placed) -> Placed:
    """The device's place under the host's name and logical shape."""
    return Placed(host.name, device.offset, host.shape, host.element, device.layout)


def _memref_bytes(op: memref.AllocOp) -> int:
    type = op.memref.type
    assert isinstance(type, MemRefType)
    return prod(type.get_shape()) * element_bytes(type.get_element_type())
