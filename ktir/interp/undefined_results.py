"""Integer results that MLIR leaves undefined: where checks are on they are marked, and an error once they are used.

These are: sums, differences, products and shifts that overflow although a flag (``nsw``, ``nuw``) promises that they do
not; negative numbers of which ``nneg`` promises that there are none, and what is left over where ``exact`` promises
that nothing is; shifts by the width or more; the quotient of the least number and -1; floats beyond the range of the
integer that they are converted to. Every other overflow wraps, which is defined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.arith import IntegerOverflowAttr, IntegerOverflowFlag
from xdsl.ir import Operation

from ktir.errors import IntegerOverflow
from ktir.interp.compile import FunctionCompiler, Step, element_of
from ktir.interp.numerics import F64, Array, ElementType, Scalar, as_array, unsigned, widen
from ktir.interp.values import Frame, Origin, Tainted, Value

Find = Callable[..., Array]
"""Which elements of a result are undefined, from the operands."""


def marking(compiler: FunctionCompiler, op: Operation, step: Step) -> Step:
    """``step``, which computes ``op``, followed by marking what is undefined of its result."""
    find = _find(op)
    if find is None:
        return step
    site, out = compiler.site(op), compiler.slot(op.results[0])
    operands = tuple(compiler.slot(value) for value in op.operands)
    element = element_of(op.results[0].type)

    def marked(frame: Frame) -> None:
        step(frame)
        if frame.run.checker is None:
            return
        regs = frame.regs
        mask = find(*(_plain(regs[slot]) for slot in operands))
        result = regs[out]
        known = _known(result)
        if not (mask & ~known).any():
            return
        place = [int(axis[0]) for axis in np.nonzero(mask & ~known)]
        at = f" at element {place[1:]}" if len(place) > 1 else ""
        text = f"'{site.operation}' gives a number that {element.name} does not hold{at}"
        values = as_array(_plain(result), element.dtype)
        shape = np.broadcast_shapes(mask.shape, known.shape, values.shape)
        regs[out] = Tainted(values, np.broadcast_to(mask | known, shape), Origin(IntegerOverflow, text, site.location))

    return marked


def _plain(value: Value) -> Any:
    return value.values if isinstance(value, Tainted) else value


def _known(value: Value) -> Array:
    return value.mask if isinstance(value, Tainted) else np.zeros((1,) * max(1, np.ndim(value)), np.bool_)


def _find(op: Operation) -> Find | None:
    element = element_of(op.operands[0].type)
    found: list[Find] = []
    if op.name in SHIFTS:
        found.append(partial(_beyond_width, element))
    if op.name in QUOTIENTS:
        found.append(partial(_least_by_minus_one, element))
    if op.name in FROM_FLOATS:
        found.append(partial(_beyond_range, element_of(op.results[0].type), op.name == "arith.fptosi"))
    if (flagged := _flagged(op, element)) is not None:
        found.append(flagged)
    if "nonNeg" in op.properties:
        found.append(partial(_negative, element))
    if "isExact" in op.properties:
        found.append(partial(REMAINS[op.name], element))
    return reduce(lambda first, second: partial(_either, first, second), found) if found else None


def _either(first: Find, second: Find, *operands: Scalar) -> Array:
    return first(*operands) | second(*operands)


def _shifted(value: Array, places: Array) -> Array:
    powers: Array = 2 ** np.clip(places, 0, 64).astype(object)
    return value * powers


EXACT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "arith.addi": operator.add,
        "arith.subi": operator.sub,
        "arith.muli": operator.mul,
        "arith.shli": _shifted,
        "arith.trunci": operator.pos,
    }
)
SHIFTS = frozenset({"arith.shli", "arith.shrsi", "arith.shrui"})
QUOTIENTS = frozenset({"arith.divsi", "arith.floordivsi", "arith.ceildivsi"})
FROM_FLOATS = frozenset({"arith.fptosi", "arith.fptoui"})


def _flagged(op: Operation, source: ElementType) -> Find | None:
    """Where the exact result is not one of the type, though a flag promises it."""
    flags = op.properties.get("overflowFlags")
    if not isinstance(flags, IntegerOverflowAttr) or not flags.data:
        return None
    exact, target = EXACT[op.name], element_of(op.results[0].type)
    signs = [flag is IntegerOverflowFlag.NSW for flag in flags.data]

    def find(*operands: Scalar) -> Array:
        found: Any = False
        for signed in signs:
            low, high = limits(target, signed=signed)
            result = exact(*(_numbers(value, source, signed=signed) for value in operands))
            found = found | (result < low) | (result > high)
        return np.asarray(found, np.bool_)

    return find


def limits(element: ElementType, *, signed: bool) -> tuple[int, int]:
    """Least and greatest number of an integer type."""
    return (-(1 << element.bits - 1), (1 << element.bits - 1) - 1) if signed else (0, (1 << element.bits) - 1)


def _numbers(value: Scalar, element: ElementType, *, signed: bool) -> Array:
    """The numbers that a value stands for, in a type that holds their sums and products."""
    numbers = as_array(value, element.dtype)
    if not signed:
        numbers = unsigned(numbers, element.bits)
    elif element.bits == 1:
        numbers = -numbers.astype(np.int8)
    return numbers.astype(np.int64 if element.bits < 32 or (element.bits == 32 and signed) else object)


def _beyond_width(element: ElementType, value: Scalar, places: Scalar) -> Array:
    numbers = unsigned(as_array(places, element.dtype), element.bits)
    return np.asarray(numbers >= element.bits, np.bool_)


def _negative(element: ElementType, value: Scalar) -> Array:
    return np.asarray(_numbers(value, element, signed=True) < 0, np.bool_)


def _remainder(signed: bool, element: ElementType, a: Scalar, b: Scalar) -> Array:
    left, right = (_numbers(value, element, signed=signed) for value in (a, b))
    return np.asarray(left % np.where(right == 0, 1, right) != 0, np.bool_)


def _bits_lost(element: ElementType, value: Scalar, places: Scalar) -> Array:
    lost = 2 ** np.clip(_numbers(places, element, signed=False), 0, element.bits).astype(object)
    return np.asarray(_numbers(value, element, signed=False) % lost != 0, np.bool_)


REMAINS: Mapping[str, Find] = MappingProxyType(
    {
        "arith.divui": partial(_remainder, False),
        "arith.divsi": partial(_remainder, True),
        "arith.shrui": _bits_lost,
        "arith.shrsi": _bits_lost,
    }
)
"""Where an operation that is said to be exact is not."""


def _least_by_minus_one(element: ElementType, a: Scalar, b: Scalar) -> Array:
    least, minus_one = (1, 1) if element.bits == 1 else (limits(element, signed=True)[0], -1)
    left, right = as_array(a, element.dtype), as_array(b, element.dtype)
    return (left == least) & (right == minus_one)


def _beyond_range(target: ElementType, signed: bool, value: Array) -> Array:
    whole = np.trunc(widen(value).astype(F64))
    low, high = limits(target, signed=signed)
    return ~((whole >= float(low)) & (whole < float(high + 1)))
