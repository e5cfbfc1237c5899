"""Whether the tiles of every exchange fit together: nobody waits for a tile that never delivers.

An exchange is a produce, its future, and the consume or reduce that takes it. Operations alone cannot be at fault, so
their verifiers do not look; what is checked here is numbered as in the dialect's design document:

* R2: a future has exactly one use;
* R3: a dependency names producers of its group only; R4: and leaves none of them out;
* R8: each consumer of a consume depends on exactly one producer;
* R10: the reducer has no side effects;
* R13: the consumers of a reduce are among its producers; R14: all of them, or one.

R1 and R11 belong to the operations' own verifiers; R5 to R7, R9 and R12 speak of operations that the dialect does not
have. A set that has no constant bounds is not judged.

The reference refuses a program that breaks a rule. Run all the same, it stops for R3 and R8, and for tiles that the
grid does not have.

Words. group: tiles that exchange with each other. dependency: the producers whose contribution a consumer takes.
taker: the consume or reduce of an exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.ir.affine import AffineSet
from xdsl.traits import get_effects

from ktir.analysis.findings import Answer, always_runs, answer, doubtful, proven
from ktir.analysis.launches import Program
from ktir.dialect import ktdp
from ktir.errors import Deadlock, Diagnostic, VerifyError
from ktir.maths.sets import Enumeration

ENUMERATION_LIMIT = 1 << 18
"""How many tile and group numbers are looked at for one operation; what lies beyond is not judged."""

Taker = ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp

Rule = Literal["R2", "R3", "R4", "R8", "R10", "R13", "R14"]


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
    if isinstance(taker, ktdp.InterTileReduceOp):
        yield from reducer_breaches(taker)
    enumeration = Enumeration(ENUMERATION_LIMIT)
    for group, producers, consumers in groups(taker, enumeration):
        if isinstance(taker, ktdp.InterTileReduceOp):
            yield from membership_breaches(taker, group, producers, consumers)
        yield from dependency_breaches(taker, group, producers, consumers, enumeration)


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


def sources(dependency: AffineSet, consumer: int, group: int, enumeration: Enumeration) -> list[int] | None:
    """The producers that a consumer takes contributions of; None where the set cannot be listed."""
    return enumeration.integers(dependency, (consumer, group)[: dependency.num_symbols], least=0)


def reducer_breaches(reduce: ktdp.InterTileReduceOp) -> Iterator[Breach]:
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
    taker: Taker, group: int, producers: Sequence[int], consumers: Sequence[int], enumeration: Enumeration
) -> Iterator[Breach]:
    dependency = taker.producer_dependency_per_consumer
    if dependency is None:
        if isinstance(taker, ktdp.InterTileConsumeOp) and len(producers) > 1:
            yield Breach(
                taker,
                "R8",
                f"producer_tiles_per_group for group {group} has {len(producers)} producers, so "
                "producer_dependency_per_consumer is required to name each consumer tile's single source",
                waits=min(consumers, default=None),
            )
        return
    served, taken = set(producers), set[int]()
    every_set_was_read = True
    for consumer in consumers:
        named = sources(dependency.data, consumer, group, enumeration)
        if named is None:
            every_set_was_read = False
            continue
        taken.update(named)
        yield from source_breaches(taker, group, consumer, named, served)
    idle = [producer for producer in producers if producer not in taken]
    if idle and every_set_was_read:
        yield Breach(
            taker,
            "R4",
            f"producer_dependency_per_consumer for group {group} does not cover producer tile {idle[0]} "
            "(no consumer has it as a dependency)",
        )


def source_breaches(
    taker: Taker, group: int, consumer: int, named: Sequence[int], producers: Set[int]
) -> Iterator[Breach]:
    strangers = [source for source in named if source not in producers]
    if strangers:
        yield Breach(
            taker,
            "R3",
            f"producer_dependency_per_consumer for consumer {consumer} group {group} references producer tile "
            f"{strangers[0]} which is not in producer_tiles_per_group",
            waits=consumer,
        )
    if isinstance(taker, ktdp.InterTileConsumeOp) and len(named) != 1:
        yield Breach(
            taker,
            "R8",
            f"consumer tile {consumer} in group {group} depends on {len(named)} producers; inter_tile_consume "
            "delivers one contribution per consumer tile, so exactly one is required",
            waits=consumer,
        )


def absent_producers(taker: Taker, tiles: int) -> Iterator[Diagnostic]:
    """Producers that a grid of so many tiles does not have."""
    for group, producers, _ in groups(taker, Enumeration(ENUMERATION_LIMIT)):
        if producers and producers[-1] >= tiles:
            text = f"group {group} names tile {producers[-1]}, but the grid has {tiles} tiles: nobody delivers"
            yield proven(taker, Deadlock, text, "let the sets name tiles of the grid")
            return
