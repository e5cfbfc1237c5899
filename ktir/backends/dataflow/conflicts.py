"""Bytes that could be raced for: touched in one launch by two units, one of them writing.

Found from footprints, without looking at order. A program without any needs no further thought; for the rest, order
decides: by vector clocks over the tokens (:mod:`verify_races`) and over the data (:mod:`functional`).

*Tiles*: a ring of tiles by number, and the core that it is on, or -1 for one in device memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import gcd
from typing import cast

import numpy as np

from ktir.backends.dataflow.expression import Linear
from ktir.backends.dataflow.footprint import Footprints, Intervals, joined, meeting, union
from ktir.backends.dataflow.touched import Region, Touch
from ktir.backends.dataflow.unit_program import Buffer, Program
from ktir.dialect import dfp


def contested(touched: Sequence[Touch]) -> dict[Region, Intervals]:
    """For each region, the bytes that could be raced for, rounded up to those of whole accesses."""
    groups: defaultdict[tuple[Region, int], list[Touch]] = defaultdict(list)
    for touch in touched:
        groups[touch.region, touch.launch].append(touch)
    found: defaultdict[Region, list[Intervals]] = defaultdict(list)
    for (region, _), group in groups.items():
        found[region].extend(_contested(group))
    return {region: union(parts) for region, parts in found.items() if parts}


Tiles = tuple[int, int]


def tiles_of(buffer: Buffer, core: int) -> Tiles:
    """The ring of tiles that ``core`` uses."""
    return buffer.number, core if buffer.per_core else -1


def filled_by_several(program: Program) -> dict[Tiles, Buffer]:
    """The rings of tiles in which two producers write the same bytes, perhaps of different tiles."""
    known = Footprints()
    written: defaultdict[Tiles, dict[tuple[int, int], list[Intervals]]] = defaultdict(dict)
    buffers: dict[Tiles, Buffer] = {}
    for code in program.units:
        for instruction in code.instructions:
            for access in instruction.accesses:
                for core in code.cores if access.writes and access.buffer.slots else ():
                    place = tiles_of(access.buffer, core)
                    buffers[place] = access.buffer
                    found = known.of(access, instruction.space(core)).intervals
                    written[place].setdefault((core, code.number), []).append(found)
    return {
        place: buffers[place]
        for place, parts in written.items()
        if len(parts) > 1 and _overlaps([union(each) for each in parts.values()])
    }


def _contested(group: Sequence[Touch]) -> list[Intervals]:
    """What different actors touch in common, one of them writing."""
    written: dict[tuple[int, int], list[Intervals]] = {}
    for touch in group:
        if touch.access.writes:
            written.setdefault(touch.actor, []).append(touch.footprint.intervals)
    if not written:
        return []
    writes = {actor: union(parts) for actor, parts in written.items()}
    found = _overlaps(list(writes.values()))
    for touch in group:
        if not touch.access.writes:
            others = [part for actor, part in writes.items() if actor != touch.actor]
            if others and meeting(touch.footprint.intervals, union(others)) is not None:
                found.append(touch.footprint.intervals)
    return found


def _overlaps(parts: Sequence[Intervals]) -> list[Intervals]:
    """Intervals of one part that meet those of another."""
    every = np.concatenate(parts)
    owners = np.concatenate([np.full(len(part), number) for number, part in enumerate(parts)])
    order = np.argsort(every[:, 0], kind="stable")
    every, owners = every[order], owners[order]
    reach = np.maximum.accumulate(every[:, 1])
    meets = np.flatnonzero(every[1:, 0] < reach[:-1])
    if not meets.size:
        return []
    return [joined(every[np.unique(np.concatenate([meets, meets + 1]))])]


def grain_of(touched: Sequence[Touch], region: Region) -> int:
    """The most bytes of which all accesses of a region move whole numbers, from whole numbers on."""
    grain = 0
    for touch in touched:
        if touch.region == region:
            access = touch.access
            grain = gcd(grain, access.buffer.offset, access.box.width, *access.box.strides)
            if not isinstance(access.offset, Linear):
                return 1
            if access.indirect:
                grain = gcd(grain, cast("dfp.IndirectOperation", touch.instruction.op).row_stride.value.data)
            for value in (access.offset.constant, *(factor for _, factor in access.offset.terms)):
                grain = gcd(grain, *(value if isinstance(value, tuple) else (value,)))
    return max(1, grain)
