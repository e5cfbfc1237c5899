"""What to give up where the scratchpad is too small for all tiles of a launch: rings of their own, then running ahead.

Two tiles with the same producer, consumers and number of slots may be one ring if the plan uses one after the other:
the ring's own handshake then keeps the second from overwriting the first. Addresses are never shared between rings, so
no unit can run ahead into bytes that another still reads.

Words. span: the positions in the plan from a tile's first step to its last; in a loop, those of one iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ktir.backends.dataflow.lower.hardware import Hardware
from ktir.backends.dataflow.lower.plan import Block, Item, LaunchPlan, Loop, Reading, Step, Tile, Writing, item_in

Kind = tuple[object, ...]


def space_savers(hardware: Hardware) -> tuple[Callable[[LaunchPlan], None], ...]:
    """Ways to need less space, those that cost least time first."""
    return (
        lambda plan: share_tiles(plan, temporaries_of(hardware), same_block=True),
        lambda plan: share_tiles(plan, across_blocks, same_block=False),
        lambda plan: share_tiles(plan, everything, same_block=True),
        drop_second_slots,
    )


def drop_second_slots(plan: LaunchPlan) -> None:
    """No tile is filled while its former content is in use, but for those that need both at once."""
    for tile in plan.tiles:
        tile.slots = tile.least_slots


def temporaries_of(hardware: Hardware) -> Callable[[Tile], Kind | None]:
    """Results of the compute units that only they read may share: their steps are in order anyway."""

    def kind(tile: Tile) -> Kind | None:
        own = (tile.producer, tile.consumers) == (hardware.drain, (hardware.feed,))
        return (tile.consumers, tile.slots) if own else None

    return kind


def across_blocks(tile: Tile) -> Kind | None:
    """Every tile may share with those of other blocks: a loop's loads still run ahead within the loop."""
    return (tile.producer, tile.consumers, tile.slots)


def everything(tile: Tile) -> Kind | None:
    """Every tile may share with every other of its kind."""
    return (tile.producer, tile.consumers, tile.slots)


def share_tiles(plan: LaunchPlan, kind_of: Callable[[Tile], Kind | None], *, same_block: bool) -> None:
    """Merges tiles of one kind whose spans do not meet. ``same_block``: also tiles that one block defines."""
    positions = Positions.of(plan.body)
    rings: dict[Kind, list[Ring]] = {}
    spans = {tile: positions.span(tile) for tile in plan.tiles}
    for tile in sorted(plan.tiles, key=lambda tile: spans[tile]):
        kind = kind_of(tile)
        if kind is None:
            continue
        ring = _best(rings.setdefault(kind, []), tile, spans[tile], same_block)
        if ring is None:
            rings[kind].append(Ring(tile, spans[tile][1]))
        else:
            ring.take(tile, spans[tile][1])
            plan.tiles.remove(tile)


@dataclass(eq=False)
class Ring:
    """A tile that others have been merged into; free behind position ``until``."""

    tile: Tile
    until: int

    def take(self, tile: Tile, until: int) -> None:
        """Serves ``tile`` as well."""
        self.tile.size = max(self.tile.size, tile.size)
        self.tile.least_slots = max(self.tile.least_slots, tile.least_slots)
        for part in (*tile.writings, *tile.readings):
            part.tile = self.tile
        self.tile.writings += tile.writings
        self.tile.readings += tile.readings
        self.until = until


def _best(rings: Sequence[Ring], tile: Tile, span: tuple[int, int], same_block: bool) -> Ring | None:
    """The free ring whose size is nearest."""
    free = [ring for ring in rings if ring.until < span[0] and (same_block or not _meet_in_block(ring.tile, tile))]
    return min(free, key=lambda ring: abs(ring.tile.size - tile.size), default=None)


def _meet_in_block(left: Tile, right: Tile) -> bool:
    return not {part.block for part in left.writings}.isdisjoint({part.block for part in right.writings})


@dataclass(eq=False)
class Positions:
    """Where each item of a plan begins and ends, counted in order; a loop ends behind its body."""

    begin: dict[Item, int] = field(default_factory=dict[Item, int])
    end: dict[Item, int] = field(default_factory=dict[Item, int])
    block_end: dict[Block, int] = field(default_factory=dict[Block, int])

    @staticmethod
    def of(block: Block) -> Positions:
        """The positions of all items in ``block``."""
        result = Positions()
        result._walk(block, 0)
        return result

    def _walk(self, block: Block, position: int) -> int:
        for item in block.items:
            self.begin[item] = position
            position = self._walk(item.body, position + 1) if isinstance(item, Loop) else position + 1
            self.end[item] = position
        self.block_end[block] = position
        return position + 1

    def span(self, tile: Tile) -> tuple[int, int]:
        """First and last position of ``tile``."""
        marks = [mark for part in (*tile.writings, *tile.readings) for mark in self._marks(part)]
        return min(marks), max(marks)

    def _marks(self, part: Writing | Reading) -> Iterator[int]:
        """Positions that a writing or reading occupies in its block."""
        steps: list[Step] = (
            part.steps if isinstance(part, Writing) else [step for steps in part.steps.values() for step in steps]
        )
        for step in steps:
            item = item_in(step, part.block)
            yield self.begin[item]
            yield self.end[item]
        if isinstance(part, Reading) and part.anchor is not None:
            yield self.end[part.anchor]
        elif isinstance(part, Reading) and not set(part.tile.consumers) <= set(part.steps):
            yield self.block_end[part.block]
        if not steps:
            yield self.begin.get(part.block.items[0], 0) if part.block.items else 0
            yield self.block_end[part.block]
