"""Integer and index operations on ranges: one table from the name of an operation to what it does to values.

An operation that is missing here gives a value of which nothing is known. Truths (i1) are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from ktir.analysis import ranges
from ktir.analysis.ranges import Integers, Value

Evaluation: TypeAlias = Callable[[Operation, Sequence[Value]], Value]


def is_scalar(type_: Attribute) -> bool:
    """Whether values of a type are single integers."""
    return isinstance(type_, IndexType | IntegerType)


def bits_of(type_: Attribute) -> int:
    """Bits of an integer type; an index has 64."""
    return cast(int, getattr(getattr(type_, "width", None), "data", 64))


def fitted(value: Value, type_: Attribute) -> Value:
    """A result as its type holds it; an i1 is 0 or 1."""
    if bits_of(type_) == 1:
        return replace(value, constant=value.constant & 1) if value.known else value
    return ranges.narrowed(value, bits_of(type_))


def constant_op(op: Operation, operands: Sequence[Value]) -> Value:
    attribute = cast(arith.ConstantOp, op).value
    assert isinstance(attribute, IntegerAttr)
    return ranges.constant(attribute.value.data)


def compare_op(op: Operation, operands: Sequence[Value]) -> Value:
    names: tuple[ranges.Predicate, ...] = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
    return ranges.compare(names[cast(arith.CmpiOp, op).predicate.value.data], *operands)


def whole_numbers(operands: Sequence[Value]) -> bool:
    return all(bool((v.lower() >= 0).all()) for v in operands)


def divided(rounding: Literal["zero", "down", "up"], *, remainder: bool = False, unsigned: bool = False) -> Evaluation:
    """Division or remainder; what depends on symbols is followed for positive constant divisors."""

    def evaluate(op: Operation, operands: Sequence[Value]) -> Value:
        frame, a, b = ranges.together(*operands)
        positive = whole_numbers(operands)
        if a.known and b.known and (positive or not unsigned):
            return Value(exactly_divided(a.constant, b.constant, rounding, remainder), {}, frame)
        by = b.literal
        if by is None or by <= 0 or not (positive or (rounding == "down" and not unsigned)):
            bound = np.inf if not positive else a.upper()
            return ranges.opaque(op.name, frame, a, b, lower=0.0 if positive else -np.inf, upper=bound)
        if remainder:
            return ranges.modulo(a, by)
        return -ranges.floor_divide(-a, by) if rounding == "up" else ranges.floor_divide(a, by)

    return evaluate


def exactly_divided(a: Integers, b: Integers, rounding: Literal["zero", "down", "up"], remainder: bool) -> Integers:
    safe = np.where(b == 0, 1, b)
    down = a // safe
    if rounding == "down":
        quotient = down
    elif rounding == "up":
        quotient = -(-a // safe)
    else:
        quotient = np.where((down < 0) & (down * safe != a), down + 1, down)
    return np.asarray(a - quotient * safe if remainder else quotient)


def bitwise(combine: Callable[[Integers, Integers], Integers]) -> Evaluation:
    """A bit operation: exact on what is known; of two truths, something between 0 and 1."""

    def evaluate(op: Operation, operands: Sequence[Value]) -> Value:
        frame, a, b = ranges.together(*operands)
        if a.known and b.known:
            return Value(np.asarray(combine(a.constant, b.constant)), {}, frame)
        if op.results[0].type != IntegerType(1):
            return ranges.opaque(op.name, frame, a, b)
        lefts, rights = ([end.astype(np.int64) for end in (v.lower(), v.upper())] for v in (a, b))
        ends = [combine(left, right) for left in lefts for right in rights]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        settled = np.asarray(low == high)
        doubt = ranges.opaque(op.name, frame, a, b, lower=0.0, upper=1.0)
        certain = Value(np.asarray(np.where(settled, low, 0)), {}, frame)
        return certain + ranges.scale(doubt, np.asarray(~settled, np.int64))

    return evaluate


def unsigned_cast(op: Operation, operands: Sequence[Value]) -> Value:
    """Zero extension: the bits of the narrower type as a number that is not negative."""
    (value,) = operands
    if whole_numbers(operands):
        return value
    bits = bits_of(op.operands[0].type)
    return (
        Value(value.constant & ((1 << bits) - 1), {}, value.frame)
        if value.known and bits < 64
        else ranges.opaque(op.name, value.frame, value, lower=0.0)
    )


def signed_cast(op: Operation, operands: Sequence[Value]) -> Value:
    """Sign extension; the only bit of a truth is its sign."""
    return -operands[0] if op.operands[0].type == IntegerType(1) else operands[0]


def affine_apply(op: Operation, operands: Sequence[Value]) -> Value:
    mapping = cast(AffineMapAttr, op.properties["map"]).data
    return ranges.evaluate(mapping.results[0], operands[: mapping.num_dims], operands[mapping.num_dims :])


def affine_extreme(choose: Callable[[Value, Value], Value]) -> Evaluation:
    def evaluate(op: Operation, operands: Sequence[Value]) -> Value:
        mapping = cast(AffineMapAttr, op.properties["map"]).data
        dims, symbols = operands[: mapping.num_dims], operands[mapping.num_dims :]
        return reduce(choose, [ranges.evaluate(e, dims, symbols) for e in mapping.results])

    return evaluate


def if_whole(evaluation: Callable[[Value, Value], Value]) -> Evaluation:
    """An unsigned operation that is the signed one for values that are not negative."""

    def evaluate(op: Operation, operands: Sequence[Value]) -> Value:
        if whole_numbers(operands):
            return evaluation(*operands)
        return ranges.opaque(op.name, ranges.together(*operands)[0], *operands)

    return evaluate


ARITHMETIC: Mapping[str, Evaluation] = {
    "arith.constant": constant_op,
    "arith.addi": lambda op, v: v[0] + v[1],
    "arith.subi": lambda op, v: v[0] - v[1],
    "arith.muli": lambda op, v: ranges.multiply(*v),
    "arith.divui": divided("down", unsigned=True),
    "arith.divsi": divided("zero"),
    "arith.floordivsi": divided("down"),
    "arith.ceildivsi": divided("up"),
    "arith.ceildivui": divided("up", unsigned=True),
    "arith.remui": divided("down", remainder=True, unsigned=True),
    "arith.remsi": divided("zero", remainder=True),
    "arith.minsi": lambda op, v: ranges.least(*v),
    "arith.maxsi": lambda op, v: ranges.greatest(*v),
    "arith.minui": if_whole(ranges.least),
    "arith.maxui": if_whole(ranges.greatest),
    "arith.andi": bitwise(np.bitwise_and),
    "arith.ori": bitwise(np.bitwise_or),
    "arith.xori": bitwise(np.bitwise_xor),
    "arith.index_cast": signed_cast,
    "arith.index_castui": unsigned_cast,
    "arith.extsi": signed_cast,
    "arith.extui": unsigned_cast,
    "arith.trunci": lambda op, v: v[0],
    "arith.cmpi": compare_op,
    "arith.select": lambda op, v: ranges.choose(*v),
    "affine.apply": affine_apply,
    "affine.min": affine_extreme(ranges.least),
    "affine.max": affine_extreme(ranges.greatest),
}

DIVISIONS = frozenset(name for name in ARITHMETIC if "div" in name or "rem" in name)
