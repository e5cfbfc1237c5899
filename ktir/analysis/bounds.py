"""Whether accesses stay inside their views, views inside their buffers, and distributed views have no holes.

Each dimension of each access is compared with the view's size at every point (see :mod:`ktir.analysis.ranges`); sizes
and coordinates that both depend on the same argument are compared as forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ktir.analysis import ranges
from ktir.analysis.accesses import Access, DistributedView, Launch, View
from ktir.analysis.findings import Answer, answer, cores_text, proven, unknown
from ktir.analysis.footprint import Footprint, buffer_of, coordinate_boxes
from ktir.analysis.launches import Program
from ktir.analysis.ranges import Truths, Value
from ktir.errors import Diagnostic, DistributedViewHole, OutOfBounds


def check_bounds(program: Program) -> Iterator[Answer]:
    """An answer for every access of every launch, and for everything that could not be followed to one."""
    for launch in program.launches:
        for access in launch.accesses:
            yield answer("bounds", outside(access, launch))
        for operation, question in launch.undecided:
            yield answer("bounds", [unknown(operation, question)])


def outside(access: Access, launch: Launch) -> Iterator[Diagnostic]:
    """What an access touches beyond its view, or the view beyond its buffer."""
    view = access.tile.view
    if access.tile.count == 0:
        return
    if isinstance(view, DistributedView):
        yield from holes(access, view)
        return
    found = list(outside_view(access, view))
    yield from found or outside_buffer(access, launch)


def outside_view(access: Access, view: View) -> Iterator[Diagnostic]:
    """Coordinates below zero or not below the view's size, dimension by dimension."""
    frame = access.frame
    filled = not_empty(access)
    for dim, (low, high, size) in enumerate(zip(access.tile.lower, access.tile.upper, view.sizes, strict=True)):
        beyond = high.at(frame) - size.at(frame) + ranges.constant(1)
        for excess, end in ((-low.at(frame), low), (beyond, high)):
            outside, inside = judged(excess, frame.points)
            hit = outside & frame.certain & filled
            if hit.any():
                yield proven(access.operation, OutOfBounds, message(access, view, dim, end, size, hit), remedy(access))
                return
            if not (inside | ~filled).all():
                yield unknown(access.operation, question(access, view, dim))
                return


def judged(excess: Value, points: int) -> tuple[Truths, Truths]:
    """At which points an excess is surely positive for some iteration, and at which it surely never is."""
    low, high = (np.broadcast_to(b, points) for b in (excess.lower(), excess.upper()))
    return (low > 0) | ((high > 0) & excess.attained()), high <= 0


def not_empty(access: Access) -> Truths:
    """At which points an access may touch anything at all."""
    filled = np.ones(access.frame.points, np.bool_)
    for low, high in zip(access.tile.lower, access.tile.upper, strict=True):
        filled = filled & (np.broadcast_to((high - low).at(access.frame).upper(), access.frame.points) >= 0)
    return filled


def message(access: Access, view: View, dim: int, end: Value, size: Value, hit: Truths) -> str:
    point = int(np.argmax(hit))
    values = (np.broadcast_to(v.at(access.frame).upper(), access.frame.points)[point] for v in (end, size))
    reached, extent = (number_text(v) for v in values)
    if end is access.tile.lower[dim] and end is not access.tile.upper[dim]:
        reached = number_text(float(np.broadcast_to(end.at(access.frame).lower(), access.frame.points)[point]))
    verb = "reads" if access.kind == "read" else "writes"
    return (
        f"{cores_text(access.frame.core[hit])} {verb} coordinate {reached} of dimension {dim} of {view.name}, "
        f"whose size there is {extent}"
    )


def number_text(value: float) -> str:
    return "unknown" if not np.isfinite(value) else str(int(value))


def remedy(access: Access) -> str:
    return "let the access tile end at the view's edge, or guard the access by the tile id"


def question(access: Access, view: View, dim: int) -> str:
    indirect = access.tile.lookups or not access.tile.exact
    why = "they are read from memory" if indirect else "they depend on values that are only known when it runs"
    return f"whether the coordinates of dimension {dim} stay inside {view.name} is not decided: {why}"


def outside_buffer(access: Access, launch: Launch) -> Iterator[Diagnostic]:
    """Addresses before or behind the allocation that the view's pointer belongs to."""
    for footprint in access.footprints or ():
        size = size_of_region(footprint, launch)
        if size is None:
            continue
        outside = (footprint.start < 0) | (footprint.stop > size)
        hit = outside & footprint.certain
        if footprint.exact and hit.any():
            first = int(np.argmax(hit))
            yield proven(
                access.operation,
                OutOfBounds,
                f"{cores_text(footprint.core[hit])} touches bytes {footprint.start[first]} to {footprint.stop[first]} "
                f"of a buffer of {size} bytes through {footprint.view.name}",
                "make the view's sizes and strides those of the buffer",
            )
        elif outside.any():
            yield unknown(access.operation, f"whether {footprint.view.name} stays inside its buffer is not decided")


def size_of_region(footprint: Footprint, launch: Launch) -> int | None:
    """Bytes of the buffer that a footprint's region is, where they are known."""
    buffer = buffer_of(footprint, launch)
    return None if buffer is None else buffer.bytes


# ---------------------------------------------------------------------------------------------------- distributed views


def holes(access: Access, view: DistributedView) -> Iterator[Diagnostic]:
    """Coordinates that no partition owns; decided where partitions are disjoint."""
    owned = [part.owned for part in view.partitions if part.owned is not None]
    known = access.tile.exact and all(v.known for v in (*access.tile.lower, *access.tile.upper))
    apart = not any(a.meets(b) for a, b in combinations(owned, 2))
    if len(owned) < len(view.partitions) or not known or not apart:
        yield unknown(
            access.operation, f"whether every coordinate of {view.name} that is touched is owned is not decided"
        )
        return
    whole = coordinate_boxes(access, None)
    if whole is None:
        yield unknown(
            access.operation, f"whether every coordinate of {view.name} that is touched is owned is not decided"
        )
        return
    wanted = volume(whole.point, whole.extent, access.frame.points)
    given = np.zeros(access.frame.points, np.int64)
    for owner in owned:
        part = coordinate_boxes(access, owner)
        if part is not None:
            given = given + volume(part.point, part.extent, access.frame.points)
    hit = (given < wanted) & access.frame.certain
    if hit.any():
        point = int(np.argmax(hit))
        yield proven(
            access.operation,
            DistributedViewHole,
            f"{cores_text(access.frame.core[hit])} touches {wanted[point] - given[point]} of {wanted[point]} elements "
            f"of {view.name} that no partition owns",
            "let the coordinate sets of the partitions cover what is accessed",
        )
    elif (given < wanted).any():
        yield unknown(access.operation, f"a hole of {view.name} may be touched on a path that is not decided")


def volume(point: NDArray[np.int64], extent: NDArray[np.int64], points: int) -> NDArray[np.int64]:
    """Elements of the boxes of each point."""
    return np.bincount(point, extent.prod(1), points).astype(np.int64)
