"""V6: no two units touch the same bytes in one launch, one of them writing, unless something orders the two.

What could be raced for is found from footprints (:mod:`conflicts <ktir.backends.dataflow.conflicts>`). Only a program
that has such bytes is run, as tokens, with vector clocks and a shadow of those bytes. A write after an unordered write
may store the same bits; without the data that is a warning. Indirect accesses and what comes after ``MOST_STEPS`` steps
are left to the functional run, which keeps the same clocks.

Bytes of a tile are ordered by its slot, but for those that several producers write, each its part of the tile. Where
the parts are not apart, the slots are shadowed like plain bytes, and two writes are an error: the run with data gives
each tile bytes of its own and does not see them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from ktir.backends.dataflow.conflicts import Tiles, contested, filled_by_several, grain_of, tiles_of
from ktir.backends.dataflow.token_machine import Actor, Phase, TokenMachine, TokenQueue, TokenRing
from ktir.backends.dataflow.touched import Region, Touch, region_of
from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Program
from ktir.backends.dataflow.vector_clocks import Box, Clocks, Epoch, Reading, Shadow
from ktir.errors import DataflowRace, KtirError, Severity, WriteConflict

MOST_STEPS: Final = 200_000
"""Steps of the tokens after which the rest is left to the run with data."""
MOST_BYTES: Final = 1 << 26
"""Bytes of a region that are shadowed."""


def race_findings(program: Program, touched: Sequence[Touch]) -> Iterator[tuple[KtirError, Severity]]:
    """Findings of rule V6."""
    shared, filled = contested(touched), filled_by_several(program)
    if shared or filled:
        sizes = {region: int(parts[-1, 1]) for region, parts in shared.items()}
        yield from _Run(program, touched, sizes, filled).findings()


class OrderedTokens(TokenMachine):
    """The token machine with a vector clock for each unit."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.clocks = Clocks(len(self.actors))
        self.carried: defaultdict[int, deque[tuple[int, Reading]]] = defaultdict(deque)
        self.committed: defaultdict[tuple[int, int], list[Reading]] = defaultdict(list)
        self.released: defaultdict[tuple[int, int], list[Reading]] = defaultdict(list)
        self.before_release = lambda launch: self.clocks.meet()

    def fill(self, queue: TokenQueue, vectors: int) -> None:
        """As the token machine; the vectors carry the producer's clock."""
        producer = queue.producer
        if producer is not None:
            self.carried[queue.number].append((vectors, self.clocks.stamp(producer.number)))
        super().fill(queue, vectors)

    def take(self, queue: TokenQueue, vectors: int) -> None:
        """As the token machine; the consumer learns what the vectors carry."""
        carried = self.carried[queue.number]
        left = vectors
        while left and carried:
            count, stamp = carried.popleft()
            if queue.consumer is not None:
                self.clocks.learn(queue.consumer.number, stamp)
            if count > left:
                carried.appendleft((count - left, stamp))
            left -= min(left, count)
        super().take(queue, vectors)

    def reserve(self, actor: Actor, instruction: Instruction) -> bool:
        """As the token machine; the producer learns of those who gave the slot back."""
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        before = ring.reserved[actor.number] - ring.slots
        if not super().reserve(actor, instruction):
            return False
        for consumer in ring.consumers if before >= 0 else ():
            self.clocks.learn(actor.number, self.released[ring.number, consumer.number][before])
        return True

    def commit(self, actor: Actor, instruction: Instruction) -> bool:
        """As the token machine; the tile carries the producer's clock."""
        self.committed[self._number(actor, instruction), actor.number].append(self.clocks.stamp(actor.number))
        return super().commit(actor, instruction)

    def acquire(self, actor: Actor, instruction: Instruction) -> bool:
        """As the token machine; the consumer learns what the tile carries."""
        ring = self.ring(actor, cast("Buffer", instruction.ring))
        tile = ring.acquired[actor.number]
        if not super().acquire(actor, instruction):
            return False
        for producer in ring.producers:
            self.clocks.learn(actor.number, self.committed[ring.number, producer.number][tile])
        return True

    def release(self, actor: Actor, instruction: Instruction) -> bool:
        """As the token machine; the slot carries the consumer's clock."""
        self.released[self._number(actor, instruction), actor.number].append(self.clocks.stamp(actor.number))
        return super().release(actor, instruction)

    def _number(self, actor: Actor, instruction: Instruction) -> int:
        ring: TokenRing = self.ring(actor, cast("Buffer", instruction.ring))
        return ring.number


class _Run:
    """One maximal run of the tokens with a shadow of the bytes that could be raced for."""

    def __init__(
        self, program: Program, touched: Sequence[Touch], sizes: dict[Region, int], filled: Mapping[Tiles, Buffer]
    ) -> None:
        self.machine = OrderedTokens(program)
        self.offsets = {
            id(access): access.offset.evaluator()
            for code in program.units
            for instruction in code.instructions
            for access in instruction.accesses
        }
        self.shadows = {
            region: Shadow(self.machine.clocks, _reach(touched, region), grain_of(touched, region))
            for region, size in sizes.items()
            if size <= MOST_BYTES
        }
        self.tiles = {
            place: Shadow(self.machine.clocks, max(1, buffer.slots) * buffer.size, 1)
            for place, buffer in filled.items()
            if buffer.slots * buffer.size <= MOST_BYTES
        }
        self.reported: set[tuple[int, int]] = set()

    def findings(self) -> Iterator[tuple[KtirError, Severity]]:
        """Runs; each pair of instructions that race is found once."""
        machine, ready, steps = self.machine, deque(self.machine.actors), 0
        while ready and steps < MOST_STEPS:
            actor = ready.popleft()
            while (phase := machine.next_phase(actor)) is not None and steps < MOST_STEPS:
                steps += 1
                quanta = machine.grant(actor, phase, phase.quanta)
                if not quanta:
                    break
                yield from self._complete(actor, phase, quanta)
            ready.extend(machine.woken)
            machine.woken.clear()

    def _complete(self, actor: Actor, phase: Phase, quanta: int) -> Iterator[tuple[KtirError, Severity]]:
        """An operation touches its bytes before it gives the last of its results away."""
        instruction = cast("Instruction", actor.cursor.instruction)
        last = actor.phase_number == len(actor.phases) - 1 and actor.done + quanta == phase.quanta
        for access in instruction.accesses if last else ():
            yield from self._touch(actor, instruction, access)
        if id(instruction) in self.machine.ends:
            for channel in self.machine.channels_of(actor, instruction)[1]:
                self.machine.fill(channel, quanta)
        self.machine.complete(actor, phase, quanta)

    def _touch(self, actor: Actor, instruction: Instruction, access: Access) -> Iterator[tuple[KtirError, Severity]]:
        buffer = access.buffer
        start = self._slot(actor, access) * buffer.size if buffer.slots else buffer.offset
        shadow = self.tiles.get(tiles_of(buffer, actor.core)) if buffer.slots else None
        shadow = shadow if buffer.slots else self.shadows.get(region_of(buffer, actor.core))
        if shadow is None or access.indirect:
            return
        place = start + self.offsets[id(access)](actor.core, actor.cursor.indices)
        box = Box(place, access.box.counts, access.box.strides, access.box.width)
        if access.writes:
            read, written = shadow.write(actor.number, instruction, box)
            yield from self._report(actor, instruction, access, read, "reads")
            yield from self._report(actor, instruction, access, written, "writes")
        else:
            written = shadow.read(actor.number, instruction, box)
            yield from self._report(actor, instruction, access, written, "writes")

    def _slot(self, actor: Actor, access: Access) -> int:
        """The slot that the access addresses: of the oldest tile that is reserved, or of one that is held."""
        ring = self.machine.ring(actor, access.buffer)
        tile = ring.committed[actor.number] if access.writes else ring.released[actor.number] + access.slot
        return tile % ring.slots

    def _report(
        self, actor: Actor, instruction: Instruction, access: Access, other: Epoch | None, verb: str
    ) -> Iterator[tuple[KtirError, Severity]]:
        if other is None or (id(other.instruction), id(instruction)) in self.reported:
            return
        self.reported.add((id(other.instruction), id(instruction)))
        left_to_run = access.writes and verb == "writes" and not access.buffer.slots
        yield (
            race(actor.cursor.describe(), instruction, access, self.machine.actors[other.unit], other, verb),
            "warning" if left_to_run else "error",
        )


def race(who: str, instruction: Instruction, access: Access, rival: Actor, other: Epoch, verb: str) -> KtirError:
    """The error that names both sides."""
    both_write = access.writes and verb == "writes" and not access.buffer.slots
    kind = WriteConflict if both_write else DataflowRace
    place = other.instruction.location
    mine = "writes" if access.writes else "reads"
    return kind(
        f"{who} {mine} bytes of buffer {access.buffer.name} that {rival.code.unit} of core {rival.core} {verb}, and "
        "nothing orders the two",
        location=instruction.location,
        remedy="let each producer write a part of its own"
        if access.buffer.slots
        else "give the buffer slots, or put a barrier between them",
        related=((place, f"dfp.{other.instruction.kind} of {rival.code.unit}"),) if place else (),
    )


def _reach(touched: Sequence[Touch], region: Region) -> int:
    """The byte after the last that is touched in a region."""
    return max(int(touch.footprint.intervals[-1, 1]) for touch in touched if touch.region == region)
