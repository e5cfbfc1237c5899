"""Decide which core works on which slice of a kernel's parallel dimensions, by the rules of :mod:`.simple_plan`.

Kernels that already carry a core split are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir.dialect.ktg import CoreSplitAttr, DimensionCut, KernelOp
from ktir.machine import Machine
from ktir.passes.fingerprint import Memo
from ktir.passes.graph import graph_functions, kernels_of, machine_of, space_of
from ktir.passes.simple_plan import choose_blocks


@dataclass(frozen=True)
class SplitCoresPass(ModulePass):
    """``ktir-split-cores``"""

    name = "ktir-split-cores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine, memo = machine_of(ctx), Memo()
        for graph in graph_functions(op):
            for kernel in kernels_of(graph):
                if kernel.core_split is None:
                    kernel.core_split = memo.get("split", kernel, lambda each: _split(each, machine))


def _split(kernel: KernelOp, machine: Machine) -> CoreSplitAttr:
    blocks = choose_blocks(space_of(kernel, machine), machine)
    return CoreSplitAttr(tuple(DimensionCut(each.name, each.cuts, each.length) for each in blocks if each.cuts > 1))
