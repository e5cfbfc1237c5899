"""Partial evaluation of the integer arithmetic of a kernel to core values.

Everything that decides addresses and control flow (``arith`` on ``index`` and integers, affine expressions) is worked
out here; what depends on data is not, and the caller says so with the operation's place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from ktir.backends.dataflow.lower.values import CoreValue, NotAffine, PerCore, constant, per_core

Rule = Callable[[CoreValue, CoreValue], CoreValue]


def is_integral(type: Attribute) -> bool:
    """Whether values of ``type`` are integers that core values can hold."""
    return isinstance(type, IndexType | IntegerType)


def _constants(name: str, left: CoreValue, right: CoreValue) -> tuple[PerCore, PerCore]:
    if not (left.is_constant and right.is_constant):
        raise NotAffine(f"{name} of a value that varies in a loop")
    return left.constant, right.constant


def _pointwise(name: str, rule: Callable[[PerCore, PerCore], PerCore]) -> Rule:
    return lambda left, right: per_core(rule(*_constants(name, left, right)))


def _modulo(left: CoreValue, right: CoreValue) -> CoreValue:
    """What flooring division leaves."""
    divisor = right.uniform
    if divisor is not None and divisor > 0:
        return left.modulo(divisor)
    return left - _floor_divide(left, right) * right


def _floor_divide(left: CoreValue, right: CoreValue) -> CoreValue:
    divisor = right.uniform
    if divisor is not None and divisor > 0:
        return left.floor_divide(divisor)
    dividend, divisors = _constants("a quotient", left, right)
    return per_core(dividend // _divisors(divisors))


def _truncating_divide(left: CoreValue, right: CoreValue) -> CoreValue:
    """Rounds towards zero; equal to rounding down where nothing is negative."""
    if (left.minimum() >= 0).all():
        return _floor_divide(left, right)
    dividend, divisors = _constants("a quotient", left, right)
    return per_core(np.sign(dividend) * np.sign(divisors) * (abs(dividend) // abs(_divisors(divisors))))


def _ceil_divide(left: CoreValue, right: CoreValue) -> CoreValue:
    divisor = right.uniform
    if divisor is not None and divisor > 0:
        return (left + (divisor - 1)).floor_divide(divisor)
    dividend, divisors = _constants("a quotient", left, right)
    return per_core(-(-dividend // _divisors(divisors)))


def _remainder(left: CoreValue, right: CoreValue) -> CoreValue:
    """The remainder of :func:`_truncating_divide`."""
    if (left.minimum() >= 0).all():
        return _modulo(left, right)
    return left - _truncating_divide(left, right) * right


def _divisors(values: PerCore) -> PerCore:
    """Cores with a zero divisor are given a one: only cores that never run the operation may have it."""
    return np.where(values == 0, 1, values)


RULES: Mapping[type[Operation], Rule] = {
    arith.AddiOp: lambda left, right: left + right,
    arith.SubiOp: lambda left, right: left - right,
    arith.MuliOp: lambda left, right: left * right,
    arith.DivSIOp: _truncating_divide,
    arith.DivUIOp: _truncating_divide,
    arith.FloorDivSIOp: _floor_divide,
    arith.CeilDivSIOp: _ceil_divide,
    arith.CeilDivUIOp: _ceil_divide,
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _remainder,
    arith.MinSIOp: _pointwise("a minimum", np.minimum),
    arith.MinUIOp: _pointwise("a minimum", np.minimum),
    arith.MaxSIOp: _pointwise("a maximum", np.maximum),
    arith.MaxUIOp: _pointwise("a maximum", np.maximum),
    arith.AndIOp: _pointwise("a bit operation", np.bitwise_and),
    arith.OrIOp: _pointwise("a bit operation", np.bitwise_or),
    arith.XOrIOp: _pointwise("a bit operation", np.bitwise_xor),
    arith.ShLIOp: _pointwise("a shift", np.left_shift),
    arith.ShRSIOp: _pointwise("a shift", np.right_shift),
    arith.ShRUIOp: _pointwise("a shift", np.right_shift),
}

COMPARISONS: Sequence[Callable[[PerCore, PerCore], np.ndarray]] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)
"""By number of ``arith.cmpi``'s predicate: eq, ne, the four signed, the four unsigned (of values not negative)."""

CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
CAST_NAMES = frozenset(op.name for op in CASTS) | {"arith.index_castui"}


def compare(left: CoreValue, right: CoreValue, predicate: int) -> CoreValue:
    """One where the comparison holds, else zero. Decides values that vary in loops where their ranges allow it."""
    difference = left - right
    zero = np.zeros_like(difference.constant)
    if difference.is_constant:
        return per_core(COMPARISONS[predicate](difference.constant, zero).astype(np.int64))
    at_low = COMPARISONS[predicate](difference.minimum(), zero)
    at_high = COMPARISONS[predicate](difference.maximum(), zero)
    crosses_zero = (difference.minimum() < 0) & (difference.maximum() > 0)
    if (at_low != at_high).any() or (predicate < 2 and crosses_zero.any()):
        raise NotAffine("a comparison whose outcome changes in a loop")
    return per_core(at_low.astype(np.int64))


def evaluate(op: Operation, operands: Sequence[CoreValue], cores: int) -> CoreValue | None:
    """The value of ``op``'s result, None if it is not integer arithmetic. Raises :class:`NotAffine`."""
    if isinstance(op, arith.ConstantOp):
        if isinstance(op.value, IntegerAttr):
            return constant(op.value.value.data, cores)
        return None
    if (rule := RULES.get(type(op))) is not None:
        return rule(*operands)
    if op.name in CAST_NAMES:
        return operands[0]
    if isinstance(op, arith.CmpiOp):
        return compare(operands[0], operands[1], op.predicate.value.data)
    if isinstance(op, arith.SelectOp):
        return _select(*operands)
    if isinstance(op, affine.ApplyOp):
        dims = op.map.data.num_dims
        (value,) = evaluate_map(op.map.data, operands[:dims], operands[dims:], cores)
        return value
    return None


def _select(condition: CoreValue, if_true: CoreValue, if_false: CoreValue) -> CoreValue:
    if not condition.is_constant:
        raise NotAffine("a selection that changes in a loop")
    taken = per_core((condition.constant != 0).astype(np.int64))
    return if_true * taken + if_false * (per_core(np.ones_like(taken.constant)) - taken)


def evaluate_map(
    map: AffineMap, dims: Sequence[CoreValue], symbols: Sequence[CoreValue], cores: int
) -> tuple[CoreValue, ...]:
    """The results of ``map``."""
    return tuple(evaluate_expression(result, dims, symbols, cores) for result in map.results)


def evaluate_expression(
    expression: AffineExpr, dims: Sequence[CoreValue], symbols: Sequence[CoreValue], cores: int
) -> CoreValue:
    """The value of an affine expression, or :class:`NotAffine`."""
    match expression:
        case AffineConstantExpr():
            return constant(expression.value, cores)
        case AffineDimExpr():
            return dims[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr():
            left = evaluate_expression(expression.lhs, dims, symbols, cores)
            right = evaluate_expression(expression.rhs, dims, symbols, cores)
            return AFFINE_RULES[expression.kind](left, right)
        case _:
            raise NotAffine(f"the expression {expression}")


AFFINE_RULES: Mapping[AffineBinaryOpKind, Rule] = {
    AffineBinaryOpKind.Add: lambda left, right: left + right,
    AffineBinaryOpKind.Mul: lambda left, right: left * right,
    AffineBinaryOpKind.FloorDiv: _floor_divide,
    AffineBinaryOpKind.CeilDiv: _ceil_divide,
    AffineBinaryOpKind.Mod: _modulo,
}
