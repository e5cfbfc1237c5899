"""The ``ktg`` operations: what a graph means, before any pass has taken it apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ktir.dialect.ktg import NOT_FOLDED, FoldOp
from ktir.dialect.ktg_blocks import step_over
from ktir.errors import OutOfBounds
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step
from ktir.interp.memref_ops import transfer
from ktir.interp.numerics import Array
from ktir.interp.values import Frame, Tainted, Value


def kernel(compiler: FunctionCompiler, op: Operation) -> Step:
    body = compiler.region(op.regions[0], op)
    operands = tuple(compiler.slot(value) for value in op.operands)
    results = tuple(compiler.slot(result) for result in op.results)

    def step(frame: Frame) -> None:
        regs = frame.regs
        values = body.call(frame, [regs[slot] for slot in operands])
        for slot, value in zip(results, values, strict=True):
            regs[slot] = value

    return step


def fold(compiler: FunctionCompiler, op: Operation) -> Step:
    """``init``, one ``step`` per block in order, ``finish``; the last block may be smaller."""
    assert isinstance(op, FoldOp)
    operands = tuple(compiler.slot(value) for value in op.ins)
    results = tuple(compiler.slot(result) for result in op.res)
    extent, tile, folded = op.extent.value.data, op.tile.value.data, op.folded
    init, whole, finish = (compiler.region(region, op) for region in (op.init, op.step, op.finish))
    rest = compiler.region(step_over(op, extent % tile), op) if extent % tile else None

    def blocks(values: Sequence[Value], start: int, stop: int) -> list[Value]:
        return [_along(value, axis, start, stop) for value, axis in zip(values, folded, strict=True)]

    def step(frame: Frame) -> None:
        values = [frame.regs[slot] for slot in operands]
        states = init.call(frame, [])
        full = extent - extent % tile
        for start in range(0, full, tile):
            states = whole.call(frame, [*blocks(values, start, start + tile), *states])
        if rest is not None:
            states = rest.call(frame, [*blocks(values, full, extent), *states])
        for slot, value in zip(results, finish.call(frame, states), strict=True):
            frame.regs[slot] = value

    return step


def _along(value: Value, axis: int, start: int, stop: int) -> Value:
    """The block of a tensor from ``start`` to ``stop`` along ``axis``."""
    if axis == NOT_FOLDED:
        return value
    if isinstance(value, Tainted):
        mask = np.broadcast_to(value.mask, value.values.shape)
        return Tainted(_along(value.values, axis, start, stop), _along(mask, axis, start, stop), value.origin)
    return value[(slice(None),) * (axis + 1) + (slice(start, stop),)]


def gather(compiler: FunctionCompiler, op: Operation) -> Step:
    """Rows of a table."""
    site = compiler.site(op)

    def rows(table: Array, indices: Array) -> Array:
        low, high = int(indices.min(initial=0)), int(indices.max(initial=0))
        if low < 0 or high >= table.shape[1]:
            raise site.fail(
                OutOfBounds,
                f"asks for row {low if low < 0 else high} of a table of {table.shape[1]}",
                "keep the indices inside the table",
            )
        if len(table) == 1:
            return table[0][indices]
        return table[np.arange(len(table)).reshape(-1, *(1,) * (indices.ndim - 1)), indices]

    def undefined(result: Array, values: Sequence[Any], masks: Sequence[Array | None]) -> Array:
        taken = np.zeros((1,) * result.ndim, bool)
        if masks[0] is not None:
            taken = taken | rows(np.broadcast_to(masks[0], values[0].shape), values[1])
        if masks[1] is not None:
            taken = taken | masks[1][..., None]
        return np.broadcast_to(taken, result.shape)

    return compiler.emit(op, rows, undefined)


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {"ktg.kernel": kernel, "ktg.fold": fold, "ktg.gather": gather, "ktg.transfer": transfer}
)
