"""What a timed simulation consists of: events, where actors stand in time, ports, servers of device memory, totals.

All times are integer ticks from the start. An *event* is due at its time; of events of one tick those of the first kind
come first, then those about the thing with the lowest number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from ktir.backends.dataflow.costs import Cost
from ktir.backends.dataflow.token_machine import Actor, Phase, TokenQueue, popped

Kind = Literal["plain", "matrix", "port", "memory", "send", "receive"]


@dataclass(frozen=True, slots=True)
class Work:
    """An instruction as a simulation sees it. ``parts``: the ticks of each of its phases; ``counted``: its place in the
    counts of a core; ``inside``: whether it concerns one core alone; ``on_network``: whether it concerns several."""

    cost: Cost
    kind: Kind
    parts: tuple[int, ...]
    counted: int
    inside: bool
    on_network: bool


@dataclass(slots=True)
class Clock:
    """Where an actor stands in time, in ticks; ``since`` is when its present state began or begins."""

    since: int = 0
    intervals: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    array_free: int = 0
    filled: bool = True
    in_flight: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class Port:
    """A port of a scratchpad: when it is free again."""

    free: int = 0


@dataclass(slots=True)
class Request:
    """A burst of an actor that waits for a server: what it needs and what happens after it."""

    actor: Actor
    phase: Phase
    quanta: int
    issued: int
    bytes: int
    requests: int
    writes: bool
    unit_ticks: int
    port: Port
    port_ticks: int
    counted: int


@dataclass(slots=True)
class Server:
    """A part of device memory: bursts wait by number of their actor, listed in ``order``, and are served in turn."""

    number: int
    pending: dict[int, Request] = field(default_factory=dict[int, Request])
    order: list[int] = field(default_factory=list[int])
    busy: bool = False
    last: int = -1
    writes: bool | None = None


READ, WRITTEN, RING, FIRST = range(4)
"""Places in the counts of a core: bytes of device memory and of the ring, then busy ticks of each instruction."""


@dataclass(slots=True)
class Launch:
    """The launch under way. ``counts`` are what each core has moved and done so far; ``cores`` are those that did.
    ``until_end``: what each actor had spent in each way when it ended."""

    number: int
    start: int
    counts: list[list[int]]
    until_end: tuple[tuple[int, ...], ...] = ()
    cores: set[int] = field(default_factory=set[int])

    def totals(self) -> list[int]:
        """The counts over all cores."""
        return [sum(each) for each in zip(*self.counts, strict=True)]


@dataclass(slots=True)
class Spent:
    """Ticks by actor that were spent in each way."""

    busy: list[int]
    starved: list[int]
    blocked: list[int]
    stalled: list[int]

    @property
    def by_actor(self) -> tuple[tuple[int, ...], ...]:
        """Busy, starved, blocked and stalled ticks of each actor so far."""
        return tuple(zip(self.busy, self.starved, self.blocked, self.stalled, strict=True))


Payload = tuple[Actor, Phase, int] | tuple[TokenQueue, int]


Event = tuple[int, int, int, int, object]
"""Time, kind, number of what it is about, order of scheduling, and what it is about: the order in which events happen
does not depend on when they were scheduled, unless they are about the same thing."""

# Kinds of events, in the order in which those of one tick happen.
DELIVER, SERVED, FINISH, ATTEMPT = range(4)
OF_ACTORS: Final = (FINISH, ATTEMPT)
INSIDE: Final = ("plain", "matrix", "port")
"""Kinds of chunks that concern one core alone."""
ON_NETWORK: Final = ("send", "receive")
"""Kinds of chunks that concern several cores."""


def part(work: int, number: int, phases: int) -> int:
    """The share of ``work`` of one of several phases."""
    return work if phases == 1 else popped(number + 1, work, phases) - popped(number, work, phases)


def number_of(part: Actor | Phase | TokenQueue) -> int:
    """The number of an actor or queue; the phase of an actor is told by the actor."""
    return -1 if isinstance(part, Phase) else part.number
