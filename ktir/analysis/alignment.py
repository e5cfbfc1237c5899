"""Whether accesses keep to the sticks of a machine.

A part of one stick may be read or written. What crosses from one stick into the next should begin at a stick, else it
touches one stick more than it fills, in every run of bytes. Such an access is legal, and seldom meant. Pointers are
taken to be aligned, as those of buffers and of arrays that are passed in are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ktir.analysis import ranges
from ktir.analysis.accesses import Access, View
from ktir.analysis.findings import Answer, answer, doubtful, unknown
from ktir.analysis.footprint import Footprint
from ktir.analysis.launches import Program
from ktir.analysis.ranges import Value
from ktir.errors import Diagnostic, UnalignedAddress
from ktir.machine import Machine


def check_alignment(program: Program, machine: Machine | None) -> Iterator[Answer]:
    """An answer for each access; none without a machine, which says what a stick is."""
    if machine is None:
        return
    for launch in program.launches:
        for access in launch.accesses:
            if not access.tile.is_lookup:
                yield answer("alignment", crossings(access, machine.stick_bytes))


def crossings(access: Access, stick: int) -> Iterator[Diagnostic]:
    """Runs of bytes that begin inside one stick and end in another."""
    footprints = access.footprints
    if footprints is not None and all(f.exact for f in footprints):
        for footprint in footprints:
            yield from crossed(footprint, stick)
    elif not all(whole_sticks(access, view, stick) for view in access.views):
        yield unknown(access.operation, "whether it begins at a stick is not decided")


def crossed(footprint: Footprint, stick: int) -> Iterator[Diagnostic]:
    """The warning about runs whose place is known."""
    inside, last = footprint.start % stick, (footprint.stop - 1) // stick
    bad = np.flatnonzero((inside != 0) & (footprint.start // stick != last))
    if len(bad):
        yield doubtful(
            footprint.access.operation,
            UnalignedAddress,
            f"{len(bad)} of {len(inside)} runs of bytes of {footprint.view.name} cross sticks of {stick} bytes, but "
            f"begin inside one, the first at byte {inside[bad[0]]}",
            "let tiles begin at sticks: pad the dimension that lies along them, or choose a stick layout",
        )


def whole_sticks(access: Access, view: View, stick: int) -> bool:
    """Whether an access consists of rows that begin at a stick, whatever the values are that nobody knows."""
    start = ranges.scale(view.offset.at(access.frame), np.asarray(view.element_bytes))
    pointers = {symbol: factor for symbol, factor in start.terms.items() if symbol.pointer}
    if len(pointers) > 1:
        return False
    address = start - Value(ranges.ZERO, pointers, start.frame)
    for low, stride in zip(access.tile.lower, view.strides, strict=True):
        if stride.literal is None:
            return False
        step = np.asarray(stride.literal * view.element_bytes)
        if step % stick:
            address = address + ranges.scale(first(low.at(access.frame)), step)
    return not any(bool((factor % stick).any()) for factor in (address.constant, *address.terms.values()))


def first(coordinate: Value) -> Value:
    """Where rows begin whose elements a coordinate runs through."""
    if coordinate.known or not coordinate.attained():
        return coordinate
    return Value(coordinate.lower().astype(np.int64), {}, coordinate.frame)
