"""Functional runs of hand-built programs against numpy, in fixed and in random order of the units."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, bf16, f16, f32, i1, i32, i64

from ktir.backends.dataflow.functional import execute, prepare
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.scalar_region import Folding
from ktir.backends.dataflow.verify import verify
from ktir.dialect import dfp
from ktir.errors import (
    DataflowDeadlock,
    DataflowError,
    DescriptorOutOfBounds,
    KtirError,
    LimitExceeded,
    QueueImbalance,
    QueueMisuse,
    UnwrittenRead,
)
from ktir.machine import Machine, load
from tests.backends.dataflow.generated import build, random_shape
from tests.backends.dataflow.programs import (
    Memory,
    Program,
    binary,
    matmul_program,
    pointwise_program,
)
from tests.settings import examples

rng = np.random.default_rng(3)


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load("spyre")


def through_local(p: Program, size: int, body, *, results: int | None = None, cores: int = 1):
    """Declares x (in) and y (out) in device memory and scratchpad, copies x in, lets ``body`` work, copies y out.

    The three steps are separate launches, so that plain regions need no handshake.
    """
    results = results or size
    x, y = p.ddr(0, size, "x"), p.ddr(size, results, "y")
    xl, yl = p.lx(0, size, "xl"), p.lx(-(-size // 128) * 128, results, "yl")
    units = body(p, xl, yl)
    work = {"hbm_ld": 0, "hbm_st": 2}
    for name in dict.fromkeys(("hbm_ld", *units, "hbm_st")):
        with p.unit(name) as u:
            for launch in range(3):
                if launch:
                    p.barrier(u, launch)
                if launch == 1 and name in units:
                    units[name](u)
                if launch == work.get(name):
                    source, target, count = (x, xl, size) if launch == 0 else (yl, y, results)
                    u.move(source, 0, target, 0, count // 2)


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_matmul_on_four_cores(machine: Machine, seed: int | None) -> None:
    m, k, n = 64, 192, 128
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    memory = Memory.of(2 * (m * k + k * n + m * n), (0, a), (2 * m * k, b))
    program = matmul_program(m, k, n, cores=4)
    execute(program.module, machine, memory, unit_order_seed=seed)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = memory.read(2 * (m * k + k * n), np.float16, (m, n))
    assert np.all(np.abs(found - exact) <= np.abs(exact) * 2.0**-11 + k * 2.0**-20)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2**16))
def test_results_do_not_depend_on_the_order_of_the_units(tiles, slots, cores, launches, seed) -> None:
    size = cores * tiles * 1024
    x, y = (np.random.default_rng(seed).standard_normal(size).astype(np.float16) for _ in range(2))
    program = pointwise_program(tiles, op=arith.MulfOp, slots=slots, cores=cores, launches=launches)
    first = Memory.of(3 * x.nbytes, (0, x), (x.nbytes, y))
    again = Memory(first.bytes.copy())
    execute(program.module, load("spyre"), first)
    execute(program.module, load("spyre"), again, unit_order_seed=seed)
    assert np.array_equal(first.bytes, again.bytes)
    assert np.array_equal(first.read(2 * x.nbytes, np.float16, x.shape), (x.astype(np.float32) * y).astype(np.float16))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 9))
def test_generated_programs_give_the_same_bits_in_any_order_and_any_batches(seed: int, count: int) -> None:
    program = build(random_shape(seed), count)
    start = np.random.default_rng(seed).standard_normal(1 << 20).astype(np.float16).view(np.uint8)
    runs = [Memory(start.copy()) for _ in range(3)]
    for order, memory in zip((None, seed, seed + 1), runs, strict=True):
        execute(program.module, load("spyre"), memory, unit_order_seed=order)
    assert np.array_equal(runs[0].bytes, runs[1].bytes)
    assert np.array_equal(runs[0].bytes, runs[2].bytes)


def test_cores_go_together_and_iterations_meet(machine: Machine) -> None:
    """As long as batches are small enough, their number grows neither with that of cores nor with that of iterations;
    tiles of a ring of two slots have bytes of their own."""
    found = {
        prepare(compile_program(pointwise_program(tiles, cores=cores).module, machine)).statistics.batches
        for cores in (1, 2, 8)
        for tiles in (1, 4, 8)
    }
    assert found == {7}  # two loads, two streams, one sum, one drain, one store


def test_a_prepared_program_runs_on_any_data(machine: Machine) -> None:
    program = pointwise_program(2, op=arith.AddfOp, cores=2)
    prepared = prepare(compile_program(program.module, machine))
    for seed in range(3):
        x, y = (np.random.default_rng(seed + shift).standard_normal(4096).astype(np.float16) for shift in (0, 9))
        memory = Memory.of(3 * x.nbytes, (0, x), (x.nbytes, y))
        prepared.run(memory)
        assert np.array_equal(memory.read(2 * x.nbytes, np.float16, x.shape), x + y)


@pytest.mark.parametrize("outer", [1, 3, 64])
@pytest.mark.parametrize(("length", "inner"), [(1000, 1), (37, 1), (129, 2), (40, 64)])
def test_a_reduction_has_the_same_bits_in_any_batch(outer: int, length: int, inner: int) -> None:
    from xdsl.ir import Block

    block = Block(arg_types=[f32, f32])
    total = arith.AddfOp(*block.args)
    block.add_ops([total, dfp.YieldOp(total.result)])
    folding = Folding.of(block, f32)
    rows = np.random.default_rng(length).standard_normal((outer, length, inner)).astype(np.float32)
    together = folding.reduce(rows, None)
    alone = [folding.reduce(rows[row : row + 1].copy(), None) for row in range(outer)]
    assert np.array_equal(together.view(np.uint32), np.concatenate(alone).view(np.uint32))


def test_copy_transposes_with_strides(machine: Machine) -> None:
    x = rng.standard_normal((64, 32)).astype(np.float16)
    p = Program()
    source, target = p.ddr(0, x.nbytes, "x"), p.ddr(x.nbytes, x.nbytes, "y")
    tile = p.lx(0, x.nbytes, "t", slots=1, producer="hbm_ld", consumers=["hbm_st"])
    with p.unit("hbm_ld") as u:
        u.add(dfp.ReserveOp(tile))
        u.copy(source, 0, tile, 0, [64, 32], [64, 2], [2, 128])
        u.add(dfp.CommitOp(tile))
    with p.unit("hbm_st") as u:
        u.add(dfp.AcquireOp(tile))
        u.move(tile, 0, target, 0, x.size)
        u.add(dfp.ReleaseOp(tile))
    memory = Memory.of(2 * x.nbytes, (0, x))
    execute(p.module, machine, memory)
    assert np.array_equal(memory.read(x.nbytes, np.float16, (32, 64)), x.T)


@pytest.mark.parametrize(("kind", "raw"), [(f16, np.float16), (bf16, ml_dtypes.bfloat16), (f32, np.float32)], ids=str)
def test_map_keeps_types(machine: Machine, kind, raw) -> None:
    x = rng.standard_normal(256).astype(raw)
    width = x.itemsize
    p = Program()

    def body(p, xl, yl):
        q, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
        return {
            "lx_ld": lambda u: u.stream(xl, 0, q, [256], [width], kind),
            "sfu": lambda u: u.map([q], out, [256], [kind], lambda b, v: b.insert(arith.AddfOp(v, v)).result),
            "lx_st": lambda u: u.drain(out, yl, 0, [256], [width], kind),
        }

    through_local(p, x.nbytes, body)
    memory = Memory.of(2 * x.nbytes, (0, x))
    execute(p.module, machine, memory)
    assert np.array_equal(memory.read(x.nbytes, raw, x.shape), x + x)


def test_map_compares_selects_and_widens(machine: Machine) -> None:
    """Two maps linked by a queue of booleans: y = x > 0 ? x : index, written as f32."""
    x = rng.standard_normal(256).astype(np.float16)
    p = Program()

    def positive(b, value):
        zero = b.insert(arith.ConstantOp(FloatAttr(0.0, f16))).result
        return b.insert(arith.CmpfOp(value, zero, "ogt")).result

    def choose(b, flag, value):
        place = b.insert(arith.IndexCastOp(b.insert(dfp.IndexOp(1)).result, i32)).result
        number = b.insert(arith.SIToFPOp(place, f32)).result
        wide = b.insert(arith.ExtFOp(value, f32)).result
        return b.insert(arith.SelectOp(flag, wide, number)).result

    def body(p, xl, yl):
        first, second = p.queue("lx_ld", "sfu", name="first"), p.queue("lx_ld", "sfu", name="second")
        flags, out = p.queue("sfu", "sfu"), p.queue("sfu", "lx_st")

        def feed(u):
            u.stream(xl, 0, first, [256], [2])
            u.stream(xl, 0, second, [256], [2])

        def work(u):
            u.map([first], flags, [8, 32], [f16], positive)
            u.map([flags, second], out, [8, 32], [i1, f16], choose)

        return {"lx_ld": feed, "sfu": work, "lx_st": lambda u: u.drain(out, yl, 0, [256], [4], f32)}

    through_local(p, x.nbytes, body, results=1024)
    memory = Memory.of(x.nbytes + 1024, (0, x))
    execute(p.module, machine, memory)
    expected = np.where(x > 0, x.astype(np.float32), np.arange(256) % 32)
    assert np.array_equal(memory.read(x.nbytes, np.float32, (256,)), expected)


@pytest.mark.parametrize(("outer", "length", "inner"), [(4, 64, 1), (1, 4, 64), (2, 8, 16)])
def test_reduce_over_any_axis_with_initial_values(machine: Machine, outer, length, inner) -> None:
    x = rng.standard_normal((outer, length, inner)).astype(np.float16)
    p = Program()

    def body(p, xl, yl):
        q, start, out = p.queue("lx_ld", "sfu", name="q"), p.queue("lx_ld", "sfu", name="s"), p.queue("sfu", "lx_st")

        def feed(u):
            u.stream(xl, 0, q, [x.size], [2])
            u.stream(xl, 0, start, [outer * inner], [2])

        return {
            "lx_ld": feed,
            "sfu": lambda u: u.reduce(q, out, x.shape, [f16, f16], binary(arith.AddfOp), initial=start),
            "lx_st": lambda u: u.drain(out, yl, 0, [outer * inner], [2]),
        }

    through_local(p, x.nbytes, body, results=outer * inner * 2)
    memory = Memory.of(2 * x.nbytes, (0, x))
    execute(p.module, machine, memory)
    exact = x.astype(np.float64).sum(1) + x.ravel()[: outer * inner].astype(np.float64).reshape(outer, inner)
    found = memory.read(x.nbytes, np.float16, (outer, inner))
    assert np.all(np.abs(found - exact) <= np.abs(exact) * 2.0**-11 + 2.0**-18)


def test_gather_and_scatter_move_rows_by_number(machine: Machine) -> None:
    table = rng.standard_normal((50, 32)).astype(np.float16)
    rows = np.array([7, 0, 49, 7], np.int64)
    p = Program()
    source, indices = p.ddr(0, table.nbytes, "table"), p.ddr(table.nbytes, 32, "indices")
    target = p.ddr(table.nbytes + 128, table.nbytes, "target")
    local, lines = p.lx(0, 128, "local"), p.lx(128, 4 * 64, "lines")
    row = {
        "count": 4,
        "index_element": i64,
        "row_stride": 64,
        "line_stride": 64,
        "row_counts": [32],
        "row_src_strides": [2],
        "row_dst_strides": [2],
        "element": f16,
    }
    with p.unit("hbm_ld") as u:
        u.move(indices, 0, local, 0, 4, i64, 8)
        zero = u.index(0)
        u.add(dfp.GatherOp(source, zero, local, zero, lines, zero, **row))
        p.barrier(u, 1)
    with p.unit("hbm_st") as u:
        p.barrier(u, 1)
        zero = u.index(0)
        u.add(dfp.ScatterOp(lines, zero, local, zero, target, zero, **row))
    memory = Memory.of(2 * table.nbytes + 128, (0, table), (table.nbytes, rows))
    execute(p.module, machine, memory)
    expected = np.zeros_like(table)
    expected[rows] = table[rows]
    assert np.array_equal(memory.read(table.nbytes + 128, np.float16, table.shape), expected)

    bad = Memory.of(2 * table.nbytes + 128, (0, table), (table.nbytes, np.array([7, 50, 0, 0], np.int64)))
    with pytest.raises(DescriptorOutOfBounds, match="index 50 leads outside"):
        execute(p.module, machine, bad)


@pytest.mark.parametrize("seed", [None, 5])
def test_every_core_sends_its_tile_to_the_next(machine: Machine, seed: int | None) -> None:
    cores = 6
    x = rng.standard_normal((cores, 64)).astype(np.float16)
    p = Program(cores)
    source, target = p.ddr(0, x.nbytes, "x"), p.ddr(x.nbytes, x.nbytes, "y")
    mine, theirs = p.lx(0, 128, "mine"), p.lx(128, 128, "theirs")
    following = [(core + 1) % cores for core in range(cores)]
    before = [(core - 1) % cores for core in range(cores)]
    offsets = [core * 128 for core in range(cores)]
    for name in ("hbm_ld", "ring_tx", "ring_rx", "hbm_st"):
        with p.unit(name) as u:
            if name == "hbm_ld":
                u.move(source, u.table(*offsets), mine, 0, 64)
            p.barrier(u, 1)
            if name == "ring_tx":
                u.send(mine, 0, u.table(*following), [64], [2])
            if name == "ring_rx":
                u.receive(theirs, 0, u.table(*before), [64], [2])
            p.barrier(u, 2)
            if name == "hbm_st":
                u.move(theirs, 0, target, u.table(*offsets), 64)
    memory = Memory.of(2 * x.nbytes, (0, x))
    statistics = execute(p.module, machine, memory, unit_order_seed=seed)
    assert statistics.launches == 3
    assert np.array_equal(memory.read(x.nbytes, np.float16, x.shape), np.roll(x, 1, axis=0))


def test_accumulators_can_be_preloaded(machine: Machine) -> None:
    x = rng.standard_normal((3, 64, 64)).astype(np.float16)
    p = Program()
    tile = 64 * 64 * 2

    def body(p, xl, yl):
        q, out = p.queue("lx_ld", "pe"), p.queue("pe", "lx_st")

        def multiply(u):
            u.add(dfp.PePreloadOp(q, rows=64, n=64, element=f16))
            u.add(dfp.PeLoadOp(q, k=64, n=64, element=f16))
            u.add(dfp.PeMacOp(q, rows=64, k=64, n=64, element=f16))
            u.add(dfp.PeEmitOp(out, rows=64, n=64, element=f32))

        return {
            "lx_ld": lambda u: [u.stream(xl, place * tile, q, [4096], [2]) for place in (0, 1, 2)],
            "pe": multiply,
            "lx_st": lambda u: u.drain(out, yl, 0, [4096], [4], f32),
        }

    through_local(p, x.nbytes, body, results=64 * 64 * 4)
    memory = Memory.of(x.nbytes + 64 * 64 * 4, (0, x))
    execute(p.module, machine, memory)
    wide = x.astype(np.float64)
    found = memory.read(x.nbytes, np.float32, (64, 64))
    assert np.abs(found - (wide[0] + wide[2] @ wide[1])).max() < 1e-4


def test_a_consumer_may_hold_several_tiles(machine: Machine) -> None:
    x = rng.standard_normal((4, 64)).astype(np.float16)
    p = Program()
    source, target = p.ddr(0, x.nbytes, "x"), p.ddr(x.nbytes, x.nbytes, "y")
    tile = p.lx(0, 128, "t", slots=3, producer="hbm_ld", consumers=["hbm_st"])
    with p.unit("hbm_ld") as u, u.loop(4) as i:
        u.add(dfp.ReserveOp(tile))
        u.move(source, u.apply(lambda i: i * 128, i), tile, 0, 64)
        u.add(dfp.CommitOp(tile))
    with p.unit("hbm_st") as u, u.loop(2) as i:
        u.add(dfp.AcquireOp(tile))
        u.add(dfp.AcquireOp(tile))
        u.copy(tile, 0, target, u.apply(lambda i: i * 256 + 128, i), [64], [2], [2])
        u.copy(tile, 0, target, u.apply(lambda i: i * 256, i), [64], [2], [2], slot=1)
        u.add(dfp.ReleaseOp(tile))
        u.add(dfp.ReleaseOp(tile))
    memory = Memory.of(2 * x.nbytes, (0, x))
    execute(p.module, machine, memory)
    assert np.array_equal(memory.read(x.nbytes, np.float16, x.shape), x[[1, 0, 3, 2]])


# ---------------------------------------------------------------------------------------------------------- data faults


def fault(machine: Machine, p: Program, size: int = 65536) -> KtirError:
    with pytest.raises(KtirError) as caught:
        execute(p.module, machine, Memory.of(size))
    assert caught.value.location is not None and caught.value.location.file == "unit"
    return caught.value


def test_a_missing_push_stops_the_run_and_says_who_waits(machine: Machine) -> None:
    p = matmul_program(32, 128, 64)
    stream = p.find(dfp.StreamOp, 1)
    stream.detach()
    error = fault(machine, p)
    assert isinstance(error, DataflowDeadlock)
    assert "pe of core 0" in error.message and "queue lx_ld_pe" in error.message


def test_a_missing_pop_leaves_elements_behind(machine: Machine) -> None:
    p = pointwise_program(1)
    drain = p.find(dfp.DrainOp)
    drain.detach()
    for op in (p.find(dfp.AcquireOp, 2), p.find(dfp.CopyOp, 2), p.find(dfp.ReleaseOp, 2)):
        op.detach()
    error = fault(machine, p)
    assert isinstance(error, QueueImbalance)


def test_bytes_that_nobody_wrote_are_not_read(machine: Machine) -> None:
    p = pointwise_program(1)
    p.find(dfp.CopyOp, 0).detach()
    error = fault(machine, p)
    assert isinstance(error, UnwrittenRead) and "dfp.stream" in error.message and "x_tile" in error.message


def test_a_tile_that_is_filled_again_starts_unwritten(machine: Machine) -> None:
    """The second round writes only half of the tile; the bytes of the first round do not count."""
    p = Program()
    source, target = p.ddr(0, 512, "x"), p.ddr(512, 512, "y")
    tile = p.lx(0, 256, "t", slots=1, producer="hbm_ld", consumers=["hbm_st"])
    with p.unit("hbm_ld") as u:
        for count in (128, 64):
            u.add(dfp.ReserveOp(tile))
            u.move(source, 0, tile, 0, count)
            u.add(dfp.CommitOp(tile))
    with p.unit("hbm_st") as u, u.loop(2):
        u.add(dfp.AcquireOp(tile))
        u.move(tile, 0, target, 0, 128)
        u.add(dfp.ReleaseOp(tile))
    assert isinstance(fault(machine, p), UnwrittenRead)


def test_elements_of_another_type_are_not_popped(machine: Machine) -> None:
    p = pointwise_program(1)
    p.find(dfp.DrainOp).properties["element"] = bf16
    error = fault(machine, p)
    assert isinstance(error, QueueMisuse) and "float16 was pushed" in error.message


def test_addresses_outside_a_buffer_are_refused(machine: Machine) -> None:
    p = pointwise_program(2)
    p.find(dfp.BufferOp, 2).properties["bytes"] = p.find(dfp.QueueOp).properties["depth"]
    assert isinstance(fault(machine, p), DescriptorOutOfBounds)


def test_tiles_are_reserved_before_they_are_written(machine: Machine) -> None:
    p = pointwise_program(1)
    p.find(dfp.ReserveOp).detach()
    error = fault(machine, p)
    assert isinstance(error, QueueMisuse) and "does not hold" in error.message


def test_the_stationary_block_has_the_size_that_is_multiplied(machine: Machine) -> None:
    p = matmul_program(32, 64, 64)
    p.find(dfp.PeClearOp).properties["rows"] = p.find(dfp.PeLoadOp).properties["k"]
    error = fault(machine, p)
    assert isinstance(error, DataflowError) and "accumulators" in error.message


@pytest.mark.parametrize("shape", [([10**12, 64], 1), ([64], 10**12)], ids=["one operation", "many"])
def test_what_would_never_end_is_refused_before_it_begins(machine: Machine, shape: tuple[list[int], int]) -> None:
    counts, times = shape
    p = Program()
    x, tile = p.ddr(0, 1024, "x"), p.lx(0, 1024, "tile")
    with p.unit("hbm_ld") as u, u.loop(times):
        u.copy(x, 0, tile, 0, counts, [0, 2][-len(counts) :], [0, 2][-len(counts) :])
    with pytest.raises(LimitExceeded) as caught:
        execute(p.module, machine, Memory.of(1024))
    assert caught.value.location is not None and caught.value.remedy is not None


def test_conditions_that_cannot_be_counted_are_refused_where_they_are(machine: Machine) -> None:
    p = Program()
    x, tile = p.ddr(0, 1024, "x"), p.lx(0, 1024, "tile")
    with p.unit("hbm_ld") as u, u.loop(10**9) as i, u.when(lambda i: (i % 1_000_003).eq(5), i):
        u.move(x, 0, tile, 0, 64)
    with pytest.raises(LimitExceeded) as caught:
        execute(p.module, machine, Memory.of(1024))
    assert caught.value.location is not None
    assert [(each.code, each.location is None) for each in verify(p.module, machine)] == [("LimitExceeded", False)]
