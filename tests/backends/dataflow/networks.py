"""Small networks of units made at random, some of which deadlock, and an exploration of all their interleavings.

A network is a list of *steps* for each unit: so many vectors to a queue, from two queues to a third, a tile reserved
or given back, a message over the ring (to the core itself), a barrier. It is written twice from the same list: as a
dataflow program, and as a transition system whose states are the places of the units. The second knows nothing of the
first.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import f16

from ktir.dialect import dfp
from tests.backends.dataflow.programs import Program, Unit, binary

Step = tuple[str, int, str]
"""What is done, with how many vectors, with which queue or buffer."""
Guard = tuple[dict[str, int], dict[str, int]]
"""Tokens that a move takes and tokens that it gives."""

T = TypeVar("T")

QUEUES = {
    "x": ("lx_ld", "sfu"),
    "y": ("lx_ld", "sfu"),
    "o": ("sfu", "lx_st"),
    "w": ("lx_ld", "pe"),
    "p": ("pe", "lx_st"),
}
CHANNEL = 2
"""Vectors that may be under way on the ring."""
TILES = {
    "in": ("hbm_ld", "lx_ld"),
    "back": ("lx_st", "lx_ld"),
    "out": ("lx_st", "hbm_st"),
    "sent": ("lx_st", "ring_tx"),
    "received": ("ring_rx", "lx_ld"),
}
UNITS = ("hbm_ld", "lx_ld", "sfu", "pe", "lx_st", "hbm_st", "ring_tx", "ring_rx")


@dataclass
class Network:
    """``steps`` by unit, all repeated ``count`` times; ``looped`` units as a loop, the others written out."""

    depths: dict[str, int]
    slots: dict[str, int]
    count: int
    looped: frozenset[str]
    steps: dict[str, list[Step]] = field(default_factory=dict)


def random_network(seed: int) -> Network:
    """A network in which pushes and pops add up, in an order that may or may not go well."""
    choose = random.Random(seed)
    network = Network(
        {name: choose.randint(1, 3) for name in QUEUES},
        {name: choose.randint(1, 2) for name in TILES},
        choose.choice([1, 1, 2, 3]),
        frozenset(),
    )
    steps: dict[str, list[list[Step]]] = {unit: [] for unit in UNITS}
    if choose.random() < 0.8:
        vectors = choose.randint(1, 4)
        for name in ("x", "y"):
            steps["lx_ld"].append([("push", part, name) for part in parts(vectors, choose)])
        steps["sfu"].append([("map", part, "xyo") for part in parts(vectors, choose)])
        steps["lx_st"].append([("pop", part, "o") for part in parts(vectors, choose)])
    if choose.random() < 0.5:
        vectors = choose.randint(1, 3)
        steps["lx_ld"].append([("push", part, "w") for part in parts(vectors, choose)])
        steps["pe"].append([("take", part, "w") for part in parts(vectors, choose)])
        steps["pe"].append([("emit", 1, "p")])
        steps["lx_st"].append([("pop", 1, "p")])
    for name, (producer, consumer) in TILES.items():
        if choose.random() < 0.4:
            tiles = choose.randint(1, 2)
            steps[producer].append([(kind, 1, name) for _ in range(tiles) for kind in ("reserve", "commit")])
            held = choose.random() < 0.3
            taken = ["acquire"] * tiles + ["release"] * tiles if held else ["acquire", "release"] * tiles
            steps[consumer].append([(kind, 1, name) for kind in taken])
    if choose.random() < 0.3:
        vectors = choose.randint(1, 4)
        steps["ring_tx"].append([("send", part, "c") for part in parts(vectors, choose)])
        steps["ring_rx"].append([("receive", part, "c") for part in parts(vectors, choose)])
    network.looped = frozenset(unit for unit in steps if choose.random() < 0.7)
    network.steps = {unit: interleaved(lists, choose) for unit, lists in steps.items() if lists}
    if choose.random() < 0.2:
        network.count, network.looped = 1, frozenset()
        for each in network.steps.values():
            each.insert(choose.randint(0, len(each)), ("barrier", 1, ""))
    return network


def parts(total: int, choose: random.Random) -> list[int]:
    """``total`` cut into pieces."""
    first = choose.randint(1, total)
    return [first] if first == total else [first, *parts(total - first, choose)]


def interleaved(lists: list[list[T]], choose: random.Random) -> list[T]:
    """The steps of all lists, those of one in their order."""
    left = [list(each) for each in lists]
    found: list[T] = []
    while any(left):
        found.append(choose.choice([each for each in left if each]).pop(0))
    return found


# ------------------------------------------------------------------------------------------------ as a dataflow program


def as_program(network: Network) -> Program:
    """The network in the dialect."""
    p = Program()
    data = p.lx(1 << 16, 1 << 14, "data")
    queues = {name: p.queue(*ends, network.depths[name], name) for name, ends in QUEUES.items()}
    tiles = {
        name: p.lx(number * 1024, 128, name, slots=network.slots[name], producer=ends[0], consumers=[ends[1]])
        for number, (name, ends) in enumerate(TILES.items())
    }
    for unit, steps in network.steps.items():
        with p.unit(unit) as u:
            if unit in network.looped:
                with u.loop(network.count):
                    _write(u, steps, queues, tiles, data)
            else:
                for _ in range(network.count):
                    _write(u, steps, queues, tiles, data)
    return p


def _write(u: Unit, steps: list[Step], queues, tiles, data) -> None:
    slots = {"reserve": dfp.ReserveOp, "commit": dfp.CommitOp, "acquire": dfp.AcquireOp, "release": dfp.ReleaseOp}
    for kind, vectors, name in steps:
        match kind:
            case "push":
                u.stream(data, 0, queues[name], [vectors * 64], [2])
            case "pop":
                u.drain(queues[name], data, 0, [vectors * 64], [2])
            case "map":
                u.map([queues["x"], queues["y"]], queues["o"], [vectors * 64], [f16, f16], binary(arith.AddfOp))
            case "take":
                u.add(dfp.PeLoadOp(queues[name], k=vectors, n=64, element=f16))
            case "emit":
                u.add(dfp.PeEmitOp(queues[name], rows=vectors, n=64, element=f16))
            case "send":
                u.send(data, 0, 0, [vectors * 64], [2])
            case "receive":
                u.receive(data, 0, 0, [vectors * 64], [2])
            case "barrier":
                u.add(dfp.BarrierOp(1))
            case _:
                u.add(slots[kind](tiles[name]))


# ------------------------------------------------------------------------------------------- as a transition system


def _moves(steps: list[Step]) -> list[Guard]:
    """One move for each vector or tile: what it takes and what it gives. Room is a token like any other."""
    found: list[Guard] = []
    for kind, vectors, name in steps:
        for _ in range(vectors):
            match kind:
                case "push" | "emit" | "send":
                    found.append(({f"room {name}": 1}, {f"full {name}": 1}))
                case "pop" | "take" | "receive":
                    found.append(({f"full {name}": 1}, {f"room {name}": 1}))
                case "map":
                    takes = {"full x": 1, "full y": 1, "room o": 1}
                    found.append((takes, {"room x": 1, "room y": 1, "full o": 1}))
                case "reserve":
                    found.append(({f"room {name}": 1}, {}))
                case "commit":
                    found.append(({}, {f"full {name}": 1}))
                case "acquire":
                    found.append(({f"full {name}": 1}, {}))
                case "release":
                    found.append(({}, {f"room {name}": 1}))
                case _:
                    found.append(({"barrier": 1}, {}))
    return found


def explore(network: Network) -> tuple[bool, bool]:
    """Whether some order of the moves reaches the end of all units, and whether some order gets stuck before."""
    units = [_moves(steps) * network.count for steps in network.steps.values()]
    tokens = {f"room {name}": depth for name, depth in (network.depths | network.slots).items()} | {"room c": CHANNEL}
    return search(units, tokens)


def search(units: list[list[Guard]], tokens: dict[str, int]) -> tuple[bool, bool]:
    """As :func:`explore`, for the moves of units in their order, and the tokens that there are at the start."""
    gained = [_gains(moves) for moves in units]
    start = tuple(0 for _ in units)
    seen, left = {start}, [start]
    ends = stuck = False
    while left:
        state = left.pop()
        following = list(_following(state, units, tokens, gained))
        if not following:
            at_end = all(place == len(moves) for place, moves in zip(state, units, strict=True))
            ends, stuck = ends or at_end, stuck or not at_end
        for each in following:
            if each not in seen:
                seen.add(each)
                left.append(each)
    return ends, stuck


def _gains(moves: list[Guard]) -> list[dict[str, int]]:
    """Tokens gained by the first so many moves."""
    have: dict[str, int] = {}
    found = [dict(have)]
    for takes, gives in moves:
        for token, amount in takes.items():
            have[token] = have.get(token, 0) - amount
        for token, amount in gives.items():
            have[token] = have.get(token, 0) + amount
        found.append(dict(have))
    return found


def _following(
    state: tuple[int, ...],
    units: list[list[Guard]],
    initial: dict[str, int],
    gained: list[list[dict[str, int]]],
) -> Iterator[tuple[int, ...]]:
    """The states that one move leads to; a barrier is one move of all units."""
    here = [gains[place] for place, gains in zip(state, gained, strict=True)]
    waiting = 0
    for number, (place, moves) in enumerate(zip(state, units, strict=True)):
        if place < len(moves):
            takes = moves[place][0]
            if any(token.startswith("barrier") for token in takes):
                waiting += 1
            elif all(
                initial.get(token, 0) + sum(each.get(token, 0) for each in here) >= amount
                for token, amount in takes.items()
            ):
                yield (*state[:number], place + 1, *state[number + 1 :])
    if units and waiting == len(units):
        yield tuple(place + 1 for place in state)
