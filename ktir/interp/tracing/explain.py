"""What one core reads and writes: every load and store, totals for each tensor, and a picture of the part it touches.

Words. *tensor*: an argument or buffer in global memory, or a view of a scratchpad. *share*: the part of a tensor's
bytes that the core touches at least once. In a picture ``.`` stands for elements it does not touch, ``r`` for elements
it reads, ``w`` writes, ``b`` both, capital letters for cells it touches whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ktir.errors import ArgumentError
from ktir.interp.numerics import Array
from ktir.interp.observation import Point
from ktir.interp.tracing.accesses import Touch, looked_up, pieces_of, tile_at, touches, view_name
from ktir.interp.tracing.references import Iteration, iteration_of
from ktir.interp.tracing.trace import iteration_text
from ktir.interp.tracing.watch import ranges
from ktir.interp.values import Frame
from ktir.location import location_data

READ, WRITTEN = np.uint8(1), np.uint8(2)
PICTURE_ROWS, PICTURE_COLUMNS = 16, 64
UNNAMED_BUFFER = "buffer"
"""What buffers of host programs without a name are called."""
LISTED = 4
"""Executions of an operation that the text lists unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Access:
    """One execution of a load or store by the core, or of looking an index up. Bytes count from the tensor's start."""

    tensor: Tensor
    iteration: Iteration
    launch: int
    box: tuple[tuple[int, int], ...]
    nbytes: int
    first_byte: int
    last_byte: int
    address: int


@dataclass(slots=True)
class Accesses:
    """All executions of one operation on tensors of one name through one view."""

    point: Point
    kind: str
    name: str
    view: str
    argument: str | None
    each: list[Access] = field(default_factory=lambda: [])

    @property
    def nbytes(self) -> int:
        return sum(access.nbytes for access in self.each)


@dataclass(slots=True)
class Tensor:
    """What was touched of a tensor. ``marks`` has a byte for each element; ``shape`` and ``strides`` are the widest
    view's, which begins at element ``offset``."""

    name: str
    owner: int | None
    element: str
    itemsize: int
    start: int
    marks: Array
    offset: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    read: int = 0
    written: int = 0

    @property
    def space(self) -> str:
        """The memory it lies in."""
        return "global memory" if self.owner is None else f"scratchpad of core {self.owner}"

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.marks.size * self.itemsize

    def touched(self, what: np.uint8) -> int:
        """Bytes that were read or written at least once."""
        return int(np.count_nonzero(self.marks & what)) * self.itemsize

    def mark(self, places: Array, what: np.uint8) -> None:
        """Marks elements, counted from the tensor's start."""
        last = int(places.max())
        if last >= self.marks.size:
            self.marks = np.concatenate([self.marks, np.zeros(last + 1 - self.marks.size, np.uint8)])
        self.marks[places] |= what

    def widen(self, touch: Touch, first: int) -> None:
        """Takes the shape of a view that shows more of the tensor."""
        if prod(touch.sizes) > prod(self.shape or (0,)):
            self.offset, self.shape, self.strides = touch.offset - first, touch.sizes, touch.strides


class Explain:
    """Observes a run and notes the accesses of ``core``; ``listed`` bounds the executions of an operation that the text
    lists, None for all."""

    def __init__(self, core: int, listed: int | None = LISTED) -> None:
        self.core, self.listed = core, listed
        self._clear({})

    def _clear(self, names: Mapping[SSAValue, str]) -> None:
        self.accesses: list[Accesses] = []
        self.tensors: list[Tensor] = []
        self._by_operation: dict[tuple[Operation, str, str, str], Accesses] = {}
        self._by_place: dict[tuple[str, int | None, int, int], Tensor] = {}
        self._tiles = 0
        self._names = names

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        """Forgets an earlier run."""
        self._clear(names)
        if self.core < 0:
            raise ArgumentError(f"core {self.core} does not exist", remedy="cores count from 0")

    def entered(self, point: Point, frame: Frame) -> None:
        """No access."""

    def executed(self, point: Point, frame: Frame) -> None:
        self._tiles = max(self._tiles, frame.launch.tiles)
        tile = tile_at(point, frame)
        rows = np.nonzero(frame.cores == self.core)[0]
        if tile is None or not len(rows):
            return
        row = int(rows[0])
        for touch in looked_up(tile, frame, point.site, row):
            self._note(point, "index", touch, frame, row)
        for touch in touches(pieces_of(tile, frame, point.site), frame, row):
            self._note(point, "store" if point.op.name == "ktdp.store" else "load", touch, frame, row)

    def finish(self) -> None:
        """All was noted on the way."""

    def require_core(self) -> None:
        """Raises :class:`ArgumentError` where no launch had that many cores."""
        if self.core >= self._tiles:
            raise ArgumentError(
                f"there is no core {self.core}, the run has {self._tiles}", remedy=f"name one of 0..{self._tiles - 1}"
            )

    def _note(self, point: Point, kind: str, touch: Touch, frame: Frame, row: int) -> None:
        view = view_name(point, touch.view, self._names)
        tensor, first = self._tensor(touch, view)
        places = touch.places - first
        tensor.mark(places, WRITTEN if kind == "store" else READ)
        tensor.widen(touch, first)
        if kind == "store":
            tensor.written += touch.nbytes
        else:
            tensor.read += touch.nbytes
        key = (point.op, kind, tensor.name, view)
        found = self._by_operation.get(key)
        if found is None:
            found = self._by_operation[key] = Accesses(point, kind, tensor.name, view, touch.view.argument)
            self.accesses.append(found)
        low, high = touch.span
        iteration = iteration_of(point, frame, row)
        start = first * tensor.itemsize
        found.each.append(
            Access(tensor, iteration, frame.launch.number, touch.box(), touch.nbytes, low - start, high - start, low)
        )

    def _tensor(self, touch: Touch, view: str) -> tuple[Tensor, int]:
        """The tensor, and the element of its memory that it begins at."""
        size = touch.view.element.itemsize
        if touch.allocation is not None:
            first, extent = touch.allocation.start // size, touch.allocation.size // size
            name = touch.allocation.name
            name = f"{name}@{touch.allocation.start}" if name == UNNAMED_BUFFER else name
        else:
            name, first, extent = view, touch.offset, _reach(touch)
        key = (name, touch.owner, first, size)
        found = self._by_place.get(key)
        if found is None:
            marks = np.zeros(extent, np.uint8)
            found = Tensor(name, touch.owner, touch.view.element.name, size, first * size, marks)
            self._by_place[key] = found
            self.tensors.append(found)
        return found, first

    # ------------------------------------------------------------------------------------------------------------- text

    @property
    def data(self) -> dict[str, Any]:
        """Everything as JSON; boxes are pairs of lowest and highest coordinate, bytes count from the tensor's start."""
        return {
            "core": self.core,
            "accesses": [
                {
                    "location": location_data(each.point.site.location),
                    "function": each.point.function,
                    "kind": each.kind,
                    "tensor": each.name,
                    "view": each.view,
                    "argument": each.argument,
                    "bytes": each.nbytes,
                    "executions": [
                        {
                            "space": one.tensor.space,
                            "launch": one.launch,
                            "iteration": dict(one.iteration),
                            "coordinates": [list(pair) for pair in one.box],
                            "bytes": one.nbytes,
                            "first_byte": one.first_byte,
                            "last_byte": one.last_byte,
                            "address": one.address,
                        }
                        for one in each.each
                    ],
                }
                for each in self.accesses
            ],
            "tensors": [
                {
                    "name": each.name,
                    "space": each.space,
                    "dtype": each.element,
                    "shape": list(each.shape),
                    "bytes": each.size,
                    "bytes_read": each.read,
                    "bytes_written": each.written,
                    "share_read": each.touched(READ) / each.size,
                    "share_written": each.touched(WRITTEN) / each.size,
                    "picture": list(picture(each)),
                }
                for each in self.tensors
            ],
        }

    def __str__(self) -> str:
        if not self.accesses:
            return f"core {self.core} loads and stores nothing"
        lines = [f"core {self.core} loads and stores:"]
        for each in self.accesses:
            lines += ["", *self._operation(each)]
        for alike in _alike(self.tensors):
            lines += ["", *_described(alike)]
        total = sum(tensor.read for tensor in self.tensors), sum(tensor.written for tensor in self.tensors)
        return "\n".join([*lines, "", f"in all: {total[0]} bytes read, {total[1]} bytes written"])

    def _operation(self, each: Accesses) -> Iterator[str]:
        where = each.point.site.location
        names = ", ".join(value.name for value in each.point.values) or each.point.operands[0].name
        verb = {"load": f"loads {names} from", "store": f"stores {names} to", "index": "looks indices up in"}[each.kind]
        through = "" if each.name == each.view else f" through {each.view}"
        argument = f" ({each.argument})" if each.argument not in (None, each.name) else ""
        times = f"{len(each.each)} times, " if len(each.each) > 1 else ""
        yield f"{where or '@' + each.point.function}: {verb} {each.name}{argument}{through}: {times}{each.nbytes} bytes"
        shown = each.each if self.listed is None else each.each[: self.listed]
        texts = [(_box(one.box), f"bytes {one.first_byte}..{one.last_byte}", _when(one, each)) for one in shown]
        widths = [max(len(text[column]) for text in texts) for column in range(2)]
        for box, span, when in texts:
            yield f"    {box:<{widths[0]}}  {span:<{widths[1]}}  {when}".rstrip()
        if len(shown) < len(each.each):
            yield f"    and {len(each.each) - len(shown)} more"


def _reach(touch: Touch) -> int:
    """Elements from the first of a view to behind its last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(touch.sizes, touch.strides, strict=True) if size > 1)


def _box(box: tuple[tuple[int, int], ...]) -> str:
    return "[" + ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in box) + "]"


def _when(one: Access, each: Accesses) -> str:
    launches = {access.launch for access in each.each}
    parts = [f"launch {one.launch}"] if len(launches) > 1 else []
    parts += [one.tensor.space] if len({access.tensor.space for access in each.each}) > 1 else []
    return " ".join([*parts, iteration_text(one.iteration)])


def _alike(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Tensors in several scratchpads of which the same is touched, together."""
    found: dict[tuple[object, ...], list[Tensor]] = {}
    for each in tensors:
        name = each.name if each.owner is None else ""
        key = (name, each.element, each.shape, each.read, each.written, each.marks.tobytes())
        found.setdefault(key, []).append(each)
    return list(found.values())


def _described(alike: Sequence[Tensor]) -> Iterator[str]:
    tensor = alike[0]
    shape = "x".join(map(str, tensor.shape)) or str(tensor.marks.size)
    owners = [each.owner for each in alike if each.owner is not None]
    space = f"the scratchpads of {ranges(owners)}, each" if len(owners) > 1 else f"{tensor.space},"
    names = ", ".join(dict.fromkeys(each.name for each in alike))
    yield f"{names}: {shape} {tensor.element} in {space} {tensor.size} bytes"
    for verb, moved, what in (("reads", tensor.read, READ), ("writes", tensor.written, WRITTEN)):
        if moved:
            once = tensor.touched(what)
            times = f", {moved / once:.3g} times" if moved > once else ""
            yield f"  {verb} {moved} bytes: {100 * once / tensor.size:.3g} % of it{times}"
    yield from (f"  |{line}|" for line in picture(tensor))


def picture(tensor: Tensor) -> Iterator[str]:
    """Which part of a tensor is touched, as lines of text: rows from above, columns from the left."""
    matrix = _matrix(tensor)
    columns = list(_bands(matrix.shape[1], PICTURE_COLUMNS))
    for rows in _bands(matrix.shape[0], PICTURE_ROWS):
        yield "".join(_cell(matrix[rows, part]) for part in columns)


def _bands(extent: int, most: int) -> Iterator[slice]:
    """``extent`` cut into at most ``most`` parts of about the same size."""
    parts = min(extent, most)
    for part in range(parts):
        yield slice(part * extent // parts, (part + 1) * extent // parts)


def _matrix(tensor: Tensor) -> Array:
    """The marks of the widest view as rows and columns: the last dimension is columns, or, in sticks, all but the
    first."""
    if not tensor.shape or 0 in tensor.shape:
        return tensor.marks.reshape(1, -1)
    reach = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    marks = tensor.marks
    if reach >= marks.size or min(tensor.strides) < 0:
        return marks.reshape(1, -1)
    whole = np.lib.stride_tricks.as_strided(marks[tensor.offset :], tensor.shape, tensor.strides)
    if len(tensor.shape) == 1:
        return whole.reshape(1, -1)
    in_order = all(before >= after for before, after in zip(tensor.strides, tensor.strides[1:], strict=False))
    return whole.reshape(-1, tensor.shape[-1]) if in_order else whole.reshape(tensor.shape[0], -1)


def _cell(marks: Array) -> str:
    seen = np.bitwise_or.reduce(marks, axis=None)
    letter = ".rwb"[int(seen)]
    return letter.upper() if seen and marks.all() else letter


__all__ = ["Explain"]
