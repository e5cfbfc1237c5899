"""Builds small dataflow programs for the tests: declarations, and unit programs written as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    FileLineColLoc,
    IndexType,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f16,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineMap, AffineSet

from ktir.dialect import dfp

Index = int | SSAValue


@dataclass
class Memory:
    """Device memory for a run: plain bytes."""

    bytes: np.ndarray

    @classmethod
    def of(cls, size: int, *placed: tuple[int, np.ndarray]) -> Memory:
        """Zeros of ``size`` bytes with arrays placed at byte offsets."""
        memory = cls(np.zeros(size, np.uint8))
        for offset, array in placed:
            raw = np.ascontiguousarray(array).view(np.uint8).ravel()
            memory.bytes[offset : offset + raw.size] = raw
        return memory

    def read(self, offset: int, dtype: object, shape: Sequence[int]) -> np.ndarray:
        """The array at byte ``offset``."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        return self.bytes[offset : offset + size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class Condition:
    """Constraints that hold together."""

    constraints: tuple[tuple[AffineConstraintKind, AffineExpr, AffineExpr], ...]

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.constraints + other.constraints)


@dataclass(frozen=True)
class Affine:
    """An affine expression that can be compared: ``(i % 2).eq(0)``."""

    expression: AffineExpr

    def _with(self, operation: str, other: Affine | int) -> Affine:
        right = other.expression if isinstance(other, Affine) else other
        return Affine(getattr(self.expression, operation)(right))

    def __add__(self, other: Affine | int) -> Affine:
        return self._with("__add__", other)

    def __sub__(self, other: Affine | int) -> Affine:
        return self._with("__sub__", other)

    def __mul__(self, other: int) -> Affine:
        return self._with("__mul__", other)

    def __mod__(self, other: int) -> Affine:
        return self._with("__mod__", other)

    def __floordiv__(self, other: int) -> Affine:
        return self._with("__floordiv__", other)

    def eq(self, value: int) -> Condition:
        return Condition(((AffineConstraintKind.eq, self.expression, AffineExpr.constant(value)),))

    def ge(self, value: int) -> Condition:
        return Condition(((AffineConstraintKind.ge, self.expression, AffineExpr.constant(value)),))

    def le(self, value: int) -> Condition:
        return Condition(((AffineConstraintKind.le, self.expression, AffineExpr.constant(value)),))


class Unit:
    """Adds operations to the program of one unit."""

    def __init__(self, builder: Builder, core: SSAValue, lines: Iterator[int]) -> None:
        self.builder, self.core, self.lines = builder, core, lines

    def add(self, op: Operation) -> Operation:
        """Inserts ``op`` and gives it a line of its own in the file ``unit``."""
        op.location = FileLineColLoc(StringAttr("unit"), IntAttr(next(self.lines)), IntAttr(1))
        return self.builder.insert(op)

    def index(self, value: Index) -> SSAValue:
        """``value`` as an SSA value."""
        if isinstance(value, SSAValue):
            return value
        return self.builder.insert(arith.ConstantOp(IntegerAttr(value, IndexType()))).result

    def table(self, *values: int) -> SSAValue:
        """A constant of the core."""
        return self.add(dfp.TableOp(self.core, values)).results[0]

    def apply(self, map: Callable[..., object], *operands: Index) -> SSAValue:
        """An affine function of index values."""
        dimensions = [AffineExpr.dimension(number) for number in range(len(operands))]
        attribute = AffineMapAttr(AffineMap(len(operands), 0, (map(*dimensions),)))
        values = [self.index(operand) for operand in operands]
        return self.builder.insert(affine.ApplyOp(values, attribute)).result

    @contextmanager
    def loop(self, count: Index) -> Iterator[SSAValue]:
        """A counted loop; what is added inside is its body."""
        op = self.add(dfp.ForOp(self.index(count)))
        outside = self.builder
        self.builder = Builder(InsertPoint.at_end(op.regions[0].block))
        yield op.regions[0].block.args[0]
        self.builder = outside

    @contextmanager
    def when(self, condition: Callable[..., Condition], *operands: Index) -> Iterator[None]:
        """A condition on index values; what is added inside happens where it holds."""
        dimensions = [Affine(AffineExpr.dimension(number)) for number in range(len(operands))]
        found = condition(*dimensions)
        constraints = tuple(AffineConstraintExpr(*each) for each in found.constraints)
        op = self.add(dfp.IfOp(AffineSet(len(operands), 0, constraints), [self.index(each) for each in operands]))
        outside = self.builder
        self.builder = Builder(InsertPoint.at_end(op.regions[0].block))
        yield
        self.builder = outside

    def copy(self, source, source_offset, target, target_offset, counts, src, dst, element=f16, slot=0):
        self.add(
            dfp.CopyOp(
                source,
                self.index(source_offset),
                target,
                self.index(target_offset),
                counts=counts,
                src_strides=src,
                dst_strides=dst,
                element=element,
                slot=slot,
            )
        )

    def move(self, source, source_offset, target, target_offset, count, element=f16, width=2):
        """Copies ``count`` elements that follow each other."""
        self.copy(source, source_offset, target, target_offset, [count], [width], [width], element)

    def stream(self, source, offset, queue, counts, strides, element=f16, slot=0):
        self.add(
            dfp.StreamOp(source, self.index(offset), queue, counts=counts, strides=strides, element=element, slot=slot)
        )

    def drain(self, queue, target, offset, counts, strides, element=f16):
        self.add(dfp.DrainOp(queue, target, self.index(offset), counts=counts, strides=strides, element=element))

    def send(self, source, offset, destination, counts, strides, element=f16):
        self.add(
            dfp.SendOp(
                source, self.index(offset), self.index(destination), counts=counts, strides=strides, element=element
            )
        )

    def multicast(self, source, offset, destinations, counts, strides, element=f16):
        cores = [self.index(core) for core in destinations]
        self.add(dfp.MulticastOp(source, self.index(offset), cores, counts=counts, strides=strides, element=element))

    def chain(self, source, source_offset, target, target_offset, previous, next, counts, src, dst, **keys):
        places = (source, self.index(source_offset), target, self.index(target_offset))
        self.add(
            dfp.ChainOp(
                *places,
                self.index(previous),
                self.index(next),
                counts=counts,
                src_strides=src,
                dst_strides=dst,
                **{"element": f16, **keys},
            )
        )

    def receive(self, target, offset, source, counts, strides, element=f16):
        self.add(
            dfp.ReceiveOp(
                target, self.index(offset), self.index(source), counts=counts, strides=strides, element=element
            )
        )

    def map(self, inputs, output, shape, types: Sequence[Attribute], body: Callable[..., SSAValue]):
        self.add(dfp.SfuMapOp(inputs, output, shape, region(types, body)))

    def reduce(self, input, output, sizes, types, body, initial=None):
        self._fold(dfp.SfuReduceOp, input, output, sizes, types, body, initial)

    def scan(self, input, output, sizes, types, body, initial=None):
        self._fold(dfp.SfuScanOp, input, output, sizes, types, body, initial)

    def _fold(self, kind, input, output, sizes, types, body, initial):
        outer, length, inner = sizes
        made = region(types, body)
        self.add(kind(input, output, outer=outer, length=length, inner=inner, body=made, initial=initial))


def region(types: Sequence[Attribute], body: Callable[..., object]) -> Region:
    """A region whose body is written as a function of (builder, *arguments) that returns the value to yield."""
    block = Block(arg_types=types)
    builder = Builder(InsertPoint.at_end(block))
    result = body(builder, *block.args)
    builder.insert(dfp.YieldOp(result))
    return Region(block)


def binary(op: type) -> Callable[..., SSAValue]:
    """The region body that applies a two-operand operation."""
    return lambda builder, left, right: builder.insert(op(left, right)).result


class Program:
    """A ``dfp.program`` under construction."""

    def __init__(self, cores: int = 1, machine: str = "spyre") -> None:
        self.cores = cores
        self.op = dfp.ProgramOp("p", machine, cores)
        self.builder = Builder(InsertPoint.at_end(self.op.body.block))
        self.module = ModuleOp([self.op])
        self.lines = iter(range(1, 10_000))

    def _declare(self, op: Operation) -> SSAValue:
        op.location = FileLineColLoc(StringAttr("unit"), IntAttr(next(self.lines)), IntAttr(1))
        return self.builder.insert(op).results[0]

    def symbol(self, name: str, **keys) -> SSAValue:
        return self._declare(dfp.SymbolOp(name, **keys))

    def ddr(self, offset: int, size: int, name: str = "d", **keys) -> SSAValue:
        return self._declare(dfp.BufferOp(name, "ddr", offset, size, **keys))

    def lx(self, offset: int, size: int, name: str = "b", **keys) -> SSAValue:
        return self._declare(dfp.BufferOp(name, "lx", offset, size, **keys))

    def queue(self, source: str, target: str, depth: int = 16, name: str | None = None) -> SSAValue:
        return self._declare(dfp.QueueOp(name or f"{source}_{target}", source, target, depth))

    @contextmanager
    def unit(self, name: str, cores: Sequence[int] | None = None, corelet: int = 0) -> Iterator[Unit]:
        op = dfp.UnitOp(name, cores if cores is not None else range(self.cores), corelet)
        op.location = FileLineColLoc(StringAttr("unit"), IntAttr(next(self.lines)), IntAttr(1))
        self.builder.insert(op)
        yield Unit(Builder(InsertPoint.at_end(op.body.block)), op.body.block.args[0], self.lines)

    def barrier(self, unit: Unit, launch: int) -> None:
        unit.add(dfp.BarrierOp(launch))

    def find(self, kind: type, number: int = 0) -> Operation:
        """The operation of that class, counted in order of the text."""
        return [op for op in self.op.walk() if isinstance(op, kind)][number]


def matmul_program(m: int, k: int, n: int, *, depth: int = 16, slots: int = 2, cores: int = 1) -> Program:
    """``c[m, n] = a[m, k] @ b[k, n]`` in f16, rows of ``a`` and ``c`` split over the cores.

    Device memory holds a, b, c one behind the other, row-major. Blocks of 64 of k are loaded to a ring of tiles.
    """
    rows = m // cores
    p = Program(cores)
    a = p.ddr(0, m * k * 2, "a")
    b = p.ddr(m * k * 2, k * n * 2, "b")
    c = p.ddr((m * k + k * n) * 2, m * n * 2, "c")
    a_bytes, b_bytes, c_bytes = rows * 128, 64 * n * 2, rows * n * 2
    a_tile = p.lx(0, a_bytes, "a_tile", slots=slots, producer="hbm_ld", consumers=["lx_ld"])
    b_tile = p.lx(slots * a_bytes, b_bytes, "b_tile", slots=slots, producer="hbm_ld", consumers=["lx_ld"])
    c_tile = p.lx(slots * (a_bytes + b_bytes), c_bytes, "c_tile", slots=1, producer="lx_st", consumers=["hbm_st"])
    feed, out = p.queue("lx_ld", "pe", depth), p.queue("pe", "lx_st", depth)
    blocks = k // 64
    own = [core * rows for core in range(cores)]
    with p.unit("hbm_ld") as u:
        first = u.table(*own)
        with u.loop(blocks) as i:
            u.add(dfp.ReserveOp(a_tile))
            u.copy(
                a,
                u.apply(lambda i, r: i * 128 + r * (k * 2), i, first),
                a_tile,
                0,
                [rows, 64],
                [k * 2, 2],
                [128, 2],
            )
            u.add(dfp.CommitOp(a_tile))
            u.add(dfp.ReserveOp(b_tile))
            u.move(b, u.apply(lambda i: i * (64 * n * 2), i), b_tile, 0, 64 * n)
            u.add(dfp.CommitOp(b_tile))
    with p.unit("lx_ld") as u, u.loop(blocks):
        u.add(dfp.AcquireOp(b_tile))
        u.stream(b_tile, 0, feed, [64 * n], [2])
        u.add(dfp.ReleaseOp(b_tile))
        u.add(dfp.AcquireOp(a_tile))
        u.stream(a_tile, 0, feed, [rows, 64], [128, 2])
        u.add(dfp.ReleaseOp(a_tile))
    with p.unit("pe") as u:
        u.add(dfp.PeClearOp(rows=rows, n=n))
        with u.loop(blocks):
            u.add(dfp.PeLoadOp(feed, k=64, n=n, element=f16))
            u.add(dfp.PeMacOp(feed, rows=rows, k=64, n=n, element=f16))
        u.add(dfp.PeEmitOp(out, rows=rows, n=n, element=f16))
    with p.unit("lx_st") as u:
        u.add(dfp.ReserveOp(c_tile))
        u.drain(out, c_tile, 0, [rows, n], [n * 2, 2])
        u.add(dfp.CommitOp(c_tile))
    with p.unit("hbm_st") as u:
        first = u.table(*own)
        u.add(dfp.AcquireOp(c_tile))
        u.copy(c_tile, 0, c, u.apply(lambda r: r * (n * 2), first), [rows, n], [n * 2, 2], [n * 2, 2])
        u.add(dfp.ReleaseOp(c_tile))
    return p


def pointwise_program(
    tiles: int,
    *,
    op: type = arith.AddfOp,
    depth: int = 16,
    slots: int = 2,
    cores: int = 1,
    launches: int = 1,
) -> Program:
    """``z = op(x, y)`` on ``cores * tiles * 1024`` f16 elements, ``launches`` times over, in chunks of 16 vectors."""
    p = Program(cores)
    share = tiles * 2048
    x = p.ddr(0, cores * share, "x")
    y = p.ddr(cores * share, cores * share, "y")
    z = p.ddr(2 * cores * share, cores * share, "z")
    x_tile = p.lx(0, 2048, "x_tile", slots=slots, producer="hbm_ld", consumers=["lx_ld"])
    y_tile = p.lx(slots * 2048, 2048, "y_tile", slots=slots, producer="hbm_ld", consumers=["lx_ld"])
    z_tile = p.lx(2 * slots * 2048, 2048, "z_tile", slots=slots, producer="lx_st", consumers=["hbm_st"])
    qx, qy = p.queue("lx_ld", "sfu", depth, "qx"), p.queue("lx_ld", "sfu", depth, "qy")
    qz = p.queue("sfu", "lx_st", depth, "qz")
    starts = [core * share for core in range(cores)]
    for name in ("hbm_ld", "lx_ld", "sfu", "lx_st", "hbm_st"):
        with p.unit(name) as u:
            start = u.table(*starts)
            for launch in range(launches):
                if launch:
                    p.barrier(u, launch)
                with u.loop(tiles) as i:
                    _pointwise_step(u, name, i, start, op, (x, y, z), (x_tile, y_tile, z_tile), (qx, qy, qz))
    return p


def _pointwise_step(u: Unit, name: str, i: SSAValue, start: SSAValue, op: type, ddr, tiles, queues) -> None:
    match name:
        case "hbm_ld":
            for source, tile in zip(ddr[:2], tiles[:2], strict=True):
                u.add(dfp.ReserveOp(tile))
                u.move(source, u.apply(lambda i, s: i * 2048 + s, i, start), tile, 0, 1024)
                u.add(dfp.CommitOp(tile))
        case "lx_ld":
            for tile, queue in zip(tiles[:2], queues[:2], strict=True):
                u.add(dfp.AcquireOp(tile))
                u.stream(tile, 0, queue, [1024], [2])
                u.add(dfp.ReleaseOp(tile))
        case "sfu":
            u.map(queues[:2], queues[2], [1024], [f16, f16], binary(op))
        case "lx_st":
            u.add(dfp.ReserveOp(tiles[2]))
            u.drain(queues[2], tiles[2], 0, [1024], [2])
            u.add(dfp.CommitOp(tiles[2]))
        case _:
            u.add(dfp.AcquireOp(tiles[2]))
            u.move(tiles[2], 0, ddr[2], u.apply(lambda i, s: i * 2048 + s, i, start), 1024)
            u.add(dfp.ReleaseOp(tiles[2]))
