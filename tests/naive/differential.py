"""Runs a program on the executor and on the naive evaluator and says where the two differ."""

from __future__ import annotations

import math
from collections.abc import Mapping

import ml_dtypes
import numpy as np

from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import execute
from tests.naive import evaluator
from tests.naive.numbers import Number
from tests.naive.programs import Program

DTYPES = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn},
    **{"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64},
}


def arrays(arguments: Mapping[str, tuple[str, list[Number]]]) -> dict[str, np.ndarray]:
    return {name: np.array(elements, DTYPES[type_]) for name, (type_, elements) in arguments.items()}


def same(a: Number, b: Number, bound: float) -> bool:
    """Equal bits, any NaN for any other, or within ``bound``."""
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (bound > 0 and abs(a - b) <= bound)


def differences(program: Program, *, checks: bool = True) -> list[str]:
    """Every element of every array in which the executor differs from the naive evaluator."""
    module = parse_module(program.text, "program.ktir", context=create_context(experimental=True))
    expected, bounds = evaluator.run(module, "k", program.arguments)
    given = arrays(program.arguments)
    outputs = execute(module, "k", given, checks=checks).outputs
    found: list[str] = []
    for name, (type_, _) in program.arguments.items():
        got = outputs.get(name, given[name])
        numbers = [float(x) if type_ in evaluator.HALF_ULP else int(x) for x in got.reshape(-1)]
        for k, (a, b) in enumerate(zip(expected[name], numbers, strict=True)):
            assert a is not None
            if not same(a, b, bounds[name][k]):
                found.append(f"{name}[{k}] is {b!r}, should be {a!r} (bound {bounds[name][k]})")
    return found
