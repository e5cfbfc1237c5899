"""Conversions of numbers from one element type to another.

Where MLIR leaves a result undefined it is made definite: floats beyond the range of an integer saturate, NaN gives
zero; undefined_results.py marks such results where checks are on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ktir.interp.numerics import (
    BOOL,
    F64,
    Array,
    ElementType,
    Scalar,
    as_array,
    as_scalar,
    narrow,
    unsigned,
    widen,
    wrap,
)


def sign_extended(value: Scalar, source: ElementType, target: ElementType) -> Scalar:
    """Sign extension or truncation between integers of any width."""
    if isinstance(value, int):
        return wrap(-value if source.bits == 1 else value, target.bits)
    if source.bits == 1 and target.bits > 1:
        return -value.astype(target.dtype)
    return (value & 1).astype(BOOL) if target.bits == 1 else value.astype(target.dtype)


def zero_extended(value: Scalar, source: ElementType, target: ElementType) -> Scalar:
    """Zero extension or truncation between integers of any width."""
    if isinstance(value, int):
        return wrap(unsigned(value, source.bits), target.bits)
    bits = unsigned(value, source.bits)
    return (bits & 1).astype(BOOL) if target.bits == 1 else bits.astype(target.dtype)


def to_float(value: Scalar, source: ElementType, target: ElementType, *, signed: bool) -> Array:
    """An integer as a float, rounded once."""
    numbers = as_array(value, source.dtype)
    if source.bits == 1:
        numbers = numbers.astype(np.int8) * (-1 if signed else 1)
    elif not signed:
        numbers = unsigned(numbers, source.bits)
    if target.itemsize >= 4:
        return numbers.astype(target.dtype)
    return narrow((held_by_f64(numbers) if source.bits == 64 else numbers).astype(F64), target.dtype)


def held_by_f64(numbers: Array) -> Array:
    """64-bit integers of which those beyond 2^53 lose eleven bits, the last one left being set if anything was lost.

    Rounding that to a float of up to 50 bits gives what rounding the number itself gives.
    """
    lost: Array = numbers & numbers.dtype.type(0x7FF)
    kept: Array = (numbers - lost) | np.not_equal(lost, 0).astype(numbers.dtype) * numbers.dtype.type(0x800)
    return np.where(np.abs(numbers.astype(F64)) < 2.0**53, numbers, kept)


def to_integer(value: Array, target: ElementType, *, signed: bool) -> Scalar:
    """A float rounded towards zero; beyond the range the nearest integer, zero for NaN."""
    numbers = np.trunc(np.nan_to_num(widen(value).astype(F64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    bits = max(target.bits, 1)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    kind = np.int64 if signed else np.uint64
    ceiling = np.nextafter(2.0 ** (bits - 1 if signed else bits), 0) if bits > 52 else float(high)
    whole = np.clip(numbers, float(low), ceiling).astype(kind)
    if bits > 52:
        whole = np.where(numbers > ceiling, kind(high), whole)
    return as_scalar((whole & kind(1)).astype(BOOL) if bits == 1 else whole.astype(target.dtype))


def reinterpreted(value: Any, source: ElementType, target: ElementType) -> Any:
    """The same bits as another type of the same width."""
    return as_scalar_of(np.ascontiguousarray(as_array(value, source.dtype)).view(target.dtype), target)


def as_scalar_of(values: Array, element: ElementType) -> Any:
    return as_scalar(values) if element.kind == "int" else values


# ----------------------------------------------------------------------------------------- rounding in a direction


def has_infinity(element: ElementType) -> bool:
    """Whether a float type has infinities, so that rounding in a direction may reach one."""
    with np.errstate(over="ignore"):
        return bool(np.isinf(widen(narrow(np.array([np.inf], F64), element.dtype))).all())


DOWNWARD, UPWARD, TOWARD_ZERO, NEAREST_AWAY = 1, 2, 3, 4
"""The rounding modes of ``arith.truncf`` beside nearest even, which is 0."""


def rounded_towards(values: Array, dtype: np.dtype[Any], direction: int) -> Array:
    """Floats rounded to the narrower ``dtype``, which has infinities."""
    nearest = narrow(values, dtype)
    wide, near = values.astype(F64), nearest.astype(F64)
    bits = nearest.view(f"i{dtype.itemsize}")
    too_large = np.abs(near) > np.abs(wide)
    shorter = (bits - too_large.astype(bits.dtype)).view(dtype)  # the next one towards zero
    longer = (shorter.view(bits.dtype) + (shorter.astype(F64) != wide).astype(bits.dtype)).view(dtype)
    if direction == TOWARD_ZERO:
        away: Any = False
    elif direction == NEAREST_AWAY:
        away = np.abs(wide) - np.abs(shorter.astype(F64)) >= np.abs(longer.astype(F64)) - np.abs(wide)
        away = away | np.isinf(near)
    else:
        away = (wide < 0) == (direction == DOWNWARD)
    return np.where(np.isfinite(wide), np.where(away, longer, shorter), nearest)
