"""The operations by which compute tiles exchange values: produce, consume, reduce.

Words. *group*: tiles that exchange with each other, numbered by the future's ``groups``. *contribution*: what one tile
produced. A reduction folds contributions in ascending order of tile ids (Q14), restricted to what the dependency set
names (Q15); the identity only stands for an empty set of producers.

Where iterations of a loop run together (batches.py), the cores of each exchange among themselves: contributions and
what is made of them then have one row per iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.ir.affine import AffineSet

from ktir.dialect.ktdp.ops import InterTileConsumeOp, InterTileProduceOp, InterTileReduceOp
from ktir.dialect.ktdp.types import TileFutureType
from ktir.errors import Deadlock, ExecutionError, UninitialisedRead
from ktir.interp.batches import Met
from ktir.interp.checks import Checker, Knowledge
from ktir.interp.compile import Code, CompileOperation, FunctionCompiler, Step, element_of, shape_of
from ktir.interp.expressions import enumerate_points, member
from ktir.interp.extents import poison
from ktir.interp.numerics import Array
from ktir.interp.values import Frame, Joined, Origin, Site, Tainted, Value, take_rows


@dataclass(frozen=True, slots=True)
class Future:
    """Contributions: per partial an array with the rows of one iteration after those of the other, in each of which
    the tiles have the positions ``row``. ``knowledge`` is what its consumers may rely on (see checks.py)."""

    groups: tuple[int, ...]
    producers: AffineSet
    row: Mapping[int, int]
    partials: tuple[Value, ...]
    knowledge: Knowledge


@cache
def members(set: AffineSet, group: int, tiles: int) -> tuple[int, ...]:
    """Tile ids in ``set`` for a group, those of the grid only, ascending."""
    inside = np.broadcast_to(member(set, [np.arange(tiles), group]), tiles)
    return tuple(np.nonzero(inside)[0].tolist())


def produce(compiler: FunctionCompiler, op: Operation) -> Step:
    assert isinstance(op, InterTileProduceOp)
    out, body = compiler.slot(op.future), compiler.region(op.body, op)
    kind = op.future.type
    assert isinstance(kind, TileFutureType)
    groups = tuple(int(point[0]) for point in enumerate_points(kind.groups.data, ()))
    producers = op.producer_tiles_per_group.data

    def step(frame: Frame) -> None:
        tiles, (iterations, cores) = frame.launch.tiles, exchanging(frame)
        group_of = {tile: group for group in groups for tile in members(producers, group, tiles)}
        producing = [row for row, core in enumerate(cores) if core in group_of]
        partials: list[Value] = []
        if producing:
            numbers = [group_of[cores[row]] for row in producing]
            number: Any = numbers[0] if len(set(numbers)) == 1 else np.tile(np.array(numbers, np.int64), iterations)
            part = frame
            if len(producing) < len(cores):
                part = frame.part(rows_of_all(producing, iterations, len(cores)), body.captured)
            partials = body.call(part, [number])
        knowledge = Knowledge()
        tell_checker(frame, partial(Checker.produced, knowledge=knowledge))
        row = {cores[row]: position for position, row in enumerate(producing)}
        whole = tuple(_one_row_each(value, iterations * len(producing)) for value in partials)
        frame.regs[out] = Future(groups, producers, row, whole, knowledge)

    return step


def exchanging(frame: Frame) -> tuple[int, list[int]]:
    """How many iterations run together, and the cores that exchange in each of them, the same in all."""
    if frame.batch is None:
        return 1, frame.cores.tolist()
    assert frame.batch_rows is not None
    count, rest = divmod(frame.n, frame.batch.count)
    rows = None if rest else frame.batch_rows.reshape(frame.batch.count, count)
    if rows is None or (rows - rows[0] != np.arange(len(rows))[:, None] * frame.batch.cores).any():
        raise Met
    return frame.batch.count, frame.cores[:count].tolist()


def rows_of_all(rows: Sequence[int], iterations: int, cores: int) -> Array:
    """Rows of one iteration, in every iteration."""
    return (np.arange(iterations)[:, None] * cores + np.array(rows, np.int64)).reshape(-1)


def tell_checker(frame: Frame, event: Callable[[Checker], None]) -> None:
    """Lets the checker know of an exchange; once more for each iteration that runs together with the first one."""
    if frame.run.checker is not None:
        event(frame.run.checker)
        if frame.batch is not None:
            frame.batch.exchanges.append(event)


def _one_row_each(value: Value, n: int) -> Value:
    if isinstance(value, Tainted):
        return Tainted(_one_row_each(value.values, n), _one_row_each(value.mask, n), value.origin)
    return np.broadcast_to(value, (n, *value.shape[1:]))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which contributions the consumers among the ``cores`` of each iteration need: ``sources`` by tile id, ``rows``
    and ``groups`` of the consumers."""

    iterations: int
    cores: int
    rows: tuple[int, ...]
    groups: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]


def wanted(future: Future, consumers: AffineSet, dependencies: AffineSet | None, frame: Frame, site: Site) -> Wanted:
    """Raises :class:`Deadlock` where a consumer waits for a tile that contributed nothing."""
    tiles, (iterations, cores) = frame.launch.tiles, exchanging(frame)
    rows: list[int] = []
    groups: list[int] = []
    sources: list[tuple[int, ...]] = []
    row_of = {core: row for row, core in enumerate(cores)}
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
            groups.append(group)
            sources.append(needed)
    if frame.run.checker is not None:
        pairs = [(cores[row], tile) for row, needed in zip(rows, sources, strict=True) for tile in needed]
        known = np.array(pairs, np.int64).reshape(-1, 2)
        tell_checker(frame, partial(Checker.received, knowledge=future.knowledge, pairs=known))
    return Wanted(iterations, len(cores), tuple(rows), tuple(groups), tuple(sources))


def _require_in_grid(producers: AffineSet, group: int, tiles: int, site: Site) -> None:
    """Producers beyond the grid never come."""
    if members(producers, group, 2 * tiles)[-1:] > (tiles - 1,):
        absent = [tile for tile in members(producers, group, 2 * tiles) if tile >= tiles]
        raise site.fail(
            Deadlock,
            f"waits for compute tiles {absent} of group {group}, but the grid has only {tiles}",
            "name compute tiles of the grid only",
        )


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
        distinct = {needed: position for position, needed in enumerate(dict.fromkeys(wait.sources))}
        folded = [fold(future, needed, body, frame, wait, identities) for needed in distinct]
        for position, (out, kind) in enumerate(zip(results, kinds, strict=True)):
            delivered = [folded[distinct[needed]][position] for needed in wait.sources]
            frame.regs[out] = spread_over_cores(delivered, wait, kind, origin, site)

    return step


def fold(
    future: Future, needed: Sequence[int], body: Code, frame: Frame, wait: Wanted, identities: Sequence[int]
) -> list[Value]:
    """Left fold of the contributions of the tiles in ``needed``, one row per iteration."""
    firsts = rows_of_all([0], wait.iterations, wait.cores)
    if not needed:
        return [take_rows(frame.regs[slot], firsts, frame.n) for slot in identities]
    states = contribution(future, needed[0])
    one = frame.part(firsts, body.captured)
    for tile in needed[1:]:
        states = body.call(one, [*states, *contribution(future, tile)])
    return states


def contribution(future: Future, tile: int) -> list[Value]:
    return [_row(value, future.row[tile], len(future.row)) for value in future.partials]


def _row(value: Value, row: int, step: int) -> Value:
    if isinstance(value, Tainted):
        mask, values = value.mask[row::step], value.values[row::step]
        return Tainted(values, mask, value.origin) if mask.any() else values
    return value[row::step]


def spread_over_cores(delivered: Sequence[Value], wait: Wanted, kind: Any, origin: Origin, site: Site) -> Value:
    """What each core got; undefined on those that consume nothing (Q17)."""
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
    for row, value in zip(wait.rows, delivered, strict=True):
        groups.setdefault(id(value), (value, []))[1].append(row)
    rest = sorted(set(range(wait.cores)) - set(wait.rows))
    if len(groups) == 1 and not rest and wait.iterations == 1:
        return next(iter(groups.values()))[0]
    joined = Joined(wait.iterations * wait.cores)
    for value, rows in groups.values():
        joined.add(rows_of_all(rows, wait.iterations, wait.cores), _repeated(value, len(rows)))
    if rest:
        values = poison(shape, element)
        undefined = Tainted(values, np.broadcast_to(np.True_, values.shape), origin)
        joined.add(rows_of_all(rest, wait.iterations, wait.cores), undefined)
    return joined.value(site)


def _repeated(value: Value, times: int) -> Value:
    """Each row of an array so many times, where it has several."""
    if isinstance(value, Tainted):
        return Tainted(_repeated(value.values, times), _repeated(value.mask, times), value.origin)
    return value if len(value) == 1 else np.repeat(value, times, axis=0)


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
        sources = {needed[0]: contribution(future, needed[0]) for needed in wait.sources}
        for position, (out, kind) in enumerate(zip(results, kinds, strict=True)):
            delivered = [sources[needed[0]][position] for needed in wait.sources]
            frame.regs[out] = spread_over_cores(delivered, wait, kind, origin, site)

    return step


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "ktdp.inter_tile_produce": produce,
        "ktdp.inter_tile_reduce": reduce,
        "ktdp.inter_tile_consume": consume,
    }
)
