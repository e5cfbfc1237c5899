"""Byte-addressed memory of a simulated machine, and what is known about each of its bytes.

An *arena* is one memory space: the global memory, or the scratchpads of all cores one behind the other. Its bytes start
as *poison*, a pattern that reads as NaN or -1, so that a value nobody wrote does not look like one. Beside the bytes
stands the *shadow*, which is kept only while a program is checked: per granule whether it was ever written, and by
which core in which epoch last.

Words. *allocation*: a named range of bytes that belongs together; an access has to stay inside the one it started in.
*granule*: the bytes one entry of the shadow stands for, the smallest element size in use. *epoch*: a counter that the
executor moves on at each launch and each synchronisation. All addresses and sizes are bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.errors import LimitExceeded, OutOfBounds

Array = NDArray[Any]

POISON = 0xFF
ALIGNMENT = 128
WRITTEN = np.uint8(1)
CORE_BITS = 17
"""Room for 65536 cores and the host in a stamp; the epoch stands above."""
SHORT_EPOCHS = 1 << (31 - CORE_BITS)
"""Epochs that fit a stamp of 32 bits."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The bytes ``start`` up to ``start + size`` of an arena. ``name`` is what the program calls them, ``number`` says
    how many were placed before."""

    name: str
    start: int
    size: int
    number: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.size


class Arena:
    """``size`` bytes of poison that grow on demand up to ``limit``.

    Growing keeps the contents. ``bytes`` is replaced then, so hold on to the arena, not to the array.
    """

    def __init__(self, name: str, size: int = 0, *, limit: int, granule: int = 1) -> None:
        self.name, self.limit, self.granule = name, limit, granule
        self.bytes: Array = np.empty(0, np.uint8)
        self._room: Array = self.bytes
        self.allocations: list[Allocation] = []
        self._starts: list[int] = []
        self._typed: dict[np.dtype[Any], Array] = {}
        self._written: Array | None = None
        self._stamps: Array | None = None
        self.grow(size)

    @staticmethod
    def over(name: str, contents: Array, *, granule: int) -> Arena:
        """An arena that is one allocation, in the memory that ``contents`` has already."""
        arena = Arena(name, limit=contents.size, granule=granule)
        arena.bytes = arena._room = contents
        arena._listed(name, 0, contents.size)
        return arena

    @property
    def size(self) -> int:
        return self.bytes.size

    # ------------------------------------------------------------------------------------------------------------ bytes

    def reserve(self, capacity: int) -> None:
        """Makes growing up to ``capacity`` bytes cheap; takes no memory yet. No more than the limit is reserved."""
        capacity = -(-min(capacity, self.limit) // ALIGNMENT) * ALIGNMENT
        if capacity <= self._room.size:
            return
        room = np.empty(capacity, np.uint8)
        room[: self.size] = self.bytes
        self._room, self.bytes = room, room[: self.size]
        self._typed.clear()
        self._written = _extended(self._written, capacity // self.granule)
        self._stamps = _extended(self._stamps, capacity // self.granule)

    def grow(self, size: int) -> None:
        """Makes room for ``size`` bytes in all; raises :class:`LimitExceeded` beyond the limit."""
        before = self.size
        if size > before:
            self._extend(size)
            self.bytes[before:] = POISON

    def _extend(self, size: int) -> None:
        """Makes room for ``size`` bytes, more than before, and says nothing of what is in the new ones."""
        self.require_room(size)
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if size > self._room.size:
            self.reserve(max(size, min(2 * self.size, self.limit)))
        self.bytes = self._room[:size]
        self._typed.clear()

    def require_room(self, size: int) -> None:
        """Raises :class:`LimitExceeded` where ``size`` bytes are more than the limit."""
        if size > self.limit:
            raise LimitExceeded(
                f"{self.name} memory of {size} bytes is more than the {self.limit} that a run may use",
                remedy="raise max_bytes, or use smaller arrays",
            )

    def respace(self, parts: int, old: int, new: int) -> None:
        """Moves ``parts`` equal pieces of ``old`` bytes apart, to ``new`` bytes each, keeping their contents."""
        before = self.bytes[: parts * old].reshape(parts, old)
        written, stamps = self._written, self._stamps
        self._written = self._stamps = None
        self._room = self.bytes = np.empty(0, np.uint8)
        self.grow(parts * new)
        self.bytes[: parts * new].reshape(parts, new)[:, :old] = before
        fine, wide = old // self.granule, new // self.granule
        if written is not None:
            self.written[: parts * wide].reshape(parts, wide)[:, :fine] = written[: parts * fine].reshape(parts, fine)
        if stamps is not None:
            self._stamps = self.stamps.astype(stamps.dtype, copy=False)
            self.stamps[: parts * wide].reshape(parts, wide)[:, :fine] = stamps[: parts * fine].reshape(parts, fine)

    def elements(self, dtype: np.dtype[Any]) -> Array:
        """The whole arena as elements of ``dtype``; the same bytes, not a copy."""
        found = self._typed.get(dtype)
        if found is None:
            whole = self.size // dtype.itemsize * dtype.itemsize
            found = self._typed[dtype] = self.bytes[:whole].view(dtype)
        return found

    # ------------------------------------------------------------------------------------------------------ allocations

    def allocate(self, name: str, size: int, *, start: int | None = None) -> Allocation:
        """A range of its own, aligned, with a guard behind it; or the range at ``start``, which may overlap others."""
        if start is None:
            start = self._free()
        if start < 0:
            raise OutOfBounds(f"{name} starts at byte {start}", remedy="give an address that is not negative")
        self.grow(start + size)
        return self._listed(name, start, size)

    def hold(self, name: str, contents: Array) -> Allocation:
        """A range of its own, as big as an array of bytes, that holds them. Nothing but the guards becomes poison."""
        before, start = self.size, self._free()
        stop = start + contents.size
        if stop > before:
            self._extend(stop)
        self.bytes[before:start] = POISON
        self.bytes[start:stop] = contents
        self.bytes[max(before, stop) :] = POISON
        return self._listed(name, start, contents.size)

    def _free(self) -> int:
        """The first aligned byte behind all allocations and a guard."""
        start = max((a.stop for a in self.allocations), default=0)
        return -(-(start + (ALIGNMENT if start else 0)) // ALIGNMENT) * ALIGNMENT

    def _listed(self, name: str, start: int, size: int) -> Allocation:
        allocation = Allocation(name, start, size, len(self.allocations))
        position = bisect_right(self._starts, start)
        self._starts.insert(position, start)
        self.allocations.insert(position, allocation)
        return allocation

    def containing(self, address: int, stop: int | None = None) -> Allocation | None:
        """The allocation that holds the byte at ``address``, and those before ``stop`` if there is one that does.

        Allocations that are in use at different times may share bytes: of several, the one that was placed last.
        """
        found = [each for each in self.allocations[: bisect_right(self._starts, address)] if address < each.stop]
        whole = [each for each in found if stop is None or stop <= each.stop]
        return max(whole or found, key=lambda each: each.number, default=None)

    # ----------------------------------------------------------------------------------------------------------- shadow

    def refine(self, granule: int) -> None:
        """Makes the shadow fine enough for elements of ``granule`` bytes."""
        if granule >= self.granule:
            return
        ratio = self.granule // granule
        if self._written is not None:
            self._written = np.repeat(self._written, ratio)
        if self._stamps is not None:
            self._stamps = np.repeat(self._stamps, ratio)
        self.granule = granule

    @property
    def written(self) -> Array:
        """Per granule 1 where somebody wrote, 0 where the bytes are poison."""
        if self._written is None:
            self._written = np.zeros(self._room.size // self.granule, np.uint8)
        return self._written

    @property
    def stamps(self) -> Array:
        """Per granule ``epoch << CORE_BITS | core`` of the last write by a core; 0 where there was none."""
        if self._stamps is None:
            self._stamps = np.zeros(self._room.size // self.granule, np.int32)
        return self._stamps

    def widen_stamps(self) -> None:
        """Makes room for any number of epochs."""
        self._stamps = self.stamps.astype(np.int64, copy=False)

    def mark_written(self, allocation: Allocation) -> None:
        """Says that the host filled all of ``allocation``."""
        self.written[allocation.start // self.granule : -(-allocation.stop // self.granule)] = WRITTEN

    def poison(self, allocation: Allocation) -> None:
        """Makes all of ``allocation`` bytes that nobody wrote, whatever was there."""
        self.bytes[allocation.start : allocation.stop] = POISON
        if self._written is not None:
            self._written[allocation.start // self.granule : -(-allocation.stop // self.granule)] = 0


def _extended(shadow: Array | None, size: int) -> Array | None:
    if shadow is None:
        return None
    grown = np.zeros(size, shadow.dtype)
    grown[: shadow.size] = shadow
    return grown
