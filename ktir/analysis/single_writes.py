"""Which buffers of global memory are written exactly once: every byte that is written, by all launches together.

What is said holds for certain; where something is not known, nothing is said. Stores through a pointer that is not
known may go anywhere, so they leave nothing to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ktir.analysis.accesses import Access, Buffer, Launch, Loop
from ktir.analysis.evaluation import POINT_LIMIT
from ktir.analysis.footprint import Footprint, coordinate_boxes, runs
from ktir.analysis.ranges import Symbol
from ktir.maths.runs import Runs


def written_once(launches: Sequence[Launch]) -> list[tuple[Buffer, Runs]]:
    """Buffers with the runs of bytes, counted from their first, that are written, each exactly once, in all runs."""
    written: dict[Buffer, list[tuple[Access, Footprint]]] = defaultdict(list)
    for launch in launches:
        for access in launch.accesses:
            if access.kind != "write":
                continue
            if access.footprints is None:
                return []
            for footprint in access.footprints:
                if footprint.region[0] != "global":
                    continue
                buffer = _buffer(footprint, launch)
                if buffer is None:
                    return []
                written[buffer].append((access, footprint))
    found = [(buffer, _covered(stores)) for buffer, stores in written.items()]
    return [(buffer, runs) for buffer, runs in found if runs is not None]


def _buffer(footprint: Footprint, launch: Launch) -> Buffer | None:
    """What the pointer of a footprint belongs to; runs are counted from that pointer."""
    key = footprint.region[1]
    if not isinstance(key, tuple) or not isinstance(key[0], Symbol):
        return None
    return launch.buffers.get(key[0])


def _covered(stores: Sequence[tuple[Access, Footprint]]) -> Runs | None:
    """The bytes that are written, joined where they touch, if all are known and written once."""
    if len({footprint.region for _, footprint in stores}) != 1 or not all(_is_certain(*each) for each in stores):
        return None
    start, stop = runs(footprint for _, footprint in stores)
    order = np.argsort(start, kind="stable")
    start, stop = start[order], stop[order]
    if not len(start) or start[0] < 0 or (start[1:] < stop[:-1]).any():
        return None
    apart = start[1:] > stop[:-1]
    return np.stack([start[np.append(True, apart)], stop[np.append(apart, True)]], axis=1)


def _is_certain(access: Access, footprint: Footprint) -> bool:
    """Whether the runs are what is written, each of them in one execution alone."""
    if not footprint.exact or not footprint.certain.all() or footprint.view is not access.tile.view:
        return False
    if not all(_is_listed(loop) for loop in access.loops):
        return False
    boxes = coordinate_boxes(access, None)
    if boxes is None:
        return False
    moved = int(boxes.extent.prod(1).sum()) * footprint.view.element_bytes
    return moved == int((footprint.stop - footprint.start).sum())


def _is_listed(loop: Loop) -> bool:
    """Whether the points of the frame inside are its iterations; otherwise a point stands for many of them."""
    trips = loop.trips
    return trips.known and int(np.broadcast_to(trips.constant, loop.frame.points).sum()) <= POINT_LIMIT


__all__ = ["written_once"]
