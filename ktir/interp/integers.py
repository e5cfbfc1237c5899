"""Integer arithmetic of ``arith`` on scalars and arrays: wrapping, signed or not, at any width.

Where MLIR leaves a result undefined it is made definite: shifts by the width or more give zero, or the sign;
undefined_results.py marks such results where checks are on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ktir.errors import DivisionByZero
from ktir.interp.numerics import BOOL, Array, ElementType, Function, Scalar, as_array, as_scalar, unsigned, wrap
from ktir.interp.values import Site

Build = Callable[[ElementType, Site], Function]
"""The meaning of an operation on an element type; the site is what an error of it says."""


def integer(on_ints: Callable[[int, int], int], on_arrays: Function) -> Build:
    """A wrapping binary operation from its meaning on Python ints and on arrays."""

    def build(element: ElementType, site: Site) -> Function:
        bits = element.bits

        def function(a: Scalar, b: Scalar) -> Scalar:
            if isinstance(a, int) and isinstance(b, int):
                return wrap(on_ints(a, b), bits)
            if bits == 1:  # a Python int beside booleans would turn them into integers
                a, b = (np.array(value, BOOL) if isinstance(value, int) else value for value in (a, b))
            return cast(Array, on_arrays(a, b))

        return function

    return build


def ring(on_ints: Callable[[int, int], int], on_arrays: Function, on_bits: Function) -> Build:
    """As :func:`integer`, with the meaning on bits apart, because numpy's booleans do not wrap."""
    plain, bit = integer(on_ints, on_arrays), integer(on_ints, on_bits)

    def build(element: ElementType, site: Site) -> Function:
        return bit(element, site) if element.bits == 1 else plain(element, site)

    return build


def division(function: Callable[[Array, Array], Array], *, signed: bool) -> Build:
    """A division or remainder: refuses a zero divisor, runs on arrays of the signed or unsigned type."""

    def build(element: ElementType, site: Site) -> Function:
        def divide(a: Scalar, b: Scalar) -> Scalar:
            if isinstance(b, int) and isinstance(a, int) and b != 0 and a >= 0 and b > 0:
                return wrap(int(function(np.int64(a), np.int64(b))), element.bits)  # type: ignore[arg-type]
            left, right = (as_array(value, element.dtype) for value in (a, b))
            if not right.all():
                raise site.fail(
                    DivisionByZero,
                    f"divides by zero{_at_first(right == 0)}",
                    "guard the division, or check the divisor's source",
                )
            if element.bits == 1:
                left, right = (value.astype(np.int8) * (-1 if signed else 1) for value in (left, right))
                return as_scalar((function(left, right) & 1).astype(BOOL))
            if not signed:
                left, right = unsigned(left, element.bits), unsigned(right, element.bits)
            return as_scalar(function(left, right).view(element.dtype))

        return divide

    return build


def _at_first(where: Array) -> str:
    place = tuple(int(axis[0]) for axis in np.nonzero(where))
    return f" at element {list(place[1:])} of row {place[0]}" if len(place) > 1 else ""


def truncated_quotient(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


def ceiling_quotient(a: Array, b: Array) -> Array:
    return a // b + (a % b != 0)


def shift_left(a: Scalar, b: Scalar, bits: int) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        return wrap(a << b, bits) if 0 <= b < bits else 0
    return np.where((b >= 0) & (b < bits), np.left_shift(a, np.clip(b, 0, bits - 1)), 0).astype(_dtype(a, b))


def shift_right(a: Scalar, b: Scalar, bits: int) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        return a >> (b if 0 <= b < bits else bits - 1)
    return np.right_shift(a, np.where((b >= 0) & (b < bits), b, bits - 1)).astype(_dtype(a, b))


def shift_right_unsigned(a: Scalar, b: Scalar, bits: int) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        return wrap(unsigned(a, bits) >> b, bits) if 0 <= b < bits else 0
    dtype = _dtype(a, b)
    inside = (b >= 0) & (b < bits)
    places = np.where(inside, b, 0).astype(dtype.str.replace("i", "u"))
    shifted = np.right_shift(unsigned(as_array(a, dtype), bits), places).view(dtype)
    return np.where(inside, shifted, 0).astype(dtype)


def _dtype(*values: Scalar) -> np.dtype[Any]:
    return next(value.dtype for value in values if not isinstance(value, int))


def shift(function: Callable[[Scalar, Scalar, int], Scalar]) -> Build:
    def build(element: ElementType, site: Site) -> Function:
        bits = element.bits

        def shifted(a: Scalar, b: Scalar) -> Scalar:
            return function(a, b, bits)

        return shifted

    return build


def extreme(choose: Callable[[int, int], int], on_arrays: Function, *, signed: bool) -> Build:
    """Minimum or maximum, in signed or unsigned order; a signed 1 of one bit is the number -1."""

    def build(element: ElementType, site: Site) -> Function:
        bits, dtype = element.bits, element.dtype

        def function(a: Scalar, b: Scalar) -> Scalar:
            if isinstance(a, int) and isinstance(b, int):
                if signed:
                    return -choose(-a, -b) if bits == 1 else choose(a, b)
                return wrap(choose(unsigned(a, bits), unsigned(b, bits)), bits)
            if signed and bits == 1:
                return ~on_arrays(*(~as_array(value, dtype) for value in (a, b)))
            if signed:
                return on_arrays(a, b)
            left, right = (unsigned(as_array(value, dtype), bits) for value in (a, b))
            return on_arrays(left, right).view(dtype)

        return function

    return build
