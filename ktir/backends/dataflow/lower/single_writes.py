"""Which allocations a program writes exactly once, byte for byte, as the KTIR says it.

The lowering declares them so (``writes = "once"``), and the verifier holds the dataflow program to it (rule V11). The
answer comes from the analysis of the KTIR, not from the plan of the units, so that the two check each other.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ktir.analysis.accesses import Launch
from ktir.analysis.launches import Program, alone
from ktir.analysis.single_writes import written_once
from ktir.backends.dataflow.lower.launches import LaunchArguments, Trace, find_function, functions_of
from ktir.backends.dataflow.lower.plan import Storage


def single_writes(module: ModuleOp, function: str | None, given: LaunchArguments, traced: Trace) -> set[Storage]:
    """The allocations of ``traced`` of which every byte is written once; those of which that is not known are left."""
    launches = _launches(module, function, given, traced)
    sizes = {buffer.operation or buffer.name: size for buffer, size in written_once(launches)}
    return {each for each in traced.allocations if sizes.get(each.origin or each.name) == each.size}


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
