"""Conversions between f32 and f16 that are exact and, for long arrays, several times faster than numpy's own.

Where the process has torch, its conversions are used, which take one instruction for eight elements; they differ in the
bits of NaN only, so that numpy says what a NaN is. What follows is for processes without it.

To f32: a table of all 65536 numbers. To f16: round to nearest even on the bits, as numpy does. Adding just under half
of the last place that stays, or half if the last bit is odd, and cutting the rest is right for numbers of the normal
range; subnormal ones are rounded by the addition of 0.5, whose last place is that of the smallest f16. Each of the two
gives more than the other where it does not apply, so that the lesser is right.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SINGLE: Final = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
_SIGN, _MAGNITUDE, _LAST = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(1)
_INFINITY: Final = np.uint32(0x7F800000)
"""In bits; those of any exponent are among them."""
_SUBNORMAL: Final = np.uint32((127 - 14) << 23)
"""The first magnitude that is a normal number in f16, as bits of f32."""
_TOO_LARGE: Final = np.uint32(0x47800000)
"""65536; what is between the largest f16 and this is decided by rounding."""
_LARGE: Final = np.uint32(142 << 23)
"""32768: from here on rounding may lead beyond the largest f16."""
_HALF: Final = np.float32(0.5)
_AND_A_HALF: Final = np.uint32((13 << 23) + (1 << 22))
"""Makes 1.5 * 2^(n + 13) of 2^n, in bits: a sum with it has the last place of an f16 near 2^n, for either sign."""
_LESS_EXPONENT: Final = np.uint32((0xFFF - (112 << 23)) & 0xFFFFFFFF)
"""Almost half of the last place that stays, less what exponents of f32 are larger by."""
_LESS_FIRST_NORMAL: Final = np.uint32((0xFFF - (113 << 23)) & 0xFFFFFFFF)
"""The same, less the first normal number; what is below that wraps around."""
_FIRST_NORMAL, _HALF_INFINITY, _HALF_SIGN = np.uint32(0x400), np.uint32(0x7C00), np.uint32(0x8000)
"""Bits of f16."""
_DROPPED, _UPPER = np.uint32(13), np.uint32(16)
"""Bits of an f32 that f16 lacks; how far apart the signs are."""
_BLOCK: Final = 1 << 14
"""Elements that are converted at a time."""
_FEW: Final = 1 << 9
"""Below so many elements numpy's conversion is faster."""
_WORTH_A_CALL: Final = 1 << 11
"""Below so many elements a call of torch costs more than it saves."""
_OF_A_THREAD: Final = 1 << 15
"""Elements up to which torch starts no threads; waiting for them can take longer than the work."""


def to_single(halves: Array) -> Array:
    """f16 as f32."""
    if halves.size < _FEW:
        return halves.astype(np.float32)
    torch = _torch(halves)
    if torch is not None:
        found = _by_torch(torch, halves, np.dtype(np.float32))
        if not np.isnan(found.max()):
            return found
    return _SINGLE.take(halves.view(np.uint16), mode="clip")


def to_half(singles: Array) -> Array:
    """f32 as f16, rounded to nearest even; magnitudes from 65520 on are infinite."""
    if singles.size < _FEW:
        return singles.astype(np.float16)
    torch = _torch(singles)
    if torch is not None and not np.isnan(singles.max()):
        return _by_torch(torch, singles, np.dtype(np.float16))
    return _in_blocks(_to_half, singles, np.dtype(np.float16))


def rounded_to_half(singles: Array) -> Array:
    """f32 rounded to the nearest f16, as f32."""
    if singles.size < _FEW:
        return singles.astype(np.float16).astype(np.float32)
    torch = _torch(singles)
    if torch is not None and not np.isnan(singles.max()):
        return _by_torch(torch, _by_torch(torch, singles, np.dtype(np.float16)), np.dtype(np.float32))
    return _in_blocks(_round, singles, np.dtype(np.float32))


def _torch(values: Array) -> Any | None:
    """torch, if the process has it and it is worth a call."""
    torch = sys.modules.get("torch") if values.size >= _WORTH_A_CALL else None
    return torch if torch is not None and hasattr(torch, "from_numpy") else None


def _by_torch(torch: Any, values: Array, dtype: np.dtype[Any]) -> Array:
    flat, found = np.ascontiguousarray(values).reshape(-1), np.empty(values.size, dtype)
    if not flat.flags.writeable:  # torch shares only what it may write to
        flat = flat.copy()
    source, target = torch.from_numpy(flat), torch.from_numpy(found)
    step = flat.size if torch.get_num_threads() == 1 else _OF_A_THREAD
    for start in range(0, flat.size, step):
        stop = start + step
        target[start:stop].copy_(source[start:stop])
    return found.reshape(values.shape)


def _in_blocks(store: Callable[[Array, Array, Array, Array], None], singles: Array, dtype: np.dtype[Any]) -> Array:
    """Lets ``store`` convert blocks whose intermediate arrays, two of bits, stay in the cache."""
    flat, found = np.ascontiguousarray(singles).reshape(-1), np.empty(singles.size, dtype)
    first, second = np.empty((2, min(_BLOCK, flat.size)), np.uint32)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        store(block, found[start : start + _BLOCK], first[: block.size], second[: block.size])
    return found.reshape(singles.shape)


def _to_half(singles: Array, halves: Array, magnitude: Array, rounded: Array) -> None:
    bits = singles.view(np.uint32)
    np.bitwise_and(bits, _MAGNITUDE, out=magnitude)
    most, least = magnitude.max(), magnitude.min()
    if most > _INFINITY:  # NaN: numpy says which one
        halves[...] = singles.astype(np.float16)
        return
    np.right_shift(magnitude, _DROPPED, out=rounded)
    rounded &= _LAST
    rounded += magnitude
    if least >= _SUBNORMAL:
        rounded += _LESS_EXPONENT
        rounded >>= _DROPPED
    else:
        rounded += _LESS_FIRST_NORMAL
        rounded >>= _DROPPED
        rounded += _FIRST_NORMAL
        lifted = magnitude.view(np.float32)
        lifted += _HALF
        magnitude -= _HALF.view(np.uint32)
        np.minimum(rounded, magnitude, out=rounded)
    if most >= _TOO_LARGE:
        np.minimum(rounded, _HALF_INFINITY, out=rounded)
    np.right_shift(bits, _UPPER, out=magnitude)
    magnitude &= _HALF_SIGN
    rounded |= magnitude
    halves.view(np.uint16)[...] = rounded


def _round(singles: Array, found: Array, power: Array, _: Array) -> None:
    """Adds a power of two 2^13 times as large, and takes it off again."""
    np.bitwise_and(singles.view(np.uint32), _INFINITY, out=power)
    if power.max() >= _LARGE:
        found[...] = to_single(to_half(singles))
        return
    np.maximum(power, _SUBNORMAL, out=power)
    power += _AND_A_HALF
    np.add(singles, power.view(np.float32), out=found)
    found -= power.view(np.float32)
    np.bitwise_and(singles.view(np.uint32), _SIGN, out=power)  # zeros have lost it
    bits = found.view(np.uint32)
    bits |= power
