"""Calls. Calling a function with a ``grid`` is a launch: all its cores start together and the caller waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation

from ktir.errors import LimitExceeded
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step
from ktir.interp.values import Frame

DEEPEST_CALL = 64


def call(compiler: FunctionCompiler, op: Operation) -> Step:
    site = compiler.site(op)
    symbol = op.properties["callee"]
    assert isinstance(symbol, SymbolRefAttr)
    callee = compiler.lookup(symbol.root_reference.data, site)
    arguments = tuple(compiler.slot(value) for value in op.operands)
    results = tuple(compiler.slot(result) for result in op.results)

    def step(frame: Frame) -> None:
        run = frame.run
        if run.depth >= DEEPEST_CALL:
            raise site.fail(LimitExceeded, f"is nested {DEEPEST_CALL} calls deep", "functions must not call themselves")
        run.depth += 1
        values = callee.execute(frame, [frame.regs[slot] for slot in arguments], site)
        run.depth -= 1
        for slot, value in zip(results, values, strict=True):
            frame.regs[slot] = value

    return step


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType({"func.call": call})
