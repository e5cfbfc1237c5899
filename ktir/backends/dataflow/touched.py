"""What every unit touches in every launch: the footprints of all accesses, told apart by memory, core and unit.

*Region*: one instance of a memory: that of a core, or the one of the device. Addresses are those of the memory, so that
buffers on the same bytes are seen as what they are. Rings of tiles are left out: who may touch a tile, and when, is
ruled by their slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ktir.backends.dataflow.footprint import Footprint, Footprints
from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Program, UnitCode

Region = tuple[str, int]
"""Name of the memory, and the core, or -1 for the device. Buffers at a symbol have a region of their own, from the
symbol on: a launch keeps them apart from others (:mod:`launch_symbols <ktir.backends.dataflow.launch_symbols>`)."""


def region_of(buffer: Buffer, core: int) -> Region:
    """Where ``core`` finds ``buffer``."""
    memory = buffer.memory if buffer.base is None else f"{buffer.memory} at {buffer.base.name}"
    return memory, core if buffer.per_core else -1


@dataclass(frozen=True)
class Touch:
    """One access of one unit of one core in one launch."""

    region: Region
    launch: int
    core: int
    code: UnitCode
    instruction: Instruction
    access: Access
    footprint: Footprint

    @property
    def actor(self) -> tuple[int, int]:
        """Whose it is."""
        return self.core, self.code.number


def touches(program: Program) -> Iterator[Touch]:
    """All accesses of plain buffers, in order of the text."""
    known = Footprints()
    for launch, code, instruction in program.instructions:
        spaces = {core: instruction.space(core) for core in (code.cores if instruction.accesses else ())}
        for access in instruction.accesses:
            if access.buffer.slots:
                continue
            for core in code.cores:
                found = known.of(access, spaces[core])
                if len(found.intervals):
                    moved = Footprint(found.intervals + access.buffer.offset, found.exact)
                    yield Touch(region_of(access.buffer, core), launch, core, code, instruction, access, moved)
