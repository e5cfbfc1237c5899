"""Follows scalar arithmetic and control flow, for all cores at once, with the values of :mod:`ktir.analysis.ranges`.

Loops are listed iteration by iteration while the points stay below ``POINT_LIMIT``; longer ones become a symbol.
Integers that a loop carries are followed where each step adds the same to them. Tensors are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    IntegerType,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from ktir.analysis import ranges
from ktir.analysis.accesses import Known, Loop
from ktir.analysis.ranges import Frame, Integers, Value
from ktir.analysis.scalar_operations import ARITHMETIC, bits_of, fitted, is_scalar

POINT_LIMIT = 1 << 18
"""Points of a frame up to which loops are listed."""


def signed_range(bits: int) -> tuple[float, float]:
    """What an integer of so many bits can be; a truth is 0 or 1, an index anything."""
    if bits == 1:
        return 0.0, 1.0
    return (-np.inf, np.inf) if bits >= 64 else (float(-(1 << (bits - 1))), float((1 << (bits - 1)) - 1))


class Evaluator:
    """Evaluates scalar arithmetic and control flow; ``known`` holds what is known of SSA values."""

    def __init__(self, functions: Mapping[str, func.FuncOp]) -> None:
        self.functions = functions
        self.known: dict[SSAValue, Known] = {}
        self.order = 0
        self.loops: tuple[Loop, ...] = ()

    def bind(self, names: Sequence[SSAValue], values: Sequence[Known | None]) -> None:
        for name, value in zip(names, values, strict=False):
            if value is not None:
                self.known[name] = value

    def value(self, operand: SSAValue, frame: Frame) -> Value:
        """What is known of an integer, at the points of ``frame``."""
        known = self.known.get(operand)
        if not isinstance(known, Value):
            bits = bits_of(operand.type)
            known = ranges.symbol(operand.name_hint or "value", frame, *signed_range(bits))
            self.known[operand] = known
        return known.at(frame)

    def block(self, block: Block, frame: Frame) -> None:
        for operation in block.ops:
            self.order += 1
            self.operation(operation, frame)

    def operation(self, op: Operation, frame: Frame) -> None:
        evaluate = ARITHMETIC.get(op.name)
        if evaluate is not None:
            if is_scalar(op.results[0].type):
                operands = [self.value(o, frame) for o in op.operands]
                self.known[op.results[0]] = fitted(evaluate(op, operands), op.results[0].type)
                self.check_divisor(op, operands, frame)
            return
        match op:
            case scf.ForOp():
                self.loop(op, frame)
            case scf.ParallelOp():
                self.nest(op, frame)
            case scf.IfOp():
                self.branch(op, frame)
            case func.CallOp():
                self.call(op, frame)
            case _:
                self.other(op, frame)

    def other(self, op: Operation, frame: Frame) -> None:
        self.regions_perhaps(op, frame)

    def check_divisor(self, op: Operation, operands: Sequence[Value], frame: Frame) -> None:
        """Hook for what a kernel records of divisions."""

    def enter_loop(self, loop: Loop) -> None:
        """Hook for what a kernel records of loops."""

    def call(self, op: func.CallOp, frame: Frame) -> None:
        self.regions_perhaps(op, frame)

    def regions_perhaps(self, op: Operation, frame: Frame) -> None:
        """Code that nothing is known about: it may run, any number of times."""
        if op.regions and not op.name.startswith(("linalg.", "tensor.")):
            for region in op.regions:
                for block in region.blocks:
                    self.block(block, frame.doubtful())

    # ----------------------------------------------------------------------------------------------- control flow

    def branch(self, op: scf.IfOp, frame: Frame) -> None:
        condition = self.value(op.cond, frame)
        if op.cond.type == IntegerType(1) and condition.known:
            condition = replace(condition, constant=condition.constant & 1)
        low, high = (np.broadcast_to(b, frame.points) for b in (condition.lower(), condition.upper()))
        decided = low == high
        arms: list[tuple[Region, Frame]] = []
        for region, taken in ((op.true_region, high != 0), (op.false_region, ~decided | (high == 0))):
            if not region.blocks or not taken.any():
                continue
            points = np.flatnonzero(taken)
            inner = frame.within(points, decided[points])
            arms.append((region, inner))
            self.block(region.block, inner)
        for position, result in enumerate(op.results):
            self.merge(result, position, arms, condition, frame)

    def merge(
        self, result: SSAValue, position: int, arms: Sequence[tuple[Region, Frame]], condition: Value, frame: Frame
    ) -> None:
        """The result of a branch, where both arms give values that are known at all points."""
        if not is_scalar(result.type):
            return
        given = [self.value(cast(Operation, r.block.last_op).operands[position], f) for r, f in arms]
        literals = [v.literal for v in given]
        if len(given) == 1 and literals[0] is not None:
            self.known[result] = ranges.constant(literals[0])
        elif len(given) == 2 and None not in literals:
            yes, no = (ranges.constant(cast(int, v)) for v in literals)
            self.known[result] = ranges.choose(condition, yes, no)

    def loop(self, op: scf.ForOp, frame: Frame) -> None:
        lower, upper, step = (self.value(v, frame) for v in (op.lb, op.ub, op.step))
        by = step.literal
        trips = trip_count(lower, upper, by, frame)
        loop = Loop(op, frame, step, trips)
        self.enter_loop(loop)
        if by is None or by <= 0:
            counter = ranges.symbol(op.body.block.args[0].name_hint or "i", frame)
            self.body(op, loop, frame.doubtful(), counter, None)
            return
        counts = np.broadcast_to(trips.constant, frame.points)
        if trips.known and int(counts.sum()) <= POINT_LIMIT:
            inner, number = listed(frame, counts)
            if inner.points:
                self.body(op, loop, inner, lower.at(inner) + ranges.scale(number, np.asarray(by)), number)
            elif op.results:
                self.bind(op.results, [self.known.get(v) for v in op.iter_args])
            return
        name = op.body.block.args[0].name_hint or "i"
        inner, number, counter = symbolic(name, frame, lower, upper, by, trips)
        self.body(op, loop, inner, counter, number)

    def nest(self, op: scf.ParallelOp, frame: Frame) -> None:
        """A parallel loop: one loop inside the other, the last one innermost."""
        outer = self.loops
        for name, low, high, step in zip(op.body.block.args, op.lowerBound, op.upperBound, op.step, strict=True):
            lower, upper, by = (self.value(v, frame) for v in (low, high, step))
            trips = trip_count(lower, upper, by.literal, frame)
            loop = Loop(op, frame, by, trips)
            self.enter_loop(loop)
            self.loops = (*self.loops, loop)
            if by.literal is None or by.literal <= 0:
                frame = frame.doubtful()
                counter = ranges.symbol(name.name_hint or "i", frame)
            elif trips.known and int(np.broadcast_to(trips.constant, frame.points).sum()) <= POINT_LIMIT:
                frame, number = listed(frame, np.broadcast_to(trips.constant, frame.points))
                counter = lower.at(frame) + ranges.scale(number, np.asarray(by.literal))
            else:
                frame, _, counter = symbolic(name.name_hint or "i", frame, lower, upper, by.literal, trips)
            self.known[name] = counter
        start = self.order
        if frame.points:
            self.block(op.body.block, frame)
        for loop in self.loops[len(outer) :]:
            self.leave_loop(loop, start)
        self.loops = outer

    def body(self, op: scf.ForOp, loop: Loop, frame: Frame, counter: Value, number: Value | None) -> None:
        """Follow a loop's body; carried integers are followed where each step adds the same to them."""
        arguments = op.body.block.args
        self.known[arguments[0]] = fitted(counter, arguments[0].type)
        carried = [i for i, a in enumerate(arguments[1:]) if is_scalar(a.type)]
        outer, self.loops = self.loops, (*self.loops, loop)
        if carried and number is not None:
            self.carry(op, frame, number, carried)
        start = self.order
        self.block(op.body.block, frame)
        self.loops = outer
        self.leave_loop(loop, start)
        for position in carried:
            self.known.pop(op.results[position], None)

    def leave_loop(self, loop: Loop, start: int) -> None:
        """Hook for what a kernel records of loops."""

    def carry(self, op: scf.ForOp, frame: Frame, number: Value, carried: Sequence[int]) -> None:
        """Give carried integers the form ``initial + number * step``, where a trial of the body shows that it holds."""
        arguments = op.body.block.args[1:]
        unknown = {i: ranges.symbol(f"carried {i}", frame) for i in carried}
        self.bind([arguments[i] for i in carried], [unknown[i] for i in carried])
        trial = self.trial()
        trial.block(op.body.block, frame)
        yielded = cast(Operation, op.body.block.last_op).operands
        for i in carried:
            increment = trial.value(yielded[i], frame) - unknown[i]
            initial = self.value(op.iter_args[i], frame)
            literal = increment.literal
            if literal is not None:
                self.known[arguments[i]] = initial + ranges.scale(number, np.asarray(literal))

    def trial(self) -> Evaluator:
        """An evaluator that knows the same and records nothing."""
        copy = Evaluator(self.functions)
        copy.known, copy.order = dict(self.known), self.order
        return copy


def trip_count(lower: Value, upper: Value, step: int | None, frame: Frame) -> Value:
    """How often a loop runs, at each point."""
    if step is None or step <= 0:
        return ranges.symbol("trips", frame, 0.0)
    span = ranges.greatest(upper - lower + ranges.constant(step - 1), ranges.constant(0))
    trips = ranges.floor_divide(span, step)
    if not trips.known:
        return trips
    return Value(np.broadcast_to(trips.constant, frame.points), {}, frame)


def listed(frame: Frame, counts: Integers) -> tuple[Frame, Value]:
    """The frame with one point for each iteration, and the number of the iteration at each."""
    origin = np.repeat(np.arange(frame.points), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    inner = frame.within(origin)
    return inner, Value(np.arange(len(origin)) - first, {}, inner)


def symbolic(
    name: str, frame: Frame, lower: Value, upper: Value, step: int, trips: Value
) -> tuple[Frame, Value, Value]:
    """The frame of a loop that is not listed, a symbol for the number of the iteration, and the counter."""
    least, most = (np.broadcast_to(b, frame.points) for b in (trips.lower(), trips.upper()))
    points = np.flatnonzero(most > 0)
    inner = frame.within(points, least[points] > 0)
    if trips.known:
        number = ranges.symbol(name, inner, 0.0, most[points] - 1, attained=True)
        return inner, number, lower.at(inner) + ranges.scale(number, np.asarray(step))
    number = ranges.symbol(f"number of {name}", inner, 0.0, most[points] - 1)
    bounds = lower.at(inner).lower(), upper.at(inner).upper() - 1
    return inner, number, ranges.symbol(name, inner, *bounds, below=upper.at(inner) - ranges.constant(1))
