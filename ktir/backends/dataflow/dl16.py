"""DL16, the accelerator's own float of 16 bits, in the functional simulator, and programs that have it for f16.

A sign, six bits of exponent with a bias of 31, nine of mantissa. Every exponent is one of numbers. The lowest pattern
is zero, there are no subnormal numbers; the highest stands for NaN and for what is too large. Halfway cases round away
from zero.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import Float16Type, ModuleOp

from ktir.dialect.dl16 import Dl16Type, with_dl16

Array = NDArray[Any]

NAME: Final = "dl16"
_NOT_A_NUMBER: Final = 0x7FFF


def _magnitudes() -> Array:
    """The number of each pattern without its sign."""
    patterns = np.arange(1 << 15)
    found = np.ldexp(1 + (patterns & 0x1FF) / 512, (patterns >> 9) - 31)
    found[0], found[_NOT_A_NUMBER] = 0, np.nan
    return found.astype(np.float32)


_NUMBERS: Final = np.concatenate([_magnitudes(), -_magnitudes()])
_LEAST: Final = _NUMBERS[1]
_BELOW: Final = np.int32((127 - 31) << 9)
"""How much larger the exponent and mantissa of a number are in f32, in units of the last place that stays."""


def to_dl16(singles: Array) -> Array:
    """f32 as patterns."""
    bits = np.ascontiguousarray(singles, np.float32).view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    patterns = ((magnitude + np.uint32(1 << 13)) >> np.uint32(14)).astype(np.int32) - _BELOW
    near_zero = (magnitude.view(np.float32) >= _LEAST / 2).astype(np.int32)
    patterns = np.where(patterns < 1, near_zero, np.minimum(patterns, _NOT_A_NUMBER))
    return (patterns | (bits >> np.uint32(31) << np.uint32(15)).astype(np.int32)).astype(np.uint16)


def from_dl16(patterns: Array) -> Array:
    """Patterns as f32; exact."""
    return _NUMBERS.take(patterns)


def program_in_dl16(module: ModuleOp) -> ModuleOp:
    """A copy of a dataflow program in which every f16 is a DL16."""
    copy = with_dl16(module)
    for op in copy.walk():
        for name, value in op.properties.items():
            if isinstance(value, Float16Type):
                op.properties[name] = Dl16Type()
    return copy
