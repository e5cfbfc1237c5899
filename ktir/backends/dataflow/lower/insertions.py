"""Operations that put a tensor together from others: inserted slices, padding, concatenation, single elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.context import (
    Lowering,
    Rule,
    only_reader,
    refuse,
    shape_and_element,
    splat_value,
)
from ktir.backends.dataflow.lower.plan import View, Writing
from ktir.backends.dataflow.lower.reshapes import constant_entries, mixed_entries, without_units
from ktir.backends.dataflow.lower.tensors import Splat, Tensor, Undefined
from ktir.backends.dataflow.lower.values import CoreValue


def _insert_slice(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.InsertSliceOp)
    offsets = mixed_entries(lowering, op, "static_offsets", op.offsets)
    sizes = constant_entries(op, mixed_entries(lowering, op, "static_sizes", op.sizes))
    steps = constant_entries(op, mixed_entries(lowering, op, "static_strides", op.strides))
    _insert(lowering, op, op.source, op.dest, op.result, offsets, sizes, steps)


def _pad(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.PadOp)
    low = mixed_entries(lowering, op, "static_low", op.low)
    shape, element = shape_and_element(op.result.type, op)
    source_shape, _ = shape_and_element(op.source.type, op)
    last = op.region.block.last_op
    assert last is not None
    padding = lowering.tensor(last.operands[0], op) if last.operands[0] in lowering.values else None
    if padding is None:
        owner = last.operands[0].owner
        value = splat_value(owner.value) if isinstance(owner, arith.ConstantOp) else None
        if value is None:
            refuse(op, "its padding is not constant")
        padding = Splat(value, (), element)
    if not isinstance(padding, Splat):
        refuse(op, "its padding is not constant")
    around = Splat(padding.value, shape, element)
    _insert_into(lowering, op, op.source, around, op.result, low, source_shape, [1] * len(shape), None)


def _insert_scalar(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.InsertOp)
    at = [lowering.integer(index, op) for index in op.indices]
    ones = [1] * len(at)
    _insert(lowering, op, op.scalar, op.dest, op.result, at, ones, ones)


def _insert(
    lowering: Lowering,
    op: Operation,
    source: SSAValue,
    dest: SSAValue,
    result: SSAValue,
    offsets: Sequence[CoreValue],
    sizes: Sequence[int],
    steps: Sequence[int],
) -> None:
    """``dest`` with a box replaced. A destination that nobody else reads is written on in place."""
    around = lowering.tensor(dest, op)
    opened = lowering.open.get(dest) if only_reader(dest) is op else None
    _insert_into(lowering, op, source, around, result, offsets, sizes, steps, opened)


def _insert_into(
    lowering: Lowering,
    op: Operation,
    source: SSAValue,
    around: Tensor,
    result: SSAValue,
    offsets: Sequence[CoreValue],
    sizes: Sequence[int],
    steps: Sequence[int],
    opened: View | None,
) -> None:
    planner = lowering.planner
    shape, element = shape_and_element(result.type, op)
    if opened is not None and isinstance(opened.place, Writing) and opened.place.block is planner.block:
        target, view = opened, around
    else:
        target, view = lowering.place(result, shape, element)
        for start, extents in _outside(shape, offsets, sizes, steps):
            piece = target.sliced(start, extents, [1] * len(shape))
            moves.write(planner, _piece_of(around, start, extents), piece)
    data = lowering.tensor(source, op)
    hole = target.sliced(offsets, sizes, steps)
    moves.write(planner, data, without_units(hole, data.shape))
    lowering.values[result] = view
    lowering.open[result] = target


def _piece_of(tensor_: Tensor, start: Sequence[int], extents: Sequence[int]) -> Tensor:
    if isinstance(tensor_, View):
        return tensor_.sliced(start, extents, [1] * len(extents))
    if isinstance(tensor_, Splat):
        return Splat(tensor_.value, tuple(extents), tensor_.element)
    if isinstance(tensor_, Undefined):
        return Undefined(tuple(extents), tensor_.element)
    return tensor_


def _outside(
    shape: Sequence[int], offsets: Sequence[CoreValue], sizes: Sequence[int], steps: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Boxes (start, extents) that cover what a slice leaves; the whole where the slice is not known beforehand."""
    starts = [offset.uniform for offset in offsets]
    if any(start is None for start in starts) or any(step != 1 for step in steps):
        return [([0] * len(shape), list(shape))]
    boxes: list[tuple[list[int], list[int]]] = []
    low = [0] * len(shape)
    extents = list(shape)
    for dim, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        begin = start or 0
        for first, last in ((0, begin), (begin + size, shape[dim])):
            if last > first:
                corner, lengths = list(low), list(extents)
                corner[dim], lengths[dim] = first, last - first
                boxes.append((corner, lengths))
        low[dim], extents[dim] = begin, size
    return boxes


def _concat(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.ConcatOp)
    shape, element = shape_and_element(op.results[0].type, op)
    dim = op.dim.value.data
    target, view = lowering.place(op.results[0], shape, element)
    start = [0] * len(shape)
    for operand in op.inputs:
        extents, _ = shape_and_element(operand.type, op)
        piece = target.sliced(start, extents, [1] * len(shape))
        moves.write(lowering.planner, lowering.tensor(operand, op), piece)
        start[dim] += extents[dim]
    lowering.values[op.results[0]] = view


def _from_elements(lowering: Lowering, op: Operation) -> None:
    shape, element = shape_and_element(op.results[0].type, op)
    target, view = lowering.place(op.results[0], shape, element)
    for number, operand in enumerate(op.operands):
        at = [number // prod(shape[dim + 1 :]) % shape[dim] for dim in range(len(shape))]
        piece = target.sliced(at, [1] * len(shape), [1] * len(shape)).shaped((), ())
        moves.write(lowering.planner, lowering.tensor(operand, op), piece)
    lowering.values[op.results[0]] = view


RULES: Mapping[str, Rule] = {
    "tensor.insert_slice": _insert_slice,
    "tensor.insert": _insert_scalar,
    "tensor.pad": _pad,
    "tensor.concat": _concat,
    "tensor.from_elements": _from_elements,
}
