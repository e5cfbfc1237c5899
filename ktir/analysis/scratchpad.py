"""Scratchpads: capacity, whose they are, and buffers that lie on top of each other while both are in use.

A ``ct_local`` view at a constant address is a rectangle placed by hand or by the allocator, live from its first store
to its last load. Where a loop comes round to the load again, it is live to the loop's end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ktir.analysis.accesses import Access, Launch, Loop, View
from ktir.analysis.findings import cores_text, doubtful, proven, unknown
from ktir.analysis.footprint import CORE_STRIDE, Footprint, overlap
from ktir.analysis.ranges import Integers
from ktir.errors import Diagnostic, OutOfBounds, ScratchpadOverflow, ScratchpadOverlap


def check_scratchpad(launch: Launch, capacity: int | None) -> Iterator[Diagnostic]:
    """Findings on one launch; ``capacity`` in bytes per core, None for no limit."""
    local: list[Footprint] = []
    for access in launch.accesses:
        for footprint in access.footprints or ():
            if footprint.view.space == "ct_local":
                local.append(footprint)
                yield from absent_owner(launch, footprint)
                yield from beyond(footprint, capacity)
    yield from overlaps(launch, local)


def absent_owner(launch: Launch, footprint: Footprint) -> Iterator[Diagnostic]:
    """An access to the scratchpad of a core that the grid does not have."""
    view = footprint.view
    if view.owner is not None and view.owner >= launch.cores and footprint.certain.any():
        yield proven(
            footprint.access.operation,
            OutOfBounds,
            f"{view.name} lies in the scratchpad of core {view.owner}, but the grid has {launch.cores} cores",
            "name a core of the grid",
        )


def beyond(footprint: Footprint, capacity: int | None) -> Iterator[Diagnostic]:
    """Bytes before or behind the scratchpad."""
    owner = footprint.core if footprint.view.owner is None else np.full_like(footprint.core, footprint.view.owner)
    start, stop = footprint.start - owner * CORE_STRIDE, footprint.stop - owner * CORE_STRIDE
    outside = (start < 0) | (stop > (capacity if capacity is not None else np.iinfo(np.int64).max))
    hit = outside & footprint.certain
    if footprint.exact and hit.any():
        first = int(np.argmax(hit))
        limit = f"of {capacity} bytes" if capacity is not None else "which begins at 0"
        yield proven(
            footprint.access.operation,
            ScratchpadOverflow,
            f"{cores_text(footprint.core[hit])} touches bytes {start[first]} to {stop[first]} through "
            f"{footprint.view.name} in a scratchpad {limit}",
            "place the buffer lower, make it smaller, or split the work over more cores",
        )
    elif outside.any():
        question = f"whether {footprint.view.name} stays inside the scratchpad is not decided"
        yield unknown(footprint.access.operation, question)


# ---------------------------------------------------------------------------------------------------------- live ranges


@dataclass(frozen=True, eq=False)
class Rectangle:
    """A placed buffer of one core: its bytes, and all accesses through views with exactly these bytes."""

    start: int
    stop: int
    uses: tuple[Footprint, ...]

    def stores(self) -> list[Footprint]:
        return [u for u in self.uses if u.access.kind == "write"]

    def loads(self) -> list[Footprint]:
        return [u for u in self.uses if u.access.kind == "read"]


def overlaps(launch: Launch, local: Sequence[Footprint]) -> Iterator[Diagnostic]:
    """A store into bytes of another rectangle that is read again later, where both are used as buffers of their own."""
    rectangles = placed_rectangles(local)
    for victim in rectangles:
        for other in rectangles:
            if other is victim or other.stop <= victim.start or victim.stop <= other.start:
                continue
            yield from clobbers(launch, victim, other)


def placed_rectangles(local: Sequence[Footprint]) -> list[Rectangle]:
    """The rectangles of views of a core's own scratchpad whose place does not depend on the core or on a loop."""
    grouped: dict[tuple[int, int], list[Footprint]] = defaultdict(list)
    for footprint in local:
        place = rectangle_of(footprint.view)
        if place is not None and footprint.exact and footprint.view.owner is None:
            grouped[place].append(footprint)
    return [Rectangle(*place, tuple(uses)) for place, uses in grouped.items()]


def rectangle_of(view: View) -> tuple[int, int] | None:
    """First byte and first byte behind a view at a constant place."""
    offset = view.offset.literal
    spans = [
        None if size.literal is None or stride.literal is None else (size.literal - 1) * stride.literal
        for size, stride in zip(view.sizes, view.strides, strict=True)
    ]
    if offset is None or None in spans:
        return None
    known = [span for span in spans if span is not None]
    low, high = sum(min(0, s) for s in known), sum(max(0, s) for s in known)
    return (offset + low) * view.element_bytes, (offset + high + 1) * view.element_bytes


def clobbers(launch: Launch, victim: Rectangle, other: Rectangle) -> Iterator[Diagnostic]:
    """Stores through ``other`` between a store and a load of the same bytes through ``victim``."""
    for store in other.stores():
        if not any(
            load.access.order > store.access.order or comes_round(launch, load, store) for load in other.loads()
        ):
            continue
        for load in victim.loads():
            before = [s for s in victim.stores() if precedes(launch, s.access, store.access)]
            if before and reaches(launch, store.access, load.access, victim) and shared(store, load):
                yield doubtful(
                    store.access.operation,
                    ScratchpadOverlap,
                    f"the store through {store.view.name} overwrites bytes of {load.view.name} that are read again at "
                    f"{place_text(load.access)}",
                    "place the two buffers apart, or store the first again before it is read",
                )
                return


def place_text(access: Access) -> str:
    from ktir.dialect.locations import location_of

    return str(location_of(access.operation) or "a later load")


def precedes(launch: Launch, first: Access, second: Access) -> bool:
    """Whether some execution of ``first`` comes before one of ``second``."""
    return first.order < second.order or bool(common_loops(first, second))


def comes_round(launch: Launch, load: Footprint, store: Footprint) -> bool:
    return bool(common_loops(load.access, store.access))


def common_loops(a: Access, b: Access) -> list[Loop]:
    """The loops round both that run more than once, or may."""
    return [x for x in a.loops if any(x is y for y in b.loops) and bool((x.trips.upper() > 1).any())]


def reaches(launch: Launch, store: Access, load: Access, victim: Rectangle) -> bool:
    """Whether a load comes after a store, in the text or when a loop comes round, and no store of the victim's own that
    covers it lies between on every path of straight-line code."""
    own = [s.access.order for s in victim.stores()]
    if load.order > store.order:
        return not any(store.order < o < load.order for o in own)
    loops = common_loops(store, load)
    if not loops:
        return False
    first, last = launch.spans[loops[0]]
    return not any(store.order < o <= last or first <= o < load.order for o in own)


def shared(store: Footprint, load: Footprint) -> bool:
    """Whether a store and a load of the same core share a byte."""
    both: tuple[tuple[Integers, Integers], ...] = ((store.start, store.stop), (load.start, load.stop))
    return overlap(*both[0], *both[1]) is not None
