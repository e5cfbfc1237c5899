"""The MLP block of ``[1, 512, 4096]`` with 12800 columns in the middle: gate, up, SwiGLU, down.

The measured block ran as one bundle whose operations follow each other, so each is a launch here. *Pinned*: gate, up
and their product stay in the scratchpads, and for the last product each core sends its part to the cores that have the
same rows; the input is loaded for gate and for up, which adds a twentieth to their loads. *Unpinned*: all go to device
memory and come back. Weights, input and output are in device memory in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import SSAValue

from benchmarks.fidelity.device_memory import QUEUED, elementwise, swiglu
from benchmarks.fidelity.product import Held, Product, Split, product
from benchmarks.fidelity.schedule import HALF, Schedule
from tests.backends.dataflow.programs import Unit

ROWS, MODEL, MIDDLE = 512, 4096, 12800
OPERATIONS = 2 * 3 * ROWS * MODEL * MIDDLE
"""Floating point operations of the matrix units."""


def published_ms(utilisation: float, ghz: float = 1.1) -> float:
    """The time behind a published utilisation (per cent): of 32 cores of 1024 multiply-accumulates at a clock."""
    return OPERATIONS / (32 * 2048 * ghz * 1e6 * utilisation / 100)


def utilisation(milliseconds: float, ghz: float) -> float:
    """Per cent of the matrix units' peak at a clock."""
    return 100 * published_ms(100, ghz) / milliseconds


@dataclass(frozen=True)
class Pinned:
    """The launches of the block with nothing between its operations in device memory."""

    split: Split

    @property
    def up(self) -> Product:
        """Gate, and up."""
        return Product(ROWS, MODEL, MIDDLE, self.split, slice=256)

    @property
    def own(self) -> int:
        """Bytes that a core has of gate, of up and of their product."""
        return ROWS // self.split.rows * MIDDLE // self.split.columns * HALF

    @property
    def block(self) -> int:
        """Columns of the last product that a core makes together: no more than its weights leave room for."""
        return min(MODEL // self.split.columns, 2048)

    @property
    def parts(self) -> int:
        """In how many launches the last product is made."""
        return MODEL // self.split.columns // self.block


def pinned(split: Split) -> ModuleOp:
    """All launches."""
    p = Pinned(split)
    schedule = Schedule(split.cores)
    gate = schedule.kept(p.own, last=2)
    product(schedule, p.up, kept=gate)
    schedule.next_launch()
    up = schedule.kept(p.own, last=2)
    product(schedule, p.up, kept=up)
    schedule.next_launch()
    middle = schedule.kept(p.own, last=2 + p.parts)
    _swiglu(schedule, p.up, gate, up, middle)
    for _ in range(p.parts):
        schedule.next_launch()
        _down(schedule, p, middle)
    return schedule.module()


# The launches one by one, for a quicker simulation: they have barriers between them, so their times add (property P11
# of the simulator) but for the cycles of a barrier. What a launch finds in the scratchpads is loaded in a launch before
# it that does not count.


def up_pinned(split: Split) -> ModuleOp:
    """The launch of gate, and that of up."""
    p = Pinned(split)
    schedule = Schedule(split.cores)
    product(schedule, p.up, kept=schedule.kept(p.own, last=0))
    return schedule.module()


def swiglu_pinned(split: Split) -> ModuleOp:
    """The launch of SwiGLU, behind one that loads."""
    p = Pinned(split)
    schedule = Schedule(split.cores)
    gate, up = _loaded(schedule, p.own, p.own)
    _swiglu(schedule, p.up, gate, up, schedule.kept(p.own, last=1))
    return schedule.module()


def down_pinned(split: Split) -> ModuleOp:
    """One of the launches of the last product, behind one that loads."""
    p = Pinned(split)
    schedule = Schedule(split.cores)
    (middle,) = _loaded(schedule, p.own)
    _down(schedule, p, middle)
    return schedule.module()


def pinned_ns(split: Split, times: Sequence[float]) -> float:
    """The time of the block from those of its launches."""
    up, swiglu_, down_ = times
    return 2 * up + swiglu_ + Pinned(split).parts * down_


def _loaded(schedule: Schedule, *sizes: int) -> list[SSAValue]:
    """So many bytes in each scratchpad for the next launch."""
    arrays = [schedule.array(schedule.cores * size) for size in sizes]
    kept = [schedule.kept(size, last=1) for size in sizes]

    def fetch(u: Unit) -> None:
        for array, size, place in zip(arrays, sizes, kept, strict=True):
            u.move(array, u.table(*[core * size for core in range(schedule.cores)]), place, 0, size // HALF)

    schedule.does("hbm_ld", fetch)
    schedule.next_launch()
    return kept


def _down(schedule: Schedule, p: Pinned, middle: SSAValue) -> None:
    piece = p.up.result_bytes
    held = Held(schedule, middle, piece, p.own // piece, p.split.same_rows)
    shape = Product(ROWS, MIDDLE, p.block * p.split.columns, p.split, p.block, slice=p.up.width)
    product(schedule, shape, held)


def _swiglu(schedule: Schedule, up: Product, gates: SSAValue, ups: SSAValue, middle: SSAValue) -> None:
    """Each corelet combines the gates and ups that it made itself."""
    piece = up.result_bytes

    def at(u: Unit, corelet: int, block: SSAValue) -> SSAValue:
        return u.apply(lambda i: (i * up.corelets + corelet) * piece, block)

    for corelet in range(up.corelets):
        feeds = [schedule.queue("lx_ld", "sfu") for _ in range(2)]
        out = schedule.queue("sfu", "lx_st")

        def feed(u: Unit, corelet: int = corelet, feeds: list[SSAValue] = feeds) -> None:
            with u.loop(up.blocks) as i, u.loop(piece // QUEUED) as j:
                place = u.apply(lambda base, j: base + j * QUEUED, at(u, corelet, i), j)
                for queue, source in zip(feeds, (gates, ups), strict=True):
                    u.stream(source, place, queue, [QUEUED // HALF], [HALF])

        def compute(u: Unit, feeds: list[SSAValue] = feeds, out: SSAValue = out) -> None:
            with u.loop(up.blocks * piece // QUEUED):
                u.map(feeds, out, [QUEUED // HALF], [f16, f16], swiglu)

        def drain(u: Unit, corelet: int = corelet, out: SSAValue = out) -> None:
            with u.loop(up.blocks) as i:
                u.drain(out, middle, at(u, corelet, i), [piece // HALF], [HALF])

        for unit, work in (("lx_ld", feed), ("sfu", compute), ("lx_st", drain)):
            schedule.does(unit, work, corelet)


# Unpinned, gate and up are both the wide product of ``product.wide``.


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


def unpinned_ns(times: Sequence[float]) -> float:
    """The time of the block from those of its launches."""
    up, swiglu_, down_ = times
    return 2 * up + swiglu_ + down_
