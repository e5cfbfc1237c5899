"""Runs a dataflow program on data: every unit in its own order, whole descriptors, queues without bound.

The result does not depend on the order in which units run, because each queue, ring of tiles and pair of cores has one
writer and blocking readers; ``unit_order_seed`` runs them in a random order so that tests can say so. Capacities of
queues play no role here: the token machine decides about them. Rings of tiles keep their slots, for their bytes exist.

Faults of the data raise :class:`DataflowError` at the operation: elements of the wrong type, bytes of a scratchpad that
nobody wrote, addresses outside a buffer, a slot that is not held, elements left over at the end.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ktir.backends.dataflow.scalar_region import (
    FLOATS,
    compile_region,
    raw_dtype,
    reduce_blocks,
    to_raw,
    working,
)
from ktir.backends.dataflow.unit_program import (
    Access,
    Buffer,
    Cursor,
    Flow,
    Instruction,
    Program,
    UnitCode,
    compile_program,
)
from ktir.dialect import dfp
from ktir.errors import (
    DataflowDeadlock,
    DataflowError,
    DescriptorOutOfBounds,
    KtirError,
    QueueImbalance,
    QueueMisuse,
    UninitialisedRead,
)
from ktir.machine import Machine

Array = NDArray[Any]
POISON: Final = 0xFF
WRITTEN: Final = 0xFF
MOST_PRODUCTS: Final = 1 << 17
"""Multiply-accumulates of one call of the numerical library."""
_DEPTH_STEP: Final = 64


class ByteMemory(Protocol):
    """What a run needs of the device memory: its bytes."""

    bytes: Array


class UnwrittenRead(DataflowError, UninitialisedRead):
    """A unit read bytes of a scratchpad that nobody wrote."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a functional run did."""

    operations: int
    elements_pushed: int
    launches: int


def execute(
    program_module: Operation,
    machine: Machine,
    ddr: ByteMemory,
    *,
    unit_order_seed: int | None = None,
) -> Statistics:
    """Runs the only ``dfp.program`` of ``program_module`` on ``ddr``, which it changes."""
    return run(compile_program(program_module, machine), ddr, unit_order_seed=unit_order_seed)


def run(program: Program, ddr: ByteMemory, *, unit_order_seed: int | None = None) -> Statistics:
    """Like :func:`execute`, for a program that is compiled already."""
    return _Run(program, ddr).finish(unit_order_seed)


class _Stream:
    """Elements under way in a queue or between two cores."""

    __slots__ = ("blocks", "count", "dtype", "pushed", "waiters")

    def __init__(self) -> None:
        self.blocks: deque[Array] = deque()
        self.count = self.pushed = 0
        self.dtype: np.dtype[Any] | None = None
        self.waiters: list[_Actor] = []

    def push(self, elements: Array, ready: deque[_Actor]) -> None:
        self.blocks.append(elements)
        self.count += elements.size
        self.pushed += elements.size
        if self.waiters:
            ready.extend(self.waiters)
            self.waiters.clear()

    def pop(self, count: int, dtype: np.dtype[Any], instruction: Instruction) -> Array:
        """The first ``count`` elements; the caller has made sure that they are there."""
        self.count -= count
        first = self.blocks.popleft()
        if first.size == count and first.dtype == dtype:
            return first
        parts, have = [first], first.size
        while have < count:
            parts.append(self.blocks.popleft())
            have += parts[-1].size
        if have > count:
            last = parts[-1]
            cut = last.size - (have - count)
            parts[-1] = last[:cut]
            self.blocks.appendleft(last[cut:])
        for part in parts:
            if part.dtype != dtype:
                raise QueueMisuse(
                    f"dfp.{instruction.kind} pops elements of {dtype}, but {part.dtype} was pushed",
                    location=instruction.location,
                )
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Ring:
    """Slots of a ring of tiles on one core: how many were reserved, committed, acquired, released."""

    __slots__ = ("acquired", "buffer", "committed", "released", "reserved", "waiters")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.reserved = self.committed = 0
        self.acquired: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.waiters: list[_Actor] = []

    @property
    def free(self) -> int:
        return self.buffer.slots - self.reserved + min(self.released.values(), default=self.reserved)


class _Actor:
    """A unit at work: its place in the code and the state only it sees."""

    __slots__ = ("accumulators", "code", "core", "cursor", "launch", "stationary", "waits_for")

    def __init__(self, code: UnitCode, core: int) -> None:
        self.code, self.core = code, core
        self.cursor = Cursor(code, core)
        self.launch = 0
        self.stationary: Array = np.zeros((0, 0), np.float32)
        self.accumulators: Array = np.zeros((0, 0), np.float32)
        self.waits_for = ""


Executor = Callable[["_Actor"], bool]
"""Executes an instruction if it can; False where the actor has to wait (it is then listed as a waiter)."""


class _Run:
    def __init__(self, program: Program, ddr: ByteMemory) -> None:
        self.program, self.ddr = program, ddr
        self.queues: dict[tuple[int, int, int], _Stream] = {}
        self.channels: dict[tuple[int, int], _Stream] = {}
        self.rings: dict[tuple[int, int], _Ring] = {}
        self.span = max((buffer.extent[1] for buffer in program.buffers if buffer.per_core), default=0)
        self.span += -self.span % program.machine.alignment
        self.local = np.full(self.span * program.cores, POISON, np.uint8)
        self.shadow = np.zeros(self.span * program.cores, np.uint8)
        self.operations = self.launches = 0
        self.actors = [_Actor(code, core) for core, code in program.actors]
        self.at_barrier: list[_Actor] = []
        self.ready: deque[_Actor] = deque()
        self._find_consumers()
        self.executors = {
            id(instruction): self._executor(instruction) for code in program.units for instruction in code.instructions
        }

    def _find_consumers(self) -> None:
        for actor in self.actors:
            for instruction in actor.code.instructions:
                if instruction.kind == "acquire" and instruction.ring is not None:
                    ring = self.ring(actor.core, instruction.ring)
                    ring.acquired.setdefault(actor.code.number, 0)
                    ring.released.setdefault(actor.code.number, 0)

    # ------------------------------------------------------------------------------------------------------- scheduling

    def finish(self, seed: int | None) -> Statistics:
        """Runs all actors to their ends."""
        self.ready.extend(self.actors)
        if seed is None:
            while self.ready:
                self._run_until_blocked(self.ready.popleft())
        else:
            self._run_at_random(random.Random(seed))
        waiting = [actor for actor in self.actors if actor.cursor.instruction is not None]
        if waiting:
            raise self._deadlock(waiting)
        self._check_left_over()
        pushed = sum(stream.pushed for stream in (*self.queues.values(), *self.channels.values()))
        return Statistics(self.operations, pushed, self.launches + 1)

    def _run_until_blocked(self, actor: _Actor) -> None:
        cursor, executors = actor.cursor, self.executors
        executed = 0
        while (instruction := cursor.instruction) is not None:
            if not self._execute(executors[id(instruction)], actor, instruction):
                break
            cursor.advance()
            executed += 1
        self.operations += executed

    def _run_at_random(self, choice: random.Random) -> None:
        while self.ready:
            self.ready.rotate(choice.randrange(len(self.ready)))
            actor = self.ready.popleft()
            for _ in range(choice.randint(1, 4)):
                instruction = actor.cursor.instruction
                if instruction is None:
                    break
                if not self._execute(self.executors[id(instruction)], actor, instruction):
                    break
                actor.cursor.advance()
                self.operations += 1
            else:
                self.ready.append(actor)

    def _execute(self, executor: Executor, actor: _Actor, instruction: Instruction) -> bool:
        try:
            return executor(actor)
        except KtirError as error:
            if error.location is None:
                error.location = instruction.location
            if "core" not in error.message:
                error.message += f" ({actor.cursor.describe()})"
            raise

    def _wake(self, waiters: list[_Actor]) -> None:
        if waiters:
            self.ready.extend(waiters)
            waiters.clear()

    def _deadlock(self, waiting: list[_Actor]) -> DataflowDeadlock:
        shown = [f"{actor.cursor.describe()} waits for {actor.waits_for}" for actor in waiting[:8]]
        more = f"\n  and {len(waiting) - 8} more" if len(waiting) > 8 else ""
        first = waiting[0].cursor.instruction
        return DataflowDeadlock(
            f"{len(waiting)} units wait and none can go on:\n  " + "\n  ".join(shown) + more,
            location=first.location if first else None,
        )

    def _check_left_over(self) -> None:
        for (core, corelet, number), stream in self.queues.items():
            if stream.count:
                queue = self.program.queues[number]
                raise QueueImbalance(
                    f"{stream.count} elements are left in queue {queue.name} of core {core} corelet {corelet}",
                    location=queue.location,
                )
        for (source, target), stream in self.channels.items():
            if stream.count:
                raise QueueImbalance(
                    f"core {target} did not receive {stream.count} elements that core {source} sent",
                    location=self.program.location,
                )
        for (core, number), ring in self.rings.items():
            if any(count != ring.committed for count in ring.released.values()):
                buffer = self.program.buffers[number]
                raise QueueImbalance(
                    f"tiles of buffer {buffer.name} of core {core} were not all acquired and released",
                    location=buffer.location,
                )

    # -------------------------------------------------------------------------------------------------------- resources

    def queue(self, actor: _Actor, number: int) -> _Stream:
        """The queue's instance for the actor's core and corelet."""
        key = (actor.core, actor.code.corelet, number)
        if key not in self.queues:
            self.queues[key] = _Stream()
        return self.queues[key]

    def channel(self, source: int, target: int) -> _Stream:
        """What core ``source`` sends to core ``target``."""
        return self.channels.setdefault((source, target), _Stream())

    def ring(self, core: int, buffer: Buffer) -> _Ring:
        """The slots of ``buffer`` on ``core``."""
        key = (core if buffer.per_core else 0, buffer.number)
        if key not in self.rings:
            self.rings[key] = _Ring(buffer)
        return self.rings[key]

    # ----------------------------------------------------------------------------------------------------------- access

    def viewer(self, access: Access, instruction: Instruction) -> Callable[[_Actor], Array]:
        """A function from actor to the array of the elements that ``access`` means for it now, checked."""
        buffer, box = access.buffer, access.box
        dtype = raw_dtype(access.element)
        offset_of = access.offset.evaluator()
        low, high = box.span
        shape, strides = box.counts, box.strides
        unsigned = np.dtype(f"u{dtype.itemsize}")
        full = unsigned.type(-1 & (1 << 8 * dtype.itemsize) - 1)
        make = np.ndarray

        def view(actor: _Actor) -> Array:
            offset = offset_of(actor.core, actor.cursor.indices)
            if offset + low < 0 or offset + high > buffer.size:
                raise self._outside(access, instruction, actor, offset)
            place = buffer.offset + self._slot(access, instruction, actor) * buffer.size + offset
            if not buffer.per_core:
                if place + high > self.ddr.bytes.size:
                    raise DescriptorOutOfBounds(
                        f"buffer {buffer.name} reaches byte {place + high} of a device memory of {self.ddr.bytes.size}",
                        location=instruction.location,
                    )
                return make(shape, dtype, self.ddr.bytes, place, strides)
            place += actor.core * self.span
            written = make(shape, unsigned, self.shadow, place, strides)
            if access.writes:
                written[...] = full
            elif not (written == full).all():
                raise UnwrittenRead(
                    f"dfp.{instruction.kind} reads bytes of buffer {buffer.name} that nobody wrote",
                    location=instruction.location,
                )
            return make(shape, dtype, self.local, place, strides)

        return view

    def _outside(self, access: Access, instruction: Instruction, actor: _Actor, offset: int) -> DescriptorOutOfBounds:
        low, high = access.box.span
        return DescriptorOutOfBounds(
            f"dfp.{instruction.kind} reaches bytes [{offset + low}, {offset + high}) of buffer {access.buffer.name}, "
            f"whose tiles have {access.buffer.size}, on core {actor.core}",
            location=instruction.location,
        )

    def _slot(self, access: Access, instruction: Instruction, actor: _Actor) -> int:
        buffer = access.buffer
        if not buffer.slots:
            return 0
        ring = self.ring(actor.core, buffer)
        if access.writes:
            if ring.reserved <= ring.committed:
                raise self._not_held(access, instruction)
            return ring.committed % buffer.slots
        released = ring.released.get(actor.code.number, 0)
        if ring.acquired.get(actor.code.number, 0) - released <= access.slot:
            raise self._not_held(access, instruction)
        return (released + access.slot) % buffer.slots

    def _not_held(self, access: Access, instruction: Instruction) -> QueueMisuse:
        verb, remedy = ("writes", "reserve") if access.writes else ("reads", "acquire")
        return QueueMisuse(
            f"dfp.{instruction.kind} {verb} a tile of buffer {access.buffer.name} that it does not hold",
            location=instruction.location,
            remedy=f"dfp.{remedy} it before",
        )

    # ----------------------------------------------------------------------------------------------------- instructions

    def _executor(self, instruction: Instruction) -> Executor:
        return _BUILDERS[instruction.kind](self, instruction)

    def popper(self, flow: Flow, instruction: Instruction) -> Callable[[_Actor], Array]:
        """A function that pops the flow's raw elements, once they are there."""
        dtype, count, number = raw_dtype(flow.element), flow.elements, flow.queue.number
        return lambda actor: self.queue(actor, number).pop(count, dtype, instruction)

    def has(self, actor: _Actor, flow: Flow) -> bool:
        """Whether the elements of ``flow`` are there; if not, the actor waits for them."""
        stream = self.queue(actor, flow.queue.number)
        if stream.count >= flow.elements:
            return True
        stream.waiters.append(actor)
        actor.waits_for = (
            f"{flow.elements} elements of queue {flow.queue.name} from {flow.queue.source}, which holds {stream.count}"
        )
        return False

    def push(self, actor: _Actor, flow: Flow, elements: Array) -> None:
        """Pushes raw elements."""
        self.queue(actor, flow.queue.number).push(elements, self.ready)

    def barrier(self, instruction: Instruction) -> Executor:
        def execute(actor: _Actor) -> bool:
            self.at_barrier.append(actor)
            actor.waits_for = f"the barrier before launch {instruction.launch}"
            if len(self.at_barrier) < len(self.actors):
                return False
            others = self.at_barrier[:-1]
            self._leave_barrier(others, instruction)
            return True

        return execute

    def _leave_barrier(self, others: list[_Actor], instruction: Instruction) -> None:
        self.at_barrier = []
        self.launches += 1
        for other in others:
            reached = cast("Instruction", other.cursor.instruction)
            if reached.launch != instruction.launch:
                raise QueueMisuse(
                    f"units meet at barriers before launches {instruction.launch} and {reached.launch}",
                    location=reached.location,
                )
            other.cursor.advance()
        self.ready.extend(others)
        self._forget_tenants(instruction.launch)

    def _forget_tenants(self, launch: int) -> None:
        """Bytes of buffers whose first launch begins were written by nobody."""
        shadow = self.shadow.reshape(self.program.cores, self.span) if self.span else None
        for buffer in self.program.buffers:
            if shadow is not None and buffer.per_core and buffer.launches and buffer.launches[0] == launch:
                shadow[:, buffer.extent[0] : buffer.extent[1]] = 0

    def token(self, instruction: Instruction) -> Executor:
        buffer = cast("Buffer", instruction.ring)
        moves = {"reserve": self._reserve, "commit": self._commit, "acquire": self._acquire, "release": self._release}
        move = moves[instruction.kind]
        return lambda actor: move(actor, self.ring(actor.core, buffer), instruction)

    def _reserve(self, actor: _Actor, ring: _Ring, instruction: Instruction) -> bool:
        if not ring.free:
            ring.waiters.append(actor)
            actor.waits_for = f"a free slot of buffer {ring.buffer.name}"
            return False
        if ring.buffer.per_core:
            slot = ring.reserved % ring.buffer.slots
            start = actor.core * self.span + ring.buffer.offset + slot * ring.buffer.size
            self.shadow[start : start + ring.buffer.size] = 0
        ring.reserved += 1
        return True

    def _commit(self, actor: _Actor, ring: _Ring, instruction: Instruction) -> bool:
        if ring.reserved <= ring.committed:
            raise QueueMisuse(
                f"dfp.commit of buffer {ring.buffer.name} without a reserve", location=instruction.location
            )
        ring.committed += 1
        self._wake(ring.waiters)
        return True

    def _acquire(self, actor: _Actor, ring: _Ring, instruction: Instruction) -> bool:
        if ring.acquired[actor.code.number] >= ring.committed:
            ring.waiters.append(actor)
            actor.waits_for = f"a full slot of buffer {ring.buffer.name} from {ring.buffer.producer}"
            return False
        ring.acquired[actor.code.number] += 1
        return True

    def _release(self, actor: _Actor, ring: _Ring, instruction: Instruction) -> bool:
        number = actor.code.number
        if ring.released.get(number, 0) >= ring.acquired.get(number, 0):
            raise QueueMisuse(
                f"dfp.release of buffer {ring.buffer.name} without an acquire", location=instruction.location
            )
        ring.released[number] += 1
        self._wake(ring.waiters)
        return True

    def copy(self, instruction: Instruction) -> Executor:
        source, target = (self.viewer(access, instruction) for access in instruction.accesses)

        def execute(actor: _Actor) -> bool:
            elements = source(actor)
            target(actor)[...] = elements
            return True

        return execute

    def indirect(self, instruction: Instruction) -> Executor:
        op = cast("dfp.IndirectOperation", instruction.op)
        index_view = self.viewer(instruction.accesses[0], instruction)
        gathers = instruction.kind == "gather"
        rows, lines = instruction.accesses[1:] if gathers else instruction.accesses[:0:-1]
        line_view = self.viewer(lines, instruction)
        row_view = _RowViewer(self, rows, instruction)
        stride = op.row_stride.value.data

        def execute(actor: _Actor) -> bool:
            numbers = index_view(actor).tolist()
            all_lines = line_view(actor)
            for line, number in zip(all_lines, numbers, strict=True):
                row = row_view(actor, number * stride, number)
                if gathers:
                    line[...] = row
                else:
                    row[...] = line
            return True

        return execute

    def stream(self, instruction: Instruction) -> Executor:
        view, flow = self.viewer(instruction.accesses[0], instruction), instruction.pushes[0]

        def execute(actor: _Actor) -> bool:
            self.push(actor, flow, view(actor).flatten())
            return True

        return execute

    def drain(self, instruction: Instruction) -> Executor:
        view, flow = self.viewer(instruction.accesses[0], instruction), instruction.pops[0]
        pop = self.popper(flow, instruction)
        shape = instruction.accesses[0].box.counts

        def execute(actor: _Actor) -> bool:
            if not self.has(actor, flow):
                return False
            view(actor)[...] = pop(actor).reshape(shape)
            return True

        return execute

    def send(self, instruction: Instruction) -> Executor:
        view = self.viewer(instruction.accesses[0], instruction)
        peer = _peer(instruction)

        def execute(actor: _Actor) -> bool:
            target = self._checked_peer(peer(actor), instruction)
            self.channel(actor.core, target).push(view(actor).flatten(), self.ready)
            return True

        return execute

    def receive(self, instruction: Instruction) -> Executor:
        access = instruction.accesses[0]
        view, peer = self.viewer(access, instruction), _peer(instruction)
        count, dtype, shape = access.box.elements, raw_dtype(access.element), access.box.counts

        def execute(actor: _Actor) -> bool:
            source = self._checked_peer(peer(actor), instruction)
            channel = self.channel(source, actor.core)
            if channel.count < count:
                channel.waiters.append(actor)
                actor.waits_for = f"{count} elements from core {source}, of which {channel.count} are here"
                return False
            view(actor)[...] = channel.pop(count, dtype, instruction).reshape(shape)
            return True

        return execute

    def _checked_peer(self, core: int, instruction: Instruction) -> int:
        if not 0 <= core < self.program.cores:
            raise DataflowError(f"there is no core {core}", location=instruction.location)
        return core

    def sfu_map(self, instruction: Instruction) -> Executor:
        op = cast("dfp.SfuMapOp", instruction.op)
        region = compile_region(op.body.block)
        shape = dfp.values_of(op.shape)
        positions: list[Array] = []
        if region.index_dimensions:
            positions = [axis.ravel() for axis in np.indices(shape, dtype=np.int64)]
        pops = [(self.popper(flow, instruction), flow.element) for flow in instruction.pops]
        pushed = instruction.pushes[0]

        def execute(actor: _Actor) -> bool:
            if not all(self.has(actor, flow) for flow in instruction.pops):
                return False
            blocks = [working(pop(actor), element) for pop, element in pops]
            found = to_raw(region(blocks, positions), pushed.element)
            if found.size != pushed.elements:
                found = np.broadcast_to(found, (pushed.elements,)).copy()
            self.push(actor, pushed, found)
            return True

        return execute

    def sfu_reduce(self, instruction: Instruction) -> Executor:
        op = cast("dfp.SfuReduceOp", instruction.op)
        outer, length, inner = op.outer.value.data, op.length.value.data, op.inner.value.data
        block, pushed = op.body.block, instruction.pushes[0]
        kinds = [argument.type for argument in block.args]
        compile_region(block)  # reports what it does not know before the run

        def execute(actor: _Actor) -> bool:
            if not all(self.has(actor, flow) for flow in instruction.pops):
                return False
            parts = [
                working(self.popper(flow, instruction)(actor), flow.element).reshape(
                    (outer, length, inner) if place == 0 else (outer, inner)
                )
                for place, flow in enumerate(instruction.pops)
            ]
            initial = parts[1] if len(parts) > 1 else None
            with np.errstate(all="ignore"):
                found = reduce_blocks(block, parts[0], initial, kinds[1], kinds[0])
            self.push(actor, pushed, to_raw(found.ravel(), pushed.element))
            return True

        return execute

    def pe_load(self, instruction: Instruction) -> Executor:
        op, flow = cast("dfp.PeLoadOp", instruction.op), instruction.pops[0]
        shape = (op.k.value.data, op.n.value.data)

        def execute(actor: _Actor) -> bool:
            if not self.has(actor, flow):
                return False
            actor.stationary = _matrix(self.popper(flow, instruction)(actor), flow.element).reshape(shape)
            return True

        return execute

    def pe_clear(self, instruction: Instruction) -> Executor:
        op = cast("dfp.PeClearOp", instruction.op)
        shape = (op.rows.value.data, op.n.value.data)

        def execute(actor: _Actor) -> bool:
            actor.accumulators = np.zeros(shape, np.float32)
            return True

        return execute

    def pe_preload(self, instruction: Instruction) -> Executor:
        op, flow = cast("dfp.PePreloadOp", instruction.op), instruction.pops[0]
        shape = (op.rows.value.data, op.n.value.data)

        def execute(actor: _Actor) -> bool:
            if not self.has(actor, flow):
                return False
            actor.accumulators = _matrix(self.popper(flow, instruction)(actor), flow.element).reshape(shape).copy()
            return True

        return execute

    def pe_mac(self, instruction: Instruction) -> Executor:
        op, flow = cast("dfp.PeMacOp", instruction.op), instruction.pops[0]
        rows, k, n = op.rows.value.data, op.k.value.data, op.n.value.data

        def execute(actor: _Actor) -> bool:
            if not self.has(actor, flow):
                return False
            self._check_pe(actor, instruction, (rows, n), (k, n))
            moving = _matrix(self.popper(flow, instruction)(actor), flow.element).reshape(rows, k)
            with np.errstate(all="ignore"):
                _multiply_add(actor.accumulators, moving, actor.stationary)
            return True

        return execute

    def _check_pe(
        self, actor: _Actor, instruction: Instruction, sums: tuple[int, int], block: tuple[int, int] | None
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

    def pe_emit(self, instruction: Instruction) -> Executor:
        op, flow = cast("dfp.PeEmitOp", instruction.op), instruction.pushes[0]
        shape = (op.rows.value.data, op.n.value.data)

        def execute(actor: _Actor) -> bool:
            self._check_pe(actor, instruction, shape, None)
            self.push(actor, flow, to_raw(actor.accumulators.ravel(), flow.element))
            return True

        return execute


class _RowViewer:
    """Rows of the indexed side of a gather or scatter."""

    def __init__(self, run: _Run, access: Access, instruction: Instruction) -> None:
        self.run, self.access, self.instruction = run, access, instruction
        self.offset = access.offset.evaluator()
        self.dtype = raw_dtype(access.element)

    def __call__(self, actor: _Actor, displacement: int, number: int) -> Array:
        access, buffer = self.access, self.access.buffer
        offset = self.offset(actor.core, actor.cursor.indices) + displacement
        low, high = access.box.span
        if offset + low < 0 or offset + high > buffer.size:
            raise DescriptorOutOfBounds(
                f"dfp.{self.instruction.kind}: index {number} leads outside buffer {buffer.name} on core {actor.core}",
                location=self.instruction.location,
            )
        place = buffer.offset + offset
        memory = self.run.ddr.bytes
        if buffer.per_core:
            memory, place = self.run.local, place + actor.core * self.run.span
        return np.ndarray(access.box.counts, self.dtype, memory, place, access.box.strides)


def _peer(instruction: Instruction) -> Callable[[_Actor], int]:
    peer = instruction.peer
    if peer is None:
        raise QueueMisuse(f"dfp.{instruction.kind} names no core", location=instruction.location)
    value = peer.evaluator()
    return lambda actor: value(actor.core, actor.cursor.indices)


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


_BUILDERS: Final[dict[str, Callable[[_Run, Instruction], Executor]]] = {
    "barrier": _Run.barrier,
    "reserve": _Run.token,
    "commit": _Run.token,
    "acquire": _Run.token,
    "release": _Run.token,
    "copy": _Run.copy,
    "gather": _Run.indirect,
    "scatter": _Run.indirect,
    "stream": _Run.stream,
    "drain": _Run.drain,
    "send": _Run.send,
    "receive": _Run.receive,
    "sfu_map": _Run.sfu_map,
    "sfu_reduce": _Run.sfu_reduce,
    "pe_load": _Run.pe_load,
    "pe_clear": _Run.pe_clear,
    "pe_preload": _Run.pe_preload,
    "pe_mac": _Run.pe_mac,
    "pe_emit": _Run.pe_emit,
}
