"""The schedule of an on-chip relayout: cores in groups exchange parts of what they hold.

A tensor of 2 MiB lies on 8 neighbouring cores. In a relayout with ``split`` each core keeps one part in ``split`` of
what it holds and gives each of the others of its group one part, in runs of ``run`` bytes: the finer the slices, the
shorter the runs.
"""

from __future__ import annotations

from math import log2

from xdsl.dialects.builtin import ModuleOp

from benchmarks.fidelity.schedule import HALF, Schedule
from tests.backends.dataflow.programs import Unit

CORES = 8
HELD = 8 * 256 * 512 * HALF // CORES
"""Bytes that each core holds of a tensor of 8 x 256 x 512."""
SPLITS, RUNS = (2, 4, 8), (128, 512, 4096)
"""The geometries that the published fit covers, from end to end."""


def exchange(split: int, run: int) -> ModuleOp:
    """Launch 0 puts the tensor on the cores; in launch 1 cores of a group of ``split`` exchange their parts."""
    schedule = Schedule(CORES)
    array = schedule.array(CORES * HELD)
    source = schedule.kept(HELD, last=1)
    part = HELD // split
    counts = [part // run, run // HALF]
    group = [core // split * split for core in range(CORES)]

    def fetch(u: Unit) -> None:
        u.move(array, u.table(*[core * HELD for core in range(CORES)]), source, 0, HELD // HALF)

    def send(u: Unit) -> None:
        for distance in range(1, split):
            to = [first + (core + distance) % split for core, first in enumerate(group)]
            at = u.table(*[core % split * run for core in to])
            u.send(source, at, u.table(*to), counts, [run * split, HALF])

    def receive(u: Unit) -> None:
        for distance in range(1, split):
            origin = [first + (core - distance) % split for core, first in enumerate(group)]
            at = u.table(*[core % split * part for core in origin])
            u.receive(target, at, u.table(*origin), counts, [run, HALF])

    schedule.does("hbm_ld", fetch)
    schedule.next_launch()
    target = schedule.kept(HELD, last=1)
    schedule.does("ring_tx", send)
    schedule.does("ring_rx", receive)
    return schedule.module()


def published_ns(split: int, run: int) -> float:
    """Nanoseconds by the published fit to 21 measurements (torch-spyre ``cost_model.py``, ``relayout_ns``): so much
    for each run of a core, and the span that a core walks at 547 GB/s."""
    return HELD / run * (-1.14 + 3.92 * log2(split)) + HELD * split / 547
