"""Conversions give numpy's bits, whoever does them and however the array lies in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ktir.interp.casts import WORTH_A_CALL, cast
from ktir.interp.narrow_arithmetic import rounding

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

pytest.importorskip("torch")  # with it in the process, big arrays go through it

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda values: values,
    "transposed": lambda values: values.T,
    "reversed": lambda values: values[::-1],
    "every other": lambda values: values[:, ::2],
    "repeated": lambda values: np.broadcast_to(values[:, None], (values.shape[0], 3, values.shape[1])),
}


def as_bits(values: Any) -> Any:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def all_words(dtype: np.dtype[Any]) -> Any:
    """Every number of 16 bits, NaNs apart in rows of their own."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):
        undefined = np.isnan(numbers)
    return np.concatenate([numbers[~undefined], numbers[undefined]]).reshape(256, 256)


def singles() -> Any:
    generator = np.random.default_rng(7)
    words = generator.integers(0, 1 << 32, (300, 500), dtype=np.uint64).astype(np.uint32)
    halves = generator.standard_normal((100, 500)).astype(np.float16).astype(np.float32).view(np.uint32)
    ties = halves + np.uint32(0x1000)  # just between two numbers of 16 bits
    return np.concatenate([words, halves, ties]).view(np.float32)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("narrow", [F16, BFLOAT16], ids=str)
def test_conversions_have_the_bits_of_numpy(layout: str, narrow: np.dtype[Any]) -> None:
    finite = np.nan_to_num(singles(), nan=1.0)
    for values, target in ((all_words(narrow), F32), (singles(), narrow), (finite, narrow)):
        arranged = LAYOUTS[layout](values)
        with np.errstate(all="ignore"):
            expected = arranged.astype(target)
            found = cast(arranged, target)
        assert found.dtype == target and found.shape == arranged.shape
        np.testing.assert_array_equal(as_bits(found), as_bits(expected))


def test_the_operand_is_left_alone_and_a_read_only_one_is_fine() -> None:
    values = np.ones(WORTH_A_CALL, np.float16)
    values.flags.writeable = False
    result = cast(values, F32)
    result += 1
    assert (values == 1).all() and (result == 2).all()


def test_repeated_elements_are_converted_once() -> None:
    values = np.broadcast_to(np.ones((1, WORTH_A_CALL), np.float16), (1 << 20, WORTH_A_CALL))
    assert cast(values, F32).strides[0] == 0


OPERATIONS = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.divide: "divide"}


@pytest.mark.parametrize("dtype", [F16, BFLOAT16], ids=str)
@pytest.mark.parametrize("function", OPERATIONS, ids=OPERATIONS.values())
def test_arithmetic_in_one_pass_has_the_bits_of_three(function: Any, dtype: Any) -> None:
    """Also where the result is no NaN anywhere, which is when one pass is enough."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    wide = numbers.astype(F32)
    finite = numbers[np.isfinite(wide) & (wide != 0)]
    finite = finite[: len(finite) // 30 * 30].reshape(30, -1)
    shuffled = np.random.default_rng(11).permutation(finite.ravel()).reshape(finite.shape)
    constants = [np.broadcast_to(np.array(number, dtype), finite.shape) for number in (0.0, -0.0, np.inf, np.nan)]
    for other in (shuffled, shuffled[:1], shuffled[:, ::-1], shuffled[:, :1], *constants):
        for left, right in ((finite, other), (other, finite)):
            with np.errstate(all="ignore"):
                expected = function(left.astype(F32), right.astype(F32)).astype(dtype)
                found = rounding(function, dtype)(left, right)
            np.testing.assert_array_equal(as_bits(found), as_bits(expected))


def test_a_function_of_narrow_floats_leaves_its_operands_alone() -> None:
    wide = np.linspace(-1, 1, 2 * WORTH_A_CALL, dtype=F32)
    before = wide.copy()
    rounding(np.exp, F16)(wide)
    np.testing.assert_array_equal(wide, before)
