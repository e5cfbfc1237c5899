"""The experimental operations between compute tiles: contributions cut between consumers, joined, or both.

See ``dialect/ktdp/shares.py`` for what a share is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

import numpy as np
from xdsl.ir import Operation

from ktir.dialect.ktdp.shares import InterTileReduceScatterOp, ShareOperation
from ktir.errors import Deadlock, ExecutionError, UninitialisedRead
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, shape_of
from ktir.interp.inter_tile_ops import contribution, fold, members, spread_over_cores, wanted
from ktir.interp.numerics import Array
from ktir.interp.values import Frame, Origin, Site, Tainted, Value

Shape = tuple[int, ...]
Delivered = list[list[Value]]
"""Per consumer its contributions or what was made of them, one value per result."""


def share(compiler: FunctionCompiler, op: Operation) -> Step:
    """Any of the four: contributions are folded where the operation reduces, then cut, then joined."""
    assert isinstance(op, ShareOperation)
    site, future_slot = compiler.site(op), compiler.slot(op.future)
    results = tuple(compiler.slot(result) for result in op.shares)
    kinds = tuple(result.type for result in op.shares)
    split, joined = op.axes(op.SPLIT), op.axes(op.JOINED)
    consumers, dependencies = op.consumer_tiles_per_group.data, op.dependency
    gathers = op.JOINED is not None
    body, identities = None, tuple[int, ...]()
    if isinstance(op, InterTileReduceScatterOp):
        body = compiler.region(op.reducer, op)
        identities = tuple(compiler.slot(value) for value in op.identities)
    origin = Origin(
        UninitialisedRead, "the result of an inter-tile operation on a tile that consumes nothing", site.location
    )

    def step(frame: Frame) -> None:
        future = frame.regs[future_slot]
        wait = wanted(future, consumers, None if dependencies is None else dependencies.data, frame, site)
        folded: dict[tuple[int, ...], list[list[Value]]] = {}
        for needed in wait.sources:
            if needed in folded:
                continue
            if body is not None:
                folded[needed] = [fold(future, needed, body, frame, wait, identities)]
            else:
                folded[needed] = [contribution(future, tile) for tile in needed]
            _require_sources(len(folded[needed]), gathers, site)
        tiles, cores = frame.launch.tiles, frame.cores.tolist()
        places = [
            _place(members(consumers, group, tiles), cores[row])
            for row, group in zip(wait.rows, wait.groups, strict=True)
        ]
        for position, (out, kind) in enumerate(zip(results, kinds, strict=True)):
            shape = shape_of(kind)
            delivered = [
                _made([each[position] for each in folded[needed]], split, joined, place, shape, site)
                for needed, place in zip(wait.sources, places, strict=True)
            ]
            frame.regs[out] = spread_over_cores(delivered, wait, kind, origin, site)

    return step


def _require_sources(count: int, gathers: bool, site: Site) -> None:
    if count != 1 and not gathers:
        raise site.fail(
            Deadlock,
            f"divides the contribution of one producer, but its group has {count}",
            "let one tile of each group produce",
        )
    if count == 0:
        raise site.fail(Deadlock, "joins the contributions of no producer", "let a tile of each group produce")


def _place(consumers: tuple[int, ...], core: int) -> tuple[int, int]:
    """Which one of the consumers of its group a core is, and how many these are."""
    return consumers.index(core), len(consumers)


def _made(
    contributions: list[Value],
    split: Shape,
    joined: Shape,
    place: tuple[int, int],
    shape: Shape,
    site: Site,
) -> Value:
    """What one consumer gets, with the shape of the result."""
    parts = contributions
    if split:
        along = shape if not joined else _before_joining(shape, split, joined, contributions[0], place[1])
        parts = [_mapped(value, lambda array: _part(array, split, place, along, site)) for value in parts]
    if joined:
        parts = [_joined(parts, joined, shape, site)]
    return parts[0]


def _before_joining(shape: Shape, split: Shape, joined: Shape, contribution: Value, count: int) -> Shape:
    """The shape of one of ``count`` parts that are joined along some axes: there it has the extents of the
    contribution, but along an axis that was cut as well what the other axes of the cut leave over."""
    given = np.shape(contribution.values if isinstance(contribution, Tainted) else contribution)[1:]
    extents = [given[axis] if axis in joined else extent for axis, extent in enumerate(shape)]
    for axis in [axis for axis in split if axis in joined][:1]:
        size = prod(given[each] for each in split) // count
        extents[axis] = size // max(1, prod(extents[each] for each in split if each != axis))
    return tuple(extents)


def _mapped(value: Value, function: Callable[[Array], Array]) -> Value:
    if not isinstance(value, Tainted):
        return function(value)
    values, mask = function(value.values), function(np.broadcast_to(value.mask, value.values.shape))
    return Tainted(values, mask, value.origin) if mask.any() else values


def _flat(array: Array, axes: Shape) -> Array:
    """``array`` with the axes of the list made one, in front of the others but behind the axis of the cores."""
    moved = np.moveaxis(array, [axis + 1 for axis in axes], range(1, len(axes) + 1))
    return moved.reshape(len(array), -1, *moved.shape[len(axes) + 1 :])


def _unflat(array: Array, axes: Shape, shape: Shape) -> Array:
    """The inverse of :func:`_flat`, for a tensor of ``shape``."""
    front = array.reshape(len(array), *(shape[axis] for axis in axes), *array.shape[2:])
    return np.moveaxis(front, range(1, len(axes) + 1), [axis + 1 for axis in axes])


def _part(array: Array, axes: Shape, place: tuple[int, int], shape: Shape, site: Site) -> Array:
    number, count = place
    flat = _flat(array, axes)
    size = prod(shape[axis] for axis in axes)
    if size * count != flat.shape[1]:
        raise site.fail(
            ExecutionError,
            f"divides {flat.shape[1]} elements along axes {list(axes)} between {count} consumers, but the result has "
            f"{size} of them",
            "let the extents of the result times the number of consumers be those of the partial",
        )
    return _unflat(flat[:, number * size : (number + 1) * size], axes, shape)


def _joined(parts: list[Value], axes: Shape, shape: Shape, site: Site) -> Value:
    arrays = [part.values if isinstance(part, Tainted) else part for part in parts]
    flat = [_flat(array, axes) for array in arrays]
    size = prod(shape[axis] for axis in axes)
    if sum(each.shape[1] for each in flat) != size:
        raise site.fail(
            ExecutionError,
            f"joins {len(parts)} parts of {flat[0].shape[1]} elements along axes {list(axes)}, but the result has "
            f"{size} of them",
            "let the extents of the result be those of a part times the number of producers",
        )
    values = _unflat(np.concatenate(flat, axis=1), axes, shape)
    tainted = [part for part in parts if isinstance(part, Tainted)]
    if not tainted:
        return values
    masks = [
        np.broadcast_to(part.mask, part.values.shape) if isinstance(part, Tainted) else np.zeros(part.shape, np.bool_)
        for part in parts
    ]
    mask = _unflat(np.concatenate([_flat(mask, axes) for mask in masks], axis=1), axes, shape)
    return Tainted(values, mask, tainted[0].origin)


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    dict.fromkeys(
        (
            "ktdp.inter_tile_reduce_scatter",
            "ktdp.inter_tile_gather",
            "ktdp.inter_tile_all_to_all",
            "ktdp.inter_tile_scatter",
        ),
        share,
    )
)
