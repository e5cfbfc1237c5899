"""Graphs at level G as texts: written by name, or generated.

A :class:`Graph` collects lines; each method appends one operation and returns the name of its result. All values are
f16, so that what a pass reorders shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, ...]


def tensor(shape: Shape, element: str = "f16") -> str:
    """The type of a tensor."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _map(loops: int, dims: Sequence[int | None]) -> str:
    names = ", ".join(f"d{loop}" for loop in range(loops))
    return f"affine_map<({names}) -> ({', '.join('0' if dim is None else f'd{dim}' for dim in dims)})>"


def _kinds(loops: int, reduced: int | None = None) -> str:
    return ", ".join('"reduction"' if loop == reduced else '"parallel"' for loop in range(loops))


class Graph:
    """A function under construction."""

    def __init__(self) -> None:
        self.arguments: list[tuple[str, Shape, str]] = []
        self.lines: list[str] = []
        self.shapes: dict[str, Shape] = {}

    def argument(self, shape: Shape, *, parameter: bool = False) -> str:
        name = f"%a{len(self.arguments)}"
        self.arguments.append((name, shape, "ktg.parameter" if parameter else ""))
        self.shapes[name] = shape
        return name

    def _value(self, shape: Shape) -> str:
        name = f"%v{len(self.shapes)}"
        self.shapes[name] = shape
        return name

    def pointwise(self, operation: str, *values: str) -> str:
        """``operation`` of one or two values in f32, rounded; shapes are broadcast from the right."""
        shape = np.broadcast_shapes(*(self.shapes[value] for value in values))
        result, rank = self._value(shape), len(shape)
        maps = [self._aligned(value, shape) for value in values]
        types = [tensor(self.shapes[value]) for value in values]
        names = [f"%x{at}" for at in range(len(values))]
        wide = [f"%w{at}" for at in range(len(values))]
        self.lines += [
            f"{result}_e = tensor.empty() : {tensor(shape)}",
            f"{result} = linalg.generic {{indexing_maps = [{', '.join([*maps, _map(rank, list(range(rank)))])}], "
            f"iterator_types = [{_kinds(rank)}]}} ins({', '.join(values)} : {', '.join(types)}) "
            f"outs({result}_e : {tensor(shape)}) {{",
            f"^bb0({', '.join(f'{name}: f16' for name in names)}, %o: f16):",
            *(f"{w} = arith.extf {name} : f16 to f32" for w, name in zip(wide, names, strict=True)),
            f"%y = {operation} {', '.join(wide)} : f32",
            "%n = arith.truncf %y : f32 to f16",
            "linalg.yield %n : f16",
            f"}} -> {tensor(shape)}",
        ]
        return result

    def _aligned(self, value: str, shape: Shape) -> str:
        own = self.shapes[value]
        lead = len(shape) - len(own)
        return _map(len(shape), [None if size != shape[lead + d] else lead + d for d, size in enumerate(own)])

    def _start(self, shape: Shape, number: str) -> str:
        name = f"%s{len(self.lines)}"
        self.lines += [
            f"{name}_c = arith.constant {number} : f32",
            f"{name}_e = tensor.empty() : {tensor(shape, 'f32')}",
            f"{name} = linalg.fill ins({name}_c : f32) outs({name}_e : {tensor(shape, 'f32')}) "
            f"-> {tensor(shape, 'f32')}",
        ]
        return name

    def _rounded(self, name: str, shape: Shape) -> str:
        result, identity = self._value(shape), _map(len(shape), list(range(len(shape))))
        self.lines += [
            f"{result}_e = tensor.empty() : {tensor(shape)}",
            f"{result} = linalg.generic {{indexing_maps = [{identity}, {identity}], "
            f"iterator_types = [{_kinds(len(shape))}]}} ins({name} : {tensor(shape, 'f32')}) "
            f"outs({result}_e : {tensor(shape)}) {{",
            "^bb0(%x: f32, %o: f16):",
            "%n = arith.truncf %x : f32 to f16",
            "linalg.yield %n : f16",
            f"}} -> {tensor(shape)}",
        ]
        return result

    def reduce(self, value: str, dim: int, operation: str = "arith.maximumf", start: str = "0xFF800000") -> str:
        """``value`` reduced over ``dim``, kept as a dimension of one element."""
        shape = self.shapes[value]
        kept = tuple(size for at, size in enumerate(shape) if at != dim)
        first, rank = self._start(kept, start), len(shape)
        out = _map(rank, [at for at in range(rank) if at != dim])
        self.lines += [
            f"{first}_r = linalg.generic {{indexing_maps = [{_map(rank, list(range(rank)))}, {out}], "
            f"iterator_types = [{_kinds(rank, dim)}]}} ins({value} : {tensor(shape)}) "
            f"outs({first} : {tensor(kept, 'f32')}) {{",
            "^bb0(%x: f16, %o: f32):",
            "%w = arith.extf %x : f16 to f32",
            f"%y = {operation} %o, %w : f32",
            "linalg.yield %y : f32",
            f"}} -> {tensor(kept, 'f32')}",
        ]
        single = tuple(1 if at == dim else size for at, size in enumerate(shape))
        return self.reshape(self._rounded(f"{first}_r", kept), single)

    def matmul(self, left: str, right: str) -> str:
        """The product of a ``.. x m x k`` and an ``n x k`` value, as a model's linear layer holds its weight."""
        *lead, inner = self.shapes[left]
        columns = self.shapes[right][0]
        shape, rank = (*lead, columns), len(lead) + 2
        first = self._start(shape, "0.0")
        maps = [
            _map(rank, [*range(len(lead)), rank - 1]),
            _map(rank, [rank - 2, rank - 1]),
            _map(rank, list(range(rank - 1))),
        ]
        self.lines += [
            f"{first}_r = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{_kinds(rank, rank - 1)}]}} "
            f"ins({left}, {right} : {tensor((*lead, inner))}, {tensor((columns, inner))}) "
            f"outs({first} : {tensor(shape, 'f32')}) {{",
            "^bb0(%x: f16, %y: f16, %o: f32):",
            "%v = arith.extf %x : f16 to f32",
            "%w = arith.extf %y : f16 to f32",
            "%m = arith.mulf %v, %w : f32",
            "%n = arith.addf %o, %m : f32",
            "linalg.yield %n : f32",
            f"}} -> {tensor(shape, 'f32')}",
        ]
        return self._rounded(f"{first}_r", shape)

    def reshape(self, value: str, shape: Shape) -> str:
        """The elements of ``value`` in row-major order in another shape."""
        own = self.shapes[value]
        if own == shape:
            return value
        flat = (prod(shape),)
        name = value
        if len(own) > 1:
            name = self._value(flat)
            groups = f"[[{', '.join(map(str, range(len(own))))}]]"
            self.lines.append(f"{name} = tensor.collapse_shape {value} {groups} : {tensor(own)} into {tensor(flat)}")
        if len(shape) > 1:
            result = self._value(shape)
            groups, sizes = f"[[{', '.join(map(str, range(len(shape))))}]]", f"[{', '.join(map(str, shape))}]"
            self.lines.append(
                f"{result} = tensor.expand_shape {name} {groups} output_shape {sizes} : {tensor(flat)} "
                f"into {tensor(shape)}"
            )
            name = result
        return name

    def transpose(self, value: str, order: Sequence[int]) -> str:
        own = self.shapes[value]
        shape = tuple(own[dim] for dim in order)
        result = self._value(shape)
        self.lines += [
            f"{result}_e = tensor.empty() : {tensor(shape)}",
            f"{result} = linalg.transpose ins({value} : {tensor(own)}) outs({result}_e : {tensor(shape)}) "
            f"permutation = [{', '.join(map(str, order))}]",
        ]
        return result

    def slice(self, value: str, dim: int, start: int, size: int) -> str:
        own = self.shapes[value]
        shape = tuple(size if at == dim else each for at, each in enumerate(own))
        result = self._value(shape)
        starts = ", ".join(str(start if at == dim else 0) for at in range(len(own)))
        self.lines.append(
            f"{result} = tensor.extract_slice {value}[{starts}] [{', '.join(map(str, shape))}] "
            f"[{', '.join('1' * len(own))}] : {tensor(own)} to {tensor(shape)}"
        )
        return result

    def concat(self, dim: int, *values: str) -> str:
        shapes = [self.shapes[value] for value in values]
        shape = tuple(sum(each[dim] for each in shapes) if at == dim else size for at, size in enumerate(shapes[0]))
        result = self._value(shape)
        types = ", ".join(map(tensor, shapes))
        self.lines.append(f"{result} = tensor.concat dim({dim}) {', '.join(values)} : ({types}) -> {tensor(shape)}")
        return result

    def softmax(self, value: str, dim: int) -> str:
        """Softmax over ``dim``, as an importer writes it out."""
        moved = self.pointwise("math.exp", self.pointwise("arith.subf", value, self.reduce(value, dim)))
        return self.pointwise("arith.divf", moved, self.reduce(moved, dim, "arith.addf", "0.0"))

    def text(self, *results: str) -> str:
        """The module that returns ``results``."""
        inputs = ", ".join(
            f'{name}: {tensor(shape)} {{ktg.name = "{name[1:]}"{", " + mark if mark else ""}}}'
            for name, shape, mark in self.arguments
        )
        types = ", ".join(tensor(self.shapes[result]) for result in results)
        lines = "\n".join(self.lines)
        return f"func.func @main({inputs}) -> ({types}) {{\n{lines}\nfunc.return {', '.join(results)} : {types}\n}}\n"

    def inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Values for the arguments, small enough that nothing overflows."""
        numbers = np.random.default_rng(seed)
        return {name[1:]: (numbers.standard_normal(shape) / 4).astype(np.float16) for name, shape, _ in self.arguments}


# ---------------------------------------------------------------------------------------------------------- generation

SIZES = st.sampled_from([1, 2, 3, 5, 8, 31, 32, 64, 65, 67, 96, 128, 130])
UNARY = st.sampled_from(["math.exp", "math.tanh", "arith.negf"])
BINARY = st.sampled_from(["arith.addf", "arith.mulf", "arith.subf"])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, str]:
    """A graph of up to six operations on tensors of up to three dimensions, and its text."""
    graph = Graph()
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
    while prod(shape) > 40_000:
        shape = shape[1:]
    values = [graph.argument(shape)]
    for _ in range(draw(st.integers(1, 6))):
        values.append(draw(_step(graph, draw(st.sampled_from(values)))))
    results = [values[-1]] if draw(st.booleans()) else list(dict.fromkeys([values[-1], draw(st.sampled_from(values))]))
    return graph, graph.text(*results)


@st.composite
def _step(draw: st.DrawFn, graph: Graph, value: str) -> str:
    """One more operation on ``value``."""
    shape = graph.shapes[value]
    rank = len(shape)
    match draw(st.sampled_from(["unary", "binary", "bias", "reduce", "softmax", "matmul", "view", "slice", "concat"])):
        case "unary":
            return graph.pointwise(draw(UNARY), graph.pointwise("math.tanh", value))
        case "binary":
            return graph.pointwise(draw(BINARY), graph.pointwise("math.tanh", value), value)
        case "bias":
            own = shape[draw(st.integers(0, rank - 1)) :]
            return graph.pointwise(draw(BINARY), value, graph.argument(own, parameter=True))
        case "reduce":
            dim = draw(st.integers(0, rank - 1))
            return graph.pointwise("arith.subf", value, graph.reduce(value, dim))
        case "softmax":
            return graph.softmax(graph.pointwise("math.tanh", value), draw(st.integers(0, rank - 1)))
        case "matmul":
            weight = graph.argument((draw(SIZES), shape[-1]), parameter=True)
            return graph.pointwise("math.tanh", graph.matmul(value, weight))
        case "view" if rank > 1:
            turned = graph.transpose(value, draw(st.permutations(range(rank))))
            total = prod(shape)
            inner = draw(st.sampled_from([size for size in range(1, total + 1) if total % size == 0]))
            return graph.reshape(turned, (total // inner, inner)) if draw(st.booleans()) else turned
        case "slice":
            dim = draw(st.integers(0, rank - 1))
            start = draw(st.integers(0, shape[dim] - 1))
            return graph.slice(value, dim, start, draw(st.integers(1, shape[dim] - start)))
        case "concat":
            return graph.concat(draw(st.integers(0, rank - 1)), value, graph.pointwise("arith.negf", value))
        case _:
            return graph.pointwise("arith.negf", value)
