"""Schedules that are all device memory: reads, copies, and element-wise kernels with several operands."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f16
from xdsl.ir import SSAValue

from benchmarks.fidelity.schedule import BURST, HALF, Schedule, filling, holding, load, store
from tests.backends.dataflow.programs import Unit

CORES = 32
PIECE = 32 * 1024
"""Bytes of one load where a core does nothing but read."""
QUEUED = 2048
"""Bytes that a hardware queue holds: operands that meet are fed in turns of so many."""


def reads(cores: int, size: int) -> ModuleOp:
    """Each core reads ``size`` bytes of its own."""
    schedule = Schedule(cores)
    array = schedule.array(cores * size)
    tile = schedule.tile(PIECE, "hbm_ld", "lx_ld")
    turns = size // PIECE

    def fetch(u: Unit) -> None:
        begin = u.table(*[core * size for core in range(cores)])
        with u.loop(turns) as i:
            load(u, array, u.apply(lambda i, b: i * PIECE + b, i, begin), tile, PIECE)

    def drop(u: Unit) -> None:
        with u.loop(turns), holding(u, tile):
            pass

    schedule.does("hbm_ld", fetch)
    schedule.does("lx_ld", drop)
    return schedule.module()


def copies(cores: int, size: int) -> ModuleOp:
    """Each core reads ``size`` bytes and writes as many, reads ahead of writes by a burst."""
    schedule = Schedule(cores)
    source, target = schedule.array(cores * size), schedule.array(cores * size)
    tile = schedule.tile(BURST, "hbm_ld", "hbm_st")
    first = [core * size for core in range(cores)]

    def fetch(u: Unit) -> None:
        begin = u.table(*first)
        with u.loop(size // BURST) as i:
            load(u, source, u.apply(lambda i, b: i * BURST + b, i, begin), tile, BURST)

    def write(u: Unit) -> None:
        begin = u.table(*first)
        with u.loop(size // BURST) as i:
            store(u, tile, target, u.apply(lambda i, b: i * BURST + b, i, begin), BURST)

    schedule.does("hbm_ld", fetch)
    schedule.does("hbm_st", write)
    return schedule.module()


# ---------------------------------------------------------------------------------------------------- element-wise

Scalar = Callable[..., SSAValue]


def add(builder: Builder, left: SSAValue, right: SSAValue) -> SSAValue:
    """``left + right``."""
    return builder.insert(arith.AddfOp(left, right)).result


def add_one(builder: Builder, value: SSAValue) -> SSAValue:
    """``value + 1``, for an operand that is there already."""
    return add(builder, value, _one(builder))


def swiglu(builder: Builder, gate: SSAValue, up: SSAValue) -> SSAValue:
    """``silu(gate) * up``."""
    negative = builder.insert(arith.NegfOp(gate)).result
    exponential = builder.insert(math.ExpOp(negative)).result
    silu = builder.insert(arith.DivfOp(gate, add(builder, exponential, _one(builder)))).result
    return builder.insert(arith.MulfOp(silu, up)).result


def _one(builder: Builder) -> SSAValue:
    return builder.insert(arith.ConstantOp(FloatAttr(1.0, f16))).result


def kernel(size: int, operands: int) -> ModuleOp:
    """An addition on 32 cores whose operands and result have ``size`` bytes; with one operand the other is there."""
    schedule = Schedule(CORES)
    elementwise(schedule, size // CORES, operands, add if operands > 1 else add_one)
    return schedule.module()


def elementwise(schedule: Schedule, size: int, operands: int, body: Scalar) -> None:
    """Each core reads ``size`` bytes of each operand and writes as many, burst by burst."""
    cores = schedule.cores
    arrays = [schedule.array(cores * size) for _ in range(operands)]
    target = schedule.array(cores * size)
    tiles = [schedule.tile(BURST, "hbm_ld", "lx_ld") for _ in arrays]
    result = schedule.tile(BURST, "lx_st", "hbm_st")
    feeds = [schedule.queue("lx_ld", "sfu") for _ in arrays]
    out = schedule.queue("sfu", "lx_st")
    first = [core * size for core in range(cores)]
    turns = size // BURST

    def fetch(u: Unit) -> None:
        begin = u.table(*first)
        with u.loop(turns) as i:
            for array, tile in zip(arrays, tiles, strict=True):
                load(u, array, u.apply(lambda i, b: i * BURST + b, i, begin), tile, BURST)

    def feed(u: Unit) -> None:
        with u.loop(turns), holding(u, *tiles), u.loop(BURST // QUEUED) as j:
            for tile, queue in zip(tiles, feeds, strict=True):
                u.stream(tile, u.apply(lambda j: j * QUEUED, j), queue, [QUEUED // HALF], [HALF])

    def compute(u: Unit) -> None:
        with u.loop(turns * BURST // QUEUED):
            u.map(feeds, out, [QUEUED // HALF], [f16] * operands, body)

    def drain(u: Unit) -> None:
        with u.loop(turns), filling(u, result):
            u.drain(out, result, 0, [BURST // HALF], [HALF])

    def write(u: Unit) -> None:
        begin = u.table(*first)
        with u.loop(turns) as i:
            store(u, result, target, u.apply(lambda i, b: i * BURST + b, i, begin), BURST)

    for unit, work in (("hbm_ld", fetch), ("lx_ld", feed), ("sfu", compute), ("lx_st", drain), ("hbm_st", write)):
        schedule.does(unit, work)
