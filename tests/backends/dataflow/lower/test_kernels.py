"""Hand-written kernels on the functional simulator against values computed with numpy in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ktir.backends.dataflow import verify
from ktir.backends.dataflow.lower import lower_to_dfp
from ktir.backends.dataflow.run import DTYPES, run
from ktir.backends.dataflow.timed import simulate
from ktir.conformance.case import parse_case
from ktir.dialect import dfp
from ktir.dialect.text.parser import parse_module
from ktir.errors import ArgumentError, CapacityExceeded, FunctionNotFound, KtirError, NotLowerable, OutOfBounds
from ktir.machine import load
from tests.backends.dataflow.lower.kernels import check, fetch, kernel, lowered, normal, outputs, put, spyre, view

CASES = sorted((Path(__file__).parents[4] / "spec" / "cases").glob("*.ktir"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_conformance_cases_give_what_they_expect(path: Path) -> None:
    case = parse_case(path.read_text(), str(path))
    program = lowered(path.read_text(), case.function, case.inputs)
    verify.check(program.module, program.machine)
    case.check(outputs(program, case.inputs, seed=3))


def test_ragged_rows_are_each_done_once() -> None:
    """67 rows over 8 cores: each core takes 8 rows in a loop, and core 0 the last three."""
    shape = [67, 100]
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [8],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", shape, "f16"),
        view("y", "%y_ptr", shape, "f16"),
        "%first = arith.muli %core, %c8 : index",
        "scf.for %i = %c0 to %c4 step %c1 {",
        "%two = arith.muli %i, %c2 : index",
        "%r = arith.addi %first, %two : index",
        fetch("v", "%x", shape, "%r, %c0", [2, 100], "f16"),
        "%w = math.tanh %v : tensor<2x100xf16>",
        put("w", "%y", shape, "%r, %c0", [2, 100], "f16"),
        "}",
        "%is_first = arith.cmpi eq, %core, %c0 : index",
        "scf.if %is_first {",
        fetch("t", "%x", shape, "%c64, %c0", [3, 100], "f16"),
        "%u = math.tanh %t : tensor<3x100xf16>",
        put("u", "%y", shape, "%c64, %c0", [3, 100], "f16"),
        "}",
    )
    x = normal(shape)
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": np.tanh(x.astype(np.float64))})


def test_trip_counts_may_differ_from_core_to_core() -> None:
    """Rows are dealt out like cards: core c takes rows c, c + 3, .. of 10."""
    shape = [10, 64]
    text = kernel(
        "%x_ptr: index, %y_ptr: index, %rows: index",
        [3],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", shape, "f32"),
        view("y", "%y_ptr", shape, "f32"),
        "scf.for %r = %core to %rows step %c3 {",
        fetch("v", "%x", shape, "%r, %c0", [1, 64], "f32"),
        "%w = arith.addf %v, %v : tensor<1x64xf32>",
        put("w", "%y", shape, "%r, %c0", [1, 64], "f32"),
        "}",
    )
    x = normal(shape, "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x), "rows": 10}, {"y_ptr": 2.0 * x})


def test_a_loop_that_no_core_runs_leaves_its_initial_value() -> None:
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", [2, 64], "f32"),
        view("y", "%y_ptr", [2, 64], "f32"),
        fetch("v", "%x", [2, 64], "%core, %c0", [1, 64], "f32"),
        "%s = scf.for %i = %c0 to %core step %c1 iter_args(%a = %v) -> (tensor<1x64xf32>) {",
        "%b = arith.mulf %a, %v : tensor<1x64xf32>",
        "scf.yield %b : tensor<1x64xf32>",
        "}",
        put("s", "%y", [2, 64], "%core, %c0", [1, 64], "f32"),
    )
    x = normal([2, 64], "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": np.stack([x[0], x[1] ** 2])})


def test_embedding_rows_are_gathered() -> None:
    text = kernel(
        "%table_ptr: index, %ids_ptr: index, %y_ptr: index",
        [4],
        "%core = ktdp.get_compute_tile_id : index",
        "%first = arith.muli %core, %c8 : index",
        view("table", "%table_ptr", [100, 96], "f16"),
        view("ids", "%ids_ptr", [32], "i64"),
        view("y", "%y_ptr", [32, 96], "f16"),
        "%rows = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k)"
        " %table[ind(%ids[%first + %m]), (%k)]"
        " {variables_space_set = affine_set<(d0, d1) : (d0 >= 0, 7 - d0 >= 0, d1 >= 0, 95 - d1 >= 0)>,"
        " variables_space_order = affine_map<(d0, d1) -> (d0, d1)>}"
        " : memref<100x96xf16>, memref<32xi64> -> !ktdp.access_tile<8x96xindex>",
        "%v = ktdp.load %rows : <8x96xindex> -> tensor<8x96xf16>",
        "%w = arith.addf %v, %v : tensor<8x96xf16>",
        put("w", "%y", [32, 96], "%first, %c0", [8, 96], "f16"),
    )
    table = normal([100, 96])
    ids = np.random.default_rng(1).integers(0, 100, 32)
    check(
        text,
        {"table_ptr": table, "ids_ptr": ids, "y_ptr": np.zeros((32, 96), np.float16)},
        {"y_ptr": 2 * table[ids].astype(np.float64)},
    )


def test_attention_carries_three_values() -> None:
    """Scores of a block of keys at a time; maximum, sum and output are rescaled as the maximum grows."""
    rows, keys, width, block = 16, 96, 32, 32
    text = kernel(
        "%q_ptr: index, %k_ptr: index, %v_ptr: index, %o_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%first = arith.muli %core, %c8 : index",
        "%blocks = arith.constant 3 : index",
        "%zero = arith.constant 0.0 : f32",
        "%lowest = arith.constant 0xFF800000 : f32",
        view("q", "%q_ptr", [rows, width], "f16"),
        view("k", "%k_ptr", [keys, width], "f16"),
        view("v", "%v_ptr", [keys, width], "f16"),
        view("o", "%o_ptr", [rows, width], "f16"),
        fetch("qv", "%q", [rows, width], "%first, %c0", [8, width], "f16"),
        "%e1 = tensor.empty() : tensor<8xf32>",
        "%m0 = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>",
        "%l0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>",
        "%e2 = tensor.empty() : tensor<8x32xf32>",
        "%a0 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x32xf32>) -> tensor<8x32xf32>",
        "%mm, %ll, %aa = scf.for %b = %c0 to %blocks step %c1 iter_args(%m = %m0, %l = %l0, %a = %a0)"
        " -> (tensor<8xf32>, tensor<8xf32>, tensor<8x32xf32>) {",
        "%at = arith.muli %b, %c32 : index",
        fetch("kv", "%k", [keys, width], "%at, %c0", [block, width], "f16"),
        fetch("vv", "%v", [keys, width], "%at, %c0", [block, width], "f16"),
        "%s = linalg.generic {indexing_maps = [affine_map<(i, j, c) -> (i, c)>, affine_map<(i, j, c) -> (j, c)>,"
        ' affine_map<(i, j, c) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}'
        " ins(%qv, %kv : tensor<8x32xf16>, tensor<32x32xf16>) outs(%a0 : tensor<8x32xf32>) {",
        "^bb0(%x: f16, %y: f16, %z: f32):",
        "%x1 = arith.extf %x : f16 to f32",
        "%y1 = arith.extf %y : f16 to f32",
        "%p0 = arith.mulf %x1, %y1 : f32",
        "%z1 = arith.addf %z, %p0 : f32",
        "linalg.yield %z1 : f32 } -> tensor<8x32xf32>",
        "%mn = linalg.reduce { arith.maximumf } ins(%s : tensor<8x32xf32>) outs(%m : tensor<8xf32>) dimensions = [1]",
        "%mb = linalg.broadcast ins(%mn : tensor<8xf32>) outs(%e2 : tensor<8x32xf32>) dimensions = [1]",
        "%d = arith.subf %s, %mb : tensor<8x32xf32>",
        "%p = math.exp %d : tensor<8x32xf32>",
        "%dm = arith.subf %m, %mn : tensor<8xf32>",
        "%c = math.exp %dm : tensor<8xf32>",
        "%lc = arith.mulf %l, %c : tensor<8xf32>",
        "%ln = linalg.reduce { arith.addf } ins(%p : tensor<8x32xf32>) outs(%lc : tensor<8xf32>) dimensions = [1]",
        "%cb = linalg.broadcast ins(%c : tensor<8xf32>) outs(%e2 : tensor<8x32xf32>) dimensions = [1]",
        "%ac = arith.mulf %a, %cb : tensor<8x32xf32>",
        "%ph = arith.truncf %p : tensor<8x32xf32> to tensor<8x32xf16>",
        "%an = linalg.matmul ins(%ph, %vv : tensor<8x32xf16>, tensor<32x32xf16>) outs(%ac : tensor<8x32xf32>)"
        " -> tensor<8x32xf32>",
        "scf.yield %mn, %ln, %an : tensor<8xf32>, tensor<8xf32>, tensor<8x32xf32>",
        "}",
        "%lb = linalg.broadcast ins(%ll : tensor<8xf32>) outs(%e2 : tensor<8x32xf32>) dimensions = [1]",
        "%of = arith.divf %aa, %lb : tensor<8x32xf32>",
        "%oh = arith.truncf %of : tensor<8x32xf32> to tensor<8x32xf16>",
        put("oh", "%o", [rows, width], "%first, %c0", [8, width], "f16"),
    )
    q, k, v = (normal([n, width], seed=s) for s, n in enumerate((rows, keys, keys)))
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    want = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    check(
        text,
        {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": np.zeros((rows, width), np.float16)},
        {"o_ptr": want},
        absolute=4e-3,
    )


def test_positions_in_a_body_count_from_the_tile_of_the_core() -> None:
    """A causal mask: row and column numbers, the row's from the core and the loop."""
    shape = [32, 64]
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%first = arith.muli %core, %c16 : index",
        "%low = arith.constant -1000.0 : f32",
        view("x", "%x_ptr", shape, "f32"),
        view("y", "%y_ptr", shape, "f32"),
        "scf.for %i = %c0 to %c2 step %c1 {",
        "%eight = arith.muli %i, %c8 : index",
        "%r = arith.addi %first, %eight : index",
        fetch("v", "%x", shape, "%r, %c0", [8, 64], "f32"),
        "%e = tensor.empty() : tensor<8x64xf32>",
        "%w = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],"
        ' iterator_types = ["parallel", "parallel"]} ins(%v : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {',
        "^bb0(%s: f32, %o: f32):",
        "%a = linalg.index 0 : index",
        "%b = linalg.index 1 : index",
        "%row = arith.addi %a, %r : index",
        "%seen = arith.cmpi sle, %b, %row : index",
        "%z = arith.select %seen, %s, %low : f32",
        "linalg.yield %z : f32 } -> tensor<8x64xf32>",
        put("w", "%y", shape, "%r, %c0", [8, 64], "f32"),
        "}",
    )
    x = normal(shape, "f32")
    seen = np.arange(64)[None, :] <= np.arange(32)[:, None]
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": np.where(seen, x, -1000.0)})


def test_sticks_are_collapsed_cut_and_padded_again() -> None:
    """A [5, 100] tensor as [2, 5, 64] sticks: whole sticks are loaded, the padding goes, zeros are stored for it."""
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        "%zero = arith.constant 0.0 : f16",
        view("x", "%x_ptr", [5, 2, 64], "f16", strides=[64, 320, 1]),
        view("y", "%y_ptr", [5, 2, 64], "f16", strides=[64, 320, 1]),
        fetch("v", "%x", [5, 2, 64], "%c0, %c0, %c0", [5, 2, 64], "f16"),
        "%flat = tensor.collapse_shape %v [[0], [1, 2]] : tensor<5x2x64xf16> into tensor<5x128xf16>",
        "%cut = tensor.extract_slice %flat[0, 0] [5, 100] [1, 1] : tensor<5x128xf16> to tensor<5x100xf16>",
        "%n = arith.negf %cut : tensor<5x100xf16>",
        "%e = tensor.empty() : tensor<5x128xf16>",
        "%around = linalg.fill ins(%zero : f16) outs(%e : tensor<5x128xf16>) -> tensor<5x128xf16>",
        "%in = tensor.insert_slice %n into %around[0, 0] [5, 100] [1, 1] : tensor<5x100xf16> into tensor<5x128xf16>",
        "%out = tensor.expand_shape %in [[0], [1, 2]] output_shape [5, 2, 64] : tensor<5x128xf16> into"
        " tensor<5x2x64xf16>",
        put("out", "%y", [5, 2, 64], "%c0, %c0, %c0", [5, 2, 64], "f16"),
    )
    x = normal([2, 5, 64])
    want = -x.astype(np.float64)
    want[1, :, 36:] = 0
    check(text, {"x_ptr": x, "y_ptr": np.ones_like(x)}, {"y_ptr": want})


def test_matrices_larger_than_the_accumulators_are_cut() -> None:
    rows, depth, columns = 70, 100, 1100
    text = kernel(
        "%a_ptr: index, %b_ptr: index, %c_ptr: index",
        [1],
        view("a", "%a_ptr", [rows, depth], "f16"),
        view("b", "%b_ptr", [columns, depth], "f16"),
        view("c", "%c_ptr", [rows, columns], "f32"),
        fetch("av", "%a", [rows, depth], "%c0, %c0", [rows, depth], "f16"),
        fetch("bv", "%b", [columns, depth], "%c0, %c0", [columns, depth], "f16"),
        f"%e = tensor.empty() : tensor<{depth}x{columns}xf16>",
        f"%bt = linalg.transpose ins(%bv : tensor<{columns}x{depth}xf16>) outs(%e : tensor<{depth}x{columns}xf16>)"
        " permutation = [1, 0]",
        f"%half = arith.constant dense<0.5> : tensor<{rows}x{columns}xf32>",
        f"%r = linalg.matmul ins(%av, %bt : tensor<{rows}x{depth}xf16>, tensor<{depth}x{columns}xf16>)"
        f" outs(%half : tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32>",
        put("r", "%c", [rows, columns], "%c0, %c0", [rows, columns], "f32"),
    )
    a, b = normal([rows, depth]), normal([columns, depth], seed=1)
    want = a.astype(np.float64) @ b.astype(np.float64).T + 0.5
    check(
        text, {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((rows, columns), np.float32)}, {"c_ptr": want}, absolute=1e-3
    )


def test_a_distributed_view_of_device_memory_is_put_together() -> None:
    """Three row strips of 3, 2 and 3 rows lie apart; tiles of 4 rows cross their borders."""
    text = kernel(
        "%p_ptr: index, %q_ptr: index, %r_ptr: index, %y_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%first = arith.muli %core, %c4 : index",
        view("p", "%p_ptr", [3, 64], "f16").replace(", memory_space", ", memory_space"),
        view("q", "%q_ptr", [2, 64], "f16", first=[3, 0]),
        view("r", "%r_ptr", [3, 64], "f16", first=[5, 0]),
        "%x = ktdp.construct_distributed_memory_view (%p, %q, %r : memref<3x64xf16>, memref<2x64xf16>,"
        " memref<3x64xf16>) : memref<8x64xf16>",
        view("y", "%y_ptr", [8, 64], "f16"),
        fetch("v", "%x", [8, 64], "%first, %c0", [4, 64], "f16"),
        "%w = arith.addf %v, %v : tensor<4x64xf16>",
        put("w", "%y", [8, 64], "%first, %c0", [4, 64], "f16"),
    )
    x = normal([8, 64])
    parts = {"p_ptr": x[:3].copy(), "q_ptr": x[3:5].copy(), "r_ptr": x[5:].copy()}
    check(text, {**parts, "y_ptr": np.zeros_like(x)}, {"y_ptr": 2 * x.astype(np.float64)})


def test_every_core_gets_the_sum_of_all() -> None:
    """An all-reduce whose combiner is not one operation: the larger magnitude, in groups of four cores."""
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [8],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", [8, 64], "f32"),
        view("y", "%y_ptr", [8, 64], "f32"),
        "%zero = arith.constant dense<0.0> : tensor<1x64xf32>",
        "%f = ktdp.inter_tile_produce"
        " producer_tiles_per_group = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>"
        " -> !ktdp.tile_future<(tensor<1x64xf32>), groups = affine_set<(g) : (g >= 0, 1 - g >= 0)>> {",
        "^bb0(%gid: index):",
        fetch("v", "%x", [8, 64], "%core, %c0", [1, 64], "f32"),
        "%a = math.absf %v : tensor<1x64xf32>",
        "ktdp.yield_partial %a : tensor<1x64xf32>",
        "}",
        "%r = ktdp.inter_tile_reduce(%f)"
        " consumer_tiles_per_group = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>,"
        " identity(%zero : tensor<1x64xf32>) : <(tensor<1x64xf32>), groups = affine_set<(g) : (g >= 0, 1 - g >= 0)>>"
        " -> tensor<1x64xf32> {",
        "^bb0(%l: tensor<1x64xf32>, %n: tensor<1x64xf32>):",
        "%big = arith.maximumf %l, %n : tensor<1x64xf32>",
        "ktdp.yield_reduced %big : tensor<1x64xf32>",
        "}",
        put("r", "%y", [8, 64], "%core, %c0", [1, 64], "f32"),
    )
    x = normal([8, 64], "f32")
    want = np.repeat(np.abs(x).reshape(2, 4, 64).max(1), 4, axis=0)
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": want})


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_over_any_axis(axis: int) -> None:
    shape = [6, 10, 40]
    kept = [n for i, n in enumerate(shape) if i != axis]
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", shape, "f32"),
        view("y", "%y_ptr", kept, "f32"),
        fetch("v", "%x", shape, "%c0, %c0, %c0", shape, "f32"),
        f"%one = arith.constant dense<1.0> : tensor<{kept[0]}x{kept[1]}xf32>",
        "%s = linalg.reduce { arith.addf } ins(%v : tensor<6x10x40xf32>)"
        f" outs(%one : tensor<{kept[0]}x{kept[1]}xf32>)"
        f" dimensions = [{axis}]",
        put("s", "%y", kept, "%c0, %c0", kept, "f32"),
    )
    x = normal(shape, "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros(kept, np.float32)}, {"y_ptr": 1 + x.astype(np.float64).sum(axis)})


def test_elements_are_transformed_before_they_are_added_up() -> None:
    """A sum of products of two tensors, one of them broadcast, which is no contraction."""
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", [4, 96], "f16"),
        view("y", "%y_ptr", [4], "f32"),
        fetch("v", "%x", [4, 96], "%c0, %c0", [4, 96], "f16"),
        "%zero = arith.constant dense<0.0> : tensor<4xf32>",
        "%s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>],"
        ' iterator_types = ["parallel", "reduction"]} ins(%v : tensor<4x96xf16>) outs(%zero : tensor<4xf32>) {',
        "^bb0(%e: f16, %t: f32):",
        "%w = arith.extf %e : f16 to f32",
        "%q = arith.mulf %w, %w : f32",
        "%u = arith.addf %t, %q : f32",
        "linalg.yield %u : f32 } -> tensor<4xf32>",
        put("s", "%y", [4], "%c0", [4], "f32"),
    )
    x = normal([4, 96])
    check(text, {"x_ptr": x, "y_ptr": np.zeros(4, np.float32)}, {"y_ptr": (x.astype(np.float64) ** 2).sum(1)})


def test_batched_products_with_any_order_of_dimensions() -> None:
    """Heads inside the rows, as attention has them after a reshape: batch is neither first nor contiguous."""
    text = kernel(
        "%a_ptr: index, %b_ptr: index, %c_ptr: index",
        [1],
        view("a", "%a_ptr", [10, 3, 16], "f16"),
        view("b", "%b_ptr", [20, 3, 16], "f16"),
        view("c", "%c_ptr", [3, 10, 20], "f16"),
        fetch("av", "%a", [10, 3, 16], "%c0, %c0, %c0", [10, 3, 16], "f16"),
        fetch("bv", "%b", [20, 3, 16], "%c0, %c0, %c0", [20, 3, 16], "f16"),
        "%zero = arith.constant dense<0.0> : tensor<3x10x20xf32>",
        "%s = linalg.generic {indexing_maps = [affine_map<(h, i, j, k) -> (i, h, k)>,"
        " affine_map<(h, i, j, k) -> (j, h, k)>, affine_map<(h, i, j, k) -> (h, i, j)>],"
        ' iterator_types = ["parallel", "parallel", "parallel", "reduction"]}'
        " ins(%av, %bv : tensor<10x3x16xf16>, tensor<20x3x16xf16>) outs(%zero : tensor<3x10x20xf32>) {",
        "^bb0(%x: f16, %y: f16, %z: f32):",
        "%x1 = arith.extf %x : f16 to f32",
        "%y1 = arith.extf %y : f16 to f32",
        "%p = arith.mulf %x1, %y1 : f32",
        "%u = arith.addf %z, %p : f32",
        "linalg.yield %u : f32 } -> tensor<3x10x20xf32>",
        "%h = arith.truncf %s : tensor<3x10x20xf32> to tensor<3x10x20xf16>",
        put("h", "%c", [3, 10, 20], "%c0, %c0, %c0", [3, 10, 20], "f16"),
    )
    a, b = normal([10, 3, 16]), normal([20, 3, 16], seed=1)
    want = np.einsum("ihk,jhk->hij", a.astype(np.float64), b.astype(np.float64))
    check(text, {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((3, 10, 20), np.float16)}, {"c_ptr": want}, absolute=4e-3)


MAIN = """
#x = #ktdp.stick_layout<[1 : 2 : 64, 0 : 5 : 1, 1 : 64 : 1], extent = [5, 100], pad = zero>
func.func @main(%x: memref<5x100xf16> {ktg.name = "input"},
                %y: memref<5x100xf16> {ktg.name = "output", ktg.result = 0 : i64}) {
  %b0 = memref.alloc() {alignment = 128 : i64, ktdp.address = 0 : i64, ktdp.stick_layout = #x} : memref<2x5x64xf16>
  %b1 = memref.alloc() {alignment = 128 : i64, ktdp.address = 1280 : i64, ktdp.stick_layout = #x} : memref<2x5x64xf16>
  "ktg.transfer"(%x, %b0) : (memref<5x100xf16>, memref<2x5x64xf16>) -> ()
  %c2 = arith.constant 2 : index
  %p0 = memref.extract_aligned_pointer_as_index %b0 : memref<2x5x64xf16> -> index
  %e0 = arith.divui %p0, %c2 : index
  %p1 = memref.extract_aligned_pointer_as_index %b1 : memref<2x5x64xf16> -> index
  %e1 = arith.divui %p1, %c2 : index
  func.call @double(%e0, %e1) : (index, index) -> ()
  func.call @double(%e1, %e0) : (index, index) -> ()
  "ktg.transfer"(%b0, %y) : (memref<2x5x64xf16>, memref<5x100xf16>) -> ()
  func.return
}
"""


def test_a_named_product_onto_an_empty_tensor_begins_at_zero() -> None:
    """Nearly every public kernel is written this way (specification, Q26)."""
    text = kernel(
        "%x_ptr: index, %y_ptr: index, %z_ptr: index",
        [1],
        view("x", "%x_ptr", [16, 64], "f16"),
        view("y", "%y_ptr", [64, 32], "f16"),
        view("z", "%z_ptr", [16, 32], "f16"),
        fetch("a", "%x", [16, 64], "%c0, %c0", [16, 64], "f16"),
        fetch("b", "%y", [64, 32], "%c0, %c0", [64, 32], "f16"),
        "%e = tensor.empty() : tensor<16x32xf16>",
        "%p = linalg.matmul ins(%a, %b : tensor<16x64xf16>, tensor<64x32xf16>) outs(%e : tensor<16x32xf16>)"
        " -> tensor<16x32xf16>",
        put("p", "%z", [16, 32], "%c0, %c0", [16, 32], "f16"),
    )
    x, y = normal([16, 64]), normal([64, 32])
    z = np.zeros((16, 32), np.float16)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    check(text, {"x_ptr": x, "y_ptr": y, "z_ptr": z}, {"z_ptr": expected}, absolute=2e-2)


def test_both_corelets_of_a_core_work() -> None:
    """A product, work point by point, and sums both ways: same numbers on one corelet and on two, in less time."""
    text = kernel(
        "%x_ptr: index, %w_ptr: index, %y_ptr: index, %r_ptr: index, %c_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%row = arith.muli %core, %c64 : index",
        view("x", "%x_ptr", [128, 256], "f16"),
        view("w", "%w_ptr", [256, 512], "f16"),
        view("y", "%y_ptr", [128, 512], "f16"),
        view("r", "%r_ptr", [128], "f32"),
        view("c", "%c_ptr", [2, 512], "f32"),
        fetch("a", "%x", [128, 256], "%row, %c0", [64, 256], "f16"),
        fetch("b", "%w", [256, 512], "%c0, %c0", [256, 512], "f16"),
        "%zero = arith.constant dense<0.0> : tensor<64x512xf32>",
        "%p = linalg.matmul ins(%a, %b : tensor<64x256xf16>, tensor<256x512xf16>) outs(%zero : tensor<64x512xf32>)"
        " -> tensor<64x512xf32>",
        "%t = math.tanh %p : tensor<64x512xf32>",
        "%h = arith.truncf %t : tensor<64x512xf32> to tensor<64x512xf16>",
        put("h", "%y", [128, 512], "%row, %c0", [64, 512], "f16"),
        "%none = arith.constant dense<0.0> : tensor<64xf32>",
        "%rows = linalg.reduce { arith.addf } ins(%t : tensor<64x512xf32>) outs(%none : tensor<64xf32>)"
        " dimensions = [1]",
        put("rows", "%r", [128], "%row", [64], "f32"),
        "%nothing = arith.constant dense<0.0> : tensor<512xf32>",
        "%columns = linalg.reduce { arith.addf } ins(%t : tensor<64x512xf32>) outs(%nothing : tensor<512xf32>)"
        " dimensions = [0]",
        "%line = tensor.expand_shape %columns [[0, 1]] output_shape [1, 512] : tensor<512xf32> into tensor<1x512xf32>",
        put("line", "%c", [2, 512], "%core, %c0", [1, 512], "f32"),
    )
    x, w = normal([128, 256]), normal([256, 512])
    y = np.tanh(x.astype(np.float64) @ w.astype(np.float64))
    arguments = {"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros((128, 512), np.float16)}
    arguments |= {"r_ptr": np.zeros(128, np.float32), "c_ptr": np.zeros((2, 512), np.float32)}
    sums = {"r_ptr": y.sum(1), "c_ptr": y.reshape(2, 64, 512).sum(1)}
    two = check(text, arguments, {"y_ptr": y, **sums})
    assert {unit.corelet.value.data for unit in two.module.walk() if isinstance(unit, dfp.UnitOp)} == {0, 1}
    one = lowered(text, None, arguments, load("spyre", {"check.flop_per_cycle_core": {"dl16": 1024}}, corelets=1))
    for name, values in outputs(one, arguments).items():
        np.testing.assert_allclose(values, outputs(two, arguments)[name], rtol=1e-5)
    assert simulate(two.module, two.machine).total_ns < simulate(one.module, one.machine).total_ns


def test_second_slots_are_given_up_where_space_is_short() -> None:
    """A loop of three large tiles: with a second slot of each they would not fit."""
    rows, shape = 16, [16, 8192]
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        "%end = arith.constant 64 : index",
        view("x", "%x_ptr", [64, 8192], "f16"),
        view("y", "%y_ptr", [64, 8192], "f16"),
        "scf.for %r = %c0 to %end step %c16 {",
        fetch("v", "%x", [64, 8192], "%r, %c0", shape, "f16"),
        "%w = arith.mulf %v, %v : tensor<16x8192xf16>",
        "%u = arith.addf %w, %v : tensor<16x8192xf16>",
        put("u", "%y", [64, 8192], "%r, %c0", shape, "f16"),
        "}",
    )
    x = normal([64, 8192])
    arguments = {"x_ptr": x, "y_ptr": np.zeros_like(x)}
    wide = lowered(text, None, arguments)
    narrow = lowered(text, None, arguments, load("spyre", scratchpad=2 * rows * 8192 * 2))
    assert narrow.lx_bytes == wide.lx_bytes // 2
    verify.check(narrow.module, narrow.machine)
    for name, want in outputs(wide, arguments).items():
        assert np.array_equal(outputs(narrow, arguments)[name], want)


def test_a_host_program_places_its_tensors_in_sticks() -> None:
    """Two launches of one kernel, there and back between two laid-out buffers."""
    shape = [5, 2, 64]
    text = MAIN + kernel(
        "%x_ptr: index, %y_ptr: index",
        [5],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", shape, "f16", strides=[64, 320, 1]),
        view("y", "%y_ptr", shape, "f16", strides=[64, 320, 1]),
        fetch("v", "%x", shape, "%core, %c0, %c0", [1, 2, 64], "f16"),
        "%w = arith.addf %v, %v : tensor<1x2x64xf16>",
        put("w", "%y", shape, "%core, %c0, %c0", [1, 2, 64], "f16"),
        name="double",
    )
    program = lower_to_dfp(parse_module(text, "main.mlir"), spyre(), "main")
    verify.check(program.module, program.machine)
    x = normal([5, 100])
    found = run(program, {"input": x}).outputs
    assert list(found) == ["output"]
    np.testing.assert_array_equal(found["output"], 4 * x)


def test_a_load_waits_for_the_store_it_reads() -> None:
    """Doubled in place, loaded again behind the store, and doubled once more to another array."""
    shape = [8, 64]
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [4],
        "%core = ktdp.get_compute_tile_id : index",
        "%first = arith.muli %core, %c2 : index",
        view("x", "%x_ptr", shape, "f32"),
        view("y", "%y_ptr", shape, "f32"),
        fetch("v", "%x", shape, "%first, %c0", [2, 64], "f32"),
        "%w = arith.addf %v, %v : tensor<2x64xf32>",
        put("w", "%x", shape, "%first, %c0", [2, 64], "f32"),
        fetch("u", "%x", shape, "%first, %c0", [2, 64], "f32"),
        "%z = arith.addf %u, %u : tensor<2x64xf32>",
        put("z", "%y", shape, "%first, %c0", [2, 64], "f32"),
    )
    x = normal(shape, "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"x_ptr": 2 * x, "y_ptr": 4 * x})


def test_rows_of_an_array_may_be_replaced_in_a_loop() -> None:
    """Iterations touch blocks of columns whose bytes interleave but never meet."""
    shape = [4, 256]
    text = kernel(
        "%x_ptr: index",
        [1],
        view("x", "%x_ptr", shape, "f32"),
        "scf.for %i = %c0 to %c4 step %c1 {",
        "%at = arith.muli %i, %c64 : index",
        fetch("v", "%x", shape, "%c0, %at", [4, 64], "f32"),
        "%w = arith.addf %v, %v : tensor<4x64xf32>",
        put("w", "%x", shape, "%c0, %at", [4, 64], "f32"),
        "}",
    )
    x = normal(shape, "f32")
    check(text, {"x_ptr": x}, {"x_ptr": 2 * x})


def test_a_scratchpad_view_is_read_behind_its_store() -> None:
    """Own scratchpad as a place to keep a tile between two loops of one launch."""
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [2],
        "%core = ktdp.get_compute_tile_id : index",
        "%place = arith.constant 1024 : index",
        view("x", "%x_ptr", [2, 64], "f32"),
        view("y", "%y_ptr", [2, 64], "f32"),
        view("own", "%place", [1, 64], "f32", space="ct_local"),
        fetch("v", "%x", [2, 64], "%core, %c0", [1, 64], "f32"),
        "%w = arith.addf %v, %v : tensor<1x64xf32>",
        put("w", "%own", [1, 64], "%c0, %c0", [1, 64], "f32"),
        fetch("u", "%own", [1, 64], "%c0, %c0", [1, 64], "f32"),
        "%z = arith.addf %u, %v : tensor<1x64xf32>",
        put("z", "%y", [2, 64], "%core, %c0", [1, 64], "f32"),
    )
    x = normal([2, 64], "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": 3 * x})


def refused(text: str, arguments: dict[str, object], kind: type[KtirError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        lowered(text, None, arguments)
    assert caught.value.location is not None and caught.value.location.file == "kernel.mlir"


def test_what_cannot_be_lowered_is_named() -> None:
    shape = [8, 64]
    x = normal(shape, "f32")
    start = ["%x_ptr: index", [1], view("x", "%x_ptr", shape, "f32")]

    def body(*lines: str) -> str:
        return kernel(*start, *lines)  # type: ignore[arg-type]

    chained = body(
        "scf.for %i = %c0 to %c3 step %c1 {",
        "%n = arith.addi %i, %c1 : index",
        fetch("v", "%x", shape, "%i, %c0", [1, 64], "f32"),
        put("v", "%x", shape, "%n, %c0", [1, 64], "f32"),
        "}",
    )
    refused(chained, {"x_ptr": x}, NotLowerable, "earlier one writes")
    triangle = body(
        "%many = arith.addi %c64, %c1 : index",
        "scf.for %i = %c0 to %many step %c1 {",
        "scf.for %j = %c0 to %i step %c1 {",
        fetch("v", "%x", shape, "%j, %c0", [1, 64], "f32"),
        put("v", "%x", shape, "%j, %c0", [1, 64], "f32"),
        "} }",
    )
    refused(triangle, {"x_ptr": x}, NotLowerable, "scf.for .* trip count")
    outside = body(
        "scf.for %i = %c0 to %c4 step %c1 {",
        "%r = arith.muli %i, %c3 : index",
        fetch("v", "%x", shape, "%r, %c0", [1, 64], "f32"),
        put("v", "%x", shape, "%r, %c0", [1, 64], "f32"),
        "}",
    )
    refused(outside, {"x_ptr": x}, OutOfBounds, r"\[0, 10\) along dimension 0 of a view of 8")
    large = body(
        "%e = tensor.empty() : tensor<1024x1024xf32>",
        "%z = arith.constant 1.0 : f32",
        "%f = linalg.fill ins(%z : f32) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>",
        "%g = math.exp %f : tensor<1024x1024xf32>",
        "%h = tensor.extract_slice %g[0, 0] [1, 64] [1, 1] : tensor<1024x1024xf32> to tensor<1x64xf32>",
        put("h", "%x", shape, "%c0, %c0", [1, 64], "f32"),
    )
    refused(large, {"x_ptr": x}, CapacityExceeded, "4194304 bytes for math.exp")
    with pytest.raises(ArgumentError, match="x_ptr is missing"):
        lowered(large, None, {})
    with pytest.raises(FunctionNotFound, match="no function @other"):
        lowered(large, "other", {"x_ptr": x})


def two_results(*body: str) -> str:
    """A generic that reduces the middle of [5, 6, 7] to two results of [7, 5], from 0.5 and from -9."""
    maps = ", ".join(f"affine_map<(a, b, c) -> ({to})>" for to in ("a, b, c", "c, a", "c, a"))
    shape, kind = [7, 5], "tensor<7x5xf32>"
    return kernel(
        "%x_ptr: index, %y_ptr: index, %z_ptr: index",
        [1],
        view("x", "%x_ptr", [5, 6, 7], "f32"),
        view("y", "%y_ptr", shape, "f32"),
        view("z", "%z_ptr", shape, "f32"),
        fetch("v", "%x", [5, 6, 7], "%c0, %c0, %c0", [5, 6, 7], "f32"),
        f"%half = arith.constant dense<0.5> : {kind}",
        f"%low = arith.constant dense<-9.0> : {kind}",
        f"%r:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
        '["parallel", "reduction", "parallel"]} '
        f"ins(%v : tensor<5x6x7xf32>) outs(%half, %low : {kind}, {kind}) {{",
        "^bb0(%e: f32, %s: f32, %m: f32):",
        *body,
        "linalg.yield %t, %n : f32, f32",
        f"}} -> ({kind}, {kind})",
        put("r0", "%y", shape, "%c0, %c0", shape, "f32").replace("ktdp.store %r0,", "ktdp.store %r#0,"),
        put("r1", "%z", shape, "%c0, %c0", shape, "f32").replace("ktdp.store %r1,", "ktdp.store %r#1,"),
    )


def test_a_generic_may_reduce_to_several_results() -> None:
    x = normal([5, 6, 7], "f32")
    out = np.zeros((7, 5), np.float32)
    text = two_results(
        "%q = arith.mulf %e, %e : f32", "%t = arith.addf %s, %q : f32", "%n = arith.maximumf %m, %e : f32"
    )
    want = {"y_ptr": 0.5 + (x.astype(np.float64) ** 2).sum(1).T, "z_ptr": x.max(1).T}
    check(text, {"x_ptr": x, "y_ptr": out, "z_ptr": out}, want)
    tied = two_results("%t = arith.addf %s, %e : f32", "%n = arith.addf %m, %t : f32")
    refused(tied, {"x_ptr": x, "y_ptr": out, "z_ptr": out}, NotLowerable, "its results depend on each other")


def test_a_map_combines_its_inputs_element_by_element() -> None:
    """In both spellings: one operation, and a body that captures a scalar."""
    shape = [3, 5]
    kind = "tensor<3x5xf32>"
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", shape, "f32"),
        view("y", "%y_ptr", shape, "f32"),
        fetch("v", "%x", shape, "%c0, %c0", shape, "f32"),
        "%half = arith.constant 0.5 : f32",
        f"%e = tensor.empty() : {kind}",
        f"%m = linalg.map {{ arith.mulf }} ins(%v, %v : {kind}, {kind}) outs(%e : {kind})",
        f"%f = tensor.empty() : {kind}",
        f"%n = linalg.map ins(%m, %v : {kind}, {kind}) outs(%f : {kind}) (%a: f32, %b: f32, %o: f32) {{",
        "%h = arith.mulf %b, %half : f32",
        "%s = arith.addf %a, %h : f32",
        "linalg.yield %s : f32",
        "}",
        put("n", "%y", shape, "%c0, %c0", shape, "f32"),
    )
    x = normal(shape, "f32")
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": x * x + 0.5 * x})


@pytest.mark.parametrize("element", ["i64", "i32", "f16", "f32"])
def test_constants_that_are_no_splats_come_from_device_memory(element: str) -> None:
    point = "" if element.startswith("i") else ".0"
    numbers = ", ".join(f"{n}{point}" for n in range(-4, 4))
    add = "arith.addi" if element.startswith("i") else "arith.addf"
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [1],
        view("x", "%x_ptr", [8], element),
        view("y", "%y_ptr", [8], element),
        fetch("v", "%x", [8], "%c0", [8], element),
        f"%k = arith.constant dense<[{numbers}]> : tensor<8x{element}>",
        f"%s = {add} %v, %k : tensor<8x{element}>",
        put("s", "%y", [8], "%c0", [8], element),
    )
    x = np.arange(8).astype(DTYPES[element])
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": x + np.arange(-4, 4)})
