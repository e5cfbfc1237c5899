"""V9 and V11: nothing is read that nobody writes; outputs are written once.

V9 looks at the scratchpads: what a unit reads there, someone has written in this launch or before, and what it reads of
a tile, the producer writes into tiles. What device memory holds at the start is the host's affair, so that the run
itself tells (:mod:`functional <ktir.backends.dataflow.functional>`). V11 looks at device memory: of a buffer that is
written ``once`` every byte is, over the whole program; of one that accumulates no byte counts; of others a byte that is
written twice in a launch is a warning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ktir.backends.dataflow.footprint import (
    NOTHING,
    Footprint,
    Footprints,
    Intervals,
    first_outside,
    interval,
    joined,
    meeting,
    size,
    union,
)
from ktir.backends.dataflow.touched import Region, Touch
from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Program
from ktir.errors import KtirError, OutputWrites, UnwrittenRead
from ktir.maths.runs import runs_of


def written_faults(program: Program, touched: Sequence[Touch]) -> Iterator[KtirError]:
    """Faults of rules V9 and V11."""
    yield from _region_faults(touched)
    yield from _tile_faults(program)
    yield from _output_faults(program, touched)


# ------------------------------------------------------------------------------------------------------------------- V9


def _region_faults(touched: Sequence[Touch]) -> Iterator[KtirError]:
    written: defaultdict[Region, list[tuple[int, Intervals]]] = defaultdict(list)
    for touch in touched:
        if touch.access.writes:
            written[touch.region].append((touch.launch, touch.footprint.intervals))
    covers: dict[tuple[Region, int], Intervals] = {}
    reported: set[int] = set()
    for touch in touched:
        if touch.access.writes or touch.region[1] < 0 or not touch.footprint.exact:
            continue
        key = (touch.region, touch.launch)
        if key not in covers:
            covers[key] = union([part for launch, part in written[touch.region] if launch <= touch.launch])
        missing = first_outside(touch.footprint.intervals, covers[key])
        if missing is not None and id(touch.instruction) not in reported:
            reported.add(id(touch.instruction))
            yield _unwritten(touch.instruction, touch.access, missing - touch.access.buffer.offset, touch.core)


def _unwritten(instruction: Instruction, access: Access, byte: int, core: int) -> UnwrittenRead:
    return UnwrittenRead(
        f"dfp.{instruction.kind} reads byte {byte} of buffer {access.buffer.name} on core {core}, which nobody writes "
        "before",
        location=instruction.location,
        remedy="write it in this launch or an earlier one, or read less",
    )


def _tile_faults(program: Program) -> Iterator[KtirError]:
    """What consumers read of tiles has to be among what the producer writes into tiles."""
    written: defaultdict[tuple[int, int], list[Intervals]] = defaultdict(list)
    read: list[tuple[int, Instruction, Access, Footprint]] = []
    known = Footprints()
    for code in program.units:
        for instruction in code.instructions:
            for access in instruction.accesses:
                for core in code.cores if access.buffer.slots else ():
                    found = known.of(access, instruction.space(core))
                    place = core if access.buffer.per_core else -1
                    if access.writes:
                        written[access.buffer.number, place].append(found.intervals)
                    elif found.exact:
                        read.append((core, instruction, access, found))
    covers: dict[tuple[int, int], Intervals] = {}
    reported: set[int] = set()
    for core, instruction, access, found in read:
        key = (access.buffer.number, core if access.buffer.per_core else -1)
        if key not in covers:
            covers[key] = union(written[key])
        missing = first_outside(found.intervals, covers[key])
        if missing is not None and id(instruction) not in reported:
            reported.add(id(instruction))
            yield _unwritten(instruction, access, missing, core)


# ------------------------------------------------------------------------------------------------------------------ V11


def _output_faults(program: Program, touched: Sequence[Touch]) -> Iterator[KtirError]:
    for buffer in program.buffers:
        if buffer.writes == "once":
            own = [touch for touch in touched if touch.access.writes and touch.access.buffer.number == buffer.number]
            yield from _once_faults(buffer, own)


def _once_faults(buffer: Buffer, written: Sequence[Touch]) -> Iterator[KtirError]:
    covered = NOTHING
    stored = joined(runs_of(buffer.stored) + buffer.offset) if buffer.stored else interval(*buffer.extent)
    for touch in written:
        where = touch.footprint.intervals
        if (padding := first_outside(where, stored)) is not None:
            yield OutputWrites(
                f"byte {padding - buffer.offset} of buffer {buffer.name} is written by {touch.code.unit} of core "
                f"{touch.core}, and is not among those that the buffer declares to be stored",
                location=touch.instruction.location,
            )
            return
        again = meeting(where, covered)
        moved = touch.instruction.executions(touch.core) * touch.access.box.bytes
        if again is not None or moved > size(where):
            byte = (int(where[0, 0]) if again is None else again) - buffer.offset
            yield OutputWrites(
                f"byte {byte} of buffer {buffer.name} is written more than once, by {touch.code.unit} of core "
                f"{touch.core}",
                location=touch.instruction.location,
                remedy='write it once, or say writes = "accumulate" if that is meant',
            )
            return
        covered = union([covered, where])
    missing = first_outside(stored, covered)
    if missing is not None:
        yield OutputWrites(
            f"byte {missing - buffer.offset} of buffer {buffer.name} is never written", location=buffer.location
        )
