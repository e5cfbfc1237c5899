"""What one core touches of memory with a load or a store, resolved once more beside the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import OpResult, SSAValue

from ktir.interp.memory import (
    Access,
    DistributedView,
    IndirectTile,
    Pieces,
    Strided,
    Tile,
    View,
    index_access,
    resolve,
    spread,
)
from ktir.interp.numerics import Array
from ktir.interp.observation import Point
from ktir.interp.tracing.numbers import Lanes
from ktir.interp.values import Frame, Site
from ktir.machine.memory_arena import Allocation

UNNAMED = "view"
"""What views without a name are called."""
TILE_OPERAND = {"ktdp.load": 0, "ktdp.store": 1}
"""Which operand of an operation is the tile it accesses."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Elements of one view, as ``places`` in elements of its type from the start of the memory it lies in.

    ``owner`` is the core whose scratchpad that is, None for global memory; ``allocation`` what it is part of there.
    ``offset``, ``sizes`` and ``strides`` are the view's on the core that touches.
    """

    view: View
    owner: int | None
    allocation: Allocation | None
    places: Array
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes moved; a place that is listed twice counts twice."""
        return self.places.size * self.view.element.itemsize

    @property
    def span(self) -> tuple[int, int]:
        """First and last byte from the start of the memory."""
        size = self.view.element.itemsize
        return int(self.places.min()) * size, (int(self.places.max()) + 1) * size - 1

    def box(self) -> tuple[tuple[int, int], ...]:
        """Lowest and highest coordinate of the view along each dimension."""
        rest = self.places - self.offset
        found: dict[int, tuple[int, int]] = {}
        for dimension in sorted(range(len(self.strides)), key=lambda d: -abs(self.strides[d])):
            stride = self.strides[dimension]
            if stride == 0 or self.sizes[dimension] <= 1:
                found[dimension] = (0, 0)
                continue
            coordinate, rest = np.divmod(rest, stride)
            found[dimension] = (int(coordinate.min()), int(coordinate.max()))
        return tuple(found[dimension] for dimension in range(len(self.strides)))


def tile_at(point: Point, frame: Frame) -> Tile | IndirectTile | None:
    """The tile that a load or store accesses; None for other operations."""
    operand = TILE_OPERAND.get(point.op.name)
    if operand is None:
        return None
    tile = frame.regs[point.operands[operand].slot]
    return tile if isinstance(tile, Tile | IndirectTile) else None


def view_name(point: Point, view: View | DistributedView, names: Mapping[SSAValue, str]) -> str:
    """What the text calls a view that a load or store goes through."""
    if view.name != UNNAMED:
        return f"%{view.name}"
    tile = point.operands[TILE_OPERAND[point.op.name]].value
    base = tile.op.operands[0] if isinstance(tile, OpResult) and tile.op.operands else None
    return names.get(base, f"%{UNNAMED}") if base is not None else f"%{UNNAMED}"


def touches(tile: Tile | IndirectTile, frame: Frame, site: Site, row: int) -> Iterator[Touch]:
    """What the core at ``row`` of the frame accesses through a tile, by the views that hold it."""
    access = resolve(tile, frame, site)
    if not isinstance(access, Pieces):
        yield from _touch(access, frame, row, None)
        return
    for piece in access.parts:
        yield from _touch(piece.access, frame, row, piece.rows)


def looked_up(tile: Tile | IndirectTile, frame: Frame, site: Site, row: int) -> Iterator[Touch]:
    """What it reads of index views to know where."""
    if not isinstance(tile, IndirectTile):
        return
    rank = len(tile.pattern.shape)
    variables = [tile.pattern.coordinate(dimension) for dimension in range(len(tile.pattern.order))]
    values = [*(spread(value, rank) for value in tile.captured), *variables]
    for view, functions in tile.subscripts:
        if view is not None:
            coordinates = [function(values) for function in functions]
            yield from _touch(index_access(view, coordinates, rank, frame, site), frame, row, None)


def places_stored(point: Point, frame: Frame) -> Lanes | None:
    """Where a store goes on each core, as numbers that are equal for equal places: see :func:`places_text`."""
    tile = tile_at(point, frame)
    if tile is None or point.op.name != "ktdp.store":
        return None
    rows: list[list[int]] = []
    for row in range(frame.n):
        found = list(touches(tile, frame, point.site, row))
        first = [each.places - (each.allocation.start // each.view.element.itemsize if each.allocation else 0)
                 for each in found]  # fmt: skip
        box = [limit for each in found[:1] for pair in each.box() for limit in pair]
        if not first:
            rows.append([0])
            continue
        low, high = min(int(part.min()) for part in first), max(int(part.max()) for part in first)
        rows.append([sum(part.size for part in first), sum(int(part.sum()) for part in first), low, high, *box])
    width = max(map(len, rows))
    return Lanes(np.array([row + [-1] * (width - len(row)) for row in rows], np.int64))


def places_text(numbers: Array) -> str:
    """The box and the number of elements that a row of :func:`places_stored` stands for."""
    count, *rest = numbers.tolist()
    if not count:
        return "no place"
    _, first, last, *limits = rest
    pairs = zip(limits[::2], limits[1::2], strict=True)
    box = ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in pairs if low >= 0)
    return f"[{box}] ({count} elements, {first}..{last} of the memory)"


def _touch(access: Access, frame: Frame, row: int, rows: Array | None) -> Iterator[Touch]:
    """``rows`` are the rows of the frame that the rows of the access, or its elements, belong to; None for all."""
    lists = access.index() if isinstance(access, Strided) else access.places
    places, at = _places(lists, row, rows)
    if not places.size:
        return
    view, size = access.view, access.view.element.itemsize
    owner, allocation = None, None
    offset, *numbers = (_number(each, at) for each in (view.offset, *view.sizes, *view.strides))
    if view.local:
        owner = int(frame.cores[row]) if view.core is None else view.core
        places = places - owner * (frame.run.memory.span // size)
    else:
        allocation = access.arena.containing(int(places.min()) * size)
    rank = len(view.sizes)
    yield Touch(view, owner, allocation, places, offset, tuple(numbers[:rank]), tuple(numbers[rank:]))


def _places(lists: Array, row: int, rows: Array | None) -> tuple[Array, int]:
    """The places of one row of the frame, flat, and which row of the access that is."""
    if rows is None:
        return lists[row if len(lists) > 1 else 0].ravel(), row
    if len(lists) == 1 and rows.size == lists.size > 1:
        return lists.ravel()[rows.ravel() == row], row
    position = np.nonzero(rows == row)[0]
    if not len(position):
        return np.empty(0, np.int64), row
    at = int(position[0])
    return lists[at if len(lists) > 1 else 0].ravel(), at


def _number(value: Any, row: int) -> int:
    """A number of the core at ``row``."""
    if isinstance(value, int):
        return value
    return int(value[row if len(value) > 1 else 0])


__all__ = ["Touch", "looked_up", "places_stored", "places_text", "tile_at", "touches", "view_name"]
