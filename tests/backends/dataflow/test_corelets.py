"""Work on both corelets of a core: one program says it, the rules pass it, both simulators run it."""

import numpy as np
import pytest
from xdsl.dialects.builtin import f16

from ktir.backends.dataflow.functional import execute
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.verify import verify
from ktir.dialect import dfp
from ktir.machine import load
from tests.backends.dataflow.programs import Memory, Program

SPYRE = load("spyre")
K, N = 256, 64


def product(rows: int, corelets: int, blocks: int = 4) -> Program:
    """``c[rows, N] = a[rows, K] @ b[K, N]`` on one core, the rows shared by the corelets, the tiles by all."""
    p = Program()
    a, b = p.ddr(0, rows * K * 2, "a"), p.ddr(rows * K * 2, K * N * 2, "b")
    c = p.ddr((rows + N) * K * 2, rows * N * 2, "c", writes="once")
    half, depth = rows // corelets, K // blocks
    a_bytes, b_bytes = rows * depth * 2, depth * N * 2
    a_tile = p.lx(0, a_bytes, "a_tile", slots=2, producer="hbm_ld", consumers=["lx_ld"])
    b_tile = p.lx(2 * a_bytes, b_bytes, "b_tile", slots=2, producer="hbm_ld", consumers=["lx_ld"])
    c_tile = p.lx(2 * (a_bytes + b_bytes), rows * N * 2, "c_tile", slots=1, producer="lx_st", consumers=["hbm_st"])
    feed, out = p.queue("lx_ld", "pe", name="feed"), p.queue("pe", "lx_st", name="out")
    with p.unit("hbm_ld") as u, u.loop(blocks) as i:
        u.add(dfp.ReserveOp(a_tile))
        at = u.apply(lambda i: i * (depth * 2), i)
        u.copy(a, at, a_tile, 0, [rows, depth], [K * 2, 2], [depth * 2, 2])
        u.add(dfp.CommitOp(a_tile))
        u.add(dfp.ReserveOp(b_tile))
        u.move(b, u.apply(lambda i: i * b_bytes, i), b_tile, 0, depth * N)
        u.add(dfp.CommitOp(b_tile))
    for corelet in range(corelets):
        with p.unit("lx_ld", corelet=corelet) as u, u.loop(blocks):
            u.add(dfp.AcquireOp(b_tile))
            u.stream(b_tile, 0, feed, [depth * N], [2])
            u.add(dfp.ReleaseOp(b_tile))
            u.add(dfp.AcquireOp(a_tile))
            u.stream(a_tile, corelet * half * depth * 2, feed, [half, depth], [depth * 2, 2])
            u.add(dfp.ReleaseOp(a_tile))
        with p.unit("pe", corelet=corelet) as u:
            u.add(dfp.PeClearOp(rows=half, n=N))
            with u.loop(blocks):
                u.add(dfp.PeLoadOp(feed, k=depth, n=N, element=f16))
                u.add(dfp.PeMacOp(feed, rows=half, k=depth, n=N, element=f16))
            u.add(dfp.PeEmitOp(out, rows=half, n=N, element=f16))
        with p.unit("lx_st", corelet=corelet) as u:
            u.add(dfp.ReserveOp(c_tile))
            u.drain(out, c_tile, corelet * half * N * 2, [half, N], [N * 2, 2])
            u.add(dfp.CommitOp(c_tile))
    with p.unit("hbm_st") as u:
        u.add(dfp.AcquireOp(c_tile))
        u.move(c_tile, 0, c, 0, rows * N)
        u.add(dfp.ReleaseOp(c_tile))
    return p


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("corelets", [1, 2])
def test_both_corelets_give_their_part_of_the_product(corelets: int, seed: int | None) -> None:
    rows = 64
    random = np.random.default_rng(4)
    a, b = random.standard_normal((rows, K)).astype(np.float16), random.standard_normal((K, N)).astype(np.float16)
    memory = Memory.of((rows + N) * K * 2 + rows * N * 2, (0, a), (a.nbytes, b))
    p = product(rows, corelets)
    assert verify(p.module, SPYRE) == []
    execute(p.module, SPYRE, memory, unit_order_seed=seed, initialised=[(0, a.nbytes + b.nbytes)])
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = memory.read(a.nbytes + b.nbytes, np.float16, (rows, N))
    assert np.all(np.abs(found - exact) <= np.abs(exact) * 2.0**-11 + K * 2.0**-20)


def test_two_corelets_are_faster_where_the_matrix_unit_decides() -> None:
    one, two = (simulate(product(512, corelets, 4).module, SPYRE) for corelets in (1, 2))
    busy = {
        corelets: sum(unit.busy_ns for unit in timing.units if unit.unit == "pe")
        for corelets, timing in ((1, one), (2, two))
    }
    assert two.total_ns <= one.total_ns
    assert busy[2] == pytest.approx(busy[1], rel=0.25), "the same work, on two units"
    assert len([unit for unit in two.units if unit.unit == "pe"]) == 2
