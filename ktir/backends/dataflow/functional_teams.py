"""Which cores of a functional run go in lockstep: those whose units take the same steps."""

from __future__ import annotations

import random

from ktir.backends.dataflow.expression import Expression, at
from ktir.backends.dataflow.functional_batch import Team
from ktir.backends.dataflow.unit_program import Branch, Instruction, LoopStart, Program, UnitCode


def teams(program: Program, choice: random.Random | None = None) -> list[Team]:
    """The cores in as few teams as possible; ``choice`` divides them at random besides."""
    if any(buffer.slots and not buffer.per_core for buffer in program.buffers):
        return singles(program)
    groups: dict[object, list[int]] = {}
    for core in range(program.cores):
        key = tuple(_steps(code, core) for code in program.units if core in code.cores)
        if key:
            groups.setdefault((key, choice.randrange(3) if choice else 0), []).append(core)
    return [Team(number, tuple(cores)) for number, cores in enumerate(groups.values())]


def singles(program: Program) -> list[Team]:
    """Every core for itself."""
    busy = [core for core in range(program.cores) if any(core in code.cores for code in program.units)]
    return [Team(core, (core,)) for core in busy]


def _steps(code: UnitCode, core: int) -> tuple[object, ...]:
    """What the steps of ``code`` on ``core`` depend on."""
    found: list[object] = [code.number]
    for node in code.nodes:
        if isinstance(node, LoopStart):
            found.append(at(node.count, core))
        elif isinstance(node, Branch):
            found.extend(_of_core(condition.value, core) for condition in node.conditions)
        elif isinstance(node, Instruction) and node.link is not None:
            found.extend(_presence(node, peer, core) for peer in node.link.peers)
    return tuple(found)


def _of_core(value: Expression, core: int) -> object:
    """The expression with the constants of ``core``."""
    return value.fixed(core, -1, 0)


def _presence(instruction: Instruction, peer: Expression, core: int) -> object:
    """Whether there is a core at the other side; where that changes in loops, nobody is like ``core``."""
    ranges = [range(max(0, at(count, core))) for count in instruction.counts]
    if not all(ranges):
        return False
    least, most = peer.bounds(core, ranges)
    return least >= 0 if (least < 0) == (most < 0) else core
