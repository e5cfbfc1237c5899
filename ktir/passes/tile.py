"""Decide how many iterations of each dimension a core works on at a time, by the rules of :mod:`.simple_plan`.

Tiles divide the granules of the core split, so that work is dealt out in whole tiles. Kernels that already carry tiles
are left alone. A kernel whose smallest tile does not fit is an error (:class:`CannotPlan`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir.dialect.ktg import DimensionTile, KernelOp, TilesAttr
from ktir.dialect.locations import location_of
from ktir.errors import CannotPlan
from ktir.machine import Machine
from ktir.passes.fingerprint import Memo
from ktir.passes.graph import graph_functions, kernels_of, machine_of, space_of
from ktir.passes.simple_plan import choose_tiles


@dataclass(frozen=True)
class TilePass(ModulePass):
    """``ktir-tile``"""

    name = "ktir-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine, memo = machine_of(ctx), Memo()
        for graph in graph_functions(op):
            for kernel in kernels_of(graph):
                if kernel.tiles is None:
                    kernel.tiles = memo.get("tiles", kernel, lambda each: _tiles(each, machine))


def _tiles(kernel: KernelOp, machine: Machine) -> TilesAttr:
    space = space_of(kernel, machine)
    cuts = () if kernel.core_split is None else kernel.core_split.data
    try:
        tiles = choose_tiles(space, {cut.dimension: cut.granule for cut in cuts if cut.cuts > 1}, machine)
    except CannotPlan as fault:
        raise CannotPlan(fault.message, location=location_of(kernel), remedy=fault.remedy) from fault
    return TilesAttr(tuple(DimensionTile(name, tile) for name, tile in tiles.items() if tile != space[name].extent))
