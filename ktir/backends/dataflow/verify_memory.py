"""V7 and V8: buffers fit their memories and do not share bytes; descriptors stay in their buffers and are aligned.

Two buffers of a scratchpad may stand on the same bytes only if both say in which launches they live and the two ranges
have no launch in common. The same holds for a ring of tiles in device memory and whatever else is there; plain buffers
of device memory may overlap, for what is touched there is told by address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from ktir.backends.dataflow.expression import Expression, Linear
from ktir.backends.dataflow.touched import region_of
from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Program, UnitCode
from ktir.dialect import dfp
from ktir.errors import CapacityExceeded, DescriptorOutOfBounds, KtirError
from ktir.machine import Machine

_ACCUMULATOR_BYTES = 4


def memory_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rules V7 and V8."""
    yield from _placement_faults(program)
    yield from _overlap_faults(program)
    yield from _queue_depths(program)
    for code in program.units:
        for instruction in code.instructions:
            yield from _descriptor_faults(program.machine, code, instruction)
            for access in instruction.accesses:
                yield from _bounds_faults(program, code, instruction, access)
            for peer in instruction.link.peers if instruction.link is not None else ():
                yield from _peer_faults(program, code, instruction, peer)


def _placement_faults(program: Program) -> Iterator[KtirError]:
    for buffer in program.buffers:
        memory = program.machine.memory(buffer.memory)
        furthest = buffer.extent[1] + (buffer.base.bound if buffer.base is not None else 0)
        if furthest > memory.usable:
            yield CapacityExceeded(
                f"buffer {buffer.name} ends at byte {furthest}, {buffer.memory} has {memory.usable} to use",
                location=buffer.location,
            )
        pitch = buffer.size if buffer.slots > 1 else 0
        steps = buffer.base.alignment if buffer.base is not None else 0
        if any(place % memory.align for place in (buffer.offset, pitch, steps)):
            yield DescriptorOutOfBounds(
                f"buffer {buffer.name} at byte {buffer.offset} with tiles of {buffer.size} bytes is not aligned to "
                f"{memory.align}",
                location=buffer.location,
            )


def _overlap_faults(program: Program) -> Iterator[KtirError]:
    ordered = sorted(program.buffers, key=lambda buffer: (region_of(buffer, 0), buffer.offset))
    live: list[Buffer] = []
    for buffer in ordered:
        region = region_of(buffer, 0)
        live = [other for other in live if region_of(other, 0) == region and other.extent[1] > buffer.offset]
        for other in live:
            exclusive = buffer.per_core or buffer.slots or other.slots
            if exclusive and not _at_other_times(buffer, other):
                place = other.location
                yield CapacityExceeded(
                    f"buffer {buffer.name} at bytes {list(buffer.extent)} overlaps {other.name} at "
                    f"{list(other.extent)} of {buffer.memory}",
                    location=buffer.location,
                    remedy="move one, or say with launches = [first, last] that they live at different times",
                    related=((place, f"{other.name} is here"),) if place else (),
                )
        live.append(buffer)


def _at_other_times(left: Buffer, right: Buffer) -> bool:
    if left.launches is None or right.launches is None:
        return False
    return left.launches[1] < right.launches[0] or right.launches[1] < left.launches[0]


def _queue_depths(program: Program) -> Iterator[KtirError]:
    for queue in program.queues:
        described = program.machine.queue(queue.source, queue.target)
        if queue.depth > described.depth:
            yield CapacityExceeded(
                f"queue {queue.name} is declared with {queue.depth} vectors, the machine's holds {described.depth}",
                location=queue.location,
            )


def _descriptor_faults(machine: Machine, code: UnitCode, instruction: Instruction) -> Iterator[KtirError]:
    most = machine.unit(code.unit).descriptor_dims
    dimensions = max((access.box.dimensions for access in instruction.accesses), default=0)
    if most and dimensions > most:
        yield CapacityExceeded(
            f"dfp.{instruction.kind} needs {dimensions} loops of an address generator, {code.unit} has {most}",
            location=instruction.location,
            remedy="put the outermost dimension into a dfp.for",
        )
    if instruction.kind in ("pe_clear", "pe_preload"):
        op = cast("dfp.PeClearOp | dfp.PePreloadOp", instruction.op)
        needed = op.rows.value.data * op.n.value.data * _ACCUMULATOR_BYTES
        room = next((m.size for m in machine.memories.values() if m.kind == "accumulator"), needed)
        if needed > room:
            yield CapacityExceeded(
                f"{op.rows.value.data} x {op.n.value.data} accumulators take {needed} bytes, there are {room}",
                location=instruction.location,
            )


def _varies(code: UnitCode, instruction: Instruction, expression: Expression) -> Sequence[int]:
    """Cores that have to be looked at one by one: one of them where all compute the same."""
    same = isinstance(expression, Linear) and isinstance(expression.constant, int)
    same = same and all(isinstance(factor, int) for _, factor in cast("Linear", expression).terms)
    same = same and not instruction.conditions and all(isinstance(count, int) for count in instruction.counts)
    return code.cores[:1] if same else code.cores


def _bounds_faults(program: Program, code: UnitCode, instruction: Instruction, access: Access) -> Iterator[KtirError]:
    buffer = access.buffer
    if access.slot and access.slot >= buffer.slots:
        yield DescriptorOutOfBounds(
            f"buffer {buffer.name} has {buffer.slots} slots, there is no slot {access.slot}",
            location=instruction.location,
        )
    low, high = access.box.span
    span = program.machine.span_limit_bytes
    for core in _varies(code, instruction, access.offset):
        space = instruction.space(core)
        if not space.points:
            continue
        first, last = space.bounds(access.offset)
        if first + low < 0 or last + high > buffer.size:
            yield DescriptorOutOfBounds(
                f"dfp.{instruction.kind} reaches bytes [{first + low}, {last + high}) of buffer {buffer.name}, "
                f"whose tiles have {buffer.size}, on core {core}",
                location=instruction.location,
            )
            return
        if span and not buffer.per_core and last + high - first - low > span:
            yield DescriptorOutOfBounds(
                f"dfp.{instruction.kind} spans {last + high - first - low} bytes of {buffer.name} on core {core}, "
                f"a core reaches {span}",
                location=instruction.location,
            )
            return


def _peer_faults(program: Program, code: UnitCode, instruction: Instruction, peer: Expression) -> Iterator[KtirError]:
    for core in code.cores:
        space = instruction.space(core)
        if space.points:
            first, last = space.bounds(peer)
            if (first < 0 and instruction.kind != "chain") or last >= program.cores:
                yield DescriptorOutOfBounds(
                    f"dfp.{instruction.kind} of core {core} names core {last if last >= program.cores else first}, "
                    f"the program has {program.cores}",
                    location=instruction.location,
                )
                return
