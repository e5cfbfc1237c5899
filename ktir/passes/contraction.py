"""Contractions: recognised in the kernel's body, and emitted as a matrix product where the tiles are matrices.

Words. A contraction adds up products of two inputs in its output: ``rows`` are the dimensions of the first input that
the output has, ``columns`` those of the second, ``inner`` those that are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ktir.passes.emitter import Scope, TileValue
from ktir.passes.tensors import reshape, shape_of


def is_contraction(op: Operation) -> bool:
    """Whether ``op`` is a sum of products of two inputs, each possibly widened, over at least one loop."""
    if not isinstance(op, LinalgStructuredOperation) or (len(op.inputs), len(op.outputs)) != (2, 1):
        return False
    if all(kind.data is not IteratorType.REDUCTION for kind in op.get_iterator_types()):
        return False
    left, right, total = op.body.block.args
    last = op.body.block.last_op
    added = last.operands[0].owner if last is not None and len(last.operands) == 1 else None
    if not isinstance(added, arith.AddfOp | arith.AddiOp):
        return False
    others = [value for value in added.operands if value is not total]
    product = others[0].owner if len(others) == 1 else None
    if not isinstance(product, arith.MulfOp | arith.MuliOp):
        return False
    return {_source(value) for value in product.operands} == {left, right}


def _source(value: SSAValue) -> SSAValue:
    """What ``value`` is a wider form of."""
    while not isinstance(value, BlockArgument) and isinstance(value.owner, arith.ExtFOp | arith.ExtSIOp):
        value = value.owner.operands[0]
    return value


def emit_contraction(inputs: Sequence[TileValue], total: TileValue, scope: Scope) -> TileValue | None:
    """The contraction of two tiles, added to ``total``, as ``linalg.matmul``; None where it is no product of matrices
    as they lie."""
    left, right = inputs
    shared = set(left.names) & set(right.names) & set(total.names)
    if any(scope.length(name) != 1 for name in shared):
        return None
    result = [name for name in total.names if name not in shared]
    for first, second in ((left, right), (right, left)):
        rows = [name for name in result if name in first.names]
        columns = [name for name in result if name in second.names]
        inner = [name for name in first.names if name not in shared and name not in result]
        in_order = (
            [*rows, *columns] == result
            and [name for name in first.names if name not in shared] == [*rows, *inner]
            and [name for name in second.names if name not in shared] == [*inner, *columns]
        )
        if in_order and inner:
            return _matmul(first, second, total, (rows, inner, columns), scope)
    return None


def _matmul(
    first: TileValue,
    second: TileValue,
    total: TileValue,
    dims: tuple[Sequence[str], Sequence[str], Sequence[str]],
    scope: Scope,
) -> TileValue:
    rows, inner, columns = (prod(scope.shape(names)) for names in dims)
    left = reshape(first.tensor, (rows, inner), scope)
    right = reshape(second.tensor, (inner, columns), scope)
    accumulator = reshape(total.tensor, (rows, columns), scope)
    product = scope.emit(linalg.MatmulOp([left, right], [accumulator]))
    return TileValue(reshape(product, shape_of(total.tensor), scope), total.names, scope.depth)
