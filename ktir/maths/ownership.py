"""Core splits: which core owns which iterations of a kernel.

A kernel iterates over a box of named dimensions. A core split cuts some of them into slices and numbers the
combinations with a mixed radix: a core number stands for one combination of slices, or for none when there are fewer
combinations than cores. Every pass and check that asks "who owns this?" asks here, so that no two of them can answer
differently.

Words. *extent*: iterations of a dimension. *cuts*: slices it is cut into. *granule*: the iterations that stay together
(a whole tile, or the elements of a stick); only the last granule of a dimension may be ragged. *digit*: the number of
a slice in its dimension. All counts are iterations, never bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ktir.errors import IllegalSplit


def ceil_div(dividend: int, divisor: int) -> int:
    """The least integer that is not below ``dividend / divisor``, for a positive divisor."""
    return -(-dividend // divisor)


@dataclass(frozen=True, slots=True)
class Slice:
    """The half-open range ``[start, stop)`` of one dimension."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __contains__(self, iteration: int) -> bool:
        return self.start <= iteration < self.stop

    def __and__(self, other: Slice) -> Slice:
        start = max(self.start, other.start)
        return Slice(start, max(start, min(self.stop, other.stop)))


@dataclass(frozen=True, slots=True)
class DimensionSplit:
    """One dimension dealt out in whole granules to ``cuts`` slices whose granule counts differ by at most one.

    The first slices are the longer ones; the ragged granule, if any, lies in the last slice. For example 1000
    iterations in granules of 64 over 3 cuts are the slices 0..384, 384..704 and 704..1000.
    """

    extent: int
    cuts: int = 1
    granule: int = 1

    def __post_init__(self) -> None:
        if self.extent < 0 or self.cuts < 1 or self.granule < 1:
            raise IllegalSplit(
                f"cannot cut {self.extent} iterations in granules of {self.granule} into {self.cuts} slices",
                remedy="use an extent that is not negative, and at least one cut and one iteration per granule",
            )
        if self.cuts > max(1, self.granules):
            raise IllegalSplit(
                f"cannot cut {self.extent} iterations in granules of {self.granule} into {self.cuts} slices",
                remedy=f"use at most {max(1, self.granules)} cuts here, and cut another dimension as well",
            )

    @property
    def granules(self) -> int:
        """How many granules the dimension has, the ragged one included."""
        return ceil_div(self.extent, self.granule)

    def granule_slice(self, digit: int) -> Slice:
        """The granule numbers that slice ``digit`` holds, ``0 <= digit < cuts``."""
        least, longer = divmod(self.granules, self.cuts)
        start = digit * least + min(digit, longer)
        return Slice(start, start + least + (1 if digit < longer else 0))

    def slice(self, digit: int) -> Slice:
        """The iterations that slice ``digit`` holds, ``0 <= digit < cuts``."""
        granules = self.granule_slice(digit)
        return Slice(granules.start * self.granule, min(granules.stop * self.granule, self.extent))

    def digit(self, iteration: int) -> int:
        """The slice that holds ``iteration``; the inverse of :meth:`slice`."""
        granule = iteration // self.granule
        least, longer = divmod(self.granules, self.cuts)
        boundary = longer * (least + 1)
        return granule // (least + 1) if granule < boundary else longer + (granule - boundary) // least


@dataclass(frozen=True, slots=True)
class CoreSplit:
    """A numbering of slice combinations by core; the dimension named last varies fastest with the core number.

    Cores with neighbouring numbers are neighbours on the ring, so the dimension whose slices exchange the most belongs
    last. Dimensions that are not cut need not be named: a core owns all of them.
    """

    dimensions: Mapping[str, DimensionSplit]

    @property
    def cores(self) -> int:
        """How many cores own something."""
        return prod(split.cuts for split in self.dimensions.values())

    def radix_step(self, name: str) -> int:
        """By how much the core number grows when the digit of dimension ``name`` grows by one."""
        names = list(self.dimensions)
        return prod(self.dimensions[inner].cuts for inner in names[names.index(name) + 1 :])

    def digits(self, core: int) -> dict[str, int]:
        """The slice number of ``core`` in each dimension; raises :class:`IndexError` for a core that owns nothing."""
        if not 0 <= core < self.cores:
            raise IndexError(f"core {core} owns nothing: the split is over {self.cores} cores")
        return {name: core // self.radix_step(name) % split.cuts for name, split in self.dimensions.items()}

    def slices(self, core: int) -> dict[str, Slice]:
        """The iterations of ``core`` in each dimension; raises :class:`IndexError` for a core that owns nothing."""
        return {name: self.dimensions[name].slice(digit) for name, digit in self.digits(core).items()}

    def core(self, point: Mapping[str, int]) -> int:
        """The core that owns the iteration ``point``, which names every dimension of the split."""
        return sum(split.digit(point[name]) * self.radix_step(name) for name, split in self.dimensions.items())

    def __iter__(self) -> Iterator[dict[str, Slice]]:
        return (self.slices(core) for core in range(self.cores))
