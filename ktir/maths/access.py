"""How the dimensions of a tensor are found in a buffer, however the tensor has been reshaped, permuted or cut.

An *axis* is one dimension as it lies in a buffer: its index is split into digits of a mixed radix, and each digit moves
by a constant stride. A stick layout gives the axes of a tensor; splitting, joining and cutting axes gives those of its
views. Not every view has axes: where the radix of the layout and that of the view do not nest (67x1000 in sticks, read
as 1000x67), the functions here return None and the view has to be copied.

Words. *walk*: one digit: ``size`` places, ``step`` elements of the dimension each, ``stride`` elements of the buffer
each; the walks of an axis are ordered coarsest first. *tile*: ``length`` iterations that begin at a multiple of
``length``; the last one of a dimension may be ragged. *cover*: the box of digits that holds a tile, possibly with some
lanes more at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ktir.maths.ownership import ceil_div
from ktir.maths.stick_layout import StickLayout, Walk


@dataclass(frozen=True, slots=True)
class Digit:
    """``count`` places of one walk, from place ``first // step`` on, where ``first`` is the tile's first iteration.

    A digit that does not move starts at place 0; one that wraps starts at ``first // step % size``.
    """

    walk: Walk
    count: int
    moves: bool
    wraps: bool

    def start(self, first: int) -> int:
        """The place that the tile which begins at ``first`` begins at."""
        place = first // self.walk.step if self.moves else 0
        return place % self.walk.size if self.wraps else place


@dataclass(frozen=True, slots=True)
class Cover:
    """The digits that hold a tile of ``length`` elements, coarsest first; they hold ``covered`` elements in all."""

    length: int
    digits: tuple[Digit, ...]

    @property
    def covered(self) -> int:
        return prod(digit.count for digit in self.digits)

    @property
    def is_exact(self) -> bool:
        """Whether the digits hold the tile and nothing else."""
        return not self.digits or self.covered == self.length


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of ``extent`` elements in a buffer. No walks at all: every element is the same one (a broadcast).

    ``padded`` tells that the places from ``extent`` up to a whole step of the coarsest walk are padding of the same
    tensor, so that a store may fill them.
    """

    extent: int
    walks: tuple[Walk, ...]
    padded: bool = False

    @property
    def finest_stride(self) -> int:
        """Buffer elements between neighbours; 0 where nothing moves."""
        return self.walks[-1].stride if self.walks else 0

    @property
    def places(self) -> int:
        """Elements the digits have places for, the extent or more."""
        return prod(walk.size for walk in self.walks)

    def offset(self, index: int) -> int:
        """Where in the buffer the element at ``index`` lies, from that at 0."""
        return sum(index // walk.step % walk.size * walk.stride for walk in self.walks)

    def cover(self, tile: int, length: int | None = None) -> Cover | None:
        """The digits of ``length`` iterations from a multiple of ``tile`` on, ``length <= tile`` (default: equal).

        None where tiles of that size are no boxes of digits.
        """
        length = min(tile, self.extent) if length is None else length
        if not self.walks:
            return Cover(length, ())
        if tile >= self.extent:
            return self._cover_from(0, length, moves=False)
        for position in range(len(self.walks)):
            if self._holds_tiles(position, tile):
                return self._cover_from(position, length, moves=True)
        return None

    def _holds_tiles(self, position: int, tile: int) -> bool:
        """Whether a tile is a run of places of walk ``position`` with all places of the finer walks."""
        walk = self.walks[position]
        return tile % walk.step == 0 and (position == 0 or walk.step * walk.size % tile == 0)

    def _cover_from(self, position: int, length: int, *, moves: bool) -> Cover:
        run = self.walks[position]
        coarser = tuple(Digit(walk, 1, moves=True, wraps=at > 0) for at, walk in enumerate(self.walks[:position]))
        middle = Digit(run, ceil_div(length, run.step), moves, wraps=moves and position > 0)
        finer = tuple(Digit(walk, walk.size, moves=False, wraps=False) for walk in self.walks[position + 1 :])
        return Cover(length, (*coarser, middle, *finer))

    def pieces(self, tile: int, length: int) -> list[tuple[int, Cover]] | None:
        """The tile of :meth:`cover` as boxes that hold nothing else: how far into the tile each begins, and its cover.

        None where tiles of that size are no boxes of digits.
        """
        whole = self.cover(tile, length)
        if whole is None or whole.is_exact:
            return None if whole is None else [(0, whole)]
        position = (
            0 if tile >= self.extent else next(at for at in range(len(self.walks)) if self._holds_tiles(at, tile))
        )
        result: list[tuple[int, Cover]] = []
        done = 0
        while done < length:
            whole_steps = (length - done) // self.walks[position].step * self.walks[position].step
            if whole_steps:
                result.append((done, self._cover_from(position, whole_steps, moves=True)))
            done += whole_steps
            position += 1
        return result

    def split(self, inner: int) -> tuple[Axis, Axis] | None:
        """The axes of ``index // inner`` and ``index % inner``; ``inner`` must divide the extent."""
        if not self.walks:
            return Axis(self.extent // inner, ()), Axis(inner, ())
        outer_walks: list[Walk] = []
        inner_walks: list[Walk] = []
        for position, walk in enumerate(self.walks):
            span = walk.step * walk.size
            if walk.step >= inner and walk.step % inner == 0:
                outer_walks.append(Walk(walk.size, walk.step // inner, walk.stride))
            elif span <= inner and (inner % span == 0 or position == 0):
                inner_walks.append(walk)
            elif inner % walk.step == 0 and (position == 0 or span % inner == 0):
                places = inner // walk.step
                outer_walks.append(Walk(ceil_div(walk.size, places), 1, walk.stride * places))
                inner_walks.append(Walk(places, walk.step, walk.stride))
            else:
                return None
        whole = self.extent == inner
        return _axis(self.extent // inner, outer_walks, self.padded), _axis(inner, inner_walks, self.padded and whole)

    def join(self, inner: Axis) -> Axis | None:
        """The axis of ``index * inner.extent + inner_index``; None where the places of ``inner`` do not end with it."""
        if inner.extent == 1 and not inner.walks:
            return self
        if self.extent == 1 and not self.walks:
            return inner
        if not self.walks and not inner.walks:
            return Axis(self.extent * inner.extent, ())
        if not self.walks or not inner.walks or inner.places != inner.extent:
            return None
        outer_walks = [Walk(walk.size, walk.step * inner.extent, walk.stride) for walk in self.walks]
        return _axis(self.extent * inner.extent, [*outer_walks, *inner.walks], self.padded)

    def cut(self, start: int, size: int, stride: int = 1) -> tuple[Axis, int] | None:
        """The axis of ``size`` elements from ``start`` on, ``stride`` apart, and the buffer offset of its element 0."""
        if not self.walks:
            return Axis(size, ()), 0
        if (start, size, stride) == (0, self.extent, 1):
            return self, 0
        if stride != 1:
            return self._cut_strided(start, size, stride)
        boundaries = [walk.step for walk in reversed(self.walks)]
        aligned = [start % boundary == 0 for boundary in boundaries]
        inside = [size + start % boundary <= boundary for boundary in boundaries]
        for top in reversed(range(len(boundaries))):
            if all(aligned[: top + 1]) and all(inside[top + 1 :]):
                kept = self.walks[len(self.walks) - 1 - top :]
                places = min(kept[0].size, ceil_div(size, kept[0].step))
                ends_padded = self.padded and start + size == self.extent and len(kept) == len(self.walks)
                walks = [Walk(places, kept[0].step, kept[0].stride), *kept[1:]]
                return _axis(size, walks, ends_padded), self.offset(start)
        return None

    def _cut_strided(self, start: int, size: int, stride: int) -> tuple[Axis, int] | None:
        if len(self.walks) != 1 or self.walks[0].step != 1:
            return None
        return _axis(size, [Walk(size, 1, self.walks[0].stride * stride)], False), self.offset(start)


UNIT = Axis(1, ())
"""A dimension of one element."""


def _axis(extent: int, walks: Sequence[Walk], padded: bool) -> Axis:
    """An axis with neighbouring walks joined where the coarser continues the finer, and idle walks dropped."""
    ordered = sorted(walks, key=lambda walk: -walk.step)
    kept: list[Walk] = []
    for position, walk in enumerate(ordered):
        idle = walk.size == 1 and not (padded and position == 0)
        if idle:
            continue
        whole_steps_are_padded = padded and len(kept) == 1  # stores fill them, so they must stay a digit of their own
        if kept and not whole_steps_are_padded and _continues(kept[-1], walk):
            kept[-1] = Walk(kept[-1].size * walk.size, walk.step, walk.stride)
        else:
            kept.append(walk)
    if extent > 1 and not kept:
        return Axis(extent, ())
    return Axis(extent, tuple(kept), padded)


def _continues(coarse: Walk, fine: Walk) -> bool:
    return coarse.step == fine.step * fine.size and coarse.stride == fine.stride * fine.size


def layout_axes(layout: StickLayout) -> tuple[Axis, ...]:
    """One axis per tensor dimension of a laid-out buffer."""
    axes: list[Axis] = []
    for tensor_dim, extent in enumerate(layout.extent):
        walks = [Walk(walk.size, walk.step, walk.stride) for walk in layout.walks(tensor_dim)]
        axes.append(_axis(extent, walks, padded=layout.padded_extent(tensor_dim) != extent))
    return tuple(axes)


def dense_axes(shape: Sequence[int]) -> tuple[Axis, ...]:
    """One axis per dimension of a row-major buffer without padding."""
    strides = [prod(shape[position + 1 :]) for position in range(len(shape))]
    return tuple(_axis(size, [Walk(size, 1, stride)], False) for size, stride in zip(shape, strides, strict=True))


def regroup(factors: Sequence[Axis], sizes: Sequence[int]) -> tuple[Axis, ...] | None:
    """One axis per entry of ``sizes``, for the same elements in the same row-major order as ``factors``.

    None where no axis can say it, which includes different numbers of elements.
    """
    pending = [factor for factor in factors if factor.extent != 1]
    result: list[Axis] = []
    for size in reversed(sizes):
        axis: Axis | None = UNIT
        while axis is not None and axis.extent < size:
            if size % axis.extent or (factor := _take(pending, size // axis.extent)) is None:
                return None
            axis = factor.join(axis)
        if axis is None:
            return None
        result.append(axis)
    return None if pending else tuple(reversed(result))


def _take(pending: list[Axis], size: int) -> Axis | None:
    """Takes ``size`` elements, or a part that divides them, off the inner end of ``pending``."""
    factor = pending.pop() if pending else None
    while factor is not None and size % factor.extent != 0 and factor.extent % size != 0:
        factor = pending.pop().join(factor) if pending else None
    if factor is None or factor.extent <= size:
        return factor
    if (halves := factor.split(size)) is None:
        return None
    pending.append(halves[0])
    return halves[1]
