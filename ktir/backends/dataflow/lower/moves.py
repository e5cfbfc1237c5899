"""Emission of streams, copies and pointwise work as steps that fit the hardware's descriptors and queues.

A descriptor has few dimensions, and a queue holds few vectors: several streams into one unit must take turns in pieces
that the queues hold, since one load unit feeds them all in order. Both are met by loops around smaller descriptors.

Words. piece: the elements that one descriptor moves. lead: the outer dimensions that loops walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IrBlock

from ktir.backends.dataflow.lower.hardware import VECTOR_OUT, vector_queue
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

MAX_INPUTS = 4
"""Streams beyond which no further work is fused into a pointwise step."""

Emit = Callable[[Sequence[View]], object]
"""Emits the steps of one piece from its views."""


def for_each_piece(planner: Planner, view: View, emit: Callable[[View], object]) -> None:
    """``emit`` on pieces with as many dimensions as descriptors have, inside loops over the rest."""
    box = Box.of(view)
    _nest(planner, box, (view,), _lead(planner, box), lambda views: emit(views[0]))


def _lead(planner: Planner, box: Box) -> int:
    return max(0, len(box.counts) - planner.hardware.descriptor_dims)


def _nest(planner: Planner, box: Box, views: Sequence[View], lead: int, emit: Emit) -> None:
    if lead == 0:
        emit([view.shaped(box.counts, strides) for view, strides in zip(views, box.strides, strict=True)])
        return None
    loop = planner.open_loop("p", np.full(planner.cores, box.counts[0], dtype=np.int64))
    at = variable(loop.variable)
    moved = [view.moved(at * strides[0]) for view, strides in zip(views, box.strides, strict=True)]
    inner = Box(box.counts[1:], tuple(strides[1:] for strides in box.strides))
    _nest(planner, inner, moved, lead - 1, emit)
    return planner.close_loop(loop)


def load(planner: Planner, source: View, target: View) -> None:
    """Moves ``source`` in device memory to ``target`` in the scratchpad."""
    _copy(planner, planner.hardware.load, source, target, device_side=0)


def store(planner: Planner, source: View, target: View) -> None:
    """Moves ``source`` in the scratchpad to ``target`` in device memory."""
    _copy(planner, planner.hardware.store, source, target, device_side=1)


def _copy(planner: Planner, unit: str, source: View, target: View, device_side: int) -> None:
    """In the order of the device memory's side, which is the slower one to jump about in."""
    box = Box.of(source, target).ordered_by(device_side)
    _nest(planner, box, (source, target), _lead(planner, box), lambda views: planner.add(unit, Copy(*views)))


def stream(planner: Planner, source: View, queue: str) -> None:
    """Pushes ``source`` in row-major order."""
    for_each_piece(planner, source, lambda piece: planner.add(planner.hardware.feed, Stream(piece, queue)))


def drain(planner: Planner, queue: str, target: View) -> None:
    """Pops ``target`` in row-major order."""
    for_each_piece(planner, target, lambda piece: planner.add(planner.hardware.drain, Drain(queue, piece)))


def region_of(argument_types: Sequence[Attribute], body: ScalarBody) -> Callable[[], Region]:
    """Makes the region of a vector step: ``body`` on block arguments, then the yield."""

    def build() -> Region:
        block = IrBlock(arg_types=argument_types)
        operations, result = body(list(block.args))
        block.add_ops([*operations, dfp.YieldOp(result)])
        return Region(block)

    return build


def map_into(planner: Planner, work: Pending, target: View) -> None:
    """Does pending work and writes it to ``target``, which has its shape."""
    views = [*work.inputs, target]
    body = region_of([view.element for view in work.inputs], work.body)
    if work.reads_index:
        return _map_whole(planner, work, target, body)
    queues = tuple(vector_queue(number) for number in range(len(work.inputs)))

    def emit(piece: Sequence[View]) -> None:
        for view, queue in zip(piece[:-1], queues, strict=True):
            planner.add(planner.hardware.feed, Stream(view, queue))
        planner.add(planner.hardware.vector, SfuMap(queues, VECTOR_OUT, piece[-1].shape, body))
        planner.add(planner.hardware.drain, Drain(VECTOR_OUT, piece[-1]))

    return planner.each_corelet(
        shares_of(planner, views), lambda share: _pieces_that_fit(planner, share, len(work.inputs) > 1, emit)
    )


LEAST_VECTORS = 16
"""Vectors of work for each corelet below which it is left to one."""


def shares_of(planner: Planner, views: Sequence[View]) -> list[Sequence[View]]:
    """The elements of ``views``, which have one shape, in one part for each corelet that is worth using."""
    box, hardware = Box.of(*views), planner.hardware
    first, *rest = box.counts
    vector = hardware.machine.stick_bytes
    widths = [element_bytes(view.element) for view in views]
    if prod(box.counts) * max(widths) < LEAST_VECTORS * vector * hardware.corelets:
        return [views]
    grain = 1 if rest else vector // min(widths)
    whole = list(zip(views, box.strides, strict=True))
    return [
        [view.moved(strides[0] * start).shaped((size, *rest), strides) for view, strides in whole]
        for start, size in dealt(first, hardware.corelets, grain)
    ]


def dealt(count: int, parts: int, grain: int) -> list[tuple[int, int]]:
    """Start and size of at most ``parts`` runs of ``count`` elements, of whole grains and all but the last alike."""
    step = -(-count // (parts * grain)) * grain
    return [(start, min(step, count - start)) for start in range(0, count, step)]


def _map_whole(planner: Planner, work: Pending, target: View, body: Callable[[], Region]) -> None:
    """One vector step over the whole shape, because its body asks for positions in it."""
    queues = tuple(vector_queue(number) for number in range(len(work.inputs)))
    for view, queue in zip(work.inputs, queues, strict=True):
        stream(planner, view, queue)
    planner.add(planner.hardware.vector, SfuMap(queues, VECTOR_OUT, work.shape or (1,), body))
    drain(planner, VECTOR_OUT, target)


def _pieces_that_fit(planner: Planner, views: Sequence[View], take_turns: bool, emit: Emit) -> None:
    """``emit`` on pieces that descriptors and, where streams ``take_turns``, queues hold."""
    box = Box.of(*views)
    most = (
        planner.hardware.queue_bytes // max(element_bytes(view.element) for view in views)
        if take_turns
        else prod(box.counts)
    )
    inner = 1
    lead = len(box.counts)
    while lead and inner * box.counts[lead - 1] <= most:
        inner *= box.counts[lead - 1]
        lead -= 1
    if lead == 0 or inner == most:
        return _nest(planner, box, views, max(lead, _lead(planner, box)), emit)
    return _cut(planner, box, views, lead - 1, max(1, most // inner), emit)


def _cut(planner: Planner, box: Box, views: Sequence[View], dim: int, step: int, emit: Emit) -> None:
    """Walks the dimensions before ``dim`` and cuts ``dim`` into runs of ``step``, the last one shorter."""
    whole, rest = divmod(box.counts[dim], step)
    bounded = max(0, len(box.counts) - dim - planner.hardware.descriptor_dims)

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


def write(planner: Planner, tensor: Tensor, target: View) -> None:
    """Puts the elements of ``tensor`` into ``target`` through the vector unit. Nothing to do for undefined ones."""
    if not isinstance(tensor, Undefined) and target.count:
        map_into(planner, as_pending(tensor), target)
