"""What a functional run works on: the bytes of all memories, with a shadow that says which of them have a value.

Words. *shadow*: one byte per byte of a memory, 0xFF where somebody wrote it. *site*: the elements that an access of a
batch means, with addresses worked out and checked against the buffer. Every tile of a ring of slots has bytes of its
own, as many as are in use at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.element_types import raw_dtype
from ktir.backends.dataflow.expression import Linear, at
from ktir.backends.dataflow.functional_batch import Batch, Team
from ktir.backends.dataflow.functional_order import RaceWatch
from ktir.backends.dataflow.functional_places import Addresses, Places, distinct, lattice, table
from ktir.backends.dataflow.unit_program import Access, Instruction, Program
from ktir.backends.dataflow.vector_clocks import Box as GrainBox
from ktir.backends.dataflow.vector_clocks import Grains
from ktir.errors import DescriptorOutOfBounds, UnwrittenRead

Array = NDArray[Any]
POISON: Final = 0xFF
DEVICE: Final = (-1, -1)
LOCAL: Final = (-2, -1)
Where = tuple[int, int]
"""Which bytes: of the device, of the scratchpads' plain buffers, or of the tiles of (team, buffer)."""


class ByteMemory(Protocol):
    """What a run needs of the device memory: its bytes."""

    bytes: Array


@dataclass(frozen=True, slots=True)
class Storage:
    """Room for tiles: ``slots`` on each of ``cores``, of ``size`` bytes.

    ``filled``: what the program reads of a tile it wrote before; it has a value if what was copied there has.
    """

    cores: int
    slots: int
    size: int
    filled: bool = False


class Memories:
    """All bytes of a run. ``initialised``: ranges of device memory that have a value, None where all that is read of it
    has. ``outputs`` are the elements that batches pushed, sent or hold, by position."""

    def __init__(
        self,
        program: Program,
        rings: Mapping[Where, Storage],
        ddr: ByteMemory,
        initialised: Sequence[tuple[int, int]] | None,
    ) -> None:
        self.program, self.ddr = program, ddr
        self.span = local_span(program)
        sizes = {LOCAL: self.span * program.cores}
        sizes |= {where: storage.cores * storage.slots * storage.size for where, storage in rings.items()}
        self.bytes: dict[Where, Array] = {where: np.empty(size, np.uint8) for where, size in sizes.items()}
        self.shadows: dict[Where, Array | None] = {
            where: None if initialised is None and where in rings and rings[where].filled else np.zeros(size, np.uint8)
            for where, size in sizes.items()
        }
        self.bytes[LOCAL].fill(POISON)
        self.bytes[DEVICE] = ddr.bytes
        self.shadows[DEVICE] = _shadow(ddr.bytes.size, initialised)
        self.outputs: dict[int, Array] = {}
        self.watch: RaceWatch | None = None

    def begin(self, launch: int) -> None:
        """Bytes of buffers whose first launch begins were written by nobody."""
        shadow = self.shadows[LOCAL]
        if shadow is None or not self.span:
            return
        of_core = shadow.reshape(self.program.cores, self.span)
        for buffer in self.program.buffers:
            if buffer.per_core and not buffer.slots and buffer.launches and buffer.launches[0] == launch:
                of_core[:, buffer.extent[0] : buffer.extent[1]] = 0


def local_span(program: Program) -> int:
    """Bytes of a scratchpad that plain buffers take, rounded up."""
    span = max((each.extent[1] for each in program.buffers if each.per_core and not each.slots), default=0)
    return span + -span % program.machine.alignment


def _shadow(size: int, initialised: Sequence[tuple[int, int]] | None) -> Array | None:
    """The shadow of device memory of which the ranges ``initialised`` have values; None for all of it."""
    if initialised is None:
        return None
    shadow = np.zeros(size, np.uint8)
    for start, stop in initialised:
        shadow[start:stop] = 0xFF
    return shadow


class Reach:
    """What the sites of access number ``number`` of an instruction have in common on a team.

    ``begins``: where the buffer, or its first tile, begins in its memory, by core; ``slots`` and ``size`` of tiles.
    ``factors`` by depth where the offset is a constant of the core plus multiples of loop indices, else None.
    """

    def __init__(self, program: Program, team: Team, instruction: Instruction, number: int, storage: Storage | None):
        self.cores, self.instruction, self.storage, self.number = team.cores, instruction, storage, number
        self.access = access = instruction.accesses[number]
        buffer = access.buffer
        self.dtype = raw_dtype(access.element)
        self.width = self.dtype.itemsize
        self.full = (1 << 8 * self.width) - 1
        self.low, self.high = access.box.span
        self.where = (team.number, buffer.number) if storage else LOCAL if buffer.per_core else DEVICE
        self.slots, self.size = storage.slots if storage else max(1, buffer.slots), buffer.size
        self.begins = np.full(len(team.cores), 0 if storage else buffer.offset, np.int64)
        if storage is not None:
            self.begins += np.arange(storage.cores, dtype=np.int64) * (storage.slots * storage.size)
        elif buffer.per_core:
            self.begins += np.array(team.cores, np.int64) * local_span(program)
        self.repeats = access.box.elements > 1 and not any(access.box.strides) and not access.writes
        ones = len(access.box.counts)
        self.box = Box((1,) * ones, (0,) * ones, access.box.width) if self.repeats else access.box
        self.factors: list[tuple[int, int]] | None = None
        if isinstance(access.offset, Linear) and not access.indirect:
            factors = [(depth, factor) for depth, factor in access.offset.terms if isinstance(factor, int)]
            self.factors = factors if len(factors) == len(access.offset.terms) else None
            constants = np.array([at(access.offset.constant, core) for core in team.cores], np.int64)
            self.least, self.most = int(constants.min()), int(constants.max())
            self.first, self.last = int(self.begins[0] + constants[0]), int((self.begins + constants).max())
            self.down = lattice(self.begins + constants)

    def offsets(self, batch: Batch) -> Addresses:
        """Offsets in the buffer, [cores, rows]."""
        rows = np.array(batch.rows, np.int64).reshape(len(batch.rows), -1)
        return np.broadcast_to(table(self.access.offset, self.cores, rows), (len(self.cores), len(rows)))

    def tiles(self, batch: Batch) -> list[int]:
        """Where the tile of each row begins, from the first one on."""
        return [tile % self.slots * self.size for tile in batch.tiles[self.number]]


class Site:
    """The elements that an access of ``batch`` means; indirect accesses have ``addresses`` only.

    ``fresh`` are tiles that nobody touched before the batch.
    """

    def __init__(self, reach: Reach, batch: Batch, fresh: set[int]) -> None:
        self.reach, self.batch, self.instruction, self.access = reach, batch, batch.instruction, reach.access
        self.dtype, self.width, self.full, self.where = reach.dtype, reach.width, reach.full, reach.where
        self.fresh = sorted({tile % reach.slots for tile in fresh})
        places = self._regular() if reach.factors is not None else None
        if places is not None:
            self.places = places
            return
        self.offsets = reach.offsets(batch)
        if not self.access.indirect and (
            int(self.offsets.min()) + reach.low < 0 or int(self.offsets.max()) + reach.high > reach.size
        ):
            raise self._outside(reach.low, reach.high)
        self.addresses = self.offsets + reach.begins[:, None] + (np.array(reach.tiles(batch) or [0], np.int64))
        self.stop = int(self.addresses.max()) + reach.high
        self.places = self._in_order(Places.of(self.addresses, reach.box))

    def _regular(self) -> Places | None:
        """The places where one strided array covers them all, found without tables."""
        reach, batch = self.reach, self.batch
        factors = reach.factors or []
        if len(factors) == 1:
            depth, factor = factors[0]
            rows = [factor * row[depth] for row in batch.rows]
        else:
            rows = [sum([factor * row[depth] for depth, factor in factors]) for row in batch.rows]
        if min(rows) + reach.least + reach.low < 0 or max(rows) + reach.most + reach.high > reach.size:
            self.offsets = reach.offsets(batch)
            raise self._outside(reach.low, reach.high)
        if batch.tiles[reach.number]:
            rows = [row + tile for row, tile in zip(rows, reach.tiles(batch), strict=True)]
        across = lattice(np.array(rows, np.int64)) if len(rows) > 1 else ((1,), (0,))
        if across is None or reach.down is None:
            return None
        self.stop = max(rows) + reach.last + reach.high
        places = Places.lattice(reach.first + rows[0], reach.down, across, reach.box)
        return places if self._apart(places) else None

    def _apart(self, places: Places) -> bool:
        """Whether no row writes to the bytes of another one."""
        if not self.access.writes or len(self.batch.rows) == 1:
            return True
        return all(distinct(piece.shape, piece.strides, self.width) for piece in places.pieces)

    def _in_order(self, places: Places) -> Places:
        """Of boxes that are written and may overlap from row to row, one piece for each row, in their order."""
        return places if self._apart(places) else Places.by_row(self.addresses, self.reach.box)

    def _outside(self, low: int, high: int) -> DescriptorOutOfBounds:
        bad = np.argwhere((self.offsets + low < 0) | (self.offsets + high > self.access.buffer.size))[0]
        offset, core = int(self.offsets[tuple(bad)]), self.batch.team.cores[int(bad[0])]
        return DescriptorOutOfBounds(
            f"dfp.{self.instruction.kind} reaches bytes [{offset + low}, {offset + high}) of buffer "
            f"{self.access.buffer.name}, whose tiles have {self.access.buffer.size}, on core {core}",
            location=self.instruction.location,
        )

    # ------------------------------------------------------------------------------------------------------ at run time

    def read(self, memories: Memories) -> Array:
        """The elements, [cores, rows, *box], checked; a repeated one once."""
        self.begin(memories)
        buffer = self.access.buffer
        shadow = memories.shadows[self.where]
        if shadow is not None and buffer.per_core:
            written = self.places.read(shadow, np.dtype(f"u{self.width}"))
            if not (written == self.full).all():
                raise unwritten(self.access, self.batch)
        return self.places.read(memories.bytes[self.where], self.dtype)

    def write(self, memories: Memories, elements: Array) -> None:
        """Stores ``elements``, [cores, rows, *box] or with ones for the box."""
        self.begin(memories)
        shadow = memories.shadows[self.where]
        if shadow is not None:
            self.places.fill(shadow, self.width, self.full)
        self.places.write(memories.bytes[self.where], self.dtype, elements)

    def carry(self, memories: Memories, source: Site) -> None:
        """After a copy from device memory: what nobody wrote there stays unwritten here."""
        before, after = memories.shadows[source.where], memories.shadows[self.where]
        if before is not None and after is not None:
            unsigned = np.dtype(f"u{self.width}")
            self.places.write(after, unsigned, source.places.read(before, unsigned))

    def require(self, memories: Memories, stop: int) -> None:
        """Raises :class:`DescriptorOutOfBounds` where device memory ends before byte ``stop``."""
        if stop > memories.ddr.bytes.size:
            raise DescriptorOutOfBounds(
                f"buffer {self.access.buffer.name} reaches byte {stop} of a device memory of {memories.ddr.bytes.size}",
                location=self.instruction.location,
            )

    def begin(self, memories: Memories) -> None:
        """Checks what is known at run time only; empties the shadow of new tiles."""
        if self.where == DEVICE:
            self.require(memories, self.stop)
        shadow = memories.shadows[self.where]
        storage = self.reach.storage
        if self.fresh and shadow is not None and storage is not None:
            shadow.reshape(storage.cores, storage.slots, storage.size)[:, self.fresh] = 0
        if (
            memories.watch is not None
            and self.batch.known
            and not self.access.indirect
            and not self.access.buffer.slots
        ):
            box = self.access.box
            bits = self.places.read(memories.bytes[self.where], self.dtype)
            self.touch(memories, GrainBox(self._in_memory(memories), box.counts, box.strides, box.width), bits)

    def touch(self, memories: Memories, grains: Grains, bits: Array) -> None:
        """Tells the watch of races, if there is one and the bytes could be raced for."""
        if memories.watch is not None and self.batch.known and not self.access.buffer.slots:
            batch = self.batch
            memories.watch.touch(batch.unit, batch.known[0], self.instruction, self.access, grains, bits)

    def _in_memory(self, memories: Memories) -> int:
        """The address as the core or the device has it."""
        start = self.places.pieces[0].start
        return start - self.batch.team.cores[0] * memories.span if self.where == LOCAL else start


def unwritten(access: Access, batch: Batch) -> UnwrittenRead:
    """The error for a read of bytes without a value."""
    return UnwrittenRead(
        f"dfp.{batch.instruction.kind} reads bytes of buffer {access.buffer.name} that nobody wrote",
        location=batch.instruction.location,
    )
