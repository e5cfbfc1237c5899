"""Element types of the functional simulator: how elements lie in memory, and in what form arithmetic works on them.

Words. *raw*: elements as they lie in memory and travel in queues. *working form*: what an operation computes in; f32
for narrow floats. *narrow*: a float of 16 or 8 bits, to which each result is rounded once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.dl16 import NAME, from_dl16, to_dl16
from ktir.backends.dataflow.half_precision import rounded_to_half, to_half, to_single
from ktir.dialect.float8 import FLOAT8
from ktir.errors import NotCapable

Array = NDArray[Any]

RAW: Final = MappingProxyType(
    {
        "f16": np.dtype(np.float16),
        "bf16": np.dtype(ml_dtypes.bfloat16),
        NAME: np.dtype(np.uint16),
        **FLOAT8,
        "f32": np.dtype(np.float32),
        "f64": np.dtype(np.float64),
        "i1": np.dtype(np.uint8),
        "i8": np.dtype(np.int8),
        "i16": np.dtype(np.int16),
        "i32": np.dtype(np.int32),
        "i64": np.dtype(np.int64),
        "index": np.dtype(np.int64),
    }
)
"""How elements lie in memory and travel in queues; those of DL16 are patterns."""

NARROW: Final = frozenset({"f16", "bf16", NAME, *FLOAT8})
FLOATS: Final = NARROW | {"f32", "f64"}
WORKING: Final = MappingProxyType(
    {**dict.fromkeys(NARROW, np.float32), "f32": np.float32, "f64": np.float64, "i1": np.bool_}
)
"""The working form, where it is another than the raw one."""
_SINGLES: Final = {name: np.arange(256, dtype=np.uint8).view(RAW[name]).astype(np.float32) for name in FLOAT8}
"""All numbers of eight bits."""


def raw_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of raw elements; :class:`NotCapable` where the simulator has none."""
    if name not in RAW:
        raise NotCapable(
            f"the simulator has no element type {name}",
            remedy=f"convert to one of {', '.join(RAW)}, or simulate time only",
        )
    return RAW[name]


def working(raw: Array, name: str) -> Array:
    """Raw elements in the form the arithmetic works on; exact."""
    if name == "f16":
        return to_single(raw)
    if name == NAME:
        return from_dl16(raw)
    if name in _SINGLES:
        return _SINGLES[name].take(raw.view(np.uint8))
    return raw.astype(WORKING[name]) if name in WORKING else raw


def to_raw(values: Array, name: str) -> Array:
    """Working values as they lie in memory: the one rounding of narrow floats, to nearest even."""
    if name == NAME:
        return to_dl16(values)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return to_half(values) if name == "f16" and values.dtype == np.float32 else values.astype(RAW[name])


def rounded(values: Array, name: str) -> Array:
    """Working values, f32 or what is as good, rounded to the narrow float ``name``, in working form."""
    if name == "f16" and values.dtype == np.float32:
        return rounded_to_half(values)
    return working(to_raw(values, name), name)


def before_narrow(values: Array) -> Array:
    """f64 or integers as f32 such that rounding them on to a narrow float gives what rounding once would.

    Where f32 does not hold a number, the neighbour with an odd last bit is taken: it is never halfway between two
    numbers of a narrow float.
    """
    wide = values.astype(np.float64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        low = values & values.dtype.type(0xFFF)
        tail: Array = (low != 0).astype(values.dtype) << values.dtype.type(12)
        wide = np.where(np.abs(wide) < 2.0**53, wide, ((values - low) | tail).astype(np.float64))
    single = wide.astype(np.float32)
    even = single.view(np.int32) & 1 == 0
    beyond = np.where(wide > single, np.float32(np.inf), np.float32(-np.inf))
    inexact = (single != wide) & np.isfinite(wide) & np.isfinite(single)
    return np.where(inexact & even, np.nextafter(single, beyond), single)
