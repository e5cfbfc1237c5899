"""Runs the cores of a launch in groups that are small enough for a cache.

Groups are independent where no core waits for another and scratchpads do not grow under them. Without checks they then
run in several threads, one group each, as many at a time as torch may use: that waits once at the end, where sharing
each operation would wait at every one. Every operation is computed as it would be in order, so the bits are the same.
The checker looks at one access after the other, so with it the groups run in order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ktir.dialect.ktdp.ops import ConstructMemoryViewOp
from ktir.interp.batches import exchanges, widest
from ktir.interp.numerics import Array
from ktir.interp.run import Run

ELEMENTS = 1 << 20
"""Elements of the largest value of a group: a few tiles at a time cost least."""

RunGroup = Callable[[Run, Array], Any]
"""Runs some cores, given by their tile ids."""


def size_of_groups(kernel: Operation) -> int | None:
    """How many cores run together; None where all have to."""
    elements = None if exchanges(kernel) else widest(kernel)
    return None if elements is None else max(1, ELEMENTS // elements)


def uses_scratchpads(kernel: Operation) -> bool:
    """Whether the kernel has a window on a scratchpad; those of all cores move when one grows."""
    return any(isinstance(op, ConstructMemoryViewOp) and op.space.kind == "ct_local" for op in kernel.walk())


def run_groups(run: Run, cores: Array, size: int, work: RunGroup, *, independent: bool) -> None:
    """Runs ``size`` cores at a time; several groups at once where they are ``independent``."""
    groups = [cores[first : first + size] for first in range(0, len(cores), size)]
    torch, threads, use_threads = sys.modules.get("torch"), 1, ignore
    if torch is not None and run.checker is None and independent:
        threads, use_threads = torch.get_num_threads(), torch.set_num_threads
    if min(threads, len(groups)) < 2:
        for group in groups:
            work(run, group)
        return
    parts = [run.part() for _ in groups]

    def one(part: Run, group: Array) -> None:
        use_threads(threads)  # what a thread starts with depends on what others do at that moment
        with np.errstate(all="ignore"):
            work(part, group)

    with ThreadPoolExecutor(min(threads, len(groups))) as pool:
        for done in [pool.submit(one, part, group) for part, group in zip(parts, groups, strict=True)]:
            done.result()  # raises what the first of them raised, as running in order does
    for part in parts:
        run.take_over(part)


def ignore(threads: int) -> None:
    """Nothing, where there is no torch."""


__all__: Sequence[str] = ["run_groups", "size_of_groups", "uses_scratchpads"]
