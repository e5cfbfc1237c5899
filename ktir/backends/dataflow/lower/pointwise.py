"""Pointwise operations: ``linalg`` over parallel dimensions, ``arith`` and ``math`` on tensors and data scalars.

Each becomes pending work: a scalar body and the views it streams. A chain whose links have one reader becomes one
vector step. Constants go into the body; broadcasts and transposes are strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import IndexOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from ktir.backends.dataflow.lower.context import Lowering, refuse, shape_and_element, widened
from ktir.backends.dataflow.lower.moves import MAX_INPUTS, constant_body
from ktir.backends.dataflow.lower.plan import ScalarBody, View
from ktir.backends.dataflow.lower.tensors import Pending, Splat, Tensor, Undefined
from ktir.backends.dataflow.lower.values import constant
from ktir.dialect import dfp
from ktir.dialect.overlay.linalg_regions import MapOp

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

    def add(self, tensor: Tensor, view_of: ViewOf) -> None:
        """The next scalar of the body comes from ``tensor``, seen through ``view_of`` as a tensor of ``shape``."""
        if isinstance(tensor, Splat | Undefined):
            value = tensor.value if isinstance(tensor, Splat) else None
            self.slots.append(Slot((), constant_body(value, tensor.element)))
            return
        if isinstance(tensor, Pending) and self._can_fuse(tensor, view_of):
            views = tensor.inputs if tensor.shape else [self._everywhere(view) for view in tensor.inputs]
            positions = tuple(self._stream(view) for view in views)
            self.slots.append(Slot(positions, tensor.body))
            return
        view = tensor if isinstance(tensor, View) else self.lowering.stored(tensor)
        self.slots.append(Slot((self._stream(view_of(view)),), lambda args: ([], args[0])))

    def _can_fuse(self, pending: Pending, view_of: ViewOf) -> bool:
        fits = len(self.inputs) + len(pending.inputs) < MAX_INPUTS and not pending.reads_index
        return fits and ((pending.shape == self.shape and view_of.is_identity) or not pending.shape)

    def _everywhere(self, scalar: View) -> View:
        return scalar.shaped(self.shape, (0,) * len(self.shape))

    def add_position(self, dim: int) -> None:
        """The next scalar of the body is the position along ``dim``, from a tile of numbers."""
        first = constant(0, self.lowering.cores)
        numbers = self.lowering.numbers(first, self.shape[dim], self.op)
        strides = [numbers.strides[0] if position == dim else 0 for position in range(len(self.shape))]
        position = self._stream(numbers.shaped(self.shape, strides))
        self.slots.append(Slot((position,), widened(INDEX)))

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

        return Pending(self.shape, element, tuple(self.inputs), build, reads_index)


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
    out_map = maps[len(op.inputs)]
    order = tuple(r.position for r in out_map.results if isinstance(r, AffineDimExpr))
    if sorted(order) != list(range(len(extents))) or any(map != out_map for map in maps[len(op.inputs) :]):
        refuse(op, "its output does not walk each loop once")
    for number, result in enumerate(op.results):
        _, element = shape_and_element(result.type, op)
        streams = Streams(lowering, op, tuple(extents[dim] for dim in order))
        operands = [*op.inputs, *op.outputs]
        lowering.define(result, _body_over(streams, op, op.body.block, operands, maps, extents, order, number, element))


def lower_map(lowering: Lowering, op: Operation) -> None:
    """``linalg.map``: its body on the elements at the same place of all inputs."""
    assert isinstance(op, MapOp)
    shape, element = shape_and_element(op.res[0].type, op)
    operands = [*op.inputs, op.init]
    maps = [AffineMap.identity(len(shape))] * len(operands)
    streams = Streams(lowering, op, shape)
    order = tuple(range(len(shape)))
    lowering.define(op.res[0], _body_over(streams, op, op.mapper.block, operands, maps, shape, order, 0, element))


def _body_over(
    streams: Streams,
    op: Operation,
    block: Block,
    operands: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    extents: tuple[int, ...],
    order: tuple[int, ...],
    yielded: int,
    element: Attribute,
) -> Pending:
    """The body ``block`` of ``op`` as pending work. Its arguments, the scalars it captures and, where it reads several
    streams, positions become scalars of the streams; a body with few streams asks for positions itself."""
    lowering = streams.lowering
    keys: list[SSAValue] = []
    for argument, operand, map in zip(block.args, operands, maps, strict=True):
        if argument.uses:
            streams.add(lowering.tensor(operand, op), ViewOf(lowering, op, map, extents, order))
            keys.append(argument)
    nowhere = ViewOf(lowering, op, AffineMap(len(extents), 0, ()), extents, order)
    for value in captured_by(block):
        streams.add(lowering.tensor(value, op), nowhere)
        keys.append(value)
    asked = [inner for inner in block.ops if isinstance(inner, IndexOp)]
    if len(streams.inputs) > 1:
        for inner in asked:
            streams.add_position(order.index(inner.dim.value.data))
            keys.append(inner.results[0])

    def build(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        mapper: dict[SSAValue, SSAValue] = dict(zip(keys, args, strict=True))
        operations: list[Operation] = []
        for inner in block.ops:
            if isinstance(inner, YieldOp):
                return operations, mapper.get(inner.operands[yielded], inner.operands[yielded])
            if all(result in mapper for result in inner.results):
                continue
            made = (
                dfp.IndexOp(order.index(inner.dim.value.data))
                if isinstance(inner, IndexOp)
                else inner.clone(value_mapper=mapper)
            )
            mapper.update(zip(inner.results, made.results, strict=True))
            operations.append(made)
        refuse(op, "its body yields nothing")

    return streams.pending(element, build, bool(asked) and len(streams.inputs) <= 1)


def captured_by(block: Block) -> list[SSAValue]:
    """Values from outside that the body uses, in order of first use."""
    inside = set(block.ops)
    operands = (operand for inner in block.ops for operand in inner.operands)
    return list(dict.fromkeys(o for o in operands if o.owner is not block and o.owner not in inside))


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


INDEX = IndexType()
