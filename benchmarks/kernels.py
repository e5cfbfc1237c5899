"""Kernels of the benchmarks at any size: their text, their inputs and what eager PyTorch does for the same result.

All are written as hand-written kernels are: tiles over a grid of cores, numbers of 16 bits, sums in blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

HALF = np.float16


@dataclass(frozen=True, slots=True)
class Benchmark:
    """``eager`` computes in f32 what the kernel stores in ``output``; ``tolerance`` is absolute."""

    name: str
    text: str
    inputs: dict[str, Any]
    output: str
    eager: Callable[..., Any]
    tolerance: float


def box(*extents: int) -> str:
    dims = ", ".join(f"d{axis}" for axis in range(len(extents)))
    limits = ", ".join(f"d{axis} >= 0, -d{axis} + {size - 1} >= 0" for axis, size in enumerate(extents))
    return f"affine_set<({dims}) : ({limits})>"


def shaped(kind: str, shape: tuple[int, ...], element: str) -> str:
    return f"{kind}<{'x'.join(map(str, shape))}x{element}>"


def view(name: str, rows: int, columns: int, element: str = "f16") -> str:
    return (
        f"%{name} = ktdp.construct_memory_view %{name}_ptr, sizes: [{rows}, {columns}], strides: [{columns}, 1] "
        f"{{ coordinate_set = {box(rows, columns)}, memory_space = #ktdp.memory_space<global> }} : "
        f"{shaped('memref', (rows, columns), element)}"
    )


def tile(name: str, base: str, at: str, shape: tuple[int, int], of: tuple[int, int]) -> str:
    return (
        f"%{name} = ktdp.construct_access_tile %{base}[{at}] {{ access_tile_set = {box(*shape)}, "
        f"access_tile_order = affine_map<(d0, d1) -> (d0, d1)> }} : {shaped('memref', of, 'f16')} -> "
        f"{shaped('!ktdp.access_tile', shape, 'index')}"
    )


def load(name: str, source: str, shape: tuple[int, int]) -> str:
    return f"%{name} = ktdp.load %{source} : {shaped('', shape, 'index')} -> {shaped('tensor', shape, 'f16')}"


def store(value: str, target: str, shape: tuple[int, int]) -> str:
    return f"ktdp.store %{value}, %{target} : {shaped('tensor', shape, 'f16')}, {shaped('', shape, 'index')}"


def function(pointers: str, grid: tuple[int, ...], lines: list[str]) -> str:
    arguments = ", ".join(f"%{name}_ptr: index" for name in pointers.split())
    body = "\n".join(f"  {line}" for line in lines)
    return f"func.func @kernel({arguments}) attributes {{grid = {list(grid)}}} {{\n{body}\n  func.return\n}}\n"


def constants(*numbers: int) -> list[str]:
    return [f"%c{number} = arith.constant {number} : index" for number in dict.fromkeys(numbers)]


def halves(*shape: int, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(HALF)


def matmul(size: int) -> Benchmark:
    """``x @ y``, tiles of at most 256 x 512 on at least 8 x 4 cores, 64 of the inner dimension at a time; each block is
    rounded to f16."""
    m, n, k = min(256, size // 8), min(512, size // 4), 64
    whole, out = (size, size), shaped("tensor", (m, n), "f16")
    lines = [
        "%i, %j = ktdp.get_compute_tile_id : index, index",
        *constants(0, k, size, m, n),
        *(view(name, *whole) for name in "xyz"),
        f"%row = arith.muli %i, %c{m} : index",
        f"%column = arith.muli %j, %c{n} : index",
        f"%zero = arith.constant dense<0.0> : {out}",
        f"%total = scf.for %at = %c0 to %c{size} step %c{k} iter_args(%sum = %zero) -> ({out}) {{",
        tile("p", "x", "%row, %at", (m, k), whole),
        tile("q", "y", "%at, %column", (k, n), whole),
        load("a", "p", (m, k)),
        load("b", "q", (k, n)),
        f"%ab = linalg.matmul ins(%a, %b : {shaped('tensor', (m, k), 'f16')}, {shaped('tensor', (k, n), 'f16')}) "
        f"outs(%zero : {out}) -> {out}",
        f"%next = arith.addf %sum, %ab : {out}",
        f"scf.yield %next : {out}",
        "}",
        tile("r", "z", "%row, %column", (m, n), whole),
        store("total", "r", (m, n)),
    ]
    inputs = {
        "x_ptr": halves(*whole, seed=1),
        "y_ptr": halves(*whole, seed=2),
        "z_ptr": np.zeros(whole, HALF),
    }
    return Benchmark(
        f"matmul {size}", function("x y z", (size // m, size // n), lines), inputs, "z_ptr",
        lambda x_ptr, y_ptr, z_ptr: x_ptr @ y_ptr, 0.02 * size**0.5,
    )  # fmt: skip


def softmax(size: int) -> Benchmark:
    """Over the rows, a row at a time on each of 32 cores."""
    whole, row, one = (size, size), (1, size), "tensor<1xf16>"
    kind = shaped("tensor", row, "f16")
    lines = [
        "%core = ktdp.get_compute_tile_id : index",
        *constants(0, 32, size),
        *(view(name, *whole) for name in "xz"),
        "%low = arith.constant 0xFC00 : f16",
        "%zero = arith.constant 0.0 : f16",
        f"%lows = tensor.splat %low : {one}",
        f"%zeros = tensor.splat %zero : {one}",
        f"scf.for %r = %core to %c{size} step %c32 {{",
        tile("p", "x", "%r, %c0", row, whole),
        load("a", "p", row),
        f"%most = linalg.reduce {{ arith.maximumf }} ins(%a : {kind}) outs(%lows : {one}) dimensions = [1]",
        f"%top = tensor.extract %most[%c0] : {one}",
        f"%tops = tensor.splat %top : {kind}",
        f"%less = arith.subf %a, %tops : {kind}",
        f"%raised = math.exp %less : {kind}",
        f"%total = linalg.reduce {{ arith.addf }} ins(%raised : {kind}) outs(%zeros : {one}) dimensions = [1]",
        f"%sum = tensor.extract %total[%c0] : {one}",
        f"%sums = tensor.splat %sum : {kind}",
        f"%result = arith.divf %raised, %sums : {kind}",
        tile("q", "z", "%r, %c0", row, whole),
        store("result", "q", row),
        "}",
    ]
    inputs = {"x_ptr": halves(*whole, seed=1), "z_ptr": np.zeros(whole, HALF)}
    return Benchmark(
        f"softmax {size}", function("x z", (32,), lines), inputs, "z_ptr",
        lambda x_ptr, z_ptr: x_ptr.softmax(-1), 1e-3,
    )  # fmt: skip


def attention(size: int) -> Benchmark:
    """One head of 64, 32 queries on each core, all keys at once."""
    head, block = 64, 32
    whole, part, scores = (size, head), (block, head), shaped("tensor", (block, size), "f16")
    column, queries, keys = (shaped("tensor", shape, "f16") for shape in ((block,), part, whole))
    lines = [
        "%core = ktdp.get_compute_tile_id : index",
        *constants(0, block),
        *(view(name, *whole) for name in ("x", "y", "v", "z")),
        f"%row = arith.muli %core, %c{block} : index",
        tile("p", "x", "%row, %c0", part, whole),
        tile("q", "y", "%c0, %c0", whole, whole),
        tile("s", "v", "%c0, %c0", whole, whole),
        load("a", "p", part),
        load("b", "q", whole),
        load("c", "s", whole),
        "%low = arith.constant 0xFC00 : f16",
        "%zero = arith.constant 0.0 : f16",
        f"%lows = tensor.splat %low : {column}",
        f"%zeros = tensor.splat %zero : {column}",
        f"%start = tensor.splat %zero : {scores}",
        f"%turned_init = tensor.empty() : {shaped('tensor', (head, size), 'f16')}",
        f"%turned = linalg.transpose ins(%b : {keys}) outs(%turned_init : {shaped('tensor', (head, size), 'f16')}) "
        "permutation = [1, 0]",
        f"%raw = linalg.matmul ins(%a, %turned : {queries}, {shaped('tensor', (head, size), 'f16')}) "
        f"outs(%start : {scores}) -> {scores}",
        "%scale = arith.constant 0.125 : f16",
        f"%scales = tensor.splat %scale : {scores}",
        f"%scaled = arith.mulf %raw, %scales : {scores}",
        f"%most = linalg.reduce {{ arith.maximumf }} ins(%scaled : {scores}) outs(%lows : {column}) dimensions = [1]",
        f"%wide_init = tensor.empty() : {scores}",
        f"%tops = linalg.broadcast ins(%most : {column}) outs(%wide_init : {scores}) dimensions = [1]",
        f"%less = arith.subf %scaled, %tops : {scores}",
        f"%raised = math.exp %less : {scores}",
        f"%total = linalg.reduce {{ arith.addf }} ins(%raised : {scores}) outs(%zeros : {column}) dimensions = [1]",
        f"%sums = linalg.broadcast ins(%total : {column}) outs(%wide_init : {scores}) dimensions = [1]",
        f"%weights = arith.divf %raised, %sums : {scores}",
        f"%none = tensor.splat %zero : {queries}",
        f"%mixed = linalg.matmul ins(%weights, %c : {scores}, {keys}) outs(%none : {queries}) -> {queries}",
        tile("r", "z", "%row, %c0", part, whole),
        store("mixed", "r", part),
    ]
    inputs = {f"{name}_ptr": halves(*whole, seed=number) for number, name in enumerate("xyv")}
    inputs["z_ptr"] = np.zeros(whole, HALF)
    return Benchmark(
        f"attention {size}", function("x y v z", (size // block,), lines), inputs, "z_ptr",
        lambda x_ptr, y_ptr, v_ptr, z_ptr: (x_ptr @ y_ptr.T * 0.125).softmax(-1) @ v_ptr, 5e-3,
    )  # fmt: skip


def add(millions: int) -> Benchmark:
    """The sum of two arrays of so many 2^20 elements, one block on each of 32 cores."""
    columns = millions << 15
    whole, row = (32, columns), (1, columns)
    lines = [
        "%core = ktdp.get_compute_tile_id : index",
        *constants(0),
        *(view(name, *whole) for name in "xyz"),
        *(tile(f"t{name}", name, "%core, %c0", row, whole) for name in "xyz"),
        load("a", "tx", row),
        load("b", "ty", row),
        f"%sum = arith.addf %a, %b : {shaped('tensor', row, 'f16')}",
        store("sum", "tz", row),
    ]
    inputs = {"x_ptr": halves(*whole, seed=1), "y_ptr": halves(*whole, seed=2), "z_ptr": np.zeros(whole, HALF)}
    return Benchmark(
        f"add {millions}M", function("x y z", (32,), lines), inputs, "z_ptr",
        lambda x_ptr, y_ptr, z_ptr: x_ptr + y_ptr, 1e-2,
    )  # fmt: skip


def gather(size: int) -> Benchmark:
    """``size`` x ``size`` elements, each from the row that one index names and the column that another one does."""
    whole, rows = (size, size), size // 32
    ints = shaped("memref", whole, "i32")
    lines = [
        "%core = ktdp.get_compute_tile_id : index",
        *constants(0, rows),
        *(view(name, *whole) for name in "xz"),
        *(view(name, *whole, "i32") for name in "ij"),
        f"%row = arith.muli %core, %c{rows} : index",
        "%p = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) "
        "%x[ind(%i[%row + %m, %k]), ind(%j[%row + %m, %k])] {"
        f" variables_space_set = {box(rows, size)}, variables_space_order = affine_map<(d0, d1) -> (d0, d1)> }} : "
        f"{shaped('memref', whole, 'f16')}, {ints}, {ints} -> {shaped('!ktdp.access_tile', (rows, size), 'index')}",
        load("a", "p", (rows, size)),
        tile("q", "z", "%row, %c0", (rows, size), whole),
        store("a", "q", (rows, size)),
    ]
    rng = np.random.default_rng(3)
    inputs = {"x_ptr": halves(*whole, seed=1), "z_ptr": np.zeros(whole, HALF)}
    inputs |= {f"{name}_ptr": rng.integers(0, size, whole, np.int32) for name in "ij"}
    return Benchmark(
        f"gather {size}", function("x i j z", (32,), lines), inputs, "z_ptr",
        lambda x_ptr, i_ptr, j_ptr, z_ptr: x_ptr[i_ptr, j_ptr], 0.0,
    )  # fmt: skip


def gather_rows(size: int) -> Benchmark:
    """``size`` rows of ``size`` elements, each the row that an index names."""
    whole, rows = (size, size), size // 32
    lines = [
        "%core = ktdp.get_compute_tile_id : index",
        *constants(0, rows),
        *(view(name, *whole) for name in "xz"),
        f"%i = ktdp.construct_memory_view %i_ptr, sizes: [{size}], strides: [1] {{ coordinate_set = {box(size)}, "
        f"memory_space = #ktdp.memory_space<global> }} : memref<{size}xi32>",
        f"%row = arith.muli %core, %c{rows} : index",
        "%p = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) %x[ind(%i[%row + %m]), (%k)] {"
        f" variables_space_set = {box(rows, size)}, variables_space_order = affine_map<(d0, d1) -> (d0, d1)> }} : "
        f"{shaped('memref', whole, 'f16')}, memref<{size}xi32> -> "
        f"{shaped('!ktdp.access_tile', (rows, size), 'index')}",
        load("a", "p", (rows, size)),
        tile("q", "z", "%row, %c0", (rows, size), whole),
        store("a", "q", (rows, size)),
    ]
    inputs = {"x_ptr": halves(*whole, seed=1), "z_ptr": np.zeros(whole, HALF)}
    inputs["i_ptr"] = np.random.default_rng(3).integers(0, size, size, np.int32)
    return Benchmark(
        f"gather rows {size}", function("x i z", (32,), lines), inputs, "z_ptr",
        lambda x_ptr, i_ptr, z_ptr: x_ptr[i_ptr], 0.0,
    )  # fmt: skip


def long_kernel(statements: int) -> Benchmark:
    """A kernel of many lines: so many loads, sums and stores of rows, one after the other, on each of 32 cores."""
    whole, row = (32 * statements, 64), (1, 64)
    lines = [
        "%core = ktdp.get_compute_tile_id : index",
        *constants(0, statements),
        *(view(name, *whole) for name in "xz"),
        f"%first = arith.muli %core, %c{statements} : index",
    ]
    for number in range(statements):
        lines += [
            f"%n{number} = arith.constant {number} : index",
            f"%r{number} = arith.addi %first, %n{number} : index",
            tile(f"p{number}", "x", f"%r{number}, %c0", row, whole),
            load(f"a{number}", f"p{number}", row),
            f"%b{number} = arith.addf %a{number}, %a{number} : {shaped('tensor', row, 'f16')}",
            f"%e{number} = math.exp %b{number} : {shaped('tensor', row, 'f16')}",
            tile(f"q{number}", "z", f"%r{number}, %c0", row, whole),
            store(f"e{number}", f"q{number}", row),
        ]
    inputs = {"x_ptr": halves(*whole, seed=1), "z_ptr": np.zeros(whole, HALF)}
    return Benchmark(
        "long kernel", function("x z", (32,), lines), inputs, "z_ptr", lambda x_ptr, z_ptr: (x_ptr + x_ptr).exp(), 0.1
    )


BENCHMARKS: dict[str, Callable[[], Benchmark]] = {
    **{f"matmul-{size}": (lambda size=size: matmul(size)) for size in (512, 1024, 2048, 4096)},
    **{f"softmax-{size}": (lambda size=size: softmax(size)) for size in (1024, 2048, 4096)},
    **{f"attention-{size}": (lambda size=size: attention(size)) for size in (1024, 2048)},
    "add-16": lambda: add(16),
    "gather-1024": lambda: gather(1024),
    "gather-rows-4096": lambda: gather_rows(4096),
    "long-kernel": lambda: long_kernel(49),
}
