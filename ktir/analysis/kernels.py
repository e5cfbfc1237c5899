"""Follows one launch of a kernel and records its views, tiles and accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
)
from xdsl.ir import Operation, SSAValue

from ktir.analysis import ranges
from ktir.analysis.accesses import Access, DistributedView, Exchange, Fault, Known, Launch, Loop, Tile, View, element_of
from ktir.analysis.evaluation import Evaluator, signed_range
from ktir.analysis.footprint import buffer_behind
from ktir.analysis.ranges import Frame, Value
from ktir.analysis.scalar_operations import DIVISIONS, bits_of
from ktir.analysis.set_extents import owned_part, permuted, set_extent, variable
from ktir.dialect import ktdp
from ktir.dialect.ktdp.shares import ShareOperation


class Walker(Evaluator):
    """Follows one launch of a kernel and records its views, tiles and accesses."""

    def __init__(self, launch: Launch, functions: Mapping[str, func.FuncOp], calls: tuple[str, ...] = ()) -> None:
        super().__init__(functions)
        self.launch, self.calls = launch, calls
        self.produced: dict[SSAValue, tuple[int, tuple[Loop, ...], bool]] = {}

    def enter_loop(self, loop: Loop) -> None:
        self.launch.loops.append(loop)

    def leave_loop(self, loop: Loop, start: int) -> None:
        self.launch.spans[loop] = (start, self.order)

    def check_divisor(self, op: Operation, operands: Sequence[Value], frame: Frame) -> None:
        if op.name not in DIVISIONS:
            return
        zero = (operands[1].lower() == 0) & (operands[1].upper() == 0)
        hit = np.broadcast_to(zero, frame.points)
        if hit.any():
            certain = bool((hit & frame.certain).any())
            message = "the divisor is zero"
            self.launch.faults.append(Fault(op, "DivisionByZero", message, "divide by a positive number", certain))

    def call(self, op: func.CallOp, frame: Frame) -> None:
        name = op.callee.root_reference.data
        callee = self.functions.get(name)
        if callee is None or name in self.calls:
            self.launch.undecided.append((op, f"what @{name} accesses is not followed"))
            return
        inner = Walker(self.launch, self.functions, (*self.calls, name))
        inner.order, inner.loops = self.order, self.loops
        inner.bind(callee.body.block.args, [self.known.get(a) for a in op.arguments])
        inner.block(callee.body.block, frame)
        self.order = inner.order

    def other(self, op: Operation, frame: Frame) -> None:
        match op:
            case ktdp.GetComputeTileIdOp():
                self.tile_id(op, frame)
            case ktdp.RuntimeArgExtractOp():
                self.known[op.result] = runtime_argument(op, frame)
            case ktdp.ConstructMemoryViewOp():
                self.view(op, frame)
            case ktdp.ConstructDistributedMemoryViewOp():
                self.distributed(op)
            case ktdp.ConstructAccessTileOp():
                self.tile(op, frame)
            case ktdp.ConstructIndirectAccessTileOp():
                self.indirect(op, frame)
            case ktdp.LoadOp():
                self.access(op, "read", op.access_tile, frame)
            case ktdp.StoreOp():
                self.access(op, "write", op.access_tile, frame)
            case ktdp.InterTileProduceOp():
                self.regions_perhaps(op, frame)
                self.produced[op.future] = (self.order, self.loops, self.runs_everywhere(frame))
            case ktdp.InterTileConsumeOp() | ktdp.InterTileReduceOp() | ShareOperation():
                self.exchange(op, frame)
                self.regions_perhaps(op, frame)
            case _:
                self.regions_perhaps(op, frame)

    def exchange(self, op: ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp | ShareOperation, frame: Frame) -> None:
        produced, loops, everywhere = self.produced.get(op.future, (0, (), False))
        everywhere = everywhere and loops == self.loops and self.runs_everywhere(frame)
        self.launch.exchanges.append(Exchange(op, produced, self.order, self.loops, everywhere))

    def runs_everywhere(self, frame: Frame) -> bool:
        """Whether all cores come here for sure."""
        return bool(frame.certain.all()) and len(np.unique(frame.core)) == self.launch.cores

    def tile_id(self, op: ktdp.GetComputeTileIdOp, frame: Frame) -> None:
        below = 1
        for axis, result in enumerate(op.results):
            extent = self.launch.grid[axis] if axis < len(self.launch.grid) else 1
            self.known[result] = Value(frame.core // below % extent, {}, frame)
            below *= extent

    def mixed(self, entries: Sequence[int | SSAValue], frame: Frame) -> tuple[Value, ...]:
        return tuple(ranges.constant(e) if isinstance(e, int) else self.value(e, frame) for e in entries)

    def view(self, op: ktdp.ConstructMemoryViewOp, frame: Frame) -> None:
        space = op.memory_space.space if op.memory_space is not None else None
        sizes = self.mixed(op.mixed_sizes(), frame)
        view = View(
            op,
            self.value(op.offset, frame),
            sizes,
            self.mixed(op.mixed_strides(), frame),
            space.kind if space else "global",
            space.core if space else None,
            element_of(op.view.type),
            owned_part(op, sizes),
            ragged_dims(op),
            frame,
        )
        self.known[op.view] = view
        self.launch.views.append(view)

    def distributed(self, op: ktdp.ConstructDistributedMemoryViewOp) -> None:
        partitions = [self.known.get(v) for v in op.views]
        if all(isinstance(p, View) for p in partitions):
            made = DistributedView(op, cast("tuple[View, ...]", tuple(partitions)), element_of(op.view.type))
            self.known[op.view] = made
            self.launch.distributed.append(made)

    def tile(self, op: ktdp.ConstructAccessTileOp, frame: Frame) -> None:
        view = self.known.get(op.base)
        if not isinstance(view, View | DistributedView):
            return
        mapping = op.base_map.data
        indices = [self.value(v, frame) for v in op.indices]
        base = [ranges.evaluate(e, indices[: mapping.num_dims], indices[mapping.num_dims :]) for e in mapping.results]
        symbols = [self.value(v, frame) for v in op.symbol_operands]
        shape = op.tile.type.get_shape()
        extent = set_extent(op.access_tile_set.data, symbols)
        if extent is None:
            self.launch.undecided.append((op, "the access set has no bounds that can be computed"))
            return
        low, high, steps, count, exact = extent
        lower, upper = (tuple(b + e for b, e in zip(base, ends, strict=True)) for ends in (low, high))
        touched = permuted(low, high, op.access_tile_order.data)
        beyond = False
        if isinstance(view, View) and view.ragged:
            last = {d: view.sizes[d] - ranges.constant(1) for d in view.ragged}
            beyond = any(bool(((upper[d] - last[d]).upper() > 0).any()) for d in last)
            upper = tuple(ranges.least(end, last[d]) if d in last else end for d, end in enumerate(upper))
            exact = exact and steps is None
        made = Tile(op, view, lower, upper, shape, touched, count, steps, may_pass_the_end=beyond, exact=exact)
        self.keep(op.tile, made)

    def keep(self, result: SSAValue, tile: Tile) -> None:
        self.known[result] = tile
        self.launch.tiles.append(tile)

    def indirect(self, op: ktdp.ConstructIndirectAccessTileOp, frame: Frame) -> None:
        view = self.known.get(op.base)
        if not isinstance(view, View | DistributedView):
            return
        space = op.variables_space_set.data
        extent = set_extent(space, [self.value(v, frame) for v in op.symbol_operands])
        if extent is None:
            self.launch.undecided.append((op, "the variables' set has no bounds that can be computed"))
            return
        low, high, _, count, exact = extent
        variables = [variable(k, *ends, frame) for k, ends in enumerate(zip(low, high, strict=True))]
        captured = [self.value(v, frame) for v in op.captured]
        lookups: list[Tile] = []
        coordinates: list[Value] = []
        index_views = iter(op.index_views)
        kinds = cast("ArrayAttr[BoolAttr]", op.per_dim_subscript_kinds)
        maps = cast("ArrayAttr[AffineMapAttr]", op.per_dim_subscript_maps)
        for is_lookup, mapping in zip(kinds, maps, strict=True):
            results = [ranges.evaluate(e, [*captured, *variables], []) for e in mapping.data.results]
            if is_lookup.value.data:
                view_of_indices = self.known.get(next(index_views))
                lookups += self.lookup(op, view_of_indices, results, exact)
                results = [self.loaded_index(view_of_indices, frame)]
            coordinates += results
        lower = upper = tuple(coordinates)
        touched = permuted(low, high, op.variables_space_order.data)
        made = Tile(op, view, lower, upper, op.tile.type.get_shape(), touched, count, None, tuple(lookups), exact=False)
        self.keep(op.tile, made)

    def lookup(self, op: Operation, view: Known | None, at: Sequence[Value], exact: bool) -> list[Tile]:
        """The read of an index view that an indirect access makes."""
        if not isinstance(view, View) or not exact:
            return []
        return [Tile(op, view, tuple(at), tuple(at), (), is_lookup=True, exact=False)]

    def loaded_index(self, view: Known | None, frame: Frame) -> Value:
        """An element of an index view: anything, or what is promised of its buffer."""
        buffer = buffer_behind(view, frame, self.launch) if isinstance(view, View) else None
        low, high = self.launch.values.get(buffer, (-np.inf, np.inf)) if buffer is not None else (-np.inf, np.inf)
        return ranges.symbol("a loaded index", frame, float(low), float(high) - 1)

    def access(self, op: Operation, kind: Literal["read", "write"], operand: SSAValue, frame: Frame) -> None:
        tile = self.known.get(operand)
        if not isinstance(tile, Tile):
            self.launch.undecided.append((op, "the access tile is not followed"))
            return
        for lookup in tile.lookups:
            self.launch.accesses.append(Access(op, "read", lookup, frame, self.order, self.loops))
        self.launch.accesses.append(Access(op, kind, tile, frame, self.order, self.loops))


def runtime_argument(op: ktdp.RuntimeArgExtractOp, frame: Frame) -> Value:
    """A promise of a run-time argument, or its value, of which the caller promises them."""
    type = cast(ktdp.RuntimeArgType, op.argument.type)
    promised = type.promise(op.kind_name) if op.kind_name in type.KEYWORDS else None
    if promised is not None:
        return ranges.constant(promised)
    grain, most = type.promise("granularity"), type.promise("upperbound")
    low, high = signed_range(bits_of(op.result.type))
    return ranges.symbol(
        op.argument.name_hint or "run-time argument",
        frame,
        float(grain) if grain is not None else low,
        float(most) if most is not None else high,
        multiple=grain or 1,
    )


def ragged_dims(op: ktdp.ConstructMemoryViewOp) -> frozenset[int]:
    """The dimensions of a dynamic size, where the coordinate set depends on one."""
    if op.coordinate_set is None or not op.coordinate_set.data.num_symbols:
        return frozenset()
    return frozenset(d for d, size in enumerate(op.mixed_sizes()) if not isinstance(size, int))
