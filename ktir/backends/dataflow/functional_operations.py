"""What each operation of a unit does to data: one function an operation, from instruction to executor.

An *executor* is built once per instruction, with everything that does not change resolved, and called for each actor
and iteration. It returns False if the actor has to wait, having listed it as a waiter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.expression import Evaluator
from ktir.backends.dataflow.functional_state import Actor, Ring, State
from ktir.backends.dataflow.scalar_region import (
    FLOATS,
    compile_region,
    raw_dtype,
    reduce_blocks,
    scan_blocks,
    to_raw,
    working,
)
from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Link
from ktir.dialect import dfp
from ktir.errors import DataflowError, DescriptorOutOfBounds, QueueMisuse

Array = NDArray[Any]
Executor = Callable[[Actor], bool]

MOST_PRODUCTS: Final = 1 << 17
"""Multiply-accumulates of one call of the numerical library."""
_DEPTH_STEP: Final = 64


def _barrier(state: State, instruction: Instruction) -> Executor:
    def execute(actor: Actor) -> bool:
        state.at_barrier.append(actor)
        actor.waits_for = f"the barrier before launch {instruction.launch}"
        if len(state.at_barrier) < len(state.actors):
            return False
        others = state.at_barrier[:-1]
        state.leave_barrier(others, instruction)
        return True

    return execute


def _token(state: State, instruction: Instruction) -> Executor:
    buffer = cast("Buffer", instruction.ring)
    moves = {"reserve": _reserve, "commit": _commit, "acquire": _acquire, "release": _release}
    move = moves[instruction.kind]
    return lambda actor: move(state, actor, state.ring(actor.core, buffer), instruction)


def _reserve(state: State, actor: Actor, ring: Ring, instruction: Instruction) -> bool:
    number = actor.code.number
    if not ring.free(number):
        ring.waiters.append(actor)
        actor.waits_for = f"a free slot of buffer {ring.buffer.name}"
        return False
    if ring.buffer.per_core and ring.reserved[number] == max(ring.reserved.values()):
        slot = ring.reserved[number] % ring.buffer.slots
        start = actor.core * state.span + ring.buffer.offset + slot * ring.buffer.size
        state.shadow[start : start + ring.buffer.size] = 0
    if state.order is not None:
        state.order.reserve(id(ring), actor.number, ring.reserved[number] - ring.buffer.slots)
    ring.reserved[number] += 1
    return True


def _commit(state: State, actor: Actor, ring: Ring, instruction: Instruction) -> bool:
    number = actor.code.number
    if ring.reserved.get(number, 0) <= ring.committed.get(number, 0):
        raise QueueMisuse(f"dfp.commit of buffer {ring.buffer.name} without a reserve", location=instruction.location)
    ring.committed[number] += 1
    if state.order is not None:
        state.order.commit(id(ring), actor.number)
    state.wake(ring.waiters)
    return True


def _acquire(state: State, actor: Actor, ring: Ring, instruction: Instruction) -> bool:
    if ring.acquired[actor.code.number] >= ring.full:
        ring.waiters.append(actor)
        actor.waits_for = f"a full slot of buffer {ring.buffer.name} from {ring.buffer.producer}"
        return False
    if state.order is not None:
        state.order.acquire(id(ring), actor.number, ring.acquired[actor.code.number])
    ring.acquired[actor.code.number] += 1
    return True


def _release(state: State, actor: Actor, ring: Ring, instruction: Instruction) -> bool:
    number = actor.code.number
    if ring.released.get(number, 0) >= ring.acquired.get(number, 0):
        raise QueueMisuse(f"dfp.release of buffer {ring.buffer.name} without an acquire", location=instruction.location)
    ring.released[number] += 1
    if state.order is not None:
        state.order.release(id(ring), actor.number)
    state.wake(ring.waiters)
    return True


def _copy(state: State, instruction: Instruction) -> Executor:
    """What nobody wrote to device memory, a padding lane perhaps, may be copied; it stays unwritten."""
    read, written = instruction.accesses
    source, target = state.viewer(read, instruction), state.viewer(written, instruction)
    before, after = state.shadow_viewer(read, instruction), state.shadow_viewer(written, instruction)
    carries = state.device_shadow is not None and not read.buffer.per_core

    def execute(actor: Actor) -> bool:
        elements = source(actor)
        target(actor)[...] = elements
        if carries:
            after(actor)[...] = before(actor)
        return True

    return execute


def _indirect(state: State, instruction: Instruction) -> Executor:
    op = cast("dfp.IndirectOperation", instruction.op)
    index_view = state.viewer(instruction.accesses[0], instruction)
    gathers = instruction.kind == "gather"
    rows, lines = instruction.accesses[1:] if gathers else instruction.accesses[:0:-1]
    line_view = state.viewer(lines, instruction)
    row_view = _RowViewer(state, rows, instruction)
    line_shadow = state.shadow_viewer(lines, instruction)
    carries = gathers and state.device_shadow is not None and not rows.buffer.per_core
    stride = op.row_stride.value.data

    def execute(actor: Actor) -> bool:
        numbers = index_view(actor).tolist()
        all_lines = line_view(actor)
        for line, number in zip(all_lines, numbers, strict=True):
            row = row_view(actor, number * stride, number)
            if gathers:
                line[...] = row
            else:
                row[...] = line
        if carries:
            for shadow, number in zip(line_shadow(actor), numbers, strict=True):
                shadow[...] = row_view.shadow(actor, number * stride)
        return True

    return execute


def _stream(state: State, instruction: Instruction) -> Executor:
    view, flow = state.viewer(instruction.accesses[0], instruction), instruction.pushes[0]

    def execute(actor: Actor) -> bool:
        state.push(actor, flow, view(actor).flatten())
        return True

    return execute


def _drain(state: State, instruction: Instruction) -> Executor:
    view, flow = state.viewer(instruction.accesses[0], instruction), instruction.pops[0]
    pop = state.popper(flow, instruction)
    shape = instruction.accesses[0].box.counts

    def execute(actor: Actor) -> bool:
        if not state.has(actor, flow):
            return False
        elements = pop(actor)
        view(actor)[...] = elements.reshape(shape)
        return True

    return execute


def _send(state: State, instruction: Instruction) -> Executor:
    """A message to one core or to several."""
    view, peers = state.viewer(instruction.accesses[0], instruction), _Peers(state, instruction)

    def execute(actor: Actor) -> bool:
        elements = view(actor).flatten()
        for target in peers.targets(actor):
            state.give(actor, state.channel(peers.net, actor.core, target), elements)
        return True

    return execute


def _receive(state: State, instruction: Instruction) -> Executor:
    access = instruction.accesses[0]
    view, peers = state.viewer(access, instruction), _Peers(state, instruction)
    count, dtype, shape = access.box.elements, raw_dtype(access.element), access.box.counts

    def execute(actor: Actor) -> bool:
        for source in peers.sources(actor):
            channel = state.channel(peers.net, source, actor.core)
            if channel.count < count:
                channel.waiters.append(actor)
                actor.waits_for = f"{count} elements from core {source}, of which {channel.count} are here"
                return False
            elements = state.take(actor, channel, count, dtype, instruction)
            view(actor)[...] = elements.reshape(shape)
        return True

    return execute


def _chain(state: State, instruction: Instruction) -> Executor:
    read, written = (state.viewer(access, instruction) for access in instruction.accesses)
    peers, element = _Peers(state, instruction), instruction.accesses[0].element
    combine = _CHAINED[cast("dfp.ChainOp", instruction.op).combine.data]
    count, wide = instruction.accesses[0].box.elements, np.dtype(np.float32)

    def execute(actor: Actor) -> bool:
        channels = [state.channel(peers.net, source, actor.core) for source in peers.sources(actor)]
        for channel in channels:
            if channel.count < count:
                channel.waiters.append(actor)
                actor.waits_for = f"{count} partial results, of which {channel.count} are here"
                return False
        partial = _matrix(read(actor).flatten(), element)
        for channel in channels:
            with np.errstate(all="ignore"):
                partial = combine(state.take(actor, channel, count, wide, instruction), partial)
        targets = peers.targets(actor)
        for target in targets:
            state.give(actor, state.channel(peers.net, actor.core, target), partial)
        if not targets:
            place = written(actor)
            place[...] = to_raw(partial, element).reshape(place.shape)
        return True

    return execute


_CHAINED: Final = {"add": np.add, "max": np.maximum, "min": np.minimum}


class _Peers:
    """The cores at the other side of an instruction, for an actor at the moment."""

    def __init__(self, state: State, instruction: Instruction) -> None:
        link = cast("Link", instruction.link)
        self.net, self.cores, self.location = link.net, state.program.cores, instruction.location
        self._sources = [peer.evaluator() for peer in link.sources]
        self._targets = [peer.evaluator() for peer in link.targets]

    def sources(self, actor: Actor) -> list[int]:
        """Whom the actor receives from."""
        return self._numbers(self._sources, actor)

    def targets(self, actor: Actor) -> list[int]:
        """Whom the actor sends to."""
        return self._numbers(self._targets, actor)

    def _numbers(self, ends: Sequence[Evaluator], actor: Actor) -> list[int]:
        found = [core for end in ends if (core := end(actor.core, actor.cursor.indices)) >= 0]
        if any(core >= self.cores for core in found):
            raise DataflowError(f"there is no core {max(found)}", location=self.location)
        return found


def _sfu_map(state: State, instruction: Instruction) -> Executor:
    op = cast("dfp.SfuMapOp", instruction.op)
    region = compile_region(op.body.block)
    shape = dfp.values_of(op.shape)
    positions: list[Array] = []
    if region.index_dimensions:
        positions = [axis.ravel() for axis in np.indices(shape, dtype=np.int64)]
    pops = [(state.popper(flow, instruction), flow.element) for flow in instruction.pops]
    pushed = instruction.pushes[0]

    def execute(actor: Actor) -> bool:
        if not all(state.has(actor, flow) for flow in instruction.pops):
            return False
        blocks = [working(pop(actor), element) for pop, element in pops]
        found = to_raw(region(blocks, positions), pushed.element)
        if found.size != pushed.elements:
            found = np.broadcast_to(found, (pushed.elements,)).copy()
        state.push(actor, pushed, found)
        return True

    return execute


def _fold(state: State, instruction: Instruction) -> Executor:
    """A reduction or a scan along the middle extent."""
    op = cast("dfp.FoldOperation", instruction.op)
    outer, length, inner = op.outer.value.data, op.length.value.data, op.inner.value.data
    block, pushed = op.body.block, instruction.pushes[0]
    kinds = [argument.type for argument in block.args]
    scans = instruction.kind == "sfu_scan"
    pops = [(state.popper(flow, instruction), flow.element) for flow in instruction.pops]
    compile_region(block)  # reports what it does not know before the run

    def execute(actor: Actor) -> bool:
        if not all(state.has(actor, flow) for flow in instruction.pops):
            return False
        blocks = [working(pop(actor), element) for pop, element in pops]
        elements = blocks[0].reshape(outer, length, inner)
        initial = blocks[1].reshape(outer, inner) if len(blocks) > 1 else None
        with np.errstate(all="ignore"):
            found = (
                scan_blocks(block, elements, initial)
                if scans
                else reduce_blocks(block, elements, initial, kinds[1], kinds[0])
            )
        state.push(actor, pushed, to_raw(found.ravel(), pushed.element))
        return True

    return execute


def _pe_load(state: State, instruction: Instruction) -> Executor:
    op, flow = cast("dfp.PeLoadOp", instruction.op), instruction.pops[0]
    shape = (op.k.value.data, op.n.value.data)

    def execute(actor: Actor) -> bool:
        if not state.has(actor, flow):
            return False
        actor.stationary = _matrix(state.popper(flow, instruction)(actor), flow.element).reshape(shape)
        return True

    return execute


def _pe_clear(state: State, instruction: Instruction) -> Executor:
    op = cast("dfp.PeClearOp", instruction.op)
    shape = (op.rows.value.data, op.n.value.data)

    def execute(actor: Actor) -> bool:
        actor.accumulators = np.zeros(shape, np.float32)
        return True

    return execute


def _pe_preload(state: State, instruction: Instruction) -> Executor:
    op, flow = cast("dfp.PePreloadOp", instruction.op), instruction.pops[0]
    shape = (op.rows.value.data, op.n.value.data)

    def execute(actor: Actor) -> bool:
        if not state.has(actor, flow):
            return False
        actor.accumulators = _matrix(state.popper(flow, instruction)(actor), flow.element).reshape(shape).copy()
        return True

    return execute


def _pe_mac(state: State, instruction: Instruction) -> Executor:
    op, flow = cast("dfp.PeMacOp", instruction.op), instruction.pops[0]
    rows, k, n = op.rows.value.data, op.k.value.data, op.n.value.data

    def execute(actor: Actor) -> bool:
        if not state.has(actor, flow):
            return False
        _check_pe(state, actor, instruction, (rows, n), (k, n))
        moving = _matrix(state.popper(flow, instruction)(actor), flow.element).reshape(rows, k)
        with np.errstate(all="ignore"):
            _multiply_add(actor.accumulators, moving, actor.stationary)
        return True

    return execute


def _check_pe(
    state: State, actor: Actor, instruction: Instruction, sums: tuple[int, int], block: tuple[int, int] | None
) -> None:
    if actor.accumulators.shape != sums:
        raise DataflowError(
            f"dfp.{instruction.kind} works on {sums} accumulators, {actor.accumulators.shape} were prepared",
            location=instruction.location,
            remedy="dfp.pe_clear or dfp.pe_preload as many before",
        )
    if block is not None and actor.stationary.shape != block:
        raise DataflowError(
            f"dfp.{instruction.kind} works on a stationary block of {block}, {actor.stationary.shape} is loaded",
            location=instruction.location,
        )


def _pe_emit(state: State, instruction: Instruction) -> Executor:
    op, flow = cast("dfp.PeEmitOp", instruction.op), instruction.pushes[0]
    shape = (op.rows.value.data, op.n.value.data)

    def execute(actor: Actor) -> bool:
        _check_pe(state, actor, instruction, shape, None)
        state.push(actor, flow, to_raw(actor.accumulators.ravel(), flow.element))
        return True

    return execute


class _RowViewer:
    """Rows of the indexed side of a gather or scatter."""

    def __init__(self, run: State, access: Access, instruction: Instruction) -> None:
        self.run, self.access, self.instruction = run, access, instruction
        self.offset = access.offset.evaluator()
        self.dtype = raw_dtype(access.element)

    def __call__(self, actor: Actor, displacement: int, number: int) -> Array:
        access, buffer = self.access, self.access.buffer
        offset = self.offset(actor.core, actor.cursor.indices) + displacement
        low, high = access.box.span
        if offset + low < 0 or offset + high > buffer.size:
            raise DescriptorOutOfBounds(
                f"dfp.{self.instruction.kind}: index {number} leads outside buffer {buffer.name} on core {actor.core}",
                location=self.instruction.location,
            )
        place = buffer.offset + offset
        state = self.run
        memory, shadow, at = state.ddr.bytes, state.device_shadow, place
        if buffer.per_core:
            memory, shadow, at = state.local, state.shadow, place + actor.core * state.span
        if shadow is not None:
            written = np.ndarray(access.box.counts, np.dtype(f"u{self.dtype.itemsize}"), shadow, at, access.box.strides)
            if access.writes:
                written[...] = -1 & (1 << 8 * self.dtype.itemsize) - 1
            elif buffer.per_core and not written.all():
                raise state.unwritten(access, self.instruction)
        row = np.ndarray(access.box.counts, self.dtype, memory, at, access.box.strides)
        if state.order is not None:
            state.order.touch(actor.number, self.instruction, access, actor.core, place, row)
        return row

    def shadow(self, actor: Actor, displacement: int) -> Array:
        """The shadow of a row of device memory."""
        access = self.access
        place = access.buffer.offset + self.offset(actor.core, actor.cursor.indices) + displacement
        unsigned = np.dtype(f"u{self.dtype.itemsize}")
        return np.ndarray(access.box.counts, unsigned, self.run.device_shadow, place, access.box.strides)


def _multiply_add(accumulators: Array, moving: Array, stationary: Array) -> None:
    """Adds ``moving @ stationary`` in f32, in pieces small enough that the numerical library keeps to one thread.

    Starting its threads for a product of a few hundred microseconds costs milliseconds where cores are shared.
    """
    rows, depth = moving.shape
    step = max(1, MOST_PRODUCTS // (_DEPTH_STEP * stationary.shape[1]))
    for start in range(0, depth, _DEPTH_STEP):
        block = stationary[start : start + _DEPTH_STEP]
        for row in range(0, rows, step):
            accumulators[row : row + step] += moving[row : row + step, start : start + _DEPTH_STEP] @ block


def _matrix(raw: Array, element: str) -> Array:
    """Elements as the matrix unit multiplies them: f32."""
    return working(raw, element).astype(np.float32, copy=False) if element in FLOATS else raw.astype(np.float32)


BUILDERS: Final[dict[str, Callable[[State, Instruction], Executor]]] = {
    "barrier": _barrier,
    "reserve": _token,
    "commit": _token,
    "acquire": _token,
    "release": _token,
    "copy": _copy,
    "gather": _indirect,
    "scatter": _indirect,
    "stream": _stream,
    "drain": _drain,
    "send": _send,
    "multicast": _send,
    "receive": _receive,
    "chain": _chain,
    "sfu_map": _sfu_map,
    "sfu_reduce": _fold,
    "sfu_scan": _fold,
    "pe_load": _pe_load,
    "pe_clear": _pe_clear,
    "pe_preload": _pe_preload,
    "pe_mac": _pe_mac,
    "pe_emit": _pe_emit,
}
"""The builder of each kind of instruction."""
