"""V2: every queue and ring of tiles has exactly the producer and the consumers it declares, on paths that exist.

A queue joins two units that the machine joins; only the first pushes and only the second pops. A ring of tiles is
filled by one unit of a core, perhaps on several corelets, and read by all units it lists and no other. All units meet
at the same barriers. A unit of a core and corelet has one program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ktir.backends.dataflow.unit_program import Buffer, Instruction, Program, UnitCode
from ktir.errors import KtirError, NotCapable, QueueMisuse


def end_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rule V2."""
    yield from _duplicate_units(program)
    yield from _queue_paths(program)
    for code in program.units:
        for instruction in code.instructions:
            yield from _queue_ends(code, instruction)
            yield from _ring_ends(code, instruction)
    yield from _ring_members(program)
    yield from _barriers(program)


def _duplicate_units(program: Program) -> Iterator[KtirError]:
    seen: set[tuple[str, int, int]] = set()
    for code in program.units:
        for core in code.cores:
            key = (code.unit, core, code.corelet)
            if key in seen:
                yield QueueMisuse(
                    f"{code.unit} of core {core} corelet {code.corelet} has two programs", location=code.location
                )
                break
            seen.add(key)


def _queue_paths(program: Program) -> Iterator[KtirError]:
    for queue in program.queues:
        try:
            described = program.machine.queue(queue.source, queue.target)
        except NotCapable as error:
            yield QueueMisuse(error.message, location=queue.location)
            continue
        if queue.vector_bytes != described.width:
            yield QueueMisuse(
                f"queue {queue.name} has vectors of {queue.vector_bytes} bytes, the machine's have {described.width}",
                location=queue.location,
            )


def _queue_ends(code: UnitCode, instruction: Instruction) -> Iterator[KtirError]:
    for flow in instruction.pops:
        if flow.queue.target != code.unit:
            yield QueueMisuse(
                f"{code.unit} pops queue {flow.queue.name}, which goes to {flow.queue.target}",
                location=instruction.location,
            )
    for flow in instruction.pushes:
        if flow.queue.source != code.unit:
            yield QueueMisuse(
                f"{code.unit} pushes queue {flow.queue.name}, which comes from {flow.queue.source}",
                location=instruction.location,
            )


def _ring_ends(code: UnitCode, instruction: Instruction) -> Iterator[KtirError]:
    ring = instruction.ring
    if ring is not None:
        fills = instruction.kind in ("reserve", "commit")
        if fills and code.unit != ring.producer:
            yield QueueMisuse(
                f"{code.unit} fills buffer {ring.name}, whose producer is {ring.producer}",
                location=instruction.location,
            )
        if not fills and code.unit not in ring.consumers:
            yield QueueMisuse(
                f"{code.unit} takes tiles of buffer {ring.name}, whose consumers are {', '.join(ring.consumers)}",
                location=instruction.location,
            )
    for access in instruction.accesses:
        if access.buffer.slots:
            right = (access.buffer.producer,) if access.writes else access.buffer.consumers
            if code.unit not in right:
                verb = "writes" if access.writes else "reads"
                yield QueueMisuse(
                    f"{code.unit} {verb} buffer {access.buffer.name} without being its "
                    + ("producer" if access.writes else "consumer"),
                    location=instruction.location,
                )


@dataclass(slots=True)
class _Members:
    """Codes that fill and that take tiles of a buffer, on one core."""

    fill: list[UnitCode] = field(default_factory=list[UnitCode])
    take: list[UnitCode] = field(default_factory=list[UnitCode])


def _ring_members(program: Program) -> Iterator[KtirError]:
    for buffer in program.buffers:
        if buffer.slots:
            yield from _members_of(program, buffer)


def _members_of(program: Program, buffer: Buffer) -> Iterator[KtirError]:
    members: dict[int, _Members] = {}
    for code in program.units:
        kinds = {each.kind for each in code.instructions if each.ring is not None and each.ring.number == buffer.number}
        for core in code.cores if kinds else ():
            of_core = members.setdefault(core, _Members())
            if "reserve" in kinds:
                of_core.fill.append(code)
            if "acquire" in kinds:
                of_core.take.append(code)
    for core, found in sorted(members.items()):
        if not found.fill:
            yield QueueMisuse(
                f"buffer {buffer.name} has no unit that fills it on core {core}, but {buffer.producer} is its producer",
                location=buffer.location,
            )
            return
        missing = [name for name in buffer.consumers if all(code.unit != name for code in found.take)]
        if missing:
            yield QueueMisuse(
                f"{missing[0]} of core {core} is a consumer of buffer {buffer.name} but acquires no tile of it",
                location=buffer.location,
            )
            return


def _barriers(program: Program) -> Iterator[KtirError]:
    expected: list[int] | None = None
    for code in program.units:
        passed = [each.launch for each in code.instructions if each.kind == "barrier"]
        if expected is None:
            expected = passed
        if passed != expected:
            yield QueueMisuse(
                f"{code.unit} does not pass the same barriers as the first unit of the program",
                location=code.location,
                remedy="every unit passes every barrier, also where it has no work in the launch",
            )
