"""What each operation of a unit does to data: one function an operation, from batch to executor.

An *executor* is made once per batch, with everything that does not change worked out, and called in each run. Elements
come and go as arrays [cores, rows, elements]; where all elements of a row are the same, one stands for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.element_types import FLOATS, to_raw, working
from ktir.backends.dataflow.functional_batch import Batch, Held
from ktir.backends.dataflow.functional_indirect import indirect
from ktir.backends.dataflow.functional_memory import Memories, Reach, Site, Storage, Where
from ktir.backends.dataflow.functional_origins import full, messages, puller, pullers
from ktir.backends.dataflow.scalar_region import Folding, Region, compile_region
from ktir.backends.dataflow.unit_program import Program
from ktir.dialect import dfp

Array = NDArray[Any]
Executor = Callable[[Memories], None]

MOST_PRODUCTS: Final = 1 << 17
"""Multiply-accumulates of one call of the numerical library."""
_DEPTH_STEP: Final = 64


class Workshop:
    """Makes what executors are built from; what batches of an instruction have in common is made once.

    ``touched``: for each ring the first batch that touches each tile.
    """

    def __init__(
        self, program: Program, rings: Mapping[Where, Storage], touched: Mapping[Where, Sequence[int]]
    ) -> None:
        self.program, self.rings, self.touched = program, rings, touched
        self._reaches: dict[tuple[int, int, int], Reach] = {}
        self._regions: dict[int, Region] = {}
        self._foldings: dict[int, Folding] = {}

    def site(self, batch: Batch, number: int) -> Site:
        """The elements that access ``number`` of the batch means."""
        key = (id(batch.instruction), batch.team.number, number)
        buffer = batch.instruction.accesses[number].buffer
        where = (batch.team.number, buffer.number)
        storage = self.rings.get(where) if buffer.slots else None
        if key not in self._reaches:
            self._reaches[key] = Reach(self.program, batch.team, batch.instruction, number, storage)
        fresh: set[int] = set()
        if storage is not None:
            first = self.touched[where]
            fresh = {tile for tile in batch.tiles[number] if first[tile] == batch.position}
        return Site(self._reaches[key], batch, fresh)

    def region(self, batch: Batch) -> Region:
        """The compiled region of the batch's operation."""
        key = id(batch.instruction)
        if key not in self._regions:
            self._regions[key] = compile_region(cast("dfp.SfuMapOp", batch.instruction.op).body.block)
        return self._regions[key]

    def folding(self, batch: Batch) -> Folding:
        """The compiled region of the batch's reduction or scan."""
        key = id(batch.instruction)
        if key not in self._foldings:
            block = cast("dfp.FoldOperation", batch.instruction.op).body.block
            self._foldings[key] = Folding.of(block, block.args[0].type)
        return self._foldings[key]


def _copy(batch: Batch, workshop: Workshop) -> Executor:
    """What nobody wrote to device memory, a padding lane perhaps, may be copied; it stays unwritten."""
    source, target = workshop.site(batch, 0), workshop.site(batch, 1)
    carries = not source.access.buffer.per_core

    def execute(memories: Memories) -> None:
        target.write(memories, source.read(memories))
        if carries:
            target.carry(memories, source)

    return execute


def _indirect(batch: Batch, workshop: Workshop) -> Executor:
    return indirect(batch, *(workshop.site(batch, number) for number in range(3)))


def _stream(batch: Batch, workshop: Workshop) -> Executor:
    """Into a queue, or to other cores. Elements of a tile stay there until they are taken."""
    source, position, lends = workshop.site(batch, 0), batch.position, batch.lends

    def execute(memories: Memories) -> None:
        elements = source.read(memories)
        memories.outputs[position] = elements if lends else elements.copy()

    return execute


def _drain(batch: Batch, workshop: Workshop) -> Executor:
    target, pull = workshop.site(batch, 0), puller(batch, batch.sources[0], batch.instruction.pops[0].elements)
    box = batch.instruction.accesses[0].box.counts

    def execute(memories: Memories) -> None:
        target.write(memories, _boxed(pull(memories), box))

    return execute


def _receive(batch: Batch, workshop: Workshop) -> Executor:
    access = batch.instruction.accesses[0]
    target, pull = workshop.site(batch, 0), messages(batch, 0, access.element)

    def execute(memories: Memories) -> None:
        target.write(memories, _boxed(pull(memories), access.box.counts))

    return execute


def _boxed(elements: Array, box: tuple[int, ...]) -> Array:
    """Elements [cores, rows, ...] in the shape of a box, or with ones for it where one element stands for all."""
    cores, rows = elements.shape[:2]
    whole = elements.size == cores * rows * prod(box)
    return elements.reshape(cores, rows, *(box if whole else (1,) * len(box)))


def _chain(batch: Batch, workshop: Workshop) -> Executor:
    read, write = batch.instruction.accesses
    source, ends = workshop.site(batch, 0), len(batch.incoming[0]) if batch.incoming else 0
    pulls = [messages(batch, end, "f32") for end in range(ends)]
    combine = _CHAINED[cast("dfp.ChainOp", batch.instruction.op).combine.data]
    target = None if batch.sends else workshop.site(batch, 1)
    count, position = read.box.elements, batch.position

    def execute(memories: Memories) -> None:
        partial = _matrix(full(source.read(memories), count), read.element)
        for pull in pulls:
            with np.errstate(all="ignore"):
                partial = combine(pull(memories), partial)
        if target is None:
            memories.outputs[position] = partial
        else:
            target.write(memories, _boxed(to_raw(partial, read.element), write.box.counts))

    return execute


_CHAINED: Final = {"add": np.add, "max": np.maximum, "min": np.minimum}


def _sfu_map(batch: Batch, workshop: Workshop) -> Executor:
    instruction = batch.instruction
    op = cast("dfp.SfuMapOp", instruction.op)
    region, element = workshop.region(batch).before_rounding, instruction.pushes[0].element
    positions: list[Array] = []
    if region.index_dimensions:
        positions = [axis.ravel() for axis in np.indices(dfp.values_of(op.shape), dtype=np.int64)]
    pulls = pullers(batch)
    shape, position = (len(batch.team.cores), len(batch.rows)), batch.position

    def execute(memories: Memories) -> None:
        blocks = [working(pull(memories), kind).reshape(*shape, -1) for pull, kind in pulls]
        found = to_raw(region(blocks, positions), element)
        if found.ndim < 3 or found.shape[:2] != shape:
            found = np.broadcast_to(found, (*shape, found.shape[-1]))
        memories.outputs[position] = found

    return execute


def _fold(batch: Batch, workshop: Workshop) -> Executor:
    """A reduction or a scan along the middle extent."""
    instruction = batch.instruction
    op = cast("dfp.FoldOperation", instruction.op)
    outer, length, inner = op.outer.value.data, op.length.value.data, op.inner.value.data
    folding, element = workshop.folding(batch), instruction.pushes[0].element
    fold = folding.scan if instruction.kind == "sfu_scan" else folding.reduce
    pulls = pullers(batch)
    counts = [flow.elements for flow in instruction.pops]
    shape, position = (len(batch.team.cores), len(batch.rows)), batch.position
    every = shape[0] * shape[1] * outer

    def execute(memories: Memories) -> None:
        blocks = [working(full(pull(memories), n), kind) for (pull, kind), n in zip(pulls, counts, strict=True)]
        elements = blocks[0].reshape(every, length, inner)
        initial = blocks[1].reshape(every, inner) if len(blocks) > 1 else None
        with np.errstate(all="ignore"):
            found = fold(elements, initial)
        memories.outputs[position] = to_raw(found, element).reshape(*shape, -1)

    return execute


# --------------------------------------------------------------------------------------------------------- matrix unit


def _pe_take(batch: Batch, workshop: Workshop) -> Executor:
    """A stationary block, or accumulators that begin at what is popped."""
    op = cast("Any", batch.instruction.op)
    rows = op.k.value.data if batch.instruction.kind == "pe_load" else op.rows.value.data
    flow, position = batch.instruction.pops[0], batch.position
    shape = (len(batch.team.cores), len(batch.rows), rows, op.n.value.data)
    pull = puller(batch, batch.sources[0], flow.elements)

    def execute(memories: Memories) -> None:
        elements = _matrix(full(pull(memories), flow.elements), flow.element)
        memories.outputs[position] = np.array(elements, np.float32).reshape(shape)

    return execute


def _pe_clear(batch: Batch, workshop: Workshop) -> Executor:
    op, position = cast("dfp.PeClearOp", batch.instruction.op), batch.position
    shape = (len(batch.team.cores), len(batch.rows), op.rows.value.data, op.n.value.data)

    def execute(memories: Memories) -> None:
        memories.outputs[position] = np.zeros(shape, np.float32)

    return execute


def _pe_mac(batch: Batch, workshop: Workshop) -> Executor:
    op, flow = cast("dfp.PeMacOp", batch.instruction.op), batch.instruction.pops[0]
    shape = (len(batch.team.cores), len(batch.rows), op.rows.value.data, op.k.value.data)
    pull, sums, blocks = puller(batch, batch.sources[0], flow.elements), _held(batch.sums), _held(batch.blocks)

    def execute(memories: Memories) -> None:
        moving = _matrix(full(pull(memories), flow.elements), flow.element).reshape(shape)
        with np.errstate(all="ignore"):
            for row, ((place, at), (source, block)) in enumerate(zip(sums, blocks, strict=True)):
                accumulators, stationary = memories.outputs[place], memories.outputs[source]
                for core in range(shape[0]):
                    _multiply_add(accumulators[core, at], moving[core, row], stationary[core, block])

    return execute


def _pe_emit(batch: Batch, workshop: Workshop) -> Executor:
    element, position, sums = batch.instruction.pushes[0].element, batch.position, _held(batch.sums)

    def execute(memories: Memories) -> None:
        found = np.stack([memories.outputs[place][:, row] for place, row in sums], axis=1)
        memories.outputs[position] = to_raw(found, element).reshape(*found.shape[:2], -1)

    return execute


def _held(rows: Sequence[Held]) -> list[tuple[int, int]]:
    return [(batch.position, row) for batch, row in rows]


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


BUILDERS: Final[dict[str, Callable[[Batch, Workshop], Executor]]] = {
    "copy": _copy,
    "gather": _indirect,
    "scatter": _indirect,
    "stream": _stream,
    "drain": _drain,
    "send": _stream,
    "multicast": _stream,
    "receive": _receive,
    "chain": _chain,
    "sfu_map": _sfu_map,
    "sfu_reduce": _fold,
    "sfu_scan": _fold,
    "pe_load": _pe_take,
    "pe_clear": _pe_clear,
    "pe_preload": _pe_take,
    "pe_mac": _pe_mac,
    "pe_emit": _pe_emit,
}
"""The builder of each kind of instruction that touches data."""
