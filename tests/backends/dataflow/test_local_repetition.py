"""What the units of one core repeat among themselves is skipped, and nothing changes by it, to the tick."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f16

from ktir.backends.dataflow import local_repetition
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.timing import Timing
from ktir.dialect import dfp
from ktir.machine import load
from tests.backends.dataflow.programs import Program
from tests.settings import examples

CORES = 4
MACHINE = load("spyre", cores=CORES)
EFFORT = ("events", "intervals")


@dataclass(frozen=True)
class Pipeline:
    """Every core loads tiles of ``rows`` x ``columns`` pieces of ``elements``, negates them piece by piece and stores
    them, each unit in loops of its own.

    ``rows`` are by core; ``turns``: rounds of other traffic of a core at its two ports meanwhile, by core; ``late``:
    the row from which ``lx_ld`` takes a piece in two halves, each of whole vectors.
    """

    tiles: int
    rows: tuple[int, ...]
    columns: int
    elements: int
    turns: tuple[int, ...]
    late: int | None = None

    def build(self) -> Program:
        p = Program(CORES)
        piece = self.elements * 2
        size = max(self.rows) * self.columns * piece
        source, target = p.ddr(0, CORES * size), p.ddr(CORES * size, CORES * size)
        other = p.ddr(2 * CORES * size, CORES * 4096)
        tile = p.lx(0, size, "tile", slots=2, producer="hbm_ld", consumers=["lx_ld"])
        made = p.lx(2 * size, size, "made", slots=2, producer="lx_st", consumers=["hbm_st"])
        more = p.lx(4 * size, 4096, "more", slots=2, producer="hbm_ld", consumers=["hbm_st"])
        raw, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
        places = [core * size for core in range(CORES)]
        with p.unit("hbm_ld") as u, u.loop(self.tiles):
            u.add(dfp.ReserveOp(tile))
            u.move(source, u.table(*places), tile, 0, size // 2)
            u.add(dfp.CommitOp(tile))
            with u.loop(u.table(*self.turns)):
                u.add(dfp.ReserveOp(more))
                u.move(other, u.table(*(core * 4096 for core in range(CORES))), more, 0, 2048)
                u.add(dfp.CommitOp(more))
        with p.unit("lx_ld") as u, u.loop(self.tiles):
            u.add(dfp.AcquireOp(tile))
            with u.loop(u.table(*self.rows)) as row, u.loop(self.columns) as column:
                columns = self.columns
                place = u.apply(lambda i, j: (i * columns + j) * piece, row, column)
                if self.late is None:
                    u.stream(tile, place, raw, [self.elements], [2])
                else:
                    late = self.late
                    with u.when(lambda i: i.le(late - 1), row):
                        u.stream(tile, place, raw, [self.elements], [2])
                    with u.when(lambda i: i.ge(late), row):
                        for half in range(2):
                            begin = u.apply(lambda i, half=half: i + half * piece // 2, place)
                            u.stream(tile, begin, raw, [self.elements // 2], [2])
            u.add(dfp.ReleaseOp(tile))
        with p.unit("sfu") as u, u.loop(self.tiles), u.loop(u.table(*self.rows)), u.loop(self.columns):
            u.map([raw], out, [self.elements], [f16], lambda b, x: b.insert(arith.NegfOp(x)).result)
        with p.unit("lx_st") as u, u.loop(self.tiles):
            u.add(dfp.ReserveOp(made))
            with u.loop(u.table(*(rows * self.columns for rows in self.rows))) as number:
                u.drain(out, made, u.apply(lambda i: i * piece, number), [self.elements], [2])
            u.add(dfp.CommitOp(made))
        with p.unit("hbm_st") as u, u.loop(self.tiles):
            with u.loop(u.table(*self.turns)):
                u.add(dfp.AcquireOp(more))
                u.move(more, 0, other, u.table(*(core * 4096 for core in range(CORES))), 2048)
                u.add(dfp.ReleaseOp(more))
            u.add(dfp.AcquireOp(made))
            u.move(made, 0, target, u.table(*places), size // 2)
            u.add(dfp.ReleaseOp(made))
        return p


def result(timing: Timing) -> dict[str, object]:
    return {each.name: getattr(timing, each.name) for each in fields(timing) if each.name not in EFFORT}


by_core = st.tuples(*(st.integers(1, 24) for _ in range(CORES)))
pipelines = st.builds(
    Pipeline,
    st.integers(1, 4),
    by_core | st.integers(1, 24).map(lambda rows: (rows,) * CORES),
    st.integers(1, 8),
    st.sampled_from([128, 256, 384, 640, 1024]),
    st.tuples(*(st.integers(0, 3) for _ in range(CORES))),
    st.none() | st.integers(0, 24),
)


@settings(max_examples=examples(400), deadline=None)
@given(pipelines)
def test_p5_loops_inside_a_core_take_the_time_they_take(pipeline: Pipeline) -> None:
    program = pipeline.build().module
    assert result(simulate(program, MACHINE)) == result(simulate(program, MACHINE, extrapolate=False))


@pytest.mark.parametrize("late", [None, 3])
def test_cores_in_rhythms_that_never_meet_are_skipped_each_for_itself(late: int | None) -> None:
    """Each core has another number of rows in its only tile: no state of the four together comes back."""
    program = Pipeline(1, (101, 103, 107, 109), 10, 384, (0, 1, 2, 0), late).build().module
    skipped, whole = simulate(program, MACHINE), simulate(program, MACHINE, extrapolate=False)
    assert whole.events > 3 * skipped.events, "what is left are bursts of device memory"


@pytest.mark.parametrize("passes", [1, 3])
def test_a_part_after_a_tile_is_given_back_is_not_taken_for_the_next_one(passes: int) -> None:
    """``lx_ld`` leaves a loop in the middle of what its partner does; the iterations before went on differently."""
    p = Program(CORES)
    array = p.ddr(0, CORES * 4096)
    tile = p.lx(0, 4096, "tile", slots=2, producer="hbm_ld", consumers=["lx_ld"])
    still, sink = p.lx(8192, 512, "still"), p.lx(16384, 512, "sink")
    raw, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    pieces = 6
    with p.unit("hbm_ld") as u, u.loop(passes), u.loop(pieces):
        u.add(dfp.ReserveOp(tile))
        u.move(array, u.table(*(core * 4096 for core in range(CORES))), tile, 0, 2048)
        u.add(dfp.CommitOp(tile))
    with p.unit("lx_ld") as u, u.loop(passes):
        with u.loop(pieces):
            u.add(dfp.AcquireOp(tile))
            u.add(dfp.ReleaseOp(tile))
            u.stream(still, 0, raw, [256], [2])
        with u.loop(4):
            u.stream(still, 0, raw, [256], [2])
    with p.unit("sfu") as u, u.loop(passes), u.loop(pieces + 4):
        u.map([raw], out, [256], [f16], lambda b, x: b.insert(arith.NegfOp(x)).result)
    with p.unit("lx_st") as u, u.loop(passes), u.loop(pieces + 4):
        u.drain(out, sink, 0, [256], [2])
    assert result(simulate(p.module, MACHINE)) == result(simulate(p.module, MACHINE, extrapolate=False))


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_forgetting_what_is_known_in_the_middle_of_a_launch_changes_no_time(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Islands remember the numbers of states, so that a number must never stand for another state."""
    monkeypatch.setattr(local_repetition, "MOST_RHYTHMS", kept)
    for rows, turns in (((9, 11, 9, 11), (0, 1, 2, 0)), ((24,) * CORES, (3,) * CORES)):
        program = Pipeline(40, rows, 6, 384, turns).build().module
        assert result(simulate(program, MACHINE)) == result(simulate(program, MACHINE, extrapolate=False))
