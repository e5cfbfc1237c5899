"""Which dimensions of which values are walked together: a union-find whose members can be split.

Each dimension of a tensor is a row-major product of *factors*. Saying that two dimensions are the same makes their
factors equal, and splits a factor where the two sides cut it differently: 640 is 5x128 as soon as something says so.
Dimensions of one element have no factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

Factor = int
"""A factor is known by its number."""


class Mismatch(Exception):
    """Two dimensions that are said to be the same do not nest: 6x10 is not 15x4."""


class Factors:
    """The factors of one analysis."""

    def __init__(self) -> None:
        self._extents: list[int] = []
        self._became: dict[Factor, tuple[Factor, ...]] = {}

    def dimension(self, extent: int) -> tuple[Factor, ...]:
        """A new dimension, same as no other."""
        if extent == 1:
            return ()
        self._extents.append(extent)
        return (len(self._extents) - 1,)

    def extent(self, factor: Factor) -> int:
        """Elements of a factor."""
        return self._extents[factor]

    def resolve(self, factors: Iterable[Factor]) -> tuple[Factor, ...]:
        """The present factors of a dimension that was once ``factors``."""
        result: list[Factor] = []
        pending = list(factors)[::-1]
        while pending:
            factor = pending.pop()
            if factor in self._became:
                pending += reversed(self._became[factor])
            else:
                result.append(factor)
        return tuple(result)

    def unify(self, one: Sequence[Factor], other: Sequence[Factor]) -> None:
        """Make two dimensions the same; raises :class:`Mismatch` where they cannot be."""
        left, right = list(self.resolve(one)), list(self.resolve(other))
        if prod(map(self.extent, left)) != prod(map(self.extent, right)):
            raise Mismatch("dimensions of different extents")
        while left:
            a, b = left.pop(), right.pop()
            if a == b:
                continue
            if self.extent(a) == self.extent(b):
                self._became[b] = (a,)
                left, right = list(self.resolve(left)), list(self.resolve(right))
                continue
            longer, shorter = (a, b) if self.extent(a) > self.extent(b) else (b, a)
            if self.extent(longer) % self.extent(shorter):
                raise Mismatch(f"{self.extent(longer)} does not split into {self.extent(shorter)}s")
            (outer,) = self.dimension(self.extent(longer) // self.extent(shorter))
            self._became[longer] = (outer, shorter)
            left, right = list(self.resolve([*left, a])), list(self.resolve([*right, b]))
