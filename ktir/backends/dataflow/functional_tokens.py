"""The order of a functional run, worked out from tokens alone: which batches there are, and where their elements come
from.

Units are walked in their own order with queues without bound and rings of tiles with their slots, as long as they can
go on. What a row needs decides which batch it may join (:mod:`functional_batch`): elements it pops, tiles that were
written, bytes of plain buffers that the same unit touched before. That a slot is filled again orders nothing, for each
tile has bytes of its own in the run. Faults of tokens are found here: a unit that waits for ever, a tile that is not
held, elements of another type, something left over.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from ktir.backends.dataflow.cursor import Cursor
from ktir.backends.dataflow.expression import Evaluator, Linear
from ktir.backends.dataflow.functional_batch import MOST_ELEMENTS, Batch, Held, Origin, Part, Row, Series, Team
from ktir.backends.dataflow.functional_order import TokenOrder
from ktir.backends.dataflow.scalar_region import raw_dtype
from ktir.backends.dataflow.touched import Region
from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Link, Program, UnitCode
from ktir.backends.dataflow.vector_clocks import Clocks
from ktir.dialect import dfp
from ktir.errors import DataflowDeadlock, DataflowError, KtirError, QueueImbalance, QueueMisuse

Step = Callable[[], bool]
"""Takes the next step of a unit if its tokens are there."""


class Sink(Protocol):
    """What becomes of batches."""

    def placed(self, batch: Batch) -> None:
        """A row has joined ``batch``."""
        ...

    def barrier(self, launch: int) -> None:
        """A launch begins; whatever was placed comes before it."""
        ...


@dataclass(slots=True, eq=False)
class Stream:
    """Elements under way in a queue or between two cores; a number tells streams apart."""

    number: int
    parts: deque[Part] = field(default_factory=deque[Part])
    count: int = 0
    pushed: int = 0
    waiters: list[Unit] = field(default_factory=list["Unit"])


class Ring:
    """Tiles of a ring of slots on a team: how many were reserved, committed, acquired, released by each code.

    By tile: ``first`` and ``last`` batch that touches it, the last that ``written`` it, the bytes ``covered`` so far.
    ``filled``: so far no byte of a tile was read that is not certain to be written.
    """

    def __init__(self, number: int, buffer: Buffer) -> None:
        self.number, self.buffer = number, buffer
        self.reserved: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.acquired: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.waiters: list[Unit] = []
        self.first: list[int] = []
        self.last: list[int] = []
        self.written: list[int] = []
        self.covered: list[list[tuple[int, int]]] = []
        self.filled = True

    def free(self, producer: int) -> int:
        """Slots that ``producer`` may reserve."""
        reserved = self.reserved[producer]
        return self.buffer.slots - reserved + min(self.released.values(), default=reserved)

    @property
    def full(self) -> int:
        """Tiles that every producer has committed so far."""
        return min(self.committed.values(), default=0)

    def know(self, tile: int) -> None:
        """Makes room for what is known of ``tile``."""
        while tile >= len(self.first):
            self.first.append(-1)
            self.last.append(-1)
            self.written.append(-1)
            self.covered.append([])

    def touched(self, tile: int, position: int) -> None:
        """A batch touches ``tile``."""
        if self.first[tile] < 0 or position < self.first[tile]:
            self.first[tile] = position
        if position > self.last[tile]:
            self.last[tile] = position

    def overlaps(self, tile: int, low: int, high: int) -> bool:
        """Notes that bytes of ``tile`` are written; whether some were before."""
        covered = self.covered[tile]
        if not covered or low >= covered[-1][1]:
            if covered and low == covered[-1][1]:
                covered[-1] = covered[-1][0], high
            else:
                covered.append((low, high))
            return False
        if all(high <= first or low >= last for first, last in covered):
            covered.append((low, high))
            covered.sort()
            return False
        self.filled = self.filled and any(first <= low and high <= last for first, last in covered)
        covered[:] = [(min(low, covered[0][0]), max(high, covered[-1][1]))]
        return True

    def read(self, tile: int, low: int, high: int) -> None:
        """Notes that bytes of ``tile`` are read."""
        covered = self.covered[tile]
        if covered and covered[0][0] <= low and high <= covered[0][1]:
            return
        self.filled = self.filled and any(first <= low and high <= last for first, last in covered)

    def slots(self) -> int:
        """How many tiles have to have bytes of their own: tile n + slots is first touched after the last use of n."""
        if not self.first:
            return 1
        starts, following = [0] * len(self.first), 1 << 62
        for tile in range(len(self.first) - 1, -1, -1):
            following = min(following, self.first[tile]) if self.first[tile] >= 0 else following
            starts[tile] = following
        most, after = 1, 0
        for tile, last in enumerate(self.last):
            after = max(after, tile + 1)
            while after < len(starts) and starts[after] <= last:
                after += 1
            most = max(most, after - tile)
        return min(most, len(self.first))


@dataclass(slots=True, eq=False)
class Guard:
    """The last batch that touched plain bytes which a unit reads and writes, or writes by several instructions; or
    which several units touch."""

    position: int = -1


class Unit:
    """A unit of a team at work: its place in the code and what its matrix unit holds."""

    def __init__(self, number: int, code: UnitCode, team: Team) -> None:
        self.number, self.code, self.team = number, code, team
        self.core = team.cores[0]
        self.cursor = Cursor(code, self.core)
        self.waits_for = ""
        self.steps: dict[int, Step] = {}
        self.sums: Held | None = None
        self.sums_shape, self.block_shape = (0, 0), (0, 0)
        self.sums_used = -1
        self.block: Held | None = None


class Walk:
    """Walks the units of ``teams``.

    ``order`` keeps clocks for the regions ``raced``, whose bytes may be touched by several units; what touches them is
    kept in the order of the walk.
    """

    def __init__(
        self,
        program: Program,
        teams: Sequence[Team],
        sink: Sink,
        *,
        choice: random.Random | None = None,
        raced: Collection[Region] = (),
    ) -> None:
        self.program, self.sink, self.choice, self.raced = program, sink, choice, raced
        self.order: TokenOrder | None = None
        self.raced_guard = Guard()
        self.team_of = {core: (team, place) for team in teams for place, core in enumerate(team.cores)}
        self.positions = 0
        self.queues: dict[tuple[int, int, int], Stream] = {}
        self.channels: dict[tuple[str, int, int], Stream] = {}
        self.rings: dict[tuple[int, int], Ring] = {}
        self.series: list[Series] = []
        self.launches = self.operations = self.pushed = 0
        self.ready: deque[Unit] = deque()
        self.at_barrier: list[Unit] = []
        runs = [(team, code) for team in teams for code in program.units if team.cores[0] in code.cores]
        self.units = [Unit(number, code, team) for number, (team, code) in enumerate(runs)]
        if raced:
            self.order = TokenOrder(Clocks(len(self.units)))
        for unit in self.units:
            self._find_ends(unit)
        for unit in self.units:
            guards = self._guards(unit)
            for instruction in unit.code.instructions:
                unit.steps[id(instruction)] = _STEPS[instruction.kind](self, unit, instruction, guards)

    def _find_ends(self, unit: Unit) -> None:
        """Who fills and who takes tiles of each ring, before the first one moves."""
        for instruction in unit.code.instructions:
            if instruction.ring is not None and instruction.kind in ("reserve", "acquire"):
                ring = self.ring(unit, instruction.ring)
                fills = instruction.kind == "reserve"
                for counted in (ring.reserved, ring.committed) if fills else (ring.acquired, ring.released):
                    counted.setdefault(unit.code.number, 0)

    def _guards(self, unit: Unit) -> dict[int, list[Guard]]:
        """For each instruction that has to keep order with others because of plain bytes, what says so.

        They are those of one unit in one launch that touch a buffer (or two on the same bytes) of which one writes, and
        those of all units that touch regions whose bytes could be raced for.
        """
        plain: list[tuple[int, Instruction, Access]] = []
        launch = 0
        for instruction in unit.code.instructions:
            launch = instruction.launch if instruction.kind == "barrier" else launch
            plain += [(launch, instruction, each) for each in instruction.accesses if not _renamed(each.buffer)]
        found: dict[int, list[Guard]] = {}
        guards: dict[int, Guard] = {}
        for launch, instruction, access in plain:
            if any(
                now == launch and (access.writes or each.writes) and _share(access.buffer, each.buffer)
                for now, other, each in plain
                if other is not instruction or each is not access
            ):
                found.setdefault(id(instruction), []).append(guards.setdefault(launch, Guard()))
            if (access.buffer.memory, unit.core if access.buffer.per_core else -1) in self.raced:
                found.setdefault(id(instruction), []).append(self.raced_guard)
        return found

    # ------------------------------------------------------------------------------------------------------ the walk

    def run(self) -> None:
        """Walks all units to their ends. Raises what is wrong with the tokens."""
        self.ready.extend(self.units)
        if self.choice is None:
            while self.ready:
                self._walk_until_blocked(self.ready.popleft())
        else:
            self._walk_at_random(self.choice)
        waiting = [unit for unit in self.units if unit.cursor.instruction is not None]
        if waiting:
            raise self._deadlock(waiting)
        self._check_left_over()

    def _walk_until_blocked(self, unit: Unit) -> None:
        cursor, steps, executed = unit.cursor, unit.steps, 0
        instruction = cursor.instruction
        try:
            while instruction is not None and steps[id(instruction)]():
                executed += 1
                cursor.advance()
                instruction = cursor.instruction
        except KtirError as error:
            raise _located(error, unit) from None
        self.operations += executed * len(unit.team.cores)

    def _walk_at_random(self, choice: random.Random) -> None:
        while self.ready:
            self.ready.rotate(choice.randrange(len(self.ready)))
            unit = self.ready.popleft()
            for _ in range(choice.randint(1, 4)):
                instruction = unit.cursor.instruction
                try:
                    if instruction is None or not unit.steps[id(instruction)]():
                        break
                except KtirError as error:
                    raise _located(error, unit) from None
                unit.cursor.advance()
                self.operations += len(unit.team.cores)
            else:
                self.ready.append(unit)

    def _deadlock(self, waiting: list[Unit]) -> DataflowDeadlock:
        shown = [f"{unit.cursor.describe()} waits for {unit.waits_for}" for unit in waiting[:8]]
        more = f"\n  and {len(waiting) - 8} more" if len(waiting) > 8 else ""
        first = waiting[0].cursor.instruction
        return DataflowDeadlock(
            f"{len(waiting)} units wait and none can go on:\n  " + "\n  ".join(shown) + more,
            location=first.location if first else None,
        )

    def _check_left_over(self) -> None:
        units = {unit.team.number: unit.core for unit in self.units}
        for (team, corelet, number), stream in self.queues.items():
            if stream.count:
                queue = self.program.queues[number]
                raise QueueImbalance(
                    f"{stream.count} elements are left in queue {queue.name} of core {units[team]} corelet {corelet}",
                    location=queue.location,
                )
        for (_, source, target), stream in self.channels.items():
            if stream.count:
                raise QueueImbalance(
                    f"core {target} did not receive {stream.count} elements that core {source} sent",
                    location=self.program.location,
                )
        for (team, _), ring in self.rings.items():
            if any(count != ring.full for count in ring.released.values()):
                name, core = ring.buffer.name, units.get(team, 0)
                raise QueueImbalance(
                    f"tiles of buffer {name} of core {core} were not all acquired and released",
                    location=ring.buffer.location,
                )

    # ----------------------------------------------------------------------------------------------------- resources

    def queue(self, unit: Unit, number: int) -> Stream:
        """The queue's instance for the unit's team and corelet."""
        key = (unit.team.number, unit.code.corelet, number)
        if key not in self.queues:
            self.queues[key] = Stream(len(self.queues) + len(self.channels))
        return self.queues[key]

    def channel(self, net: str, source: int, target: int) -> Stream:
        """What core ``source`` sends to core ``target`` over a network."""
        key = (net, source, target)
        if key not in self.channels:
            self.channels[key] = Stream(len(self.queues) + len(self.channels))
        return self.channels[key]

    def ring(self, unit: Unit, buffer: Buffer) -> Ring:
        """The tiles of ``buffer`` on the unit's team."""
        key = (unit.team.number if buffer.per_core else -1, buffer.number)
        if key not in self.rings:
            self.rings[key] = Ring(len(self.rings), buffer)
        return self.rings[key]

    def wake(self, waiters: list[Unit]) -> None:
        """Lets all of ``waiters`` try again."""
        if waiters:
            self.ready.extend(waiters)
            waiters.clear()

    def leave_barrier(self, others: list[Unit], launch: int) -> None:
        """Starts ``launch``; moves the units that waited for it."""
        self.at_barrier = []
        self.launches += 1
        if self.order is not None:
            self.order.clocks.meet()
        for other in others:
            reached = cast("Instruction", other.cursor.instruction)
            if reached.launch != launch:
                raise QueueMisuse(
                    f"units meet at barriers before launches {launch} and {reached.launch}", location=reached.location
                )
            self.operations += len(other.team.cores)
            other.cursor.advance()
        self.ready.extend(others)
        for series in self.series:
            series.close()
        self.positions += 1
        self.sink.barrier(launch)

    # ----------------------------------------------------------------------------------------------------- placement

    def new_series(self, unit: Unit, instruction: Instruction) -> Series:
        """A series for the rows of ``instruction``: how many fit a batch, and whether they keep their order."""
        weights = [1, *(access.box.elements for access in instruction.accesses)]
        weights += [flow.elements for flow in (*instruction.pops, *instruction.pushes)]
        tiles = [access.buffer.size // access.box.width for access in instruction.accesses if access.buffer.slots]
        room, tile_room = (self._room(max(each, default=1), unit) for each in (weights, tiles))
        ordered = any(access.writes and not _renamed(access.buffer) for access in instruction.accesses)
        series = Series(unit.number, instruction, unit.code, unit.team, room, tile_room, ordered)
        self.series.append(series)
        return series

    def _room(self, elements: int, unit: Unit) -> int:
        return max(1, MOST_ELEMENTS // (elements * len(unit.team.cores)))

    def place(self, series: Series, after: int, row: Row, tiles: Sequence[tuple[int, Ring, int]]) -> Batch:
        """Puts a row that comes after position ``after`` into a batch; ``tiles`` are (access, ring, tile)."""
        place = series.first_after(after)
        if self.choice is not None:
            place = self.choice.randint(place, len(series.positions))
        if place == len(series.positions):
            room = series.room if self.choice is None else self.choice.randint(1, series.room)
            batch = _new_batch(series, self.positions, room)
            self.positions += 1
            series.positions.append(batch.position)
            series.open.append(batch)
        else:
            batch = series.open[place]
        batch.rows.append(row)
        for number, _, tile in tiles:
            of_access = batch.tiles[number]
            if not of_access or of_access[-1] != tile:
                batch.tile_room -= 1
            of_access.append(tile)
        if len(batch.rows) >= batch.room or batch.tile_room < 0:
            del series.positions[place], series.open[place]
        series.last = batch.position
        return batch


def _new_batch(series: Series, position: int, room: int) -> Batch:
    instruction = series.instruction
    return Batch(
        series.unit,
        instruction,
        series.code,
        series.team,
        position,
        room,
        series.tile_room,
        tiles=[[] for _ in instruction.accesses],
        sources=[[] for _ in instruction.pops],
        lends=instruction.kind in ("stream", "send", "multicast") and _renamed(instruction.accesses[0].buffer),
        elements=_elements(instruction),
        element=_element(instruction),
    )


def _elements(instruction: Instruction) -> int:
    """Elements that an execution pushes or sends."""
    if instruction.pushes:
        return instruction.pushes[0].elements
    return instruction.accesses[0].box.elements if instruction.accesses else 0


def _element(instruction: Instruction) -> str:
    """The type of the elements that an execution pushes or sends; partial results of a chain are f32."""
    if instruction.kind == "chain":
        return "f32"
    if instruction.pushes:
        return instruction.pushes[0].element
    return instruction.accesses[0].element if instruction.accesses else ""


def _renamed(buffer: Buffer) -> bool:
    """Whether each tile of the buffer has bytes of its own in the run."""
    return bool(buffer.slots) and buffer.per_core


def _share(left: Buffer, right: Buffer) -> bool:
    """Whether two buffers have bytes in common."""
    if left.memory != right.memory:
        return False
    return left.extent[0] < right.extent[1] and right.extent[0] < left.extent[1]


def _located(error: KtirError, unit: Unit) -> KtirError:
    if error.location is None and unit.cursor.instruction is not None:
        error.location = unit.cursor.instruction.location
    if "core" not in error.message:
        error.message += f" ({unit.cursor.describe()})"
    return error


# ------------------------------------------------------------------------------------------------------- control steps


def _barrier(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    def step() -> bool:
        walk.at_barrier.append(unit)
        unit.waits_for = f"the barrier before launch {instruction.launch}"
        if len(walk.at_barrier) < len(walk.units):
            return False
        walk.leave_barrier(walk.at_barrier[:-1], instruction.launch)
        return True

    return step


def _reserve(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    ring, number = walk.ring(unit, cast("Buffer", instruction.ring)), unit.code.number

    def step() -> bool:
        if ring.free(number) <= 0:
            ring.waiters.append(unit)
            unit.waits_for = f"a free slot of buffer {ring.buffer.name}"
            return False
        if walk.order is not None:
            walk.order.reserve(ring.number, unit.number, ring.reserved[number] - ring.buffer.slots)
        ring.reserved[number] += 1
        return True

    return step


def _commit(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    ring, number = walk.ring(unit, cast("Buffer", instruction.ring)), unit.code.number

    def step() -> bool:
        if ring.reserved.get(number, 0) <= ring.committed.get(number, 0):
            raise QueueMisuse(
                f"dfp.commit of buffer {ring.buffer.name} without a reserve", location=instruction.location
            )
        ring.committed[number] += 1
        if walk.order is not None:
            walk.order.commit(ring.number, unit.number)
        walk.wake(ring.waiters)
        return True

    return step


def _acquire(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    ring, number = walk.ring(unit, cast("Buffer", instruction.ring)), unit.code.number

    def step() -> bool:
        if ring.acquired[number] >= ring.full:
            ring.waiters.append(unit)
            unit.waits_for = f"a full slot of buffer {ring.buffer.name} from {ring.buffer.producer}"
            return False
        if walk.order is not None:
            walk.order.acquire(ring.number, unit.number, ring.acquired[number])
        ring.acquired[number] += 1
        return True

    return step


def _release(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    ring, number = walk.ring(unit, cast("Buffer", instruction.ring)), unit.code.number

    def step() -> bool:
        if ring.released.get(number, 0) >= ring.acquired.get(number, 0):
            raise QueueMisuse(
                f"dfp.release of buffer {ring.buffer.name} without an acquire", location=instruction.location
            )
        ring.released[number] += 1
        if walk.order is not None:
            walk.order.release(ring.number, unit.number)
        walk.wake(ring.waiters)
        return True

    return step


# ---------------------------------------------------------------------------------------------------------- data steps


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


class _Data:
    """What the steps of all instructions with data have in common: elements come in, tiles are touched, a row joins a
    batch, elements go out."""

    def __init__(self, walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> None:
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


def _move(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    """Whatever has no state but queues and memories."""
    data = _Data(walk, unit, instruction, guards)

    def step() -> bool:
        if data.waits():
            return False
        batch = data.row()
        if instruction.pushes:
            data.push(batch)
        walk.sink.placed(batch)
        return True

    return step


class _Peers:
    """The cores at the other side of a link, for each core of the team at the moment."""

    def __init__(self, walk: Walk, unit: Unit, instruction: Instruction) -> None:
        self.walk, self.unit, self.location = walk, unit, instruction.location
        link = cast("Link", instruction.link)
        self.net = link.net
        self._sources = [peer.evaluator() for peer in link.sources]
        self._targets = [peer.evaluator() for peer in link.targets]

    def sources(self) -> list[list[Stream]]:
        """For each end that there is, the channel that each core receives from."""
        return [[self.walk.channel(self.net, peer, core) for core, peer in end] for end in self._ends(self._sources)]

    def targets(self) -> list[list[Stream]]:
        """For each end that there is, the channel that each core sends to."""
        return [[self.walk.channel(self.net, core, peer) for core, peer in end] for end in self._ends(self._targets)]

    def _ends(self, ends: Sequence[Callable[[int, Sequence[int]], int]]) -> list[list[tuple[int, int]]]:
        indices = self.unit.cursor.indices
        found = [[(core, peer) for core in self.unit.team.cores if (peer := end(core, indices)) >= 0] for end in ends]
        beyond = max((peer for end in found for _, peer in end), default=0)
        if beyond >= self.walk.program.cores:
            raise DataflowError(f"there is no core {beyond}", location=self.location)
        return [end for end in found if end]


def _send(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    data, peers = _Data(walk, unit, instruction, guards), _Peers(walk, unit, instruction)

    def step() -> bool:
        batch = data.row()
        _send_to(walk, unit, peers.targets(), batch, instruction.accesses[0].box.elements)
        walk.sink.placed(batch)
        return True

    return step


def _send_to(walk: Walk, unit: Unit, targets: list[list[Stream]], batch: Batch, count: int) -> None:
    row = len(batch.rows) - 1
    for end in targets:
        for core, channel in enumerate(end):
            give(walk, unit, channel, Part(batch, row, 0, count, core))
            walk.pushed += count


def _receive(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    data, peers = _Data(walk, unit, instruction, guards), _Peers(walk, unit, instruction)
    access = instruction.accesses[0]
    count = access.box.elements

    def step() -> bool:
        sources = peers.sources()
        for end in sources:
            for channel in end:
                if channel.count < count:
                    channel.waiters.append(unit)
                    unit.waits_for = (
                        f"{count} elements from core {_sender(walk, channel)}, of which {channel.count} are here"
                    )
                    return False
        if not sources:
            return True
        taken = [[take(walk, unit, channel, count, access.element, instruction) for channel in end] for end in sources]
        walk.sink.placed(data.row(incoming=taken[-1:]))
        return True

    return step


def _sender(walk: Walk, channel: Stream) -> int:
    return next(source for (_, source, _), each in walk.channels.items() if each is channel)


def _chain(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    peers = _Peers(walk, unit, instruction)
    count = instruction.accesses[0].box.elements
    kinds: dict[tuple[int, bool], _Data] = {}

    def step() -> bool:
        sources = peers.sources()
        for end in sources:
            for channel in end:
                if channel.count < count:
                    channel.waiters.append(unit)
                    unit.waits_for = f"{count} partial results, of which {channel.count} are here"
                    return False
        taken = [[take(walk, unit, channel, count, "f32", instruction) for channel in end] for end in sources]
        targets = peers.targets()
        kind = len(sources), bool(targets)
        if kind not in kinds:
            kinds[kind] = _Data(walk, unit, instruction, guards)
        batch = kinds[kind].row(incoming=taken, writes=not targets)
        batch.sends = bool(targets)
        _send_to(walk, unit, targets, batch, count)
        walk.sink.placed(batch)
        return True

    return step


# -------------------------------------------------------------------------------------------------------- matrix steps


def _pe_load(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    op, data = cast("dfp.PeLoadOp", instruction.op), _Data(walk, unit, instruction, guards)
    shape = (op.k.value.data, op.n.value.data)

    def step() -> bool:
        if data.waits():
            return False
        batch = data.row()
        unit.block, unit.block_shape = (batch, len(batch.rows) - 1), shape
        walk.sink.placed(batch)
        return True

    return step


def _pe_prepare(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    """Accumulators begin at zero, or at what is popped."""
    op, data = cast("dfp.PeClearOp | dfp.PePreloadOp", instruction.op), _Data(walk, unit, instruction, guards)
    shape = (op.rows.value.data, op.n.value.data)

    def step() -> bool:
        if data.waits():
            return False
        batch = data.row()
        unit.sums, unit.sums_shape = (batch, len(batch.rows) - 1), shape
        unit.sums_used = batch.position
        walk.sink.placed(batch)
        return True

    return step


def _pe_mac(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    op, data = cast("dfp.PeMacOp", instruction.op), _Data(walk, unit, instruction, guards)
    rows, k, n = op.rows.value.data, op.k.value.data, op.n.value.data

    def step() -> bool:
        if data.waits():
            return False
        _check_sums(unit, instruction, (rows, n))
        if unit.block_shape != (k, n):
            raise DataflowError(
                f"dfp.{instruction.kind} works on a stationary block of {(k, n)}, {unit.block_shape} is loaded",
                location=instruction.location,
            )
        sums, block = cast("Held", unit.sums), cast("Held", unit.block)
        batch = data.row(max(unit.sums_used, block[0].position))
        batch.sums.append(sums)
        batch.blocks.append(block)
        unit.sums_used = batch.position
        for held in (sums, block):
            held[0].last = max(held[0].last, batch.position)
        walk.sink.placed(batch)
        return True

    return step


def _pe_emit(walk: Walk, unit: Unit, instruction: Instruction, guards: dict[int, list[Guard]]) -> Step:
    op, data = cast("dfp.PeEmitOp", instruction.op), _Data(walk, unit, instruction, guards)
    shape = (op.rows.value.data, op.n.value.data)

    def step() -> bool:
        _check_sums(unit, instruction, shape)
        sums = cast("Held", unit.sums)
        batch = data.row(unit.sums_used)
        batch.sums.append(sums)
        unit.sums_used = batch.position
        sums[0].last = max(sums[0].last, batch.position)
        data.push(batch)
        walk.sink.placed(batch)
        return True

    return step


def _check_sums(unit: Unit, instruction: Instruction, shape: tuple[int, int]) -> None:
    if unit.sums_shape != shape:
        raise DataflowError(
            f"dfp.{instruction.kind} works on {shape} accumulators, {unit.sums_shape} were prepared",
            location=instruction.location,
            remedy="dfp.pe_clear or dfp.pe_preload as many before",
        )


_STEPS: dict[str, Callable[[Walk, Unit, Instruction, dict[int, list[Guard]]], Step]] = {
    "barrier": _barrier,
    "reserve": _reserve,
    "commit": _commit,
    "acquire": _acquire,
    "release": _release,
    "copy": _move,
    "gather": _move,
    "scatter": _move,
    "stream": _move,
    "drain": _move,
    "send": _send,
    "multicast": _send,
    "receive": _receive,
    "chain": _chain,
    "sfu_map": _move,
    "sfu_reduce": _move,
    "sfu_scan": _move,
    "pe_load": _pe_load,
    "pe_clear": _pe_prepare,
    "pe_preload": _pe_prepare,
    "pe_mac": _pe_mac,
    "pe_emit": _pe_emit,
}
"""The step of each kind of instruction."""

__all__ = ["Ring", "Sink", "Stream", "Unit", "Walk"]
