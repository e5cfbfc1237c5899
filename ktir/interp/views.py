"""Views of memory, and the tiles that are accessed through them.

Words. *view*: a window on memory with sizes and strides, all in elements of its type. *partition*: a view that is part
of a distributed view, addressed there by global coordinates. *tile*: the coordinates an access touches, per core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from xdsl.ir.affine import AffineSet

from ktir.interp.expressions import Pattern
from ktir.interp.numerics import Array, ElementType, Scalar
from ktir.interp.values import Frame, Site, rows_of_scalars
from ktir.machine.memory_arena import Arena


@dataclass(frozen=True, slots=True)
class View:
    """A view. ``core`` is the compute tile whose scratchpad is meant, None the executing one's own.

    ``lows`` are the global coordinates of its first element where it is a partition; ``owned`` is its coordinate set
    with the values of its symbols. ``padding`` marks the elements, counted from the view's first, that stand for none
    of the tensor. ``argument`` is the argument that the offset is, if it is one. ``ragged`` are the dimensions whose
    sizes are symbols of the coordinate set.
    """

    local: bool
    core: int | None
    offset: Scalar
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    element: ElementType
    name: str
    site: Site
    owned: AffineSet | None = None
    symbols: tuple[int, ...] = ()
    padding: Array | None = None
    argument: str | None = None
    ragged: tuple[int, ...] = ()
    lent: Arena | None = None

    def rows(self, rows: Array, n: int) -> View:
        if all(isinstance(each, int) for each in (self.offset, *self.sizes, *self.strides)):
            return self
        (offset,) = rows_of_scalars((self.offset,), rows, n)
        return replace(
            self,
            offset=offset,
            sizes=rows_of_scalars(self.sizes, rows, n),
            strides=rows_of_scalars(self.strides, rows, n),
        )

    def start(self, frame: Frame) -> tuple[Arena, Scalar]:
        """The arena and the place of the first element."""
        memory = frame.run.memory
        if self.lent is not None:
            return self.lent, self.offset
        if not self.local:
            return memory.shared, self.offset
        return memory.local, self.owner(frame) * (memory.span // self.element.itemsize) + self.offset

    def owner(self, frame: Frame) -> Scalar:
        """The core whose scratchpad is meant."""
        if self.core is not None:
            return self.core
        return int(frame.cores[0]) if frame.n == 1 else frame.cores

    def is_remote(self, frame: Frame) -> bool:
        """Whether some core of the frame looks into a scratchpad that is not its own."""
        return self.local and self.core is not None and bool((frame.cores != self.core).any())


@dataclass(frozen=True, slots=True)
class Partition:
    """A view and what it owns of a distributed view: the box ``lows`` .. ``stops``, thinned out by ``set``."""

    view: View
    lows: tuple[int, ...]
    stops: tuple[int, ...]
    set: AffineSet | None


@dataclass(frozen=True, slots=True)
class DistributedView:
    """Several views under one system of global coordinates."""

    partitions: tuple[Partition, ...]
    sizes: tuple[Any, ...]
    element: ElementType
    name: str

    def rows(self, rows: Array, n: int) -> DistributedView:
        views = [each.view.rows(rows, n) for each in self.partitions]
        if all(view is each.view for view, each in zip(views, self.partitions, strict=True)):
            return self
        partitions = [replace(each, view=view) for view, each in zip(views, self.partitions, strict=True)]
        return replace(self, partitions=tuple(partitions))


@dataclass(frozen=True, slots=True)
class Tile:
    """Coordinates ``base + p`` for the points p of a pattern."""

    view: View | DistributedView
    base: tuple[Scalar, ...]
    pattern: Pattern

    def rows(self, rows: Array, n: int) -> Tile:
        return Tile(self.view.rows(rows, n), rows_of_scalars(self.base, rows, n), self.pattern)


@dataclass(frozen=True, slots=True)
class IndirectTile:
    """Coordinates given one by one: per dimension functions of the captured values and of the points of a pattern,
    looked up in an index view where there is one."""

    view: View | DistributedView
    pattern: Pattern
    captured: tuple[Scalar, ...]
    subscripts: tuple[tuple[View | None, tuple[Any, ...]], ...]

    def rows(self, rows: Array, n: int) -> IndirectTile:
        return IndirectTile(
            self.view.rows(rows, n),
            self.pattern,
            rows_of_scalars(self.captured, rows, n),
            tuple((None if view is None else view.rows(rows, n), maps) for view, maps in self.subscripts),
        )
