"""Cores of one kind: those that run the same code equally often, so that what one does, all of its kind do.

They have the same units, also where a unit has nothing to do in a launch.
"""

from __future__ import annotations

from collections.abc import Hashable

from ktir.backends.dataflow.expression import at
from ktir.backends.dataflow.unit_program import Branch, LoopStart, Node, Program


def core_kinds(program: Program) -> dict[int, list[Hashable]]:
    """By number of the launch, the kind of each core in it."""
    units = [[code.number for code in program.units if core in code.cores] for core in range(program.cores)]
    kinds: dict[int, list[list[Hashable]]] = {0: [list(each) for each in units]}
    for launch, code, node in program.nodes:
        parts = kinds.setdefault(launch, [list(each) for each in units])
        for core in code.cores:
            parts[core].append((code.number, *_kind(node, core)))
    return {launch: [tuple(each) for each in parts] for launch, parts in kinds.items()}


def _kind(node: Node, core: int) -> tuple[Hashable, ...]:
    """What decides how ``core`` passes ``node``: the count of a loop, conditions with the constants of the core."""
    if isinstance(node, LoopStart):
        return (at(node.count, core),)
    if isinstance(node, Branch):
        return tuple((each.value.fixed(core, -1, 0), each.equality) for each in node.conditions)
    return ()
