"""Whether types and attributes that say the same thing twice agree: elements, shapes of tiles, layouts of views."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute, Operation

from ktir.analysis.accesses import Access, Launch, Tile, View, element_of
from ktir.analysis.findings import doubtful, proven
from ktir.dialect import ktdp
from ktir.errors import Diagnostic, ElementTypeMismatch, TileShapeMismatch, ViewTypeMismatch


def check_agreement(launch: Launch) -> Iterator[Diagnostic]:
    """Findings on the views, tiles and accesses of one launch."""
    for view in launch.views:
        yield from layout_conflict(view)
    for tile in launch.tiles:
        yield from shape_conflict(tile)
    for access in launch.accesses:
        yield from element_conflict(access)


def element_conflict(access: Access) -> Iterator[Diagnostic]:
    """A tensor of another element type than the view that it is loaded from or stored to."""
    if access.operation is access.tile.operation or (not access.tile.shape and access.tile.lookups):
        return
    held, stored = data_element(access.operation), access.tile.view.element
    if held is not None and held != stored and access.tile.shape == tensor_shape(access.operation):
        verb = "loads" if access.kind == "read" else "stores"
        yield proven(
            access.operation,
            ElementTypeMismatch,
            f"{verb} {held} elements, but {access.tile.view.name} holds {stored}",
            f"use a tensor of {stored}, and convert with arith.extf or arith.truncf",
        )


def data_element(operation: Operation) -> Attribute | None:
    match operation:
        case ktdp.LoadOp():
            return element_of(operation.result.type)
        case ktdp.StoreOp():
            return element_of(operation.data.type)
        case _:
            return None


def tensor_shape(operation: Operation) -> tuple[int, ...] | None:
    match operation:
        case ktdp.LoadOp():
            return tuple(cast("MemRefType[Attribute]", operation.result.type).get_shape())
        case ktdp.StoreOp():
            return tuple(cast("MemRefType[Attribute]", operation.data.type).get_shape())
        case _:
            return None


def shape_conflict(tile: Tile) -> Iterator[Diagnostic]:
    """A tile type with another shape than the set's extents in the order given, or with another number of points."""
    if DYNAMIC_INDEX in tile.shape:
        return
    if tile.count is not None and tile.count != prod(tile.shape):
        yield proven(
            tile.operation,
            TileShapeMismatch,
            f"the access set has {tile.count} points, but the tile type has {prod(tile.shape)} elements",
            "make the set the box of the type's shape",
        )
    elif tile.steps is None and tile.touched is not None and tile.touched != tile.shape:
        yield doubtful(
            tile.operation,
            TileShapeMismatch,
            f"the set and the order give the shape {shape_text(tile.touched)}, but the tile type says "
            f"{shape_text(tile.shape)}; elements are listed in the order's sequence",
            "permute the type's shape as the order permutes the dimensions",
        )


def shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(str(extent) for extent in shape) or "scalar"


def layout_conflict(view: View) -> Iterator[Diagnostic]:
    """Strides or a memory space in the memref type that differ from the operation's, which are the ones that hold."""
    op = view.operation
    if not isinstance(op, ktdp.ConstructMemoryViewOp):
        return
    type_ = cast("MemRefType[Attribute]", op.view.type)
    if isinstance(type_.layout, StridedLayoutAttr):
        yield from stride_conflict(op, type_.layout)
    space = type_.memory_space
    if not isinstance(space, NoneAttr) and isinstance(space, ktdp.MemorySpaceAttribute) and space.space != op.space:
        yield doubtful(
            op,
            ViewTypeMismatch,
            f"the memref type says {space}, the operation {op.memory_space}; the operation's holds",
            "leave the memory space out of the type",
        )


def stride_conflict(op: ktdp.ConstructMemoryViewOp, layout: StridedLayoutAttr) -> Iterator[Diagnostic]:
    typed = [getattr(entry, "data", None) for entry in layout.strides.data]
    said = [entry if isinstance(entry, int) else None for entry in op.mixed_strides()]
    for position, (a, b) in enumerate(zip(typed, said, strict=False)):
        if a is not None and b is not None and a != b:
            yield proven(
                op,
                ViewTypeMismatch,
                f"strides[{position}]={b} does not match stride {a} of the memref type",
                "leave the layout out of the type",
            )
