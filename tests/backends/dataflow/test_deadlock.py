"""The deadlock verdict against all interleavings of small networks; minimal depths; what the error says."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow import deadlock
from ktir.backends.dataflow.deadlock import Depths, minimal_depths, run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate_program
from ktir.errors import DataflowDeadlock
from ktir.machine import load
from tests.backends.dataflow import core_networks
from tests.backends.dataflow.networks import CHANNEL, QUEUES, TILES, Network, as_program, explore, random_network
from tests.backends.dataflow.programs import Program
from tests.settings import examples

SPYRE = load("spyre", {"net.ring.depth": CHANNEL})
CORES = load("spyre", {"net.ring.depth": CHANNEL, "net.sum_ring.depth": CHANNEL}, cores=4)
seeds = st.integers(0, 2**32)


@settings(max_examples=examples(2000), deadline=None)
@given(st.integers(0, 2**32))
def test_v4_agrees_with_all_interleavings(seed: int) -> None:
    """The verdict, what it says, and the capacities it advises, by exploring all interleavings."""
    network = random_network(seed)
    program = compile_program(as_program(network).module, SPYRE)
    ends, stuck = explore(network)
    assert ends != stuck, "a network has one fate"
    verdict = run_to_verdict(program)
    assert (verdict is not None) == stuck
    if verdict is not None:
        assert_says_who_waits(verdict, network)
    assert_jointly_minimal(minimal_depths(program), network)


@settings(max_examples=examples(500), deadline=None)
@given(seeds)
def test_v4_agrees_with_all_interleavings_over_cores_and_corelets(seed: int) -> None:
    """With messages to one core and to several, chains, two corelets, and conditions on iterations; P7 as well: a timed
    run stops where the verdict says."""
    network = core_networks.random_core_network(seed)
    program = compile_program(core_networks.as_program(network).module, CORES)
    ends, stuck = core_networks.explore(network)
    assert ends != stuck, "a network has one fate"
    assert (run_to_verdict(program) is not None) == stuck
    try:
        simulate_program(program)
        stops = False
    except DataflowDeadlock:
        stops = True
    assert stops == stuck
    assert_jointly_minimal(minimal_depths(program), network, core_networks.explore)


@pytest.mark.parametrize("count", [10**3, 10**12])
def test_the_cost_of_the_verdict_does_not_grow_with_counts(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit alone, one long operation, loops with nothing in them, and networks of several units."""
    monkeypatch.setattr(deadlock, "MOST_TURNS", 20_000)
    alone, long, nothing = Program(), Program(), Program()
    for p in (alone, long, nothing):
        x, tile = p.ddr(0, 1024, "x"), p.lx(0, 1024, "tile")
        with p.unit("hbm_ld") as u:
            if p is long:
                u.copy(x, 0, tile, 0, [count, 64], [0, 2], [0, 2])
                continue
            with u.loop(count) as i:
                if p is alone:
                    u.move(x, 0, tile, 0, 64)
                else:
                    with u.when(lambda i: i.ge(5), i):
                        pass
        assert run_to_verdict(compile_program(p.module, SPYRE)) is None
    for seed in range(40):
        network = random_network(seed)
        if any(kind == "barrier" for steps in network.steps.values() for kind, _, _ in steps):
            continue
        network.looped = frozenset(network.steps)
        verdicts = [
            run_to_verdict(compile_program(as_program(replace(network, count=times)).module, SPYRE)) is None
            for times in (64, count)
        ]
        assert verdicts[0] == verdicts[1]


def assert_jointly_minimal(
    found: Depths | None,
    network: Network | core_networks.CoreNetwork,
    explore: Callable[[Any], tuple[bool, bool]] = explore,
) -> None:
    """The capacities suffice, and with any one lower the network gets stuck."""
    if found is None:
        plenty = dict.fromkeys((*QUEUES, *TILES, *core_networks.TILES), 100)
        assert explore(replace(network, depths=plenty, slots=plenty)) == (False, True)
        return
    enough = replace(network, depths=dict(found.queues), slots=dict(found.slots))
    assert explore(enough) == (True, False)
    for name, depth in found.queues.items():
        if depth:
            assert explore(replace(enough, depths={**enough.depths, name: depth - 1})) == (False, True)
    for name, slots in found.slots.items():
        if slots:
            assert explore(replace(enough, slots={**enough.slots, name: slots - 1})) == (False, True)


def assert_says_who_waits(verdict: DataflowDeadlock, network: Network) -> None:
    """Each line has a unit, what it waits for, and the iteration it is in."""
    lines = verdict.message.splitlines()[1:]
    assert lines and verdict.location is not None
    for line in lines:
        at_end = line.endswith("will never do more")
        assert at_end or " waits " in line
        assert at_end or line.split()[0] not in network.looped or "in iteration [" in line
    if "in a ring" in verdict.message:
        assert verdict.remedy is not None and len(lines) > 1
