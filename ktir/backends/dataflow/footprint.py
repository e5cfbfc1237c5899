"""Which bytes the accesses of a program touch, as sorted lists of intervals, worked out without running it.

An access walks a box of elements from an offset that is affine in the loops around it. Loops and box together are one
box of bytes; what lies side by side is joined, the rest is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.expression import Linear, at
from ktir.backends.dataflow.iteration_space import Space
from ktir.backends.dataflow.unit_program import Access

Intervals = NDArray[np.int64]
"""First bytes and the bytes after the last, [n, 2], in order and apart from each other."""

MOST_INTERVALS: Final = 1 << 18
"""Pieces of an access that are listed; one with more stands for all bytes from its first to its last."""
NOTHING: Final[Intervals] = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class Footprint:
    """The bytes of one access on one core; ``exact`` unless it stands for more than it touches."""

    intervals: Intervals
    exact: bool


class Footprints:
    """Footprints of many accesses: worked out once where cores do the same."""

    def __init__(self) -> None:
        self._known: dict[object, Footprint] = {}

    def of(self, access: Access, space: Space) -> Footprint:
        """As :func:`footprint`."""
        key = (id(access), access.offset.fixed(space.core, -1, 0), space.ranges, space.possible)
        if space.mixed:
            return footprint(access, space)
        if key not in self._known:
            self._known[key] = footprint(access, space)
        return self._known[key]


def footprint(access: Access, space: Space) -> Footprint:
    """The bytes that ``access`` touches over the iterations ``space``, counted from the start of its buffer's slot."""
    if not space.points:
        return Footprint(NOTHING, True)
    low, high = access.box.span
    first, last = space.bounds(access.offset)
    whole = Footprint(interval(first + low, last + high), False)
    if access.indirect:
        return Footprint(interval(0, access.buffer.size), False)
    starts = _offsets(access, space)
    if starts is None:
        return whole
    run, counts, strides = _contiguous(access)
    if starts.size * prod(counts) > MOST_INTERVALS:
        return whole
    for count, stride in zip(counts, strides, strict=True):
        starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
    return Footprint(joined(np.stack([starts, starts + run], axis=1)), True)


def _offsets(access: Access, space: Space) -> Intervals | None:
    """Every offset once; None for too many."""
    depths = access.offset.depths.union(*(condition.value.depths for condition in space.mixed))
    if prod(len(space.ranges[depth]) for depth in depths) > MOST_INTERVALS:
        return None
    if not depths:
        return np.array([access.offset.value(space.core, [0] * len(space.ranges))], np.int64)
    if isinstance(access.offset, Linear) and not space.mixed:
        return np.unique(_grid(access.offset, space))
    values = [access.offset.value(space.core, indices) for indices in space.points_along(frozenset(depths))]
    return np.unique(np.array(values, np.int64))


def _grid(offset: Linear, space: Space) -> Intervals:
    """The values of an offset over all iterations of a box."""
    found = np.array([at(offset.constant, space.core)], np.int64)
    for depth, factors in offset.terms:
        indices = space.ranges[depth]
        along = np.arange(indices.start, indices.stop, dtype=np.int64) * at(factors, space.core)
        found = (found[:, None] + along).ravel()
    return found


def _contiguous(access: Access) -> tuple[int, list[int], list[int]]:
    """The bytes that follow each other from an offset, and the counts and strides of what does not."""
    box = access.box.merged
    counts, strides = list(box.counts), list(box.strides)
    run = box.width
    while counts and 0 <= strides[-1] <= run:
        run += (counts.pop() - 1) * strides.pop()
    return run, counts, strides


def interval(start: int, stop: int) -> Intervals:
    """The bytes from ``start`` to before ``stop``."""
    return np.array([[start, stop]], np.int64)


def joined(intervals: Intervals) -> Intervals:
    """The same bytes, in order, with no two intervals that touch."""
    if len(intervals) < 2:
        return intervals
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    new = np.concatenate([[True], ordered[1:, 0] > reach[:-1]])
    starts = ordered[new, 0]
    stops = np.concatenate([reach[np.flatnonzero(new)[1:] - 1], reach[-1:]])
    return np.stack([starts, stops], axis=1)


def union(parts: Sequence[Intervals]) -> Intervals:
    """All bytes of ``parts``."""
    return joined(np.concatenate(parts)) if parts else NOTHING


def size(intervals: Intervals) -> int:
    """How many bytes."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def first_outside(intervals: Intervals, cover: Intervals) -> int | None:
    """The first byte of ``intervals`` that ``cover`` lacks; None if it has them all."""
    if not len(intervals):
        return None
    if not len(cover):
        return int(intervals[0, 0])
    place = np.searchsorted(cover[:, 0], intervals[:, 0], side="right") - 1
    stops: NDArray[Any] = np.where(place >= 0, cover[place, 1], intervals[:, 0])
    missing = np.flatnonzero(stops < intervals[:, 1])
    if not missing.size:
        return None
    worst = int(missing[0])
    return int(max(stops[worst], intervals[worst, 0]))


def meeting(left: Intervals, right: Intervals) -> int | None:
    """The first byte that both have; None if they have none in common."""
    if not len(left) or not len(right):
        return None
    place = np.searchsorted(right[:, 1], left[:, 0], side="right")
    inside = place < len(right)
    starts = np.where(inside, right[np.minimum(place, len(right) - 1), 0], np.iinfo(np.int64).max)
    found = np.flatnonzero(starts < left[:, 1])
    return int(max(starts[found[0]], left[found[0], 0])) if found.size else None
