"""Printing single values as they change.

A *watch* is ``%name``, on all cores, or ``%name@core``. A line is printed whenever the value of that name is another
one than the core had before: where, which iteration, which cores, and the value, large tensors summarised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ktir.errors import ArgumentError
from ktir.interp.numerics import Array
from ktir.interp.observation import Named, Point
from ktir.interp.tracing.numbers import Lanes, is_float, lanes_of, wide
from ktir.interp.tracing.references import Iteration, iteration_of, not_found, on_core
from ktir.interp.tracing.trace import iteration_text
from ktir.interp.values import Frame, Value
from ktir.interp.views import DistributedView, IndirectTile, Tile, View
from ktir.location import Location, location_data

THRESHOLD, EDGE = 24, 3
"""Elements up to which a tensor is printed whole, and how many of each end are shown of longer ones."""
GROUPS = 4
"""Lines for one change; further cores are counted."""
_WATCH = re.compile(r"%?(?P<name>[\w$.#-]+?)(@(?P<core>\d+))?")


@dataclass(frozen=True, slots=True)
class Change:
    """A value that is new on some cores. ``text`` is the value, ``shape`` and ``dtype`` what it is."""

    name: str
    location: Location | None
    function: str
    cores: tuple[int, ...]
    iteration: Iteration
    shape: tuple[int, ...]
    dtype: str
    text: str

    @property
    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "location": location_data(self.location),
            "function": self.function,
            "name": self.name,
            "cores": list(self.cores),
            "iteration": dict(self.iteration),
            "shape": list(self.shape),
            "dtype": self.dtype,
            "value": self.text,
        }

    def __str__(self) -> str:
        at = f" {iteration_text(self.iteration)}" if self.iteration else ""
        kind = f"{'x'.join(map(str, self.shape))} {self.dtype}" if self.shape else ""
        gap = "\n" if "\n" in self.text else " " if kind else ""
        return f"{self.location or '@' + self.function}: {self.name} {ranges(self.cores)}{at} = {kind}{gap}{self.text}"


@dataclass(slots=True)
class Watch:
    """Observes a run and tells ``tell`` of every change of the watched values; keeps them in ``changes`` as well."""

    watched: Sequence[str]
    tell: Callable[[Change], None] = lambda change: None
    changes: list[Change] = field(default_factory=lambda: [])
    _cores: dict[str, set[int] | None] = field(default_factory=lambda: {})
    _last: dict[tuple[SSAValue, int], bytes] = field(default_factory=lambda: {})
    _tiles: int = 0

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        """Forgets an earlier run. Raises :class:`ValueNotFound` for a name that no value has."""
        self.changes.clear()
        self._cores.clear()
        self._last.clear()
        self._tiles = 0
        known = {name.lstrip("%") for name in names.values()}
        for text in self.watched:
            match = _WATCH.fullmatch(text)
            if match is None:
                raise ArgumentError(f"{text!r} is no watch", remedy="write %name, or %name@core")
            name, core = match["name"], match["core"]
            if name not in known:
                raise not_found(f"the program has no value %{name}", name, known)
            chosen = self._cores.setdefault(f"%{name}", set())
            if core is None or chosen is None:
                self._cores[f"%{name}"] = None
            else:
                chosen.add(int(core))

    def entered(self, point: Point, frame: Frame) -> None:
        self._look(point, point.values, frame)

    def executed(self, point: Point, frame: Frame) -> None:
        self._look(point, point.values, frame)

    def finish(self) -> None:
        """Everything was told on the way."""

    def require_cores(self) -> None:
        """Raises :class:`ArgumentError` where a watched core is none of the grid."""
        for name, cores in self._cores.items():
            if cores and max(cores) >= self._tiles:
                raise ArgumentError(
                    f"{name}@{max(cores)}: there is no core {max(cores)}, the run has {self._tiles}",
                    remedy=f"name one of 0..{self._tiles - 1}",
                )

    def _look(self, point: Point, values: Sequence[Named], frame: Frame) -> None:
        self._tiles = max(self._tiles, frame.launch.tiles)
        for each in values:
            if each.name in self._cores:
                self._tell(point, each, frame.regs[each.slot], self._cores[each.name], frame)

    def _tell(self, point: Point, each: Named, value: Value, chosen: set[int] | None, frame: Frame) -> None:
        groups: dict[bytes, list[tuple[int, int]]] = {}
        lanes = lanes_of(value)
        for row, core in enumerate(frame.cores.tolist()):
            if chosen is not None and core not in chosen:
                continue
            now = _fingerprint(lanes, value, row)
            if self._last.get((each.value, core)) == now:
                continue
            self._last[each.value, core] = now
            groups.setdefault(now, []).append((row, core))
        parts = list(groups.values())
        for part in parts[:GROUPS]:
            self._report(point, each, lanes, value, part, frame)
        if len(parts) > GROUPS:
            rest = tuple(core for part in parts[GROUPS:] for _, core in part)
            text = f"another value on each; watch {each.name}@{rest[0]} for one of them"
            self._add(Change(each.name, point.site.location, point.function, rest, (), (), "", text))

    def _report(
        self,
        point: Point,
        each: Named,
        lanes: Lanes | None,
        value: Value,
        part: Sequence[tuple[int, int]],
        frame: Frame,
    ) -> None:
        row = part[0][0]
        shape = () if lanes is None else lanes.shape
        kind = each.value.type
        dtype = str(getattr(kind, "element_type", kind))
        text = described(value, row) if lanes is None else value_text(lanes, row)
        cores = tuple(core for _, core in part)
        around = tuple(loop for loop in iteration_of(point, frame, row) if loop[0] != each.name)
        self._add(Change(each.name, point.site.location, point.function, cores, around, shape, dtype, text))

    def _add(self, change: Change) -> None:
        self.changes.append(change)
        self.tell(change)


def _fingerprint(lanes: Lanes | None, value: Value, row: int) -> bytes:
    """Bytes that are equal for equal values."""
    if lanes is None:
        return described(value, row).encode()
    undefined = b"" if lanes.undefined is None else lanes.undefined[_row(lanes, row)].tobytes()
    return b"%r" % (lanes.values.shape[1:],) + lanes.values[_row(lanes, row)].tobytes() + undefined


def _row(lanes: Lanes, row: int) -> int:
    return row if len(lanes.values) > 1 else 0


def value_text(lanes: Lanes, row: int) -> str:
    """A value as numpy prints it; undefined elements as ``?``."""
    values: Array = lanes.values[_row(lanes, row)]
    undefined = None if lanes.undefined is None else lanes.undefined[_row(lanes, row)]
    shown = wide(values) if values.dtype != np.bool_ else values
    if undefined is not None and undefined.any():
        masked = np.ma.masked_array(shown, undefined)
        with np.printoptions(threshold=THRESHOLD, edgeitems=EDGE):
            return str(masked).replace("--", "?")
    if not values.ndim:
        return f"{float(shown):.9g}" if is_float(values.dtype) else str(shown)
    return np.array2string(shown, threshold=THRESHOLD, edgeitems=EDGE, separator=", ")


def described(value: Value, row: int) -> str:
    """A value that is no number and no tensor."""
    if isinstance(value, View):
        where = "scratchpad" if value.local else "global"
        sizes = [on_core(size, row) for size in value.sizes]
        strides = [on_core(stride, row) for stride in value.strides]
        return f"view of {where} memory at element {on_core(value.offset, row)}, sizes {sizes}, strides {strides}"
    if isinstance(value, DistributedView):
        return f"distributed view of {len(value.partitions)} partitions, sizes {list(value.sizes)}"
    if isinstance(value, Tile):
        at = [on_core(each, row) for each in value.base]
        return f"tile of %{value.view.name} at {at}, {'x'.join(map(str, value.pattern.shape))}"
    if isinstance(value, IndirectTile):
        return f"indirect tile of %{value.view.name}, {'x'.join(map(str, value.pattern.shape))}"
    return type(value).__name__


def ranges(cores: Sequence[int]) -> str:
    """``core 5``, ``cores 0..31``, ``cores 0..3, 8``."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and parts[-1][-1] == core - 1:
            parts[-1][1:] = [core]
        else:
            parts.append([core])
    texts = [f"{part[0]}..{part[1]}" if len(part) > 1 else str(part[0]) for part in parts]
    return f"core{'s' * (len(cores) > 1)} {', '.join(texts)}"


__all__ = ["Change", "Watch", "ranges"]
