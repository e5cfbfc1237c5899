"""``ktir check``: what can be said about a program without running it.

An *error* is proven: every run that gets there fails or gives a wrong answer. A *warning* is legal and seldom meant. A
*note* with the code ``Unknown`` is a question that stays open. A correct program gets no error.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from ktir import errors
from ktir.analysis.accesses import Fault, Launch
from ktir.analysis.agreement import check_agreement
from ktir.analysis.bounds import check_bounds
from ktir.analysis.coverage import check_coverage
from ktir.analysis.findings import distinct, proven, unknown
from ktir.analysis.grid import check_grids, check_loops, check_spans
from ktir.analysis.inter_tile import check_inter_tile
from ktir.analysis.launches import launches
from ktir.analysis.races import check_races
from ktir.analysis.scratchpad import check_scratchpad
from ktir.analysis.undefined import check_undefined
from ktir.errors import Diagnostic
from ktir.machine.description import Machine


def check_module(module: ModuleOp, machine: Machine | None) -> list[Diagnostic]:
    """Every finding once, errors first, each with its place in the text.

    Without a ``machine`` the grid, the scratchpad and the reach of a core have no limits.
    """
    found = [*check_grids(module, machine.cores if machine else None), *check_undefined(module)]
    runs = launches(module)
    for launch in runs:
        found += check_launch(launch, machine)
    found += check_coverage(runs)
    return distinct(found)


def check_launch(launch: Launch, machine: Machine | None) -> Iterator[Diagnostic]:
    """The findings on one launch."""
    yield from check_agreement(launch)
    yield from check_bounds(launch)
    yield from check_scratchpad(launch, machine.scratchpad_bytes if machine else None)
    yield from check_races(launch)
    yield from check_inter_tile(launch)
    yield from check_loops(launch, on_a_machine=machine is not None)
    yield from check_spans(launch, machine.span_limit_bytes if machine else 0)
    yield from (unknown(operation, question) for operation, question in launch.undecided)
    yield from (fault_found(fault) for fault in launch.faults)


def fault_found(fault: Fault) -> Diagnostic:
    if not fault.certain:
        return unknown(fault.operation, f"it is not decided whether {fault.message}")
    return proven(fault.operation, getattr(errors, fault.code), fault.message, fault.remedy)
