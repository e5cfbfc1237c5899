"""Tiles that reach beyond a view of dynamic size, or into changing partitions; memory at given places."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from ktir.backends.dataflow import verify
from ktir.backends.dataflow.lower import ArrayArgument, lower_to_dfp
from ktir.backends.dataflow.run import run
from ktir.dialect.text.parser import parse_module
from ktir.errors import DistributedViewHole, NotLowerable
from ktir.machine import load, loads
from tests.backends.dataflow.lower.kernels import box, check, fetch, kernel, lowered, normal, order, put, spyre, view


def dynamic(name: str, pointer: str) -> str:
    return (
        f"%{name} = ktdp.construct_memory_view {pointer}, sizes: [%n], strides: [1] {{coordinate_set = "
        "affine_set<(d0)[s0] : (d0 >= 0, s0 - d0 - 1 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<?xf32>"
    )


def part(name: str, base: str, at: str) -> str:
    return (
        f"%{name} = ktdp.construct_access_tile {base}[{at}] {{access_tile_set = {box([64])}, access_tile_order = "
        f"{order(1)}}} : memref<?xf32> -> !ktdp.access_tile<64xindex>"
    )


ADD = kernel(
    "%x_ptr: index, %y_ptr: index, %n: index",
    [4],
    "%core = ktdp.get_compute_tile_id : index",
    "%first = arith.muli %core, %c64 : index",
    dynamic("x", "%x_ptr"),
    dynamic("y", "%y_ptr"),
    part("from", "%x", "%first"),
    part("to", "%y", "%first"),
    "%v = ktdp.load %from : <64xindex> -> tensor<64xf32>",
    "%w = arith.addf %v, %v : tensor<64xf32>",
    "ktdp.store %w, %to : tensor<64xf32>, <64xindex>",
)
LOOP = kernel(
    "%x_ptr: index, %y_ptr: index, %n: index",
    [2],
    "%core = ktdp.get_compute_tile_id : index",
    "%first = arith.muli %core, %c64 : index",
    "%step = arith.addi %c64, %c64 : index",
    dynamic("x", "%x_ptr"),
    dynamic("y", "%y_ptr"),
    "scf.for %at = %first to %n step %step {",
    part("from", "%x", "%at"),
    part("to", "%y", "%at"),
    "%v = ktdp.load %from : <64xindex> -> tensor<64xf32>",
    "%w = arith.addf %v, %v : tensor<64xf32>",
    "ktdp.store %w, %to : tensor<64xf32>, <64xindex>",
    "}",
)


@pytest.mark.parametrize("text", [ADD, LOOP], ids=["one tile each", "tiles dealt out in a loop"])
@pytest.mark.parametrize("extent", [256, 200, 64, 130])
def test_the_last_tile_may_reach_beyond_a_dynamic_view(text: str, extent: int) -> None:
    """In the first kernel whole cores may have nothing; in the second the cores differ in their number of tiles."""
    x = normal([extent], "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x), "n": extent}, {"y_ptr": 2.0 * x})


def partitioned(columns: int, step: int) -> str:
    """A copy of [4, 2 * columns] from two arrays that hold one half each, ``step`` columns at a time."""
    half = [4, columns]
    whole = [4, 2 * columns]
    return kernel(
        "%a_ptr: index, %b_ptr: index, %y_ptr: index",
        [1],
        f"%end = arith.constant {2 * columns} : index",
        f"%step = arith.constant {step} : index",
        view("a", "%a_ptr", half, "f16"),
        view("b", "%b_ptr", half, "f16", first=[0, columns]),
        f"%x = ktdp.construct_distributed_memory_view(%a, %b : memref<4x{columns}xf16>, memref<4x{columns}xf16>) "
        f": memref<4x{2 * columns}xf16>",
        view("y", "%y_ptr", whole, "f16"),
        "scf.for %at = %c0 to %end step %step {",
        fetch("v", "%x", whole, "%c0, %at", [4, step], "f16"),
        put("v", "%y", whole, "%c0, %at", [4, step], "f16"),
        "}",
    )


@pytest.mark.parametrize("step", [64, 32, 16])
def test_iterations_may_reach_different_partitions(step: int) -> None:
    """With steps of 64 and halves of 96 a tile takes from both in the second of three iterations."""
    a, b = normal([4, 96]), normal([4, 96])
    y = np.zeros((4, 192), np.float16)
    check(partitioned(96, step), {"a_ptr": a, "b_ptr": b, "y_ptr": y}, {"y_ptr": np.hstack([a, b])})


def test_a_tile_may_come_from_device_memory_and_from_another_core() -> None:
    """Core 0 doubles the first rows and keeps them in its scratchpad; then both read all rows."""
    half, whole = [4, 64], [8, 64]
    place = "%place = arith.constant 1024 : index"
    head = "func.func @main(%x_ptr: index, %y_ptr: index) {\n"
    calls = (
        "func.call @keep(%x_ptr) : (index) -> ()\nfunc.call @join(%x_ptr, %y_ptr) : (index, index) -> ()\nreturn\n}\n"
    )
    keep = kernel(
        "%x_ptr: index",
        [1],
        place,
        view("x", "%x_ptr", half, "f16"),
        view("own", "%place", half, "f16", space="ct_local"),
        fetch("v", "%x", half, "%c0, %c0", half, "f16"),
        "%w = arith.addf %v, %v : tensor<4x64xf16>",
        put("w", "%own", half, "%c0, %c0", half, "f16"),
        name="keep",
    )
    join = kernel(
        "%x_ptr: index, %y_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%row = arith.muli %core, %c8 : index",
        place,
        "%second = arith.constant 256 : index",
        "%later = arith.addi %x_ptr, %second : index",
        view("kept", "%place", half, "f16", space="ct_local, ct_id = 0"),
        view("rest", "%later", half, "f16", first=[4, 0]),
        "%all = ktdp.construct_distributed_memory_view(%kept, %rest : memref<4x64xf16>, memref<4x64xf16>)"
        " : memref<8x64xf16>",
        view("y", "%y_ptr", [16, 64], "f16"),
        fetch("v", "%all", whole, "%c0, %c0", whole, "f16"),
        put("v", "%y", [16, 64], "%row, %c0", whole, "f16"),
        name="join",
    )
    x = normal(whole)
    both = np.vstack([2 * x[:4], x[4:]])
    arguments = {"x_ptr": x, "y_ptr": np.zeros((16, 64), np.float16)}
    check(head + calls + keep + join, arguments, {"y_ptr": np.vstack([both, both])}, function="main")


def test_a_hole_between_partitions_is_found() -> None:
    text = partitioned(96, 32).replace("d1 - 96 >= 0", "d1 - 128 >= 0")
    arguments = {name: np.zeros((4, 96), np.float16) for name in ("a_ptr", "b_ptr")}
    with pytest.raises(DistributedViewHole, match="coordinates that no partition owns"):
        lowered(text, None, {**arguments, "y_ptr": np.zeros((4, 192), np.float16)})


def test_a_program_with_addresses_in_its_text_finds_its_memory() -> None:
    """The view of 12 rows at element 256 crosses from one image to the next."""
    text = kernel(
        "",
        [1],
        "%from = arith.constant 256 : index",
        "%to = arith.constant 4096 : index",
        view("x", "%from", [12, 64], "f16"),
        view("y", "%to", [12, 64], "f16"),
        fetch("v", "%x", [12, 64], "%c0, %c0", [12, 64], "f16"),
        "%w = arith.addf %v, %v : tensor<12x64xf16>",
        put("w", "%y", [12, 64], "%c0, %c0", [12, 64], "f16"),
    )
    first, second = normal([8, 64]), normal([4, 64])
    images = {"first": (first, 512), "second": (second, 512 + 1024), "y": (np.zeros((12, 64), np.float16), 8192)}
    launch = {name: ArrayArgument(array.shape, "f16", byte) for name, (array, byte) in images.items()}
    program = lower_to_dfp(parse_module(text), spyre(), "k", launch)
    verify.check(program.module, program.machine)
    done = run(program, {name: array for name, (array, _) in images.items()})
    assert set(done.outputs) == {"y"}
    np.testing.assert_array_equal(done.outputs["y"], 2 * np.vstack([first, second]))


def test_a_machine_without_network_is_told_so() -> None:

    text = resources.files("ktir.backends.dataflow").joinpath("data/column.toml").read_text()
    cut = text[: text.index("[unit.stream_out]")] + text[text.index("[queue.load_vector]") : text.index("[net.stream]")]

    alone = loads(cut + text[text.index("[host]") :])
    remote = kernel(
        "%y_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%at = arith.constant 1024 : index",
        "%x = ktdp.construct_memory_view %at, sizes: [4, 64], strides: [64, 1] {coordinate_set = "
        f"{box([4, 64])}, memory_space = #ktdp.memory_space<ct_local, ct_id = 1>}} : memref<4x64xf16>",
        view("y", "%y_ptr", [8, 64], "f16"),
        "%row = arith.muli %core, %c4 : index",
        fetch("v", "%x", [4, 64], "%c0, %c0", [4, 64], "f16"),
        put("v", "%y", [8, 64], "%row, %c0", [4, 64], "f16"),
    )
    arguments = {"y_ptr": np.zeros((8, 64), np.float16)}
    assert lowered(remote, None, arguments, load("column")).kernels == ("k",)
    with pytest.raises(NotLowerable, match="no network joins the cores of column"):
        lowered(remote, None, arguments, alone)
