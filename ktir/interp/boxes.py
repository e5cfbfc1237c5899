"""Places that lie evenly along some dimensions, and windows on memory of that shape.

A *box* is counts and steps: the places ``sum(index * steps)`` for every index below the counts, the last dimension
fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ktir.interp.numerics import Array, Scalar

ENDLESS = 1 << 62


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
