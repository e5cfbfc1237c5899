"""Each verification rule refuses what it is there for, at the operation; correct programs pass; faults are caught."""

from collections.abc import Callable

import pytest
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, f16, f32, i64
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.deadlock import run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.verify import check, verify
from ktir.dialect import dfp
from ktir.errors import DataflowDeadlock, KtirError
from ktir.machine import Machine, load
from tests.backends.dataflow.programs import Program, Unit, matmul_program, pointwise_program


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load("spyre")


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


def set_property(op: Operation, name: str, value: object) -> None:
    op.properties[name] = value


@pytest.mark.parametrize(
    "program",
    [
        matmul_program(32, 128, 64),
        matmul_program(64, 128, 64, cores=4, slots=1),
        matmul_program(32, 128, 64, depth=1),
        pointwise_program(3, cores=2, launches=3),
    ],
)
def test_correct_programs_pass(machine: Machine, program: Program) -> None:
    program.module.verify()
    assert verify(program.module, machine) == []
    assert check(program.module, machine).cores == program.cores


def ring_program(*, swap: bool = False) -> Program:
    """Two cores exchange a tile; with ``swap`` core 1 sends to itself instead."""
    p = Program(2)
    source = p.ddr(0, 512, "x")
    mine, theirs = p.lx(0, 128, "mine"), p.lx(128, 128, "theirs")
    for name in ("hbm_ld", "ring_tx", "ring_rx"):
        with p.unit(name) as u:
            if name == "hbm_ld":
                u.move(source, u.table(0, 128), mine, 0, 64)
            p.barrier(u, 1)
            if name == "ring_tx":
                u.send(mine, 0, u.table(1, 1 if swap else 0), [64], [2])
            if name == "ring_rx":
                u.receive(theirs, 0, u.table(1, 0), [64], [2])
    return p


# Each entry: rule, a program, what is done to it, the error's name, a part of its message.
Case = tuple[str, Callable[[], Program], Callable[[Program], None], str, str]


def replace_unit(p: Program, kind: type, name: str) -> None:
    set_property(p.find(kind), "unit", StringAttr(name))


def add_unit(p: Program, name: str, body: Callable[..., None], **keys) -> None:
    with p.unit(name, **keys) as u:
        body(u)


def widen_region(p: Program) -> None:
    op = p.find(dfp.SfuMapOp)
    block = op.body.block
    erf = math.AtanOp(block.args[0])
    block.insert_op_before(erf, block.first_op)


def one_tile(unit: Unit, buffer: SSAValue) -> None:
    """Fills a single tile."""
    unit.add(dfp.ReserveOp(buffer))
    unit.add(dfp.CommitOp(buffer))


def share_bytes(p: Program) -> None:
    set_property(p.find(dfp.BufferOp, 4), "offset", number(0))


CASES: list[Case] = [
    ("V1", lambda: pointwise_program(1), lambda p: replace_unit(p, dfp.UnitOp, "warp"), "NotCapable", "no unit warp"),
    (
        "V1",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.UnitOp, 1), "corelet", number(2)),
        "NotCapable",
        "no number 2",
    ),
    ("V1", lambda: pointwise_program(1), lambda p: replace_unit(p, dfp.UnitOp, "hbm_st"), "NotCapable", "does not"),
    ("V1", lambda: pointwise_program(1), widen_region, "NotCapable", "math.atan"),
    (
        "V1",
        lambda: matmul_program(32, 64, 64),
        lambda p: set_property(p.find(dfp.PeMacOp), "element", i64),
        "NotCapable",
        "does not multiply i64",
    ),
    (
        "V2",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.QueueOp), "to", StringAttr("hbm_st")),
        "QueueMisuse",
        "no queue from lx_ld to hbm_st",
    ),
    (
        "V2",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.QueueOp), "vector_bytes", number(64)),
        "QueueMisuse",
        "the machine's have 128",
    ),
    (
        "V2",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.QueueOp), "to", StringAttr("pe")),
        "QueueMisuse",
        "sfu pops queue qx",
    ),
    (
        "V2",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.BufferOp, 3), "producer", StringAttr("lx_st")),
        "QueueMisuse",
        "whose producer is lx_st",
    ),
    (
        "V2",
        lambda: pointwise_program(1),
        lambda p: add_unit(p, "lx_ld", lambda u: None),
        "QueueMisuse",
        "two programs",
    ),
    (
        "V2",
        lambda: pointwise_program(1),
        lambda p: p.find(dfp.UnitOp, 3).detach(),
        "QueueMisuse",
        "no unit that fills it",
    ),
    (
        "V3",
        lambda: pointwise_program(2),
        lambda p: add_unit(p, "lx_st", lambda u: one_tile(u, p.find(dfp.BufferOp, 5).result), corelet=1),
        "QueueImbalance",
        "commits 1 tiles, another corelet 2",
    ),
    (
        "V2",
        lambda: pointwise_program(1, launches=2),
        lambda p: p.find(dfp.BarrierOp, 2).detach(),
        "QueueMisuse",
        "same barriers",
    ),
    ("V3", lambda: pointwise_program(2), lambda p: p.find(dfp.StreamOp).detach(), "QueueImbalance", "queue qx"),
    ("V3", lambda: pointwise_program(2), lambda p: p.find(dfp.CommitOp).detach(), "QueueImbalance", "reserves 2"),
    ("V3", lambda: pointwise_program(2), lambda p: p.find(dfp.ReleaseOp).detach(), "QueueImbalance", "acquires 2"),
    (
        "V3",
        lambda: pointwise_program(2),
        lambda p: set_property(p.find(dfp.SfuMapOp), "shape", DenseArrayBase.from_list(i64, [512])),
        "QueueImbalance",
        "pushes 32 vectors",
    ),
    ("V3", lambda: ring_program(swap=True), lambda p: None, "QueueImbalance", "core 1"),
    (
        "V4",
        lambda: pointwise_program(2),
        lambda p: set_property(p.find(dfp.QueueOp), "depth", number(8)),
        "DataflowDeadlock",
        "queue qx is full with 8 vectors",
    ),
    ("V7", lambda: pointwise_program(1), share_bytes, "CapacityExceeded", "overlaps x_tile"),
    (
        "V7",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.BufferOp, 5), "offset", number(1_625_344 - 128)),
        "CapacityExceeded",
        "1625344 to use",
    ),
    (
        "V7",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.QueueOp), "depth", number(17)),
        "CapacityExceeded",
        "the machine's holds 16",
    ),
    (
        "V7",
        lambda: matmul_program(32, 64, 64),
        lambda p: set_property(p.find(dfp.PeClearOp), "rows", number(4096)),
        "CapacityExceeded",
        "accumulators",
    ),
    (
        "V8",
        lambda: pointwise_program(2),
        lambda p: set_property(p.find(dfp.BufferOp), "bytes", number(2048)),
        "DescriptorOutOfBounds",
        "reaches bytes",
    ),
    (
        "V8",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.BufferOp, 5), "offset", number(8192 + 64)),
        "DescriptorOutOfBounds",
        "not aligned",
    ),
    (
        "V8",
        lambda: pointwise_program(1),
        lambda p: set_property(p.find(dfp.StreamOp), "slot", number(2)),
        "DescriptorOutOfBounds",
        "no slot 2",
    ),
]


@pytest.mark.parametrize(
    ("build", "spoil", "code", "message"),
    [case[1:] for case in CASES],
    ids=[f"{case[0]}-{case[4].replace(' ', '_')}" for case in CASES],
)
def test_each_rule_refuses_what_it_is_for(machine: Machine, build, spoil, code, message) -> None:
    p = build()
    spoil(p)
    found = verify(p.module, machine)
    matching = [diagnostic for diagnostic in found if diagnostic.code == code and message in diagnostic.message]
    assert matching, [str(diagnostic) for diagnostic in found]
    assert matching[0].location is None or matching[0].location.file == "unit"
    with pytest.raises(KtirError):
        check(p.module, machine)


def test_buffers_may_share_bytes_at_different_times(machine: Machine) -> None:
    p = pointwise_program(1, launches=2)
    share_bytes(p)
    first, other = p.find(dfp.BufferOp, 3), p.find(dfp.BufferOp, 4)
    set_property(first, "launches", DenseArrayBase.from_list(i64, [0, 0]))
    set_property(other, "launches", DenseArrayBase.from_list(i64, [1, 1]))
    assert [each for each in verify(p.module, machine) if each.code == "CapacityExceeded"] == []
    set_property(other, "launches", DenseArrayBase.from_list(i64, [0, 1]))
    assert "CapacityExceeded" in [each.code for each in verify(p.module, machine)]


def test_too_many_descriptor_dimensions_are_refused(machine: Machine) -> None:
    p = Program()
    source = p.ddr(0, 1 << 16, "x")
    tile = p.lx(0, 4096, "t")
    with p.unit("hbm_ld") as u:
        u.copy(source, 0, tile, 0, [2] * 6, [4096, 2048, 512, 128, 32, 2], [1024, 512, 128, 32, 8, 2])
    assert [each.code for each in verify(p.module, machine)] == ["CapacityExceeded"]


def test_a_core_reaches_only_so_far_in_device_memory(machine: Machine) -> None:
    p = Program()
    source = p.ddr(0, 1 << 30, "x")
    tile = p.lx(0, 128, "t")
    with p.unit("hbm_ld") as u, u.loop(3) as i:
        u.move(source, u.apply(lambda i: i * (200 << 20), i), tile, 0, 64)
    found = verify(p.module, machine)
    assert [each.code for each in found] == ["DescriptorOutOfBounds"] and "a core reaches" in found[0].message


def test_a_deadlock_names_both_sides_and_their_iterations(machine: Machine) -> None:
    program = compile_program(pointwise_program(3, depth=8).module, machine)
    deadlock = run_to_verdict(program)
    assert isinstance(deadlock, DataflowDeadlock)
    assert "lx_ld of core 0, dfp.stream in iteration [0], waits because queue qx is full" in deadlock.message
    assert "sfu of core 0, dfp.sfu_map in iteration [0], waits because queue qy is empty" in deadlock.message
    assert deadlock.location is not None and deadlock.related and deadlock.remedy


def test_a_ring_of_receives_before_sends_is_a_deadlock_when_messages_are_long(machine: Machine) -> None:
    """Every core sends 256 vectors before it receives any: the channel holds 128."""
    p = Program(2)
    x, source, sink = p.ddr(0, 32768, "x"), p.lx(0, 32768, "a"), p.lx(32768, 32768, "b")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, source, 0, 16384)
        p.barrier(u, 1)
        p.barrier(u, 2)
    with p.unit("ring_tx") as u:
        p.barrier(u, 1)
        u.send(source, 0, u.table(1, 0), [16384], [2])
        p.barrier(u, 2)
    with p.unit("ring_rx") as u:
        p.barrier(u, 1)
        p.barrier(u, 2)
        u.receive(sink, 0, u.table(1, 0), [16384], [2])
    found = verify(p.module, machine)
    assert [each.code for each in found] == ["DataflowDeadlock"]
    assert "from core 0 to core 1 is full with 128 vectors" in found[0].message


def test_one_slot_deadlocks_a_consumer_that_holds_two(machine: Machine) -> None:
    p = Program()
    source, target = p.ddr(0, 1024, "x"), p.ddr(1024, 1024, "y")
    tile = p.lx(0, 128, "t", slots=1, producer="hbm_ld", consumers=["hbm_st"])
    with p.unit("hbm_ld") as u, u.loop(2):
        u.add(dfp.ReserveOp(tile))
        u.move(source, 0, tile, 0, 64)
        u.add(dfp.CommitOp(tile))
    with p.unit("hbm_st") as u:
        for kind in (dfp.AcquireOp, dfp.AcquireOp, dfp.ReleaseOp, dfp.ReleaseOp):
            u.add(kind(tile))
        del target
    found = verify(p.module, machine)
    assert [each.code for each in found] == ["DataflowDeadlock"] and "a free one of the 1 tiles" in found[0].message


MUTATIONS: list[tuple[str, Callable[[Program], None]]] = [
    *((f"drop stream {place}", lambda p, place=place: p.find(dfp.StreamOp, place).detach()) for place in range(2)),
    *((f"drop reserve {place}", lambda p, place=place: p.find(dfp.ReserveOp, place).detach()) for place in range(3)),
    *((f"drop commit {place}", lambda p, place=place: p.find(dfp.CommitOp, place).detach()) for place in range(3)),
    *((f"drop acquire {place}", lambda p, place=place: p.find(dfp.AcquireOp, place).detach()) for place in range(3)),
    *((f"drop release {place}", lambda p, place=place: p.find(dfp.ReleaseOp, place).detach()) for place in range(3)),
    *(
        (f"halve depth {place}", lambda p, place=place: set_property(p.find(dfp.QueueOp, place), "depth", number(8)))
        for place in range(1)
    ),
    ("drop drain", lambda p: p.find(dfp.DrainOp).detach()),
    ("drop map", lambda p: p.find(dfp.SfuMapOp).detach()),
    ("double stream", lambda p: p.find(dfp.StreamOp).parent.add_op(p.find(dfp.StreamOp).clone())),
    ("shift tile", lambda p: set_property(p.find(dfp.BufferOp, 4), "offset", number(2048))),
    ("shift start", lambda p: set_property(p.find(dfp.TableOp), "values", DenseArrayBase.from_list(i64, [0, 8192]))),
    ("stretch stride", lambda p: set_property(p.find(dfp.CopyOp), "dst_strides", DenseArrayBase.from_list(i64, [4]))),
]


@pytest.mark.parametrize("mutate", [m[1] for m in MUTATIONS], ids=[m[0] for m in MUTATIONS])
def test_single_faults_are_caught_before_the_run(machine: Machine, mutate: Callable[[Program], None]) -> None:
    p = pointwise_program(3, cores=2)
    assert verify(p.module, machine) == []
    mutate(p)
    found = verify(p.module, machine)
    assert found
    assert any(each.location is not None and each.location.file == "unit" for each in found)


def test_programs_that_are_not_well_formed_are_reported_not_raised(machine: Machine) -> None:
    p = Program(2)
    with p.unit("sfu") as u:
        u.table(1, 2, 3)
    assert [each.code for each in verify(p.module, machine)] == ["VerifyError"]
    assert [each.code for each in verify(Program(64).module, machine)] == ["NotCapable"]
    p = Program()
    with p.unit("sfu") as u, u.loop(1 << 63):
        pass
    found = verify(p.module, machine)
    assert [each.code for each in found] == ["VerifyError"] and "iterations" in found[0].message
    assert found[0].location is not None


def test_reduction_regions_are_checked_too(machine: Machine) -> None:
    p = Program()
    q, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    with p.unit("sfu") as u:
        u.reduce(q, out, (1, 64, 1), [f16, f32], lambda b, x, y: b.insert(arith.TruncFOp(y, f16)).result)
    codes = [each.code for each in verify(p.module, machine)]
    assert codes and set(codes) <= {"QueueImbalance"}
