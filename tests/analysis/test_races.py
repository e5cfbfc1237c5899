"""Races inside kernels with exchanges, against the plain definition on a graph of events.

A generated kernel is a list of steps that every core goes through: accesses to one element, and exchanges. Two events
of different cores on the same element, one of them a write, race where neither is reachable from the other, by the
order of a core's own steps and from each producer's contribution to whoever waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.analysis.check import examine
from ktir.dialect.text.parser import parse_module
from tests.faults.catalogue import kernel, tile, view
from tests.settings import examples

CORES = 4
RACES = {"WriteConflict", "ReadWriteRace", "RemoteReadRace"}


@dataclass(frozen=True)
class Access:
    """Core c goes to element ``(c * factor + shift) mod CORES``."""

    kind: str
    factor: int
    shift: int

    def element(self, core: int) -> int:
        return (core * self.factor + self.shift) % CORES


@dataclass(frozen=True)
class Exchange:
    """Half-open ranges of tiles; ``lag`` restricts consumer c to producer c - lag."""

    producers: tuple[int, int]
    consumers: tuple[int, int]
    lag: int | None

    def heard(self, producer: int, consumer: int) -> bool:
        members = producer in range(*self.producers) and consumer in range(*self.consumers)
        return members and self.lag in (None, consumer - producer)


@dataclass(frozen=True)
class Produce:
    number: int


@dataclass(frozen=True)
class Take:
    number: int
    exchange: Exchange


Step = Access | Produce | Take

accesses = st.builds(Access, st.sampled_from(["read", "write"]), st.integers(0, 2), st.integers(0, CORES - 1))
ranges = st.tuples(st.integers(0, CORES - 1), st.integers(1, CORES)).map(lambda r: (r[0], min(CORES, r[0] + r[1])))
exchanges = st.builds(Exchange, ranges, ranges, st.none() | st.integers(-1, 2))


@st.composite
def kernels(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = list(draw(st.lists(accesses, min_size=2, max_size=4)))
    for number in range(draw(st.integers(0, 2))):
        produced = draw(st.integers(0, len(steps)))
        steps.insert(produced, Produce(number))
        steps.insert(draw(st.integers(produced + 1, len(steps))), Take(number, draw(exchanges)))
    return steps


def text(steps: list[Step]) -> str:
    taken = {step.number: step.exchange for step in steps if isinstance(step, Take)}
    body = "%id = ktdp.get_compute_tile_id : index\n%n = arith.index_cast %id : index to i32\n"
    body += "%f = arith.sitofp %n : i32 to f16\n%own = tensor.splat %f : tensor<1xf16>\n"
    body += view("x", "%x_ptr", 64)
    body += "".join(lines(number, step, taken) for number, step in enumerate(steps))
    return kernel(body, f"[{CORES}]")


def lines(number: int, step: Step, taken: dict[int, Exchange]) -> str:
    future = "<(tensor<1xf16>), groups = #g0>"
    match step:
        case Access():
            place = tile(f"t{number}", "x", f"(%id * {step.factor} + {step.shift}) mod {CORES}", 1)
            if step.kind == "read":
                return place + f"%v{number} = ktdp.load %t{number} : <1xindex> -> tensor<1xf16>\n"
            return place + f"ktdp.store %own, %t{number} : tensor<1xf16>, <1xindex>\n"
        case Produce():
            producers = tiles(*taken[step.number].producers)
            return (
                f"%f{step.number} = ktdp.inter_tile_produce producer_tiles_per_group = {producers} -> {future} {{\n"
                "^bb0(%g: index):\n  ktdp.yield_partial %own : tensor<1xf16>\n}\n"
            )
        case Take():
            lag, dependency = step.exchange.lag, ""
            if lag is not None:
                dependency = f"producer_dependency_per_consumer = affine_set<(p)[c] : (p - c + {lag} == 0)>, "
            return (
                f"%r{step.number} = ktdp.inter_tile_reduce(%f{step.number}) consumer_tiles_per_group = "
                f"{tiles(*step.exchange.consumers)}, {dependency}identity(%own : tensor<1xf16>) : {future} -> "
                "tensor<1xf16> {\n^bb0(%a: tensor<1xf16>, %b: tensor<1xf16>):\n"
                "  ktdp.yield_reduced %a : tensor<1xf16>\n}\n"
            )


def tiles(first: int, stop: int) -> str:
    return f"affine_set<(i)[g] : (i - {first} >= 0, {stop - 1} - i >= 0)>"


def has_race(steps: list[Step]) -> bool:
    reached = reachable(steps)
    events = [(core, at, step) for core in range(CORES) for at, step in enumerate(steps) if isinstance(step, Access)]
    return any(
        a.element(c) == b.element(d)
        and "write" in (a.kind, b.kind)
        and not reached[c, i, d, j]
        and not reached[d, j, c, i]
        for (c, i, a), (d, j, b) in product(events, repeat=2)
        if c < d
    )


def reachable(steps: list[Step]) -> np.ndarray:
    """``[c, i, d, j]``: whether step i on core c comes before step j on core d."""
    count = len(steps)
    edges = np.zeros((CORES, count, CORES, count), np.bool_)
    produced = {step.number: at for at, step in enumerate(steps) if isinstance(step, Produce)}
    for core, at in product(range(CORES), range(count - 1)):
        edges[core, at, core, at + 1] = True
    for at, step in enumerate(steps):
        if isinstance(step, Take):
            for p, c in product(range(CORES), repeat=2):
                edges[p, produced[step.number], c, at] |= step.exchange.heard(p, c)
    matrix = edges.reshape(CORES * count, CORES * count)
    for _ in range(CORES * count):
        matrix = matrix | ((matrix.astype(np.int32) @ matrix.astype(np.int32)) > 0)
    return matrix.reshape(edges.shape)


def verdict(source: str) -> tuple[bool, bool]:
    """Whether a race is proven, and whether every question about one is decided."""
    examination = examine(parse_module(source, "k.ktir"), None, ("races",))
    proven = any(d.code in RACES and d.severity == "error" for d in examination.findings)
    return proven, not examination.tallies["races"].unknown


@settings(max_examples=examples(1500), deadline=None)
@given(kernels())
def test_races_are_those_of_the_definition(steps: list[Step]) -> None:
    assert verdict(text(steps)) == (has_race(steps), True), text(steps)


READ, WRITE = Access("read", 1, 1), Access("write", 1, 0)
EXCHANGE = [Produce(0), Take(0, Exchange((0, CORES), (0, CORES), None))]


def test_a_read_before_a_write_of_another_core_is_a_race_unless_an_exchange_lies_between() -> None:
    assert verdict(text([READ, WRITE, *EXCHANGE])) == (True, True)
    assert verdict(text([READ, *EXCHANGE, WRITE])) == (False, True)


def test_an_exchange_that_not_all_cores_are_sure_to_run_leaves_the_question_open() -> None:
    source = text([READ, *EXCHANGE, WRITE]).replace("%y_ptr: index", "%y_ptr: index, %go: i1")
    guarded = source.replace("%f0 =", "scf.if %go {\n%f0 =").replace("%t3 =", "}\n%t3 =")
    assert verdict(guarded) == (False, False)


def looped(source: str, first: str, behind: str) -> str:
    """A loop of three iterations from the line that begins with ``first`` up to ``behind``."""
    bounds = "".join(f"%{name} = arith.constant {n} : index\n" for name, n in (("lo", 0), ("by", 1), ("hi", 3)))
    head = bounds + "scf.for %i = %lo to %hi step %by {\n" + first
    return source.replace(first, head, 1).replace(behind, "}\n" + behind, 1)


def test_an_exchange_in_a_loop_orders_what_comes_before_the_loop_and_what_follows_it() -> None:
    source = text([READ, *EXCHANGE, WRITE])
    assert verdict(looped(source, "%f0 =", "%t3 =")) == (False, True)
    assert verdict(looped(source, "%f0 =", "return\n")) == (False, True)


def test_an_exchange_in_a_loop_does_not_order_the_iterations_both_ways() -> None:
    assert verdict(looped(text([READ, *EXCHANGE, WRITE]), "%t0 =", "return\n")) == (False, False)
