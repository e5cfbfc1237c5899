"""From a scheduled ``ktg.kernel`` to a KTIR function: one program for all cores, with loops over the tiles of each.

A core finds its slices from its number, digit by digit. Parallel dimensions become loops over the whole tiles of the
slice; a ragged last tile is one more body on the one core that owns it. So every element of a result is stored exactly
once, and nothing outside a buffer is touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnknownLoc,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ktir.analysis.schedule import Schedule
from ktir.dialect.ktdp import GetComputeTileIdOp, StickLayoutAttr
from ktir.dialect.ktdp.attrs import LAYOUT
from ktir.dialect.ktg import KernelOp
from ktir.maths.ownership import DimensionSplit
from ktir.passes.emitter import IndexEmitter, Iterations, Place, Scope
from ktir.passes.tile_body import UNIT, Buffers, TileBody


def kernel_function(name: str, kernel: KernelOp, schedule: Schedule) -> func.FuncOp:
    """The function ``name`` that does what ``kernel`` says, on element pointers of its operands and results."""
    pointers = len(kernel.operands) + len(kernel.results)
    block = Block(arg_types=[IndexType()] * pointers)
    for number, argument in enumerate(block.args):
        operand = number < len(kernel.operands)
        argument.name_hint = f"in{number}" if operand else f"out{number - len(kernel.operands)}"
    _Nest(kernel, schedule, block).emit()
    function = func.FuncOp(
        name,
        FunctionType.from_lists([IndexType()] * pointers, []),
        Region(block),
        arg_attrs=_argument_attributes(kernel),
    )
    function.attributes["grid"] = ArrayAttr([IntegerAttr(schedule.cores, i64)])
    for op in function.walk():
        if isinstance(op.location, UnknownLoc):
            op.location = kernel.location
    return function


def _argument_attributes(kernel: KernelOp) -> ArrayAttr[DictionaryAttr] | None:
    """The layout of each buffer in sticks; None where there is none, as a text without attributes reads."""
    entries: list[Attribute] = []
    for layouts, values in ((kernel.operand_layouts, kernel.operands), (kernel.result_layouts, kernel.results)):
        entries += [StringAttr("")] * len(values) if layouts is None else layouts.data
    if not any(isinstance(entry, StickLayoutAttr) for entry in entries):
        return None
    return ArrayAttr(DictionaryAttr({LAYOUT: entry} if isinstance(entry, StickLayoutAttr) else {}) for entry in entries)


class _Nest:
    """The loops of one kernel."""

    def __init__(self, kernel: KernelOp, schedule: Schedule, block: Block) -> None:
        self.schedule, self.space = schedule, schedule.space
        everything = {dim.name: Iterations(dim.extent, dim.extent) for dim in self.space.dims}
        self.root = Scope(Place(InsertPoint.at_end(block)), {**everything, UNIT: Iterations(1, 1)})
        self.index = IndexEmitter(self.root)
        count = len(kernel.operands)
        self.body = TileBody(schedule, Buffers(block.args[:count], block.args[count:]), self.root, self.index)
        self.digits = self._digits()

    def emit(self) -> None:
        self._loops(self.schedule.order, self.root)
        self.root.place(func.ReturnOp())

    def _digits(self) -> dict[str, SSAValue]:
        """Which slice of each cut dimension the executing core owns."""
        split = self.schedule.split
        cut = [name for name, dim in split.dimensions.items() if dim.cuts > 1]
        if not cut:
            return {}
        core = self.root.emit(GetComputeTileIdOp())
        core.name_hint = "core"
        digits: dict[str, SSAValue] = {}
        for name in cut:
            step, cuts = split.radix_step(name), split.dimensions[name].cuts
            digit = self.index.divided(core, step)
            digits[name] = digit if step * cuts == split.cores else self.index.remainder(digit, cuts)
        return digits

    def _loops(self, names: Sequence[str], scope: Scope) -> None:
        if not names:
            for store in self.space.stores:
                self.body.store(store, scope)
            return
        name, rest = names[0], names[1:]
        extent, tile = self.space[name].extent, self.schedule.tiles[name]
        if tile == extent:
            self._loops(rest, scope)
            return
        whole, ragged = divmod(extent, tile)
        self._whole_tiles(name, whole, scope, rest)
        if ragged:
            self._ragged_tile(name, Iterations(ragged, tile, first=whole * tile), scope, rest)

    def _whole_tiles(self, name: str, whole: int, scope: Scope, rest: Sequence[str]) -> None:
        tile = self.schedule.tiles[name]
        if name not in self.digits:
            if whole == 1:
                self._loops(rest, scope.inner({name: Iterations(tile, tile)}))
            else:
                self._loop(name, self.index.constant(0), self.index.constant(whole), scope, rest)
            return
        split = self.schedule.split.dimensions[name]
        tiles = split.granule // tile
        if tiles == 1 and split.cuts == split.granules == whole:
            self._loops(rest, scope.inner({name: Iterations(tile, tile, number=self.digits[name])}))
            return
        start, stop = self._slice(self.digits[name], split)
        start, stop = self.index.times(start, tiles), self.index.times(stop, tiles)
        if split.granules * tiles > whole:
            stop = self.index.least(stop, whole)
        self._loop(name, start, stop, scope, rest)

    def _slice(self, digit: SSAValue, split: DimensionSplit) -> tuple[SSAValue, SSAValue]:
        """The first granule of a slice, and the one after its last."""
        least, longer = divmod(split.granules, split.cuts)
        following = self.index.add(digit, 1)
        return tuple(  # pyright: ignore[reportReturnType]
            self.index.times(each, least)
            if longer == 0
            else self.index.add(self.index.times(each, least), self.index.least(each, longer))
            for each in (digit, following)
        )

    def _loop(self, name: str, start: SSAValue, stop: SSAValue, scope: Scope, rest: Sequence[str]) -> None:
        tile = self.schedule.tiles[name]
        block = Block(arg_types=[IndexType()])
        with scope.around(scf.ForOp(start, stop, self.index.constant(1), [], Region(block))):
            inner = scope.inner({name: Iterations(tile, tile, number=block.args[0])}, block)
            self._loops(rest, inner)
            inner.place(scf.YieldOp())

    def _ragged_tile(self, name: str, iterations: Iterations, scope: Scope, rest: Sequence[str]) -> None:
        if name not in self.digits:
            self._loops(rest, scope.inner({name: iterations}))
            return
        last = self.index.constant(self.schedule.split.dimensions[name].cuts - 1)
        owner = self.root.emit(arith.CmpiOp(self.digits[name], last, "eq"))
        block = Block()
        with scope.around(scf.IfOp(owner, [], Region(block))):
            inner = scope.inner({name: iterations}, block)
            self._loops(rest, inner)
            inner.place(scf.YieldOp())
