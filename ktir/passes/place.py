"""Decide where tensors between kernels live: all of them in device memory.

Every kernel reads its operands from there and writes its results to it, so kernels depend on each other through
launches alone. Places that a kernel already names are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from ktir.dialect.ktg import Place, PlaceAttr
from ktir.passes.graph import graph_functions, kernels_of


@dataclass(frozen=True)
class PlacePass(ModulePass):
    """``ktir-place``"""

    name = "ktir-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = PlaceAttr(Place.DDR)
        for graph in graph_functions(op):
            for kernel in kernels_of(graph):
                if kernel.operand_places is None:
                    kernel.operand_places = ArrayAttr([device] * len(kernel.operands))
                if kernel.result_places is None:
                    kernel.result_places = ArrayAttr([device] * len(kernel.results))
