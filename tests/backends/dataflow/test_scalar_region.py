"""The simulator's scalar arithmetic against float64 and Python integers."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IndexType, bf16, f16, f32, i1, i8, i32, i64
from xdsl.ir import Attribute

from ktir.backends.dataflow.scalar_region import Folding, associative, compile_region, erf, to_raw, working
from ktir.dialect import dfp
from ktir.errors import DivisionByZero, NotCapable
from tests.backends.dataflow.programs import region
from tests.settings import examples

RAW = {f16: np.float16, bf16: ml_dtypes.bfloat16, f32: np.float32}
ULP = {f16: 2.0**-11, bf16: 2.0**-8, f32: 2.0**-24}
"""Half a unit in the last place, relative: what one rounding may cost."""

rng = np.random.default_rng(7)
ANY = rng.standard_normal(512) * 3
POSITIVE = np.abs(ANY) + 1e-3


def apply(op: Callable[..., object], kind: Attribute, *inputs: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The result of a one-operation region, and its inputs as the type holds them, both as float64."""
    held = [values.astype(RAW[kind]) for values in inputs]
    compiled = compile_region(
        region([kind] * len(inputs), lambda builder, *args: builder.insert(op(*args)).results[0]).block
    )
    name = str(kind)
    found = to_raw(compiled([working(values, name) for values in held]), name)
    return found.astype(np.float64), [values.astype(np.float64) for values in held]


UNARY = [
    (arith.NegfOp, np.negative, ANY, 0),
    (math_dialect.AbsFOp, np.abs, ANY, 0),
    (math_dialect.ExpOp, np.exp, ANY, 3),
    (math_dialect.Exp2Op, np.exp2, ANY, 3),
    (math_dialect.ExpM1Op, np.expm1, ANY, 3),
    (math_dialect.LogOp, np.log, POSITIVE, 3),
    (math_dialect.Log2Op, np.log2, POSITIVE, 3),
    (math_dialect.Log10Op, np.log10, POSITIVE, 3),
    (math_dialect.Log1pOp, np.log1p, POSITIVE, 3),
    (math_dialect.SqrtOp, np.sqrt, POSITIVE, 1),
    (math_dialect.RsqrtOp, lambda x: 1 / np.sqrt(x), POSITIVE, 3),
    (math_dialect.TanhOp, np.tanh, ANY, 3),
    (math_dialect.SinOp, np.sin, ANY, 3),
    (math_dialect.CosOp, np.cos, ANY, 3),
    (math_dialect.ErfOp, np.vectorize(math.erf), ANY, 3),
    (math_dialect.FloorOp, np.floor, ANY, 0),
    (math_dialect.CeilOp, np.ceil, ANY, 0),
    (math_dialect.TruncOp, np.trunc, ANY, 0),
    (math_dialect.RoundEvenOp, np.rint, ANY, 0),
    (math_dialect.RoundOp, lambda x: np.trunc(x + np.copysign(0.5, x)), ANY, 0),
]


@pytest.mark.parametrize("kind", [f16, bf16, f32], ids=str)
@pytest.mark.parametrize(("op", "exact", "inputs", "ulps"), UNARY, ids=[case[0].name for case in UNARY])
def test_unary_operations_round_once(op, exact, inputs, ulps, kind) -> None:
    found, (held,) = apply(op, kind, inputs)
    expected = exact(held)
    allowed = ULP[kind] * 1.001 + (ulps * ULP[f32] if ulps else 0)
    tiny = float(np.finfo(np.float32).tiny) if kind is not f16 else 2.0**-25
    assert np.all(np.abs(found - expected) <= np.abs(expected) * allowed + tiny)


BINARY = [
    (arith.AddfOp, np.add),
    (arith.SubfOp, np.subtract),
    (arith.MulfOp, np.multiply),
    (arith.DivfOp, np.divide),
    (arith.MaximumfOp, np.maximum),
    (arith.MinimumfOp, np.minimum),
    (arith.MaxnumfOp, np.fmax),
    (arith.MinnumfOp, np.fmin),
    (math_dialect.CopySignOp, np.copysign),
]


@pytest.mark.parametrize("kind", [f16, bf16, f32], ids=str)
@pytest.mark.parametrize(("op", "exact"), BINARY, ids=[case[0].name for case in BINARY])
def test_binary_operations_are_the_correctly_rounded_result(op, exact, kind) -> None:
    found, held = apply(op, kind, ANY, ANY[::-1].copy())
    assert np.array_equal(found, exact(*held).astype(RAW[kind]).astype(np.float64))


def test_maximum_keeps_nan_and_maxnum_drops_it() -> None:
    inputs = np.array([np.nan, 1.0]), np.array([2.0, np.nan])
    assert np.isnan(apply(arith.MaximumfOp, f16, *inputs)[0]).all()
    assert apply(arith.MaxnumfOp, f16, *inputs)[0].tolist() == [2.0, 1.0]


def test_half_precision_overflows_to_infinity_without_a_warning() -> None:
    assert apply(arith.AddfOp, f16, np.array([65504.0]), np.array([65504.0]))[0].tolist() == [math.inf]


@settings(max_examples=examples(500))
@given(st.lists(st.floats(-8, 8), min_size=1, max_size=64))
def test_erf_is_exact_to_double_precision_nearly(values: list[float]) -> None:
    found = erf(np.array(values))
    assert np.abs(found - [math.erf(value) for value in values]).max() < 1e-11


def test_erf_of_the_extremes() -> None:
    assert erf(np.array([np.inf, -np.inf, 0.0, -0.0])).tolist() == [1.0, -1.0, 0.0, -0.0]
    assert np.isnan(erf(np.array([np.nan])))[0]


def wrapped(value: int, width: int) -> int:
    return (value + (1 << width - 1)) % (1 << width) - (1 << width - 1)


def to_zero(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


INTEGER = [
    (arith.AddiOp, lambda a, b, w: a + b),
    (arith.SubiOp, lambda a, b, w: a - b),
    (arith.MuliOp, lambda a, b, w: a * b),
    (arith.DivSIOp, lambda a, b, w: to_zero(a, b)),
    (arith.RemSIOp, lambda a, b, w: a - to_zero(a, b) * b),
    (arith.DivUIOp, lambda a, b, w: (a % (1 << w)) // (b % (1 << w))),
    (arith.RemUIOp, lambda a, b, w: (a % (1 << w)) % (b % (1 << w))),
    (arith.FloorDivSIOp, lambda a, b, w: a // b),
    (arith.AndIOp, lambda a, b, w: a & b),
    (arith.OrIOp, lambda a, b, w: a | b),
    (arith.XOrIOp, lambda a, b, w: a ^ b),
    (arith.MaxSIOp, lambda a, b, w: max(a, b)),
    (arith.MinSIOp, lambda a, b, w: min(a, b)),
    (arith.MaxUIOp, lambda a, b, w: max(a % (1 << w), b % (1 << w))),
    (arith.MinUIOp, lambda a, b, w: min(a % (1 << w), b % (1 << w))),
]


@pytest.mark.parametrize("kind", [i8, i32, i64], ids=str)
@pytest.mark.parametrize(("op", "exact"), INTEGER, ids=[case[0].name for case in INTEGER])
def test_integers_wrap_at_their_width(op, exact, kind) -> None:
    width = kind.width.data
    dtype = np.dtype(f"i{width // 8}")
    info = np.iinfo(dtype)
    left = rng.integers(info.min + 1, info.max, 64, dtype=dtype)
    right = rng.integers(1, min(100, info.max), 64, dtype=dtype) * rng.choice(np.array([-1, 1], dtype), 64)
    compiled = compile_region(region([kind, kind], lambda b, x, y: b.insert(op(x, y)).results[0]).block)
    found = compiled([left, right])
    expected = [wrapped(exact(int(a), int(b), width), width) for a, b in zip(left, right, strict=True)]
    assert found.tolist() == expected and found.dtype == dtype


def test_integer_division_by_zero_is_an_error() -> None:
    compiled = compile_region(region([i32, i32], lambda b, x, y: b.insert(arith.DivSIOp(x, y)).result).block)
    with pytest.raises(DivisionByZero):
        compiled([np.array([1], np.int32), np.array([0], np.int32)])


@pytest.mark.parametrize("predicate", range(16))
def test_float_comparisons_treat_nan_as_told(predicate: int) -> None:
    left, right = np.array([1.0, 2.0, 2.0, np.nan], np.float32), np.array([2.0, 1.0, 2.0, 1.0], np.float32)
    compiled = compile_region(region([f32, f32], lambda b, x, y: b.insert(arith.CmpfOp(x, y, predicate)).result).block)
    names = ["false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"]
    names += ["ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"]
    tests = {"eq": "==", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "ne": "!="}
    name = names[predicate]

    def expected(a: float, b: float) -> bool:
        unordered = math.isnan(a) or math.isnan(b)
        if name in ("true", "false", "ord", "uno"):
            return {"true": True, "false": False, "ord": not unordered, "uno": unordered}[name]
        return name[0] == "u" if unordered else eval(f"a {tests[name[1:]]} b")

    assert compiled([left, right]).tolist() == [expected(a, b) for a, b in zip(left, right, strict=True)]


@pytest.mark.parametrize("predicate", range(10))
def test_integer_comparisons(predicate: int) -> None:
    left, right = np.array([1, -1, 3, -128], np.int8), np.array([2, 1, 3, 127], np.int8)
    compiled = compile_region(region([i8, i8], lambda b, x, y: b.insert(arith.CmpiOp(x, y, predicate)).result).block)
    sign = ["==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="][predicate]
    operands = [
        (int(a) % 256, int(b) % 256) if predicate > 5 else (int(a), int(b)) for a, b in zip(left, right, strict=True)
    ]
    assert compiled([left, right]).tolist() == [eval(f"a {sign} b") for a, b in operands]


def test_casts_between_kinds() -> None:
    def cast(op, source, target, values, name_in, name_out):
        compiled = compile_region(region([source], lambda b, x: b.insert(op(x, target)).results[0]).block)
        return to_raw(compiled([working(values, name_in)]), name_out)

    halves = np.array([1.5, -2.75, 3.0], np.float16)
    assert cast(arith.ExtFOp, f16, f32, halves, "f16", "f32").tolist() == halves.tolist()
    assert cast(arith.TruncFOp, f32, f16, np.array([1 / 3], np.float32), "f32", "f16")[0] == np.float16(1 / 3)
    assert cast(arith.FPToSIOp, f16, i32, halves, "f16", "i32").tolist() == [1, -2, 3]
    assert cast(arith.SIToFPOp, i32, f16, np.array([-7], np.int32), "i32", "f16").tolist() == [-7.0]
    assert cast(arith.UIToFPOp, i8, f32, np.array([-1], np.int8), "i8", "f32").tolist() == [255.0]
    assert cast(arith.ExtUIOp, i1, i64, np.array([1, 0], np.uint8), "i1", "i64").tolist() == [1, 0]
    assert cast(arith.ExtSIOp, i1, i64, np.array([1, 0], np.uint8), "i1", "i64").tolist() == [-1, 0]
    assert cast(arith.TruncIOp, i64, i8, np.array([300], np.int64), "i64", "i8").tolist() == [44]
    assert cast(arith.BitcastOp, f32, i32, np.array([1.0], np.float32), "f32", "i32").tolist() == [0x3F800000]


def test_a_region_may_use_constants_and_positions() -> None:
    def body(b, x):
        position = b.insert(dfp.IndexOp(1)).result
        row = b.insert(arith.IndexCastOp(position, i32)).result
        number = b.insert(arith.SIToFPOp(row, f16)).result
        scaled = b.insert(arith.MulfOp(x, b.insert(arith.ConstantOp(FloatAttr(2.0, f16))).result)).result
        return b.insert(arith.AddfOp(scaled, number)).result

    compiled = compile_region(region([f16], body).block)
    positions = [axis.ravel() for axis in np.indices((2, 3))]
    found = compiled([np.ones(6, np.float32)], positions)
    assert found.tolist() == [2, 3, 4, 2, 3, 4]


def test_what_the_simulator_does_not_know_is_named() -> None:
    with pytest.raises(NotCapable, match="atan"):
        compile_region(region([f32], lambda b, x: b.insert(math_dialect.AtanOp(x)).result).block)


@pytest.mark.parametrize(
    ("op", "exact"),
    [(arith.AddfOp, np.sum), (arith.MaximumfOp, np.max), (arith.MulfOp, np.prod)],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("start", [False, True])
def test_one_operation_reduces_in_f32_and_rounds_once(op, exact, start) -> None:
    block = region([f16, f16], lambda b, x, y: b.insert(op(x, y)).result).block
    assert associative(block) is not None
    elements = (rng.standard_normal((3, 17, 5)) * 0.5 + 1).astype(np.float16)
    initial = rng.standard_normal((3, 5)).astype(np.float16)
    wide = elements.astype(np.float64)
    joined = np.concatenate([initial[:, None].astype(np.float64), wide], axis=1) if start else wide
    expected = exact(joined, axis=1)
    found = Folding.of(block, f16).reduce(working(elements, "f16"), working(initial, "f16") if start else None)
    assert np.all(np.abs(to_raw(found, "f16") - expected) <= np.abs(expected) * 2.0**-11 + 2.0**-20)


def test_widening_accumulation_is_one_operation_and_anything_else_runs_in_order() -> None:
    def widened(b, acc, x):
        return b.insert(arith.AddfOp(acc, b.insert(arith.ExtFOp(x, f32)).result)).result

    def decayed(b, acc, x):
        half = b.insert(arith.ConstantOp(FloatAttr(0.5, f32))).result
        return b.insert(arith.AddfOp(b.insert(arith.MulfOp(acc, half)).result, x)).result

    assert associative(region([f32, f16], widened).block) is np.add
    block = region([f32, f32], decayed).block
    assert associative(block) is None
    values = rng.standard_normal((1, 5, 1)).astype(np.float32)
    expected = 0.0
    for value in values.ravel():
        expected = np.float32(np.float32(expected * np.float32(0.5)) + value)
    found = Folding.of(block, f32).reduce(values, np.zeros((1, 1), np.float32))
    assert found[0, 0] == expected


def test_index_is_held_in_64_bits() -> None:
    compiled = compile_region(region([i64], lambda b, x: b.insert(arith.IndexCastOp(x, IndexType())).results[0]).block)
    assert compiled([np.array([2**40])]).tolist() == [2**40]
