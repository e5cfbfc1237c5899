"""Gathers and scatters: rows of a buffer whose places are numbers in another one, all rows of a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.functional_batch import Batch
from ktir.backends.dataflow.functional_memory import LOCAL, Memories, Site, unwritten
from ktir.backends.dataflow.vector_clocks import Scattered
from ktir.dialect import dfp
from ktir.errors import DescriptorOutOfBounds

Array = NDArray[Any]


def indirect(batch: Batch, numbers: Site, source: Site, target: Site) -> Callable[[Memories], None]:
    """The executor of a gather or a scatter: rows by ``numbers`` from ``source`` to ``target``."""
    gathers = batch.instruction.kind == "gather"
    rows, lines = (source, target) if gathers else (target, source)
    far = _Rows(batch, rows)
    shape = (*rows.addresses.shape, lines.access.box.counts[0])

    def execute(memories: Memories) -> None:
        chosen = np.broadcast_to(numbers.read(memories), shape)
        places = far.places(memories, chosen)
        if gathers:
            lines.write(memories, far.read(memories, places))
            far.carry(memories, places, lines)
        else:
            far.write(memories, places, lines.read(memories))

    return execute


class _Rows:
    """The indexed side: rows at ``site.addresses`` plus a multiple of the row stride.

    A row is moved in *runs*: ``run`` bytes that follow each other, as many as the box has at a stretch.
    """

    def __init__(self, batch: Batch, site: Site) -> None:
        self.batch, self.site, self.access = batch, site, site.access
        self.stride = cast("dfp.IndirectOperation", batch.instruction.op).row_stride.value.data
        box = self.access.box.merged
        counts, strides, self.run = list(box.counts), list(box.strides), box.width
        if strides and strides[-1] == box.width:
            self.run *= counts.pop()
            strides.pop()
        self.inner = np.zeros(1, np.int64)
        for count, step in zip(counts, strides, strict=True):
            self.inner = (self.inner[:, None] + np.arange(count, dtype=np.int64) * step).ravel()
        self.shape = (*site.addresses.shape, -1, *self.access.box.counts)

    def places(self, memories: Memories, numbers: Array) -> Array:
        """The first byte of every run, [cores, rows, lines, runs]; checked."""
        buffer, (low, high) = self.access.buffer, self.access.box.span
        away = numbers.astype(np.int64) * self.stride
        offsets = self.site.offsets[..., None] + away
        outside = (offsets + low < 0) | (offsets + high > buffer.size)
        if outside.any():
            bad = tuple(np.argwhere(outside)[0])
            raise DescriptorOutOfBounds(
                f"dfp.{self.batch.instruction.kind}: index {int(numbers[bad])} leads outside buffer {buffer.name} "
                f"on core {self.batch.team.cores[int(bad[0])]}",
                location=self.batch.instruction.location,
            )
        found = (self.site.addresses[..., None] + away)[..., None] + self.inner
        if not buffer.per_core:
            self.site.require(memories, int(found.max()) + self.run)
        self.site.begin(memories)
        return found

    def read(self, memories: Memories, places: Array) -> Array:
        """The elements of all rows."""
        self._touch(memories, places)
        shadow = memories.shadows[self.site.where]
        if shadow is not None and self.access.buffer.per_core and not (self._taken(shadow, places) == 0xFF).all():
            raise unwritten(self.access, self.batch)
        return self._taken(memories.bytes[self.site.where], places).view(self.site.dtype).reshape(self.shape)

    def write(self, memories: Memories, places: Array, elements: Array) -> None:
        """Stores rows in their order: of two at one place the later one stays."""
        self._touch(memories, places)
        every = np.broadcast_to(elements, (*places.shape[:3], *self.access.box.counts))
        contents = np.ascontiguousarray(every).view(np.uint8).reshape(*places.shape, self.run)
        self._store(memories.bytes[self.site.where], places, contents)
        shadow = memories.shadows[self.site.where]
        if shadow is not None:
            self._store(shadow, places, np.full_like(contents, 0xFF))

    def carry(self, memories: Memories, places: Array, lines: Site) -> None:
        """After a gather from device memory: what nobody wrote there stays unwritten."""
        before, after = memories.shadows[self.site.where], memories.shadows[lines.where]
        if before is not None and after is not None and not self.access.buffer.per_core:
            unsigned = np.dtype(f"u{self.site.width}")
            lines.places.write(after, unsigned, self._taken(before, places).view(unsigned).reshape(self.shape))

    def _taken(self, memory: Array, places: Array) -> Array:
        """The bytes of all runs, [cores, rows, lines, runs, run]."""
        runs, numbers = self._runs(memory, places)
        return runs[numbers].view(np.uint8).reshape(*places.shape, self.run)

    def _store(self, memory: Array, places: Array, contents: Array) -> None:
        """Stores the bytes of all runs: those of a line that is stored to the place of another come after it."""
        runs, numbers = self._runs(memory, places)
        ordered = numbers.swapaxes(0, 1).reshape(-1)
        values = np.ascontiguousarray(contents.swapaxes(0, 1)).reshape(-1, self.run).view(runs.dtype)[:, 0]
        if ordered.size > 1 and (np.diff(np.sort(ordered)) * runs.strides[0] < self.run).any():
            for number, value in zip(ordered.tolist(), values, strict=True):
                runs[number] = value
        else:
            runs[ordered] = values

    def _runs(self, memory: Array, places: Array) -> tuple[Array, Array]:
        """``memory`` as runs that overlap, and which of them are meant."""
        pitch, first = self.site.width, int(places.flat[0]) % self.site.width
        if ((places - first) % pitch).any():
            pitch, first = 1, 0
        count = max(0, memory.size - first - self.run) // pitch + 1
        runs = np.ndarray((count,), np.dtype((np.void, self.run)), memory.data, first, (pitch,))
        return runs, (places - first) // pitch

    def _touch(self, memories: Memories, places: Array) -> None:
        """Tells the watch of races of every run."""
        if memories.watch is not None and self.batch.known:
            begin = self.batch.team.cores[0] * memories.span if self.site.where == LOCAL else 0
            reach = memories.bytes[self.site.where][int(places.min()) : int(places.max()) + self.run]
            self.site.touch(memories, Scattered(places.ravel() - begin, self.run), reach)


__all__ = ["indirect"]
