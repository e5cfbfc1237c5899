"""The simulator's DL16 against the definition of its numbers."""

import numpy as np
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from ktir.backends.dataflow.dl16 import from_dl16, to_dl16
from tests.settings import examples

PATTERNS = np.arange(1 << 16, dtype=np.uint16)
NONE = (PATTERNS & 0x7FFF) == 0x7FFF
POSITIVE = np.array([0.0, *(2.0 ** ((p >> 9) - 31) * (1 + (p & 511) / 512) for p in range(1, 0x7FFF))])
"""All numbers that are not negative, in order: a number's place is its pattern."""
BETWEEN = np.append((POSITIVE[1:] + POSITIVE[:-1]) / 2, 2.0**32 * (2 - 1.5 / 512))
"""What is halfway between two of them, and between the largest and what would follow."""


def test_every_pattern() -> None:
    numbers = from_dl16(PATTERNS)
    assert np.array_equal(numbers[:0x7FFF], POSITIVE.astype(np.float32))
    assert np.array_equal(numbers[0x8000:0xFFFF], -POSITIVE.astype(np.float32))
    assert np.isnan(numbers[NONE]).all()
    assert np.array_equal(to_dl16(numbers), PATTERNS)


@settings(max_examples=examples(100), deadline=None)
@given(arrays(np.uint32, 300))
def test_any_single(patterns: np.ndarray) -> None:
    singles = patterns.view(np.float32)
    found = to_dl16(singles)
    assert np.array_equal(found >> 15, np.signbit(singles))
    nearest = np.searchsorted(BETWEEN, np.abs(np.nan_to_num(singles, nan=np.inf)).astype(np.float64), side="right")
    assert np.array_equal(found & 0x7FFF, nearest)


def test_around_every_halfway_point() -> None:
    halfway = BETWEEN.astype(np.float32)
    above, below = np.nextafter(halfway, np.float32(np.inf)), np.nextafter(halfway, np.float32(0))
    places = np.arange(halfway.size)
    assert np.array_equal(to_dl16(halfway), places + 1)
    assert np.array_equal(to_dl16(above), places + 1)
    assert np.array_equal(to_dl16(below), places)
