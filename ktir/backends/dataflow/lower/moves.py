"""Emission of streams, copies and pointwise work as steps that fit the hardware's descriptors and queues.

A descriptor has few dimensions, and a queue holds few vectors: several streams into one unit must take turns in pieces
that the queues hold, since one load unit feeds them all in order. Both are met by loops around smaller descriptors.

Words. piece: the elements that one descriptor moves. lead: the outer dimensions that loops walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IrBlock

from ktir.backends.dataflow.lower.plan import (
    Copy,
    Drain,
    Planner,
    ScalarBody,
    SfuMap,
    Stream,
    View,
    element_bytes,
)
from ktir.backends.dataflow.lower.tensors import Box, Pending, Splat, Tensor, Undefined
from ktir.backends.dataflow.lower.values import variable
from ktir.dialect import dfp
from ktir.machine.description import Machine

SFU_OUT = "q_sfu_out"
MAX_INPUTS = 4
"""Streams beyond which no further work is fused into a pointwise step."""
MAX_STREAMS = 12
"""Queues into the vector unit."""


def sfu_queue(number: int) -> str:
    """The queue of the ``number``-th stream into the vector unit."""
    return f"q_sfu_{number}"


@dataclass(frozen=True)
class Limits:
    """What the machine's descriptors and queues hold."""

    descriptor_dims: int
    queue_bytes: int
    vector_bytes: int

    @staticmethod
    def of(machine: Machine) -> Limits:
        """The least of all units that move data, 0 meaning no limit."""
        limited = [unit.descriptor_dims for unit in machine.units.values() if unit.descriptor_dims]
        queues = list(machine.queues.values())
        return Limits(
            min(limited, default=8),
            min((queue.depth * queue.width for queue in queues), default=2048),
            min((queue.width for queue in queues), default=128),
        )


Emit = Callable[[Sequence[View]], None]
"""Emits the steps of one piece from its views."""


def for_each_piece(planner: Planner, views: Sequence[View], piece_dims: int, emit: Emit) -> None:
    """``emit`` on pieces of at most ``piece_dims`` dimensions, inside loops over the rest. All views have one shape."""
    box = Box.of(*views)
    _nest(planner, box, views, max(0, len(box.counts) - piece_dims), emit)


def _nest(planner: Planner, box: Box, views: Sequence[View], lead: int, emit: Emit) -> None:
    if lead == 0:
        return emit([view.shaped(box.counts, strides) for view, strides in zip(views, box.strides, strict=True)])
    loop = planner.open_loop("p", np.full(planner.cores, box.counts[0], dtype=np.int64))
    at = variable(loop.variable)
    moved = [view.moved(at * strides[0]) for view, strides in zip(views, box.strides, strict=True)]
    inner = Box(box.counts[1:], tuple(strides[1:] for strides in box.strides))
    _nest(planner, inner, moved, lead - 1, emit)
    return planner.close_loop(loop)


def copy(planner: Planner, limits: Limits, unit: str, source: View, target: View) -> None:
    """Moves ``source`` to ``target`` by a memory-to-memory unit, in the order of the device memory's side."""
    device_side = 0 if unit == "hbm_ld" else 1
    box = Box.of(source, target).ordered_by(device_side)
    _nest(
        planner,
        box,
        (source, target),
        max(0, len(box.counts) - limits.descriptor_dims),
        lambda views: planner.add(unit, Copy(views[0], views[1])) and None,
    )


def stream(planner: Planner, limits: Limits, source: View, queue: str) -> None:
    """Pushes ``source`` in row-major order."""
    for_each_piece(
        planner, [source], limits.descriptor_dims, lambda views: planner.add("lx_ld", Stream(views[0], queue)) and None
    )


def drain(planner: Planner, limits: Limits, queue: str, target: View) -> None:
    """Pops ``target`` in row-major order."""
    for_each_piece(
        planner, [target], limits.descriptor_dims, lambda views: planner.add("lx_st", Drain(queue, views[0])) and None
    )


def region_of(argument_types: Sequence[Attribute], body: ScalarBody) -> Callable[[], Region]:
    """Makes the region of a vector step: ``body`` on block arguments, then the yield."""

    def build() -> Region:
        block = IrBlock(arg_types=argument_types)
        operations, result = body(list(block.args))
        block.add_ops([*operations, dfp.YieldOp(result)])
        return Region(block)

    return build


def map_into(planner: Planner, limits: Limits, work: Pending, target: View) -> None:
    """Does pending work and writes it to ``target``, which has its shape."""
    views = [*work.inputs, target]
    body = region_of([view.element for view in work.inputs], work.body)
    if work.reads_index:
        return _map_whole(planner, limits, work, target, body)
    queues = tuple(sfu_queue(number) for number in range(len(work.inputs)))

    def emit(piece: Sequence[View]) -> None:
        for view, queue in zip(piece[:-1], queues, strict=True):
            planner.add("lx_ld", Stream(view, queue))
        planner.add("sfu", SfuMap(queues, SFU_OUT, piece[-1].shape, body))
        planner.add("lx_st", Drain(SFU_OUT, piece[-1]))

    return _pieces_that_fit(planner, limits, views, len(work.inputs) > 1, emit)


def _map_whole(planner: Planner, limits: Limits, work: Pending, target: View, body: Callable[[], Region]) -> None:
    """One vector step over the whole shape, because its body asks for positions in it."""
    queues = tuple(sfu_queue(number) for number in range(len(work.inputs)))
    for view, queue in zip(work.inputs, queues, strict=True):
        stream(planner, limits, view, queue)
    planner.add("sfu", SfuMap(queues, SFU_OUT, work.shape or (1,), body))
    drain(planner, limits, SFU_OUT, target)


def _pieces_that_fit(planner: Planner, limits: Limits, views: Sequence[View], take_turns: bool, emit: Emit) -> None:
    """``emit`` on pieces that descriptors and, where streams ``take_turns``, queues hold."""
    box = Box.of(*views)
    most = limits.queue_bytes // max(element_bytes(view.element) for view in views) if take_turns else prod(box.counts)
    inner = 1
    lead = len(box.counts)
    while lead and inner * box.counts[lead - 1] <= most:
        inner *= box.counts[lead - 1]
        lead -= 1
    if lead == 0 or inner == most:
        return _nest(planner, box, views, max(lead, len(box.counts) - limits.descriptor_dims), emit)
    return _cut(planner, limits, box, views, lead - 1, max(1, most // inner), emit)


def _cut(planner: Planner, limits: Limits, box: Box, views: Sequence[View], dim: int, step: int, emit: Emit) -> None:
    """Walks the dimensions before ``dim`` and cuts ``dim`` into runs of ``step``, the last one shorter."""
    whole, rest = divmod(box.counts[dim], step)
    bounded = max(0, len(box.counts) - dim - limits.descriptor_dims)

    def run(views_at: Sequence[View]) -> None:
        strides = [view.strides[0] for view in views_at]

        def part(count: int, moved: Sequence[View]) -> None:
            resized = Box((count, *views_at[0].shape[1:]), tuple(view.strides for view in views_at))
            _nest(planner, resized, moved, bounded, emit)

        if whole:
            loop = planner.open_loop("c", np.full(planner.cores, whole, dtype=np.int64))
            at = variable(loop.variable)
            part(step, [view.moved(at * (stride * step)) for view, stride in zip(views_at, strides, strict=True)])
            planner.close_loop(loop)
        if rest:
            done = whole * step
            part(rest, [view.moved(stride * done) for view, stride in zip(views_at, strides, strict=True)])

    _nest(planner, box, views, dim, run)


# -------------------------------------------------------------------------------------------------------- whole tensors


def as_pending(tensor: Tensor) -> Pending:
    """``tensor`` as pointwise work: the identity of a view, a constant for a splat or what is undefined."""
    if isinstance(tensor, Pending):
        return tensor
    if isinstance(tensor, View):
        return Pending(tensor.shape, tensor.element, (tensor,), lambda args: ([], args[0]))
    value = tensor.value if isinstance(tensor, Splat) else None
    return Pending(tensor.shape, tensor.element, (), constant_body(value, tensor.element))


def constant_body(value: Attribute | None, element: Attribute) -> ScalarBody:
    """A region that yields ``value``, or zero where nobody cares."""

    def body(_: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        made = arith.ConstantOp(cast("IntegerAttr", value if value is not None else zero_of(element)))
        return [made], made.result

    return body


def zero_of(element: Attribute) -> Attribute:
    """Zero of an element type."""
    if isinstance(element, IntegerType | IndexType):
        return IntegerAttr(0, cast("IntegerType", element))
    return FloatAttr(0.0, cast("AnyFloat", element))


def write(planner: Planner, limits: Limits, tensor: Tensor, target: View) -> None:
    """Puts the elements of ``tensor`` into ``target`` through the vector unit. Nothing to do for undefined ones."""
    if not isinstance(tensor, Undefined) and target.count:
        map_into(planner, limits, as_pending(tensor), target)
