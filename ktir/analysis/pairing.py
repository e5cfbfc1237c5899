"""Which operations of two versions of a program are the same one, although some were added, removed, moved or renamed.

The operations of two blocks are paired in their order so that the pairs are as alike as possible; what is left over is
paired where it computes the same from the same, wherever it stands in the block. The regions of a pair are paired in
turn. Names, types, attributes and what an operation computes from its block's arguments all count towards likeness, and
none of them alone decides.

Words. *expression*: a hash of an operation, its attributes and the expressions of its operands; equal for two
operations that compute the same. *likeness*: the score of a pair, 0 for operations that are never paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

SAME_OPERATION, SAME_TYPES, SAME_ATTRIBUTES, SAME_NAMES, SAME_EXPRESSION = 4, 2, 2, 3, 3
MOST_CELLS = 250_000
"""Pairs of a block that are weighed; longer blocks are compared in a window around the diagonal of that many."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """``pairs`` leads from operations of the second program to those of the first; the rest has no counterpart."""

    pairs: Mapping[Operation, Operation]
    only_first: Sequence[Operation]
    only_second: Sequence[Operation]


def pair(first: ModuleOp, second: ModuleOp) -> Pairing:
    """Pairs the operations of two versions of a program. Functions are paired by name, a single other one as well."""
    pairs: dict[Operation, Operation] = {}
    traits = Traits()
    left, right = _functions(first), _functions(second)
    for function in (*left.values(), *right.values()):
        for op in function.walk():  # in order, so that the expressions of operands are known and nothing nests deep
            traits.of(op)
    shared = [name for name in left if name in right]
    others = [[each for name, each in side.items() if name not in shared] for side in (left, right)]
    both = [(left[name], right[name]) for name in shared]
    if len(others[0]) == len(others[1]) == 1:
        both.append((others[0][0], others[1][0]))
    for one, other in both:
        pairs[other] = one
        _pair_regions(one, other, pairs, traits)
    paired = set(pairs.values())
    return Pairing(
        pairs,
        [op for each in left.values() for op in each.walk() if op not in paired],
        [op for each in right.values() for op in each.walk() if op not in pairs],
    )


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}


def _pair_regions(first: Operation, second: Operation, pairs: dict[Operation, Operation], traits: Traits) -> None:
    for one, other in zip(first.regions, second.regions, strict=False):
        for left, right in zip(one.blocks, other.blocks, strict=False):
            for a, b in _pair_blocks(left, right, traits):
                pairs[b] = a
                _pair_regions(a, b, pairs, traits)


def _pair_blocks(first: Block, second: Block, traits: Traits) -> Iterator[tuple[Operation, Operation]]:
    left, right = list(first.ops), list(second.ops)
    start = 0
    while start < min(len(left), len(right)) and traits.same(left[start], right[start]):
        yield left[start], right[start]
        start += 1
    left, right = left[start:], right[start:]
    stop = 0
    while stop < min(len(left), len(right)) and traits.same(left[-1 - stop], right[-1 - stop]):
        yield left[-1 - stop], right[-1 - stop]
        stop += 1
    left, right = left[: len(left) - stop], right[: len(right) - stop]
    ordered = list(_best_order(left, right, traits))
    yield from ordered
    taken = {op for both in ordered for op in both}
    yield from _moved([op for op in left if op not in taken], [op for op in right if op not in taken], traits)


def _moved(
    left: Sequence[Operation], right: Sequence[Operation], traits: Traits
) -> Iterator[tuple[Operation, Operation]]:
    """Pairs of what the order leaves over: the same expression, or the same operation under the same name."""
    free = list(left)
    for op in right:
        found = next((each for each in free if traits.moved(each, op)), None)
        if found is not None:
            free.remove(found)
            yield found, op


def _best_order(
    left: Sequence[Operation], right: Sequence[Operation], traits: Traits
) -> Iterator[tuple[Operation, Operation]]:
    """The pairs, in order on both sides, with the highest sum of likeness."""
    if not left or not right:
        return
    window = max(abs(len(left) - len(right)) + 1, MOST_CELLS // len(left))
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        row, below = best[i], best[i + 1]
        for j in range(min(len(right) - 1, i + window), max(0, i - window) - 1, -1):
            likeness = traits.likeness(left[i], right[j])
            paired = likeness + below[j + 1] if likeness else 0
            row[j] = max(paired, below[j], row[j + 1])
    i = j = 0
    while i < len(left) and j < len(right):
        likeness = traits.likeness(left[i], right[j]) if abs(i - j) <= window else 0
        if likeness and best[i][j] == likeness + best[i + 1][j + 1]:
            yield left[i], right[j]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


# --------------------------------------------------------------------------------------------------------------- traits


@dataclass(frozen=True, slots=True)
class Trait:
    """What of an operation is compared."""

    operation: str
    types: tuple[object, ...]
    attributes: int
    names: tuple[str | None, ...]
    expression: int


@dataclass(slots=True)
class Traits:
    """The traits of operations, each worked out once."""

    known: dict[Operation, Trait] = field(default_factory=lambda: {})
    expressions: dict[SSAValue, int] = field(default_factory=lambda: {})

    def of(self, op: Operation) -> Trait:
        found = self.known.get(op)
        if found is None:
            found = self.known[op] = Trait(
                op.name,
                tuple(result.type for result in op.results),
                _attributes(op),
                tuple(result.name_hint for result in op.results),
                self._expression(op),
            )
        return found

    def same(self, first: Operation, second: Operation) -> bool:
        """Whether two operations agree in everything."""
        return self.of(first) == self.of(second)

    def moved(self, first: Operation, second: Operation) -> bool:
        """Whether two operations are the same one in another place of the block."""
        one, other = self.of(first), self.of(second)
        if one.operation != other.operation or one.types != other.types:
            return False
        return one.expression == other.expression or (any(one.names) and one.names == other.names)

    def likeness(self, first: Operation, second: Operation) -> int:
        """How likely two operations are versions of one; 0 for those that are not."""
        one, other = self.of(first), self.of(second)
        named = any(one.names) and any(other.names)
        same_names = named and one.names == other.names
        renamed = named and not same_names
        if one.operation == other.operation:
            if one.attributes != other.attributes and renamed:
                return 0
        elif not one.types or one.types != other.types or renamed:
            return 0
        return (
            SAME_OPERATION * (one.operation == other.operation)
            + SAME_TYPES * (one.types == other.types)
            + SAME_ATTRIBUTES * (one.attributes == other.attributes)
            + SAME_NAMES * same_names
            + SAME_EXPRESSION * (one.expression == other.expression)
        )

    def _expression(self, op: Operation) -> int:
        """The hash of ``op``; of operations around it nothing but the numbers of their arguments enters."""
        inner = [
            tuple(self.of(each).expression for each in block.ops) for region in op.regions for block in region.blocks
        ]
        operands = tuple(self._of_value(operand) for operand in op.operands)
        return hash((op.name, tuple(result.type for result in op.results), _attributes(op), operands, tuple(inner)))

    def _of_value(self, value: SSAValue) -> int:
        found = self.expressions.get(value)
        if found is None:
            found = self.expressions[value] = hash((self._source(value), value.type))
        return found

    def _source(self, value: SSAValue) -> tuple[int, int]:
        if isinstance(value, OpResult):
            return self.of(value.op).expression, value.index
        return 0, value.index if isinstance(value, BlockArgument) else 0


def _attributes(op: Operation) -> int:
    if isinstance(op, FuncOp):
        return 0
    return hash(tuple(sorted((*op.properties.items(), *op.attributes.items()), key=lambda item: item[0])))


__all__ = ["Pairing", "pair"]
