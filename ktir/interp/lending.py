"""Arrays of the caller that a kernel uses where they are, instead of a copy in global memory.

A pointer can be lent an array where all that is done with it is seen: windows start at it, or at a sum with it, and
through them tiles are loaded and stored. What is only loaded needs no copy at all; what is stored gets one of its own,
which is then the output. Pointers that take other ways, or windows that are joined to distributed ones, use the global
memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from ktir.dialect.ktdp.ops import ConstructIndirectAccessTileOp, ConstructMemoryViewOp
from ktir.machine.memory_arena import Arena


@dataclass(frozen=True, slots=True)
class Lent:
    """An array on its own: its bytes, and the pointer to its first element."""

    arena: Arena
    first: int


@dataclass(frozen=True, slots=True)
class Way:
    """All that is done with a pointer: the windows that start at it, and whether something is stored through them."""

    views: tuple[ConstructMemoryViewOp, ...]
    stored: bool


def way_of(pointer: BlockArgument) -> Way | None:
    """What is done with a pointer; None where not all of that is seen."""
    views: list[ConstructMemoryViewOp] = []
    stored, seen = False, set[SSAValue]()
    pending: list[SSAValue] = [pointer]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.operation
            if op.name == "ktdp.store" and use.index == 1:
                stored = True
            elif isinstance(op, ConstructMemoryViewOp) and use.index == 0 and op.space.kind == "global":
                views.append(op)
                pending += op.results
            elif passes_on(op, use, value):
                pending += op.results
            elif not only_reads(op, use, value):
                return None
    return Way(tuple(views), stored)


def passes_on(op: Operation, use: Use, value: SSAValue) -> bool:
    """Whether the result of ``op`` stands for the same array."""
    if isinstance(op, ConstructIndirectAccessTileOp):
        return op.base is value
    return use.index == 0 and op.name in ("arith.addi", "arith.subi", "ktdp.construct_access_tile")


def only_reads(op: Operation, use: Use, value: SSAValue) -> bool:
    """Whether ``op`` loads through a window or a tile."""
    if isinstance(op, ConstructIndirectAccessTileOp):
        return any(view is value for view, _ in op.subscripts())
    return op.name == "ktdp.load" and use.index == 0


def pointer_of(value: SSAValue) -> BlockArgument | None:
    """The argument that ``value`` is, or is counted from."""
    while not isinstance(value, BlockArgument):
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name not in ("arith.addi", "arith.subi"):
            return None
        value = owner.operands[0]
    parent = value.block.parent_op()
    return value if parent is not None and parent.name == "func.func" else None
