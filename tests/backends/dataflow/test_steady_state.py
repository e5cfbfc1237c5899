"""Skipping what repeats changes nothing: simulated with and without, a program takes the same time to the tick."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f16

from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.timing import Timing
from ktir.backends.dataflow.verify import verify
from ktir.machine import Machine, load
from tests.backends.dataflow.generated import UNITS, Shape, build, random_shape
from tests.backends.dataflow.programs import Program
from tests.settings import FULL, examples

MACHINES = (
    load("spyre", cores=4),
    load("spyre", {"unit.hbm_ld.outstanding": 3, "unit.hbm_st.outstanding": 2}, cores=4),
    load("spyre", {"unit.hbm_ld.outstanding": 2}, cores=8),
)
"""Four cores or eight: device memory has two servers, each for half of them."""
EFFORT = ("events", "intervals")
"""What skipping is allowed to change."""


PLAIN = Shape(4, 1, 16, 2, 16, dict.fromkeys(UNITS, "flat"), False, (), 1, 1, arith.AddfOp)
NESTED = replace(
    PLAIN, inner=3, nests=dict(zip(UNITS, ("nested", "flat", "turned", "nested", "flat", "flat", "flat"), strict=True))
)
CONDITIONS = replace(PLAIN, inner=2, extra=("first", "last", "even", "third", "corner"), corelets=2, launches=2)
AROUND = replace(PLAIN, passes=True, slots=1, nests=dict.fromkeys(UNITS, "nested"), inner=2)


def result(timing: Timing) -> dict[str, object]:
    return {each.name: getattr(timing, each.name) for each in fields(timing) if each.name not in EFFORT}


@settings(max_examples=examples(600), deadline=None)
@given(st.integers(0, 2**20), st.integers(1, 200), st.sampled_from(MACHINES))
def test_p5_extrapolated_time_is_simulated_time(seed: int, count: int, machine: Machine) -> None:
    program = build(random_shape(seed), count).module
    assert result(simulate(program, machine)) == result(simulate(program, machine, extrapolate=False))


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**20), st.sampled_from(MACHINES))
def test_p5_effort_does_not_grow_with_trip_counts(seed: int, machine: Machine) -> None:
    """Once it is in its rhythm, which one program in a hundred takes more than a thousand iterations for.

    The counts leave the same remainder by all that the conditions divide by.
    """
    shape = random_shape(seed)
    thousand, million, milliard = (
        simulate(build(shape, count).module, machine).events for count in (10**3, 10**6, 10**9)
    )
    assert million == milliard and thousand <= 2 * milliard


@pytest.mark.parametrize("shape", [PLAIN, NESTED, CONDITIONS, AROUND], ids=["plain", "nested", "conditions", "around"])
@pytest.mark.parametrize("machine", MACHINES, ids=["four", "window", "eight"])
def test_p5_events_are_the_same_from_a_thousand_to_a_milliard(shape: Shape, machine: Machine) -> None:
    events = [simulate(build(shape, 10**power).module, machine).events for power in (3, 6, 9)]
    assert len(set(events)) == 1


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**20))
def test_verification_does_not_walk_loops(seed: int) -> None:
    """A thousand million iterations are verified, deadlock and all, in the time of a few."""
    assert verify(build(random_shape(seed), 10**9).module, MACHINES[0]) == []


@pytest.mark.parametrize("shape", [NESTED, CONDITIONS, AROUND], ids=["nested", "conditions", "around"])
def test_p5_every_count_up_to_two_hundred(shape: Shape) -> None:
    for count in range(1, 201, 1 if FULL else 97):
        program = build(shape, count).module
        assert result(simulate(program, MACHINES[0])) == result(simulate(program, MACHINES[0], extrapolate=False))


@pytest.mark.parametrize("pieces", [1, 2, 16, 64, 256])
@pytest.mark.parametrize("turns", [1, 3, 50])
def test_p5_an_operation_that_follows_itself_begins_anew(pieces: int, turns: int) -> None:
    """Loops of one operation each, between which a unit does nothing else; one unit takes in pieces what another
    streams at once."""
    p, elements = Program(1), 64 * 1024
    source, target = p.lx(0, elements * 2), p.lx(1 << 18, elements * 2)
    first, second = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    with p.unit("lx_ld") as u, u.loop(turns):
        u.stream(source, 0, first, [elements], [2])
    with p.unit("sfu") as u, u.loop(pieces * turns):
        u.map([first], second, [elements // pieces], [f16], lambda b, x: b.insert(arith.NegfOp(x)).result)
    with p.unit("lx_st") as u, u.loop(turns):
        u.drain(second, target, 0, [elements], [2])
    assert result(simulate(p.module, MACHINES[0])) == result(simulate(p.module, MACHINES[0], extrapolate=False))
