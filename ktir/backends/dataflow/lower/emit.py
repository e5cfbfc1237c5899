"""From plans to the ``dfp`` program: one body per unit, made of the plan's items that concern the unit.

Numbers that differ from core to core become tables, numbers that vary in loops become ``affine.apply``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ktir.backends.dataflow.lower.plan import (
    Action,
    Block,
    Chain,
    Copy,
    Drain,
    Gather,
    Handshake,
    LaunchPlan,
    Loop,
    Mask,
    Pe,
    Receive,
    Send,
    SfuMap,
    SfuReduce,
    Step,
    Storage,
    Stream,
    Tile,
    View,
)
from ktir.backends.dataflow.lower.values import Atom, CoreValue, LoopVariable, PerCore, Quotient
from ktir.dialect import dfp
from ktir.maths.affine import add, floordiv, mod, mul

INDEX = IndexType()


@dataclass(frozen=True)
class Resolved:
    """The buffer that stands for a storage or tile, and where in it that begins."""

    buffer: SSAValue
    delta: int = 0


@dataclass(eq=False)
class UnitWriter:
    """Writes the body of one unit on all cores. Constants and tables stand at its top, one of each."""

    unit: str
    corelet: int
    cores: int
    buffers: Mapping[Storage | Tile, Resolved]
    queues: Callable[[str], SSAValue]
    block: IrBlock = field(init=False)
    top: list[Operation] = field(default_factory=list[Operation])
    constants: dict[bytes, SSAValue] = field(default_factory=dict[bytes, SSAValue])
    variables: dict[LoopVariable, SSAValue] = field(default_factory=dict[LoopVariable, SSAValue])

    def __post_init__(self) -> None:
        self.block = IrBlock(arg_types=[INDEX])
        self.block.args[0].name_hint = "core"

    def region(self) -> Region:
        """The finished body."""
        first = self.block.first_op
        if first is None:
            self.block.add_ops(self.top)
        else:
            self.block.insert_ops_before(self.top, first)
        return Region(self.block)

    def barrier(self, launch: int, location: Operation | None) -> None:
        """Starts a launch."""
        self.block.add_op(_placed(dfp.BarrierOp(launch), location))

    def launch(self, plan: LaunchPlan) -> None:
        """Appends what the unit does in a launch."""
        everyone = np.ones(self.cores, dtype=np.bool_)
        for op in self._items(plan.body, everyone):
            self.block.add_op(op)

    # -------------------------------------------------------------------------------------------------------- structure

    def _items(self, block: Block, active: Mask) -> list[Operation]:
        result: list[Operation] = []
        for item in block.items:
            if isinstance(item, Loop):
                result += self._loop(item, active)
            elif concerns(item, self.unit, self.corelet):
                result += self._handshake(item) if isinstance(item, Handshake) else self._step(item, active)
        return result

    def _loop(self, loop: Loop, active: Mask) -> list[Operation]:
        body = IrBlock(arg_types=[INDEX])
        body.args[0].name_hint = loop.variable.name
        self.variables[loop.variable] = body.args[0]
        inside = self._items(loop.body, active & (loop.variable.trips > 0))
        if not inside:
            return []
        body.add_ops(inside)
        made = dfp.ForOp(self._number(np.where(active, loop.variable.trips, 0)), Region(body))
        made.location = inside[0].location
        return [made]

    def _handshake(self, item: Handshake) -> list[Operation]:
        buffer = self.buffers[item.tile].buffer
        kind = {"reserve": dfp.ReserveOp, "commit": dfp.CommitOp, "acquire": dfp.AcquireOp, "release": dfp.ReleaseOp}
        return [_placed(kind[item.action](buffer), item.tile.origin)]

    def _step(self, step: Step, active: Mask) -> list[Operation]:
        made: list[Operation] = []
        action = self._action(step.action, active, made)
        return [*made, *(() if action is None else (_placed(action, step.origin),))]

    # ---------------------------------------------------------------------------------------------------------- numbers

    def _number(self, values: PerCore) -> SSAValue:
        """A constant, or a table where cores differ."""
        key = values.tobytes()
        if key not in self.constants:
            made = (
                arith.ConstantOp.from_int_and_width(int(values[0]), INDEX)
                if (values == values[0]).all()
                else dfp.TableOp(self.block.args[0], [int(value) for value in values])
            )
            self.top.append(made)
            self.constants[key] = made.results[0]
        return self.constants[key]

    def value(self, value: CoreValue, active: Mask, made: list[Operation]) -> SSAValue:
        """``value`` on the cores that are ``active``; what it takes to compute it goes to ``made``."""
        base = _shared(value.constant, active)
        if value.is_constant:
            return self._number(base)
        dims: list[SSAValue] = []
        expression: AffineExpr = AffineConstantExpr(0)
        for atom, factors in value.terms.items():
            factor = _shared(factors, active)
            operand = self._atom(atom, active, made)
            if (factor == factor[0]).all():
                term = mul(AffineDimExpr(len(dims)), AffineConstantExpr(int(factor[0])))
                dims.append(operand)
            else:
                product = arith.MuliOp(operand, self._number(factor))
                made.append(product)
                term = AffineDimExpr(len(dims))
                dims.append(product.result)
            expression = add(expression, term)
        if (base == base[0]).all():
            expression = add(expression, AffineConstantExpr(int(base[0])))
        else:
            expression = add(expression, AffineDimExpr(len(dims)))
            dims.append(self._number(base))
        applied = affine.ApplyOp(dims, AffineMapAttr(AffineMap(len(dims), 0, (expression,))))
        made.append(applied)
        return applied.result

    def _atom(self, atom: Atom, active: Mask, made: list[Operation]) -> SSAValue:
        if isinstance(atom, LoopVariable):
            return self.variables[atom]
        dividend = self.value(atom.dividend, active, made)
        divide = floordiv if isinstance(atom, Quotient) else mod
        result = divide(AffineDimExpr(0), AffineConstantExpr(atom.divisor))
        applied = affine.ApplyOp([dividend], AffineMapAttr(AffineMap(1, 0, (result,))))
        made.append(applied)
        return applied.result

    def _at(self, view: View, active: Mask, made: list[Operation]) -> tuple[SSAValue, SSAValue]:
        """Buffer and byte offset of the first element of ``view``."""
        place = view.place
        resolved = self.buffers[place if isinstance(place, Storage) else place.tile]
        return resolved.buffer, self.value(view.offset + resolved.delta, active, made)

    # ---------------------------------------------------------------------------------------------------------- actions

    def _action(self, action: Action, active: Mask, made: list[Operation]) -> Operation | None:
        match action:
            case Copy(source, target):
                return dfp.CopyOp(
                    *self._at(source, active, made),
                    *self._at(target, active, made),
                    counts=_counts(source),
                    src_strides=_strides(source),
                    dst_strides=_strides(target),
                    element=source.element,
                )
            case Gather():
                return self._gather(action, active, made)
            case Stream(source, queue):
                return dfp.StreamOp(
                    *self._at(source, active, made),
                    self.queues(queue),
                    counts=_counts(source),
                    strides=_strides(source),
                    element=source.element,
                )
            case Drain(queue, target):
                return dfp.DrainOp(
                    self.queues(queue),
                    *self._at(target, active, made),
                    counts=_counts(target),
                    strides=_strides(target),
                    element=target.element,
                )
            case SfuMap(inputs, output, shape, body):
                return dfp.SfuMapOp([self.queues(q) for q in inputs], self.queues(output), shape or (1,), body())
            case SfuReduce():
                return dfp.SfuReduceOp(
                    self.queues(action.input),
                    self.queues(action.output),
                    outer=action.outer,
                    length=action.length,
                    inner=action.inner,
                    body=action.body(),
                    initial=self.queues(action.initial) if action.initial is not None else None,
                )
            case Pe():
                return self._pe(action)
            case Chain(source, target, previous, following):
                return dfp.ChainOp(
                    *self._at(source, active, made),
                    *self._at(target, active, made),
                    self.value(previous, active, made),
                    self.value(following, active, made),
                    counts=_counts(source),
                    src_strides=_strides(source),
                    dst_strides=_strides(target),
                    element=source.element,
                )
            case Send():
                return self._send(action, active, made)
            case Receive(target, origin):
                return dfp.ReceiveOp(
                    *self._at(target, active, made),
                    self.value(origin, active, made),
                    counts=_counts(target),
                    strides=_strides(target),
                    element=target.element,
                )

    def _send(self, action: Send, active: Mask, made: list[Operation]) -> Operation:
        source = action.source
        place = self._at(source, active, made)
        to = [self.value(each, active, made) for each in action.destinations]
        counts, strides = _counts(source), _strides(source)
        if len(to) == 1:
            return dfp.SendOp(*place, to[0], counts=counts, strides=strides, element=source.element)
        return dfp.MulticastOp(*place, to, counts=counts, strides=strides, element=source.element)

    def _gather(self, action: Gather, active: Mask, made: list[Operation]) -> Operation:
        count = action.index.count
        table, lines = action.source, action.target
        row_lines = lines.strides[len(lines.strides) - len(table.shape) :]
        strides = (table.strides or (0,), row_lines or (0,))
        ends = (self._at(table, active, made), self._at(lines, active, made))
        kind = dfp.ScatterOp if action.scatters else dfp.GatherOp
        if action.scatters:
            strides, ends = strides[::-1], ends[::-1]
        return kind(
            *ends[0],
            *self._at(action.index, active, made),
            *ends[1],
            count=count,
            index_element=action.index.element,
            row_stride=action.row_stride,
            line_stride=action.line_stride,
            row_counts=table.shape or (1,),
            row_src_strides=strides[0],
            row_dst_strides=strides[1],
            element=table.element,
        )

    def _pe(self, action: Pe) -> Operation:
        match action.kind, action.queue, action.element:
            case "clear", _, _:
                return dfp.PeClearOp(rows=action.rows, n=action.n)
            case "load", str(queue), element if element is not None:
                return dfp.PeLoadOp(self.queues(queue), k=action.k, n=action.n, element=element)
            case "mac", str(queue), element if element is not None:
                return dfp.PeMacOp(self.queues(queue), rows=action.rows, k=action.k, n=action.n, element=element)
            case "preload", str(queue), element if element is not None:
                return dfp.PePreloadOp(self.queues(queue), rows=action.rows, n=action.n, element=element)
            case _, str(queue), element if element is not None:
                return dfp.PeEmitOp(self.queues(queue), rows=action.rows, n=action.n, element=element)
            case _:
                raise AssertionError("a step of the matrix unit without queue")


def concerns(item: Step | Handshake, unit: str, corelet: int) -> bool:
    """Whether ``unit`` of ``corelet`` has to do with ``item``."""
    if item.unit != unit:
        return False
    return corelet in item.corelets if isinstance(item, Handshake) else corelet == item.corelet


def _shared(values: PerCore, active: Mask) -> PerCore:
    """The values with those of cores that are not active replaced by the first active one's."""
    if not active.any():
        return np.zeros_like(values)
    return np.where(active, values, values[int(np.argmax(active))])


def _counts(view: View) -> Sequence[int]:
    return view.shape or (1,)


def _strides(view: View) -> Sequence[int]:
    return view.strides or (0,)


def _placed(op: Operation, origin: Operation | None) -> Operation:
    if origin is not None:
        op.location = origin.location
    return op
