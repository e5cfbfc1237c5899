"""What is legal and seldom meant: warnings about operations of the ``ktdp`` dialect.

The reference verifies none of this, so it is never an error, in strict mode neither. Each says which reading holds:

* an access tile whose type has another shape than its set and order give (Q3): points come in the order given;
* a memref type that carries a layout or a memory space of its own (Q19): those of the operation hold;
* two partitions of a distributed view that own the same coordinates (Q6): a load takes the first, a store writes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntAttr, NoneAttr, StridedLayoutAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap, AffineSet

from ktir.dialect.ktdp.attrs import MemorySpaceAttribute
from ktir.dialect.ktdp.indirect_tiles import ConstructIndirectAccessTileOp
from ktir.dialect.ktdp.tiles import ConstructAccessTileOp
from ktir.dialect.ktdp.views import ConstructDistributedMemoryViewOp, ConstructMemoryViewOp
from ktir.dialect.locations import location_of
from ktir.dialect.shaped import is_memref
from ktir.errors import Diagnostic, DistributedViewOverlap, KtirError, TileShapeMismatch, ViewTypeMismatch
from ktir.maths.sets import as_box

MAX_PARTITIONS = 128
"""Distributed views of more partitions are not compared pair by pair."""

Box = tuple[tuple[int, int], ...]


def doubts(root: Operation) -> Iterator[Diagnostic]:
    """The warnings about every operation in ``root``, in order of the text."""
    for operation in root.walk():
        yield from doubts_of(operation)


def doubts_of(operation: Operation) -> Iterator[Diagnostic]:
    """The warnings about one operation, as far as its own text shows."""
    match operation:
        case ConstructMemoryViewOp():
            yield from _type_conflicts(operation)
        case ConstructDistributedMemoryViewOp():
            yield from overlap_doubts(operation, [_owned_box(part) for part in operation.views])
        case ConstructAccessTileOp():
            yield from _shape_conflict(operation, operation.access_tile_set.data, operation.access_tile_order.data)
        case ConstructIndirectAccessTileOp():
            yield from _shape_conflict(
                operation, operation.variables_space_set.data, operation.variables_space_order.data
            )
        case _:
            pass


def _doubt(operation: Operation, error: type[KtirError], message: str, remedy: str) -> Diagnostic:
    return Diagnostic(error.__name__, "warning", message, location_of(operation), remedy)


# --------------------------------------------------------------------------------------------------------------- shapes


Tile = ConstructAccessTileOp | ConstructIndirectAccessTileOp


def ordered(extents: Sequence[int], order: AffineMap) -> tuple[int, ...] | None:
    """The extents of a set in the sequence of ``order``; None where it is no permutation."""
    positions = [result.position for result in order.results if isinstance(result, AffineDimExpr)]
    if sorted(positions) != list(range(len(extents))) or len(positions) != len(order.results):
        return None
    return tuple(extents[position] for position in positions)


def _shape_conflict(tile: Tile, points: AffineSet, order: AffineMap) -> Iterator[Diagnostic]:
    box = as_box(points) if points.num_symbols == 0 else None
    if box is not None:
        yield from shape_doubts(tile, ordered([stop - start for start, stop in box], order))


def shape_doubts(tile: Tile, given: tuple[int, ...] | None) -> Iterator[Diagnostic]:
    """What the set and the order of a tile give, where that is known, against the shape of its type."""
    shape = tile.tile.type.get_shape()
    if given is not None and given != shape and DYNAMIC_INDEX not in shape:
        yield _doubt(
            tile,
            TileShapeMismatch,
            f"the set and the order give the shape {_shape_text(given)}, but the tile type says {_shape_text(shape)}",
            "permute the type's shape as the order permutes the dimensions",
        )


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


# ---------------------------------------------------------------------------------------------------------------- types


def _type_conflicts(view: ConstructMemoryViewOp) -> Iterator[Diagnostic]:
    type = view.view.type
    if not is_memref(type):
        return
    if isinstance(type.memory_space, MemorySpaceAttribute) and type.memory_space.space != view.space:
        held = "global memory" if view.memory_space is None else str(view.memory_space)
        yield _doubt(
            view,
            ViewTypeMismatch,
            f"the memref type says {type.memory_space}, the operation {held}; the operation's holds",
            "leave the memory space out of the type",
        )
    if isinstance(type.layout, StridedLayoutAttr):
        yield from _stride_conflicts(view, type.layout)
    elif not isinstance(type.layout, NoneAttr):
        yield _doubt(
            view,
            ViewTypeMismatch,
            "the layout of the memref type is ignored; the strides of the operation hold",
            "leave the layout out of the type",
        )


def _stride_conflicts(view: ConstructMemoryViewOp, layout: StridedLayoutAttr) -> Iterator[Diagnostic]:
    for position, (typed, said) in enumerate(zip(layout.strides, view.mixed_strides(), strict=False)):
        if isinstance(typed, IntAttr) and isinstance(said, int) and typed.data != said:
            yield _doubt(
                view,
                ViewTypeMismatch,
                f"strides[{position}]={said} does not match stride {typed.data} of the memref type; the operation's "
                "holds",
                "leave the layout out of the type",
            )


# ----------------------------------------------------------------------------------------------------------- partitions


def overlap_doubts(view: ConstructDistributedMemoryViewOp, owned: Sequence[Box | None]) -> Iterator[Diagnostic]:
    """The first two partitions, of those whose boxes are known, that own the same coordinates."""
    if len(owned) > MAX_PARTITIONS:
        return
    known = [(position, box) for position, box in enumerate(owned) if box is not None]
    for (first, a), (second, b) in combinations(known, 2):
        if all(max(p[0], q[0]) < min(p[1], q[1]) for p, q in zip(a, b, strict=False)):
            yield _doubt(
                view,
                DistributedViewOverlap,
                f"partitions {first} and {second} own the same coordinates; a load takes the first, a store writes "
                "both",
                "make the coordinate sets of the partitions disjoint",
            )
            return


def _owned_box(part: SSAValue) -> Box | None:
    if not isinstance(part.owner, ConstructMemoryViewOp):
        return None
    owned = part.owner.owned_set()
    return as_box(owned) if owned.num_symbols == 0 else None
