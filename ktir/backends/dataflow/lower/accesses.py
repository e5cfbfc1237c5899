"""Loads and stores: which way an access tile takes between a memory and the tile of a value."""

from __future__ import annotations

from math import prod

import numpy as np

from ktir.backends.dataflow.lower import distributed, indirect, moves
from ktir.backends.dataflow.lower.context import Lowering, refuse, shape_and_element
from ktir.backends.dataflow.lower.memory import (
    AccessTile,
    DistributedView,
    MemoryView,
    one_partition,
    reaches_beyond,
    stored_data,
    tile_view,
)
from ktir.backends.dataflow.lower.plan import row_major
from ktir.backends.dataflow.lower.tensors import Undefined
from ktir.dialect import ktdp


def load(lowering: Lowering, op: ktdp.LoadOp) -> None:
    """Brings the elements to a tile; an own view that nothing writes in this launch is read where it lies."""
    tile = lowering.get(op.access_tile, (AccessTile, indirect.IndirectTile), op, "the access tile")
    shape, _ = shape_and_element(op.result.type, op)
    if isinstance(tile, indirect.IndirectTile):
        lowering.values[op.result] = indirect.gather(lowering, tile)
        return
    if prod(tile.shape) != prod(shape):
        refuse(op, f"the access has shape {tile.shape}, the tensor {shape}")
    if isinstance(tile.memory, DistributedView):
        view = distributed.load_distributed(lowering, op, tile, tile.memory)
    elif tile.memory.ragged and reaches_beyond(lowering, tile, tile.memory):
        view = distributed.load_ragged(lowering, op, tile, tile.memory)
    elif _is_of_another_core(lowering, tile.memory):
        view = distributed.load_distributed(lowering, op, tile, one_partition(tile.memory))
    elif tile.memory.space.kind == "ct_local":
        view = tile_view(lowering, op, tile, tile.memory)
        if lowering.stores_locally:
            view = lowering.dense(view)
    else:
        source = tile_view(lowering, op, tile, tile.memory)
        target, view = lowering.loaded_tile(tile.shape, source.element)
        moves.load(lowering.planner, source, target)
    lowering.values[op.result] = view.shaped(
        shape, view.strides if len(view.strides) == len(shape) else row_major(shape, view.element)
    )


def _is_of_another_core(lowering: Lowering, memory: MemoryView) -> bool:
    """Whether a core that is here reaches the scratchpad of another by ``memory``."""
    core = memory.space.core
    return core is not None and any(int(here) != core for here in np.flatnonzero(lowering.planner.active))


def store(lowering: Lowering, op: ktdp.StoreOp) -> None:
    """Writes a tensor to device memory or to the core's own scratchpad."""
    tile = lowering.get(op.access_tile, (AccessTile, indirect.IndirectTile), op, "the access tile")
    data = lowering.tensor(op.data, op)
    if isinstance(data, Undefined):
        return
    if isinstance(tile, indirect.IndirectTile):
        indirect.scatter(lowering, op, tile, data)
        return
    if isinstance(tile.memory, DistributedView):
        distributed.store_distributed(lowering, op, tile, tile.memory, stored_data(lowering, data))
        return
    if tile.memory.ragged and reaches_beyond(lowering, tile, tile.memory):
        distributed.store_ragged(lowering, op, tile, tile.memory, stored_data(lowering, data))
        return
    if _is_of_another_core(lowering, tile.memory):
        refuse(op, "it writes another core's scratchpad", "store to the own one and let the other core load")
    target = tile_view(lowering, op, tile, tile.memory)
    if tile.memory.space.kind == "ct_local":
        moves.write(lowering.planner, data, target)
    else:
        moves.store(lowering.planner, stored_data(lowering, data), target)
