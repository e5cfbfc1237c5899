"""The step of a ``ktg.fold`` for a block of another size: the ragged last block, or another tile.

The body of a step is written for blocks of ``tile`` positions. Which dimensions of which values inside it count those
positions follows from the operations: two dimensions that one operation iterates together are of one *class*, and the
classes of the folded dimensions of the block arguments are the ones that change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import Rewriter
from xdsl.utils.disjoint_set import DisjointSet

from ktir.dialect.ktg import NOT_FOLDED, FoldOp, YieldOp
from ktir.errors import NotLowerable

Dimension = tuple[SSAValue | Operation, int]
"""A dimension of a tensor value, or a loop of a structured operation."""


def step_over(fold: FoldOp, positions: int) -> Region:
    """A copy of the step of ``fold`` whose blocks hold ``positions`` positions of the fold dimension.

    Raises :class:`NotLowerable` where the body does not work on any number of positions, e.g. because it cuts the
    folded dimension up.
    """
    region = fold.step.clone()
    if positions == fold.tile.value.data:
        return region
    classes = _classes(region)
    folded = {
        classes.find((argument, dimension))
        for argument, dimension in zip(region.block.args, fold.folded, strict=False)
        if dimension != NOT_FOLDED
    }
    changes = {
        value: dimensions
        for value in _tensors(region)
        if (dimensions := [d for d in range(_rank(value)) if classes.find((value, d)) in folded])
    }
    for op in region.block.ops:
        _require_any_size(op, changes)
    for value, dimensions in changes.items():
        _resize(value, positions, dimensions)
    return region


def _tensors(region: Region) -> Iterator[SSAValue]:
    """The tensor values that the block of ``region`` defines."""
    yield from region.block.args
    for op in region.block.ops:
        yield from (result for result in op.results if isinstance(result.type, TensorType))


def _type(value: SSAValue) -> TensorType[Attribute]:
    return cast("TensorType[Attribute]", value.type)


def _rank(value: SSAValue) -> int:
    return _type(value).get_num_dims()


def _classes(region: Region) -> DisjointSet[Dimension]:
    ties = [tie for op in region.block.ops for tie in _ties(op)]
    dimensions = {(value, d) for value in _tensors(region) for d in range(_rank(value))}
    dimensions |= {dimension for tie in ties for dimension in tie}
    classes: DisjointSet[Dimension] = DisjointSet(list(dimensions))
    for left, right in ties:
        classes.union(left, right)
    return classes


def _ties(op: Operation) -> Iterator[tuple[Dimension, Dimension]]:
    """Pairs of dimensions that have the same extent because ``op`` works on them together."""
    match op:
        case LinalgStructuredOperation():
            yield from _structured_ties(op)
        case linalg.BroadcastOp():
            added = op.dimensions.get_values()
            kept = [d for d in range(_rank(op.init)) if d not in added]
            yield from (((op.input, source), (op.init, target)) for source, target in enumerate(kept))
            yield from (((op.init, d), (op.result[0], d)) for d in range(_rank(op.init)))
        case tensor.CollapseShapeOp():
            yield from _reshape_ties(op.src, op.result, op.reassociation)
        case tensor.ExpandShapeOp():
            yield from _reshape_ties(op.result, op.src, op.reassociation)
        case _:
            yield from _elementwise_ties(op)


def _structured_ties(op: LinalgStructuredOperation) -> Iterator[tuple[Dimension, Dimension]]:
    for operand, indexing in zip(op.operands, op.get_indexing_maps(), strict=True):
        for dimension, expression in enumerate(indexing.data.results):
            if isinstance(expression, AffineDimExpr):
                yield (operand, dimension), (op, expression.position)
    for output, result in zip(op.operands[-len(op.results) :], op.results, strict=True):
        yield from (((output, d), (result, d)) for d in range(_rank(result)))


def _reshape_ties(long: SSAValue, short: SSAValue, groups: object) -> Iterator[tuple[Dimension, Dimension]]:
    """A dimension that is only joined with dimensions of one element keeps its meaning."""
    for target, group in enumerate(cast("list[list[IntegerAttr]]", groups)):
        members = [entry.value.data for entry in group]
        wide = [d for d in members if _type(long).get_shape()[d] != 1]
        if len(wide) <= 1:
            yield (long, (wide or members)[0]), (short, target)


def _elementwise_ties(op: Operation) -> Iterator[tuple[Dimension, Dimension]]:
    tensors = [value for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]
    if op.results and len({_type(value).get_shape() for value in tensors}) == 1:
        yield from (((tensors[0], d), (value, d)) for value in tensors[1:] for d in range(_rank(value)))


def _require_any_size(op: Operation, changes: Mapping[SSAValue, list[int]]) -> None:
    """Refuse ``op`` if it sees a folded dimension and would not work on another number of positions."""
    changing = [value for value in op.operands if value in changes]
    made = [value for value in op.results if value in changes]
    if not changing and (not made or isinstance(op, tensor.EmptyOp)):
        return
    elementwise = op.dialect_name() in ("arith", "math") and len(op.operands) > 0
    known = isinstance(op, LinalgStructuredOperation | linalg.BroadcastOp | YieldOp) or elementwise
    reshape = isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp) and bool(changing) == bool(made)
    if not known and not reshape:
        raise NotLowerable(
            f"the step of a ktg.fold uses {op.name} on the folded dimension, so it works on whole tiles only",
            remedy="choose a tile that divides the extent of the fold",
        )


def _resize(value: SSAValue, positions: int, dimensions: list[int]) -> None:
    shape = [*_type(value).get_shape()]
    for dimension in dimensions:
        shape[dimension] = positions
    if isinstance(value.owner, tensor.ExpandShapeOp):
        value.owner.static_output_shape = DenseArrayBase.from_list(i64, shape)
    Rewriter.replace_value_with_new_type(value, TensorType(_type(value).element_type, shape))
