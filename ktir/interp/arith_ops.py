"""The ``arith`` operations, on scalars and tensors alike.

Signs and rounding of the integer divisions, the NaN rules of ``maximumf`` and ``maxnumf`` and the wrap-around of
integers are MLIR's. What an operation does to integers stands in integers.py, what a conversion does in conversions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from ktir.errors import UnknownOperation
from ktir.interp.casts import cast as converted
from ktir.interp.combiners import MAXIMUM, MAXNUM, MINIMUM, MINNUM
from ktir.interp.compile import (
    CompileOperation,
    FunctionCompiler,
    Rule,
    Step,
    any_lane,
    element_of,
    is_shaped,
    shape_of,
    spread,
)
from ktir.interp.conversions import (
    has_infinity,
    reinterpreted,
    rounded_towards,
    sign_extended,
    to_float,
    to_integer,
    zero_extended,
)
from ktir.interp.integers import (
    Build,
    ceiling_quotient,
    division,
    extreme,
    integer,
    ring,
    shift,
    shift_left,
    shift_right,
    shift_right_unsigned,
    truncated_quotient,
)
from ktir.interp.narrow_arithmetic import rounding
from ktir.interp.numerics import (
    BOOL,
    F64,
    Array,
    Binary,
    ElementType,
    Function,
    Scalar,
    as_array,
    as_scalar,
    float_constant,
    narrow,
    unsigned,
    widen,
    wrap,
)
from ktir.interp.undefined_results import marking
from ktir.interp.values import Frame, Site, Tainted, Value

# ------------------------------------------------------------------------------------------------------------ constants


def constant(compiler: FunctionCompiler, op: Operation) -> Step:
    """A literal; made once, shared by every execution."""
    value = literal(op.properties["value"], op.results[0].type, compiler.site(op))
    out = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame.regs[out] = value

    return step


def literal(attribute: Attribute, kind: Attribute, site: Site) -> Value:
    """The value that an attribute denotes."""
    element = element_of(kind)
    if isinstance(attribute, IntegerAttr):
        return wrap(attribute.value.data, element.bits)
    if isinstance(attribute, FloatAttr):
        return float_constant(attribute.value.data, element)
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        return dense_literal(cast("DenseIntOrFPElementsAttr[Any]", attribute), shape_of(kind), element)
    raise site.fail(
        UnknownOperation, f"has a constant {attribute} that cannot be computed with", "use a number or dense<..>"
    )


def dense_literal(attribute: DenseIntOrFPElementsAttr[Any], shape: tuple[int, ...], element: ElementType) -> Array:
    numbers = cast("list[float]", list(attribute.get_values()))
    if element.kind == "float":
        values = narrow(np.array(numbers, F64), element.dtype)
    else:
        values = np.array([wrap(int(number), element.bits) for number in numbers], element.dtype)
    if len(numbers) == 1:
        return np.broadcast_to(values.reshape((1,) * (len(shape) + 1)), (1, *shape))
    return values.reshape((1, *shape))


def multiply_extended(*, signed: bool) -> Callable[[FunctionCompiler, Operation], Step]:
    """``mulsi_extended`` and ``mului_extended``: low and high half of the full product."""

    def compile_operation(compiler: FunctionCompiler, op: Operation) -> Step:
        first, second = (compiler.slot(value) for value in op.operands)
        low, high = (compiler.slot(value) for value in op.results)
        element, site = element_of(op.operands[0].type), compiler.site(op)
        bits, dtype = element.bits, element.dtype

        def product(a: Scalar, b: Scalar) -> Array:
            numbers = (
                as_array(value, dtype).astype(object)
                if signed
                else unsigned(as_array(value, dtype), bits).astype(object)
                for value in (a, b)
            )
            left, right = numbers
            return left * right

        def half(a: Scalar, b: Scalar, places: int) -> Scalar:
            numbers = product(a, b)
            wrapped = [wrap(int(number) >> places, bits) for number in numbers.flat]
            return as_scalar(np.array(wrapped, dtype).reshape(numbers.shape))

        def step(frame: Frame) -> None:
            regs = frame.regs
            values = [regs[first], regs[second]]
            for out, places in ((low, 0), (high, bits)):
                regs[out] = _apply(site, partial(half, places=places), any_lane, values)

        return step

    return compile_operation


def add_extended(compiler: FunctionCompiler, op: Operation) -> Step:
    """``addui_extended``: the sum and whether it wrapped."""
    first, second = (compiler.slot(value) for value in op.operands)
    total, carry = (compiler.slot(value) for value in op.results)
    element, site = element_of(op.operands[0].type), compiler.site(op)
    add = BINARY["arith.addi"](element, site)

    def carried(a: Scalar, b: Scalar) -> Scalar:
        wrapped = add(a, b)
        if isinstance(wrapped, int):
            return int(unsigned(wrapped, element.bits) < unsigned(a, element.bits))
        return unsigned(wrapped, element.bits) < unsigned(as_array(a, element.dtype), element.bits)

    def step(frame: Frame) -> None:
        regs = frame.regs
        values = [regs[first], regs[second]]
        regs[total] = _apply(site, add, any_lane, values)
        regs[carry] = _apply(site, carried, any_lane, values)

    return step


def _apply(site: Site, function: Function, rule: Rule, values: Sequence[Value]) -> Value:
    if any(isinstance(value, Tainted) for value in values):
        return spread(site, function, rule, values)
    return function(*values)


# --------------------------------------------------------------------------------------------------------------- floats


def floating(function: Function) -> Build:
    """An operation that computes in the wide type and rounds once."""

    def build(element: ElementType, site: Site) -> Function:
        return function if element.wide == element.dtype else rounding(function, element.dtype)

    return build


BINARY: Mapping[str, Build] = MappingProxyType(
    {
        "arith.addi": ring(int.__add__, np.add, np.logical_xor),
        "arith.subi": ring(int.__sub__, np.subtract, np.logical_xor),
        "arith.muli": ring(int.__mul__, np.multiply, np.logical_and),
        "arith.andi": integer(int.__and__, np.bitwise_and),
        "arith.ori": integer(int.__or__, np.bitwise_or),
        "arith.xori": integer(int.__xor__, np.bitwise_xor),
        "arith.divsi": division(truncated_quotient, signed=True),
        "arith.divui": division(np.floor_divide, signed=False),
        "arith.remsi": division(np.fmod, signed=True),
        "arith.remui": division(np.remainder, signed=False),
        "arith.floordivsi": division(np.floor_divide, signed=True),
        "arith.ceildivsi": division(ceiling_quotient, signed=True),
        "arith.ceildivui": division(ceiling_quotient, signed=False),
        "arith.shli": shift(shift_left),
        "arith.shrsi": shift(shift_right),
        "arith.shrui": shift(shift_right_unsigned),
        "arith.minsi": extreme(min, np.minimum, signed=True),
        "arith.maxsi": extreme(max, np.maximum, signed=True),
        "arith.minui": extreme(min, np.minimum, signed=False),
        "arith.maxui": extreme(max, np.maximum, signed=False),
        "arith.addf": floating(np.add),
        "arith.subf": floating(np.subtract),
        "arith.mulf": floating(np.multiply),
        "arith.divf": floating(np.divide),
        "arith.remf": floating(np.fmod),
        "arith.maximumf": floating(MAXIMUM),
        "arith.minimumf": floating(MINIMUM),
        "arith.maxnumf": floating(MAXNUM),
        "arith.minnumf": floating(MINNUM),
    }
)
UNARY: Mapping[str, Build] = MappingProxyType({"arith.negf": floating(np.negative)})


def elementwise(table: Mapping[str, Build]) -> Mapping[str, CompileOperation]:
    """Compilers of operations whose operands and result have one element type."""

    def compile_operation(compiler: FunctionCompiler, op: Operation) -> Step:
        site = compiler.site(op)
        step = compiler.emit(op, table[op.name](element_of(op.results[0].type), site), any_lane)
        return marking(compiler, op, step)

    return dict.fromkeys(table, compile_operation)


# ---------------------------------------------------------------------------------------------------------- comparisons


def _ordered(function: Binary) -> Binary:
    return function  # numpy's comparisons are false on NaN, but for !=


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def _or_unordered(function: Binary) -> Binary:
    return lambda a, b: function(a, b) | _unordered(a, b)


def _never(a: Array, b: Array) -> Array:
    return np.zeros(np.broadcast_shapes(a.shape, b.shape), BOOL)


COMPARE_FLOATS: tuple[Binary, ...] = (
    _never,
    _ordered(np.equal),
    _ordered(np.greater),
    _ordered(np.greater_equal),
    _ordered(np.less),
    _ordered(np.less_equal),
    lambda a, b: np.not_equal(a, b) & ~_unordered(a, b),
    lambda a, b: ~_unordered(a, b),
    _or_unordered(np.equal),
    _or_unordered(np.greater),
    _or_unordered(np.greater_equal),
    _or_unordered(np.less),
    _or_unordered(np.less_equal),
    np.not_equal,
    _unordered,
    lambda a, b: ~_never(a, b),
)
"""By the number of the predicate: false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true."""


def compare_floats(compiler: FunctionCompiler, op: Operation) -> Step:
    function = COMPARE_FLOATS[_predicate(op)]
    return compiler.binary(op, lambda a, b: as_scalar(function(widen(a), widen(b))), any_lane)


COMPARE_INTEGERS: tuple[tuple[Function, bool], ...] = (
    (np.equal, True),
    (np.not_equal, True),
    (np.less, True),
    (np.less_equal, True),
    (np.greater, True),
    (np.greater_equal, True),
    (np.less, False),
    (np.less_equal, False),
    (np.greater, False),
    (np.greater_equal, False),
)
"""By the number of the predicate: eq ne slt sle sgt sge ult ule ugt uge; with whether the order is signed."""


def compare_integers(compiler: FunctionCompiler, op: Operation) -> Step:
    function, signed = COMPARE_INTEGERS[_predicate(op)]
    element = element_of(op.operands[0].type)
    bits, dtype = element.bits, element.dtype
    if element.kind != "int":
        raise compiler.site(op).fail(UnknownOperation, f"compares {element.name}", "use arith.cmpf for floats")

    def compare(a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            left, right = (a, b) if signed else (unsigned(a, bits), unsigned(b, bits))
            return int(function(-left, -right) if bits == 1 and signed else function(left, right))
        left, right = as_array(a, dtype), as_array(b, dtype)
        if bits == 1:
            return function(right, left) if signed else function(left, right)
        return function(left, right) if signed else function(unsigned(left, bits), unsigned(right, bits))

    return compiler.emit(op, compare, any_lane)


def _predicate(op: Operation) -> int:
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    return predicate.value.data


def select(compiler: FunctionCompiler, op: Operation) -> Step:
    dtype = element_of(op.results[0].type).dtype
    return compiler.ternary(op, lambda condition, a, b: choose(condition, a, b, dtype), chosen_lanes)


def choose(condition: Scalar, a: Value, b: Value, dtype: np.dtype[Any]) -> Value:
    """``a`` where the condition holds, else ``b``; one condition for a whole tensor is spread over it."""
    if isinstance(condition, int):
        return a if condition else b
    left, right = as_array(a, dtype), as_array(b, dtype)
    rank = max(left.ndim, right.ndim)
    return np.where(condition.reshape(condition.shape + (1,) * (rank - condition.ndim)), left, right)


def chosen_lanes(result: Any, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
    """Undefined where the condition is, or the chosen operand."""
    shape = np.shape(result) or (1,)
    left, right = (np.zeros((1,) * len(shape), BOOL) if mask is None else mask for mask in masks[1:])
    taken = choose(values[0], left, right, BOOL)
    if masks[0] is not None:
        decided = masks[0]
        taken = taken | decided.reshape(decided.shape + (1,) * (len(shape) - decided.ndim))
    return np.broadcast_to(taken, np.broadcast_shapes(np.shape(taken), shape))


# ---------------------------------------------------------------------------------------------------------- conversions


def conversion(function: Callable[[Any, ElementType, ElementType], Any]) -> CompileOperation:
    def compile_operation(compiler: FunctionCompiler, op: Operation) -> Step:
        source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
        return marking(compiler, op, compiler.unary(op, lambda value: function(value, source, target), any_lane))

    return compile_operation


def truncate_float(compiler: FunctionCompiler, op: Operation) -> Step:
    """``truncf``, in the direction that it names."""
    mode, target = op.properties.get("roundingmode"), element_of(op.results[0].type)
    direction = mode.value.data if isinstance(mode, IntegerAttr) else 0
    if direction == 0:
        return compiler.unary(op, lambda value: narrow(value, target.dtype), any_lane)
    if not has_infinity(target):
        raise compiler.site(op).fail(
            UnknownOperation, f"rounds {target.name} in a direction", "leave the rounding mode out"
        )
    return compiler.unary(op, lambda value: rounded_towards(value, target.dtype, direction), any_lane)


CONVERSIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "arith.extsi": conversion(sign_extended),
        "arith.trunci": conversion(sign_extended),
        "arith.index_cast": conversion(sign_extended),
        "arith.extui": conversion(zero_extended),
        "arith.index_castui": conversion(zero_extended),
        "arith.sitofp": conversion(lambda value, source, target: to_float(value, source, target, signed=True)),
        "arith.uitofp": conversion(lambda value, source, target: to_float(value, source, target, signed=False)),
        "arith.fptosi": conversion(lambda value, source, target: to_integer(value, target, signed=True)),
        "arith.fptoui": conversion(lambda value, source, target: to_integer(value, target, signed=False)),
        "arith.extf": conversion(lambda value, source, target: converted(value, target.dtype)),
        "arith.truncf": truncate_float,
        "arith.bitcast": conversion(reinterpreted),
    }
)

OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        **elementwise(BINARY),
        **elementwise(UNARY),
        **CONVERSIONS,
        "arith.constant": constant,
        "arith.cmpf": compare_floats,
        "arith.cmpi": compare_integers,
        "arith.select": select,
        "arith.addui_extended": add_extended,
        "arith.mulsi_extended": multiply_extended(signed=True),
        "arith.mului_extended": multiply_extended(signed=False),
    }
)

__all__ = ["BINARY", "OPERATIONS", "choose", "is_shaped", "literal"]
