"""The deadlock verdict against all interleavings of small networks; minimal depths; what the error says."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow.deadlock import Depths, minimal_depths, run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.errors import DataflowDeadlock
from ktir.machine import load
from tests.backends.dataflow.networks import CHANNEL, QUEUES, TILES, Network, as_program, explore, random_network
from tests.settings import examples

SPYRE = load("spyre", {"net.ring.depth": CHANNEL})
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


def assert_jointly_minimal(found: Depths | None, network: Network) -> None:
    """The capacities suffice, and with any one lower the network gets stuck."""
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
