"""Loops and branches, and the values that loops carry.

A value that a loop carries is a tile of two slots: each iteration reads the old value and writes the new one.
Conditions and trip counts must be constants of the core; a branch is a loop that runs at most once. A short loop whose
iterations differ in them is written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ktir.backends.dataflow.lower import iteration_numbers, memory, moves, scalars, structured
from ktir.backends.dataflow.lower.context import Lowering, Rule, only_reader, refuse, shape_and_element
from ktir.backends.dataflow.lower.plan import Loop, Mask, Tile, View
from ktir.backends.dataflow.lower.tensors import Tensor
from ktir.backends.dataflow.lower.values import CoreValue, constant, per_core, variable
from ktir.dialect import ktdp

MOST_UNROLLED = 64
"""Iterations up to which a loop is written out whose iterations differ in more than addresses."""
WRITTEN_OUT = (
    f"loops around it are written out if they have at most {MOST_UNROLLED} iterations; "
    "beyond that make it a constant of the core"
)


def _for(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    planner = lowering.planner
    lower, upper, step = (lowering.integer(bound, op) for bound in (op.lb, op.ub, op.step))
    distance = upper - lower
    if not distance.is_constant or not step.is_constant:
        refuse(op, "its trip count changes in an enclosing loop", WRITTEN_OUT)
    active = planner.active
    if (step.constant[active] <= 0).any():
        refuse(op, "its step is not positive")
    steps = np.where(step.constant > 0, step.constant, 1)
    trips = np.maximum(-(-distance.constant // steps), 0)
    if _unrolls(lowering, op, lower, step, trips):
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
    lowering.lower_body(body)
    for each, operand in zip(carried, yielded.operands, strict=True):
        each.leave(lowering, operand, yielded)
    planner.active = active
    planner.close_loop(loop)
    planner.origin = op
    for each, result in zip(carried, op.results, strict=True):
        each.finish(lowering, loop, result, trips)


def _unrolls(lowering: Lowering, op: scf.ForOp, lower: CoreValue, step: CoreValue, trips: np.ndarray) -> bool:
    """Whether each iteration needs code of its own."""
    here = trips[lowering.planner.active]
    if not len(here) or here.max() > MOST_UNROLLED:
        return False
    return _reaches_by_number(op) or iteration_numbers.decides(op, lowering.values, lower, step, trips)


def _reaches_by_number(op: scf.ForOp) -> bool:
    """Whether the iteration's number says which partitions it reaches into, or whether it reaches beyond an end."""
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
    carried = [_value(lowering, value, op) for value in op.iter_args]
    for number in range(int(trips[planner.active].max(initial=0))):
        lowering.values[body.args[0]] = lower + step * number
        lowering.values.update(zip(body.args[1:], carried, strict=True))
        carried = _iteration(lowering, body, trips > number, carried)
    lowering.values.update(zip(op.results, carried, strict=True))
    planner.origin = op


def _value(lowering: Lowering, value: SSAValue, op: Operation) -> Tensor | CoreValue:
    known = lowering.values.get(value)
    return known if isinstance(known, CoreValue) else lowering.tensor(value, op)


def _iteration(
    lowering: Lowering, body: Block, mask: Mask, carried: Sequence[Tensor | CoreValue]
) -> Sequence[Tensor | CoreValue]:
    """The body on the cores of ``mask``, and what is carried on: on the others, what was carried before."""
    planner, end = lowering.planner, body.last_op
    assert end is not None
    if not carried or (mask & planner.active == planner.active).all():
        planner.guarded(mask, lambda: lowering.lower_body(body))
        return [_value(lowering, operand, end) for operand in end.operands]
    places = {
        number: lowering.made_tile(value.shape, value.element)
        for number, value in enumerate(carried)
        if not isinstance(value, CoreValue)
    }
    made: list[Tensor | CoreValue] = []

    def work() -> None:
        lowering.lower_body(body)
        made.extend(_value(lowering, operand, end) for operand in end.operands)
        _write(made)

    def _write(values: Sequence[Tensor | CoreValue]) -> None:
        for number, (target, _) in places.items():
            value = values[number]
            assert not isinstance(value, CoreValue)
            moves.write(planner, value, target)

    planner.guarded(mask, work)
    planner.guarded(~mask, lambda: _write(carried))
    return [
        places[number][1] if number in places else _either(mask, made[number], carried[number])
        for number in range(len(carried))
    ]


def _either(mask: Mask, there: Tensor | CoreValue, elsewhere: Tensor | CoreValue) -> CoreValue:
    """An integer on the cores of ``mask`` and another one on the rest."""
    assert isinstance(there, CoreValue) and isinstance(elsewhere, CoreValue)
    return there * per_core(mask.astype(np.int64)) + elsewhere * per_core((~mask).astype(np.int64))


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
            lowering.lower_operation(other.owner)
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
    condition = lowering.integer(op.cond, op)
    if not condition.is_constant:
        refuse(op, "its condition changes in a loop", WRITTEN_OUT)
    taken = condition.constant != 0
    regions = ((taken, op.true_region), (~taken, op.false_region))
    _one_of(lowering, op, [(mask, region.block) for mask, region in regions if region.blocks])


def _switch(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, scf.IndexSwitchOp)
    selector = lowering.integer(op.arg, op)
    if not selector.is_constant:
        refuse(op, "its case changes in a loop", WRITTEN_OUT)
    cases = zip(op.cases.get_values(), op.case_regions, strict=True)
    choices = [(selector.constant == int(case), region.block) for case, region in cases]
    others = np.ones(lowering.cores, dtype=np.bool_)
    for taken, _ in choices:
        others &= ~taken
    _one_of(lowering, op, [*choices, (others, op.default_region.block)])


def _one_of(lowering: Lowering, op: Operation, choices: Sequence[tuple[Mask, Block]]) -> None:
    """Each block on the cores of its mask; the results are what the block of a core yields."""
    places = [lowering.made_tile(*shape_and_element(result.type, op)) for result in op.results]
    targets = [target for target, _ in places]
    for mask, block in choices:
        lowering.planner.guarded(mask, lambda block=block: _branch(lowering, block, targets))
    for result, (_, view) in zip(op.results, places, strict=True):
        lowering.values[result] = view


def _branch(lowering: Lowering, block: Block, targets: Sequence[View]) -> None:
    lowering.lower_body(block)
    end = block.last_op
    if isinstance(end, scf.YieldOp):
        for operand, target in zip(end.operands, targets, strict=True):
            moves.write(lowering.planner, lowering.tensor(operand, end), target)


RULES: Mapping[str, Rule] = {"scf.for": _for, "scf.if": _if, "scf.index_switch": _switch}
