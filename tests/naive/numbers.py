"""Numbers of the naive evaluator: Python floats and ints that are always exactly representable in their type.

Rounding is to nearest even. A float operation on f16 or bf16 is computed in f32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = "float | int"


@dataclass(frozen=True)
class Format:
    """A float format: sign, ``exponent`` and ``mantissa`` bits. ``infinite``: the highest exponent is that of infinity
    and NaN, as IEEE has it. Else all exponents are numbers, NaN is the one pattern ``nan`` and there is no infinity;
    ``negative_zero`` says whether zero has a sign."""

    exponent: int
    mantissa: int
    bias: int
    infinite: bool = True
    nan: int = 0
    negative_zero: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def largest(self) -> float:
        """The largest finite number."""
        top = (1 << self.exponent + self.mantissa) - 1
        if self.infinite:
            top -= 1 << self.mantissa
        elif self.nan == top:
            top -= 1
        return self.number(top)

    def number(self, bits: int) -> float:
        """The number that a pattern of bits is."""
        sign = -1.0 if bits >> self.bits - 1 else 1.0
        exponent = bits >> self.mantissa & (1 << self.exponent) - 1
        fraction = bits & (1 << self.mantissa) - 1
        if self.infinite and exponent == (1 << self.exponent) - 1:
            return math.nan if fraction else sign * math.inf
        if not self.infinite and bits & ~(0 if self.nan >> self.bits - 1 else 1 << self.bits - 1) == self.nan:
            return math.nan
        if exponent == 0:
            return sign * math.ldexp(fraction, 1 - self.bias - self.mantissa)
        return sign * math.ldexp(fraction + (1 << self.mantissa), exponent - self.bias - self.mantissa)

    def pattern(self, x: float) -> int:
        """The bits of a number of the format."""
        sign = (math.copysign(1, x) < 0) << self.bits - 1
        top = ((1 << self.exponent) - 1) << self.mantissa
        if math.isnan(x):
            return (top | 1 << self.mantissa - 1) if self.infinite else self.nan
        if math.isinf(x):
            return sign | top
        if x == 0:
            return sign if self.negative_zero else 0
        exponent = max(math.frexp(abs(x))[1] - 1 + self.bias, 1)
        fraction = int(math.ldexp(abs(x), self.mantissa + self.bias - exponent))
        return sign | (exponent - 1 << self.mantissa) + fraction

    def nearest(self, x: float) -> float:
        """``x`` rounded to nearest, ties to even."""
        if math.isnan(x) or x == 0:
            return x if self.negative_zero or x != 0 else 0.0
        if math.isfinite(x):
            smallest = max(math.frexp(x)[1] - 1, 1 - self.bias) - self.mantissa
            x = math.copysign(math.ldexp(round(math.ldexp(abs(x), -smallest)), smallest), x)
        if abs(x) > self.largest:
            return math.copysign(math.inf, x) if self.infinite else math.nan
        return x if self.negative_zero or x != 0 else 0.0


FORMATS = {
    "f16": Format(5, 10, 15),
    "bf16": Format(8, 7, 127),
    "f32": Format(8, 23, 127),
    "f64": Format(11, 52, 1023),
    "f8E5M2": Format(5, 2, 15),
    "f8E4M3": Format(4, 3, 7),
    "f8E3M4": Format(3, 4, 3),
    "f8E4M3FN": Format(4, 3, 7, infinite=False, nan=0x7F),
    "f8E5M2FNUZ": Format(5, 2, 16, infinite=False, nan=0x80, negative_zero=False),
    "f8E4M3FNUZ": Format(4, 3, 8, infinite=False, nan=0x80, negative_zero=False),
    "f8E4M3B11FNUZ": Format(4, 3, 11, infinite=False, nan=0x80, negative_zero=False),
}
FLOATS = {name: each.bits // 8 for name, each in FORMATS.items()}
INTEGERS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 4}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
SIZE = {**FLOATS, **INTEGERS}


def rounded(x: float, type_: str) -> float:
    """A result computed in f32 (f64 for f64) as ``type_`` holds it."""
    return x if type_ == "f64" else FORMATS[type_].nearest(FORMATS["f32"].nearest(x))


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
    if type_ in FLOATS:
        return FORMATS[type_].pattern(x).to_bytes(FLOATS[type_], "little")
    size = INTEGERS[type_]
    return (int(x) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def decode(raw: bytes, type_: str) -> Number:
    """The inverse of :func:`encode`."""
    if type_ in FLOATS:
        return FORMATS[type_].number(int.from_bytes(raw, "little"))
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


def remainder(a: float, b: float) -> float:
    """What a division rounded towards zero leaves, with the sign of the dividend."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


FLOAT_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "addf": add,
    "subf": lambda a, b: a - b,
    "mulf": multiply,
    "divf": divide,
    "maximumf": maximum,
    "minimumf": minimum,
    "maxnumf": ignoring_nan(maximum),
    "minnumf": ignoring_nan(minimum),
    "remf": remainder,
    "copysign": math.copysign,
}


def multiplied_and_added(a: float, b: float, c: float, type_: str) -> float:
    """``a * b + c``, rounded once to the type."""
    plain = a * b + c
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return plain
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return plain if exact == 0 else nearest_to(exact, type_)


def nearest_to(x: Fraction, type_: str) -> float:
    """``x`` rounded once."""
    if type_ != "f64":
        return FORMATS[type_].nearest(to_odd(x))
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def to_odd(x: Fraction) -> float:
    """``x`` cut to 53 bits, the last one set if anything was cut: rounding it to fewer bits is rounding ``x``."""
    magnitude, shift = abs(x), 0
    while magnitude >= 1 << 53:
        magnitude, shift = magnitude / 2, shift + 1
    while magnitude < 1 << 52:
        magnitude, shift = magnitude * 2, shift - 1
    whole = int(magnitude)
    if whole != magnitude:
        whole |= 1
    return math.copysign(math.ldexp(whole, shift), x) if shift < 971 else math.copysign(math.inf, x)


def half_away(x: float) -> float:
    whole = math.floor(abs(x))
    return math.copysign(whole + (abs(x) - whole >= 0.5), x)


def whole(function: Callable[[float], float]) -> Callable[[float], float]:
    """A rounding to whole numbers that keeps signs of zeros, infinities and NaN."""
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
}

EXACT_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "absf": abs,
    "floor": whole(math.floor),
    "ceil": whole(math.ceil),
    "trunc": whole(math.trunc),
    "roundeven": whole(round),
    "round": whole(half_away),
}


def function(name: str, x: float, type_: str) -> float:
    """A function of ``math``; those that are not exact only for arguments where they are finite."""
    return rounded({**FUNCTIONS, **EXACT_FUNCTIONS}[name](x), type_)


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

SHIFTS = ("shli", "shrsi", "shrui")


def shifted(name: str, a: int, places: int, type_: str) -> int:
    """A shift; by the width or more, which MLIR leaves undefined, nothing but the sign is left."""
    bits = BITS[type_]
    places = min(places & ((1 << bits) - 1), bits)
    if name == "shli":
        return wrapped(a << places, type_)
    return wrapped((signed(a, type_) if name == "shrsi" else a & ((1 << bits) - 1)) >> places, type_)


def signed(a: int, type_: str) -> int:
    """The number that an integer is where the order is signed: a true bit is -1."""
    return -a if type_ == "i1" else a


def binary(name: str, a: Number, b: Number, type_: str) -> Number:
    """An ``arith`` operation on two numbers of ``type_``."""
    if name in FLOAT_OPERATIONS:
        return rounded(FLOAT_OPERATIONS[name](float(a), float(b)), type_)
    if name in SHIFTS:
        return shifted(name, int(a), int(b), type_)
    if name in UNSIGNED_OPERATIONS:
        mask = (1 << BITS[type_]) - 1
        return wrapped(UNSIGNED_OPERATIONS[name](int(a) & mask, int(b) & mask), type_)
    return wrapped(INTEGER_OPERATIONS[name](signed(int(a), type_), signed(int(b), type_)), type_)


def convert(name: str, x: Number, source: str, target: str) -> Number:
    """A cast of ``arith``."""
    match name:
        case "extf":
            return x
        case "truncf":
            return FORMATS[target].nearest(float(x))
        case "sitofp":
            return from_exact(signed(int(x), source), target)
        case "uitofp":
            return from_exact(int(x) & ((1 << BITS[source]) - 1), target)
        case "fptosi" | "fptoui":
            return saturated(float(x), target, unsigned=name == "fptoui")
        case "extui" | "index_castui":
            return wrapped(int(x) & ((1 << BITS[source]) - 1), target)
        case "extsi" | "index_cast":
            return wrapped(signed(int(x), source), target)
        case "trunci":
            return wrapped(int(x), target)
        case _:
            raise KeyError(name)


def from_exact(x: int, target: str) -> float:
    """An integer to the nearest float, in one step."""
    return nearest_to(Fraction(x), target) if x else 0.0


def fits(x: float, target: str) -> bool:
    """Whether ``x``, rounded towards zero, is a signed number of ``target``."""
    half = 1 << BITS[target] - 1
    return math.isfinite(x) and -half <= math.trunc(x) < half


def saturated(x: float, target: str, *, unsigned: bool) -> int:
    """Rounded towards zero; beyond the range, which MLIR leaves undefined, the nearest integer, and zero for NaN."""
    bits = BITS[target]
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if math.isnan(x):
        return 0
    return wrapped(int(max(low, min(high, x if math.isinf(x) else math.trunc(x)))), target)


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
