"""Element types and their arithmetic: how a number is held, widened for computing and rounded back.

Words. *storage type*: the numpy type of one element in memory and in a tensor value. *wide type*: the type in which an
operation on it computes: f32 for the narrow floats, itself for all others. *uniform*: the same on every core. A uniform
integer scalar is a Python int (signed, wrapped to its width; i1 is 0 or 1); everything else is an array whose leading
axis runs over the cores, with extent 1 where the value is uniform.

Numbers (design section 6). Each operation on a narrow float computes in f32 and rounds once, to nearest even. Integers
wrap at their width, ``index`` has 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeGuard

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

from ktir.dialect.float8 import FLOAT8
from ktir.errors import UnknownOperation
from ktir.interp.casts import BFLOAT16, DL16, Array, cast

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
Ternary = Callable[[Any, Any, Any], Any]
Function = Callable[..., Any]
"""What an operation does to the values of its operands."""

Scalar = int | Array
"""An integer scalar: a Python int where it is uniform, else one per core."""

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
I64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)


@dataclass(frozen=True, slots=True)
class ElementType:
    """How elements of one IR type are held. ``bits`` is the width of the IR type, ``dtype`` the storage type."""

    name: str
    dtype: np.dtype[Any]
    kind: Literal["float", "int"]
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.dtype.itemsize

    @property
    def wide(self) -> np.dtype[Any]:
        """The type in which an operation computes."""
        return F32 if self.kind == "float" and self.dtype != F64 else self.dtype


FLOATS: MappingProxyType[str, ElementType] = MappingProxyType(
    {
        "f16": ElementType("f16", np.dtype(np.float16), "float", 16),
        "bf16": ElementType("bf16", BFLOAT16, "float", 16),
        "dl16": ElementType("dl16", DL16, "float", 16),
        "f32": ElementType("f32", F32, "float", 32),
        "f64": ElementType("f64", F64, "float", 64),
        **{name: ElementType(name, dtype, "float", 8) for name, dtype in FLOAT8.items()},
    }
)
INTEGER_DTYPES: MappingProxyType[int, np.dtype[Any]] = MappingProxyType(
    {1: BOOL, 8: np.dtype(np.int8), 16: np.dtype(np.int16), 32: np.dtype(np.int32), 64: I64}
)
INDEX = ElementType("index", I64, "int", 64)
BOOLEAN = ElementType("i1", BOOL, "int", 1)


@cache
def element_type(attribute: Attribute) -> ElementType:
    """How elements of the IR type ``attribute`` are held; raises :class:`UnknownOperation` for others."""
    match attribute:
        case Float16Type():
            return FLOATS["f16"]
        case BFloat16Type():
            return FLOATS["bf16"]
        case Float32Type():
            return FLOATS["f32"]
        case Float64Type():
            return FLOATS["f64"]
        case IndexType():
            return INDEX
        case IntegerType() if attribute.width.data in INTEGER_DTYPES:
            width = attribute.width.data
            return ElementType(f"i{width}", INTEGER_DTYPES[width], "int", width)
        case _:
            if (known := FLOATS.get(str(attribute).removeprefix("!ktdp."))) is not None:
                return known
            raise UnknownOperation(
                f"no values of type {attribute} can be computed with",
                remedy="use f64, f32, f16, bf16, an f8 type, an integer of 1, 8, 16, 32 or 64 bits, or index",
            )


def is_array(value: object) -> TypeGuard[Array]:
    """Whether ``value`` is an array rather than a uniform integer or something else."""
    return isinstance(value, np.ndarray)


def widen(values: Array) -> Array:
    """``values`` in the type in which operations on them compute; exact."""
    kind = values.dtype
    return values if kind in (F32, F64) or kind.kind in "ib" else cast(values, F32)


def narrow(values: Array, dtype: np.dtype[Any]) -> Array:
    """``values`` rounded once to ``dtype``, to nearest even."""
    if values.dtype == dtype:
        return values
    if values.dtype == F64 and dtype.itemsize < 4 and dtype != np.float16:
        return cast(round_to_odd(values), dtype)
    return cast(values, dtype)


def round_to_odd(values: Array) -> Array:
    """f64 to f32 such that a second rounding to a narrower type gives what one rounding would.

    Truncates towards zero and sets the last bit where anything was lost (Boldo and Melquiond 2008): two more bits than
    the narrower type are then enough.
    """
    nearest = values.astype(F32)
    back = nearest.astype(F64)
    bits = nearest.view(np.int32)
    away = np.abs(back) > np.abs(values)
    truncated = np.where(away & np.isfinite(values), bits - 1, bits)
    inexact = (back != values) & np.isfinite(values)
    return np.where(inexact, truncated | 1, truncated).astype(np.int32).view(F32)


def wrap(value: int, bits: int) -> int:
    """``value`` as a signed number of ``bits`` bits; one bit is 0 or 1."""
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return ((value + half) & ((half << 1) - 1)) - half


def unsigned(value: Scalar, bits: int) -> Any:
    """``value`` read without a sign: a Python int, or an array of the unsigned type."""
    if isinstance(value, int):
        return value & ((1 << bits) - 1)
    return value if value.dtype == BOOL else value.view(value.dtype.str.replace("i", "u"))


def as_array(value: Any, dtype: np.dtype[Any]) -> Array:
    """A scalar as an array with a leading core axis."""
    return value if is_array(value) else np.array([value], dtype)


def float_constant(value: float, kind: ElementType) -> Array:
    """A uniform float scalar, rounded once from the 64-bit number that the text denotes."""
    return narrow(np.array([value], F64), kind.dtype)


def as_scalar(values: Array) -> Any:
    """An integer scalar in its canonical form: a Python int where the array holds one value for one core."""
    return int(values[0]) if values.shape == (1,) else values
