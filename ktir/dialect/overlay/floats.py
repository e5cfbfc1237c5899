"""The bits of floats, as LLVM's ``APFloat`` keeps them.

The stock types store a value as a Python float and lose, on the way there and back, sign and payload of a NaN, and in
``f16`` and ``f32`` numbers too large for them, which are infinite. Here a NaN is a NaN of a Python float with the
same sign and the payload in its highest bits. Values of ``f80`` and ``f128``, which Python cannot hold, are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import copysign, inf, isfinite
from operator import ne
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float80Type,
    Float128Type,
    FloatNanEncoding,
    FloatNonfiniteBehavior,
    ReducedPrecisionFloatType,
)
from xdsl.utils.exceptions import VerifyException

PYTHON_MANTISSA, PYTHON_EXPONENT = 52, 0x7FF << 52
"""Bits of the mantissa of a Python float, and its exponent where it is not finite."""


@dataclass(frozen=True)
class Nans:
    """The NaNs of a format whose exponent is all ones for them: how many bits exponent and mantissa have."""

    exponent_bits: int
    mantissa_bits: int
    has_one_payload: bool = False

    def bits(self, value: float) -> int:
        """The bits that stand for the NaN ``value``."""
        python = int.from_bytes(struct.pack("<d", value), "little")
        ones = (1 << self.mantissa_bits) - 1
        payload = ones if self.has_one_payload else python >> (PYTHON_MANTISSA - self.mantissa_bits) & ones
        exponent = (python >> 63 << self.exponent_bits) | ((1 << self.exponent_bits) - 1)
        return exponent << self.mantissa_bits | (payload or 1 << (self.mantissa_bits - 1))

    def value(self, bits: int) -> float:
        """The Python float that stands for the NaN ``bits``."""
        sign = bits >> (self.exponent_bits + self.mantissa_bits)
        payload = bits & ((1 << self.mantissa_bits) - 1)
        python = sign << 63 | PYTHON_EXPONENT | payload << (PYTHON_MANTISSA - self.mantissa_bits)
        return struct.unpack("<d", python.to_bytes(8, "little"))[0]


def repair_packing(kind: type[Any], nans: Nans) -> None:
    """Lets the type ``kind`` pack every Python float, and keep the bits of each NaN."""
    stock_pack, stock_unpack = kind.pack, kind.unpack
    size = (1 + nans.exponent_bits + nans.mantissa_bits) // 8

    def pack_one(type: Any, value: float) -> bytes:
        if value != value:
            return nans.bits(value).to_bytes(size, "little")
        try:
            return stock_pack(type, (value,))
        except OverflowError:
            return stock_pack(type, (copysign(inf, value),))

    def pack(type: Any, values: Sequence[float]) -> bytes:
        if not any(map(ne, values, values)):
            try:
                return stock_pack(type, values)
            except OverflowError:
                pass
        return b"".join(pack_one(type, value) for value in values)

    def pack_into(type: Any, buffer: Any, offset: int, value: float) -> None:
        memoryview(buffer)[offset : offset + size] = pack_one(type, value)

    def unpack(type: Any, buffer: Any, num: int) -> tuple[float, ...]:
        values = stock_unpack(type, buffer, num)
        if not any(map(ne, values, values)):
            return values
        parts = (buffer[at : at + size] for at in range(0, num * size, size))
        return tuple(
            value if value == value else nans.value(int.from_bytes(part, "little"))
            for value, part in zip(values, parts, strict=True)
        )

    def iter_unpack(type: Any, buffer: Any) -> Iterator[float]:
        return iter(unpack(type, buffer, len(memoryview(buffer)) // size))

    kind.pack, kind.pack_into, kind.unpack, kind.iter_unpack = pack, pack_into, unpack, iter_unpack


def repair_reduced_precision(kind: type[Any]) -> None:
    """Keeps the bits of each NaN of the small formats."""
    stock_encode, stock_decode = kind.encode_bits, kind.decode_bits

    def nans_of(type: Any) -> Nans | None:
        """None for a format with one NaN at most, or without sign."""
        semantics = type.SEMANTICS
        if semantics.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO or not semantics.has_sign:
            return None
        has_one = semantics.nan_encoding is FloatNanEncoding.ALL_ONES
        return Nans(semantics.exponent_bits, semantics.mantissa_bits, has_one)

    def encode_bits(type: Any, value: float) -> int:
        if type.SEMANTICS.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY and not isfinite(value):
            raise VerifyException(f"{type.name} has no infinity and no NaN")
        bits = stock_encode(type, value)
        is_nan = stock_decode(type, bits) != stock_decode(type, bits)
        nans = nans_of(type) if value != value and is_nan else None
        return bits if nans is None else nans.bits(value)

    def decode_bits(type: Any, bits: int) -> float:
        value = stock_decode(type, bits)
        nans = nans_of(type) if value != value else None
        return value if nans is None else nans.value(bits)

    kind.encode_bits, kind.decode_bits = encode_bits, decode_bits


def refuse_values(kind: type[Any]) -> None:
    """Makes every value of the type ``kind`` an error."""

    def refuse(type: Any, *_: Any) -> Any:
        raise VerifyException(f"values of type {type.name} are not supported")

    kind.round = kind.pack = kind.pack_into = kind.unpack = kind.iter_unpack = refuse
    kind.compile_time_size = property(lambda type: (type.bitwidth + 7) // 8)


def repair_floats() -> None:
    """Repairs the stock types, for all of xDSL."""
    repair_packing(Float16Type, Nans(5, 10))
    repair_packing(BFloat16Type, Nans(8, 7))
    repair_packing(Float32Type, Nans(8, 23))
    repair_reduced_precision(ReducedPrecisionFloatType)
    refuse_values(Float80Type)
    refuse_values(Float128Type)
