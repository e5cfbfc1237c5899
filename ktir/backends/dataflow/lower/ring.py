"""Data from other cores: distributed views, remote scratchpads, and the inter-tile operations.

A kernel says what a core reads; the ring needs a sender too. Both sides are derived from one list of transfers, so they
agree by construction. All cores are known here, so the list is complete: for each reader the pieces of its tile, in
rounds, and for each owner what it sends, in the order of rounds and readers. Following the list by round and reader
always makes progress, whatever little the ring holds.

Words. piece: a box of a tile that one partition owns. transfer: a piece on its way from owner to reader.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineSet

from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.context import Lowering, refuse, shape_and_element
from ktir.backends.dataflow.lower.memory import AccessTile, DistributedView, MemoryView, one_partition
from ktir.backends.dataflow.lower.plan import Block, Mask, Receive, Send, Tile, View, row_major
from ktir.backends.dataflow.lower.values import CoreValue, PerCore, per_core, variable
from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.errors import DistributedViewHole
from ktir.maths.sets import contains, points

# ---------------------------------------------------------------------------------------------------- distributed views


@dataclass(frozen=True)
class Piece:
    """What ``partition`` gives to the tile of one core: ``start`` and ``extents`` in the tile."""

    partition: int
    start: tuple[int, ...]
    extents: tuple[int, ...]


def pieces_of(lowering: Lowering, op: Operation, tile: AccessTile, distributed: DistributedView) -> list[list[Piece]]:
    """The pieces of each core's tile; none for a core that takes no part."""
    active = lowering.planner.active
    result: list[list[Piece]] = []
    lows = [base.minimum() for base in tile.base]
    highs = [base.maximum() for base in tile.base]
    for core in range(lowering.cores):
        found: list[Piece] = []
        if active[core]:
            for number, partition in enumerate(distributed.partitions):
                bounds = [(int(low[core]), int(high[core])) for low, high in zip(lows, highs, strict=True)]
                piece = _piece(op, number, tile, bounds, partition)
                if piece is not None:
                    found.append(piece)
        result.append(found)
    return result


def _piece(
    op: Operation, number: int, tile: AccessTile, bounds: Sequence[tuple[int, int]], partition: MemoryView
) -> Piece | None:
    start: list[int] = []
    extents: list[int] = []
    for (low, high), (first, stop), (owned_first, owned_stop) in zip(bounds, tile.ranges, partition.owned, strict=True):
        if low == high:
            begin, end = max(low + first, owned_first), min(low + stop, owned_stop)
            start.append(begin - low - first)
            extents.append(end - begin)
        elif low + first >= owned_first and high + stop <= owned_stop:
            start.append(0)
            extents.append(stop - first)
        elif high + stop <= owned_first or low + first >= owned_stop:
            return None
        else:
            refuse(op, "the partitions it touches change in a loop", "move the loop's bounds to those of a partition")
    return Piece(number, tuple(start), tuple(extents)) if all(extent > 0 for extent in extents) else None


def covering_pieces(
    lowering: Lowering, op: Operation, tile: AccessTile, distributed: DistributedView
) -> list[list[Piece]]:
    """:func:`pieces_of`, which must leave nothing out."""
    pieces = pieces_of(lowering, op, tile, distributed)
    for core, mine in enumerate(pieces):
        if lowering.planner.active[core] and _covered(mine) < prod(tile.extents):
            raise DistributedViewHole(
                f"core {core} accesses coordinates that no partition owns",
                location=location_of(op),
                remedy="enlarge the coordinate sets of the partitions, or access a smaller tile",
            )
    return pieces


def _covered(pieces: Sequence[Piece]) -> int:
    return sum(prod(piece.extents) for piece in pieces)


def load_distributed(lowering: Lowering, op: ktdp.LoadOp, tile: AccessTile, distributed: DistributedView) -> View:
    """A tile put together from the partitions that own its pieces."""
    kinds = {partition.space.kind for partition in distributed.partitions}
    if len(kinds) > 1:
        refuse(op, "its partitions lie in both memories", "load each part by itself")
    pieces = covering_pieces(lowering, op, tile, distributed)
    if kinds == {"global"}:
        target, view = lowering.loaded_tile(tile.extents, distributed.partitions[0].element)
        for_each_kind(lowering, pieces, lambda mask, piece: _copy(lowering, op, tile, distributed, piece, target, mask))
    else:
        target, view = lowering.received_tile(tile.extents, distributed.partitions[0].element)
        _relayout(lowering, op, tile, distributed, pieces, target)
    return view.shaped(tile.shape, [view.strides[dim] for dim in tile.order])


def load_ragged(lowering: Lowering, op: ktdp.LoadOp, tile: AccessTile, memory: MemoryView) -> View:
    """A tile that reaches beyond a view of dynamic size: zeros, then what there is.

    Nobody may depend on the zeros; they are there because units stream whole tiles.
    """
    view = one_partition(memory)
    target, loaded = lowering.loaded_tile(tile.extents, memory.element)
    pieces = pieces_of(lowering, op, tile, view)
    short = np.array([_covered(mine) < prod(tile.extents) for mine in pieces])
    zeros = lowering.constants.zero(tile.extents, memory.element, lowering.cores)
    lowering.planner.guarded(short, lambda: moves.load(lowering.planner, zeros, target))
    for_each_kind(lowering, pieces, lambda mask, piece: _copy(lowering, op, tile, view, piece, target, mask))
    return loaded.shaped(tile.shape, [loaded.strides[dim] for dim in tile.order])


def store_distributed(
    lowering: Lowering, op: ktdp.StoreOp, tile: AccessTile, distributed: DistributedView, data: View
) -> None:
    """Each owner's piece to its partition; all of them in device memory."""
    if any(partition.space.kind != "global" for partition in distributed.partitions):
        refuse(op, "it writes scratchpads through a distributed view", "store to the own scratchpad")
    _store_pieces(lowering, op, tile, distributed, covering_pieces(lowering, op, tile, distributed), data)


def store_ragged(lowering: Lowering, op: ktdp.StoreOp, tile: AccessTile, memory: MemoryView, data: View) -> None:
    """What lies inside a view of dynamic size, of a tile that reaches beyond."""
    view = one_partition(memory)
    _store_pieces(lowering, op, tile, view, pieces_of(lowering, op, tile, view), data)


def _store_pieces(
    lowering: Lowering,
    op: ktdp.StoreOp,
    tile: AccessTile,
    distributed: DistributedView,
    pieces: Sequence[Sequence[Piece]],
    data: View,
) -> None:
    inverse = [tile.order.index(dim) for dim in range(len(tile.order))]
    arranged = data.shaped(tile.extents, [data.strides[position] for position in inverse])

    def move(mask: Mask, piece: Piece) -> None:
        memory = distributed.partitions[piece.partition]
        there = _partition_view(lowering, op, tile, memory, piece, mask)
        here = arranged.sliced(piece.start, piece.extents, [1] * len(piece.start))
        lowering.planner.guarded(mask, lambda: moves.store(lowering.planner, here, there))

    for_each_kind(lowering, pieces, move)


def for_each_kind(lowering: Lowering, pieces: Sequence[Sequence[Piece]], work: Callable[[Mask, Piece], None]) -> None:
    """``work`` once for each distinct piece, with the cores that have it; first partitions last, so that they win."""
    distinct = dict.fromkeys(piece for per_core_pieces in pieces for piece in per_core_pieces)
    for piece in sorted(distinct, key=lambda piece: -piece.partition):
        work(np.array([piece in mine for mine in pieces]), piece)


def _copy(
    lowering: Lowering,
    op: Operation,
    tile: AccessTile,
    distributed: DistributedView,
    piece: Piece,
    target: View,
    mask: Mask,
) -> None:
    there = _partition_view(lowering, op, tile, distributed.partitions[piece.partition], piece, mask)
    here = target.sliced(piece.start, piece.extents, [1] * len(piece.start))
    lowering.planner.guarded(mask, lambda: moves.load(lowering.planner, there, here))


def _partition_view(
    lowering: Lowering, op: Operation, tile: AccessTile, memory: MemoryView, piece: Piece, mask: Mask
) -> View:
    """The piece where it lies in global memory."""
    storage = lowering.places.in_global(op, memory, mask & lowering.planner.active)
    return View(
        storage,
        memory.address - storage.offset + _distance(tile, memory, piece),
        piece.extents,
        memory.strides,
        memory.element,
    )


def _distance(tile: AccessTile, memory: MemoryView, piece: Piece) -> CoreValue:
    """Bytes from the first element of a partition to the first of a piece."""
    total = tile.base[0] * 0
    for base, (first, _), (owned, _), begin, stride in zip(
        tile.base, tile.ranges, memory.owned, piece.start, memory.strides, strict=True
    ):
        total = total + (base + (first + begin - owned)) * stride
    return total


# ------------------------------------------------------------------------------------------------------------ transfers


@dataclass(frozen=True)
class Transfer:
    """A piece on its way. ``source`` is its view in the owner's scratchpad, in terms of the reader's values."""

    owner: int
    reader: int
    piece: Piece
    source: View


def _relayout(
    lowering: Lowering,
    op: Operation,
    tile: AccessTile,
    distributed: DistributedView,
    pieces: Sequence[Sequence[Piece]],
    target: View,
) -> None:
    """Receives of the readers and sends of the owners for one load."""
    block = sending_block(lowering, op)
    by_reader: list[list[Transfer]] = []
    for reader, mine in enumerate(pieces):
        transfers = [_transfer(lowering, op, tile, distributed, reader, piece) for piece in mine]
        by_reader.append(sorted(transfers, key=lambda t: ((t.owner - reader) % lowering.cores, t.piece.partition)))
    rounds = max(map(len, by_reader), default=0)
    for number in range(rounds):
        current = {reader: mine[number] for reader, mine in enumerate(by_reader) if number < len(mine)}
        for mask, shared in grouped(lowering.cores, current, lambda t: t.piece.extents):
            start = [
                _table(lowering.cores, {r: t.piece.start[dim] for r, t in shared.items()})
                for dim in range(len(tile.extents))
            ]
            extents = next(iter(shared.values())).piece.extents
            here = target.sliced(start, extents, [1] * len(extents))
            origin = _table(lowering.cores, {r: t.owner for r, t in shared.items()})
            receive(lowering, mask, here, origin)
    _send_all(lowering, block, by_reader)


def _transfer(
    lowering: Lowering, op: Operation, tile: AccessTile, distributed: DistributedView, reader: int, piece: Piece
) -> Transfer:
    memory = distributed.partitions[piece.partition]
    owner = reader if memory.space.core is None else memory.space.core
    if owner >= lowering.cores:
        refuse(op, f"it reads the scratchpad of core {owner}, but the program runs on {lowering.cores}")
    everyone = np.ones(lowering.cores, dtype=np.bool_)
    storage = lowering.places.in_scratchpad(op, memory, everyone, lowering.planner.plan.number)
    offset = memory.address - storage.offset + _distance(tile, memory, piece)
    return Transfer(owner, reader, piece, View(storage, offset, piece.extents, memory.strides, memory.element))


def _send_all(lowering: Lowering, block: Block, by_reader: Sequence[Sequence[Transfer]]) -> None:
    """What each owner sends, ordered by round and reader."""
    by_owner: list[list[Transfer]] = [[] for _ in range(lowering.cores)]
    for number in range(max(map(len, by_reader), default=0)):
        for mine in by_reader:
            if number < len(mine):
                by_owner[mine[number].owner].append(mine[number])
    for number in range(max(map(len, by_owner), default=0)):
        current = {owner: mine[number] for owner, mine in enumerate(by_owner) if number < len(mine)}
        kinds = grouped(lowering.cores, current, lambda t: (t.piece.extents, t.source.strides, t.source.place))
        for mask, shared in kinds:
            first = next(iter(shared.values())).source
            offset = _of_readers(
                lowering.cores,
                {owner: t.source.offset for owner, t in shared.items()},
                {owner: t.reader for owner, t in shared.items()},
            )
            source = View(first.place, offset, first.shape, first.strides, first.element)
            destination = _table(lowering.cores, {owner: t.reader for owner, t in shared.items()})
            send(lowering, block, mask, source, destination)


def grouped(
    cores: int, items: Mapping[int, Transfer], key: Callable[[Transfer], Hashable]
) -> list[tuple[Mask, dict[int, Transfer]]]:
    """The items by key, each group with the mask of its cores."""
    groups: dict[Hashable, dict[int, Transfer]] = {}
    for core, item in items.items():
        groups.setdefault(key(item), {})[core] = item
    return [(np.array([core in group for core in range(cores)]), group) for group in groups.values()]


def _table(cores: int, entries: Mapping[int, int]) -> CoreValue:
    return per_core(np.array([entries.get(core, 0) for core in range(cores)]))


def _of_readers(cores: int, values: Mapping[int, CoreValue], readers: Mapping[int, int]) -> CoreValue:
    """The value that each owner needs is that of its reader."""
    empty = np.zeros(cores, dtype=np.int64)
    atoms = dict.fromkeys(atom for value in values.values() for atom in value.terms)
    result = np.array([int(values[core].constant[readers[core]]) if core in values else 0 for core in range(cores)])
    terms = {
        atom: np.array(
            [int(values[core].terms.get(atom, empty)[readers[core]]) if core in values else 0 for core in range(cores)]
        )
        for atom in atoms
    }
    return CoreValue(result, {atom: factor for atom, factor in terms.items() if factor.any()})


def sending_block(lowering: Lowering, op: Operation) -> Block:
    """Where sends for a load go: behind the branches around it, since owners need not take them."""
    block = lowering.planner.block
    while block.loop is not None and block.loop.variable.name == "guard":
        block = block.loop.parent
    around = block
    while around.loop is not None:
        trips = around.loop.variable.trips
        if (trips != trips[0]).any():
            refuse(op, "it reads other cores in a loop that they do not run equally often")
        around = around.loop.parent
    return block


def send(lowering: Lowering, block: Block, mask: Mask, source: View, destination: CoreValue) -> None:
    """A send in ``block`` on the cores of ``mask``."""
    planner = lowering.planner
    current, active = planner.block, planner.active
    planner.block, planner.active = block, np.ones(lowering.cores, dtype=np.bool_)
    planner.guarded(
        mask,
        lambda: moves.for_each_piece(
            planner, source, lambda piece: planner.add(lowering.sender, Send(piece, destination))
        ),
    )
    planner.block, planner.active = current, active


def receive(lowering: Lowering, mask: Mask, target: View, origin: CoreValue) -> None:
    """A receive on the cores of ``mask``."""
    planner = lowering.planner
    planner.guarded(
        mask,
        lambda: moves.for_each_piece(
            planner, target, lambda piece: planner.add(lowering.receiver, Receive(piece, origin))
        ),
    )


# ------------------------------------------------------------------------------------------------ inter-tile operations


@dataclass(frozen=True)
class Future:
    """Contributions: one view per partial tensor, and the producers of each group."""

    partials: tuple[View, ...]
    producers: Mapping[int, tuple[int, ...]]


def _groups_of(op: Operation, type: ktdp.TileFutureType) -> list[int]:
    return [point[0] for point in points(type.groups.data)]


def _tiles(lowering: Lowering, set_: AffineSet, symbols: Sequence[int]) -> tuple[int, ...]:
    """Tile ids of the grid in a set."""
    running = int(lowering.everyone.sum())
    return tuple(tile for tile in range(running) if contains(set_, (tile,), symbols))


def produce(lowering: Lowering, op: Operation) -> None:
    """Runs the region on the producers; the partial values stay where they are made, or go to a tile of all cores."""
    from ktir.backends.dataflow.lower.kernel import lower_body

    assert isinstance(op, ktdp.InterTileProduceOp)
    planner = lowering.planner
    type = op.future.type
    assert isinstance(type, ktdp.TileFutureType)
    groups = _groups_of(op, type)
    producers = {g: _tiles(lowering, op.producer_tiles_per_group.data, [g]) for g in groups}
    group_of = {tile: g for g, tiles in producers.items() for tile in tiles}
    mask = np.array([core in group_of for core in range(lowering.cores)])
    block = op.body.block
    lowering.values[block.args[0]] = _table(lowering.cores, group_of)
    end = block.last_op
    assert end is not None
    if (mask & planner.active == planner.active).all():
        lower_body(lowering, block)
        partials = tuple(lowering.view(value, op) for value in end.operands)
    else:
        places = [lowering.made_tile(*shape_and_element(t, op)) for t in type.partial_types]

        def work() -> None:
            lower_body(lowering, block)
            for value, (target, _) in zip(end.operands, places, strict=True):
                moves.write(planner, lowering.tensor(value, op), target)

        planner.guarded(mask, work)
        partials = tuple(view for _, view in places)
    lowering.values[op.future] = Future(partials, producers)


def _senders(
    lowering: Lowering, op: ktdp.InterTileReduceOp | ktdp.InterTileConsumeOp, future: Future
) -> dict[int, tuple[int, ...]]:
    """For each consumer the producers it hears, ascending."""
    result: dict[int, tuple[int, ...]] = {}
    dependency = op.producer_dependency_per_consumer
    consumers = op.consumer_tiles_per_group
    for group, producers in future.producers.items():
        for consumer in _tiles(lowering, consumers.data, [group]):
            if dependency is None:
                result[consumer] = producers
            else:
                symbols = [consumer, group][: dependency.data.num_symbols]
                heard = _tiles(lowering, dependency.data, symbols)
                result[consumer] = tuple(p for p in producers if p in heard)
    return result


@dataclass(frozen=True)
class Run:
    """Core numbers ``start + step * j`` for ``j`` below ``trips``, on each core."""

    trips: PerCore
    start: PerCore
    step: PerCore


def runs_of(cores: int, lists: Mapping[int, Sequence[int]]) -> list[Run]:
    """Each core's list of core numbers as one arithmetic run if all lists are, else one run per position."""
    numbers = [list(lists.get(core, ())) for core in range(cores)]
    steps = [each[1] - each[0] if len(each) > 1 else 0 for each in numbers]
    arithmetic = all(
        each[j] == each[0] + step * j for each, step in zip(numbers, steps, strict=True) for j in range(len(each))
    )
    if arithmetic:
        return [
            Run(
                np.array([len(each) for each in numbers]),
                np.array([each[0] if each else 0 for each in numbers]),
                np.array(steps),
            )
        ]
    return [
        Run(
            np.array([int(j < len(each)) for each in numbers]),
            np.array([each[j] if j < len(each) else 0 for each in numbers]),
            np.zeros(cores, dtype=np.int64),
        )
        for j in range(max(map(len, numbers)))
    ]


def _each_run(
    lowering: Lowering, name: str, lists: Mapping[int, Sequence[int]], work: Callable[[CoreValue], None]
) -> None:
    for run in runs_of(lowering.cores, lists):
        if not run.trips[lowering.planner.active].any():
            continue
        loop = lowering.planner.open_loop(name, run.trips)
        work(per_core(run.start) + variable(loop.variable) * per_core(run.step))
        lowering.planner.close_loop(loop)


def _send_partials(lowering: Lowering, op: Operation, future: Future, senders: Mapping[int, Sequence[int]]) -> None:
    """Each producer sends its contribution to its consumers, ascending."""
    block = sending_block(lowering, op)
    receivers: dict[int, list[int]] = {}
    for consumer in sorted(senders):
        for producer in senders[consumer]:
            receivers.setdefault(producer, []).append(consumer)
    planner = lowering.planner
    current, active = planner.block, planner.active
    planner.block, planner.active = block, lowering.everyone
    everywhere = np.ones(lowering.cores, dtype=np.bool_)

    def work(destination: CoreValue) -> None:
        for partial in future.partials:
            send(lowering, planner.block, everywhere, partial, destination)

    _each_run(lowering, "to", receivers, work)
    planner.block, planner.active = current, active


def reduce(lowering: Lowering, op: Operation) -> None:
    """Folds the contributions on each consumer in ascending order of producers, from the identity on."""
    from ktir.backends.dataflow.lower.kernel import lower_body

    assert isinstance(op, ktdp.InterTileReduceOp)
    planner = lowering.planner
    future = lowering.get(op.future, Future, op, "the future")
    senders = _senders(lowering, op, future)
    _send_partials(lowering, op, future, senders)
    carried: list[Tile] = []
    for identity, partial in zip(op.identities, future.partials, strict=True):
        tile = planner.carried_tile(partial.shape, partial.element)
        first = planner.dense(planner.writing(tile), partial.shape, partial.element)
        moves.write(planner, lowering.tensor(identity, op), first)
        carried.append(tile)
    block = op.reducer.block
    end = block.last_op
    assert end is not None
    count = len(carried)

    def work(origin: CoreValue) -> None:
        targets: list[View] = []
        everywhere = np.ones(lowering.cores, dtype=np.bool_)
        arrived: list[View] = []
        for partial in future.partials:
            target, view = lowering.received_tile(partial.shape, partial.element)
            receive(lowering, everywhere, target, origin)
            arrived.append(view)
        for number, (tile, partial) in enumerate(zip(carried, future.partials, strict=True)):
            lowering.values[block.args[number]] = planner.dense(planner.reading(tile), partial.shape, partial.element)
            lowering.values[block.args[count + number]] = arrived[number]
            targets.append(planner.dense(planner.writing(tile), partial.shape, partial.element))
        lower_body(lowering, block)
        for value, target in zip(end.operands, targets, strict=True):
            moves.write(planner, lowering.tensor(value, end), target)

    _each_run(lowering, "from", senders, work)
    for result, tile, partial in zip(op.results, carried, future.partials, strict=True):
        reading = planner.reading(tile, planner.block.items[-1])
        lowering.values[result] = _as_result(op, result, planner.dense(reading, partial.shape, partial.element))


def consume(lowering: Lowering, op: Operation) -> None:
    """Each consumer receives the contribution of its one producer."""
    assert isinstance(op, ktdp.InterTileConsumeOp)
    future = lowering.get(op.operands[0], Future, op, "the future")
    senders = _senders(lowering, op, future)
    if any(len(heard) != 1 for heard in senders.values()):
        refuse(op, "a consumer hears several producers", "name one with producer_dependency_per_consumer")
    _send_partials(lowering, op, future, senders)
    mask = np.array([core in senders for core in range(lowering.cores)])
    origin = _table(lowering.cores, {consumer: heard[0] for consumer, heard in senders.items()})
    for result, partial in zip(op.results, future.partials, strict=True):
        target, view = lowering.received_tile(partial.shape, partial.element)
        receive(lowering, mask, target, origin)
        lowering.values[result] = _as_result(op, result, view)


def _as_result(op: Operation, result: SSAValue, delivered: View) -> View:
    """What arrived, in the shape of the result, which may lack dimensions of one element."""
    shape, element = shape_and_element(result.type, op)
    return delivered.shaped(shape, row_major(shape, element))
