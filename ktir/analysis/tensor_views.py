"""Values that only show another tensor: reshaped, permuted, repeated, cut; and values made of nothing.

A view of a kernel's operand is found in the operand's buffer by the *axes* of its dimensions
(:mod:`ktir.maths.access`), where the layout of the buffer can follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ktir.dialect.ktg import KernelOp
from ktir.maths.access import Axis, regroup


class Unfit(Exception):
    """The body has no iteration space; the message says why."""


def is_free(value: SSAValue) -> bool:
    """Whether ``value`` is made of nothing, so that it can be made again wherever it is used: splats and empties."""
    owner = value.owner
    match owner:
        case tensor.EmptyOp() | tensor.SplatOp():
            return True
        case linalg.FillOp():
            return isinstance(owner.outputs[0].owner, tensor.EmptyOp) and not isinstance(owner.inputs[0], BlockArgument)
        case arith.ConstantOp():
            return not isinstance(value.type, TensorType) or is_splat(owner)
        case _:
            return False


def is_splat(op: arith.ConstantOp) -> bool:
    """Whether a tensor constant holds one number everywhere."""
    return isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat()


VIEWS = (tensor.CollapseShapeOp, tensor.ExpandShapeOp, linalg.TransposeOp, linalg.BroadcastOp, tensor.ExtractSliceOp)
"""Operations that show the elements of a tensor in another order or number."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor value."""
    return cast("TensorType[Attribute]", value.type).get_shape()


def reassociation(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> list[list[int]]:
    """The groups of dimensions of the longer side."""
    return [[entry.value.data for entry in group.data] for group in op.reassociation.data]


def view_source(value: SSAValue) -> SSAValue | None:
    """The tensor that ``value`` is a view of, or None if it is no view."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, Operation) and isinstance(owner, VIEWS) else None


def sliced_dims(op: tensor.ExtractSliceOp) -> list[int]:
    """Per dimension of the result the dimension of the source; a slice may drop dimensions of one element."""
    result = shape_of(op.result)
    dims: list[int] = []
    for dim, size in enumerate(op.static_sizes.get_values()):
        if len(dims) < len(result) and size == result[len(dims)]:
            dims.append(dim)
        elif size != 1:
            raise Unfit("a slice whose result does not follow its sizes")
    if len(dims) != len(result):
        raise Unfit("a slice whose result does not follow its sizes")
    return dims


def view_axes(value: SSAValue, operand_axes: Sequence[Sequence[Axis]]) -> tuple[int, list[list[Axis]], int] | None:
    """The operand that ``value`` is a view of, the axes each dimension is a product of, and the buffer offset."""
    if isinstance(value, BlockArgument):
        if not isinstance(value.block.parent_op(), KernelOp):
            return None
        return value.index, [[axis] for axis in operand_axes[value.index]], 0
    shown = view_source(value)
    source = view_axes(shown, operand_axes) if shown is not None else None
    if source is None:
        return None
    operand, axes, offset = source
    match op := value.owner:
        case tensor.CollapseShapeOp():
            grouped = [[axis for member in group for axis in axes[member]] for group in reassociation(op)]
            return operand, grouped, offset
        case tensor.ExpandShapeOp():
            return operand, _expand(op, axes), offset
        case linalg.TransposeOp():
            return operand, [axes[dim] for dim in op.permutation.get_values()], offset
        case linalg.BroadcastOp():
            return operand, _broadcast(op, axes), offset
        case tensor.ExtractSliceOp():
            cut, moved = _slice(op, axes)
            return operand, cut, offset + moved
        case _:
            return None


def _expand(op: tensor.ExpandShapeOp, axes: Sequence[list[Axis]]) -> list[list[Axis]]:
    shape = shape_of(op.result)
    result: list[list[Axis]] = [[] for _ in shape]
    for group, factors in zip(reassociation(op), axes, strict=False):
        parts = regroup(factors, [shape[member] for member in group])
        if parts is None:
            raise Unfit("a dimension is split where its layout is not")
        for member, part in zip(group, parts, strict=True):
            result[member] = [part]
    return result


def _broadcast(op: linalg.BroadcastOp, axes: Sequence[list[Axis]]) -> list[list[Axis]]:
    added = op.dimensions.get_values()
    kept = iter(axes)
    shape = shape_of(op.results[0])
    return [[Axis(size, ())] if dim in added else next(kept) for dim, size in enumerate(shape)]


def _slice(op: tensor.ExtractSliceOp, axes: Sequence[list[Axis]]) -> tuple[list[list[Axis]], int]:
    if op.offsets or op.sizes or op.strides:
        raise Unfit("a slice at a place that is not constant")
    offset = 0
    result: list[list[Axis]] = []
    kept = sliced_dims(op)
    limits = zip(
        op.static_offsets.get_values(), op.static_sizes.get_values(), op.static_strides.get_values(), strict=True
    )
    for dim, (start, size, stride) in enumerate(limits):
        joined = regroup(axes[dim], [prod(axis.extent for axis in axes[dim])])
        found = joined[0].cut(int(start), int(size), int(stride)) if joined is not None else None
        if found is None:
            raise Unfit("a slice that ends inside a digit of the layout")
        offset += found[1]
        if dim in kept:
            result.append([found[0]])
    return result, offset
