"""Generated KTIR programs: small, valid, and with a bit of everything that a view, a tile or a loop can do.

A program has up to six cores. Each loads tiles of inputs, computes on them, and stores what belongs to it. Views are
dense, padded or column-major, at an offset, distributed over two pieces, or gathered through an index tensor; tiles
are boxes, permuted boxes or sets that are no box; values may go through the scratchpad, a loop, or other cores.

Inputs are small integers as floats, so that sums are exact, or, where the last thing a program computes is a sum, any
numbers: then results come with a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

from tests.naive.numbers import BITS, FLOATS, FORMATS, SIZE, Number, rounded

FLOAT_TYPES = ("f16", "f32", "bf16", "f64", "f8E5M2", "f8E4M3FN")
INTEGER_TYPES = ("i32", "i64", "i8", "i16")


@dataclass(frozen=True)
class Program:
    """KTIR text with one kernel ``@k``, and its arguments: (element type, elements) for a pointer."""

    text: str
    arguments: dict[str, tuple[str, list[Number]]]


@dataclass(frozen=True)
class Value:
    """An SSA tensor."""

    name: str
    shape: tuple[int, ...]
    type: str

    @property
    def ir(self) -> str:
        return f"tensor<{'x'.join([*map(str, self.shape), self.type])}>"


@dataclass
class Builder:
    """Text under construction: aliases on top, lines of the kernel below."""

    chance_of: Random
    grid: tuple[int, ...]
    exact: bool
    lines: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, tuple[str, list[Number]]] = field(default_factory=dict)
    count: int = 0
    indent: int = 1
    scratch: int = 0

    @property
    def cores(self) -> int:
        return prod(self.grid)

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"%{prefix}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def op(self, text: str, prefix: str = "v") -> str:
        name = self.fresh(prefix)
        self.line(f"{name} = {text}")
        return name

    def alias(self, text: str) -> str:
        """The name of an affine map or set."""
        if text not in self.aliases:
            self.aliases[text] = f"#a{len(self.aliases)}"
        return self.aliases[text]

    def index(self, value: int) -> str:
        return self.op(f"arith.constant {value} : index", "c")

    def integer(self, low: int, high: int) -> int:
        return self.chance_of.randint(low, high)

    def chance(self, one_in: int = 2) -> bool:
        return self.integer(1, one_in) == 1

    def pick(self, options: Sequence[str]) -> str:
        return self.chance_of.choice(list(options))

    def shuffled(self, numbers: Sequence[int]) -> list[int]:
        return self.chance_of.sample(list(numbers), len(numbers))

    def integers(self, low: int, high: int, count: int) -> list[int]:
        return [self.integer(low, high) for _ in range(count)]

    def array(self, type_: str, count: int) -> str:
        """A new input with ``count`` elements; its pointer."""
        name = f"p{len(self.arguments)}"
        if type_ in INTEGER_TYPES:
            numbers: list[Number] = list(self.integers(-4, 4, count))
        elif self.exact:
            numbers = [float(x) for x in self.integers(-4, 4, count)]
        else:
            numbers = [rounded(self.any_float(), type_) for _ in range(count)]
        self.arguments[name] = (type_, numbers)
        return f"%{name}"

    def any_float(self) -> float:
        """Mostly a number up to a hundred, sometimes a special one."""
        if self.chance(20):
            return self.chance_of.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-24, -65504.0])
        return self.chance_of.uniform(-100, 100)

    def text(self) -> str:
        arguments = ", ".join(f"%{name}: index" for name in self.arguments)
        grid = ", ".join(map(str, self.grid))
        head = [f"{name} = {text}" for text, name in self.aliases.items()]
        kernel = f"func.func @k({arguments}) attributes {{grid = [{grid}]}} {{"
        return "\n".join([*head, kernel, *self.lines, "  return", "}"]) + "\n"


# -------------------------------------------------------------------------------------------------------- sets and maps


def box(sizes: Sequence[int], low: Sequence[int] | None = None) -> str:
    dims = ", ".join(f"d{k}" for k in range(len(sizes)))
    starts = low or [0] * len(sizes)
    constraints = [
        c
        for k, (start, size) in enumerate(zip(starts, sizes, strict=True))
        for c in (f"d{k} - {start} >= 0" if start else f"d{k} >= 0", f"-d{k} + {start + size - 1} >= 0")
    ]
    return f"affine_set<({dims}) : ({', '.join(constraints) or '0 == 0'})>"


def symbolic_box(sizes: Sequence[int], dim: int) -> str:
    """The box with the size along ``dim`` as its symbol."""
    dims = ", ".join(f"d{k}" for k in range(len(sizes)))
    ends = ["s0 - 1" if k == dim else str(size - 1) for k, size in enumerate(sizes)]
    constraints = ", ".join(f"d{k} >= 0, -d{k} + {end} >= 0" for k, end in enumerate(ends))
    return f"affine_set<({dims})[s0] : ({constraints})>"


def order_map(order: Sequence[int]) -> str:
    dims = ", ".join(f"d{k}" for k in range(len(order)))
    return f"affine_map<({dims}) -> ({', '.join(f'd{k}' for k in order)})>"


@dataclass(frozen=True)
class View:
    """A view in the text: its name, sizes and element type."""

    name: str
    sizes: tuple[int, ...]
    type: str
    memref: str


def make_view(
    b: Builder, type_: str, sizes: tuple[int, ...], pointer: str | None = None, *, low: Sequence[int] | None = None
) -> View:
    """A view of a new array (or at ``pointer``, dense), with strides and an offset of its own."""
    space = "global" if pointer is None or not pointer.startswith("%lx") else "ct_local"
    order = list(range(len(sizes)))
    dense = pointer is not None
    if not dense and b.chance(3):
        order = b.shuffled(order)
    strides = [0] * len(sizes)
    reach = 1
    for dim in reversed(order):
        strides[dim] = reach
        reach *= sizes[dim] + (b.integer(0, 2) if not dense and b.chance(4) else 0)
    if pointer is None:
        offset = b.integer(0, 3) if b.chance(3) else 0
        pointer = b.array(type_, reach + offset)
        if offset:
            pointer = b.op(f"arith.addi {pointer}, {b.index(offset)} : index", "at")
    shown, owned = [str(n) for n in sizes], box(sizes, low)
    if low is None and not dense and b.chance(4):
        dim = b.integer(0, len(sizes) - 1)
        shown[dim] = b.index(sizes[dim])
        owned = symbolic_box(sizes, dim)
    owned = b.alias(owned)
    extents = [n if n.isdigit() else "?" for n in shown]
    memref = f"memref<{'x'.join([*extents, type_])}>"
    name = b.op(
        f"ktdp.construct_memory_view {pointer}, sizes: [{', '.join(shown)}], "
        f"strides: [{', '.join(map(str, strides))}] {{coordinate_set = {owned}, "
        f"memory_space = #ktdp.memory_space<{space}>}} : {memref}",
        "view",
    )
    return View(name, sizes, type_, memref)


def distributed_view(b: Builder, type_: str, sizes: tuple[int, ...]) -> View:
    """A view put together from two pieces, cut along a dimension."""
    dim = b.integer(0, len(sizes) - 1)
    cut = b.integer(1, sizes[dim] - 1)
    parts = []
    for start, stop in ((0, cut), (cut, sizes[dim])):
        part = tuple(stop - start if d == dim else n for d, n in enumerate(sizes))
        parts.append(make_view(b, type_, part, low=[start if d == dim else 0 for d in range(len(sizes))]))
    memref = f"memref<{'x'.join([*map(str, sizes), type_])}>"
    names, types = ", ".join(p.name for p in parts), ", ".join(p.memref for p in parts)
    return View(
        b.op(f"ktdp.construct_distributed_memory_view ({names} : {types}) : {memref}", "dist"), sizes, type_, memref
    )


def interleaved_view(b: Builder, type_: str, sizes: tuple[int, ...]) -> View:
    """A view put together from two pieces that own every other row; each is stored with room for all rows between."""
    parts = []
    for start in (0, 1):
        rows = sizes[0] - start
        part = make_view(b, type_, (rows, *sizes[1:]), low=[start, *[0] * (len(sizes) - 1)])
        constraints = box((rows, *sizes[1:]), [start, *[0] * (len(sizes) - 1)])
        thinned = constraints[: -len(")>")] + f", (d0 - {start}) mod 2 == 0)>"
        b.lines[-1] = b.lines[-1].replace(b.alias(constraints), b.alias(thinned))
        parts.append(part)
    memref = f"memref<{'x'.join([*map(str, sizes), type_])}>"
    names, types = ", ".join(p.name for p in parts), ", ".join(p.memref for p in parts)
    text = f"ktdp.construct_distributed_memory_view ({names} : {types}) : {memref}"
    return View(b.op(text, "dist"), sizes, type_, memref)


def input_view(b: Builder, type_: str, sizes: tuple[int, ...]) -> View:
    if sizes[0] > 2 and b.chance(6):
        return interleaved_view(b, type_, sizes)
    if any(n > 1 for n in sizes) and b.chance(4):
        cuttable = distributed_view if all(n > 1 for n in sizes) else make_view
        return cuttable(b, type_, sizes)
    return make_view(b, type_, sizes)


# ------------------------------------------------------------------------------------------------------------- accesses


def tile_text(
    b: Builder,
    view: View,
    at: Sequence[str],
    set_: str,
    order: Sequence[int],
    shape: Sequence[int],
    symbols: str = "",
) -> str:
    tile = f"!ktdp.access_tile<{'x'.join([*map(str, shape), 'index'])}>"
    return b.op(
        f"ktdp.construct_access_tile {view.name}[{', '.join(at)}]{symbols} "
        f"{{access_tile_order = {b.alias(order_map(order))}, "
        f"access_tile_set = {b.alias(set_)}}} : {view.memref} -> {tile}",
        "tile",
    )


def short(shape: Sequence[int]) -> str:
    return f"<{'x'.join([*map(str, shape), 'index'])}>"


def load(b: Builder, view: View, at: Sequence[str], sizes: Sequence[int], *, shuffle: bool = True) -> Value:
    """A box of ``sizes`` at subscripts ``at``; sometimes permuted and put straight again."""
    order = list(range(len(sizes)))
    if shuffle and b.chance(3):
        order = b.shuffled(order)
    shape = tuple(sizes[k] for k in order)
    set_, symbols = box(sizes), ""
    if shuffle and b.chance(4):
        dim = b.integer(0, len(sizes) - 1)
        set_, symbols = symbolic_box(sizes, dim), f" symbols({b.index(sizes[dim])})"
    tile = tile_text(b, view, at, set_, order, shape, symbols)
    loaded = Value(
        b.op(f"ktdp.load {tile} : {short(shape)} -> tensor<{'x'.join([*map(str, shape), view.type])}>"),
        shape,
        view.type,
    )
    if order == list(range(len(sizes))) or (len(set(shape)) == 1 and b.chance()):
        return loaded
    return transpose(b, loaded, [order.index(k) for k in range(len(sizes))])


def store(b: Builder, value: Value, view: View, at: Sequence[str]) -> None:
    order = list(range(len(value.shape)))
    if b.chance(4):
        order = b.shuffled(order)
        value = transpose(b, value, order)
    sizes = [0] * len(order)
    for k, dim in enumerate(order):
        sizes[dim] = value.shape[k]
    tile = tile_text(b, view, at, box(sizes), order, value.shape)
    b.line(f"ktdp.store {value.name}, {tile} : {value.ir}, {short(value.shape)}")


def load_odd_set(b: Builder, view: View, at: Sequence[str], sizes: tuple[int, int]) -> Value:
    """Elements of a set that is no box, as a row."""
    m, n = sizes
    options = {
        "d0 - d1 >= 0": lambda p: p[0] >= p[1],
        f"d0 + d1 - {max(0, min(m, n) - 1)} >= 0": lambda p: p[0] + p[1] >= max(0, min(m, n) - 1),
        "(d0 + d1) mod 2 == 0": lambda p: (p[0] + p[1]) % 2 == 0,
        "d1 mod 2 == 0": lambda p: p[1] % 2 == 0,
        "d1 - d0 floordiv 2 >= 0": lambda p: p[1] >= p[0] // 2,
    }
    extra = b.pick(list(options))
    count = sum(options[extra]((i, j)) for i in range(m) for j in range(n))
    set_ = box(sizes)[: -len(")>")] + f", {extra})>"
    order = [1, 0] if b.chance() else [0, 1]
    tile = tile_text(b, view, at, set_, order, (1, count))
    return Value(b.op(f"ktdp.load {tile} : <1x{count}xindex> -> tensor<1x{count}x{view.type}>"), (1, count), view.type)


def gather(b: Builder, type_: str, rows: int, columns: int, core: str) -> Value:
    """Rows of a table, by an index tensor; each core reads indices of its own."""
    table = input_view(b, type_, (b.integer(2, 6), columns))
    index_type = b.pick(("i32", "i64"))
    count = rows * b.cores
    pointer = b.array(index_type, count)
    b.arguments[pointer[1:]] = (
        index_type,
        list(b.integers(0, table.sizes[0] - 1, count)),
    )
    memref = f"memref<{count}x{index_type}>"
    indices = b.op(
        f"ktdp.construct_memory_view {pointer}, sizes: [{count}], strides: [1] {{coordinate_set = "
        f"{b.alias(box((count,)))}, memory_space = #ktdp.memory_space<global>}} : {memref}",
        "idx",
    )
    first = b.op(f"arith.muli {core}, {b.index(rows)} : index", "first")
    order = b.shuffled([0, 1]) if b.chance(3) else [0, 1]
    shape = tuple((rows, columns)[k] for k in order)
    tile = b.op(
        "ktdp.construct_indirect_access_tile intermediate_variables(%m, %n) "
        f"{table.name}[ind({indices}[%m + {first}]), "
        f"(%n)] {{variables_space_order = {b.alias(order_map(order))}, "
        f"variables_space_set = {b.alias(box((rows, columns)))}}} "
        f": {table.memref}, {memref} -> !ktdp.access_tile<{shape[0]}x{shape[1]}xindex>",
        "ind",
    )
    loaded = Value(b.op(f"ktdp.load {tile} : {short(shape)} -> tensor<{shape[0]}x{shape[1]}x{type_}>"), shape, type_)
    return loaded if list(order) == [0, 1] else transpose(b, loaded, [1, 0])


def through_scratchpad(b: Builder, value: Value) -> Value:
    """Store a tile to the core's own scratchpad and read it back, whole or by rows."""
    place = b.scratch
    b.scratch += prod(value.shape) * 8 + b.integer(0, 3) * 8
    b.count += 1
    pointer = f"%lx{b.count}"
    b.line(f"{pointer} = arith.constant {place // SIZE[value.type]} : index")
    b.scratch = -(-b.scratch // 8) * 8
    view = make_view(b, value.type, value.shape, pointer)
    zero = b.index(0)
    store(b, value, view, [zero] * len(value.shape))
    return load(b, view, [zero] * len(value.shape), value.shape)


# ------------------------------------------------------------------------------------------------------------ computing


def transpose(b: Builder, value: Value, order: Sequence[int]) -> Value:
    shape = tuple(value.shape[k] for k in order)
    out = empty(b, shape, value.type)
    name = b.op(
        f"linalg.transpose ins({value.name} : {value.ir}) outs({out.name} : {out.ir}) "
        f"permutation = [{', '.join(map(str, order))}]"
    )
    return Value(name, shape, value.type)


def empty(b: Builder, shape: tuple[int, ...], type_: str) -> Value:
    made = Value("", shape, type_)
    return Value(b.op(f"tensor.empty() : {made.ir}"), shape, type_)


def literal(type_: str, number: int) -> str:
    return f"{number}.0" if type_ in FLOATS else str(number)


def splat(b: Builder, like: Value, number: int) -> Value:
    if b.chance():
        return Value(b.op(f"arith.constant dense<{literal(like.type, number)}> : {like.ir}"), like.shape, like.type)
    scalar = b.op(f"arith.constant {literal(like.type, number)} : {like.type}", "s")
    if b.chance():
        return Value(b.op(f"tensor.splat {scalar} : {like.ir}"), like.shape, like.type)
    out = empty(b, like.shape, like.type)
    filled = b.op(f"linalg.fill ins({scalar} : {like.type}) outs({out.name} : {out.ir}) -> {out.ir}")
    return Value(filled, like.shape, like.type)


def pointwise(b: Builder, x: Value, y: Value) -> Value:
    """Two tensors of one shape and type."""
    if x.type in FLOATS:
        name = b.pick(("addf", "subf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"))
    else:
        name = b.pick(("addi", "subi", "muli", "maxsi", "minsi", "andi", "ori", "xori", "maxui"))
    return Value(b.op(f"arith.{name} {x.name}, {y.name} : {x.ir}"), x.shape, x.type)


def named(b: Builder, x: Value, y: Value) -> Value:
    out = empty(b, x.shape, x.type)
    name = b.pick(("add", "sub", "mul"))
    text = f"linalg.{name} ins({x.name}, {y.name} : {x.ir}, {y.ir}) outs({out.name} : {out.ir}) -> {out.ir}"
    return Value(b.op(text), x.shape, x.type)


def generic(b: Builder, x: Value, y: Value) -> Value:
    """An element-wise body with a broadcast second operand and a position."""
    out = empty(b, x.shape, x.type)
    rank = len(x.shape)
    identity = b.alias(order_map(range(rank)))
    kinds = ", ".join(['"parallel"'] * rank)
    b.count += 1
    name = f"%v{b.count}"
    b.line(
        f"{name} = linalg.generic {{indexing_maps = [{identity}, {identity}, {identity}], iterator_types = [{kinds}]}}"
    )
    b.line(f"    ins({x.name}, {y.name} : {x.ir}, {y.ir}) outs({out.name} : {out.ir}) {{")
    b.line(f"  ^bb0(%a: {x.type}, %b: {x.type}, %o: {x.type}):")
    if x.type in FLOATS:
        b.line(f"    %m = arith.mulf %a, %b : {x.type}")
        b.line(f"    %c = arith.cmpf {b.pick(('oge', 'ult', 'oeq', 'une'))}, %m, %a : {x.type}")
    else:
        b.line("    %i = linalg.index 0 : index")
        b.line(f"    %j = arith.index_cast %i : index to {x.type}")
        b.line(f"    %m = arith.muli %j, %b : {x.type}")
        b.line(f"    %c = arith.cmpi {b.pick(('sge', 'ult', 'eq', 'ne', 'slt'))}, %m, %a : {x.type}")
    b.line(f"    %r = arith.select %c, %a, %m : {x.type}")
    b.line(f"    linalg.yield %r : {x.type}")
    b.line(f"  }} -> {out.ir}")
    return Value(name, x.shape, x.type)


def chosen(b: Builder, x: Value, y: Value) -> Value:
    mask = f"tensor<{'x'.join([*map(str, x.shape), 'i1'])}>"
    if x.type in FLOATS:
        condition = b.op(f"arith.cmpf {b.pick(('ogt', 'ole', 'ueq', 'one'))}, {x.name}, {y.name} : {x.ir}", "m")
    else:
        condition = b.op(f"arith.cmpi {b.pick(('sgt', 'sle', 'eq', 'ult'))}, {x.name}, {y.name} : {x.ir}", "m")
    return Value(b.op(f"arith.select {condition}, {x.name}, {y.name} : {mask}, {x.ir}"), x.shape, x.type)


def cast_to(b: Builder, x: Value, type_: str) -> Value:
    """``x`` in another element type, over f32 where there is no direct way."""
    if x.type == type_:
        return x
    target = Value("", x.shape, type_)
    if x.type in FLOATS and type_ in FLOATS:
        before, after = FORMATS[x.type].bits, FORMATS[type_].bits
        if before == after:
            return cast_to(b, cast_to(b, x, "f32"), type_)
        name = "arith.truncf" if before > after else "arith.extf"
    elif x.type in FLOATS:
        name = "arith.fptosi"
    elif type_ in FLOATS:
        name = "arith.sitofp"
    else:
        name = "arith.extsi" if BITS[type_] > BITS[x.type] else "arith.trunci"
    return Value(b.op(f"{name} {x.name} : {x.ir} to {target.ir}"), x.shape, type_)


def reduced(b: Builder, x: Value) -> Value:
    """A reduction over one dimension, kept as a dimension of one."""
    dim = b.integer(0, len(x.shape) - 1)
    shape = tuple(n for d, n in enumerate(x.shape) if d != dim)
    kept = tuple(1 if d == dim else n for d, n in enumerate(x.shape))
    combiners = ("addf", "maximumf", "minimumf") if x.type in FLOATS else ("addi", "maxsi", "andi")
    init = splat(b, Value("", shape, x.type), b.integer(-2, 2))
    name = b.pick(combiners)
    if b.chance():
        operands = f"ins({x.name} : {x.ir}) outs({init.name} : {init.ir})"
        result = b.op(f"linalg.reduce {{ arith.{name} }} {operands} dimensions = [{dim}]")
    else:
        result = b.fresh()
        b.line(f"{result} = linalg.reduce ins({x.name} : {x.ir}) outs({init.name} : {init.ir}) dimensions = [{dim}]")
        b.line(f"  (%in: {x.type}, %acc: {x.type}) {{")
        b.line(f"    %r = arith.{name} %in, %acc : {x.type}")
        b.line(f"    linalg.yield %r : {x.type}")
        b.line("  }")
    groups = {1: "[]", 2: "[[0, 1]]", 3: "[[0, 1], [2]]" if dim == 0 else "[[0], [1, 2]]"}[len(x.shape)]
    sizes = ", ".join(map(str, kept))
    target = Value("", kept, x.type)
    expanded = b.op(f"tensor.expand_shape {result} {groups} output_shape [{sizes}] : {init.ir} into {target.ir}")
    return Value(expanded, kept, x.type)


def broadcast(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """A tensor with dimensions of one spread to ``shape``."""
    spread = [d for d, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m or n == 1]
    kept = tuple(n for d, n in enumerate(x.shape) if d not in spread)
    groups, current = [], []
    for d in range(len(shape)):
        current.append(d)
        if d not in spread:
            groups.append(current)
            current = []
    if groups:
        groups[-1].extend(current)
    inner = Value("", kept, x.type)
    collapsed = b.op(f"tensor.collapse_shape {x.name} {groups} : {x.ir} into {inner.ir}") if spread else x.name
    out = empty(b, shape, x.type)
    if not spread:
        return x
    text = f"linalg.broadcast ins({collapsed} : {inner.ir}) outs({out.name} : {out.ir}) dimensions = {spread}"
    return Value(b.op(text), shape, x.type)


def sliced(b: Builder, x: Value) -> Value:
    """Part of a tensor put into another place of a constant one."""
    sizes = [b.integer(1, n) for n in x.shape]
    source, target = ([b.integer(0, n - s) for n, s in zip(x.shape, sizes, strict=True)] for _ in range(2))
    part = Value("", tuple(sizes), x.type)
    ones = ", ".join("1" for _ in sizes)
    lists = [f"[{', '.join(map(str, v))}] [{', '.join(map(str, sizes))}] [{ones}]" for v in (source, target)]
    cut = b.op(f"tensor.extract_slice {x.name}{lists[0]} : {x.ir} to {part.ir}")
    base = splat(b, x, b.integer(-3, 3))
    return Value(b.op(f"tensor.insert_slice {cut} into {base.name}{lists[1]} : {part.ir} into {x.ir}"), x.shape, x.type)


def matmul(b: Builder, x: Value) -> Value:
    """``x`` times a weight that all cores read, into its own type or f32."""
    m, k = x.shape
    n = b.integer(1, 4)
    w = load(b, make_view(b, x.type, (k, n)), [b.index(0), b.index(0)], (k, n))
    result = "f32" if x.type in FLOATS and x.type != "f64" and b.chance() else x.type
    out = Value("", (m, n), result)
    start = empty(b, (m, n), result) if b.chance(4) else splat(b, out, b.integer(-1, 1))
    text = f"linalg.matmul ins({x.name}, {w.name} : {x.ir}, {w.ir}) outs({start.name} : {out.ir}) -> {out.ir}"
    return Value(b.op(text), (m, n), result)


def computed(b: Builder, x: Value, *, last: bool = False) -> Value:
    """One step of computing on ``x``; sums only where they are exact or the last thing done."""
    sums = b.exact or last
    options: list[Callable[[], Value]] = [
        lambda: pointwise(b, x, splat(b, x, b.integer(-3, 3))),
        lambda: pointwise(b, x, x),
        lambda: generic(b, x, splat(b, x, b.integer(-2, 2))),
        lambda: chosen(b, x, splat(b, x, b.integer(-1, 1))),
        lambda: sliced(b, x),
        lambda: transpose(b, x, b.shuffled(range(len(x.shape)))),
        lambda: through_scratchpad(b, x),
    ]
    if x.type in ("f16", "f32", "i32"):
        options.append(lambda: named(b, x, splat(b, x, b.integer(-3, 3))))
    if b.exact or x.type not in FLOATS:
        options.append(
            lambda: cast_to(b, x, b.pick((*FLOAT_TYPES, *INTEGER_TYPES)) if b.exact else b.pick(INTEGER_TYPES))
        )
    elif x.type in FLOATS:
        options.append(lambda: cast_to(b, x, b.pick(FLOAT_TYPES)))
    if sums and len(x.shape) > 1:
        options.append(lambda: reduced(b, x))
        if b.exact:
            options.append(lambda: pointwise(b, x, broadcast(b, reduced(b, x), x.shape)))
        if len(x.shape) == 2:
            options.append(lambda: matmul(b, x))
    return options[b.integer(0, len(options) - 1)]()


def chain(b: Builder, x: Value, steps: int) -> Value:
    for k in range(steps):
        x = computed(b, x, last=k == steps - 1)
    return x


# -------------------------------------------------------------------------------------------------------- between cores


def group_sets(b: Builder) -> tuple[str, str, int]:
    """Producers and groups for a partition of the cores into groups of equal size; and that size."""
    size = b.chance_of.choice([s for s in range(1, b.cores + 1) if b.cores % s == 0])
    groups = b.cores // size
    if b.chance():
        tiles = f"affine_set<(i)[g] : (i - {size} * g >= 0, {size} * g + {size - 1} - i >= 0)>"
    else:
        tiles = f"affine_set<(i)[g] : (i mod {groups} - g == 0, i >= 0, -i + {b.cores - 1} >= 0)>"
    return b.alias(tiles), b.alias(f"affine_set<(g) : (g >= 0, -g + {groups - 1} >= 0)>"), size


def all_reduced(b: Builder, x: Value) -> Value:
    """``x`` combined over the cores of each group, every core receiving the result."""
    tiles, groups, _ = group_sets(b)
    future = f"<({x.ir}), groups = {groups}>"
    name = b.pick(("addf", "maximumf") if x.type in FLOATS else ("addi", "maxsi"))
    identity = splat(b, x, 0)
    made = b.fresh("future")
    b.line(f"{made} = ktdp.inter_tile_produce producer_tiles_per_group = {tiles} -> {future} {{")
    b.line("^bb0(%gid: index):")
    b.line(f"  ktdp.yield_partial {x.name} : {x.ir}")
    b.line("}")
    result, sources = b.fresh(), ""
    if b.chance():
        conditions = ("-p + c >= 0", "p - c >= 0", "p - c == 0", "(p + c) mod 2 == 0", "p + g >= 0")
        sources = f"affine_set<(p)[c, g] : (p >= 0, {b.pick(conditions)})>"
        sources = f"producer_dependency_per_consumer = {b.alias(sources)}, "
    b.line(
        f"{result} = ktdp.inter_tile_reduce({made}) consumer_tiles_per_group = {tiles}, {sources}"
        f"identity({identity.name} : {x.ir}) : {future} -> {x.ir} {{"
    )
    b.line(f"^bb0(%l: {x.ir}, %r: {x.ir}):")
    b.line(f"  %lr = arith.{name} %l, %r : {x.ir}")
    b.line(f"  ktdp.yield_reduced %lr : {x.ir}")
    b.line("}")
    return Value(result, x.shape, x.type)


def shifted(b: Builder, x: Value) -> Value:
    """Each core receives the tile of another: a rotation over all cores."""
    n, by = b.cores, b.integer(0, b.cores - 1)
    tiles = b.alias(f"affine_set<(i)[g] : (i >= 0, -i + {n - 1} >= 0)>")
    groups = b.alias("affine_set<(g) : (g == 0)>")
    source = b.alias(f"affine_set<(p)[c] : (p - (c + {by}) mod {n} == 0)>")
    future = f"<({x.ir}), groups = {groups}>"
    made = b.fresh("future")
    b.line(f"{made} = ktdp.inter_tile_produce producer_tiles_per_group = {tiles} -> {future} {{")
    b.line("^bb0(%gid: index):")
    b.line(f"  ktdp.yield_partial {x.name} : {x.ir}")
    b.line("}")
    sets = f"consumer_tiles_per_group = {tiles}, producer_dependency_per_consumer = {source}"
    return Value(b.op(f"ktdp.inter_tile_consume({made}) {sets} : {future} -> {x.ir}"), x.shape, x.type)


def produced(b: Builder, x: Value, tiles: str, groups: str) -> tuple[str, str]:
    """``x`` as the contribution of each core in ``tiles``: the future and its type."""
    future, made = f"<({x.ir}), groups = {groups}>", b.fresh("future")
    b.line(f"{made} = ktdp.inter_tile_produce producer_tiles_per_group = {tiles} -> {future} {{")
    b.line("^bb0(%gid: index):")
    b.line(f"  ktdp.yield_partial {x.name} : {x.ir}")
    b.line("}")
    return made, future


def widened(shape: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return tuple(n * by if d == axis else n for d, n in enumerate(shape))


def repeated(b: Builder, x: Value, axis: int, times: int) -> Value:
    """Copies of ``x`` one behind the other along an axis, so that it can be cut into so many parts."""
    whole = splat(b, Value("", widened(x.shape, axis, times), x.type), b.integer(-2, 2))
    for k in range(times):
        part = pointwise(b, x, splat(b, x, k))
        at = ", ".join(str(k * n if d == axis else 0) for d, n in enumerate(x.shape))
        sizes, ones = ", ".join(map(str, x.shape)), ", ".join("1" for _ in x.shape)
        name = b.op(
            f"tensor.insert_slice {part.name} into {whole.name}[{at}] [{sizes}] [{ones}] : {part.ir} into {whole.ir}"
        )
        whole = Value(name, whole.shape, whole.type)
    return whole


def shared(b: Builder, x: Value) -> Value:
    """``x`` gathered, scattered, exchanged or reduced and scattered over the cores of each group."""
    tiles, groups, size = group_sets(b)
    axis = b.integer(0, len(x.shape) - 1)
    kind = b.pick(("gather", "scatter", "all_to_all", "reduce_scatter"))
    if kind == "gather":
        made, future = produced(b, x, tiles, groups)
        whole = Value("", widened(x.shape, axis, size), x.type)
        text = f"ktdp.inter_tile_gather({made}) consumer_tiles_per_group = {tiles}, gather_dimensions = [{axis}]"
        return Value(b.op(f"{text} : {future} -> {whole.ir}"), whole.shape, whole.type)
    wide = repeated(b, x, axis, size)
    if kind == "scatter":
        first = b.alias(f"affine_set<(i)[g] : (i - {size} * g == 0)>")
        members = b.alias(f"affine_set<(i)[g] : (i - {size} * g >= 0, {size} * g + {size - 1} - i >= 0)>")
        made, future = produced(b, wide, first, groups)
        text = f"ktdp.inter_tile_scatter({made}) consumer_tiles_per_group = {members}, scatter_dimensions = [{axis}]"
        return Value(b.op(f"{text} : {future} -> {x.ir}"), x.shape, x.type)
    made, future = produced(b, wide, tiles, groups)
    if kind == "all_to_all":
        other = b.integer(0, len(x.shape) - 1)
        result = Value("", widened(x.shape, other, size), x.type)
        text = (
            f"ktdp.inter_tile_all_to_all({made}) consumer_tiles_per_group = {tiles}, "
            f"split_dimensions = [{axis}], concat_dimensions = [{other}]"
        )
        return Value(b.op(f"{text} : {future} -> {result.ir}"), result.shape, result.type)
    identity, result, name = splat(b, wide, 0), b.fresh(), "maximumf" if x.type in FLOATS else "maxsi"
    b.line(
        f"{result} = ktdp.inter_tile_reduce_scatter({made}) consumer_tiles_per_group = {tiles}, "
        f"scatter_dimensions = [{axis}], identity({identity.name} : {wide.ir}) : {future} -> {x.ir} {{"
    )
    b.line(f"^bb0(%l: {wide.ir}, %r: {wide.ir}):")
    b.line(f"  %lr = arith.{name} %l, %r : {wide.ir}")
    b.line(f"  ktdp.yield_reduced %lr : {wide.ir}")
    b.line("}")
    return Value(result, x.shape, x.type)


# ------------------------------------------------------------------------------------------------------------- programs


def flat_id(b: Builder) -> str:
    """The flat tile id, computed from the grid coordinates."""
    if len(b.grid) == 1:
        return b.op("ktdp.get_compute_tile_id : index", "id")
    b.count += 1
    x, y = f"%x{b.count}", f"%y{b.count}"
    b.line(f"{x}, {y} = ktdp.get_compute_tile_id : index, index")
    return b.op(f"arith.addi {x}, {b.op(f'arith.muli {y}, {b.index(b.grid[0])} : index')} : index", "id")


def source_tile(b: Builder, type_: str, shape: tuple[int, ...], core: str, step: str | None, steps: int) -> Value:
    """The tile of a core, of step ``step`` in a loop, from a view of its own."""
    rows = shape[0]
    margin = b.integer(0, 2)
    sizes = (rows * b.cores * steps + margin, *(n + b.integer(0, 2) for n in shape[1:]))
    view = input_view(b, type_, sizes)
    inner = [str(b.integer(0, sizes[d] - shape[d])) for d in range(1, len(shape))]
    if step is None:
        forms = (
            f"{core} * {rows} + {margin}",
            f"{core} * {rows}",
            f"{core} * {rows} + ({core} + {margin}) mod {margin + 1}",
        )
        return load(b, view, [b.pick(forms), *inner], shape)
    forms = (f"{core} * {rows * steps} + {step} * {rows}", f"({step} * {b.cores} + {core}) * {rows} + {margin}")
    return load(b, view, [b.pick(forms), *inner], shape)


@dataclass(frozen=True)
class Counted:
    """A loop from ``first`` in steps of ``by``, as many as ``steps``: the bounds as constants of the counter's type."""

    type: str
    steps: int
    by: int
    first: int
    low: str
    high: str
    step: str


def counted(b: Builder, type_: str) -> Counted:
    steps, by, first = b.integer(1, 3), b.integer(1, 3), b.integer(0, 2)
    stop = first + steps * by - b.integer(0, by - 1)
    names = [b.op(f"arith.constant {v} : {type_}", "c") for v in (first, stop, by)]
    return Counted(type_, steps, by, first, *names)


def step_number(b: Builder, loop: Counted, counter: str) -> str:
    """Which iteration it is, from 0 on."""
    at = counter if loop.type == "index" else b.op(f"arith.index_cast {counter} : {loop.type} to index", "i")
    origin = b.op(f"arith.subi {at}, {b.index(loop.first)} : index", "d")
    return b.op(f"arith.divui {origin}, {b.index(loop.by)} : index", "k")


def loop_tile(b: Builder, type_: str, shape: tuple[int, ...], core: str, loop: Counted, counter: str) -> Value:
    tile = source_tile(b, type_, shape, core, step_number(b, loop, counter), loop.steps)
    return computed_keeping(b, tile) if b.chance(3) else tile


def looped(b: Builder, type_: str, shape: tuple[int, ...], core: str) -> Value:
    """A tile accumulated over a loop of any kind."""
    return (for_loop, while_loop, parallel_loop)[b.integer(0, 2)](b, type_, shape, core)


def for_loop(b: Builder, type_: str, shape: tuple[int, ...], core: str) -> Value:
    """``scf.for``, whose counter may be i32, and which may hold another one."""
    loop = counted(b, b.pick(("index", "i32")))
    start = splat(b, Value("", shape, type_), b.integer(-2, 2))
    b.count += 1
    result, counter, carried = f"%loop{b.count}", f"%i{b.count}", f"%acc{b.count}"
    marker = len(b.lines)
    b.line("")
    b.indent += 1
    total = Value(carried, shape, type_)
    if b.indent < 3 and b.chance(4):
        total = pointwise(b, total, for_loop(b, type_, shape, core))
    total = pointwise(b, total, loop_tile(b, type_, shape, core, loop, counter))
    b.line(f"scf.yield {total.name} : {total.ir}")
    b.indent -= 1
    b.line("}")
    suffix = "" if loop.type == "index" else " : i32"
    b.lines[marker] = (
        "  " * b.indent + f"{result} = scf.for {counter} = {loop.low} to {loop.high} step {loop.step} "
        f"iter_args({carried} = {start.name}) -> ({start.ir}) {suffix} {{"
    )
    return Value(result, shape, type_)


def while_loop(b: Builder, type_: str, shape: tuple[int, ...], core: str) -> Value:
    """The same loop with the question before each iteration."""
    loop = counted(b, "index")
    start = splat(b, Value("", shape, type_), b.integer(-2, 2))
    b.count += 1
    n = b.count
    types = f"index, {start.ir}"
    b.line(f"%w{n}:2 = scf.while (%i{n} = {loop.low}, %acc{n} = {start.name}) : ({types}) -> ({types}) {{")
    b.line(f"  %more{n} = arith.cmpi slt, %i{n}, {loop.high} : index")
    b.line(f"  scf.condition(%more{n}) %i{n}, %acc{n} : {types}")
    b.line("} do {")
    b.line(f"^bb0(%j{n}: index, %sum{n}: {start.ir}):")
    b.indent += 1
    total = pointwise(b, Value(f"%sum{n}", shape, type_), loop_tile(b, type_, shape, core, loop, f"%j{n}"))
    following = b.op(f"arith.addi %j{n}, {loop.step} : index", "next")
    b.line(f"scf.yield {following}, {total.name} : {types}")
    b.indent -= 1
    b.line("}")
    return Value(f"%w{n}#1", shape, type_)


def parallel_loop(b: Builder, type_: str, shape: tuple[int, ...], core: str) -> Value:
    """``scf.parallel``, whose iterations are reduced."""
    loop = counted(b, "index")
    start = splat(b, Value("", shape, type_), b.integer(-2, 2))
    b.count += 1
    n = b.count
    b.line(
        f"%par{n} = scf.parallel (%i{n}) = ({loop.low}) to ({loop.high}) step ({loop.step}) "
        f"init ({start.name}) -> {start.ir} {{"
    )
    b.indent += 1
    tile = loop_tile(b, type_, shape, core, loop, f"%i{n}")
    name = b.pick(("addf", "maximumf") if type_ in FLOATS else ("addi", "minsi"))
    b.line(f"scf.reduce({tile.name} : {tile.ir}) {{")
    b.line(f"^bb0(%l{n}: {tile.ir}, %r{n}: {tile.ir}):")
    b.line(f"  %s{n} = arith.{name} %l{n}, %r{n} : {tile.ir}")
    b.line(f"  scf.reduce.return %s{n} : {tile.ir}")
    b.line("}")
    b.indent -= 1
    b.line("}")
    return Value(f"%par{n}", shape, type_)


def computed_keeping(b: Builder, x: Value) -> Value:
    """A step of computing that keeps shape and type."""
    return (pointwise, generic, chosen)[b.integer(0, 2)](b, x, splat(b, x, b.integer(-2, 2)))


def output(b: Builder, x: Value, core: str) -> None:
    """Store the tile of each core to its own rows, sometimes only on some cores."""
    rows = x.shape[0]
    sizes = (rows * b.cores + b.integer(0, 2), *(n + b.integer(0, 1) for n in x.shape[1:]))
    view = input_view(b, x.type, sizes)
    at = [b.op(f"arith.muli {core}, {b.index(rows)} : index", "row"), *["0"] * (len(x.shape) - 1)]
    if not b.chance(4):
        store(b, x, view, at)
        return
    limit = b.index(b.integer(0, b.cores))
    condition = b.op(f"arith.cmpi {b.pick(('slt', 'eq', 'ne', 'sge'))}, {core}, {limit} : index", "c")
    b.line(f"scf.if {condition} {{")
    b.indent += 1
    store(b, x, view, at)
    b.indent -= 1
    if b.chance():
        b.line("} else {")
        b.indent += 1
        store(b, splat(b, x, 1), view, at)
        b.indent -= 1
    b.line("}")


def remote(b: Builder, x: Value) -> Value:
    """``x`` stored to the scratchpad of each core and read from those of two cores, once all have stored."""
    place = -(-b.scratch // 8) * 8
    b.scratch = place + prod(x.shape) * 8
    b.count += 1
    pointer = f"%lx{b.count}"
    b.line(f"{pointer} = arith.constant {place // SIZE[x.type]} : index")
    zeros = [b.index(0)] * len(x.shape)
    store(b, x, make_view(b, x.type, x.shape, pointer), zeros)
    n = b.cores
    tiles = b.alias(f"affine_set<(i)[g] : (i >= 0, -i + {n - 1} >= 0)>")
    barrier = splat(b, Value("", (1,), "i32"), 1)
    made, future = produced(b, barrier, tiles, b.alias("affine_set<(g) : (g == 0)>"))
    result = b.fresh()
    b.line(
        f"{result} = ktdp.inter_tile_reduce({made}) consumer_tiles_per_group = {tiles}, "
        f"identity({barrier.name} : {barrier.ir}) : {future} -> {barrier.ir} {{"
    )
    b.line(f"^bb0(%l: {barrier.ir}, %r: {barrier.ir}):")
    b.line(f"  ktdp.yield_reduced %l : {barrier.ir}")
    b.line("}")
    parts = []
    for k in range(2):
        low = [k * x.shape[0], *[0] * (len(x.shape) - 1)]
        part = make_view(b, x.type, x.shape, pointer, low=low)
        b.lines[-1] = b.lines[-1].replace("<ct_local>", f"<ct_local, ct_id = {b.integer(0, n - 1)}>")
        parts.append(part)
    sizes = (2 * x.shape[0], *x.shape[1:])
    memref = f"memref<{'x'.join([*map(str, sizes), x.type])}>"
    names, types = ", ".join(p.name for p in parts), ", ".join(p.memref for p in parts)
    text = f"ktdp.construct_distributed_memory_view ({names} : {types}) : {memref}"
    whole = View(b.op(text, "dist"), sizes, x.type, memref)
    return load(b, whole, [str(b.integer(0, x.shape[0])), *["0"] * (len(x.shape) - 1)], x.shape)


def between_cores(b: Builder, x: Value) -> Value:
    kind = b.integer(0, 3)
    if kind == 3:
        return remote(b, x)
    if kind == 0 and b.exact:
        return all_reduced(b, x)
    return shared(b, x) if kind == 1 else shifted(b, x)


def program(seed: int) -> Program:
    """A program with its arguments; every number gives another one."""
    chance_of = Random(seed)
    grid = chance_of.choice([(1,), (2,), (3,), (4,), (2, 2), (3, 2), (6,)])
    b = Builder(chance_of, grid, exact=chance_of.randint(0, 2) > 0)
    core = flat_id(b)
    type_ = b.pick((*FLOAT_TYPES, *INTEGER_TYPES))
    shape = tuple(b.integer(1, 4) for _ in range(b.integer(1, 3)))
    kind = b.integer(0, 5)
    if kind == 0 and len(shape) == 2:
        x = gather(b, type_, shape[0], shape[1], core)
    elif kind == 1:
        x = looped(b, type_, shape, core)
    elif kind == 2 and len(shape) == 2:
        view = input_view(b, type_, (shape[0] + b.cores, shape[1] + 1))
        x = load_odd_set(b, view, [core, "1"], (shape[0], shape[1]))
    else:
        x = source_tile(b, type_, shape, core, None, 1)
    if b.chance() and b.exact:
        x = pointwise(b, x, source_tile(b, x.type, x.shape, core, None, 1))
    x = chain(b, x, b.integer(0, 2)) if b.exact else x
    if b.cores > 1 and b.chance():
        x = between_cores(b, x)
    x = chain(b, x, b.integer(0, 2))
    output(b, x, core)
    return Program(b.text(), b.arguments)
