"""The deadlock verdict against all interleavings of small networks; minimal depths; what the error says."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow.deadlock import minimal_depths, run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.machine import load
from tests.backends.dataflow.networks import CHANNEL, QUEUES, TILES, as_program, explore, random_network
from tests.settings import examples

SPYRE = load("spyre", {"net.ring.depth": CHANNEL})
seeds = st.integers(0, 2**32)


@settings(max_examples=examples(2000), deadline=None)
@given(seeds)
def test_v4_agrees_with_all_interleavings(seed: int) -> None:
    network = random_network(seed)
    ends, stuck = explore(network)
    assert ends != stuck, "a network has one fate"
    verdict = run_to_verdict(compile_program(as_program(network).module, SPYRE))
    assert (verdict is not None) == stuck


@settings(max_examples=examples(2000), deadline=None)
@given(seeds)
def test_reported_depths_are_jointly_minimal(seed: int) -> None:
    """They suffice, and with any one lower the network gets stuck; by exploring all interleavings."""
    network = random_network(seed)
    found = minimal_depths(compile_program(as_program(network).module, SPYRE))
    if found is None:
        plenty = dict.fromkeys((*QUEUES, *TILES), 100)
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


@settings(max_examples=examples(2000), deadline=None)
@given(seeds)
def test_a_deadlock_says_who_waits_for_what(seed: int) -> None:
    network = random_network(seed)
    verdict = run_to_verdict(compile_program(as_program(network).module, SPYRE))
    if verdict is None:
        return
    lines = verdict.message.splitlines()[1:]
    assert lines and verdict.location is not None
    for line in lines:
        unit = line.split()[0]
        assert " waits " in line or line.endswith("will never do more")
        if unit in network.looped and "will never do more" not in line:
            assert "in iteration [" in line
    if "in a ring" in verdict.message:
        assert verdict.remedy is not None and len(lines) > 1
