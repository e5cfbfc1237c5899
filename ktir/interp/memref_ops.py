"""The ``memref`` operations of ``@main``: device buffers, their pointers, copies and single elements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ktir.dialect.ktdp.attrs import ADDRESS, LAYOUT, StickLayoutAttr
from ktir.errors import OutOfBounds, UninitialisedRead, UnknownOperation
from ktir.interp.buffers import Buffer, DeviceBuffer, HostBuffer, PartOfBuffer, gathered, laid_out
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, element_of, shape_of
from ktir.interp.extents import extents_of, mixed, uniform
from ktir.interp.ktdp_ops import valid_places
from ktir.interp.numerics import Array, as_array, as_scalar
from ktir.interp.run import Run
from ktir.interp.slices import Slices, reduced_shape
from ktir.interp.values import Frame, Site, demand
from ktir.machine.memory_arena import WRITTEN


def alloc(compiler: FunctionCompiler, op: Operation) -> Step:
    """A buffer of global memory, at its planned byte address where it has one."""
    site, kind = compiler.site(op), op.results[0].type
    out, element, name = compiler.slot(op.results[0]), element_of(kind), op.results[0].name_hint or "buffer"
    shape = mixed(compiler, shape_of(kind), list(op.operands))
    planned, layout = op.attributes.get(ADDRESS), op.attributes.get(LAYOUT)
    address = planned.value.data if isinstance(planned, IntegerAttr) else None
    sticks = layout.layout if isinstance(layout, StickLayoutAttr) else None

    def step(frame: Frame) -> None:
        run = frame.run
        extents = extents_of(shape, element, frame, site)
        count = int(np.prod(extents, dtype=np.int64))
        if sticks is not None and sticks.elements != count:
            raise site.fail(
                OutOfBounds,
                f"has {count} elements, its stick layout {sticks.elements}",
                "give the buffer the shape of its layout",
            )
        arena = run.memory.shared
        allocation = arena.allocate(name, count * element.itemsize, start=address)
        if run.checker is not None:
            run.checker.declare(allocation.start, sticks)
            run.checker.empty(arena, allocation)
        if address is not None:
            arena.poison(allocation)
        frame.regs[out] = DeviceBuffer(allocation, extents, element, sticks)

    return step


def pointer(compiler: FunctionCompiler, op: Operation) -> Step:
    """The byte address of a buffer."""
    site = compiler.site(op)
    source, out = compiler.slot(op.operands[0]), compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        buffer = frame.regs[source]
        if not isinstance(buffer, DeviceBuffer):
            raise site.fail(
                UnknownOperation, "asks for the address of a host tensor", "copy it to a buffer with ktg.transfer first"
            )
        frame.regs[out] = buffer.allocation.start

    return step


def transfer(compiler: FunctionCompiler, op: Operation) -> Step:
    """``ktg.transfer`` and ``memref.copy``: copies the logical elements, whatever the layouts."""
    site = compiler.site(op)
    source, target = (compiler.slot(value) for value in op.operands)

    def step(frame: Frame) -> None:
        write_buffer(frame.regs[target], read_buffer(frame.regs[source], frame.run, site), frame.run, site)

    return step


def contents(buffer: DeviceBuffer, run: Run) -> Array:
    """The elements of a device buffer as they lie in memory, not copied."""
    allocation = buffer.allocation
    return run.memory.shared.bytes[allocation.start : allocation.stop].view(buffer.element.dtype)


def read_buffer(buffer: Buffer, run: Run, site: Site) -> Array:
    """The logical tensor."""
    if isinstance(buffer, HostBuffer):
        return buffer.values
    if isinstance(buffer, PartOfBuffer):
        return read_part(buffer, run, site)
    if run.checker is not None:
        _require_written(buffer, run, site)
    elements = contents(buffer, run)
    if buffer.layout is None:
        return elements.reshape(buffer.shape)
    return gathered(elements, buffer.layout)


def read_part(part: PartOfBuffer, run: Run, site: Site) -> Array:
    """A slice; of a dense device buffer, only its own elements have to be written."""
    whole = part.whole
    if isinstance(whole, DeviceBuffer) and whole.layout is None:
        if run.checker is not None and not written_of(whole, run)[part.index].all():
            raise unwritten(whole, int(np.argmin(written_of(whole, run)[part.index])), site)
        return contents(whole, run).reshape(whole.shape)[part.index].reshape(part.extent)
    return read_buffer(whole, run, site)[part.index].reshape(part.extent)


def written_of(buffer: DeviceBuffer, run: Run) -> Array:
    """Which elements of a buffer somebody wrote, in its shape."""
    arena, allocation = run.memory.shared, buffer.allocation
    arena.refine(buffer.element.itemsize)
    written = arena.written[allocation.start // arena.granule : allocation.stop // arena.granule] != 0
    return written.reshape(-1, buffer.element.itemsize // arena.granule).all(axis=1).reshape(buffer.shape)


def unwritten(buffer: DeviceBuffer, element: int, site: Site) -> Exception:
    return site.fail(
        UninitialisedRead,
        f"reads element {element} of buffer %{buffer.allocation.name}, which nobody wrote",
        "let a kernel write all of the buffer first",
    )


def _require_written(buffer: DeviceBuffer, run: Run, site: Site) -> None:
    missing = ~written_of(buffer, run).ravel()
    if buffer.layout is not None:
        missing &= valid_places(buffer.layout).ravel()
    if missing.any():
        raise unwritten(buffer, int(np.argmax(missing)), site)


def write_buffer(buffer: Buffer, values: Array, run: Run, site: Site) -> None:
    """Writes the logical tensor; padding is filled as the layout says."""
    extent = buffer.extent
    if values.size != int(np.prod(extent, dtype=np.int64)):
        raise site.fail(
            OutOfBounds, f"copies {list(values.shape)} to {list(extent)}", "copy between tensors of as many elements"
        )
    values = values.reshape(extent)
    if isinstance(buffer, PartOfBuffer):
        write_part(buffer, values, run, site)
        return
    if isinstance(buffer, HostBuffer):
        buffer.values = np.array(values)
        buffer.stored = True
        return
    elements = contents(buffer, run)
    if buffer.layout is None:
        elements.reshape(buffer.shape)[...] = values
    else:
        before = elements.reshape(buffer.layout.physical_shape)
        before[...] = laid_out(values, buffer.layout, before)
    if run.checker is not None:
        run.checker.fill(buffer.allocation)


def write_part(part: PartOfBuffer, values: Array, run: Run, site: Site) -> None:
    """Writes a slice and leaves the rest as it is."""
    whole = part.whole
    if isinstance(whole, DeviceBuffer) and whole.layout is None:
        target = contents(whole, run).reshape(whole.shape)[part.index]
        target[...] = values.reshape(target.shape)
        if run.checker is not None:
            arena, allocation = run.memory.shared, whole.allocation
            arena.refine(whole.element.itemsize)
            marks = arena.written[allocation.start // arena.granule : allocation.stop // arena.granule]
            marks.reshape(*whole.shape, -1)[part.index] = WRITTEN
        return
    before = np.array(read_buffer(whole, run, site))
    target = before[part.index]
    target[...] = values.reshape(target.shape)
    write_buffer(whole, before, run, site)


def subview(compiler: FunctionCompiler, op: Operation) -> Step:
    """A slice of a buffer that shares its elements; unit dimensions that its type leaves out are dropped."""
    source, out = compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    slices, static = Slices(compiler, op, op.operands[0]), shape_of(op.results[0].type)

    def step(frame: Frame) -> None:
        buffer = frame.regs[source]
        index, extents = slices.index(frame, buffer.extent)
        frame.regs[out] = PartOfBuffer(buffer, index[1:], reduced_shape(static, extents))

    return step


def load(compiler: FunctionCompiler, op: Operation) -> Step:
    """One element."""
    site = compiler.site(op)
    source, *indices = (compiler.slot(value) for value in op.operands)
    out = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        values = read_buffer(frame.regs[source], frame.run, site)
        place = _place([frame.regs[slot] for slot in indices], values.shape, site)
        element = values[place].reshape(1)
        frame.regs[out] = as_scalar(element.copy()) if element.dtype.kind in "ib" else element.copy()

    return step


def store(compiler: FunctionCompiler, op: Operation) -> Step:
    """One element."""
    site, element = compiler.site(op), element_of(op.operands[0].type)
    data, target, *indices = (compiler.slot(value) for value in op.operands)

    def step(frame: Frame) -> None:
        buffer = frame.regs[target]
        values = np.array(read_buffer(buffer, frame.run, site))
        place = _place([frame.regs[slot] for slot in indices], values.shape, site)
        values[place] = as_array(demand(frame.regs[data], site), element.dtype)[0]
        write_buffer(buffer, values, frame.run, site)

    return step


def _place(indices: list[Any], shape: tuple[int, ...], site: Site) -> tuple[int, ...]:
    place = tuple(uniform(demand(index, site), site, "indices") for index in indices)
    if any(not 0 <= index < size for index, size in zip(place, shape, strict=True)):
        raise site.fail(OutOfBounds, f"uses element {list(place)} of {list(shape)}", "keep the indices inside")
    return place


def dim(compiler: FunctionCompiler, op: Operation) -> Step:
    site = compiler.site(op)
    source, axis, out = (compiler.slot(value) for value in (*op.operands, op.results[0]))

    def step(frame: Frame) -> None:
        buffer = frame.regs[source]
        shape = buffer.shape if isinstance(buffer, DeviceBuffer) else buffer.extent
        (wanted,) = _place([frame.regs[axis]], (len(shape),), site)
        frame.regs[out] = int(shape[wanted])

    return step


def same(compiler: FunctionCompiler, op: Operation) -> Step:
    source, out = compiler.slot(op.operands[0]), compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame.regs[out] = frame.regs[source]

    return step


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "memref.alloc": alloc,
        "memref.dealloc": lambda compiler, op: None,
        "memref.extract_aligned_pointer_as_index": pointer,
        "memref.copy": transfer,
        "memref.load": load,
        "memref.store": store,
        "memref.dim": dim,
        "memref.subview": subview,
        "memref.cast": same,
        "memref.memory_space_cast": same,
    }
)
