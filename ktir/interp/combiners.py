"""Operations that join two numbers into one, element by element or along axes of an array.

numpy leaves open which zero is larger, and starts a sum at +0.0. IEEE 754-2019, and with it MLIR, orders -0.0 below
+0.0 in ``maximumf`` and ``minimumf``, and a sum of negative zeros is one. ``maxnumf`` and ``minnumf`` may give either;
here they order zeros like the others, so that no strategy changes a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, cast

import numpy as np

from ktir.interp.numerics import Array

Axes = tuple[int, ...]


class Combiner(Protocol):
    """An associative operation on numbers in their wide type."""

    def __call__(self, a: Any, b: Any, /) -> Any:
        """Element by element."""
        ...

    def reduce(self, values: Array, axes: Axes) -> Array:
        """Along ``axes``, none of which is empty; they stay with extent 1."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """What a function of numpy means already."""

    function: np.ufunc

    def __call__(self, a: Any, b: Any) -> Any:
        return self.function(a, b)

    def reduce(self, values: Array, axes: Axes) -> Array:
        return self.function.reduce(values, axis=axes, keepdims=True)


@dataclass(frozen=True, slots=True)
class Sum:
    """Addition of floats."""

    def __call__(self, a: Any, b: Any) -> Any:
        return np.add(a, b)

    def reduce(self, values: Array, axes: Axes) -> Array:
        return np.add.reduce(values, axis=axes, keepdims=True, initial=-0.0)


@dataclass(frozen=True, slots=True)
class Largest:
    """The larger of two floats, by ``function``, where +0.0 is larger than -0.0."""

    function: np.ufunc

    def __call__(self, a: Any, b: Any) -> Any:
        found = self.function(a, b)
        zeros = both_zero(a, b)
        return found if zeros is None else cast(Array, np.where(zeros, a + b, found))

    def reduce(self, values: Array, axes: Axes) -> Array:
        found = self.function.reduce(values, axis=axes, keepdims=True)
        if not (found == 0).any():
            return found
        positive = ((values == 0) & ~np.signbit(values)).any(axis=axes, keepdims=True)
        return np.where(found == 0, np.where(positive, 0.0, -0.0).astype(found.dtype), found)


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smaller of two floats, by ``function``, where -0.0 is smaller than +0.0."""

    function: np.ufunc

    def __call__(self, a: Any, b: Any) -> Any:
        found = self.function(a, b)
        zeros = both_zero(a, b)
        return found if zeros is None else cast(Array, np.where(zeros, -(-a - b), found))

    def reduce(self, values: Array, axes: Axes) -> Array:
        found = self.function.reduce(values, axis=axes, keepdims=True)
        if not (found == 0).any():
            return found
        negative = ((values == 0) & np.signbit(values)).any(axis=axes, keepdims=True)
        return np.where(found == 0, np.where(negative, -0.0, 0.0).astype(found.dtype), found)


def both_zero(a: Array, b: Array) -> Array | None:
    """Where both numbers are zero; None where that is nowhere. Looks at the smaller array first."""
    small, large = (a, b) if a.size <= b.size else (b, a)
    zeros = small == 0
    if not zeros.any():
        return None
    zeros = zeros & (large == 0)
    return zeros if zeros.any() else None


MAXIMUM, MINIMUM = Largest(np.maximum), Smallest(np.minimum)
MAXNUM, MINNUM = Largest(np.fmax), Smallest(np.fmin)

COMBINERS: Mapping[str, Combiner] = MappingProxyType(
    {
        "arith.addf": Sum(),
        "arith.mulf": Plain(np.multiply),
        "arith.maximumf": MAXIMUM,
        "arith.minimumf": MINIMUM,
        "arith.maxnumf": MAXNUM,
        "arith.minnumf": MINNUM,
        "arith.addi": Plain(np.add),
        "arith.muli": Plain(np.multiply),
        "arith.maxsi": Plain(np.maximum),
        "arith.minsi": Plain(np.minimum),
        "arith.andi": Plain(np.bitwise_and),
        "arith.ori": Plain(np.bitwise_or),
        "arith.xori": Plain(np.bitwise_xor),
    }
)
"""By the name of the operation."""

BIT_COMBINERS: Mapping[str, Combiner] = MappingProxyType(
    {
        "arith.addi": Plain(np.logical_xor),
        "arith.muli": Plain(np.logical_and),
        "arith.maxsi": Plain(np.logical_and),
        "arith.minsi": Plain(np.logical_or),
        "arith.andi": Plain(np.logical_and),
        "arith.ori": Plain(np.logical_or),
        "arith.xori": Plain(np.logical_xor),
    }
)
"""The same on i1, whose 1 is the number -1 where the order is signed."""
