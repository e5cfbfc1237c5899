"""Whether the number of an iteration decides what the iteration does: such a loop is written out, one body for each.

Units have counted loops, and addresses that are sums of loop variables with constant factors. What a loop variable does
beyond that (it bounds an inner loop, decides a branch, is squared or compared) is a constant again where each iteration
has code of its own. The integers of the body are evaluated here as the lowering would, without emitting anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.lower import scalars
from ktir.backends.dataflow.lower.values import CoreValue, LoopVariable, NotAffine, PerCore, constant, variable


def decides(op: scf.ForOp, known: Mapping[SSAValue, object], lower: CoreValue, step: CoreValue, trips: PerCore) -> bool:
    """Whether the iterations of ``op`` differ in more than addresses; ``known`` has the values in front of it."""
    number = LoopVariable("i", trips)
    found = _Numbers(known, number)
    found.values[op.body.block.args[0]] = lower + variable(number) * step
    return any(not _is_induction(op, position) for position, _ in enumerate(op.iter_args)) or any(
        found.decides(inner) for inner in op.body.walk()
    )


def _is_induction(op: scf.ForOp, position: int) -> bool:
    """Whether a carried value is no integer, or one that stays or grows by what does not come from the body."""
    argument, end = op.body.block.args[1 + position], op.body.block.last_op
    assert end is not None
    operand = end.operands[position]
    if not scalars.is_integral(argument.type) or operand is argument:
        return True
    owner = operand.owner
    if not isinstance(owner, arith.AddiOp) or argument not in owner.operands:
        return False
    other = owner.rhs if owner.lhs is argument else owner.lhs
    return isinstance(other.owner, arith.ConstantOp) or not _is_inside(other, op)


def _is_inside(value: SSAValue, loop: scf.ForOp) -> bool:
    block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    while block is not None:
        if block is loop.body.block:
            return True
        block = block.parent_block()
    return False


class _Numbers:
    """The integers of a body, as far as they can be told."""

    def __init__(self, known: Mapping[SSAValue, object], number: LoopVariable) -> None:
        self.known, self.number, self.cores = known, number, len(number.trips)
        self.values: dict[SSAValue, CoreValue] = {}

    def decides(self, op: Operation) -> bool:
        """Whether ``op`` needs the number of the iteration as a constant."""
        if isinstance(op, scf.ForOp):
            return self._bounds_vary(op)
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            condition = self.value(op.operands[0])
            return condition is not None and self._varies(condition)
        operands = [self.value(operand) for operand in op.operands]
        if len(op.results) != 1 or not scalars.is_integral(op.results[0].type):
            return False
        certain = [operand for operand in operands if operand is not None]
        if len(certain) < len(operands):
            return False
        try:
            result = scalars.evaluate(op, certain, self.cores)
        except NotAffine:
            return any(self._varies(operand) for operand in certain)
        if result is not None:
            self.values[op.results[0]] = result
        return False

    def _bounds_vary(self, op: scf.ForOp) -> bool:
        bounds = [self.value(bound) for bound in (op.lb, op.ub, op.step)]
        if any(bound is None for bound in bounds):
            return False
        lower, upper, step = (bound for bound in bounds if bound is not None)
        if self._varies(upper - lower) or self._varies(step):
            return True
        if step.is_constant:
            self.values[op.body.block.args[0]] = lower + variable(LoopVariable("j", self.number.trips)) * step
        return False

    def value(self, value: SSAValue) -> CoreValue | None:
        """The integer, if it is known."""
        found = self.values.get(value, self.known.get(value))
        if found is None and isinstance(value.owner, arith.ConstantOp):
            return self._constant(value.owner)
        return found if isinstance(found, CoreValue) else None

    def _constant(self, op: arith.ConstantOp) -> CoreValue | None:
        data = getattr(getattr(op.value, "value", None), "data", None)
        return constant(data, self.cores) if isinstance(data, int) and scalars.is_integral(op.result.type) else None

    def _varies(self, value: CoreValue) -> bool:
        return self.number in value.terms or value.varies_with(self.number)


__all__ = ["decides"]
