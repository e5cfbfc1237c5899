"""How fast the timed simulator is: a product of 4096 x 4096 x 4096 on 32 cores, a decoder layer of the size of
Granite-3.3-8B on 512 tokens as it is compiled, or any dataflow program in a file.

    python -m benchmarks.timing_speed [product | layer | FILE.mlir]

Prints, for verification and simulation, seconds of this process, simulated time, events, and how much memory it grew.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp, f16

from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate_program
from ktir.backends.dataflow.verify import program_faults
from ktir.dialect import dfp
from ktir.dialect.text.parser import parse_module
from ktir.machine import load
from tests.backends.dataflow.programs import Program

T = TypeVar("T")
SIZE, ROWS, COLUMNS, DEPTH = 4096, 128, 128, 256
SPLIT = (8, 4)
"""Cores along the rows and along the columns of the result."""


def product() -> ModuleOp:
    """``c = a @ b`` on matrices laid out in tiles: each core has 512 rows and 1024 columns of c, in tiles of 128 x 128
    that it makes in steps of 256."""
    p = Program(32)
    a, b, c = (p.ddr(number * SIZE * SIZE * 2, SIZE * SIZE * 2, name) for number, name in enumerate("abc"))
    a_bytes, b_bytes, c_bytes = ROWS * DEPTH * 2, DEPTH * COLUMNS * 2, ROWS * COLUMNS * 2
    a_tile = p.lx(0, a_bytes, "a_tile", slots=2, producer="hbm_ld", consumers=["lx_ld"])
    b_tile = p.lx(2 * a_bytes, b_bytes, "b_tile", slots=2, producer="hbm_ld", consumers=["lx_ld"])
    c_tile = p.lx(2 * (a_bytes + b_bytes), c_bytes, "c_tile", slots=2, producer="lx_st", consumers=["hbm_st"])
    feed, out = p.queue("lx_ld", "pe"), p.queue("pe", "lx_st")
    down, across, steps = SIZE // SPLIT[0] // ROWS, SIZE // SPLIT[1] // COLUMNS, SIZE // DEPTH
    top = [core // SPLIT[1] * down for core in range(32)]
    left = [core % SPLIT[1] * across for core in range(32)]
    with p.unit("hbm_ld") as u, u.loop(down) as i, u.loop(across) as j, u.loop(steps) as k:
        u.add(dfp.ReserveOp(a_tile))
        place = u.apply(lambda i, k, t: (i + t) * (steps * a_bytes) + k * a_bytes, i, k, u.table(*top))
        u.move(a, place, a_tile, 0, a_bytes // 2)
        u.add(dfp.CommitOp(a_tile))
        u.add(dfp.ReserveOp(b_tile))
        place = u.apply(lambda j, k, t: (j + t) * (steps * b_bytes) + k * b_bytes, j, k, u.table(*left))
        u.move(b, place, b_tile, 0, b_bytes // 2)
        u.add(dfp.CommitOp(b_tile))
    with p.unit("lx_ld") as u, u.loop(down * across), u.loop(steps):
        for tile, size in ((b_tile, b_bytes), (a_tile, a_bytes)):
            u.add(dfp.AcquireOp(tile))
            u.stream(tile, 0, feed, [size // 2], [2])
            u.add(dfp.ReleaseOp(tile))
    with p.unit("pe") as u, u.loop(down * across):
        u.add(dfp.PeClearOp(rows=ROWS, n=COLUMNS))
        with u.loop(steps):
            u.add(dfp.PeLoadOp(feed, k=DEPTH, n=COLUMNS, element=f16))
            u.add(dfp.PeMacOp(feed, rows=ROWS, k=DEPTH, n=COLUMNS, element=f16))
        u.add(dfp.PeEmitOp(out, rows=ROWS, n=COLUMNS, element=f16))
    with p.unit("lx_st") as u, u.loop(down * across):
        u.add(dfp.ReserveOp(c_tile))
        u.drain(out, c_tile, 0, [c_bytes // 2], [2])
        u.add(dfp.CommitOp(c_tile))
    with p.unit("hbm_st") as u, u.loop(down) as i, u.loop(across) as j:
        u.add(dfp.AcquireOp(c_tile))
        tables = u.table(*top), u.table(*left)
        place = u.apply(lambda i, j, t, r: ((i + t) * (SIZE // COLUMNS) + j + r) * c_bytes, i, j, *tables)
        u.move(c_tile, 0, c, place, c_bytes // 2)
        u.add(dfp.ReleaseOp(c_tile))
    return p.module


def layer() -> ModuleOp:
    """The dataflow program of a decoder layer: hidden 4096, 32 heads of which 8 for keys, 12800 inside the MLP."""
    import torch

    import ktir
    from tests.frontend.torch.blocks import LlamaLayer

    model = LlamaLayer(4096, 32, 8, 12800).half().eval()
    return ktir.compile(model, (torch.zeros(1, 512, 4096, dtype=torch.float16),)).dataflow.op


def timed(what: str, work: Callable[[], T]) -> T:
    """Does ``work`` and prints the seconds of this process that it took, and the growth of memory."""
    before, grown = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = work()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown
    print(f"{what:10} {time.process_time() - before:7.2f} s   memory +{grown / 1024:.0f} MB")
    return found


BUILT = {"product": product, "layer": layer}


def main(arguments: list[str]) -> int:
    """Measures what is named."""
    name = arguments[0] if arguments else "product"
    if name in BUILT:
        module = timed("build", BUILT[name])
    else:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        module = timed("parse", lambda: parse_module(text, name))
    program = timed("resolve", lambda: compile_program(module, load("spyre")))
    faults = timed("verify", lambda: list(program_faults(program)))
    print(*faults, sep="\n", end="" if not faults else "\n")
    timing = timed("simulate", lambda: simulate_program(program))
    bound = f"bound {timing.bound_ns / 1e6:.3f} ms by {timing.bound_by}"
    print(f"{timing.total_ns / 1e6:.3f} ms ({bound}), {len(timing.launches)} launches, {timing.events} events")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
