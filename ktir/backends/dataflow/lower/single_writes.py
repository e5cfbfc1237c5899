"""Which bytes of which allocations a program writes exactly once, as the KTIR says it.

The lowering declares them so (``writes = "once"``, and ``stored`` where the rest is padding that nobody stores); the
verifier holds the dataflow program to it (rule V11). The answer comes from the analysis of the KTIR, not from the plan
of the units, so that the two check each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from ktir.analysis.accesses import Launch
from ktir.analysis.launches import Program, alone
from ktir.analysis.single_writes import written_once
from ktir.backends.dataflow.lower.launches import LaunchArguments, Trace, find_function, functions_of
from ktir.backends.dataflow.lower.plan import Storage
from ktir.maths.runs import boxes_of

Boxes = Sequence[tuple[int, ...]]
"""Bytes of an allocation, as :mod:`ktir.maths.runs` describes them."""


def single_writes(
    module: ModuleOp, function: str | None, given: LaunchArguments, traced: Trace
) -> dict[Storage, Boxes]:
    """The allocations of ``traced`` that are written, each byte at most once, and the bytes; no boxes where it is all.

    Those of which it is not known are left, and those whose bytes have no short description.
    """
    launches = _launches(module, function, given, traced)
    written = {buffer.operation or buffer.name: runs for buffer, runs in written_once(launches)}
    found: dict[Storage, Boxes] = {}
    for each in traced.allocations:
        runs = written.get(each.origin or each.name)
        if runs is None or runs[-1, 1] > each.size:
            continue
        boxes = () if runs.tolist() == [[0, each.size]] else boxes_of(runs)
        if boxes is not None:
            found[each] = boxes
    return found


def _launches(module: ModuleOp, function: str | None, given: LaunchArguments, traced: Trace) -> list[Launch]:
    """What the analysis knows of the launches; nothing unless they are the launches that are lowered."""
    numbers = {name: value for name, value in given.items() if isinstance(value, int)}
    entry = find_function(module, function)
    if len(traced.launches) == 1 and traced.launches[0].kernel is entry:
        return [alone(entry, functions_of(module), numbers)]
    found = [launch for launch in Program.of(module, numbers).launches if not launch.is_alone]
    same = len(found) == len(traced.launches) and all(
        mine.kernel is theirs.kernel for mine, theirs in zip(found, traced.launches, strict=True)
    )
    return found if same else []
