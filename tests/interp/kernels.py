"""Texts of small programs for the tests of the executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import Execution, execute

GLOBAL = "#ktdp.memory_space<global>"
LOCAL = "#ktdp.memory_space<ct_local>"


def box(*ranges: int | tuple[int, int]) -> str:
    """The set of a box; a number stands for the range from 0."""
    pairs = [(0, each) if isinstance(each, int) else each for each in ranges]
    dims = ", ".join(f"d{axis}" for axis in range(len(pairs)))
    limits = ", ".join(f"d{axis} - {low} >= 0, -d{axis} + {stop - 1} >= 0" for axis, (low, stop) in enumerate(pairs))
    return f"affine_set<({dims}) : ({limits or '0 == 0'})>"


def order(*dims: int) -> str:
    """The order that enumerates by these dimensions, the last one fastest."""
    names = ", ".join(f"d{axis}" for axis in range(len(dims)))
    return f"affine_map<({names}) -> ({', '.join(f'd{axis}' for axis in dims)})>"


def shaped(kind: str, shape: Sequence[int | str], element: str) -> str:
    return f"{kind}<{''.join(f'{size}x' for size in shape)}{element}>"


def view(
    name: str, pointer: str, shape: Sequence[int], element: str = "f32", space: str = GLOBAL,
    strides: Sequence[int] | None = None, owned: str | None = None,
) -> str:  # fmt: skip
    """A view of ``shape`` that starts at the value ``pointer``; dense unless strides are given."""
    dense = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
    return (
        f"{name} = ktdp.construct_memory_view {pointer}, sizes: {list(shape)}, strides: {list(strides or dense)} "
        f"{{coordinate_set = {owned or box(*shape)}, memory_space = {space}}} : {shaped('memref', shape, element)}"
    )


def tile(name: str, base: str, at: str, shape: Sequence[int], of: Sequence[int], element: str = "f32",
         axes: Sequence[int] | None = None) -> str:  # fmt: skip
    """A box of extents ``shape`` at the index text ``at`` of a view of shape ``of``, enumerated by ``axes``."""
    axes = tuple(axes or range(len(shape)))
    extents = [shape[axis] for axis in axes]
    return (
        f"{name} = ktdp.construct_access_tile {base}[{at}] {{access_tile_set = {box(*shape)}, "
        f"access_tile_order = {order(*axes)}}} : {shaped('memref', of, element)} -> "
        f"{shaped('!ktdp.access_tile', extents, 'index')}"
    )


def load(name: str, tile_name: str, shape: Sequence[int], element: str = "f32") -> str:
    return f"{name} = ktdp.load {tile_name} : {shaped('', shape, 'index')} -> {shaped('tensor', shape, element)}"


def store(value: str, tile_name: str, shape: Sequence[int], element: str = "f32") -> str:
    return f"ktdp.store {value}, {tile_name} : {shaped('tensor', shape, element)}, {shaped('', shape, 'index')}"


def kernel(lines: Sequence[str], arguments: str, grid: Sequence[int] = (1,), name: str = "k") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"func.func @{name}({arguments}) attributes {{grid = {list(grid)}}} {{\n{body}\n  return\n}}\n"


def rows_kernel(
    compute: Sequence[str], rows: int, columns: int, element: str = "f32", inputs: Sequence[str] = ("x",),
    result: str = "%r", grid: int | None = None,
) -> str:  # fmt: skip
    """Each core computes ``result`` from one row of each input, and stores it as its row of ``y``."""
    shape, of = (1, columns), (rows, columns)
    lines = ["%t = ktdp.get_compute_tile_id : index"]
    for name in inputs:
        lines += [
            view(f"%{name}v", f"%{name}_ptr", of, element),
            tile(f"%{name}t", f"%{name}v", "%t, 0", shape, of, element),
            load(f"%{name}", f"%{name}t", shape, element),
        ]
    lines += compute
    lines += [view("%yv", "%y_ptr", of, element), tile("%yt", "%yv", "%t, 0", shape, of, element)]
    lines.append(store(result, "%yt", shape, element))
    arguments = ", ".join(f"%{name}_ptr: index" for name in (*inputs, "y"))
    return kernel(lines, arguments, [grid or rows])


def run(
    text: str, arguments: Mapping[str, Any] | None = None, function: str | None = None, **options: Any
) -> Execution:
    return execute(parse_module(text, "test.ktir"), function, arguments or {}, **options)


def line_of(text: str, part: str) -> int:
    """The number of the first line that holds ``part``."""
    return next(number for number, line in enumerate(text.split("\n"), 1) if part in line)
