"""Scaled dot-product attention as one fold over key positions.

Running state per query: the largest score so far, the sum of ``exp(score - largest)``, and the sum of values with
these weights, all in f32. Query heads that share a key head are a dimension of their own, *group*, so keys and values
are never repeated. A query that may see no key gives zeros, as eager's kernels do.

Loops: the batch dimensions (the last one is the key heads), group, query, then key or feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from types import MappingProxyType
from typing import Final, cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import TensorType, f32, i1
from xdsl.ir import Block, Region, SSAValue

from ktir.dialect.ktg import NOT_FOLDED, FoldOp, YieldOp
from ktir.frontend.torch.builder import MAXIMUM, SUM, GraphBuilder, Operand
from ktir.frontend.torch.calls import Call, described
from ktir.frontend.torch.elements import Element, element_of, shape_of
from ktir.frontend.torch.importer import Handler, Importer
from ktir.frontend.torch.scalars import ScalarBuilder

KEYS_PER_STEP: Final = 64
"""Key positions of one step before a pass has decided on a tile: one stick of f16 scores."""


@dataclass(frozen=True)
class _Shape:
    """Extents. ``batch`` ends with the key heads."""

    batch: tuple[int, ...]
    group: int
    queries: int
    keys: int
    features: int
    value_features: int

    @property
    def lead(self) -> int:
        """Number of the query loop."""
        return len(self.batch) + 1

    @property
    def per_query(self) -> tuple[int, ...]:
        return (*self.batch, self.group, self.queries)

    @property
    def batch_loops(self) -> tuple[int, ...]:
        return tuple(range(len(self.batch)))

    @property
    def query_loops(self) -> tuple[int, ...]:
        return tuple(range(self.lead + 1))


@dataclass(frozen=True)
class _Mask:
    """An operand of the fold that says which keys a query may see; ``dims`` are its loops in the scores."""

    value: SSAValue
    dims: tuple[int, ...]

    def fold_dim(self, shape: _Shape) -> int:
        last = self.dims[-1] if self.dims else None
        folded = last == shape.lead + 1 and shape_of(self.value)[-1] == shape.keys
        return len(self.dims) - 1 if folded else NOT_FOLDED


def _attention(importer: Importer, call: Call) -> SSAValue:
    if call["dropout_p"]:
        raise call.refuse("attention with dropout is not imported", remedy="put the model into eval mode")
    build = importer.build
    query = importer.tensor(call["query"])
    key, value, repeats = _unrepeated(importer, call)
    shape = _shapes(call, query, key, value, repeats)
    query = build.reshape(query, (*shape.per_query, shape.features))
    key = build.reshape(key, (*shape.batch, shape.keys, shape.features))
    value = build.reshape(value, (*shape.batch, shape.keys, shape.value_features))
    masks = _masks(importer, call, shape)
    scale = call["scale"] if call["scale"] is not None else 1.0 / sqrt(shape.features)
    result = _Fold(build, shape, masks, bool(call["is_causal"]), float(scale)).emit(query, key, value)
    return build.reshape(result, call.shape)


def _shapes(call: Call, query: SSAValue, key: SSAValue, value: SSAValue, repeats: int) -> _Shape:
    *lead, queries, features = shape_of(query)
    *key_lead, keys, _ = shape_of(key)
    if not lead:
        lead, key_lead = [1], [1]
    group = repeats
    if call["enable_gqa"] and repeats == 1:
        group = lead[-1] // key_lead[-1]
    batch = (*lead[:-1], lead[-1] // group)
    if tuple(key_lead) != batch or shape_of(value)[-2] != keys:
        raise call.refuse(
            "attention whose batch dimensions differ is not imported", remedy="expand the keys and values"
        )
    return _Shape(batch, group, queries, keys, features, shape_of(value)[-1])


# ------------------------------------------------------------------------------------------------- repeated key heads


def _unrepeated(importer: Importer, call: Call) -> tuple[SSAValue, SSAValue, int]:
    """Keys, values and how often each key head is used, where the model repeated both alike."""
    key, value = _repetition(importer, call["key"]), _repetition(importer, call["value"])
    if key is not None and value is not None and key[1] == value[1] and not call["enable_gqa"]:
        return importer.tensor(key[0]), importer.tensor(value[0]), key[1]
    return importer.unexpanded(call["key"]), importer.unexpanded(call["value"]), 1


_COPIES: Final = ("aten.clone.default", "aten.alias.default", "aten.contiguous.default")


def _target(node: Node) -> str:
    return str(node.target)


def _behind_copies(node: Node) -> Node:
    while _target(node) in _COPIES:
        node = cast("Node", node.args[0])
    return node


def _repetition(importer: Importer, argument: object) -> tuple[Node, int] | None:
    """``(heads, times)`` if ``argument`` is ``view(expand(unsqueeze(heads, 2)))``, each head repeated in place."""
    view = _behind_copies(cast("Node", argument))
    if view in importer.constants or _target(view) not in ("aten.view.default", "aten._unsafe_view.default"):
        return None
    expand = _behind_copies(cast("Node", view.args[0]))
    if _target(expand) != "aten.expand.default":
        return None
    single = cast("Node", expand.args[0])
    if _target(single) != "aten.unsqueeze.default":
        return None
    heads = cast("Node", single.args[0])
    whole, wide, own = (cast("torch.Tensor", described(node)).shape for node in (view, expand, heads))
    if len(own) != 4 or len(wide) != 5 or tuple(wide) != (*own[:2], wide[2], *own[2:]):
        return None
    return (heads, wide[2]) if tuple(whole) == (own[0], own[1] * wide[2], *own[2:]) else None


# ----------------------------------------------------------------------------------------------------------- masks


def _masks(importer: Importer, call: Call, shape: _Shape) -> list[_Mask]:
    masks: list[_Mask] = []
    if call["attn_mask"] is not None:
        masks.append(_given_mask(importer, call, shape))
    if call["is_causal"]:
        masks += [
            _Mask(_positions(importer, shape.queries), (shape.lead,)),
            _Mask(_positions(importer, shape.keys), (shape.lead + 1,)),
        ]
    return masks


def _positions(importer: Importer, count: int) -> SSAValue:
    """0, 1, .. as f32, exact up to 2^24."""
    return importer.array(torch.arange(count, dtype=torch.float32), f"ktir.positions.{count}")


def _given_mask(importer: Importer, call: Call, shape: _Shape) -> _Mask:
    """The mask of the call with its head dimension split into key head and group, and leading ones dropped."""
    mask = importer.unexpanded(call["attn_mask"])
    extents = [*shape_of(mask)]
    head = len(extents) - 3
    if head >= 0:
        split = (shape.batch[-1], shape.group) if extents[head] != 1 else (1, 1)
        extents[head : head + 1] = split
    while len(extents) > 1 and extents[0] == 1:
        del extents[0]
    mask = importer.build.reshape(mask, extents)
    rank = shape.lead + 2
    return _Mask(mask, tuple(range(rank - len(extents), rank)))


# ------------------------------------------------------------------------------------------------------------- fold


@dataclass(frozen=True)
class _Fold:
    build: GraphBuilder
    shape: _Shape
    masks: Sequence[_Mask]
    causal: bool
    scale: float

    def emit(self, query: SSAValue, key: SSAValue, value: SSAValue) -> SSAValue:
        """The attention of ``query``: batch, group, queries, value features."""
        shape = self.shape
        rank = len(shape.batch)
        kind = element_of(query)
        ins = [query, key, value, *(mask.value for mask in self.masks)]
        fold_dims = [NOT_FOLDED, rank, rank, *(mask.fold_dim(shape) for mask in self.masks)]
        tile = min(shape.keys, KEYS_PER_STEP)
        state_types = [
            TensorType(f32, shape.per_query),
            TensorType(f32, shape.per_query),
            TensorType(f32, (*shape.per_query, shape.value_features)),
        ]
        blocks = [_block_type(v, d, tile) for v, d in zip(ins, fold_dims, strict=True)]
        fold = FoldOp(
            ins,
            [TensorType(kind, (*shape.per_query, shape.value_features))],
            fold_dims=fold_dims,
            extent=shape.keys,
            tile=tile,
            init=self._init(),
            step=self._step([*blocks, *state_types], tile),
            merge=self._merge([*state_types, *state_types]),
            finish=self._finish(state_types, query),
        )
        return self.build.emit(fold)

    def _region(self, types: Sequence[TensorType[Element]]) -> tuple[Region, GraphBuilder]:
        block = Block(arg_types=types)
        return Region(block), self.build.nested(block)

    def _end(self, build: GraphBuilder, *values: SSAValue) -> None:
        end = YieldOp(*values)
        end.location = build.location
        build.block.add_op(end)

    def _init(self) -> Region:
        region, build = self._region([])
        shape = self.shape
        largest = build.filled(shape.per_query, f32, -inf)
        total = build.filled(shape.per_query, f32, 0.0)
        self._end(build, largest, total, build.filled((*shape.per_query, shape.value_features), f32, 0.0))
        return region

    def _step(self, types: Sequence[TensorType[Element]], tile: int) -> Region:
        region, build = self._region(types)
        query, key, value, *others = region.block.args
        *masks, largest, total, accumulated = others
        scores = self._scores(build, query, key, masks, tile)
        key_loop = self.shape.lead + 1
        new_largest = build.reduce(scores, [key_loop], MAXIMUM, largest)
        weights = self._weights(build, scores, new_largest, element_of(value))
        kept = self._scaled_by_change(build, largest, new_largest, total)
        new_total = build.reduce(weights, [key_loop], SUM, kept)
        weighed = self._scaled_by_change(build, largest, new_largest, accumulated)
        loops = (*self.shape.per_query, self.shape.value_features, tile)
        new_accumulated = build.contract(
            Operand(weights, (*self.shape.query_loops, key_loop + 1)),
            Operand(value, (*self.shape.batch_loops, key_loop + 1, key_loop)),
            loops,
            key_loop + 1,
            weighed,
        )
        self._end(build, new_largest, new_total, new_accumulated)
        return region

    def _scores(
        self, build: GraphBuilder, query: SSAValue, key: SSAValue, masks: Sequence[SSAValue], tile: int
    ) -> SSAValue:
        """``scale * query . key``, -inf where a mask forbids the key."""
        shape = self.shape
        feature = shape.lead + 2
        products = build.contract(
            Operand(query, (*shape.query_loops, feature)),
            Operand(key, (*shape.batch_loops, shape.lead + 1, feature)),
            (*shape.per_query, tile, shape.features),
            feature,
        )
        operands = [Operand.aligned(products, feature)]
        operands += [Operand(value, mask.dims) for value, mask in zip(masks, self.masks, strict=True)]

        def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
            score = s.multiply(values[0], s.constant(self.scale, f32))
            hidden = s.constant(-inf, f32)
            given = values[1 : len(values) - 2 * self.causal]
            for mask in given:
                allowed = mask.type == i1
                score = s.select(mask, score, hidden) if allowed else s.add(score, s.convert(mask, f32))
            if self.causal:
                score = s.select(s.compare("oge", values[-2], values[-1]), score, hidden)
            return score

        return build.pointwise(operands, (*shape.per_query, tile), f32, body)

    def _weights(self, build: GraphBuilder, scores: SSAValue, largest: SSAValue, kind: Element) -> SSAValue:
        """``exp(score - largest)`` in the type of the values, 0 where no key has been allowed yet.

        Rounding here lets the product with the values take two operands of one type; the sum is taken of the rounded
        weights, so that they still add up to 1.
        """
        rank = self.shape.lead + 2

        def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
            return s.exp(s.subtract(values[0], _finite(s, values[1])))

        operands = [Operand.aligned(scores, rank), Operand(largest, self.shape.query_loops)]
        return build.pointwise(operands, shape_of(scores), kind, body)

    def _scaled_by_change(self, build: GraphBuilder, old: SSAValue, new: SSAValue, value: SSAValue) -> SSAValue:
        """``value * exp(old - new)``: a state brought from one largest score to another."""

        def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
            return s.multiply(values[0], s.exp(s.subtract(values[1], _finite(s, values[2]))))

        rank = len(shape_of(value))
        loops = self.shape.query_loops
        operands = [Operand.aligned(value, rank), Operand(old, loops), Operand(new, loops)]
        return build.pointwise(operands, shape_of(value), f32, body)

    def _merge(self, types: Sequence[TensorType[Element]]) -> Region:
        region, build = self._region(types)
        largest, total, accumulated, other_largest, other_total, other_accumulated = region.block.args
        loops = self.shape.query_loops
        both = build.pointwise(
            [Operand(largest, loops), Operand(other_largest, loops)],
            self.shape.per_query,
            f32,
            lambda s, values: s.maximum(values[0], values[1]),
        )

        def joined(left: SSAValue, right: SSAValue) -> SSAValue:
            parts = [
                self._scaled_by_change(build, largest, both, left),
                self._scaled_by_change(build, other_largest, both, right),
            ]
            rank = len(shape_of(left))
            operands = [Operand.aligned(part, rank) for part in parts]
            return build.pointwise(operands, shape_of(left), f32, lambda s, values: s.add(values[0], values[1]))

        self._end(build, both, joined(total, other_total), joined(accumulated, other_accumulated))
        return region

    def _finish(self, types: Sequence[TensorType[Element]], query: SSAValue) -> Region:
        region, build = self._region(types)
        _, total, accumulated = region.block.args

        def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
            zero = s.constant(0.0, f32)
            seen_none = s.compare("oeq", values[1], zero)
            return s.select(seen_none, zero, s.divide(values[0], values[1]))

        rank = self.shape.lead + 2
        operands = [Operand.aligned(accumulated, rank), Operand(total, self.shape.query_loops)]
        self._end(build, build.pointwise(operands, shape_of(accumulated), element_of(query), body))
        return region


def _finite(s: ScalarBuilder, largest: SSAValue) -> SSAValue:
    """``largest``, or 0 while it is -inf, so that ``-inf - largest`` is -inf and not NaN."""
    return s.select(s.compare("oeq", largest, s.constant(-inf, f32)), s.constant(0.0, f32), largest)


def _block_type(value: SSAValue, fold_dim: int, tile: int) -> TensorType[Element]:
    shape = [*shape_of(value)]
    if fold_dim != NOT_FOLDED:
        shape[fold_dim] = tile
    return TensorType(element_of(value), shape)


ATTENTION: Final = MappingProxyType[str, Handler]({"aten.scaled_dot_product_attention.default": _attention})
