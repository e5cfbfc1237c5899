"""What the steps of all instructions with data have in common.

Elements come in, tiles are touched, a row joins a batch, elements go out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktir.backends.dataflow.element_types import raw_dtype
from ktir.backends.dataflow.expression import Evaluator, Linear
from ktir.backends.dataflow.functional_batch import Batch, Origin, Part
from ktir.backends.dataflow.functional_tokens import Guards, Ring, Stream, Unit
from ktir.backends.dataflow.unit_program import Access, Instruction
from ktir.errors import QueueMisuse

if TYPE_CHECKING:
    from ktir.backends.dataflow.functional_walk import Walk


@dataclass(frozen=True, slots=True)
class _Tile:
    """An access of a ring: bytes from ``low`` to before ``high`` from its offset, or from the start of the tile where
    ``offset`` is None because cores differ."""

    number: int
    access: Access
    ring: Ring
    offset: Evaluator | None
    low: int
    high: int


class _Tiles:
    """The rings that an instruction touches: which tile each access means now, and what that depends on."""

    def __init__(self, walk: Walk, unit: Unit, instruction: Instruction) -> None:
        self.unit, self.instruction = unit, instruction
        self.accesses: list[_Tile] = []
        for number, access in enumerate(instruction.accesses):
            if access.buffer.slots:
                ring, uniform = walk.ring(unit, access.buffer), _uniform(access)
                low, high = access.box.span if uniform else (0, access.buffer.size)
                self.accesses.append(
                    _Tile(number, access, ring, access.offset.evaluator() if uniform else None, low, high)
                )
                if access.indirect or (access.writes and not (uniform and _contiguous(access))):
                    ring.filled = False

    def needed(self, writes_happen: bool = True) -> tuple[int, list[tuple[int, Ring, int]]]:
        """The position to come after, and (access, ring, tile) for each access."""
        after, found = -1, list[tuple[int, Ring, int]]()
        core, indices = self.unit.core, self.unit.cursor.indices
        for each in self.accesses:
            ring, writes = each.ring, each.access.writes
            if writes and not writes_happen:
                continue
            tile = self._tile(each.access, ring)
            if tile >= len(ring.first):
                ring.know(tile)
            offset = each.offset(core, indices) if each.offset is not None else 0
            if not writes:
                ring.read(tile, each.low + offset, each.high + offset)
                after = max(after, ring.written[tile])
            elif ring.overlaps(tile, each.low + offset, each.high + offset):
                after = max(after, ring.written[tile])
            found.append((each.number, ring, tile))
        return after, found

    def _tile(self, access: Access, ring: Ring) -> int:
        number = self.unit.code.number
        if access.writes:
            committed = ring.committed.get(number, 0)
            if ring.reserved.get(number, 0) <= committed:
                raise _not_held(access, self.instruction)
            return committed
        released = ring.released.get(number, 0)
        if ring.acquired.get(number, 0) - released <= access.slot:
            raise _not_held(access, self.instruction)
        return released + access.slot


def _uniform(access: Access) -> bool:
    """Whether the offset is the same on all cores."""
    offset = access.offset
    return (
        isinstance(offset, Linear)
        and isinstance(offset.constant, int)
        and all(isinstance(factor, int) for _, factor in offset.terms)
        and not access.indirect
    )


def _contiguous(access: Access) -> bool:
    """Whether the box is one run of bytes."""
    box = access.box.merged
    return not box.counts or (len(box.counts) == 1 and box.strides[0] == box.width)


def _not_held(access: Access, instruction: Instruction) -> QueueMisuse:
    verb, remedy = ("writes", "reserve") if access.writes else ("reads", "acquire")
    return QueueMisuse(
        f"dfp.{instruction.kind} {verb} a tile of buffer {access.buffer.name} that it does not hold",
        location=instruction.location,
        remedy=f"dfp.{remedy} it before",
    )


class Rows:
    """The rows of an instruction of a unit."""

    def __init__(self, walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> None:
        self.walk, self.unit, self.instruction = walk, unit, instruction
        self.depth = instruction.depth
        self.series = walk.new_series(unit, instruction)
        self.tiles = _Tiles(walk, unit, instruction)
        self.pushed = [walk.queue(unit, flow.queue.number) for flow in instruction.pushes]
        self.guards = guards.get(id(instruction), [])
        self.watched = walk.raced_guard in self.guards
        self.pops = [(flow, walk.queue(unit, flow.queue.number)) for flow in instruction.pops]
        wanted: dict[int, int] = {}
        for flow, _ in self.pops:
            wanted[flow.queue.number] = wanted.get(flow.queue.number, 0) + flow.elements
        self.wanted = [(flow, stream, wanted[flow.queue.number]) for flow, stream in self.pops]

    def waits(self) -> bool:
        """Whether elements are missing; the unit waits for them then."""
        for flow, stream, wanted in self.wanted:
            if stream.count < wanted:
                stream.waiters.append(self.unit)
                self.unit.waits_for = (
                    f"{flow.elements} elements of queue {flow.queue.name} from {flow.queue.source}, "
                    f"which holds {stream.count}"
                )
                return True
        return False

    def row(self, after: int = -1, incoming: Sequence[list[Origin]] = (), *, writes: bool = True) -> Batch:
        """Takes what the instruction pops and puts its row into a batch."""
        unit, walk = self.unit, self.walk
        origins: list[Origin] = []
        for flow, stream in self.pops:
            origin = take(walk, unit, stream, flow.elements, flow.element, self.instruction)
            origins.append(origin)
            made = origin[0].position if isinstance(origin, tuple) else _made(origin)
            if made > after:
                after = made
        for end in incoming:
            for origin in end:
                after = max(after, _made(origin))
        position, tiles = self.tiles.needed(writes)
        after = max(after, position)
        for guard in self.guards:
            after = max(after, guard.position)
        batch = walk.place(self.series, after, tuple(unit.cursor.indices[: self.depth]), tiles)
        here = batch.position
        for guard in self.guards:
            guard.position = here
        if self.watched and walk.order is not None:
            batch.known.append(walk.order.reading(unit.number))
        for place, ring, tile in tiles:
            ring.touched(tile, here)
            if self.instruction.accesses[place].writes:
                ring.written[tile] = max(ring.written[tile], here)
        for place, origin in enumerate(origins):
            batch.sources[place].append(origin)
            self._read(origin, here)
        if incoming:
            batch.incoming.append(list(incoming))
            for end in incoming:
                for origin in end:
                    self._read(origin, here)
        return batch

    def _read(self, origin: Origin, position: int) -> None:
        """What ``origin`` names is needed until ``position``; so are tiles that are lent."""
        for batch, row in (origin,) if isinstance(origin, tuple) else [(part.batch, part.row) for part in origin]:
            if position > batch.last:
                batch.last = position
            if batch.lends:
                buffer = batch.instruction.accesses[0].buffer
                ring = self.walk.rings[batch.team.number, buffer.number]
                tile = batch.tiles[0][row]
                ring.last[tile] = max(ring.last[tile], position)

    def push(self, batch: Batch) -> None:
        """The row that joined ``batch`` last pushes its elements."""
        flow = self.instruction.pushes[0]
        give(self.walk, self.unit, self.pushed[0], Part(batch, len(batch.rows) - 1, 0, flow.elements))
        self.walk.pushed += flow.elements * len(self.unit.team.cores)


def give(walk: Walk, unit: Unit, stream: Stream, part: Part) -> None:
    """Puts elements into a queue or channel."""
    count = part.stop - part.start
    if walk.order is not None:
        walk.order.give(stream.number, unit.number, count)
    stream.parts.append(part)
    stream.count += count
    if stream.waiters:
        walk.wake(stream.waiters)


def take(walk: Walk, unit: Unit, stream: Stream, count: int, element: str, instruction: Instruction) -> Origin:
    """The first ``count`` elements of a queue or channel, which are there."""
    if walk.order is not None:
        walk.order.take(stream.number, unit.number, count)
    stream.count -= count
    first = stream.parts.popleft()
    source = first.batch
    if first.start == 0 and first.stop == count == source.elements and not first.core:
        if source.element != element:
            _check_type(source, element, instruction)
        return source, first.row
    parts, have = [first], first.stop - first.start
    while have < count:
        parts.append(stream.parts.popleft())
        have += parts[-1].stop - parts[-1].start
    if have > count:
        last = parts[-1]
        cut = last.stop - (have - count)
        parts[-1] = Part(last.batch, last.row, last.start, cut, last.core)
        stream.parts.appendleft(Part(last.batch, last.row, cut, last.stop, last.core))
    for part in parts:
        _check_type(part.batch, element, instruction)
    return parts


def _check_type(batch: Batch, element: str, instruction: Instruction) -> None:
    pushed = batch.element
    if pushed != element and raw_dtype(pushed) != raw_dtype(element):
        raise QueueMisuse(
            f"dfp.{instruction.kind} pops elements of {raw_dtype(element)}, but {raw_dtype(pushed)} was pushed",
            location=instruction.location,
        )


def _made(origin: Origin) -> int:
    """The position of the last batch that made some of ``origin``."""
    if isinstance(origin, tuple):
        return origin[0].position
    return max(part.batch.position for part in origin)
