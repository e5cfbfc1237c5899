"""Reductions: sums, means and extrema over any dimensions, and softmax.

Floats are reduced in f32 and rounded once at the end, as eager does. A reduction over no elements is constant and
never comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final

from xdsl.dialects.builtin import f32, i1
from xdsl.ir import SSAValue

from ktir.frontend.torch.builder import MAXIMUM, MINIMUM, PRODUCT, SUM, Combiner, GraphBuilder, Operand
from ktir.frontend.torch.calls import Call
from ktir.frontend.torch.elements import element_of, is_float, shape_of
from ktir.frontend.torch.importer import Handler, Importer
from ktir.frontend.torch.scalars import ScalarBuilder


def dimensions(dim: Any, rank: int) -> list[int]:
    """The dimensions that ``dim`` names: a number, a list, or all of them for None and the empty list."""
    if dim is None or dim == []:
        return list(range(rank))
    names: Sequence[int] = [dim] if isinstance(dim, int) else dim
    return sorted(d % rank for d in names) if rank else []


def _reduction(combiner: Combiner) -> Handler:
    def handler(importer: Importer, call: Call) -> SSAValue:
        value = importer.tensor(call["self"])
        if not is_float(element_of(value)):
            value = importer.build.cast(value, call.element)
        total = importer.build.reduce(value, _dims(call, value), combiner)
        return importer.build.cast(_kept(importer.build, call, value, total), call.element)

    return handler


def _dims(call: Call, value: SSAValue) -> list[int]:
    return dimensions(call.arguments.get("dim"), len(shape_of(value)))


def _kept(build: GraphBuilder, call: Call, value: SSAValue, total: SSAValue) -> SSAValue:
    """The dimensions put back where ``keepdim`` asks for it."""
    if not call.arguments.get("keepdim"):
        return total
    return build.keep_dims(total, _dims(call, value), len(shape_of(value)))


def _mean(importer: Importer, call: Call) -> SSAValue:
    value = importer.tensor(call["self"])
    dims = _dims(call, value)
    total = _kept(importer.build, call, value, importer.build.reduce(value, dims, SUM))
    count = prod(shape_of(value)[d] for d in dims)
    shape = shape_of(total)

    def divided(scalars: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        return scalars.divide(values[0], scalars.constant(float(count), f32))

    return importer.build.pointwise([Operand.aligned(total, len(shape))], shape, call.element, divided)


def _truth(combiner: Combiner) -> Handler:
    """``any`` and ``all``: the extremum of ``element != 0``."""

    def handler(importer: Importer, call: Call) -> SSAValue:
        value = importer.build.cast(importer.tensor(call["self"]), i1)
        total = importer.build.reduce(value, _dims(call, value), combiner)
        return importer.build.cast(_kept(importer.build, call, value, total), call.element)

    return handler


def _vector_norm(importer: Importer, call: Call) -> SSAValue:
    """The Euclidean norm, ``sqrt(sum(x^2))``."""
    if importer.number(call["ord"]) != 2:
        raise call.refuse("norms other than the Euclidean one are not imported")
    value = importer.tensor(call["self"])
    dims, build = _dims(call, value), importer.build
    squares = mapped(build, value, lambda s, x: s.multiply(x, x))
    total = _kept(build, call, value, build.reduce(squares, dims, SUM))
    shape = shape_of(total)
    root = [Operand.aligned(total, len(shape))]
    return build.pointwise(root, shape, call.element, lambda s, values: s.sqrt(values[0]))


def _variance(importer: Importer, call: Call) -> SSAValue:
    """``sum((x - mean)^2) / (count - correction)``; NaN or inf where nothing is left to divide by, as in eager."""
    build, value = importer.build, importer.tensor(call["self"])
    shape, dims = shape_of(value), _dims(call, value)
    rank, count = len(shape), prod(shape_of(value)[d] for d in dims)
    correction = 1 if call["correction"] is None else call["correction"]
    mean = mapped(build, build.reduce(value, dims, SUM), lambda s, x: s.divide(x, s.constant(float(count), f32)))

    def square(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        difference = s.subtract(s.convert(values[0], f32), values[1])
        return s.multiply(difference, difference)

    operands = [Operand.aligned(value, rank), Operand(mean, without(dims, rank))]
    squares = build.pointwise(operands, shape, f32, square)
    total = _kept(build, call, value, build.reduce(squares, dims, SUM))
    freedom = float(max(count - correction, 0))
    operands = [Operand.aligned(total, len(shape_of(total)))]
    return build.pointwise(
        operands, shape_of(total), call.element, lambda s, v: s.divide(v[0], s.constant(freedom, f32))
    )


def mapped(build: GraphBuilder, value: SSAValue, formula: Callable[[ScalarBuilder, SSAValue], SSAValue]) -> SSAValue:
    """``formula`` of each element in f32, not rounded."""
    shape = shape_of(value)
    operands = [Operand.aligned(value, len(shape))]
    return build.pointwise(operands, shape, f32, lambda s, values: formula(s, s.convert(values[0], f32)))


def without(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """The loops that a tensor reduced over ``dims`` follows."""
    return tuple(d for d in range(rank) if d not in dims)


def _exp_of_difference(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
    return s.exp(s.subtract(s.convert(values[0], f32), values[1]))


def _shifted_powers(build: GraphBuilder, value: SSAValue, dim: int) -> tuple[list[Operand], SSAValue]:
    """``value`` and its maxima over ``dim`` as operands, and ``exp(value - maximum)`` in f32."""
    rank = len(shape_of(value))
    largest = build.reduce(value, [dim], MAXIMUM)
    operands = [Operand.aligned(value, rank), Operand(largest, without([dim], rank))]
    return operands, build.pointwise(operands, shape_of(value), f32, _exp_of_difference)


def _softmax(importer: Importer, call: Call) -> SSAValue:
    """``exp(x - max) / sum(exp(x - max))`` over ``dim``; rows of -inf give NaN, as in eager."""
    build, value = importer.build, importer.tensor(call["self"])
    shape = shape_of(value)
    if not shape:
        return build.pointwise([Operand(value, ())], (), call.element, lambda s, v: s.divide(v[0], v[0]))
    dim = call["dim"] % len(shape)
    rank = len(shape)
    _, powers = _shifted_powers(build, value, dim)
    total = build.reduce(powers, [dim], SUM)
    operands = [Operand.aligned(powers, rank), Operand(total, without([dim], rank))]
    return build.pointwise(operands, shape, call.element, lambda s, values: s.divide(values[0], values[1]))


def _log_softmax(importer: Importer, call: Call) -> SSAValue:
    """``x - max - log(sum(exp(x - max)))`` over ``dim``."""
    build, value = importer.build, importer.tensor(call["self"])
    shape = shape_of(value)
    if not shape:
        raise call.refuse("log_softmax of a tensor without dimensions is not imported")
    dim, rank = call["dim"] % len(shape), len(shape)
    operands, powers = _shifted_powers(build, value, dim)
    total = build.reduce(powers, [dim], SUM)

    def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        return s.subtract(s.subtract(s.convert(values[0], f32), values[1]), s.log(values[2]))

    return build.pointwise([*operands, Operand(total, without([dim], rank))], shape, call.element, body)


REDUCTIONS: Final = MappingProxyType[str, Handler](
    {
        "aten.sum.default": _reduction(SUM),
        "aten.sum.dim_IntList": _reduction(SUM),
        "aten.prod.default": _reduction(PRODUCT),
        "aten.prod.dim_int": _reduction(PRODUCT),
        "aten.amax.default": _reduction(MAXIMUM),
        "aten.max.default": _reduction(MAXIMUM),
        "aten.amin.default": _reduction(MINIMUM),
        "aten.min.default": _reduction(MINIMUM),
        "aten.mean.default": _mean,
        "aten.mean.dim": _mean,
        "aten.var.correction": _variance,
        "aten.any.default": _truth(MAXIMUM),
        "aten.any.dim": _truth(MAXIMUM),
        "aten.any.dims": _truth(MAXIMUM),
        "aten.all.default": _truth(MINIMUM),
        "aten.all.dim": _truth(MINIMUM),
        "aten.all.dims": _truth(MINIMUM),
        "aten.linalg_vector_norm.default": _vector_norm,
        "aten._softmax.default": _softmax,
        "aten._log_softmax.default": _log_softmax,
    }
)
