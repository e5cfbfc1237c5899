"""Sends and receives over the network between cores, for transfers that both sides know."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from xdsl.ir import Operation

from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.context import Lowering, refuse
from ktir.backends.dataflow.lower.plan import Block, Mask, Receive, Send, View
from ktir.backends.dataflow.lower.values import CoreValue, per_core


def sending_block(lowering: Lowering, op: Operation) -> Block:
    """Where sends for a load go: behind the branches around it, since owners need not take them."""
    block = lowering.planner.block
    while block.loop is not None and block.loop.variable.name == "guard":
        block = block.loop.parent
    around = block
    while around.loop is not None:
        trips = around.loop.variable.trips
        if (trips != trips[0]).any():
            refuse(op, "it reads other cores in a loop that they do not run equally often")
        around = around.loop.parent
    return block


def send(lowering: Lowering, block: Block, mask: Mask, source: View, *destinations: CoreValue) -> None:
    """A send in ``block`` on the cores of ``mask``, to one core or to several at once."""
    planner = lowering.planner
    current, active = planner.block, planner.active
    planner.block, planner.active = block, np.ones(lowering.cores, dtype=np.bool_)
    planner.guarded(
        mask,
        lambda: moves.for_each_piece(
            planner, source, lambda piece: planner.add(lowering.sender, Send(piece, destinations))
        ),
    )
    planner.block, planner.active = current, active


def send_to_all(
    lowering: Lowering, block: Block, sources: Sequence[View], destinations: Mapping[int, Sequence[int]]
) -> None:
    """Sends of each core of ``destinations`` to the cores listed for it, each once: a message to all of them where the
    machine can, itself apart, since no core hears its own message to others."""
    if not lowering.hardware.multicasts:
        _send_to_each(lowering, block, sources, destinations)
        return
    others = {core: [each for each in to if each != core] for core, to in destinations.items()}
    for count in sorted({len(to) for to in others.values()} - {0}):
        group = {core: to for core, to in others.items() if len(to) == count}
        targets = [core_table(lowering.cores, {core: to[n] for core, to in group.items()}) for n in range(count)]
        for source in sources:
            send(lowering, block, _mask(lowering.cores, group), source, *targets)
    itself = {core: core for core, to in destinations.items() if core in to}
    if itself:
        for source in sources:
            send(lowering, block, _mask(lowering.cores, itself), source, core_table(lowering.cores, itself))


def _send_to_each(
    lowering: Lowering, block: Block, sources: Sequence[View], destinations: Mapping[int, Sequence[int]]
) -> None:
    for position in range(max(map(len, destinations.values()), default=0)):
        group = {core: to[position] for core, to in destinations.items() if position < len(to)}
        for source in sources:
            send(lowering, block, _mask(lowering.cores, group), source, core_table(lowering.cores, group))


def _mask(cores: int, some: Collection[int]) -> Mask:
    return np.array([core in some for core in range(cores)])


def receive(lowering: Lowering, mask: Mask, target: View, origin: CoreValue) -> None:
    """A receive on the cores of ``mask``."""
    planner = lowering.planner
    planner.guarded(
        mask,
        lambda: moves.for_each_piece(
            planner, target, lambda piece: planner.add(lowering.receiver, Receive(piece, origin))
        ),
    )


def core_table(cores: int, entries: Mapping[int, int]) -> CoreValue:
    return per_core(np.array([entries.get(core, 0) for core in range(cores)]))
