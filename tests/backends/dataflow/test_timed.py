"""Properties of simulated time: bounds, conservation, calibration of device memory, barriers, the ring."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, f16, i64

from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.timing import Timing
from ktir.dialect import dfp
from ktir.errors import DataflowDeadlock, LimitExceeded
from ktir.machine import Machine, load
from tests.backends.dataflow.programs import Program, binary, matmul_program, pointwise_program
from tests.settings import examples


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load("spyre")


def assert_conserved(timing: Timing) -> None:
    """P1 and P3 of every simulation."""
    assert timing.total_ns >= timing.bound_ns
    for launch in timing.launches:
        assert launch.time_ns >= launch.bound_ns - 1e-6
        assert launch.ddr_read + launch.ddr_written >= launch.ddr_compulsory
        assert launch.ring >= launch.ring_compulsory >= 0
        for total in launch.units:
            spent = total.busy_ns + total.starved_ns + total.blocked_ns + total.stalled_ns
            assert spent == pytest.approx(total.instances * launch.time_ns)
            assert 0 < total.balance <= 1
        for work in launch.work:
            assert work.operations <= work.peak * launch.time_ns * 1e-9 * (1 + 1e-9)
    for name in timing.shares:
        parts = [total for launch in timing.launches for total in launch.units if total.unit == name]
        busy = sum(unit.busy_ns for unit in timing.units if unit.unit == name)
        assert sum(part.busy_ns for part in parts) == pytest.approx(busy)
    for unit in timing.units:
        assert unit.total_ns == pytest.approx(timing.total_ns)
        assert min(unit.busy_ns, unit.starved_ns, unit.blocked_ns, unit.stalled_ns) >= 0
    assert timing.ddr_read == sum(launch.ddr_read for launch in timing.launches)
    assert all(0 <= each.start_ns < each.stop_ns <= timing.total_ns + 1e-6 for each in timing.intervals)
    assert all(sum(shares.values()) == pytest.approx(1) for shares in timing.shares.values())


@settings(max_examples=examples(400), deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([1, 2, 5, 32]),
    st.integers(1, 3),
    st.sampled_from([1024, 4096]),
)
def test_time_is_never_below_the_bound(tiles, slots, cores, launches, chunk) -> None:
    program = pointwise_program(tiles, op=arith.DivfOp, slots=slots, cores=cores, launches=launches)
    timing = simulate(program.module, load("spyre"), chunk_bytes=chunk)
    assert_conserved(timing)
    share = cores * tiles * 2048 * launches
    assert (timing.ddr_read, timing.ddr_written, timing.ddr_compulsory) == (2 * share, share, 3 * share)
    assert len(timing.launches) == launches and all(launch.cores == cores for launch in timing.launches)
    operations = cores * tiles * 1024 * load("spyre").unit("sfu").issues["arith.divf"]
    assert all([work.operations for work in launch.work] == [operations] for launch in timing.launches)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([8, 32, 40, 64]),
    st.sampled_from([64, 256]),
    st.sampled_from([64, 128]),
    st.sampled_from([1, 2, 16]),
    st.integers(1, 3),
    st.sampled_from([1, 4, 8]),
)
def test_matmul_is_never_below_the_bound(m, k, n, depth, slots, cores) -> None:
    program = matmul_program(m, k, n, depth=depth, slots=slots, cores=cores)
    assert_conserved(simulate(program.module, load("spyre")))


def test_the_same_program_takes_the_same_time(machine: Machine) -> None:
    program = pointwise_program(5, cores=32, launches=2)
    assert simulate(program.module, machine) == simulate(program.module, machine)


def copy_program(
    cores: int, *, tiles: int = 64, tile_bytes: int = 4096, reads: bool = True, writes: bool = True
) -> Program:
    """Every core streams tiles from device memory, to it, or both."""
    p = Program(32)
    size = tiles * tile_bytes
    source, target = p.ddr(0, 32 * size, "x"), p.ddr(32 * size, 32 * size, "y")
    both = reads and writes
    keys = {"slots": 4, "producer": "hbm_ld", "consumers": ["hbm_st"]} if both else {}
    tile = p.lx(0, tile_bytes, "t", **keys)
    who = range(cores)
    if reads:
        with p.unit("hbm_ld", who) as u:
            start = u.table(*(core * size for core in range(32)))
            with u.loop(tiles) as i:
                if both:
                    u.add(dfp.ReserveOp(tile))
                u.move(source, u.apply(lambda i, s: i * tile_bytes + s, i, start), tile, 0, tile_bytes // 2)
                if both:
                    u.add(dfp.CommitOp(tile))
    if writes:
        with p.unit("hbm_st", who) as u:
            start = u.table(*(core * size for core in range(32)))
            with u.loop(tiles) as i:
                if both:
                    u.add(dfp.AcquireOp(tile))
                u.move(tile, 0, target, u.apply(lambda i, s: i * tile_bytes + s, i, start), tile_bytes // 2)
                if both:
                    u.add(dfp.ReleaseOp(tile))
    return p


@pytest.mark.parametrize(("cores", "share"), [(1, 0.11), (2, 0.22), (4, 0.43), (8, 0.54), (16, 0.54), (32, 1.0)])
def test_reads_scale_with_cores_as_measured(machine: Machine, cores: int, share: float) -> None:
    timing = simulate(copy_program(cores, writes=False).module, machine)
    rate = timing.ddr_read / timing.total_ns / machine.global_memory.sustained_gbs
    assert rate == pytest.approx(share, rel=0.1)
    assert_conserved(timing)


def test_balanced_copy_pays_the_turnaround(machine: Machine) -> None:
    timing = simulate(copy_program(32).module, machine)
    rate = (timing.ddr_read + timing.ddr_written) / timing.total_ns
    assert rate == pytest.approx(105, rel=0.08)
    assert timing.bound_by == "device memory"


def test_more_bursts_in_flight_hide_the_latency_of_one_core(machine: Machine) -> None:
    program = copy_program(1, tiles=16, tile_bytes=65536, writes=False)
    one = simulate(program.module, machine)
    four = simulate(program.module, load("spyre", {"unit.hbm_ld.outstanding": 4}))
    assert 2.5 < one.total_ns / four.total_ns <= 4
    assert_conserved(four)


def resident_matmul(blocks: int, rows: int, *, corelets: int = 1) -> Program:
    """Matrix work on scratchpad data alone: ``blocks`` stationary blocks of 64 x 64, ``rows`` rows each."""
    p = Program(1)
    weights, moving, result = p.lx(0, 8192, "w"), p.lx(8192, rows * 128, "a"), p.lx(1 << 20, rows * 256, "c")
    for corelet in range(corelets):
        q, out = p.queue("lx_ld", "pe", name=f"q{corelet}"), p.queue("pe", "lx_st", name=f"o{corelet}")
        with p.unit("lx_ld", corelet=corelet) as u, u.loop(blocks):
            u.stream(weights, 0, q, [4096], [2])
            u.stream(moving, 0, q, [rows, 64], [128, 2])
        with p.unit("pe", corelet=corelet) as u:
            u.add(dfp.PeClearOp(rows=rows, n=64))
            with u.loop(blocks):
                u.add(dfp.PeLoadOp(q, k=64, n=64, element=f16))
                u.add(dfp.PeMacOp(q, rows=rows, k=64, n=64, element=f16))
            u.add(dfp.PeEmitOp(out, rows=rows, n=64, element=f16))
        with p.unit("lx_st", corelet=corelet) as u:
            u.drain(out, result, 0, [rows, 64], [128, 2])
    return p


def test_the_matrix_unit_nears_its_peak_on_long_blocks_and_loses_on_short_ones(machine: Machine) -> None:
    def utilisation(rows: int) -> float:
        timing = simulate(resident_matmul(32, rows).module, machine)
        assert_conserved(timing)
        assert timing.ddr_read == timing.ddr_written == 0
        flops = 2 * 32 * rows * 64 * 64
        return flops / timing.total_ns * 1e9 / (machine.peak_flops("f16") / 64)

    shares = [utilisation(rows) for rows in (4, 8, 64, 256)]
    assert shares == sorted(shares)
    assert shares[0] < 0.5 and 0.9 < shares[-1] <= 1.0


def test_corelets_work_side_by_side(machine: Machine) -> None:
    one = simulate(resident_matmul(16, 64).module, machine)
    two = simulate(resident_matmul(16, 64, corelets=2).module, machine)
    assert two.total_ns == pytest.approx(one.total_ns, rel=0.05)
    assert len(two.units) == 2 * len(one.units)


def strided_stream(stride: int) -> Program:
    p = Program(1)
    source, sink = p.lx(0, 64 * 1024, "x"), p.lx(64 * 1024, 8192, "y")
    q, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    with p.unit("lx_ld") as u:
        u.stream(source, 0, q, [512], [stride])
    with p.unit("sfu") as u:
        u.map([q], out, [512], [f16], lambda b, x: b.insert(arith.NegfOp(x)).result)
    with p.unit("lx_st") as u:
        u.drain(out, sink, 0, [512], [2])
    return p


def test_a_stream_is_charged_the_words_it_touches(machine: Machine) -> None:
    def busy(stride: int) -> float:
        timing = simulate(strided_stream(stride).module, machine)
        return next(unit.busy_ns for unit in timing.units if unit.unit == "lx_ld")

    assert busy(128) == pytest.approx(64 * busy(2), rel=0.01)
    assert busy(0) == busy(2)


def vector_program(op: type, elements: int = 4096) -> Program:
    p = Program(1)
    source, sink = p.lx(0, elements * 2, "x"), p.lx(1 << 19, elements * 2, "y")
    q, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    with p.unit("lx_ld") as u:
        u.stream(source, 0, q, [elements], [2])
    with p.unit("sfu") as u:
        u.map([q], out, [elements], [f16], lambda b, x: binary(op)(b, x, x))
    with p.unit("lx_st") as u:
        u.drain(out, sink, 0, [elements], [2])
    return p


def test_the_vector_unit_takes_its_issues(machine: Machine) -> None:
    add, divide = (simulate(vector_program(op).module, machine) for op in (arith.AddfOp, arith.DivfOp))
    cycle = 1 / machine.clock.ghz
    assert add.total_ns >= 64 * cycle and divide.total_ns >= 256 * cycle
    assert divide.total_ns == pytest.approx(256 * cycle, rel=0.3)
    slow = simulate(vector_program(arith.AddfOp).module, load("spyre", sfu="measured"))
    assert slow.total_ns == pytest.approx(64 * 18 * cycle, rel=0.1)
    assert slow.bound_by == divide.bound_by == "sfu"


def test_a_slower_clock_stretches_what_the_core_clock_drives() -> None:
    fast, slow = (simulate(vector_program(arith.DivfOp).module, load("spyre", clock=c)) for c in ("1.5GHz", "1.1GHz"))
    assert slow.total_ns / fast.total_ns == pytest.approx(1.5 / 1.1, rel=1e-6)
    assert slow.presets["clock"] == "1.1GHz"


def test_launches_add_up(machine: Machine) -> None:
    """P11: n equal launches take n times one."""
    one = simulate(pointwise_program(4, cores=8).module, machine)
    three = simulate(pointwise_program(4, cores=8, launches=3).module, machine)
    assert three.total_ns == pytest.approx(3 * one.total_ns, rel=0.02)
    assert [launch.start_ns for launch in three.launches[1:]] == [launch.stop_ns for launch in three.launches[:-1]]
    assert three.bound_ns == pytest.approx(3 * one.bound_ns)


def test_one_core_is_never_slower_with_deeper_queues_or_more_slots(machine: Machine) -> None:
    """P8 where nothing is shared, P13: beyond some depth nothing changes.

    Vector by vector, for what a deeper queue moves at once grows with its depth.
    """

    def time(**sizes: int) -> float:
        return simulate(matmul_program(64, 512, 64, **sizes).module, machine, chunk_bytes=128).total_ns

    times = [time(depth=depth) for depth in (1, 2, 4, 8, 16)]
    assert times == sorted(times, reverse=True)
    slots = [time(slots=slots) for slots in (1, 2, 3, 4)]
    assert slots == sorted(slots, reverse=True) and slots[0] > slots[1]
    assert slots[2] == pytest.approx(slots[3], rel=0.02)


def test_finer_chunks_change_little(machine: Machine) -> None:
    """P14: by less than the stages times the time of a chunk."""
    program = pointwise_program(8, cores=4)
    coarse, fine = (simulate(program.module, machine, chunk_bytes=size).total_ns for size in (4096, 1024))
    chunk_ns = 4096 / (machine.global_memory.sustained_gbs / machine.global_memory.servers) + 193
    assert abs(coarse - fine) < 5 * 8 * 4 * chunk_ns


def ring_program(pairs: dict[int, int], *, cores: int = 32, vectors: int = 256) -> Program:
    """Core ``a`` sends ``vectors`` to ``pairs[a]``."""
    p = Program(cores)
    size = vectors * 128
    source, sink = p.lx(0, size, "x"), p.lx(size, size, "y")
    back = {target: source for source, target in pairs.items()}
    with p.unit("ring_tx", sorted(pairs)) as u:
        u.send(source, 0, u.table(*(pairs.get(core, 0) for core in range(cores))), [vectors * 64], [2])
    with p.unit("ring_rx", sorted(back)) as u:
        u.receive(sink, 0, u.table(*(back.get(core, 0) for core in range(cores))), [vectors * 64], [2])
    return p


def test_the_ring_costs_hops_and_bytes(machine: Machine) -> None:
    cycle = 1 / machine.clock.ghz
    near, far = (simulate(ring_program({0: core}).module, machine) for core in (1, 16))
    assert near.ring == far.ring == 256 * 128 and near.ddr_read == 0
    assert near.total_ns >= 256 * cycle
    assert far.total_ns - near.total_ns == pytest.approx(15 * machine.net("ring").hop_cycles * cycle, rel=0.2)
    assert_conserved(far)


def test_the_ring_looks_the_same_from_every_core(machine: Machine) -> None:
    """P10: rotation and reflection."""
    times = {simulate(ring_program({start: (start + 5) % 32}).module, machine).total_ns for start in (0, 9, 30)}
    times |= {simulate(ring_program({start: (start - 5) % 32}).module, machine).total_ns for start in (0, 9, 30)}
    assert len(times) == 1


def test_links_are_shared_and_directions_are_not(machine: Machine) -> None:
    alone = simulate(ring_program({0: 4}).module, machine).total_ns
    crossing = simulate(ring_program({0: 4, 1: 5}).module, machine).total_ns
    opposite = simulate(ring_program({0: 4, 5: 1}).module, machine).total_ns
    assert crossing > 1.5 * alone
    assert opposite == pytest.approx(alone, rel=0.05)


def test_deadlock_is_the_same_verdict(machine: Machine) -> None:
    """P7."""
    with pytest.raises(DataflowDeadlock, match="queue qx is full with 8 vectors"):
        simulate(pointwise_program(2, depth=8).module, machine)


def test_busy_time_is_told_by_operation(machine: Machine) -> None:
    timing = simulate(pointwise_program(8, cores=2).module, machine)
    assert timing.hot_spots[0].operation == "copy" and timing.hot_spots[0].location is not None
    busy = sum(unit.busy_ns for unit in timing.units)
    assert sum(spot.busy_ns for spot in timing.hot_spots) == pytest.approx(busy)


def test_scratchpad_use_is_the_highest_byte(machine: Machine) -> None:
    program = pointwise_program(1)
    program.find(dfp.BufferOp, 5).properties["offset"] = IntegerAttr(1 << 20, i64)
    timing = simulate(program.module, machine)
    assert timing.scratchpad_used == (1 << 20) + 4096 and timing.scratchpad_bytes == machine.scratchpad_bytes


def test_loops_that_do_nothing_or_take_no_time_end() -> None:
    """A million million turns of rings of tiles cost nothing; as many turns without an operation are refused."""
    rings, idle = Program(1), Program(1)
    tile = rings.lx(0, 128, slots=2, producer="hbm_ld", consumers=["hbm_st"])
    with rings.unit("hbm_ld") as u, u.loop(10**12):
        u.add(dfp.ReserveOp(tile))
        u.add(dfp.CommitOp(tile))
    with rings.unit("hbm_st") as u, u.loop(10**12):
        u.add(dfp.AcquireOp(tile))
        u.add(dfp.ReleaseOp(tile))
    assert simulate(rings.module, load("spyre", cores=1)).events < 100
    source, target = idle.ddr(0, 128), idle.lx(0, 128)
    with idle.unit("hbm_ld") as u, u.loop(10**12) as i, u.when(lambda i: i.eq(5), i):
        u.move(source, 0, target, 0, 64)
    with pytest.raises(LimitExceeded, match="iterations without an operation"):
        simulate(idle.module, load("spyre", cores=1))
