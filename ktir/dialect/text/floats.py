"""Floating-point numbers as MLIR writes them.

Six significant digits in scientific form where they say the value exactly; otherwise as many digits as the type may
need, in plain or scientific form; bits in hexadecimal for what has no decimal form. LLVM cuts digits off where one
would expect it to round, so its way of getting at the digits (``APFloat::toString``) is followed step by step.
"""

from __future__ import annotations

from math import isfinite

from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, Float64Type

MAX_PADDING = 3
"""Zeros that a plain number may be padded with before it is written in scientific form."""
SHORT_DIGITS = 6
"""Significant digits of the short form."""


def float_text(value: float, type: AnyFloat) -> str:
    """``value``, which ``type`` can hold, as MLIR prints it."""
    if not isfinite(value):
        return bits_text(value, type)
    sign = "-" if str(value).startswith("-") else ""
    short = sign + _short(abs(value))
    if _reads_back(short, value, type):
        return short
    natural = sign + _natural(abs(value), significant_digits(type))
    return natural if "." in natural and _reads_back(natural, value, type) else bits_text(value, type)


def bits_text(value: float, type: AnyFloat) -> str:
    """The bits of ``value``, as ``0xFF800000``."""
    return f"0x{int.from_bytes(type.pack((value,)), 'little'):X}"


def significant_digits(type: AnyFloat) -> int:
    """Decimal digits that tell any two values of ``type`` apart, as LLVM counts them."""
    match type:
        case Float64Type():
            precision = 53
        case Float32Type():
            precision = 24
        case Float16Type():
            precision = 11
        case BFloat16Type():
            precision = 8
        case _:
            precision = 4
    return 2 + precision * 59 // 196


def _reads_back(text: str, value: float, type: AnyFloat) -> bool:
    return type.pack((float(text),)) == type.pack((value,))


def _short(value: float) -> str:
    """``1.500000e+00``: six digits, padded with zeros to seven."""
    digits, power = _digits(value, SHORT_DIGITS)
    exponent = power + len(digits) - 1
    return f"{digits[0]}.{digits[1:].ljust(SHORT_DIGITS, '0')}e{exponent:+03d}"


def _natural(value: float, precision: int) -> str:
    """Up to ``precision`` digits, plain unless that would need many zeros."""
    digits, power = _digits(value, precision)
    if power >= 0:
        if power > MAX_PADDING or len(digits) + power > precision:
            return _scientific(digits, power)
        return digits + "0" * power
    whole = len(digits) + power
    if whole > 0:
        return f"{digits[:whole]}.{digits[whole:]}"
    if 1 - whole > MAX_PADDING:
        return _scientific(digits, power)
    return f"0.{'0' * -whole}{digits}"


def _scientific(digits: str, power: int) -> str:
    return f"{digits[0]}.{digits[1:] or '0'}E{power + len(digits) - 1:+d}"


def _digits(value: float, precision: int) -> tuple[str, int]:
    """At most ``precision`` digits without trailing zeros, and the power of ten of the last one."""
    significand, power = _cut(*_as_integer_times_power_of_ten(value), precision)
    text = str(significand)
    digits = text.rstrip("0")
    if not digits:
        return "0", 0
    power += len(text) - len(digits)
    if len(digits) <= precision:
        return digits, power
    power += len(digits) - precision
    kept = int(digits[:precision]) + (digits[precision] >= "5")
    rounded = str(kept).rstrip("0")
    return rounded, power + len(str(kept)) - len(rounded)


def _as_integer_times_power_of_ten(value: float) -> tuple[int, int]:
    """``value`` exactly, as ``n * 10**power``."""
    numerator, denominator = value.as_integer_ratio()
    twos = denominator.bit_length() - 1
    return numerator * 5**twos, -twos


def _cut(significand: int, power: int, precision: int) -> tuple[int, int]:
    """Drops decimal digits that ``precision`` of them surely do not need, without rounding."""
    needed = (precision * 196 + 58) // 59
    removable = max(0, significand.bit_length() - needed) * 59 // 196
    return significand // 10**removable, power + removable
