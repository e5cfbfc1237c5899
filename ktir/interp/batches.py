"""Runs several iterations of a loop at once: every iteration gets rows of its own, as if it were further cores.

A loop may run so when it carries no values and its iterations do not meet in memory. Whether they meet is seen while
it runs: the stores of a batch wait until all its iterations are through, and are carried out only when no iteration
stores to what another one touches. Otherwise, and when anything fails, nothing has happened yet, and the iterations
run one after the other; so results and errors are those of the plain loop.

In a loop whose cores exchange values, the cores of each iteration exchange among themselves, and also the cores of one
iteration must not meet: the exchange would order what they do, but the stores wait.

Words. *batch*: iterations that run together. *footprint*: the places that one operation touches in each iteration, as
an interval, and as a box of rows and columns where its view is a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ktir.errors import KtirError
from ktir.interp.accesses import Access, Strided
from ktir.interp.compile import Code, is_shaped, shape_of
from ktir.interp.numerics import Array, Scalar, is_array
from ktir.interp.values import Frame, Site, Tainted, Value, take_rows
from ktir.interp.views import View
from ktir.machine.memory_arena import Arena

ELEMENTS = 1 << 18
"""Elements of the largest value of a batch: few enough to stay in a cache, many enough to be worth an operation."""
ITERATIONS_AT_MOST = 256
ITERATIONS_AT_LEAST = 4
"""Fewer gain less than keeping track of them costs."""
NOWHERE = 1 << 62
ROWS_TO_COMPARE = 512
"""Rows of a batch that are compared each with each, where coarser comparisons find an overlap."""
APART = ("func.call", "memref.", "ktg.transfer")
"""Operations that change what no batch keeps track of."""
EXCHANGES = "ktdp.inter_tile"
"""Operations by which cores order each other."""


class Met(Exception):
    """Iterations of a batch touch the same memory."""


# ----------------------------------------------------------------------------------------------------------- footprints


@dataclass(slots=True)
class Footprint:
    """What one operation touches: ``low`` and ``high`` place per row of the batch, of which ``cores`` may meet.

    ``box`` are lowest and highest row and column of a matrix described by ``grid``: the length of its rows and the
    place of its first element.
    """

    arena: Arena
    stores: bool
    cores: int
    low: Array
    high: Array
    grid: tuple[int, int] | None
    box: list[Array]

    @staticmethod
    def nowhere(arena: Arena, rows: int, cores: int, *, stores: bool, grid: tuple[int, int] | None) -> Footprint:
        low, high = (np.full(rows, place) for place in (NOWHERE, -NOWHERE))
        return Footprint(arena, stores, cores, low, high, grid, [low.copy(), high.copy(), low.copy(), high.copy()])

    def add(self, access: Access, rows: Array | None) -> None:
        """Widens the footprint. ``rows`` of the batch touch the rows of the access; None where all touch all of it."""
        low, high = _reach(access, rows)
        _widen(self.low, self.high, low, high, rows)
        if self.grid is None:
            return
        box = _box(access, self.grid) if grid_of(access.view) == self.grid else None
        if box is None:
            self.grid = None
            return
        for pair in (0, 2):
            _widen(self.box[pair], self.box[pair + 1], box[pair], box[pair + 1], rows)

    def meets(self, other: Footprint) -> bool:
        """Whether different iterations may touch the same place."""
        if self.arena is not other.arena or self.low.min() > other.high.max() or other.low.min() > self.high.max():
            return False
        if _apart(np.minimum(self.low, other.low), np.maximum(self.high, other.high)):
            return False
        if not self._overlaps(other, self.cores):
            return False
        return len(self.low) > ROWS_TO_COMPARE or self._overlaps(other, 1)

    def follows(self, store: Footprint) -> bool:
        """Whether this is a read of what ``store`` left waiting, in whatever iteration."""
        if self.arena is not store.arena or self.low.min() > store.high.max() or store.low.min() > self.high.max():
            return False
        own = (self.low <= store.high) & (store.low <= self.high)
        if self.grid is not None and self.grid == store.grid:
            for at in (0, 2):
                own &= (self.box[at] <= store.box[at + 1]) & (store.box[at] <= self.box[at + 1])
        return bool(own.any()) or self.meets(store)

    def _overlaps(self, other: Footprint, group: int) -> bool:
        """Compares each ``group`` of rows with each of another iteration, by intervals and where possible by boxes."""
        pairs = [(self.low, self.high, other.low, other.high)]
        if self.grid is not None and self.grid == other.grid:
            pairs += [(self.box[at], self.box[at + 1], other.box[at], other.box[at + 1]) for at in (0, 2)]
        iteration = np.arange(len(self.low) // group) // (self.cores // group)
        both = iteration[:, None] != iteration
        for low, high, other_low, other_high in pairs:
            low, other_low = (each.reshape(-1, group).min(axis=1) for each in (low, other_low))
            high, other_high = (each.reshape(-1, group).max(axis=1) for each in (high, other_high))
            both &= (low[:, None] <= other_high) & (other_low <= high[:, None])
        return bool(both.any())


def _apart(low: Array, high: Array) -> bool:
    """Whether no two intervals overlap; empty ones end before they begin."""
    order = np.argsort(low)
    return bool((high[order][:-1] < low[order][1:]).all())


def _widen(low: Array, high: Array, lowest: Any, highest: Any, rows: Array | None) -> None:
    if rows is None:
        np.minimum(low, np.min(lowest), out=low)
        np.maximum(high, np.max(highest), out=high)
    else:
        np.minimum.at(low, rows, lowest)
        np.maximum.at(high, rows, highest)


def _reach(access: Access, rows: Array | None) -> tuple[Any, Any]:
    """Smallest and largest place of each row; of each element where the rows of the elements are given."""
    if isinstance(access, Strided):
        low, high = access.reach()
        return access.at + low, access.at + high
    places = access.places
    if rows is not None and rows.size == places.size:
        return places.reshape(rows.shape), places.reshape(rows.shape)
    flat = places.reshape(len(places), -1)
    return flat.min(axis=1), flat.max(axis=1)


def grid_of(view: View) -> tuple[int, int] | None:
    """Length of the rows of a view, in elements, and where it starts; None for one that is no plain matrix."""
    strides = [stride for stride in view.strides if isinstance(stride, int) and stride > 1]
    if len(strides) == 0 or not isinstance(view.offset, int) or view.local:
        return None
    return max(strides), view.offset


def _box(access: Access, grid: tuple[int, int]) -> tuple[Any, Any, Any, Any] | None:
    """First and last row, first and last column of an access; None where it is no box."""
    if not isinstance(access, Strided):
        return None
    length, start = grid
    rows = columns = 0
    for size, stride in zip(access.shape, access.strides, strict=True):
        if stride < 0 or (stride >= length and stride % length):
            return None
        if stride >= length:
            rows += (size - 1) * (stride // length)
        else:
            columns += (size - 1) * stride
    row, column = np.divmod(np.asarray(access.at - start), length)
    if (column + columns >= length).any():
        return None
    return row, row + rows, column, column + columns


# -------------------------------------------------------------------------------------------------------------- batches


@dataclass(frozen=True, slots=True)
class Waiting:
    """A store that waits: the row of the batch for each row of the access, and the epoch in the first iteration."""

    access: Access
    values: Value
    frame: Frame
    site: Site
    rows: Array | None
    epoch: int


@dataclass(slots=True)
class Batch:
    """``count`` iterations of some ``cores`` that run together, and the stores that wait for their end.

    ``may_meet`` is the number of cores of an iteration that may touch the same place: all, or none but each itself.
    ``exchanges`` tell the checker once more what the first iteration has told it.
    """

    count: int
    cores: int
    may_meet: int
    span: int
    footprints: dict[tuple[Site, int, bool], Footprint] = field(default_factory=lambda: {})
    waiting: list[Waiting] = field(default_factory=lambda: [])
    exchanges: list[Callable[[Any], None]] = field(default_factory=lambda: [])

    def note(self, access: Access, frame: Frame, site: Site, rows: Array | None, *, stores: bool) -> None:
        """Notes an access by ``rows`` of the frame; None for all of them.

        Raises :class:`Met` for a read of what a store of this batch is still to write.
        """
        if access.is_empty():
            return
        where = _rows_of_batch(access, frame, rows)
        grid = grid_of(access.view)
        if not stores and any(each.stores and each.arena is access.arena for each in self.footprints.values()):
            read = Footprint.nowhere(access.arena, self.count * self.cores, self.may_meet, stores=False, grid=grid)
            read.add(access, where)
            if any(read.follows(each) for each in self.footprints.values() if each.stores):
                raise Met
        key = (site, id(access.arena), stores)
        found = self.footprints.get(key)
        if found is None:
            found = Footprint.nowhere(access.arena, self.count * self.cores, self.may_meet, stores=stores, grid=grid)
            self.footprints[key] = found
        found.add(access, where)

    def wait(self, access: Access, values: Value, frame: Frame, site: Site, rows: Array | None) -> None:
        """Keeps a store for later. Raises :class:`Met` where the checker has something against it."""
        checker, epoch = frame.run.checker, 0
        if checker is not None and checker.ordered:
            epoch = checker.epoch
            if not checker.knows(access):
                raise Met
        self.waiting.append(Waiting(access, values, frame, site, _rows_of_batch(access, frame, rows), epoch))

    def epochs(self, store: Waiting, each: int) -> Array | None:
        """When the rows of a store happen, where an iteration takes ``each`` epochs."""
        return None if store.rows is None or not each else store.epoch + store.rows // self.cores * each

    def require_apart(self) -> None:
        """Raises :class:`Met` where the order of the iterations matters."""
        every = list(self.footprints.values())
        if any(one.meets(other) for one in every if one.stores for other in every):
            raise Met


def _rows_of_batch(access: Access, frame: Frame, rows: Array | None) -> Array | None:
    """The row of the batch for each row of an access, or None where it is the same for all rows of the frame."""
    assert frame.batch_rows is not None
    if rows is not None:
        return frame.batch_rows[rows]
    lead = len(access.places) if not isinstance(access, Strided) else 1 if isinstance(access.at, int) else frame.n
    return frame.batch_rows if lead == frame.n else None


@dataclass(frozen=True, slots=True)
class Batching:
    """How the iterations of a loop run together. ``elements`` is the size of the largest value of one of its rows,
    ``exchanging`` says whether its cores exchange values."""

    body: Code
    counter: int
    elements: int
    exchanging: bool
    site: Site

    def run(self, frame: Frame, first: Scalar, step: Scalar, numbers: range) -> bool:
        """Runs the iterations with these numbers; False if it changed nothing because they have to run in order."""
        run = frame.run
        size = min(len(numbers), ITERATIONS_AT_MOST, self._fitting(frame))
        if frame.batch is not None or self.site in run.in_order or size < ITERATIONS_AT_LEAST:
            return False
        for start in range(0, len(numbers), size):
            part = numbers[start : start + size]
            if not self._attempt(frame, first, step, part):
                run.in_order.add(self.site)
                self._in_order(frame, first, step, numbers[start:])
                break
        return True

    def _fitting(self, frame: Frame) -> int:
        """How many iterations a batch may have."""
        widest = self.elements
        for slot in self.body.captured:
            value = frame.regs[slot]
            if is_array(value) and len(value) > 1:
                widest = max(widest, value.size // len(value))
        return ELEMENTS // max(1, widest * frame.n)

    def _in_order(self, frame: Frame, first: Scalar, step: Scalar, numbers: range) -> None:
        for number in numbers:
            frame.regs[self.counter] = first + number * step
            self.body.run(frame)

    def _attempt(self, frame: Frame, first: Scalar, step: Scalar, numbers: range) -> bool:
        """Runs one batch; False, with nothing changed, where that does not give what the plain loop gives."""
        run, checker = frame.run, frame.run.checker
        batch = Batch(len(numbers), frame.n, 1 if self.exchanging else frame.n, run.memory.span)
        steps, findings = run.steps, len(run.diagnostics)
        noted = None if checker is None else checker.noted()
        try:
            self.body.run(self._rows(frame, first, step, numbers, batch))
            run.steps = steps + (run.steps - steps) * batch.count
            if run.steps > run.max_steps or run.memory.span != batch.span:
                raise Met
            batch.require_apart()
        except (KtirError, Met):
            run.steps = steps
            del run.diagnostics[findings:]
            if checker is not None and noted is not None:
                checker.forget(noted)
            return False
        epochs_each = 0 if checker is None or noted is None else checker.epoch - noted.epoch
        for _ in range(batch.count - 1):
            for exchange in batch.exchanges:
                exchange(checker)
        for store in batch.waiting:
            run.perform(store.access, store.values, store.frame, store.site, batch.epochs(store, epochs_each))
        return True

    def _rows(self, frame: Frame, first: Scalar, step: Scalar, numbers: range, batch: Batch) -> Frame:
        """A frame with the rows of all iterations, those of one iteration next to each other."""
        rows = np.tile(np.arange(frame.n), batch.count)
        regs: list[Value] = [None] * len(frame.regs)
        for slot in self.body.captured:
            regs[slot] = _repeated(frame.regs[slot], rows, frame.n)
        steps = np.arange(numbers.start, numbers.stop)
        regs[self.counter] = (np.reshape(first, (1, -1)) + steps[:, None] * np.reshape(step, (1, -1))).astype(np.int64)
        regs[self.counter] = np.broadcast_to(regs[self.counter], (batch.count, frame.n)).reshape(-1)
        return Frame(frame.run, frame.launch, frame.cores[rows], regs, batch, np.arange(len(rows)))


def _repeated(value: Value, rows: Array, n: int) -> Value:
    if is_array(value):
        return value if len(value) == 1 else value[rows]
    if isinstance(value, Tainted):
        mask = value.mask if len(value.mask) == 1 else value.mask[rows]
        return Tainted(_repeated(value.values, rows, n), mask, value.origin)
    return take_rows(value, rows, n)


def batching(op: Operation, body: Code, counter: int, site: Site) -> Batching | None:
    """How the iterations of a loop without carried values may run together; None if they may not."""
    elements = widest(op)
    return None if elements is None else Batching(body, counter, elements, exchanges(op), site)


def exchanges(op: Operation) -> bool:
    """Whether cores exchange values inside ``op``."""
    return any(inner.name.startswith(EXCHANGES) for inner in op.walk())


def widest(op: Operation) -> int | None:
    """Elements of the largest value inside ``op``; None where that, or a part of the cores, cannot be told apart."""
    elements = 1
    for inner in op.walk():
        if inner.name.startswith(APART):
            return None
        shapes = [shape_of(result.type) for result in inner.results if is_shaped(result.type)]
        if any(min(shape, default=1) < 0 for shape in shapes):
            return None
        elements = max([elements, *map(prod, shapes)]) if _holds_elements(inner) else elements
    return elements


def _holds_elements(op: Operation) -> bool:
    """Whether the results of ``op`` are values, not windows on memory."""
    return not op.name.startswith("ktdp.construct")


__all__: Sequence[str] = ["Batch", "Batching", "Met", "batching", "exchanges", "widest"]
