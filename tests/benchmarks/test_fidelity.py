"""Agreement with published results does not get worse: errors are recomputed and held against the record.

``python -m benchmarks.fidelity --write`` makes the record, ``benchmarks/fidelity/recorded.json``. What takes more than
some seconds is recomputed in the full suite only.
"""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import inf

import numpy as np
import pytest

import ktir
from benchmarks.fidelity import mlp, softmax
from benchmarks.fidelity.__main__ import BEGIN, PAGE, RECORD
from benchmarks.fidelity.campaign import NAMED, machine, peaks, sweep_correlation, time_run, value
from benchmarks.fidelity.formulas import memory_ns, product_ns, rank_correlation
from benchmarks.fidelity.product import Held, Product, Split, product
from benchmarks.fidelity.rows import FAMILIES, Run, all_rows, sweep
from benchmarks.fidelity.schedule import Schedule
from ktir.backends.dataflow.functional import execute
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.verify import verify
from ktir.backends.dataflow.verify_memory import memory_faults
from tests.backends.dataflow.programs import Memory
from tests.settings import FULL

ROWS = {row.name: row for row in all_rows()}
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))
ROUNDING = 0.001
"""Per cent: the record has three digits after the point; the times themselves are exact."""


@cache
def nanoseconds(run: Run) -> float:
    return time_run(run, NAMED)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_error_has_grown(family: str) -> None:
    for row in (row for row in FAMILIES[family]() if FULL or not row.long):
        recorded = RECORDED["rows"][row.name]
        ours = value(row, {run: nanoseconds(run) for run in row.runs})
        assert abs(row.error(ours)) <= abs(recorded["error_percent"]) + ROUNDING, row.name
        if row.order is not None and recorded["as_published"]:
            assert row.order[0] <= ours <= row.order[1], row.name


def test_the_record_has_every_row_and_the_page_says_the_same() -> None:
    assert RECORDED["preset"] == dict(NAMED)
    assert RECORDED["rows"].keys() == ROWS.keys()
    before, _, written = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    assert ", ".join(f'`{key} = "{chosen}"`' for key, chosen in NAMED.items()) in before
    for name, recorded in RECORDED["rows"].items():
        line = next(line for line in written.splitlines() if line.startswith(f"| {name} "))
        if recorded["as_published"] is None:
            assert f"{recorded['error_percent']:+.1f} %" in line


def test_the_sweep_is_ranked_as_by_the_published_formula() -> None:
    swept = [each for each in sweep() if FULL or not each.run.long]
    found = sweep_correlation(swept, {each.run: nanoseconds(each.run) for each in swept})
    assert found >= 0.95
    assert not FULL or found >= RECORDED["rank_correlation"]["published formula"] - 1e-4


def test_peaks_are_exactly_the_published_ones() -> None:
    for name, published, _, ours in peaks():
        digits = len(published.partition(".")[2])
        assert f"{ours:.{digits}f}" == published, name


# ------------------------------------------------------------------------------------------------- the published side


def test_published_formulas() -> None:
    assert memory_ns(150_000, 0) == pytest.approx(1000)
    copied = 1 << 20
    assert 2 * copied / memory_ns(copied, copied) == pytest.approx(105, rel=2e-3)  # GB/s, published with three digits
    narrow, wide = product_ns(64, 4096, 1024, 8, 4), product_ns(4096, 4096, 1024, 8, 4)
    assert narrow == memory_ns(2 * 4096 * (64 + 1024), 2 * 64 * 1024)
    assert wide == pytest.approx(4096 * 4096 * 1024 / 32 / 1140)


def test_rank_correlation() -> None:
    assert rank_correlation([1, 5, 9], [2, 3, 100]) == pytest.approx(1)
    assert rank_correlation([1, 5, 9], [9, 5, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(np.corrcoef([0, 1.5, 1.5, 3], range(4))[0, 1])


def test_errors_count_from_the_nearer_end_of_a_range() -> None:
    row = replace(next(iter(ROWS.values())), published=(30.0, 33.0))
    assert [row.error(ours) for ours in (15.0, 30.0, 32.0, 33.0, 66.0)] == [-50, 0, 0, 0, 100]
    assert replace(row, published=(1.0, inf)).error(7.0) == 0


# ------------------------------------------------------------------------------------------------------- the schedules


@pytest.mark.parametrize(("split", "corelets"), [(Split(2, 2), 2), (Split(4, 1), 1), (Split(1, 4), 2)])
def test_the_product_is_a_product(split: Split, corelets: int) -> None:
    p = Product(16, 256, 512, split, block=128, slice=128, corelets=corelets)
    schedule = Schedule(split.cores)
    product(schedule, p)
    module = schedule.module()
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (p.rows, p.depth)).astype(np.float16)
    b = rng.integers(-4, 5, (p.depth, p.columns)).astype(np.float16)
    # Activations lie by rows of a core and slice, weights by columns of a core, block and slice, results by core,
    # batch of blocks, corelet and block.
    activations = a.reshape(split.rows, p.own_rows, p.slices, p.slice).transpose(0, 2, 1, 3)
    weights = b.reshape(p.slices, p.slice, split.columns, p.blocks, p.block).transpose(2, 3, 0, 1, 4)
    memory = Memory.of(a.nbytes + b.nbytes + 2 * p.rows * p.columns, (0, activations), (a.nbytes, weights))
    execute(module, machine(NAMED), memory)
    shape = (split.columns, split.rows, p.blocks // p.batch, corelets, p.batch, p.own_rows, p.width)
    results = memory.read(a.nbytes + b.nbytes, np.float16, shape)
    c = results.transpose(1, 5, 0, 2, 4, 3, 6).reshape(p.rows, p.columns)
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))


def test_activations_that_are_held_reach_the_cores_with_the_same_rows() -> None:
    split, width = Split(2, 2), 64
    first = Product(16, 128, 256, split, block=128, slice=64)
    schedule = Schedule(split.cores)
    own = first.own_rows * 128 * 2
    kept = schedule.kept(own, last=1)
    product(schedule, first, kept=kept)
    schedule.next_launch()
    held = Held(schedule, kept, first.result_bytes, own // first.result_bytes, split.same_rows)
    second = Product(16, 256, 128, split, block=64, slice=width, corelets=1)
    product(schedule, second, held)
    module = schedule.module()
    assert not verify(module, machine(NAMED))
    rng = np.random.default_rng(2)
    a = rng.integers(-2, 3, (16, 128)).astype(np.float16)
    b = rng.integers(-1, 2, (128, 256)).astype(np.float16)
    d = rng.integers(-1, 2, (256, 128)).astype(np.float16)
    activations = a.reshape(2, 8, 2, 64).transpose(0, 2, 1, 3)
    weights = b.reshape(2, 64, 2, 128).transpose(2, 0, 1, 3)
    down = d.reshape(4, 64, 2, 64).transpose(2, 0, 1, 3)
    at = np.cumsum([0, a.nbytes, b.nbytes, d.nbytes])
    memory = Memory.of(at[3] + 16 * 128 * 2, (0, activations), (at[1], weights), (at[2], down))
    execute(module, machine(NAMED), memory)
    c = memory.read(at[3], np.float16, (2, 2, 8, 64)).transpose(1, 2, 0, 3).reshape(16, 128)
    middle = (a.astype(np.float32) @ b).astype(np.float16)
    assert np.array_equal(c, (middle.astype(np.float32) @ d.astype(np.float32)).astype(np.float16))


def test_weights_are_read_once_by_a_group_of_eight() -> None:
    for split, groups in ((Split(8, 1), 1), (Split(16, 1), 2)):
        schedule = Schedule(split.cores)
        product(schedule, Product(split.rows * 8, 512, 128, split))
        timing = simulate(schedule.module(), machine(NAMED))
        assert timing.ddr_read == 2 * 512 * (split.rows * 8 + groups * 128)


def test_stages_of_the_softmax_have_the_published_traffic() -> None:
    words = softmax.ROWS * softmax.COLUMNS
    read = []
    for number, passes in enumerate((8, 8, 3, 2)):
        timing = simulate(softmax.softmax(number), ktir.machine("spyre"))
        extra = 4 * softmax.COLUMNS if number == 0 else 0
        assert timing.ddr_read + timing.ddr_written == 2 * (passes * words + extra)
        read.append(timing.ddr_read)
    assert all(after <= before for before, after in pairwise(read))


@pytest.mark.parametrize("split", [Split(8, 4), Split(32, 1)])
def test_the_mlp_block_fits_in_the_scratchpads(split: Split) -> None:
    assert not list(memory_faults(compile_program(mlp.pinned(split), machine(NAMED))))


@pytest.mark.parametrize("split", [Split(4, 2), Split(4, 1)])
def test_launches_of_the_mlp_block_add(split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    for extent in ("MODEL", "MIDDLE"):
        monkeypatch.setattr(mlp, extent, 256)
    parts = Run(mlp.up_pinned, (split,)), Run(mlp.swiglu_pinned, (split,), False), Run(mlp.down_pinned, (split,), False)
    whole = time_run(Run(mlp.pinned, (split,)), NAMED)
    assert mlp.pinned_ns(split, [time_run(run, NAMED) for run in parts]) == pytest.approx(whole, abs=5)
