"""Where the elements of many executions of one descriptor lie, and how to reach them with few strided arrays.

Words. *address table*: the byte address of a descriptor's first element, [cores, rows], a row being one execution.
*piece*: a part of the table that is a lattice, so that one strided array covers it together with the descriptor's box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir.affine import AffineBinaryOpKind

from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.expression import Expression, Linear, PerCore

Array = NDArray[Any]
Addresses = NDArray[np.int64]
Lattice = tuple[tuple[int, ...], tuple[int, ...]]
"""Counts and strides, outermost first, that enumerate a list of numbers from its first on."""


def table(expression: Expression, cores: Sequence[int], indices: Addresses) -> Addresses:
    """Values of ``expression``, [cores, rows] or broadcast to that, for loop indices [rows, depth]."""
    if isinstance(expression, Linear):
        found = _per_core(expression.constant, cores)
        for depth, factor in expression.terms:
            found = found + _per_core(factor, cores) * indices[None, :, depth]
        return found
    left, right = table(expression.left, cores, indices), table(expression.right, cores, indices)
    match expression.kind:
        case AffineBinaryOpKind.Add:
            return left + right
        case AffineBinaryOpKind.Mul:
            return left * right
        case AffineBinaryOpKind.FloorDiv:
            return left // right
        case AffineBinaryOpKind.Mod:
            return left % right
        case AffineBinaryOpKind.CeilDiv:
            return -(-left // right)


def _per_core(value: PerCore, cores: Sequence[int]) -> Addresses:
    if isinstance(value, int):
        return np.full((1, 1), value, np.int64)
    return np.array([value[core] for core in cores], np.int64)[:, None]


@dataclass(frozen=True, slots=True)
class Piece:
    """The array of ``shape`` and byte ``strides`` from byte ``start`` on covers cores and rows of a table."""

    cores: slice
    rows: slice
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """The elements of a batch: ``pieces`` of its address table, each with the box behind it.

    Where there is a single piece, its leading dimensions enumerate cores and rows, but perhaps in more than two.
    """

    pieces: tuple[Piece, ...]
    shape: tuple[int, ...]
    leading: int

    @classmethod
    def of(cls, addresses: Addresses, box: Box) -> Places:
        """The places of ``box`` at each of ``addresses`` [cores, rows]."""
        cores, rows = addresses.shape
        down, across = addresses[:, 0], addresses[0]
        separable = rows == 1 or cores == 1 or bool((addresses == down[:, None] + (across - across[0])).all())
        if separable:
            first, second = lattice(down), lattice(across)
            if first and second:
                return cls.lattice(int(addresses[0, 0]), first, second, box)
        pieces: list[Piece] = []
        bands = runs(down) if separable else [(core, 1, 0) for core in range(cores)]
        for core, height, step in bands:
            for row, width, stride in runs(addresses[core]):
                shape, strides = (height, width, *box.counts), (step, stride, *box.strides)
                start = int(addresses[core, row])
                pieces.append(Piece(slice(core, core + height), slice(row, row + width), start, shape, strides))
        return cls(tuple(pieces), (cores, rows, *box.counts), 2)

    @classmethod
    def lattice(cls, start: int, cores: Lattice, rows: Lattice, box: Box) -> Places:
        """The places of a lattice of cores and rows from byte ``start`` on."""
        shape, strides = (*cores[0], *rows[0], *box.counts), (*cores[1], *rows[1], *box.strides)
        whole = Piece(slice(None), slice(None), start, shape, strides)
        return cls((whole,), (prod(cores[0]), prod(rows[0]), *box.counts), len(cores[0]) + len(rows[0]))

    @classmethod
    def by_row(cls, addresses: Addresses, box: Box) -> Places:
        """As :meth:`of`, with pieces of a single row, in their order."""
        pieces: list[Piece] = []
        for row in range(addresses.shape[1]):
            for core, height, step in runs(addresses[:, row]):
                shape, strides = (height, 1, *box.counts), (step, 0, *box.strides)
                start = int(addresses[core, row])
                pieces.append(Piece(slice(core, core + height), slice(row, row + 1), start, shape, strides))
        return cls(tuple(pieces), (*addresses.shape, *box.counts), 2)

    def read(self, memory: Array, dtype: np.dtype[Any]) -> Array:
        """The elements, [cores, rows, *box]: a view of ``memory`` where that is possible."""
        if len(self.pieces) == 1:
            piece = self.pieces[0]
            return np.ndarray(piece.shape, dtype, memory.data, piece.start, piece.strides).reshape(self.shape)
        found = np.empty(self.shape, dtype)
        for piece in self.pieces:
            found[piece.cores, piece.rows] = np.ndarray(piece.shape, dtype, memory.data, piece.start, piece.strides)
        return found

    def write(self, memory: Array, dtype: np.dtype[Any], elements: Array) -> None:
        """Stores ``elements`` [cores, rows, *box or ones]."""
        box = elements.shape[2:]
        for piece in self.pieces:
            target = np.ndarray(piece.shape, dtype, memory.data, piece.start, piece.strides)
            target[...] = elements[piece.cores, piece.rows].reshape(*piece.shape[: self.leading], *box)

    def fill(self, memory: Array, width: int, value: int) -> None:
        """Sets every element to ``value``."""
        for piece in self.pieces:
            np.ndarray(piece.shape, np.dtype(f"u{width}"), memory.data, piece.start, piece.strides)[...] = value


def lattice(values: Addresses) -> Lattice | None:
    """Counts and strides that enumerate ``values``, if there are any."""
    if values.size == 1:
        return (1,), (0,)
    steps = values[1:] - values[:-1]
    other = np.flatnonzero(steps != steps[0])
    if not other.size:
        return (values.size,), (int(steps[0]),)
    inner = int(other[0]) + 1
    if values.size % inner:
        return None
    blocks = values.reshape(-1, inner)
    if inner == 1 or not bool((blocks - blocks[:, :1] == blocks[0] - blocks[0, 0]).all()):
        return None
    outer = lattice(blocks[:, 0])
    return None if outer is None else ((*outer[0], inner), (*outer[1], int(steps[0])))


def runs(values: Addresses) -> list[tuple[int, int, int]]:
    """First place, length and step of stretches with a constant step."""
    found: list[tuple[int, int, int]] = []
    place, count = 0, values.size
    steps = values[1:] - values[:-1]
    while place < count:
        if place == count - 1:
            found.append((place, 1, 0))
            break
        other = np.flatnonzero(steps[place:] != steps[place])
        length = int(other[0]) + 1 if other.size else count - place
        found.append((place, length, int(steps[place])))
        place += length
    return found


def distinct(shape: Sequence[int], strides: Sequence[int], width: int) -> bool:
    """Whether the elements of a strided array certainly share no bytes."""
    reach = width
    for stride, count in sorted(
        (abs(stride), count) for stride, count in zip(strides, shape, strict=True) if count > 1
    ):
        if stride < reach:
            return False
        reach += (count - 1) * stride
    return prod(shape) > 0


__all__ = ["Addresses", "Piece", "Places", "distinct", "lattice", "runs", "table"]
