"""Point-wise operators: one ``linalg.generic`` each, in eager's internal precision, rounded once.

Half types are computed in f32. Scalars of arithmetic operators keep f32 precision, as eager's kernels keep them in
``opmath_t``; scalars of comparisons, selections and clamps are first rounded to the type they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from types import MappingProxyType
from typing import Any, Final, cast

import torch
from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import SSAValue

from ktir.frontend.torch.calls import Call, described
from ktir.frontend.torch.elements import Element, compute_element, element, is_float
from ktir.frontend.torch.importer import Handler, Importer
from ktir.frontend.torch.scalars import Number, ScalarBuilder

Formula = Callable[..., SSAValue]
"""From a scalar builder and the operands, all of the computing type, to the result."""


def pointwise(
    importer: Importer, call: Call, arguments: Sequence[Any], common: Element, formula: Formula, *, round_scalars: bool
) -> SSAValue:
    """Apply ``formula`` to ``arguments`` (nodes and numbers) promoted to ``common``."""
    shape = call.shape
    numbers = [importer.number(argument) for argument in arguments]
    operands = [
        importer.operand(argument, len(shape))
        for argument, number in zip(arguments, numbers, strict=True)
        if number is None
    ]
    compute = compute_element(common)

    def body(scalars: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        remaining = iter(values)
        return formula(
            scalars,
            *(
                promoted(scalars, next(remaining), common, compute)
                if number is None
                else scalar(scalars, number, common if round_scalars else compute, compute)
                for number in numbers
            ),
        )

    return importer.build.pointwise(operands, shape, call.element, body)


def promoted(scalars: ScalarBuilder, value: SSAValue, common: Element, compute: Element) -> SSAValue:
    """``value`` converted to the common type and widened to the computing type."""
    if value.type == common or not _narrower(common, value.type):
        return scalars.convert(value, compute)
    return scalars.convert(scalars.convert(value, common), compute)


def _narrower(kind: Element, other: Any) -> bool:
    """Whether converting an ``other`` to ``kind`` loses something that widening it would not."""
    return is_float(kind) and not (is_float(other) and cast("Any", kind).bitwidth >= other.bitwidth)


def scalar(scalars: ScalarBuilder, number: Number, common: Element, compute: Element) -> SSAValue:
    return scalars.convert(scalars.constant(number, common), compute)


def common_element(call: Call, *names: str) -> Element:
    """The type that PyTorch's promotion rules give for the named arguments."""
    values = [call[name] for name in names]
    metas: list[Any] = [described(value) if isinstance(value, torch.fx.Node) else value for value in values]
    return element(torch.result_type(metas[0], metas[-1]), call.location)


# -------------------------------------------------------------------------------------------------------- one operand


def _unary(formula: Formula) -> Handler:
    """An operator whose result type is the type computed in; integers are promoted to it."""

    def handler(importer: Importer, call: Call) -> SSAValue:
        return pointwise(importer, call, [call["self"]], call.element, formula, round_scalars=False)

    return handler


def _predicate(formula: Formula) -> Handler:
    """A test on the operand in its own type."""

    def handler(importer: Importer, call: Call) -> SSAValue:
        own = common_element(call, "self")
        if not is_float(own):
            return importer.build.filled(call.shape, call.element, False)
        return pointwise(importer, call, [call["self"]], own, formula, round_scalars=False)

    return handler


def _relu(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    kind = element_of_scalar(x)
    return s.maximum(x, s.constant(0, kind))


def element_of_scalar(value: SSAValue) -> Element:
    return cast("Element", value.type)


def _gelu(importer: Importer, call: Call) -> SSAValue:
    formula = _gelu_tanh if call["approximate"] == "tanh" else _gelu_erf
    return pointwise(importer, call, [call["self"]], call.element, formula, round_scalars=False)


def _gelu_erf(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    """``x / 2 * (1 + erf(x / sqrt 2))``."""
    kind = element_of_scalar(x)
    half = s.multiply(x, s.constant(0.5, kind))
    return s.multiply(half, s.add(s.constant(1.0, kind), s.erf(s.multiply(x, s.constant(sqrt(0.5), kind)))))


def _gelu_tanh(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))``."""
    kind = element_of_scalar(x)
    cube = s.multiply(s.multiply(x, x), x)
    inner = s.add(x, s.multiply(cube, s.constant(0.044715, kind)))
    tanh = s.tanh(s.multiply(inner, s.constant(sqrt(2.0 / 3.141592653589793), kind)))
    return s.multiply(s.multiply(x, s.constant(0.5, kind)), s.add(s.constant(1.0, kind), tanh))


def _silu(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    """``x / (1 + exp(-x))``, eager's own form: -inf gives NaN there as well."""
    return s.divide(x, s.add(s.constant(1.0, element_of_scalar(x)), s.exp(s.negate(x))))


def _leaky_relu(importer: Importer, call: Call) -> SSAValue:
    slope: Number = call["negative_slope"]

    def formula(s: ScalarBuilder, x: SSAValue) -> SSAValue:
        kind = element_of_scalar(x)
        positive = s.compare("ogt", x, s.constant(0.0, kind))
        return s.select(positive, x, s.multiply(x, s.constant(slope, kind)))

    return pointwise(importer, call, [call["self"]], call.element, formula, round_scalars=False)


def _elu(importer: Importer, call: Call) -> SSAValue:
    """``scale * x`` above 0, ``scale * alpha * (exp(input_scale * x) - 1)`` below."""
    alpha, scale, input_scale = call["alpha"], call["scale"], call["input_scale"]

    def formula(s: ScalarBuilder, x: SSAValue) -> SSAValue:
        kind = element_of_scalar(x)
        below = s.multiply(s.expm1(s.multiply(x, s.constant(input_scale, kind))), s.constant(alpha * scale, kind))
        above = s.multiply(x, s.constant(scale, kind))
        return s.select(s.compare("ogt", x, s.constant(0.0, kind)), above, below)

    return pointwise(importer, call, [call["self"]], call.element, formula, round_scalars=False)


def _hardtanh(importer: Importer, call: Call) -> SSAValue:
    def formula(s: ScalarBuilder, x: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
        return s.minimum(s.maximum(x, low), high)

    arguments = [call["self"], call["min_val"], call["max_val"]]
    return pointwise(importer, call, arguments, call.element, formula, round_scalars=True)


def _logical_not(importer: Importer, call: Call) -> SSAValue:
    return pointwise(importer, call, [call["self"]], i1, ScalarBuilder.invert, round_scalars=False)


def _cast(importer: Importer, call: Call) -> SSAValue:
    return importer.build.cast(importer.tensor(call["self"]), call.element)


# -------------------------------------------------------------------------------------------------------- two operands


def _arithmetic(formula: Formula) -> Handler:
    def handler(importer: Importer, call: Call) -> SSAValue:
        return pointwise(importer, call, [call["self"], call["other"]], call.element, formula, round_scalars=False)

    return handler


def _scaled(formula: Formula) -> Handler:
    """``formula(self, alpha * other)``."""

    def handler(importer: Importer, call: Call) -> SSAValue:
        alpha: Number = call["alpha"]

        def scaled(s: ScalarBuilder, left: SSAValue, right: SSAValue) -> SSAValue:
            if alpha != 1:
                right = s.multiply(right, s.constant(alpha, element_of_scalar(right)))
            return formula(s, left, right)

        return pointwise(importer, call, [call["self"], call["other"]], call.element, scaled, round_scalars=False)

    return handler


def _comparison(float_predicate: str, integer_predicate: str) -> Handler:
    def formula(s: ScalarBuilder, left: SSAValue, right: SSAValue) -> SSAValue:
        kind = element_of_scalar(left)
        if is_float(kind):
            return s.compare(float_predicate, left, right)
        unsigned = integer_predicate.replace("s", "u", 1) if kind == i1 else integer_predicate
        return s.compare(unsigned, left, right)

    def handler(importer: Importer, call: Call) -> SSAValue:
        common = common_element(call, "self", "other")
        return pointwise(importer, call, [call["self"], call["other"]], common, formula, round_scalars=True)

    return handler


def _logical(formula: Formula) -> Handler:
    def handler(importer: Importer, call: Call) -> SSAValue:
        return pointwise(importer, call, [call["self"], call["other"]], i1, formula, round_scalars=True)

    return handler


def _bitwise(formula: Formula, neutral: int) -> Handler:
    """Bits of two operands; a constant operand that is neutral leaves a copy of the other one."""

    def handler(importer: Importer, call: Call) -> SSAValue:
        kind = call.element
        if not isinstance(kind, IntegerType):
            raise call.refuse("bits of floats have no meaning")
        for one, other in ((call["self"], call["other"]), (call["other"], call["self"])):
            meta = described(one) if isinstance(one, torch.fx.Node) else None
            unchanged = importer.number(other) == (neutral & 1 if kind == i1 else neutral)
            if unchanged and meta is not None and element(meta.dtype) == kind:
                return importer.build.broadcast(importer.unexpanded(one), call.shape)
        return pointwise(importer, call, [call["self"], call["other"]], kind, formula, round_scalars=True)

    return handler


def _divide(importer: Importer, call: Call) -> SSAValue:
    if call.arguments.get("rounding_mode") is not None or not is_float(call.element):
        raise call.refuse("division that rounds to integers is not imported")
    arguments = [call["self"], call["other"]]
    return pointwise(importer, call, arguments, call.element, ScalarBuilder.divide, round_scalars=False)


def _extremum(formula: Formula) -> Handler:
    def handler(importer: Importer, call: Call) -> SSAValue:
        return pointwise(importer, call, [call["self"], call["other"]], call.element, formula, round_scalars=True)

    return handler


def _power(importer: Importer, call: Call) -> SSAValue:
    exponent = importer.number(call["exponent"])
    kind = call.element
    if exponent is not None and (small := _small_power(exponent, kind)) is not None:
        return pointwise(importer, call, [call["self"]], kind, small, round_scalars=False)
    if not is_float(kind):
        raise call.refuse("powers of integers are imported for the constant exponents 1, 2 and 3 only")
    arguments = [call["self"], call["exponent"]]
    return pointwise(importer, call, arguments, kind, ScalarBuilder.power, round_scalars=False)


def _same(_: ScalarBuilder, x: SSAValue) -> SSAValue:
    return x


def _squared(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    return s.multiply(x, x)


def _cubed(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    return s.multiply(s.multiply(x, x), x)


def _squared_reciprocal(s: ScalarBuilder, x: SSAValue) -> SSAValue:
    return s.reciprocal(s.multiply(x, x))


def _small_power(exponent: Number, kind: Element) -> Formula | None:
    """The exponents that eager computes without ``pow``, by products and roots."""
    match float(exponent):
        case 1.0:
            return _same
        case 2.0:
            return _squared
        case 3.0:
            return _cubed
        case 0.5 if is_float(kind):
            return ScalarBuilder.sqrt
        case -0.5 if is_float(kind):
            return ScalarBuilder.rsqrt
        case -1.0 if is_float(kind):
            return ScalarBuilder.reciprocal
        case -2.0 if is_float(kind):
            return _squared_reciprocal
        case _:
            return None


# -------------------------------------------------------------------------------------------------------- selections


def _where(importer: Importer, call: Call) -> SSAValue:
    shape, kind = call.shape, call.element
    chosen = importer.number(call["condition"])
    if chosen is not None:
        side = call["self"] if chosen else call["other"]
        return pointwise(importer, call, [side], kind, _same, round_scalars=True)
    sides = [call["self"], call["other"]]
    numbers = [importer.number(side) for side in sides]
    operands = [importer.operand(call["condition"], len(shape))]
    operands += [importer.operand(side, len(shape)) for side, n in zip(sides, numbers, strict=True) if n is None]

    def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        remaining = iter(values[1:])
        yes, no = (s.convert(next(remaining), kind) if n is None else s.constant(n, kind) for n in numbers)
        return s.select(s.convert(values[0], i1), yes, no)

    return importer.build.pointwise(operands, shape, kind, body)


def _clamp(importer: Importer, call: Call) -> SSAValue:
    """``min(max(self, low), high)``; NaN stays NaN."""
    bounds = [call["min"], call["max"]]
    present = [bound for bound in bounds if bound is not None]

    def formula(s: ScalarBuilder, x: SSAValue, *values: SSAValue) -> SSAValue:
        remaining = iter(values)
        if bounds[0] is not None:
            x = s.maximum(x, next(remaining))
        return s.minimum(x, next(remaining)) if bounds[1] is not None else x

    return pointwise(importer, call, [call["self"], *present], call.element, formula, round_scalars=True)


def _full_like(importer: Importer, call: Call) -> SSAValue:
    number = importer.number(call["fill_value"])
    if number is None:
        raise call.refuse("the value to fill with is not constant")
    return importer.build.filled(call.shape, call.element, number)


def _zeros_like(importer: Importer, call: Call) -> SSAValue:
    return importer.build.filled(call.shape, call.element, 0)


_UNARY: Final = {
    "abs": ScalarBuilder.absolute,
    "neg": ScalarBuilder.negate,
    "exp": ScalarBuilder.exp,
    "log": ScalarBuilder.log,
    "log2": ScalarBuilder.log2,
    "log1p": ScalarBuilder.log1p,
    "expm1": ScalarBuilder.expm1,
    "sqrt": ScalarBuilder.sqrt,
    "rsqrt": ScalarBuilder.rsqrt,
    "reciprocal": ScalarBuilder.reciprocal,
    "erf": ScalarBuilder.erf,
    "tanh": ScalarBuilder.tanh,
    "sin": ScalarBuilder.sin,
    "cos": ScalarBuilder.cos,
    "sigmoid": ScalarBuilder.sigmoid,
    "floor": ScalarBuilder.floor,
    "round": ScalarBuilder.round_even,
    "ceil": ScalarBuilder.ceil,
    "relu": _relu,
    "silu": _silu,
    "bitwise_not": ScalarBuilder.invert,
}

_COMPARISONS: Final = {
    "eq": ("oeq", "eq"),
    "ne": ("une", "ne"),
    "lt": ("olt", "slt"),
    "le": ("ole", "sle"),
    "gt": ("ogt", "sgt"),
    "ge": ("oge", "sge"),
}

_BITS: Final = {
    "and": (ScalarBuilder.both, -1),
    "or": (ScalarBuilder.either, 0),
    "xor": (ScalarBuilder.exclusive, 0),
}


def _overloads(name: str, handler: Handler, *overloads: str) -> dict[str, Handler]:
    return {f"aten.{name}.{overload}": handler for overload in overloads}


def _table() -> dict[str, Handler]:
    table: dict[str, Handler] = {}
    for name, formula in _UNARY.items():
        table |= _overloads(name, _unary(formula), "default")
    for name, predicates in _COMPARISONS.items():
        table |= _overloads(name, _comparison(*predicates), "Tensor", "Scalar")
    for name, (formula, neutral) in _BITS.items():
        table |= _overloads(f"bitwise_{name}", _bitwise(formula, neutral), "Tensor", "Scalar", "Scalar_Tensor")
        table |= _overloads(f"logical_{name}", _logical(formula), "default")
    table |= _overloads("add", _scaled(ScalarBuilder.add), "Tensor", "Scalar")
    table |= _overloads("sub", _scaled(ScalarBuilder.subtract), "Tensor", "Scalar")
    table |= _overloads("mul", _arithmetic(ScalarBuilder.multiply), "Tensor", "Scalar")
    table |= _overloads("div", _divide, "Tensor", "Scalar", "Tensor_mode", "Scalar_mode")
    table |= _overloads("maximum", _extremum(ScalarBuilder.maximum), "default")
    table |= _overloads("minimum", _extremum(ScalarBuilder.minimum), "default")
    table |= _overloads("pow", _power, "Tensor_Scalar", "Tensor_Tensor", "Scalar")
    table |= _overloads("clamp", _clamp, "default", "Tensor")
    table |= _overloads("where", _where, "self")
    table |= _overloads("gelu", _gelu, "default")
    table |= _overloads("leaky_relu", _leaky_relu, "default")
    table |= _overloads("elu", _elu, "default")
    table |= _overloads("hardtanh", _hardtanh, "default")
    table |= _overloads("logical_not", _logical_not, "default")
    table |= _overloads("isnan", _predicate(ScalarBuilder.is_nan), "default")
    table |= _overloads("isinf", _predicate(ScalarBuilder.is_infinite), "default")
    table |= _overloads("_to_copy", _cast, "default")
    table |= _overloads("full_like", _full_like, "default")
    table |= _overloads("zeros_like", _zeros_like, "default")
    return table


POINTWISE: Final = MappingProxyType[str, Handler](_table())
