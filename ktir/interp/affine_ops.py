"""The ``affine`` operations: indices, loops and branches whose bounds and conditions are affine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import affine
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation

from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, any_lane
from ktir.interp.expressions import apply, evaluators, member
from ktir.interp.numerics import Scalar, wrap
from ktir.interp.scf_ops import as_condition, counted, negated, optional_region, split
from ktir.interp.values import Frame, demand


def computed(choose: Any) -> CompileOperation:
    """The results of the operation's map, joined by ``choose``."""

    def compile_operation(compiler: FunctionCompiler, op: Operation) -> Step:
        attribute = op.properties["map"]
        assert isinstance(attribute, AffineMapAttr)
        functions, site = evaluators(attribute.data), compiler.site(op)

        def evaluate(*values: Any) -> Any:
            result = reduce(choose, apply(functions, values, site))
            return wrap(result, 64) if isinstance(result, int) else result

        return compiler.emit(op, evaluate, any_lane)

    return compile_operation


def loop(compiler: FunctionCompiler, op: Operation) -> Step:
    """``affine.for``: from the largest of its lower bounds to the smallest of its upper bounds."""
    assert isinstance(op, affine.ForOp)
    site, by = compiler.site(op), op.step.value.data
    lower, upper = evaluators(op.lowerBoundMap.data), evaluators(op.upperBoundMap.data)
    low, high, inits = (
        tuple(compiler.slot(value) for value in values)
        for values in (op.lowerBoundOperands, op.upperBoundOperands, op.inits)
    )

    def bounds(frame: Frame) -> tuple[Scalar, Scalar, Scalar]:
        firsts, lasts = (
            apply(functions, [demand(frame.regs[slot], site) for slot in slots], site)
            for functions, slots in ((lower, low), (upper, high))
        )
        return reduce(_larger, firsts), reduce(_smaller, lasts), by

    return counted(compiler, op, bounds, inits)


def branch(compiler: FunctionCompiler, op: Operation) -> Step:
    """``affine.if``: the first region where all constraints hold."""
    assert isinstance(op, affine.IfOp)
    site, condition = compiler.site(op), op.condition.data
    arguments = tuple(compiler.slot(value) for value in op.args)
    results = tuple(compiler.slot(result) for result in op.results)
    then, otherwise = (optional_region(compiler, region, op) for region in (op.then_region, op.else_region))

    def step(frame: Frame) -> None:
        inside = as_condition(member(condition, [demand(frame.regs[slot], site) for slot in arguments]))
        split(frame, [(inside, then), (negated(inside), otherwise)], results, site)

    return step


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "affine.apply": computed(_smaller),
        "affine.min": computed(_smaller),
        "affine.max": computed(_larger),
        "affine.for": loop,
        "affine.if": branch,
    }
)
