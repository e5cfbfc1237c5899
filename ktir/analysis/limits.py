"""What the grid, the loops and the reach of a core must keep within: rules of the language and limits of a machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import prod

import numpy as np
from xdsl.dialects import func

from ktir.analysis.accesses import Launch, Loop, grid_of, legal
from ktir.analysis.findings import Answer, answer, cores_text, doubtful, proven, unknown
from ktir.analysis.footprint import Footprint, Region
from ktir.analysis.launches import Program
from ktir.analysis.ranges import Bounds, Value
from ktir.errors import (
    Diagnostic,
    GridExceedsMachine,
    IllegalGrid,
    LoopCountTooLarge,
    LoopStepNotPositive,
    SpanTooLarge,
)
from ktir.machine import Machine


def check_limits(program: Program, machine: Machine | None) -> Iterator[Answer]:
    """An answer for every grid and every loop, and on a machine for every tensor that cores reach into."""
    for function in program.module.walk():
        if isinstance(function, func.FuncOp) and (grid := grid_of(function)) is not None:
            yield answer("limits", grid_faults(function, grid, machine.cores if machine else None))
    for launch in program.launches:
        for loop in launch.loops:
            yield answer("limits", loop_faults(loop, machine.loop_count_limit if machine else 0))
        if machine is not None and machine.span_limit_bytes:
            for reached in tensors(launch):
                yield answer("limits", too_far(launch, reached, machine.span_limit_bytes))


def grid_faults(function: func.FuncOp, grid: tuple[int, ...], cores: int | None) -> Iterator[Diagnostic]:
    """A grid that is none, or has more tiles than the machine has cores."""
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


def loop_faults(loop: Loop, limit: int) -> Iterator[Diagnostic]:
    """A step that is not positive, or more iterations than a loop counter holds; ``limit`` 0: no limit."""
    step = loop.step.literal
    if step is not None and step <= 0:
        report = proven if loop.frame.certain.any() else doubtful
        text = f"the step of the loop is {step}"
        yield report(loop.operation, LoopStepNotPositive, text, "count upwards with a step of at least 1")
    elif limit:
        least, most = (float(np.broadcast_to(b, loop.frame.points).max(initial=0)) for b in ends(loop.trips))
        if least > limit:
            yield doubtful(
                loop.operation,
                LoopCountTooLarge,
                f"the loop runs {int(least)} times; a unit's loop counter holds {limit}",
                "split the loop in two, or make its tiles larger",
            )
        elif most > limit:
            yield unknown(loop.operation, f"whether the loop runs at most {limit} times is not decided")


def ends(value: Value) -> tuple[Bounds, Bounds]:
    return value.lower(), value.upper()


def tensors(launch: Launch) -> Iterable[list[Footprint]]:
    """The footprints of a launch in global memory, by tensor."""
    by_region: dict[Region, list[Footprint]] = defaultdict(list)
    for access in launch.accesses:
        for footprint in access.footprints or ():
            if footprint.region[0] == "global" and footprint.region[1] is not None:
                by_region[footprint.region].append(footprint)
    return by_region.values()


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
    view = reached[0].view
    if not all(surely_reached(f) for f in reached):
        yield unknown(
            view.operation, f"whether a core reaches over more than {limit} bytes of {view.name} is not decided"
        )
        return
    yield proven(
        view.operation,
        SpanTooLarge,
        f"{cores_text(np.flatnonzero(span > limit))} reaches over {int(span.max())} bytes of {view.name}; a core "
        f"addresses at most {limit} bytes of a tensor",
        "split the tensor over more cores, or into several tensors",
    )


def surely_reached(footprint: Footprint) -> bool:
    """Whether both ends of every run are touched in every run of the kernel."""
    ends = (*footprint.access.tile.lower, *footprint.access.tile.upper)
    return bool(footprint.certain.all()) and all(end.attained() for end in ends)
