"""The walk over a kernel: control flow, loop-carried values, and the rule for each operation.

Integers are evaluated, tensors get storage. A value that a loop carries is a tile of two slots: each iteration reads
the old value and writes the new one. Conditions must be constants of the core; a branch is a loop that runs at most
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.hints import isa

from ktir.backends.dataflow.lower import indirect, memory, moves, pointwise, ring, scalars, structured
from ktir.backends.dataflow.lower.context import (
    Lowering,
    is_parallel,
    only_reader,
    refuse,
    shape_and_element,
    splat_value,
)
from ktir.backends.dataflow.lower.plan import Loop, Tile, View, Writing
from ktir.backends.dataflow.lower.tensors import (
    NotViewable,
    Splat,
    Tensor,
    Undefined,
    broadcast,
    collapsed,
    expanded,
    transposed,
)
from ktir.backends.dataflow.lower.values import CoreValue, NotAffine, constant, per_core, variable
from ktir.dialect import ktdp

DYNAMIC = -(1 << 63)


def lower_body(lowering: Lowering, block: Block) -> None:
    """Lowers the operations of ``block`` in order; its terminator is left to the caller."""
    for op in block.ops:
        if not op.has_trait(IsTerminator):
            lowering.planner.origin = op
            lower_operation(lowering, op)


def lower_operation(lowering: Lowering, op: Operation) -> None:
    """Lowers one operation."""
    if op.results and not any(result.uses for result in op.results) and not op.regions:
        return
    if (rule := RULES.get(op.name)) is not None:
        rule(lowering, op)
    elif isinstance(op, LinalgStructuredOperation):
        _structured(lowering, op)
    elif _is_integer_arithmetic(lowering, op):
        _integer(lowering, op)
    elif op.name.split(".")[0] in ("arith", "math") and len(op.results) == 1:
        pointwise.lower_elementwise(lowering, op)
    else:
        refuse(op, "the dataflow target has no rule for it")


def _is_integer_arithmetic(lowering: Lowering, op: Operation) -> bool:
    if not op.name.startswith(("arith.", "affine.")) or not op.results:
        return False
    integral = all(scalars.is_integral(value.type) for value in (*op.operands, *op.results))
    return integral and all(isinstance(lowering.values.get(operand), CoreValue) for operand in op.operands)


def _integer(lowering: Lowering, op: Operation) -> None:
    operands = [lowering.integer(operand, op) for operand in op.operands]
    try:
        value = scalars.evaluate(op, operands, lowering.cores)
    except NotAffine as fault:
        refuse(op, str(fault), "let bounds and addresses be sums of loop variables with constant factors")
    if value is None:
        refuse(op, "it is no arithmetic that can be evaluated ahead")
    lowering.values[op.results[0]] = value


# ------------------------------------------------------------------------------------------------------------ constants


def _constant(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    type, attribute = op.result.type, op.value
    if scalars.is_integral(type) and isinstance(attribute, IntegerAttr):
        number = attribute.value.data
        lowering.values[op.result] = constant(number & 1 if str(type) == "i1" else number, lowering.cores)
        return
    shape, element = shape_and_element(type, op)
    scalar = splat_value(attribute)
    if scalar is not None:
        lowering.values[op.result] = Splat(scalar, shape, element)
        return
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    source = lowering.constants.view(attribute, shape, element, lowering.cores)
    target, view = lowering.loaded_tile(shape, element)
    moves.load(lowering.planner, source, target)
    lowering.values[op.result] = view


def _empty(lowering: Lowering, op: Operation) -> None:
    shape, element = shape_and_element(op.results[0].type, op)
    lowering.values[op.results[0]] = Undefined(shape, element)


def _splat_of(lowering: Lowering, op: Operation, scalar: SSAValue, result: SSAValue) -> None:
    shape, element = shape_and_element(result.type, op)
    known = lowering.tensor(scalar, op)
    if isinstance(known, Splat):
        lowering.values[result] = Splat(known.value, shape, element)
        return
    if isinstance(known, Undefined):
        lowering.values[result] = Undefined(shape, element)
        return
    view = lowering.view(scalar, op)
    lowering.values[result] = view.shaped(shape, (0,) * len(shape))


def _fill(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, FillOp)
    if op.inputs[0].type != shape_and_element(op.results[0].type, op)[1]:
        pointwise.lower_parallel(lowering, op)
    else:
        _splat_of(lowering, op, op.inputs[0], op.results[0])


def _splat(lowering: Lowering, op: Operation) -> None:
    _splat_of(lowering, op, op.operands[0], op.results[0])


def _tile_id(lowering: Lowering, op: Operation) -> None:
    for axis, result in enumerate(op.results):
        coordinates = lowering.coordinates
        at = coordinates[axis] if axis < len(coordinates) else np.zeros(lowering.cores, dtype=np.int64)
        lowering.values[result] = per_core(at)


# ---------------------------------------------------------------------------------------------------------------- views


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


def _mixed(lowering: Lowering, op: Operation, name: str, dynamic: Sequence[SSAValue]) -> list[CoreValue]:
    """Static entries of a list with the dynamic ones in their places."""
    values = iter(dynamic)
    return [
        lowering.integer(next(values), op) if entry == DYNAMIC else constant(entry, lowering.cores)
        for entry in _integers(op, name)
    ]


def _steps(lowering: Lowering, op: Operation, entries: Sequence[CoreValue]) -> list[int]:
    steps = [entry.uniform for entry in entries]
    if any(step is None for step in steps):
        refuse(op, "its strides are not constant")
    return [step for step in steps if step is not None]


def _extract_slice(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.ExtractSliceOp)
    offsets = _mixed(lowering, op, "static_offsets", op.offsets)
    sizes = _steps(lowering, op, _mixed(lowering, op, "static_sizes", op.sizes))
    steps = _steps(lowering, op, _mixed(lowering, op, "static_strides", op.strides))
    shape, _ = shape_and_element(op.result.type, op)
    _reshape(lowering, op, lambda view: _without_units(view.sliced(offsets, sizes, steps), shape))


def _without_units(view: View, shape: Sequence[int]) -> View:
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


# --------------------------------------------------------------------------------------------------------------- writes


def _insert_slice(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.InsertSliceOp)
    offsets = _mixed(lowering, op, "static_offsets", op.offsets)
    sizes = _steps(lowering, op, _mixed(lowering, op, "static_sizes", op.sizes))
    steps = _steps(lowering, op, _mixed(lowering, op, "static_strides", op.strides))
    _insert(lowering, op, op.source, op.dest, op.result, offsets, sizes, steps)


def _pad(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, tensor.PadOp)
    low = _mixed(lowering, op, "static_low", op.low)
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
    moves.write(planner, data, _without_units(hole, data.shape))
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


# ----------------------------------------------------------------------------------------------------------- structured


def _structured(lowering: Lowering, op: LinalgStructuredOperation) -> None:
    if is_parallel(op):
        pointwise.lower_parallel(lowering, op)
        return
    if (held := lowering.held.get(op)) is not None:
        held.step(lowering)
        lowering.values[op.results[0]] = Undefined(*shape_and_element(op.results[0].type, op))
    elif (roles := structured.contraction_roles(op)) is not None:
        structured.lower_contraction(lowering, op, roles)
    else:
        structured.lower_reduction(lowering, op)


# --------------------------------------------------------------------------------------------------------- control flow


def _for(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    planner = lowering.planner
    lower, upper, step = (lowering.integer(bound, op) for bound in (op.lb, op.ub, op.step))
    distance = upper - lower
    if not distance.is_constant or not step.is_constant:
        refuse(op, "its trip count changes in an enclosing loop", "make the bounds constants of the core")
    active = planner.active
    if (step.constant[active] <= 0).any():
        refuse(op, "its step is not positive")
    steps = np.where(step.constant > 0, step.constant, 1)
    trips = np.maximum(-(-distance.constant // steps), 0)
    if _unrolls(op, trips[active]):
        return _unrolled(lowering, op, lower, step, trips)
    body = op.body.block
    carried = [Carried.begin(lowering, op, n) for n in range(len(op.iter_args))]
    running = active & (trips > 0)
    if not running.any():
        for each, result in zip(carried, op.results, strict=True):
            each.finish(lowering, None, result, trips)
        return
    loop = planner.open_loop(body.args[0].name_hint or "i", trips)
    at = variable(loop.variable)
    lowering.values[body.args[0]] = lower + at * step
    yielded = body.last_op
    assert yielded is not None
    for each, argument, operand in zip(carried, body.args[1:], yielded.operands, strict=True):
        each.enter(lowering, argument, operand, yielded, at)
    planner.active = running
    lower_body(lowering, body)
    for each, operand in zip(carried, yielded.operands, strict=True):
        each.leave(lowering, operand, yielded)
    planner.active = active
    planner.close_loop(loop)
    planner.origin = op
    for each, result in zip(carried, op.results, strict=True):
        each.finish(lowering, loop, result, trips)


MOST_UNROLLED = 64
"""Iterations up to which a loop is written out whose iterations reach different partitions."""


def _unrolls(op: scf.ForOp, trips: np.ndarray) -> bool:
    """Whether each iteration needs code of its own: it reaches into partitions, or beyond an end, by its number."""
    if not len(trips) or trips.max() > MOST_UNROLLED or (op.iter_args and trips.min() < trips.max()):
        return False
    varying: set[SSAValue] = set(op.body.block.args)
    for inner in op.body.walk():
        if any(operand in varying for operand in inner.operands):
            varying.update(inner.results)
            varying.update(argument for region in inner.regions for block in region.blocks for argument in block.args)
        if isinstance(inner, ktdp.ConstructAccessTileOp) and any(index in varying for index in inner.indices):
            base = inner.base.owner
            if isinstance(base, ktdp.ConstructDistributedMemoryViewOp) or (
                isinstance(base, ktdp.ConstructMemoryViewOp) and memory.is_ragged(base)
            ):
                return True
    return False


def _unrolled(lowering: Lowering, op: scf.ForOp, lower: CoreValue, step: CoreValue, trips: np.ndarray) -> None:
    """The body once for each iteration, on the cores that reach it."""
    planner, body = lowering.planner, op.body.block
    carried = [lowering.values.get(value) for value in op.iter_args]
    yielded = body.last_op
    assert yielded is not None
    for number in range(int(trips[planner.active].max(initial=0))):
        lowering.values[body.args[0]] = lower + step * number
        lowering.values.update(zip(body.args[1:], carried, strict=True))
        planner.guarded(trips > number, lambda: lower_body(lowering, body))
        carried = [lowering.values.get(operand) for operand in yielded.operands]
    lowering.values.update(zip(op.results, carried, strict=True))
    planner.origin = op


class Carried:
    """A value that a loop carries: its initial value, then what each iteration makes of it."""

    def __init__(
        self, loop: scf.ForOp, number: int, initial: Tensor | CoreValue, tile: Tile | structured.HeldSum | None
    ) -> None:
        self.loop, self.number, self.initial, self.tile = loop, number, initial, tile
        self.increment: CoreValue | None = None
        self.target: View | None = None

    @staticmethod
    def begin(lowering: Lowering, op: scf.ForOp, number: int) -> Carried:
        """Writes the initial value into the first slot of a new tile, in front of the loop."""
        value = op.iter_args[number]
        known = lowering.values.get(value)
        held = structured.held_sum(lowering.machine, op, number)
        if held is not None and not lowering.held:
            lowering.held[held.product] = held
            initial = lowering.tensor(value, op)
            held.begin(lowering, initial)
            return Carried(op, number, initial, held)
        if isinstance(known, CoreValue) and scalars.is_integral(value.type):
            return Carried(op, number, known, None)
        initial = lowering.tensor(value, op)
        tile = lowering.planner.carried_tile(initial.shape, initial.element)
        first = lowering.planner.dense(lowering.planner.writing(tile), initial.shape, initial.element)
        moves.write(lowering.planner, initial, first)
        return Carried(op, number, initial, tile)

    def enter(self, lowering: Lowering, argument: SSAValue, operand: SSAValue, end: Operation, at: CoreValue) -> None:
        """Binds the value of the iteration; where only the yield uses the new value, it is written in place."""
        if self.tile is None:
            self._induction(lowering, argument, operand, at)
            return
        if isinstance(self.tile, structured.HeldSum):
            return
        assert not isinstance(self.initial, CoreValue)
        shape, element = self.initial.shape, self.initial.element
        old = lowering.planner.dense(lowering.planner.reading(self.tile), shape, element)
        lowering.values[argument] = old
        self.target = lowering.planner.dense(lowering.planner.writing(self.tile), shape, element)
        if only_reader(operand) is end and isinstance(operand.owner, Operation) and operand.owner.parent is end.parent:
            lowering.targets[operand] = self.target

    def _induction(self, lowering: Lowering, argument: SSAValue, operand: SSAValue, at: CoreValue) -> None:
        """An integer that grows by the same amount in each iteration."""
        assert isinstance(self.initial, CoreValue)
        owner = operand.owner
        other = None
        if isinstance(owner, arith.AddiOp) and argument in owner.operands:
            other = owner.rhs if owner.lhs is argument else owner.lhs
        elif operand is argument:
            lowering.values[argument] = self.initial
            self.increment = constant(0, lowering.cores)
            return
        if other is not None and isinstance(other.owner, arith.ConstantOp) and other not in lowering.values:
            lower_operation(lowering, other.owner)
        step = lowering.values.get(other) if other is not None else None
        if not isinstance(step, CoreValue) or not step.is_constant:
            refuse(self.loop, "it carries an integer that does not grow by a constant")
        self.increment = step
        lowering.values[argument] = self.initial + at * step

    def leave(self, lowering: Lowering, operand: SSAValue, end: Operation) -> None:
        """Writes the new value where that has not happened on the way."""
        if self.target is None or lowering.values.get(operand) is self.target:
            return
        if operand in lowering.targets:
            del lowering.targets[operand]
        moves.write(lowering.planner, lowering.tensor(operand, end), self.target)

    def finish(self, lowering: Lowering, loop: Loop | None, result: SSAValue, trips: np.ndarray) -> None:
        """Binds the result of the loop: the slot that the last iteration, or the beginning, has left."""
        if self.tile is None:
            assert isinstance(self.initial, CoreValue)
            grown = self.increment * per_core(trips) if self.increment is not None else constant(0, lowering.cores)
            lowering.values[result] = self.initial + grown
            return
        assert not isinstance(self.initial, CoreValue)
        if isinstance(self.tile, structured.HeldSum):
            del lowering.held[self.tile.product]
            target, view = lowering.place(result, self.initial.shape, self.initial.element)
            self.tile.finish(lowering, target)
            lowering.values[result] = view
            return
        anchor = loop if loop is not None and loop in lowering.planner.block.items else None
        reading = lowering.planner.reading(self.tile, anchor)
        lowering.values[result] = lowering.planner.dense(reading, self.initial.shape, self.initial.element)


def _if(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    planner = lowering.planner
    condition = lowering.integer(op.cond, op)
    if not condition.is_constant:
        refuse(op, "its condition changes in a loop", "split the loop where the condition changes")
    places = [lowering.made_tile(*shape_and_element(result.type, op)) for result in op.results]
    taken = condition.constant != 0
    for mask, region in ((taken, op.true_region), (~taken, op.false_region)):
        if region.blocks:
            planner.guarded(mask, lambda block=region.block: _branch(lowering, block, [t for t, _ in places]))
    for result, (_, view) in zip(op.results, places, strict=True):
        lowering.values[result] = view


def _branch(lowering: Lowering, block: Block, targets: Sequence[View]) -> None:
    lower_body(lowering, block)
    end = block.last_op
    if isinstance(end, scf.YieldOp):
        for operand, target in zip(end.operands, targets, strict=True):
            moves.write(lowering.planner, lowering.tensor(operand, end), target)


def _runtime_argument(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, ktdp.RuntimeArgExtractOp)
    if op.kind_name == "value":
        lowering.values[op.result] = lowering.values.get(op.argument)
        return
    promise = cast("ktdp.RuntimeArgType", op.argument.type).promise(op.kind_name)
    if promise is None:
        refuse(op, f"its argument promises no {op.kind_name}")
    lowering.values[op.result] = constant(promise, lowering.cores)


def _scalar_to_float(lowering: Lowering, op: Operation) -> None:
    """An integer known ahead becomes a constant; one that depends on data is converted by the vector unit."""
    known = lowering.values.get(op.operands[0])
    type = op.results[0].type
    if isinstance(known, CoreValue) and (number := known.uniform) is not None and isa(type, AnyFloat):
        lowering.values[op.results[0]] = Splat(FloatAttr(float(number), type), (), type)
    else:
        pointwise.lower_elementwise(lowering, op)


OpT = TypeVar("OpT", bound=Operation)
Rule = Callable[[Lowering, Operation], None]


def _typed(kind: type[OpT], rule: Callable[[Lowering, OpT], None]) -> Rule:
    """``rule`` for operations of one class, as a rule for operations of its name."""

    def apply(lowering: Lowering, op: Operation) -> None:
        assert isinstance(op, kind)
        rule(lowering, op)

    return apply


RULES: Mapping[str, Rule] = {
    "arith.constant": _constant,
    "arith.sitofp": _scalar_to_float,
    "arith.uitofp": _scalar_to_float,
    "tensor.empty": _empty,
    "tensor.splat": _splat,
    "tensor.collapse_shape": _collapse,
    "tensor.expand_shape": _expand,
    "tensor.reshape": _any_reshape,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.insert": _insert_scalar,
    "tensor.extract": _extract,
    "tensor.pad": _pad,
    "tensor.concat": _concat,
    "tensor.from_elements": _from_elements,
    "linalg.fill": _fill,
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    "linalg.reduce": structured.lower_reduction,
    "scf.for": _for,
    "scf.if": _if,
    "ktdp.get_compute_tile_id": _tile_id,
    "ktdp.runtime_arg_extract": _runtime_argument,
    "ktdp.construct_memory_view": _typed(ktdp.ConstructMemoryViewOp, memory.construct_memory_view),
    "ktdp.construct_distributed_memory_view": _typed(
        ktdp.ConstructDistributedMemoryViewOp, memory.construct_distributed_view
    ),
    "ktdp.construct_access_tile": _typed(ktdp.ConstructAccessTileOp, memory.construct_access_tile),
    "ktdp.construct_indirect_access_tile": _typed(ktdp.ConstructIndirectAccessTileOp, indirect.construct_indirect_tile),
    "ktdp.load": _typed(ktdp.LoadOp, memory.load),
    "ktdp.store": _typed(ktdp.StoreOp, memory.store),
    "ktdp.inter_tile_produce": ring.produce,
    "ktdp.inter_tile_reduce": ring.reduce,
    "ktdp.inter_tile_consume": ring.consume,
}
