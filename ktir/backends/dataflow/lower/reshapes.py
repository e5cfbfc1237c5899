"""Operations that show elements in another shape or order: strides change, elements are copied only where need be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.lower.context import Lowering, Rule, refuse, shape_and_element
from ktir.backends.dataflow.lower.plan import View
from ktir.backends.dataflow.lower.tensors import (
    NotViewable,
    Splat,
    Undefined,
    broadcast,
    collapsed,
    expanded,
    transposed,
)
from ktir.backends.dataflow.lower.values import CoreValue, constant

DYNAMIC = -(1 << 63)
"""What a static list holds where a dynamic value stands."""


def _reshape(lowering: Lowering, op: Operation, view_of: Callable[[View], View]) -> None:
    """A result that shows the operand's elements in another shape; copies them first where strides cannot say it."""
    source = lowering.tensor(op.operands[0], op)
    shape, element = shape_and_element(op.results[0].type, op)
    if isinstance(source, Splat):
        lowering.values[op.results[0]] = Splat(source.value, shape, element)
    elif isinstance(source, Undefined):
        lowering.values[op.results[0]] = Undefined(shape, element)
    else:
        view = lowering.view(op.operands[0], op)
        try:
            lowering.values[op.results[0]] = view_of(view)
        except NotViewable:
            lowering.values[op.results[0]] = view_of(lowering.dense(view))


def _groups(op: Operation) -> list[list[int]]:
    assert isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp)
    return [[dim.value.data for dim in group] for group in op.reassociation]


def _collapse(lowering: Lowering, op: Operation) -> None:
    _reshape(lowering, op, lambda view: collapsed(view, _groups(op)))


def _expand(lowering: Lowering, op: Operation) -> None:
    shape, _ = shape_and_element(op.results[0].type, op)
    _reshape(lowering, op, lambda view: expanded(view, _groups(op), shape))


def _any_reshape(lowering: Lowering, op: Operation) -> None:
    """``tensor.reshape``: all elements as one dimension, then as the new shape."""
    shape, _ = shape_and_element(op.results[0].type, op)

    def view_of(view: View) -> View:
        flat = collapsed(view, [range(len(view.shape))])
        return expanded(flat, [range(len(shape))], shape)

    _reshape(lowering, op, view_of)


def _transpose(lowering: Lowering, op: Operation) -> None:
    permutation = _integers(op, "permutation")
    _reshape(lowering, op, lambda view: transposed(view, permutation))


def _broadcast(lowering: Lowering, op: Operation) -> None:
    shape, _ = shape_and_element(op.results[0].type, op)
    added = _integers(op, "dimensions")
    _reshape(lowering, op, lambda view: broadcast(view, shape, added))


def _integers(op: Operation, name: str) -> tuple[int, ...]:
    attribute = op.properties[name] if name in op.properties else op.attributes[name]
    assert isinstance(attribute, DenseArrayBase)
    return tuple(int(value) for value in attribute.get_values())


def mixed_entries(lowering: Lowering, op: Operation, name: str, dynamic: Sequence[SSAValue]) -> list[CoreValue]:
    """Static entries of a list with the dynamic ones in their places."""
    values = iter(dynamic)
    return [
        lowering.integer(next(values), op) if entry == DYNAMIC else constant(entry, lowering.cores)
        for entry in _integers(op, name)
    ]


def constant_entries(op: Operation, entries: Sequence[CoreValue]) -> list[int]:
    """Entries that must be the same everywhere and always."""
    steps = [entry.uniform for entry in entries]
    if any(step is None for step in steps):
        refuse(op, "its strides are not constant")
    return [step for step in steps if step is not None]


def _extract_slice(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.ExtractSliceOp)
    offsets = mixed_entries(lowering, op, "static_offsets", op.offsets)
    sizes = constant_entries(op, mixed_entries(lowering, op, "static_sizes", op.sizes))
    steps = constant_entries(op, mixed_entries(lowering, op, "static_strides", op.strides))
    shape, _ = shape_and_element(op.result.type, op)
    _reshape(lowering, op, lambda view: without_units(view.sliced(offsets, sizes, steps), shape))


def without_units(view: View, shape: Sequence[int]) -> View:
    """Drops dimensions of one element until the shape is ``shape``."""
    return view.shaped(shape, _strides_for(view, shape))


def _strides_for(view: View, shape: Sequence[int]) -> list[int]:
    strides: list[int] = []
    position = 0
    for extent in shape:
        while view.shape[position] != extent:
            position += 1
        strides.append(view.strides[position])
        position += 1
    return strides


def _extract(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.ExtractOp)
    source = lowering.tensor(op.tensor, op)
    if isinstance(source, Splat):
        lowering.values[op.result] = Splat(source.value, (), source.element)
        return
    if isinstance(source, Undefined):
        lowering.values[op.result] = Undefined((), source.element)
        return
    view = lowering.view(op.tensor, op)
    at = [lowering.integer(index, op) for index in op.indices]
    ones = [1] * len(at)
    lowering.values[op.result] = view.sliced(at, ones, ones).shaped((), ())


RULES: Mapping[str, Rule] = {
    "tensor.collapse_shape": _collapse,
    "tensor.expand_shape": _expand,
    "tensor.reshape": _any_reshape,
    "tensor.extract_slice": _extract_slice,
    "tensor.extract": _extract,
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
}
