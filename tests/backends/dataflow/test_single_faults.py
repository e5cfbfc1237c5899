"""Single faults in correct programs: each is refused before the run, refused in the run, or seen in the result.

A fault that is none of these has to be proven harmless: the program verifies, and it gives the same bytes in several
orders of the units. Only faults that can be harmless by their nature may be: less room than declared but enough, and a
change of something that is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, f16, i64
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.functional import execute
from ktir.backends.dataflow.verify import verify
from ktir.dialect import dfp
from ktir.errors import KtirError
from ktir.machine import load
from tests.backends.dataflow.programs import Memory, Program, binary, matmul_program, pointwise_program
from tests.settings import FULL

SPYRE = load("spyre")
BYTES = 1 << 17
INPUT = 1 << 16
"""Bytes of device memory that hold data at the start; results come behind, or overwrite none of it."""


def around(cores: int = 4, tiles: int = 3) -> Program:
    """Each core loads tiles of its own, hands them to the next core, doubles what it gets, and stores it."""
    p = Program(cores)
    size, share = 512, 512 * tiles
    x, y = p.ddr(0, cores * share, "x"), p.ddr(INPUT, cores * share, "y", writes="once")
    loaded = p.lx(0, size, "loaded", slots=2, producer="hbm_ld", consumers=["ring_tx"])
    got = p.lx(2048, size, "got", slots=2, producer="ring_rx", consumers=["lx_ld"])
    made = p.lx(4096, size, "made", slots=1, producer="lx_st", consumers=["hbm_st"])
    q, out = p.queue("lx_ld", "sfu", 16, "q"), p.queue("sfu", "lx_st", 2, "o")
    own = [core * share for core in range(cores)]

    def each(name: str, body: Callable) -> None:
        with p.unit(name) as u, u.loop(tiles) as i:
            body(u, lambda: u.apply(lambda i, s: i * size + s, i, u.table(*own)))

    def held(u, kinds, tile, body: Callable[[], None]) -> None:
        u.add(kinds[0](tile))
        body()
        u.add(kinds[1](tile))

    fills, takes = (dfp.ReserveOp, dfp.CommitOp), (dfp.AcquireOp, dfp.ReleaseOp)
    each("hbm_ld", lambda u, at: held(u, fills, loaded, lambda: u.move(x, at(), loaded, 0, 256)))
    following, previous = [(c + 1) % cores for c in range(cores)], [(c - 1) % cores for c in range(cores)]
    each("ring_tx", lambda u, at: held(u, takes, loaded, lambda: u.send(loaded, 0, u.table(*following), [256], [2])))
    each("ring_rx", lambda u, at: held(u, fills, got, lambda: u.receive(got, 0, u.table(*previous), [256], [2])))
    each("lx_ld", lambda u, at: held(u, takes, got, lambda: u.stream(got, 0, q, [16, 16], [32, 2])))
    each("sfu", lambda u, at: u.map([q], out, [256], [f16], lambda b, v: binary(arith.AddfOp)(b, v, v)))
    each("lx_st", lambda u, at: held(u, fills, made, lambda: u.drain(out, made, 0, [16, 16], [32, 2])))
    each("hbm_st", lambda u, at: held(u, takes, made, lambda: u.move(made, 0, y, at(), 256)))
    return p


def summed(cores: int = 4) -> Program:
    """Boxes of all cores added along a chain; the first core tells all others the sum; each stores it."""
    p = Program(cores)
    x, y = p.ddr(0, cores * 512, "x"), p.ddr(INPUT, cores * 512, "y", writes="once")
    mine, total, told = p.lx(0, 512, "mine"), p.lx(512, 512, "total"), p.lx(1024, 512, "told")
    own = [core * 512 for core in range(cores)]
    following = [core - 1 for core in range(cores)]
    previous = [*range(1, cores), -1]
    first = [int(core == 0) for core in range(cores)]

    def body(name: str, launch: int, u) -> None:
        match name, launch:
            case "hbm_ld", 0:
                u.move(x, u.table(*own), mine, 0, 256)
            case "ring_sum", 1:
                u.chain(mine, 0, total, 0, u.table(*previous), u.table(*following), [256], [2], [2])
            case "ring_tx", 2:
                with u.loop(u.table(*first)):
                    u.multicast(total, 0, range(1, cores), [256], [2])
            case "ring_rx", 2:
                with u.loop(u.table(*(1 - each for each in first))):
                    u.receive(told, 0, 0, [256], [2])
            case "hbm_st", 3:
                with u.loop(u.table(*first)):
                    u.move(total, 0, y, 0, 256)
                with u.loop(u.table(*(1 - each for each in first))):
                    u.move(told, 0, y, u.table(*own), 256)
            case _:
                pass

    for name in ("hbm_ld", "ring_sum", "ring_tx", "ring_rx", "hbm_st"):
        with p.unit(name) as u:
            for launch in range(4):
                if launch:
                    p.barrier(u, launch)
                body(name, launch, u)
    return p


def once(p: Program, buffer: int) -> Program:
    """The program with the declaration that the lowering gives of outputs."""
    p.find(dfp.BufferOp, buffer).properties["writes"] = StringAttr("once")
    return p


PROGRAMS: dict[str, Callable[[], Program]] = {
    "matmul": lambda: once(matmul_program(32, 128, 64, cores=4), 2),
    "pointwise": lambda: once(pointwise_program(2, cores=2, op=arith.MulfOp), 2),
    "around": around,
    "summed": summed,
}


def memory() -> Memory:
    """Numbers that are all different, so that any other place gives another result."""
    data = np.random.default_rng(5).permutation(INPUT // 2).astype(np.float32) / 4096 - 4
    return Memory.of(BYTES, (0, data.astype(np.float16)))


def outcome(p: Program, seed: int | None = None) -> bytes | str:
    """What is in device memory after a run, or the error that stopped it."""
    ran = memory()
    try:
        execute(p.module, SPYRE, ran, unit_order_seed=seed)
    except KtirError as error:
        assert error.location is not None or error.code in ("QueueImbalance", "DataflowDeadlock")
        return error.code
    return ran.bytes.tobytes()


@cache
def right(name: str) -> bytes | str:
    return outcome(PROGRAMS[name]())


# --------------------------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True)
class Fault:
    """One change of the operation number ``place`` of the program's text."""

    kind: str
    place: int
    apply: Callable[[Operation], None]
    may_be_harmless: bool = False
    makes_another_program: bool = False
    """Whether it may give a program that is in order and computes something else; only its results can tell."""


def faults(name: str) -> Iterator[Fault]:
    """All single faults of a program; in which core's part a sum begins does not matter where all are exact."""
    p, commutes = PROGRAMS[name](), name == "summed"
    for place, op in enumerate(p.op.walk()):
        if isinstance(op, dfp.UnitOperation) and not isinstance(op, dfp.ForOp | dfp.TableOp):
            kind = "dropped signal" if isinstance(op, dfp.SlotOperation | dfp.BarrierOp) else "dropped " + op.name
            yield Fault(kind, place, lambda op: op.detach())
        if isinstance(op, dfp.StreamOp | dfp.SfuMapOp | dfp.PeEmitOp | dfp.SendOp | dfp.MulticastOp | dfp.CommitOp):
            yield Fault("doubled push", place, _double)
        if isinstance(op, dfp.QueueOp):
            for depth in (1, op.depth.value.data // 2, 17):
                yield Fault("wrong depth", place, lambda op, d=depth: _set(op, "depth", max(1, d)), True)
        if isinstance(op, dfp.BufferOp):
            if op.slot_count:
                yield Fault("wrong slots", place, lambda op: _set(op, "slots", op.slot_count + 1), True)
                yield Fault("fewer slots", place, lambda op: _set(op, "slots", max(1, op.slot_count - 1)), True)
            on_device = op.memory.data == "ddr"  # where an array is, the host alone knows (test_mutations.py)
            yield Fault(
                "shifted buffer", place, lambda op: _set(op, "offset", op.offset.value.data + 128), True, on_device
            )
        for name in ("strides", "src_strides", "dst_strides"):
            for number in range(len(dfp.values_of(op.properties[name])) if name in op.properties else 0):
                yield Fault("shifted stride", place, lambda op, n=name, k=number: _stretch(op, n, k, 2))
        for operand, value in enumerate(op.operands):
            if isinstance(value.type, IndexType) and isinstance(op, dfp.BoxSource | dfp.BoxTarget | dfp.CopyOp):
                yield Fault("shifted offset", place, lambda op, k=operand: _shift(op, k, 2))
        if isinstance(op, dfp.TableOp):
            entries = dfp.values_of(op.values)
            for left in range(len(entries)):
                for other in range(left + 1, len(entries)):
                    if entries[left] != entries[other]:
                        harmless = not op.results[0].uses or commutes
                        # cores that load, or store, each other's part compute a permutation
                        yield Fault(
                            "swapped entries", place, lambda op, a=left, b=other: _swap(op, a, b), harmless, True
                        )
        if isinstance(op, dfp.ForOp):
            yield Fault("other count", place, lambda op: _shift(op, 0, 1))


def _set(op: Operation, name: str, value: int) -> None:
    op.properties[name] = IntegerAttr(value, i64)


def _double(op: Operation) -> None:
    block = op.parent_block()
    assert block is not None
    block.insert_op_after(op.clone(), op)


def _stretch(op: Operation, name: str, number: int, amount: int) -> None:
    strides = list(dfp.values_of(op.properties[name]))
    strides[number] += amount
    op.properties[name] = dfp.integers(strides)


def _shift(op: Operation, operand: int, amount: int) -> None:
    constant = arith.ConstantOp(IntegerAttr(amount, IndexType()))
    moved = arith.AddiOp(op.operands[operand], constant.result)
    block = op.parent_block()
    assert block is not None
    block.insert_ops_before([constant, moved], op)
    op.operands[operand] = SSAValue.get(moved)


def _swap(op: Operation, left: int, other: int) -> None:
    entries = list(dfp.values_of(op.properties["values"]))
    entries[left], entries[other] = entries[other], entries[left]
    op.properties["values"] = dfp.integers(entries)


def verdict(name: str, fault: Fault) -> str:
    """How a fault comes out: "before", "during", "result", or "harmless" if it is proven to be."""
    p = PROGRAMS[name]()
    fault.apply(list(p.op.walk())[fault.place])
    found = [each for each in verify(p.module, SPYRE) if each.severity == "error"]
    if found:
        assert any(each.location is not None for each in found)
        return "before"
    first = outcome(p)
    if isinstance(first, str):
        return "during"
    if first != right(name):
        assert fault.makes_another_program, (
            f"{fault.kind} at operation {fault.place} of {name} is only seen in the result"
        )
        return "result"
    assert fault.may_be_harmless, f"{fault.kind} at operation {fault.place} of {name} has no effect"
    assert all(outcome(p, seed) == first for seed in (1, 2, 3))
    return "harmless"


STEP = 1 if FULL else 9


@pytest.mark.parametrize("name", PROGRAMS)
def test_p17_every_single_fault_is_caught_or_proven_harmless(name: str) -> None:
    assert verify(PROGRAMS[name]().module, SPYRE) == [] and isinstance(right(name), bytes)
    tried = list(faults(name))[::STEP]
    verdicts = Counter(verdict(name, fault) for fault in tried)
    assert verdicts["before"] + verdicts["during"] + verdicts["result"] > verdicts["harmless"]


def test_there_are_enough_faults_of_every_kind() -> None:
    kinds = Counter(fault.kind for name in PROGRAMS for fault in faults(name))
    assert kinds.total() >= 200
    wanted = {"dropped signal", "wrong depth", "shifted stride", "shifted offset", "swapped entries", "doubled push"}
    assert wanted | {"dropped dfp.send", "dropped dfp.receive", "dropped dfp.chain"} <= kinds.keys()
