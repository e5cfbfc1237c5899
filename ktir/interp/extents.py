"""Extents, offsets and strides that are known when a function is compiled, or only when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from ktir.errors import OutOfBounds, UnknownOperation
from ktir.interp.compile import FunctionCompiler, require_bytes
from ktir.interp.numerics import Array, ElementType
from ktir.interp.values import Frame, Site, demand

Mixed = tuple[tuple[int, int | None], ...]
"""Numbers, each known (value, None) or in a register (0, slot)."""

POISON = np.uint8(0xFF)


def mixed(compiler: FunctionCompiler, static: Sequence[int], dynamic: Sequence[SSAValue]) -> Mixed:
    """Numbers some of which are only known at run time, in one list."""
    pending = iter(dynamic)
    return tuple((0, compiler.slot(next(pending))) if number == DYNAMIC_INDEX else (number, None) for number in static)


def evaluate(numbers: Mixed, frame: Frame, site: Site) -> tuple[Any, ...]:
    """The numbers; one per core where they differ."""
    return tuple(value if slot is None else demand(frame.regs[slot], site) for value, slot in numbers)


def uniform(value: Any, site: Site, what: str) -> int:
    """``value`` where it is the same on all cores; raises where it is not."""
    if isinstance(value, int):
        return value
    if (value == value[0]).all():
        return int(value[0])
    raise site.fail(UnknownOperation, f"has {what} that differ between cores", "branch on the core first (scf.if)")


def extents_of(shape: Mixed, element: ElementType, frame: Frame, site: Site) -> tuple[int, ...]:
    """The extents of a tensor that is to be made; raises where there can be no such tensor."""
    extents = tuple(uniform(size, site, "extents") for size in evaluate(shape, frame, site))
    if any(size < 0 for size in extents):
        raise site.fail(OutOfBounds, f"makes a tensor of shape {list(extents)}", "give extents of zero or more")
    require_bytes(prod(extents) * element.itemsize, frame.run.max_bytes, site)
    return extents


def poison(shape: Sequence[int], element: ElementType) -> Array:
    """Elements that nobody wrote."""
    single = np.full(element.itemsize, POISON).view(element.dtype)
    return np.broadcast_to(single.reshape((1,) * (len(shape) + 1)), (1, *shape))
