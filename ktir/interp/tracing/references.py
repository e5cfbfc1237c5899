"""What the values of a run are compared with: the values of another run, or arrays by name.

An array's name is that of a value (``scores`` for ``%scores``), whose shape it has, after one axis for the cores or two
for visits and cores where these differ; or that of an argument that points to memory, whose elements it lists. What is
stored to such an argument is compared at the end of the run, when nothing overwrites it any more, and the difference is
that of the operation that stored the wrong element last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ktir.analysis.pairing import Pairing, pair
from ktir.errors import ArgumentError, ValueNotFound
from ktir.interp.numerics import Array
from ktir.interp.observation import Point
from ktir.interp.tracing.accesses import pieces_of, places_stored, places_text, tile_at, touches
from ktir.interp.tracing.numbers import USUAL, Difference, Lanes, Tolerance, difference, largest, number, unequal
from ktir.interp.tracing.recording import STORED, Recording, Visit
from ktir.interp.values import Frame, Value
from ktir.machine.memory_arena import Allocation, Arena

Iteration = tuple[tuple[str, int], ...]
"""Counters of the loops around, outermost first."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first element of a value, in the order of the run, that is not the one wanted."""

    point: Point
    core: int
    iteration: Iteration
    found: Difference
    where: str = ""
    """The memory it is in, where it is not the value itself that is compared."""
    note: str = ""
    """What is wrong in other words, where it is no element."""


class Reference(Protocol):
    """What a trace asks for the right values."""

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None: ...

    def compare(self, point: Point, number: int, visit: Visit, lanes: Lanes, frame: Frame) -> Mismatch | None:
        """Where result ``number`` of an execution is wrong."""
        ...

    def places(self, point: Point, visit: Visit, frame: Frame) -> Mismatch | None:
        """Where a store goes to other places than it should."""
        ...

    def stored(self, point: Point, frame: Frame) -> None:
        """Notes a store."""
        ...

    def left(self) -> Iterator[Mismatch]:
        """What is wrong in memory after the run, by the operation that stored it."""
        ...


@dataclass(slots=True)
class OtherRun:
    """The values of a run of another program, or of the same one; results of paired operations have to be equal."""

    recording: Recording
    tolerance: Tolerance | None = None
    pairing: Pairing | None = None

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        assert self.recording.module is not None, "the other program runs first"
        self.pairing = pair(self.recording.module, module)

    def compare(self, point: Point, number: int, visit: Visit, lanes: Lanes, frame: Frame) -> Mismatch | None:
        other = self.counterpart(point.op)
        for rows, wanted in () if other is None else self.recording.wanted(other, number, visit):
            found = self._difference(lanes.rows(rows), wanted)
            if found is not None:
                return mismatch(point, rows, found, frame)
        return None

    def places(self, point: Point, visit: Visit, frame: Frame) -> Mismatch | None:
        other = self.counterpart(point.op)
        if other is None or other.name != "ktdp.store":
            return None
        places = places_stored(point, frame)
        assert places is not None
        for rows, wanted in self.recording.wanted(other, STORED, visit):
            found = self._difference(places.rows(rows), wanted)
            if found is not None:
                whole = mismatch(point, rows, found, frame)
                texts = [places_text(np.atleast_2d(each.values)[min(found.row, len(each.values) - 1)])
                         for each in (places.rows(rows), wanted)]  # fmt: skip
                return replace(whole, note=f"stores to {texts[0]}, wanted {texts[1]}")
        return None

    def _difference(self, lanes: Lanes, wanted: Lanes) -> Difference | None:
        """Values of another shape are of another tiling, and not compared."""
        return difference(lanes, wanted, self.tolerance or Tolerance()) if wanted.shape == lanes.shape else None

    def counterpart(self, op: Operation) -> Operation | None:
        """The operation of the other program that ``op`` is."""
        return None if self.pairing is None else self.pairing.pairs.get(op)

    def stored(self, point: Point, frame: Frame) -> None:
        """What is stored is the result of an operation."""

    def left(self) -> Iterator[Mismatch]:
        return iter(())


def mismatch(point: Point, rows: Array, found: Difference, frame: Frame) -> Mismatch:
    """A difference with the core and the iteration it is from."""
    row = int(rows[found.row if found.row < len(rows) else 0])
    return Mismatch(point, int(frame.cores[row]), iteration_of(point, frame, row), found)


def iteration_of(point: Point, frame: Frame, row: int) -> Iteration:
    """The counters of the loops around a point, as the core at ``row`` has them."""
    return tuple((name, on_core(value, row)) for name, value in point.iteration(frame))


def on_core(value: Value, row: int) -> int:
    """A number as the core at ``row`` of a frame has it."""
    return value if isinstance(value, int) else int(value[row if len(value) > 1 else 0])


# --------------------------------------------------------------------------------------------------------------- arrays


@dataclass(slots=True)
class Written:
    """Who stored each element of an array that an argument points to: index into ``events``, and the core."""

    arena: Arena
    allocation: Allocation
    dtype: np.dtype[Any]
    event: Array
    core: Array


@dataclass(slots=True)
class Arrays:
    """Arrays by name; ``tolerance`` None stands for what is usual for the element type that the program computed."""

    arrays: Mapping[str, Array]
    tolerance: Tolerance | None = None
    _pointers: set[str] = field(default_factory=lambda: set())
    _written: dict[str, Written] = field(default_factory=lambda: {})
    _events: list[tuple[Point, dict[int, Iteration]]] = field(default_factory=lambda: [])

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        """Forgets an earlier run. Raises :class:`ValueNotFound` for an array that no value and no argument has the name
        of."""
        self._written.clear()
        self._events.clear()
        known = {name.lstrip("%") for name in names.values()}
        self._pointers = {name.lstrip("%") for value, name in names.items() if _is_pointer(value)}
        for name in self.arrays:
            if name not in known:
                raise not_found(f"the reference {name!r} has the name of no value and no argument", name, known)

    def compare(self, point: Point, number: int, visit: Visit, lanes: Lanes, frame: Frame) -> Mismatch | None:
        name = point.values[number].name.lstrip("%")
        array = self.arrays.get(name)
        if array is None or name in self._pointers:
            return None
        wanted = Lanes(self._part(name, array, visit, lanes, frame))
        found = difference(lanes.rows(visit.rows), wanted, self._tolerance(lanes.values))
        return None if found is None else mismatch(point, visit.rows, found, frame)

    def _part(self, name: str, array: Array, visit: Visit, lanes: Lanes, frame: Frame) -> Array:
        extra = array.ndim - len(lanes.shape)
        needed = (visit.number + 1, frame.launch.tiles)[2 - extra :] if 0 <= extra <= 2 else ()
        if (
            not 0 <= extra <= 2
            or array.shape[extra:] != lanes.shape
            or any(size < least for size, least in zip(array.shape, needed, strict=False))
        ):
            raise ArgumentError(
                f"reference {name!r} has shape {list(array.shape)}, %{name} has {list(lanes.shape)} on each of "
                f"{frame.launch.tiles} cores",
                remedy="give it the value's shape, or [cores, shape..], or [visits, cores, shape..]",
            )
        if extra == 0:
            return array[None]
        return array[visit.cores] if extra == 1 else array[visit.number][visit.cores]

    def places(self, point: Point, visit: Visit, frame: Frame) -> Mismatch | None:
        """Arrays do not say who should store what."""
        return None

    def stored(self, point: Point, frame: Frame) -> None:
        tile = tile_at(point, frame)
        if tile is None or point.op.name != "ktdp.store" or not self._pointers.intersection(self.arrays):
            return
        iterations: dict[int, Iteration] = {}
        pieces = pieces_of(tile, frame, point.site)
        for row, core in enumerate(frame.cores.tolist()):
            for touch in touches(pieces, frame, row):
                if touch.allocation is None or touch.allocation.name not in self.arrays:
                    continue
                written = self._writing(touch.allocation, touch.view.element.dtype, frame)
                places = touch.places - touch.start
                written.event[places], written.core[places] = len(self._events), core
                iterations[core] = iteration_of(point, frame, row)
        self._events.append((point, iterations))

    def _writing(self, allocation: Allocation, dtype: np.dtype[Any], frame: Frame) -> Written:
        found = self._written.get(allocation.name)
        if found is None:
            size, name = allocation.size // dtype.itemsize, allocation.name
            if self.arrays[name].size != size:
                raise ArgumentError(
                    f"reference {name!r} has {self.arrays[name].size} elements, the argument has {size}",
                    remedy="give the reference the shape of the argument",
                )
            nobody = np.full(size, -1)
            found = Written(frame.run.memory.shared, allocation, dtype, nobody, nobody.copy())
            self._written[name] = found
        return found

    def left(self) -> Iterator[Mismatch]:
        for name, written in self._written.items():
            raw = written.arena.bytes[written.allocation.start : written.allocation.stop]
            got, wanted = raw.view(written.dtype), self.arrays[name].reshape(-1)
            wrong = np.nonzero(unequal(got, wanted, self._tolerance(got)) & (written.event >= 0))[0]
            wrong = wrong[np.argsort(written.event[wrong], kind="stable")]
            events, firsts = np.unique(written.event[wrong], return_index=True)
            for event, places in zip(events.tolist(), np.split(wrong, firsts[1:]), strict=False):
                yield self._mismatch(name, written, event, places, got[places], wanted[places])

    def _mismatch(self, name: str, written: Written, event: int, places: Array, got: Array, wanted: Array) -> Mismatch:
        """What one store left wrong, at ``places`` of the array."""
        first = int(places[0])
        core, (point, iterations) = int(written.core[first]), self._events[event]
        at = tuple(int(axis) for axis in np.unravel_index(first, self.arrays[name].shape))
        elements = int((written.event == event).sum())
        found = Difference(0, at, number(got[0]), number(wanted[0]), len(places), elements, largest(got, wanted))
        return Mismatch(point, core, iterations[core], found, name)

    def _tolerance(self, values: Array) -> Tolerance:
        return self.tolerance or USUAL.get(values.dtype.name, Tolerance())


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), FuncOp)


def not_found(message: str, name: str, known: set[str]) -> ValueNotFound:
    """The error for a name that nothing has, with those that look like it."""
    near = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    choices = ", ".join(f"%{each}" for each in (near or sorted(known)[:12]))
    return ValueNotFound(message, remedy=f"did you mean {choices}?" if near else f"there are {choices or 'no values'}")


__all__ = ["Arrays", "Mismatch", "OtherRun", "Reference", "iteration_of", "not_found", "on_core"]
