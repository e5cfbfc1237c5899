"""The steps of a unit in a walk of the tokens, one function an operation: from instruction to what it does each time.

A step returns False if the unit has to wait, having listed it as a waiter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from ktir.backends.dataflow.functional_batch import Batch, Held, Part
from ktir.backends.dataflow.functional_rows import Rows, give, take
from ktir.backends.dataflow.functional_tokens import Guards, Step, Stream, Unit
from ktir.backends.dataflow.unit_program import Buffer, Instruction, Link
from ktir.dialect import dfp
from ktir.errors import DataflowError, QueueMisuse

if TYPE_CHECKING:
    from ktir.backends.dataflow.functional_walk import Walk

# ------------------------------------------------------------------------------------------------------- control steps


def _barrier(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    def step() -> bool:
        walk.at_barrier.append(unit)
        unit.waits_for = f"the barrier before launch {instruction.launch}"
        if len(walk.at_barrier) < len(walk.units):
            return False
        walk.leave_barrier(walk.at_barrier[:-1], instruction.launch)
        return True

    return step


def _reserve(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
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


def _commit(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
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


def _acquire(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
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


def _release(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
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


def _move(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    """Whatever has no state but queues and memories."""
    data = Rows(walk, unit, instruction, guards)

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


def _send(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    data, peers = Rows(walk, unit, instruction, guards), _Peers(walk, unit, instruction)

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


def _receive(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    data, peers = Rows(walk, unit, instruction, guards), _Peers(walk, unit, instruction)
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


def _chain(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    peers = _Peers(walk, unit, instruction)
    count = instruction.accesses[0].box.elements
    kinds: dict[tuple[int, bool], Rows] = {}

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
            kinds[kind] = Rows(walk, unit, instruction, guards)
        batch = kinds[kind].row(incoming=taken, writes=not targets)
        batch.sends = bool(targets)
        _send_to(walk, unit, targets, batch, count)
        walk.sink.placed(batch)
        return True

    return step


# -------------------------------------------------------------------------------------------------------- matrix steps


def _pe_load(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    op, data = cast("dfp.PeLoadOp", instruction.op), Rows(walk, unit, instruction, guards)
    shape = (op.k.value.data, op.n.value.data)

    def step() -> bool:
        if data.waits():
            return False
        batch = data.row()
        unit.block, unit.block_shape = (batch, len(batch.rows) - 1), shape
        walk.sink.placed(batch)
        return True

    return step


def _pe_prepare(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    """Accumulators begin at zero, or at what is popped."""
    op, data = cast("dfp.PeClearOp | dfp.PePreloadOp", instruction.op), Rows(walk, unit, instruction, guards)
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


def _pe_mac(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    op, data = cast("dfp.PeMacOp", instruction.op), Rows(walk, unit, instruction, guards)
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


def _pe_emit(walk: Walk, unit: Unit, instruction: Instruction, guards: Guards) -> Step:
    op, data = cast("dfp.PeEmitOp", instruction.op), Rows(walk, unit, instruction, guards)
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


STEPS: Final[Mapping[str, Callable[[Walk, Unit, Instruction, Guards], Step]]] = {
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
