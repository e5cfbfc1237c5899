"""The simple rules by which cores and tiles are chosen when nobody searches: legal for any shape, good for common ones.

Cores. Every parallel dimension may be cut into equal blocks; of all ways that use at most the machine's cores, the one
with the least modelled time of a core is taken: the longer of computing and of moving what the longest block reads and
writes; the bytes of all cores together weigh little. Ties go to more cores, then to cutting earlier dimensions (rows
before sticks).

Tiles. A block is one tile if that fits the scratchpad. If not, the folded dimensions shrink first, down to a few
sticks, then the parallel ones, longest first. Dimensions that all sides of a contraction have (heads, batches) are
walked one by one, so that what is left is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ktir.analysis.iteration_space import IterationDim, IterationSpace
from ktir.analysis.layout_rules import element_bytes
from ktir.analysis.tile_sizes import footprint, is_legal, runs_along_sticks, smallest_tile, smallest_tiles
from ktir.dialect.ktg import FoldOp
from ktir.errors import CannotPlan
from ktir.machine import Machine
from ktir.maths.ownership import ceil_div
from ktir.passes.contraction import is_contraction

ROWS_PER_PASS = 8
"""Rows of a matrix product that go through the array together on the machines we know; only a preference here."""


ISSUES = 4
"""Vector issues that a point-wise operation takes on average; only weighs computing against moving."""

OVERLAP_LOSS = 0.25
"""Share of the shorter of moving and computing that the longer one does not hide: filling and draining."""


CROWDING = 0.125
"""How much the time that all cores' bytes take together counts beside one core's: replicated reads can be shared over
the ring by whoever plans better, so spreading the work comes first."""


@dataclass(frozen=True, slots=True)
class Block:
    """Dimension ``name`` dealt out in ``cuts`` blocks of ``length`` iterations, the last possibly shorter."""

    name: str
    cuts: int
    length: int


def contractions(space: IterationSpace) -> list[Operation]:
    """The contractions of a kernel, those inside folds included."""
    return [op for op in space.loop_dims if is_contraction(op)]


def batch_names(space: IterationSpace) -> set[str]:
    """Dimensions that both factors and the result of some contraction have."""
    found: set[str] = set()
    for op in contractions(space):
        sides = [set(space.names(value)) for value in (*op.operands[:2], op.results[0])]
        found |= sides[0] & sides[1] & sides[2]
    return found


def row_names(space: IterationSpace) -> set[str]:
    """Dimensions that only the first factor of some contraction shares with the result."""
    found: set[str] = set()
    for op in contractions(space):
        left, right, total = (set(space.names(value)) for value in (*op.operands[:2], op.results[0]))
        found |= (left & total) - right
    return found


# ---------------------------------------------------------------------------------------------------------------- cores


def choose_blocks(space: IterationSpace, machine: Machine) -> tuple[Block, ...]:
    """How the parallel dimensions are dealt out to cores."""
    dims = space.of_kind("parallel")
    choices = [list(_blocks(space, dim, machine)) for dim in dims]
    cost = _Cost(space, machine)
    best: tuple[tuple[float, int, tuple[int, ...]], tuple[Block, ...]] | None = None
    for blocks in _combinations(choices, machine.cores):
        cuts = tuple(block.cuts for block in blocks)
        key = (cost(blocks), -prod(cuts), tuple(-cut for cut in cuts))
        if best is None or key < best[0]:
            best = (key, blocks)
    return best[1] if best is not None else ()


def _combinations(choices: list[list[Block]], cores: int) -> Iterator[tuple[Block, ...]]:
    if not choices:
        yield ()
        return
    for block in choices[0]:
        if block.cuts <= cores:
            yield from ((block, *rest) for rest in _combinations(choices[1:], cores // block.cuts))


def _blocks(space: IterationSpace, dim: IterationDim, machine: Machine) -> Iterator[Block]:
    """The different ways to cut one dimension into equal blocks of whole granules."""
    granule = _granule(space, dim, machine)
    granules = ceil_div(dim.extent, granule)
    seen: set[int] = set()
    for cuts in range(1, min(granules, machine.cores) + 1):
        length = min(dim.extent, ceil_div(granules, cuts) * granule)
        if length not in seen and is_legal(space, dim.name, length):
            seen.add(length)
            yield Block(dim.name, ceil_div(dim.extent, length), length)


def _granule(space: IterationSpace, dim: IterationDim, machine: Machine) -> int:
    least = smallest_tile(space, dim, machine)
    rows = least == 1 and dim.name in row_names(space) and dim.extent >= ROWS_PER_PASS
    return ROWS_PER_PASS if rows and is_legal(space, dim.name, ROWS_PER_PASS) else least


class _Cost:
    """Modelled nanoseconds of a kernel, by the blocks of its parallel dimensions."""

    def __init__(self, space: IterationSpace, machine: Machine) -> None:
        self.extents = {dim.name: dim.extent for dim in space.dims}
        self.moved = [
            (space.names(value), element_bytes(cast("TensorType[Attribute]", value.type).element_type))
            for value in (*space.loads, *(store.value for store in space.stores))
        ]
        self.products = [
            tuple(dict.fromkeys(name for names in space.loop_dims[op] for name in names)) for op in contractions(space)
        ]
        self.mapped = [space.names(value) for value in space.made]
        self.rows = row_names(space)
        memory = machine.global_memory
        self.bytes_per_ns = memory.sustained_gbs or memory.peak_gbs or 1.0
        self.core_bytes_per_ns = _rate_of_one_core(machine, self.bytes_per_ns)
        cycles_per_ns = machine.clock_hz / 1e9
        products = [machine.rate(name, "mac", "f16") for name in machine.units if machine.capable(name, "mac", "f16")]
        self.macs_per_ns = max([1.0, *products]) * machine.corelets * cycles_per_ns
        self.elements_per_ns = machine.lanes("f16") * machine.corelets * cycles_per_ns / ISSUES

    def __call__(self, blocks: tuple[Block, ...]) -> float:
        lengths = dict(self.extents)
        cores = 1
        for block in blocks:
            lengths[block.name] = block.length
            cores *= block.cuts
        padded = {
            name: ceil_div(length, ROWS_PER_PASS) * ROWS_PER_PASS if name in self.rows else length
            for name, length in lengths.items()
        }
        macs = sum(_volume(names, padded) for names in self.products)
        elements = sum(_volume(names, lengths) for names in self.mapped)
        bytes = cores * sum(_volume(names, lengths) * size for names, size in self.moved)
        moving = bytes / cores / self.core_bytes_per_ns + CROWDING * bytes / self.bytes_per_ns
        computing = macs / self.macs_per_ns + elements / self.elements_per_ns
        return max(moving, computing) + OVERLAP_LOSS * min(moving, computing)


def _rate_of_one_core(machine: Machine, memory_rate: float) -> float:
    """Bytes per nanosecond that a core can load: bursts in flight over the time that one takes."""
    memory = machine.global_memory
    loaders = [unit for unit in machine.units.values() if unit.kind == "load" and memory.name in unit.sources]
    in_flight = max((unit.outstanding for unit in loaders), default=1)
    if memory.burst == 0 or memory.latency_ns == 0:
        return memory_rate
    return in_flight * memory.burst / (memory.latency_ns + memory.burst / memory_rate)


def _volume(names: tuple[str, ...], lengths: Mapping[str, int]) -> int:
    return prod(lengths[name] for name in names)


# ---------------------------------------------------------------------------------------------------------------- tiles


def choose_tiles(space: IterationSpace, blocks: Mapping[str, int], machine: Machine) -> dict[str, int]:
    """The tile of every dimension; ``blocks`` are the lengths of the cut ones, which tiles divide.

    Raises :class:`CannotPlan` where not even the smallest tile fits the scratchpad.
    """
    tiles = {dim.name: blocks.get(dim.name, dim.extent) for dim in space.dims}
    least = smallest_tiles(space, machine)
    for name in batch_names(space):
        if space[name].kind == "parallel":
            tiles[name] = 1
    capacity = machine.scratchpad_bytes
    while footprint(space, tiles, machine) > capacity:
        smaller = _smaller(space, tiles, blocks, least)
        if smaller is None:
            needed = footprint(space, tiles, machine)
            raise CannotPlan(
                f"the smallest tile needs {needed} bytes, the scratchpad holds {capacity}",
                remedy="split the kernel, or use a machine with a larger scratchpad",
            )
        tiles.update(smaller)
    return tiles


def _smaller(
    space: IterationSpace, tiles: Mapping[str, int], blocks: Mapping[str, int], least: Mapping[str, int]
) -> dict[str, int] | None:
    """The next tile to try: one dimension about halved, or None when all are as small as they can be."""
    folded = sorted(space.of_kind("fold"), key=lambda dim: -tiles[dim.name])
    parallel = sorted(space.of_kind("parallel"), key=lambda dim: -tiles[dim.name] // least[dim.name])
    long = [dim for dim in folded if tiles[dim.name] > 4 * least[dim.name]]
    for dim in (*long, *parallel, *folded):
        half = _half(space, dim.name, tiles[dim.name], blocks.get(dim.name), least[dim.name])
        if half is not None:
            return {dim.name: half}
    return None


def _half(space: IterationSpace, name: str, tile: int, block: int | None, least: int) -> int | None:
    """The longest legal tile of at most half of ``tile`` that divides the block, or of whole sticks."""
    if tile <= 1:
        return None
    step = least if runs_along_sticks(space, name) and tile > least else 1
    for candidate in range(ceil_div(tile, 2) // step * step or 1, 0, -step):
        if (block is None or block % candidate == 0) and candidate < tile and is_legal(space, name, candidate):
            return candidate
    return 1 if is_legal(space, name, 1) else None


def folds_attention(space: IterationSpace) -> bool:
    """Whether a kernel holds a fold with running state."""
    return any(isinstance(op, FoldOp) for ops in space.folds.values() for op in ops)
