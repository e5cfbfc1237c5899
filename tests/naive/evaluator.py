"""A naive evaluator of KTIR: one core, one element at a time, straight from the specification.

It shares nothing with the executor but the parser: no numpy, no vectors, no compiled code. A core is a generator that
stops where it waits for other cores; memory is bytes; a tensor is a list of numbers, row by row, None for an element
that nobody defined.

A reduction with one associative operation, and a contraction, may be summed in f32 in any order (choice Q22 of the
specification digest). Here the sum is exact and rounded once, and each result carries the bound by which another order
may differ; the bound stays with the element where it is stored unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

from tests.naive import numbers
from tests.naive.numbers import Number

Point: TypeAlias = tuple[int, ...]
Element: TypeAlias = "Number | None"
Core: TypeAlias = "Generator[None, None, list[Any]]"

PASSING_ON = ("ktdp.store", "tensor.collapse_shape", "tensor.expand_shape", "tensor.reshape", "scf.for", "scf.if")

HALF_ULP = {name: 2.0 ** -(each.mantissa + 1) for name, each in numbers.FORMATS.items()}


class Undefined(Exception):
    """An element that nobody defined was used."""


class OutOfBounds(Exception):
    """An access outside its view, or outside memory."""


class Inexact(Exception):
    """A sum that another order may give differently was used further, so that bits cannot be compared any more."""


class Hole(Exception):
    """A coordinate of a distributed view that nobody owns."""


# ---------------------------------------------------------------------------------------------------------- affine text


def value_of(e: AffineExpr, dims: Sequence[int], symbols: Sequence[int]) -> int:
    match e:
        case AffineConstantExpr():
            return e.value
        case AffineDimExpr():
            return dims[e.position]
        case AffineSymExpr():
            return symbols[e.position]
        case AffineBinaryOpExpr():
            a, b = value_of(e.lhs, dims, symbols), value_of(e.rhs, dims, symbols)
            match e.kind:
                case AffineBinaryOpKind.Add:
                    return a + b
                case AffineBinaryOpKind.Mul:
                    return a * b
                case AffineBinaryOpKind.FloorDiv:
                    return a // b
                case AffineBinaryOpKind.CeilDiv:
                    return -(-a // b)
                case AffineBinaryOpKind.Mod:
                    return a % b
        case _:
            raise AssertionError(e)


def mapped(m: AffineMap, dims: Sequence[int], symbols: Sequence[int] = ()) -> Point:
    return tuple(value_of(e, dims, symbols) for e in m.results)


def holds(s: AffineSet, point: Sequence[int], symbols: Sequence[int] = ()) -> bool:
    for c in s.constraints:
        difference = value_of(c.lhs, point, symbols) - value_of(c.rhs, point, symbols)
        satisfied = {
            AffineConstraintKind.eq: difference == 0,
            AffineConstraintKind.ge: difference >= 0,
            AffineConstraintKind.le: difference <= 0,
        }[c.kind]
        if not satisfied:
            return False
    return True


SEARCH = range(-2, 130)
"""Where points of sets are looked for: generated programs stay within."""


@cache
def members(s: AffineSet, symbols: tuple[int, ...] = ()) -> tuple[Point, ...]:
    """All points of a set, the last dimension fastest: each dimension is tried over the range that its own constraints
    leave."""
    tried = product(*(candidates(s, d, symbols) for d in range(s.num_dims)))
    return tuple(p for p in tried if holds(s, p, symbols))


def candidates(s: AffineSet, dim: int, symbols: Sequence[int]) -> list[int]:
    alone = [c for c in s.constraints if dims_of(c.lhs) | dims_of(c.rhs) == {dim}]
    only = AffineSet(s.num_dims, s.num_symbols, tuple(alone))
    return [x for x in SEARCH if holds(only, [x if d == dim else 0 for d in range(s.num_dims)], symbols)]


def dims_of(e: AffineExpr) -> set[int]:
    if isinstance(e, AffineBinaryOpExpr):
        return dims_of(e.lhs) | dims_of(e.rhs)
    return {e.position} if isinstance(e, AffineDimExpr) else set()


# --------------------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True)
class Tensor:
    """Elements row by row; ``bounds`` by how much each may differ where it was summed in another order."""

    shape: Point
    type: str
    elements: list[Element]
    bounds: list[float] | None = None
    empty: bool = False

    def at(self, index: Sequence[int]) -> Number:
        element = self.elements[position(self.shape, index)]
        if element is None:
            raise Undefined("an undefined element is used")
        return element


def position(shape: Sequence[int], index: Sequence[int]) -> int:
    place = 0
    for extent, i in zip(shape, index, strict=True):
        place = place * extent + i
    return place


def indices(shape: Sequence[int]) -> Iterator[Point]:
    return product(*(range(extent) for extent in shape))


@dataclass(frozen=True)
class View:
    offset: int
    sizes: Point
    strides: Point
    type: str
    space: str
    core: int | None
    owned: AffineSet | None
    symbols: Point


@dataclass(frozen=True)
class Distributed:
    parts: tuple[View, ...]
    type: str


@dataclass(frozen=True)
class Tile:
    """The coordinates of an access in the order of its elements; ``lookups`` are computed when it is used."""

    view: View | Distributed
    coordinates: Callable[[], list[Point]]
    shape: Point


@dataclass(frozen=True)
class Future:
    op: Operation
    instance: int


@dataclass
class Memory:
    """Byte-addressed memories: the global one and a scratchpad per core."""

    spaces: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)
    bounds: dict[tuple[str, int, int], float] = field(default_factory=dict)

    def read(self, space: tuple[str, int], at: int, type_: str) -> Element:
        raw = [self.spaces.get(space, {}).get(at + k) for k in range(numbers.SIZE[type_])]
        return None if None in raw else numbers.decode(bytes(cast("list[int]", raw)), type_)

    def write(self, space: tuple[str, int], at: int, type_: str, x: Number) -> None:
        memory = self.spaces.setdefault(space, {})
        for k, byte in enumerate(numbers.encode(x, type_)):
            memory[at + k] = byte


# -------------------------------------------------------------------------------------------------------------- program


def run(
    module: ModuleOp, function: str, arguments: Mapping[str, tuple[str, list[Number]] | int | float]
) -> tuple[dict[str, list[Element]], dict[str, list[float]]]:
    """Run a kernel. An array is (element type, elements) and its argument a pointer; afterwards all arrays, and the
    bounds of their elements."""
    memory, values, places = Memory(), {}, {}
    address = 0
    for name, given in arguments.items():
        if not isinstance(given, tuple):
            values[name] = given
            continue
        type_, elements = given
        size = numbers.SIZE[type_]
        for k, x in enumerate(elements):
            memory.write(("global", 0), address + k * size, type_, x)
        places[name], values[name] = address, address // size
        address += -(-len(elements) * size // 128) * 128 + 128
    kernel = next(op for op in module.walk() if op.name == "func.func" and cast(Any, op).sym_name.data == function)
    launch(module, kernel, [values[name_of(a)] for a in kernel.regions[0].block.args], memory)
    arrays = {n: g for n, g in arguments.items() if isinstance(g, tuple)}
    outputs: dict[str, list[Element]] = {}
    bounds: dict[str, list[float]] = {}
    for name, (type_, elements) in arrays.items():
        at = [places[name] + k * numbers.SIZE[type_] for k in range(len(elements))]
        outputs[name] = [memory.read(("global", 0), a, type_) for a in at]
        bounds[name] = [memory.bounds.get(("global", 0, a), 0.0) for a in at]
    return outputs, bounds


def name_of(argument: SSAValue) -> str:
    return argument.name_hint or ""


def launch(module: ModuleOp, kernel: Operation, arguments: Sequence[Any], memory: Memory) -> None:
    """Run a kernel on all cores of its grid, each as far as it gets, in turn."""
    axes = cast(Any, kernel.attributes["grid"]).data if "grid" in kernel.attributes else ()
    grid = tuple(e.value.data for e in axes) or (1,)
    delivered: dict[tuple[Operation, int], dict[int, list[Any]]] = {}
    cores = [Evaluator(grid, core, memory, delivered).start(kernel, arguments) for core in range(prod(grid))]
    waiting = dict(enumerate(cores))
    while waiting:
        for number, core in list(waiting.items()):
            try:
                next(core)
            except StopIteration:
                del waiting[number]


def type_name(attribute: Attribute) -> str:
    return str(attribute)


def element_name(type_: Attribute) -> str:
    return type_name(cast(Any, type_).get_element_type())


def shape_of(type_: Attribute) -> Point:
    return tuple(cast(Any, type_).get_shape())


class Evaluator:
    """One core."""

    def __init__(
        self, grid: Point, core: int, memory: Memory, delivered: dict[tuple[Operation, int], dict[int, list[Any]]]
    ) -> None:
        self.grid, self.core, self.memory, self.delivered = grid, core, memory, delivered
        self.values: dict[SSAValue, Any] = {}
        self.instances: dict[Operation, int] = {}
        self.point: Point = ()

    def start(self, kernel: Operation, arguments: Sequence[Any]) -> Core:
        return self.block(kernel.regions[0].block, arguments)

    def block(self, block: Block, arguments: Sequence[Any]) -> Core:
        """Run a block; what its terminator yields."""
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            operands = [self.values[o] for o in op.operands]
            if op is block.last_op:
                return operands
            results = yield from self.operation(op, operands)
            self.values.update(zip(op.results, results, strict=True))
        return []

    def now(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a block that waits for nobody."""
        core = self.block(block, arguments)
        try:
            next(core)
        except StopIteration as end:
            return end.value
        raise AssertionError("a body that must not wait waits")

    def operation(self, op: Operation, operands: list[Any]) -> Core:
        if op.name not in PASSING_ON and any(isinstance(o, Tensor) and any(o.bounds or ()) for o in operands):
            raise Inexact(op.name)
        dialect, name = op.name.split(".", 1)
        waiting = getattr(self, f"wait_{name}", None)
        if waiting is not None:
            return (yield from waiting(op, operands))
        handler = getattr(self, f"{dialect}_{name}", None)
        if handler is not None:
            return handler(op, operands)
        return [getattr(self, dialect)(op, name, operands)]

    # ------------------------------------------------------------------------------------------------ control flow

    def wait_for(self, op: Operation, operands: list[Any]) -> Core:
        low, high, step, *carried = operands
        assert step > 0
        at = low
        while at < high:
            carried = yield from self.block(op.regions[0].block, [at, *carried])
            at += step
        return carried

    def wait_while(self, op: Operation, operands: list[Any]) -> Core:
        before, after = (region.block for region in op.regions)
        while True:
            goes_on, *operands = yield from self.block(before, operands)
            if not goes_on:
                return operands
            operands = yield from self.block(after, operands)

    def wait_parallel(self, op: Operation, operands: list[Any]) -> Core:
        """One dimension; the iterations are combined in their order."""
        loop, body = cast(Any, op), op.regions[0].block
        (low,), (high,), (step,) = (
            [self.values[v] for v in vs] for vs in (loop.lowerBound, loop.upperBound, loop.step)
        )
        totals = [self.values[v] for v in loop.initVals]
        for at in range(low, high, step):
            found = yield from self.block(body, [at])
            assert body.last_op is not None
            for k, (region, x) in enumerate(zip(body.last_op.regions, found, strict=True)):
                (totals[k],) = self.now(region.block, [totals[k], x])
        return totals

    def wait_if(self, op: Operation, operands: list[Any]) -> Core:
        region = op.regions[0 if operands[0] else 1]
        return (yield from self.block(region.block, [])) if region.blocks else []

    # ------------------------------------------------------------------------------------------------ arith and math

    def arith(self, op: Operation, name: str, operands: list[Any]) -> Any:
        """An operation on numbers, or element by element on tensors."""
        result_type = op.results[0].type
        if not hasattr(result_type, "get_shape"):
            return self.scalar(op, name, operands, type_name(op.operands[0].type), type_name(result_type))
        shape, target = shape_of(result_type), element_name(result_type)
        source = element_name(op.operands[-1].type)
        elements: list[Element] = [
            self.scalar(op, name, [o.at(i) if isinstance(o, Tensor) else o for o in operands], source, target)
            for i in indices(shape)
        ]
        return Tensor(shape, target, elements)

    def scalar(self, op: Operation, name: str, operands: list[Number], source: str, target: str) -> Number:
        match name:
            case "select":
                return operands[1] if operands[0] else operands[2]
            case "negf":
                return -operands[0]
            case "cmpf":
                names = [
                    "false",
                    "oeq",
                    "ogt",
                    "oge",
                    "olt",
                    "ole",
                    "one",
                    "ord",
                    "ueq",
                    "ugt",
                    "uge",
                    "ult",
                    "ule",
                    "une",
                    "uno",
                    "true",
                ]
                return numbers.float_comparison(names[cast(Any, op).predicate.value.data], *map(float, operands))
            case "cmpi":
                names = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
                predicate = names[cast(Any, op).predicate.value.data]
                return numbers.integer_comparison(predicate, int(operands[0]), int(operands[1]), source)
            case _ if name.startswith("math."):
                return numbers.function(name.removeprefix("math."), float(operands[0]), target)
            case _ if len(operands) == 1:
                if name == "fptosi" and not numbers.fits(float(operands[0]), target):
                    raise Inexact(name)
                return numbers.convert(name, operands[0], source, target)
            case _:
                return numbers.binary(name, *operands, target)

    def math(self, op: Operation, name: str, operands: list[Any]) -> Any:
        """A function of one number, computed in f64 and rounded: within one unit in the last place of f32."""
        return self.arith(op, f"math.{name}", operands)

    def arith_constant(self, op: Operation, operands: list[Any]) -> list[Any]:
        value, type_ = cast(Any, op).value, op.results[0].type
        if not hasattr(type_, "get_shape"):
            return [value.value.data if type_name(type_) != "i1" else value.value.data & 1]
        shape, element = shape_of(type_), element_name(type_)
        given = list(value.get_values())
        elements = given * prod(shape) if len(given) == 1 else given
        return [
            Tensor(shape, element, [numbers.rounded(x, element) if element in numbers.FLOATS else x for x in elements])
        ]

    # ------------------------------------------------------------------------------------------------ tensor

    def tensor_empty(self, op: Operation, operands: list[Any]) -> list[Any]:
        shape = shape_of(op.results[0].type)
        return [Tensor(shape, element_name(op.results[0].type), [None] * prod(shape), empty=True)]

    def tensor_splat(self, op: Operation, operands: list[Any]) -> list[Any]:
        shape = shape_of(op.results[0].type)
        return [Tensor(shape, element_name(op.results[0].type), [operands[0]] * prod(shape))]

    def tensor_extract(self, op: Operation, operands: list[Any]) -> list[Any]:
        return [operands[0].at(operands[1:])]

    def tensor_from_elements(self, op: Operation, operands: list[Any]) -> list[Any]:
        return [Tensor(shape_of(op.results[0].type), element_name(op.results[0].type), list(operands))]

    def reshaped(self, op: Operation, operands: list[Any]) -> list[Any]:
        source = operands[0]
        return [Tensor(shape_of(op.results[0].type), source.type, source.elements, source.bounds)]

    tensor_collapse_shape = tensor_expand_shape = tensor_reshape = reshaped

    def slice_of(self, op: Any, operands: list[Any], dynamic: int) -> tuple[Point, Point, Point]:
        """Offsets, sizes and strides of a slice operation; dynamic ones are the operands from ``dynamic`` on."""
        given = iter(operands[dynamic:])
        lists = (op.static_offsets, op.static_sizes, op.static_strides)
        made = [tuple(next(given) if v == -(2**63) else v for v in static.get_values()) for static in lists]
        return made[0], made[1], made[2]

    def tensor_extract_slice(self, op: Operation, operands: list[Any]) -> list[Any]:
        source = operands[0]
        offsets, sizes, strides = self.slice_of(op, operands, 1)
        elements = [
            source.elements[
                position(source.shape, [o + i * s for o, i, s in zip(offsets, index, strides, strict=True)])
            ]
            for index in indices(sizes)
        ]
        return [Tensor(shape_of(op.results[0].type), source.type, elements)]

    def tensor_insert_slice(self, op: Operation, operands: list[Any]) -> list[Any]:
        source, target = operands[0], operands[1]
        offsets, sizes, strides = self.slice_of(op, operands, 2)
        elements = list(target.elements)
        for element, index in zip(source.elements, indices(sizes), strict=True):
            where = [o + i * s for o, i, s in zip(offsets, index, strides, strict=True)]
            elements[position(target.shape, where)] = element
        return [Tensor(target.shape, target.type, elements)]

    # ------------------------------------------------------------------------------------------------ linalg

    def linalg_fill(self, op: Operation, operands: list[Any]) -> list[Any]:
        shape = shape_of(op.results[0].type)
        return [Tensor(shape, element_name(op.results[0].type), [operands[0]] * prod(shape))]

    def linalg(self, op: Operation, name: str, operands: list[Any]) -> Any:
        """The element-wise named operations."""
        a, b, out = operands
        suffix = "f" if out.type in numbers.FLOATS else "i"
        names = {"add": f"add{suffix}", "sub": f"sub{suffix}", "mul": f"mul{suffix}", "div": "divf"}
        operation = names.get(name) or {"max": "maximumf", "min": "minimumf"}[name]
        return Tensor(
            out.shape, out.type, [numbers.binary(operation, a.at(i), b.at(i), out.type) for i in indices(out.shape)]
        )

    def linalg_transpose(self, op: Operation, operands: list[Any]) -> list[Any]:
        source, out = operands
        order = cast(Any, op).permutation.get_values()
        elements: list[Element] = []
        for index in indices(out.shape):
            where = [0] * len(order)
            for k, dim in enumerate(order):
                where[dim] = index[k]
            elements.append(source.at(where))
        return [Tensor(out.shape, out.type, elements)]

    def linalg_broadcast(self, op: Operation, operands: list[Any]) -> list[Any]:
        source, out = operands
        added = set(cast(Any, op).dimensions.get_values())
        elements: list[Element] = [
            source.at([i for dim, i in enumerate(index) if dim not in added]) for index in indices(out.shape)
        ]
        return [Tensor(out.shape, out.type, elements)]

    def linalg_matmul(self, op: Operation, operands: list[Any]) -> list[Any]:
        a, b, out = operands
        return [contraction(out, lambda i: [a.at((i[0], k)) * b.at((k, i[1])) for k in range(a.shape[1])])]

    def linalg_batch_matmul(self, op: Operation, operands: list[Any]) -> list[Any]:
        a, b, out = operands
        return [contraction(out, lambda i: [a.at((i[0], i[1], k)) * b.at((i[0], k, i[2])) for k in range(a.shape[2])])]

    def linalg_reduce(self, op: Operation, operands: list[Any]) -> list[Any]:
        source, init = operands
        reduced = set(cast(Any, op).dimensions.get_values())
        body = op.regions[0].block
        combiner = only_operation(body)
        elements: list[Element] = []
        bounds: list[float] = []
        for index in indices(init.shape):
            kept = iter(index)
            ranges = [range(n) if dim in reduced else [next(kept)] for dim, n in enumerate(source.shape)]
            inputs = [source.at(where) for where in product(*ranges)]
            element, bound = self.folded(body, combiner, init.at(index), inputs, init.type)
            elements.append(element)
            bounds.append(bound)
        return [Tensor(init.shape, init.type, elements, bounds)]

    def folded(
        self, body: Block, combiner: str | None, start: Number, inputs: Sequence[Number], type_: str
    ) -> tuple[Number, float]:
        """Elements folded into ``start``: exactly and rounded once for a sum, else step by step in index order."""
        if combiner == "addf":
            return exact_sum([float(start), *map(float, inputs)], type_)
        if combiner == "mulf":
            return product_of([float(start), *map(float, inputs)], type_)
        for x in inputs:
            (start,) = self.now(body, [x, start])
        return start, 0.0

    def linalg_generic(self, op: Operation, operands: list[Any]) -> list[Any]:
        """The body for every point of the loops, in index order, on the outputs as they are at that point."""
        generic = cast(Any, op)
        maps = [m.data for m in generic.indexing_maps.data]
        inputs = len(operands) - len(op.results)
        loops = loop_extents(maps, [o.shape for o in operands])
        outputs = [list(o.elements) for o in operands[inputs:]]
        body, kinds = op.regions[0].block, [str(k.data.value) for k in generic.iterator_types.data]
        assert all(k == "parallel" for k in kinds) or len(outputs) == 1
        if "reduction" in kinds and only_operation(body) == "addf":
            return [self.summed(op, operands, maps, loops)]
        for point in indices(loops):
            self.point = point
            where = [position(o.shape, mapped(m, point)) for o, m in zip(operands, maps, strict=True)]
            given = [o.elements[place] for o, place in zip(operands[:inputs], where, strict=False)]
            places = where[inputs:]
            held = [out[place] for out, place in zip(outputs, places, strict=True)]
            for argument, x in zip(body.args, [*given, *held], strict=True):
                if x is None and list(argument.uses):
                    raise Undefined("a body uses an undefined element")
            for out, place, x in zip(outputs, places, self.now(body, [*given, *held]), strict=True):
                out[place] = x
        return [Tensor(o.shape, o.type, out) for o, out in zip(operands[inputs:], outputs, strict=True)]

    def summed(self, op: Operation, operands: list[Any], maps: list[AffineMap], loops: Point) -> Tensor:
        """A generic whose body adds one input to its output."""
        source, out = operands
        terms: dict[int, list[float]] = {}
        for point in indices(loops):
            place = position(out.shape, mapped(maps[1], point))
            terms.setdefault(place, []).append(float(source.at(mapped(maps[0], point))))
        sums = [exact_sum([float(out.at(i)), *terms.get(k, [])], out.type) for k, i in enumerate(indices(out.shape))]
        return Tensor(out.shape, out.type, [s for s, _ in sums], [b for _, b in sums])

    def linalg_index(self, op: Operation, operands: list[Any]) -> list[Any]:
        return [self.point[cast(Any, op).dim.value.data]]

    # ------------------------------------------------------------------------------------------------ ktdp

    def ktdp_get_compute_tile_id(self, op: Operation, operands: list[Any]) -> list[Any]:
        coordinates: list[int] = []
        rest = self.core
        for axis in range(len(op.results)):
            extent = self.grid[axis] if axis < len(self.grid) else 1
            coordinates.append(rest % extent)
            rest //= extent
        return coordinates

    def ktdp_construct_memory_view(self, op: Operation, operands: list[Any]) -> list[Any]:
        view = cast(Any, op)
        dynamic = iter(operands[1:])
        sizes = [next(dynamic) if v == -(2**63) else v for v in view.static_sizes.get_values()]
        symbols = [n for n, v in zip(sizes, view.static_sizes.get_values(), strict=True) if v == -(2**63)]
        strides = [next(dynamic) if v == -(2**63) else v for v in view.static_strides.get_values()]
        space = view.memory_space.space if view.memory_space else None
        owned = view.coordinate_set.data if view.coordinate_set else None
        where = (space.kind, space.core) if space else ("global", None)
        element = element_name(op.results[0].type)
        return [View(operands[0], tuple(sizes), tuple(strides), element, *where, owned, tuple(symbols))]

    def ktdp_construct_distributed_memory_view(self, op: Operation, operands: list[Any]) -> list[Any]:
        return [Distributed(tuple(operands), element_name(op.results[0].type))]

    def ktdp_construct_access_tile(self, op: Operation, operands: list[Any]) -> list[Any]:
        tile = cast(Any, op)
        count = len(tile.indices)
        base_map = tile.base_map.data
        base = mapped(base_map, operands[1 : 1 + base_map.num_dims], operands[1 + base_map.num_dims : 1 + count])
        order, symbols = tile.access_tile_order.data, operands[1 + count :]
        points = sorted(members(tile.access_tile_set.data, tuple(symbols)), key=lambda p: mapped(order, p))
        coordinates = [tuple(b + x for b, x in zip(base, p, strict=True)) for p in points]
        return [Tile(operands[0], lambda: coordinates, shape_of(op.results[0].type))]

    def ktdp_construct_indirect_access_tile(self, op: Operation, operands: list[Any]) -> list[Any]:
        tile = cast(Any, op)
        views, captured = len(tile.index_views), len(tile.captured)
        index_views = operands[1 : 1 + views]
        outer, symbols = operands[1 + views : 1 + views + captured], operands[1 + views + captured :]
        order = tile.variables_space_order.data
        points = sorted(members(tile.variables_space_set.data, tuple(symbols)), key=lambda p: mapped(order, p))
        kinds = [bool(k.value.data) for k in tile.per_dim_subscript_kinds.data]
        maps = [m.data for m in tile.per_dim_subscript_maps.data]

        def coordinate(point: Point) -> Point:
            lookups = iter(index_views)
            found: list[int] = []
            for is_lookup, m in zip(kinds, maps, strict=True):
                results = mapped(m, [*outer, *point])
                found.append(cast(int, self.fetch(next(lookups), results)) if is_lookup else results[0])
            return tuple(found)

        return [Tile(operands[0], lambda: [coordinate(p) for p in points], shape_of(op.results[0].type))]

    def place(self, view: View, coordinate: Sequence[int]) -> tuple[tuple[str, int], int]:
        """The space and byte address of a coordinate."""
        if any(not 0 <= c < n for c, n in zip(coordinate, view.sizes, strict=True)):
            raise OutOfBounds(f"{tuple(coordinate)} in a view of {view.sizes}")
        element = view.offset + sum(c * s for c, s in zip(coordinate, view.strides, strict=True))
        owner = 0 if view.space == "global" else self.core if view.core is None else view.core
        return (view.space, owner), element * numbers.SIZE[view.type]

    def owners(self, view: View | Distributed, coordinate: Point) -> list[tuple[View, Point]]:
        """The views that hold a coordinate, and where in each."""
        if isinstance(view, View):
            return [(view, coordinate)]
        found: list[tuple[View, Point]] = []
        for part in view.parts:
            assert part.owned is not None
            if holds(part.owned, coordinate, part.symbols):
                corner = [min(axis) for axis in zip(*members(part.owned, part.symbols), strict=True)]
                found.append((part, tuple(c - low for c, low in zip(coordinate, corner, strict=True))))
        if not found:
            raise Hole(f"nobody owns {coordinate}")
        return found

    def fetch(self, view: View | Distributed, coordinate: Point) -> Element:
        part, local = self.owners(view, coordinate)[0]
        return self.memory.read(*self.place(part, local), part.type)

    def ktdp_load(self, op: Operation, operands: list[Any]) -> list[Any]:
        tile = operands[0]
        elements = [self.fetch(tile.view, c) for c in tile.coordinates()]
        assert len(elements) == prod(tile.shape)
        return [Tensor(tile.shape, tile.view.type, elements)]

    def ktdp_store(self, op: Operation, operands: list[Any]) -> list[Any]:
        data, tile = operands
        coordinates = tile.coordinates()
        assert len(coordinates) == len(data.elements)
        for k, (element, coordinate) in enumerate(zip(data.elements, coordinates, strict=True)):
            if element is None:
                raise Undefined("an undefined element is stored")
            for view, local in self.owners(tile.view, coordinate):
                space, at = self.place(view, local)
                self.memory.write(space, at, view.type, element)
                self.memory.bounds[(*space, at)] = data.bounds[k] if data.bounds else 0.0
        return []

    # ------------------------------------------------------------------------------------------------ between cores

    def group(self, s: AffineSet, groups: Sequence[int]) -> int | None:
        return next((g for g in groups if holds(s, (self.core,), (g,))), None)

    def wait_inter_tile_produce(self, op: Operation, operands: list[Any]) -> Core:
        instance = self.instances.get(op, 0)
        self.instances[op] = instance + 1
        groups = [p[0] for p in members(cast(Any, op.results[0].type).groups.data)]
        mine = self.group(cast(Any, op).producer_tiles_per_group.data, groups)
        if mine is not None:
            partials = yield from self.block(op.regions[0].block, [mine])
            self.delivered.setdefault((op, instance), {})[self.core] = partials
        return [Future(op, instance)]

    def sources(self, op: Any, future: Future, groups: Sequence[int]) -> list[int] | None:
        """The producers whose partials this core receives; None where it consumes nothing."""
        mine = self.group(op.consumer_tiles_per_group.data, groups)
        if mine is None:
            return None
        producers = cast(Any, future.op).producer_tiles_per_group.data
        dependency = op.properties.get("producer_dependency_per_consumer")
        everyone = [p for p in range(prod(self.grid)) if holds(producers, (p,), (mine,))]
        if dependency is None:
            return everyone
        symbols = (self.core, mine)[: dependency.data.num_symbols]
        return [p for p in everyone if holds(dependency.data, (p,), symbols)]

    def received(self, op: Any, future: Future) -> Generator[None, None, list[list[Any]] | None]:
        groups = [p[0] for p in members(cast(Any, future.op.results[0].type).groups.data)]
        sources = self.sources(op, future, groups)
        if sources is None:
            return None
        given = self.delivered.setdefault((future.op, future.instance), {})
        while not all(s in given for s in sources):
            yield
        return [given[s] for s in sources]

    def wait_inter_tile_consume(self, op: Operation, operands: list[Any]) -> Core:
        partials = yield from self.received(op, operands[0])
        if partials is None:
            return [undefined(r.type) for r in op.results]
        assert len(partials) == 1
        return partials[0]

    def wait_inter_tile_reduce(self, op: Operation, operands: list[Any]) -> Core:
        partials = yield from self.received(op, operands[0])
        if partials is None:
            return [undefined(r.type) for r in op.results]
        if not partials:
            return operands[1:]
        total = partials[0]
        for each in partials[1:]:
            total = self.now(op.regions[0].block, [*total, *each])
        return total

    def place_among_consumers(self, op: Any, future: Future) -> tuple[int, int]:
        """Which consumer of its group this core is, in ascending order of ids, and how many there are."""
        groups = [p[0] for p in members(cast(Any, future.op.results[0].type).groups.data)]
        consumers = op.consumer_tiles_per_group.data
        mine = next(g for g in groups if holds(consumers, (self.core,), (g,)))
        ids = [i for i in range(prod(self.grid)) if holds(consumers, (i,), (mine,))]
        return ids.index(self.core), len(ids)

    def shared_out(self, op: Operation, operands: list[Any], split: str | None, joined: str | None) -> Core:
        """Contributions cut along some axes and joined along others."""
        partials = yield from self.received(op, operands[0])
        if partials is None:
            return [undefined(r.type) for r in op.results]
        if op.regions:
            total = partials[0]
            for each in partials[1:]:
                total = self.now(op.regions[0].block, [*total, *each])
            partials = [total]
        number, count = self.place_among_consumers(op, operands[0])
        results: list[Tensor] = []
        for k, result in enumerate(op.results):
            parts = [each[k] for each in partials]
            if split is not None:
                parts = [cut(part, axes_of(op, split), number, count) for part in parts]
            shape = shape_of(result.type)
            results.append(joined_along(parts, axes_of(op, joined), shape) if joined else reshaped(parts, shape))
        return results

    def wait_inter_tile_gather(self, op: Operation, operands: list[Any]) -> Core:
        return (yield from self.shared_out(op, operands, None, "gather_dimensions"))

    def wait_inter_tile_scatter(self, op: Operation, operands: list[Any]) -> Core:
        return (yield from self.shared_out(op, operands, "scatter_dimensions", None))

    def wait_inter_tile_reduce_scatter(self, op: Operation, operands: list[Any]) -> Core:
        return (yield from self.shared_out(op, operands, "scatter_dimensions", None))

    def wait_inter_tile_all_to_all(self, op: Operation, operands: list[Any]) -> Core:
        return (yield from self.shared_out(op, operands, "split_dimensions", "concat_dimensions"))


def axes_of(op: Operation, name: str) -> list[int]:
    return [each.value.data for each in cast(Any, op.properties[name]).data]


def along(index: Sequence[int], axes: Sequence[int], shape: Sequence[int]) -> int:
    """The position along several axes taken as one, the first varying slowest."""
    return position([shape[a] for a in axes], [index[a] for a in axes])


def cut(tensor: Tensor, axes: list[int], number: int, count: int) -> Tensor:
    """Part ``number`` of ``count`` of a tensor; the part's first axis of the list is shortened first."""
    shape, rest = list(tensor.shape), count
    for axis in axes:
        while rest > 1 and shape[axis] > 1:
            by = next(d for d in range(2, shape[axis] + 1) if shape[axis] % d == 0 and rest % d == 0)
            shape[axis], rest = shape[axis] // by, rest // by
    size = prod(shape[a] for a in axes)
    found: dict[Point, Element] = {}
    for index in indices(tensor.shape):
        place = along(index, axes, tensor.shape)
        if place // size == number:
            found[with_position(index, axes, shape, place % size)] = tensor.elements[position(tensor.shape, index)]
    return Tensor(tuple(shape), tensor.type, [found[i] for i in indices(shape)])


def with_position(index: Sequence[int], axes: Sequence[int], shape: Sequence[int], place: int) -> Point:
    """``index`` with the coordinates along ``axes`` that ``place`` stands for."""
    result = list(index)
    for axis in reversed(axes):
        place, result[axis] = divmod(place, shape[axis])
    return tuple(result)


def joined_along(parts: Sequence[Tensor], axes: list[int], shape: Point) -> Tensor:
    """Tensors one behind the other along some axes taken as one."""
    found: dict[Point, Element] = {}
    start = 0
    for part in parts:
        for index in indices(part.shape):
            place = start + along(index, axes, part.shape)
            found[with_position(index, axes, shape, place)] = part.elements[position(part.shape, index)]
        start += prod(part.shape[a] for a in axes)
    return Tensor(shape, parts[0].type, [found[i] for i in indices(shape)])


def reshaped(parts: Sequence[Tensor], shape: Point) -> Tensor:
    """The one part of a producer."""
    (part,) = parts
    assert part.shape == shape
    return part


def undefined(type_: Attribute) -> Tensor:
    return Tensor(shape_of(type_), element_name(type_), [None] * prod(shape_of(type_)))


def only_operation(body: Block) -> str | None:
    """The name of a body's one operation on its two arguments, if it has no other."""
    operations = list(body.ops)
    if len(operations) != 2 or set(operations[0].operands) != set(body.args):
        return None
    return operations[0].name.removeprefix("arith.")


def loop_extents(maps: Sequence[AffineMap], shapes: Sequence[Point]) -> Point:
    extents: dict[int, int] = {}
    for m, shape in zip(maps, shapes, strict=True):
        for expression, extent in zip(m.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = extent
    return tuple(extents[d] for d in range(maps[0].num_dims))


def exact_sum(terms: Sequence[float], type_: str) -> tuple[float, float]:
    """The sum rounded once, and the bound for any other order: n * 2^-24 * sum of magnitudes + 1 ulp of the result.

    A sum of negative zeros alone is one.
    """
    if not all(map(math.isfinite, terms)):
        infinite = {t for t in terms if not math.isfinite(t)}
        return (infinite.pop() if len(infinite) == 1 else math.nan), 0.0
    total = math.fsum(terms) or (-0.0 if all(t == 0 and math.copysign(1, t) < 0 for t in terms) else 0.0)
    unit = 2.0**-53 if type_ == "f64" else 2.0**-24
    result = numbers.rounded(total, type_)
    magnitude = math.fsum(map(abs, terms))
    return result, len(terms) * unit * magnitude + 2 * HALF_ULP[type_] * abs(result) if not is_exact(terms) else 0.0


def is_exact(terms: Sequence[float]) -> bool:
    """Whether f32 holds all partial sums, multiples of 1/256, so that no order makes a difference."""
    return all(256 * t == int(256 * t) for t in terms) and 256 * sum(map(abs, terms)) <= 2**24


def product_of(factors: Sequence[float], type_: str) -> tuple[float, float]:
    result = numbers.rounded(math.prod(factors), type_)
    exact = all(f == int(f) for f in factors) and abs(math.prod(factors)) <= 2**24
    return result, 0.0 if exact else (len(factors) * 2.0**-24 + 2 * HALF_ULP[type_]) * abs(result)


def contraction(out: Tensor, terms: Callable[[Point], list[Any]]) -> Tensor:
    """``out`` plus a sum of products, which starts at zero, for each of its points; an empty ``out`` counts as zero."""
    if out.type not in numbers.FLOATS:
        elements: list[Element] = [
            numbers.wrapped(sum(terms(i)) + (0 if out.empty else int(out.at(i))), out.type) for i in indices(out.shape)
        ]
        return Tensor(out.shape, out.type, elements)
    sums = [exact_sum([0.0 if out.empty else float(out.at(i)), 0.0, *terms(i)], out.type) for i in indices(out.shape)]
    return Tensor(out.shape, out.type, [s for s, _ in sums], [b for _, b in sums])
