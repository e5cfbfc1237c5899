"""Results of runs belong to the caller: no run touches those of another, and they keep little else alive."""

import numpy as np
import pytest

from ktir.backends.dataflow.run import Runner
from tests.backends.dataflow.lower.kernels import fetch, kernel, lowered, normal, put, view

WIDE = [64, 64]


def doubled(parts: int) -> str:
    """Doubles the first 1/``parts`` of the rows of x."""
    some = [WIDE[0] // parts, WIDE[1]]
    return kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", WIDE, "f32"),
        view("y", "%y_ptr", some, "f32"),
        fetch("v", "%x", WIDE, "%c0, %c0", some, "f32"),
        f"%w = arith.addf %v, %v : tensor<{some[0]}x{some[1]}xf32>",
        put("w", "%y", some, "%c0, %c0", some, "f32"),
    )


@pytest.mark.parametrize("parts", [1, 2, 16])
def test_results_are_the_callers(parts: int) -> None:
    x = normal(WIDE, "f32")
    x.flags.writeable = False
    blank = np.zeros((WIDE[0] // parts, WIDE[1]), np.float32)
    runner = Runner(lowered(doubled(parts), None, {"x_ptr": x, "y_ptr": blank}))
    first, second = (runner.run({"x_ptr": x, "y_ptr": blank}).outputs["y_ptr"] for _ in range(2))
    assert np.array_equal(first, 2 * x[: blank.shape[0]])
    first[...] = 7
    assert np.array_equal(second, 2 * x[: blank.shape[0]])
    assert not blank.any()
    assert _kept(second) <= 3 * second.nbytes


def _kept(array: np.ndarray) -> int:
    """Bytes of the memory that ``array`` keeps alive."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes
