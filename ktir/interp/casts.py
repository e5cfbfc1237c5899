"""Conversions between float types, the most frequent work of a run on narrow floats.

numpy converts f16 and bf16 one element at a time, 2 to 3 ns each; torch's conversions are vectorised, 0.1 to 0.2 ns.
They round alike, to nearest even, and differ only in the bits of a NaN, so arrays that hold one are left to numpy: the
bits of a result never depend on whether torch is there.

torch is used where the process has it loaded already. Where it is only installed, it is loaded once the conversions of
this process have taken about as long as loading it takes, so that a short run never waits for it.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ktir.interp.threads import shared_if_worth

Array = NDArray[Any]

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DL16 = np.dtype([("dl16", np.uint16)])
"""Elements in DL16 (see dl16.py); a type that numpy computes nothing with, so that none is taken for a number."""
WORTH_A_CALL = 2048
"""Elements below which a call of torch costs more than it saves."""
WORTH_AN_IMPORT = 600_000_000
"""Elements that numpy converts in about the time that loading torch takes."""


def cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """``values`` as ``dtype``, each rounded once; an array that repeats its elements stays one that does."""
    if dtype == DL16:
        return to_dl16(values)
    if values.dtype == DL16:
        return cast(from_dl16(values), dtype)
    if values.size < WORTH_A_CALL or (values.dtype, dtype) not in PAIRS:
        return values.astype(dtype)
    if 0 in values.strides and (core := distinct(values)).size < values.size:
        return np.broadcast_to(cast(core, dtype), values.shape)
    torch = loaded(values.size)
    return values.astype(dtype) if torch is None else _by_torch(torch, values, dtype)


REBIAS = 127 - 31
LOST_BITS = 23 - 9
NO_NUMBER = 0x7FFF
"""The one pattern of DL16 that is no number, without its sign."""
LEAST = 2.0**-31 * (1 + 2.0**-9)
"""The smallest number of DL16 above zero."""


def to_dl16(values: Array) -> Array:
    """Floats as DL16, those of more than 24 bits by way of f32 rounded to odd."""
    single = values if values.dtype == F32 else values.astype(F32)
    magnitude = np.abs(single)
    rounded = (magnitude.view(np.int32) + (1 << LOST_BITS - 1)) >> LOST_BITS
    patterns = np.clip(rounded - (REBIAS << 9), 0, NO_NUMBER)
    patterns = np.where(patterns < 1, magnitude >= np.float32(LEAST / 2), patterns)
    patterns = np.where(np.isfinite(single), patterns, NO_NUMBER)
    return (patterns | np.signbit(single).astype(np.int32) << 15).astype(np.uint16).view(DL16)


def from_dl16(values: Array) -> Array:
    """DL16 as f32; exact."""
    patterns = np.ascontiguousarray(values).view(np.uint16).astype(np.int32)
    magnitude = patterns & NO_NUMBER
    bits = np.where(magnitude == 0, 0, (magnitude + (REBIAS << 9)) << LOST_BITS)
    numbers = np.where(magnitude == NO_NUMBER, np.float32(np.nan), bits.view(F32))
    return np.where(patterns >> 15 == 1, -numbers, numbers)


PAIRS = frozenset({(F16, F32), (F32, F16), (BFLOAT16, F32), (F32, BFLOAT16)})


def distinct(values: Array) -> Array:
    """One of each run of repeated elements."""
    return values[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in values.strides)]


def _by_torch(torch: Any, values: Array, dtype: np.dtype[Any]) -> Array:
    result = np.empty_like(values, dtype)
    source, target = shared(torch, values), shared(torch, result)
    shared_if_worth(torch, result.size, lambda: target.copy_(source))
    single = values if values.dtype == F32 else result
    return values.astype(dtype) if np.isnan(single.max()) else result


def shared(torch: Any, values: Array) -> Any:
    """The same memory as a tensor; a copy of the distinct elements where torch shares none: of memory that is
    read-only, as that of constants and of repeated elements is, or that runs backwards."""
    if not values.flags.writeable or min(values.strides) < 0:
        return shared(torch, distinct(values).copy()).expand(values.shape)
    if values.dtype == BFLOAT16:
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


class _Converted:
    """How many elements this process has converted without torch."""

    def __init__(self) -> None:
        self.elements = 0


@cache
def _converted() -> _Converted:
    return _Converted()


@cache
def _installed() -> bool:
    return find_spec("torch") is not None


def loaded(elements: int) -> Any | None:
    """torch, if it is there or worth loading for so many more elements; else None."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "from_numpy"):
        return torch
    count = _converted()
    count.elements += elements
    if count.elements < WORTH_AN_IMPORT or not _installed():
        return None
    try:
        return import_module("torch")
    except (ImportError, OSError):  # an installation that does not work
        return None
