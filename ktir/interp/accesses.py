"""Accesses: tiles resolved to places in one arena.

*at* is the place of an access's first element, counted in elements of the view's type from the start of the arena, a
number where it is the same on all cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ktir.interp.boxes import ONE, Box, are_distinct, box_offsets, extent_of, lattice, window
from ktir.interp.numerics import I64, Array, Scalar, is_array
from ktir.interp.views import View
from ktir.machine.memory_arena import Arena

SMALL = 64
"""Elements per core up to which gathering by index is faster than one strided copy per core."""


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
    found_limits: tuple[int, int] | None = None

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
        if self.found_limits is None:
            self.found_limits = int(self.places.min()), int(self.places.max())
        return self.found_limits

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
