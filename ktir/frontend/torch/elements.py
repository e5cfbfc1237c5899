"""Element types: what a torch dtype is called in the IR, and which of them the toolchain computes with."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, cast

import torch
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntegerType,
    TensorType,
    bf16,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from ktir.errors import UnsupportedInput
from ktir.location import Location

Element = Float16Type | BFloat16Type | Float32Type | IntegerType
"""Element types of level G."""

ELEMENTS: Final = MappingProxyType[torch.dtype, Element](
    {
        torch.float16: f16,
        torch.bfloat16: bf16,
        torch.float32: f32,
        torch.int64: i64,
        torch.int32: i32,
        torch.bool: i1,
    }
)


def element(dtype: torch.dtype, location: Location | None = None) -> Element:
    """The IR type of ``dtype``; raises :class:`UnsupportedInput` for one that level G has no word for."""
    if dtype not in ELEMENTS:
        known = ", ".join(short_name(known) for known in ELEMENTS)
        raise UnsupportedInput(
            f"element type {short_name(dtype)} is not supported",
            location=location,
            remedy=f"convert the tensor to one of {known} before it enters the compiled model",
        )
    return ELEMENTS[dtype]


def short_name(dtype: torch.dtype) -> str:
    """``float16`` for ``torch.float16``."""
    return str(dtype).removeprefix("torch.")


def is_float(kind: Attribute) -> bool:
    return isinstance(kind, AnyFloat)


def compute_element(kind: Element) -> Element:
    """The type eager PyTorch computes in for operands of ``kind``: half types are widened to f32 (``opmath_t``)."""
    return f32 if is_float(kind) else kind


def tensor_type(value: SSAValue) -> TensorType[Element]:
    return cast("TensorType[Element]", value.type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def element_of(value: SSAValue) -> Element:
    return tensor_type(value).element_type
