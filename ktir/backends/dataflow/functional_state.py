"""What a functional run works on: memories with their shadow, queues, rings of tiles, and where each unit stands.

Words. *shadow*: one byte per byte of a memory that says whether somebody wrote it. *view*: the array of the elements
that an access means for an actor at the moment, with address and shadow checked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.conflicts import contested, grain_of
from ktir.backends.dataflow.cursor import Cursor
from ktir.backends.dataflow.functional_order import RunOrder, Unit
from ktir.backends.dataflow.scalar_region import raw_dtype
from ktir.backends.dataflow.touched import touches
from ktir.backends.dataflow.unit_program import Access, Buffer, Flow, Instruction, Program, UnitCode
from ktir.backends.dataflow.vector_clocks import Clocks, Shadow
from ktir.errors import DescriptorOutOfBounds, QueueMisuse, UnwrittenRead

Array = NDArray[Any]
POISON: Final = 0xFF


MOST_RACED_BYTES: Final = 1 << 26
"""Of a memory that is watched for races, up to the last byte that could be raced for."""


class ByteMemory(Protocol):
    """What a run needs of the device memory: its bytes."""

    bytes: Array


class Stream:
    """Elements under way in a queue or between two cores."""

    __slots__ = ("blocks", "count", "dtype", "pushed", "waiters")

    def __init__(self) -> None:
        self.blocks: deque[Array] = deque()
        self.count = self.pushed = 0
        self.dtype: np.dtype[Any] | None = None
        self.waiters: list[Actor] = []

    def push(self, elements: Array, ready: deque[Actor]) -> None:
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


class Ring:
    """Slots of a ring of tiles on one core: how many were reserved, committed, acquired, released."""

    __slots__ = ("acquired", "buffer", "committed", "released", "reserved", "waiters")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.reserved: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.acquired: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.waiters: list[Actor] = []

    def free(self, producer: int) -> int:
        """Slots that ``producer`` may reserve."""
        reserved = self.reserved[producer]
        return self.buffer.slots - reserved + min(self.released.values(), default=reserved)

    @property
    def full(self) -> int:
        """Tiles that every producer has committed so far."""
        return min(self.committed.values(), default=0)


class Actor:
    """A unit at work: its place in the code and the state only it sees."""

    __slots__ = ("accumulators", "code", "core", "cursor", "launch", "number", "stationary", "waits_for")

    def __init__(self, number: int, code: UnitCode, core: int) -> None:
        self.number, self.code, self.core = number, code, core
        self.cursor = Cursor(code, core)
        self.launch = 0
        self.stationary: Array = np.zeros((0, 0), np.float32)
        self.accumulators: Array = np.zeros((0, 0), np.float32)
        self.waits_for = ""


class State:
    """Everything a run changes. ``ready`` lists actors that may go on."""

    def __init__(self, program: Program, ddr: ByteMemory, initialised: Sequence[tuple[int, int]] | None) -> None:
        self.program, self.ddr = program, ddr
        self.device_shadow = _shadow(ddr.bytes.size, initialised)
        self.queues: dict[tuple[int, int, int], Stream] = {}
        self.channels: dict[tuple[str, int, int], Stream] = {}
        self.rings: dict[tuple[int, int], Ring] = {}
        self.span = max((buffer.extent[1] for buffer in program.buffers if buffer.per_core), default=0)
        self.span += -self.span % program.machine.alignment
        self.local = np.full(self.span * program.cores, POISON, np.uint8)
        self.shadow = np.zeros(self.span * program.cores, np.uint8)
        self.launches = 0
        self.actors = [Actor(number, code, core) for number, (core, code) in enumerate(program.actors)]
        self.at_barrier: list[Actor] = []
        self.ready: deque[Actor] = deque()
        self._find_ends()
        self.order = self._order()

    def _order(self) -> RunOrder | None:
        """The clocks and shadows of the run; None where no bytes could be raced for."""
        found = list(touches(self.program))
        reach = {
            region: int(parts[-1, 1]) for region, parts in contested(found).items() if parts[-1, 1] <= MOST_RACED_BYTES
        }
        if not reach:
            return None
        clocks = Clocks(len(self.actors))
        ends = {region: max(int(t.footprint.intervals[-1, 1]) for t in found if t.region == region) for region in reach}
        shadows = {region: Shadow(clocks, size, grain_of(found, region)) for region, size in ends.items()}
        return RunOrder([Unit(a.number, a.code.unit, a.core) for a in self.actors], clocks, shadows)

    def _find_ends(self) -> None:
        """Who fills and who takes tiles of each ring, before the first one moves."""
        for actor in self.actors:
            for instruction in actor.code.instructions:
                if instruction.ring is None or instruction.kind not in ("reserve", "acquire"):
                    continue
                ring, number = self.ring(actor.core, instruction.ring), actor.code.number
                ends = (
                    (ring.reserved, ring.committed) if instruction.kind == "reserve" else (ring.acquired, ring.released)
                )
                for counted in ends:
                    counted.setdefault(number, 0)

    # -------------------------------------------------------------------------------------------------------- resources

    def queue(self, actor: Actor, number: int) -> Stream:
        """The queue's instance for the actor's core and corelet."""
        key = (actor.core, actor.code.corelet, number)
        if key not in self.queues:
            self.queues[key] = Stream()
        return self.queues[key]

    def channel(self, net: str, source: int, target: int) -> Stream:
        """What core ``source`` sends to core ``target`` over a network."""
        return self.channels.setdefault((net, source, target), Stream())

    def ring(self, core: int, buffer: Buffer) -> Ring:
        """The slots of ``buffer`` on ``core``."""
        key = (core if buffer.per_core else 0, buffer.number)
        if key not in self.rings:
            self.rings[key] = Ring(buffer)
        return self.rings[key]

    def popper(self, flow: Flow, instruction: Instruction) -> Callable[[Actor], Array]:
        """A function that pops the flow's raw elements, once they are there."""
        dtype, count, number = raw_dtype(flow.element), flow.elements, flow.queue.number
        return lambda actor: self.take(actor, self.queue(actor, number), count, dtype, instruction)

    def take(self, actor: Actor, stream: Stream, count: int, dtype: np.dtype[Any], instruction: Instruction) -> Array:
        """Takes elements that are there out of a queue or channel."""
        if self.order is not None:
            self.order.take(id(stream), actor.number, count)
        return stream.pop(count, dtype, instruction)

    def give(self, actor: Actor, stream: Stream, elements: Array) -> None:
        """Puts elements into a queue or channel."""
        if self.order is not None:
            self.order.give(id(stream), actor.number, elements.size)
        stream.push(elements, self.ready)

    def has(self, actor: Actor, flow: Flow) -> bool:
        """Whether the elements of ``flow`` are there; if not, the actor waits for them."""
        stream = self.queue(actor, flow.queue.number)
        if stream.count >= flow.elements:
            return True
        stream.waiters.append(actor)
        actor.waits_for = (
            f"{flow.elements} elements of queue {flow.queue.name} from {flow.queue.source}, which holds {stream.count}"
        )
        return False

    def push(self, actor: Actor, flow: Flow, elements: Array) -> None:
        """Pushes raw elements."""
        self.give(actor, self.queue(actor, flow.queue.number), elements)

    def wake(self, waiters: list[Actor]) -> None:
        """Lets all of ``waiters`` try again."""
        if waiters:
            self.ready.extend(waiters)
            waiters.clear()

    def leave_barrier(self, others: list[Actor], instruction: Instruction) -> None:
        """Starts the launch that ``instruction`` names; moves the actors that waited for it."""
        self.at_barrier = []
        self.launches += 1
        if self.order is not None:
            self.order.clocks.meet()
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

    # ----------------------------------------------------------------------------------------------------------- access

    def viewer(self, access: Access, instruction: Instruction) -> Callable[[Actor], Array]:
        """A function from actor to the array of the elements that ``access`` means for it now, checked."""
        buffer, box = access.buffer, access.box
        dtype = raw_dtype(access.element)
        offset_of = access.offset.evaluator()
        low, high = box.span
        shape, strides = box.counts, box.strides
        unsigned = np.dtype(f"u{dtype.itemsize}")
        full = unsigned.type(-1 & (1 << 8 * dtype.itemsize) - 1)
        make = np.ndarray

        def view(actor: Actor) -> Array:
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
                memory, shadow, at = self.ddr.bytes, self.device_shadow, place
            else:
                memory, shadow, at = self.local, self.shadow, place + actor.core * self.span
            if shadow is not None:
                written = make(shape, unsigned, shadow, at, strides)
                if access.writes:
                    written[...] = full
                elif buffer.per_core and not (written == full).all():
                    raise self.unwritten(access, instruction)
            elements = make(shape, dtype, memory, at, strides)
            if self.order is not None:
                self.order.touch(actor.number, instruction, access, actor.core, place, elements)
            return elements

        return view

    def shadow_viewer(self, access: Access, instruction: Instruction) -> Callable[[Actor], Array]:
        """A function from actor to the shadow of the elements that ``access`` means for it now."""
        box, buffer = access.box, access.buffer
        unsigned, offset_of = np.dtype(f"u{box.width}"), access.offset.evaluator()

        def view(actor: Actor) -> Array:
            slot = self._slot(access, instruction, actor)
            at = buffer.offset + slot * buffer.size + offset_of(actor.core, actor.cursor.indices)
            if not buffer.per_core:
                return np.ndarray(box.counts, unsigned, self.device_shadow, at, box.strides)
            return np.ndarray(box.counts, unsigned, self.shadow, at + actor.core * self.span, box.strides)

        return view

    def unwritten(self, access: Access, instruction: Instruction) -> UnwrittenRead:
        """The error for a read of bytes without a value."""
        return UnwrittenRead(
            f"dfp.{instruction.kind} reads bytes of buffer {access.buffer.name} that nobody wrote",
            location=instruction.location,
        )

    def _outside(self, access: Access, instruction: Instruction, actor: Actor, offset: int) -> DescriptorOutOfBounds:
        low, high = access.box.span
        return DescriptorOutOfBounds(
            f"dfp.{instruction.kind} reaches bytes [{offset + low}, {offset + high}) of buffer {access.buffer.name}, "
            f"whose tiles have {access.buffer.size}, on core {actor.core}",
            location=instruction.location,
        )

    def _slot(self, access: Access, instruction: Instruction, actor: Actor) -> int:
        buffer = access.buffer
        if not buffer.slots:
            return 0
        ring = self.ring(actor.core, buffer)
        if access.writes:
            committed = ring.committed.get(actor.code.number, 0)
            if ring.reserved.get(actor.code.number, 0) <= committed:
                raise self._not_held(access, instruction)
            return committed % buffer.slots
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


def _shadow(size: int, initialised: Sequence[tuple[int, int]] | None) -> Array | None:
    """The shadow of device memory of which the ranges ``initialised`` have values; None for all of it."""
    if initialised is None:
        return None
    shadow = np.zeros(size, np.uint8)
    for start, stop in initialised:
        shadow[start:stop] = 0xFF
    return shadow
