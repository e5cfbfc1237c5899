"""Loops whose iterations differ in more than addresses: in bounds, branches and indices."""

from __future__ import annotations

import numpy as np
import pytest

from ktir.backends.dataflow.lower.control_flow import MOST_UNROLLED
from ktir.errors import NotLowerable
from tests.backends.dataflow.lower.kernels import check, fetch, kernel, lowered, normal, put, view

CORE = "%core = ktdp.get_compute_tile_id : index"
ROW = "tensor<1x10xf32>"


def triangle(rows: int) -> str:
    """Row r of the result is the sum of the rows up to r; four cores take every fourth row."""
    whole = [rows, 10]
    return kernel(
        "%x_ptr: index, %y_ptr: index, %n: index",
        [4],
        CORE,
        view("x", "%x_ptr", whole, "f32"),
        view("y", "%y_ptr", whole, "f32"),
        f"%zero = arith.constant dense<0.0> : {ROW}",
        "scf.for %r = %core to %n step %c4 {",
        "%end = arith.addi %r, %c1 : index",
        f"%s = scf.for %j = %c0 to %end step %c1 iter_args(%a = %zero) -> ({ROW}) {{",
        fetch("v", "%x", whole, "%j, %c0", [1, 10], "f32"),
        f"%t = arith.addf %a, %v : {ROW}",
        f"scf.yield %t : {ROW}",
        "}",
        put("s", "%y", whole, "%r, %c0", [1, 10], "f32"),
        "}",
    )


@pytest.mark.parametrize("rows", [1, 3, 11])
def test_an_inner_loop_may_end_where_the_outer_one_is(rows: int) -> None:
    x = normal([rows, 10], "f32")
    check(triangle(rows), {"x_ptr": x, "y_ptr": np.zeros_like(x), "n": rows}, {"y_ptr": np.cumsum(x, 0)})


def test_a_loop_that_is_too_long_to_be_written_out_is_refused() -> None:
    rows = 4 * MOST_UNROLLED + 1
    x = normal([rows, 10], "f32")
    with pytest.raises(NotLowerable, match="its trip count changes in an enclosing loop"):
        lowered(triangle(rows), None, {"x_ptr": x, "y_ptr": np.zeros_like(x), "n": rows})


def test_branches_and_indices_may_depend_on_the_iteration() -> None:
    """Rows beyond the core's number are doubled, others negated; they go to the row i * i, at most the last."""
    whole, one = [2, 5, 10], [1, 1, 10]
    text = kernel(
        "%x_ptr: index, %y_ptr: index, %last: index",
        [2],
        CORE,
        view("x", "%x_ptr", whole, "f32"),
        view("y", "%y_ptr", [2, 5, 10], "f32"),
        "scf.for %i = %c0 to %c3 step %c1 {",
        fetch("v", "%x", whole, "%core, %i, %c0", one, "f32"),
        "%square = arith.muli %i, %i : index",
        "%to = arith.minsi %square, %last : index",
        "%beyond = arith.cmpi sgt, %i, %core : index",
        "%w = scf.if %beyond -> (tensor<1x1x10xf32>) {",
        "%a = arith.addf %v, %v : tensor<1x1x10xf32>",
        "scf.yield %a : tensor<1x1x10xf32>",
        "} else {",
        "%b = arith.negf %v : tensor<1x1x10xf32>",
        "scf.yield %b : tensor<1x1x10xf32>",
        "}",
        put("w", "%y", whole, "%core, %to, %c0", one, "f32"),
        "}",
    )
    x = normal(whole, "f32")
    want = np.zeros_like(x)
    for core in range(2):
        for i in range(3):
            want[core, min(i * i, 4)] = 2 * x[core, i] if i > core else -x[core, i]
    check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x), "last": 4}, {"y_ptr": want})


def test_what_a_written_out_loop_carries_stays_on_cores_that_have_ended() -> None:
    """Core c has c + 1 iterations; the second one is subtracted. An index doubles and says where to store."""
    whole = [16, 10]
    text = kernel(
        "%x_ptr: index, %y_ptr: index",
        [4],
        CORE,
        view("x", "%x_ptr", [4, 10], "f32"),
        view("y", "%y_ptr", whole, "f32"),
        f"%zero = arith.constant dense<0.0> : {ROW}",
        "%end = arith.addi %core, %c1 : index",
        f"%r:2 = scf.for %i = %c0 to %end step %c1 iter_args(%at = %c1, %a = %zero) -> (index, {ROW}) {{",
        "%second = arith.cmpi eq, %i, %c1 : index",
        fetch("v", "%x", [4, 10], "%i, %c0", [1, 10], "f32"),
        f"%u = scf.if %second -> ({ROW}) {{",
        f"%n = arith.negf %v : {ROW}",
        f"scf.yield %n : {ROW}",
        "} else {",
        f"scf.yield %v : {ROW}",
        "}",
        f"%t = arith.addf %a, %u : {ROW}",
        "%next = arith.muli %at, %c2 : index",
        f"scf.yield %next, %t : index, {ROW}",
        "}",
        "%row = arith.subi %r#0, %c1 : index",
        put("sum", "%y", whole, "%row, %c0", [1, 10], "f32").replace("ktdp.store %sum,", "ktdp.store %r#1,"),
    )
    x = normal([4, 10], "f32")
    signs = np.array([1, -1, 1, 1], np.float32)[:, None]
    want = np.zeros(whole, np.float32)
    for core in range(4):
        want[2 ** (core + 1) - 1] = (signs * x)[: core + 1].sum(0)
    check(text, {"x_ptr": x, "y_ptr": np.zeros(whole, np.float32)}, {"y_ptr": want})


@pytest.mark.parametrize("cores", [2, 3])
def test_causal_attention_without_softmax(cores: int) -> None:
    """Blocks of four rows see the blocks before them whole, and their own below the diagonal."""
    rows = 8 * cores
    whole = [rows, 8]
    mask = ", ".join(
        "[" + ", ".join("1.0" if column <= row else "0.0" for column in range(4)) + "]" for row in range(4)
    )
    text = kernel(
        "%q_ptr: index, %k_ptr: index, %y_ptr: index",
        [cores],
        CORE,
        f"%cores = arith.constant {cores} : index",
        view("q", "%q_ptr", whole, "f16"),
        view("k", "%k_ptr", whole, "f16"),
        view("y", "%y_ptr", whole, "f32"),
        "%zero = arith.constant dense<0.0> : tensor<4x8xf32>",
        "%none = arith.constant dense<0.0> : tensor<4x4xf32>",
        f"%lower = arith.constant dense<[{mask}]> : tensor<4x4xf32>",
        "scf.for %b = %c0 to %c2 step %c1 {",
        "%many = arith.muli %b, %cores : index",
        "%block = arith.addi %many, %core : index",
        "%row = arith.muli %block, %c4 : index",
        "%end = arith.addi %row, %c4 : index",
        fetch("a", "%q", whole, "%row, %c0", [4, 8], "f16"),
        "%s = scf.for %j = %c0 to %end step %c4 iter_args(%o = %zero) -> (tensor<4x8xf32>) {",
        fetch("v", "%k", whole, "%j, %c0", [4, 8], "f16"),
        "%e = tensor.empty() : tensor<8x4xf16>",
        "%t = linalg.transpose ins(%v : tensor<4x8xf16>) outs(%e : tensor<8x4xf16>) permutation = [1, 0]",
        "%p = linalg.matmul ins(%a, %t : tensor<4x8xf16>, tensor<8x4xf16>) outs(%none : tensor<4x4xf32>)"
        " -> tensor<4x4xf32>",
        "%own = arith.cmpi eq, %j, %row : index",
        "%m = scf.if %own -> (tensor<4x4xf32>) {",
        "%masked = arith.mulf %p, %lower : tensor<4x4xf32>",
        "scf.yield %masked : tensor<4x4xf32>",
        "} else {",
        "scf.yield %p : tensor<4x4xf32>",
        "}",
        "%h = arith.truncf %m : tensor<4x4xf32> to tensor<4x4xf16>",
        "%n = linalg.matmul ins(%h, %v : tensor<4x4xf16>, tensor<4x8xf16>) outs(%o : tensor<4x8xf32>)"
        " -> tensor<4x8xf32>",
        "scf.yield %n : tensor<4x8xf32>",
        "}",
        put("s", "%y", whole, "%row, %c0", [4, 8], "f32"),
        "}",
    )
    q, k = normal(whole), normal(whole, seed=1)
    scores = np.tril(q.astype(np.float32) @ k.astype(np.float32).T).astype(np.float16)
    want = scores.astype(np.float64) @ k.astype(np.float64)
    zeros = np.zeros(whole, np.float32)
    check(text, {"q_ptr": q, "k_ptr": k, "y_ptr": zeros}, {"y_ptr": want}, relative=1e-2, absolute=3e-2)


def test_a_switch_over_tile_ids_and_over_iterations() -> None:
    """Case 0 negates, case 2 doubles, others stay; by the core's number first, by the iteration's then."""
    whole, one = [4, 4, 10], [1, 1, 10]
    switch = [
        "case 0 {",
        "%a = arith.negf %v : tensor<1x1x10xf32>",
        "scf.yield %a : tensor<1x1x10xf32>",
        "}",
        "case 2 {",
        "%b = arith.addf %v, %v : tensor<1x1x10xf32>",
        "scf.yield %b : tensor<1x1x10xf32>",
        "}",
        "default {",
        "scf.yield %v : tensor<1x1x10xf32>",
        "}",
    ]
    x, factor = normal(whole, "f32"), np.array([-1, 1, 2, 1], np.float32)
    for by, want in (("%core", x * factor[:, None, None]), ("%i", x * factor[None, :, None])):
        text = kernel(
            "%x_ptr: index, %y_ptr: index",
            [4],
            CORE,
            view("x", "%x_ptr", whole, "f32"),
            view("y", "%y_ptr", whole, "f32"),
            "scf.for %i = %c0 to %c4 step %c1 {",
            fetch("v", "%x", whole, "%core, %i, %c0", one, "f32"),
            f"%r = scf.index_switch {by} -> tensor<1x1x10xf32>",
            *switch,
            put("r", "%y", whole, "%core, %i, %c0", one, "f32"),
            "}",
        )
        check(text, {"x_ptr": x, "y_ptr": np.zeros_like(x)}, {"y_ptr": want})


@pytest.mark.parametrize(
    ("loop", "remedy"),
    [
        ("affine.for %i = 0 to 2 {\n}", "write the loop as scf.for"),
        ("scf.parallel (%i) = (%c0) to (%c2) step (%c1) {\nscf.reduce\n}", "write the loop as scf.for"),
    ],
)
def test_other_loops_are_refused_with_a_remedy(loop: str, remedy: str) -> None:
    with pytest.raises(NotLowerable, match="has no lowering here") as caught:
        lowered(kernel("%x_ptr: index", [1], loop), None, {"x_ptr": np.zeros((4,), np.float32)})
    assert remedy in (caught.value.remedy or "") and caught.value.location is not None
