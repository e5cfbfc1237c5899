"""Arguments nobody gave: their shapes are those of the program's types and views."""

from __future__ import annotations

import numpy as np
import pytest

from ktir.dialect.text.parser import parse_module
from ktir.errors import ArgumentError
from ktir.interp.made_arguments import Shaped, element_named, parse_shaped, random_arguments, shape_of_argument
from tests.interp.kernels import kernel, view

SYMBOLIC = kernel(
    [
        "%two = arith.constant 2 : index",
        "%rows = arith.muli %n, %two : index",
        "%v = ktdp.construct_memory_view %x, sizes: [%rows, 8], strides: [8, 1] {coordinate_set = "
        "affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 7 >= 0)>, "
        "memory_space = #ktdp.memory_space<global>} : memref<?x8xf16>",
    ],
    "%x: index, %n: index",
)  # fmt: skip


def shape(text: str, name: str, **given: int) -> tuple[str, tuple[int, ...]]:
    (function,) = parse_module(text).body.block.ops
    found = shape_of_argument(function, name, given)  # type: ignore[arg-type]
    return found.element.name, found.shape


@pytest.mark.parametrize(
    ("text", "element", "extents"),
    [
        ("f16[67,1000]", "f16", (67, 1000)),
        ("f16[67x1000]", "f16", (67, 1000)),
        ("67x1000xf16", "f16", (67, 1000)),
        ("bf16", "bf16", ()),
        ("0x4xi1", "i1", (0, 4)),
        ("3xf8E4M3FN", "f8E4M3FN", (3,)),
    ],
)
def test_shapes_are_read_in_both_spellings(text: str, element: str, extents: tuple[int, ...]) -> None:
    assert parse_shaped(text) == Shaped(element_named(element), extents)


@pytest.mark.parametrize("text", ["", "x", "3x", "67x-1xf16", "f16[", "1.5xf16"])
def test_what_is_no_shape_is_not_one(text: str) -> None:
    try:
        assert parse_shaped(text) is None
    except ArgumentError as error:
        assert "no element type" in error.message


def test_a_pointer_has_the_shape_of_its_only_view() -> None:
    assert shape(kernel([view("%v", "%x", (4, 6), "bf16")], "%x: index"), "x") == ("bf16", (4, 6))


def test_views_with_gaps_and_several_views_reach_to_the_last_element() -> None:
    assert shape(kernel([view("%v", "%x", (4, 6), strides=(10, 1))], "%x: index"), "x") == ("f32", (36,))
    both = kernel([view("%v", "%x", (4, 6)), view("%w", "%x", (30,))], "%x: index")
    assert shape(both, "x") == ("f32", (30,))


def test_sizes_follow_from_given_numbers() -> None:
    assert shape(SYMBOLIC, "x", n=5) == ("f16", (10, 8))
    with pytest.raises(ArgumentError, match="'x'"):
        shape(SYMBOLIC, "x")


def test_types_have_shapes_themselves() -> None:
    text = "func.func @main(%a: memref<2x3xf16>, %b: tensor<4xi8>) {\n return\n}\n"
    assert (shape(text, "a"), shape(text, "b")) == (("f16", (2, 3)), ("i8", (4,)))


def test_numbers_and_unknown_arguments_cannot_be_made() -> None:
    for name in ("n", "nobody"):
        with pytest.raises(ArgumentError, match=name):
            shape(SYMBOLIC, name)


def test_random_arguments_keep_what_is_given_and_depend_on_the_seed_alone() -> None:
    (function,) = parse_module(kernel([view("%v", "%x", (4, 6)), view("%w", "%y", (4, 6))], "%x: index, %y: index")
                               ).body.block.ops  # fmt: skip
    given = {"y": np.ones((4, 6), np.float32)}
    one, again, other = (random_arguments(function, given, seed) for seed in (1, 1, 2))  # type: ignore[arg-type]
    assert one["y"] is given["y"]
    np.testing.assert_array_equal(one["x"], again["x"])
    assert (one["x"] != other["x"]).any()
