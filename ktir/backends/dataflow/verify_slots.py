"""V5: a unit uses only tiles it holds, and gives back every tile it takes, so that the program can run again.

Each rule is one of counts that must not become negative on the way: commits behind reserves, releases behind acquires,
and where a unit reads what it fills itself, acquires behind commits, for nobody else would end that wait. Loops are not
walked: a body that gains nothing leaves every iteration as the first; one that gains or loses is worst at its first or
last iteration. Where a condition decides whether a tile is taken or given back, the unit's own order is walked instead,
for ``MOST_STEPS`` instructions; what comes after is left to the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ktir.backends.dataflow.cursor import Cursor
from ktir.backends.dataflow.expression import at
from ktir.backends.dataflow.unit_program import (
    Access,
    Branch,
    Buffer,
    Instruction,
    LoopEnd,
    LoopStart,
    Program,
    UnitCode,
)
from ktir.errors import KtirError, QueueImbalance, SlotMisuse

_TAKES: Final = {
    "reserve": ("reserved", 1),
    "commit": ("reserved", -1),
    "acquire": ("held", 1),
    "release": ("held", -1),
}
_UNKNOWN: Final = 1 << 40
"""So many tiles that nothing is missed."""
MOST_STEPS: Final = 100_000
"""Instructions of a unit that are walked."""


def slot_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rule V5."""
    yield from _tenancy_faults(program)
    for code in program.units:
        yield from _held_faults(code)
    yield from _ring_faults(program)


def _tenancy_faults(program: Program) -> Iterator[KtirError]:
    """Tiles are taken only in the launches in which their bytes belong to the buffer."""
    for launch, _, instruction in program.instructions:
        for buffer in _used(instruction):
            if buffer.launches is not None and not buffer.launches[0] <= launch <= buffer.launches[1]:
                yield SlotMisuse(
                    f"dfp.{instruction.kind} uses buffer {buffer.name} in launch {launch}, which has its bytes in "
                    f"launches {buffer.launches[0]} to {buffer.launches[1]}",
                    location=instruction.location,
                )


def _used(instruction: Instruction) -> Iterator[Buffer]:
    yield from (access.buffer for access in instruction.accesses)
    if instruction.ring is not None:
        yield instruction.ring


# ---------------------------------------------------------------------------------------------------------------- held


@dataclass(frozen=True, slots=True)
class _Need:
    """``instruction`` needs ``least`` tiles of a count, of which the unit has ``have`` at worst."""

    instruction: Instruction
    least: int
    have: int
    message: str
    remedy: str


@dataclass(slots=True)
class _Effect:
    """What a stretch of code does to the counts: by (buffer, what), the gain; and what it needs on the way.

    ``decided``: a condition decides about some of it.
    """

    gains: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict[tuple[int, str], int](int))
    needs: dict[tuple[int, str], list[_Need]] = field(
        default_factory=lambda: defaultdict[tuple[int, str], list[_Need]](list)
    )
    decided: bool = False


def _held_faults(code: UnitCode) -> Iterator[KtirError]:
    """One core at a time, of those that differ."""
    reported: set[int] = set()
    for core in code.cores:
        effect = _Effect()
        _walk(code, core, 0, len(code.nodes), effect)
        missed = _missed_on_the_way(code, core) if effect.decided else _missed(effect)
        for need in missed:
            if need.instruction.number not in reported:
                reported.add(need.instruction.number)
                yield SlotMisuse(need.message, location=need.instruction.location, remedy=need.remedy)


def _missed(effect: _Effect) -> Iterator[_Need]:
    return (need for needs in effect.needs.values() for need in needs if need.have < need.least)


def _missed_on_the_way(code: UnitCode, core: int) -> Iterator[_Need]:
    """What is missed when the instructions are executed one after the other."""
    cursor, effect = Cursor(code, core), _Effect()
    for _ in range(MOST_STEPS):
        if cursor.instruction is None:
            return
        _step(code, cursor.instruction, effect)
        yield from _missed(effect)
        effect.needs.clear()
        cursor.advance()


def _walk(code: UnitCode, core: int, place: int, end: int, effect: _Effect) -> None:
    """Adds the effect of the nodes from ``place`` to ``end``."""
    while place < end:
        node = code.nodes[place]
        if isinstance(node, LoopStart):
            body = _Effect()
            _walk(code, core, place + 1, node.end - 1, body)
            _repeat(effect, body, at(node.count, core))
            place = node.end
        elif isinstance(node, Branch):
            body = _Effect()
            _walk(code, core, place + 1, node.end, body)
            _repeat(effect, body, 1)
            for key, gain in body.gains.items():
                if gain:
                    effect.gains[key] = _UNKNOWN
                    effect.decided = True
            place = node.end
        elif isinstance(node, LoopEnd):
            place += 1
        else:
            _step(code, node, effect)
            place += 1


def _repeat(effect: _Effect, body: _Effect, times: int) -> None:
    """Adds ``times`` executions of a body: what it needs is shortest in the first or the last of them."""
    if times <= 0:
        return
    effect.decided = effect.decided or body.decided
    for key, needs in body.needs.items():
        lost = min(0, body.gains[key]) * (times - 1)
        for need in needs:
            have = need.have + effect.gains[key] + lost
            effect.needs[key].append(_Need(need.instruction, need.least, have, need.message, need.remedy))
    for key, gain in body.gains.items():
        effect.gains[key] += times * gain


def _step(code: UnitCode, instruction: Instruction, effect: _Effect) -> None:
    for access in instruction.accesses:
        if access.buffer.slots:
            _need_access(instruction, access, effect)
    ring = instruction.ring
    if ring is None:
        return
    what, gain = _TAKES[instruction.kind]
    key = (ring.number, what)
    if gain < 0:
        before = "reserve" if what == "reserved" else "acquire"
        message = f"dfp.{instruction.kind} of buffer {ring.name} without a dfp.{before}"
        effect.needs[key].append(_Need(instruction, 1, effect.gains[key], message, f"dfp.{before} it before"))
    effect.gains[key] += gain
    own = (ring.number, "own")
    if instruction.kind == "commit":
        effect.gains[own] += 1
    if instruction.kind == "acquire":
        if ring.producer == code.unit:
            message = (
                f"dfp.acquire of buffer {ring.name} waits for a tile that only {code.unit} itself would commit later"
            )
            effect.needs[own].append(_Need(instruction, 1, effect.gains[own], message, "dfp.commit it before"))
        effect.gains[own] -= 1


def _need_access(instruction: Instruction, access: Access, effect: _Effect) -> None:
    verb, before, what = ("writes", "reserve", "reserved") if access.writes else ("reads", "acquire", "held")
    key = (access.buffer.number, what)
    message = f"dfp.{instruction.kind} {verb} a tile of buffer {access.buffer.name} that the unit does not hold"
    least = 1 if access.writes else access.slot + 1
    effect.needs[key].append(_Need(instruction, least, effect.gains[key], message, f"dfp.{before} it before"))


# -------------------------------------------------------------------------------------------------------------- balance


def _ring_faults(program: Program) -> Iterator[KtirError]:
    counts: defaultdict[tuple[int, int, int], dict[str, int]] = defaultdict(
        lambda: {"reserve": 0, "commit": 0, "acquire": 0, "release": 0}
    )
    last: dict[tuple[int, int], Instruction] = {}
    for code in program.units:
        for instruction in code.instructions:
            if instruction.ring is not None:
                last[instruction.ring.number, code.number] = instruction
                for core in code.cores:
                    counts[instruction.ring.number, core, code.number][instruction.kind] += instruction.executions(core)
    produced: dict[tuple[int, int], int] = {}
    for (number, core, _), found in counts.items():
        if found["reserve"]:
            produced[number, core] = max(produced.get((number, core), 0), found["commit"])
    reported: set[tuple[int, int]] = set()
    for (number, core, code), found in sorted(counts.items()):
        fault = _ring_fault(program, number, core, program.units[code], found, produced.get((number, core), 0))
        if fault is not None and (number, code) not in reported:
            reported.add((number, code))
            yield QueueImbalance(fault, location=last[number, code].location)


def _ring_fault(
    program: Program, number: int, core: int, code: UnitCode, found: dict[str, int], committed: int
) -> str | None:
    unit = f"{code.unit} of corelet {code.corelet}" if code.corelet else code.unit
    name = f"buffer {program.buffers[number].name} of core {core}: {unit}"
    if found["reserve"] != found["commit"]:
        return f"{name} reserves {found['reserve']} tiles and commits {found['commit']}"
    if found["acquire"] != found["release"]:
        return f"{name} acquires {found['acquire']} tiles and releases {found['release']}"
    if found["reserve"] and found["commit"] != committed:
        return f"{name} commits {found['commit']} tiles, another corelet {committed}"
    takes = not found["reserve"] and (found["acquire"] or code.unit in program.buffers[number].consumers)
    if takes and found["acquire"] != committed:
        return f"{name} takes {found['acquire']} tiles, {committed} are committed"
    return None
