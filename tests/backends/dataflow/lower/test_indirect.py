"""Rows and elements picked by index views: one index, several, pages, in loads and in stores, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ktir.errors import NotLowerable
from tests.backends.dataflow.lower.kernels import box, check, fetch, kernel, lowered, normal, put, shaped, view

RANDOM = np.random.default_rng(5)


def picked(
    name: str,
    variables: str,
    base: str,
    subscripts: str,
    space: Sequence[int],
    types: str,
    *,
    order: Sequence[int] | None = None,
) -> str:
    """``%name`` as an indirect tile over the box ``space``, walked in ``order``."""
    dims = [f"d{i}" for i in range(len(space))]
    walked = list(order or range(len(space)))
    shape = [space[dim] for dim in walked]
    return (
        f"%{name} = ktdp.construct_indirect_access_tile intermediate_variables({variables}) {base}[{subscripts}] "
        f"{{variables_space_set = {box(space)}, variables_space_order = "
        f"affine_map<({', '.join(dims)}) -> ({', '.join(dims[d] for d in walked)})>}} : {types} "
        f"-> !ktdp.access_tile<{shaped(shape, 'index')}>"
    )


@pytest.mark.parametrize("width", ["i32", "i64"])
def test_elements_are_picked_by_two_indices(width: str) -> None:
    text = kernel(
        "%x_ptr: index, %i_ptr: index, %j_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", [20, 30], "f16"),
        view("i", "%i_ptr", [8, 64], width),
        view("j", "%j_ptr", [8, 64], width),
        view("y", "%y_ptr", [8, 64], "f16"),
        picked(
            "rows",
            "%m, %k",
            "%x",
            "ind(%i[%m, %k]), ind(%j[%m, %k])",
            [8, 64],
            f"memref<20x30xf16>, memref<8x64x{width}>, memref<8x64x{width}>",
        ),
        "%v = ktdp.load %rows : <8x64xindex> -> tensor<8x64xf16>",
        put("v", "%y", [8, 64], "%c0, %c0", [8, 64], "f16"),
    )
    x = normal([20, 30])
    i, j = (RANDOM.integers(0, n, (8, 64)).astype(f"int{width[1:]}") for n in (20, 30))
    check(text, {"x_ptr": x, "i_ptr": i, "j_ptr": j, "y_ptr": np.zeros((8, 64), np.float16)}, {"y_ptr": x[i, j]})


def test_one_index_walks_rows_and_the_other_columns() -> None:
    """x[i[m], j[k]]: neither index view has all variables."""
    text = kernel(
        "%x_ptr: index, %i_ptr: index, %j_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", [20, 30], "f32"),
        view("i", "%i_ptr", [4], "i32"),
        view("j", "%j_ptr", [32], "i32"),
        view("y", "%y_ptr", [4, 32], "f32"),
        picked(
            "rows",
            "%m, %k",
            "%x",
            "ind(%i[%m]), ind(%j[%k])",
            [4, 32],
            "memref<20x30xf32>, memref<4xi32>, memref<32xi32>",
        ),
        "%v = ktdp.load %rows : <4x32xindex> -> tensor<4x32xf32>",
        put("v", "%y", [4, 32], "%c0, %c0", [4, 32], "f32"),
    )
    x = normal([20, 30], "f32")
    i, j = RANDOM.integers(0, 20, 4).astype(np.int32), RANDOM.integers(0, 30, 32).astype(np.int32)
    arguments = {"x_ptr": x, "i_ptr": i, "j_ptr": j, "y_ptr": np.zeros((4, 32), np.float32)}
    check(text, arguments, {"y_ptr": x[np.ix_(i, j)]})


def test_elements_are_scattered_by_two_indices() -> None:
    text = kernel(
        "%x_ptr: index, %i_ptr: index, %j_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", [4, 64], "f16"),
        view("i", "%i_ptr", [4, 64], "i32"),
        view("j", "%j_ptr", [4, 64], "i32"),
        view("y", "%y_ptr", [16, 16], "f16"),
        fetch("v", "%x", [4, 64], "%c0, %c0", [4, 64], "f16"),
        picked(
            "places",
            "%m, %k",
            "%y",
            "ind(%i[%m, %k]), ind(%j[%m, %k])",
            [4, 64],
            "memref<16x16xf16>, memref<4x64xi32>, memref<4x64xi32>",
        ),
        "ktdp.store %v, %places : tensor<4x64xf16>, <4x64xindex>",
    )
    x = normal([4, 64])
    places = RANDOM.permutation(256).reshape(4, 64).astype(np.int32)
    y = np.zeros((16, 16), np.float16)
    y[places // 16, places % 16] = x
    arguments = {"x_ptr": x, "i_ptr": places // 16, "j_ptr": places % 16, "y_ptr": np.zeros((16, 16), np.float16)}
    check(text, arguments, {"y_ptr": y})


def paged(order: Sequence[int]) -> str:
    """Tokens of two sequences in pages of 16: x[page[b, t / 16], h, t mod 16, d]."""
    space = [2, 3, 64, 32]
    shape = [space[dim] for dim in order]
    return kernel(
        "%x_ptr: index, %page_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", [10, 3, 16, 32], "f16"),
        view("page", "%page_ptr", [2, 4], "i32"),
        view("y", "%y_ptr", shape, "f16"),
        picked(
            "tokens",
            "%b, %h, %t, %d",
            "%x",
            "ind(%page[%b, %t floordiv 16]), (%h), (%t mod 16), (%d)",
            space,
            "memref<10x3x16x32xf16>, memref<2x4xi32>",
            order=order,
        ),
        f"%v = ktdp.load %tokens : <{shaped(shape, 'index')}> -> tensor<{shaped(shape, 'f16')}>",
        put("v", "%y", shape, "%c0, %c0, %c0, %c0", shape, "f16"),
    )


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 3, 1)])
def test_pages_are_read_in_any_order(order: tuple[int, ...]) -> None:
    x = normal([10, 3, 16, 32])
    pages = RANDOM.permutation(10)[:8].reshape(2, 4).astype(np.int32)
    by_token = x[pages].transpose(0, 2, 1, 3, 4).reshape(2, 3, 64, 32)
    y = np.zeros([by_token.shape[dim] for dim in order], np.float16)
    check(paged(order), {"x_ptr": x, "page_ptr": pages, "y_ptr": y}, {"y_ptr": by_token.transpose(order)})


def test_pages_that_do_not_divide_the_tokens_are_refused() -> None:
    text = paged((0, 1, 2, 3)).replace("floordiv 16", "floordiv 24").replace("mod 16", "mod 24")
    x, page, y = np.zeros((10, 3, 16, 32), np.float16), np.zeros((2, 4), np.int32), np.zeros((2, 3, 64, 32), np.float16)
    with pytest.raises(NotLowerable, match="is not linear"):
        lowered(text, None, {"x_ptr": x, "page_ptr": page, "y_ptr": y})
