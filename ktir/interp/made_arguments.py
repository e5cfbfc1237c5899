"""Arguments that nobody gave: unwritten arrays for outputs, random ones for trying a program out.

Their sizes are read off the function: its types where they have a shape, else the views that start at a pointer. Sizes
that are arguments themselves, or are computed from them, need those to be given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from ktir.dialect.ktdp import ConstructMemoryViewOp
from ktir.dialect.ktdp.types import RuntimeArgType
from ktir.errors import ArgumentError
from ktir.interp.compile import element_of, is_shaped, shape_of
from ktir.interp.executor import argument_name, pointed_elements
from ktir.interp.ktdp_ops import argument_attribute
from ktir.interp.numerics import FLOATS, INTEGER_DTYPES, Array, ElementType, element_type

FEW = 2
"""Random integers are below this, so that they are legal indices of nearly anything."""
_SHAPED = (re.compile(r"(\w+)\[([\d\s,x]*)\]"), re.compile(r"((?:\d+x)*)([a-z]\w*)"))


@dataclass(frozen=True, slots=True)
class Shaped:
    """Element type and extents of an array."""

    element: ElementType
    shape: tuple[int, ...]


def parse_shaped(text: str) -> Shaped | None:
    """``f16[67,1000]`` or ``67x1000xf16``; None for another text. Raises :class:`ArgumentError` for an unknown type."""
    if match := _SHAPED[0].fullmatch(text):
        return Shaped(element_named(match[1]), tuple(int(each) for each in re.split(r"[\s,x]+", match[2]) if each))
    if match := _SHAPED[1].fullmatch(text):
        return Shaped(element_named(match[2]), tuple(int(each) for each in match[1].split("x") if each))
    return None


def element_named(name: str) -> ElementType:
    """An element type by its name in the IR."""
    known = {
        **FLOATS,
        **{f"i{width}": ElementType(f"i{width}", d, "int", width) for width, d in INTEGER_DTYPES.items()},
    }
    known["index"] = element_type(IndexType())
    if name not in known:
        raise ArgumentError(f"there is no element type {name!r}", remedy=f"use one of {', '.join(known)}")
    return known[name]


def unwritten(kind: Shaped) -> Array:
    """An array that shows in a result where nobody wrote it: NaN, or the lowest value of an integer type."""
    dtype = kind.element.dtype
    if kind.element.kind == "float":
        return np.full(kind.shape, np.nan, dtype)
    return np.zeros(kind.shape, dtype) if dtype == np.bool_ else np.full(kind.shape, np.iinfo(dtype).min, dtype)


def random_array(kind: Shaped, seed: int) -> Array:
    """Floats of a normal distribution, integers of 0 and 1; the same for the same seed."""
    numbers = np.random.default_rng(seed)
    if kind.element.kind == "float":
        return numbers.standard_normal(kind.shape).astype(kind.element.dtype)
    return numbers.integers(0, FEW, kind.shape).astype(kind.element.dtype)


def random_arguments(function: FuncOp, given: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """``given``, and random arrays for the arguments that are missing; each has numbers of its own.

    Raises :class:`ArgumentError` for a missing number, which nobody can guess, and for an unknown size.
    """
    values = dict(given)
    for position, argument in enumerate(function.body.block.args):
        name = argument_name(argument)
        if name in values or argument_attribute(argument, "ktg.result") is not None:
            continue
        if isinstance(argument.type, RuntimeArgType) and argument.type.promise("upperbound") is not None:
            values[name] = argument.type.promise("upperbound")
            continue
        values[name] = random_array(shape_of_argument(function, name, given), seed * 1000 + position)
    return values


def shape_of_argument(function: FuncOp, name: str, given: Mapping[str, Any]) -> Shaped:
    """What array an argument takes: of the shape of a pointer's only view where that is dense.

    Several views, or one with gaps, make a flat array that reaches to the end of the farthest. Raises
    :class:`ArgumentError` for an unknown argument, for a number, and where a size is not known.
    """
    argument = _argument(function, name)
    kind: Attribute = argument.type
    if is_shaped(kind):
        shape = shape_of(kind)
        if min(shape, default=0) < 0:
            raise _unknown_size(name)
        return Shaped(element_of(kind), shape)
    views = [use.operation for use in argument.uses if use.index == 0]
    found = [view for view in views if isinstance(view, ConstructMemoryViewOp)]
    if not found:
        raise _unknown_size(name)
    sizes = [_numbers(view.mixed_sizes(), name, given) for view in found]
    strides = [_numbers(view.mixed_strides(), name, given) for view in found]
    element = element_of(found[0].view.type)
    if len(found) == 1 and strides[0] == _dense(sizes[0]):
        return Shaped(element, tuple(sizes[0]))
    return Shaped(element, (max(_reach(shape, steps) for shape, steps in zip(sizes, strides, strict=True)),))


def elements_of_argument(argument: BlockArgument) -> set[ElementType]:
    """Element types that an argument may have: its own, or those of the views that start at it."""
    kind: Attribute = argument.type
    return {element_of(kind)} if is_shaped(kind) else pointed_elements(argument)


def _argument(function: FuncOp, name: str) -> BlockArgument:
    for argument in function.body.block.args:
        if argument_name(argument) == name:
            return argument
    known = ", ".join(argument_name(argument) for argument in function.body.block.args)
    raise ArgumentError(
        f"@{function.sym_name.data} has no argument {name!r}", remedy=f"its arguments: {known or 'none'}"
    )


def _numbers(values: Sequence[int | SSAValue[Attribute]], name: str, given: Mapping[str, Any]) -> list[int]:
    numbers = [value if isinstance(value, int) else _number(value, given) for value in values]
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        raise _unknown_size(name)
    return known


def _number(value: SSAValue[Attribute], given: Mapping[str, Any]) -> int | None:
    """A size that is a constant, a given argument, or a sum, difference or product of such."""
    if isinstance(value, BlockArgument):
        number = given.get(argument_name(value))
        return number if isinstance(number, int) else None
    assert isinstance(value, OpResult)
    op = value.op
    if op.name == "arith.constant":
        constant = op.properties["value"]
        return constant.value.data if isinstance(constant, IntegerAttr) else None
    if op.name in ("arith.index_cast", "ktdp.runtime_arg_extract"):
        return _number(op.operands[0], given)
    if op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = (_number(operand, given) for operand in op.operands)
    if left is None or right is None:
        return None
    return {"arith.addi": left + right, "arith.subi": left - right, "arith.muli": left * right}[op.name]


def _unknown_size(name: str) -> ArgumentError:
    return ArgumentError(
        f"what argument {name!r} is to be is not known",
        remedy=f"give it: a number, --arg {name}=4; or an array, --arg {name}=FILE or --random {name}=4x64xf16",
    )


def _dense(sizes: list[int]) -> list[int]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides[: len(sizes)] if sizes else []


def _reach(sizes: list[int], strides: list[int]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


__all__ = [
    "Shaped",
    "elements_of_argument",
    "parse_shaped",
    "random_arguments",
    "random_array",
    "shape_of_argument",
    "unwritten",
]
