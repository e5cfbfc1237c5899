"""The token machine: a dataflow program without its data, only what fills and empties queues and rings of tiles.

It decides deadlock and it drives the timed simulation: both call the same :meth:`TokenMachine.grant` and
:meth:`TokenMachine.complete`, so they cannot disagree about what may happen. Because each queue has one writer and one
reader that block, one maximal run decides for all orders whether the program reaches its end.

Words. *quantum*: the least an instruction does at once; a *phase* is a stretch of quanta with a fixed relation between
vectors popped and pushed. *grant*: quanta taken from the inputs, with room in the outputs set aside. *peer*: the actor
on the other side of what an actor waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, cast

from ktir.backends.dataflow.expression import Evaluator
from ktir.backends.dataflow.unit_program import Buffer, Cursor, Instruction, Program, Queue, UnitCode
from ktir.dialect import dfp
from ktir.errors import DataflowDeadlock, DataflowError, QueueMisuse

Wait = Literal["starved", "blocked"]
_DEADLOCK_REMEDY: Final = (
    "deepen the queue or add a slot to the buffer that is full, or move the operation that would empty it forward"
)
T = TypeVar("T", Queue, Buffer)


@dataclass(frozen=True, slots=True)
class Phase:
    """``quanta`` steps; after q of them, ceil(q * vectors / quanta) of each input and floor(..) of each output moved.

    ``even``: every stream moves one vector a quantum.
    """

    quanta: int
    pops: tuple[tuple[int, int], ...] = ()
    pushes: tuple[tuple[int, int], ...] = ()
    sends: int = 0
    receives: int = 0
    even: bool = True


def phases_of(instruction: Instruction, vector_bytes: int) -> tuple[Phase, ...]:
    """The phases of an instruction. ``vector_bytes`` is the grain of what moves outside queues."""
    if instruction.kind in ("send", "receive"):
        vectors = -(-instruction.accesses[0].box.bytes // vector_bytes)
        sends = instruction.kind == "send"
        return (Phase(vectors, sends=vectors if sends else 0, receives=0 if sends else vectors),)
    if instruction.kind == "sfu_reduce":
        return _reduction_phases(instruction)
    pops = tuple((flow.queue.number, flow.vectors) for flow in instruction.pops)
    pushes = tuple((flow.queue.number, flow.vectors) for flow in instruction.pushes)
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

    __slots__ = ("consumer", "depth", "filled", "name", "place", "producer", "space")

    def __init__(self, name: str, depth: int, place: tuple[int, int]) -> None:
        self.name, self.depth, self.place = name, depth, place
        self.filled, self.space = 0, depth
        self.producer: Actor | None = None
        self.consumer: Actor | None = None


class TokenRing:
    """Slots of a ring of tiles: reserved and committed by the producer, acquired and released by each consumer."""

    __slots__ = ("acquired", "buffer", "committed", "consumers", "producer", "released", "reserved")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.reserved = self.committed = 0
        self.acquired: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.producer: Actor | None = None
        self.consumers: list[Actor] = []


class Actor:
    """A unit at work, as far as tokens go. ``wait`` and ``waits_for`` say why it stands still."""

    __slots__ = (
        "at_barrier",
        "code",
        "core",
        "cursor",
        "done",
        "launch",
        "number",
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
        self.phase_number = self.done = self.launch = 0
        self.wait: Wait = "starved"
        self.waits_for: TokenQueue | TokenRing | None = None
        self.at_barrier = False


class TokenMachine:
    """All actors of a program with their queues. ``woken`` collects actors whose wait may be over."""

    def __init__(self, program: Program, depths: Sequence[int] | None = None) -> None:
        """``depths`` replaces the declared depths of the queues, in order of declaration."""
        self.program = program
        self.depths = list(depths) if depths is not None else [queue.depth for queue in program.queues]
        self.net = next(iter(program.machine.nets.values()), None)
        self.actors = [Actor(number, code, core) for number, (core, code) in enumerate(program.actors)]
        self.rings: dict[tuple[int, int], TokenRing] = {}
        self.channels: dict[tuple[int, int], TokenQueue] = {}
        self.woken: list[Actor] = []
        self.waiting_at_barrier: list[Actor] = []
        self.vector_bytes = self.net.width if self.net else program.machine.stick_bytes
        self.phases = {
            id(instruction): phases_of(instruction, self.vector_bytes)
            for code in program.units
            for instruction in code.instructions
        }
        self.peers: dict[int, Evaluator] = {
            id(instruction): instruction.peer.evaluator()
            for code in program.units
            for instruction in code.instructions
            if instruction.peer is not None
        }
        self._tokens: dict[str, Callable[[Actor, Instruction], bool]] = {
            "reserve": self._reserve,
            "commit": self._commit,
            "acquire": self._acquire,
            "release": self._release,
            "barrier": self._barrier,
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
                    instances[key] = TokenQueue(queue.name, self.depths[queue.number], key[:2])
                actor.queues[queue.number] = instances[key]
            for queue in use.pops:
                actor.queues[queue.number].consumer = actor
            for queue in use.pushes:
                actor.queues[queue.number].producer = actor
            for buffer in use.fills:
                self.ring(actor, buffer).producer = actor
            for buffer in use.reads:
                ring = self.ring(actor, buffer)
                ring.consumers.append(actor)
                ring.acquired[actor.number] = ring.released[actor.number] = 0

    def ring(self, actor: Actor, buffer: Buffer) -> TokenRing:
        """The slots of ``buffer`` that ``actor`` sees."""
        key = (actor.core if buffer.per_core else 0, buffer.number)
        if key not in self.rings:
            self.rings[key] = TokenRing(buffer)
        return self.rings[key]

    def channel(self, source: int, target: int) -> TokenQueue:
        """What core ``source`` has under way to core ``target``."""
        key = (source, target)
        if key not in self.channels:
            depth = self.net.depth if self.net else 1
            self.channels[key] = TokenQueue(f"from core {source} to core {target}", depth, key)
        return self.channels[key]

    def channel_of(self, actor: Actor, instruction: Instruction) -> TokenQueue:
        """The channel that a send or receive uses, now."""
        peer = self.peers[id(instruction)](actor.core, actor.cursor.indices)
        if not 0 <= peer < self.program.cores:
            raise DataflowError(f"there is no core {peer}", location=instruction.location)
        if instruction.kind == "send":
            channel = self.channel(actor.core, peer)
            channel.producer = actor
        else:
            channel = self.channel(peer, actor.core)
            channel.consumer = actor
        return channel

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
            cursor.advance()
        return None

    def grant(self, actor: Actor, phase: Phase, most: int) -> int:
        """Takes up to ``most`` quanta of inputs and sets room aside for their outputs; 0 where the actor must wait."""
        quanta = min(most, phase.quanta - actor.done)
        queues = actor.queues
        if phase.sends or phase.receives:
            return self._grant_channel(actor, phase, quanta)
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
            self._take(queues[number], quanta)
        for number, _ in phase.pushes:
            queues[number].space -= quanta
        return quanta

    def _grant_channel(self, actor: Actor, phase: Phase, quanta: int) -> int:
        channel = self.channel_of(actor, cast("Instruction", actor.cursor.instruction))
        if phase.sends:
            quanta = min(quanta, channel.space)
            if not quanta:
                return self._wait(actor, "blocked", channel)
            channel.space -= quanta
            return quanta
        quanta = min(quanta, channel.filled)
        if not quanta:
            return self._wait(actor, "starved", channel)
        self._take(channel, quanta)
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
            self._take(actor.queues[number], popped(done + quanta, vectors, total) - popped(done, vectors, total))
        for number, vectors in phase.pushes:
            room = pushed(done + quanta, vectors, total) - pushed(done, vectors, total)
            actor.queues[number].space -= room
        return quanta

    def _wait(self, actor: Actor, wait: Wait, thing: TokenQueue | TokenRing) -> int:
        actor.wait, actor.waits_for = wait, thing
        return 0

    def _take(self, queue: TokenQueue, vectors: int) -> None:
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

    # ----------------------------------------------------------------------------------------------------------- tokens

    def _reserve(self, actor: Actor, instruction: Instruction) -> bool:
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.reserved - min(ring.released.values(), default=ring.reserved) >= ring.buffer.slots:
            self._wait(actor, "blocked", ring)
            return False
        ring.reserved += 1
        return True

    def _commit(self, actor: Actor, instruction: Instruction) -> bool:
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.committed >= ring.reserved:
            raise QueueMisuse(
                f"dfp.commit of buffer {ring.buffer.name} without a reserve", location=instruction.location
            )
        ring.committed += 1
        for consumer in ring.consumers:
            self._wake_from(ring, consumer)
        return True

    def _acquire(self, actor: Actor, instruction: Instruction) -> bool:
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.acquired[actor.number] >= ring.committed:
            self._wait(actor, "starved", ring)
            return False
        ring.acquired[actor.number] += 1
        return True

    def _release(self, actor: Actor, instruction: Instruction) -> bool:
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        if ring.released.get(actor.number, 0) >= ring.acquired.get(actor.number, 0):
            raise QueueMisuse(
                f"dfp.release of buffer {ring.buffer.name} without an acquire", location=instruction.location
            )
        ring.released[actor.number] += 1
        if ring.producer is not None:
            self._wake_from(ring, ring.producer)
        return True

    def _wake_from(self, ring: TokenRing, actor: Actor) -> None:
        if actor.waits_for is ring:
            actor.waits_for = None
            self.woken.append(actor)

    def _barrier(self, actor: Actor, instruction: Instruction) -> bool:
        if actor.at_barrier:
            return False
        actor.at_barrier = True
        actor.wait, actor.waits_for = "starved", None
        self.waiting_at_barrier.append(actor)
        if len(self.waiting_at_barrier) < len(self.actors):
            return False
        for other in self.waiting_at_barrier:
            reached = cast("Instruction", other.cursor.instruction)
            if reached.launch != instruction.launch:
                raise QueueMisuse(
                    f"units meet at barriers before launches {instruction.launch} and {reached.launch}",
                    location=reached.location,
                )
            other.at_barrier = False
            other.launch = instruction.launch
            if other is not actor:
                other.cursor.advance()
                self.woken.append(other)
        self.waiting_at_barrier = []
        return True

    # -------------------------------------------------------------------------------------------------------- diagnosis

    def unfinished(self) -> list[Actor]:
        """Actors that have not reached their end."""
        return [actor for actor in self.actors if actor.cursor.instruction is not None]

    def deadlock(self) -> DataflowDeadlock:
        """The error that says what waits for what: a cycle if there is one."""
        waiting = self.unfinished()
        chain = self._cycle(waiting[0])
        closed = len(chain) > 1 and chain[0] is chain[-1]
        lines = [self._why(actor) for actor in (chain[:-1] if closed else chain)]
        first = chain[0].cursor.instruction or waiting[0].cursor.instruction
        kind = "they wait for each other in a ring" if closed else "this is why"
        related = tuple(
            (instruction.location, self._why(actor))
            for actor in chain[1:]
            if (instruction := actor.cursor.instruction) is not None and instruction.location is not None
        )
        return DataflowDeadlock(
            f"{len(waiting)} units can never go on; {kind}:\n  " + "\n  ".join(lines),
            location=first.location if first else None,
            remedy=_DEADLOCK_REMEDY if closed else None,
            related=related,
        )

    def _cycle(self, start: Actor) -> list[Actor]:
        chain, seen = [start], {start.number: 0}
        while (peer := self.peer(chain[-1])) is not None:
            chain.append(peer)
            if peer.number in seen:
                return chain[seen[peer.number] :]
            seen[peer.number] = len(chain) - 1
        return chain

    def peer(self, actor: Actor) -> Actor | None:
        """Whom ``actor`` waits for, if that actor is not at its end."""
        thing = actor.waits_for
        if actor.at_barrier:
            return next((other for other in self.unfinished() if not other.at_barrier), None)
        if isinstance(thing, TokenQueue):
            return thing.producer if actor.wait == "starved" else thing.consumer
        if isinstance(thing, TokenRing):
            if actor.wait == "starved":
                return thing.producer
            return min(thing.consumers, key=lambda consumer: thing.released[consumer.number], default=None)
        return None

    def _why(self, actor: Actor) -> str:
        thing = actor.waits_for
        where = actor.cursor.describe()
        if actor.cursor.instruction is None:
            return f"{where}, will never do more"
        if actor.at_barrier:
            return f"{where}, waits for the others at the barrier"
        if isinstance(thing, TokenRing):
            what = "a full tile" if actor.wait == "starved" else f"a free one of the {thing.buffer.slots} tiles"
            return f"{where}, waits for {what} of buffer {thing.buffer.name}"
        if thing is None:
            return f"{where}, waits"
        state = "is empty" if actor.wait == "starved" else f"is full with {thing.depth} vectors"
        return f"{where}, waits because queue {thing.name} {state}"


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


def run_to_verdict(program: Program, depths: Sequence[int] | None = None) -> DataflowDeadlock | None:
    """Runs the tokens of ``program`` with real capacities; the error if it stops before its end."""
    machine = TokenMachine(program, depths)
    ready = deque(machine.actors)
    while ready:
        actor = ready.popleft()
        while (phase := machine.next_phase(actor)) is not None:
            instruction = actor.cursor.instruction
            quanta = machine.grant(actor, phase, phase.quanta)
            if not quanta:
                break
            if phase.sends:
                machine.fill(machine.channel_of(actor, cast("Instruction", instruction)), quanta)
            machine.complete(actor, phase, quanta)
        ready.extend(machine.woken)
        machine.woken.clear()
    return machine.deadlock() if machine.unfinished() else None
