"""Scratchpads: capacity, whose they are, and buffers that lie on top of each other while both are in use.

A ``ct_local`` view at a constant address is a rectangle placed by hand or by the allocator, live from its first store
to its last load in order of the launches. Where a loop comes round to the load again, it is live to the loop's end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ktir.analysis.accesses import Access, Launch, Loop, View
from ktir.analysis.findings import Answer, answer, cores_text, doubtful, proven, unknown
from ktir.analysis.footprint import CORE_STRIDE, Footprint, overlap, runs
from ktir.analysis.launches import Program
from ktir.dialect.locations import location_of
from ktir.errors import Diagnostic, OutOfBounds, ScratchpadOverflow, ScratchpadOverlap
from ktir.machine import Machine


def check_scratchpad(program: Program, machine: Machine | None) -> Iterator[Answer]:
    """An answer for each access to a scratchpad, and for each buffer placed there; no limit without a machine."""
    capacity = machine.scratchpad_bytes if machine else None
    together: list[Use] = []
    for launch in program.launches:
        uses = [Use(launch, f) for access in launch.accesses for f in access.footprints or () if is_local(f)]
        for access in launch.accesses:
            if access.footprints is None and any(view.space == "ct_local" for view in access.views):
                question = "which bytes of a scratchpad are touched is not decided"
                yield answer("scratchpad", [unknown(access.operation, question)])
        for use in uses:
            yield answer("scratchpad", [*absent_owner(launch, use.footprint), *beyond(use.footprint, capacity)])
        if launch.is_alone:
            yield from lifetimes(uses)
        else:
            together += uses
    yield from lifetimes(together)


def is_local(footprint: Footprint) -> bool:
    return footprint.region[0] == "ct_local"


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
class Use:
    """An access to a scratchpad in one launch."""

    launch: Launch
    footprint: Footprint

    @property
    def access(self) -> Access:
        return self.footprint.access

    @property
    def time(self) -> tuple[int, int]:
        """When it comes first: the launch, and the place in the kernel."""
        return self.launch.number, self.access.order


@dataclass(frozen=True, eq=False)
class Rectangle:
    """A placed buffer: its first byte, the first behind, and all accesses through views with exactly these bytes."""

    start: int
    stop: int
    uses: tuple[Use, ...]

    @property
    def stores(self) -> list[Use]:
        return [use for use in self.uses if use.access.kind == "write"]

    @property
    def loads(self) -> list[Use]:
        return [use for use in self.uses if use.access.kind == "read"]


def lifetimes(uses: Sequence[Use]) -> Iterator[Answer]:
    """An answer for each placed buffer, whether it is left alone while in use, and for each view that moves."""
    placed: dict[tuple[int, int], list[Use]] = defaultdict(list)
    moving: dict[View, list[Use]] = defaultdict(list)
    for use in uses:
        place = rectangle_of(use.footprint.view)
        if place is not None and use.footprint.exact:
            placed[place].append(use)
        else:
            moving[use.footprint.view].append(use)
    rectangles = [Rectangle(*place, tuple(users)) for place, users in placed.items()]
    for victim in rectangles:
        others = (r for r in rectangles if r is not victim and r.start < victim.stop and victim.start < r.stop)
        yield answer("scratchpad", (finding for other in others for finding in clobbers(victim, other)))
    for view, users in moving.items():
        yield answer("scratchpad", meetings(view, users, [use for use in uses if use.footprint.view is not view]))


def meetings(view: View, users: Sequence[Use], others: Sequence[Use]) -> Iterator[Diagnostic]:
    """Whether a view that moves may share bytes with another."""
    mine, theirs = (runs(use.footprint for use in each) for each in (users, others))
    written = any(use.access.kind == "write" for use in (*users, *others))
    if written and overlap(*mine, *theirs) is not None:
        yield unknown(view.operation, f"whether {view.name} shares bytes with another buffer in use is not decided")


def rectangle_of(view: View) -> tuple[int, int] | None:
    """First byte and first byte behind a view at a constant place."""
    offset = view.offset.literal
    spans = [
        None if size.literal is None or stride.literal is None else (size.literal - 1) * stride.literal
        for size, stride in zip(view.sizes, view.strides, strict=True)
    ]
    known = [span for span in spans if span is not None]
    if offset is None or len(known) != len(spans):
        return None
    low, high = sum(min(0, s) for s in known), sum(max(0, s) for s in known)
    return (offset + low) * view.element_bytes, (offset + high + 1) * view.element_bytes


def clobbers(victim: Rectangle, other: Rectangle) -> Iterator[Diagnostic]:
    """A store through ``other`` between a store and a load of the same bytes through ``victim``, where both are used as
    buffers of their own."""
    for store in other.stores:
        if not any(load.time > store.time or common_loops(load, store) for load in other.loads):
            continue
        for load in victim.loads:
            if (
                any(precedes(own, store) for own in victim.stores)
                and reaches(store, load, victim.stores)
                and shared(store.footprint, load.footprint)
            ):
                yield doubtful(
                    store.access.operation,
                    ScratchpadOverlap,
                    f"the store through {store.footprint.view.name} overwrites bytes of {load.footprint.view.name} "
                    f"that are read again at {location_of(load.access.operation) or 'a later load'}",
                    "place the two buffers apart, or store the first again before it is read",
                )
                return


def precedes(first: Use, second: Use) -> bool:
    """Whether some execution of ``first`` comes before one of ``second``."""
    return first.time < second.time or bool(common_loops(first, second))


def common_loops(a: Use, b: Use) -> list[Loop]:
    """The loops round both that run more than once, or may."""
    if a.launch is not b.launch:
        return []
    return [x for x in a.access.loops if any(x is y for y in b.access.loops) and bool((x.trips.upper() > 1).any())]


def reaches(store: Use, load: Use, own: Iterable[Use]) -> bool:
    """Whether a load comes after a store, in order or when a loop comes round, and none of the stores ``own`` lies
    between on every path of straight-line code."""
    if load.time > store.time:
        return not any(store.time < each.time < load.time for each in own)
    loops = common_loops(store, load)
    if not loops:
        return False
    first, last = store.launch.spans[loops[0]]
    orders = [each.access.order for each in own if each.launch is store.launch]
    return not any(store.access.order < o <= last or first <= o < load.access.order for o in orders)


def shared(store: Footprint, load: Footprint) -> bool:
    """Whether a store and a load share a byte of the same scratchpad."""
    return overlap(store.start, store.stop, load.start, load.stop) is not None
