"""The token machine: a dataflow program without its data, only what fills and empties queues and rings of tiles.

It decides deadlock (:mod:`ktir.backends.dataflow.deadlock`) and it drives the timed simulation: both call the same
:meth:`TokenMachine.grant` and :meth:`TokenMachine.complete`, so they cannot disagree about what may happen.

Words. *quantum*: the least an instruction does at once; a *phase* is a stretch of quanta with a fixed relation between
vectors popped and pushed. *grant*: quanta taken from the inputs, with room in the outputs set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Final, Literal, TypeVar, cast

from ktir.backends.dataflow.cursor import Cursor
from ktir.backends.dataflow.expression import Evaluator
from ktir.backends.dataflow.unit_program import Buffer, Instruction, Program, Queue, UnitCode
from ktir.dialect import dfp
from ktir.errors import DataflowError, QueueMisuse

Wait = Literal["starved", "blocked"]
Place = tuple[int, ...]
T = TypeVar("T", Queue, Buffer)


@dataclass(frozen=True, slots=True)
class Phase:
    """``quanta`` steps; after q of them, ceil(q * vectors / quanta) of each input and floor(..) of each output moved.

    ``even``: every stream moves one vector a quantum.
    """

    quanta: int
    pops: tuple[tuple[int, int], ...] = ()
    pushes: tuple[tuple[int, int], ...] = ()
    even: bool = True

    def grain(self, *amounts: int) -> int:
        """The least quanta in which every stream, and each of ``amounts`` spread over the phase, moves in whole."""
        streams = [vectors for _, vectors in (*self.pops, *self.pushes)]
        return lcm(*(self.quanta // gcd(amount, self.quanta) for amount in (*streams, *amounts)))


def phases_of(instruction: Instruction, vector_bytes: int) -> tuple[Phase, ...]:
    """The phases of an instruction. ``vector_bytes`` is the grain of what moves outside queues."""
    if instruction.kind == "sfu_reduce":
        return _reduction_phases(instruction)
    pops = tuple((flow.queue.number, flow.vectors) for flow in instruction.pops)
    pushes = tuple((flow.queue.number, flow.vectors) for flow in instruction.pushes)
    if instruction.kind == "sfu_scan" and pops[1:]:
        return (Phase(pops[1][1], pops[1:]), Phase(pops[0][1], pops[:1], pushes, even=pops[0][1] == pushes[0][1]))
    moved = [vectors for _, vectors in (*pops, *pushes)]
    if not moved:
        return (Phase(max(1, -(-sum(a.box.bytes for a in instruction.accesses[-1:]) // vector_bytes))),)
    return (Phase(min(moved), pops, pushes, even=len(set(moved)) == 1),)


def _reduction_phases(instruction: Instruction) -> tuple[Phase, ...]:
    """A reduction of rows pushes as it goes; one with an inner extent takes in a group, then pushes its results."""
    op = cast("dfp.SfuReduceOp", instruction.op)
    outer, inner = op.outer.value.data, op.inner.value.data
    source, pushed = instruction.pops[0], instruction.pushes[0]
    initial = tuple((flow.queue.number, flow.vectors) for flow in instruction.pops[1:])
    if inner == 1 and outer > 1:
        pops = ((source.queue.number, source.vectors), *initial)
        return (Phase(source.vectors, pops, ((pushed.queue.number, pushed.vectors),), even=False),)
    phases: list[Phase] = []
    for group in range(outer):
        for number, vectors in initial:
            phases.append(_share(group, outer, vectors, number, pops=True))
        phases.append(_share(group, outer, source.vectors, source.queue.number, pops=True))
        phases.append(_share(outer - 1 - group, outer, pushed.vectors, pushed.queue.number, pops=False))
    return tuple(phase for phase in phases if phase.quanta)


def _share(group: int, groups: int, vectors: int, queue: int, *, pops: bool) -> Phase:
    """The part of ``vectors`` that falls to a group, early groups taking the remainder."""
    count = -(-(group + 1) * vectors // groups) + (-group * vectors // groups)
    moved = ((queue, count),)
    return Phase(count, moved, ()) if pops else Phase(count, (), moved)


class TokenQueue:
    """Vectors in one instance of a queue or channel: ``filled`` may be popped, ``space`` may be pushed."""

    __slots__ = ("consumer", "depth", "filled", "name", "number", "place", "producer", "space")

    def __init__(self, number: int, name: str, depth: int, place: tuple[int, int]) -> None:
        self.number, self.name, self.depth, self.place = number, name, depth, place
        self.filled, self.space = 0, depth
        self.producer: Actor | None = None
        self.consumer: Actor | None = None


class TokenRing:
    """Slots of a ring of tiles: reserved and committed by each producer, acquired and released by each consumer.

    Several producers are one unit on several corelets; a tile is full when all of them have committed it. ``core`` is
    one that uses the ring.
    """

    __slots__ = (
        "acquired",
        "buffer",
        "committed",
        "consumers",
        "core",
        "number",
        "producers",
        "released",
        "reserved",
        "slots",
    )

    def __init__(self, number: int, buffer: Buffer, slots: int, core: int) -> None:
        self.number, self.buffer, self.slots, self.core = number, buffer, slots, core
        self.reserved: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.acquired: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.producers: list[Actor] = []
        self.consumers: list[Actor] = []

    def state(self) -> tuple[int, ...]:
        """Reserved, committed, acquired and released tiles from the last tile that all gave back on."""
        counts = (
            *self.reserved.values(),
            *self.committed.values(),
            *self.acquired.values(),
            *self.released.values(),
        )
        base = min(counts, default=0)
        return tuple([count - base for count in counts])


class Actor:
    """A unit at work, as far as tokens go. ``wait`` and ``waits_for`` say why it stands still; ``parts`` counts the
    parts of operations after which more of the same is left."""

    __slots__ = (
        "at_barrier",
        "code",
        "core",
        "cursor",
        "done",
        "launch",
        "number",
        "parts",
        "phase",
        "phase_number",
        "phases",
        "queues",
        "wait",
        "waits_for",
    )

    def __init__(self, number: int, code: UnitCode, core: int) -> None:
        self.number, self.code, self.core = number, code, core
        self.cursor = Cursor(code, core)
        self.queues: dict[int, TokenQueue] = {}
        self.phases: tuple[Phase, ...] = ()
        self.phase: Phase | None = None
        self.phase_number = self.done = self.launch = self.parts = 0
        self.wait: Wait = "starved"
        self.waits_for: TokenQueue | TokenRing | None = None
        self.at_barrier = False

    @property
    def place(self) -> Place:
        """How far the actor has got: the indices of its loops, outermost first, then the quanta of its operation."""
        cursor, instruction = self.cursor, self.cursor.instruction
        if instruction is None:
            return ()
        return (*cursor.indices[: instruction.depth], self.done if self.phase is not None else 0)

    def go_on(self, component: int, amount: int) -> None:
        """Adds ``amount`` to a component of its place."""
        cursor = self.cursor
        if component < (cursor.instruction.depth if cursor.instruction else 0):
            cursor.indices[component] += amount
        else:
            self.done += amount

    def follow(self, other: Actor) -> None:
        """Goes to where ``other``, in the same code on another core, stands, and waits as it does."""
        self.cursor.follow(other.cursor)
        self.phases, self.phase, self.phase_number = other.phases, other.phase, other.phase_number
        self.done, self.parts = other.done, other.parts
        self.wait, self.waits_for, self.at_barrier = other.wait, None, other.at_barrier


class TokenMachine:
    """All actors of a program with their queues.

    ``woken`` collects actors whose wait may be over, ``open`` are the rings with a tile that was not given back,
    ``passed`` counts the operations on rings and the barriers that actors have passed.
    ``absent`` are the numbers of actors that take no part until the next barrier. When all others are there,
    ``before_release`` is told the launch that follows; it brings the absent ones to the barrier, and may name others.
    """

    def __init__(
        self, program: Program, depths: Sequence[int] | None = None, slots: Sequence[int] | None = None
    ) -> None:
        """``depths`` and ``slots`` replace what queues and buffers declare, in order of declaration."""
        self.program = program
        self.depths = list(depths) if depths is not None else [queue.depth for queue in program.queues]
        self.slots = list(slots) if slots is not None else [buffer.slots for buffer in program.buffers]
        self.net = next(iter(program.machine.nets.values()), None)
        self.actors = [Actor(number, code, core) for number, (core, code) in enumerate(program.actors)]
        self.rings: dict[tuple[int, int], TokenRing] = {}
        self.channels: dict[tuple[str, int, int], TokenQueue] = {}
        self.woken: list[Actor] = []
        self.passed = 0
        self.waiting_at_barrier: list[Actor] = []
        self.absent: frozenset[int] = frozenset()
        self.before_release: Callable[[int], None] = lambda launch: None
        self.vector_bytes = self.net.width if self.net else program.machine.stick_bytes
        self.open: dict[int, TokenRing] = {}
        self.instances: list[TokenQueue] = []
        self.phases = {
            id(instruction): phases_of(instruction, self.vector_bytes)
            for code in program.units
            for instruction in code.instructions
        }
        self.ends: dict[int, tuple[str, list[Evaluator], list[Evaluator]]] = {
            id(instruction): (
                link.net,
                [core.evaluator() for core in link.sources],
                [core.evaluator() for core in link.targets],
            )
            for code in program.units
            for instruction in code.instructions
            if (link := instruction.link) is not None
        }
        self._tokens: dict[str, Callable[[Actor, Instruction], bool]] = {
            "reserve": self.reserve,
            "commit": self.commit,
            "acquire": self.acquire,
            "release": self.release,
            "barrier": self.barrier,
        }
        self._connect()

    # ------------------------------------------------------------------------------------------------------ connections

    def _connect(self) -> None:
        """Gives every actor its queues and rings, and every queue and ring its actors."""
        used = {code.number: _Use.of(code) for code in self.program.units}
        instances: dict[tuple[int, int, int], TokenQueue] = {}
        for actor in self.actors:
            use = used[actor.code.number]
            for queue in (*use.pops, *use.pushes):
                key = (actor.core, actor.code.corelet, queue.number)
                if key not in instances:
                    instances[key] = self._queue(queue.name, self.depths[queue.number], key[:2])
                actor.queues[queue.number] = instances[key]
            for queue in use.pops:
                actor.queues[queue.number].consumer = actor
            for queue in use.pushes:
                actor.queues[queue.number].producer = actor
            for buffer in use.fills:
                ring = self.ring(actor, buffer)
                ring.producers.append(actor)
                ring.reserved[actor.number] = ring.committed[actor.number] = 0
            for buffer in use.reads:
                ring = self.ring(actor, buffer)
                ring.consumers.append(actor)
                ring.acquired[actor.number] = ring.released[actor.number] = 0

    def ring(self, actor: Actor, buffer: Buffer) -> TokenRing:
        """The slots of ``buffer`` that ``actor`` sees."""
        key = (actor.core if buffer.per_core else 0, buffer.number)
        if key not in self.rings:
            self.rings[key] = TokenRing(len(self.rings), buffer, self.slots[buffer.number], actor.core)
        return self.rings[key]

    def _queue(self, name: str, depth: int, place: tuple[int, int]) -> TokenQueue:
        queue = TokenQueue(len(self.instances), name, depth, place)
        self.instances.append(queue)
        return queue

    def channel(self, net: str, source: int, target: int) -> TokenQueue:
        """What core ``source`` has under way to core ``target`` on a network."""
        key = (net, source, target)
        if key not in self.channels:
            depth = self.program.machine.net(net).depth
            self.channels[key] = self._queue(f"from core {source} to core {target}", depth, key[1:])
        return self.channels[key]

    def channels_of(self, actor: Actor, instruction: Instruction) -> tuple[list[TokenQueue], list[TokenQueue]]:
        """The channels that an instruction receives from and sends to, now."""
        net, sources, targets = self.ends[id(instruction)]
        core, indices = actor.core, actor.cursor.indices
        received = [self.channel(net, peer, core) for peer in self._peers(instruction, sources, core, indices)]
        sent = [self.channel(net, core, peer) for peer in self._peers(instruction, targets, core, indices)]
        for channel in received:
            channel.consumer = actor
        for channel in sent:
            channel.producer = actor
        return received, sent

    def _peers(
        self, instruction: Instruction, ends: Sequence[Evaluator], core: int, indices: Sequence[int]
    ) -> list[int]:
        peers = [peer for end in ends if (peer := end(core, indices)) >= 0]
        if any(peer >= self.program.cores for peer in peers):
            raise DataflowError(f"there is no core {max(peers)}", location=instruction.location)
        return peers

    # ------------------------------------------------------------------------------------------------------------ steps

    def next_phase(self, actor: Actor) -> Phase | None:
        """The phase ``actor`` is in, after passing all operations that take no time; None if it waits or has ended."""
        if actor.phase is not None:
            return actor.phase
        cursor = actor.cursor
        while (instruction := cursor.instruction) is not None:
            token = self._tokens.get(instruction.kind)
            if token is None:
                actor.phases = self.phases[id(instruction)]
                actor.phase_number = actor.done = 0
                actor.phase = actor.phases[0]
                return actor.phase
            if not token(actor, instruction):
                return None
            self.passed += 1
            cursor.advance()
        return None

    def grant(self, actor: Actor, phase: Phase, most: int) -> int:
        """Takes up to ``most`` quanta of inputs and sets room aside for their outputs; 0 where the actor must wait."""
        quanta = min(most, phase.quanta - actor.done)
        queues = actor.queues
        if id(actor.cursor.instruction) in self.ends:
            return self._grant_channels(actor, quanta)
        if not phase.even:
            return self._grant_uneven(actor, phase, quanta)
        for number, _ in phase.pops:
            queue = queues[number]
            if queue.filled < quanta:
                quanta = queue.filled
                if not quanta:
                    return self._wait(actor, "starved", queue)
        for number, _ in phase.pushes:
            queue = queues[number]
            if queue.space < quanta:
                quanta = queue.space
                if not quanta:
                    return self._wait(actor, "blocked", queue)
        for number, _ in phase.pops:
            self.take(queues[number], quanta)
        for number, _ in phase.pushes:
            queues[number].space -= quanta
        return quanta

    def _grant_channels(self, actor: Actor, quanta: int) -> int:
        received, sent = self.channels_of(actor, cast("Instruction", actor.cursor.instruction))
        for channel in received:
            quanta = min(quanta, channel.filled)
            if not quanta:
                return self._wait(actor, "starved", channel)
        for channel in sent:
            quanta = min(quanta, channel.space)
            if not quanta:
                return self._wait(actor, "blocked", channel)
        for channel in received:
            self.take(channel, quanta)
        for channel in sent:
            channel.space -= quanta
        return quanta

    def _grant_uneven(self, actor: Actor, phase: Phase, quanta: int) -> int:
        done, total = actor.done, phase.quanta
        for number, vectors in phase.pops:
            queue = actor.queues[number]
            reach = (popped(done, vectors, total) + queue.filled) * total // vectors - done
            if reach < quanta:
                quanta = reach
                if quanta <= 0:
                    return self._wait(actor, "starved", queue)
        for number, vectors in phase.pushes:
            queue = actor.queues[number]
            reach = ((pushed(done, vectors, total) + queue.space + 1) * total - 1) // vectors - done
            if reach < quanta:
                quanta = reach
                if quanta <= 0:
                    return self._wait(actor, "blocked", queue)
        for number, vectors in phase.pops:
            self.take(actor.queues[number], popped(done + quanta, vectors, total) - popped(done, vectors, total))
        for number, vectors in phase.pushes:
            room = pushed(done + quanta, vectors, total) - pushed(done, vectors, total)
            actor.queues[number].space -= room
        return quanta

    def _wait(self, actor: Actor, wait: Wait, thing: TokenQueue | TokenRing) -> int:
        actor.wait, actor.waits_for = wait, thing
        return 0

    def take(self, queue: TokenQueue, vectors: int) -> None:
        """Empties the room of ``vectors`` and lets the producer know."""
        queue.filled -= vectors
        queue.space += vectors
        producer = queue.producer
        if producer is not None and producer.waits_for is queue:
            producer.waits_for = None
            self.woken.append(producer)

    def fill(self, queue: TokenQueue, vectors: int) -> None:
        """Makes ``vectors`` visible to the consumer, whose room was set aside before."""
        queue.filled += vectors
        consumer = queue.consumer
        if consumer is not None and consumer.waits_for is queue:
            consumer.waits_for = None
            self.woken.append(consumer)

    def complete(self, actor: Actor, phase: Phase, quanta: int) -> None:
        """Makes the outputs of granted quanta visible and moves the actor on. Channels are filled by the caller."""
        done = actor.done
        actor.done = after = done + quanta
        if phase.even:
            for number, _ in phase.pushes:
                self.fill(actor.queues[number], quanta)
        else:
            for number, vectors in phase.pushes:
                moved = pushed(after, vectors, phase.quanta) - pushed(done, vectors, phase.quanta)
                if moved:
                    self.fill(actor.queues[number], moved)
        if after == phase.quanta:
            actor.done = 0
            actor.phase_number += 1
            if actor.phase_number < len(actor.phases):
                actor.phase = actor.phases[actor.phase_number]
            else:
                actor.phase = None
                actor.cursor.advance()
        else:
            actor.parts += 1

    # ----------------------------------------------------------------------------------------------------------- tokens

    def reserve(self, actor: Actor, instruction: Instruction) -> bool:
        """Takes a free slot; False where the producer has to wait."""
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        reserved = ring.reserved[actor.number]
        if reserved - min(ring.released.values(), default=reserved) >= ring.slots:
            self._wait(actor, "blocked", ring)
            return False
        ring.reserved[actor.number] += 1
        self.open[ring.number] = ring
        return True

    def commit(self, actor: Actor, instruction: Instruction) -> bool:
        """Hands the oldest reserved slot to the consumers."""
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.committed.get(actor.number, 0) >= ring.reserved.get(actor.number, 0):
            raise QueueMisuse(
                f"dfp.commit of buffer {ring.buffer.name} without a reserve", location=instruction.location
            )
        ring.committed[actor.number] += 1
        for consumer in ring.consumers:
            self._wake_from(ring, consumer)
        return True

    def acquire(self, actor: Actor, instruction: Instruction) -> bool:
        """Takes a full slot; False where the consumer has to wait."""
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.acquired[actor.number] >= min(ring.committed.values(), default=0):
            self._wait(actor, "starved", ring)
            return False
        ring.acquired[actor.number] += 1
        return True

    def release(self, actor: Actor, instruction: Instruction) -> bool:
        """Gives the oldest acquired slot back."""
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.released.get(actor.number, 0) >= ring.acquired.get(actor.number, 0):
            raise QueueMisuse(
                f"dfp.release of buffer {ring.buffer.name} without an acquire", location=instruction.location
            )
        ring.released[actor.number] += 1
        if not any(ring.state()):
            self.open.pop(ring.number, None)
        for producer in ring.producers:
            self._wake_from(ring, producer)
        return True

    def _wake_from(self, ring: TokenRing, actor: Actor) -> None:
        if actor.waits_for is ring:
            actor.waits_for = None
            self.woken.append(actor)

    def barrier(self, actor: Actor, instruction: Instruction) -> bool:
        """Arrives; the last actor lets all go on, itself like the others. None of them goes on at once."""
        if actor.at_barrier:
            return False
        actor.at_barrier = True
        actor.wait, actor.waits_for = "starved", None
        self.waiting_at_barrier.append(actor)
        if len(self.waiting_at_barrier) + len(self.absent) < len(self.actors):
            return False
        for other in self.waiting_at_barrier:
            reached = cast("Instruction", other.cursor.instruction)
            if reached.launch != instruction.launch:
                raise QueueMisuse(
                    f"units meet at barriers before launches {instruction.launch} and {reached.launch}",
                    location=reached.location,
                )
        self.waiting_at_barrier = []
        self.before_release(instruction.launch)
        for other in self.actors:
            other.at_barrier, other.launch = False, instruction.launch
            other.cursor.advance()
            if other.number not in self.absent:
                self.woken.append(other)
        return False

    # ------------------------------------------------------------------------------------------- cores that do alike

    def state_of_core(self, core: int) -> tuple[object, ...]:
        """What fills the queues and the rings of tiles of ``core``."""
        queues = tuple([(queue.filled, queue.space) for queue in self.instances if queue.place[0] == core])
        tiles = [(ring.buffer.number, ring.state()) for ring in self.open.values() if ring.core == core]
        return queues, tuple(sorted(tiles))

    def follow(self, original: int, core: int, numbers: Mapping[int, int]) -> None:
        """Brings queues and rings of ``core`` to where those of ``original`` are; ``numbers`` are the actors'."""
        for actor in self.actors:
            if actor.number in numbers and actor.core == original:
                for number, queue in actor.queues.items():
                    own = self.actors[numbers[actor.number]].queues[number]
                    own.filled, own.space = queue.filled, queue.space
        for (place, buffer), ring in self.rings.items():
            if place == original and ring.buffer.per_core:
                self._follow(ring, self.rings[core, buffer], numbers)

    def _follow(self, ring: TokenRing, own: TokenRing, numbers: Mapping[int, int]) -> None:
        ends = ((ring.reserved, own.reserved), (ring.committed, own.committed))
        for theirs, ours in (*ends, (ring.acquired, own.acquired), (ring.released, own.released)):
            ours.update({numbers[number]: count for number, count in theirs.items()})
        if ring.number in self.open:
            self.open[own.number] = own
        else:
            self.open.pop(own.number, None)

    def unfinished(self) -> list[Actor]:
        """Actors that have not reached their end."""
        return [actor for actor in self.actors if actor.cursor.instruction is not None]


def popped(done: int, vectors: int, quanta: int) -> int:
    """Vectors of an input taken after ``done`` of ``quanta``."""
    return -(-done * vectors // quanta)


def pushed(done: int, vectors: int, quanta: int) -> int:
    """Vectors of an output given after ``done`` of ``quanta``."""
    return done * vectors // quanta


@dataclass(frozen=True, slots=True)
class _Use:
    """Queues and rings that a code touches, each once."""

    pops: tuple[Queue, ...]
    pushes: tuple[Queue, ...]
    fills: tuple[Buffer, ...]
    reads: tuple[Buffer, ...]

    @classmethod
    def of(cls, code: UnitCode) -> _Use:
        instructions = list(code.instructions)
        return cls(
            _unique(flow.queue for each in instructions for flow in each.pops),
            _unique(flow.queue for each in instructions for flow in each.pushes),
            _unique(each.ring for each in instructions if each.kind == "reserve" and each.ring),
            _unique(each.ring for each in instructions if each.kind in _READING and each.ring),
        )


_READING: Final = ("acquire", "release")


def _unique(things: Iterator[T]) -> tuple[T, ...]:
    return tuple({thing.number: thing for thing in things}.values())
