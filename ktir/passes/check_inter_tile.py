"""``ktir-check-inter-tile``: do the tiles of every exchange fit together? Nothing is changed.

An exchange is a produce, its future, and the consume or reduce that takes it. Operations alone cannot be at fault, so
their verifiers do not look; what is checked here is numbered as in the dialect's design document:

* R2: a future has exactly one use;
* R3: a dependency names producers of its group only; R4: and leaves none of them out;
* R8: each consumer of a consume depends on exactly one producer;
* R10: the reducer has no side effects;
* R13: the consumers of a reduce are among its producers; R14: all of them, or one.

R1 and R11 belong to the operations' own verifiers; R5 to R7, R9 and R12 speak of operations that the dialect does not
have. A set that has no constant bounds is not judged.

Words. group: tiles that exchange with each other. dependency: the producers whose contribution a consumer takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir.affine import AffineSet
from xdsl.passes import ModulePass
from xdsl.traits import get_effects

from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.errors import VerifyError
from ktir.maths.sets import bounds, contains

MAX_NUMBERS = 1 << 20
"""How many tile and group numbers are looked at for one operation; what lies beyond is not judged."""

Taker = ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp


@dataclass(frozen=True)
class CheckInterTilePass(ModulePass):
    """Raises :class:`VerifyError` for the first exchange whose tiles do not fit together."""

    name = "ktir-check-inter-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fault in inter_tile_faults(op):
            raise fault


@dataclass(frozen=True)
class CheckLegalityPass(CheckInterTilePass):
    """The same under the name that the reference dialect gives it."""

    name = "ktir-check-legality"


def inter_tile_faults(module: ModuleOp) -> Iterator[VerifyError]:
    """Every fault, at most one for each operation."""
    for operation in module.walk():
        found: Iterator[str] = iter(())
        if isinstance(operation, ktdp.InterTileProduceOp):
            found = _produce_faults(operation)
        elif isinstance(operation, ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp):
            found = _taker_faults(operation)
        for message in found:
            yield VerifyError(f"'{operation.name}' op {message}", location=location_of(operation))
            break


def _produce_faults(produce: ktdp.InterTileProduceOp) -> Iterator[str]:
    if produce.future.uses.get_length() != 1:
        yield "future result must have exactly one use"


def _taker_faults(taker: Taker) -> Iterator[str]:
    if isinstance(taker, ktdp.InterTileReduceOp):
        yield from _reducer_faults(taker)
    produce = taker.future.owner
    if not isinstance(produce, ktdp.InterTileProduceOp):
        return
    numbers = Numbers()
    for group in numbers.of(produce.future.type.groups.data) or ():
        producers = numbers.of(produce.producer_tiles_per_group.data, group)
        consumers = numbers.of(taker.consumer_tiles_per_group.data, group)
        if producers is None or consumers is None:
            continue
        if isinstance(taker, ktdp.InterTileReduceOp):
            yield from _membership_faults(group, producers, consumers)
        yield from _dependency_faults(taker, group, producers, consumers, numbers)


def _reducer_faults(reduce: ktdp.InterTileReduceOp) -> Iterator[str]:
    for operation in reduce.reducer.walk():
        if get_effects(operation):
            yield f"reducer region must be free of side effects, but holds {operation.name}"


def _membership_faults(group: int, producers: Sequence[int], consumers: Sequence[int]) -> Iterator[str]:
    """R13 and R14."""
    text = f"consumer_tiles_per_group for group {group}"
    strangers = sorted(set(consumers) - set(producers))
    if strangers:
        yield f"{text} is not a subset of producer_tiles_per_group (tile {strangers[0]} does not produce)"
    elif 1 < len(consumers) < len(producers):
        yield (
            f"{text} is a strict subset of producer_tiles_per_group (reduce-to-subset is unsupported; only all-reduce "
            "and reduce-to-one are supported)"
        )


def _dependency_faults(
    taker: Taker, group: int, producers: Sequence[int], consumers: Sequence[int], numbers: Numbers
) -> Iterator[str]:
    """R3, R8 and R4."""
    dependency = taker.producer_dependency_per_consumer
    if dependency is None:
        if isinstance(taker, ktdp.InterTileConsumeOp) and len(producers) > 1:
            yield (
                f"producer_tiles_per_group for group {group} has {len(producers)} producers, so "
                "producer_dependency_per_consumer is required to name each consumer tile's single source"
            )
        return
    served, taken = set(producers), set[int]()
    every_set_was_read = True
    for consumer in consumers:
        sources = numbers.of(dependency.data, *(consumer, group)[: dependency.data.num_symbols])
        if sources is None:
            every_set_was_read = False
            continue
        taken.update(sources)
        yield from _source_faults(taker, group, consumer, sources, served)
    idle = [producer for producer in producers if producer not in taken]
    if idle and every_set_was_read:
        yield (
            f"producer_dependency_per_consumer for group {group} does not cover producer tile {idle[0]} "
            "(no consumer has it as a dependency)"
        )


def _source_faults(
    taker: Taker, group: int, consumer: int, sources: Sequence[int], producers: Set[int]
) -> Iterator[str]:
    strangers = [source for source in sources if source not in producers]
    if strangers:
        yield (
            f"producer_dependency_per_consumer for consumer {consumer} group {group} references producer tile "
            f"{strangers[0]} which is not in producer_tiles_per_group"
        )
    if isinstance(taker, ktdp.InterTileConsumeOp) and len(sources) != 1:
        yield (
            f"consumer tile {consumer} in group {group} depends on {len(sources)} producers; inter_tile_consume "
            "delivers one contribution per consumer tile, so exactly one is required"
        )


@dataclass
class Numbers:
    """Enumerates sets of one dimension, as long as there are not too many numbers in all."""

    left: int = MAX_NUMBERS

    def of(self, set: AffineSet, *symbols: int) -> list[int] | None:
        """The natural numbers in ``set``; None where it has no constant upper bound, or too many."""
        if set.num_dims != 1 or set.num_symbols != len(symbols):
            return None
        try:
            ((start, stop),) = bounds(set, symbols)
            candidates = range(max(0, start or 0), stop or 0)
            self.left -= len(candidates)
            if stop is None or self.left < 0:
                return None
            return [number for number in candidates if contains(set, (number,), symbols)]
        except (ZeroDivisionError, OverflowError):  # a divisor that is zero here; a range that is too long
            return None
