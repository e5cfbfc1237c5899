"""Which iterations execute an instruction: a box of loop indices under affine conditions, counted and bounded exactly.

A condition on one index that is linear only narrows its range. What is left (*mixed* conditions: of several indices,
or with a remainder) is counted one index at a time, over one period where the condition repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import lcm, prod

from ktir.backends.dataflow.expression import MOST_POINTS, Expression, Linear, PerCore, at
from ktir.errors import LimitExceeded
from ktir.location import Location


@dataclass(frozen=True, slots=True)
class Condition:
    """``value >= 0``, or ``value == 0`` where ``equality``."""

    value: Expression
    equality: bool = False

    def holds(self, core: int, indices: Sequence[int]) -> bool:
        """Whether it is met in one iteration of a core."""
        value = self.value.value(core, indices)
        return value == 0 if self.equality else value >= 0

    def decided(self, first: int, last: int) -> bool | None:
        """Whether it is met for every value from ``first`` to ``last``; None if for some only, or not known."""
        if self.equality:
            return (first == last == 0) if first == last else (None if first <= 0 <= last else False)
        return True if first >= 0 else (False if last < 0 else None)


@dataclass(frozen=True)
class Space:
    """The iterations of one core: ``ranges`` of the indices, outermost first; ``mixed`` hold besides.

    ``possible`` is false where a condition without an index is not met. ``location``: of what is executed in them.
    """

    core: int
    ranges: tuple[range, ...]
    mixed: tuple[Condition, ...] = ()
    possible: bool = True
    location: Location | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        core: int,
        counts: Sequence[PerCore],
        conditions: Sequence[Condition] = (),
        location: Location | None = None,
    ) -> Space:
        """The iterations of loops of ``counts`` in which ``conditions`` hold."""
        ranges = tuple(range(max(0, at(count, core))) for count in counts)
        return cls(core, ranges, tuple(conditions), location=location).narrowed()

    def narrowed(self) -> Space:
        """The same iterations with as much as possible said by the ranges."""
        ranges, mixed, possible = list(self.ranges), list[Condition](), self.possible
        for condition in self.mixed:
            depths = condition.value.depths
            if not depths:
                possible = possible and condition.holds(self.core, ())
            elif len(depths) == 1 and isinstance(condition.value, Linear):
                depth = next(iter(depths))
                ranges[depth] = _narrow(ranges[depth], condition, self.core, depth)
            else:
                mixed.append(condition)
        return Space(self.core, tuple(ranges), tuple(mixed), possible, self.location)

    @property
    def points(self) -> int:
        """How many iterations there are. Raises :class:`LimitExceeded` where they cannot be counted."""
        if not self.possible:
            return 0
        if not self.mixed or not all(self.ranges):
            return prod(map(len, self.ranges))
        depth, period = min(self._tried(), key=lambda each: each[1])
        every = self.ranges[depth]
        whole, rest = divmod(len(every), period)
        once = [self._fixed(depth, index).points for index in self._enumerable(every[:period])]
        return whole * sum(once) + sum(once[:rest])

    def _tried(self) -> Iterator[tuple[int, int]]:
        """The depths that mixed conditions depend on, with the number of indices there that have to be tried."""
        for depth in sorted(frozenset[int]().union(*(condition.value.depths for condition in self.mixed))):
            here = [condition for condition in self.mixed if depth in condition.value.depths]
            yield depth, min(self._period(here, depth) or len(self.ranges[depth]), len(self.ranges[depth]))

    def _period(self, conditions: Sequence[Condition], depth: int) -> int | None:
        """After how many iterations all ``conditions`` repeat, if they do."""
        laws = [condition.value.law(self.core, depth) for condition in conditions]
        if any(law.shift for law in laws):
            return None
        return reduce(lcm, (law.period for law in laws), 1)

    def _enumerable(self, indices: range) -> range:
        if len(indices) > MOST_POINTS:
            raise LimitExceeded(
                f"a condition of several indices over {len(indices)} iterations",
                location=self.location,
                remedy="write it with a loop for each case, so that every condition is of one index",
            )
        return indices

    def _fixed(self, depth: int, index: int) -> Space:
        ranges = (*self.ranges[:depth], range(1), *self.ranges[depth + 1 :])
        mixed = tuple(Condition(each.value.fixed(self.core, depth, index), each.equality) for each in self.mixed)
        return Space(self.core, ranges, mixed, self.possible, self.location).narrowed()

    def bounds(self, value: Expression) -> tuple[int, int]:
        """Least and largest value of ``value`` over the iterations, of which there has to be one.

        Where mixed conditions over too many iterations stand in the way, bounds of the box without them.
        """
        depths = value.depths.union(*(condition.value.depths for condition in self.mixed))
        if self.mixed and prod(len(self.ranges[depth]) for depth in depths) <= MOST_POINTS:
            values = [value.value(self.core, indices) for indices in self.points_along(depths)]
            return min(values), max(values)
        try:
            return value.bounds(self.core, self.ranges)
        except LimitExceeded as error:
            error.location = self.location
            raise

    def times_of(self, value: Expression) -> dict[int, int]:
        """How often each value comes up over the iterations. Raises :class:`LimitExceeded` for too many values."""
        if not value.depths or not self.points:
            return {value.value(self.core, ()): self.points} if self.points else {}
        depth = min(value.depths)
        every = self.ranges[depth]
        conditions = [condition for condition in self.mixed if depth in condition.value.depths]
        period = self._period([Condition(value), *conditions], depth) or len(every)
        whole, rest = divmod(len(every), period)
        found: dict[int, int] = {}
        for place, index in enumerate(self._enumerable(every[:period])):
            times = whole + (place < rest)
            inner = self._fixed(depth, index).times_of(value.fixed(self.core, depth, index))
            for each, count in inner.items():
                found[each] = found.get(each, 0) + times * count
        return found

    def walk(self, values: Sequence[Expression]) -> Iterator[list[int]]:
        """The iterations that differ in ``values``. Raises :class:`LimitExceeded` for too many."""
        depths = frozenset[int]().union(*(value.depths for value in values), *(c.value.depths for c in self.mixed))
        self._enumerable(range(prod(len(self.ranges[depth]) for depth in depths)))
        yield from self.points_along(depths)

    def points_along(self, depths: frozenset[int]) -> Iterator[list[int]]:
        """The iterations as far as the indices at ``depths`` go; others stay at their first."""
        indices = [each[0] if each else 0 for each in self.ranges]
        order = sorted(depths)
        for point in product(*(self.ranges[depth] for depth in order)):
            for depth, index in zip(order, point, strict=True):
                indices[depth] = index
            if all(condition.holds(self.core, indices) for condition in self.mixed):
                yield indices


def _narrow(indices: range, condition: Condition, core: int, depth: int) -> range:
    """The part of ``indices`` that meets a linear condition of one index: factor * index + constant."""
    constant = condition.value.value(core, [0] * (depth + 1))
    factor = condition.value.law(core, depth).shift
    if factor == 0:
        return indices if (constant == 0 if condition.equality else constant >= 0) else range(0)
    start, stop = indices.start, indices.stop
    if condition.equality:
        index, rest = divmod(-constant, factor)
        return range(index, index + 1) if not rest and index in indices else range(0)
    if factor > 0:
        return range(max(start, -(constant // factor)), stop)
    return range(start, min(stop, constant // -factor + 1))
