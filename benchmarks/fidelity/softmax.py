"""The stages of a softmax of 512 x 1024 along its rows on one core, as torch-spyre moved it into the scratchpad.

The kernel is five operations one after the other, each a launch: maximum, subtraction, exponential, sum, division. What
a stage pins stays in the scratchpad, the rest goes to device memory and comes back. M and N are the two extents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import SSAValue

from benchmarks.fidelity.device_memory import QUEUED
from benchmarks.fidelity.schedule import HALF, STICK, Schedule, filling, holding
from tests.backends.dataflow.programs import Unit, binary

ROWS, COLUMNS = 512, 1024
STICKS = COLUMNS * HALF // STICK
"""Columns of sticks; each is a tile of its own."""
TILE = ROWS * STICK


@dataclass(frozen=True)
class Stage:
    """Which tensors a stage keeps in the scratchpad, the published device traffic in words, and the published time."""

    name: str
    pinned: frozenset[str]
    traffic: str
    microseconds: float


STAGES = (
    Stage("nothing pinned", frozenset(), "8MN + 4N", 32.51),
    Stage("reductions pinned", frozenset({"maximum", "sum"}), "8MN", 27.66),
    Stage("exp and sub in place", frozenset({"maximum", "sum", "work"}), "3MN", 23.93),
    Stage("input cloned", frozenset({"maximum", "sum", "work", "input"}), "2MN", 23.67),
)


def softmax(number: int) -> ModuleOp:
    """The program of a stage."""
    stage = STAGES[number]
    made = _Softmax(stage)
    if "input" in stage.pinned:
        made.clone()
    made.reduce("input", "maximum", arith.MaximumfOp)
    made.combine(("input", "maximum"), "work", binary(arith.SubfOp))
    made.combine(("work",), "work", lambda builder, x: builder.insert(math.ExpOp(x)).result)
    made.reduce("work", "sum", arith.AddfOp)
    made.combine(("work", "sum"), "result", binary(arith.DivfOp))
    return made.schedule.module()


class _Softmax:
    """Writes the operations of a stage, one launch each."""

    def __init__(self, stage: Stage) -> None:
        self.schedule = Schedule(1)
        self.pinned = stage.pinned
        sizes = {"input": STICKS * TILE, "work": STICKS * TILE, "result": STICKS * TILE}
        sizes |= {"maximum": STICKS * STICK, "sum": STICKS * STICK}
        self.arrays = {name: self.schedule.array(size) for name, size in sizes.items()}
        work = self.schedule.kept(sizes["work"], last=9) if stage.pinned & {"input", "work"} else None
        self.kept = {"input": work, "work": work}
        self.kept |= {name: self.schedule.kept(sizes[name], last=9) for name in stage.pinned & {"maximum", "sum"}}
        self.first = True

    def clone(self) -> None:
        """Brings the input to the scratchpad."""
        self._launch()
        kept = self.kept["input"]

        def fetch(u: Unit) -> None:
            u.move(self.arrays["input"], 0, kept, 0, STICKS * TILE // HALF)

        self.schedule.does("hbm_ld", fetch)

    def reduce(self, source: str, target: str, op: type) -> None:
        """One stick from each column of sticks."""

        def compute(u: Unit, feeds: list[SSAValue], out: SSAValue) -> None:
            u.reduce(feeds[0], out, (1, ROWS, STICK // HALF), [f16, f16], binary(op))

        self._operation((source,), target, STICK, compute)

    def combine(self, sources: tuple[str, ...], target: str, body: Callable[..., SSAValue]) -> None:
        """A column of sticks from a column of sticks and perhaps a stick for all its rows."""

        def compute(u: Unit, feeds: list[SSAValue], out: SSAValue) -> None:
            with u.loop(TILE // QUEUED):
                u.map(feeds, out, [QUEUED // HALF], [f16] * len(sources), body)

        self._operation(sources, target, TILE, compute)

    def _launch(self) -> None:
        if not self.first:
            self.schedule.next_launch()
        self.first = False

    def _operation(self, sources: tuple[str, ...], target: str, size: int, compute) -> None:
        self._launch()
        s = self.schedule
        inputs = [_Place(self, name, TILE if number == 0 else STICK) for number, name in enumerate(sources)]
        output = _Place(self, target, size, written=True)
        feeds, out = [s.queue("lx_ld", "sfu") for _ in sources], s.queue("sfu", "lx_st")

        def fetch(u: Unit) -> None:
            with u.loop(STICKS) as i:
                for each in inputs:
                    each.fetch(u, i)

        def feed(u: Unit) -> None:
            held = [each.tile for each in inputs if each.tile is not None]
            with u.loop(STICKS) as i, holding(u, *held), u.loop(TILE // QUEUED) as j:
                for each, queue in zip(inputs, feeds, strict=True):
                    each.feed(u, queue, i, j)

        def work(u: Unit) -> None:
            with u.loop(STICKS):
                compute(u, feeds, out)

        def drain(u: Unit) -> None:
            with u.loop(STICKS) as i:
                output.drain(u, out, i)

        def write(u: Unit) -> None:
            with u.loop(STICKS) as i, holding(u, output.tile):
                u.move(output.tile, 0, self.arrays[target], u.apply(lambda i: i * size, i), size // HALF)

        s.does("hbm_ld", fetch)
        s.does("lx_ld", feed)
        s.does("sfu", work)
        s.does("lx_st", drain)
        if output.tile is not None:
            s.does("hbm_st", write)


class _Place:
    """Where an operand of one operation is: in the scratchpad, or in device memory with a tile on the way."""

    def __init__(self, made: _Softmax, name: str, size: int, written: bool = False) -> None:
        self.array, self.size = made.arrays[name], size
        self.kept = made.kept.get(name) if name in made.pinned else None
        ends = ("lx_st", "hbm_st") if written else ("hbm_ld", "lx_ld")
        self.tile = made.schedule.tile(size, *ends) if self.kept is None else None

    def fetch(self, u: Unit, number: SSAValue) -> None:
        if self.tile is not None:
            with filling(u, self.tile):
                u.move(self.array, u.apply(lambda i: i * self.size, number), self.tile, 0, self.size // HALF)

    def feed(self, u: Unit, queue: SSAValue, number: SSAValue, turn: SSAValue) -> None:
        step = 0 if self.size == STICK else QUEUED
        base = self.size if self.kept is not None else 0
        at = u.apply(lambda i, j: i * base + j * step, number, turn)
        rows = QUEUED // STICK
        u.stream(self.kept or self.tile, at, queue, [rows, STICK // HALF], [STICK if step else 0, HALF])

    def drain(self, u: Unit, queue: SSAValue, number: SSAValue) -> None:
        if self.tile is None:
            at = u.apply(lambda i: i * self.size, number)
            u.drain(queue, self.kept, at, [self.size // HALF], [HALF])
            return
        with filling(u, self.tile):
            u.drain(queue, self.tile, 0, [self.size // HALF], [HALF])
