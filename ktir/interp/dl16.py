"""The 16-bit float of the accelerator, DL16, and running a module with it in the place of f16.

One bit of sign, six of exponent, nine of mantissa: one bit of precision less than f16, and a range up to 1.996 * 2^32.
All exponents are those of numbers; only the pattern with all bits of exponent and mantissa set is none. It stands for
NaN and infinity alike. So much is published; what follows is this project's choice, for what a card does is not
documented. The pattern is a NaN, so what overflows gives NaN from then on. There are no subnormal numbers: the lowest
exponent is that of numbers like all others, but for its first pattern, which is zero. Halfway cases round away from
zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ktir.interp.casts import DL16, F16, Array, cast
from ktir.interp.numerics import is_array
from ktir.interp.places import Place, Region

NAME = "dl16"


def taken(value: object) -> object:
    """What a caller gave, f16 arrays rounded to DL16."""
    return cast(value, DL16) if is_array(value) and value.dtype == F16 else value


def given_back(array: Array) -> Array:
    """An array as callers know it: DL16 rounded to f16, which makes numbers beyond its range infinite."""
    return cast(array, F16) if array.dtype == DL16 else array


def placed(place: Place) -> Place:
    """As :func:`taken`, for an array at a given address."""
    return replace(place, array=taken(np.asarray(place.array)))


def regions(read: Mapping[str, Region]) -> dict[str, Region]:
    """Regions of f16 as regions of DL16."""
    return {name: replace(each, dtype=NAME) if each.dtype == "f16" else each for name, each in read.items()}
