"""The scalar regions of vector operations, compiled once to functions over whole blocks of elements.

This is the dataflow simulator's own arithmetic, written independently of the KTIR executor's. Half-precision values are
held in f32; each operation whose result is f16 or bf16 computes in f32 and rounds once. Integers wrap at their width.

Words. *block*: a one-dimensional array, one entry per element of the stream. *raw*: elements as they lie in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ktir.backends.dataflow.unit_program import dtype_name
from ktir.dialect import dfp
from ktir.dialect.locations import location_of
from ktir.errors import DivisionByZero, NotCapable

Array = NDArray[Any]

RAW: Final[dict[str, np.dtype[Any]]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.uint8),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
}
"""How elements lie in memory and travel in queues."""

_HALF: Final = frozenset({"f16", "bf16"})
_WORKING: Final = {"f16": np.float32, "bf16": np.float32, "f32": np.float32, "f64": np.float64, "i1": np.bool_}
FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})


def raw_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of raw elements; :class:`NotCapable` where the simulator has none."""
    if name not in RAW:
        raise NotCapable(f"the simulator has no element type {name}")
    return RAW[name]


def working(raw: Array, name: str) -> Array:
    """Raw elements in the form the arithmetic works on."""
    return raw.astype(_WORKING[name]) if name in _WORKING else raw


def to_raw(values: Array, name: str) -> Array:
    """Working values as they lie in memory: the one rounding of half precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).astype(RAW[name])


def _round(name: str) -> Callable[[Array], Array]:
    raw = RAW[name]
    return lambda values: values.astype(raw).astype(np.float32)


# ---------------------------------------------------------------------------------------------------- scalar operations

_STEPS_PER_UNIT = 512
_ERF_END = 6


def _erf_table() -> tuple[Array, Array]:
    grid = np.arange(_ERF_END * _STEPS_PER_UNIT + 1) / _STEPS_PER_UNIT
    return np.array([math.erf(x) for x in grid]), 2 / math.sqrt(math.pi) * np.exp(-grid * grid)


_ERF, _ERF_SLOPE = _erf_table()


def erf(values: Array) -> Array:
    """The error function: third-order Taylor steps from a table of spacing 1/512, error below 1e-12."""
    wide = values.astype(np.float64)
    size = np.minimum(np.abs(wide), _ERF_END)
    near = np.rint(np.nan_to_num(size) * _STEPS_PER_UNIT).astype(np.int64)
    x = near / _STEPS_PER_UNIT
    h = size - x
    slope = _ERF_SLOPE[near]
    found = _ERF[near] + slope * h * (1 - x * h + (2 * x * x - 1) * h * h * (1 / 3))
    return np.copysign(found, wide).astype(values.dtype)


def _divide_to_zero(left: Array, right: Array) -> Array:
    if np.any(right == 0):
        raise DivisionByZero("integer division by zero")
    quotient = np.abs(left) // np.abs(right)
    return np.where((left < 0) != (right < 0), -quotient, quotient).astype(left.dtype)


def _remainder_to_zero(left: Array, right: Array) -> Array:
    return (left - _divide_to_zero(left, right) * right).astype(left.dtype)


def _floor_divide(left: Array, right: Array) -> Array:
    if np.any(right == 0):
        raise DivisionByZero("integer division by zero")
    return left // right


def _unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(left: Array, right: Array) -> Array:
        if left.dtype == np.bool_:
            return function(left.astype(np.uint8), right.astype(np.uint8)).astype(np.bool_)
        unsigned = np.dtype(f"u{left.dtype.name}")
        found = function(left.view(unsigned), np.broadcast_to(right, left.shape).astype(left.dtype).view(unsigned))
        return found.view(left.dtype) if found.dtype == unsigned else found

    return apply


def _on_bits(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda left, right: function(left, right).astype(left.dtype)


def _fused_multiply_add(left: Array, right: Array, addend: Array) -> Array:
    return (left.astype(np.float64) * right + addend).astype(left.dtype)


def _round_half_away(values: Array) -> Array:
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values))


_UNARY: Final[dict[str, Callable[[Array], Array]]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "math.tanh": np.tanh,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.erf": erf,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": _round_half_away,
}

_BINARY: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.powf": np.power,
    "math.copysign": np.copysign,
    "arith.addi": _on_bits(np.add),
    "arith.subi": _on_bits(lambda left, right: np.subtract(left, right, dtype=np.int64)),
    "arith.muli": _on_bits(np.multiply),
    "arith.divsi": _divide_to_zero,
    "arith.remsi": _remainder_to_zero,
    "arith.divui": _unsigned(_floor_divide),
    "arith.remui": _unsigned(lambda left, right: left - _floor_divide(left, right) * right),
    "arith.floordivsi": _floor_divide,
    "arith.ceildivsi": lambda left, right: -_floor_divide(-left, right),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": _on_bits(np.left_shift),
    "arith.shrsi": _on_bits(np.right_shift),
    "arith.shrui": _unsigned(np.right_shift),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
}

_FLOAT_ORDER: Final[tuple[Callable[[Array, Array], Array], ...]] = (
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    np.not_equal,
)
_SIGNED_ORDER: Final[tuple[Callable[[Array, Array], Array], ...]] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)


def _compare_floats(predicate: int) -> Callable[[Array, Array], Array]:
    """Predicates of ``arith.cmpf``: 0 false, 1-6 ordered, 7 ord, 8-13 unordered, 14 uno, 15 true."""

    def apply(left: Array, right: Array) -> Array:
        unordered = np.isnan(left) | np.isnan(right)
        if predicate in (0, 15):
            return np.full(np.broadcast_shapes(left.shape, right.shape), predicate == 15)
        if predicate in (7, 14):
            return unordered if predicate == 14 else ~unordered
        if predicate < 7:
            return _FLOAT_ORDER[predicate - 1](left, right) & ~unordered
        return _FLOAT_ORDER[predicate - 8](left, right) | unordered

    return apply


def _compare_integers(predicate: int) -> Callable[[Array, Array], Array]:
    """Predicates of ``arith.cmpi``: eq ne slt sle sgt sge ult ule ugt uge."""
    if predicate < 6:
        return _SIGNED_ORDER[predicate]
    return _unsigned(_SIGNED_ORDER[predicate - 4])


def _to_integer(name: str) -> Callable[[Array], Array]:
    return lambda values: np.trunc(values).astype(RAW[name])


def _from_unsigned(name: str) -> Callable[[Array], Array]:
    def apply(values: Array) -> Array:
        plain = values if values.dtype == np.bool_ else values.view(f"u{values.dtype.name}")
        return plain.astype(_WORKING.get(name, RAW[name]))

    return apply


def _cast(name: str, source: str, target: str) -> Callable[[Array], Array] | None:
    kind = _WORKING.get(target, RAW.get(target))
    if kind is None:
        return None
    match name:
        case "arith.extf" | "arith.truncf" | "arith.index_cast":
            return lambda values: values.astype(kind)
        case "arith.sitofp" | "arith.extsi":
            return (lambda values: -(values.astype(kind))) if source == "i1" else (lambda values: values.astype(kind))
        case "arith.uitofp" | "arith.extui" | "arith.index_castui":
            return _from_unsigned(target)
        case "arith.trunci":
            return (
                (lambda values: (values & 1).astype(kind)) if target == "i1" else (lambda values: values.astype(kind))
            )
        case "arith.fptosi" | "arith.fptoui":
            return _to_integer(target)
        case "arith.bitcast":
            return lambda values: working(to_raw(values, source).view(RAW[target]), target)
        case _:
            return None


def _function(op: Operation) -> Callable[..., Array]:
    name, result = op.name, dtype_name(op.results[0].type)
    match op:
        case arith.CmpfOp():
            return _compare_floats(op.predicate.value.data)
        case arith.CmpiOp():
            return _compare_integers(op.predicate.value.data)
        case arith.SelectOp():
            return np.where
        case _:
            pass
    found: Callable[..., Array] | None = _UNARY.get(name) or _BINARY.get(name)
    if name == "math.fma":
        found = _fused_multiply_add
    if found is None and len(op.operands) == 1:
        found = _cast(name, dtype_name(op.operands[0].type), result)
    if found is None:
        raise NotCapable(f"the vector unit's simulator has no {name}", location=location_of(op))
    return _rounded(found, result) if result in _HALF else found


def _rounded(function: Callable[..., Array], name: str) -> Callable[..., Array]:
    rounded = _round(name)
    return lambda *operands: rounded(function(*operands))


def constant_value(op: arith.ConstantOp) -> Array:
    """A scalar constant in working form."""
    value, name = op.value, dtype_name(op.result.type)
    if isinstance(value, FloatAttr):
        number: Any = cast("FloatAttr[Any]", value).value.data
    elif isinstance(value, IntegerAttr):
        number = value.value.data
        if name == "i1":
            number = bool(number & 1)
    else:
        raise NotCapable("a constant of a vector operation is a scalar", location=location_of(op))
    return working(np.array([number], np.float64 if isinstance(number, float) else None).astype(RAW[name]), name)


# -------------------------------------------------------------------------------------------------------------- regions


@dataclass(frozen=True, slots=True)
class Region:
    """A compiled region: from working blocks, one per block argument, and positions to the yielded working block."""

    steps: tuple[tuple[Callable[..., Array], tuple[int, ...]], ...]
    constants: tuple[Array, ...]
    index_dimensions: tuple[int, ...]
    result: int

    def __call__(self, blocks: Sequence[Array], positions: Sequence[Array] = ()) -> Array:
        """The yielded block. ``positions`` holds one block per dimension of the operation's shape."""
        values = [*blocks, *self.constants, *(positions[dim] for dim in self.index_dimensions)]
        with np.errstate(all="ignore"):
            for function, operands in self.steps:
                values.append(function(*[values[operand] for operand in operands]))
        return values[self.result]


def compile_region(block: Block) -> Region:
    """Compiles a region of ``arith`` and ``math`` operations; raises :class:`NotCapable` at what it does not know."""
    constants: list[arith.ConstantOp] = []
    indices: list[dfp.IndexOp] = []
    work: list[Operation] = []
    for op in block.ops:
        if isinstance(op, dfp.IndexOp):
            indices.append(op)
        elif not isinstance(op, arith.ConstantOp | dfp.YieldOp):
            work.append(op)
    yielded = cast("dfp.YieldOp", block.last_op).value
    for value in [*(operand for op in work for operand in op.operands), yielded]:
        if isinstance(value.owner, arith.ConstantOp) and value.owner not in constants:
            constants.append(value.owner)
    known: list[SSAValue] = [*block.args, *(op.result for op in constants), *(op.result for op in indices)]
    numbers = {value: number for number, value in enumerate([*known, *(op.results[0] for op in work)])}
    steps = tuple((_function(op), tuple(_number(numbers, op, operand) for operand in op.operands)) for op in work)
    return Region(
        steps,
        tuple(constant_value(op) for op in constants),
        tuple(op.dim.value.data for op in indices),
        _number(numbers, cast("Operation", block.last_op), yielded),
    )


def _number(numbers: dict[SSAValue, int], op: Operation, value: SSAValue) -> int:
    if value not in numbers:
        raise NotCapable(f"{op.name} uses a value from outside its region", location=location_of(op))
    return numbers[value]


_ASSOCIATIVE: Final[dict[str, Any]] = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}
_WIDENING: Final = ("arith.extf", "arith.extsi", "arith.extui")
_CONVERTING: Final = (*_WIDENING, "arith.truncf")


def associative(block: Block) -> Any | None:
    """The numpy ufunc of a reduction region that is one associative operation apart from casts, else None."""
    work = [op for op in block.ops if not isinstance(op, dfp.YieldOp) and op.name not in _CONVERTING]
    if len(work) != 1 or work[0].name not in _ASSOCIATIVE:
        return None
    sources = {_uncast(operand, _WIDENING) for operand in work[0].operands}
    yielded = _uncast(cast("dfp.YieldOp", block.last_op).value, ("arith.truncf",))
    return _ASSOCIATIVE[work[0].name] if sources == set(block.args) and yielded is work[0].results[0] else None


def _uncast(value: SSAValue, casts: tuple[str, ...]) -> SSAValue:
    while isinstance(value.owner, Operation) and value.owner.name in casts:
        value = value.owner.operands[0]
    return value


def reduce_blocks(
    block: Block, elements: Array, initial: Array | None, element_type: Attribute, accumulator_type: Attribute
) -> Array:
    """Reduces ``elements`` [outer, length, inner] over length, in working form, to [outer, inner].

    ``initial`` [outer, inner] starts the accumulators; without it the first element does.
    """
    combine = associative(block)
    if combine is not None:
        wide = np.int64 if elements.dtype.kind in "iu" and elements.dtype != np.bool_ else elements.dtype
        found = combine.reduce(elements, axis=1, dtype=wide)
        found = found if initial is None else combine(initial, found)
        kind = _WORKING.get(dtype_name(accumulator_type), RAW[dtype_name(accumulator_type)])
        return np.asarray(found).astype(kind)
    region = compile_region(block)
    state = elements[:, 0, :] if initial is None else initial
    for step in range(1 if initial is None else 0, elements.shape[1]):
        state = region((state.ravel(), elements[:, step, :].ravel())).reshape(state.shape)
    return state
