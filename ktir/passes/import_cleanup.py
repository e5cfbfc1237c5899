"""Tidy up a graph as it was imported, so that the passes behind see fewer forms of the same thing.

* A broadcast that a structured operation reads becomes part of its indexing map.
* Views that change nothing, and expansions of a collapse back to where it came from, vanish.
* Repeated transposes become one.
* Equal operations are shared, and what no result depends on is erased.

Operations inside ``ktg.fold`` and ``ktg.kernel`` are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, ModuleOp, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ktir.passes.graph import erase_unused, graph_functions
from ktir.passes.share import share_equal


class ReadThroughBroadcast(RewritePattern):
    """A generic operation reads what a broadcast repeats, with a map that leaves the repeated dimensions out."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /) -> None:
        maps = [attribute.data for attribute in op.indexing_maps]
        values: list[SSAValue] = list(op.operands)
        changed = False
        for position in range(len(op.inputs)):
            source = values[position].owner
            if isinstance(source, linalg.BroadcastOp) and _loops_have_extents(maps, position):
                maps[position] = _without(maps[position], source.dimensions.get_values())
                values[position] = source.input
                changed = True
        if changed:
            op.operands = values
            op.indexing_maps = ArrayAttr(AffineMapAttr(map) for map in maps)
            rewriter.notify_op_modified(op)


def _loops_have_extents(maps: Sequence[AffineMap], position: int) -> bool:
    """Whether the other operands still give every loop an extent."""
    others = {dim for at, map in enumerate(maps) if at != position for dim in map.used_dims()}
    return len(others) == maps[0].num_dims


def _without(map: AffineMap, dims: Sequence[int]) -> AffineMap:
    kept: tuple[AffineExpr, ...] = tuple(each for dim, each in enumerate(map.results) if dim not in dims)
    return AffineMap(map.num_dims, map.num_symbols, kept)


class DropIdleView(RewritePattern):
    """A reshape to the same type, a slice of everything, or an expansion of a collapse, is its source."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp | tensor.ExtractSliceOp):
            return
        source = op.operands[0]
        inner = source.owner
        if source.type == op.results[0].type and not _moves(op):
            rewriter.replace(op, [], [source])
        elif _undoes(op, inner):
            rewriter.replace(op, [], [cast("Operation", inner).operands[0]])


def _undoes(op: Operation, inner: Operation | Block) -> bool:
    """Whether ``op`` expands what ``inner`` collapsed, to the same shape."""
    pair = isinstance(op, tensor.ExpandShapeOp) and isinstance(inner, tensor.CollapseShapeOp)
    return pair and cast("Operation", inner).operands[0].type == op.results[0].type


def _moves(op: Operation) -> bool:
    """Whether a slice of full size begins elsewhere than at the start; such a slice would be out of bounds."""
    return isinstance(op, tensor.ExtractSliceOp) and any(op.static_offsets.get_values())


class MergeTransposes(RewritePattern):
    """A transpose of a transpose is one transpose, or nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.TransposeOp, rewriter: PatternRewriter, /) -> None:
        order = list(op.permutation.get_values())
        if order == sorted(order):
            rewriter.replace(op, [], [op.inputs[0]])
            return
        inner = op.inputs[0].owner
        if not isinstance(inner, linalg.TransposeOp):
            return
        first = inner.permutation.get_values()
        merged = DenseArrayBase.from_list(i64, [first[dim] for dim in order])
        rewriter.replace(op, linalg.TransposeOp(inner.inputs[0], op.outputs[0], merged, op.results[0].type))


@dataclass(frozen=True)
class ImportCleanupPass(ModulePass):
    """``ktir-import-cleanup``"""

    name = "ktir-import-cleanup"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = GreedyRewritePatternApplier([ReadThroughBroadcast(), DropIdleView(), MergeTransposes()])
        for graph in graph_functions(op):
            _rewrite(graph, patterns)
            share_equal(graph.body.block)
            erase_unused(graph)


def _rewrite(graph: func.FuncOp, patterns: RewritePattern) -> None:
    PatternRewriteWalker(_AtTop(graph, patterns)).rewrite_region(graph.body)


class _AtTop(RewritePattern):
    """Applies a pattern to operations of the graph itself."""

    def __init__(self, graph: func.FuncOp, pattern: RewritePattern) -> None:
        self.block, self.pattern = graph.body.block, pattern

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if op.parent is self.block:
            self.pattern.match_and_rewrite(op, rewriter)
