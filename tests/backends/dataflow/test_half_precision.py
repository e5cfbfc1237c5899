"""Conversions between f32 and f16 give numpy's bits, whatever is converted together, with torch and without."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ktir.backends.dataflow.half_precision import rounded_to_half, to_half, to_single
from tests.settings import examples

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
MANY = 40_000
"""Elements of more than one block."""


@pytest.fixture(params=["with torch", "without"], scope="module", autouse=True)
def process(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process that has torch, and one that has not."""
    torch = pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch if request.param == "with torch" else None)
        yield


def bits(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.itemsize}")


@np.errstate(all="ignore")
def agrees(singles: np.ndarray) -> None:
    halves = singles.astype(np.float16)
    number = ~np.isnan(singles)
    assert np.array_equal(bits(to_half(singles)), bits(halves))
    assert np.array_equal(bits(rounded_to_half(singles))[number], bits(halves.astype(np.float32))[number])
    assert np.isnan(rounded_to_half(singles)[~number]).all()


def test_every_half_is_its_single() -> None:
    assert np.array_equal(bits(to_single(HALVES)), bits(HALVES.astype(np.float32)))
    assert np.array_equal(bits(to_half(HALVES.astype(np.float32))), bits(HALVES))
    numbers = HALVES[np.isfinite(HALVES)]
    numbers.flags.writeable = False
    assert np.array_equal(bits(to_single(numbers)), bits(numbers.astype(np.float32)))
    assert np.array_equal(bits(to_single(numbers[::-3])), bits(numbers[::-3].astype(np.float32)))


def test_around_every_half_and_every_halfway_point() -> None:
    numbers = HALVES[np.isfinite(HALVES)].astype(np.float64)
    for points in (numbers, (numbers[:-1] + numbers[1:]) / 2):
        near = points.astype(np.float32)
        agrees(np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]))


def test_zeros_infinities_and_the_largest() -> None:
    few = np.array([0.0, -0.0, 65504, 65519.996, 65520, 65536, 3e38, np.inf, 2.0**-24, 2.0**-25, 1e-40], np.float32)
    both = np.concatenate([few, -few])
    for count in (1, MANY):
        agrees(np.tile(both, count // both.size + 1))


@settings(max_examples=examples(200), deadline=None)
@given(arrays(np.uint32, st.sampled_from([(7,), (600,), (2, 300, 3)])), st.booleans())
def test_any_bits(patterns: np.ndarray, strided: bool) -> None:
    singles = patterns.view(np.float32)
    agrees(singles[::2] if strided else singles)


def test_long_arrays_of_random_bits() -> None:
    random = np.random.default_rng(7)
    patterns = random.integers(0, 1 << 32, 5 * MANY, dtype=np.uint64).astype(np.uint32).view(np.float32)
    agrees(patterns[np.isfinite(patterns)])
    agrees(random.standard_normal(MANY).astype(np.float32))
    agrees((random.standard_normal(MANY) * 1e-5).astype(np.float32))
