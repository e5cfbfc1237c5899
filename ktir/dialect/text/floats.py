"""Floating-point numbers as MLIR writes them.

Six significant digits in scientific form where they say the value exactly; otherwise as many digits as the type may need,
in plain or scientific form; bits in hexadecimal for what has no decimal form.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isfinite

from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, Float64Type

MAX_PADDING = 3
"""Zeros that a plain number may be padded with before it is written in scientific form."""


def float_text(value: float, type: AnyFloat) -> str:
    """``value``, which ``type`` can hold, as MLIR prints it."""
    if not isfinite(value):
        return bits_text(value, type)
    short = scientific(Decimal(value), 6, keep_zeros=True)
    if _reads_back(short, value, type):
        return short
    natural = plain_or_scientific(Decimal(value), significant_digits(type))
    return natural if "." in natural and _reads_back(natural, value, type) else bits_text(value, type)


def bits_text(value: float, type: AnyFloat) -> str:
    """The bits of ``value``, as ``0xFF800000``."""
    return f"0x{type.pack((value,))[::-1].hex().upper()}"


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
    try:
        packed = type.pack((float(text),))
    except OverflowError:
        return False
    return packed == type.pack((value,))


def _digits(value: Decimal, digits: int) -> tuple[str, str, int]:
    """Sign, significant digits without trailing zeros, and the power of ten of the last one."""
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(value)
    sign, figures, exponent = rounded.as_tuple()
    text = "".join(map(str, figures))
    stripped = text.rstrip("0") or "0"
    power = int(exponent) + len(text) - len(stripped) if stripped != "0" else 0
    return "-" if sign else "", stripped, power


def scientific(value: Decimal, digits: int, *, keep_zeros: bool) -> str:
    """``1.500000e+00`` with ``keep_zeros``, else ``1.5E+0``."""
    sign, figures, power = _digits(value, digits if not keep_zeros else digits + 1)
    exponent = power + len(figures) - 1 if figures != "0" else 0
    if keep_zeros:
        return f"{sign}{figures[0]}.{figures[1:].ljust(digits, '0')}e{exponent:+03d}"
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{exponent:+d}"


def plain_or_scientific(value: Decimal, digits: int) -> str:
    """``value`` with up to ``digits`` digits, plain unless it needs many zeros."""
    sign, figures, power = _digits(value, digits)
    if power >= 0:
        if power > MAX_PADDING:
            return scientific(value, digits, keep_zeros=False)
        return f"{sign}{figures}{'0' * power}"
    leading = len(figures) + power  # digits before the point
    if leading > 0:
        return f"{sign}{figures[:leading]}.{figures[leading:]}"
    if -leading > MAX_PADDING:
        return scientific(value, digits, keep_zeros=False)
    return f"{sign}0.{'0' * -leading}{figures}"
