"""What the grid, the loops and the reach of a core must keep within: rules of the language and limits of a machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ktir.analysis.accesses import Launch, View, grid_of, legal
from ktir.analysis.findings import cores_text, doubtful, proven
from ktir.analysis.footprint import Footprint, Region
from ktir.errors import (
    Diagnostic,
    GridExceedsMachine,
    IllegalGrid,
    KtirError,
    LoopCountTooLarge,
    LoopStepNotPositive,
    SpanTooLarge,
)

LOOP_COUNT_LIMIT = 65535
"""Iterations that the loop counter of a hardware unit holds."""


def check_grids(module: ModuleOp, cores: int | None) -> Iterator[Diagnostic]:
    """Findings on the grid of every function; ``cores`` of the machine, None without one."""
    for function in module.walk():
        grid = grid_of(function) if isinstance(function, func.FuncOp) else None
        if grid is None:
            continue
        if not legal(grid):
            text = f"the grid {list(grid)} is not legal: it needs extents of at least 1 and at most 65536 tiles"
            yield proven(function, IllegalGrid, text, "give every axis a positive extent")
        elif cores is not None and prod(grid) > cores:
            yield proven(
                function,
                GridExceedsMachine,
                f"the grid {list(grid)} has {prod(grid)} tiles, but the machine has {cores} cores",
                "loop over the tiles inside each core, or choose a machine with more cores",
            )


def check_loops(launch: Launch, *, on_a_machine: bool) -> Iterator[Diagnostic]:
    """Steps that are not positive, and, on a machine, counts that its loop counters do not hold."""
    for loop in launch.loops:
        step = loop.step.literal
        sure = loop.frame.certain.any()
        if step is not None and step <= 0 and sure:
            text = f"the step of the loop is {step}"
            yield proven(loop.operation, LoopStepNotPositive, text, "count upwards with a step of at least 1")
        least = float(np.broadcast_to(loop.trips.lower(), loop.frame.points).max(initial=0))
        if on_a_machine and least > LOOP_COUNT_LIMIT:
            yield doubtful(
                loop.operation,
                LoopCountTooLarge,
                f"the loop runs {int(least)} times; a unit's loop counter holds {LOOP_COUNT_LIMIT}",
                "split the loop in two, or make its tiles larger",
            )


def check_spans(launch: Launch, limit: int) -> Iterator[Diagnostic]:
    """Tensors of which one core reaches over more bytes than it can address; ``limit`` 0: no limit."""
    if not limit:
        return
    by_region: dict[Region, list[Footprint]] = defaultdict(list)
    for access in launch.accesses:
        for footprint in access.footprints or ():
            if footprint.region[0] == "global" and footprint.region[1] is not None:
                by_region[footprint.region].append(footprint)
    for reached in by_region.values():
        yield from too_far(launch, reached, limit)


def too_far(launch: Launch, reached: list[Footprint], limit: int) -> Iterator[Diagnostic]:
    """One finding for a tensor of which some core spans more than ``limit`` bytes."""
    core, start, stop = (np.concatenate([getattr(f, k) for f in reached]) for k in ("core", "start", "stop"))
    low = np.full(launch.cores, np.iinfo(np.int64).max)
    high = np.full(launch.cores, np.iinfo(np.int64).min)
    np.minimum.at(low, core, start)
    np.maximum.at(high, core, stop)
    span = np.where(high > low, high - np.minimum(low, high), 0)
    if (span <= limit).all():
        return
    view: View = reached[0].view
    report = proven if all(surely_reached(f) for f in reached) else doubtful
    error: type[KtirError] = SpanTooLarge
    yield report(
        view.operation,
        error,
        f"{cores_text(np.flatnonzero(span > limit))} reaches over {int(span.max())} bytes of {view.name}; a core "
        f"addresses at most {limit} bytes of a tensor",
        "split the tensor over more cores, or into several tensors",
    )


def surely_reached(footprint: Footprint) -> bool:
    """Whether both ends of every run are touched in every run of the kernel."""
    ends = (*footprint.access.tile.lower, *footprint.access.tile.upper)
    return bool(footprint.certain.all()) and all(end.attained() for end in ends)
