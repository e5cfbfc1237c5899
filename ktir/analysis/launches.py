"""The launches of a module: those of ``@main`` in order, or one of each kernel where no ``@main`` launches it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ktir.analysis import ranges
from ktir.analysis.accesses import Buffer, Known, Launch, element_bytes, element_of, grid_of, legal, name_of
from ktir.analysis.evaluation import Evaluator, signed_range
from ktir.analysis.footprint import buffer_of
from ktir.analysis.kernels import Walker
from ktir.analysis.ranges import Frame, Integers, Symbol, Value
from ktir.analysis.scalar_operations import bits_of, is_scalar
from ktir.dialect import ktdp, ktg
from ktir.errors import ArgumentError

VALUE_RANGE = "ktdp.value_range"
"""Attribute of an argument: the half-open range that its integers lie in, as the caller promises."""

ITERATION_LIMIT = 4096
"""Iterations of a loop of ``@main`` up to which they are followed one by one."""


@dataclass(frozen=True)
class Transfer:
    """A copy between host and device; ``moment`` counts what the host does."""

    source: Buffer
    target: Buffer
    moment: int


@dataclass(frozen=True, eq=False)
class Program:
    """A module and what runs of it: launches and transfers in order."""

    module: ModuleOp
    launches: Sequence[Launch]
    transfers: Sequence[Transfer] = ()

    @staticmethod
    def of(module: ModuleOp, numbers: Mapping[str, int] | None = None) -> Program:
        """The launches of ``@main`` in order; or one of each function, with nothing known of its arguments but the
        ``numbers`` given by name."""
        given = numbers or {}
        functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, func.FuncOp) and f.body.blocks}
        require_arguments(given, functions.values())
        main = functions.get("main")
        if main is not None and grid_of(main) is None:
            host = Host(functions, given)
            host.follow(main)
            if host.launches:
                unused = [alone(f, functions, given) for f in functions.values() if host.never_runs(f)]
                return Program(module, host.launches + unused, host.transfers)
        kernels = [f for f in functions.values() if legal(grid_of(f) or (1,)) and uses_memory(f)]
        return Program(module, [alone(f, functions, given) for f in kernels])


def require_arguments(numbers: Mapping[str, int], functions: Iterable[func.FuncOp]) -> None:
    """Raises :class:`ArgumentError` for a number that no function takes."""
    known = {a.name_hint for f in functions for a in f.body.block.args if a.name_hint and is_scalar(a.type)}
    for name in numbers:
        if name not in known:
            remedy = f"there are {', '.join(sorted(known))}" if known else "no function takes integers"
            raise ArgumentError(f"no function has an integer argument {name}", remedy=remedy)


def uses_memory(function: func.FuncOp) -> bool:
    return any(isinstance(op, ktdp.ConstructMemoryViewOp) for op in function.walk())


def alone(kernel: func.FuncOp, functions: Mapping[str, func.FuncOp], numbers: Mapping[str, int]) -> Launch:
    """A launch of a kernel by itself: pointers to different buffers, anything for the other arguments that are no
    ``numbers``."""
    arguments = {a: argument(a, position, numbers) for position, a in enumerate(kernel.body.block.args)}
    buffers: dict[Symbol, Buffer] = {}
    values: dict[Buffer, tuple[int, int]] = {}
    for name, value in arguments.items():
        for symbol in value.terms:
            buffers[symbol] = buffer = Buffer(symbol.name, None)
            values |= promised(kernel, name, buffer)
    return replace(record(kernel, list(arguments.values()), 0, buffers, functions, values), is_alone=True)


def promised(function: func.FuncOp, argument: BlockArgument, buffer: Buffer) -> dict[Buffer, tuple[int, int]]:
    """What the caller promises of the integers behind an argument, by the buffer they are in."""
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    given = attributes[argument.index].data.get(VALUE_RANGE) if argument.index < len(attributes) else None
    if not isinstance(given, DenseArrayBase):
        return {}
    low, high = given.get_values()
    return {buffer: (int(low), int(high))}


def argument(name: SSAValue, position: int, numbers: Mapping[str, int]) -> Value:
    """The number that is given for an argument, or any value of its type; an index may be a pointer."""
    text = name.name_hint or f"argument {position}"
    if text in numbers:
        return ranges.constant(numbers[text])
    return ranges.symbol(text, None, *signed_range(bits_of(name.type)), pointer=isinstance(name.type, IndexType))


def record(
    kernel: func.FuncOp,
    arguments: Sequence[Known | None],
    number: int,
    buffers: Mapping[Symbol, Buffer],
    functions: Mapping[str, func.FuncOp],
    values: Mapping[Buffer, tuple[int, int]],
    *,
    certain: bool = True,
) -> Launch:
    """Follow one launch of a kernel."""
    grid = grid_of(kernel) or (1,)
    launch = Launch(kernel, grid, number, buffers, values=values)
    frame = ranges.cores(prod(grid))
    walker = Walker(launch, functions)
    walker.bind(kernel.body.block.args, arguments)
    walker.block(kernel.body.block, frame if certain else frame.doubtful())
    return launch


class Host(Evaluator):
    """Follows ``@main``: buffers and launches in order."""

    def __init__(self, functions: Mapping[str, func.FuncOp], numbers: Mapping[str, int]) -> None:
        super().__init__(functions)
        self.numbers = numbers
        self.launches: list[Launch] = []
        self.buffers: dict[Symbol, Buffer] = {}
        self.called: set[str] = set()
        self.filled: frozenset[Buffer] = frozenset()
        self.values: Mapping[Buffer, tuple[int, int]] = {}
        self.transfers: list[Transfer] = []
        self.moment = 0

    def follow(self, main: func.FuncOp) -> None:
        for position, name in enumerate(main.body.block.args):
            if is_scalar(name.type):
                self.known[name] = value = argument(name, position, self.numbers)
                self.buffers |= {symbol: Buffer(symbol.name, None) for symbol in value.terms}
            else:
                buffer = Buffer(name.name_hint or f"argument {position}", None, bytes_of(name.type))
                self.known[name] = buffer
                self.values = {**self.values, **promised(main, name, buffer)}
        self.block(main.body.block, ranges.cores(1))

    def never_runs(self, function: func.FuncOp) -> bool:
        return grid_of(function) is not None and function.sym_name.data not in self.called and uses_memory(function)

    def other(self, op: Operation, frame: Frame) -> None:
        match op:
            case memref.AllocOp():
                self.known[op.memref] = Buffer(name_of(op), op, bytes_of(op.memref.type))
            case memref.ExtractAlignedPointerAsIndexOp():
                self.pointer(op)
            case ktg.TransferOp() | memref.CopyOp():
                self.transfer(op)
            case _:
                self.filled |= {buffer for o in op.operands if isinstance(buffer := self.known.get(o), Buffer)}
                super().other(op, frame)

    def transfer(self, op: ktg.TransferOp | memref.CopyOp) -> None:
        source, target = (self.known.get(operand) for operand in (op.source, op.destination))
        self.moment += 1
        if isinstance(source, Buffer) and isinstance(target, Buffer):
            self.transfers.append(Transfer(source, target, self.moment))
            self.filled |= {target}
            self.forget([target])
            if source in self.values:
                self.values = {**self.values, target: self.values[source]}

    def forget(self, buffers: Collection[Buffer]) -> None:
        """Nothing is promised any more of buffers that were written."""
        self.values = {buffer: values for buffer, values in self.values.items() if buffer not in buffers}

    def loop(self, op: scf.ForOp, frame: Frame) -> None:
        """One iteration after the other, so that what they launch is in order."""
        lower, upper, step = (self.value(v, frame).literal for v in (op.lb, op.ub, op.step))
        if lower is None or upper is None or step is None or not step > 0 or (upper - lower) // step > ITERATION_LIMIT:
            super().loop(op, frame)
            return
        counter, *carried = op.body.block.args
        given: Sequence[SSAValue] = op.iter_args
        for number in range(lower, upper, step):
            self.known[counter] = ranges.constant(number)
            self.rebind(carried, given)
            self.block(op.body.block, frame)
            given = cast(Operation, op.body.block.last_op).operands
        self.rebind(op.results, given)

    def rebind(self, names: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Gives names what is known of values, and forgets the rest."""
        known = [self.known.get(value) for value in values]
        for name in names:
            self.known.pop(name, None)
        self.bind(names, known)

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
            self.moment += 1
            number = len(self.launches)
            launch = record(kernel, arguments, number, self.buffers, self.functions, self.values, certain=certain)
            self.launches.append(replace(launch, filled=self.filled, moment=self.moment))
            self.forget(written_buffers(launch))


def written_buffers(launch: Launch) -> Collection[Buffer]:
    """The buffers that a launch stores to, or may store to."""
    written: set[Buffer] = set()
    for access in launch.accesses:
        if access.kind == "write":
            if access.footprints is None:
                return set(launch.buffers.values())
            written |= {b for f in access.footprints if (b := buffer_of(f, launch)) is not None}
    return written


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
