"""Short forms for writing kernels in tests, and the one way tests lower and run them.

``check`` lowers a kernel for its arrays, runs the program in several unit orders, and compares what it stored with the
values a test worked out by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow import verify
from ktir.backends.dataflow.lower import ArrayArgument, LoweredProgram, lower_to_dfp
from ktir.backends.dataflow.lower.hardware import Numerics
from ktir.backends.dataflow.run import DTYPES, run
from ktir.dialect.text.parser import parse_module
from ktir.errors import CapacityExceeded
from ktir.interp.executor import execute
from ktir.machine import Machine, load

Array = NDArray[Any]
ELEMENTS = {dtype: name for name, dtype in DTYPES.items() if not name.startswith(("si", "index"))}
PASSED: tuple[type, ...] = (int, float)


def spyre() -> Machine:
    """The machine that tests lower for."""
    return load("spyre")


def box(shape: Sequence[int], first: Sequence[int] | None = None) -> str:
    """The text of a box of coordinates."""
    dims = [f"d{i}" for i in range(len(shape))]
    low = list(first or [0] * len(shape))
    limits = [f"{d} - {a} >= 0, {a + n - 1} - {d} >= 0" for d, n, a in zip(dims, shape, low, strict=True)]
    return f"affine_set<({', '.join(dims)}) : ({', '.join(limits)})>"


def order(rank: int) -> str:
    """The identity order."""
    dims = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({dims}) -> ({dims})>"


def shaped(shape: Sequence[int], element: str) -> str:
    return "x".join([*map(str, shape), element])


def view(
    name: str,
    pointer: str,
    shape: Sequence[int],
    element: str,
    *,
    strides: Sequence[int] | None = None,
    space: str = "global",
    first: Sequence[int] | None = None,
) -> str:
    """``%name`` as a view of ``shape`` from ``pointer``; dense unless ``strides`` are given."""
    steps = strides or [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    return (
        f"%{name} = ktdp.construct_memory_view {pointer}, sizes: {list(shape)}, strides: {list(steps)} "
        f"{{coordinate_set = {box(shape, first)}, memory_space = #ktdp.memory_space<{space}>}} "
        f": memref<{shaped(shape, element)}>"
    )


def tile(name: str, base: str, whole: Sequence[int], at: str, shape: Sequence[int], element: str) -> str:
    """``%name`` as the access tile of ``shape`` at ``at`` of a view of shape ``whole``."""
    return (
        f"%{name} = ktdp.construct_access_tile {base}[{at}] {{access_tile_set = {box(shape)}, "
        f"access_tile_order = {order(len(shape))}}} : memref<{shaped(whole, element)}> "
        f"-> !ktdp.access_tile<{shaped(shape, 'index')}>"
    )


def fetch(name: str, base: str, whole: Sequence[int], at: str, shape: Sequence[int], element: str) -> str:
    """``%name`` loaded from a view."""
    return (
        tile(f"{name}_at", base, whole, at, shape, element)
        + f"\n%{name} = ktdp.load %{name}_at : <{shaped(shape, 'index')}> -> tensor<{shaped(shape, element)}>"
    )


def put(value: str, base: str, whole: Sequence[int], at: str, shape: Sequence[int], element: str) -> str:
    """``%value`` stored to a view."""
    return (
        tile(f"{value}_to", base, whole, at, shape, element)
        + f"\nktdp.store %{value}, %{value}_to : tensor<{shaped(shape, element)}>, <{shaped(shape, 'index')}>"
    )


def kernel(arguments: str, grid: Sequence[int], *lines: str, name: str = "k") -> str:
    """A kernel with a few index constants at hand: %c0, %c1, %c2, .., %c64."""
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8, 16, 32, 64))
    body = "\n".join(lines)
    return f"func.func @{name}({arguments}) attributes {{grid = {list(grid)}}} {{\n{constants}\n{body}\nreturn\n}}\n"


def lowered(
    text: str,
    function: str | None,
    arguments: Mapping[str, Any],
    machine: Machine | None = None,
    numerics: Numerics = "f16",
) -> LoweredProgram:
    """The program of ``function`` for arrays and scalars by name."""
    given = {
        name: value if isinstance(value, PASSED) else ArrayArgument(value.shape, ELEMENTS[value.dtype])
        for name, value in arguments.items()
    }
    return lower_to_dfp(parse_module(text, "kernel.mlir"), machine or spyre(), function, given, numerics=numerics)


def outputs(program: LoweredProgram, arguments: Mapping[str, Any], seed: int | None = None) -> dict[str, Array]:
    """What the program stores."""
    arrays = {name: value for name, value in arguments.items() if not isinstance(value, PASSED)}
    return run(program, arrays, unit_order_seed=seed).outputs


def check(
    text: str,
    arguments: Mapping[str, Any],
    expected: Mapping[str, Array],
    *,
    relative: float = 2e-3,
    absolute: float = 2e-3,
    function: str | None = None,
) -> LoweredProgram:
    """Lowers, runs in two unit orders with equal results, and compares."""
    program = lowered(text, function, arguments)
    program.module.verify()
    verify.check(program.module, program.machine)
    found = outputs(program, arguments)
    again = outputs(program, arguments, seed=1)
    tight = in_less_space(text, function, arguments, program.lx_bytes)
    squeezed = outputs(tight, arguments, seed=2) if tight is not None else found
    reference = execute(
        parse_module(text, "kernel.mlir"), function, dict(arguments), machine=program.machine, checks=True
    ).outputs
    for name, want in expected.items():
        np.testing.assert_allclose(
            found[name].astype(np.float64), reference[name].astype(np.float64), rtol=relative, atol=absolute
        )
        assert found[name].tobytes() == again[name].tobytes(), f"{name} depends on the order of units"
        assert found[name].tobytes() == squeezed[name].tobytes(), f"{name} depends on the size of the scratchpad"
        np.testing.assert_allclose(
            found[name].astype(np.float64), want.astype(np.float64), rtol=relative, atol=absolute, err_msg=name
        )
    return program


def in_less_space(text: str, function: str | None, arguments: Mapping[str, Any], used: int) -> LoweredProgram | None:
    """The program for a scratchpad of three quarters of what it used, verified; None if it does not fit."""
    machine = load("spyre", scratchpad=str(used * 3 // 4))
    try:
        program = lowered(text, function, arguments, machine)
    except CapacityExceeded:
        return None
    verify.check(program.module, machine)
    return program


def normal(shape: Sequence[int], dtype: str = "f16", seed: int = 0, scale: float = 1.0) -> Array:
    """Normally distributed numbers."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(DTYPES[dtype])
