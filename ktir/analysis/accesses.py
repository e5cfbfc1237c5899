"""What is recorded of a kernel, for all cores at once: what questions of bounds, races and coverage are asked of.

Words. view: a tensor in memory, as ``construct_memory_view`` says. tile: the coordinates of a view that one access
touches. buffer: memory that a view's pointer belongs to. launch: one run of a kernel on its grid; the module
:mod:`ktir.analysis.launches` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    ContainerType,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
)
from xdsl.ir import Attribute, Operation

from ktir.analysis.ranges import Frame, Integers, Symbol, Value
from ktir.dialect import ktdp
from ktir.dialect.ktdp.shares import ShareOperation

if TYPE_CHECKING:
    from ktir.analysis.footprint import Footprint


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory with a size: an argument or an allocation. ``bytes`` None: the size is not known."""

    name: str
    operation: Operation | None
    bytes: int | None = None


@dataclass(frozen=True, eq=False)
class Owned:
    """The coordinates a partition owns: the half-open ranges of ``box``, or of these the ``points`` given by row."""

    box: tuple[tuple[int, int], ...]
    points: Integers | None = None

    @cached_property
    def members(self) -> frozenset[tuple[int, ...]]:
        """Every coordinate."""
        points = product(*(range(*ends) for ends in self.box)) if self.points is None else self.points.tolist()
        return frozenset(tuple(point) for point in points)

    def meets(self, other: Owned) -> bool:
        """Whether the two share a coordinate."""
        boxes = zip(self.box, other.box, strict=True)
        if not all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in boxes):
            return False
        return self.points is other.points is None or not self.members.isdisjoint(other.members)


@dataclass(frozen=True, eq=False)
class View:
    """A view's address arithmetic, in elements. ``owner``: the core whose scratchpad it is in, None: its own.

    Along its ``ragged`` dimensions a tile may reach beyond the end: what lies there is undefined, and never stored.
    """

    operation: Operation
    offset: Value
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    space: Literal["global", "ct_local"]
    owner: int | None
    element: Attribute
    owned: Owned | None
    ragged: frozenset[int]
    frame: Frame

    @property
    def element_bytes(self) -> int:
        return element_bytes(self.element)

    @property
    def name(self) -> str:
        return name_of(self.operation)


@dataclass(frozen=True, eq=False)
class DistributedView:
    """Partitions that share one coordinate space; each owns its part of it."""

    operation: Operation
    partitions: tuple[View, ...]
    element: Attribute

    @property
    def name(self) -> str:
        return name_of(self.operation)


@dataclass(frozen=True, eq=False)
class Tile:
    """The coordinates ``lower[d] <= c[d] <= upper[d]`` of ``view``, or where ``steps`` is given ``lower`` plus each of
    its rows. ``shape`` is the type's; ``touched`` the shape that the set and the order give, where they are constant.
    ``lookups`` are the reads of index views that an access makes first; each of them ``is_lookup``. The ends are inside
    the view along ragged dimensions; whether the tile goes on beyond them is ``may_pass_the_end``.
    """

    operation: Operation
    view: View | DistributedView
    lower: tuple[Value, ...]
    upper: tuple[Value, ...]
    shape: tuple[int, ...]
    touched: tuple[int, ...] | None = None
    count: int | None = None
    steps: Integers | None = None
    lookups: tuple[Tile, ...] = ()
    is_lookup: bool = False
    may_pass_the_end: bool = False
    exact: bool = True


@dataclass(frozen=True, eq=False)
class Loop:
    """An ``scf.for``; ``trips`` per point of ``frame``."""

    operation: Operation
    frame: Frame
    step: Value
    trips: Value


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store. ``order`` counts operations in program order; ``loops`` enclose it, the outermost first."""

    operation: Operation
    kind: Literal["read", "write"]
    tile: Tile
    frame: Frame
    order: int
    loops: tuple[Loop, ...]

    @property
    def views(self) -> tuple[View, ...]:
        """The view it goes through, or the partitions of it."""
        view = self.tile.view
        return view.partitions if isinstance(view, DistributedView) else (view,)

    @cached_property
    def footprints(self) -> list[Footprint] | None:
        """Where it goes, one footprint for each view it reaches; None where even the region is not known."""
        from ktir.analysis.footprint import footprints

        return footprints(self)


@dataclass(frozen=True, eq=False)
class Exchange:
    """A future that is taken. ``produced`` and ``taken`` count operations in program order, as ``Access.order`` does:
    where the contribution is complete, and where the taker waits for it."""

    taker: ktdp.InterTileConsumeOp | ktdp.InterTileReduceOp | ShareOperation
    produced: int
    taken: int
    loops: tuple[Loop, ...]
    runs_everywhere: bool


@dataclass(frozen=True, eq=False)
class Fault:
    """Something that the arithmetic itself shows to be wrong at some point."""

    operation: Operation
    code: str
    message: str
    remedy: str
    certain: bool


@dataclass(eq=False)
class Launch:
    """One run of ``kernel``. ``spans`` gives for each loop the orders of its first and last operation; ``filled`` are
    the buffers that the host has written before, ``values`` what is promised of the integers in them, half-open.
    ``moment`` counts what the host does. What came before is not known of a launch that ``is_alone``."""

    kernel: func.FuncOp
    grid: tuple[int, ...]
    number: int
    buffers: Mapping[Symbol, Buffer]
    accesses: list[Access] = field(default_factory=list[Access])
    views: list[View] = field(default_factory=list[View])
    distributed: list[DistributedView] = field(default_factory=list[DistributedView])
    tiles: list[Tile] = field(default_factory=list[Tile])
    loops: list[Loop] = field(default_factory=list[Loop])
    spans: dict[Loop, tuple[int, int]] = field(default_factory=dict[Loop, tuple[int, int]])
    faults: list[Fault] = field(default_factory=list[Fault])
    undecided: list[tuple[Operation, str]] = field(default_factory=list[tuple[Operation, str]])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    filled: frozenset[Buffer] = frozenset()
    values: Mapping[Buffer, tuple[int, int]] = field(default_factory=dict[Buffer, "tuple[int, int]"])
    is_alone: bool = False
    moment: int = 0

    @property
    def cores(self) -> int:
        return prod(self.grid)

    @property
    def name(self) -> str:
        return self.kernel.sym_name.data


Known: TypeAlias = "Value | View | DistributedView | Tile | Buffer"


def element_bytes(element: Attribute) -> int:
    """Bytes of one element in memory; an i1 takes one, an index four."""
    if isinstance(element, IndexType):
        return 4
    return max(1, cast(int, getattr(element, "bitwidth", 8)) // 8)


def element_of(type_: Attribute) -> Attribute:
    """The element type of a memref or tensor."""
    return cast("ContainerType[Attribute]", type_).get_element_type()


def name_of(operation: Operation) -> str:
    """What the text calls the first result of an operation."""
    hint = operation.results[0].name_hint if operation.results else None
    return f"%{hint}" if hint else "the view"


def grid_of(kernel: func.FuncOp) -> tuple[int, ...] | None:
    """The grid a function declares, as it is written, or None where it declares none."""
    grid = kernel.attributes.get("grid")
    if isinstance(grid, DenseArrayBase):
        return tuple(int(v) for v in grid.get_values())
    if not isinstance(grid, ArrayAttr):
        return None
    return tuple(e.value.data for e in cast("ArrayAttr[Attribute]", grid) if isinstance(e, IntegerAttr))


def legal(grid: Sequence[int]) -> bool:
    """Whether cores can be numbered along a grid."""
    return bool(grid) and all(extent > 0 for extent in grid) and prod(grid) <= 65536
