"""From tiles to accesses: which places a tile means on each core, and whether they exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ktir.errors import DistributedViewHole, OutOfBounds
from ktir.interp.accesses import Access, Gathered, Piece, Pieces, Strided
from ktir.interp.boxes import ENDLESS, spread
from ktir.interp.expressions import Pattern, member
from ktir.interp.numerics import Array, Scalar, is_array
from ktir.interp.values import Frame, Site
from ktir.interp.views import DistributedView, IndirectTile, Partition, Tile, View


def masked(view: View, base: Sequence[Scalar], pattern: Pattern, frame: Frame, site: Site) -> Pieces | None:
    """A tile that reaches beyond the end of a view whose size is only known at run time; None if it does not.

    The coordinate set of such a view names the elements there are: what lies beyond is undefined when it is loaded and
    dropped when it is stored, which is how descriptors of ragged tensors are meant.
    """
    if pattern.count == 0 or not any(np.any(base[d] + pattern.limits(d)[1] >= view.sizes[d]) for d in view.ragged):
        return None
    endless = tuple(ENDLESS if d in view.ragged else size for d, size in enumerate(view.sizes))
    if frame.run.checker is not None:
        frame.run.checker.within_view(replace(view, sizes=endless), base, pattern, frame, site)
    rank = len(pattern.shape)
    arena, start = view.start(frame)
    places: Any = spread(start, rank)
    inside: Any = np.ones((1,) * (rank + 1), bool)
    for dimension, first in enumerate(base):
        coordinate = spread(first, rank) + pattern.coordinate(dimension)
        places = places + coordinate * spread(view.strides[dimension], rank)
        if dimension in view.ragged:
            inside = inside & (coordinate < spread(view.sizes[dimension], rank))
    shape = (len(places), *pattern.shape)
    inside, places = np.broadcast_to(inside, shape), np.broadcast_to(places, shape)
    if not inside.any():
        return Pieces([], shape, view)
    cores = np.broadcast_to(frame.cores.reshape(-1, *(1,) * rank)[: len(places)], shape)[inside].reshape(1, -1)
    access = settle(Gathered(arena, places[inside].reshape(1, -1), view, cores), frame, site)
    return Pieces([Piece(access, (inside,), _row_of_each(inside, frame))], shape, view)


def _row_of_each(inside: Array, frame: Frame) -> Array | None:
    """The rows of the elements of a tile that is cut, or None where it is the same for all rows."""
    return np.nonzero(inside)[0] if len(inside) == frame.n else None


def resolve(tile: Tile | IndirectTile, frame: Frame, site: Site) -> Access | Pieces:
    """The places that a tile means; several pieces for a distributed view."""
    if isinstance(tile.view, DistributedView):
        span = frame.run.memory.span
        pieces = _on_distributed(tile, tile.view, frame, site)
        grew = frame.run.memory.span != span  # then the places of the pieces before are others
        return _on_distributed(tile, tile.view, frame, site) if grew else pieces
    if isinstance(tile, IndirectTile):
        return indirect(tile, tile.view, frame, site)
    if tile.view.ragged and (cut := masked(tile.view, tile.base, tile.pattern, frame, site)) is not None:
        return cut
    return direct(tile.view, tile.base, tile.pattern, frame, site)


def _on_distributed(tile: Tile | IndirectTile, view: DistributedView, frame: Frame, site: Site) -> Pieces:
    if isinstance(tile, Tile):
        return distributed(tile, view, frame, site)
    coordinates = looked_up(tile, frame, site)
    varies = _varies(view) or any(is_array(each) and each.ndim and len(each) > 1 for each in coordinates)
    return _owned_pieces(coordinates, tile.pattern, view, frame, site, varies)


def direct(view: View, base: Sequence[Scalar], pattern: Pattern, frame: Frame, site: Site) -> Access:
    """A tile on one view."""
    checker = frame.run.checker
    if checker is not None:
        checker.within_view(view, base, pattern, frame, site)
    arena, at = view.start(frame)
    for dimension, (first, stride) in enumerate(zip(base, view.strides, strict=True)):
        low = pattern.lows[dimension] if pattern.points is None else 0
        at = at + (first + low) * stride
    if pattern.points is not None or not all(isinstance(stride, int) for stride in view.strides):
        places = spread(at, len(pattern.shape))
        for dimension, stride in enumerate(view.strides):
            shift = pattern.lows[dimension] if pattern.points is None else 0
            places = places + (pattern.coordinate(dimension) - shift) * spread(stride, len(pattern.shape))
        access: Access = Gathered(arena, _as_places(places, pattern), view, frame.cores)
    else:
        at = at if isinstance(at, int) or len(at) > 1 else int(at[0])
        strides = tuple(view.strides[dimension] for dimension in pattern.order)
        access = Strided(arena, at, pattern.shape, strides, view, frame.cores)
    return settle(access, frame, site)


def _as_places(places: Any, pattern: Pattern) -> Array:
    lead = len(places) if is_array(places) and places.ndim else 1
    return np.ascontiguousarray(np.broadcast_to(np.asarray(places, np.int64), (lead, *pattern.shape)))


def settle(access: Access, frame: Frame, site: Site) -> Access:
    """``access``, once its places are known to exist; scratchpads grow as far as they may."""
    if access.is_empty():
        return access
    view, size = access.view, access.view.element.itemsize
    if view.local:
        return _settle_local(access, frame, site)
    low, high = access.limits()
    outside = low < 0 or (high + 1) * size > access.arena.size
    if frame.run.checker is not None and (view.lent is not None or not outside):
        frame.run.checker.within_allocation(access, low, high, frame, site)
    if outside:
        raise outside_memory(access, low, high, site)
    return access


def outside_memory(access: Access, low: int, high: int, site: Site) -> Exception:
    view, size = access.view, access.view.element.itemsize
    memory = "global memory" if view.lent is None else f"argument {access.arena.name}"
    return site.fail(
        OutOfBounds,
        f"touches bytes {low * size} to {(high + 1) * size - 1} of {memory} through %{view.name}, "
        f"which has {access.arena.size} bytes",
        "keep the access inside an argument, a buffer or a placed region",
    )


def _settle_local(access: Access, frame: Frame, site: Site) -> Access:
    """Places in a scratchpad count from its start, so they are found anew when the scratchpads grow."""
    view, memory, size = access.view, frame.run.memory, access.view.element.itemsize
    owner = view.owner(frame)
    _require_core(view, owner, frame, site)
    own = memory.span // size
    if isinstance(access, Strided):
        low, high = access.reach()
        starts = access.at - owner * own
        first = starts if isinstance(starts, int) else int(starts.min())
        last = starts if isinstance(starts, int) else int(starts.max())
        low, high = first + low, last + high
    else:
        inside = access.places - spread(owner * own, access.places.ndim - 1)
        low, high = int(inside.min()), int(inside.max())
    if _require_room(view, low, high, frame, site):
        moved = owner * (memory.span // size - own)
        if isinstance(access, Strided):
            return replace(access, at=access.at + moved, box=None)
        return replace(access, places=access.places + spread(moved, access.places.ndim - 1), found_limits=None)
    return access


def _require_room(view: View, low: int, high: int, frame: Frame, site: Site) -> bool:
    """Makes scratchpads as large as an access from element ``low`` to ``high`` needs; whether they had to grow."""
    size = view.element.itemsize
    if low < 0:
        raise site.fail(
            OutOfBounds, f"touches byte {low * size} of a scratchpad through %{view.name}", "start at byte 0 or later"
        )
    frame.run.require_scratchpad((high + 1) * size, view, frame, site)
    grows = (high + 1) * size > frame.run.memory.span
    if grows:
        frame.run.memory.provide_span((high + 1) * size)
    return grows


def _require_core(view: View, owner: Scalar, frame: Frame, site: Site) -> None:
    if isinstance(owner, int) and not 0 <= owner < frame.run.memory.cores:
        raise site.fail(
            OutOfBounds,
            f"reaches through %{view.name} into the scratchpad of compute tile {owner}, but there are only "
            f"{frame.run.memory.cores}",
            "name a compute tile of the grid",
        )


def indirect(tile: IndirectTile, view: View, frame: Frame, site: Site) -> Access:
    """Lists all places of an indirect tile on one view."""
    rank = len(tile.pattern.shape)
    arena, start = view.start(frame)
    places: Any = spread(start, rank)
    for coordinate, stride in zip(looked_up(tile, frame, site), view.strides, strict=True):
        places = places + coordinate * spread(stride, rank)
    if not is_array(places) or places.ndim == 0:
        places = np.asarray(places).reshape((1,) * (rank + 1))
    full = np.ascontiguousarray(np.broadcast_to(places, (len(places), *tile.pattern.shape)))
    return settle(Gathered(arena, full, view, frame.cores), frame, site)


def looked_up(tile: IndirectTile, frame: Frame, site: Site) -> list[Any]:
    """The coordinates of all points per dimension, with the axes (cores, shape..), from the index views where asked."""
    pattern, rank = tile.pattern, len(tile.pattern.shape)
    variables = [pattern.coordinate(dimension) for dimension in range(len(pattern.order))]
    values = [*(spread(value, rank) for value in tile.captured), *variables]
    found: list[Any] = []
    for dimension, (index_view, functions) in enumerate(tile.subscripts):
        subscripts = [function(values) for function in functions]
        if index_view is not None:
            coordinate = look_up(index_view, subscripts, rank, frame, site)
        else:
            (coordinate,) = subscripts
        within_dimension(tile.view, dimension, coordinate, frame, site)
        found.append(coordinate)
    return found


def look_up(view: View, coordinates: Sequence[Any], rank: int, frame: Frame, site: Site) -> Array:
    """The integers at ``coordinates`` of an index view."""
    access = index_access(view, coordinates, rank, frame, site)
    if frame.batch is not None:
        frame.batch.note(access, frame, site, None, stores=False)
    if frame.run.checker is not None:
        frame.run.checker.require_defined(access, frame, site)
    return access.read(access.arena.bytes, view.element.dtype).astype(np.int64)


def index_access(view: View, coordinates: Sequence[Any], rank: int, frame: Frame, site: Site) -> Access:
    """The places of ``coordinates`` of an index view."""
    arena, start = view.start(frame)
    places: Any = spread(start, rank)
    for dimension, coordinate in enumerate(coordinates):
        within_dimension(view, dimension, coordinate, frame, site)
        places = places + coordinate * spread(view.strides[dimension], rank)
    if not is_array(places) or places.ndim == 0:
        places = np.asarray(places).reshape((1,) * (rank + 1))
    return settle(Gathered(arena, places, view, frame.cores), frame, site)


def within_dimension(view: View | DistributedView, dimension: int, coordinate: Any, frame: Frame, site: Site) -> None:
    """Indices come from data, so they are checked in every mode (Q11)."""
    size = view.sizes[dimension]
    low, high = (coordinate, coordinate) if isinstance(coordinate, int) else (coordinate.min(), coordinate.max())
    least = size if isinstance(size, int) else int(size.min())
    if low >= 0 and high < least:
        return
    wrong = int(low) if low < 0 else int(high)
    core = ""
    if is_array(coordinate) and len(coordinate) == frame.n:
        core = f" on core {int(frame.cores[np.nonzero(coordinate == wrong)[0][0]])}"
    raise site.fail(
        OutOfBounds,
        f"uses coordinate {wrong} on dimension {dimension} of %{view.name}, whose size is {least}{core}",
        "keep the index inside the view; guard entries that stand for nothing, such as -1",
    )


# ---------------------------------------------------------------------------------------------------------- distributed


def distributed(tile: Tile, view: DistributedView, frame: Frame, site: Site) -> Pieces:
    """Cuts a tile into what each partition owns of it, partition 0 last, so that it wins where several own a place."""
    pattern, rank = tile.pattern, len(tile.pattern.shape)
    varies = _varies(view) or any(not isinstance(first, int) for first in tile.base)
    if pattern.points is not None or any(each.set is not None for each in view.partitions):
        coordinates = [spread(first, rank) + pattern.coordinate(dimension) for dimension, first in enumerate(tile.base)]
        return _owned_pieces(coordinates, pattern, view, frame, site, varies)
    pieces = _box_pieces(tile, view, frame, site, varies)
    pieces.reverse()
    return Pieces(pieces, (frame.n if varies else 1, *pattern.shape))


def _varies(view: DistributedView) -> bool:
    """Whether a coordinate lies elsewhere for each core."""
    return any(
        (each.view.local and each.view.core is None) or not isinstance(each.view.offset, int)
        for each in view.partitions
    )


def _box_pieces(tile: Tile, view: DistributedView, frame: Frame, site: Site, varies: bool) -> list[Piece]:
    pattern = tile.pattern
    rows = frame.n if varies else 1
    base = np.array([np.broadcast_to(first, rows) for first in tile.base], np.int64).reshape(-1, rows)
    return [
        _box_piece(cut, partition, pattern, frame, site, varies)
        for partition in view.partitions
        for cut in _intersections(base, pattern, partition)
    ]


def _box_piece(
    cut: Intersection, partition: Partition, pattern: Pattern, frame: Frame, site: Site, varies: bool
) -> Piece:
    shape = tuple(cut.extents[dimension] for dimension in pattern.order)
    inner = Pattern(shape, (0,) * len(cut.extents), cut.extents, pattern.order)
    where = tuple(cut.where[dimension] for dimension in pattern.order)
    if not varies or len(cut.rows) == frame.n:
        access = direct(partition.view, cut.lows, inner, frame, site)
        return Piece(access, (slice(None), *where), cut.rows if varies else None)
    part = Frame(frame.run, frame.launch, frame.cores[cut.rows], [])
    access = direct(partition.view.rows(cut.rows, frame.n), cut.lows, inner, part, site)
    return Piece(access, (cut.rows, *where), cut.rows)


@dataclass(frozen=True, slots=True)
class Intersection:
    """What a partition owns of a box that starts elsewhere in each of some rows, but is cut alike in all of them.

    ``lows`` are coordinates of the partition, ``where`` is the place of the part in the box, per set dimension.
    """

    rows: Array
    lows: tuple[Scalar, ...]
    extents: tuple[int, ...]
    where: tuple[slice, ...]


def _intersections(base: Array, pattern: Pattern, partition: Partition) -> list[Intersection]:
    """The intersections of a partition with the box of each row, rows that are cut alike together."""
    lows, extents, owned, stops = (
        np.array(each, np.int64).reshape(-1, 1)
        for each in (pattern.lows, pattern.extents, partition.lows, partition.stops)
    )
    first = base + lows
    start = np.maximum(first, owned)
    size = np.minimum(first + extents, stops) - start
    rows = np.nonzero((size > 0).all(axis=0))[0]
    cuts = np.concatenate([start - first, size])[:, rows]
    places = (start - owned)[:, rows]
    found: list[Intersection] = []
    while len(rows):
        alike = (cuts == cuts[:, :1]).all(axis=0)
        skipped, sizes = cuts[:, 0].reshape(2, -1).tolist()
        found.append(
            Intersection(
                rows[alike],
                tuple(_one_if_same(place) for place in places[:, alike]),
                tuple(sizes),
                tuple(slice(at, at + count) for at, count in zip(skipped, sizes, strict=True)),
            )
        )
        rows, cuts, places = rows[~alike], cuts[:, ~alike], places[:, ~alike]
    return found


def _one_if_same(values: Array) -> Scalar:
    return int(values[0]) if (values == values[0]).all() else values


def _owned_pieces(
    coordinates: Sequence[Any], pattern: Pattern, view: DistributedView, frame: Frame, site: Site, varies: bool
) -> Pieces:
    """Any sets: each partition takes those of the listed coordinates that it owns, partition 0 last."""
    shape = (frame.n if varies else 1, *pattern.shape)
    listed = [np.broadcast_to(coordinate, shape) for coordinate in coordinates]
    pieces: list[Piece] = []
    for partition in reversed(view.partitions):
        inside = np.ones(shape, bool)
        for coordinate, low, stop in zip(listed, partition.lows, partition.stops, strict=True):
            inside &= (coordinate >= low) & (coordinate < stop)
        if partition.set is not None:
            inside &= np.broadcast_to(member(partition.set, [*listed, *partition.view.symbols]), shape)
        if inside.any():
            access = _owned(listed, inside, partition, frame, site, varies)
            pieces.append(Piece(access, (inside,), _row_of_each(inside, frame)))
    return Pieces(pieces, shape, coordinates=listed)


def _owned(
    coordinates: Sequence[Array], inside: Array, partition: Partition, frame: Frame, site: Site, varies: bool
) -> Access:
    """The places of the coordinates ``inside`` of a partition, in one row."""
    view, rank, shape = partition.view, inside.ndim - 1, inside.shape
    places: Any = spread(view.offset, rank)
    for dimension, (coordinate, low) in enumerate(zip(coordinates, partition.lows, strict=True)):
        local = coordinate - low
        if frame.run.checker is not None:
            within_dimension(view, dimension, local[inside], frame, site)
        places = places + local * spread(view.strides[dimension], rank)
    chosen = np.broadcast_to(places, shape)[inside].reshape(1, -1)
    cores = frame.cores
    if varies:
        cores = np.broadcast_to(cores.reshape(-1, *(1,) * rank), shape)[inside].reshape(1, -1)
    if not view.local:
        access = Gathered(frame.run.memory.shared, chosen, view, cores)
        if isinstance(view.offset, int):
            return settle(access, frame, site)
        low, high = access.limits()
        if low < 0 or (high + 1) * view.element.itemsize > access.arena.size:
            raise outside_memory(access, low, high, site)
        return access
    owner: Any = view.core if view.core is not None else cores
    _require_core(view, owner, frame, site)
    _require_room(view, int(chosen.min()), int(chosen.max()), frame, site)
    memory = frame.run.memory
    return Gathered(memory.local, chosen + owner * (memory.span // view.element.itemsize), view, cores)


def _is_whole(piece: Piece, shape: tuple[int, ...]) -> bool:
    """Whether a piece is all of the tile, on all cores."""
    return all(
        isinstance(each, slice) and each.indices(size) == (0, size, 1)
        for each, size in zip(piece.where, shape, strict=False)
    )


def require_covered(pieces: Pieces, tile: Tile | IndirectTile, frame: Frame, site: Site) -> None:
    """Raises :class:`DistributedViewHole` where no partition owns a coordinate of the tile."""
    if any(_is_whole(piece, pieces.shape) for piece in pieces.parts):
        return
    covered = np.zeros(pieces.shape, bool)
    for piece in pieces.parts:
        covered[piece.where] = True
    if covered.all():
        return
    place = tuple(int(axis[0]) for axis in np.nonzero(~covered))
    row = min(place[0], frame.n - 1)
    coordinates = _coordinates_at(pieces, tile, row, place)
    raise site.fail(
        DistributedViewHole,
        f"touches coordinates {coordinates} of %{tile.view.name} on core {int(frame.cores[row])}, which no partition "
        "owns",
        "let the coordinate sets of the partitions cover what is accessed",
    )


def _coordinates_at(pieces: Pieces, tile: Tile | IndirectTile, row: int, place: tuple[int, ...]) -> list[int]:
    """The coordinates of one element of a tile."""
    if pieces.coordinates is not None:
        return [int(coordinate[place]) for coordinate in pieces.coordinates]
    assert isinstance(tile, Tile)
    found: list[int] = []
    for dimension, first in enumerate(tile.base):
        shift = np.broadcast_to(tile.pattern.coordinate(dimension), (1, *tile.pattern.shape))[(0, *place[1:])]
        found.append(int(first if isinstance(first, int) else first[row]) + int(shift))
    return found
