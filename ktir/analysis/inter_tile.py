"""Whether the tiles of every exchange fit together: nobody waits for a tile that never delivers.

An exchange is a produce, its future, and the consume or reduce that takes it. Operations alone cannot be at fault, so
their verifiers do not look; what is checked here is numbered as in the dialect's design document:

* R2: a future has exactly one use;
* R3: a dependency names producers of its group only; R4: and leaves none of them out;
* R5: dependencies of a gather or all_to_all are disjoint; R6: and of one size; R7: all groups have as many producers;
* R8: each consumer of a consume depends on exactly one producer;
* R9: what is divided has a multiple of the consumers along its axes;
* R10: the reducer has no side effects;
* R12: results are as large as what is divided and joined;
* R13: the consumers of a reduce are among its producers; R14: all of them, or one.

R1 and R11 belong to the operations' own verifiers. A set that has no constant bounds is not judged.

The reference refuses a program that breaks a rule. Run all the same, it stops where a consume is left with no producer
or with several (R3, R8), and for producers that the grid does not have; other producers that are none are passed over.

Words. group: tiles that exchange with each other. dependency: the producers whose contribution a consumer takes.
taker: the operation of an exchange that takes what was produced. R5 to R7, R9 and R12 are about experimental ones,
which divide and join contributions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Literal, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import AffineSetAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.traits import get_effects

from ktir.analysis.findings import Answer, always_runs, answer, doubtful, proven
from ktir.analysis.launches import Program
from ktir.dialect import ktdp
from ktir.dialect.ktdp.shares import InterTileReduceScatterOp, ShareOperation
from ktir.errors import Deadlock, Diagnostic, VerifyError
from ktir.maths.sets import Enumeration

ENUMERATION_LIMIT = 1 << 18
"""How many tile and group numbers are looked at for one operation; what lies beyond is not judged."""

Taker = ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp | ShareOperation
Reducing = ktdp.InterTileReduceOp | InterTileReduceScatterOp

Rule = Literal["R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R12", "R13", "R14"]


@dataclass(frozen=True)
class Breach:
    """A rule that an operation breaks, and how; ``waits`` is a tile that waits for ever because of it."""

    operation: Operation
    rule: Rule
    message: str
    waits: int | None = None


def check_exchanges(program: Program) -> Iterator[Answer]:
    """One answer for each operation of an exchange in each launch."""
    grids = {launch.kernel: launch.cores for launch in program.launches}
    for function in program.module.walk():
        if isinstance(function, func.FuncOp):
            for operation in function.walk():
                if isinstance(operation, ktdp.InterTileProduceOp | Taker):
                    yield answer("exchanges", judged(operation, grids.get(function, 0)))


def judged(operation: ktdp.InterTileProduceOp | Taker, tiles: int) -> Iterator[Diagnostic]:
    """What comes of a breach on a grid of so many tiles; 0 where the kernel is not launched."""
    for breach in breaches_of(operation):
        remedy = "let the sets of the exchange name tiles that belong together"
        stops = breach.waits is not None and breach.waits < tiles and always_runs(operation)
        error, report = (Deadlock, proven) if stops else (VerifyError, doubtful)
        yield report(operation, error, breach.message, remedy)
        return
    if isinstance(operation, Taker) and tiles and always_runs(operation):
        yield from absent_producers(operation, tiles)


def breaches(module: ModuleOp) -> Iterator[Breach]:
    """The first rule that each operation breaks."""
    for operation in module.walk():
        yield from breaches_of(operation)


def breaches_of(operation: Operation) -> Iterator[Breach]:
    """The first rule that an operation breaks, if any."""
    found: Iterator[Breach] = iter(())
    if isinstance(operation, ktdp.InterTileProduceOp):
        found = produce_breaches(operation)
    elif isinstance(operation, Taker):
        found = taker_breaches(operation)
    yield from islice(found, 1)


def produce_breaches(produce: ktdp.InterTileProduceOp) -> Iterator[Breach]:
    if produce.future.uses.get_length() != 1:
        yield Breach(produce, "R2", "future result must have exactly one use")


def taker_breaches(taker: Taker) -> Iterator[Breach]:
    if isinstance(taker, Reducing):
        yield from reducer_breaches(taker)
    enumeration = Enumeration(ENUMERATION_LIMIT)
    members = list(groups(taker, enumeration))
    counts = {len(producers) for _, producers, _ in members}
    if isinstance(taker, ShareOperation) and taker.JOINED is not None and len(counts) > 1:
        text = f"groups must have the same number of producers, but have {min(counts)} and {max(counts)}"
        yield Breach(taker, "R7", text)
    for group, producers, consumers in members:
        if isinstance(taker, ktdp.InterTileReduceOp):
            yield from membership_breaches(taker, group, producers, consumers)
        named = dependencies(taker, group, consumers, enumeration)
        yield from dependency_breaches(taker, group, producers, consumers, named)
        if isinstance(taker, ShareOperation):
            yield from share_breaches(taker, group, producers, consumers, named)


def groups(taker: Taker, enumeration: Enumeration) -> Iterator[tuple[int, list[int], list[int]]]:
    """The number, the producers and the consumers of each group of an exchange whose sets can be listed."""
    produce = taker.future.owner
    if not isinstance(produce, ktdp.InterTileProduceOp):
        return
    for group in enumeration.integers(produce.future.type.groups.data) or ():
        producers = enumeration.integers(produce.producer_tiles_per_group.data, (group,), least=0)
        consumers = enumeration.integers(taker.consumer_tiles_per_group.data, (group,), least=0)
        if producers is not None and consumers is not None:
            yield group, producers, consumers


def dependency_of(taker: Taker) -> AffineSetAttr | None:
    """The set that names the producers of each consumer, where a taker has one."""
    return taker.dependency if isinstance(taker, ShareOperation) else taker.producer_dependency_per_consumer


Dependencies = dict[int, "list[int] | None"]
"""The producers that each consumer names; None where its set cannot be listed."""


def dependencies(taker: Taker, group: int, consumers: Sequence[int], enumeration: Enumeration) -> Dependencies | None:
    """What each consumer of a group depends on; None where the taker does not say."""
    dependency = dependency_of(taker)
    if dependency is None:
        return None
    symbols = dependency.data.num_symbols
    return {c: enumeration.integers(dependency.data, (c, group)[:symbols], least=0) for c in consumers}


def reducer_breaches(reduce: Reducing) -> Iterator[Breach]:
    for operation in reduce.reducer.walk():
        if get_effects(operation):
            text = f"reducer region must be free of side effects, but holds {operation.name}"
            yield Breach(reduce, "R10", text)


def membership_breaches(
    taker: Taker, group: int, producers: Sequence[int], consumers: Sequence[int]
) -> Iterator[Breach]:
    text = f"consumer_tiles_per_group for group {group}"
    strangers = sorted(set(consumers) - set(producers))
    if strangers:
        wrong = f"{text} is not a subset of producer_tiles_per_group (tile {strangers[0]} does not produce)"
        yield Breach(taker, "R13", wrong)
    elif 1 < len(consumers) < len(producers):
        yield Breach(
            taker,
            "R14",
            f"{text} is a strict subset of producer_tiles_per_group (reduce-to-subset is unsupported; only all-reduce "
            "and reduce-to-one are supported)",
        )


def dependency_breaches(
    taker: Taker, group: int, producers: Sequence[int], consumers: Sequence[int], named: Dependencies | None
) -> Iterator[Breach]:
    if named is None:
        if isinstance(taker, ktdp.InterTileConsumeOp) and len(producers) > 1:
            yield Breach(
                taker,
                "R8",
                f"producer_tiles_per_group for group {group} has {len(producers)} producers, so "
                "producer_dependency_per_consumer is required to name each consumer tile's single source",
                waits=min(consumers, default=None),
            )
        return
    for consumer, sources in named.items():
        if sources is not None:
            yield from source_breaches(taker, group, consumer, sources, set(producers))
    taken = {source for sources in named.values() for source in sources or ()}
    idle = [producer for producer in producers if producer not in taken]
    if idle and None not in named.values():
        yield Breach(
            taker,
            "R4",
            f"producer_dependency_per_consumer for group {group} does not cover producer tile {idle[0]} "
            "(no consumer has it as a dependency)",
        )


def share_breaches(
    taker: ShareOperation, group: int, producers: Sequence[int], consumers: Sequence[int], named: Dependencies | None
) -> Iterator[Breach]:
    """R5 and R6 where contributions are joined; R9 and R12 by the numbers of consumers and of what each hears of."""
    heard = [producers] if named is None else [sources for sources in named.values() if sources is not None]
    if taker.JOINED is not None and named is not None:
        counts = {len(sources) for sources in heard}
        if len({source for sources in heard for source in sources}) < sum(map(len, heard)):
            yield Breach(taker, "R5", f"the dependencies of two consumers of group {group} name the same producer")
        if len(counts) > 1:
            yield Breach(taker, "R6", f"consumers of group {group} depend on {min(counts)} and {max(counts)} producers")
    parts = len(consumers) if taker.SPLIT is not None else 1
    joined = len(heard[0]) if taker.JOINED is not None and heard else 1
    for partial, share in zip(taker.partials, taker.shares.types, strict=True):
        whole, given = (cast("TensorType[Attribute]", type).get_shape() for type in (partial, share))
        along = prod(whole[axis] for axis in taker.axes(taker.SPLIT))
        if parts and along % parts:
            yield Breach(
                taker,
                "R9",
                f"the extent {along} along {taker.SPLIT} is not divisible by the {parts} consumers of group {group}",
            )
        elif consumers and prod(given) * parts != prod(whole) * joined:
            yield Breach(
                taker,
                "R12",
                f"the result {share} is not what {joined} contributions of {partial} give each of the "
                f"{len(consumers)} consumers of group {group}",
            )


def source_breaches(
    taker: Taker, group: int, consumer: int, named: Sequence[int], producers: Set[int]
) -> Iterator[Breach]:
    strangers, heard = ([s for s in named if (s in producers) is known] for known in (False, True))
    if strangers:
        yield Breach(
            taker,
            "R3",
            f"producer_dependency_per_consumer for consumer {consumer} group {group} references producer tile "
            f"{strangers[0]} which is not in producer_tiles_per_group",
            waits=consumer if isinstance(taker, ktdp.InterTileConsumeOp) and len(heard) != 1 else None,
        )
    if isinstance(taker, ktdp.InterTileConsumeOp) and len(named) != 1:
        yield Breach(
            taker,
            "R8",
            f"consumer tile {consumer} in group {group} depends on {len(named)} producers; inter_tile_consume "
            "delivers one contribution per consumer tile, so exactly one is required",
            waits=consumer if len(heard) != 1 else None,
        )


def absent_producers(taker: Taker, tiles: int) -> Iterator[Diagnostic]:
    """Producers that a grid of so many tiles does not have."""
    for group, producers, _ in groups(taker, Enumeration(ENUMERATION_LIMIT)):
        if producers and producers[-1] >= tiles:
            text = f"group {group} names tile {producers[-1]}, but the grid has {tiles} tiles: nobody delivers"
            yield proven(taker, Deadlock, text, "let the sets name tiles of the grid")
            return
