"""What a value is while a program runs, and how values follow the cores when control flow parts and joins them.

Words. *frame*: the set of cores that run a piece of code together, with their registers. *rows*: positions in a frame,
one per core. *lead*: the extent of an array's leading axis, 1 for a uniform value, else the number of rows.
*tainted*: a tensor some of whose elements nobody defined; the mask says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ktir.errors import ExecutionError, IntegerOverflow, KtirError, PaddingRead, UninitialisedRead
from ktir.interp.casts import distinct
from ktir.interp.numerics import BOOL, Array, is_array
from ktir.location import Location

if TYPE_CHECKING:
    from ktir.interp.batches import Batch
    from ktir.interp.run import Launch, Run


@dataclass(frozen=True, slots=True)
class Site:
    """The operation that is running: what an error about it says."""

    operation: str
    result: str
    location: Location | None

    def fail(self, kind: type[KtirError], message: str, remedy: str, *related: tuple[Location, str]) -> KtirError:
        return kind(f"'{self.operation}' {message}", location=self.location, remedy=remedy, related=related)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where undefined elements came from: ``what`` in the words of the error, ``whole`` for a tensor never written."""

    kind: type[ExecutionError]
    what: str
    location: Location | None
    whole: bool = False

    def error(self, used_at: Site, core: int | None = None) -> KtirError:
        """The error of a use at ``used_at``. A read of memory is itself at fault, an empty tensor where it is used."""
        on_core = "" if core is None else f" on core {core}"
        if self.whole or self.location is None:
            related = () if self.location is None else ((self.location, self.what),)
            return used_at.fail(
                self.kind, f"uses undefined elements{on_core}: {self.what}", REMEDIES[self.kind], *related
            )
        related = () if used_at.location is None else ((used_at.location, "reaches a result here"),)
        return self.kind(f"{self.what}{on_core}", location=self.location, remedy=REMEDIES[self.kind], related=related)


REMEDIES: dict[type[ExecutionError], str] = {
    UninitialisedRead: "write the elements before they are read, or leave them out with tensor.extract_slice",
    PaddingRead: "cut the padding off with tensor.extract_slice, or replace it by a neutral value",
    IntegerOverflow: "use a wider type, keep the operands in range, or drop the overflow flag if wrapping is meant",
}


class Tainted:
    """A tensor with undefined elements: ``mask`` is true there and broadcasts against ``values``."""

    __slots__ = ("mask", "origin", "values")

    def __init__(self, values: Any, mask: Array, origin: Origin) -> None:
        self.values, self.mask, self.origin = values, mask, origin

    def is_unwritten(self) -> bool:
        """Whether this is a tensor that nobody ever wrote an element of."""
        return self.origin.whole and bool(distinct(self.mask).all())


Value = Any
"""A Python int, an array with a leading core axis, a :class:`Tainted`, a view, an access tile or a future."""


class Frame:
    """Cores that run together. ``cores`` holds their flat tile ids, ascending; ``regs`` one value per SSA value.

    Where iterations of a loop run together in a ``batch``, each has rows of its own; ``batch_rows`` says
    which rows of the batch these are.
    """

    __slots__ = ("batch", "batch_rows", "cores", "launch", "n", "regs", "run")

    def __init__(
        self,
        run: Run,
        launch: Launch,
        cores: Array,
        regs: list[Value],
        batch: Batch | None = None,
        batch_rows: Array | None = None,
    ) -> None:
        self.run, self.launch, self.cores, self.regs = run, launch, cores, regs
        self.batch, self.batch_rows = batch, batch_rows
        self.n = len(cores)

    def part(self, rows: Array, captured: Sequence[int]) -> Frame:
        """The frame of some of the rows; only the ``captured`` registers are carried over."""
        regs: list[Value] = [None] * len(self.regs)
        for slot in captured:
            regs[slot] = take_rows(self.regs[slot], rows, self.n)
        batch_rows = None if self.batch_rows is None else self.batch_rows[rows]
        return Frame(self.run, self.launch, self.cores[rows], regs, self.batch, batch_rows)


def take_rows(value: Value, rows: Array, n: int) -> Value:
    """``value`` as the cores at ``rows`` of ``n`` see it."""
    if is_array(value):
        return _rows_of_array(value, rows, n)
    if isinstance(value, Tainted):
        return Tainted(_rows_of_array(value.values, rows, n), _rows_of_array(value.mask, rows, n), value.origin)
    take = getattr(value, "rows", None)
    return value if take is None else take(rows, n)


def _rows_of_array(values: Any, rows: Array, n: int) -> Any:
    if not is_array(values) or (values.shape[0] == 1 and n != 1):
        return values
    taken = values[rows]
    return int(taken[0]) if taken.shape == (1,) and taken.dtype.kind in "ib" else taken


def rows_of_scalars(values: Sequence[Any], rows: Array, n: int) -> tuple[Any, ...]:
    """Each integer scalar as the cores at ``rows`` see it."""
    return tuple(_rows_of_array(value, rows, n) for value in values)


@dataclass(slots=True)
class Joined:
    """Collects one value from the parts of a frame."""

    n: int
    parts: list[tuple[Array, Value]] = field(default_factory=lambda: [])

    def add(self, rows: Array, value: Value) -> None:
        self.parts.append((rows, value))

    def value(self, site: Site) -> Value:
        """The value as the whole frame sees it."""
        values = [value for _, value in self.parts]
        first = values[0]
        if len(values) == 1 or all(value is first for value in values):
            return first if len(self.parts[0][0]) == self.n or not is_array(first) else self._spread()
        if all(isinstance(value, int) and value == first for value in values):
            return first
        if any(isinstance(value, Tainted) for value in values):
            return self._tainted(site)
        if not all(isinstance(value, int | np.ndarray) for value in values):
            raise site.fail(ExecutionError, "yields different memory views on different cores", "yield indices instead")
        return self._spread()

    def _spread(self) -> Array:
        sample = next((value for _, value in self.parts if is_array(value)), None)
        dtype = np.dtype(np.int64) if sample is None else sample.dtype
        shape = () if sample is None else sample.shape[1:]
        whole = np.zeros((self.n, *shape), dtype)
        for rows, value in self.parts:
            whole[rows] = value
        return whole

    def _tainted(self, site: Site) -> Tainted:
        values, masks = Joined(self.n), Joined(self.n)
        origin: Origin | None = None
        for rows, value in self.parts:
            if isinstance(value, Tainted):
                origin = value.origin
                values.add(rows, value.values)
                masks.add(rows, np.broadcast_to(value.mask, np.shape(value.values) or (1,)))
            else:
                values.add(rows, value)
                masks.add(rows, np.zeros(np.shape(value) or (1,), BOOL))
        assert origin is not None
        return Tainted(values._spread(), masks._spread(), origin)


def demand(value: Value, site: Site) -> Value:
    """``value``, which steers the program: raises where it is undefined."""
    if isinstance(value, Tainted):
        raise value.origin.error(site)
    return value
