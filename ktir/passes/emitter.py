"""Where emitted operations go, and small values that are made of nothing: constants and index arithmetic.

Words. *scope*: a place of the kernel under construction, the function itself or the body of a loop in it, with the
iterations that it stands for. A value is emitted in the outermost scope that has all the loops it depends on, so what
does not change in a loop is computed before it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.rewriter import InsertPoint

from ktir.maths import affine


@dataclass(frozen=True, slots=True)
class Iterations:
    """``length`` iterations of one dimension, from ``number * tile + first`` on; no number counts as zero."""

    length: int
    tile: int
    number: SSAValue | None = None
    first: int = 0

    def start(self, values: list[SSAValue]) -> AffineExpr:
        """The first iteration as an expression over ``values``, to which the number is added when it is missing."""
        if self.number is None:
            return AffineConstantExpr(self.first)
        if self.number not in values:
            values.append(self.number)
        tiles = affine.mul(AffineDimExpr(values.index(self.number)), AffineConstantExpr(self.tile))
        return affine.add(tiles, AffineConstantExpr(self.first))

    def part(self, first: int, length: int) -> Iterations:
        """``length`` of these iterations, from number ``first`` of them on."""
        return Iterations(length, self.tile, self.number, self.first + first)


@dataclass(frozen=True, slots=True)
class TileValue:
    """A tile of a value of the kernel's body: a tensor with one dimension for each of ``names``."""

    tensor: SSAValue
    names: tuple[str, ...]
    depth: int


@dataclass
class Place:
    """Where the next operation goes; scopes in the same block share it."""

    point: InsertPoint


@dataclass
class Origin:
    """What is emitted now is for an operation with this location; scopes of one kernel share it."""

    location: LocationAttr = field(default_factory=UnknownLoc)

    @contextmanager
    def of(self, op: Operation) -> Generator[None]:
        """Until the context ends, what is emitted is for ``op``, if it has a location."""
        before = self.location
        self.location = before if isinstance(op.location, UnknownLoc) else op.location
        yield
        self.location = before


@dataclass
class Scope:
    """A place to emit to. ``opened`` are the dimensions whose iterations are set here."""

    at: Place
    opened: Mapping[str, Iterations]
    outer: Scope | None = None
    depth: int = 0
    tiles: dict[SSAValue, TileValue] = field(default_factory=dict[SSAValue, TileValue])
    origin: Origin = field(default_factory=Origin)

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def iterations(self, name: str) -> Iterations:
        """The iterations of a dimension that this scope stands for."""
        return next(scope.opened[name] for scope in self.chain() if name in scope.opened)

    def length(self, name: str) -> int:
        """Elements of a tile along a dimension."""
        return self.iterations(name).length

    def shape(self, names: Sequence[str]) -> tuple[int, ...]:
        """The shape of a tile with these dimensions."""
        return tuple(self.length(name) for name in names)

    def known(self, value: SSAValue) -> TileValue | None:
        """The tile of ``value`` if it has been emitted already."""
        return next((scope.tiles[value] for scope in self.chain() if value in scope.tiles), None)

    def home(self, names: Sequence[str], depth: int = 0) -> Scope:
        """The outermost scope, no further out than ``depth``, that sets the iterations of all of ``names``."""
        for scope in self.chain():
            if scope.depth <= depth or any(name in scope.opened for name in names):
                return scope
        return self

    def emit(self, op: Operation) -> SSAValue:
        """Insert ``op`` here; its first result."""
        self.place(op)
        return op.results[0]

    def place(self, op: Operation) -> None:
        """Insert an operation here, with the location of what it is for."""
        for each in op.walk():
            if isinstance(each.location, UnknownLoc):
                each.location = self.origin.location
        Builder(self.at.point).insert(op)

    def inner(self, opened: Mapping[str, Iterations], block: Block | None = None) -> Scope:
        """A scope inside this one: at the end of ``block``, or right here."""
        at = self.at if block is None else Place(InsertPoint.at_end(block))
        return Scope(at, opened, self, self.depth + 1, origin=self.origin)

    @contextmanager
    def around(self, loop: Operation) -> Generator[None]:
        """Emit ``loop`` here; until the context ends, what belongs in this scope goes before it."""
        self.place(loop)
        after, self.at.point = self.at.point, InsertPoint.before(loop)
        yield
        self.at.point = after


class IndexEmitter:
    """Index arithmetic in the function's own scope; constants stand at its top, shared, and operations on 0 and 1 that
    change nothing are left out."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._constants: dict[int, SSAValue] = {}

    def constant(self, value: int) -> SSAValue:
        """The index ``value``."""
        if value not in self._constants:
            self._constants[value] = self.at_top(arith.ConstantOp(IntegerAttr(value, IndexType())))
        return self._constants[value]

    def at_top(self, op: arith.ConstantOp) -> SSAValue:
        """Insert a constant before everything else."""
        block = self._scope.at.point.block
        first = block.first_op
        Builder(InsertPoint.at_end(block) if first is None else InsertPoint.before(first)).insert(op)
        return op.result

    def add(self, left: SSAValue, right: int | SSAValue) -> SSAValue:
        """The sum."""
        if isinstance(right, int):
            return left if right == 0 else self._scope.emit(arith.AddiOp(left, self.constant(right)))
        return self._scope.emit(arith.AddiOp(left, right))

    def times(self, left: SSAValue, right: int) -> SSAValue:
        """The product."""
        return left if right == 1 else self._scope.emit(arith.MuliOp(left, self.constant(right)))

    def divided(self, left: SSAValue, right: int) -> SSAValue:
        """The quotient of numbers that are not negative, rounded down."""
        return left if right == 1 else self._scope.emit(arith.DivUIOp(left, self.constant(right)))

    def remainder(self, left: SSAValue, right: int) -> SSAValue:
        """The remainder of numbers that are not negative."""
        return self._scope.emit(arith.RemUIOp(left, self.constant(right)))

    def least(self, left: SSAValue, right: int) -> SSAValue:
        """The lesser of two numbers that are not negative."""
        return self._scope.emit(arith.MinUIOp(left, self.constant(right)))
