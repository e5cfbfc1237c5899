"""Arithmetic on f16 and bf16 in one pass over the elements.

What an operation on narrow floats means is: widen both operands to f32, compute, round once. torch does these three
for a few elements at a time, so that no array of f32 is ever written: four times faster than three passes. Its results
have the same bits, but for those of a NaN; where a NaN comes out the operation is done again in three passes. So the
bits of a result depend neither on the number of elements nor on whether torch is there (see casts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ktir.interp.casts import BFLOAT16, F16, WORTH_A_CALL, loaded, shared
from ktir.interp.numerics import Array, Function, narrow, widen
from ktir.interp.threads import shared_if_worth

ONE_PASS: Mapping[Callable[..., Any], str] = MappingProxyType(
    {
        np.add: "add",
        np.subtract: "sub",
        np.multiply: "mul",
        np.divide: "div",
    }
)
"""The functions that torch has in one pass, by what it calls them."""
INFINITY: Mapping[np.dtype[Any], int] = MappingProxyType({F16: 0x7C00, BFLOAT16: 0x7F80})
"""The bits of plus infinity: those of a NaN are greater, with or without a sign."""
SIGN = 0x8000


def rounding(function: Function, dtype: np.dtype[Any]) -> Function:
    """``function`` on elements of a narrow type: computed in f32, rounded once."""

    def in_three_passes(*values: Array) -> Array:
        wide = [widen(value) for value in values]
        shape = np.broadcast_shapes(*(value.shape for value in wide))
        copies = [copy for copy, value in zip(wide, values, strict=True) if copy is not value]
        scratch = [copy for copy in copies if copy.shape == shape and copy.flags.owndata]
        if scratch and isinstance(function, np.ufunc):
            return narrow(function(*wide, out=scratch[0]), dtype)
        return narrow(function(*wide), dtype)

    name = ONE_PASS.get(function)
    if name is None or dtype not in INFINITY:
        return in_three_passes

    def in_one_pass(a: Array, b: Array) -> Array:
        shape = np.broadcast_shapes(a.shape, b.shape)
        result = np.empty(shape, dtype)
        if result.size < WORTH_A_CALL or (torch := loaded(result.size)) is None:
            return in_three_passes(a, b)
        left, right, target = (shared(torch, each) for each in (a, b, result))
        shared_if_worth(torch, result.size, lambda: getattr(torch, name)(left, right, out=target))
        return in_three_passes(a, b) if has_nan(result) else result

    return in_one_pass


def has_nan(values: Array) -> bool:
    """Whether one of some narrow floats is a NaN; by their bits, which is faster than by their values."""
    infinity = INFINITY[values.dtype]
    return bool(values.view(np.int16).max() > infinity or values.view(np.uint16).max() > infinity + SIGN)


__all__ = ["has_nan", "rounding"]
