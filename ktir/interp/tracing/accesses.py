"""What one core touches of memory with a load or a store, resolved once more beside the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import OpResult, SSAValue

from ktir.interp.accesses import Access, Piece, Pieces, Strided
from ktir.interp.boxes import box_offsets, spread
from ktir.interp.numerics import Array
from ktir.interp.observation import Point
from ktir.interp.resolving import index_access, resolve
from ktir.interp.tracing.numbers import Lanes
from ktir.interp.values import Frame, Site
from ktir.interp.views import DistributedView, IndirectTile, Tile, View
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
    def start(self) -> int:
        """The place of the first element of the allocation, 0 where there is none."""
        return 0 if self.allocation is None else self.allocation.start // self.view.element.itemsize

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


def pieces_of(tile: Tile | IndirectTile, frame: Frame, site: Site) -> list[Piece]:
    """The accesses that a tile stands for on all cores of a frame."""
    access = resolve(tile, frame, site)
    return access.parts if isinstance(access, Pieces) else [Piece(access, (), None)]


def touches(pieces: Sequence[Piece], frame: Frame, row: int) -> Iterator[Touch]:
    """What the core at ``row`` of the frame touches, by the views that hold it."""
    for piece in pieces:
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
    pieces = pieces_of(tile, frame, point.site)
    rows = [_numbers(list(touches(pieces, frame, row))) for row in range(frame.n)]
    width = max(map(len, rows))
    return Lanes(np.array([row + [-1] * (width - len(row)) for row in rows], np.int64))


def _numbers(found: Sequence[Touch]) -> list[int]:
    """How many elements, the sum, the lowest and the highest of their places, and the box in the first view."""
    parts = [each.places - each.start for each in found]
    if not parts:
        return [0]
    low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
    box = [limit for pair in found[0].box() for limit in pair]
    return [sum(part.size for part in parts), sum(int(part.sum()) for part in parts), low, high, *box]


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
    places, at = _places(access, row, rows)
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


def _places(access: Access, row: int, rows: Array | None) -> tuple[Array, int]:
    """The places of one row of the frame, flat, and which row of the access that is."""
    lead = _lead(access)
    if rows is None:
        return _row(access, row if lead > 1 else 0), row
    if lead == 1 and not isinstance(access, Strided) and rows.size == access.places.size > 1:
        return access.places.ravel()[rows.ravel() == row], row
    position = np.nonzero(rows == row)[0]
    if not len(position):
        return np.empty(0, np.int64), row
    at = int(position[0])
    return _row(access, at if lead > 1 else 0), at


def _lead(access: Access) -> int:
    """The rows of an access."""
    if isinstance(access, Strided):
        return 1 if isinstance(access.at, int) else len(access.at)
    return len(access.places)


def _row(access: Access, at: int) -> Array:
    """The places of a row of an access."""
    if not isinstance(access, Strided):
        return access.places[at].ravel()
    first = access.at if isinstance(access.at, int) else int(access.at[at])
    return (first + box_offsets(access.shape, access.strides)).ravel()


def _number(value: Any, row: int) -> int:
    """A number of the core at ``row``."""
    if isinstance(value, int):
        return value
    return int(value[row if len(value) > 1 else 0])


__all__ = ["Touch", "looked_up", "pieces_of", "places_stored", "places_text", "tile_at", "touches", "view_name"]
