"""Distributed views, remote scratchpads, and views that a tile reaches beyond.

A kernel says what a core reads; the network needs a sender too. Both sides are derived from one list of transfers, so
they agree by construction. All cores are known here, so the list is complete: for each reader the pieces of its tile,
in rounds, and for each owner what it sends, in the order of rounds and readers. Following the list by round and reader
always makes progress, whatever little the network holds.

Words. piece: a box of a tile that one partition owns. transfer: a piece on its way from owner to reader.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

import numpy as np
from xdsl.ir import Operation

from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.context import Lowering, refuse
from ktir.backends.dataflow.lower.memory import AccessTile, DistributedView, MemoryView, one_partition
from ktir.backends.dataflow.lower.plan import Block, Mask, View
from ktir.backends.dataflow.lower.ring import core_table, receive, send, sending_block
from ktir.backends.dataflow.lower.values import CoreValue
from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.errors import DistributedViewHole


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
    pieces = covering_pieces(lowering, op, tile, distributed)
    kinds = {partition.space.kind for partition in distributed.partitions}
    view = (_load_mixed if len(kinds) > 1 else _load_pieces)(lowering, op, tile, distributed, pieces)
    return view.shaped(tile.shape, [view.strides[dim] for dim in tile.order])


def _load_pieces(
    lowering: Lowering,
    op: ktdp.LoadOp,
    tile: AccessTile,
    distributed: DistributedView,
    pieces: Sequence[Sequence[Piece]],
) -> View:
    """A tile of partitions that all lie in device memory, or all in scratchpads."""
    first = distributed.partitions[0]
    if first.space.kind == "global":
        target, view = lowering.loaded_tile(tile.extents, first.element)
        for_each_kind(lowering, pieces, lambda mask, piece: _copy(lowering, op, tile, distributed, piece, target, mask))
    else:
        target, view = lowering.received_tile(tile.extents, first.element)
        _relayout(lowering, op, tile, distributed, pieces, target)
    return view


def _load_mixed(
    lowering: Lowering,
    op: ktdp.LoadOp,
    tile: AccessTile,
    distributed: DistributedView,
    pieces: Sequence[Sequence[Piece]],
) -> View:
    """A tile for the pieces from device memory and one for those from scratchpads, since one unit fills a tile; and a
    third that joins them."""
    target, view = lowering.made_tile(tile.extents, distributed.partitions[0].element)
    ones = [1] * len(tile.extents)
    for kind in ("global", "ct_local"):
        mine = [n for n, partition in enumerate(distributed.partitions) if partition.space.kind == kind]
        subset = DistributedView(tuple(distributed.partitions[n] for n in mine), distributed.rank)
        some = [
            [replace(piece, partition=mine.index(piece.partition)) for piece in each if piece.partition in mine]
            for each in pieces
        ]
        part = _load_pieces(lowering, op, tile, subset, some)

        def move(mask: Mask, piece: Piece, part: View = part) -> None:
            here, there = (each.sliced(piece.start, piece.extents, ones) for each in (part, target))
            lowering.planner.guarded(mask, lambda: moves.write(lowering.planner, here, there))

        for_each_kind(lowering, some, move)
    return view


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
                core_table(lowering.cores, {r: t.piece.start[dim] for r, t in shared.items()})
                for dim in range(len(tile.extents))
            ]
            extents = next(iter(shared.values())).piece.extents
            here = target.sliced(start, extents, [1] * len(extents))
            origin = core_table(lowering.cores, {r: t.owner for r, t in shared.items()})
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
    """What each owner sends, ordered by round and reader; the same to several readers of a round at once where the
    machine can. In a round each reader takes one piece, so no reader waits for what comes after it."""
    by_owner: list[list[Message]] = [[] for _ in range(lowering.cores)]
    for number in range(max(map(len, by_reader), default=0)):
        current: list[list[Transfer]] = [[] for _ in range(lowering.cores)]
        for mine in by_reader:
            if number < len(mine):
                current[mine[number].owner].append(mine[number])
        for owner, transfers in enumerate(current):
            by_owner[owner] += _messages(transfers, lowering.hardware.multicasts)
    for number in range(max(map(len, by_owner), default=0)):
        mine = {owner: messages[number] for owner, messages in enumerate(by_owner) if number < len(messages)}
        for mask, shared in grouped(lowering.cores, mine, _form):
            first = next(iter(shared.values()))[0].source
            offset = _of_readers(
                lowering.cores,
                {owner: message[0].source.offset for owner, message in shared.items()},
                {owner: message[0].reader for owner, message in shared.items()},
            )
            source = View(first.place, offset, first.shape, first.strides, first.element)
            destinations = [
                core_table(lowering.cores, {owner: message[position].reader for owner, message in shared.items()})
                for position in range(len(next(iter(shared.values()))))
            ]
            send(lowering, block, mask, source, *destinations)


Message = list[Transfer]
"""Transfers of one owner that take the same elements to different readers."""


def _messages(transfers: Sequence[Transfer], multicasts: bool) -> list[Message]:
    """The transfers of one owner in one round as messages, in order of their first readers."""
    found: dict[Hashable, Message] = {}
    for transfer in transfers:
        own = not multicasts or transfer.owner == transfer.reader
        found.setdefault(transfer.reader if own else _contents(transfer), []).append(transfer)
    return list(found.values())


def _contents(transfer: Transfer) -> Hashable:
    """What tells the elements of one transfer from those of another of the same owner."""
    source, reader = transfer.source, transfer.reader
    terms = ((atom, int(factor[reader])) for atom, factor in source.offset.terms.items() if factor[reader])
    constant = int(source.offset.constant[reader])
    return source.place, source.strides, transfer.piece.extents, constant, frozenset(terms)


def _form(message: Message) -> Hashable:
    """What tells apart messages that one operation cannot send for their owners."""
    return message[0].piece.extents, message[0].source.strides, message[0].source.place, len(message)


Item = TypeVar("Item")


def grouped(
    cores: int, items: Mapping[int, Item], key: Callable[[Item], Hashable]
) -> list[tuple[Mask, dict[int, Item]]]:
    """The items by key, each group with the mask of its cores."""
    groups: dict[Hashable, dict[int, Item]] = {}
    for core, item in items.items():
        groups.setdefault(key(item), {})[core] = item
    return [(np.array([core in group for core in range(cores)]), group) for group in groups.values()]


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
