"""Whether what is written is written completely, and what is read was written before.

A view that a program writes and never reads is an output: each of its elements should be written. Memory that
``@main`` allocates holds nothing until a store or a transfer puts something there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ktir.analysis import ranges
from ktir.analysis.accesses import Access, Launch, Tile, View
from ktir.analysis.findings import doubtful, unknown
from ktir.analysis.footprint import Footprint, Region, buffer_of, uncovered
from ktir.analysis.ranges import Integers
from ktir.errors import Diagnostic, IncompleteCoverage, UninitialisedRead


def check_coverage(launches: Sequence[Launch]) -> Iterator[Diagnostic]:
    """Findings on the outputs of a program, all its launches together."""
    written: dict[Region, list[Footprint]] = defaultdict(list)
    views: dict[Region, dict[View, Access]] = defaultdict(dict)
    read: set[Region] = set()
    open_: dict[View, Access] = {}
    for launch in launches:
        for access in launch.accesses:
            found = access.footprints
            for footprint in found or ():
                if access.kind == "read":
                    read.add(footprint.region)
                    continue
                written[footprint.region].append(footprint)
                views[footprint.region].setdefault(footprint.view, access)
            if found is None and access.kind == "write" and isinstance(access.tile.view, View):
                open_[access.tile.view] = access
    for region, outputs in views.items():
        if region[0] == "global" and region not in read:
            yield from gaps(written[region], outputs)
    for view, access in open_.items():
        yield unknown(access.operation, f"whether every element of {view.name} is written is not decided")
    yield from read_before_written(launches)


def read_before_written(launches: Sequence[Launch]) -> Iterator[Diagnostic]:
    """Loads from memory that ``@main`` allocates, of bytes that neither the host nor a launch so far has written."""
    written: dict[Region, list[Footprint]] = defaultdict(list)
    for launch in launches:
        for access in launch.accesses:
            for footprint in access.footprints or ():
                if access.kind == "write":
                    written[footprint.region].append(footprint)
        for access in launch.accesses:
            if access.kind == "read":
                yield from never_written(launch, access, written)


def never_written(launch: Launch, access: Access, written: dict[Region, list[Footprint]]) -> Iterator[Diagnostic]:
    for footprint in access.footprints or ():
        buffer = buffer_of(footprint, launch)
        stores = written[footprint.region]
        if buffer is None or buffer.operation is None or buffer in launch.filled or not footprint.exact:
            continue
        start, stop = (np.concatenate([*(getattr(f, end) for f in stores), no_runs()]) for end in ("start", "stop"))
        gap = uncovered(footprint.start, footprint.stop, start, stop)
        if gap is not None and not touches(stores, gap):
            yield doubtful(
                access.operation,
                UninitialisedRead,
                f"bytes {gap[0]} to {gap[1]} of the buffer of {footprint.view.name} are read before they are written",
                "let an earlier kernel or a transfer write them",
            )


def no_runs() -> Integers:
    return np.zeros(0, np.int64)


def gaps(written: Sequence[Footprint], outputs: dict[View, Access]) -> Iterator[Diagnostic]:
    """Elements of views that no store writes."""
    start, stop = (np.concatenate([getattr(f, end) for f in written]) for end in ("start", "stop"))
    sure = all(f.exact and f.certain.all() for f in written)
    for view, access in outputs.items():
        for whole in whole_view(view, access).footprints or ():
            gap = uncovered(whole.start, whole.stop, start, stop) if whole.exact else None
            if gap is not None and any(f.exact is False for f in written):
                gap = gap if not touches(written, gap) else None
            if gap is not None and (sure or not touches(written, gap)):
                yield doubtful(
                    view.operation,
                    IncompleteCoverage,
                    f"not all of {view.name} is written: bytes {gap[0]} to {gap[1]} from its pointer are left",
                    "let the stores cover the view, or make the view as large as what is stored",
                )
                break
            if not sure:
                yield unknown(access.operation, f"whether every element of {view.name} is written is not decided")
                break


def touches(written: Sequence[Footprint], gap: tuple[int, int]) -> bool:
    """Whether the hull of an inexact footprint reaches into a gap, so that it may be filled after all."""
    return any(not f.exact and bool(((f.start < gap[1]) & (f.stop > gap[0])).any()) for f in written)


def whole_view(view: View, access: Access) -> Access:
    """An access to every element of a view, at the points at which the view is made."""
    low = tuple(ranges.constant(0) for _ in view.sizes)
    high = tuple(size - ranges.constant(1) for size in view.sizes)
    tile = Tile(view.operation, view, low, high, ())
    return replace(access, tile=tile, frame=view.frame)
