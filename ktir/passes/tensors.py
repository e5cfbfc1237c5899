"""Reshapes of tensor values, emitted only where they change something."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue

from ktir.passes.emitter import Scope


def tensor_type(element: Attribute, shape: Sequence[int]) -> TensorType[Attribute]:
    """A tensor type of that shape."""
    return TensorType(element, list(shape))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor value."""
    return cast("TensorType[Attribute]", value.type).get_shape()


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tensor value."""
    return cast("TensorType[Attribute]", value.type).element_type


def groups_attribute(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """The reassociation of a reshape."""
    return ArrayAttr(ArrayAttr(IntegerAttr(member, i64) for member in group) for group in groups)


def collapse(value: SSAValue, groups: Sequence[Sequence[int]], scope: Scope) -> SSAValue:
    """``value`` with each group of dimensions joined to one."""
    shape = shape_of(value)
    if len(groups) == len(shape):
        return value
    joined = [prod(shape[member] for member in group) for group in groups]
    return scope.emit(
        tensor.CollapseShapeOp.build(
            operands=[value],
            result_types=[tensor_type(element_of(value), joined)],
            properties={"reassociation": groups_attribute(groups)},
        )
    )


def expand(value: SSAValue, shape: Sequence[int], scope: Scope) -> SSAValue:
    """``value`` with its dimensions split so that they make up ``shape``."""
    if tuple(shape) == shape_of(value):
        return value
    return scope.emit(
        tensor.ExpandShapeOp.build(
            operands=[value, []],
            result_types=[tensor_type(element_of(value), shape)],
            properties={
                "reassociation": groups_attribute(_split_groups(shape_of(value), shape)),
                "static_output_shape": DenseArrayBase.from_list(i64, list(shape)),
            },
        )
    )


def _split_groups(short: Sequence[int], long: Sequence[int]) -> list[list[int]]:
    """Which dimensions of ``long`` each dimension of ``short`` becomes; sizes of one go to the dimension before."""
    groups: list[list[int]] = []
    position = 0
    for at, size in enumerate(short):
        group: list[int] = []
        found = 1
        while position < len(long) and (not group or found < size):
            group.append(position)
            found *= long[position]
            position += 1
        while at == len(short) - 1 and position < len(long):
            group.append(position)
            position += 1
        groups.append(group)
    return groups


def transpose(value: SSAValue, order: Sequence[int], scope: Scope) -> SSAValue:
    """``value`` with dimension ``order[k]`` as its dimension ``k``."""
    if list(order) == sorted(order):
        return value
    shape = shape_of(value)
    result = tensor_type(element_of(value), [shape[dim] for dim in order])
    empty = scope.emit(tensor.EmptyOp([], result))
    return scope.emit(linalg.TransposeOp(value, empty, DenseArrayBase.from_list(i64, list(order)), result))


def reshape(value: SSAValue, shape: Sequence[int], scope: Scope) -> SSAValue:
    """``value`` in another shape with as many elements, whichever way it takes."""
    if tuple(shape) == shape_of(value):
        return value
    rank = len(shape_of(value))
    flat = collapse(value, [list(range(rank))], scope) if rank > 1 else value
    return expand(flat, shape, scope)
