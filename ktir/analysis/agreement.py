"""Whether types and attributes that say the same thing twice agree: elements, shapes of tiles, layouts of views.

What the text of one operation shows is the business of :mod:`ktir.dialect.ktdp.doubts`; here the values that go into it
are known besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX

from ktir.analysis.accesses import Access, DistributedView, Owned, Tile, element_of
from ktir.analysis.findings import Answer, answer, proven
from ktir.analysis.launches import Program
from ktir.dialect import ktdp
from ktir.dialect.ktdp.doubts import doubts_of, overlap_doubts, shape_doubts
from ktir.errors import Diagnostic, ElementTypeMismatch, TileShapeMismatch

DECLARING = (
    ktdp.ConstructMemoryViewOp,
    ktdp.ConstructDistributedMemoryViewOp,
    ktdp.ConstructAccessTileOp,
    ktdp.ConstructIndirectAccessTileOp,
)
"""Operations whose type repeats what their attributes say."""


def check_agreement(program: Program) -> Iterator[Answer]:
    """An answer for each view and tile of the text, and for each tile, distributed view and access of a launch."""
    for operation in program.module.walk():
        if isinstance(operation, DECLARING):
            yield answer("agreement", doubts_of(operation))
    for launch in program.launches:
        for view in launch.distributed:
            yield answer("agreement", shared_coordinates(view))
        for tile in launch.tiles:
            yield answer("agreement", shape_conflict(tile))
        for access in launch.accesses:
            yield answer("agreement", element_conflict(access))


def element_conflict(access: Access) -> Iterator[Diagnostic]:
    """A tensor of another element type than the view that it is loaded from or stored to."""
    if access.tile.is_lookup:
        return
    match access.operation:
        case ktdp.LoadOp(result=value):
            verb = "loads"
        case ktdp.StoreOp(data=value):
            verb = "stores"
        case _:
            return
    held, stored = element_of(value.type), access.tile.view.element
    if held != stored:
        yield proven(
            access.operation,
            ElementTypeMismatch,
            f"{verb} {held} elements, but {access.tile.view.name} holds {stored}",
            f"use a tensor of {stored}, and convert with arith.extf or arith.truncf",
        )


def shared_coordinates(view: DistributedView) -> Iterator[Diagnostic]:
    """Partitions that own the same coordinates once their sizes are known."""
    operation = cast("ktdp.ConstructDistributedMemoryViewOp", view.operation)
    yield from overlap_doubts(operation, [boxed(part.owned) for part in view.partitions])


def boxed(owned: Owned | None) -> tuple[tuple[int, int], ...] | None:
    return None if owned is None or owned.points is not None else owned.box


def shape_conflict(tile: Tile) -> Iterator[Diagnostic]:
    """A tile type with another number of points than the set, or with another shape than its extents in order."""
    operation = cast("ktdp.ConstructAccessTileOp | ktdp.ConstructIndirectAccessTileOp", tile.operation)
    if DYNAMIC_INDEX not in tile.shape and tile.count is not None and tile.count != prod(tile.shape):
        yield proven(
            tile.operation,
            TileShapeMismatch,
            f"the access set has {tile.count} points, but the tile type has {prod(tile.shape)} elements",
            "make the set the box of the type's shape",
        )
    elif tile.steps is None:
        yield from shape_doubts(operation, tile.touched)
