"""Kernels of four cores on every machine that is described: the bits of the executor, and few bytes on the network.

What crosses the network once for several cores is a message to all of them where the machine has such messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ktir.backends.dataflow import verify
from ktir.backends.dataflow.lower import LoweredProgram
from ktir.backends.dataflow.timed import simulate
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import execute
from ktir.machine import Machine, available, load
from tests.backends.dataflow.lower.kernels import box, fetch, kernel, lowered, normal, outputs, put, view

ALL = "affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>"
ONE = "affine_set<(i)[g] : (i - 1 == 0)>"
GROUPS = "affine_set<(g) : (g == 0)>"
ROW = "tensor<1x64xf32>"


def reduction(consumers: str, identity: float = 0.0, combine: str = "arith.addf", hears: str = "") -> str:
    """Each core doubles a row; ``consumers`` get the sum of the four rows and store it in their own.

    ``combine``: what takes the place of the sum; ``hears``: which producers a consumer hears, all if that is empty.
    """
    return kernel(
        "%x_ptr: index, %y_ptr: index",
        [4],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", [4, 64], "f32"),
        view("y", "%y_ptr", [4, 64], "f32"),
        f"%zero = arith.constant dense<{identity}> : {ROW}",
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {ALL}"
        f" -> !ktdp.tile_future<({ROW}), groups = {GROUPS}> {{",
        "^bb0(%gid: index):",
        fetch("v", "%x", [4, 64], "%core, %c0", [1, 64], "f32"),
        f"%a = arith.addf %v, %v : {ROW}",
        f"ktdp.yield_partial %a : {ROW}",
        "}",
        f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {consumers}, {hears}identity(%zero : {ROW})"
        f" : <({ROW}), groups = {GROUPS}> -> {ROW} {{",
        f"^bb0(%l: {ROW}, %n: {ROW}):",
        f"%s = {combine} %l, %n : {ROW}",
        f"ktdp.yield_reduced %s : {ROW}",
        "}",
        "%hears = arith.cmpi eq, %core, %c1 : index" if consumers == ONE else "%hears = arith.constant true",
        "scf.if %hears {",
        put("r", "%y", [4, 64], "%core, %c0", [1, 64], "f32"),
        "}",
    )


BROADCAST = kernel(
    "%x_ptr: index, %y_ptr: index",
    [4],
    "%core = ktdp.get_compute_tile_id : index",
    view("x", "%x_ptr", [4, 64], "f32"),
    view("y", "%y_ptr", [4, 64], "f32"),
    f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {ONE}"
    f" -> !ktdp.tile_future<({ROW}), groups = {GROUPS}> {{",
    "^bb0(%gid: index):",
    fetch("v", "%x", [4, 64], "%c2, %c0", [1, 64], "f32"),
    f"%a = math.exp %v : {ROW}",
    f"ktdp.yield_partial %a : {ROW}",
    "}",
    f"%r = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = {ALL} : <({ROW}), groups = {GROUPS}> -> {ROW}",
    put("r", "%y", [4, 64], "%core, %c0", [1, 64], "f32"),
)


def shared_scratchpad() -> str:
    """Core 2 keeps rows in its scratchpad, which all cores read in the next launch."""
    rows, place = [4, 64], "%place = arith.constant 1024 : index"
    head = "func.func @main(%x_ptr: index, %y_ptr: index) {\n"
    calls = "func.call @keep(%x_ptr) : (index) -> ()\nfunc.call @take(%y_ptr) : (index) -> ()\nreturn\n}\n"
    local = (
        "%l = ktdp.construct_memory_view %place, sizes: [4, 64], strides: [64, 1] {coordinate_set = "
        f"{box(rows)}, memory_space = #ktdp.memory_space<ct_local, ct_id = 2>}} : memref<4x64xf32>"
    )
    keep = kernel(
        "%x_ptr: index",
        [4],
        "%core = ktdp.get_compute_tile_id : index",
        place,
        view("x", "%x_ptr", rows, "f32"),
        local,
        "%mine = arith.cmpi eq, %core, %c2 : index",
        "scf.if %mine {",
        fetch("v", "%x", rows, "%c0, %c0", rows, "f32"),
        "%w = arith.addf %v, %v : tensor<4x64xf32>",
        put("w", "%l", rows, "%c0, %c0", rows, "f32"),
        "}",
        name="keep",
    )
    take = kernel(
        "%y_ptr: index",
        [4],
        "%core = ktdp.get_compute_tile_id : index",
        place,
        "%row = arith.muli %core, %c4 : index",
        local,
        view("y", "%y_ptr", [16, 64], "f32"),
        fetch("v", "%l", rows, "%c0, %c0", rows, "f32"),
        put("v", "%y", [16, 64], "%row, %c0", rows, "f32"),
        name="take",
    )
    return f"module {{\n{head}{calls}{keep}{take}}}"


def product(inner: int) -> str:
    """``[33, inner] x [inner, 40]`` by four cores of nine rows, which overlap, in steps of eight of k."""
    return kernel(
        "%a_ptr: index, %b_ptr: index, %y_ptr: index",
        [4],
        "%core = ktdp.get_compute_tile_id : index",
        f"%inner = arith.constant {inner} : index",
        view("a", "%a_ptr", [33, inner], "f16"),
        view("b", "%b_ptr", [inner, 40], "f16"),
        view("y", "%y_ptr", [33, 40], "f32"),
        "%row = arith.muli %core, %c8 : index",
        "%zero = arith.constant dense<0.0> : tensor<9x40xf32>",
        "%sum = scf.for %k = %c0 to %inner step %c8 iter_args(%s = %zero) -> (tensor<9x40xf32>) {",
        fetch("l", "%a", [33, inner], "%row, %k", [9, 8], "f16"),
        fetch("r", "%b", [inner, 40], "%k, %c0", [8, 40], "f16"),
        "%t = linalg.matmul ins(%l, %r : tensor<9x8xf16>, tensor<8x40xf16>) outs(%s : tensor<9x40xf32>)"
        " -> tensor<9x40xf32>",
        "scf.yield %t : tensor<9x40xf32>",
        "}",
        "%body = tensor.extract_slice %sum[0, 0] [8, 40] [1, 1] : tensor<9x40xf32> to tensor<8x40xf32>",
        put("body", "%y", [33, 40], "%row, %c0", [8, 40], "f32"),
        "%last = arith.cmpi eq, %core, %c3 : index",
        "scf.if %last {",
        "%tail = tensor.extract_slice %sum[8, 0] [1, 40] [1, 1] : tensor<9x40xf32> to tensor<1x40xf32>",
        put("tail", "%y", [33, 40], "%c32, %c0", [1, 40], "f32"),
        "}",
    )


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def specials() -> np.ndarray[Any, Any]:
    """Rows with columns of negative zeros, of infinities, of a NaN and of sums that overflow on the way."""
    rows = normal([4, 64], "f32", seed=3)
    rows[:, 0] = -0.0
    rows[1, 1] = np.nan
    rows[0, 2], rows[2, 2] = np.inf, -np.inf
    rows[:, 3] = [1e38, 1e38, 1.5e38, -1.5e38]
    return rows


EARLIER = "producer_dependency_per_consumer = affine_set<(i)[c, g] : (i >= 0, c - i - 1 >= 0)>, "
ROWS = normal([4, 64], "f32")
KERNELS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "all-reduce": (reduction(ALL), "k", {"x_ptr": ROWS, "y_ptr": zeros(4, 64)}),
    "reduce": (reduction(ONE), "k", {"x_ptr": ROWS, "y_ptr": zeros(4, 64)}),
    "specials": (reduction(ALL), "k", {"x_ptr": specials(), "y_ptr": zeros(4, 64)}),
    "not neutral": (reduction(ALL, 5.0, "arith.maximumf"), "k", {"x_ptr": ROWS, "y_ptr": zeros(4, 64)}),
    "sums before": (reduction(ALL, -7.0, hears=EARLIER), "k", {"x_ptr": ROWS, "y_ptr": zeros(4, 64)}),
    "broadcast": (BROADCAST, "k", {"x_ptr": ROWS, "y_ptr": zeros(4, 64)}),
    "scratchpad": (shared_scratchpad(), "main", {"x_ptr": ROWS, "y_ptr": zeros(16, 64)}),
    "product": (product(24), "k", {"a_ptr": normal([33, 24]), "b_ptr": normal([24, 40]), "y_ptr": zeros(33, 40)}),
}


def operations(program: LoweredProgram) -> Counter[str]:
    return Counter(op.name for op in program.module.walk())


@pytest.mark.parametrize("machine", available())
@pytest.mark.parametrize("name", KERNELS)
def test_every_machine_gives_the_bits_of_the_executor(machine: str, name: str) -> None:
    text, function, arguments = KERNELS[name]
    program = lowered(text, function, arguments, load(machine))
    verify.check(program.module, program.machine)
    want = execute(parse_module(text), function, dict(arguments), machine=program.machine).outputs
    for seed in (None, 5):
        found = outputs(program, arguments, seed)
        for key, array in want.items():
            if name == "product":  # sums of eight products are added in another order
                np.testing.assert_allclose(found[key], array, rtol=1e-5, atol=1e-5)
            else:
                assert found[key].tobytes() == array.tobytes()
    timing = simulate(program.module, program.machine)
    assert timing.total_ns >= timing.bound_ns > 0


@pytest.mark.parametrize("machine", available())
@pytest.mark.parametrize("name", ["all-reduce", "broadcast", "scratchpad"])
def test_what_several_cores_hear_is_sent_once(machine: str, name: str) -> None:
    """Without messages to several cores the same values go from core to core: more bytes, the same bits."""
    text, function, arguments = KERNELS[name]
    whole = load(machine)
    plain = without_multicast(whole)
    many, one = (lowered(text, function, arguments, each) for each in (whole, plain))
    assert operations(many)["dfp.multicast"] > 0 and operations(one)["dfp.multicast"] == 0
    verify.check(one.module, plain)
    assert {k: v.tobytes() for k, v in outputs(many, arguments).items()} == {
        k: v.tobytes() for k, v in outputs(one, arguments).items()
    }
    sent = [simulate(each.module, each.machine) for each in (many, one)]
    assert sent[0].ring < sent[1].ring
    if name != "all-reduce":  # there the sender is a reader too, and its own message comes a cycle later
        assert sent[0].total_ns <= sent[1].total_ns


@pytest.mark.parametrize("machine", available())
@pytest.mark.parametrize("name", ["all-reduce", "reduce", "specials", "not neutral", "sums before"])
def test_sums_are_added_on_the_way_where_the_network_can(machine: str, name: str) -> None:
    """A chain of the four cores; not for other combiners, nor where consumers hear different producers."""
    text, function, arguments = KERNELS[name]
    program = lowered(text, function, arguments, load(machine))
    has_chain = any("chain" in unit.ops for unit in program.machine.units.values())
    assert has_chain == (machine in ("spyre", "column"))
    assert (operations(program)["dfp.chain"] > 0) == (has_chain and name in ("all-reduce", "reduce", "specials"))


def without_multicast(machine: Machine) -> Machine:
    units = {
        name: replace(unit, ops=tuple(op for op in unit.ops if op != "multicast"))
        for name, unit in machine.units.items()
    }
    return replace(machine, units=units)
