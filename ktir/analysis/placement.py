"""Whether the addresses that ``@main``'s buffers were given fit: aligned, inside the memory, apart while in use.

A buffer is in use from the first moment at which the host or a kernel writes it to the last at which either reads it.
This is read off what launches and transfers do, not off what the pass that gave the addresses believed.

Words. moment: the number of a launch or transfer in the order of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr

from ktir.analysis.accesses import Buffer
from ktir.analysis.findings import Answer, answer, distinct, doubtful, proven, unknown
from ktir.analysis.footprint import buffer_of
from ktir.analysis.launches import Program
from ktir.dialect.ktdp import memory_space_of
from ktir.dialect.ktdp.attrs import ADDRESS
from ktir.dialect.locations import location_of
from ktir.errors import BufferOverlap, CapacityExceeded, Diagnostic, UnalignedAddress
from ktir.machine import Machine
from ktir.maths.lifetimes import Room


@dataclass(frozen=True, eq=False)
class Placed:
    """A buffer with an address; ``writes`` and ``reads`` are the moments at which it is used."""

    operation: memref.AllocOp
    name: str
    room: Room
    writes: set[int] = field(default_factory=set[int])
    reads: set[int] = field(default_factory=set[int])

    @property
    def kind(self) -> str:
        """Which memory it is in."""
        return memory_space_of(self.operation.memref.type.memory_space).kind

    def may_be_in_use(self, moment: int) -> bool:
        """Whether something was written before and something is read later."""
        return min(self.writes, default=moment) < moment < max(self.reads, default=moment)

    def is_in_use(self, moment: int) -> bool:
        """Whether, besides, nothing is written before that read."""
        after = [use for use in self.writes | self.reads if use > moment]
        return self.may_be_in_use(moment) and min(after) in self.reads


def check_placement(program: Program, machine: Machine | None) -> Iterator[Answer]:
    """An answer for each buffer that has an address, and for each two that share bytes."""
    placed = placed_buffers(program)
    record_uses(program, placed)
    for each in placed.values():
        yield answer("placement", misplaced(each, machine))
    followed = all(access.footprints is not None for launch in program.launches for access in launch.accesses)
    for one, other in combinations(placed.values(), 2):
        if one.kind == other.kind and one.room.overlaps(other.room):
            found = distinct([*clashes(one, other, followed), *clashes(other, one, followed)])
            yield answer("placement", found[:1])


def placed_buffers(program: Program) -> dict[Buffer, Placed]:
    """The buffers that have addresses."""
    buffers = [buffer for launch in program.launches for buffer in launch.buffers.values()]
    buffers += [buffer for transfer in program.transfers for buffer in (transfer.source, transfer.target)]
    placed: dict[Buffer, Placed] = {}
    for buffer in dict.fromkeys(buffers):
        operation = buffer.operation
        if isinstance(operation, memref.AllocOp) and buffer.bytes is not None:
            address = operation.attributes.get(ADDRESS)
            if isinstance(address, IntegerAttr):
                start = address.value.data
                placed[buffer] = Placed(operation, buffer.name, Room(start, start + buffer.bytes))
    return placed


def record_uses(program: Program, placed: Mapping[Buffer, Placed]) -> None:
    """Notes the moments at which buffers are written and read."""
    for transfer in program.transfers:
        if transfer.source in placed:
            placed[transfer.source].reads.add(transfer.moment)
        if transfer.target in placed:
            placed[transfer.target].writes.add(transfer.moment)
    for launch in program.launches:
        for access in launch.accesses:
            for footprint in access.footprints or ():
                buffer = buffer_of(footprint, launch)
                if (used := placed.get(buffer) if buffer else None) is not None:
                    (used.writes if access.kind == "write" else used.reads).add(launch.moment)


def misplaced(each: Placed, machine: Machine | None) -> Iterator[Diagnostic]:
    """An address that is not what the buffer or the machine asks for, or leaves the memory."""
    asked = each.operation.alignment.value.data if each.operation.alignment else 1
    alignment = max(asked, machine.alignment if machine else 1)
    if each.room.start % alignment:
        yield doubtful(
            each.operation,
            UnalignedAddress,
            f"address {each.room.start} of {each.name} is no multiple of {alignment}",
            "give it an aligned address, or none and run the allocation passes",
        )
    if machine is not None:
        memory = machine.scratchpad if each.kind == "ct_local" else machine.global_memory
        if each.room.stop > memory.usable:
            yield proven(
                each.operation,
                CapacityExceeded,
                f"{each.name} ends at byte {each.room.stop}; {memory.name} has {memory.usable} bytes to use",
                "place it lower, or use a machine with more memory",
            )


def clashes(victim: Placed, other: Placed, followed: bool) -> Iterator[Diagnostic]:
    """A write to ``other`` while ``victim``, which shares bytes with it, is in use."""
    bytes_ = f"bytes {max(victim.room.start, other.room.start)} to {min(victim.room.stop, other.room.stop)}"
    text = (
        f"{other.name} shares {bytes_} with {victim.name} at {location_of(victim.operation)}, and is written while that"
    )
    remedy = "give the two different addresses, or none and run the allocation passes"
    if any(victim.is_in_use(moment) for moment in other.writes):
        yield proven(other.operation, BufferOverlap, f"{text} is in use", remedy)
    elif other.writes & victim.reads:
        yield doubtful(other.operation, BufferOverlap, f"{text} is read", remedy)
    elif not followed or any(victim.may_be_in_use(moment) for moment in other.writes):
        yield unknown(
            other.operation, f"whether {other.name} and {victim.name} are ever in use together is not decided"
        )
