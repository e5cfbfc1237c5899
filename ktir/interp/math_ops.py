"""The ``math`` operations: elementary functions, computed in the wide type (f64 where numpy's f32 has no direct
function) and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType

import numpy as np
from xdsl.ir import Operation

from ktir.interp.arith_ops import elementwise, floating
from ktir.interp.combiners import MAXIMUM, MINIMUM
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, any_lane, element_of, emit_to
from ktir.interp.integers import Build
from ktir.interp.numerics import (
    BOOL,
    F32,
    F64,
    Array,
    ElementType,
    Function,
    Scalar,
    Unary,
    as_array,
    as_scalar,
    narrow,
    widen,
    wrap,
)
from ktir.interp.values import Frame, Site

KNOTS_PER_UNIT = 512
LAST_KNOT = 6
"""Beyond six, erf is one to more than 53 bits."""


@cache
def _erf_knots() -> tuple[Array, Array]:
    """erf and its slope times the spacing, at equally spaced places from 0 to a little beyond the last one."""
    places = np.arange(LAST_KNOT * KNOTS_PER_UNIT + 2) / KNOTS_PER_UNIT
    values = np.array([math.erf(place) for place in places])
    return values, 2 / math.sqrt(math.pi) * np.exp(-places * places) / KNOTS_PER_UNIT


def erf(x: Array) -> Array:
    """The error function: exact to the last bit but one for f64, by cubic interpolation between knots for f32.

    The interpolation error is h^4/384 times the fourth derivative (at most 10): 4e-13 with h = 1/512, far below the
    2^-24 of an f32.
    """
    if x.dtype == F64:
        return np.array([math.erf(value) for value in x.ravel()]).reshape(x.shape)
    values, slopes = _erf_knots()
    scaled = np.minimum(np.abs(x).astype(F64), LAST_KNOT) * KNOTS_PER_UNIT
    at = np.nan_to_num(scaled).astype(np.int32)
    t = scaled - at
    low, high, left, right = values[at], values[at + 1], slopes[at], slopes[at + 1]
    rise = high - low
    result = low + t * (left + t * (3 * rise - 2 * left - right + t * (left + right - 2 * rise)))
    return np.copysign(result, x).astype(F32)


def through_f64(function: Function) -> Build:
    """A function without a precise f32 form in numpy: computes in f64, rounds once."""

    def build(element: ElementType, site: Site) -> Function:
        dtype = element.dtype

        def rounding(*values: Array) -> Array:
            return narrow(function(*(widen(value).astype(F64) for value in values)), dtype)

        return rounding

    return build


def reciprocal_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


def clamp(x: Array, low: Array, high: Array) -> Array:
    return MINIMUM(MAXIMUM(x, low), high)


def fused_multiply_add(element: ElementType, site: Site) -> Function:
    """``a * b + c``, rounded once."""
    dtype = element.dtype
    if dtype == F64:
        return np.vectorize(_exact_multiply_add, otypes=[F64])

    def function(a: Array, b: Array, c: Array) -> Array:
        """The product of two floats of 24 bits is exact in f64; a sum that is not has its last bit set."""
        left, right, addend = (widen(value).astype(F64) for value in (a, b, c))
        product = left * right
        total = product + addend
        shifted = total - product
        lost = (product - (total - shifted)) + (addend - shifted)
        inexact = (lost != 0) & np.isfinite(total)
        below = inexact & ((lost < 0) == (total > 0))
        bits = np.where(below, total.view(np.int64) - 1, total.view(np.int64))
        return narrow(np.where(inexact, bits | 1, bits).view(F64), dtype)

    return function


def _exact_multiply_add(a: float, b: float, c: float) -> float:
    rounded = a * b + c
    if not all(map(math.isfinite, (a, b, c))):
        return rounded
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else rounded
    except OverflowError:
        return math.copysign(math.inf, exact)


def half_away(x: Array) -> Array:
    """Rounds to the nearest whole number, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def integer_power(element: ElementType, site: Site) -> Function:
    """``ipowi``: repeated multiplication that wraps; a negative exponent gives the reciprocal, truncated."""

    def power(base: Scalar, exponent: Scalar) -> Scalar:
        left, right = np.broadcast_arrays(as_array(base, element.dtype), as_array(exponent, element.dtype))
        numbers = [_power(int(b), int(e), element.bits) for b, e in zip(left.flat, right.flat, strict=True)]
        return as_scalar(np.array(numbers, element.dtype).reshape(left.shape))

    return power


def _power(base: int, exponent: int, bits: int) -> int:
    if exponent >= 0:
        return wrap(pow(base, exponent, 1 << bits), bits)
    return {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0)


def absolute(element: ElementType, site: Site) -> Function:
    def magnitude(value: Scalar) -> Scalar:
        return wrap(abs(value), element.bits) if isinstance(value, int) else np.abs(value)

    return magnitude


def count_bits(count: Callable[[int, int], int]) -> Build:
    """An operation on the bits of each integer."""

    def build(element: ElementType, site: Site) -> Function:
        bits = element.bits
        mask = (1 << bits) - 1

        def function(value: Scalar) -> Scalar:
            if isinstance(value, int):
                return wrap(count(value & mask, bits), bits)
            return np.array([wrap(count(int(v) & mask, bits), bits) for v in value.flat], value.dtype).reshape(
                value.shape
            )

        return function

    return build


FUNCTIONS: Mapping[str, Build] = MappingProxyType(
    {
        "math.absf": floating(np.abs),
        "math.absi": absolute,
        "math.acos": floating(np.arccos),
        "math.acosh": floating(np.arccosh),
        "math.asin": floating(np.arcsin),
        "math.asinh": floating(np.arcsinh),
        "math.atan": floating(np.arctan),
        "math.atan2": floating(np.arctan2),
        "math.atanh": floating(np.arctanh),
        "math.cbrt": floating(np.cbrt),
        "math.ceil": floating(np.ceil),
        "math.clampf": floating(clamp),
        "math.copysign": floating(np.copysign),
        "math.cos": floating(np.cos),
        "math.cosh": floating(np.cosh),
        "math.ctlz": count_bits(lambda value, bits: bits - value.bit_length()),
        "math.ctpop": count_bits(lambda value, bits: value.bit_count()),
        "math.cttz": count_bits(lambda value, bits: (value & -value).bit_length() - 1 if value else bits),
        "math.erf": floating(erf),
        "math.erfc": through_f64(np.vectorize(math.erfc, otypes=[F64])),
        "math.exp": floating(np.exp),
        "math.exp2": floating(np.exp2),
        "math.expm1": floating(np.expm1),
        "math.floor": floating(np.floor),
        "math.fma": fused_multiply_add,
        "math.ipowi": integer_power,
        "math.log": floating(np.log),
        "math.log10": floating(np.log10),
        "math.log1p": floating(np.log1p),
        "math.log2": floating(np.log2),
        "math.powf": floating(np.power),
        "math.round": floating(half_away),
        "math.roundeven": floating(np.rint),
        "math.rsqrt": through_f64(reciprocal_root),
        "math.sin": floating(np.sin),
        "math.sinh": floating(np.sinh),
        "math.sqrt": floating(np.sqrt),
        "math.tan": floating(np.tan),
        "math.tanh": floating(np.tanh),
        "math.trunc": floating(np.trunc),
    }
)


def predicate(function: Unary) -> CompileOperation:
    """A question about a float, answered with i1."""

    def compile_operation(compiler: FunctionCompiler, op: Operation) -> Step:
        return compiler.unary(op, lambda value: as_scalar(np.asarray(function(widen(value)), BOOL)), any_lane)

    return compile_operation


def float_to_integer_power(compiler: FunctionCompiler, op: Operation) -> Step:
    """``fpowi``: a float to an integer power."""
    dtype, exponent_dtype = element_of(op.results[0].type).dtype, element_of(op.operands[1].type).dtype
    return compiler.binary(
        op,
        lambda base, exponent: narrow(
            np.power(widen(base).astype(F64), as_array(exponent, exponent_dtype).astype(F64)), dtype
        ),
        any_lane,
    )


def is_normal(compiler: FunctionCompiler, op: Operation) -> Step:
    """Finite, not zero, and with all digits of its type."""
    least = 2.0 ** LEAST_NORMAL.get(element_of(op.operands[0].type).name, -126)

    def normal(value: Array) -> Scalar:
        size = np.abs(widen(value))
        return as_scalar((size >= least) & np.isfinite(size))

    return compiler.unary(op, normal, any_lane)


LEAST_NORMAL: Mapping[str, int] = MappingProxyType(
    {"f16": -14, "f64": -1022, "dl16": -31, "f8E5M2": -14, "f8E4M3": -6, "f8E4M3FN": -6, "f8E3M4": -2}
    | {"f8E5M2FNUZ": -15, "f8E4M3FNUZ": -7, "f8E4M3B11FNUZ": -10}
)
"""The exponent of the smallest normal number of a type; -126 where it is not named."""


def sine_and_cosine(compiler: FunctionCompiler, op: Operation) -> Step:
    slots, site = (compiler.slot(op.operands[0]),), compiler.site(op)
    element = element_of(op.results[0].type)
    sine, cosine = (
        emit_to(compiler.slot(result), floating(function)(element, site), any_lane, slots, site)
        for result, function in zip(op.results, (np.sin, np.cos), strict=True)
    )

    def step(frame: Frame) -> None:
        sine(frame)
        cosine(frame)

    return step


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        **elementwise(FUNCTIONS),
        "math.isnormal": is_normal,
        "math.sincos": sine_and_cosine,
        "math.fpowi": float_to_integer_power,
        "math.isnan": predicate(np.isnan),
        "math.isinf": predicate(np.isinf),
        "math.isfinite": predicate(np.isfinite),
    }
)
