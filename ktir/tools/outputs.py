"""Arrays for outputs that the command line names and does not give: their size is read off the function's views."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ktir.arrays import Array
from ktir.dialect.ktdp import ConstructMemoryViewOp
from ktir.errors import ArgumentError
from ktir.tools.arguments import fresh


def fresh_output(function: FuncOp, name: str) -> Array:
    """An unwritten array for the pointer argument ``name``: of the shape of its only view where that is dense.

    Several views, or one with gaps, give a flat array that reaches to the end of the farthest. Raises
    :class:`ArgumentError` for an unknown argument, and where a view's size is not a constant.
    """
    views = [use.operation for use in _argument(function, name).uses]
    found = [view for view in views if isinstance(view, ConstructMemoryViewOp)]
    sizes = [_constants(view.mixed_sizes(), name) for view in found]
    strides = [_constants(view.mixed_strides(), name) for view in found]
    if not found:
        raise _unknown_size(name)
    element = str(cast("MemRefType[Attribute]", found[0].view.type).element_type)
    if len(found) == 1 and strides[0] == _dense(sizes[0]):
        return fresh(element, sizes[0])
    return fresh(element, [max(_reach(shape, steps) for shape, steps in zip(sizes, strides, strict=True))])


def _argument(function: FuncOp, name: str) -> SSAValue:
    for argument in function.body.block.args:
        if argument.name_hint == name:
            return argument
    known = ", ".join(argument.name_hint or "?" for argument in function.body.block.args)
    raise ArgumentError(f"@{function.sym_name.data} has no argument {name!r}", remedy=f"its arguments: {known}")


def _constants(values: tuple[int | SSAValue, ...], name: str) -> list[int]:
    constants = [value for value in values if isinstance(value, int)]
    if len(constants) != len(values):
        raise _unknown_size(name)
    return constants


def _unknown_size(name: str) -> ArgumentError:
    return ArgumentError(f"the size of output {name!r} is not known", remedy=f"add --arg {name}=TYPE[SHAPE]")


def _dense(sizes: list[int]) -> list[int]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides[: len(sizes)] if sizes else []


def _reach(sizes: list[int], strides: list[int]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
