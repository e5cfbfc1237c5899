"""The ``affine`` operations that compute indices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation

from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, any_lane
from ktir.interp.expressions import apply, evaluators
from ktir.interp.numerics import wrap


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


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "affine.apply": computed(_smaller),
        "affine.min": computed(_smaller),
        "affine.max": computed(_larger),
    }
)
