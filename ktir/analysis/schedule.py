"""The schedule of a kernel: its iteration space with the decisions that ``ktg.kernel`` carries.

A dimension that no decision names is not cut and is one tile. Tiles of a cut dimension are dealt out in granules of
whole tiles; the ragged last tile, if any, belongs to the last slice. A schedule that cannot be carried out (a tile that
is no box of the buffers it is read from, a cut through a dimension that is not parallel) is refused with
:class:`CannotPlan` at the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktir.analysis.iteration_space import IterationDim, IterationSpace
from ktir.dialect.ktg import KernelOp
from ktir.dialect.locations import location_of
from ktir.errors import CannotPlan, IllegalSplit
from ktir.maths.ownership import CoreSplit, DimensionSplit


@dataclass(frozen=True, slots=True)
class Schedule:
    """``tiles`` has an entry for every dimension, ``order`` names the parallel dimensions, outermost first."""

    space: IterationSpace
    tiles: Mapping[str, int]
    split: CoreSplit
    order: tuple[str, ...]

    @property
    def cores(self) -> int:
        """Cores that work on the kernel."""
        return self.split.cores

    def dropped(self) -> frozenset[str]:
        """Dimensions that tiles do not show, because they are one iteration long: parallel ones, other than the last
        two of a result."""
        shown = {name for store in self.space.stores for name in self.space.names(store.value)[-2:]}
        single = {dim.name for dim in self.space.of_kind("parallel") if self.tiles[dim.name] == 1}
        return frozenset(single - shown)


def schedule_of(kernel: KernelOp, space: IterationSpace) -> Schedule:
    """The schedule that ``kernel`` carries; raises :class:`CannotPlan` where it cannot be carried out."""
    tiles = {dim.name: dim.extent for dim in space.dims}
    if kernel.tiles is not None:
        for tile in kernel.tiles.data:
            tiles[_known(kernel, space, tile.dimension).name] = min(tile.extent, space[tile.dimension].extent)
    parallel = [dim.name for dim in space.of_kind("parallel")]
    order = _order(kernel, parallel)
    schedule = Schedule(space, tiles, _split(kernel, space), order)
    _check(kernel, schedule)
    return schedule


def _fault(kernel: KernelOp, message: str, remedy: str) -> CannotPlan:
    name = f"kernel {kernel.sym_name.data}: " if kernel.sym_name is not None else ""
    return CannotPlan(name + message, location=location_of(kernel), remedy=remedy)


def _known(kernel: KernelOp, space: IterationSpace, name: str) -> IterationDim:
    for dim in space.dims:
        if dim.name == name:
            return dim
    known = ", ".join(f"{dim.name} ({dim.extent}, {dim.kind})" for dim in space.dims)
    raise _fault(kernel, f"there is no iteration dimension {name}", f"the dimensions are {known or 'none'}")


def _order(kernel: KernelOp, parallel: list[str]) -> tuple[str, ...]:
    if kernel.loop_order is None:
        return tuple(parallel)
    named = [name for name in kernel.loop_order.data if name in parallel]
    return (*named, *(name for name in parallel if name not in named))


def _split(kernel: KernelOp, space: IterationSpace) -> CoreSplit:
    splits: dict[str, DimensionSplit] = {}
    for cut in () if kernel.core_split is None else kernel.core_split.data:
        dim = _known(kernel, space, cut.dimension)
        if dim.kind != "parallel" and cut.cuts > 1:
            raise _fault(
                kernel, f"core_split cuts {dim.name}, which is {dim.kind}", "cut dimensions that are in all results"
            )
        try:
            splits[dim.name] = DimensionSplit(dim.extent, cut.cuts, cut.granule)
        except IllegalSplit as fault:
            raise _fault(kernel, fault.message, fault.remedy or "use fewer cuts") from fault
    return CoreSplit(splits)


def _check(kernel: KernelOp, schedule: Schedule) -> None:
    for dim in schedule.space.dims:
        tile = schedule.tiles[dim.name]
        split = schedule.split.dimensions.get(dim.name)
        if split is not None and split.cuts > 1 and split.granule % tile:
            raise _fault(
                kernel,
                f"tiles of {tile} do not divide the granule of {split.granule} of {dim.name}",
                "use a tile that divides the granule of the core split",
            )
        if dim.kind == "whole" and tile != dim.extent:
            raise _fault(kernel, f"{dim.name} is needed whole but tiled by {tile}", f"use a tile of {dim.extent}")
        if any(axis.cover(tile) is None for axis in schedule.space.axes(dim.name)):
            raise _fault(
                kernel,
                f"tiles of {tile} iterations of {dim.name} are no boxes of the buffers they lie in",
                "use whole sticks, a part of a stick that divides it, or the whole dimension",
            )
