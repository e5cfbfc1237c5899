"""Conformance cases: a kernel, what it gets and what it must give, in one readable file.

A case is a file of KTIR whose comment lines that begin with ``//:`` form its header (grammar: ``case.lark`` beside this
file)::

    //: case "Softmax over each row"
    //: function softmax_rows
    //: machine "spyre"
    //: input x_ptr = f16(normal([256, 1024], seed = 1) * 2)
    //: input y_ptr = f16(fill([256, 1024], nan))
    //: let e = exp(x_ptr - max(x_ptr, axis = 1, keep = 1))
    //: expect y_ptr = e / sum(e, axis = 1, keep = 1)
    //: tolerance y_ptr relative 4e-3 absolute 1e-6 because "why this much and no less"

Words. *input*: an argument of the function, an array of the element type it was rounded to, or a scalar. *let*: a name
for an intermediate value. *expect*: the value an argument must hold after the run. Values are computed in float64 and
int64 whatever the element types of the operands; only ``f16(..)``, ``bf16(..)``, ``f32(..)``, ``i32(..)``, ``i64(..)``
and ``i1(..)`` round, and every input array must be the result of one. A value without a tolerance must be equal.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, cast

import lark
import ml_dtypes
import numpy as np
import numpy.typing as npt

from ktir.errors import CaseError, UnexpectedResult
from ktir.location import Location

Array = npt.NDArray[Any]
Value = Array | int | float | list["Value"]

HEADER_MARK = "//:"
MOST_ELEMENTS = 1 << 28
ELEMENT_TYPES: Mapping[str, npt.DTypeLike] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "i32": np.int32,
    "i64": np.int64,
    "i1": np.bool_,
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|got - want| <= absolute + relative * |want|``, and ``reason`` says why. Infinities and NaNs must be equal."""

    relative: float = 0.0
    absolute: float = 0.0
    reason: str = "the result is exact"


@dataclass(frozen=True)
class Case:
    """A parsed and evaluated header. ``inputs`` are in the order of the file."""

    file: str
    title: str = ""
    function: str | None = None
    machine: str | None = None
    inputs: Mapping[str, Array | int | float] = field(default_factory=dict[str, "Array | int | float"])
    expected: Mapping[str, Array] = field(default_factory=dict[str, Array])
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict[str, Tolerance])
    places: Mapping[str, Location] = field(default_factory=dict[str, Location])

    def check(self, outputs: Mapping[str, Any]) -> dict[str, float]:
        """The largest absolute difference of each expected output.

        Raises :class:`UnexpectedResult` at the ``expect`` line of the first output that is missing, of another size,
        or outside its tolerance.
        """
        return {name: self._check_one(name, outputs.get(name)) for name in self.expected}

    def _check_one(self, name: str, got: Any) -> float:
        where, want = self.places.get(name), wide(self.expected[name])
        if got is None:
            raise UnexpectedResult(f"the run stored nothing to {name!r}", location=where)
        have = wide(np.asarray(got))
        if have.size != want.size:
            raise UnexpectedResult(f"{name}: {have.shape} elements, expected {want.shape}", location=where)
        tolerance = self.tolerances.get(name, Tolerance())
        difference, wrong = compare(have.reshape(want.shape), want, tolerance)
        if wrong.any():
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise UnexpectedResult(
                f"{name}: {int(wrong.sum())} of {wrong.size} elements are wrong, first at {list(first)}: "
                f"{have.reshape(want.shape)[first]!s} where {want[first]!s} is expected",
                location=where,
                remedy=f"allowed: {tolerance.absolute:g} + {tolerance.relative:g} |wanted|, because {tolerance.reason}",
            )
        return difference


def has_header(text: str) -> bool:
    """Whether a program is a case."""
    return any(line.lstrip().startswith(HEADER_MARK) for line in text.splitlines())


def parse_case(text: str, file: str = "-") -> Case:
    """Reads and evaluates the header of a program's text. Raises :class:`CaseError` at the place that is wrong."""
    try:
        return _Evaluation(file).case(_parse(_header(text)))
    except lark.exceptions.UnexpectedInput as error:
        raise CaseError(
            f"the header is not understood here: {_near(text, error.line)!r}",
            location=Location(file, max(error.line, 1), max(error.column, 1)),
            remedy="statements: case, function, machine, input, let, expect, tolerance; see docs/conformance.md",
        ) from None
    except RecursionError:
        raise CaseError("an expression of the header is nested too deep", location=Location(file, 1, 1)) from None


def compare(have: Array, want: Array, tolerance: Tolerance) -> tuple[float, npt.NDArray[np.bool_]]:
    """The largest finite difference, and where the difference is outside the tolerance."""
    if have.dtype.kind in "iub" and want.dtype.kind in "iub":
        return (float(np.abs(have - want).max()) if have.size else 0.0), have != want
    a, b = have.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(a - b)
        right = (difference <= tolerance.absolute + tolerance.relative * np.abs(b)) & np.isfinite(b)
        right |= (a == b) | (np.isnan(a) & np.isnan(b))
    finite = difference[np.isfinite(difference)]
    return (float(finite.max()) if finite.size else 0.0), ~right


def wide(array: Array) -> Array:
    """The same values in float64 or int64."""
    return array.astype(np.int64) if array.dtype.kind in "iub" else array.astype(np.float64)


# ------------------------------------------------------------------------------------------------------------- reading


@cache
def _parser() -> lark.Lark:
    grammar = files("ktir.conformance").joinpath("case.lark").read_text(encoding="utf-8")
    return lark.Lark(grammar, parser="lalr", propagate_positions=True)


def _parse(header: str) -> lark.Tree[lark.Token]:
    return _parser().parse(header)  # pyright: ignore[reportUnknownMemberType]  # lark leaves its text type open


def _header(text: str) -> str:
    """The header with everything else blanked, so that its lines and columns are those of the file."""
    return "\n".join(
        line.replace(HEADER_MARK, " " * len(HEADER_MARK), 1) if line.lstrip().startswith(HEADER_MARK) else ""
        for line in text.splitlines()
    )


def _near(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else "end of the header"


# ---------------------------------------------------------------------------------------------------------- evaluating


class _Evaluation:
    """One pass over the statements of a header, in order."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.values: dict[str, Value] = {"nan": math.nan, "inf": math.inf, "pi": math.pi}
        self.constants = frozenset(self.values)

    def case(self, tree: lark.Tree[lark.Token]) -> Case:
        single: dict[str, str] = {}
        inputs: dict[str, Array | int | float] = {}
        expected: dict[str, Array] = {}
        tolerances: dict[str, Tolerance] = {}
        places: dict[str, Location] = {}
        for statement in _trees(tree):
            kind = str(statement.data)
            match kind:
                case "title" | "function" | "machine":
                    self._once(kind in single, kind, statement)
                    single[kind] = _string(statement.children[0])
                case "input":
                    name = self._define(statement)
                    inputs[name] = self._input(name, statement)
                case "let":
                    self._define(statement)
                case "expect":
                    name = str(statement.children[0])
                    self._once(name in expected, f"expect {name}", statement)
                    expected[name] = np.asarray(self._checked(_tree(statement.children[1])))
                    places[name] = self._location(statement)
                case _:
                    name, relative, absolute, reason = statement.children
                    self._once(str(name) in tolerances, f"tolerance {name}", statement)
                    tolerances[str(name)] = Tolerance(
                        float(_number(_tree(relative))), float(_number(_tree(absolute))), _string(reason)
                    )
        if unused := set(tolerances) - set(expected):
            raise self._error(f"tolerance for {min(unused)!r}, which is not expected", tree)
        return Case(
            self.file,
            single.get("title", ""),
            single.get("function"),
            single.get("machine"),
            inputs,
            expected,
            tolerances,
            places,
        )

    def _define(self, statement: lark.Tree[lark.Token]) -> str:
        name = str(statement.children[0])
        self._once(name in self.values, name, statement)
        self.values[name] = self._checked(_tree(statement.children[1]))
        return name

    def _input(self, name: str, statement: lark.Tree[lark.Token]) -> Array | int | float:
        value = self.values[name]
        if isinstance(value, list):
            raise self._error(f"input {name!r} is a list of numbers, not an array of an element type", statement)
        if isinstance(value, np.ndarray) and not _rounds(_tree(statement.children[1])):
            raise self._error(
                f"input {name!r} has no element type", statement, remedy=f"write {name} = f16(...), or another type"
            )
        return value

    def _checked(self, expression: lark.Tree[lark.Token]) -> Value:
        """Numpy's complaints become errors of the case."""
        try:
            with np.errstate(all="ignore"):
                return self._evaluate(expression)
        except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, MemoryError) as error:
            raise self._error(f"this cannot be computed: {error}", expression) from None

    def _evaluate(self, tree: lark.Tree[lark.Token]) -> Value:
        kind, parts = str(tree.data), tree.children
        match kind:
            case "number":
                return _number(tree)
            case "name":
                return self._named(tree)
            case "negate":
                return -_numeric(self._evaluate(_tree(parts[0])))
            case "binary":
                left, symbol, right = parts
                apply = OPERATORS[str(symbol)]
                return apply(_numeric(self._evaluate(_tree(left))), _numeric(self._evaluate(_tree(right))))
            case "list":
                return [self._evaluate(_tree(part)) for part in _given(parts)]
            case "index":
                array = np.asarray(self._evaluate(_tree(parts[0])))
                return array[tuple(self._subscript(_tree(part)) for part in parts[1:])]
            case _:
                return self._call(tree)

    def _named(self, tree: lark.Tree[lark.Token]) -> Value:
        name = str(tree.children[0])
        if name not in self.values:
            raise self._error(f"nothing is called {name!r} here", tree, remedy=f"defined: {', '.join(self.values)}")
        return self.values[name]

    def _subscript(self, tree: lark.Tree[lark.Token]) -> int | slice:
        parts = cast("list[object | None]", tree.children)
        bounds = [None if part is None else _integer(self._evaluate(_tree(part))) for part in parts]
        if str(tree.data) == "range":
            return slice(*bounds)
        (position,) = bounds
        assert position is not None  # only a range leaves a bound out
        return position

    def _call(self, tree: lark.Tree[lark.Token]) -> Value:
        name = str(tree.children[0])
        positional: list[Value] = []
        named: dict[str, Value] = {}
        for argument in map(_tree, _given(tree.children[1:])):
            if str(argument.data) == "keyword":
                named[str(argument.children[0])] = self._evaluate(_tree(argument.children[1]))
            else:
                positional.append(self._evaluate(_tree(argument.children[0])))
        if name in ELEMENT_TYPES:
            (value,) = positional
            return np.asarray(_numeric(value)).astype(ELEMENT_TYPES[name])
        if name not in FUNCTIONS:
            known = ", ".join(sorted([*FUNCTIONS, *ELEMENT_TYPES]))
            raise self._error(f"there is no function {name!r}", tree, remedy=f"functions: {known}")
        return FUNCTIONS[name](*positional, **named)

    def _once(self, again: bool, what: str, tree: lark.Tree[lark.Token]) -> None:
        if again:
            raise self._error(f"{what!r} is given twice", tree)

    def _location(self, tree: lark.Tree[lark.Token]) -> Location:
        return Location(self.file, tree.meta.line, tree.meta.column)

    def _error(self, message: str, tree: lark.Tree[lark.Token], *, remedy: str | None = None) -> CaseError:
        return CaseError(message, location=self._location(tree), remedy=remedy)


def _trees(tree: lark.Tree[lark.Token]) -> list[lark.Tree[lark.Token]]:
    return [_tree(child) for child in tree.children]


def _tree(node: object) -> lark.Tree[lark.Token]:
    return cast("lark.Tree[lark.Token]", node)


def _rounds(expression: lark.Tree[lark.Token]) -> bool:
    """Whether an expression is ``f16(..)`` or another element type."""
    return str(expression.data) == "call" and str(expression.children[0]) in ELEMENT_TYPES


def _given(nodes: Sequence[object | None]) -> list[object]:
    """The nodes without the empty places the grammar leaves for what is optional."""
    return [node for node in nodes if node is not None]


def _string(token: object) -> str:
    """A quoted text without its quotes; text that runs over several lines is joined by single blanks."""
    return re.sub(r"\s+", " ", str(token).strip('"'))


def _number(tree: lark.Tree[lark.Token]) -> int | float:
    text = str(tree.children[0])
    return int(text) if text.isdigit() else float(text)


def _numeric(value: Value) -> Any:
    """An operand of arithmetic: scalars as they are, arrays in float64 or int64."""
    if isinstance(value, (int, float)):
        return value
    return wide(np.asarray(value))


def _integer(value: Value) -> int:
    if isinstance(value, int):
        return value
    raise TypeError(f"{value!r} is not a whole number")


def _shape(value: Value) -> tuple[int, ...]:
    extents = tuple(_integer(extent) for extent in (value if isinstance(value, list) else [value]))
    if any(extent < 0 for extent in extents) or math.prod(extents) > MOST_ELEMENTS:
        raise ValueError(f"{list(extents)} is no shape of at most {MOST_ELEMENTS} elements")
    return extents


def _power(base: Any, exponent: Any) -> Any:
    """Exact for small whole numbers, float64 otherwise, so that no exponent can take for ever."""
    if isinstance(base, int) and isinstance(exponent, int) and 0 <= exponent < 64 and abs(base) < 1 << 16:
        return base**exponent
    return np.power(np.asarray(base, np.float64), np.asarray(exponent, np.float64))


def _reduction(function: Callable[..., Any]) -> Callable[..., Value]:
    def reduce(array: Value, axis: Value | None = None, keep: Value = 0) -> Value:
        where = None if axis is None else _shape(axis) if isinstance(axis, list) else _integer(axis)
        return np.asarray(function(_numeric(array), axis=where, keepdims=bool(keep)))

    return reduce


def _pointwise(function: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *arrays: np.asarray(function(*(_numeric(array) for array in arrays)))


def _normal(shape: Value, seed: Value) -> Value:
    return np.random.default_rng(_integer(seed)).standard_normal(_shape(shape))


def _uniform(shape: Value, seed: Value, low: Value = 0.0, high: Value = 1.0) -> Value:
    return np.random.default_rng(_integer(seed)).uniform(_numeric(low), _numeric(high), _shape(shape))


def _integers(shape: Value, seed: Value, low: Value, high: Value) -> Value:
    return np.random.default_rng(_integer(seed)).integers(_integer(low), _integer(high), _shape(shape))


def _concat(arrays: Value, axis: Value = 0) -> Value:
    parts: Sequence[Value] = arrays if isinstance(arrays, list) else [arrays]
    return np.concatenate([np.atleast_1d(_numeric(part)) for part in parts], axis=_integer(axis))


def _fill(shape: Value, value: Value) -> Value:
    return np.full(_shape(shape), _numeric(value))


def _iota(shape: Value) -> Value:
    return np.arange(math.prod(_shape(shape))).reshape(_shape(shape))


def _where(condition: Value, chosen: Value, otherwise: Value) -> Value:
    return np.where(
        np.asarray(_numeric(condition), np.bool_), np.asarray(_numeric(chosen)), np.asarray(_numeric(otherwise))
    )


def _reshape(array: Value, shape: Value) -> Value:
    return np.asarray(_numeric(array)).reshape(_shape(shape))


def _transpose(array: Value, order: Value) -> Value:
    return np.transpose(np.asarray(_numeric(array)), _shape(order))


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.mod,
    "@": np.matmul,
    "**": _power,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}

FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    # values
    "fill": _fill,
    "iota": _iota,
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    # point-wise
    "exp": _pointwise(np.exp),
    "log": _pointwise(np.log),
    "sqrt": _pointwise(np.sqrt),
    "tanh": _pointwise(np.tanh),
    "abs": _pointwise(np.abs),
    "floor": _pointwise(np.floor),
    "maximum": _pointwise(np.maximum),
    "minimum": _pointwise(np.minimum),
    "where": _where,
    # reductions: axis = k or [k, l], keep = 1 keeps the dimension
    "sum": _reduction(np.sum),
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "mean": _reduction(np.mean),
    # shapes
    "reshape": _reshape,
    "transpose": _transpose,
    "concat": _concat,
}
