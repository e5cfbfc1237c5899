"""What is checked while a program runs. Nothing here changes a value, so a run without checks gives the same bits.

* An access stays inside its view, and inside the allocation that the view starts in.
* A read element that nobody wrote, or that is padding of a stick layout, makes the value *tainted* there; storing such
  a lane anywhere but into padding is the error (values.py carries the masks).
* Two cores do not write one element in one launch, and none reads what another writes, unless an inter-tile
  operation orders the two.

Ordering. Every write leaves a stamp (epoch, core). The epoch moves on at each launch and each produce; ``seen[c, p]``
is the epoch before which core c knows what core p did. Reads are noted and compared with the stamps at the end of the
launch, so that the order in which cores happen to run does not matter: a write in a later epoch is a race as well,
unless its core knew of the read when it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ktir.errors import (
    ArgumentError,
    Diagnostic,
    OutOfBounds,
    PaddingRead,
    ReadWriteRace,
    RemoteReadRace,
    UninitialisedRead,
    WriteConflict,
)
from ktir.interp.accesses import Access, Gathered, Strided
from ktir.interp.boxes import ENDLESS, spread
from ktir.interp.expressions import Pattern
from ktir.interp.numerics import Array, Scalar
from ktir.interp.values import Frame, Origin, Site, Tainted
from ktir.interp.views import View
from ktir.machine.memory_arena import CORE_BITS, SHORT_EPOCHS, WRITTEN, Allocation, Arena
from ktir.maths.stick_layout import StickLayout

CORE_MASK = (1 << CORE_BITS) - 1
NOTES_AT_MOST = 4096
"""Reads of one operation in one launch that are kept one by one for the comparison at its end."""
SNAPSHOTS_AT_MOST = 1 << 22
"""Entries of all tables of what cores know that are kept for that comparison."""
NOBODY = 1 << 30
RACE_REMEDY = "write it in an earlier launch, or order the two with an inter-tile operation"


@dataclass(frozen=True, slots=True)
class NotedRead:
    """A read, the epoch it belongs to, and how large its arena was: scratchpads that grow since then lie elsewhere."""

    access: Access
    epoch: int
    size: int


@dataclass(slots=True)
class Notes:
    """Reads of one operation from one arena: the range they span, and each of them. ``least`` and ``greatest`` are the
    cores that read each granule, of reads that are too many to be kept one by one."""

    arena: Arena
    low: int
    high: int
    accesses: list[NotedRead] = field(default_factory=lambda: [])
    least: Array | None = None
    greatest: Array | None = None
    granule: int = 0

    def mark(self, access: Access, cores: Array) -> None:
        """Notes which cores read the elements of an access, in granules."""
        count = self.arena.size // self.arena.granule
        if self.least is None or self.greatest is None or self.granule != self.arena.granule or len(self.least) < count:
            self.least, self.greatest = np.full(count, NOBODY), np.full(count, -1)
            self.granule = self.arena.granule
        places = access.index() if isinstance(access, Strided) else access.places
        places, readers = np.broadcast_arrays(places, cores)
        np.minimum.at(self.least, places, readers)
        np.maximum.at(self.greatest, places, readers)


@dataclass(slots=True)
class Knowledge:
    """What consumers of a contribution may rely on: what its producers wrote in epochs up to ``epoch``, and what they
    knew themselves by then."""

    epoch: int = 0
    known: Array | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """What the checker knew at some time: the range of the reads of each operation and how many they are, the epoch,
    and the writes known to each core."""

    reads: dict[tuple[Site, int], tuple[int, int, int]]
    epoch: int
    seen: Array | None


class Checker:
    """The checks of one run."""

    def __init__(self, *, ordered: bool) -> None:
        self.ordered = ordered
        self.epoch = 0
        self.launch_epoch = 0
        self.seen: Array | None = None
        self.snapshots: dict[int, Array] = {}
        self.layouts: dict[int, StickLayout | None] = {}
        self.complete: set[Allocation] = set()
        self.reads: dict[tuple[Site, int], Notes] = {}
        self.writes: dict[tuple[Site, int], tuple[Arena, int, int]] = {}
        self.unstamped: list[tuple[Access, Array]] = []

    def declare(self, start: int, layout: StickLayout | None) -> None:
        """Says how the buffer that starts at this byte is laid out; where two differ, nothing is known."""
        self.layouts[start] = layout if self.layouts.get(start, layout) == layout else None

    def fill(self, allocation: Allocation) -> None:
        """Says that the host wrote all of an allocation of global memory: it needs no marks."""
        self.complete.add(allocation)

    def empty(self, arena: Arena, allocation: Allocation) -> None:
        """Says that nobody wrote an allocation; those that it takes bytes from are marked, to keep what they have."""
        for each in [each for each in self.complete if each.start < allocation.stop and allocation.start < each.stop]:
            arena.mark_written(each)
            self.complete.remove(each)

    # ------------------------------------------------------------------------------------------------------- launches

    def begin_launch(self, tiles: int) -> None:
        self.finish_launch()
        self.epoch += 1
        self.launch_epoch = self.epoch
        self.seen = np.full((tiles, tiles), self.epoch, np.int64) if self.ordered else None
        self.snapshots = {}

    def finish_launch(self) -> None:
        """Compares the noted reads with the writes of the launch."""
        notes, writes = list(self.reads.items()), list(self.writes.values())
        self.reads, self.writes = {}, {}
        for (site, _), note in notes:
            if any(note.arena is arena and low <= note.high and note.low <= high for arena, low, high in writes):
                for read in note.accesses:
                    if read.size == note.arena.size or not read.access.view.local:
                        self._compare_later(read, site)
                self._compare_marks(note, site)

    def _advance(self) -> None:
        """Begins an epoch; what cores know in the one that ends is kept."""
        if self.seen is not None and (len(self.snapshots) + 1) * self.seen.size <= SNAPSHOTS_AT_MOST:
            self.snapshots[self.epoch] = self.seen.copy()
        self.epoch += 1

    def produced(self, knowledge: Knowledge) -> None:
        """Marks a produce, and notes in ``knowledge`` what its consumers may rely on."""
        knowledge.epoch = self.epoch
        knowledge.known = None if self.seen is None else self.seen.copy()
        self._advance()

    def received(self, knowledge: Knowledge, pairs: Array) -> None:
        """Marks that the first core of each pair got the contribution of the second one."""
        if self.seen is None or knowledge.known is None:
            return
        self._advance()
        consumers, producers = pairs.T
        np.maximum.at(self.seen, consumers, knowledge.known[producers])
        np.maximum.at(self.seen, (consumers, producers), knowledge.epoch + 1)

    # --------------------------------------------------------------------------------------------------------- bounds

    def within_view(self, view: View, base: Sequence[Scalar], pattern: Pattern, frame: Frame, site: Site) -> None:
        """Raises where a coordinate lies outside the sizes of the view."""
        if pattern.count == 0:
            return
        for dimension, (first, size) in enumerate(zip(base, view.sizes, strict=True)):
            low, high = pattern.limits(dimension)
            wrong = (first + low < 0) | (first + high >= size)
            if wrong if isinstance(wrong, bool) else np.any(wrong):
                self._fail_view(view, base, pattern, dimension, wrong, frame, site)

    def _fail_view(
        self, view: View, base: Sequence[Scalar], pattern: Pattern, dimension: int, wrong: Any, frame: Frame, site: Site
    ) -> None:
        row = 0 if isinstance(wrong, bool) or np.ndim(wrong) == 0 else int(np.nonzero(wrong)[0][0])
        first = [value if isinstance(value, int) else int(value[row]) for value in base]
        sizes = [value if isinstance(value, int) else int(value[row]) for value in view.sizes]
        lows, highs = zip(*(pattern.limits(d) for d in range(len(first))), strict=True)
        spans = ", ".join(f"{at + low}..{at + high}" for at, low, high in zip(first, lows, highs, strict=True))
        raise site.fail(
            OutOfBounds,
            f"touches coordinates [{spans}] of %{view.name} on core {int(frame.cores[row])}: dimension {dimension} has "
            f"size {sizes[dimension]}",
            "keep the tile inside the view, or load the rest in a tile of its own",
        )

    def within_allocation(self, access: Access, low: int, high: int, frame: Frame, site: Site) -> None:
        """Raises where an access leaves the allocation that its view starts in."""
        view, size = access.view, access.view.element.itemsize
        for rows, at in _offsets(view.offset):
            first, last = (low, high) if rows is None else _limits_of(access, rows)
            stop = (last + 1) * size
            allocation = access.arena.containing(at * size, stop) if view.lent is None else view.lent.allocations[0]
            if allocation is None:
                allocation = access.arena.containing(first * size, stop)
            if allocation is None or first * size < allocation.start or (last + 1) * size > allocation.stop:
                row = _first_outside(access, allocation, rows, frame.n)
                first, last = _limits_of(access, np.array([row]))
                self._fail_allocation(access, allocation, first, last, int(frame.cores[row]), site)

    def _fail_allocation(
        self, access: Access, allocation: Allocation | None, low: int, high: int, core: int, site: Site
    ) -> None:
        view, size = access.view, access.view.element.itemsize
        touched = f"bytes {low * size} to {(high + 1) * size - 1}"
        if allocation is None:
            raise site.fail(
                OutOfBounds,
                f"touches {touched} through %{view.name} on core {core}, where nothing is placed",
                "pass the pointer of an argument, or place an array there",
            )
        if view.argument == allocation.name and low * size >= allocation.start:
            raise site.fail(
                ArgumentError,
                f"needs {(high + 1) * size - allocation.start} bytes of argument {allocation.name} on core {core}, "
                f"which has {allocation.size}",
                "pass an array as big as the view, or make the view smaller",
            )
        raise site.fail(
            OutOfBounds,
            f"touches {touched} through %{view.name} on core {core}; {allocation.name} has bytes "
            f"{allocation.start} to {allocation.stop - 1}",
            "keep the access inside the buffer",
        )

    # ---------------------------------------------------------------------------------------------------------- reads

    def on_read(self, access: Access, values: Array, frame: Frame, site: Site) -> Array | Tainted:
        """Notes a read; ``values``, tainted where nobody wrote the element or it is padding."""
        self._note_read(access, site)
        mask = self._undefined(access, values.ndim)
        if mask is not None:
            return Tainted(values, np.broadcast_to(mask, values.shape), self._origin(access, mask, site))
        padding = padding_of(access)
        if padding is not None and padding.any():
            text = f"'{site.operation}' reads padding of %{access.view.name}"
            return Tainted(values, np.broadcast_to(padding, values.shape), Origin(PaddingRead, text, site.location))
        return values

    def require_defined(self, access: Access, frame: Frame, site: Site) -> None:
        """For index views: raises where an index was never written."""
        self._note_read(access, site)
        mask = self._undefined(access, len(access.shape) + 1)
        if mask is not None:
            raise self._origin(access, mask, site).error(site)

    def _undefined(self, access: Access, rank: int) -> Array | None:
        if access.is_empty() or self._is_complete(access):
            return None
        if access.scaled(self._ratio(access)).peek(access.arena.written, np.dtype(np.uint8)).all():
            return None
        written = self._shadow(access, access.arena.written, np.uint8)
        return (written == 0).any(axis=tuple(range(rank, written.ndim))) if written.ndim > rank else written == 0

    def _is_complete(self, access: Access) -> bool:
        if access.view.local:
            return False
        low, high = self._span(access)
        allocation = access.arena.containing(low)
        return allocation is not None and high < allocation.stop and allocation in self.complete

    def _shadow(self, access: Access, shadow: Array, dtype: Any) -> Array:
        """The entries of a shadow for each element; several along a last axis for wide elements."""
        ratio = self._ratio(access)
        return access.scaled(ratio).read(shadow.view(np.uint8), np.dtype(dtype))

    def _ratio(self, access: Access) -> int:
        arena, size = access.arena, access.view.element.itemsize
        if size < arena.granule:
            self._stamp()
            arena.refine(size)
        return size // arena.granule

    def _origin(self, access: Access, mask: Array, site: Site) -> Origin:
        place = tuple(int(axis[0]) for axis in np.nonzero(mask))
        text = (
            f"'{site.operation}' reads element {list(place[1:])} of its tile of %{access.view.name}, which nobody wrote"
        )
        return Origin(UninitialisedRead, text, site.location)

    def _note_read(self, access: Access, site: Site) -> None:
        if access.is_empty():
            return
        if (self.ordered or access.view.local) and self._written_in_launch(access):
            self._compare(access, site)
        low, high = self._span(access)
        key = (site, id(access.arena))
        note = self.reads.get(key)
        if note is None:
            note = self.reads[key] = Notes(access.arena, low, high)
        note.low, note.high = min(note.low, low), max(note.high, high)
        if len(note.accesses) < NOTES_AT_MOST:
            note.accesses.append(NotedRead(access, self.epoch, access.arena.size))
        elif not self.ordered and not access.view.local:
            scaled = access.scaled(self._ratio(access))
            note.mark(scaled, self._per_core(access.cores, access, len(scaled.shape) + 1))

    def noted(self) -> Noted:
        """What is known so far; for :meth:`forget`."""
        reads = {key: (note.low, note.high, len(note.accesses)) for key, note in self.reads.items()}
        return Noted(reads, self.epoch, None if self.seen is None else self.seen.copy())

    def forget(self, noted: Noted) -> None:
        """Drops what was noted since, because it is going to happen again."""
        self.reads = {key: note for key, note in self.reads.items() if key in noted.reads}
        for key, note in self.reads.items():
            note.low, note.high, count = noted.reads[key]
            del note.accesses[count:]
        self.epoch, self.seen = noted.epoch, noted.seen
        self.snapshots = {epoch: seen for epoch, seen in self.snapshots.items() if epoch < noted.epoch}

    def _span(self, access: Access) -> tuple[int, int]:
        """First and last byte an access touches."""
        low, high = access.limits()
        size = access.view.element.itemsize
        return low * size, (high + 1) * size - 1

    def _written_in_launch(self, access: Access) -> bool:
        """Whether this launch may have written where an access reads. Scratchpads move when they grow, so where in
        them it wrote does not count."""
        low, high = (0, ENDLESS) if access.view.local else self._span(access)
        return any(access.arena is arena and a <= high and low <= b for arena, a, b in self.writes.values())

    def _compare(self, access: Access, site: Site) -> None:
        """Raises where an element that is read was written by another core in this launch, unordered."""
        stamps = self._stamps(access)
        readers = self._per_core(access.cores, access, stamps.ndim)
        self._require_none(self._unordered(stamps, readers), access, stamps, readers, site)

    def _compare_later(self, read: NotedRead, site: Site) -> None:
        """Raises where an element that was read is written by another core in the same epoch, or in a later one in
        which that core did not know of the read. What was written before was compared when it was read."""
        access = read.access
        stamps = self._stamps(access)
        readers = self._per_core(access.cores, access, stamps.ndim)
        wrong = (stamps >= (read.epoch << CORE_BITS)) & (stamps & CORE_MASK != readers)
        if self.seen is not None and wrong.any():
            rows, columns = np.broadcast_arrays(stamps & CORE_MASK, readers)
            epochs = np.broadcast_to(stamps >> CORE_BITS, rows.shape)
            for epoch in np.unique(epochs[wrong]).tolist():
                knew = self.snapshots.get(epoch, self.seen)[rows, columns] > read.epoch
                wrong = wrong & ~((epochs == epoch) & knew)
        self._require_none(wrong, access, stamps, readers, site)

    def _compare_marks(self, note: Notes, site: Site) -> None:
        """As :meth:`_compare`, for the reads that are only marked."""
        if note.least is None or note.greatest is None or note.granule != note.arena.granule:
            return
        stamps = note.arena.stamps[: len(note.least)]
        writers = (stamps & CORE_MASK).astype(np.int64)
        alone = (note.least == writers) & (note.greatest == writers)
        wrong = (stamps >= (self.launch_epoch << CORE_BITS)) & (note.greatest >= 0) & ~alone
        if not wrong.any():
            return
        at = int(np.argmax(wrong))
        writer = int(writers[at])
        reader = int(note.least[at] if note.least[at] != writer else note.greatest[at])
        raise site.fail(
            ReadWriteRace,
            f"reads byte {at * note.granule} of {note.arena.name} memory on core {reader}, which core {writer} "
            "writes in the same launch",
            RACE_REMEDY,
        )

    def _require_none(self, wrong: Array, access: Access, stamps: Array, readers: Array, site: Site) -> None:
        """Raises the error of a race for the first element at which there is one."""
        if not wrong.any():
            return
        place = tuple(int(axis[0]) for axis in np.nonzero(wrong))
        reader = int(np.broadcast_to(readers, wrong.shape)[place])
        writer = int(np.broadcast_to(stamps & CORE_MASK, wrong.shape)[place])
        kind = RemoteReadRace if access.view.local else ReadWriteRace
        raise site.fail(
            kind,
            f"reads element {list(place[1 : 1 + len(access.shape)])} of its tile of %{access.view.name} on core "
            f"{reader}, which core {writer} writes in the same launch",
            RACE_REMEDY,
        )

    def _stamps(self, access: Access) -> Array:
        self._stamp()
        return self._shadow(access, access.arena.stamps, access.arena.stamps.dtype)

    def _stamp(self) -> None:
        """Stamps what is written already. Most writes are never looked at again in their launch, so that waits."""
        for scaled, mine in self.unstamped:
            if self.epoch >= SHORT_EPOCHS:
                scaled.arena.widen_stamps()
            scaled.write(scaled.arena.stamps.view(np.uint8), scaled.arena.stamps.dtype, mine)
        self.unstamped = []

    def _unordered(self, stamps: Array, cores: Array) -> Array:
        """Where another core wrote in this launch, and ``cores`` do not know of it."""
        wrong = stamps >= (self.launch_epoch << CORE_BITS)
        if not wrong.any():
            return wrong
        writers = stamps & CORE_MASK
        wrong = wrong & (writers != cores)
        if self.seen is not None and wrong.any():
            rows, columns = np.broadcast_arrays(cores, writers)
            wrong = wrong & ((stamps >> CORE_BITS) >= self.seen[rows, columns])
        return wrong

    def knows(self, access: Access) -> bool:
        """Whether all cores know of everything that others wrote in this launch where they access."""
        if access.is_empty() or not self._written_in_launch(access):
            return True
        stamps = self._stamps(access)
        return not self._unordered(stamps, self._per_core(access.cores, access, stamps.ndim)).any()

    @staticmethod
    def _per_core(values: Array, access: Access, rank: int) -> Array:
        """A value per core of an access, with the axes of a shadow."""
        values = values.reshape(access.cores.shape)
        if values.ndim > 1:
            return values.reshape(*values.shape, *(1,) * (rank - values.ndim))
        return values.reshape(-1, *(1,) * (rank - 1))

    # --------------------------------------------------------------------------------------------------------- writes

    def write(
        self, access: Access, values: Array | Tainted, frame: Frame, site: Site, epochs: Array | None = None
    ) -> None:
        """Checks, notes and performs a write; ``epochs`` says per core of the access when it happens, if not now.

        Cores that write the same bits to one place do not make the result depend on chance: that is a warning.
        """
        plain = values.values if isinstance(values, Tainted) else values
        if isinstance(values, Tainted):
            self._require_defined_lanes(access, values, site)
        ratio = self._ratio(access)
        scaled = access.scaled(ratio)
        raw, dtype = access.arena.bytes, access.view.element.dtype
        rank = len(scaled.shape) + 1
        writers = self._per_core(access.cores, access, rank)
        if self._written_in_launch(access):
            old = self._stamps(access).reshape(-1, *scaled.shape)
            if (old >= (self.launch_epoch << CORE_BITS)).any():
                before = access.read(raw, dtype)
                self._compare_writers(access, old, writers, differing(before, plain, rank), frame, site)
        mine = (self.epoch << CORE_BITS) | writers
        if epochs is not None:
            mine = (self._per_core(epochs, access, rank) << CORE_BITS) | writers
        self.unstamped.append((scaled, mine))
        if access.view.local:  # it moves when scratchpads grow
            self._stamp()
        access.write(raw, dtype, plain)
        if access.cores.size > 1 and not _disjoint(scaled):
            after, last = self._stamps(access).reshape(-1, *scaled.shape), access.read(raw, dtype)
            wrong = after != mine
            if wrong.any():
                self._conflict(
                    access, wrong, writers, after & CORE_MASK, differing(last, plain, wrong.ndim), frame, site
                )
        if not self._is_complete(access):
            self._mark(scaled, values, ratio)
        low, high = self._span(access)
        key = (site, id(access.arena))
        _, known_low, known_high = self.writes.get(key, (access.arena, low, high))
        self.writes[key] = (access.arena, min(low, known_low), max(high, known_high))

    @staticmethod
    def _mark(scaled: Access, values: Array | Tainted, ratio: int) -> None:
        """Notes which elements are written now; ``scaled`` is in granules, ``ratio`` of them an element."""
        lead = len(scaled.at) if isinstance(scaled, Strided) and not isinstance(scaled.at, int) else 1
        marks = np.broadcast_to(WRITTEN, (lead, *scaled.shape))
        if isinstance(values, Tainted):
            shape = np.broadcast_shapes(values.mask.shape, np.shape(values.values))
            lanes = np.broadcast_to(~values.mask, shape).astype(np.uint8)
            marks = np.broadcast_to(lanes[..., None], (*lanes.shape, ratio)) if ratio > 1 else lanes
        scaled.write(scaled.arena.written, np.dtype(np.uint8), marks)

    def _require_defined_lanes(self, access: Access, values: Tainted, site: Site) -> None:
        mask = np.broadcast_to(values.mask, np.broadcast_shapes(values.mask.shape, values.values.shape))
        padding = padding_of(access)
        wrong = mask if padding is None else mask & ~padding
        if wrong.any():
            row = int(np.nonzero(wrong)[0][0])
            cores = access.cores.reshape(-1)
            raise values.origin.error(site, int(cores[min(row, len(cores) - 1)]))

    def _compare_writers(
        self, access: Access, old: Array, writers: Array, differs: Array, frame: Frame, site: Site
    ) -> None:
        """Compares with what was written earlier in this launch."""
        wrong = self._unordered(old, writers)
        if wrong.any():
            self._conflict(access, wrong, writers, old & CORE_MASK, differs, frame, site)

    def _conflict(
        self, access: Access, wrong: Array, writers: Array, others: Array, differs: Array, frame: Frame, site: Site
    ) -> None:
        harmful = wrong & differs
        worst = harmful if harmful.any() else np.broadcast_to(wrong, np.broadcast_shapes(wrong.shape, differs.shape))
        place = tuple(int(axis[0]) for axis in np.nonzero(worst))
        core = int(np.broadcast_to(writers, worst.shape)[place])
        other = int(np.broadcast_to(others, worst.shape)[place])
        fault = site.fail(
            WriteConflict,
            f"writes element {list(place[1 : 1 + len(access.shape)])} of its tile of %{access.view.name} on core "
            f"{core}, which core {other} writes in the same launch",
            "let each core write elements of its own",
        )
        if harmful.any():
            raise fault
        message = f"{fault.message}; the values are the same"
        frame.run.warn(Diagnostic(fault.code, "warning", message, fault.location, fault.remedy))


def differing(before: Array, values: Array, rank: int) -> Array:
    """Where the bits of two arrays differ, with the axes of a shadow of ``rank`` axes."""
    size = before.dtype.itemsize
    left, right = (np.ascontiguousarray(each).view(f"u{size}") for each in (before, values))
    found = left != right
    return found.reshape(*found.shape, *(1,) * (rank - found.ndim))


def _offsets(offset: Scalar) -> list[tuple[Array | None, int]]:
    """Distinct places that views start at, each with the rows that start there (None: all)."""
    if isinstance(offset, int):
        return [(None, offset)]
    return [(np.nonzero(offset == at)[0], int(at)) for at in np.unique(offset)]


def _limits_of(access: Access, rows: Array) -> tuple[int, int]:
    if isinstance(access, Strided) and not isinstance(access.at, int):
        low, high = access.reach()
        return int(access.at[rows].min()) + low, int(access.at[rows].max()) + high
    if isinstance(access, Gathered) and len(access.places) > 1:
        return int(access.places[rows].min()), int(access.places[rows].max())
    return access.limits()


def _first_outside(access: Access, allocation: Allocation | None, rows: Array | None, n: int) -> int:
    """The first row whose places leave the allocation."""
    size = access.view.element.itemsize
    for row in range(n) if rows is None else rows.tolist():
        low, high = _limits_of(access, np.array([row]))
        if allocation is None or low * size < allocation.start or (high + 1) * size > allocation.stop:
            return row
    return 0


def _disjoint(access: Access) -> bool:
    """Whether cores surely write different places."""
    if not isinstance(access, Strided) or isinstance(access.at, int):
        return False
    if access.is_distinct():
        return True
    low, high = access.reach()
    starts = np.sort(access.at)
    return bool((starts[1:] - starts[:-1] > high - low).all())


def padding_of(access: Access) -> Array | None:
    """Which elements of an access stand for none of the tensor, by the layout of its view."""
    view = access.view
    if view.padding is None or access.is_empty():
        return None
    if isinstance(access, Strided):
        start: Any = access.at - view.offset
        relative: Access = Strided(access.arena, start, access.shape, access.strides, view, access.cores)
    else:
        places = access.places - spread(view.offset, access.places.ndim - 1)
        relative = Gathered(access.arena, places, view, access.cores)
    low, high = relative.limits()
    if low < 0 or high >= view.padding.size:
        return None
    return relative.read(view.padding.view(np.uint8), np.dtype(np.bool_))
