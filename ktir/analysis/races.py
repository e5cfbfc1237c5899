"""Whether two cores touch the same bytes in one launch, at least one of them writing.

Between cores of one launch nothing is ordered but what an inter-tile operation orders. Two writes are a fault, or worth
a warning where all cores store the same value; a write and a read are a fault. Where the kernel has inter-tile
operations that may come between the two, it is an open question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ktir.analysis.accesses import Access, Launch
from ktir.analysis.findings import doubtful, proven, unknown
from ktir.analysis.footprint import Footprint, Region, clash
from ktir.analysis.ranges import Integers
from ktir.analysis.variation import differs_by_core
from ktir.dialect import ktdp
from ktir.errors import Diagnostic, KtirError, ReadWriteRace, RemoteReadRace, WriteConflict


def check_races(launch: Launch) -> Iterator[Diagnostic]:
    """Findings on one launch."""
    if launch.cores == 1:
        return
    writes, unplaced = by_region(launch, "write")
    reads, _ = by_region(launch, "read")
    for access in unplaced:
        yield unknown(access.operation, "whether two cores write the same elements is not decided")
    for region, written in writes.items():
        conflicts = list(write_conflicts(launch, written))
        yield from conflicts
        if not conflicts:
            yield from read_races(launch, region, written, reads.get(region, []))


def by_region(launch: Launch, kind: str) -> tuple[dict[Region, list[Footprint]], list[Access]]:
    """The footprints of all accesses of a kind, and the accesses that have none."""
    placed: dict[Region, list[Footprint]] = defaultdict(list)
    unplaced: list[Access] = []
    for access in launch.accesses:
        if access.kind != kind:
            continue
        found = access.footprints
        if found is None:
            unplaced.append(access)
        for footprint in found or ():
            placed[footprint.region].append(footprint)
    return placed, unplaced


class Runs:
    """The runs of several footprints in one table; ``of`` gives the footprint of a run."""

    def __init__(self, footprints_: Sequence[Footprint]) -> None:
        self.footprints = footprints_
        self.core: Integers = joined([f.core for f in footprints_])
        self.start: Integers = joined([f.start for f in footprints_])
        self.stop: Integers = joined([f.stop for f in footprints_])
        self.sure: NDArray[np.bool_] = np.concatenate([f.certain & f.exact for f in footprints_])
        self.index = np.repeat(np.arange(len(footprints_)), [len(f.core) for f in footprints_])

    def of(self, run: int) -> Footprint:
        return self.footprints[int(self.index[run])]

    def clash(self, chosen: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Two runs among the chosen, of different cores, that share a byte."""
        rows = np.flatnonzero(chosen)
        pair = clash(self.core[rows], self.start[rows], self.stop[rows])
        return None if pair is None else (int(rows[pair[0]]), int(rows[pair[1]]))


def joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts)


def write_conflicts(launch: Launch, written: Sequence[Footprint]) -> Iterator[Diagnostic]:
    """Bytes that two cores write: proven, or possible only."""
    runs = Runs(written)
    pair = runs.clash(runs.sure)
    if pair is not None and not (launch.ordered and may_be_ordered(runs, pair)):
        yield conflict(runs, pair, WriteConflict, "write")
        return
    pair = runs.clash(np.ones(len(runs.core), np.bool_))
    if pair is not None:
        later = max((runs.of(run) for run in pair), key=lambda f: f.access.order)
        yield unknown(later.access.operation, "whether two cores write the same elements is not decided")


def may_be_ordered(runs: Runs, pair: tuple[int, int]) -> bool:
    """Whether two runs come from different places or iterations, so that an inter-tile operation may lie between."""
    first, second = (runs.of(run).access for run in pair)
    return first is not second or bool(first.loops)


def stores_by_core(store: Operation) -> bool:
    """Whether what is stored depends on the core; cores that store equal values do no harm."""
    return isinstance(store, ktdp.StoreOp) and differs_by_core(store.data)


def conflict(runs: Runs, pair: tuple[int, int], error: type[KtirError], verb: str) -> Diagnostic:
    first, second = sorted(pair, key=lambda run: runs.of(run).access.order)
    footprint = runs.of(second)
    element = (int(max(runs.start[first], runs.start[second])) % (1 << 44)) // footprint.view.element_bytes
    stores = (runs.of(run).access.operation for run in pair)
    report = proven if any(stores_by_core(store) for store in stores) else doubtful
    return report(
        footprint.access.operation,
        error,
        f"cores {runs.core[first]} and {runs.core[second]} {verb} the same elements of {footprint.view.name} "
        f"(the first is element {element} from its pointer)",
        "give each element to one core, or put the accesses into two launches",
    )


def read_races(
    launch: Launch, region: Region, written: Sequence[Footprint], read: Sequence[Footprint]
) -> Iterator[Diagnostic]:
    """Bytes that one core writes and another reads."""
    error = RemoteReadRace if region[0] == "ct_local" else ReadWriteRace
    for each in read:
        runs = Runs([*written, each])
        pair = None if launch.ordered else read_write_pair(runs, len(written), runs.sure)
        if pair is not None:
            yield race(runs, pair, error)
            continue
        if read_write_pair(runs, len(written), np.ones(len(runs.core), np.bool_)) is not None:
            yield unknown(
                each.access.operation, "whether another core writes what is read in this launch is not decided"
            )


def read_write_pair(runs: Runs, reader: int, chosen: NDArray[np.bool_]) -> tuple[int, int] | None:
    """A written run and one of the reader's by another core that share a byte; footprint ``reader`` is the reader."""
    mine, theirs = (np.flatnonzero(chosen & which) for which in (runs.index == reader, runs.index != reader))
    if not len(mine) or not len(theirs):
        return None
    order = theirs[np.argsort(runs.start[theirs], kind="stable")]
    reach = np.maximum.accumulate(runs.stop[order])
    last = np.searchsorted(runs.start[order], runs.stop[mine], side="left")
    first = np.searchsorted(reach, runs.start[mine], side="right")
    for run, low, high in zip(mine[first < last], first[first < last], last[first < last], strict=True):
        near = order[low:high]
        hits = near[(runs.stop[near] > runs.start[run]) & (runs.core[near] != runs.core[run])]
        if len(hits):
            return int(hits[0]), int(run)
    return None


def race(runs: Runs, pair: tuple[int, int], error: type[KtirError]) -> Diagnostic:
    writer, reader = pair
    footprint = runs.of(reader)
    place = "scratchpad bytes" if error is RemoteReadRace else "elements"
    return proven(
        footprint.access.operation,
        error,
        f"core {runs.core[reader]} reads {place} of {footprint.view.name} that core {runs.core[writer]} writes "
        "in the same launch, with nothing between the two that orders them",
        "read them in a later launch, or pass the values through an inter-tile operation",
    )
