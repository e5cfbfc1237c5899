"""Every access of a kernel, for all cores at once: what the questions about bounds, races and coverage are asked of.

:func:`launches` follows a module's ``@main`` (or each kernel by itself where no ``@main`` launches it) and evaluates
index arithmetic with :mod:`ktir.analysis.ranges`. Loops are listed iteration by iteration while the points stay below
``POINT_LIMIT``; longer ones become a symbol. Values of tensors are not followed.

Words. view: a tensor in memory, as ``construct_memory_view`` says. tile: the coordinates of a view that one access
touches. buffer: memory that a view's pointer belongs to. launch: one run of a kernel on its grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal, TypeAlias, cast

import numpy as np
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    ContainerType,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineExpr, AffineMap, AffineSet

from ktir.analysis import ranges
from ktir.analysis.ranges import Frame, Integers, Symbol, Value
from ktir.analysis.scalar_operations import ARITHMETIC, DIVISIONS, bits_of, fitted, is_scalar
from ktir.dialect import ktdp, ktg
from ktir.maths import sets

POINT_LIMIT = 1 << 18
"""Points of a frame up to which loops are listed."""

POINTS_OF_A_SET = 1 << 16
"""Points up to which a set that is no box is listed."""


# ----------------------------------------------------------------------------------------------------- what is recorded


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory with a size: an argument or an allocation. ``bytes`` None: the size is not known."""

    name: str
    operation: Operation | None
    bytes: int | None = None


@dataclass(frozen=True, eq=False)
class View:
    """A view's address arithmetic, in elements. ``owner``: the core whose scratchpad it is in, None: its own."""

    operation: Operation
    offset: Value
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    space: Literal["global", "ct_local"]
    owner: int | None
    element: Attribute
    owned: tuple[tuple[int, int], ...] | None
    frame: Frame

    @property
    def element_bytes(self) -> int:
        return element_bytes(self.element)

    @property
    def name(self) -> str:
        return name_of(self.operation)


@dataclass(frozen=True, eq=False)
class DistributedView:
    """Partitions that share one coordinate space; each owns the box ``owned`` of it."""

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
    the buffers that the host has written before."""

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
    ordered: bool = False
    filled: frozenset[Buffer] = frozenset()

    @property
    def cores(self) -> int:
        return prod(self.grid)

    @property
    def name(self) -> str:
        return self.kernel.sym_name.data


Known: TypeAlias = "Value | View | DistributedView | Tile | Buffer"


# ------------------------------------------------------------------------------------------------------------ questions


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


def launches(module: ModuleOp) -> list[Launch]:
    """The launches of ``@main`` in order; or one of each function, with nothing known of its arguments."""
    functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, func.FuncOp) and f.body.blocks}
    main = functions.get("main")
    host = Host(functions) if main is not None and grid_of(main) is None else None
    if host is not None and main is not None:
        host.follow(main)
        if host.launches:
            return host.launches + [alone(f, functions) for f in functions.values() if host.never_runs(f)]
    return [alone(f, functions) for f in functions.values() if legal(grid_of(f) or (1,)) and uses_memory(f)]


def uses_memory(function: func.FuncOp) -> bool:
    return any(isinstance(op, ktdp.ConstructMemoryViewOp) for op in function.walk())


def alone(kernel: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> Launch:
    """A launch of a kernel by itself: pointers to different buffers, anything for the other arguments."""
    arguments = {a: argument(a, position) for position, a in enumerate(kernel.body.block.args)}
    buffers = {symbol: Buffer(symbol.name, None) for value in arguments.values() for symbol in value.terms}
    return record(kernel, list(arguments.values()), 0, buffers, functions)


def argument(name: SSAValue, position: int) -> Value:
    """Any value of an argument's type; an index may be a pointer."""
    text = name.name_hint or f"argument {position}"
    return ranges.symbol(text, None, *signed_range(bits_of(name.type)), pointer=isinstance(name.type, IndexType))


def signed_range(bits: int) -> tuple[float, float]:
    """What an integer of so many bits can be; a truth is 0 or 1, an index anything."""
    if bits == 1:
        return 0.0, 1.0
    return (-np.inf, np.inf) if bits >= 64 else (float(-(1 << (bits - 1))), float((1 << (bits - 1)) - 1))


def record(
    kernel: func.FuncOp,
    arguments: Sequence[Known | None],
    number: int,
    buffers: Mapping[Symbol, Buffer],
    functions: Mapping[str, func.FuncOp],
    *,
    certain: bool = True,
) -> Launch:
    """Follow one launch of a kernel."""
    grid = grid_of(kernel) or (1,)
    launch = Launch(kernel, grid, number, buffers)
    frame = ranges.cores(prod(grid))
    walker = Walker(launch, functions)
    walker.bind(kernel.body.block.args, arguments)
    walker.block(kernel.body.block, frame if certain else frame.doubtful())
    return launch


# ----------------------------------------------------------------------------------------------------- host and kernels


class Evaluator:
    """Evaluates scalar arithmetic and control flow; ``known`` holds what is known of SSA values."""

    def __init__(self, functions: Mapping[str, func.FuncOp]) -> None:
        self.functions = functions
        self.known: dict[SSAValue, Known] = {}
        self.order = 0
        self.loops: tuple[Loop, ...] = ()

    def bind(self, names: Sequence[SSAValue], values: Sequence[Known | None]) -> None:
        for name, value in zip(names, values, strict=False):
            if value is not None:
                self.known[name] = value

    def value(self, operand: SSAValue, frame: Frame) -> Value:
        """What is known of an integer, at the points of ``frame``."""
        known = self.known.get(operand)
        if not isinstance(known, Value):
            bits = bits_of(operand.type)
            known = ranges.symbol(operand.name_hint or "value", frame, *signed_range(bits))
            self.known[operand] = known
        return known.at(frame)

    def block(self, block: Block, frame: Frame) -> None:
        for operation in block.ops:
            self.order += 1
            self.operation(operation, frame)

    def operation(self, op: Operation, frame: Frame) -> None:
        evaluate = ARITHMETIC.get(op.name)
        if evaluate is not None:
            if is_scalar(op.results[0].type):
                operands = [self.value(o, frame) for o in op.operands]
                self.known[op.results[0]] = fitted(evaluate(op, operands), op.results[0].type)
                self.check_divisor(op, operands, frame)
            return
        match op:
            case scf.ForOp():
                self.loop(op, frame)
            case scf.IfOp():
                self.branch(op, frame)
            case func.CallOp():
                self.call(op, frame)
            case _:
                self.other(op, frame)

    def other(self, op: Operation, frame: Frame) -> None:
        self.regions_perhaps(op, frame)

    def check_divisor(self, op: Operation, operands: Sequence[Value], frame: Frame) -> None:
        """Hook for what a kernel records of divisions."""

    def enter_loop(self, loop: Loop) -> None:
        """Hook for what a kernel records of loops."""

    def call(self, op: func.CallOp, frame: Frame) -> None:
        self.regions_perhaps(op, frame)

    def regions_perhaps(self, op: Operation, frame: Frame) -> None:
        """Code that nothing is known about: it may run, any number of times."""
        if op.regions and not op.name.startswith(("linalg.", "tensor.")):
            for region in op.regions:
                for block in region.blocks:
                    self.block(block, frame.doubtful())

    # ----------------------------------------------------------------------------------------------- control flow

    def branch(self, op: scf.IfOp, frame: Frame) -> None:
        condition = self.value(op.cond, frame)
        if op.cond.type == IntegerType(1) and condition.known:
            condition = replace(condition, constant=condition.constant & 1)
        low, high = (np.broadcast_to(b, frame.points) for b in (condition.lower(), condition.upper()))
        decided = low == high
        arms: list[tuple[Region, Frame]] = []
        for region, taken in ((op.true_region, high != 0), (op.false_region, ~decided | (high == 0))):
            if not region.blocks or not taken.any():
                continue
            points = np.flatnonzero(taken)
            inner = frame.within(points, decided[points])
            arms.append((region, inner))
            self.block(region.block, inner)
        for position, result in enumerate(op.results):
            self.merge(result, position, arms, condition, frame)

    def merge(
        self, result: SSAValue, position: int, arms: Sequence[tuple[Region, Frame]], condition: Value, frame: Frame
    ) -> None:
        """The result of a branch, where both arms give values that are known at all points."""
        if not is_scalar(result.type):
            return
        given = [self.value(cast(Operation, r.block.last_op).operands[position], f) for r, f in arms]
        literals = [v.literal for v in given]
        if len(given) == 1 and literals[0] is not None:
            self.known[result] = ranges.constant(literals[0])
        elif len(given) == 2 and None not in literals:
            yes, no = (ranges.constant(cast(int, v)) for v in literals)
            self.known[result] = ranges.choose(condition, yes, no)

    def loop(self, op: scf.ForOp, frame: Frame) -> None:
        lower, upper, step = (self.value(v, frame) for v in (op.lb, op.ub, op.step))
        by = step.literal
        trips = trip_count(lower, upper, by, frame)
        loop = Loop(op, frame, step, trips)
        self.enter_loop(loop)
        if by is None or by <= 0:
            counter = ranges.symbol(op.body.block.args[0].name_hint or "i", frame)
            self.body(op, loop, frame.doubtful(), counter, None)
            return
        counts = np.broadcast_to(trips.constant, frame.points)
        if trips.known and int(counts.sum()) <= POINT_LIMIT:
            inner, number = listed(frame, counts)
            if inner.points:
                self.body(op, loop, inner, lower.at(inner) + ranges.scale(number, np.asarray(by)), number)
            elif op.results:
                self.bind(op.results, [self.known.get(v) for v in op.iter_args])
            return
        inner, number, counter = symbolic(op, frame, lower, upper, by, trips)
        self.body(op, loop, inner, counter, number)

    def body(self, op: scf.ForOp, loop: Loop, frame: Frame, counter: Value, number: Value | None) -> None:
        """Follow a loop's body; carried integers are followed where each step adds the same to them."""
        arguments = op.body.block.args
        self.known[arguments[0]] = fitted(counter, arguments[0].type)
        carried = [i for i, a in enumerate(arguments[1:]) if is_scalar(a.type)]
        outer, self.loops = self.loops, (*self.loops, loop)
        if carried and number is not None:
            self.carry(op, frame, number, carried)
        start = self.order
        self.block(op.body.block, frame)
        self.loops = outer
        self.leave_loop(loop, start)
        for position in carried:
            self.known.pop(op.results[position], None)

    def leave_loop(self, loop: Loop, start: int) -> None:
        """Hook for what a kernel records of loops."""

    def carry(self, op: scf.ForOp, frame: Frame, number: Value, carried: Sequence[int]) -> None:
        """Give carried integers the form ``initial + number * step``, where a trial of the body shows that it holds."""
        arguments = op.body.block.args[1:]
        unknown = {i: ranges.symbol(f"carried {i}", frame) for i in carried}
        self.bind([arguments[i] for i in carried], [unknown[i] for i in carried])
        trial = self.trial()
        trial.block(op.body.block, frame)
        yielded = cast(Operation, op.body.block.last_op).operands
        for i in carried:
            increment = trial.value(yielded[i], frame) - unknown[i]
            initial = self.value(op.iter_args[i], frame)
            literal = increment.literal
            if literal is not None:
                self.known[arguments[i]] = initial + ranges.scale(number, np.asarray(literal))

    def trial(self) -> Evaluator:
        """An evaluator that knows the same and records nothing."""
        copy = Evaluator(self.functions)
        copy.known, copy.order = dict(self.known), self.order
        return copy


def trip_count(lower: Value, upper: Value, step: int | None, frame: Frame) -> Value:
    """How often a loop runs, at each point."""
    if step is None or step <= 0:
        return ranges.symbol("trips", frame, 0.0)
    span = ranges.greatest(upper - lower + ranges.constant(step - 1), ranges.constant(0))
    trips = ranges.floor_divide(span, step)
    if not trips.known:
        return trips
    return Value(np.broadcast_to(trips.constant, frame.points), {}, frame)


def listed(frame: Frame, counts: Integers) -> tuple[Frame, Value]:
    """The frame with one point for each iteration, and the number of the iteration at each."""
    origin = np.repeat(np.arange(frame.points), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    inner = frame.within(origin)
    return inner, Value(np.arange(len(origin)) - first, {}, inner)


def symbolic(
    op: scf.ForOp, frame: Frame, lower: Value, upper: Value, step: int, trips: Value
) -> tuple[Frame, Value, Value]:
    """The frame of a loop that is not listed, a symbol for the number of the iteration, and the counter."""
    name = op.body.block.args[0].name_hint or "i"
    least, most = (np.broadcast_to(b, frame.points) for b in (trips.lower(), trips.upper()))
    points = np.flatnonzero(most > 0)
    inner = frame.within(points, least[points] > 0)
    if trips.known:
        number = ranges.symbol(name, inner, 0.0, most[points] - 1, attained=True)
        return inner, number, lower.at(inner) + ranges.scale(number, np.asarray(step))
    number = ranges.symbol(f"number of {name}", inner, 0.0, most[points] - 1)
    bounds = lower.at(inner).lower(), upper.at(inner).upper() - 1
    return inner, number, ranges.symbol(name, inner, *bounds, below=upper.at(inner) - ranges.constant(1))


class Host(Evaluator):
    """Follows ``@main``: buffers and launches in order."""

    def __init__(self, functions: Mapping[str, func.FuncOp]) -> None:
        super().__init__(functions)
        self.launches: list[Launch] = []
        self.buffers: dict[Symbol, Buffer] = {}
        self.called: set[str] = set()
        self.filled: frozenset[Buffer] = frozenset()

    def follow(self, main: func.FuncOp) -> None:
        for position, name in enumerate(main.body.block.args):
            if is_scalar(name.type):
                self.known[name] = value = argument(name, position)
                self.buffers |= {symbol: Buffer(symbol.name, None) for symbol in value.terms}
            else:
                self.known[name] = Buffer(name.name_hint or f"argument {position}", None, bytes_of(name.type))
        self.block(main.body.block, ranges.cores(1))

    def never_runs(self, function: func.FuncOp) -> bool:
        return grid_of(function) is not None and function.sym_name.data not in self.called and uses_memory(function)

    def other(self, op: Operation, frame: Frame) -> None:
        match op:
            case memref.AllocOp():
                self.known[op.memref] = Buffer(name_of(op), op, bytes_of(op.memref.type))
            case memref.ExtractAlignedPointerAsIndexOp():
                self.pointer(op)
            case ktg.TransferOp():
                target = self.known.get(op.operands[1])
                self.filled |= {target} if isinstance(target, Buffer) else set()
            case _:
                super().other(op, frame)

    def pointer(self, op: memref.ExtractAlignedPointerAsIndexOp) -> None:
        buffer = self.known.get(op.source)
        if not isinstance(buffer, Buffer):
            return
        already = next((s for s, b in self.buffers.items() if b is buffer), None)
        if already is None:
            value = ranges.symbol(buffer.name, None, 0.0, multiple=128, pointer=True)
            self.buffers |= dict.fromkeys(value.terms, buffer)
            self.known[op.aligned_pointer] = value
        else:
            self.known[op.aligned_pointer] = Value(ranges.ZERO, {already: ranges.ONE})

    def call(self, op: func.CallOp, frame: Frame) -> None:
        name = op.callee.root_reference.data
        kernel = self.functions.get(name)
        if kernel is None:
            return
        if grid_of(kernel) is None:
            self.bind(kernel.body.block.args, [self.known.get(a) for a in op.arguments])
            self.block(kernel.body.block, frame)
            return
        self.called.add(name)
        if not legal(grid_of(kernel) or ()):
            return
        for point in range(frame.points):
            arguments = [at_point(self.known.get(a), frame, point) for a in op.arguments]
            certain = bool(frame.certain[point])
            number = len(self.launches)
            launch = record(kernel, arguments, number, self.buffers, self.functions, certain=certain)
            self.launches.append(replace(launch, filled=self.filled))


def at_point(known: Known | None, frame: Frame, point: int) -> Known | None:
    """A host value at one point, as every core of a launch sees it."""
    if not isinstance(known, Value):
        return known
    here = known.at(frame)
    if any(symbol.frame is not None for symbol in here.terms):
        return None
    pick: Callable[[Integers], Integers] = lambda a: a if a.ndim == 0 else a[point]  # noqa: E731
    return Value(np.asarray(pick(here.constant)), {s: np.asarray(pick(c)) for s, c in here.terms.items()})


def bytes_of(type_: Attribute) -> int | None:
    shape = cast("MemRefType[Attribute]", type_).get_shape() if isinstance(type_, MemRefType) else (-1,)
    if any(extent < 0 for extent in shape):
        return None
    return prod(shape) * element_bytes(element_of(cast(Attribute, type_)))


class Walker(Evaluator):
    """Follows one launch of a kernel and records its views, tiles and accesses."""

    def __init__(self, launch: Launch, functions: Mapping[str, func.FuncOp], calls: tuple[str, ...] = ()) -> None:
        super().__init__(functions)
        self.launch, self.calls = launch, calls

    def enter_loop(self, loop: Loop) -> None:
        self.launch.loops.append(loop)

    def leave_loop(self, loop: Loop, start: int) -> None:
        self.launch.spans[loop] = (start, self.order)

    def check_divisor(self, op: Operation, operands: Sequence[Value], frame: Frame) -> None:
        if op.name not in DIVISIONS:
            return
        zero = (operands[1].lower() == 0) & (operands[1].upper() == 0)
        hit = np.broadcast_to(zero, frame.points)
        if hit.any():
            certain = bool((hit & frame.certain).any())
            message = "the divisor is zero"
            self.launch.faults.append(Fault(op, "DivisionByZero", message, "divide by a positive number", certain))

    def call(self, op: func.CallOp, frame: Frame) -> None:
        name = op.callee.root_reference.data
        callee = self.functions.get(name)
        if callee is None or name in self.calls:
            self.launch.undecided.append((op, f"what @{name} accesses is not followed"))
            return
        inner = Walker(self.launch, self.functions, (*self.calls, name))
        inner.order, inner.loops = self.order, self.loops
        inner.bind(callee.body.block.args, [self.known.get(a) for a in op.arguments])
        inner.block(callee.body.block, frame)
        self.order = inner.order

    def other(self, op: Operation, frame: Frame) -> None:
        match op:
            case ktdp.GetComputeTileIdOp():
                self.tile_id(op, frame)
            case ktdp.ConstructMemoryViewOp():
                self.view(op, frame)
            case ktdp.ConstructDistributedMemoryViewOp():
                self.distributed(op)
            case ktdp.ConstructAccessTileOp():
                self.tile(op, frame)
            case ktdp.ConstructIndirectAccessTileOp():
                self.indirect(op, frame)
            case ktdp.LoadOp():
                self.access(op, "read", op.access_tile, frame)
            case ktdp.StoreOp():
                self.access(op, "write", op.access_tile, frame)
            case _:
                if op.name.startswith("ktdp.inter_tile"):
                    self.launch.ordered = True
                self.regions_perhaps(op, frame)

    def tile_id(self, op: ktdp.GetComputeTileIdOp, frame: Frame) -> None:
        below = 1
        for axis, result in enumerate(op.results):
            extent = self.launch.grid[axis] if axis < len(self.launch.grid) else 1
            self.known[result] = Value(frame.core // below % extent, {}, frame)
            below *= extent

    def mixed(self, entries: Sequence[int | SSAValue], frame: Frame) -> tuple[Value, ...]:
        return tuple(ranges.constant(e) if isinstance(e, int) else self.value(e, frame) for e in entries)

    def view(self, op: ktdp.ConstructMemoryViewOp, frame: Frame) -> None:
        space = op.memory_space.space if op.memory_space is not None else None
        sizes = self.mixed(op.mixed_sizes(), frame)
        view = View(
            op,
            self.value(op.offset, frame),
            sizes,
            self.mixed(op.mixed_strides(), frame),
            space.kind if space else "global",
            space.core if space else None,
            element_of(op.view.type),
            owned_box(op, sizes),
            frame,
        )
        self.known[op.view] = view
        self.launch.views.append(view)

    def distributed(self, op: ktdp.ConstructDistributedMemoryViewOp) -> None:
        partitions = [self.known.get(v) for v in op.views]
        if all(isinstance(p, View) for p in partitions):
            made = DistributedView(op, cast("tuple[View, ...]", tuple(partitions)), element_of(op.view.type))
            self.known[op.view] = made
            self.launch.distributed.append(made)

    def tile(self, op: ktdp.ConstructAccessTileOp, frame: Frame) -> None:
        view = self.known.get(op.base)
        if not isinstance(view, View | DistributedView):
            return
        mapping = op.base_map.data
        indices = [self.value(v, frame) for v in op.indices]
        base = [ranges.evaluate(e, indices[: mapping.num_dims], indices[mapping.num_dims :]) for e in mapping.results]
        symbols = [self.value(v, frame) for v in op.symbol_operands]
        shape = op.tile.type.get_shape()
        extent = set_extent(op.access_tile_set.data, symbols)
        if extent is None:
            self.launch.undecided.append((op, "the access set has no bounds that can be computed"))
            return
        low, high, steps, count, exact = extent
        lower, upper = (tuple(b + e for b, e in zip(base, ends, strict=True)) for ends in (low, high))
        touched = permuted(low, high, op.access_tile_order.data)
        self.keep(op.tile, Tile(op, view, lower, upper, shape, touched, count, steps, exact=exact))

    def keep(self, result: SSAValue, tile: Tile) -> None:
        self.known[result] = tile
        self.launch.tiles.append(tile)

    def indirect(self, op: ktdp.ConstructIndirectAccessTileOp, frame: Frame) -> None:
        view = self.known.get(op.base)
        if not isinstance(view, View | DistributedView):
            return
        space = op.variables_space_set.data
        extent = set_extent(space, [self.value(v, frame) for v in op.symbol_operands])
        if extent is None:
            self.launch.undecided.append((op, "the variables' set has no bounds that can be computed"))
            return
        low, high, _, count, exact = extent
        variables = [variable(k, *ends, frame) for k, ends in enumerate(zip(low, high, strict=True))]
        captured = [self.value(v, frame) for v in op.captured]
        lookups: list[Tile] = []
        coordinates: list[Value] = []
        index_views = iter(op.index_views)
        kinds = cast("ArrayAttr[BoolAttr]", op.per_dim_subscript_kinds)
        maps = cast("ArrayAttr[AffineMapAttr]", op.per_dim_subscript_maps)
        for is_lookup, mapping in zip(kinds, maps, strict=True):
            results = [ranges.evaluate(e, [*captured, *variables], []) for e in mapping.data.results]
            if is_lookup.value.data:
                lookups += self.lookup(op, next(index_views), results, exact)
                results = [ranges.symbol("a loaded index", frame)]
            coordinates += results
        lower = upper = tuple(coordinates)
        touched = permuted(low, high, op.variables_space_order.data)
        made = Tile(op, view, lower, upper, op.tile.type.get_shape(), touched, count, None, tuple(lookups), exact=False)
        self.keep(op.tile, made)

    def lookup(self, op: Operation, indices: SSAValue, at: Sequence[Value], exact: bool) -> list[Tile]:
        """The read of an index view that an indirect access makes."""
        view = self.known.get(indices)
        return [Tile(op, view, tuple(at), tuple(at), (), exact=False)] if isinstance(view, View) and exact else []

    def access(self, op: Operation, kind: Literal["read", "write"], operand: SSAValue, frame: Frame) -> None:
        tile = self.known.get(operand)
        if not isinstance(tile, Tile):
            self.launch.undecided.append((op, "the access tile is not followed"))
            return
        for lookup in tile.lookups:
            self.launch.accesses.append(Access(op, "read", lookup, frame, self.order, self.loops))
        self.launch.accesses.append(Access(op, kind, tile, frame, self.order, self.loops))


def variable(position: int, low: Value, high: Value, frame: Frame) -> Value:
    """An intermediate variable: every value from ``low`` to ``high`` occurs."""
    if low.literal is not None and low.literal == high.literal:
        return low
    span = (high - low).upper()
    known = low.known and high.known
    return low + ranges.symbol(f"d{position}", frame, 0.0, span, attained=known)


def owned_box(op: ktdp.ConstructMemoryViewOp, sizes: Sequence[Value]) -> tuple[tuple[int, int], ...] | None:
    """The coordinates a view owns as half-open ranges, where they are a constant box."""
    literals = [s.literal for s in sizes]
    if op.coordinate_set is None:
        return None if None in literals else tuple((0, cast(int, s)) for s in literals)
    dynamic = [s.literal for s, e in zip(sizes, op.mixed_sizes(), strict=True) if not isinstance(e, int)]
    if None in dynamic:
        return None
    return sets.as_box(op.coordinate_set.data, cast("list[int]", dynamic))


SetExtent: TypeAlias = "tuple[list[Value], list[Value], Integers | None, int | None, bool]"


def set_extent(set_: AffineSet, symbols: Sequence[Value]) -> SetExtent | None:
    """Least and greatest coordinate per dimension, the points where the set is no box, their number, and whether the
    ends are reached."""
    literals = [s.literal for s in symbols]
    if None not in literals:
        return constant_extent(set_, cast("list[int]", literals))
    low: list[Value | None] = [None] * set_.num_dims
    high: list[Value | None] = [None] * set_.num_dims
    exact = True
    for each in set_.constraints:
        solved = one_sided(each.lhs, each.rhs, each.kind, set_, symbols)
        if solved is None:
            exact = False
            continue
        position, lower, upper = solved
        low[position] = tighter(low[position], lower, ranges.greatest)
        high[position] = tighter(high[position], upper, ranges.least)
    if None in low or None in high:
        return None
    return cast("list[Value]", low), cast("list[Value]", high), None, None, exact


def tighter(old: Value | None, new: Value | None, choose: Callable[[Value, Value], Value]) -> Value | None:
    return new if old is None else old if new is None else choose(old, new)


def one_sided(
    left: AffineExpr, right: AffineExpr, kind: AffineConstraintKind, set_: AffineSet, symbols: Sequence[Value]
) -> tuple[int, Value | None, Value | None] | None:
    """A constraint on one dimension with factor 1 or -1 as (dimension, lower bound, upper bound)."""
    zero = [ranges.constant(0)] * set_.num_dims
    at_zero = ranges.evaluate(left, zero, symbols) - ranges.evaluate(right, zero, symbols)
    factors: dict[int, int] = {}
    for position in range(set_.num_dims):
        unit = [ranges.constant(int(d == position)) for d in range(set_.num_dims)]
        factor = (ranges.evaluate(left, unit, symbols) - ranges.evaluate(right, unit, symbols) - at_zero).literal
        if factor is None:
            return None
        if factor:
            factors[position] = factor
    if len(factors) != 1 or abs(next(iter(factors.values()))) != 1 or not linear(left, right, set_):
        return None
    ((position, factor),) = factors.items()
    end = -at_zero if factor == 1 else at_zero
    if kind is AffineConstraintKind.eq:
        return position, end, end
    at_least = (factor == 1) == (kind is AffineConstraintKind.ge)
    return (position, end, None) if at_least else (position, None, end)


def linear(left: AffineExpr, right: AffineExpr, set_: AffineSet) -> bool:
    symbols = [0] * set_.num_symbols
    return sets.linear_form(left, symbols) is not None and sets.linear_form(right, symbols) is not None


def constant_extent(set_: AffineSet, symbols: Sequence[int]) -> SetExtent | None:
    box = sets.as_box(set_, symbols)
    if box is not None or not set_.num_dims:
        box = box or ()
        count = prod(stop - start for start, stop in box)
        low, high = [ranges.constant(a) for a, _ in box], [ranges.constant(b - 1) for _, b in box]
        return low, high, None, count, True
    limits = sets.bounds(set_, symbols)
    if any(a is None or b is None for a, b in limits):
        return None
    size = prod(max(0, cast(int, b) - cast(int, a)) for a, b in limits)
    if size > POINTS_OF_A_SET:
        ends = [(ranges.constant(cast(int, a)), ranges.constant(cast(int, b) - 1)) for a, b in limits]
        return [a for a, _ in ends], [b for _, b in ends], None, None, False
    points = np.array(list(sets.points(set_, symbols)), np.int64).reshape(-1, set_.num_dims)
    if not len(points):
        return [ranges.constant(0)] * set_.num_dims, [ranges.constant(-1)] * set_.num_dims, points, 0, True
    low, high = ([ranges.constant(int(v)) for v in ends] for ends in (points.min(0), points.max(0)))
    return low, high, points, len(points), True


def permuted(low: Sequence[Value], high: Sequence[Value], order: AffineMap) -> tuple[int, ...] | None:
    """The extents of a set in the order in which its points are listed, where they are constant."""
    spans = [(b - a).literal for a, b in zip(low, high, strict=True)]
    extents = [None if span is None else span + 1 for span in spans]
    where = [getattr(result, "position", None) for result in order.results]
    if None in extents or sorted(p for p in where if p is not None) != list(range(len(extents))):
        return None
    return tuple(cast(int, extents[cast(int, p)]) for p in where)


def all_accesses(runs: Sequence[Launch]) -> Iterator[tuple[Launch, Access]]:
    """Every access of every launch, in order."""
    return ((launch, access) for launch in runs for access in launch.accesses)
