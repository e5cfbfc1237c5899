"""Views of memory and accesses through them.

Words. *view*: a window on memory with sizes and strides, all in elements of its type. *partition*: a view that is part
of a distributed view, addressed there by global coordinates. *tile*: the coordinates an access touches, per core.
*access*: a tile resolved to places in one arena; *at* is the place of its first element, counted in elements of the
view's type from the start of the arena, a number where it is the same on all cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineSet

from ktir.errors import DistributedViewHole, OutOfBounds
from ktir.interp.expressions import Pattern, member
from ktir.interp.lending import Lent
from ktir.interp.numerics import I64, Array, ElementType, Scalar, is_array
from ktir.interp.values import Frame, Site, rows_of_scalars
from ktir.machine.memory_arena import Arena

ENDLESS = 1 << 62
LENT = 1 << 40
"""The address from which lent arrays have theirs, where no global memory is."""
SMALL = 64
"""Elements per core up to which gathering by index is faster than one strided copy per core."""


class Memory:
    """The global memory and the scratchpads of all cores, which lie one behind the other in one arena."""

    def __init__(self, *, limit: int, granule: int) -> None:
        self.limit, self.granule = limit, granule
        self.shared = Arena("global", limit=limit, granule=granule)
        self.local = Arena("scratchpad", limit=limit, granule=granule)
        self.cores, self.span = 0, 0
        self.lent: dict[SSAValue, Lent] = {}
        self._lent_bytes = 0

    def lend(self, pointer: SSAValue, name: str, contents: Array, itemsize: int) -> Lent:
        """Lets a kernel use ``contents``, bytes of elements of ``itemsize``, through a pointer; no copy is made."""
        first = -(-(LENT + self._lent_bytes) // itemsize)
        self._lent_bytes += contents.size + itemsize
        if self.shared.size + self._lent_bytes > self.limit:
            self.shared.require_room(self.shared.size + self._lent_bytes)
        lent = self.lent[pointer] = Lent(Arena.over(name, contents, granule=itemsize), first)
        return lent

    def provide_cores(self, cores: int) -> None:
        """Makes sure that ``cores`` scratchpads exist."""
        if cores > self.cores:
            self.local.grow(cores * self.span)
            self.cores = cores

    def provide_span(self, size: int) -> None:
        """Makes each scratchpad at least ``size`` bytes big, keeping the contents."""
        if size <= self.span:
            return
        span = max(4096, self.span)
        while span < size:
            span *= 2
        self.local.respace(self.cores, self.span, span)
        self.span = span


# ---------------------------------------------------------------------------------------------------------------- views


@dataclass(frozen=True, slots=True)
class View:
    """A view. ``core`` is the compute tile whose scratchpad is meant, None the executing one's own.

    ``lows`` are the global coordinates of its first element where it is a partition; ``owned`` is its coordinate set
    with the values of its symbols. ``padding`` marks the elements, counted from the view's first, that stand for none
    of the tensor. ``argument`` is the argument that the offset is, if it is one. ``ragged`` are the dimensions whose
    sizes are symbols of the coordinate set.
    """

    local: bool
    core: int | None
    offset: Scalar
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    element: ElementType
    name: str
    site: Site
    owned: AffineSet | None = None
    symbols: tuple[int, ...] = ()
    padding: Array | None = None
    argument: str | None = None
    ragged: tuple[int, ...] = ()
    lent: Arena | None = None

    def rows(self, rows: Array, n: int) -> View:
        if all(isinstance(each, int) for each in (self.offset, *self.sizes, *self.strides)):
            return self
        (offset,) = rows_of_scalars((self.offset,), rows, n)
        return replace(
            self,
            offset=offset,
            sizes=rows_of_scalars(self.sizes, rows, n),
            strides=rows_of_scalars(self.strides, rows, n),
        )

    def start(self, frame: Frame) -> tuple[Arena, Scalar]:
        """The arena and the place of the first element."""
        memory = frame.run.memory
        if self.lent is not None:
            return self.lent, self.offset
        if not self.local:
            return memory.shared, self.offset
        return memory.local, self.owner(frame) * (memory.span // self.element.itemsize) + self.offset

    def owner(self, frame: Frame) -> Scalar:
        """The core whose scratchpad is meant."""
        if self.core is not None:
            return self.core
        return int(frame.cores[0]) if frame.n == 1 else frame.cores

    def is_remote(self, frame: Frame) -> bool:
        """Whether some core of the frame looks into a scratchpad that is not its own."""
        return self.local and self.core is not None and bool((frame.cores != self.core).any())


@dataclass(frozen=True, slots=True)
class Partition:
    """A view and what it owns of a distributed view: the box ``lows`` .. ``stops``, thinned out by ``set``."""

    view: View
    lows: tuple[int, ...]
    stops: tuple[int, ...]
    set: AffineSet | None


@dataclass(frozen=True, slots=True)
class DistributedView:
    """Several views under one system of global coordinates."""

    partitions: tuple[Partition, ...]
    sizes: tuple[Any, ...]
    element: ElementType
    name: str

    def rows(self, rows: Array, n: int) -> DistributedView:
        views = [each.view.rows(rows, n) for each in self.partitions]
        if all(view is each.view for view, each in zip(views, self.partitions, strict=True)):
            return self
        partitions = [replace(each, view=view) for view, each in zip(views, self.partitions, strict=True)]
        return replace(self, partitions=tuple(partitions))


# ---------------------------------------------------------------------------------------------------------------- tiles


@dataclass(frozen=True, slots=True)
class Tile:
    """Coordinates ``base + p`` for the points p of a pattern."""

    view: View | DistributedView
    base: tuple[Scalar, ...]
    pattern: Pattern

    def rows(self, rows: Array, n: int) -> Tile:
        return Tile(self.view.rows(rows, n), rows_of_scalars(self.base, rows, n), self.pattern)


@dataclass(frozen=True, slots=True)
class IndirectTile:
    """Coordinates given one by one: per dimension functions of the captured values and of the points of a pattern,
    looked up in an index view where there is one."""

    view: View | DistributedView
    pattern: Pattern
    captured: tuple[Scalar, ...]
    subscripts: tuple[tuple[View | None, tuple[Any, ...]], ...]

    def rows(self, rows: Array, n: int) -> IndirectTile:
        return IndirectTile(
            self.view.rows(rows, n),
            self.pattern,
            rows_of_scalars(self.captured, rows, n),
            tuple((None if view is None else view.rows(rows, n), maps) for view, maps in self.subscripts),
        )


# ------------------------------------------------------------------------------------------------------------- accesses


@dataclass(slots=True)
class Strided:
    """Elements at ``at + sum(index * strides)``, for ``at`` a number or one place per core.

    ``box`` are counts and steps of the places of the cores, see :func:`lattice`.
    """

    arena: Arena
    at: Scalar
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    view: View
    cores: Array
    box: Box | None = None

    def __post_init__(self) -> None:
        if self.box is None:
            self.box = ONE if isinstance(self.at, int) else lattice(self.at)

    def peek(self, raw: Array, dtype: np.dtype[Any]) -> Array:
        """The elements with the axes (counts of the box.., shape..), shared with the memory; or as :meth:`read`."""
        if self.box is None:
            return self.read(raw, dtype)
        counts, steps = self.box
        return window(raw, dtype, self.first, (*counts, *self.shape), (*steps, *self.strides))

    def read(self, raw: Array, dtype: np.dtype[Any]) -> Array:
        """A copy of the elements as (cores, shape..); one row where all cores read the same."""
        if self.box is not None:
            return np.array(self.peek(raw, dtype), order="C").reshape(-1, *self.shape)
        assert is_array(self.at)
        if prod(self.shape) <= SMALL:
            return raw.view(dtype)[self.index()]
        result = np.empty((len(self.at), *self.shape), dtype)
        for row, at in enumerate(self.at.tolist()):
            result[row] = window(raw, dtype, at, self.shape, self.strides)
        return result

    def write(self, raw: Array, dtype: np.dtype[Any], values: Array) -> None:
        """Writes (cores, shape..); where cores write the same place, the last one stays."""
        if isinstance(self.at, int):
            self.peek(raw, dtype)[...] = values[-1:]
        elif self.box is not None and self.is_distinct():
            counts, _ = self.box
            self.peek(raw, dtype)[...] = values.reshape(*counts, *values.shape[1:]) if len(values) > 1 else values
        elif prod(self.shape) <= SMALL:
            raw.view(dtype)[self.index()] = values
        else:
            for row, at in enumerate(self.at.tolist()):
                window(raw, dtype, at, self.shape, self.strides)[...] = values[row if len(values) > 1 else 0]

    def is_distinct(self) -> bool:
        """Whether surely no two elements, of any cores, have the same place."""
        if self.box is None:
            return False
        counts, steps = self.box
        return are_distinct((*counts, *self.shape), (*steps, *self.strides))

    @property
    def first(self) -> int:
        """The place of the first element of the first core."""
        return self.at if isinstance(self.at, int) else int(self.at[0])

    def index(self) -> Array:
        at = np.asarray(self.at, I64).reshape(-1, *(1,) * len(self.shape))
        return at + box_offsets(self.shape, self.strides)

    def scaled(self, factor: int) -> Strided:
        """The same bytes, in units that are ``factor`` times smaller."""
        if factor == 1:
            return self
        strides = (*(stride * factor for stride in self.strides), 1)
        box = None if self.box is None else (self.box[0], tuple(step * factor for step in self.box[1]))
        return Strided(self.arena, self.at * factor, (*self.shape, factor), strides, self.view, self.cores, box)

    def limits(self) -> tuple[int, int]:
        """Smallest and largest place that any core touches."""
        low, high = self.reach()
        if self.box is not None:
            least, most = extent_of(*self.box)
            return self.first + least + low, self.first + most + high
        assert is_array(self.at)
        return int(self.at.min()) + low, int(self.at.max()) + high

    def reach(self) -> tuple[int, int]:
        """Smallest and largest distance from ``at``."""
        return extent_of(self.shape, self.strides)

    def is_empty(self) -> bool:
        return 0 in self.shape


@dataclass(slots=True)
class Gathered:
    """Elements at places listed one by one; ``cores`` broadcasts against them, or lists all cores for one row."""

    arena: Arena
    places: Array
    view: View
    cores: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.places.shape[1:]

    def read(self, raw: Array, dtype: np.dtype[Any]) -> Array:
        """A copy of the elements, with the axes of the places."""
        return raw.view(dtype).take(self.places)

    peek = read

    def write(self, raw: Array, dtype: np.dtype[Any], values: Array) -> None:
        """Writes; of several values for one place the last in enumeration order stays (Q13)."""
        rows = max(len(values), len(self.places)) if len(self.places) > 1 else 1
        if rows == 1 and len(values) > 1:
            values = values[-1:]
        raw.view(dtype)[self.places] = np.broadcast_to(values, self.places.shape)

    def scaled(self, factor: int) -> Gathered:
        if factor == 1:
            return self
        places = self.places[..., None] * factor + np.arange(factor)
        cores = self.cores if self.cores.ndim == 1 else self.cores[..., None]
        return Gathered(self.arena, places, self.view, cores)

    def limits(self) -> tuple[int, int]:
        return int(self.places.min()), int(self.places.max())

    def is_empty(self) -> bool:
        return self.places.size == 0


Access = Strided | Gathered


@dataclass(slots=True)
class Piece:
    """One access that gives or takes part of a tile: ``where`` is its index into (cores, shape..), ``rows`` are the
    rows of the frame that it belongs to, or the row of each of its elements; None where it is for all rows alike."""

    access: Access
    where: tuple[Any, ...]
    rows: Array | None


@dataclass(slots=True)
class Pieces:
    """A tile that is not one access: its parts, later ones over earlier ones, and its shape with the core axis.

    ``masked`` is the view beyond whose end the rest of the tile lies; else the tile is on a distributed view.
    ``coordinates`` are those of all elements, per dimension, where they were listed.
    """

    parts: list[Piece]
    shape: tuple[int, ...]
    masked: View | None = None
    coordinates: Sequence[Array] | None = None


def window(raw: Array, dtype: np.dtype[Any], at: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The elements of ``raw`` at ``at + sum(index * strides)``, not copied."""
    size = dtype.itemsize
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, raw, at * size, tuple(stride * size for stride in strides))


Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Counts and steps of numbers that lie evenly along some dimensions."""
ONE: Box = (1,), (0,)


def extent_of(counts: Sequence[int], steps: Sequence[int]) -> tuple[int, int]:
    """Smallest and largest distance of the points of a box from its first."""
    low = high = 0
    for count, step in zip(counts, steps, strict=True):
        if step > 0:
            high += (count - 1) * step
        else:
            low += (count - 1) * step
    return low, high


def lattice(at: Array) -> Box | None:
    """Counts and steps of a box whose points, the last dimension fastest, are ``at``; None where it is no box."""
    steps = at[1:] - at[:-1]
    if len(at) < 2:
        return (len(at),), (0,)
    step = int(steps[0])
    others = np.nonzero(steps != step)[0]
    if not len(others):
        return (len(at),), (step,)
    count = int(others[0]) + 1
    if len(at) % count:
        return None
    lines = at.reshape(-1, count)
    if (lines - lines[:, :1] != lines[0] - lines[0, 0]).any() or (outer := lattice(lines[:, 0])) is None:
        return None
    return (*outer[0], count), (*outer[1], step)


def are_distinct(counts: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether all points of a box surely have places of their own: each step goes beyond what smaller ones reach."""
    reach = 0
    for step, count in sorted((abs(step), count) for step, count in zip(steps, counts, strict=True)):
        if count > 1 and step <= reach:
            return False
        reach += (count - 1) * step
    return True


@lru_cache(maxsize=256)
def box_offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Distances of the elements of a box from its first, as (1, shape..)."""
    total = np.zeros((1, *(1,) * len(shape)), np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        along = [1] * (len(shape) + 1)
        along[axis + 1] = size
        total = total + (np.arange(size, dtype=np.int64) * stride).reshape(along)
    return total


def spread(value: Scalar, rank: int) -> Any:
    """A scalar per core with the axes of a tile."""
    return value if isinstance(value, int) else value.reshape(-1, *(1,) * rank)


# ------------------------------------------------------------------------------------------------------------ resolving


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
        return replace(access, places=access.places + spread(moved, access.places.ndim - 1))
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
