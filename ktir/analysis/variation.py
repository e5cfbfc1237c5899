"""Whether a value may differ from core to core: whether it was made from the tile id.

What other cores deliver, and what a core reads from its scratchpad, counts as equal, because it may be.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from ktir.dialect import ktdp
from ktir.dialect.ktdp.shares import ShareOperation

DELIVERED = (ktdp.InterTileConsumeOp, ktdp.InterTileReduceOp, ShareOperation)


def differs_by_core(value: SSAValue) -> bool:
    """Whether the tile id goes into ``value``, through arithmetic, control flow or the place of a load."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        maker = each.owner.parent_op() if isinstance(each.owner, Block) else each.owner
        if isinstance(maker, ktdp.GetComputeTileIdOp):
            return True
        if maker is not None and not isinstance(maker, DELIVERED) and not from_scratchpad(maker):
            pending += inputs(maker) if maker.name != "func.func" else ()
    return False


def inputs(operation: Operation) -> Iterator[SSAValue]:
    """What goes into an operation, its regions included."""
    for inner in operation.walk():
        yield from inner.operands


def from_scratchpad(operation: Operation) -> bool:
    """Whether an operation loads from a ``ct_local`` view."""
    if not isinstance(operation, ktdp.LoadOp):
        return False
    view: SSAValue | None = operation.access_tile
    while view is not None and isinstance(view.owner, Operation):
        maker = view.owner
        if isinstance(maker, ktdp.ConstructMemoryViewOp):
            return maker.space.kind == "ct_local"
        view = maker.operands[0] if maker.operands else None
    return False
