"""Conversions between f32 and f16 that are exact and, for long arrays, several times faster than numpy's own.

To f32: a table of all 65536 numbers. To f16: round to nearest even on the bits, as numpy does. Adding just under half
of the last place that stays, or half if the last bit is odd, and cutting the rest is right for numbers of the normal
range; subnormal ones are rounded by the addition of 0.5, whose last place is that of the smallest f16. Each of the two
gives more than the other where it does not apply, so that the lesser is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SINGLE: Final = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
_SIGN: Final = np.uint32(0x80000000)
_SUBNORMAL: Final = np.uint32((127 - 14) << 23)
"""The first magnitude that is a normal number in f16, as bits of f32."""
_TOO_LARGE: Final = np.uint32(0x47800000)
"""65536; what is between the largest f16 and this is decided by rounding."""
_HALF: Final = np.float32(0.5)
_INFINITY: Final = np.uint32(0x7F800000)
"""In bits; the exponent of any number is among them."""
_LARGE: Final = np.uint32(142 << 23)
"""32768: from here on rounding may lead beyond the largest f16."""
_AND_A_HALF: Final = np.uint32((13 << 23) + (1 << 22))
"""Makes 1.5 * 2^(n + 13) of 2^n, in bits: a sum with it has the last place of an f16 near 2^n, for either sign."""
_TO_FIRST_NORMAL: Final = np.uint32((0xFFF - (113 << 23)) & 0xFFFFFFFF)
"""Almost half of the last place that stays, less the first normal number; what is below that wraps around."""
_DROPPED: Final = np.uint32(13)
"""Bits of an f32 that f16 lacks."""
_BLOCK: Final = 1 << 15
"""Elements that are converted at a time."""
_FEW: Final = 1 << 9
"""Below so many elements numpy's conversion is faster."""


def to_single(halves: Array) -> Array:
    """f16 as f32."""
    if halves.size < _FEW:
        return halves.astype(np.float32)
    return _SINGLE.take(halves.view(np.uint16), mode="clip")


def to_half(singles: Array) -> Array:
    """f32 as f16, rounded to nearest even; magnitudes from 65520 on are infinite."""
    if singles.size < _FEW:
        return singles.astype(np.float16)
    return _in_blocks(_to_half, singles, np.dtype(np.float16))


def rounded_to_half(singles: Array) -> Array:
    """f32 rounded to the nearest f16, as f32."""
    if singles.size < _FEW:
        return singles.astype(np.float16).astype(np.float32)
    return _in_blocks(_rounded_to_half, singles, np.dtype(np.float32))


def _in_blocks(function: Callable[[Array], Array], singles: Array, dtype: np.dtype[Any]) -> Array:
    """``function`` of blocks whose intermediate arrays stay in the cache."""
    if singles.size <= _BLOCK:
        return function(singles)
    flat, found = singles.reshape(-1), np.empty(singles.size, dtype)
    for start in range(0, flat.size, _BLOCK):
        found[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return found.reshape(singles.shape)


def _to_half(singles: Array) -> Array:
    bits = singles.view(np.uint32)
    magnitude = bits & ~_SIGN
    most = magnitude.max()
    if most > _INFINITY:  # NaN: numpy says which one
        return singles.astype(np.float16)
    rounded = magnitude >> _DROPPED
    rounded &= np.uint32(1)
    rounded += magnitude
    rounded += _TO_FIRST_NORMAL
    rounded >>= _DROPPED
    rounded += np.uint32(0x400)
    if most >= _TOO_LARGE:
        np.minimum(rounded, np.uint32(0x7C00), out=rounded)
    lifted = (magnitude.view(np.float32) + _HALF).view(np.uint32)
    lifted -= _HALF.view(np.uint32)
    np.minimum(rounded, lifted, out=rounded)
    sign = bits >> np.uint32(16)
    sign &= np.uint32(0x8000)
    rounded |= sign
    return rounded.astype(np.uint16).view(np.float16)


def _rounded_to_half(singles: Array) -> Array:
    """Adds a power of two 2^13 times as large, and takes it off again."""
    power = singles.view(np.uint32) & _INFINITY
    if power.max() >= _LARGE:
        return to_single(to_half(singles))
    np.maximum(power, _SUBNORMAL, out=power)
    power += _AND_A_HALF
    found = singles + power.view(np.float32)
    found -= power.view(np.float32)
    return np.copysign(found, singles, out=found)
