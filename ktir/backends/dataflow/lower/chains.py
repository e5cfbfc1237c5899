"""Sums of contributions on a network that adds as it carries: along the producers, from the last one to the consumers.

A chain adds in f32 and in ascending order of the producers, as the operation does, so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.lower.context import Lowering
from ktir.backends.dataflow.lower.plan import Chain, View, row_major
from ktir.backends.dataflow.lower.ring import core_table, receive, send_to_all, sending_block
from ktir.backends.dataflow.lower.values import per_core
from ktir.dialect import ktdp

Cores = Sequence[int]


def adds(
    lowering: Lowering,
    op: ktdp.InterTileReduceOp,
    partials: Sequence[View],
    producers: Mapping[int, Cores],
    senders: Mapping[int, Cores],
) -> bool:
    """Whether ``op`` sums f32 for consumers that all hear all producers of their group."""
    if lowering.hardware.adder is None or any(len(cores) < 2 for cores in producers.values()):
        return False
    whole = {tuple(cores) for cores in producers.values()}
    if any(tuple(heard) not in whole for heard in senders.values()):
        return False
    block, count = op.reducer.block, len(partials)
    end = block.last_op
    assert end is not None
    return all(
        isinstance(partial.element, Float32Type) and _is_sum(value, block.args[number], block.args[count + number])
        for number, (partial, value) in enumerate(zip(partials, end.operands, strict=True))
    )


def _is_sum(value: SSAValue, left: SSAValue, right: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation) or (not isinstance(owner, arith.AddfOp) and owner.name != "linalg.add"):
        return False
    return list(owner.operands[:2]) in ([left, right], [right, left])


def lower(
    lowering: Lowering,
    op: ktdp.InterTileReduceOp,
    partials: Sequence[View],
    producers: Mapping[int, Cores],
    senders: Mapping[int, Cores],
) -> list[View]:
    """The sums on the consumers."""
    planner, block = lowering.planner, sending_block(lowering, op)
    last = {consumer: heard[-1] for consumer, heard in senders.items()}
    heirs: dict[int, list[int]] = {}
    for consumer in sorted(last):
        heirs.setdefault(last[consumer], []).append(consumer)
    current, active = planner.block, planner.active
    planner.block, planner.active = block, lowering.everyone
    totals = [_chain(lowering, partial, list(producers.values())) for partial in partials]
    planner.block, planner.active = current, active
    send_to_all(lowering, block, totals, heirs)
    mask = np.array([core in last for core in range(lowering.cores)])
    arrived: list[View] = []
    for partial in partials:
        target, view = lowering.received_tile(partial.shape, partial.element)
        receive(lowering, mask, target, core_table(lowering.cores, last))
        arrived.append(view)
    return arrived


def _chain(lowering: Lowering, partial: View, groups: Sequence[Cores]) -> View:
    """The sum, on the last core of each group."""
    planner, adder = lowering.planner, lowering.hardware.adder
    assert adder is not None
    links = [link for cores in groups for link in pairwise(cores)]
    before, after = {there: here for here, there in links}, dict(links)
    target, total = planner.value_tile(partial.shape, partial.element, adder, slots=lowering.prefetch_slots)
    previous, following = (
        per_core(np.array([ends.get(core, -1) for core in range(lowering.cores)])) for ends in (before, after)
    )
    members = {core for cores in groups for core in cores}
    mask = np.array([core in members for core in range(lowering.cores)])
    source = lowering.dense(partial)
    flat, strides = (prod(partial.shape),), row_major((prod(partial.shape),), partial.element)
    link = Chain(source.shaped(flat, strides), target.shaped(flat, strides), previous, following)

    def work() -> None:
        planner.add(adder, link)

    planner.guarded(mask, work)
    return total


__all__ = ["adds", "lower"]
