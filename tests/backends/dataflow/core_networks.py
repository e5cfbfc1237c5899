"""Small networks over cores and corelets made at random, some of which deadlock, and all their interleavings.

As :mod:`networks`, with what that has not: messages to another core and to several at once, sums along a chain of
cores, rings of tiles that two corelets fill or read, and steps that happen in some iterations only. A network is made
of *topics*; what one topic pushes it pops again, in the same iterations, but in which order a unit attends to its
topics is chosen at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import f16

from ktir.dialect import dfp
from tests.backends.dataflow import networks
from tests.backends.dataflow.networks import CHANNEL, Guard, interleaved, parts, search
from tests.backends.dataflow.programs import Affine, Condition, Program, Unit, binary

Place = tuple[str, int, int]
"""Unit, core, corelet."""

QUEUES = {name: networks.QUEUES[name] for name in ("x", "y", "o")}
TILES = {**networks.TILES, "summed": ("lx_st", "ring_sum"), "sum": ("ring_sum", "hbm_st")}
TWICE = frozenset({"lx_ld", "sfu", "lx_st"})
"""Units that a core has once for each corelet."""
WHEN: dict[str, tuple[Callable[[int, int], bool], Callable[[int], Callable[[Affine], Condition]]]] = {
    "first": (lambda i, count: i == 0, lambda count: lambda i: i.eq(0)),
    "later": (lambda i, count: i >= 1, lambda count: lambda i: i.ge(1)),
    "last": (lambda i, count: i == count - 1, lambda count: lambda i: i.ge(count - 1)),
    "even": (lambda i, count: i % 2 == 0, lambda count: lambda i: (i % 2).eq(0)),
}
"""Conditions on the iteration, as a function and as written in a program."""
MOST_STATES = 4_000
"""Places of all units together; a network with more is not explored."""


@dataclass(frozen=True)
class Step:
    """``vectors`` of something called ``name``, with ``others``: cores sent to, or the neighbours in a chain."""

    kind: str
    name: str
    vectors: int = 1
    others: tuple[int, ...] = ()
    when: str | None = None


@dataclass
class CoreNetwork:
    """``steps`` by place, all repeated ``count`` times; ``looped`` places as a loop, the others written out."""

    cores: int
    depths: dict[str, int]
    slots: dict[str, int]
    count: int
    looped: frozenset[Place] = frozenset()
    steps: dict[Place, list[Step]] = field(default_factory=dict)

    def ends(self, name: str, core: int, *, fills: bool) -> list[Place]:
        """Who fills, or who reads, a ring of tiles on a core."""
        kind = "reserve" if fills else "acquire"
        return [
            place
            for place, steps in self.steps.items()
            if place[1] == core and any(step.kind == kind and step.name == name for step in steps)
        ]


def random_core_network(seed: int) -> CoreNetwork:
    """A network that is small enough to explore, in an order that may or may not go well."""
    for attempt in range(100):
        choose = random.Random(seed * 100 + attempt)
        network = _network(choose)
        if network.steps and prod(len(moves) + 1 for moves in _units(network).values()) <= MOST_STATES:
            return network
    raise AssertionError("no small network")


def _network(choose: random.Random) -> CoreNetwork:
    cores, corelets = choose.choice([1, 2, 2, 3]), choose.choice([1, 1, 2])
    network = CoreNetwork(
        cores,
        {name: choose.randint(1, 2) for name in QUEUES},
        {name: choose.randint(1, 2) for name in TILES},
        choose.choice([1, 2, 2, 3]),
    )
    lists: dict[Place, list[list[Step]]] = {}

    def attend(place: Place, steps: list[Step]) -> None:
        lists.setdefault(place, []).append(steps)

    for _ in range(choose.randint(2, 4)):
        core, when = choose.randrange(cores), choose.choice([None, None, *WHEN])
        others = tuple(other for other in range(cores) if other != core)
        vectors = choose.randint(1, 3)
        topic = choose.choice(["vector", "tile", "tile", "message", "group", "chain"])
        if topic == "vector":
            corelet = choose.randrange(corelets)
            for name in ("x", "y"):
                attend(("lx_ld", core, corelet), _cut(choose, vectors, "push", name, when=when))
            attend(("sfu", core, corelet), _cut(choose, vectors, "map", "xyo", when=when))
            attend(("lx_st", core, corelet), _cut(choose, vectors, "pop", "o", when=when))
        elif topic == "tile":
            name = choose.choice(list(TILES))
            producer, consumer = TILES[name]
            tiles = choose.randint(1, 2)
            for unit, kinds in ((producer, ("reserve", "commit")), (consumer, ("acquire", "release"))):
                for corelet in range(corelets if unit in TWICE else 1):
                    together = unit == consumer and choose.random() < 0.3
                    order = [kinds[0]] * tiles + [kinds[1]] * tiles if together else list(kinds) * tiles
                    attend((unit, core, corelet), [Step(kind, name, when=when) for kind in order])
        elif topic == "message":
            other = choose.randrange(cores)
            attend(("ring_tx", core, 0), _cut(choose, vectors, "send", "c", (other,), when))
            attend(("ring_rx", other, 0), _cut(choose, vectors, "receive", "c", (core,), when))
        elif topic == "group" and others:
            attend(("ring_tx", core, 0), _cut(choose, vectors, "send", "c", others, when))
            for other in others:
                attend(("ring_rx", other, 0), _cut(choose, vectors, "receive", "c", (core,), when))
        elif topic == "chain" and cores > 1:
            way = choose.sample(range(cores), cores)
            for place, here in enumerate(way):
                ends = way[place - 1] if place else -1, way[place + 1] if place + 1 < cores else -1
                attend(("ring_sum", here, 0), [Step("chain", "s", vectors, ends, when)])
    network.steps = {place: interleaved(each, choose) for place, each in lists.items()}
    network.looped = frozenset(place for place in network.steps if choose.random() < 0.7)
    if choose.random() < 0.2:
        network.count, network.looped = 1, frozenset()
        for steps in network.steps.values():
            steps.insert(choose.randint(0, len(steps)), Step("barrier", ""))
    return network


def _cut(
    choose: random.Random, vectors: int, kind: str, name: str, others: tuple[int, ...] = (), when: str | None = None
) -> list[Step]:
    return [Step(kind, name, part, others, when) for part in parts(vectors, choose)]


# ------------------------------------------------------------------------------------------------ as a dataflow program


def as_program(network: CoreNetwork) -> Program:
    """The network in the dialect."""
    p = Program(network.cores)
    data = p.lx(1 << 16, 1 << 14, "data")
    shared = {name: p.queue(*ends, network.depths[name], name) for name, ends in QUEUES.items()}
    for number, (name, ends) in enumerate(TILES.items()):
        shared[name] = p.lx(number * 1024, 128, name, slots=network.slots[name], producer=ends[0], consumers=[ends[1]])
    for (unit, core, corelet), steps in network.steps.items():
        with p.unit(unit, [core], corelet) as u:
            if (unit, core, corelet) in network.looped:
                with u.loop(network.count) as i:
                    for step in steps:
                        if step.when is None:
                            _write(u, step, shared, data)
                        else:
                            with u.when(WHEN[step.when][1](network.count), i):
                                _write(u, step, shared, data)
            else:
                for iteration in range(network.count):
                    for step in steps:
                        if happens(step, iteration, network.count):
                            _write(u, step, shared, data)
    return p


def happens(step: Step, iteration: int, count: int) -> bool:
    """Whether a step is taken in an iteration."""
    return step.when is None or WHEN[step.when][0](iteration, count)


def _write(u: Unit, step: Step, shared, data) -> None:
    slots = {"reserve": dfp.ReserveOp, "commit": dfp.CommitOp, "acquire": dfp.AcquireOp, "release": dfp.ReleaseOp}
    elements = [step.vectors * 64]
    match step.kind:
        case "push":
            u.stream(data, 0, shared[step.name], elements, [2])
        case "pop":
            u.drain(shared[step.name], data, 0, elements, [2])
        case "map":
            u.map([shared["x"], shared["y"]], shared["o"], elements, [f16, f16], binary(arith.AddfOp))
        case "send" if len(step.others) == 1:
            u.send(data, 0, step.others[0], elements, [2])
        case "send":
            u.multicast(data, 0, step.others, elements, [2])
        case "receive":
            u.receive(data, 0, step.others[0], elements, [2])
        case "chain":
            u.chain(data, 0, data, 0, *step.others, elements, [2], [2])
        case "barrier":
            u.add(dfp.BarrierOp(1))
        case _:
            u.add(slots[step.kind](shared[step.name]))


# ------------------------------------------------------------------------------------------- as a transition system


def explore(network: CoreNetwork) -> tuple[bool, bool]:
    """Whether some order of the moves reaches the end of all units, and whether some order gets stuck before."""
    units = _units(network)
    tokens: dict[str, int] = {}
    for moves in units.values():
        for takes, gives in moves:
            for token in (*takes, *gives):
                kind, name = token.split()[:2]
                room = {**network.depths, **network.slots, "c": CHANNEL, "s": CHANNEL}
                tokens[token] = room[name] if kind == "room" else 0
    return search(list(units.values()), tokens)


def _units(network: CoreNetwork) -> dict[Place, list[Guard]]:
    """The moves of each unit, in its order."""
    return {
        place: [
            move
            for iteration in range(network.count)
            for step in steps
            if happens(step, iteration, network.count)
            for move in [_move(network, place, step)] * step.vectors
        ]
        for place, steps in network.steps.items()
    }


def _move(network: CoreNetwork, place: Place, step: Step) -> Guard:
    """What one vector, or one tile, takes and gives."""
    _, core, corelet = place
    here = f"{core}.{corelet}"

    def through(pops: str, pushes: str) -> Guard:
        full_in, room_in = [f"full {name} {here}" for name in pops], [f"room {name} {here}" for name in pops]
        full_out, room_out = [f"full {name} {here}" for name in pushes], [f"room {name} {here}" for name in pushes]
        return dict.fromkeys([*full_in, *room_out], 1), dict.fromkeys([*room_in, *full_out], 1)

    def pairs(kind: str, *, fills: bool) -> dict[str, int]:
        """One token for each unit at the other side of the ring."""
        there = network.ends(step.name, core, fills=not fills)
        ends = [(place, other) if fills else (other, place) for other in there]
        return {f"{kind} {step.name} {producer} {consumer}".replace(", ", ","): 1 for producer, consumer in ends}

    match step.kind:
        case "push":
            return through("", step.name)
        case "pop":
            return through(step.name, "")
        case "map":
            return through("xy", "o")
        case "send":
            return (
                {f"room c {core} {other}": 1 for other in step.others},
                {f"full c {core} {other}": 1 for other in step.others},
            )
        case "receive":
            return {f"full c {step.others[0]} {core}": 1}, {f"room c {step.others[0]} {core}": 1}
        case "chain":
            before, after = step.others
            takes = {f"full s {before} {core}": 1} if before >= 0 else {}
            gives = {f"room s {before} {core}": 1} if before >= 0 else {}
            return (
                takes | ({f"room s {core} {after}": 1} if after >= 0 else {}),
                gives | ({f"full s {core} {after}": 1} if after >= 0 else {}),
            )
        case "reserve":
            return pairs("room", fills=True), {}
        case "commit":
            return {}, pairs("full", fills=True)
        case "acquire":
            return pairs("full", fills=False), {}
        case "release":
            return {}, pairs("room", fills=False)
        case _:
            return {"barrier barrier": 1}, {}
