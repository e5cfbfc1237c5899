"""Parts of tensors and buffers, given by offsets, sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from ktir.errors import OutOfBounds
from ktir.interp.compile import FunctionCompiler, shape_of
from ktir.interp.extents import Mixed, evaluate, mixed, uniform
from ktir.interp.linalg_ops import integers
from ktir.interp.numerics import Array
from ktir.interp.structured import position_in_space
from ktir.interp.values import Frame


class Slices:
    """Offsets, sizes and strides of a slice, and where the elements are."""

    def __init__(self, compiler: FunctionCompiler, op: Operation, source: SSAValue) -> None:
        dynamic = list(op.operands)[len(op.operands) - self._dynamic(op) :]
        self.site = compiler.site(op)
        self.parts: list[Mixed] = []
        for name in ("static_offsets", "static_sizes", "static_strides"):
            static = integers(op, name)
            count = sum(number == DYNAMIC_INDEX for number in static)
            self.parts.append(mixed(compiler, static, dynamic[:count]))
            dynamic = dynamic[count:]
        self.rank = len(shape_of(source.type))

    @staticmethod
    def _dynamic(op: Operation) -> int:
        names = ("static_offsets", "static_sizes", "static_strides")
        return sum(number == DYNAMIC_INDEX for name in names for number in integers(op, name))

    def index(self, frame: Frame, shape: Sequence[int]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """An index into an array of ``shape`` with a leading core axis, and the extents of the slice."""
        offsets, sizes, strides = (evaluate(part, frame, self.site) for part in self.parts)
        extents = tuple(uniform(size, self.site, "slice sizes") for size in sizes)
        steps = tuple(uniform(stride, self.site, "slice strides") for stride in strides)
        for axis, (offset, extent, step) in enumerate(zip(offsets, extents, steps, strict=True)):
            self._require(axis, offset, extent, step, shape[axis])
        if all(isinstance(offset, int) for offset in offsets):
            index = tuple(
                slice(offset, offset + (extent - 1) * step + 1 if extent else offset, step)
                for offset, extent, step in zip(offsets, extents, steps, strict=True)
            )
            return (slice(None), *index), extents
        rank = len(extents)
        rows = np.arange(frame.n).reshape(-1, *(1,) * rank)
        places = tuple(
            np.reshape(offset, (-1, *(1,) * rank)) + position_in_space(axis, extents) * step
            for axis, (offset, step) in enumerate(zip(offsets, steps, strict=True))
        )
        return (rows, *places), extents

    def _require(self, axis: int, offset: Any, extent: int, step: int, size: int) -> None:
        low = offset if isinstance(offset, int) else int(offset.min())
        high = (offset if isinstance(offset, int) else int(offset.max())) + (extent - 1) * step
        if extent and (low < 0 or high >= size or step <= 0):
            raise self.site.fail(
                OutOfBounds,
                f"takes elements {low} to {high} of dimension {axis}, whose extent is {size}",
                "keep the slice inside the tensor",
            )


def reduced_shape(static: Sequence[int], extents: Sequence[int]) -> tuple[int, ...]:
    """The shape of a slice, unit dimensions dropped where the type drops them."""
    if len(static) == len(extents):
        return tuple(extents)
    if all(size >= 0 for size in static):
        return tuple(static)
    return tuple(extent for extent in extents if extent != 1)[: len(static)]


def leading(array: Array, index: tuple[Any, ...]) -> Array:
    """``array`` with one row per core where the index needs it."""
    rows = index[0]
    if isinstance(rows, slice) or len(array) == len(rows):
        return array
    return np.broadcast_to(array, (len(rows), *array.shape[1:]))
