"""What is known about a tensor value of a kernel while it is lowered.

A tensor is a view of a tile, a splat of a constant, undefined, or *pending*: pointwise work that has not been given a
tile yet, because its only reader may do it on the way. Scalars that depend on data are tensors without dimensions.

Reshapes, slices, transposes and broadcasts only change strides; :class:`NotViewable` says where that is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeAlias

from xdsl.ir import Attribute

from ktir.backends.dataflow.lower.plan import ScalarBody, View


class NotViewable(Exception):
    """A reshape needs elements that are not equally far apart; the caller copies first."""


@dataclass(frozen=True)
class Splat:
    """``value`` (a float or integer attribute) everywhere."""

    value: Attribute
    shape: tuple[int, ...]
    element: Attribute


@dataclass(frozen=True)
class Undefined:
    """Nobody may depend on the elements."""

    shape: tuple[int, ...]
    element: Attribute


@dataclass(frozen=True)
class Pending:
    """``body`` applied to one element of each of ``inputs`` at a time; the inputs have ``shape``, broadcast by strides
    of zero. ``reads_index``: the body asks for its position in ``shape``."""

    shape: tuple[int, ...]
    element: Attribute
    inputs: tuple[View, ...]
    body: ScalarBody
    reads_index: bool = False


Tensor: TypeAlias = View | Splat | Undefined | Pending


def collapsed(view: View, groups: Sequence[Sequence[int]]) -> View:
    """The dimensions of each group as one; raises :class:`NotViewable` where they are not contiguous."""
    shape: list[int] = []
    strides: list[int] = []
    for group in groups:
        size, stride = _merge([(view.shape[dim], view.strides[dim]) for dim in group])
        shape.append(size)
        strides.append(stride)
    return view.shaped(shape, strides)


def _merge(dims: Sequence[tuple[int, int]]) -> tuple[int, int]:
    size = prod(extent for extent, _ in dims)
    real = [(extent, stride) for extent, stride in dims if extent != 1]
    if not real:
        return size, dims[-1][1] if dims else 0
    for (_, outer), (extent, inner) in pairwise(real):
        if outer != extent * inner:
            raise NotViewable
    return size, real[-1][1]


def expanded(view: View, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> View:
    """Each dimension as the group of dimensions of ``shape`` that takes its place."""
    strides = [0] * len(shape)
    for dim, group in enumerate(groups):
        stride = view.strides[dim]
        for position in reversed(group):
            strides[position] = stride
            stride *= shape[position]
    return view.shaped(shape, strides)


def transposed(view: View, permutation: Sequence[int]) -> View:
    """Dimension ``k`` of the result is dimension ``permutation[k]``."""
    return view.shaped([view.shape[d] for d in permutation], [view.strides[d] for d in permutation])


def broadcast(view: View, shape: Sequence[int], added: Sequence[int]) -> View:
    """The dimensions ``added`` of ``shape`` repeat the elements."""
    kept = iter(view.strides)
    return view.shaped(shape, [0 if dim in added else next(kept) for dim in range(len(shape))])


# ---------------------------------------------------------------------------------------------------------------- boxes


@dataclass(frozen=True)
class Box:
    """A loop nest over elements: ``counts`` and, for each of several operands, byte strides."""

    counts: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(*views: View) -> Box:
        """The elements of views of one shape."""
        return Box(views[0].shape, tuple(view.strides for view in views)).coalesced()

    def coalesced(self) -> Box:
        """The same elements in the same order with as few dimensions as possible, at least one."""
        dims = [
            (count, tuple(operand[position] for operand in self.strides))
            for position, count in enumerate(self.counts)
            if count != 1
        ]
        merged: list[tuple[int, tuple[int, ...]]] = []
        for count, strides in dims:
            if merged and all(outer == count * inner for outer, inner in zip(merged[-1][1], strides, strict=True)):
                merged[-1] = (merged[-1][0] * count, strides)
            else:
                merged.append((count, strides))
        if not merged:
            innermost = tuple(operand[-1] if operand else 0 for operand in self.strides)
            merged = [(1, innermost)]
        return Box(
            tuple(count for count, _ in merged),
            tuple(tuple(strides[operand] for _, strides in merged) for operand in range(len(self.strides))),
        )

    def ordered_by(self, operand: int) -> Box:
        """The same elements, visited in the order in which they lie in ``operand``."""
        order = sorted(range(len(self.counts)), key=lambda dim: -abs(self.strides[operand][dim]))
        return Box(
            tuple(self.counts[dim] for dim in order),
            tuple(tuple(strides[dim] for dim in order) for strides in self.strides),
        ).coalesced()
