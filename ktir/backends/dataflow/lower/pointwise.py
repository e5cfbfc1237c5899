"""Pointwise operations: ``linalg`` over parallel dimensions, ``arith`` and ``math`` on tensors and data scalars.

Each becomes pending work: a scalar body and the views it streams. A chain whose links have one reader becomes one
vector step. Constants go into the body; broadcasts and transposes are strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IndexType, i64
from xdsl.dialects.linalg.ops import IndexOp, LinalgStructuredOperation, YieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from ktir.backends.dataflow.lower.context import Lowering, refuse, shape_and_element
from ktir.backends.dataflow.lower.moves import MAX_INPUTS, constant_body
from ktir.backends.dataflow.lower.plan import ScalarBody, View
from ktir.backends.dataflow.lower.tensors import Pending, Splat, Tensor, Undefined
from ktir.backends.dataflow.lower.values import CoreValue
from ktir.dialect import dfp

__all__ = ["Streams", "iteration_space", "lower_elementwise", "lower_parallel", "operand_view"]


@dataclass(eq=False)
class Streams:
    """Collects what a scalar body reads, over an iteration space of ``shape``.

    A *slot* stands for one scalar the body uses: a stream, a constant, or the result of work fused into the body.
    """

    lowering: Lowering
    op: Operation
    shape: tuple[int, ...]
    inputs: list[View] = field(default_factory=list[View])
    slots: list[Slot] = field(default_factory=list["Slot"])
    reads_index: bool = False

    def add(self, tensor: Tensor, view_of: ViewOf) -> None:
        """The next scalar of the body comes from ``tensor``, seen through ``view_of`` as a tensor of ``shape``."""
        if isinstance(tensor, Splat | Undefined):
            value = tensor.value if isinstance(tensor, Splat) else None
            self.slots.append(Slot((), constant_body(value, tensor.element)))
            return
        if isinstance(tensor, Pending) and self._can_fuse(tensor, view_of):
            positions = tuple(self._stream(view) for view in tensor.inputs)
            self.slots.append(Slot(positions, tensor.body))
            self.reads_index |= tensor.reads_index
            return
        view = tensor if isinstance(tensor, View) else self.lowering.stored(tensor)
        self.slots.append(Slot((self._stream(view_of(view)),), lambda args: ([], args[0])))

    def _can_fuse(self, pending: Pending, view_of: ViewOf) -> bool:
        return (
            pending.shape == self.shape
            and view_of.is_identity
            and len(self.inputs) + len(pending.inputs) < MAX_INPUTS
            and not pending.reads_index
        )

    def _stream(self, view: View) -> int:
        for number, known in enumerate(self.inputs):
            if known.place is view.place and known.strides == view.strides and known.offset is view.offset:
                return number
        self.inputs.append(view)
        return len(self.inputs) - 1

    def pending(self, element: Attribute, body: ScalarBody, reads_index: bool) -> Pending:
        """The work of ``body``, whose arguments are the scalars in the order in which they were added."""
        slots = tuple(self.slots)

        def build(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
            operations: list[Operation] = []
            scalars: list[SSAValue] = []
            for slot in slots:
                made, result = slot.body([args[position] for position in slot.inputs])
                operations += made
                scalars.append(result)
            made, result = body(scalars)
            return [*operations, *made], result

        return Pending(self.shape, element, tuple(self.inputs), build, reads_index or self.reads_index)


@dataclass(frozen=True)
class Slot:
    """A scalar of a body: computed by ``body`` from the streams ``inputs``."""

    inputs: tuple[int, ...]
    body: ScalarBody


@dataclass(frozen=True)
class ViewOf:
    """How an operand looks from the iteration space: per operand dimension, which dimension walks it."""

    lowering: Lowering
    op: Operation
    map: AffineMap
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """Whether each dimension of the space walks the same dimension of the operand."""
        walked = [r.position if isinstance(r, AffineDimExpr) else None for r in self.map.results]
        return walked == list(self.order)

    def __call__(self, view: View) -> View:
        return operand_view(self.op, view, self.map, self.shape, self.order)


def operand_view(op: Operation, view: View, map: AffineMap, shape: Sequence[int], order: Sequence[int]) -> View:
    """``view`` as a tensor over the loop dimensions ``order``; dimensions it lacks repeat its elements."""
    strides = [0] * map.num_dims
    moved = view
    for expression, stride in zip(map.results, view.strides, strict=True):
        match expression:
            case AffineDimExpr():
                strides[expression.position] += stride
            case AffineConstantExpr():
                moved = moved.moved(expression.value * stride)
            case _:
                refuse(op, f"the indexing map {map} is no projection", "materialise the window as a tensor first")
    return moved.shaped([shape[dim] for dim in order], [strides[dim] for dim in order])


def iteration_space(op: LinalgStructuredOperation) -> tuple[tuple[int, ...], list[AffineMap]]:
    """Extents of the loops, and the indexing maps of inputs and outputs."""
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    extents = [1] * maps[0].num_dims
    for operand, map in zip([*op.inputs, *op.outputs], maps, strict=True):
        shape, _ = shape_and_element(operand.type, op)
        for expression, extent in zip(map.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = extent
    return tuple(extents), maps


def lower_parallel(lowering: Lowering, op: LinalgStructuredOperation) -> None:
    """A structured operation without reductions. The space is walked in the order of the first output."""
    extents, maps = iteration_space(op)
    inputs, outputs = list(op.inputs), list(op.outputs)
    out_map = maps[len(inputs)]
    order = tuple(r.position for r in out_map.results if isinstance(r, AffineDimExpr))
    if sorted(order) != list(range(len(extents))) or any(map != out_map for map in maps[len(inputs) :]):
        refuse(op, "its output does not walk each loop once")
    block = op.body.block
    for number, result in enumerate(op.results):
        streams = Streams(lowering, op, tuple(extents[dim] for dim in order))
        arguments = [
            (argument, operand, map)
            for argument, operand, map in zip(block.args, [*inputs, *outputs], maps, strict=True)
            if argument.uses
        ]
        for _, operand, map in arguments:
            streams.add(lowering.tensor(operand, op), ViewOf(lowering, op, map, extents, order))
        body = _body_of(lowering, op, block, [argument for argument, _, _ in arguments], number, order, streams)
        _, element = shape_and_element(result.type, op)
        lowering.define(result, streams.pending(element, body, _reads_index(block)))


def _reads_index(block: Block) -> bool:
    return any(isinstance(inner, IndexOp) for inner in block.ops)


def _body_of(
    lowering: Lowering,
    op: LinalgStructuredOperation,
    block: Block,
    arguments: Sequence[BlockArgument],
    yielded: int,
    order: Sequence[int],
    streams: Streams,
) -> ScalarBody:
    """The body as a function of its used arguments and of the outer scalars, which are added to ``streams``."""
    outer = [
        operand
        for inner in block.ops
        for operand in inner.operands
        if operand.owner is not block and operand.owner not in set(block.ops)
    ]
    outer = list(dict.fromkeys(outer))
    nowhere = AffineMap(len(streams.shape), 0, ())
    for value in outer:
        through = ViewOf(lowering, op, nowhere, streams.shape, tuple(range(len(streams.shape))))
        streams.add(lowering.tensor(value, op), through)
    keys = [*arguments, *outer]
    position_of = {dim: position for position, dim in enumerate(order)}

    def build(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        mapper: dict[SSAValue, SSAValue] = dict(zip(keys, args, strict=True))
        operations: list[Operation] = []
        for inner in block.ops:
            if isinstance(inner, YieldOp | linalg.ops.YieldOp):
                return operations, mapper.get(inner.operands[yielded], inner.operands[yielded])
            made = (
                dfp.IndexOp(position_of[inner.dim.value.data])
                if isinstance(inner, IndexOp)
                else inner.clone(value_mapper=mapper)
            )
            mapper.update(zip(inner.results, made.results, strict=True))
            operations.append(made)
        refuse(op, "its body yields nothing")

    return build


def lower_elementwise(lowering: Lowering, op: Operation) -> None:
    """``arith`` and ``math`` on whole tensors, or on scalars that depend on data."""
    shape, element = shape_and_element(op.results[0].type, op)
    streams = Streams(lowering, op, shape)
    for operand in op.operands:
        tensor = lowering.tensor(operand, op)
        rank = len(tensor.shape)
        dims = tuple(AffineDimExpr(position) for position in range(rank))
        map = AffineMap(len(shape), 0, dims if rank == len(shape) else ())
        streams.add(tensor, ViewOf(lowering, op, map, shape, tuple(range(len(shape)))))

    def build(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        made = type(op).create(
            operands=args, result_types=[element], properties=dict(op.properties), attributes=dict(op.attributes)
        )
        return [made], made.results[0]

    lowering.define(op.results[0], streams.pending(element, build, False))


def positions(lowering: Lowering, extent: int) -> View:
    """A fresh tile with the numbers from zero to ``extent``."""

    def body(_: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        at = dfp.IndexOp(0)
        number = arith.IndexCastOp(at.result, i64)
        return [at, number], number.result

    return lowering.dense(Pending((extent,), i64, (), body, True))


def uniform(value: CoreValue) -> int | None:
    """The number that a core value is everywhere, or None."""
    return value.uniform


INDEX = IndexType()
