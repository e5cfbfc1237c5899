"""The properties P1 to P16 of section "simulated time" by their names, on programs made at random.

P5 has a file of its own (``test_steady_state.py``), P7's verdict another (``test_deadlock.py``), P16 is among the
tests of the ring and P17 among the single faults.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f16

from ktir.backends.dataflow.bounds import launch_bounds
from ktir.backends.dataflow.costs import CostModel
from ktir.backends.dataflow.deadlock import minimal_depths, run_to_verdict
from ktir.backends.dataflow.functional import execute
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.timing import Timing
from ktir.backends.dataflow.unit_program import Program as Resolved
from ktir.dialect import dfp
from ktir.errors import DataflowDeadlock
from ktir.machine import Machine, load
from tests.backends.dataflow.generated import UNITS, Shape, build, random_shape
from tests.backends.dataflow.networks import as_program, random_network
from tests.backends.dataflow.programs import Memory, Program, binary
from tests.settings import examples

SPYRE = load("spyre", cores=4)
VECTOR = 128
"""Chunks of one vector: nothing moves in larger parts where there is more room."""
seeds = st.integers(0, 2**20)
counts = st.integers(1, 6)


def service(program: Resolved) -> dict[str, int]:
    """Ticks of work, by unit instance and by shared resource, over the whole program."""
    model, memory = CostModel(program), program.machine.global_memory
    clock = program.machine.clock
    found: dict[str, int] = {}

    def add(name: str, ticks: float) -> None:
        found[name] = found.get(name, 0) + int(ticks)

    for code in program.units:
        for instruction in code.instructions:
            cost = model.cost(code, instruction)
            for core in code.cores:
                times = instruction.executions(core)
                add(f"{code.unit} {core} {code.corelet}", times * cost.work)
                add(f"read port {core}", times * cost.read_port)
                add(f"write port {core}", times * cost.write_port)
                rate = memory.sustained_gbs / (clock.ghz * clock.ticks_per_cycle)
                add("device memory", times * cost.ddr_bytes / rate)
    return found


def assert_conserved(timing: Timing) -> None:
    for unit in timing.units:
        assert unit.total_ns == pytest.approx(timing.total_ns)
        assert min(unit.busy_ns, unit.starved_ns, unit.blocked_ns, unit.stalled_ns) >= -1e-9
    assert all(0 <= share <= 1 + 1e-9 for shares in timing.shares.values() for share in shares.values())


@settings(max_examples=examples(300), deadline=None)
@given(seeds, counts)
def test_p1_time_is_at_least_the_work_of_every_resource(seed: int, count: int) -> None:
    program = compile_program(build(random_shape(seed), count).module, SPYRE)
    timing = simulate(build(random_shape(seed), count).module, SPYRE)
    longest = max(service(program).values())
    assert timing.total_ns >= SPYRE.clock.nanoseconds(longest) - 1e-6
    costs = {id(i): CostModel(program).cost(code, i) for code in program.units for i in code.instructions}
    assert timing.total_ns >= SPYRE.clock.nanoseconds(sum(bound.ticks for bound in launch_bounds(program, costs)))


@settings(max_examples=examples(300), deadline=None)
@given(seeds, counts)
def test_p2_time_is_at_most_the_serial_sum(seed: int, count: int) -> None:
    """Everything one after the other: each chunk with its service, its turnaround, its latency and its hops."""
    program = compile_program(build(random_shape(seed), count).module, SPYRE)
    timing = simulate(build(random_shape(seed), count).module, SPYRE, chunk_bytes=VECTOR)
    memory, clock, net = SPYRE.global_memory, SPYRE.clock, SPYRE.net("ring")
    serial = sum(clock.nanoseconds(ticks) for ticks in service(program).values())
    for code in program.units:
        for instruction in code.instructions:
            cost = CostModel(program).cost(code, instruction)
            vectors = sum(flow.vectors for flow in (*instruction.pops, *instruction.pushes))
            vectors += sum(-(-access.box.bytes // 128) for access in instruction.accesses)
            for core in code.cores:
                chunks = instruction.executions(core) * max(1, vectors)
                serial += chunks * 4 / clock.ghz + instruction.executions(core) * cost.fill / 16 / clock.ghz
                if cost.ddr_bytes:
                    slowest = max(time for _, time in memory.request_ns) if memory.request_ns else 0.0
                    serial += chunks * (memory.latency_ns + 2 * memory.turnaround_ns + 2 * slowest * memory.servers)
                if cost.ring_bytes:
                    serial += chunks * 32 * (net.hop_cycles + 1) / clock.ghz
    assert timing.total_ns <= serial


@settings(max_examples=examples(300), deadline=None)
@given(seeds, counts)
def test_p3_nothing_is_lost(seed: int, count: int) -> None:
    shape = random_shape(seed)
    program = compile_program(build(shape, count).module, SPYRE)
    timing = simulate(build(shape, count).module, SPYRE)
    assert_conserved(timing)
    model, word = CostModel(program), SPYRE.global_memory.word
    moved = {False: 0, True: 0}
    for code in program.units:
        for instruction in code.instructions:
            for access in instruction.accesses:
                if not access.buffer.per_core:
                    touched = model.touched(code, access)
                    assert touched % word == 0
                    moved[access.writes] += touched * sum(instruction.executions(core) for core in code.cores)
    assert (timing.ddr_read, timing.ddr_written) == (moved[False], moved[True])


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 4), st.integers(1, 8), st.sampled_from([1, 2, 4]))
def test_p4_device_memory_is_not_idle_while_a_burst_waits(cores: int, tiles: int, window: int) -> None:
    """With readers that only read, the last of a server's bursts is served when all are: no time is lost between."""
    machine = load("spyre", {"unit.hbm_ld.outstanding": 64, "memory.ddr.servers": 1}, cores=4)
    p = Program(4)
    source = p.ddr(0, 1 << 20, "x")
    tile = p.lx(0, 4096 * tiles, "t")
    with p.unit("hbm_ld", range(cores)) as u:
        for _ in range(window):
            u.move(source, 0, tile, 0, 2048 * tiles)
    timing = simulate(p.module, machine)
    memory, clock = machine.global_memory, machine.clock
    bursts = cores * tiles * window
    burst = max(-(-4096 * clock.ghz * clock.ticks_per_cycle // memory.sustained_gbs), 0)
    slowest = max([time for _, time in memory.request_ns], default=0.0) * clock.ghz * clock.ticks_per_cycle
    most = bursts * max(burst, slowest) + window * clock.ticks(memory.latency_ns) + bursts
    assert timing.total_ns <= clock.nanoseconds(int(most)) * 1.01 + window * cores * 50


@settings(max_examples=examples(200), deadline=None)
@given(seeds, st.integers(0, 2**16), st.booleans())
def test_p6_results_do_not_depend_on_order_or_depth(seed: int, order: int, least: bool) -> None:
    """In any order of the units, with any depths from the verified minimum on."""
    shape = random_shape(seed)

    def outcome(p: Program, seed: int | None) -> bytes:
        data = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float16)
        memory = Memory.of(1 << 21, (0, data))
        execute(p.module, SPYRE, memory, unit_order_seed=seed)
        return memory.bytes.tobytes()

    expected = outcome(build(shape, 3), None)
    other = build(replace(shape, depth=1 if least else shape.depth + 1), 3)
    assert run_to_verdict(compile_program(other.module, SPYRE)) is None
    assert outcome(other, order) == expected


@settings(max_examples=examples(300), deadline=None)
@given(seeds)
def test_p7_the_timed_run_stops_where_the_verdict_says(seed: int) -> None:
    """At the declared depths, at the least that suffice, and with one of them lower."""
    machine = load("spyre", {"net.ring.depth": 2})
    network = random_network(seed)

    def stops(depths: dict[str, int], slots: dict[str, int]) -> tuple[bool, bool]:
        program = as_program(replace(network, depths=depths, slots=slots))
        verdict = run_to_verdict(compile_program(program.module, machine)) is not None
        try:
            simulate(program.module, machine)
        except DataflowDeadlock:
            return verdict, True
        return verdict, False

    declared = stops(network.depths, network.slots)
    assert declared[0] == declared[1]
    found = minimal_depths(compile_program(as_program(network).module, machine))
    if found is not None:
        depths = {name: max(1, depth) for name, depth in found.queues.items()}
        slots = {name: max(1, count) for name, count in found.slots.items()}
        assert stops(depths, slots) == (False, False)
        lower = next((name for name, depth in found.queues.items() if depth > 1), None)
        if lower is not None:
            assert stops({**depths, lower: depths[lower] - 1}, slots) == (True, True)


def resident(seed: int, depth: int, op: type = arith.AddfOp, scale: int = 1) -> tuple[Program, Machine]:
    """One core, scratchpad data only, each port used by one unit: nothing is arbitrated."""
    shape = random_shape(seed)
    p = Program(1)
    x, y = p.lx(0, 16384, "x"), p.lx(16384, 16384, "y")
    q, out = p.queue("lx_ld", "sfu", depth, "q"), p.queue("sfu", "lx_st", depth, "o")
    elements = shape.vectors * 64
    for name in ("lx_ld", "sfu", "lx_st"):
        with p.unit(name) as u, u.loop(shape.inner), u.loop(3):
            if name == "lx_ld":
                u.stream(x, 0, q, [elements], [2])
            elif name == "sfu":
                u.map([q], out, [elements], [f16], lambda b, v: binary(op)(b, v, v))
            else:
                u.drain(out, y, 0, [elements], [2])
    return p, load("spyre", {"unit.sfu.issue_scale": scale})


@settings(max_examples=examples(200), deadline=None)
@given(seeds, st.integers(1, 15))
def test_p8_without_sharing_time_grows_with_costs_and_falls_with_depth(seed: int, depth: int) -> None:
    def time(**keys) -> float:
        p, machine = resident(seed, **{"depth": depth, **keys})
        return simulate(p.module, machine, chunk_bytes=VECTOR).total_ns

    assert time(depth=depth + 1) <= time()
    assert time() <= time(op=arith.DivfOp) and time() <= time(scale=2)


@settings(max_examples=examples(100), deadline=None)
@given(seeds, counts)
def test_p8_with_sharing_the_bounds_are_monotone(seed: int, count: int) -> None:
    """Simulated time may grow when a part gets faster; the bounds may not."""
    shape = random_shape(seed)
    slow = load("spyre", {"unit.sfu.issue_scale": 3, "memory.ddr.sustained_gbs": 100.0}, cores=4)
    module = build(shape, count).module
    fast_bound, slow_bound = simulate(module, SPYRE), simulate(module, slow)
    assert fast_bound.bound_ns <= slow_bound.bound_ns
    assert slow_bound.total_ns >= slow_bound.bound_ns


@settings(max_examples=examples(100), deadline=None)
@given(seeds, st.sampled_from([2, 4, 8]))
def test_p9_all_rates_faster_make_time_shorter_by_the_same(seed: int, factor: int) -> None:
    """Twice the ticks of a nanosecond are half the nanoseconds of a tick: everything that is counted in cycles."""
    p, machine = resident(seed, 4)
    fast = load("spyre", {"clock.core.ghz": 1.5 * factor})
    assert simulate(p.module, machine).total_ns == pytest.approx(factor * simulate(p.module, fast).total_ns, rel=1e-12)


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.integers(0, 31), st.integers(0, 31), max_size=4), st.integers(0, 31), st.booleans())
def test_p10_the_ring_has_no_beginning(pairs: dict[int, int], turn: int, mirror: bool) -> None:
    """Cores renumbered around the ring, or in the other direction: the same time, as long as no tie is broken."""
    apart = {source: target for source, target in pairs.items() if source != target and abs(source - target) != 16}
    targets = list(apart.values())
    apart = {source: target for source, target in apart.items() if targets.count(target) == 1}
    if len(apart) != 1:
        apart = {3: 9} if not apart else dict([next(iter(apart.items()))])

    def time(place) -> float:
        p = Program(32)
        a, b = p.lx(0, 8192, "a"), p.lx(8192, 8192, "b")
        moved = {place(source): place(target) for source, target in apart.items()}
        back = {target: source for source, target in moved.items()}
        with p.unit("ring_tx", sorted(moved)) as u:
            u.send(a, 0, u.table(*(moved.get(core, 0) for core in range(32))), [4096], [2])
        with p.unit("ring_rx", sorted(back)) as u:
            u.receive(b, 0, u.table(*(back.get(core, 0) for core in range(32))), [4096], [2])
        return simulate(p.module, load("spyre")).total_ns

    sign = -1 if mirror else 1
    assert time(lambda core: (sign * core + turn) % 32) == time(lambda core: core)


@settings(max_examples=examples(100), deadline=None)
@given(seeds, counts)
def test_p11_launches_add_up(seed: int, count: int) -> None:
    """Two launches with a barrier take what they take one after the other; device memory keeps its direction."""
    shape = replace(random_shape(seed), launches=1)
    one = simulate(build(shape, count).module, SPYRE)
    two = simulate(build(replace(shape, launches=2), count).module, SPYRE)
    assert two.launches[1].start_ns == two.launches[0].stop_ns
    assert two.launches[0].time_ns == pytest.approx(one.total_ns, rel=1e-9, abs=1e-6)
    slack = 2 * SPYRE.global_memory.turnaround_ns * SPYRE.global_memory.servers + 400
    assert abs(two.launches[1].time_ns - one.total_ns) <= slack


def three_stages(tiles: int, slots: int, vectors: int) -> Timing:
    """Load, compute and store ``tiles`` on one core."""
    nests = dict.fromkeys(UNITS, "flat")
    shape = Shape(1, 1, vectors, slots, 16, nests, False, (), 1, 1, arith.DivfOp)
    return simulate(build(shape, tiles).module, SPYRE)


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from([1, 4, 16]), st.integers(20, 300))
def test_p12_buffers_decide_between_the_longest_stage_and_the_sum(vectors: int, tiles: int) -> None:
    """With room for more, a tile costs the longest stage, which is that of device memory; with room for one, the unit
    that loads also waits until its tile was taken in."""
    ns = {unit.unit: unit.busy_ns + unit.stalled_ns for unit in three_stages(1, 4, vectors).units}
    longest, fill = max(ns.values()), three_stages(1, 4, vectors).total_ns
    deep, shallow = three_stages(tiles, 4, vectors).total_ns, three_stages(tiles, 1, vectors).total_ns
    memory = SPYRE.global_memory
    turnaround = 2 * memory.turnaround_ns * memory.servers
    assert (tiles - 1) * longest <= deep <= tiles * (longest + turnaround) * 1.25 + fill
    assert deep <= shallow <= tiles * (sum(ns.values()) + turnaround) + fill


@settings(max_examples=examples(60), deadline=None)
@given(seeds)
def test_p13_beyond_some_depth_nothing_changes(seed: int) -> None:
    def time(depth: int) -> float:
        p, machine = resident(seed, depth)
        return simulate(p.module, machine, chunk_bytes=VECTOR).total_ns

    assert time(12) == time(16) <= time(8)


@settings(max_examples=examples(60), deadline=None)
@given(seeds, counts)
def test_p14_finer_chunks_change_little(seed: int, count: int) -> None:
    """By less than the stages times the time of a chunk, for each tile that passes."""
    p, machine = resident(seed, 16)
    coarse, fine = (simulate(p.module, machine, chunk_bytes=size).total_ns for size in (2048, VECTOR))
    chunk = 16 * (1 + 1) / machine.clock.ghz
    assert abs(coarse - fine) <= 3 * chunk * 3 * 3 + 3 * 2 / machine.clock.ghz


@settings(max_examples=examples(60), deadline=None)
@given(seeds)
def test_p15_what_stays_in_the_scratchpad_moves_no_device_memory(seed: int) -> None:
    p, machine = resident(seed, 4)
    timing = simulate(p.module, machine)
    assert timing.ddr_read == timing.ddr_written == timing.ddr_compulsory == 0
    assert timing.total_ns > 0 and timing.bound_by in ("sfu", "nothing")


@settings(max_examples=examples(100), deadline=None)
@given(seeds, st.integers(0, 2**16))
def test_capacities_at_and_above_the_minimum_change_no_result(seed: int, order: int) -> None:
    """The verified minimum, exactly: units take turns as the depths let them, and nothing else comes out."""
    shape = random_shape(seed)
    found = minimal_depths(compile_program(build(shape, 2).module, SPYRE))
    assert found is not None
    outcomes: set[bytes] = set()
    for more in (0, 1):
        p = build(shape, 2)
        for op in p.op.walk():
            if isinstance(op, dfp.QueueOp):
                op.properties["depth"] = dfp.integer(max(1, found.queues[op.sym_name.data]) + more)
            if isinstance(op, dfp.BufferOp) and op.slot_count:
                op.properties["slots"] = dfp.integer(max(1, found.slots[op.sym_name.data]))
        assert run_to_verdict(compile_program(p.module, SPYRE)) is None
        simulate(p.module, SPYRE)
        data = np.random.default_rng(1).standard_normal(1 << 16).astype(np.float16)
        memory = Memory.of(1 << 21, (0, data))
        execute(p.module, SPYRE, memory, unit_order_seed=order + more)
        outcomes.add(memory.bytes.tobytes())
    assert len(outcomes) == 1
