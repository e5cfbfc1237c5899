"""Which dimensions of the values of a kernel's body are walked together.

Structured operations tie dimensions of their operands and results by indexing maps, views by what they regroup, folds
by their regions. A dimension is a product of :mod:`factors <ktir.analysis.factors>`; what is tied has the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from ktir.analysis.factors import Factor, Factors
from ktir.analysis.tensor_views import Unfit, is_free, is_splat, reassociation, shape_of, sliced_dims, view_source
from ktir.dialect.ktg import NOT_FOLDED, FoldOp, GatherOp, KernelOp, YieldOp

Dim = tuple[Factor, ...]
Key = SSAValue | tuple[Operation, int]


@dataclass
class Ties:
    """The factors of every dimension, while the body is read."""

    factors: Factors = field(default_factory=Factors)
    values: dict[Key, list[Dim]] = field(default_factory=dict["Key", "list[Dim]"])
    loops: dict[Operation, list[Dim]] = field(default_factory=dict[Operation, "list[Dim]"])
    blocks: dict[Factor, Factor] = field(default_factory=dict[Factor, Factor])
    """The factor of a fold's blocks, and the folded dimension it runs through."""
    indexed: list[Dim] = field(default_factory=list["Dim"])
    tables: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])

    def value(self, value: SSAValue) -> list[Dim]:
        if value not in self.values:
            self.values[value] = [self.factors.dimension(size) for size in shape_of(value)]
        return self.values[value]

    def operand(self, op: Operation, position: int) -> list[Dim]:
        """The dimensions of an operand; a free one is made for this use alone."""
        value = op.operands[position]
        if not is_free(value):
            return self.value(value)
        key = (op, position)
        if key not in self.values:
            self.values[key] = [self.factors.dimension(size) for size in shape_of(value)]
        return self.values[key]

    def tie(self, left: Sequence[Dim], right: Sequence[Dim]) -> None:
        for one, other in zip(left, right, strict=True):
            self.factors.unify(one, other)

    def read(self, region: Region) -> None:
        for op in region.block.ops:
            self._read_op(op)

    def _read_op(self, op: Operation) -> None:
        match op:
            case LinalgStructuredOperation() if isinstance(op, linalg.FillOp) and is_free(op.results[0]):
                pass
            case linalg.TransposeOp():
                order = op.permutation.get_values()
                source = self.operand(op, 0)
                self.tie(self.value(op.results[0]), [source[dim] for dim in order])
            case LinalgStructuredOperation():
                self._read_structured(op)
            case linalg.BroadcastOp():
                added = op.dimensions.get_values()
                result = self.value(op.results[0])
                self.tie(self.operand(op, 0), [each for dim, each in enumerate(result) if dim not in added])
            case tensor.CollapseShapeOp():
                self._read_reshape(op, self.operand(op, 0), self.value(op.result))
            case tensor.ExpandShapeOp():
                self._read_reshape(op, self.value(op.result), self.operand(op, 0))
            case tensor.ExtractSliceOp():
                self._read_slice(op)
            case FoldOp():
                self._read_fold(op)
            case GatherOp():
                result, table = self.value(op.result), self.value(op.table)
                self.tie(result, [*self.value(op.indices), table[1]])
                self.tables[op.table] = None
            case YieldOp() | tensor.EmptyOp() | tensor.SplatOp():
                pass
            case arith.ConstantOp() if not isinstance(op.result.type, TensorType) or is_splat(op):
                pass
            case _:
                raise Unfit(f"{op.name} has no place in a kernel")

    def _read_structured(self, op: LinalgStructuredOperation) -> None:
        loops = [self.factors.dimension(extent) for extent in loop_extents(op)]
        self.loops[op] = loops
        for position, attribute in enumerate(op.get_indexing_maps()):
            for dims, expression in zip(self.operand(op, position), attribute.data.results, strict=True):
                match expression:
                    case AffineDimExpr(position=loop):
                        self.factors.unify(dims, loops[loop])
                    case AffineConstantExpr(value=0) if not dims:
                        pass
                    case _:
                        raise Unfit(f"the indexing map {attribute.data} selects more than dimensions")
        for position, result in enumerate(op.results):
            self.tie(self.value(result), self.operand(op, len(op.inputs) + position))
        for inner in op.body.block.ops:
            match inner:
                case linalg.IndexOp():
                    self.indexed.append(loops[int(inner.dim.value.data)])
                case _:
                    pass

    def _read_reshape(
        self,
        op: tensor.CollapseShapeOp | tensor.ExpandShapeOp,
        long: Sequence[Dim],
        short: Sequence[Dim],
    ) -> None:
        for group, dim in zip(reassociation(op), short, strict=False):
            self.factors.unify([factor for member in group for factor in long[member]], dim)

    def _read_slice(self, op: tensor.ExtractSliceOp) -> None:
        shown = op.source
        while (whole := view_source(shown)) is not None:
            shown = whole
        if not isinstance(shown, BlockArgument) or not isinstance(shown.block.parent_op(), KernelOp):
            raise Unfit("a slice of a value that the kernel computes")
        source, result = self.operand(op, 0), self.value(op.result)
        for position, dim in enumerate(sliced_dims(op)):
            if shape_of(op.source)[dim] == shape_of(op.result)[position]:
                self.factors.unify(source[dim], result[position])

    def _read_fold(self, op: FoldOp) -> None:
        folded = self.factors.dimension(op.extent.value.data)
        block = self.factors.dimension(op.tile.value.data)
        if block != folded and folded:
            self.blocks.update(dict.fromkeys(block, folded[0]))
        arguments = op.step.block.args
        for position, dim in enumerate(op.folded):
            operand = self.operand(op, position)
            if dim != NOT_FOLDED:
                self.factors.unify(operand[dim], folded)
            self.tie(self.value(arguments[position]), [block if at == dim else each for at, each in enumerate(operand)])
        for region in (op.init, op.step, op.finish):
            self.read(region)
        self._tie_yield(op.init, arguments[len(op.folded) :])
        self._tie_yield(op.step, arguments[len(op.folded) :])
        self._tie_yield(op.init, op.finish.block.args)
        self._tie_yield(op.finish, op.results)

    def _tie_yield(self, region: Region, values: Sequence[SSAValue]) -> None:
        last = cast("YieldOp", region.block.last_op)
        for position, value in enumerate(values):
            self.tie(self.operand(last, position), self.value(value))

    def present(self, dim: Iterable[Factor]) -> Dim:
        """The final factors of a dimension, blocks standing for what they run through."""
        return tuple(
            part for factor in self.factors.resolve(dim) for part in self.factors.resolve([self._folded(factor)])
        )

    def _folded(self, factor: Factor) -> Factor:
        for block, folded in self.blocks.items():
            if self.factors.resolve([block]) == (factor,):
                return folded
        return factor

    def check_blocks(self) -> None:
        for block, folded in self.blocks.items():
            if len(self.factors.resolve([block])) != 1 or len(self.factors.resolve([folded])) != 1:
                raise Unfit("the folded dimension is cut up")


def loop_extents(op: LinalgStructuredOperation) -> tuple[int, ...]:
    """Iterations of each loop of a structured operation."""
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    extents: dict[int, int] = {}
    for value, map in zip(op.operands, maps, strict=True):
        for size, expression in zip(shape_of(value), map.results, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = size
    if len(extents) != maps[0].num_dims:
        raise Unfit(f"{op.name} has a loop that no operand gives an extent")
    return tuple(extents[loop] for loop in range(maps[0].num_dims))
