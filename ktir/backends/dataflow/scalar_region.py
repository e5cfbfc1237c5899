"""The scalar regions of vector operations, compiled once to functions over whole blocks of elements.

This is the dataflow simulator's own arithmetic, written independently of the KTIR executor's. Narrow floats are held in
f32; each operation whose result is one computes in f32 and rounds once. Integers wrap at their width.

Words. *block*: a one-dimensional array, one entry per element of the stream. Others are those of ``element_types.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ktir.backends.dataflow.element_types import NARROW, RAW, WORKING, before_narrow, rounded, to_raw, working
from ktir.backends.dataflow.unit_program import dtype_name
from ktir.dialect import dfp
from ktir.dialect.locations import location_of
from ktir.errors import DivisionByZero, NotCapable

Array = NDArray[Any]

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


def _require_divisor(right: Array) -> None:
    if np.any(right == 0):
        raise DivisionByZero("integer division by zero")


def _divide_to_zero(left: Array, right: Array) -> Array:
    quotient = _floor_divide(left, right)
    inexact = quotient * right != left
    return quotient + (inexact & (quotient < 0)).astype(quotient.dtype)


def _remainder_to_zero(left: Array, right: Array) -> Array:
    return left - _divide_to_zero(left, right) * right


def _floor_divide(left: Array, right: Array) -> Array:
    _require_divisor(right)
    return left // right


def _divide_up(left: Array, right: Array) -> Array:
    quotient = _floor_divide(left, right)
    return quotient + (quotient * right != left).astype(quotient.dtype)


def _signed(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """``function`` of signed numbers; a true bit is the number -1."""

    def apply(left: Array, right: Array) -> Array:
        if left.dtype != np.bool_:
            return function(left, right)
        found = function(-left.astype(np.int8), -right.astype(np.int8))
        return found if found.dtype == np.bool_ else (found & 1) != 0

    return apply


def _unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(left: Array, right: Array) -> Array:
        if left.dtype == np.bool_:
            return function(left.astype(np.uint8), right.astype(np.uint8)).astype(np.bool_)
        unsigned = np.dtype(f"u{left.dtype.name}")
        found = function(left.view(unsigned), right.astype(left.dtype).view(unsigned))
        return found.view(left.dtype) if found.dtype == unsigned else found

    return apply


def _on_bits(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda left, right: function(left, right).astype(left.dtype)


def _fused_multiply_add(left: Array, right: Array, addend: Array) -> Array:
    """One rounding: the exact sum is split into a sum and its error, which decides where the sum lies between two."""
    if left.dtype == np.float64:
        return _one_by_one(left, right, addend)
    product, more = left.astype(np.float64) * right, addend.astype(np.float64)
    rough = product + more
    part = rough - more
    error = (product - part) + (more - (rough - part))
    near = rough.astype(np.float32)
    other = np.nextafter(near, np.copysign(np.inf, rough - near).astype(np.float32))
    tie = (near != rough) & (np.abs(rough - near) == np.abs(rough - other))
    decided = np.where(error > 0, np.maximum(near, other), np.minimum(near, other))
    return np.where(tie & (error != 0), decided, near)


def _one_by_one(left: Array, right: Array, addend: Array) -> Array:
    every = np.broadcast_arrays(left, right, addend)
    found = [_exactly(a, b, c) for a, b, c in zip(*(each.ravel().tolist() for each in every), strict=True)]
    return np.array(found, np.float64).reshape(every[0].shape)


def _exactly(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return float(np.float64(a) * b + c)
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c
    return float(total) if abs(total) < Fraction(2) ** 1024 - Fraction(2) ** 970 else math.copysign(math.inf, total)


def _round_half_away(values: Array) -> Array:
    below = np.floor(np.abs(values))
    return np.copysign(np.where(np.abs(values) - below < 0.5, below, below + 1), values)


def _ordering_zeros(choose: Callable[..., Array], smaller: bool) -> Callable[[Array, Array], Array]:
    """``choose``, a maximum or minimum of numpy, with -0.0 below +0.0: the sign of two zeros is decided by itself."""

    def apply(left: Array, right: Array) -> Array:
        chosen = choose(left, right)
        tied = (left == 0) & (right == 0)
        if not np.any(tied):
            return chosen
        negative = [np.signbit(left), np.signbit(right)]
        minus: Array = np.logical_or(*negative) if smaller else np.logical_and(*negative)
        return np.where(tied, np.where(minus, -0.0, 0.0).astype(chosen.dtype), chosen)

    return apply


_MAXIMUM, _MINIMUM = _ordering_zeros(np.maximum, False), _ordering_zeros(np.minimum, True)
_MAXNUM, _MINNUM = _ordering_zeros(np.fmax, False), _ordering_zeros(np.fmin, True)


def _shift(function: Callable[[Array, Array], Array], *, keeps_sign: bool) -> Callable[[Array, Array], Array]:
    """A shift; by the width or more, no bit of the number is left."""

    def apply(left: Array, right: Array) -> Array:
        width = 1 if left.dtype == np.bool_ else 8 * left.dtype.itemsize
        inside = (right >= 0) & (right < width)
        moved = function(left, np.where(inside, right, width - 1).astype(left.dtype))
        return np.where(inside, moved, moved if keeps_sign else 0).astype(left.dtype)

    return apply


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
    "arith.maximumf": _MAXIMUM,
    "arith.minimumf": _MINIMUM,
    "arith.maxnumf": _MAXNUM,
    "arith.minnumf": _MINNUM,
    "math.powf": np.power,
    "math.copysign": np.copysign,
    "arith.addi": _signed(np.add),
    "arith.subi": _signed(np.subtract),
    "arith.muli": _on_bits(np.multiply),
    "arith.divsi": _signed(_divide_to_zero),
    "arith.remsi": _signed(_remainder_to_zero),
    "arith.divui": _unsigned(_floor_divide),
    "arith.remui": _unsigned(lambda left, right: left - _floor_divide(left, right) * right),
    "arith.floordivsi": _signed(_floor_divide),
    "arith.ceildivsi": _signed(_divide_up),
    "arith.ceildivui": _unsigned(_divide_up),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": _shift(np.left_shift, keeps_sign=False),
    "arith.shrsi": _shift(np.right_shift, keeps_sign=True),
    "arith.shrui": _shift(_unsigned(np.right_shift), keeps_sign=False),
    "arith.maxsi": _signed(np.maximum),
    "arith.minsi": _signed(np.minimum),
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
        return _signed(_SIGNED_ORDER[predicate])
    return _unsigned(_SIGNED_ORDER[predicate - 4])


def _to_integer(name: str, *, unsigned: bool) -> Callable[[Array], Array]:
    """Towards zero; beyond the range the nearest number, zero for NaN."""
    bits = 1 if name == "i1" else 8 * RAW[name].itemsize
    least, beyond = (0.0, 2.0**bits) if unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    most = int(beyond) - 1

    def apply(values: Array) -> Array:
        whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=beyond, neginf=least))
        kind = np.uint64 if unsigned else np.int64
        inside = np.where(whole < beyond, np.maximum(whole, least), 0.0).astype(kind)
        found = np.where(whole < beyond, inside, kind(most))
        return (found & kind(1)) != 0 if name == "i1" else found.astype(RAW[name])

    return apply


def _plain_integers(values: Array, *, signed: bool) -> Array:
    """The numbers that integers stand for, in a type that holds them."""
    if values.dtype == np.bool_:
        return -values.astype(np.int8) if signed else values.astype(np.int8)
    return values if signed else values.view(f"u{values.dtype.name}")


def _as_float(values: Array, target: str) -> Array:
    """f64 or integers in working form, ready for one rounding."""
    return before_narrow(values) if target in NARROW else values.astype(WORKING[target])


def _cast(name: str, source: str, target: str) -> Callable[[Array], Array] | None:
    kind = WORKING.get(target, RAW.get(target))
    if kind is None:
        return None
    signed = name in ("arith.sitofp", "arith.extsi")
    match name:
        case "arith.truncf" if source == "f64":
            return lambda values: _as_float(values, target)
        case "arith.extf" | "arith.truncf" | "arith.index_cast":
            return lambda values: values.astype(kind)
        case "arith.sitofp" | "arith.uitofp":
            return lambda values: _as_float(_plain_integers(values, signed=signed), target)
        case "arith.extsi" | "arith.extui" | "arith.index_castui":
            return lambda values: _plain_integers(values, signed=signed).astype(kind)
        case "arith.trunci":
            return (
                (lambda values: (values & 1).astype(kind)) if target == "i1" else (lambda values: values.astype(kind))
            )
        case "arith.fptosi" | "arith.fptoui":
            return _to_integer(target, unsigned=name == "arith.fptoui")
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
    return _Rounded(found, result) if result in NARROW else found


@dataclass(frozen=True, slots=True)
class _Rounded:
    """An operation whose result is a narrow float: computed in f32, rounded once."""

    function: Callable[..., Array]
    name: str

    def __call__(self, *operands: Array) -> Array:
        return rounded(self.function(*operands), self.name)


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
    if name in NARROW:
        return rounded(before_narrow(np.array([number], np.float64)), name)
    return working(np.array([number], np.float64 if isinstance(number, float) else None).astype(RAW[name]), name)


# -------------------------------------------------------------------------------------------------------------- regions


@dataclass(frozen=True, slots=True)
class Region:
    """A compiled region: from working blocks, one per block argument, and positions to the yielded working block."""

    steps: tuple[tuple[Callable[..., Array], tuple[int, ...]], ...]
    constants: tuple[Array, ...]
    index_dimensions: tuple[int, ...]
    inputs: int
    result: int

    def __call__(self, blocks: Sequence[Array], positions: Sequence[Array] = ()) -> Array:
        """The yielded block. ``positions`` holds one block per dimension of the operation's shape."""
        values = [*blocks, *self.constants, *(positions[dim] for dim in self.index_dimensions)]
        with np.errstate(all="ignore"):
            for function, operands in self.steps:
                values.append(function(*[values[operand] for operand in operands]))
        return values[self.result]

    @property
    def before_rounding(self) -> Region:
        """The same without the rounding of the result, for one who rounds it when it is stored."""
        last = len(self.steps) - 1
        function, operands = self.steps[last] if self.steps else (None, ())
        if not isinstance(function, _Rounded) or self.result != self.inputs + last:
            return self
        return replace(self, steps=(*self.steps[:-1], (function.function, operands)))


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
        len(known),
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


_WITH_ZEROS: Final[dict[Any, Any]] = {
    np.maximum: _MAXIMUM,
    np.minimum: _MINIMUM,
    np.fmax: _MAXNUM,
    np.fmin: _MINNUM,
}
"""The functions of numpy that leave open which zero they choose, and those that do not."""


def _signed_as_by(combine: Any, found: Array, elements: Array) -> Array:
    """A maximum or minimum over axis 1 with the sign that the order of zeros asks for; other results as they are."""
    if combine not in _WITH_ZEROS or not np.any(found == 0):
        return found
    negative, zero = np.signbit(elements), elements == 0
    minus = np.any(zero & negative, axis=1) if combine in (np.minimum, np.fmin) else ~np.any(zero & ~negative, axis=1)
    return np.where(found == 0, np.where(minus, -0.0, 0.0), found).astype(found.dtype)


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


@dataclass(frozen=True, slots=True)
class Folding:
    """A region that folds elements into accumulators, ready for any number of blocks.

    ``combine`` does it at once where the region is one associative operation; ``kind`` is the type of accumulators in
    working form.
    """

    region: Region
    combine: Any | None
    kind: Any

    @classmethod
    def of(cls, block: Block, accumulator_type: Attribute) -> Folding:
        """Compiles ``block``; raises :class:`NotCapable` at what it does not know."""
        name = dtype_name(accumulator_type)
        return cls(compile_region(block), associative(block), WORKING.get(name, RAW[name]))

    def reduce(self, elements: Array, initial: Array | None) -> Array:
        """Reduces ``elements`` [outer, length, inner] over length, in working form, to [outer, inner].

        ``initial`` [outer, inner] starts the accumulators; without it the first element does.
        """
        combine = self.combine
        if combine is not None and elements.dtype != np.bool_:
            if elements.dtype.kind in "iu":
                found = combine.reduce(elements, axis=1, dtype=np.int64)
            elif combine is np.add:
                found = np.add.reduce(elements, axis=1, initial=-0.0)
            else:
                found = _signed_as_by(combine, combine.reduce(elements, axis=1), elements)
            found = found if initial is None else _WITH_ZEROS.get(combine, combine)(initial, found)
            return np.asarray(found).astype(self.kind)
        state = elements[:, 0, :] if initial is None else initial
        for step in range(1 if initial is None else 0, elements.shape[1]):
            state = self.region((state.ravel(), elements[:, step, :].ravel())).reshape(state.shape)
        return state

    def scan(self, elements: Array, initial: Array | None) -> Array:
        """Every accumulator of a reduction of ``elements`` [outer, length, inner] in index order, in working form.

        A sum or product of floating-point numbers keeps its accumulator in the working form; any other region gives
        what it computes, rounded as its operations say.
        """
        combine = self.combine
        if combine in (np.add, np.multiply) and elements.dtype.kind == "f":
            rows = elements if initial is None else np.concatenate([initial[:, None, :], elements], axis=1)
            return combine.accumulate(rows, axis=1)[:, rows.shape[1] - elements.shape[1] :]
        found: list[Array] = [] if initial is not None else [elements[:, 0, :]]
        state = found[0] if initial is None else initial
        for step in range(len(found), elements.shape[1]):
            state = self.region((state.ravel(), elements[:, step, :].ravel())).reshape(state.shape)
            found.append(state)
        return np.stack(found, axis=1)
