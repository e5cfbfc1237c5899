"""The ``tensor`` operations: making tensors, taking them apart and putting them together.

None of them changes an array in place, because values are shared; most give views of their operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.ir import Operation
from xdsl.ir.affine import AffineMap

from ktir.errors import OutOfBounds, UninitialisedRead, UnknownOperation
from ktir.interp.compile import (
    CompileOperation,
    FunctionCompiler,
    Step,
    any_lane,
    element_of,
    is_shaped,
    moved,
    shape_of,
    spread,
)
from ktir.interp.conversions import reinterpreted
from ktir.interp.extents import evaluate, extents_of, mixed, poison, uniform
from ktir.interp.linalg_ops import integers
from ktir.interp.numerics import Array, ElementType, as_array, as_scalar
from ktir.interp.slices import Slices, leading, reduced_shape
from ktir.interp.structured import Structure, as_result, compile_body, operand_of, position_in_space
from ktir.interp.values import Frame, Origin, Site, Tainted, Value, demand


def empty(compiler: FunctionCompiler, op: Operation) -> Step:
    site, element = compiler.site(op), element_of(op.results[0].type)
    shape, out = mixed(compiler, shape_of(op.results[0].type), list(op.operands)), compiler.slot(op.results[0])
    name = f"%{site.result}" if site.result else "it"
    origin = Origin(UninitialisedRead, f"{name} is a tensor.empty that nobody filled", site.location, whole=True)

    def step(frame: Frame) -> None:
        values = poison(extents_of(shape, element, frame, site), element)
        frame.regs[out] = Tainted(values, np.broadcast_to(np.True_, values.shape), origin)

    return step


def splat(compiler: FunctionCompiler, op: Operation) -> Step:
    element, static = element_of(op.results[0].type), shape_of(op.results[0].type)
    if all(size >= 0 for size in static):
        repeat = partial(repeated, shape=static, element=element)
        return compiler.emit(op, repeat, moved(repeat), list(op.operands)[:1])
    site, scalar, out = compiler.site(op), compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    shape = mixed(compiler, static, list(op.operands)[1:])

    def step(frame: Frame) -> None:
        repeat = partial(repeated, shape=extents_of(shape, element, frame, site), element=element)
        value = frame.regs[scalar]
        tainted = isinstance(value, Tainted)
        frame.regs[out] = spread(site, repeat, moved(repeat), [value]) if tainted else repeat(value)

    return step


def repeated(value: Any, *, shape: tuple[int, ...], element: ElementType) -> Array:
    """A scalar as a tensor of ``shape``."""
    values = as_array(value, element.dtype)
    return np.broadcast_to(values.reshape(-1, *(1,) * len(shape)), (len(values), *shape))


def from_elements(compiler: FunctionCompiler, op: Operation) -> Step:
    dtype, shape = element_of(op.results[0].type).dtype, shape_of(op.results[0].type)

    def gather(*values: Any) -> Array:
        columns = [as_array(value, dtype).reshape(-1, 1) for value in values]
        lead = max((len(column) for column in columns), default=1)
        spread_out = [np.broadcast_to(column, (lead, 1)) for column in columns]
        return np.concatenate(spread_out, axis=1).reshape(lead, *shape) if columns else np.zeros((1, *shape), dtype)

    def lanes(result: Array, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
        columns = [np.zeros((1, 1), bool) if mask is None else mask.reshape(-1, 1) for mask in masks]
        spread_out = [np.broadcast_to(column, (len(result), 1)) for column in columns]
        return np.concatenate(spread_out, axis=1).reshape(result.shape)

    return compiler.emit(op, gather, lanes)


# --------------------------------------------------------------------------------------------------- single elements


def extract(compiler: FunctionCompiler, op: Operation) -> Step:
    """One element, or in a body one element per iteration."""
    site, dtype = compiler.site(op), element_of(op.results[0].type).dtype

    def take(values: Any, *indices: Any) -> Any:
        values = as_array(values, dtype)
        _require_inside(indices, values.shape[1:], site)
        if all(isinstance(index, int) for index in indices):
            return as_scalar_of_kind(values[(slice(None), *indices)])
        places = [index for index in indices if not isinstance(index, int)]
        shape = np.broadcast_shapes(*(np.shape(place) for place in places))
        rows: Any = 0
        if len(values) > 1:
            rows = np.arange(len(values)).reshape(-1, *(1,) * (len(shape) - 1))
        return as_scalar_of_kind(values[(rows, *indices)].reshape(np.broadcast_shapes(shape, np.shape(rows))))

    def lanes(result: Any, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
        """Undefined where the element is, or one of its indices."""
        source = as_array(values[0], dtype)
        whole = np.zeros(source.shape, np.bool_) if masks[0] is None else np.broadcast_to(masks[0], source.shape)
        found = as_array(take(whole, *values[1:]), np.dtype(np.bool_))
        for mask in masks[1:]:
            found = found if mask is None else found | mask
        return np.asarray(found, np.bool_)

    return compiler.emit(op, take, lanes)


def as_scalar_of_kind(values: Array) -> Any:
    return as_scalar(values) if values.dtype.kind in "ib" else values


def _require_inside(indices: Sequence[Any], shape: Sequence[int], site: Site) -> None:
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        low, high = (index, index) if isinstance(index, int) else (int(index.min()), int(index.max()))
        if low < 0 or high >= extent:
            wrong = low if low < 0 else high
            raise site.fail(
                OutOfBounds,
                f"uses index {wrong} on dimension {axis} of extent {extent}",
                "keep the index inside the tensor",
            )


def insert(compiler: FunctionCompiler, op: Operation) -> Step:
    site, dtype = compiler.site(op), element_of(op.results[0].type).dtype

    def put(scalar: Any, values: Array, *indices: Any) -> Array:
        _require_inside(indices, values.shape[1:], site)
        element = as_array(scalar, values.dtype)
        lead = max(len(element), len(values), *(np.size(index) for index in indices), 1)
        result = np.array(np.broadcast_to(values, (lead, *values.shape[1:])))
        result[(np.arange(lead), *indices)] = element
        return result

    def lanes(result: Array, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
        scalar = np.zeros(1, bool) if masks[0] is None else masks[0].reshape(-1)
        whole = np.zeros(values[1].shape, bool) if masks[1] is None else np.broadcast_to(masks[1], values[1].shape)
        return put(scalar, whole, *values[2:])

    del dtype
    return compiler.emit(op, put, lanes)


# --------------------------------------------------------------------------------------------------------------- slices


def extract_slice(compiler: FunctionCompiler, op: Operation) -> Step:
    source, out = compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    slices, static = Slices(compiler, op, op.operands[0]), shape_of(op.results[0].type)

    def step(frame: Frame) -> None:
        value = frame.regs[source]
        values = value.values if isinstance(value, Tainted) else value
        index, extents = slices.index(frame, values.shape[1:])
        shape = reduced_shape(static, extents)

        def take(array: Array) -> Array:
            taken = leading(array, index)[index]
            return taken.reshape(len(taken), *shape)

        taken = take(values)
        if isinstance(value, Tainted):
            mask = take(np.broadcast_to(value.mask, values.shape))
            taken = Tainted(taken, mask, value.origin) if mask.any() else taken
        frame.regs[out] = taken

    return step


def insert_slice(compiler: FunctionCompiler, op: Operation) -> Step:
    return insertion(compiler, op, compiler.slot(op.operands[1]), compiler.slot(op.results[0]))


def insertion(compiler: FunctionCompiler, op: Operation, dest: int, out: int) -> Step:
    """Puts the first operand into a slice of the tensor in the slot ``dest``."""
    source = compiler.slot(op.operands[0])
    slices = Slices(compiler, op, op.operands[1])

    def step(frame: Frame) -> None:
        regs = frame.regs
        piece, whole = regs[source], regs[dest]
        shape = np.shape(whole.values if isinstance(whole, Tainted) else whole)
        index, extents = slices.index(frame, shape[1:])

        def put(part: Array, into: Array) -> Array:
            lead = max(len(part), len(into), 1 if isinstance(index[0], slice) else frame.n)
            result = np.array(np.broadcast_to(into, (lead, *into.shape[1:])))
            result[index] = part.reshape(len(part), *extents)
            return result

        values = put(_values(piece), _values(whole))
        if isinstance(piece, Tainted) or isinstance(whole, Tainted):
            mask = put(_mask(piece), _mask(whole))
            origin = whole.origin if isinstance(whole, Tainted) else piece.origin
            regs[out] = Tainted(values, mask, origin) if mask.any() else values
        else:
            regs[out] = values

    return step


def _values(value: Value) -> Array:
    return value.values if isinstance(value, Tainted) else value


def _mask(value: Value) -> Array:
    if isinstance(value, Tainted):
        return np.broadcast_to(value.mask, np.shape(value.values))
    return np.zeros(np.shape(value), np.bool_)


# -------------------------------------------------------------------------------------------------------------- shapes


def collapse_shape(compiler: FunctionCompiler, op: Operation) -> Step:
    attribute = op.properties["reassociation"]
    assert isinstance(attribute, ArrayAttr)
    groups = [[int(axis.value.data) for axis in group] for group in attribute]  # type: ignore[union-attr]

    def collapse(value: Array) -> Array:
        return value.reshape(len(value), *(prod(value.shape[axis + 1] for axis in group) for group in groups))

    return compiler.emit(op, collapse, moved(collapse))


def expand_shape(compiler: FunctionCompiler, op: Operation) -> Step:
    static = shape_of(op.results[0].type)
    if all(size >= 0 for size in static):
        return _reshaped(compiler, op, static)
    attribute = op.properties["static_output_shape"]
    assert isinstance(attribute, DenseArrayBase)
    site = compiler.site(op)
    shape = mixed(compiler, [int(size) for size in attribute.get_values()], list(op.operands)[1:])
    source, out = compiler.slot(op.operands[0]), compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        extents = tuple(uniform(size, site, "extents") for size in evaluate(shape, frame, site))
        value = frame.regs[source]
        values = _values(value)
        result = values.reshape(len(values), *extents)
        if isinstance(value, Tainted):
            result = Tainted(result, _mask(value).reshape(result.shape), value.origin)
        frame.regs[out] = result

    return step


def _reshaped(compiler: FunctionCompiler, op: Operation, shape: tuple[int, ...]) -> Step:

    def reshape(value: Array) -> Array:
        return value.reshape(len(value), *shape)

    return compiler.emit(op, reshape, moved(reshape), list(op.operands)[:1])


def reshape(compiler: FunctionCompiler, op: Operation) -> Step:
    static = shape_of(op.results[0].type)
    if all(size >= 0 for size in static):
        return _reshaped(compiler, op, static)
    site = compiler.site(op)

    def change(value: Array, shape: Array) -> Array:
        extents = [uniform(shape[:, axis], site, "extents") for axis in range(shape.shape[1])]
        return value.reshape(len(value), *extents)

    return compiler.emit(op, change, moved(change))


def concat(compiler: FunctionCompiler, op: Operation) -> Step:
    attribute = op.properties["dim"]
    assert isinstance(attribute, IntegerAttr)
    axis = attribute.value.data + 1

    def join(*values: Array) -> Array:
        lead = max(len(value) for value in values)
        return np.concatenate([np.broadcast_to(value, (lead, *value.shape[1:])) for value in values], axis=axis)

    return compiler.emit(op, join, moved(join))


def pad(compiler: FunctionCompiler, op: Operation) -> Step:
    """The source with a border of one value, which the region yields."""
    site = compiler.site(op)
    lows, highs = integers(op, "static_low"), integers(op, "static_high")
    dynamic = list(op.operands)[1:]
    count = sum(number == DYNAMIC_INDEX for number in lows)
    low, high = mixed(compiler, lows, dynamic[:count]), mixed(compiler, highs, dynamic[count:])
    body = compiler.region(op.regions[0], op)
    if any(argument.uses for argument in op.regions[0].block.args):
        raise site.fail(UnknownOperation, "has a border that depends on the position", "use tensor.generate")
    source, out, dtype = (
        compiler.slot(op.operands[0]),
        compiler.slot(op.results[0]),
        element_of(op.results[0].type).dtype,
    )

    def step(frame: Frame) -> None:
        value = frame.regs[source]
        (border,) = body.call(frame, [None] * len(body.arguments))
        before, after = (
            [uniform(size, site, "borders") for size in evaluate(part, frame, site)] for part in (low, high)
        )
        if min((*before, *after), default=0) < 0:
            raise site.fail(OutOfBounds, "has a negative border", "use tensor.extract_slice to cut elements off")
        frame.regs[out] = _padded(value, as_array(demand(border, site), dtype), before, after)

    return step


def _padded(value: Value, border: Array, before: Sequence[int], after: Sequence[int]) -> Value:
    values = _values(value)
    inner = tuple(slice(low, low + size) for low, size in zip(before, values.shape[1:], strict=True))
    shape = tuple(low + size + high for low, size, high in zip(before, values.shape[1:], after, strict=True))
    lead = max(len(values), len(border))

    def frame_of(array: Array, edge: Array) -> Array:
        result = np.empty((lead, *shape), array.dtype)
        result[...] = edge.reshape(-1, *(1,) * len(shape))
        result[(slice(None), *inner)] = array
        return result

    result = frame_of(values, border)
    if not isinstance(value, Tainted):
        return result
    return Tainted(result, frame_of(_mask(value), np.zeros(1, bool)), value.origin)


def generate(compiler: FunctionCompiler, op: Operation) -> Step:
    """Each element from its position, all at once."""
    site, kind = compiler.site(op), op.results[0].type
    shape, out = mixed(compiler, shape_of(kind), list(op.operands)), compiler.slot(op.results[0])
    block = op.regions[0].block
    body = compile_body(compiler, op, block, 0, len(shape_of(kind)))
    target = operand_of(compiler, op.results[0], AffineMap.identity(len(shape_of(kind))))

    def step(frame: Frame) -> None:
        extents = extents_of(shape, target.element, frame, site)
        saved = body.enter(frame, extents)
        (value,) = body.code.call(frame, [position_in_space(axis, extents) for axis in range(len(extents))])
        body.leave(frame, saved)
        frame.regs[out] = as_result(value, target, extents)

    return step


def cast(compiler: FunctionCompiler, op: Operation) -> Step:
    return compiler.unary(op, lambda value: value, any_lane)


def dim(compiler: FunctionCompiler, op: Operation) -> Step:
    site = compiler.site(op)
    source, axis, out = (compiler.slot(value) for value in (*op.operands, op.results[0]))

    def step(frame: Frame) -> None:
        shape = np.shape(_values(frame.regs[source]))[1:]
        wanted = uniform(demand(frame.regs[axis], site), site, "dimensions")
        _require_inside([wanted], [len(shape)], site)
        frame.regs[out] = int(shape[wanted])

    return step


def rank(compiler: FunctionCompiler, op: Operation) -> Step:
    out, known = compiler.slot(op.results[0]), len(shape_of(op.operands[0].type))

    def step(frame: Frame) -> None:
        frame.regs[out] = known

    return step


def bitcast(compiler: FunctionCompiler, op: Operation) -> Step:
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    return compiler.unary(op, lambda value: reinterpreted(value, source, target), any_lane)


Compile = Callable[[FunctionCompiler, Operation], Step | None]

OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "tensor.empty": empty,
        "tensor.splat": splat,
        "tensor.from_elements": from_elements,
        "tensor.extract": extract,
        "tensor.insert": insert,
        "tensor.extract_slice": extract_slice,
        "tensor.insert_slice": insert_slice,
        "tensor.collapse_shape": collapse_shape,
        "tensor.expand_shape": expand_shape,
        "tensor.reshape": reshape,
        "tensor.concat": concat,
        "tensor.pad": pad,
        "tensor.generate": generate,
        "tensor.cast": cast,
        "tensor.dim": dim,
        "tensor.rank": rank,
        "tensor.bitcast": bitcast,
    }
)

__all__ = ["OPERATIONS", "Structure", "evaluate", "is_shaped", "mixed", "poison", "uniform"]
