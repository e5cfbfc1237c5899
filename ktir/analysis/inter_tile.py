"""Whether the sets of inter-tile operations fit together and fit the grid: nobody waits for a tile that never delivers.

The sets are enumerated for every group; one that cannot be is left alone. Rules R1 to R14 are those of the dialect's
design document (the numbers are its own).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation
from xdsl.ir.affine import AffineSet

from ktir.analysis.accesses import Launch
from ktir.analysis.findings import always_runs, doubtful, proven
from ktir.dialect import ktdp
from ktir.errors import Deadlock, Diagnostic, UnboundedSet, VerifyError
from ktir.maths import sets


def check_inter_tile(launch: Launch) -> Iterator[Diagnostic]:
    """Findings on the inter-tile operations of one launch."""
    for operation in launch.kernel.walk():
        match operation:
            case ktdp.InterTileProduceOp():
                yield from futures_used_once(operation)
            case ktdp.InterTileConsumeOp() | ktdp.InterTileReduceOp():
                yield from deliveries(operation, launch.cores)
            case _:
                pass


def futures_used_once(produce: ktdp.InterTileProduceOp) -> Iterator[Diagnostic]:
    """R2: a future has exactly one use."""
    if len(list(produce.future.uses)) != 1:
        yield doubtful(produce, VerifyError, "future result must have exactly one use", "produce once for each use")


def deliveries(consumer: ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp, cores: int) -> Iterator[Diagnostic]:
    """R3, R8 and R13, and producers that the grid does not have."""
    produce = consumer.future.owner
    if not isinstance(produce, ktdp.InterTileProduceOp):
        return
    try:
        groups = [point[0] for point in sets.points(produce.future.type.groups.data)]
    except UnboundedSet:
        return
    for group in groups:
        producers = tiles(produce.producer_tiles_per_group.data, group)
        consumers = tiles(consumer.consumer_tiles_per_group.data, group)
        if producers is None or consumers is None:
            return
        found = list(group_faults(consumer, group, producers, consumers, cores))
        yield from found
        if found:
            return


def tiles(set_: AffineSet, *symbols: int) -> list[int] | None:
    """The tiles of a group, None where the set has no bounds."""
    try:
        return [point[0] for point in sets.points(set_, symbols)]
    except UnboundedSet:
        return None


def group_faults(
    consumer: ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp,
    group: int,
    producers: list[int],
    consumers: list[int],
    cores: int,
) -> Iterator[Diagnostic]:
    dependency = consumer.producer_dependency_per_consumer
    absent = sorted({tile for tile in (*producers, *consumers) if tile >= cores})
    if absent and always_runs(consumer):
        text = f"group {group} names tile {absent[0]}, but the grid has {cores} tiles: nobody delivers"
        yield proven(consumer, Deadlock, text, "let the sets name tiles of the grid")
        return
    if isinstance(consumer, ktdp.InterTileConsumeOp) and dependency is None and len(producers) > 1:
        text = (
            f"producer_tiles_per_group for group {group} has {len(producers)} producers, so "
            "producer_dependency_per_consumer is required to name each consumer tile's single source"
        )
        yield proven(consumer, Deadlock, text, "name the source of each consumer")
        return
    for tile in consumers:
        sources = producers if dependency is None else wanted(dependency.data, producers, tile, group)
        yield from source_faults(consumer, group, tile, sources, producers)


def wanted(set_: AffineSet, producers: list[int], tile: int, group: int) -> list[int]:
    """The producers that a consumer's dependency set names."""
    named = tiles(set_, *(tile, group)[: set_.num_symbols])
    if named is not None:
        return named
    return [p for p in producers if sets.contains(set_, (p,), (tile, group)[: set_.num_symbols])]


def source_faults(
    consumer: Operation, group: int, tile: int, sources: list[int], producers: list[int]
) -> Iterator[Diagnostic]:
    """Sources of a consumer that produce nothing."""
    strangers = [source for source in sources if source not in producers]
    if strangers:
        text = (
            f"producer_dependency_per_consumer for consumer {tile} group {group} references producer tile "
            f"{strangers[0]} which is not in producer_tiles_per_group"
        )
        yield proven(consumer, VerifyError, text, "name producers of the group")
    elif isinstance(consumer, ktdp.InterTileConsumeOp) and len(sources) != 1:
        text = (
            f"consumer tile {tile} in group {group} depends on {len(sources)} producers; inter_tile_consume delivers "
            "one contribution per consumer tile, so exactly one is required"
        )
        yield proven(consumer, Deadlock, text, "name one source for each consumer")
