"""Every element-wise operation on the numbers that are easily got wrong: both executors against the naive evaluator.

The operands are all pairs of signed zeros, infinities, NaN, numbers at the ends of the range and halfway cases, in
every element type; each operation runs on a tensor, and on scalars one pair at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from ktir.backends.dataflow.scalar_region import RAW, compile_region, to_raw, working
from ktir.dialect import dfp
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import execute
from ktir.interp.numerics import FLOATS as DTYPES
from tests.naive import numbers
from tests.naive.numbers import FLOAT_OPERATIONS, FORMATS, INTEGER_OPERATIONS, SHIFTS, UNSIGNED_OPERATIONS, Number

FLOATS = [name for name in FORMATS if name != "f64"]
INTEGERS = ("i1", "i8", "i16", "i32", "i64")
INTEGER_DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
MATH = ("copysign",)


def floats(type_: str) -> list[float]:
    """Numbers of a float type: special ones, its ends, and what rounds between two others."""
    one = FORMATS[type_]
    found = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.3, 7.0, one.largest, -one.largest]
    found += [one.number(1), -one.number(1), math.inf, -math.inf, math.nan]
    return list(dict.fromkeys(map(repr, map(one.nearest, found)))) and [one.nearest(x) for x in found]


def integers(type_: str) -> list[int]:
    bits = numbers.BITS[type_]
    half = 1 << bits - 1
    return [0, 1] if bits == 1 else [0, 1, -1, 2, -2, 3, 7, bits - 1, bits, bits + 1, half - 1, -half, -half + 1]


def dtype(type_: str) -> np.dtype:
    return DTYPES[type_].dtype if type_ in DTYPES else np.dtype(INTEGER_DTYPES[type_])


def array(values: Sequence[Number], type_: str) -> np.ndarray:
    return np.array(values).astype(dtype(type_))


def listed(values: np.ndarray, type_: str) -> list[Number]:
    flat = values.reshape(-1)
    return [float(x) for x in flat] if type_ in FORMATS else [int(x) for x in flat]


def text(op: str, operands: int, count: int, source: str, target: str, *, scalar: bool) -> str:
    """``@main`` with the operation on tensors, or on each element in a loop."""
    names = [f"%{'abc'[k]}" for k in range(operands)]
    given, made = f"tensor<{count}x{source}>", f"tensor<{count}x{target}>"
    head = f"func.func @main({', '.join(f'{n}: {given}' for n in names)}) -> {made} {{\n"
    if not scalar:
        types = given if source == target or op.startswith("arith.cmp") else f"{given} to {made}"
        return f"{head}  %r = {op} {', '.join(names)} : {types}\n  return %r : {made}\n}}\n"
    types = source if source == target or op.startswith("arith.cmp") else f"{source} to {target}"
    zero = "0.0" if target in FORMATS else "0"
    extracted = "".join(f"    {n}1 = tensor.extract {n}[%i] : {given}\n" for n in names)
    return (
        f"{head}  %lo = arith.constant 0 : index\n  %hi = arith.constant {count} : index\n"
        f"  %one = arith.constant 1 : index\n  %zeros = arith.constant dense<{zero}> : {made}\n"
        f"  %r = scf.for %i = %lo to %hi step %one iter_args(%t = %zeros) -> ({made}) {{\n{extracted}"
        f"    %x = {op} {', '.join(f'{n}1' for n in names)} : {types}\n"
        f"    %u = tensor.insert %x into %t[%i] : {made}\n    scf.yield %u : {made}\n  }}\n"
        f"  return %r : {made}\n}}\n"
    )


def by_executor(
    op: str, columns: Sequence[Sequence[Number]], source: str, target: str, *, scalar: bool
) -> list[Number]:
    """The operation on whole columns, or element after element; without checks, so that nothing is marked."""
    module = parse_module(text(op, len(columns), len(columns[0]), source, target, scalar=scalar), "op")
    arguments = {"abc"[k]: array(column, source) for k, column in enumerate(columns)}
    return listed(execute(module, "main", arguments, checks=False).results[0], target)


def by_simulator(op: str, columns: Sequence[Sequence[Number]], source: str, target: str) -> list[Number]:
    names = [f"%{'abc'[k]}" for k in range(len(columns))]
    types = f"{source} to {target}" if source != target and not op.startswith("arith.cmp") else source
    text = (
        f"func.func @f({', '.join(f'{n}: {source}' for n in names)}) -> {target} {{\n"
        f"  %r = {op} {', '.join(names)} : {types}\n  return %r : {target}\n}}\n"
    )
    kernel = next(o for o in parse_module(text, "op").walk() if o.name == "func.func")
    block = kernel.regions[0].block
    returned = block.last_op
    assert returned is not None
    value = returned.operands[0]
    block.erase_op(returned)
    block.add_op(dfp.YieldOp(value))
    region = compile_region(block)
    blocks = [working(np.array(c).astype(RAW[source]), source) for c in columns]
    return listed(to_raw(region(blocks), target), target)


def check(op: str, expected: list[Number], columns: Sequence[Sequence[Number]], source: str, target: str) -> None:
    found = {
        "tensor": by_executor(op, columns, source, target, scalar=False),
        "scalars": by_executor(op, columns, source, target, scalar=True),
    }
    if source in RAW and target in RAW:
        found["simulator"] = by_simulator(op, columns, source, target)
    for who, values in found.items():
        wrong = [
            (who, op, source, target, [c[k] for c in columns], values[k], expected[k])
            for k in range(len(expected))
            if not identical(values[k], expected[k])
        ]
        assert not wrong, wrong[:5]


def identical(a: Number, b: Number) -> bool:
    if isinstance(b, float) and math.isnan(b):
        return math.isnan(a)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def pairs(values: Sequence[Number]) -> tuple[list[Number], list[Number]]:
    left, right = zip(*product(values, repeat=2), strict=True)
    return list(left), list(right)


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("name", FLOAT_OPERATIONS)
def test_floats(name: str, type_: str) -> None:
    left, right = pairs(floats(type_))
    if name == "copysign":  # nobody says which sign a NaN has
        right = [1.0 if math.isnan(b) else b for b in right]
    expected = [numbers.binary(name, a, b, type_) for a, b in zip(left, right, strict=True)]
    check(f"{'math' if name in MATH else 'arith'}.{name}", expected, [left, right], type_, type_)


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("name", numbers.EXACT_FUNCTIONS)
def test_functions_that_are_exact(name: str, type_: str) -> None:
    values = [*floats(type_), *(FORMATS[type_].nearest(x) for x in (0.49999997, -0.49999997, 3.5, -3.5, -0.2))]
    check(f"math.{name}", [numbers.function(name, x, type_) for x in values], [values], type_, type_)


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64", "f8E4M3FN"])
def test_a_fused_multiply_and_add_rounds_once(type_: str) -> None:
    one = FORMATS[type_]
    some = [one.nearest(x) for x in (1 + 2.0**-9, 1 + 2.0**-20, -3.0, 1e-4, 1 / 3, 2.0**-11, 0.0, -0.0, math.inf, 5.0)]
    rows = list(product(some, repeat=3))
    columns = [list(column) for column in zip(*rows, strict=True)]
    expected = [numbers.multiplied_and_added(*row, type_) for row in rows]
    check("math.fma", expected, columns, type_, type_)


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("name", [*INTEGER_OPERATIONS, *UNSIGNED_OPERATIONS, *SHIFTS])
def test_integers(name: str, type_: str) -> None:
    left, right = pairs(integers(type_))
    if "div" in name or "rem" in name:
        kept = [k for k, b in enumerate(right) if b != 0]
        left, right = [left[k] for k in kept], [right[k] for k in kept]
    expected = [numbers.binary(name, a, b, type_) for a, b in zip(left, right, strict=True)]
    check(f"arith.{name}", expected, [left, right], type_, type_)


FLOAT_PREDICATES = ["false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"]
FLOAT_PREDICATES += ["ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"]
INTEGER_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_comparisons_of_floats(predicate: str, type_: str) -> None:
    left, right = pairs(floats(type_))
    expected = [numbers.float_comparison(predicate, a, b) for a, b in zip(left, right, strict=True)]
    check(f"arith.cmpf {predicate},", list(expected), [left, right], type_, "i1")


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("predicate", INTEGER_PREDICATES)
def test_comparisons_of_integers(predicate: str, type_: str) -> None:
    left, right = pairs(integers(type_))
    expected = [numbers.integer_comparison(predicate, a, b, type_) for a, b in zip(left, right, strict=True)]
    check(f"arith.cmpi {predicate},", list(expected), [left, right], type_, "i1")


WIDE = [0.3, -0.7, 1.5, -1.5, 2.5, 127.5, 128.0, -128.9, 255.9, 32767.0, 65504.0, -65520.0, 3e9, -3e9, 2.0**31, 2.0**63]


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64", "f8E5M2"])
@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", ["fptosi", "fptoui"])
def test_floats_to_integers(name: str, source: str, target: str) -> None:
    values = [FORMATS[source].nearest(x) for x in [*WIDE, -0.0, math.inf, -math.inf, math.nan]]
    check(f"arith.{name}", [numbers.convert(name, x, source, target) for x in values], [values], source, target)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN"])
@pytest.mark.parametrize("name", ["sitofp", "uitofp"])
def test_integers_to_floats(name: str, source: str, target: str) -> None:
    halfway = [2**62 + 2**54 + 1, 2**24 + 1, 2**53 + 1, -(2**62) - 2**38 - 1, 2049, 65520, 65519]
    values = [*integers(source), *(x for x in halfway if abs(x) < 1 << numbers.BITS[source] - 1)]
    check(f"arith.{name}", [numbers.convert(name, x, source, target) for x in values], [values], source, target)


@pytest.mark.parametrize(("source", "target"), [(a, b) for a in INTEGERS for b in INTEGERS if a != b])
def test_integers_to_integers(source: str, target: str) -> None:
    values = integers(source)
    wider = numbers.BITS[target] > numbers.BITS[source]
    for name in ("extsi", "extui") if wider else ("trunci",):
        expected = [numbers.convert(name, x, source, target) for x in values]
        check(f"arith.{name}", list(expected), [values], source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [(a, b) for a in FORMATS for b in FORMATS if FORMATS[a].bits > FORMATS[b].bits],
)
def test_floats_to_narrower_floats(source: str, target: str) -> None:
    one = FORMATS[target]
    ends = [one.largest, one.largest * (1 + 2.0 ** -(one.mantissa + 2)), one.number(1) / 2, one.number(1) * 0.75]
    ties = [
        1 + 2.0 ** -(one.mantissa + 1),
        1 + 3 * 2.0 ** -(one.mantissa + 1),
        1 + 2.0 ** -(one.mantissa + 1) + 2.0**-40,
    ]
    values = [FORMATS[source].nearest(x) for x in [*floats(target), *ends, *ties, *(-x for x in ties)]]
    check("arith.truncf", [numbers.convert("truncf", x, source, target) for x in values], [values], source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [(a, b) for a in FORMATS for b in FORMATS if FORMATS[a].bits < FORMATS[b].bits],
)
def test_floats_to_wider_floats(source: str, target: str) -> None:
    values = floats(source)
    check("arith.extf", list(values), [values], source, target)
