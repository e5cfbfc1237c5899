"""Views and copies: reshapes, permutations, expansions, slices, concatenations, and reads at constant positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, cast

import torch
from xdsl.ir import SSAValue

from ktir.dialect.ktg import GatherOp
from ktir.frontend.torch.calls import Call, described
from ktir.frontend.torch.elements import IntegerType, element_of, shape_of
from ktir.frontend.torch.importer import Handler, Importer


def _dim(call: Call, value: SSAValue) -> int:
    """The dimension that the call names, counted from the front."""
    return int(call["dim"]) % len(shape_of(value))


def _bounds(call: Call, extent: int) -> tuple[int, int, int]:
    """``start``, ``end`` and ``step`` of a slice of ``extent`` positions."""
    return slice(call["start"], call["end"], call["step"]).indices(extent)


def _identity(importer: Importer, call: Call) -> SSAValue:
    return importer.tensor(call["self"])


def _reshape(importer: Importer, call: Call) -> SSAValue:
    """Everything that keeps the row-major order of the elements."""
    return importer.build.reshape(importer.tensor(call["self"]), call.shape)


def _permute(importer: Importer, call: Call) -> SSAValue:
    value = importer.tensor(call["self"])
    rank = len(shape_of(value))
    return importer.build.transpose(value, [d % rank for d in call["dims"]])


def _swap(importer: Importer, call: Call) -> SSAValue:
    value = importer.tensor(call["self"])
    order = list(range(len(shape_of(value))))
    first, second = call["dim0"], call["dim1"]
    order[first], order[second] = order[second], order[first]
    return importer.build.transpose(value, order)


def _matrix_transpose(importer: Importer, call: Call) -> SSAValue:
    value = importer.tensor(call["self"])
    return importer.build.transpose(value, list(reversed(range(len(shape_of(value))))))


def _expand(importer: Importer, call: Call) -> SSAValue:
    return importer.build.broadcast(importer.tensor(call["self"]), call.shape)


def _repeat(importer: Importer, call: Call) -> SSAValue:
    """Each dimension laid end to end ``repeats`` times; dimensions added in front."""
    value, repeats = importer.tensor(call["self"]), cast("list[int]", call["repeats"])
    own = (1,) * (len(repeats) - len(shape_of(value))) + tuple(shape_of(value))
    value = importer.build.reshape(value, own)
    spread = importer.build.reshape(value, [extent for size in own for extent in (1, size)])
    wide = [extent for times, size in zip(repeats, own, strict=True) for extent in (times, size)]
    return importer.build.reshape(importer.build.broadcast(spread, wide), call.shape)


def _slice(importer: Importer, call: Call) -> SSAValue:
    value = importer.tensor(call["self"])
    dim = _dim(call, value)
    start, _, step = _bounds(call, shape_of(value)[dim])
    return importer.build.slice(value, dim, start, call.shape[dim], step)


def _select(importer: Importer, call: Call) -> SSAValue:
    value = importer.tensor(call["self"])
    dim = _dim(call, value)
    return _row(importer, value, dim, int(call["index"]) % shape_of(value)[dim])


def _row(importer: Importer, value: SSAValue, dim: int, index: int) -> SSAValue:
    shape = [extent for d, extent in enumerate(shape_of(value)) if d != dim]
    return importer.build.reshape(importer.build.slice(value, dim, index, 1), shape)


def _split(importer: Importer, call: Call) -> tuple[SSAValue, ...]:
    value = importer.tensor(call["self"])
    dim = _dim(call, value)
    lengths = [int(part.shape[dim]) for part in call.node.meta["val"]]
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    return tuple(importer.build.slice(value, dim, s, n) for s, n in zip(starts, lengths, strict=True))


def _unbind(importer: Importer, call: Call) -> tuple[SSAValue, ...]:
    value = importer.tensor(call["self"])
    dim = _dim(call, value)
    return tuple(_row(importer, value, dim, index) for index in range(shape_of(value)[dim]))


def _concatenate(importer: Importer, call: Call) -> SSAValue:
    """Empty parts vanish; the others take the common element type."""
    dim = int(call["dim"]) % len(call.shape)
    nodes = [node for node in call["tensors"] if cast("torch.Tensor", described(node)).numel()]
    parts = [importer.build.cast(importer.tensor(node), call.element) for node in nodes]
    return importer.build.concat(parts, dim)


def _stack(importer: Importer, call: Call) -> SSAValue:
    dim = int(call["dim"]) % len(call.shape)
    single = [1 if d == dim else extent for d, extent in enumerate(call.shape)]
    parts = [importer.build.cast(importer.tensor(node), call.element) for node in call["tensors"]]
    return importer.build.concat([importer.build.reshape(part, single) for part in parts], dim)


def _pad(importer: Importer, call: Call) -> SSAValue:
    """``pad`` holds a pair (before, after) per dimension, the last dimension first; negative entries crop."""
    value, pad = importer.tensor(call["self"]), cast("list[int]", call["pad"])
    for number in range(len(pad) // 2):
        dim = len(shape_of(value)) - 1 - number
        value = _pad_dimension(importer, value, dim, pad[2 * number], pad[2 * number + 1], call["value"])
    return value


def _pad_dimension(importer: Importer, value: SSAValue, dim: int, before: int, after: int, fill: Any) -> SSAValue:
    extent = shape_of(value)[dim] + min(before, 0) + min(after, 0)
    value = importer.build.slice(value, dim, max(-before, 0), extent)

    def border(width: int) -> list[SSAValue]:
        shape = [width if d == dim else size for d, size in enumerate(shape_of(value))]
        return [importer.build.filled(shape, element_of(value), fill)] if width > 0 else []

    return importer.build.concat([*border(before), value, *border(after)], dim)


def _copy(importer: Importer, call: Call) -> SSAValue:
    """The source with the shape and element type of the destination."""
    value = importer.build.cast(importer.tensor(call["src"]), call.element)
    return importer.build.broadcast(value, call.shape)


def _slice_scatter(importer: Importer, call: Call) -> SSAValue:
    """``self`` with the positions ``start:end`` of ``dim`` replaced by ``src``."""
    value = importer.tensor(call["self"])
    dim = _dim(call, value)
    start, end, step = _bounds(call, shape_of(value)[dim])
    if step != 1:
        raise call.refuse("writing every n-th position is not imported")
    return _replaced(importer, value, importer.tensor(call["src"]), dim, start, max(start, end))


def _select_scatter(importer: Importer, call: Call) -> SSAValue:
    """``self`` with position ``index`` of ``dim`` replaced by ``src``."""
    value = importer.tensor(call["self"])
    dim = _dim(call, value)
    index = int(call["index"]) % shape_of(value)[dim]
    single = [1 if d == dim else extent for d, extent in enumerate(shape_of(value))]
    row = importer.build.reshape(importer.tensor(call["src"]), single)
    return _replaced(importer, value, row, dim, index, index + 1)


def _replaced(importer: Importer, value: SSAValue, part: SSAValue, dim: int, start: int, end: int) -> SSAValue:
    build, extent = importer.build, shape_of(value)[dim]
    before = [build.slice(value, dim, 0, start)] if start > 0 else []
    after = [build.slice(value, dim, end, extent - end)] if end < extent else []
    return build.concat([*before, build.cast(part, element_of(value)), *after], dim)


# ------------------------------------------------------------------------------------- reads at constant positions


@dataclass(frozen=True, slots=True)
class _Range:
    """Positions ``start, start + step, ..`` along axis ``axis`` of the index tensors (None: one position)."""

    axis: int | None
    start: int
    length: int
    step: int


def _index(importer: Importer, call: Call) -> SSAValue:
    """``self[indices]``: constant ranges are slices, one index tensor on the first of two dimensions is a gather."""
    indices = cast("list[torch.fx.Node | None]", call["indices"])
    value = importer.tensor(call["self"])
    if len(indices) == 1 and indices[0] is not None and importer.constant(indices[0]) is None:
        return _gather_rows(importer, call, value, indices[0])
    if any(node is None for node in indices) or any(importer.constant(node) is None for node in indices):
        raise call.refuse("positions that are computed from inputs are imported for rows of a matrix only")
    return _read_ranges(importer, call, value, [importer.constant(node) for node in indices])


def _gather_rows(importer: Importer, call: Call, value: SSAValue, index: torch.fx.Node) -> SSAValue:
    positions = importer.tensor(index)
    kind = element_of(positions)
    if len(shape_of(value)) != 2 or not isinstance(kind, IntegerType) or kind.width.data == 1:
        raise call.refuse("positions that are computed from inputs are imported for rows of a matrix only")
    return importer.build.emit(GatherOp(value, positions))


def _read_ranges(importer: Importer, call: Call, value: SSAValue, indices: list[torch.Tensor]) -> SSAValue:
    own = shape_of(value)
    axes = cast("tuple[int, ...]", tuple(cast("Any", torch).broadcast_shapes(*(index.shape for index in indices))))
    ranges = [_as_range(index, axes, own[d]) for d, index in enumerate(indices)]
    used = [r.axis for r in ranges if r is not None and r.axis is not None]
    if any(r is None for r in ranges) or len(set(used)) != len(used):
        raise call.refuse("constant positions are imported where they are a range per dimension")
    known = cast("list[_Range]", ranges)
    for dim, r in enumerate(known):
        value = importer.build.slice(value, dim, r.start, r.length, r.step)
    kept = [dim for dim, r in enumerate(known) if r.axis is not None]
    rest = list(range(len(indices), len(own)))
    value = importer.build.reshape(value, [shape_of(value)[d] for d in [*kept, *rest]])
    by_axis = sorted(range(len(kept)), key=lambda i: cast("int", known[kept[i]].axis))
    value = importer.build.transpose(value, [*by_axis, *range(len(kept), len(kept) + len(rest))])
    lead = [axes[axis] if axis in used else 1 for axis in range(len(axes))]
    value = importer.build.reshape(value, [*lead, *(own[d] for d in rest)])
    return importer.build.broadcast(value, call.shape)


def _as_range(index: torch.Tensor, axes: Sequence[int], extent: int) -> _Range | None:
    """``index`` as a range along one axis of the broadcast index shape, None if it is something else."""
    if index.dtype == torch.bool:
        return None
    aligned = index.reshape((1,) * (len(axes) - index.dim()) + tuple(index.shape))
    varying = [axis for axis, size in enumerate(aligned.shape) if size > 1]
    if len(varying) > 1:
        return None
    positions = [int(p) % extent for p in aligned.reshape(-1)]
    if not varying:
        return _Range(None, positions[0], 1, 1)
    step = positions[1] - positions[0]
    regular = step > 0 and all(b - a == step for a, b in pairwise(positions))
    return _Range(varying[0], positions[0], len(positions), step) if regular else None


def _embedding(importer: Importer, call: Call) -> SSAValue:
    """Rows of ``weight``; constant positions that are a range are a slice."""
    table, positions = importer.tensor(call["weight"]), importer.constant(call["indices"])
    if positions is not None and positions.dim() > 0:
        r = _as_range(positions, tuple(positions.shape), shape_of(table)[0])
        if r is not None and r.axis is not None:
            return importer.build.reshape(importer.build.slice(table, 0, r.start, r.length, r.step), call.shape)
    return importer.build.emit(GatherOp(table, importer.tensor(call["indices"])))


VIEWS: Final = MappingProxyType[str, Handler](
    {
        "aten.alias.default": _identity,
        "aten.clone.default": _identity,
        "aten.detach.default": _identity,
        "aten.lift_fresh_copy.default": _identity,
        "aten.contiguous.default": _identity,
        "aten.view.default": _reshape,
        "aten._unsafe_view.default": _reshape,
        "aten.reshape.default": _reshape,
        "aten.unsqueeze.default": _reshape,
        "aten.squeeze.default": _reshape,
        "aten.squeeze.dim": _reshape,
        "aten.squeeze.dims": _reshape,
        "aten.permute.default": _permute,
        "aten.transpose.int": _swap,
        "aten.t.default": _matrix_transpose,
        "aten.expand.default": _expand,
        "aten.repeat.default": _repeat,
        "aten.slice.Tensor": _slice,
        "aten.select.int": _select,
        "aten.split_with_sizes.default": _split,
        "aten.split.Tensor": _split,
        "aten.unbind.int": _unbind,
        "aten.cat.default": _concatenate,
        "aten.stack.default": _stack,
        "aten.constant_pad_nd.default": _pad,
        "aten.copy.default": _copy,
        "aten.slice_scatter.default": _slice_scatter,
        "aten.select_scatter.default": _select_scatter,
        "aten.index.Tensor": _index,
        "aten.embedding.default": _embedding,
    }
)
