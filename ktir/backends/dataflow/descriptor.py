"""Descriptors: the affine box of byte addresses that one data movement touches, and what it costs a memory of words.

Words. *box*: ``counts`` and byte ``strides``, innermost last, of elements of ``width`` bytes. *run*: bytes that follow
each other. *touches*: how many words a walk over the box in row-major order reads or writes when a word is fetched
again each time the walk enters it; a repeated word (stride 0) right after itself costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Box:
    """``counts`` elements of ``width`` bytes at ``strides``, innermost last; an empty box is one element."""

    counts: tuple[int, ...]
    strides: tuple[int, ...]
    width: int

    @property
    def elements(self) -> int:
        """How many elements a walk visits."""
        return prod(self.counts)

    @property
    def bytes(self) -> int:
        """Bytes that a walk moves."""
        return self.elements * self.width

    @property
    def span(self) -> tuple[int, int]:
        """First byte and the byte after the last, relative to the offset."""
        reach = [(count - 1) * stride for count, stride in zip(self.counts, self.strides, strict=True)]
        return sum(min(0, far) for far in reach), sum(max(0, far) for far in reach) + self.width

    @property
    def merged(self) -> Box:
        """The same walk with as few dimensions as possible: neighbours that continue each other are one."""
        counts: list[int] = []
        strides: list[int] = []
        for count, stride in zip(self.counts, self.strides, strict=True):
            if count == 1:
                continue
            if counts and strides[-1] == count * stride:
                counts[-1] *= count
                strides[-1] = stride
            else:
                counts.append(count)
                strides.append(stride)
        return Box(tuple(counts), tuple(strides), self.width)

    @property
    def dimensions(self) -> int:
        """Loops an address generator needs for the box: the merged dimensions, a contiguous innermost one included."""
        return len(self.merged.counts)

    def touches(self, word: int, misalignment: int = 0) -> int:
        """Words fetched by the walk, for a first byte that is ``misalignment`` past a word; at worst, if blocks differ.

        The innermost dimensions form a block that is swept once; every iteration of the others sweeps a block again,
        unless the block is a single word and the iteration stays in it.
        """
        box = self.merged
        low, high, depth = 0, self.width, len(box.counts)
        while depth and _swept(box, depth - 1, low, high, word, misalignment):
            far = (box.counts[depth - 1] - 1) * box.strides[depth - 1]
            low, high, depth = low + min(0, far), high + max(0, far), depth - 1
        outer = list(zip(box.counts[:depth], box.strides[:depth], strict=True))
        if any(stride % word for _, stride in outer):
            touched = (high - low + word - 2) // word + 1
        else:
            touched = (misalignment + high - 1) // word - (misalignment + low) // word + 1
        return touched * prod(count for count, _ in outer)

    def runs(self, longest: int) -> int:
        """Contiguous requests of at most ``longest`` bytes that cover the walk."""
        box = self.merged
        contiguous = bool(box.counts) and box.strides[-1] == self.width
        run = box.counts[-1] * self.width if contiguous else self.width
        outer = box.counts[:-1] if contiguous else box.counts
        return prod(outer) * -(-run // longest)


def _swept(box: Box, depth: int, low: int, high: int, word: int, misalignment: int) -> bool:
    """Whether the dimension continues the sweep over bytes [low, high): so far one word, and no word left out."""
    within_one = (misalignment + low) // word == (misalignment + high - 1) // word
    return (within_one and abs(box.strides[depth]) < word) or (
        (low, high) == (0, box.width) and abs(box.strides[depth]) <= box.width
    )
