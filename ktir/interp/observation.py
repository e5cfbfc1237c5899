"""Watching a run: observers are told of every operation once it ran, with the registers that hold its values.

This is the one hook that tracing, watching and explaining use. Without observers nothing of it is compiled in. With
observers the iterations of a loop run one after the other and all cores of a launch together, so that what an observer
sees is in the order of the program; the numbers are the same.

Words. *point*: an operation, or the beginning of a block whose arguments just got values. *loops*: the counters of the
loops around a point, outermost first. Bodies of structured operations (``linalg``, reducers) are part of their
operation and have no points of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ktir.dialect.value_names import value_names
from ktir.interp.compile import FunctionCompiler, Step
from ktir.interp.linalg_ops import integers
from ktir.interp.values import Frame, Site, Value

AROUND = frozenset(
    {"func.func", "scf.for", "scf.if", "scf.while", "scf.execute_region", "scf.index_switch", "scf.parallel"}
    | {"scf.forall", "affine.for", "affine.if", "affine.parallel", "ktdp.inter_tile_produce", "ktg.kernel"}
)
"""Operations whose regions hold points."""
COUNTING = frozenset({"scf.for", "affine.for", "scf.parallel", "scf.forall", "affine.parallel"})


@dataclass(frozen=True, slots=True)
class Named:
    """A value at a point: what it is called, and the register it is in."""

    name: str
    slot: int
    value: SSAValue


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """``values`` are results of ``op``, or the arguments of the block that begins; ``operands`` are what it uses."""

    op: Operation
    function: str
    site: Site
    values: tuple[Named, ...]
    operands: tuple[Named, ...]
    loops: tuple[Named, ...]

    def iteration(self, frame: Frame) -> tuple[tuple[str, Value], ...]:
        """The counters of the loops around, by name."""
        return tuple((loop.name, frame.regs[loop.slot]) for loop in self.loops)


class Observer(Protocol):
    """What is told of a run."""

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        """Before anything runs. ``names`` are those of the text."""
        ...

    def entered(self, point: Point, frame: Frame) -> None:
        """The values of the arguments of a block are there."""
        ...

    def executed(self, point: Point, frame: Frame) -> None:
        """The operation ran; its operands and its results are there."""
        ...

    def finish(self) -> None:
        """The run is over, or an error ended it."""
        ...


@dataclass(frozen=True, slots=True)
class Observation:
    """The observers of a run, and how they get into compiled code."""

    observers: tuple[Observer, ...]
    names: Mapping[SSAValue, str]

    def holds(self, block: Block) -> bool:
        """Whether the operations of ``block`` are points."""
        around = block.parent_op()
        while around is not None and not isinstance(around, FuncOp):
            if around.name not in AROUND:
                return False
            around = around.parent_op()
        return around is not None

    def around(self, step: Step, compiler: FunctionCompiler, op: Operation) -> Step:
        """``step``, telling the observers afterwards."""
        point = self._point(compiler, op, op.results, op.operands)
        observers = self.observers

        def observed(frame: Frame) -> None:
            step(frame)
            for observer in observers:
                observer.executed(point, frame)

        return observed

    def at_entry(self, step: Step, compiler: FunctionCompiler, block: Block) -> Step:
        """``step``, the first of ``block``, telling the observers of the arguments of the block beforehand."""
        owner = block.parent_op()
        if owner is None or not block.args:
            return step
        point = self._point(compiler, owner, block.args, ())
        observers = self.observers

        def observed(frame: Frame) -> None:
            for observer in observers:
                observer.entered(point, frame)
            step(frame)

        return observed

    def counters(self, compiler: FunctionCompiler, block: Block) -> tuple[int, ...]:
        """The slots of the loops around ``block``, which every part of a frame has to keep."""
        return tuple(each.slot for each in self._loops(compiler, block))

    def _point(
        self, compiler: FunctionCompiler, op: Operation, values: Sequence[SSAValue], operands: Sequence[SSAValue]
    ) -> Point:
        inside = values[0].owner if values and isinstance(values[0].owner, Block) else op.parent_block()
        assert isinstance(inside, Block)
        return Point(
            op,
            self._function(op),
            compiler.site(op),
            tuple(self._named(compiler, value) for value in values),
            tuple(self._named(compiler, value) for value in operands),
            self._loops(compiler, inside),
        )

    def _named(self, compiler: FunctionCompiler, value: SSAValue) -> Named:
        return Named(self.names.get(value, "%?"), compiler.slot(value), value)

    def _loops(self, compiler: FunctionCompiler, block: Block) -> tuple[Named, ...]:
        found: list[Named] = []
        inner: Block | None = block
        while inner is not None:
            owner = inner.parent_op()
            if owner is not None and owner.name in COUNTING:
                found[:0] = [self._named(compiler, value) for value in inner.args[: _counters(owner)]]
            inner = owner.parent_block() if owner is not None and not isinstance(owner, FuncOp) else None
        return tuple(found)

    def _function(self, op: Operation) -> str:
        around: Any = op
        while not isinstance(around, FuncOp):
            around = around.parent_op()
        return around.sym_name.data


def observation(module: ModuleOp, observers: Sequence[Observer], source: str | None = None) -> Observation | None:
    """What compiles ``observers`` into a program; None where there are none."""
    if not observers:
        return None
    names = value_names(module, source)
    for observer in observers:
        observer.begin(module, names)
    return Observation(tuple(observers), names)


def _counters(loop: Operation) -> int:
    """How many arguments of the body of a loop count its iterations."""
    if loop.name in ("scf.for", "affine.for"):
        return 1
    if loop.name == "scf.forall":
        return len(integers(loop, "staticLowerBound"))
    return len(loop.regions[0].block.args)


__all__ = ["Named", "Observation", "Observer", "Point", "observation"]
