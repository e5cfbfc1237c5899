"""The MLP block of ``[1, 512, 4096]`` with 12800 columns in the middle: gate, up, SwiGLU, down.

The measured block ran as one bundle whose operations follow each other, so each is a launch here. *Pinned*: gate, up
and their product stay in the scratchpads; for the last product each core sends its part to the cores that have the same
rows. *Unpinned*: they go to device memory and come back. Weights, input and output are in device memory in both.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import SSAValue

from benchmarks.fidelity.device_memory import QUEUED, elementwise, swiglu
from benchmarks.fidelity.product import Held, Product, Split, product
from benchmarks.fidelity.schedule import HALF, Schedule
from tests.backends.dataflow.programs import Unit

ROWS, MODEL, MIDDLE = 512, 4096, 12800
BLOCK = 128
OPERATIONS = 2 * 3 * ROWS * MODEL * MIDDLE
"""Floating point operations of the matrix units."""


def published_ms(utilisation: float, ghz: float = 1.1) -> float:
    """The time behind a published utilisation (per cent): of 32 cores of 1024 multiply-accumulates at a clock."""
    return OPERATIONS / (32 * 2048 * ghz * 1e6 * utilisation / 100)


def utilisation(milliseconds: float, ghz: float) -> float:
    """Per cent of the matrix units' peak at a clock."""
    return 100 * published_ms(100, ghz) / milliseconds


def pinned(split: Split) -> ModuleOp:
    """The block with nothing between its operations in device memory."""
    schedule = Schedule(split.cores)
    both = Product(ROWS, MODEL, 2 * MIDDLE, split, BLOCK, slice=256)
    own = ROWS // split.rows * MIDDLE // split.columns * HALF
    gate_and_up = schedule.kept(2 * own, last=1)
    product(schedule, both, kept=gate_and_up)
    schedule.next_launch()
    block = min(MODEL // split.columns, 2048)
    parts = MODEL // split.columns // block
    middle = schedule.kept(own, last=1 + parts)
    _swiglu_in_place(schedule, gate_and_up, middle, both)
    for _ in range(parts):
        schedule.next_launch()
        piece = both.result_bytes
        held = Held(schedule, middle, piece, own // piece, split.same_rows)
        product(schedule, Product(ROWS, MIDDLE, block * split.columns, split, block, slice=both.width), held)
    return schedule.module()


def _swiglu_in_place(schedule: Schedule, gate_and_up: SSAValue, middle: SSAValue, both: Product) -> None:
    """Each corelet combines the gates and ups that it made itself."""
    piece, blocks = both.result_bytes, both.blocks // 2

    def at(u: Unit, corelet: int, block: SSAValue, first: int) -> SSAValue:
        return u.apply(lambda i: ((i + first) * both.corelets + corelet) * piece, block)

    for corelet in range(both.corelets):
        feeds = [schedule.queue("lx_ld", "sfu") for _ in range(2)]
        out = schedule.queue("sfu", "lx_st")

        def feed(u: Unit, corelet: int = corelet, feeds: list[SSAValue] = feeds) -> None:
            with u.loop(blocks) as i, u.loop(piece // QUEUED) as j:
                for queue, first in zip(feeds, (0, blocks), strict=True):
                    place = u.apply(lambda base, j: base + j * QUEUED, at(u, corelet, i, first), j)
                    u.stream(gate_and_up, place, queue, [QUEUED // HALF], [HALF])

        def compute(u: Unit, feeds: list[SSAValue] = feeds, out: SSAValue = out) -> None:
            with u.loop(blocks * piece // QUEUED):
                u.map(feeds, out, [QUEUED // HALF], [f16, f16], swiglu)

        def drain(u: Unit, corelet: int = corelet, out: SSAValue = out) -> None:
            with u.loop(blocks) as i:
                u.drain(out, middle, at(u, corelet, i, 0), [piece // HALF], [HALF])

        for unit, work in (("lx_ld", feed), ("sfu", compute), ("lx_st", drain)):
            schedule.does(unit, work, corelet)


# Unpinned, the launches are simulated one by one: they have barriers between them, so their times add (property P11 of
# the simulator). Gate and up are both the wide product of ``product.wide``.


def between(split: Split) -> ModuleOp:
    """SwiGLU from device memory to device memory."""
    schedule = Schedule(split.cores)
    elementwise(schedule, ROWS * MIDDLE * HALF // split.cores, 2, swiglu)
    return schedule.module()


def down(split: Split) -> ModuleOp:
    """The last product from device memory to device memory."""
    schedule = Schedule(split.cores)
    product(schedule, Product(ROWS, MIDDLE, MODEL, split, MODEL // split.columns, slice=64))
    return schedule.module()
