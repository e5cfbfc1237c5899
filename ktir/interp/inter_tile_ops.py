"""The operations by which compute tiles exchange values: produce, consume, reduce.

Words. *group*: tiles that exchange with each other, numbered by the future's ``groups``. *contribution*: what one tile
produced. A reduction folds contributions in ascending order of tile ids (Q14), restricted to what the dependency set
names (Q15); the identity only stands for an empty set of producers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.ir.affine import AffineSet

from ktir.dialect.ktdp.ops import InterTileConsumeOp, InterTileProduceOp, InterTileReduceOp
from ktir.dialect.ktdp.types import TileFutureType
from ktir.errors import Deadlock, ExecutionError, UninitialisedRead
from ktir.interp.compile import Code, CompileOperation, FunctionCompiler, Step, element_of, shape_of
from ktir.interp.expressions import enumerate_points, member
from ktir.interp.numerics import Array
from ktir.interp.tensor_ops import poison
from ktir.interp.values import Frame, Joined, Origin, Site, Tainted, Value, take_rows


@dataclass(frozen=True, slots=True)
class Future:
    """Contributions: ``row`` of each tile that made one, and per partial an array with these rows.

    ``epoch`` and ``known`` say what memory its consumers may rely on (see checks.py).
    """

    groups: tuple[int, ...]
    producers: AffineSet
    row: Mapping[int, int]
    partials: tuple[Value, ...]
    epoch: int
    known: Array | None


@cache
def members(set: AffineSet, group: int, tiles: int) -> tuple[int, ...]:
    """Tile ids in ``set`` for a group, those of the grid only, ascending."""
    inside = np.broadcast_to(member(set, [np.arange(tiles), group]), tiles)
    return tuple(np.nonzero(inside)[0].tolist())


def produce(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, InterTileProduceOp)
    site, out, body = compiler.site(op), compiler.slot(op.future), compiler.region(op.body, op)
    kind = op.future.type
    assert isinstance(kind, TileFutureType)
    groups = tuple(int(point[0]) for point in enumerate_points(kind.groups.data, ()))
    producers = op.producer_tiles_per_group.data

    def step(frame: Frame) -> None:
        tiles = frame.launch.tiles
        group_of = {tile: group for group in groups for tile in members(producers, group, tiles)}
        rows = np.array([row for row, core in enumerate(frame.cores.tolist()) if core in group_of], np.int64)
        numbers = np.array([group_of[core] for core in frame.cores[rows].tolist()], np.int64)
        partials: list[Value] = []
        if len(rows):
            part = frame if len(rows) == frame.n else frame.part(rows, body.captured)
            number: Any = int(numbers[0]) if (numbers == numbers[0]).all() else numbers
            partials = body.call(part, [number])
        checker = frame.run.checker
        epoch = 0 if checker is None else checker.produced()
        known = None if checker is None or checker.seen is None else checker.seen.copy()
        row = {int(core): position for position, core in enumerate(frame.cores[rows].tolist())}
        n = len(rows)
        whole = tuple(_one_row_each(value, n) for value in partials)
        frame.regs[out] = Future(groups, producers, row, whole, epoch, known)

    del site
    return step


def _one_row_each(value: Value, n: int) -> Value:
    if isinstance(value, Tainted):
        return Tainted(_one_row_each(value.values, n), _one_row_each(value.mask, n), value.origin)
    return np.broadcast_to(value, (n, *value.shape[1:]))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which contributions each consumer of a frame needs: ``sources`` by tile id, ``rows`` of the consumers."""

    rows: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]


def wanted(future: Future, consumers: AffineSet, dependencies: AffineSet | None, frame: Frame, site: Site) -> Wanted:
    """Raises :class:`Deadlock` where a consumer waits for a tile that contributed nothing."""
    tiles = frame.launch.tiles
    rows: list[int] = []
    sources: list[tuple[int, ...]] = []
    row_of = {core: row for row, core in enumerate(frame.cores.tolist())}
    for group in future.groups:
        every = members(future.producers, group, tiles)
        _require_in_grid(future.producers, group, tiles, site)
        for consumer in members(consumers, group, tiles):
            if consumer not in row_of:
                continue
            needed = every
            if dependencies is not None:
                symbols = (consumer, group)[: dependencies.num_symbols]
                inside = np.broadcast_to(member(dependencies, [np.array(every, np.int64), *symbols]), len(every))
                needed = tuple(tile for tile, holds in zip(every, inside.tolist(), strict=True) if holds)
            missing = [tile for tile in needed if tile not in future.row]
            if missing:
                raise site.fail(
                    Deadlock,
                    f"waits on core {consumer} for compute tiles {missing} of group {group}, which never produce",
                    "let all producers of the group run the inter_tile_produce, or leave them out of its set",
                )
            rows.append(row_of[consumer])
            sources.append(needed)
    return Wanted(tuple(rows), tuple(sources))


def _require_in_grid(producers: AffineSet, group: int, tiles: int, site: Site) -> None:
    """Producers beyond the grid never come."""
    if members(producers, group, 2 * tiles)[-1:] > (tiles - 1,):
        absent = [tile for tile in members(producers, group, 2 * tiles) if tile >= tiles]
        raise site.fail(
            Deadlock,
            f"waits for compute tiles {absent} of group {group}, but the grid has only {tiles}",
            "name compute tiles of the grid only",
        )


def _synchronise(future: Future, wait: Wanted, frame: Frame) -> None:
    """Consumers know from now on what their producers wrote before they produced."""
    checker = frame.run.checker
    if checker is None or checker.seen is None or future.known is None:
        return
    for row, needed in zip(wait.rows, wait.sources, strict=True):
        consumer = int(frame.cores[row])
        for tile in needed:
            np.maximum(checker.seen[consumer], future.known[tile], out=checker.seen[consumer])
            checker.seen[consumer, tile] = max(int(checker.seen[consumer, tile]), future.epoch + 1)


def reduce(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, InterTileReduceOp)
    site, future_slot = compiler.site(op), compiler.slot(op.future)
    identities = tuple(compiler.slot(value) for value in op.identities)
    results = tuple(compiler.slot(result) for result in op.reduced)
    kinds = tuple(result.type for result in op.reduced)
    body = compiler.region(op.reducer, op)
    consumers = op.consumer_tiles_per_group.data
    dependencies = op.producer_dependency_per_consumer
    origin = Origin(
        UninitialisedRead, "the result of an inter-tile operation on a tile that consumes nothing", site.location
    )

    def step(frame: Frame) -> None:
        future = frame.regs[future_slot]
        wait = wanted(future, consumers, None if dependencies is None else dependencies.data, frame, site)
        _synchronise(future, wait, frame)
        distinct = {needed: position for position, needed in enumerate(dict.fromkeys(wait.sources))}
        folded = [_fold(future, needed, body, frame, identities) for needed in distinct]
        for position, (out, kind) in enumerate(zip(results, kinds, strict=True)):
            delivered = [folded[distinct[needed]][position] for needed in wait.sources]
            frame.regs[out] = _spread(delivered, wait.rows, kind, origin, frame, site)

    return step


def _fold(future: Future, needed: Sequence[int], body: Code, frame: Frame, identities: Sequence[int]) -> list[Value]:
    """Left fold of the contributions of the tiles in ``needed``."""
    if not needed:
        return [take_rows(frame.regs[slot], np.array([0]), frame.n) for slot in identities]
    states = _contribution(future, needed[0])
    one = Frame(frame.run, frame.launch, frame.cores[:1], frame.part(np.array([0]), body.captured).regs)
    for tile in needed[1:]:
        states = body.call(one, [*states, *_contribution(future, tile)])
    return states


def _contribution(future: Future, tile: int) -> list[Value]:
    row = future.row[tile]
    return [_row(value, row) for value in future.partials]


def _row(value: Value, row: int) -> Value:
    if isinstance(value, Tainted):
        mask = value.mask[row : row + 1]
        values = value.values[row : row + 1]
        return Tainted(values, mask, value.origin) if mask.any() else values
    return value[row : row + 1]


def _spread(
    delivered: Sequence[Value], rows: Sequence[int], kind: Any, origin: Origin, frame: Frame, site: Site
) -> Value:
    """What each core of the frame got; undefined on those that consume nothing (Q17)."""
    joined = Joined(frame.n)
    shape, element = shape_of(kind), element_of(kind)
    delivered = _with_shape(delivered, shape)
    shapes = {np.shape(value.values if isinstance(value, Tainted) else value)[1:] for value in delivered}
    if shapes - {shape}:
        raise site.fail(
            ExecutionError,
            f"gives {shapes.pop()} where its type says {shape}",
            "let the result have the partial's type",
        )
    groups: dict[int, tuple[Value, list[int]]] = {}
    for row, value in zip(rows, delivered, strict=True):
        groups.setdefault(id(value), (value, []))[1].append(row)
    rest = sorted(set(range(frame.n)) - set(rows))
    if len(groups) == 1 and not rest:
        return next(iter(groups.values()))[0]
    for value, where in groups.values():
        joined.add(np.array(where), value)
    if rest:
        values = poison(shape, element)
        joined.add(np.array(rest), Tainted(values, np.broadcast_to(np.True_, values.shape), origin))
    return joined.value(site)


def _with_shape(delivered: Sequence[Value], shape: tuple[int, ...]) -> list[Value]:
    """The values, without the unit dimensions that old texts drop from the type of the result."""
    found: dict[int, Value] = {}
    for value in delivered:
        if id(value) not in found:
            found[id(value)] = _dropping_units(value, shape)
    return [found[id(value)] for value in delivered]


def _dropping_units(value: Value, shape: tuple[int, ...]) -> Value:
    if isinstance(value, Tainted):
        mask = np.broadcast_to(value.mask, value.values.shape)
        return Tainted(_dropping_units(value.values, shape), _dropping_units(mask, shape), value.origin)
    given = value.shape[1:]
    if given == shape or [size for size in given if size != 1] != [size for size in shape if size != 1]:
        return value
    return value.reshape(len(value), *shape)


def consume(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, InterTileConsumeOp)
    site, future_slot = compiler.site(op), compiler.slot(op.future)
    results = tuple(compiler.slot(result) for result in op.delivered)
    kinds = tuple(result.type for result in op.delivered)
    consumers = op.consumer_tiles_per_group.data
    dependencies = op.producer_dependency_per_consumer
    origin = Origin(
        UninitialisedRead, "the result of an inter-tile operation on a tile that consumes nothing", site.location
    )

    def step(frame: Frame) -> None:
        future = frame.regs[future_slot]
        wait = wanted(future, consumers, None if dependencies is None else dependencies.data, frame, site)
        for row, needed in zip(wait.rows, wait.sources, strict=True):
            if len(needed) != 1:
                raise site.fail(
                    Deadlock,
                    f"delivers one contribution, but core {int(frame.cores[row])} depends on {len(needed)}",
                    "name the single source of each consumer in producer_dependency_per_consumer",
                )
        _synchronise(future, wait, frame)
        sources = {needed[0]: _contribution(future, needed[0]) for needed in wait.sources}
        for position, (out, kind) in enumerate(zip(results, kinds, strict=True)):
            delivered = [sources[needed[0]][position] for needed in wait.sources]
            frame.regs[out] = _spread(delivered, wait.rows, kind, origin, frame, site)

    return step


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "ktdp.inter_tile_produce": produce,
        "ktdp.inter_tile_reduce": reduce,
        "ktdp.inter_tile_consume": consume,
    }
)
