"""Which bytes an access touches, core by core: intervals that are exact where the arithmetic is.

A *region* is memory in which addresses can be compared: global memory from one pointer on, or a core's scratchpad.
Two different pointers lie in different regions. A *run* is a half-open interval of bytes ``[start, stop)`` of a
region; ``core`` is who touches it. The runs of a footprint are exact, or (``exact`` false) hulls that hold what is
touched and more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ktir.analysis import ranges
from ktir.analysis.accesses import Access, Buffer, Launch, Owned, View
from ktir.analysis.ranges import Frame, Integers, Symbol, Value

RUN_LIMIT = 1 << 21
"""Runs of one access up to which they are listed."""

Region: TypeAlias = tuple[Literal["global", "ct_local"], Hashable]

CORE_STRIDE = np.int64(1) << 44
"""Bytes between the scratchpads of two cores in the one address space that the runs of ``ct_local`` use."""


@dataclass(frozen=True, eq=False)
class Footprint:
    """The runs of one access in one region, at least one; ``certain`` tells whether each run is surely touched."""

    access: Access
    view: View
    region: Region
    core: Integers
    start: Integers
    stop: Integers
    certain: NDArray[np.bool_]
    exact: bool

    @property
    def surely(self) -> Footprint:
        """What of it is touched in every run of the program."""
        if self.exact and self.certain.all():
            return self
        sure = self.certain & self.exact
        core, start, stop = (each[sure] for each in (self.core, self.start, self.stop))
        return replace(self, core=core, start=start, stop=stop, certain=self.certain[sure], exact=True)


def runs(footprints_: Iterable[Footprint]) -> tuple[Integers, Integers]:
    """First bytes and first bytes behind of all runs of some footprints."""
    parts = list(footprints_)
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *(f.start for f in parts)]), np.concatenate([none, *(f.stop for f in parts)])


def region_of(view: View, address: Value) -> Region | None:
    """The region a byte address is in, or None where it depends on what is not known and is no pointer."""
    pointers = {s: c for s, c in address.terms.items() if s.pointer}
    if len(pointers) > 1 or any(c.size == 0 or (c != c.flat[0]).any() for c in pointers.values()):
        return None
    if view.space == "ct_local":
        return None if pointers else ("ct_local", None)
    return ("global", next((pointer_key(s, int(c.flat[0])) for s, c in pointers.items()), None))


def pointer_key(symbol: Symbol, factor: int) -> Hashable:
    """Names a pointer counted in bytes: a buffer, or an argument that counts elements of so many bytes."""
    if symbol.whole is not None and factor % symbol.divisor == 0:
        return (symbol.whole, factor // symbol.divisor)
    return (symbol, factor)


def buffer_of(footprint: Footprint, launch: Launch) -> Buffer | None:
    """The buffer whose bytes a footprint's runs count, where its pointer is known in bytes."""
    kind, key = footprint.region
    if kind != "global" or key is None:
        return None
    pointer, unit = cast("tuple[Symbol, int]", key)
    return launch.buffers.get(pointer) if unit == 1 else None


def buffer_behind(view: View, frame: Frame, launch: Launch) -> Buffer | None:
    """The buffer that a view's pointer belongs to, whatever the pointer counts."""
    region = region_of(view, scaled(view.offset.at(frame), view))
    if region is None or region[0] != "global" or region[1] is None:
        return None
    return launch.buffers.get(cast("tuple[Symbol, int]", region[1])[0])


def footprints(access: Access) -> list[Footprint] | None:
    """Where an access goes, one footprint for each view it reaches; None where even the region is not known."""
    views = access.tile.view
    if isinstance(views, View):
        made = of_view(access, views, None)
        return None if made is None else [made] if len(made.start) else []
    parts = [of_view(access, part, part.owned) if part.owned is not None else None for part in views.partitions]
    if any(part is None for part in parts):
        return None
    return [part for part in cast("list[Footprint]", parts) if len(part.start)]


def of_view(access: Access, view: View, owned: Owned | None) -> Footprint | None:
    """The footprint in one view; coordinates of a partition are those it owns, counted from their corner."""
    exact = exact_runs(access, view, owned)
    return exact if exact is not None else hull(access, view, owned)


def byte_value(view: View, coordinates: Sequence[Value], frame: Frame) -> Value:
    """``(offset + sum of coordinate * stride) * element bytes`` at the points of ``frame``."""
    total = view.offset.at(frame)
    for coordinate, stride in zip(coordinates, view.strides, strict=True):
        total = total + ranges.multiply(coordinate.at(frame), stride.at(frame))
    return ranges.scale(total, np.asarray(view.element_bytes))


def hull(access: Access, view: View, owned: Owned | None) -> Footprint | None:
    """One run per point that holds all that is touched there."""
    frame = access.frame
    ends = [byte_value(view, corner, frame) for corner in corners(access, view, owned)]
    region = region_of(view, ends[0])
    if region is None or any(region_of(view, e) != region for e in ends):
        return None
    without = [Value(e.constant, {s: c for s, c in e.terms.items() if not s.pointer}, e.frame) for e in ends]
    signed = all(bool((s.lower() >= 0).all()) or bool((s.upper() <= 0).all()) for s in view.strides)
    first, last = (without[:1], without[1:]) if signed else (without, without)
    start = np.minimum.reduce([np.broadcast_to(e.lower(), frame.points) for e in first])
    stop = np.maximum.reduce([np.broadcast_to(e.upper(), frame.points) for e in last]) + view.element_bytes
    if not (np.isfinite(start).all() and np.isfinite(stop).all()):
        return None
    rows = np.stack([frame.core, start.astype(np.int64), stop.astype(np.int64)], 1)
    unique, index = np.unique(rows, axis=0, return_index=True)
    certain = frame.certain[index]
    return placed(access, view, region, unique[:, 0], unique[:, 1], unique[:, 2], certain, exact=False)


def corners(access: Access, view: View, owned: Owned | None) -> Iterator[tuple[Value, ...]]:
    """The coordinates at which a box has its least and its greatest address, where the strides' signs are known."""
    if owned is None:
        ends = zip(access.tile.lower, access.tile.upper, view.sizes, strict=True)
        pairs = [inside(low, high, size) for low, high, size in ends]
    else:
        pairs = [(ranges.constant(0), ranges.constant(stop - start - 1)) for start, stop in owned.box]
    negative = [bool((stride.lower() < 0).any()) for stride in view.strides]
    yield tuple(high if n else low for (low, high), n in zip(pairs, negative, strict=True))
    yield tuple(low if n else high for (low, high), n in zip(pairs, negative, strict=True))


def inside(low: Value, high: Value, size: Value) -> tuple[Value, Value]:
    """The ends of an access in one dimension; where nobody knows them, those of the view: whether an access leaves its
    view is another question."""
    known = bool(np.isfinite(low.lower()).all()), bool(np.isfinite(high.upper()).all())
    return low if known[0] else ranges.constant(0), high if known[1] else size - ranges.constant(1)


def exact_runs(access: Access, view: View, owned: Owned | None) -> Footprint | None:
    """The runs of an access whose coordinates and strides are known at every point."""
    tile, frame = access.tile, access.frame
    strides = [s.literal for s in view.strides]
    if not tile.exact or None in strides or not all(v.known for v in (*tile.lower, *tile.upper)):
        return None
    offset = view.offset.at(frame)
    base = byte_value(view, (), frame) if not view.strides else scaled(offset, view)
    region = region_of(view, base)
    if region is None or any(not s.pointer for s in base.terms):
        return None
    boxes = coordinate_boxes(access, owned)
    if boxes is None:
        return None
    addresses = np.broadcast_to(base.constant, frame.points)
    return listed_runs(access, view, region, addresses, boxes, cast("list[int]", strides))


def scaled(offset: Value, view: View) -> Value:
    return ranges.scale(offset, np.asarray(view.element_bytes))


@dataclass(frozen=True, eq=False)
class Boxes:
    """One box of coordinates per row: the point it belongs to, its corner, its extents."""

    point: Integers
    corner: Integers
    extent: Integers


def coordinate_boxes(access: Access, owned: Owned | None) -> Boxes | None:
    """The boxes an access touches; inside ``owned`` and counted from its corner where that is given."""
    tile, frame = access.tile, access.frame
    rank = len(tile.lower)
    point = np.arange(frame.points)
    lower, upper = (
        np.stack([np.broadcast_to(v.at(frame).constant, frame.points) for v in ends], 1)
        if rank
        else np.zeros((frame.points, 0), np.int64)
        for ends in (tile.lower, tile.upper)
    )
    if tile.steps is not None:
        if len(point) * len(tile.steps) > RUN_LIMIT:
            return None
        base = lower - tile.steps.min(0) if len(tile.steps) else lower
        lower = (base[:, None, :] + tile.steps[None, :, :]).reshape(-1, rank)
        upper, point = lower, np.repeat(point, len(tile.steps))
    if owned is not None:
        start, stop = (np.array(ends, np.int64) for ends in zip(*owned.box, strict=True))
        if owned.points is not None:
            if len(point) * len(owned.points) > RUN_LIMIT:
                return None
            held = (lower[:, None] <= owned.points).all(2) & (owned.points <= upper[:, None]).all(2)
            rows, members = np.nonzero(held)
            lower, point = owned.points[members], point[rows]
            upper = lower
        lower, upper = np.maximum(lower, start) - start, np.minimum(upper, stop - 1) - start
    extent = upper - lower + 1
    filled = (extent > 0).all(1)
    return Boxes(point[filled], lower[filled], extent[filled])


def listed_runs(
    access: Access, view: View, region: Region, addresses: Integers, boxes: Boxes, strides: Sequence[int]
) -> Footprint | None:
    """The runs of boxes, all boxes of one shape at a time."""
    size = view.element_bytes
    starts = addresses[boxes.point] + boxes.corner @ np.array(strides, np.int64).reshape(-1) * size
    cores, certain = access.frame.core[boxes.point], access.frame.certain[boxes.point]
    rows = np.column_stack([cores, starts, boxes.extent])
    order = np.lexsort((~certain, *rows.T[::-1]))
    rows, certain = rows[order], certain[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]).any(1)
    rows, certain = rows[first], certain[first]
    parts: list[tuple[tuple[Integers, Integers, Integers], NDArray[np.bool_]]] = []
    total = 0
    for extent in np.unique(rows[:, 2:], axis=0):
        chosen = (rows[:, 2:] == extent).all(1)
        offsets, length = runs_of_box([int(e) for e in extent], strides)
        total += int(chosen.sum()) * len(offsets)
        if total > RUN_LIMIT:
            return None
        start = (rows[chosen, 1][:, None] + offsets[None, :] * size).reshape(-1)
        repeated = np.repeat(rows[chosen, 0], len(offsets))
        parts.append(((repeated, start, start + length * size), np.repeat(certain[chosen], len(offsets))))
    if not parts:
        none = np.zeros(0, np.int64)
        return placed(access, view, region, none, none, none, np.zeros(0, np.bool_), exact=True)
    core, start, stop = (np.concatenate([run[k] for run, _ in parts]) for k in range(3))
    return placed(access, view, region, core, start, stop, np.concatenate([sure for _, sure in parts]), exact=True)


def runs_of_box(extent: Sequence[int], strides: Sequence[int]) -> tuple[Integers, int]:
    """Offsets of the contiguous runs of a box from its corner, and their common length, in elements."""
    dims = sorted(((abs(s), s, e) for s, e in zip(strides, extent, strict=True) if e > 1), key=lambda d: d[0])
    length, corner = 1, 0
    outer: list[tuple[int, int]] = []
    for distance, stride, count in dims:
        if distance == length and not outer:
            corner += min(0, stride * (count - 1))
            length *= count
        elif stride:
            outer.append((stride, count))
    offsets = np.full(1, corner, np.int64)
    for stride, count in outer:
        offsets = (offsets[:, None] + np.arange(count, dtype=np.int64)[None, :] * stride).reshape(-1)
    return offsets, length


def placed(
    access: Access,
    view: View,
    region: Region,
    core: Integers,
    start: Integers,
    stop: Integers,
    certain: NDArray[np.bool_],
    *,
    exact: bool,
) -> Footprint:
    """A footprint; scratchpads of different cores are put ``CORE_STRIDE`` apart."""
    if view.space == "ct_local":
        owner = core if view.owner is None else np.full_like(core, view.owner)
        start, stop = start + owner * CORE_STRIDE, stop + owner * CORE_STRIDE
    return Footprint(access, view, region, core, start, stop, certain, exact)


# ------------------------------------------------------------------------------------------------- algebra of intervals


def union(start: Integers, stop: Integers) -> tuple[Integers, Integers]:
    """The fewest disjoint intervals, in order, that hold the same bytes."""
    if not len(start):
        return start, stop
    order = np.argsort(start, kind="stable")
    start, stop = start[order], np.maximum.accumulate(stop[order])
    opens = np.ones(len(start), np.bool_)
    opens[1:] = start[1:] > stop[:-1]
    last = np.append(np.flatnonzero(opens)[1:] - 1, len(start) - 1)
    return start[opens], stop[last]


def uncovered(start: Integers, stop: Integers, by_start: Integers, by_stop: Integers) -> tuple[int, int] | None:
    """The first gap that the intervals ``by`` leave in the others, or None."""
    by_start, by_stop = union(by_start, by_stop)
    if not len(start):
        return None
    if not len(by_start):
        return int(start[0]), int(stop[0])
    where = np.searchsorted(by_start, start, side="right") - 1
    held_to = np.where(where >= 0, by_stop[np.maximum(where, 0)], start)
    open_ = np.flatnonzero(held_to < stop)
    if not len(open_):
        return None
    first = open_[0]
    begin, following = max(int(start[first]), int(held_to[first])), int(where[first]) + 1
    end = int(by_start[following]) if following < len(by_start) else int(stop[first])
    return begin, min(end, int(stop[first]))


def overlap(start: Integers, stop: Integers, by_start: Integers, by_stop: Integers) -> int | None:
    """The index of an interval that shares a byte with one of the intervals ``by``, or None."""
    by_start, by_stop = union(by_start, by_stop)
    if not len(start) or not len(by_start):
        return None
    where = np.searchsorted(by_start, stop, side="left") - 1
    hit = (where >= 0) & (by_stop[np.maximum(where, 0)] > start)
    return int(np.argmax(hit)) if hit.any() else None
