"""DL16 against its definition, written down once more, and runs with it in the place of f16."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktir
from ktir.interp.casts import DL16, cast
from tests.settings import examples

F32 = np.dtype(np.float32)


def number(pattern: int) -> float:
    """What 16 bits stand for."""
    sign, exponent, fraction = pattern >> 15, pattern >> 9 & 63, pattern & 511
    if exponent == 63 and fraction == 511:
        return math.nan
    if exponent == fraction == 0:
        return -0.0 if sign else 0.0
    return (-1) ** sign * 2.0 ** (exponent - 31) * (1 + fraction / 512)


NUMBERS = np.array([number(pattern) for pattern in range(0x7FFF)])


def nearest(x: float) -> float:
    """The nearest number of DL16, ties away from zero, by looking at all of them."""
    if not math.isfinite(x):
        return math.nan
    place = int(np.searchsorted(NUMBERS, abs(x)))
    below = NUMBERS[max(0, place - 1)]
    above = NUMBERS[place] if place < len(NUMBERS) else 2.0**32 * (1 + 511 / 512)  # what the pattern of NaN would be
    chosen = above if above - abs(x) <= abs(x) - below else below
    return math.copysign(math.nan if chosen > NUMBERS[-1] else chosen, x)


def test_every_pattern_is_the_number_it_stands_for() -> None:
    found = cast(np.arange(1 << 16).astype(np.uint16).view(DL16), F32)
    expected = np.array([number(pattern) for pattern in range(1 << 16)])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


def test_numbers_are_kept() -> None:
    patterns = np.arange(1 << 16).astype(np.uint16)
    there_and_back = cast(cast(patterns.view(DL16), F32), DL16).view(np.uint16)
    is_number = (patterns & 0x7FFF) != 0x7FFF
    np.testing.assert_array_equal(there_and_back[is_number], patterns[is_number])
    assert ((there_and_back[~is_number] & 0x7FFF) == 0x7FFF).all()


def halfway(pattern: int) -> float:
    """What lies between a number and the next one, or near that."""
    return float(np.float32(NUMBERS[pattern] * (1 + 2.0**-10)))


@settings(max_examples=examples(4000))
@given(
    st.floats(width=32)
    | st.sampled_from(range(len(NUMBERS))).map(lambda k: float(np.float32(NUMBERS[k] * (1 + 2.0**-10))))
)
def test_rounding_is_to_the_nearest(x: float) -> None:
    (found,) = cast(cast(np.array([x], F32), DL16), F32)
    np.testing.assert_equal(float(found), nearest(x))


ADD = """
#id = affine_map<(d0) -> (d0)>
#s = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>
func.func @k(%x: index, %y: index) attributes {grid = [1]} {
  %a = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = #s,
    memory_space = #ktdp.memory_space<global>} : memref<64xf16>
  %b = ktdp.construct_memory_view %y, sizes: [64], strides: [1] {coordinate_set = #s,
    memory_space = #ktdp.memory_space<global>} : memref<64xf16>
  %t = ktdp.construct_access_tile %a[0] {access_tile_order = #id, access_tile_set = #s} : memref<64xf16>
    -> !ktdp.access_tile<64xindex>
  %v = ktdp.load %t : <64xindex> -> tensor<64xf16>
  %w = BODY
  %u = ktdp.construct_access_tile %b[0] {access_tile_order = #id, access_tile_set = #s} : memref<64xf16>
    -> !ktdp.access_tile<64xindex>
  ktdp.store %w, %u : tensor<64xf16>, <64xindex>
  return
}
"""


def run(body: str, x: np.ndarray, **options: object) -> np.ndarray:
    result = ktir.run(ADD.replace("BODY", body), "k", {"x": x, "y": np.zeros(64, np.float16)}, **options)
    return np.asarray(result.outputs["y"])


@pytest.mark.parametrize("checks", [True, False])
def test_a_run_rounds_to_nine_bits(checks: bool) -> None:
    x = np.linspace(0.5, 3, 64).astype(np.float16)
    found = run("arith.mulf %v, %v : tensor<64xf16>", x, numerics="dl16", checks=checks)
    held = [nearest(float(value)) for value in x]
    expected = np.array([nearest(float(np.float32(value) * np.float32(value))) for value in held])
    np.testing.assert_array_equal(found, expected.astype(np.float16))
    assert not np.array_equal(found, run("arith.mulf %v, %v : tensor<64xf16>", x))


def test_the_range_between_operations_is_that_of_dl16() -> None:
    x = np.full(64, 60000, np.float16)
    body = """arith.mulf %v, %v : tensor<64xf16>
  %r = math.sqrt %w : tensor<64xf16>"""
    text = ADD.replace("BODY", body).replace("ktdp.store %w", "ktdp.store %r")
    given_ = {"x": x, "y": np.zeros(64, np.float16)}
    assert np.isinf(np.asarray(ktir.run(text, "k", given_).outputs["y"])).all()
    found = ktir.run(text, "k", given_, numerics="dl16")
    assert (np.abs(np.asarray(found.outputs["y"]).astype(float) - 60000) < 128).all()
    assert found.numerics == "dl16"


def test_infinity_and_nan_are_one() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1.0] * 16, np.float16)
    found = run("arith.negf %v : tensor<64xf16>", x, numerics="dl16")
    assert np.isnan(found.reshape(16, 4)[:, :3].astype(float)).all() and (found.reshape(16, 4)[:, 3] == -1).all()
