"""Numbers about values: what a trace shows of them, and where two of them differ.

Words. *lanes*: the elements of a value for each core, as an array whose first axis is the cores, of extent 1 where all
have the same. *undefined*: elements that nobody wrote; they count apart and take no part in anything else.
*finite*: neither NaN nor infinite; smallest, largest and mean are those of the finite elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ktir.interp.numerics import Array, is_array
from ktir.interp.values import Tainted, Value


@dataclass(frozen=True, slots=True)
class Lanes:
    """``values`` as (cores or 1, shape..); ``undefined`` of the same shape, or None where all is defined."""

    values: Array
    undefined: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value on one core."""
        return self.values.shape[1:]

    def rows(self, rows: Array) -> Lanes:
        """Those of some rows of the frame."""
        if len(self.values) == 1:
            return self
        return Lanes(self.values[rows], None if self.undefined is None else self.undefined[rows])

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.undefined is None else self.undefined.nbytes)


def lanes_of(value: Value) -> Lanes | None:
    """The elements of a number or tensor; None for what is neither, such as a view."""
    if isinstance(value, Tainted):
        found = lanes_of(value.values)
        if found is None:
            return None
        return Lanes(
            found.values, np.broadcast_to(value.mask, np.broadcast_shapes(value.mask.shape, found.values.shape))
        )
    if isinstance(value, bool | int):
        return Lanes(np.array([int(value)]))
    return Lanes(value) if is_array(value) and value.ndim and value.dtype != np.object_ else None


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether elements have NaN and infinity, those of ml_dtypes included."""
    return dtype.kind not in "iub"


def wide(values: Array) -> Array:
    """Floats in a type that numpy is quick with, without rounding; bits of booleans as numbers."""
    if not is_float(values.dtype):
        return values.astype(np.uint8) if values.dtype == np.bool_ else values
    return values if values.dtype.name in ("float32", "float64") else values.astype(np.float32)


# ------------------------------------------------------------------------------------------------------------ summaries


@dataclass(slots=True)
class Summary:
    """Sums over everything that one value was on one core, or on many: see the words of this file."""

    elements: int = 0
    finite: int = 0
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    nan: int = 0
    inf: int = 0
    undefined: int = 0

    def add(self, other: Summary) -> None:
        """Joins what was seen elsewhere."""
        self.elements += other.elements
        self.finite += other.finite
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.total += other.total
        self.nan += other.nan
        self.inf += other.inf
        self.undefined += other.undefined

    @property
    def data(self) -> dict[str, float | int | None]:
        """As JSON; null for numbers that no element stands behind."""
        some = self.finite > 0
        return {
            "elements": self.elements,
            "min": self.low if some else None,
            "max": self.high if some else None,
            "mean": self.total / self.finite if some else None,
            "nan": self.nan,
            "inf": self.inf,
            "undefined": self.undefined,
        }


@dataclass(slots=True)
class Summaries:
    """A summary for each core that ran a point."""

    cores: dict[int, Summary] = field(default_factory=lambda: {})

    def add(self, lanes: Lanes, cores: Array) -> None:
        """Adds what a value is on some cores now."""
        each = summarise(lanes)
        for row, core in enumerate(cores.tolist()):
            self.cores.setdefault(core, Summary()).add(each[row if len(each) > 1 else 0])

    def whole(self) -> Summary:
        """All cores together."""
        total = Summary()
        for each in self.cores.values():
            total.add(each)
        return total


def summarise(lanes: Lanes) -> list[Summary]:
    """A summary for each row."""
    rows = len(lanes.values)
    values = wide(lanes.values).reshape(rows, -1)
    undefined = None if lanes.undefined is None else lanes.undefined.reshape(rows, -1)
    count = values.shape[1]
    if not count:
        return [Summary() for _ in range(rows)]
    totals = values.sum(axis=1, dtype=np.float64)
    if undefined is None and np.isfinite(totals).all():
        lows, highs = values.min(axis=1).tolist(), values.max(axis=1).tolist()
        numbers = zip(lows, highs, totals.tolist(), strict=True)
        return [Summary(count, count, low, high, total) for low, high, total in numbers]
    known = np.ones(values.shape, bool) if undefined is None else ~undefined
    nan, finite = np.isnan(values) & known, np.isfinite(values) & known
    return [_summary(values[row], known[row], nan[row], finite[row]) for row in range(rows)]


def _summary(values: Array, known: Array, nan: Array, finite: Array) -> Summary:
    good = values[finite]
    some = good.size > 0
    return Summary(
        elements=values.size,
        finite=good.size,
        low=good.min().item() if some else np.inf,
        high=good.max().item() if some else -np.inf,
        total=float(good.sum(dtype=np.float64)),
        nan=int(nan.sum()),
        inf=int((known & ~nan & ~finite).sum()),
        undefined=int((~known).sum()),
    )


# ------------------------------------------------------------------------------------------------------------ comparing


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|got - wanted| <= absolute + relative * |wanted|``; NaN equals NaN, an infinity only itself."""

    relative: float = 0.0
    absolute: float = 0.0

    def __str__(self) -> str:
        if not self.relative and not self.absolute:
            return "no difference"
        return f"{self.absolute:g} + {self.relative:g} * |wanted|"


USUAL: Mapping[str, Tolerance] = {
    "float16": Tolerance(1e-3, 1e-5),
    "bfloat16": Tolerance(1.6e-2, 1e-5),
    "float32": Tolerance(1.3e-6, 1e-5),
    "float64": Tolerance(1e-7, 1e-7),
}
"""What ``torch.testing.assert_close`` allows, by element type; others have to be equal."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first element of a value that is wrong, how many are, and the largest difference of finite ones."""

    row: int
    coordinates: tuple[int, ...]
    got: float | int
    wanted: float | int
    wrong: int
    elements: int
    largest: float


def difference(got: Lanes, wanted: Lanes, tolerance: Tolerance) -> Difference | None:
    """Where ``got`` is not what is wanted; None where it is. Both have the same shape, rows may be 1 for all."""
    if _same_bits(got, wanted):
        return None
    left, right = np.broadcast_arrays(got.values, wanted.values)
    wrong = unequal(left, right, tolerance)
    for undefined in (got.undefined, wanted.undefined):
        if undefined is not None:
            wrong = wrong & ~undefined
    if not wrong.any():
        return None
    place = tuple(int(axis) for axis in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return Difference(
        place[0],
        place[1:],
        number(left[place]),
        number(right[place]),
        int(wrong.sum()),
        wrong.size,
        largest(left[wrong], right[wrong]),
    )


def _same_bits(got: Lanes, wanted: Lanes) -> bool:
    left, right = got.values, wanted.values
    return left is right or (
        left.dtype == right.dtype and left.shape == right.shape and np.array_equal(_bits(left), _bits(right))
    )


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(np.uint8)


def unequal(got: Array, wanted: Array, tolerance: Tolerance) -> Array:
    """Which elements are wrong. Integers have to be equal whatever the tolerance."""
    left, right = wide(got), wide(wanted)
    if not is_float(left.dtype) and not is_float(right.dtype):
        return np.asarray(left != right)
    with np.errstate(all="ignore"):
        left, right = left.astype(np.float64), right.astype(np.float64)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        if tolerance.relative or tolerance.absolute:
            near = np.abs(left - right) <= tolerance.absolute + tolerance.relative * np.abs(right)
            same |= near & np.isfinite(left) & np.isfinite(right)
    return ~same


def largest(left: Array, right: Array) -> float:
    """The largest difference of finite numbers; infinite where there is none."""
    with np.errstate(all="ignore"):
        apart = np.abs(wide(left).astype(np.float64) - wide(right).astype(np.float64))
    good = apart[np.isfinite(apart)]
    return float(good.max()) if good.size else float("inf")


def number(value: Any) -> float | int:
    """One element as a Python number."""
    array = np.asarray(value)
    return float(wide(array)) if is_float(array.dtype) else int(array)
