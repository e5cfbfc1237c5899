"""Literals that mean nothing are refused where they stand; those that mean the same are the same."""

import struct

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, TensorType, f16, f32
from xdsl.ir import Attribute

from ktir.dialect import overlay
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.errors import ParseError


def attribute(text: str) -> Attribute:
    module = parse_module(f"func.func private @f() attributes {{a = {text}}}", context=create_context())
    return next(iter(module.ops)).attributes["a"]


REFUSED = {
    "-0x3F800000 : f32": "leading minus",
    "0x1FFFF : f16": "out of range",
    "array<f16: 0x10000>": "out of range",
    "1.5 : f80": "f80 are not supported",
    "dense<1.5> : tensor<2xf128>": "f128 are not supported",
    "dense<true> : tensor<2xf32>": "expected a float",
    "-1.0 : f8E8M0FNU": "signed",
    f"1{'0' * 400}.0 : f4E2M1FN": "no infinity",
    "distinct[0]<1 : i32>, b = distinct[0]<2 : i32>": "previous definition",
    "distinct[-1]<>": "integer",
    "sparse<[[0, 4]], [1]> : tensor<4x4xi32>": "out of bounds",
    "sparse<[[0, -1]], [1]> : tensor<4x4xi32>": "out of bounds",
    "sparse<[0, 1], [1, 2]> : tensor<4x4xi32>": "2 numbers",
    "sparse<[[0, 1], [1, 2]], [1, 2, 3]> : tensor<4x4xi32>": "expected 2 elements",
    "sparse<[[0], [1, 2]], [1, 2]> : tensor<4xi32>": "inconsistent",
    "sparse<0, 1> : i32": "tensor",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_literal_without_meaning_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(ParseError, match=REFUSED[text]) as caught:
        attribute(text)
    assert caught.value.location is not None and caught.value.location.line == 1


SAME = [
    ("dense<0x7FC00001> : tensor<2xf32>", "dense<[0x7FC00001, 0x7FC00001]> : tensor<2xf32>"),
    ("dense<0x3F800000> : tensor<1xf32>", "dense<1.0> : tensor<1xf32>"),
    ('dense<"0x0100"> : tensor<2xi1>', "dense<[true, false]> : tensor<2xi1>"),
    ('dense<"0x0F"> : tensor<1xi4>', "dense<-1> : tensor<1xi4>"),
    ("array<f16: 0x3C00>", "array<f16: 1.0>"),
    ("sparse<[[1, 2]], 5> : tensor<3x4xi32>", "sparse<[[1, 2]], [5]> : tensor<3x4xi32>"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_of_one_literal_are_the_same(one: str, other: str) -> None:
    assert attribute(one) == attribute(other)


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF])
def test_a_nan_that_a_program_builds_keeps_its_bits(bits: int) -> None:
    overlay.repair_all()
    written = FloatAttr(f32.unpack(bits.to_bytes(4, "little"), 1)[0], f32)
    assert f32.pack((written.value.data,)) == bits.to_bytes(4, "little")
    assert DenseIntOrFPElementsAttr.from_list(TensorType(f32, [2]), [written.value.data] * 2).is_splat()


def test_what_is_too_large_for_a_type_is_infinite() -> None:
    overlay.repair_all()
    assert f16.unpack(f16.pack((1e5, -1e5, 65504.0)), 3) == (float("inf"), -float("inf"), 65504.0)
    assert f32.pack((1e300,)) == struct.pack("<f", float("inf"))
