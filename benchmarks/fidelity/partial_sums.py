"""The schedule of adding up partial sums where the depth of a product is split over cores.

The cores that share a result hand their partial sums along a chain. In the default order of cores they are as far apart
as there are results; torch-spyre pull request 1986 puts them next to each other (hops ``m * n`` to 1).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from benchmarks.fidelity.schedule import HALF, Schedule
from tests.backends.dataflow.programs import Unit

CORES, PARTS = 32, 4
ROWS, COLUMNS = 128, 256
"""Of the result of a chain."""
RESULTS = CORES // PARTS


def chains(adjacent: bool) -> ModuleOp:
    """Launch 0 puts partial sums on the cores, launch 1 adds them up. ``adjacent``: the new order of cores."""
    schedule = Schedule(CORES)
    size = ROWS * COLUMNS * HALF
    array = schedule.array(CORES * size)
    partial = schedule.kept(size, last=1)
    apart = 1 if adjacent else RESULTS
    part = [core // apart % PARTS for core in range(CORES)]

    def fetch(u: Unit) -> None:
        u.move(array, u.table(*[core * size for core in range(CORES)]), partial, 0, size // HALF)

    def combine(u: Unit) -> None:
        previous = u.table(*[core - apart if part[core] else -1 for core in range(CORES)])
        following = u.table(*[core + apart if part[core] < PARTS - 1 else -1 for core in range(CORES)])
        u.chain(partial, 0, total, 0, previous, following, [size // HALF], [HALF], [HALF])

    schedule.does("hbm_ld", fetch)
    schedule.next_launch()
    total = schedule.kept(size, last=1)
    schedule.does("ring_sum", combine)
    return schedule.module()
