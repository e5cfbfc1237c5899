"""Order between units that meet in memory rather than in a tile.

Device memory and the kernel's own scratchpad views have no slots: barriers order them between launches. Within a launch
a kernel may store elements and load them again. Then the unit that comes second must wait for the first: a tile without
content, an *order*, is filled by the first and emptied by the second.

Words. access: the bytes that a step reads or writes in a region, on each core. conflict: two accesses of different
units of one core that share a byte, one of them a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ktir.backends.dataflow.lower.context import refuse
from ktir.backends.dataflow.lower.plan import (
    Block,
    Copy,
    Drain,
    Gather,
    LaunchPlan,
    Loop,
    Mask,
    Reading,
    Step,
    Storage,
    Tile,
    View,
    Writing,
    element_bytes,
    item_in,
    views_of,
)
from ktir.backends.dataflow.lower.values import CoreValue, LoopVariable, PerCore
from ktir.maths.lifetimes import Room

MOST_DISTANCES = 64
"""Iterations apart up to which two accesses of a loop are compared one by one."""


@dataclass(frozen=True, eq=False)
class Access:
    """A view in a region, in terms of the loops around ``step``; ``whole``: any part of the region."""

    step: Step
    region: Storage
    view: View
    writes: bool
    whole: bool
    active: Mask
    loops: tuple[Loop, ...]

    @property
    def actor(self) -> tuple[str, int]:
        """The unit and corelet that does it."""
        return self.step.unit, self.step.corelet

    @property
    def start(self) -> CoreValue:
        """The first byte, from the start of the memory."""
        return self.view.offset + self.region.offset

    @property
    def reach(self) -> int:
        """Bytes from the first element's start to the last element's end."""
        spans = ((extent - 1) * stride for extent, stride in zip(self.view.shape, self.view.strides, strict=True))
        return sum(spans) + element_bytes(self.view.element)

    @property
    def ranges(self) -> tuple[PerCore, PerCore]:
        """The bytes from the start of the memory that each core reaches in all iterations."""
        if self.whole:
            low = np.full(len(self.active), self.region.offset)
            return low, low + self.region.size
        return self.start.minimum(), self.start.maximum() + self.reach

    @property
    def room(self) -> Room:
        """All bytes that any core reaches."""
        if not self.active.any():
            return Room(0, 0)
        low, high = self.ranges
        return Room(int(low[self.active].min()), int(high[self.active].max()))


def accesses_of(plan: LaunchPlan) -> Iterator[Access]:
    """Every access of a launch to a region."""
    return _accesses(plan.body, (), None)


def order_accesses(plan: LaunchPlan) -> None:
    """Adds orders to ``plan`` where a later step meets an earlier one; refuses what an earlier iteration would have to
    finish for a later one."""
    accesses = list(accesses_of(plan))
    if not any(access.writes for access in accesses):
        return
    known: set[tuple[object, ...]] = set()
    for position, second in enumerate(accesses):
        for first in accesses[:position]:
            if first.actor != second.actor and (first.writes or second.writes) and _may_meet(first, second):
                _order(plan, first, second, known)


def _accesses(block: Block, loops: tuple[Loop, ...], active: Mask | None) -> Iterator[Access]:
    for item in block.items:
        if isinstance(item, Loop):
            runs = item.variable.trips > 0
            yield from _accesses(item.body, (*loops, item), runs if active is None else active & runs)
        elif isinstance(item, Step):
            for view in views_of(item.action):
                if isinstance(view.place, Storage):
                    mask = active if active is not None else np.ones(len(view.offset.constant), dtype=np.bool_)
                    indirect = isinstance(item.action, Gather) and view is item.action.source
                    yield Access(item, view.place, view, _writes(item, view), indirect, mask, loops)


def _writes(step: Step, view: View) -> bool:
    match step.action:
        case Copy(target=target) | Drain(target=target):
            return view is target
        case Gather(scatters=scatters):
            return scatters and view is step.action.source
        case _:
            return False


def _may_meet(first: Access, second: Access) -> bool:
    """A quick test on the ranges over all iterations."""
    if first.region.memory != second.region.memory:
        return False
    ranges = [access.ranges for access in (first, second)]
    overlap = (ranges[0][0] < ranges[1][1]) & (ranges[1][0] < ranges[0][1])
    return bool((overlap & first.active & second.active).any())


def _order(plan: LaunchPlan, first: Access, second: Access, known: set[tuple[object, ...]]) -> None:
    """Lets ``second`` wait for ``first`` where they meet in one iteration of the loops around both."""
    common = [left for left, right in zip(first.loops, second.loops, strict=False) if left is right]
    distance = second.start - first.start
    for loop in common:
        if _meets_later(first, second, distance, loop.variable):
            refuse(
                second.step.origin,
                "an iteration accesses bytes of memory that an earlier one writes or still reads",
                "carry the value through iter_args, or use one launch for each",
            )
    if not (first.whole or second.whole or _touch(first, second, distance)):
        return
    block = common[-1].body if common else plan.body
    items = (item_in(first.step, block), item_in(second.step, block))
    key = (*items, first.actor, second.actor)
    if key not in known:
        known.add(key)
        order = Tile(f"t{len(plan.tiles)}o", 1, 1, first.step.unit, second.step.unit, second.step.origin)
        order.writings.append(Writing(order, block, [first.step]))
        order.readings.append(Reading(order, block, None, {second.step.unit: [second.step]}))
        plan.tiles.append(order)


def _meets_later(first: Access, second: Access, distance: CoreValue, variable: LoopVariable) -> bool:
    """Whether ``first`` in a later iteration meets ``second`` in an earlier one."""
    active = first.active & second.active & (variable.trips > 1)
    if not active.any():
        return False
    if first.whole or second.whole or first.start.varies_with(variable) or second.start.varies_with(variable):
        return True
    factor = first.start.terms.get(variable, np.zeros_like(variable.trips))
    most = int(variable.trips[active].max()) - 1
    steps: Sequence[int] = range(1, most + 1) if most <= MOST_DISTANCES else (1, most)
    return any(_touch(first, second, distance + CoreValue(-factor * step)) for step in steps)


def _touch(first: Access, second: Access, distance: CoreValue) -> bool:
    """Whether boxes ``distance`` bytes apart share a byte; exact where the distance is one number per core and both
    boxes have the same strides, else by their reach."""
    active = first.active & second.active
    low, high = distance.minimum(), distance.maximum()
    near = active & (low < first.reach) & (high + second.reach > 0)
    if not near.any():
        return False
    same = distance.is_constant and first.view.strides == second.view.strides
    if not same or len(first.view.shape) != len(second.view.shape):
        return True
    dims = sorted(
        zip(first.view.strides, first.view.shape, second.view.shape, strict=True), key=lambda dim: -abs(dim[0])
    )
    width = element_bytes(first.view.element)
    return any(_boxes_touch(int(apart), dims, width) for apart in set(low[near].tolist()))


def _boxes_touch(apart: int, dims: Sequence[tuple[int, int, int]], width: int) -> bool:
    """Whether some ``q``, a difference of two indices of the boxes in each dimension, bridges ``apart`` bytes."""
    if not dims:
        return abs(apart) < width
    (stride, left, right), inner = dims[0], dims[1:]
    if stride == 0:
        return _boxes_touch(apart, inner, width)
    nearest = apart // stride
    candidates = {min(max(q, -(right - 1)), left - 1) for q in (nearest, nearest + 1)}
    return any(_boxes_touch(apart - q * stride, inner, width) for q in candidates)
