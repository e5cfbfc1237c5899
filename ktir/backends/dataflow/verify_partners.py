"""V10: cores that talk to each other agree: on element types, on who sends to whom, and on the order of a chain.

How much is sent and received is a matter of V3, whether it can all be under way at once one of V4. Here: a pair of
cores exchanges elements of one type at a time, and on each side one unit does, for their order would be open
otherwise; a message to several cores names each of them once and not the sender;
the cores of a chain name each other, and following them leads to an end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ktir.backends.dataflow.unit_program import Instruction, Link, Program, UnitCode
from ktir.errors import KtirError, PartnerMismatch


def partner_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rule V10."""
    yield from _element_faults(program)
    yield from _end_faults(program)
    for code in program.units:
        for instruction in code.instructions:
            if instruction.kind == "multicast":
                yield from _group_faults(code, instruction)
            if instruction.kind == "chain":
                yield from _chain_faults(code, instruction)


def _element_faults(program: Program) -> Iterator[KtirError]:
    """The types that a pair of cores sends are those it receives."""
    sent: dict[tuple[str, int, int], dict[str, Instruction]] = {}
    received: dict[tuple[str, int, int], dict[str, Instruction]] = {}
    for code in program.units:
        for instruction in code.instructions:
            link = instruction.link
            if link is None or instruction.kind == "chain":
                continue
            element = instruction.accesses[0].element
            for core in code.cores:
                space = instruction.space(core)
                for peer in (each for value in link.targets for each in space.times_of(value)):
                    sent.setdefault((link.net, core, peer), {})[element] = instruction
                for peer in (each for value in link.sources for each in space.times_of(value)):
                    received.setdefault((link.net, peer, core), {})[element] = instruction
    for pair in sorted(sent.keys() & received.keys()):
        if sent[pair].keys() != received[pair].keys():
            given, taken = next(iter(sent[pair].values())), next(iter(received[pair].values()))
            yield PartnerMismatch(
                f"core {pair[1]} sends {', '.join(sent[pair])} to core {pair[2]}, which receives "
                f"{', '.join(received[pair])}",
                location=taken.location,
                related=((given.location, "sent here"),) if given.location else (),
            )
            return


def _end_faults(program: Program) -> Iterator[KtirError]:
    """Messages of a pair of cores are sent by one unit, and received by one."""
    ends: dict[tuple[str, str, int, int], tuple[UnitCode, Instruction]] = {}
    for code in program.units:
        for instruction in code.instructions:
            link = instruction.link
            if link is None:
                continue
            for verb, pair in _pairs(code, link, instruction):
                other, first = ends.setdefault((verb, link.net, *pair), (code, instruction))
                if other is not code:
                    yield PartnerMismatch(
                        f"{other.unit} and {code.unit} both {verb} messages of core {pair[0]} to core {pair[1]}, in no "
                        "order that is known",
                        location=instruction.location,
                        related=((first.location, f"{other.unit} here"),) if first.location else (),
                    )
                    return


def _pairs(code: UnitCode, link: Link, instruction: Instruction) -> Iterator[tuple[str, tuple[int, int]]]:
    """The pairs of cores between which an instruction moves messages, and what it does with them."""
    for core in code.cores:
        space = instruction.space(core)
        yield from (("send", (core, peer)) for value in link.targets for peer in space.times_of(value) if peer >= 0)
        yield from (("receive", (peer, core)) for value in link.sources for peer in space.times_of(value) if peer >= 0)


def _group_faults(code: UnitCode, instruction: Instruction) -> Iterator[KtirError]:
    link = instruction.link
    assert link is not None
    for core in code.cores:
        space = instruction.space(core)
        if not space.points:
            continue
        if any(peer.depths for peer in link.targets):
            groups = [[peer.value(core, indices) for peer in link.targets] for indices in space.walk(link.targets)]
        else:
            groups = [[peer.value(core, ()) for peer in link.targets]]
        for group in groups:
            named = [peer for peer in group if peer >= 0]
            if len(set(named)) < len(named) or core in named:
                yield PartnerMismatch(
                    f"dfp.multicast of core {core} names cores {named}: each once, and not the sender",
                    location=instruction.location,
                )
                return


def _chain_faults(code: UnitCode, instruction: Instruction) -> Iterator[KtirError]:
    link = instruction.link
    assert link is not None
    previous, following = link.sources[0], link.targets[0]
    if previous.depths or following.depths:
        yield PartnerMismatch("the cores of a chain are constants", location=instruction.location)
        return
    cores = [core for core in code.cores if instruction.executions(core)]
    after = {core: following.value(core, ()) for core in cores}
    before = {core: previous.value(core, ()) for core in cores}
    for core in cores:
        for other, back, verb in ((after[core], before, "hands to"), (before[core], after, "takes from")):
            if other >= 0 and back.get(other) != core:
                yield PartnerMismatch(
                    f"in a chain core {core} {verb} core {other}, which does not agree", location=instruction.location
                )
                return
    for core in cores:
        seen = {core}
        place = after[core]
        while place >= 0 and place not in seen:
            seen.add(place)
            place = after.get(place, -1)
        if place >= 0:
            yield PartnerMismatch(
                f"the chain from core {core} leads back to core {place}",
                location=instruction.location,
                remedy="let one core begin (a negative previous core) and one end it (a negative next core)",
            )
            return
