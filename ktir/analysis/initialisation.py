"""Whether memory is written before it is read.

Memory that ``@main`` allocates holds nothing until a store or a transfer puts something there. Padding of a stick
layout may be read: what comes of it is known only to a run. Scratchpads keep what launches leave in them; who owns a
piece of a tensor there is who stored it, so a kernel that takes a piece from where no kernel before it put one
disagrees with its producer about ownership.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ktir.analysis.accesses import Access, Buffer, Launch
from ktir.analysis.findings import Answer, answer, cores_text, doubtful, unknown
from ktir.analysis.footprint import CORE_STRIDE, Footprint, Region, buffer_of, runs, uncovered
from ktir.analysis.launches import Program
from ktir.analysis.ranges import Integers
from ktir.dialect.ktdp import StickLayoutAttr
from ktir.dialect.ktdp.attrs import LAYOUT
from ktir.errors import Diagnostic, UninitialisedRead
from ktir.maths.stick_layout import StickLayout


def check_initialisation(program: Program) -> Iterator[Answer]:
    """An answer for each load from a buffer of ``@main``, and for each from a scratchpad."""
    written: dict[Region, list[Footprint]] = defaultdict(list)
    for launch in program.launches:
        for access in launch.accesses:
            for footprint in access.footprints or ():
                if access.kind == "write":
                    written[footprint.region].append(footprint)
        for access in launch.accesses:
            if access.kind == "read" and access.tile.may_pass_the_end:
                question = f"whether what is read beyond the end of {access.tile.view.name} is used is not decided"
                yield answer("initialisation", [unknown(access.operation, question)])
            for footprint in access.footprints or () if access.kind == "read" else ():
                stores = written[footprint.region]
                buffer = buffer_of(footprint, launch)
                if footprint.region[0] == "ct_local":
                    yield answer("ownership", never_stored(launch, footprint, stores))
                elif buffer is not None and buffer.operation is not None and buffer not in launch.filled:
                    yield answer("initialisation", never_written(access, footprint, stores, buffer))


def never_written(
    access: Access, footprint: Footprint, stores: Sequence[Footprint], buffer: Buffer
) -> Iterator[Diagnostic]:
    """Bytes of a buffer that neither the host nor a launch so far has written."""
    filled = padding_of(buffer) if missing(footprint, [s.surely for s in stores], NOTHING) else NOTHING
    if missing(footprint, [s.surely for s in stores], filled) is None:
        return
    gap = missing(footprint, stores, filled)
    if gap is None or not footprint.exact:
        question = f"whether all of {footprint.view.name} that is read was written before is not decided"
        yield unknown(access.operation, question)
        return
    yield doubtful(
        access.operation,
        UninitialisedRead,
        f"bytes {gap[0]} to {gap[1]} of the buffer of {footprint.view.name} are read before they are written",
        "let an earlier kernel or a transfer write them",
    )


def never_stored(launch: Launch, footprint: Footprint, stores: Sequence[Footprint]) -> Iterator[Diagnostic]:
    """Bytes of a scratchpad that no launch so far has stored there; what came before is not known of a kernel alone."""
    if missing(footprint, [s.surely for s in stores], NOTHING) is None:
        return
    gap = missing(footprint, stores, NOTHING)
    if gap is None or not footprint.exact or launch.is_alone:
        question = f"whether what is read of {footprint.view.name} was stored in that scratchpad before is not decided"
        yield unknown(footprint.access.operation, question)
        return
    owner, first = divmod(gap[0], int(CORE_STRIDE))
    readers = footprint.core[(footprint.start < gap[1]) & (footprint.stop > gap[0])]
    yield doubtful(
        footprint.access.operation,
        UninitialisedRead,
        f"{cores_text(readers)} reads bytes {first} to {first + gap[1] - gap[0]} of the scratchpad of core {owner} "
        f"through {footprint.view.name}, where no kernel has stored anything",
        "let the core that owns a piece be the same where it is stored and where it is read",
    )


Runs = tuple[Integers, Integers]

NOTHING: Runs = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def missing(footprint: Footprint, stores: Sequence[Footprint], filled: Runs) -> tuple[int, int] | None:
    """The first bytes of a footprint that neither stores nor the runs ``filled`` hold."""
    start, stop = (np.concatenate(ends) for ends in zip(runs(stores), filled, strict=True))
    return uncovered(footprint.start, footprint.stop, start, stop)


def padding_of(buffer: Buffer) -> Runs:
    """The bytes of a buffer that are padding of its stick layout."""
    layout = None if buffer.operation is None else buffer.operation.attributes.get(LAYOUT)
    if not isinstance(layout, StickLayoutAttr) or not layout.layout.is_padded or not buffer.bytes:
        return NOTHING
    start, stop = padding_runs(layout.layout)
    element = buffer.bytes // layout.layout.elements
    return start * element, stop * element


def padding_runs(layout: StickLayout) -> Runs:
    """The padding of a buffer in elements: first and first behind of each piece."""
    index = [np.zeros((1,) * len(layout.dims), np.int64) for _ in layout.extent]
    for position, dim in enumerate(layout.dims):
        shape = [1] * len(layout.dims)
        shape[position] = dim.size
        index[dim.tensor_dim] = index[dim.tensor_dim] + (np.arange(dim.size) * dim.step).reshape(shape)
    outside = np.zeros(layout.physical_shape, np.int8)
    for at, extent in zip(index, layout.extent, strict=True):
        outside |= at >= extent
    edges = np.flatnonzero(np.diff(outside.reshape(-1), prepend=0, append=0))
    return edges[::2], edges[1::2]
