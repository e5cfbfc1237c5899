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
        """Words fetched by the walk, for a first byte that is ``misalignment`` past a word."""
        box = self.merged
        run, touched = self.width, 1 + (misalignment + self.width - 1) // word
        for count, stride in zip(reversed(box.counts), reversed(box.strides), strict=True):
            reach = (count - 1) * abs(stride) + run
            if touched == 1 and (abs(stride) < word or reach <= word):
                run = reach
                touched = 1 + (misalignment % word + reach - 1) // word
            elif stride:
                run = reach
                touched *= count
            elif touched > 1:
                touched *= count
        return touched

    def runs(self, longest: int) -> int:
        """Contiguous requests of at most ``longest`` bytes that cover the walk."""
        box = self.merged
        contiguous = bool(box.counts) and box.strides[-1] == self.width
        run = box.counts[-1] * self.width if contiguous else self.width
        outer = box.counts[:-1] if contiguous else box.counts
        return prod(outer) * -(-run // longest)
