"""Which tiles a dimension may have, and the least that a tile of a kernel needs.

A dimension that some buffer holds along its sticks is tiled by whole sticks, or by a half or a quarter of one where the
views force it; any other by single iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ktir.analysis.iteration_space import IterationDim, IterationSpace
from ktir.analysis.layout_rules import element_bytes
from ktir.analysis.tensor_views import is_free
from ktir.machine import Machine
from ktir.maths.ownership import ceil_div


def is_legal(space: IterationSpace, name: str, tile: int) -> bool:
    """Whether tiles of ``tile`` iterations are boxes in every buffer."""
    return all(axis.cover(tile) is not None for axis in space.axes(name))


LARGE = 8
"""A buffer counts when it is at least the largest one's size divided by this."""


def runs_along_sticks(space: IterationSpace, name: str) -> bool:
    """Whether neighbours of this dimension lie next to each other in one of the large buffers of the kernel.

    Small ones, such as a sum for each row beside the rows, may be read and written in parts of sticks.
    """
    accesses = [access.axes for access in (*space.loads.values(), *space.stores)]
    accesses += [table.columns for table in space.tables.values()]
    sizes = [prod(axis.extent for axis in axes.values()) for axes in accesses]
    return any(
        name in axes and axes[name].finest_stride == 1 and size * LARGE >= max(sizes)
        for axes, size in zip(accesses, sizes, strict=True)
    )


def smallest_tile(space: IterationSpace, dim: IterationDim, machine: Machine) -> int:
    """The least sensible tile of a dimension: all of a whole one, a stick along sticks, else one iteration."""
    if dim.kind == "whole":
        return dim.extent
    if not runs_along_sticks(space, dim.name):
        return 1
    lanes = machine.stick_bytes // 2
    parts = (lanes >> shift for shift in range(lanes.bit_length()))
    return next((min(part, dim.extent) for part in parts if is_legal(space, dim.name, min(part, dim.extent))), 1)


def smallest_tiles(space: IterationSpace, machine: Machine) -> dict[str, int]:
    """The least sensible tile of every dimension."""
    return {dim.name: smallest_tile(space, dim, machine) for dim in space.dims}


def independent_tiles(space: IterationSpace, machine: Machine) -> int:
    """How many cores could share the work at most."""
    tiles = smallest_tiles(space, machine)
    return prod(ceil_div(dim.extent, tiles[dim.name]) for dim in space.of_kind("parallel"))


def tile_bytes(space: IterationSpace, value: SSAValue, tiles: Mapping[str, int], machine: Machine) -> int:
    """Bytes of a tile of ``value``, whole sticks along the last dimension."""
    type = cast("TensorType[Attribute]", value.type)
    size = element_bytes(type.element_type)
    lengths = [tiles[name] for name in space.names(value)]
    if not lengths:
        return machine.stick_bytes
    return prod(lengths[:-1]) * ceil_div(lengths[-1] * size, machine.stick_bytes) * machine.stick_bytes


def footprint(space: IterationSpace, tiles: Mapping[str, int], machine: Machine) -> int:
    """An upper estimate of the scratchpad that one tile of a kernel takes.

    Every value has a place of its own; loads are in flight while their predecessor is used, and accumulators have an
    old and a new state, so both count twice.
    """
    made = [value for value in space.made if not is_free(value)]
    folded = {result for ops in space.folds.values() for op in ops for result in op.results}
    loads = sum(3 * tile_bytes(space, value, tiles, machine) for value in space.loads)
    stores = sum(2 * tile_bytes(space, store.value, tiles, machine) for store in space.stores)
    values = sum((3 if value in folded else 2) * tile_bytes(space, value, tiles, machine) for value in made)
    return loads + stores + values


def smallest_footprint(space: IterationSpace, machine: Machine) -> int:
    """The footprint of the least sensible tile."""
    return footprint(space, smallest_tiles(space, machine), machine)
