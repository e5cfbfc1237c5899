"""Whether two cores touch the same bytes in one launch, at least one of them writing.

Between cores of one launch nothing is ordered but what an exchange between tiles orders
(:mod:`ktir.analysis.ordering`). Two writes are a fault, or worth a warning where all cores store the same value; a
write and a read are a fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ktir.analysis.accesses import Access, Launch
from ktir.analysis.findings import Answer, answer, doubtful, proven, unknown
from ktir.analysis.footprint import CORE_STRIDE, Footprint, Region
from ktir.analysis.launches import Program
from ktir.analysis.ordering import Ordering
from ktir.analysis.ranges import Integers, Truths
from ktir.analysis.variation import differs_by_core
from ktir.dialect import ktdp
from ktir.errors import Diagnostic, KtirError, ReadWriteRace, RemoteReadRace, WriteConflict


def check_races(program: Program) -> Iterator[Answer]:
    """An answer for each access of each launch of more than one core: what it has to do with those before it."""
    for launch in program.launches:
        if launch.cores > 1:
            yield from races_of(launch)


def races_of(launch: Launch) -> Iterator[Answer]:
    """An answer for each access that may meet a write."""
    ordering = Ordering(launch)
    placed: dict[Region, list[Runs]] = defaultdict(list)
    for access in launch.accesses:
        if access.footprints is None:
            verb = "write" if access.kind == "write" else "read"
            yield answer(
                "races", [unknown(access.operation, f"whether another core writes what it {verb}s is not decided")]
            )
            continue
        for region, parts in by_region(access.footprints).items():
            placed[region].append(Runs.of(access, parts))
    for region, runs in placed.items():
        for position, later in enumerate(runs):
            yield answer("races", meetings(region, runs[: position + 1], later, ordering))


def by_region(footprints_: Sequence[Footprint]) -> dict[Region, list[Footprint]]:
    parts: dict[Region, list[Footprint]] = defaultdict(list)
    for footprint in footprints_:
        parts[footprint.region].append(footprint)
    return parts


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of one access in one region; ``sure`` tells of each whether it is touched whenever the program runs."""

    access: Access
    footprint: Footprint
    core: Integers
    start: Integers
    stop: Integers
    sure: NDArray[np.bool_]

    @staticmethod
    def of(access: Access, parts: Sequence[Footprint]) -> Runs:
        core, start, stop = (np.concatenate([getattr(f, end) for f in parts]) for end in ("core", "start", "stop"))
        return Runs(access, parts[0], core, start, stop, np.concatenate([f.certain & f.exact for f in parts]))

    @property
    def writes(self) -> bool:
        return self.access.kind == "write"

    def where(self, chosen: Truths) -> Runs:
        """Some of the runs."""
        core, start, stop = (each[chosen] for each in (self.core, self.start, self.stop))
        return replace(self, core=core, start=start, stop=stop, sure=self.sure[chosen])


@dataclass(frozen=True)
class Meeting:
    """A byte that one core touches in the earlier access and another in the later one."""

    earlier: int
    later: int
    byte: int


def meetings(region: Region, earlier: Sequence[Runs], later: Runs, ordering: Ordering) -> Iterator[Diagnostic]:
    """The first finding on an access and those before it in the text, itself included."""
    open_ = False
    for other in earlier:
        if not (other.writes or later.writes):
            continue
        unordered = ordering.unordered(other.access, later.access)
        met = meeting(other.where(other.sure), later.where(later.sure), unordered)
        if met is not None and ordering.is_settled:
            yield race(region, other, later, met)
            return
        open_ = open_ or met is not None or meeting(other, later, unordered) is not None
    if open_:
        question = "write the same elements" if later.writes else "write what is read in this launch"
        yield unknown(later.access.operation, f"whether other cores {question} is not decided")


def meeting(earlier: Runs, later: Runs, unordered: Truths | None) -> Meeting | None:
    """A byte that two cores touch without order, if there is one."""
    if not len(earlier.start) or not len(later.start):
        return None
    if earlier.start.min() >= later.stop.max() or later.start.min() >= earlier.stop.max():
        return None
    if unordered is None:
        foreign = meets(earlier, later) - meets(in_own_space(earlier, later), in_own_space(later, earlier))
        hits = np.flatnonzero(foreign)
        return met_at(earlier, later, int(hits[0]), earlier.core != later.core[hits[0]]) if len(hits) else None
    for core in np.unique(later.core):
        rivals = unordered[earlier.core, core]
        hits = np.flatnonzero((meets(earlier.where(rivals), later) > 0) & (later.core == core))
        if len(hits):
            return met_at(earlier, later, int(hits[0]), rivals)
    return None


def meets(earlier: Runs, later: Runs) -> Integers:
    """For each of the later runs, with how many of the earlier ones it shares a byte."""
    begun = np.searchsorted(np.sort(earlier.start), later.stop, side="left")
    return begun - np.searchsorted(np.sort(earlier.stop), later.start, side="right")


def in_own_space(runs: Runs, other: Runs) -> Runs:
    """The runs with the bytes of each core so far apart that no two cores share any."""
    lowest = min(runs.start.min(), other.start.min())
    shift = runs.core * (max(runs.stop.max(), other.stop.max()) - lowest) - lowest
    return replace(runs, start=runs.start + shift, stop=runs.stop + shift)


def met_at(earlier: Runs, later: Runs, at: int, rivals: Truths) -> Meeting:
    """Where a later run meets the first of the earlier ones among ``rivals``."""
    start, stop = later.start[at], later.stop[at]
    other = int(np.argmax(rivals & (earlier.start < stop) & (earlier.stop > start)))
    return Meeting(int(earlier.core[other]), int(later.core[at]), int(max(start, earlier.start[other])))


def race(region: Region, earlier: Runs, later: Runs, met: Meeting) -> Diagnostic:
    """The finding about two accesses, at the later one; a read and a write are reported at the read."""
    if earlier.writes and later.writes:
        return conflict(earlier, later, met)
    if later.writes:
        reader, (writing, reading) = earlier, (met.later, met.earlier)
    else:
        reader, (writing, reading) = later, (met.earlier, met.later)
    local = region[0] == "ct_local"
    error: type[KtirError] = RemoteReadRace if local else ReadWriteRace
    return proven(
        reader.access.operation,
        error,
        f"core {reading} reads {'scratchpad bytes' if local else 'elements'} of {reader.footprint.view.name} that core "
        f"{writing} writes in the same launch, with nothing between the two that orders them",
        "read them in a later launch, or pass the values through an inter-tile operation",
    )


def conflict(earlier: Runs, later: Runs, met: Meeting) -> Diagnostic:
    """Two writes; cores that store equal values do no harm."""
    view = later.footprint.view
    report = proven if any(stores_by_core(runs.access.operation) for runs in (earlier, later)) else doubtful
    first, second = sorted((met.earlier, met.later))
    element = met.byte % int(CORE_STRIDE) // view.element_bytes
    return report(
        later.access.operation,
        WriteConflict,
        f"cores {first} and {second} write the same elements of {view.name} (the first is element {element} from its "
        "pointer)",
        "give each element to one core, or put the accesses into two launches",
    )


def stores_by_core(store: Operation) -> bool:
    """Whether what is stored depends on the core."""
    return isinstance(store, ktdp.StoreOp) and differs_by_core(store.data)
