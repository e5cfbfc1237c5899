"""Cores that have to do with each other in a launch, and one island of them timed for another that does the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow.islands import launch_maps
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate
from ktir.dialect import dfp
from ktir.machine import load
from tests.backends.dataflow.programs import Program
from tests.settings import examples

CORES = 8
MACHINE = load("spyre", cores=CORES)
ELEMENTS = 2048


def messages(pairs: Sequence[tuple[int, int]], loads: Sequence[int]) -> Program:
    """Core ``c`` loads ``loads[c]`` tiles; then each first core of ``pairs`` sends one to the second."""
    p = Program(CORES)
    array = p.ddr(0, CORES * ELEMENTS * 2)
    tile = p.lx(0, ELEMENTS * 2, slots=2, producer="hbm_ld", consumers=["lx_ld"])
    source, target = p.lx(1 << 16, ELEMENTS * 2), p.lx(1 << 17, ELEMENTS * 2)
    with p.unit("hbm_ld") as u:
        with u.loop(u.table(*loads)):
            u.add(dfp.ReserveOp(tile))
            u.move(array, u.table(*(core * ELEMENTS * 2 for core in range(CORES))), tile, 0, ELEMENTS)
            u.add(dfp.CommitOp(tile))
        p.barrier(u, 1)
    with p.unit("lx_ld") as u:
        with u.loop(u.table(*loads)):
            u.add(dfp.AcquireOp(tile))
            u.add(dfp.ReleaseOp(tile))
        p.barrier(u, 1)
    to, origin = dict(pairs), {receiver: sender for sender, receiver in pairs}
    with p.unit("ring_tx") as u:
        p.barrier(u, 1)
        with u.loop(u.table(*(int(core in to) for core in range(CORES)))):
            u.send(source, 0, u.table(*(to.get(core, 0) for core in range(CORES))), [ELEMENTS], [2])
    with p.unit("ring_rx") as u:
        p.barrier(u, 1)
        with u.loop(u.table(*(int(core in origin) for core in range(CORES)))):
            u.receive(target, 0, u.table(*(origin.get(core, 0) for core in range(CORES))), [ELEMENTS], [2])
    return p


def islands(p: Program, launch: int) -> list[tuple[int, ...]]:
    program = compile_program(p.module, MACHINE)
    maps = launch_maps(program, lambda instruction: instruction.kind == "copy", lambda core: core // (CORES // 2))
    return list(maps[launch].islands)


def test_cores_meet_at_a_server_or_on_a_network() -> None:
    p = messages([(1, 6), (6, 2)], [1, 0, 2, 0, 1, 0, 0, 3])
    assert islands(p, 0) == [(0, 2), (1,), (3,), (4, 7), (5,), (6,)]
    assert islands(p, 1) == [(0,), (1, 2, 6), (3,), (4,), (5,), (7,)]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(0, 40), min_size=CORES // 2, max_size=CORES // 2), st.booleans(), st.integers(0, 3))
def test_what_is_timed_for_another_island_is_what_that_would_have_taken(
    loads: list[int], again: bool, core: int
) -> None:
    """Both halves of the cores do the same, or differ in one core; simulated apart, they take the same to the tick."""
    other = list(loads)
    other[core] += 0 if again else 1
    p = messages([], [*loads, *other])
    folded, whole = simulate(p.module, MACHINE), simulate(p.module, MACHINE, extrapolate=False)
    assert (folded.total_ns, folded.units, folded.ddr_read) == (whole.total_ns, whole.units, whole.ddr_read)
    assert [launch.cores for launch in folded.launches] == [launch.cores for launch in whole.launches]


@pytest.mark.parametrize("count", [3, 1000])
def test_halves_that_do_the_same_cost_no_more_than_one(count: int) -> None:
    half = [count] * (CORES // 2)
    alone, both = (simulate(messages([], [*half, *other]).module, MACHINE) for other in ([0] * (CORES // 2), half))
    assert both.events <= alone.events and both.ddr_read == 2 * alone.ddr_read
