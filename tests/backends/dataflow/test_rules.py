"""Rules V2 to V11: what each refuses, with the operation; found before the run and, of data, in the run."""

from collections.abc import Callable
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, bf16, f16, f32, i64
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet

from ktir.backends.dataflow.functional import execute, run
from ktir.backends.dataflow.launch_symbols import launch
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.verify import check, verify
from ktir.dialect import dfp
from ktir.errors import ArgumentError, Diagnostic, KtirError
from ktir.machine import load
from ktir.machine.loader import loads
from tests.backends.dataflow.generated import build, random_shape
from tests.backends.dataflow.programs import Memory, Program, Unit, matmul_program, pointwise_program
from tests.settings import examples

SPYRE = load("spyre")


def found(p: Program) -> list[Diagnostic]:
    return verify(p.module, SPYRE)


def codes(p: Program) -> list[str]:
    return [each.code for each in found(p)]


# ------------------------------------------------------------------------------------------------------------------- V5


def handing_over(first: Callable[[Unit, dict], None], second: Callable[[Unit, dict], None]) -> Program:
    """hbm_ld fills a ring of two tiles, hbm_st takes them."""
    p = Program()
    x, y = p.ddr(0, 4096, "x"), p.ddr(4096, 4096, "y")
    tile = p.lx(0, 128, "tile", slots=2, producer="hbm_ld", consumers=["hbm_st"])
    for name, body in (("hbm_ld", first), ("hbm_st", second)):
        with p.unit(name) as u:
            body(u, {"x": x, "y": y, "tile": tile})
    return p


def fill(u: Unit, b: dict, *kinds: str) -> None:
    for kind in kinds:
        match kind:
            case "reserve":
                u.add(dfp.ReserveOp(b["tile"]))
            case "commit":
                u.add(dfp.CommitOp(b["tile"]))
            case "acquire":
                u.add(dfp.AcquireOp(b["tile"]))
            case "release":
                u.add(dfp.ReleaseOp(b["tile"]))
            case "write":
                u.move(b["x"], 0, b["tile"], 0, 64)
            case _:
                u.copy(b["tile"], 0, b["y"], 0, [64], [2], [2], slot=1 if kind == "read 1" else 0)


RIGHT = ("reserve", "write", "commit")
TAKE = ("acquire", "read", "release")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (("write", "reserve", "commit"), TAKE, "writes a tile"),
        (("reserve", "commit", "write"), TAKE, "writes a tile"),
        (("commit", "reserve"), TAKE, "without a dfp.reserve"),
        (RIGHT, ("read", "acquire", "release"), "reads a tile"),
        (RIGHT, ("acquire", "release", "read"), "reads a tile"),
        (RIGHT, ("acquire", "read 1", "release"), "reads a tile"),
        (RIGHT, ("release", "acquire"), "without a dfp.acquire"),
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_v5_a_unit_uses_only_what_it_holds(first, second, message: str, times: int) -> None:
    def body(kinds):
        def write(u, b):
            with u.loop(times):
                fill(u, b, *kinds)

        return write

    faults = [each for each in found(handing_over(body(first), body(second))) if each.code == "SlotMisuse"]
    assert faults and message in faults[0].message and faults[0].location is not None


def test_v5_holding_two_tiles_and_conditions_are_no_fault() -> None:
    def first(u, b):
        with u.loop(4):
            fill(u, b, *RIGHT)

    def second(u, b):
        with u.loop(2):
            fill(u, b, "acquire", "acquire", "read 1", "read", "release", "release")

    assert codes(handing_over(first, second)) == []

    def sometimes(u, b):
        with u.loop(8) as i, u.when(lambda i: (i % 2).eq(0), i):
            fill(u, b, *RIGHT)

    assert codes(handing_over(sometimes, second)) == []


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ((("acquire", 0), ("read", 0), ("release", 0)), None),
        ((("acquire", 0), ("read", None), ("release", 1)), None),
        ((("acquire", 0), ("release", 0), ("read", None)), "reads a tile"),
        ((("acquire", 0), ("read", 1), ("release", 0)), "reads a tile"),
        ((("release", 0), ("acquire", 0)), "without a dfp.acquire"),
        ((("acquire", 1), ("read", 1), ("release", 0)), "without a dfp.acquire"),
    ],
)
def test_v5_conditions_decide_what_is_held(kinds: tuple, message: str | None) -> None:
    """Each step in the even (0), the odd (1) or all iterations of four; the verifier says what the run says."""

    def first(u, b):
        with u.loop(2):
            fill(u, b, *RIGHT)

    def second(u, b):
        with u.loop(4) as i:
            for kind, parity in kinds:
                if parity is None:
                    fill(u, b, kind)
                else:
                    with u.when(lambda i, parity=parity: (i % 2).eq(parity), i):
                        fill(u, b, kind)

    faults = found(handing_over(first, second))
    if message is None:
        assert faults == []
        execute(handing_over(first, second).module, SPYRE, Memory.of(1 << 14))
        return
    assert {each.code for each in faults} == {"SlotMisuse"} and message in faults[0].message
    assert faults[0].location is not None
    with pytest.raises(KtirError):
        execute(handing_over(first, second).module, SPYRE, Memory.of(1 << 14))


def test_v5_a_program_gives_back_what_it_takes() -> None:
    assert codes(handing_over(lambda u, b: fill(u, b, *RIGHT), lambda u, b: fill(u, b, "acquire"))) == [
        "QueueImbalance"
    ]


def test_v5_no_wait_that_only_the_unit_itself_would_end() -> None:
    p = Program()
    tile = p.lx(0, 128, "tile", slots=1, producer="hbm_ld", consumers=["hbm_ld"])
    with p.unit("hbm_ld") as u:
        for kind in (dfp.AcquireOp, dfp.ReleaseOp, dfp.ReserveOp, dfp.CommitOp):
            u.add(kind(tile))
    faults = [each for each in found(p) if each.code == "SlotMisuse"]
    assert faults and "only hbm_ld itself" in faults[0].message


# ------------------------------------------------------------------------------------------------------------------- V6


def sharing(cores: int = 1, *, barrier: bool = False, shift: int = 0) -> Program:
    """hbm_ld writes a plain region that hbm_st reads."""
    p = Program(cores)
    x, y = p.ddr(0, 4096, "x"), p.ddr(4096, 4096, "y")
    plain = p.lx(0, 1024, "plain")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, plain, 0, 512)
        if barrier:
            p.barrier(u, 1)
            u.move(x, 0, plain, 512 * shift, 128)
    with p.unit("hbm_st") as u:
        if barrier:
            p.barrier(u, 1)
        u.move(plain, 0, y, u.table(*(core * 512 for core in range(cores))), 256)
    return p


def test_v6_unordered_accesses_of_two_units_are_a_race() -> None:
    faults = found(sharing())
    assert [each.code for each in faults] == ["DataflowRace"]
    assert "plain" in faults[0].message and "nothing orders the two" in faults[0].message
    assert faults[0].location is not None and faults[0].remedy is not None
    with pytest.raises(KtirError) as caught:
        execute(sharing().module, SPYRE, Memory.of(1 << 14))
    assert caught.value.code == "DataflowRace" and caught.value.related


def test_v6_a_barrier_orders() -> None:
    assert codes(sharing(barrier=True, shift=1)) == []
    assert codes(sharing(barrier=True)) == ["DataflowRace"], "written again while it is read"


def persistent(*, early: bool) -> Program:
    """hbm_ld writes a plain region, then hands over a token; lx_ld reads the region after (or before) it takes it."""
    p = Program()
    x = p.ddr(0, 4096, "x")
    plain, token = p.lx(0, 1024, "plain"), p.lx(1024, 128, "token", slots=1, producer="hbm_ld", consumers=["lx_ld"])
    sink, q, out = p.lx(2048, 1024, "sink"), p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, plain, 0, 512)
        u.add(dfp.ReserveOp(token))
        u.add(dfp.CommitOp(token))
    with p.unit("lx_ld") as u:
        if early:
            u.stream(plain, 0, q, [512], [2])
        u.add(dfp.AcquireOp(token))
        if not early:
            u.stream(plain, 0, q, [512], [2])
        u.add(dfp.ReleaseOp(token))
    with p.unit("sfu") as u:
        u.map([q], out, [512], [f16], lambda b, x: x)
    with p.unit("lx_st") as u:
        u.drain(out, sink, 0, [512], [2])
    return p


def test_v6_tokens_order() -> None:
    assert codes(persistent(early=False)) == []
    assert codes(persistent(early=True)) == ["DataflowRace"]


def two_cores_store(*, same: bool) -> Program:
    """Both cores store to the same place, the same bits or each its own."""
    p = Program(2)
    x, y = p.ddr(0, 512, "x"), p.ddr(512, 512, "y")
    mine = p.lx(0, 128, "mine")
    with p.unit("hbm_ld") as u:
        u.move(x, 0 if same else u.table(0, 128), mine, 0, 64)
        p.barrier(u, 1)
    with p.unit("hbm_st") as u:
        p.barrier(u, 1)
        u.move(mine, 0, y, 0, 64)
    return p


def test_v6_two_writes_are_a_warning_until_they_differ() -> None:
    data = np.arange(256, dtype=np.float16)
    for same in (True, False):
        p = two_cores_store(same=same)
        assert [(each.code, each.severity) for each in found(p)] == [("WriteConflict", "warning")]
        assert check(p.module, SPYRE).cores == 2
    execute(two_cores_store(same=True).module, SPYRE, Memory.of(1024, (0, data)))
    with pytest.raises(KtirError) as caught:
        execute(two_cores_store(same=False).module, SPYRE, Memory.of(1024, (0, data)))
    assert caught.value.code == "DataflowRace" and caught.value.location is not None


def both_corelets_fill(second: int) -> Program:
    """The storing units of both corelets write 256 elements of the same tiles, the second from byte ``second`` on."""
    p = Program()
    x, y = p.ddr(0, 4096, "x"), p.ddr(1 << 16, 4096, "y")
    source = p.lx(0, 1024, "source")
    tile = p.lx(2048, 1024, "tile", slots=2, producer="lx_st", consumers=["hbm_st"])
    q, out = p.queue("lx_ld", "sfu", 16, "q"), p.queue("sfu", "lx_st", 16, "o")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, source, 0, 512)
        p.barrier(u, 1)
    for corelet in (0, 1):
        with p.unit("lx_ld", corelet=corelet) as u:
            p.barrier(u, 1)
            with u.loop(3):
                u.stream(source, 512 * corelet, q, [256], [2])
        with p.unit("sfu", corelet=corelet) as u:
            p.barrier(u, 1)
            with u.loop(3):
                u.map([q], out, [256], [f16], lambda b, v: v)
        with p.unit("lx_st", corelet=corelet) as u:
            p.barrier(u, 1)
            with u.loop(3):
                u.add(dfp.ReserveOp(tile))
                u.drain(out, tile, second * corelet, [256], [2])
                u.add(dfp.CommitOp(tile))
    with p.unit("hbm_st") as u:
        p.barrier(u, 1)
        with u.loop(3) as i:
            u.add(dfp.AcquireOp(tile))
            u.move(tile, 0, y, u.apply(lambda i: i * 1024, i), 256)
            u.add(dfp.ReleaseOp(tile))
    return p


def test_v6_producers_of_a_tile_write_parts_of_their_own() -> None:
    assert codes(both_corelets_fill(512)) == []
    for second in (0, 510):
        faults = found(both_corelets_fill(second))
        assert [(each.code, each.severity) for each in faults] == [("DataflowRace", "error")]
        assert "corelet 1" in faults[0].message and faults[0].location is not None


def test_v6_producers_may_take_turns_on_the_same_bytes_of_different_tiles() -> None:
    """Corelet 0 fills tiles 0 and 2, corelet 1 tile 1; all commit every tile."""
    p = both_corelets_fill(0)
    for kind in (dfp.StreamOp, dfp.SfuMapOp, dfp.DrainOp):
        for number, op in enumerate([op for op in p.op.walk() if isinstance(op, kind)]):
            loop, block = op.parent_op(), op.parent_block()
            condition = dfp.IfOp(_parity(number), [loop.regions[0].block.args[0]])
            block.insert_op_before(condition, op)
            op.detach()
            condition.body.block.add_op(op)
    assert codes(p) == []


def _parity(rest: int) -> AffineSet:
    index = AffineExpr.dimension(0)
    return AffineSet(1, 0, (AffineConstraintExpr(AffineConstraintKind.eq, index % 2, AffineExpr.constant(rest)),))


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**20), st.integers(1, 5))
def test_generated_programs_are_free_of_findings(seed: int, count: int) -> None:
    assert found(build(random_shape(seed), count)) == []


def between_barriers(first: tuple, second: tuple) -> Program:
    """hbm_ld fills a plain region, hbm_st stores it; a number is a barrier, ``work`` their part."""
    p = Program()
    x, y = p.ddr(0, 4096, "x"), p.ddr(4096, 4096, "y")
    plain = p.lx(0, 1024, "plain")
    for name, steps in (("hbm_ld", first), ("hbm_st", second)):
        with p.unit(name) as u:
            for step in steps:
                if step != "work":
                    p.barrier(u, step)
                elif name == "hbm_ld":
                    u.move(x, 0, plain, 0, 512)
                else:
                    u.move(plain, 0, y, 0, 512)
    return p


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (("work", 1), (1, "work"), None),
        ((3, "work", 7), (3, 7, "work"), None),
        ((2, "work", 1), (2, 1, "work"), "QueueMisuse"),
        ((1, "work", 1), (1, 1, "work"), "QueueMisuse"),
        ((0, "work", 1), (0, 1, "work"), "QueueMisuse"),
        ((1, "work", 2), (2, "work", 1), "QueueMisuse"),
    ],
)
def test_v2_launches_begin_in_order(first: tuple, second: tuple, code: str | None) -> None:
    faults = found(between_barriers(first, second))
    assert {each.code for each in faults} == ({code} if code else set())
    assert all(each.location is not None for each in faults)


def test_v2_a_barrier_stands_outside_of_loops_and_conditions() -> None:
    """A loop over barriers would be one launch after the other under one number: what they order could not be told."""
    p = Program()
    x, y = p.ddr(0, 4096, "x"), p.ddr(4096, 4096, "y")
    plain = p.lx(0, 1024, "plain")
    with p.unit("hbm_ld") as u, u.loop(3) as i:
        u.move(x, u.apply(lambda i: i * 1024, i), plain, 0, 512)
        p.barrier(u, 1)
    with p.unit("hbm_st") as u, u.loop(3) as i:
        with u.when(lambda i: i.ge(0), i):
            p.barrier(u, 1)
        u.move(plain, 0, y, u.apply(lambda i: i * 1024, i), 512)
    faults = found(p)
    assert [each.code for each in faults] == ["QueueMisuse"]
    assert all("loop" in each.message and each.location is not None and each.remedy for each in faults)


def test_v3_elements_are_popped_as_what_they_were_pushed() -> None:
    """Half-precision numbers of two kinds take the same room."""
    p = pointwise_program(2)
    p.find(dfp.StreamOp).properties["element"] = bf16
    faults = found(p)
    assert [each.code for each in faults] == ["QueueMisuse"] and "bf16" in faults[0].message
    assert faults[0].location is not None


def test_v7_a_ring_of_tiles_in_device_memory_has_its_bytes_alone() -> None:
    def attempt(offset: int) -> list[str]:
        p = Program()
        x, tile = p.ddr(0, 4096, "x"), p.lx(0, 1024, "tile")
        ring = p.ddr(offset, 1024, "ring", slots=2, producer="hbm_st", consumers=["hbm_ld"])
        with p.unit("hbm_ld") as u:
            u.move(x, 0, tile, 0, 512)
            p.barrier(u, 1)
            u.add(dfp.AcquireOp(ring))
            u.move(ring, 0, tile, 0, 512)
            u.add(dfp.ReleaseOp(ring))
        with p.unit("hbm_st") as u:
            p.barrier(u, 1)
            u.add(dfp.ReserveOp(ring))
            u.move(tile, 0, ring, 0, 512)
            u.add(dfp.CommitOp(ring))
        del x
        return codes(p)

    assert attempt(1024) == ["CapacityExceeded"]
    assert "CapacityExceeded" not in attempt(4096)


# ------------------------------------------------------------------------------------------------------------------- V9


def test_v9_bytes_that_nobody_writes_are_not_read() -> None:
    p = sharing(barrier=True, shift=1)
    p.find(dfp.CopyOp).properties["counts"] = dfp.integers([100])
    faults = found(p)
    assert [each.code for each in faults] == ["UnwrittenRead"] and "byte 200 of buffer plain" in faults[0].message
    assert faults[0].location is not None


def test_v9_of_a_tile_only_what_the_producer_writes_is_read() -> None:
    p = handing_over(lambda u, b: fill(u, b, *RIGHT), lambda u, b: fill(u, b, *TAKE))
    p.find(dfp.CopyOp).properties["counts"] = dfp.integers([60])
    assert codes(p) == ["UnwrittenRead"]


def product(*steps: tuple[str, int], times: int = 1, condition: bool = False) -> Program:
    """A matrix unit that takes ``steps``: what it does, and with how many rows; blocks are 8 x 8."""
    p = Program()
    x, a, z = p.ddr(0, 4096, "x"), p.lx(0, 4096, "a"), p.lx(8192, 4096, "z")
    q, out = p.queue("lx_ld", "pe", 16, "q"), p.queue("pe", "lx_st", 16, "o")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, a, 0, 2048)
        p.barrier(u, 1)

    def each(name: str, step: Callable[[Unit, str, int], None]) -> None:
        with p.unit(name) as u:
            p.barrier(u, 1)
            with u.loop(times) as i:
                for kind, rows in steps:
                    if condition and kind in ("load", "clear"):
                        with u.when(lambda i: i.eq(0), i):
                            step(u, kind, rows)
                    else:
                        step(u, kind, rows)

    def work(u: Unit, kind: str, rows: int) -> None:
        match kind:
            case "load":
                u.add(dfp.PeLoadOp(q, k=rows, n=8, element=f16))
            case "clear":
                u.add(dfp.PeClearOp(rows=rows, n=8))
            case "mac":
                u.add(dfp.PeMacOp(q, rows=rows, k=8, n=8, element=f16))
            case _:
                u.add(dfp.PeEmitOp(out, rows=rows, n=8, element=f16))

    def feed(u: Unit, kind: str, rows: int) -> None:
        if kind in ("load", "mac"):
            u.stream(a, 0, q, [rows * 8], [2])

    def drain(u: Unit, kind: str, rows: int) -> None:
        if kind == "emit":
            u.drain(out, z, 0, [rows * 8], [2])

    each("lx_ld", feed)
    each("pe", work)
    each("lx_st", drain)
    return p


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("load", 8), ("clear", 4), ("mac", 4), ("mac", 4), ("emit", 4)], None),
        ([("clear", 8), ("mac", 8), ("emit", 8)], "none is loaded"),
        ([("load", 8), ("mac", 8), ("emit", 8)], "none were prepared"),
        ([("emit", 8)], "none were prepared"),
        ([("load", 4), ("clear", 8), ("mac", 8), ("emit", 8)], "(4, 8) is loaded"),
        ([("load", 8), ("clear", 4), ("mac", 8), ("emit", 8)], "(4, 8) were prepared"),
        ([("load", 8), ("clear", 8), ("mac", 8), ("emit", 4)], "(8, 8) were prepared"),
        ([("mac", 8), ("load", 8), ("clear", 8)], "none is loaded"),
    ],
)
def test_v9_the_matrix_unit_uses_what_it_holds(steps, message: str | None, times: int) -> None:
    """The verifier says what the run says."""
    faults = [each for each in found(product(*steps, times=times)) if each.code == "UnwrittenRead"]
    if message is None:
        assert faults == []
        execute(product(*steps, times=times).module, SPYRE, Memory.of(4096))
        return
    assert faults and message in " ".join(each.message for each in faults)
    assert all(each.location is not None for each in faults)
    with pytest.raises(KtirError):
        execute(product(*steps, times=times).module, SPYRE, Memory.of(4096))


def test_v9_what_a_condition_loads_is_left_to_the_run() -> None:
    steps = (("load", 8), ("clear", 8), ("mac", 8), ("emit", 8))
    assert codes(product(*steps, times=3, condition=True)) == []
    execute(product(*steps, times=3, condition=True).module, SPYRE, Memory.of(4096))


def test_v9_device_memory_that_nobody_wrote_may_be_copied_but_not_used() -> None:
    x = np.ones(2048, np.float16)

    def attempt(initialised: list[tuple[int, int]]) -> None:
        execute(pointwise_program(2).module, SPYRE, Memory.of(3 * 4096, (0, x), (4096, x)), initialised=initialised)

    attempt([(0, 8192)])
    with pytest.raises(KtirError) as caught:
        attempt([(0, 8190)])
    assert caught.value.code == "UnwrittenRead" and caught.value.location is not None
    execute(sharing(barrier=True, shift=1).module, SPYRE, Memory.of(1 << 14), initialised=[(0, 1024)])


# ------------------------------------------------------------------------------------------------------------------ V10


def chain(previous: list[int], following: list[int]) -> Program:
    p = Program(4)
    a, b = p.lx(0, 1024, "a"), p.lx(1024, 1024, "b")
    x = p.ddr(0, 1024, "x")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, a, 0, 512)
        p.barrier(u, 1)
    with p.unit("ring_sum") as u:
        p.barrier(u, 1)
        u.chain(a, 0, b, 0, u.table(*previous), u.table(*following), [512], [2], [2])
    return p


@pytest.mark.parametrize(
    ("previous", "following", "message"),
    [
        ([-1, 0, 1, 2], [1, 2, 3, -1], None),
        ([3, 0, 1, 2], [1, 2, 3, 0], "leads back"),
        ([-1, 0, 1, 2], [1, 3, 3, -1], "does not agree"),
        ([-1, 0, 0, 2], [1, 2, 3, -1], "does not agree"),
        ([-1, 0, 1, 2], [1, 2, 3, 9], None),
    ],
)
def test_v10_chains_agree_and_end(previous: list[int], following: list[int], message: str | None) -> None:
    faults = found(chain(previous, following))
    if following[-1] == 9:
        assert {each.code for each in faults} & {"DescriptorOutOfBounds", "PartnerMismatch", "QueueImbalance"}
    elif message is None:
        assert faults == []
    else:
        matching = [each for each in faults if each.code == "PartnerMismatch"]
        assert matching and message in matching[0].message and matching[0].location is not None


def ring_message(**keys) -> Program:
    p = Program(4)
    a, b, x = p.lx(0, 1024, "a"), p.lx(1024, 1024, "b"), p.ddr(0, 1024, "x")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, a, 0, 512)
        p.barrier(u, 1)
    with p.unit("ring_tx", [0]) as u:
        p.barrier(u, 1)
        if "group" in keys:
            u.multicast(a, 0, keys["group"], [64], [2])
        else:
            u.send(a, 0, keys.get("to", 1), [64], [2])
    with p.unit("ring_rx", keys.get("receivers", [1])) as u:
        p.barrier(u, 1)
        element, width = keys.get("element", (f16, 2))
        u.receive(b, 0, keys.get("source", 0), [128 // width], [width], element)
    return p


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({}, None),
        ({"to": 2}, "QueueImbalance"),
        ({"source": 3}, "QueueImbalance"),
        ({"receivers": [2]}, "QueueImbalance"),
        ({"element": (f32, 4)}, "PartnerMismatch"),
        ({"group": [1, 2, 3], "receivers": [1, 2, 3]}, None),
        ({"group": [1, 2, 3], "receivers": [1, 2]}, "QueueImbalance"),
        ({"group": [1, 1, 3], "receivers": [1, 3]}, "PartnerMismatch"),
        ({"group": [0, 1], "receivers": [0, 1]}, "PartnerMismatch"),
    ],
)
def test_v10_partners_agree(keys: dict, code: str | None) -> None:
    faults = found(ring_message(**keys))
    assert (faults == []) if code is None else (code in {each.code for each in faults})
    assert all(each.location is not None for each in faults)


def test_v10_messages_of_a_pair_of_cores_have_one_sender() -> None:
    """Two units of a core on one network: which message comes first is open."""
    text = resources.files("ktir.backends.dataflow").joinpath("data", "mesh.toml").read_text()
    start = text.index("[unit.sender]")
    second = text[start : text.index("[unit.receiver]")].replace("sender", "courier")
    machine = loads(text.replace("[unit.sender]", second + "[unit.sender]"))
    for senders, codes_found in ((["sender"], []), (["sender", "courier"], ["PartnerMismatch"])):
        p = Program(2, "mesh")
        x = p.ddr(0, 4096, "x")
        x.owner.properties["memory"] = StringAttr("dram")
        a, b = p.lx(0, 1024, "a"), p.lx(1024, 1024, "b")
        for buffer in (a, b):
            buffer.owner.properties["memory"] = StringAttr("l1")
        with p.unit("reader") as u:
            u.move(x, 0, a, 0, 512)
            p.barrier(u, 1)
        for name in senders:
            with p.unit(name, [0]) as u:
                p.barrier(u, 1)
                u.send(a, 0, 1, [64], [2])
        with p.unit("receiver", [1]) as u:
            p.barrier(u, 1)
            for place in range(len(senders)):
                u.receive(b, 128 * place, 0, [64], [2])
        assert [each.code for each in verify(p.module, machine)] == codes_found


def test_v10_tables_cover_each_core() -> None:
    p = Program(4)
    with p.unit("hbm_ld") as u:
        u.table(1, 2, 3)
    assert codes(p) == ["VerifyError"] and found(p)[0].location is not None


# ------------------------------------------------------------------------------------------------------------------ V11


def written_once(p: Program, buffer: int) -> Program:
    p.find(dfp.BufferOp, buffer).properties["writes"] = StringAttr("once")
    return p


def test_v11_outputs_are_written_exactly_once() -> None:
    assert codes(written_once(matmul_program(64, 128, 64, cores=4), 2)) == []
    assert codes(written_once(pointwise_program(3, cores=2), 2)) == []
    again = written_once(pointwise_program(3, cores=2, launches=2), 2)
    assert codes(again) == ["OutputWrites"] and "more than once" in found(again)[0].message
    again.find(dfp.BufferOp, 2).properties["writes"] = StringAttr("accumulate")
    assert codes(again) == []
    short = written_once(pointwise_program(3, cores=2), 2)
    store = [op for op in short.op.walk() if isinstance(op, dfp.CopyOp)][-1]
    store.properties["counts"] = dfp.integers([1000])
    assert codes(short) == ["OutputWrites"] and "never written" in found(short)[0].message


# -------------------------------------------------------------------------------------------------------------- symbols


def symbolic() -> Program:
    """x is doubled to y, both wherever the host says."""
    p = Program()
    at_x, at_y = p.symbol("x", alignment=128, bound=1 << 16), p.symbol("y", alignment=128, bound=1 << 16)
    x, y = p.ddr(0, 1024, "x", base=at_x), p.ddr(0, 1024, "y", base=at_y)
    a, b = p.lx(0, 1024, "a"), p.lx(1024, 1024, "b")
    q, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    steps = {
        "hbm_ld": lambda u: u.move(x, 0, a, 0, 512),
        "lx_ld": lambda u: u.stream(a, 0, q, [512], [2]),
        "sfu": lambda u: u.map([q], out, [512], [f16], lambda b, v: b.insert(arith.AddfOp(v, v)).result),
        "lx_st": lambda u: u.drain(out, b, 0, [512], [2]),
        "hbm_st": lambda u: u.move(b, 0, y, 0, 512),
    }
    for name, step in steps.items():
        with p.unit(name) as u:
            for number in range(3):
                if number:
                    p.barrier(u, number)
                if number == {"hbm_ld": 0, "hbm_st": 2}.get(name, 1):
                    step(u)
    return p


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 512), st.integers(0, 512))
def test_symbols_are_patched_at_launch(x: int, y: int) -> None:
    program = compile_program(symbolic().module, SPYRE)
    data = np.arange(512, dtype=np.float16)
    memory = Memory.of(1 << 17, (x * 128, data))
    values = {"x": x * 128, "y": y * 128}
    if abs(x - y) < 8:
        with pytest.raises(ArgumentError, match="share bytes"):
            launch(program, values)
        return
    run(launch(program, values), memory)
    assert np.array_equal(memory.read(y * 128, np.float16, (512,)), data + data)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"x": 0}, "symbol y has no value"),
        ({"x": 0, "y": 1000}, "not a multiple of 128"),
        ({"x": 0, "y": 1 << 17}, "not a multiple of 128 from 0 to 65536"),
    ],
)
def test_symbols_keep_their_promise(values: dict[str, int], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        launch(compile_program(symbolic().module, SPYRE), values)


def test_rules_hold_for_buffers_at_symbols() -> None:
    """V6 and V11 count addresses from the symbol on; a scratchpad has no symbols."""
    once = symbolic()
    once.find(dfp.BufferOp, 1).properties["writes"] = StringAttr("once")
    assert codes(once) == []
    store = [op for op in once.op.walk() if isinstance(op, dfp.CopyOp)][-1]
    store.properties["counts"] = dfp.integers([500])
    assert codes(once) == ["OutputWrites"]

    p = Program()
    at_y = p.symbol("y", alignment=128, bound=1 << 16)
    x, y = p.ddr(0, 1024, "x"), p.ddr(0, 1024, "y", base=at_y)
    a, b = p.lx(0, 1024, "a"), p.lx(1024, 1024, "b")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, a, 0, 512)
        p.barrier(u, 1)
        u.move(y, 0, b, 0, 512)
    with p.unit("hbm_st") as u:
        p.barrier(u, 1)
        u.move(a, 0, y, 0, 512)
    assert codes(p) == ["DataflowRace"]

    p = Program()
    p.lx(0, 1024, "a", base=p.symbol("s", alignment=128, bound=1 << 16))
    assert codes(p) == ["VerifyError"]


def test_a_program_with_symbols_is_verified_and_timed_but_not_run() -> None:
    p = symbolic()
    assert codes(p) == [] and simulate(p.module, SPYRE).total_ns > 0
    with pytest.raises(ArgumentError, match="has no value"):
        execute(p.module, SPYRE, Memory.of(1 << 17))
    p.find(dfp.SymbolOp).properties["alignment"] = IntegerAttr(64, i64)
    assert codes(p) == ["DescriptorOutOfBounds"]
