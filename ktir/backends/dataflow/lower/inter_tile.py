"""The inter-tile operations: what producers make goes over the network to the consumers that hear them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineSet

from ktir.backends.dataflow.lower import chains, moves
from ktir.backends.dataflow.lower.context import Lowering, Rule, refuse, shape_and_element
from ktir.backends.dataflow.lower.plan import Tile, View, row_major
from ktir.backends.dataflow.lower.ring import core_table, receive, send, send_to_all, sending_block
from ktir.backends.dataflow.lower.values import CoreValue, PerCore, per_core, variable
from ktir.dialect import ktdp
from ktir.maths.sets import contains, points


@dataclass(frozen=True)
class Future:
    """Contributions: one view per partial tensor, and the producers of each group."""

    partials: tuple[View, ...]
    producers: Mapping[int, tuple[int, ...]]


def _groups_of(op: Operation, type: ktdp.TileFutureType) -> list[int]:
    return [point[0] for point in points(type.groups.data)]


def _tiles(lowering: Lowering, set_: AffineSet, symbols: Sequence[int]) -> tuple[int, ...]:
    """Tile ids of the grid in a set."""
    running = int(lowering.everyone.sum())
    return tuple(tile for tile in range(running) if contains(set_, (tile,), symbols))


def produce(lowering: Lowering, op: Operation) -> None:
    """Runs the region on the producers; the partial values stay where they are made, or go to a tile of all cores."""
    assert isinstance(op, ktdp.InterTileProduceOp)
    planner = lowering.planner
    type = op.future.type
    assert isinstance(type, ktdp.TileFutureType)
    groups = _groups_of(op, type)
    producers = {g: _tiles(lowering, op.producer_tiles_per_group.data, [g]) for g in groups}
    group_of = {tile: g for g, tiles in producers.items() for tile in tiles}
    mask = np.array([core in group_of for core in range(lowering.cores)])
    block = op.body.block
    lowering.values[block.args[0]] = core_table(lowering.cores, group_of)
    end = block.last_op
    assert end is not None
    if (mask & planner.active == planner.active).all():
        lowering.lower_body(block)
        partials = tuple(lowering.view(value, op) for value in end.operands)
    else:
        places = [lowering.made_tile(*shape_and_element(t, op)) for t in type.partial_types]

        def work() -> None:
            lowering.lower_body(block)
            for value, (target, _) in zip(end.operands, places, strict=True):
                moves.write(planner, lowering.tensor(value, op), target)

        planner.guarded(mask, work)
        partials = tuple(view for _, view in places)
    lowering.values[op.future] = Future(partials, producers)


def _senders(
    lowering: Lowering, op: ktdp.InterTileReduceOp | ktdp.InterTileConsumeOp, future: Future
) -> dict[int, tuple[int, ...]]:
    """For each consumer the producers it hears, ascending."""
    result: dict[int, tuple[int, ...]] = {}
    dependency = op.producer_dependency_per_consumer
    consumers = op.consumer_tiles_per_group
    for group, producers in future.producers.items():
        for consumer in _tiles(lowering, consumers.data, [group]):
            if dependency is None:
                result[consumer] = producers
            else:
                symbols = [consumer, group][: dependency.data.num_symbols]
                heard = _tiles(lowering, dependency.data, symbols)
                result[consumer] = tuple(p for p in producers if p in heard)
    return result


@dataclass(frozen=True)
class Run:
    """Core numbers ``start + step * j`` for ``j`` below ``trips``, on each core."""

    trips: PerCore
    start: PerCore
    step: PerCore


def runs_of(cores: int, lists: Mapping[int, Sequence[int]]) -> list[Run]:
    """Each core's list of core numbers as one arithmetic run if all lists are, else one run per position."""
    numbers = [list(lists.get(core, ())) for core in range(cores)]
    steps = [each[1] - each[0] if len(each) > 1 else 0 for each in numbers]
    arithmetic = all(
        each[j] == each[0] + step * j for each, step in zip(numbers, steps, strict=True) for j in range(len(each))
    )
    if arithmetic:
        return [
            Run(
                np.array([len(each) for each in numbers]),
                np.array([each[0] if each else 0 for each in numbers]),
                np.array(steps),
            )
        ]
    return [
        Run(
            np.array([int(j < len(each)) for each in numbers]),
            np.array([each[j] if j < len(each) else 0 for each in numbers]),
            np.zeros(cores, dtype=np.int64),
        )
        for j in range(max(map(len, numbers)))
    ]


def _each_run(
    lowering: Lowering, name: str, lists: Mapping[int, Sequence[int]], work: Callable[[CoreValue], None]
) -> None:
    for run in runs_of(lowering.cores, lists):
        if not run.trips[lowering.planner.active].any():
            continue
        loop = lowering.planner.open_loop(name, run.trips)
        work(per_core(run.start) + variable(loop.variable) * per_core(run.step))
        lowering.planner.close_loop(loop)


def _send_partials(lowering: Lowering, op: Operation, future: Future, senders: Mapping[int, Sequence[int]]) -> None:
    """Each producer sends its contribution to its consumers: to all at once where the machine can, else ascending."""
    block = sending_block(lowering, op)
    receivers: dict[int, list[int]] = {}
    for consumer in sorted(senders):
        for producer in senders[consumer]:
            receivers.setdefault(producer, []).append(consumer)
    if lowering.hardware.multicasts:
        send_to_all(lowering, block, future.partials, receivers)
        return
    planner = lowering.planner
    current, active = planner.block, planner.active
    planner.block, planner.active = block, lowering.everyone
    everywhere = np.ones(lowering.cores, dtype=np.bool_)

    def work(destination: CoreValue) -> None:
        for partial in future.partials:
            send(lowering, planner.block, everywhere, partial, destination)

    _each_run(lowering, "to", receivers, work)
    planner.block, planner.active = current, active


def reduce(lowering: Lowering, op: Operation) -> None:
    """Folds the contributions on each consumer in ascending order of producers; who hears none gets the identity.

    Sums in f32 that all consumers of a group hear are added along a chain of the producers where the machine can.
    """
    assert isinstance(op, ktdp.InterTileReduceOp)
    planner = lowering.planner
    future = lowering.get(op.future, Future, op, "the future")
    senders = _senders(lowering, op, future)
    if chains.adds(lowering, op, future.partials, future.producers, senders):
        results = chains.lower(lowering, op, future.partials, future.producers, senders)
        for result, view in zip(op.results, results, strict=True):
            lowering.values[result] = _as_result(op, result, view)
        return
    _send_partials(lowering, op, future, senders)
    carried: list[Tile] = []
    firsts = {consumer: heard[0] for consumer, heard in senders.items() if heard}
    hears = np.array([core in firsts for core in range(lowering.cores)])
    for identity, partial in zip(op.identities, future.partials, strict=True):
        target, heard = lowering.received_tile(partial.shape, partial.element)
        receive(lowering, hears, target, core_table(lowering.cores, firsts))
        tile = planner.carried_tile(partial.shape, partial.element)
        first = planner.dense(planner.writing(tile), partial.shape, partial.element)
        for mask, value in ((hears, heard), (~hears, lowering.tensor(identity, op))):
            planner.guarded(mask, lambda value=value, first=first: moves.write(planner, value, first))
        carried.append(tile)
    block = op.reducer.block
    end = block.last_op
    assert end is not None
    count = len(carried)

    def work(origin: CoreValue) -> None:
        targets: list[View] = []
        everywhere = np.ones(lowering.cores, dtype=np.bool_)
        arrived: list[View] = []
        for partial in future.partials:
            target, view = lowering.received_tile(partial.shape, partial.element)
            receive(lowering, everywhere, target, origin)
            arrived.append(view)
        for number, (tile, partial) in enumerate(zip(carried, future.partials, strict=True)):
            lowering.values[block.args[number]] = planner.dense(planner.reading(tile), partial.shape, partial.element)
            lowering.values[block.args[count + number]] = arrived[number]
            targets.append(planner.dense(planner.writing(tile), partial.shape, partial.element))
        lowering.lower_body(block)
        for value, target in zip(end.operands, targets, strict=True):
            moves.write(planner, lowering.tensor(value, end), target)

    _each_run(lowering, "from", {consumer: heard[1:] for consumer, heard in senders.items()}, work)
    for result, tile, partial in zip(op.results, carried, future.partials, strict=True):
        reading = planner.reading(tile, planner.block.items[-1])
        lowering.values[result] = _as_result(op, result, planner.dense(reading, partial.shape, partial.element))


def consume(lowering: Lowering, op: Operation) -> None:
    """Each consumer receives the contribution of its one producer."""
    assert isinstance(op, ktdp.InterTileConsumeOp)
    future = lowering.get(op.operands[0], Future, op, "the future")
    senders = _senders(lowering, op, future)
    if any(len(heard) != 1 for heard in senders.values()):
        refuse(op, "a consumer hears several producers", "name one with producer_dependency_per_consumer")
    _send_partials(lowering, op, future, senders)
    mask = np.array([core in senders for core in range(lowering.cores)])
    origin = core_table(lowering.cores, {consumer: heard[0] for consumer, heard in senders.items()})
    for result, partial in zip(op.results, future.partials, strict=True):
        target, view = lowering.received_tile(partial.shape, partial.element)
        receive(lowering, mask, target, origin)
        lowering.values[result] = _as_result(op, result, view)


def _as_result(op: Operation, result: SSAValue, delivered: View) -> View:
    """What arrived, in the shape of the result, which may lack dimensions of one element."""
    shape, element = shape_and_element(result.type, op)
    return delivered.shaped(shape, row_major(shape, element))


RULES: Mapping[str, Rule] = {
    "ktdp.inter_tile_produce": produce,
    "ktdp.inter_tile_reduce": reduce,
    "ktdp.inter_tile_consume": consume,
}
