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
from collections.abc import Collection, Sequence
from typing import cast

from ktir.backends.dataflow.functional_batch import MOST_ELEMENTS, Batch, Row, Series, Team
from ktir.backends.dataflow.functional_order import TokenOrder
from ktir.backends.dataflow.functional_steps import STEPS
from ktir.backends.dataflow.functional_tokens import Guard, Ring, Sink, Stream, Unit, renamed
from ktir.backends.dataflow.touched import Region
from ktir.backends.dataflow.unit_program import Buffer, Instruction, Program
from ktir.backends.dataflow.vector_clocks import Clocks
from ktir.errors import DataflowDeadlock, KtirError, QueueImbalance, QueueMisuse


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
                unit.steps[id(instruction)] = STEPS[instruction.kind](self, unit, instruction, guards)

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
        plain = [
            (launch, instruction, access)
            for launch, instruction in unit.code.launched
            if isinstance(instruction, Instruction)
            for access in instruction.accesses
            if not renamed(access.buffer)
        ]
        found: dict[int, list[Guard]] = {}
        guards: dict[int, Guard] = {}
        for launch, instruction, access in plain:
            if any(
                place == launch and (access.writes or each.writes) and _share(access.buffer, each.buffer)
                for place, other, each in plain
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
        ordered = any(access.writes and not renamed(access.buffer) for access in instruction.accesses)
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
        lends=instruction.kind in ("stream", "send", "multicast") and renamed(instruction.accesses[0].buffer),
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
