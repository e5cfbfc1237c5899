"""Numbers of the naive evaluator: Python floats and ints that are always exactly representable in their type.

Rounding is to nearest even. A float operation on f16 or bf16 is computed in f32 and rounded once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TypeAlias

Number: TypeAlias = "float | int"

FLOATS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
INTEGERS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 4}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
SIZE = {**FLOATS, **INTEGERS}


def packed(code: str, x: float) -> float:
    """``x`` as the format ``code`` of :mod:`struct` holds it; too large numbers become infinite."""
    try:
        return struct.unpack(code, struct.pack(code, x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def round_bf16(x: float) -> float:
    """``x``, which is an f32 already, to the nearest number with eight significant bits."""
    if math.isnan(x) or math.isinf(x):
        return x
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    if kept & 0x7F800000 == 0x7F800000:
        return math.copysign(math.inf, x)
    return struct.unpack("<f", struct.pack("<I", kept))[0]


def rounded(x: float, type_: str) -> float:
    """A result computed in f32 (f64 for f64) as ``type_`` holds it."""
    if type_ == "f64":
        return x
    single = packed("<f", x)
    if type_ == "f16":
        return packed("<e", single)
    return round_bf16(single) if type_ == "bf16" else single


def once_rounded(x: float, type_: str) -> float:
    """An exact sum, rounded to f32 and then to ``type_``: what accumulating in f32 without error would give."""
    return rounded(x, type_)


def wrapped(x: int, type_: str) -> int:
    """``x`` as a two's complement number; a truth is 0 or 1."""
    bits = BITS[type_]
    if bits == 1:
        return x & 1
    half = 1 << (bits - 1)
    return (x + half) % (2 * half) - half


def encode(x: Number, type_: str) -> bytes:
    """The bytes of a number in memory, least significant first."""
    if type_ == "bf16":
        return struct.pack("<f", x)[2:]
    if type_ in FLOATS:
        return struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[type_], x)
    size = INTEGERS[type_]
    return (int(x) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def decode(raw: bytes, type_: str) -> Number:
    """The inverse of :func:`encode`."""
    if type_ == "bf16":
        return struct.unpack("<f", b"\0\0" + raw)[0]
    if type_ in FLOATS:
        return struct.unpack({"f16": "<e", "f32": "<f", "f64": "<d"}[type_], raw)[0]
    return int.from_bytes(raw, "little", signed=type_ != "i1")


def divide(a: float, b: float) -> float:
    """IEEE division."""
    if b != 0 or math.isnan(a) or math.isnan(b):
        return a / b if b != 0 else math.nan
    if a == 0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


def maximum(a: float, b: float) -> float:
    """The larger; NaN if either is; +0 above -0."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b:
        return a if math.copysign(1, a) > 0 else b
    return max(a, b)


def minimum(a: float, b: float) -> float:
    return -maximum(-a, -b)


def ignoring_nan(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """``choose`` of two numbers; the other one where one is NaN."""

    def chosen(a: float, b: float) -> float:
        return b if math.isnan(a) else a if math.isnan(b) else choose(a, b)

    return chosen


def truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


FLOAT_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "addf": add,
    "subf": lambda a, b: a - b,
    "mulf": multiply,
    "divf": divide,
    "maximumf": maximum,
    "minimumf": minimum,
    "maxnumf": ignoring_nan(maximum),
    "minnumf": ignoring_nan(minimum),
    "remf": math.fmod,
}

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "absf": abs,
    "floor": math.floor,
    "ceil": math.ceil,
}


def function(name: str, x: float, type_: str) -> float:
    """A function of ``math``, for arguments where it is finite."""
    return rounded(FUNCTIONS[name](x), type_)


INTEGER_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": truncated_quotient,
    "remsi": lambda a, b: a - truncated_quotient(a, b) * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "maxsi": max,
    "minsi": min,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}

UNSIGNED_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a // b),
    "maxui": max,
    "minui": min,
}


def binary(name: str, a: Number, b: Number, type_: str) -> Number:
    """An ``arith`` operation on two numbers of ``type_``."""
    if name in FLOAT_OPERATIONS:
        return rounded(FLOAT_OPERATIONS[name](float(a), float(b)), type_)
    if name in UNSIGNED_OPERATIONS:
        mask = (1 << BITS[type_]) - 1
        return wrapped(UNSIGNED_OPERATIONS[name](int(a) & mask, int(b) & mask), type_)
    return wrapped(INTEGER_OPERATIONS[name](int(a), int(b)), type_)


def convert(name: str, x: Number, source: str, target: str) -> Number:
    """A cast of ``arith``."""
    match name:
        case "extf":
            return x
        case "truncf":
            return rounded(float(x), target) if source != "f64" else truncated_double(float(x), target)
        case "sitofp":
            return from_exact(-int(x) if source == "i1" else int(x), target)
        case "uitofp":
            return from_exact(int(x) & ((1 << BITS[source]) - 1), target)
        case "fptosi":
            return wrapped(int(x), target)
        case "extui" | "index_castui":
            return wrapped(int(x) & ((1 << BITS[source]) - 1), target)
        case "extsi" | "index_cast":
            return wrapped(-int(x) if source == "i1" else int(x), target)
        case "trunci":
            return wrapped(int(x), target)
        case _:
            raise KeyError(name)


def from_exact(x: int, target: str) -> float:
    """An integer to the nearest f32 and then to ``target``: integers up to 2^53 only, so that no step is skipped."""
    assert abs(x) < 2**53
    return rounded(float(x), target)


def truncated_double(x: float, target: str) -> float:
    """An f64 to the nearest number of a narrower type, in one step."""
    if target == "f16":
        return packed("<e", x)
    return packed("<f", x) if target == "f32" else round_bf16(packed("<f", x))


def float_comparison(predicate: str, a: float, b: float) -> int:
    """``arith.cmpf`` by the name of its predicate."""
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("true", "false", "ord", "uno"):
        return int({"true": True, "false": False, "ord": not unordered, "uno": unordered}[predicate])
    holds = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[predicate[1:]]
    return int((predicate[0] == "u") if unordered else holds)


def integer_comparison(predicate: str, a: int, b: int, type_: str) -> int:
    """``arith.cmpi`` by the name of its predicate."""
    if type_ == "i1" and predicate[0] == "s":
        a, b = -a, -b
    if predicate[0] == "u":
        mask = (1 << BITS[type_]) - 1
        a, b = a & mask, b & mask
    name = predicate if predicate in ("eq", "ne") else predicate[1:]
    return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name])
