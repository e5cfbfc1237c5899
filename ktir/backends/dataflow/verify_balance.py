"""V3: over the whole program what is pushed is popped, as elements of the same types, and what is sent arrives.

Counted symbolically: an instruction contributes its amount times the product of the counts of the loops around it, for
each core and corelet apart, and so often as the conditions around it hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ktir.backends.dataflow.expression import Expression
from ktir.backends.dataflow.iteration_space import Space
from ktir.backends.dataflow.unit_program import Program
from ktir.errors import KtirError, QueueImbalance, QueueMisuse
from ktir.location import Location


def balance_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rule V3."""
    yield from _queue_faults(program)
    yield from _channel_faults(program)


@dataclass(slots=True)
class _Side:
    """Vectors and elements that one side of a queue moves; ``last`` is the last operation that moves some."""

    vectors: int = 0
    elements: int = 0
    last: Location | None = None
    types: set[str] = field(default_factory=set[str])

    def add(self, times: int, vectors: int, elements: int, location: Location | None, element: str) -> None:
        if times:
            self.types.add("i64" if element == "index" else element)
            self.vectors += times * vectors
            self.elements += times * elements
            self.last = location


@dataclass(slots=True)
class _Sides:
    pushed: _Side = field(default_factory=_Side)
    popped: _Side = field(default_factory=_Side)


def _queue_faults(program: Program) -> Iterator[KtirError]:
    sides: defaultdict[tuple[int, int, int], _Sides] = defaultdict(_Sides)
    for code in program.units:
        for instruction in code.instructions:
            for core in code.cores if instruction.pops or instruction.pushes else ():
                times = instruction.executions(core)
                for flow in instruction.pushes:
                    side = sides[flow.queue.number, core, code.corelet].pushed
                    side.add(times, flow.vectors, flow.elements, instruction.location, flow.element)
                for flow in instruction.pops:
                    side = sides[flow.queue.number, core, code.corelet].popped
                    side.add(times, flow.vectors, flow.elements, instruction.location, flow.element)
    reported: set[int] = set()
    for (number, core, corelet), both in sorted(sides.items()):
        pushed, popped = both.pushed, both.popped
        balanced = (pushed.vectors, pushed.elements) == (popped.vectors, popped.elements)
        if (balanced and pushed.types == popped.types) or number in reported:
            continue
        reported.add(number)
        queue = program.queues[number]
        related = tuple(
            (place, note)
            for place, note in ((pushed.last, "last push"), (popped.last, "last pop"))
            if place is not None
        )
        if balanced:
            yield QueueMisuse(
                f"queue {queue.name} of core {core} corelet {corelet}: {queue.source} pushes elements of "
                f"{', '.join(sorted(pushed.types))}, {queue.target} pops {', '.join(sorted(popped.types))}",
                location=popped.last,
                related=related,
            )
            continue
        yield QueueImbalance(
            f"queue {queue.name} of core {core} corelet {corelet}: {queue.source} pushes {pushed.vectors} vectors "
            f"({pushed.elements} elements), {queue.target} pops {popped.vectors} ({popped.elements} elements)",
            location=popped.last or pushed.last or queue.location,
            related=related,
        )


def _channel_faults(program: Program) -> Iterator[KtirError]:
    sent: defaultdict[tuple[str, int, int], _Side] = defaultdict(_Side)
    received: defaultdict[tuple[str, int, int], _Side] = defaultdict(_Side)
    for code in program.units:
        for instruction in code.instructions:
            link = instruction.link
            if link is None:
                continue
            box, element = instruction.accesses[0].box, instruction.accesses[0].element
            vectors = -(-box.bytes // program.machine.stick_bytes)
            for core in code.cores:
                space = instruction.space(core)
                for peer, times in _peers(space, link.sources).items():
                    received[link.net, peer, core].add(times, vectors, box.elements, instruction.location, element)
                for peer, times in _peers(space, link.targets).items():
                    sent[link.net, core, peer].add(times, vectors, box.elements, instruction.location, element)
    for net, source, target in sorted({*sent, *received}):
        given, taken = sent[net, source, target], received[net, source, target]
        if (given.vectors, given.elements) != (taken.vectors, taken.elements):
            yield QueueImbalance(
                f"core {source} sends {given.elements} elements to core {target}, which receives {taken.elements}",
                location=taken.last or given.last,
            )
            return


def _peers(space: Space, peers: tuple[Expression, ...]) -> dict[int, int]:
    """How often the iterations name each core; negative numbers stand for nobody."""
    found: dict[int, int] = defaultdict(int)
    for peer in peers:
        for core, times in space.times_of(peer).items():
            found[core] += times
    return {core: times for core, times in found.items() if core >= 0 and times}
