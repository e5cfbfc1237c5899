"""Layer norm and RMS norm: statistics and scaling in f32, one rounding at the end, as eager's kernels have it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final

import torch
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ktir.frontend.torch.builder import SUM, GraphBuilder, Operand
from ktir.frontend.torch.calls import Call
from ktir.frontend.torch.elements import element_of, shape_of
from ktir.frontend.torch.importer import Handler, Importer
from ktir.frontend.torch.ops.reductions import mapped, without
from ktir.frontend.torch.scalars import ScalarBuilder


def _average(build: GraphBuilder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    count = float(prod(shape_of(value)[d] for d in dims))
    return mapped(build, build.reduce(value, dims, SUM), lambda s, x: s.divide(x, s.constant(count, f32)))


def _inverse_root(build: GraphBuilder, value: SSAValue, epsilon: float) -> SSAValue:
    return mapped(build, value, lambda s, x: s.rsqrt(s.add(x, s.constant(epsilon, f32))))


def _affine(importer: Importer, arguments: Sequence[Any], rank: int) -> list[Operand]:
    """The weight and bias that are there, matched with the last dimensions."""
    return [importer.operand(argument, rank) for argument in arguments if argument is not None]


def _layer_norm(importer: Importer, call: Call) -> tuple[SSAValue, SSAValue, SSAValue]:
    """``(x - mean) * rsqrt(mean((x - mean)^2) + eps) * weight + bias``, with the mean and the inverse deviation."""
    build, value = importer.build, importer.tensor(call["input"])
    shape = shape_of(value)
    rank = len(shape)
    dims = list(range(rank - len(call["normalized_shape"]), rank))
    kept = without(dims, rank)
    mean = _average(build, value, dims)
    centred = build.pointwise(
        [Operand.aligned(value, rank), Operand(mean, kept)],
        shape,
        f32,
        lambda s, values: s.subtract(s.convert(values[0], f32), values[1]),
    )
    variance = _average(build, mapped(build, centred, lambda s, x: s.multiply(x, x)), dims)
    inverse = _inverse_root(build, variance, call["eps"])
    operands = [Operand.aligned(centred, rank), Operand(inverse, kept)]
    weight, bias = call["weight"], call["bias"]

    def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        remaining = iter(values[2:])
        result = s.multiply(values[0], values[1])
        if weight is not None:
            result = s.multiply(result, s.convert(next(remaining), f32))
        return result if bias is None else s.add(result, s.convert(next(remaining), f32))

    result = build.pointwise([*operands, *_affine(importer, [weight, bias], rank)], shape, call.element, body)
    statistics = [build.cast(build.keep_dims(part, dims, rank), call.element) for part in (mean, inverse)]
    return result, statistics[0], statistics[1]


def _rms_norm(importer: Importer, call: Call) -> SSAValue:
    """``x * rsqrt(mean(x^2) + eps) * weight``; without ``eps`` the smallest step of the type computed in."""
    build, value = importer.build, importer.tensor(call["input"])
    shape = shape_of(value)
    rank = len(shape)
    dims = list(range(rank - len(call["normalized_shape"]), rank))
    epsilon = call["eps"] if call["eps"] is not None else torch.finfo(torch.float32).eps
    mean = _average(build, mapped(build, value, lambda s, x: s.multiply(x, x)), dims)
    inverse = _inverse_root(build, mean, epsilon)
    operands = [Operand.aligned(value, rank), Operand(inverse, without(dims, rank))]
    weight = call["weight"]

    def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        result = s.multiply(s.convert(values[0], f32), values[1])
        return result if weight is None else s.multiply(result, s.convert(values[2], f32))

    return build.pointwise([*operands, *_affine(importer, [weight], rank)], shape, element_of(value), body)


NORMALISATION: Final = MappingProxyType[str, Handler](
    {"aten.native_layer_norm.default": _layer_norm, "aten.rms_norm.default": _rms_norm}
)
