"""What programs compute, compared with numpy in 64 bits; and the same bits with and without checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.conformance.case import parse_case
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import execute
from ktir.interp.places import Place, Region
from tests.interp.kernels import LOCAL, box, kernel, load, order, rows_kernel, run, shaped, store, tile, view
from tests.settings import examples

F32 = np.float32


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def both(text: str, arguments: dict[str, Any], name: str = "y_ptr", **options: Any) -> np.ndarray:
    """The output, after making sure that checks change no bit of it."""
    checked = run(text, arguments, **options).outputs[name]
    free = run(text, arguments, checks=False, **options).outputs[name]
    assert checked.tobytes() == free.tobytes()
    return checked


# ------------------------------------------------------------------------------------------------- cores and control


def test_every_core_sees_its_place_in_the_grid_x_fastest() -> None:
    lines = [
        "%t:3 = ktdp.get_compute_tile_id : index, index, index",
        "%c10 = arith.constant 10 : index", "%a = arith.muli %t#1, %c10 : index", "%b = arith.addi %a, %t#0 : index",
        "%c4 = arith.constant 4 : index", "%m = arith.muli %t#1, %c4 : index", "%f = arith.addi %m, %t#0 : index",
        "%i = arith.index_cast %b : index to i32", "%v = tensor.from_elements %i : tensor<1xi32>",
        view("%w", "%y_ptr", (12,), "i32"), tile("%u", "%w", "%f", (1,), (12,), "i32"), store("%v", "%u", (1,), "i32"),
    ]  # fmt: skip
    got = both(kernel(lines, "%y_ptr: index", [4, 3]), {"y_ptr": np.zeros(12, np.int32)})
    assert got.tolist() == [10 * y + x for y in range(3) for x in range(4)]


def test_cores_with_different_numbers_of_iterations_join_again() -> None:
    lines = [
        "%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index",
        "%s = scf.for %i = %c0 to %t step %c1 iter_args(%a = %x) -> (tensor<1x8xf32>) {",
        "  %b = arith.addf %a, %x : tensor<1x8xf32>", "  scf.yield %b : tensor<1x8xf32>", "}",
        "%n = scf.for %i = %t to %c0 step %c1 iter_args(%a = %t) -> (index) {", "  scf.yield %c0 : index", "}",
        "%r = arith.addf %s, %s : tensor<1x8xf32>",
    ]  # fmt: skip
    x = random(5, 8)
    got = both(rows_kernel(lines, 5, 8), {"x_ptr": x, "y_ptr": np.zeros_like(x)})
    assert np.allclose(got, 2 * x * (1 + np.arange(5))[:, None], rtol=1e-6)


def test_branches_on_the_core_number_carry_values() -> None:
    lines = [
        "%c2 = arith.constant 2 : index", "%low = arith.cmpi ult, %t, %c2 : index",
        "%r, %q = scf.if %low -> (tensor<1x8xf32>, index) {", "  %d = arith.addf %x, %x : tensor<1x8xf32>",
        "  scf.yield %d, %t : tensor<1x8xf32>, index", "} else {", "  %m = arith.negf %x : tensor<1x8xf32>",
        "  scf.yield %m, %c2 : tensor<1x8xf32>, index", "}",
    ]  # fmt: skip
    x = random(4, 8)
    got = both(rows_kernel(lines, 4, 8), {"x_ptr": x, "y_ptr": np.zeros_like(x)})
    assert (got == np.concatenate([2 * x[:2], -x[2:]])).all()


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 7))
@settings(max_examples=examples(100))
def test_a_loop_runs_as_often_as_python_says(low: int, high: int, step: int) -> None:
    lines = [
        f"%lo = arith.constant {low} : i32", f"%hi = arith.constant {high} : i32", f"%st = arith.constant {step} : i32",
        "%z = arith.constant 0 : i32", "%one = arith.constant 1 : i32",
        "%n, %s = scf.for %i = %lo to %hi step %st iter_args(%a = %z, %b = %z) -> (i32, i32)  : i32 {",
        "  %c = arith.addi %a, %one : i32", "  %d = arith.addi %b, %i : i32", "  scf.yield %c, %d : i32, i32", "}",
        "%v = tensor.from_elements %n, %s : tensor<2xi32>", "%c0 = arith.constant 0 : index",
        view("%w", "%y_ptr", (2,), "i32"), tile("%u", "%w", "%c0", (2,), (2,), "i32"), store("%v", "%u", (2,), "i32"),
    ]  # fmt: skip
    got = run(kernel(lines, "%y_ptr: index"), {"y_ptr": np.zeros(2, np.int32)}).outputs["y_ptr"]
    assert got.tolist() == [len(range(low, high, step)), sum(range(low, high, step))]


# --------------------------------------------------------------------------------------------------------- computing


def test_row_softmax_of_f16_is_that_of_64_bits_to_f16_precision() -> None:
    t, wide, one = "tensor<1x100xf16>", "tensor<1x100xf32>", "tensor<1xf32>"
    lines = [
        f"%w = arith.extf %x : {t} to {wide}", f"%ninf = arith.constant dense<0xFF800000> : {one}",
        f"%zero = arith.constant dense<0.0> : {one}",
        f"%m = linalg.reduce {{ arith.maximumf }} ins(%w : {wide}) outs(%ninf : {one}) dimensions = [1]",
        f"%e0 = tensor.empty() : {wide}",
        f"%mb = linalg.broadcast ins(%m : {one}) outs(%e0 : {wide}) dimensions = [1]",
        f"%d = arith.subf %w, %mb : {wide}", f"%e = math.exp %d : {wide}",
        f"%n = linalg.reduce {{ arith.addf }} ins(%e : {wide}) outs(%zero : {one}) dimensions = [1]",
        f"%nb = linalg.broadcast ins(%n : {one}) outs(%e0 : {wide}) dimensions = [1]",
        f"%q = arith.divf %e, %nb : {wide}", f"%r = arith.truncf %q : {wide} to {t}",
    ]  # fmt: skip
    x = random(6, 100).astype(np.float16)
    got = both(rows_kernel(lines, 6, 100, "f16"), {"x_ptr": x, "y_ptr": np.zeros_like(x)})
    e = np.exp(x.astype(float) - x.astype(float).max(axis=1, keepdims=True))
    want = e / e.sum(axis=1, keepdims=True)
    assert np.abs(got - want).max() <= 2**-11 * want.max()


@pytest.mark.parametrize(("a", "b", "c"), [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("f32", "f32", "f32")])
def test_a_matrix_product_rounds_once(a: str, b: str, c: str) -> None:
    dtypes = {"f16": np.float16, "f32": F32}
    lines = [
        view("%av", "%a_ptr", (40, 70), a), view("%bv", "%b_ptr", (70, 30), b), view("%cv", "%y_ptr", (40, 30), c),
        tile("%at", "%av", "0, 0", (40, 70), (40, 70), a), tile("%bt", "%bv", "0, 0", (70, 30), (70, 30), b),
        load("%a", "%at", (40, 70), a), load("%b", "%bt", (70, 30), b),
        f"%z = arith.constant 0.0 : {c}", f"%e = tensor.empty() : tensor<40x30x{c}>",
        f"%f = linalg.fill ins(%z : {c}) outs(%e : tensor<40x30x{c}>) -> tensor<40x30x{c}>",
        f"%r = linalg.matmul ins(%a, %b : tensor<40x70x{a}>, tensor<70x30x{b}>) outs(%f : tensor<40x30x{c}>) "
        f"-> tensor<40x30x{c}>",
        tile("%ct", "%cv", "0, 0", (40, 30), (40, 30), c), store("%r", "%ct", (40, 30), c),
    ]  # fmt: skip
    x, w = random(40, 70).astype(dtypes[a]), random(70, 30, seed=1).astype(dtypes[b])
    text = kernel(lines, "%a_ptr: index, %b_ptr: index, %y_ptr: index")
    got = both(text, {"a_ptr": x, "b_ptr": w, "y_ptr": np.zeros((40, 30), dtypes[c])})
    want = x.astype(float) @ w.astype(float)
    sums = np.abs(x.astype(float)) @ np.abs(w.astype(float))
    bound = 70 * 2.0**-24 * sums + (2.0**-11 * np.abs(want) if c == "f16" else 0) + 1e-7
    assert (np.abs(got - want) <= bound).all()


def _generic(
    maps: list[str], iterators: list[str], ins: str, outs: str, block: str, body: list[str], result: str
) -> str:
    kinds = ", ".join(f'"{each}"' for each in iterators)
    return (
        f"%r = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} {ins} {outs} {{\n"
        f"^bb0({block}):\n" + "\n".join(body) + f"\n}} -> {result}"
    )


def test_generic_contraction_in_any_order_of_loops() -> None:
    """Heads inside, a transposed key: what attention asks for."""
    text = f"""
    func.func @main(%q: tensor<5x3x8xf16>, %k: tensor<7x3x8xf16>) -> tensor<3x5x7xf32> {{
      %z = arith.constant dense<0.0> : tensor<3x5x7xf32>
      {
        _generic(
            [
                "affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>",
                "affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>",
                "affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>",
            ],
            ["parallel", "parallel", "parallel", "reduction"],
            "ins(%q, %k : tensor<5x3x8xf16>, tensor<7x3x8xf16>)",
            "outs(%z : tensor<3x5x7xf32>)",
            "%a: f16, %b: f16, %c: f32",
            [
                "%d = arith.extf %a : f16 to f32",
                "%e = arith.extf %b : f16 to f32",
                "%f = arith.mulf %d, %e : f32",
                "%g = arith.addf %c, %f : f32",
                "linalg.yield %g : f32",
            ],
            "tensor<3x5x7xf32>",
        )
    }
      return %r : tensor<3x5x7xf32>
    }}"""
    q, k = random(5, 3, 8).astype(np.float16), random(7, 3, 8, seed=1).astype(np.float16)
    (got,) = run(text, {"q": q, "k": k}).results
    assert np.allclose(got, np.einsum("ihd,jhd->hij", q.astype(float), k.astype(float)), atol=1e-5)


def test_bodies_with_several_results_fold_in_index_order() -> None:
    """The first position of the maximum of each row."""
    text = f"""
    func.func @main(%x: tensor<4x9xf32>) -> (tensor<4xf32>, tensor<4xi64>) {{
      %m = arith.constant dense<0xFF800000> : tensor<4xf32>
      %p = arith.constant dense<-1> : tensor<4xi64>
      {
        _generic(
            ["affine_map<(d0, d1) -> (d0, d1)>", "affine_map<(d0, d1) -> (d0)>", "affine_map<(d0, d1) -> (d0)>"],
            ["parallel", "reduction"],
            "ins(%x : tensor<4x9xf32>)",
            "outs(%m, %p : tensor<4xf32>, tensor<4xi64>)",
            "%a: f32, %b: f32, %c: i64",
            [
                "%i = linalg.index 1 : index",
                "%j = arith.index_cast %i : index to i64",
                "%g = arith.cmpf ogt, %a, %b : f32",
                "%v = arith.select %g, %a, %b : f32",
                "%w = arith.select %g, %j, %c : i64",
                "linalg.yield %v, %w : f32, i64",
            ],
            "(tensor<4xf32>, tensor<4xi64>)",
        ).replace("%r =", "%r:2 =")
    }
      return %r#0, %r#1 : tensor<4xf32>, tensor<4xi64>
    }}"""
    x = np.round(random(4, 9))
    top, at = run(text, {"x": x}).results
    assert (top == x.max(axis=1)).all() and (at == x.argmax(axis=1)).all()


# ------------------------------------------------------------------------------------------------------------ memory


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_orders_permute_the_loaded_tile(axes: tuple[int, ...]) -> None:
    sizes, extents = (4, 5, 6), (2, 3, 4)
    permuted = tuple(extents[axis] for axis in axes)
    out = tuple(permuted)
    lines = [
        "%c1 = arith.constant 1 : index", view("%v", "%x_ptr", sizes),
        tile("%t", "%v", "%c1, %c1 + 1, 0", extents, sizes, axes=axes), load("%x", "%t", permuted),
        view("%w", "%y_ptr", out), tile("%u", "%w", "0, 0, 0", out, out), store("%x", "%u", out),
    ]  # fmt: skip
    x = random(*sizes)
    got = both(kernel(lines, "%x_ptr: index, %y_ptr: index"), {"x_ptr": x, "y_ptr": np.zeros(out, F32)})
    assert (got == x[1:3, 2:5, 0:4].transpose(axes)).all()


def test_sets_that_are_no_boxes_fill_a_tile_in_order() -> None:
    """Every second column, then the lower triangle of 4 x 4 as ten numbers."""
    even = "affine_set<(d0) : (d0 >= 0, -d0 + 15 >= 0, d0 mod 2 == 0)>"
    lines = [
        "%c0 = arith.constant 0 : index", view("%v", "%x_ptr", (16,)),
        f"%t = ktdp.construct_access_tile %v[%c0] {{access_tile_set = {even}, access_tile_order = {order(0)}}} "
        ": memref<16xf32> -> !ktdp.access_tile<8xindex>", load("%x", "%t", (8,)),
        view("%w", "%y_ptr", (8,)), tile("%u", "%w", "%c0", (8,), (8,)), store("%x", "%u", (8,)),
    ]  # fmt: skip
    x = random(16)
    got = both(kernel(lines, "%x_ptr: index, %y_ptr: index"), {"x_ptr": x, "y_ptr": np.zeros(8, F32)})
    assert (got == x[::2]).all()


def test_strided_overlapping_and_transposed_views() -> None:
    lines = [
        view("%v", "%x_ptr", (3, 4), strides=(1, 3)), tile("%t", "%v", "0, 0", (3, 4), (3, 4)),
        load("%x", "%t", (3, 4)),
        view("%w", "%y_ptr", (3, 4)), tile("%u", "%w", "0, 0", (3, 4), (3, 4)), store("%x", "%u", (3, 4)),
    ]  # fmt: skip
    x = random(4, 3)
    got = both(kernel(lines, "%x_ptr: index, %y_ptr: index"), {"x_ptr": x, "y_ptr": np.zeros((3, 4), F32)})
    assert (got == x.T).all()


@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_gathers_and_scatters_are_those_of_numpy(data: st.DataObject) -> None:
    rows, columns, picked = (data.draw(st.integers(1, 9)) for _ in range(3))
    index = np.array(data.draw(st.lists(st.integers(0, rows - 1), min_size=picked, max_size=picked)), np.int32)
    swap = data.draw(st.booleans())
    shape = (columns, picked) if swap else (picked, columns)
    lines = [
        view("%v", "%x_ptr", (rows, columns)), view("%i", "%i_ptr", (picked,), "i32"),
        "%t = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) %v[ind(%i[%m]), (%k)] "
        f"{{variables_space_set = {box(picked, columns)}, "
        f"variables_space_order = {order(*((1, 0) if swap else (0, 1)))}}} "
        f": memref<{rows}x{columns}xf32>, memref<{picked}xi32> -> {shaped('!ktdp.access_tile', shape, 'index')}",
        load("%x", "%t", shape),
        view("%w", "%y_ptr", shape), tile("%u", "%w", "0, 0", shape, shape), store("%x", "%u", shape),
        f"%n = arith.negf %x : {shaped('tensor', shape, 'f32')}", store("%n", "%t", shape),
    ]  # fmt: skip
    x = random(rows, columns)
    text = kernel(lines, "%x_ptr: index, %i_ptr: index, %y_ptr: index")
    outputs = run(text, {"x_ptr": x, "i_ptr": index, "y_ptr": np.zeros(shape, F32)}).outputs
    assert (outputs["y_ptr"] == (x[index].T if swap else x[index])).all()
    want = x.copy()
    want[index] = -x[index]
    assert (outputs["x_ptr"] == want).all()


def test_partitions_in_scratchpads_of_an_earlier_launch_are_read_by_all() -> None:
    """Relayout: rows of each core become columns of each core."""
    n = 4
    put = [
        "%t = ktdp.get_compute_tile_id : index", "%c0 = arith.constant 0 : index", view("%v", "%x_ptr", (n, 64)),
        tile("%xt", "%v", "%t, 0", (1, 64), (n, 64)), load("%x", "%xt", (1, 64)),
        view("%s", "%c0", (1, 64), "f32", LOCAL),
        tile("%st", "%s", "0, 0", (1, 64), (1, 64)), store("%x", "%st", (1, 64)),
    ]  # fmt: skip
    parts = [
        view(
            f"%p{core}",
            "%c0",
            (1, 64),
            "f32",
            f"#ktdp.memory_space<ct_local, ct_id = {core}>",
            owned=box((core, core + 1), 64),
        )
        for core in range(n)
    ]
    take = [
        "%t = ktdp.get_compute_tile_id : index", "%c0 = arith.constant 0 : index", "%c16 = arith.constant 16 : index",
        "%o = arith.muli %t, %c16 : index", *parts,
        f"%d = ktdp.construct_distributed_memory_view({', '.join(f'%p{core}' for core in range(n))} : "
        f"{', '.join(['memref<1x64xf32>'] * n)}) : memref<{n}x64xf32>",
        tile("%dt", "%d", "0, %o", (n, 16), (n, 64), axes=(1, 0)), load("%x", "%dt", (16, n)),
        view("%w", "%y_ptr", (64, n)), tile("%u", "%w", "%o, 0", (16, n), (64, n)), store("%x", "%u", (16, n)),
    ]  # fmt: skip
    main = "func.func @main(%x_ptr: index, %y_ptr: index) {\n  func.call @put(%x_ptr) : (index) -> ()\n" \
           "  func.call @take(%y_ptr) : (index) -> ()\n  return\n}\n"  # fmt: skip
    text = kernel(put, "%x_ptr: index", [n], "put") + kernel(take, "%y_ptr: index", [n], "take") + main
    x = random(n, 64)
    assert (both(text, {"x_ptr": x, "y_ptr": np.zeros((64, n), F32)}) == x.T).all()


def test_literal_addresses() -> None:
    lines = [
        "%c512 = arith.constant 512 : index", "%c1024 = arith.constant 1024 : index", "%c0 = arith.constant 0 : index",
        view("%v", "%c512", (8,), "f16"), tile("%t", "%v", "%c0", (8,), (8,), "f16"), load("%x", "%t", (8,), "f16"),
        view("%s", "%c0", (8,), "f16", LOCAL), tile("%st", "%s", "%c0", (8,), (8,), "f16"),
        load("%z", "%st", (8,), "f16"),
        "%r = arith.addf %x, %z : tensor<8xf16>",
        view("%w", "%c1024", (8,), "f16"), tile("%u", "%w", "%c0", (8,), (8,), "f16"), store("%r", "%u", (8,), "f16"),
    ]  # fmt: skip
    a, b = np.arange(8, dtype=np.float16), np.full(8, 0.5, np.float16)
    done = run(
        kernel(lines, ""), {}, memory=[Place(a, byte=1024), Place(b, byte=0, space="ct_local", core=0)],
        read={"Y": Region(byte=2048, dtype="f16", shape=(2, 4))},
    )  # fmt: skip
    assert (done.outputs["Y"] == (a + b).reshape(2, 4)).all()


# ----------------------------------------------------------------------------------------------- host programs, graphs

LAYOUT = "#ktdp.stick_layout<[1 : 2 : 64, 0 : 3 : 1, 1 : 64 : 1], extent = [3, 100]{pad}>"


def _host(pad: str, last: str = "tensor<1x2x64xf16>") -> str:
    layout = LAYOUT.format(pad=pad)
    copy = [
        "%t = ktdp.get_compute_tile_id : index",
        view("%v", "%x_ptr", (3, 2, 64), "f16", strides=(64, 192, 1)),
        tile("%xt", "%v", "%t, 0, 0", (1, 2, 64), (3, 2, 64), "f16"),
        load("%x", "%xt", (1, 2, 64), "f16"), f"%d = arith.addf %x, %x : {last}",
        view("%w", "%y_ptr", (3, 2, 64), "f16", strides=(64, 192, 1)),
        tile("%yt", "%w", "%t, 0, 0", (1, 2, 64), (3, 2, 64), "f16"),
        store("%d", "%yt", (1, 2, 64), "f16"),
    ]  # fmt: skip
    main = f"""
    func.func @main(%x: memref<3x100xf16> {{ktg.name = "input.x"}},
        %y: memref<3x100xf16> {{ktg.name = "out", ktg.result = 0 : i64}}) {{
      %a = memref.alloc() {{alignment = 128 : i64, ktdp.address = 256 : i64,
        ktdp.stick_layout = {layout}}} : memref<2x3x64xf16>
      %b = memref.alloc() {{alignment = 128 : i64, ktdp.stick_layout = {layout}}} : memref<2x3x64xf16>
      "ktg.transfer"(%x, %a) : (memref<3x100xf16>, memref<2x3x64xf16>) -> ()
      %p = memref.extract_aligned_pointer_as_index %a : memref<2x3x64xf16> -> index
      %q = memref.extract_aligned_pointer_as_index %b : memref<2x3x64xf16> -> index
      %c2 = arith.constant 2 : index
      %p2 = arith.divui %p, %c2 : index
      %q2 = arith.divui %q, %c2 : index
      func.call @double(%p2, %q2) : (index, index) -> ()
      "ktg.transfer"(%b, %y) : (memref<2x3x64xf16>, memref<3x100xf16>) -> ()
      return
    }}"""
    return kernel(copy, "%x_ptr: index, %y_ptr: index", [3], "double") + main


@pytest.mark.parametrize("pad", ["", ", pad = zero", ", pad = 3.0"])
def test_a_host_program_with_laid_out_buffers(pad: str) -> None:
    """Padding goes through the kernel into padding, whatever it holds."""
    x = random(3, 100).astype(np.float16)
    done = run(_host(pad), {"input.x": x})
    assert (done.outputs["out"] == 2 * x).all() and (done.results[0] == 2 * x).all()
    assert done.statistics.launches == 1


def test_a_buffer_may_lie_where_others_lay_before() -> None:
    """A store begins inside the bytes of a buffer that is no longer in use and goes on behind its end."""
    copy = [
        view("%v", "%x_ptr", (64,), "f16"),
        tile("%xt", "%v", "0", (64,), (64,), "f16"),
        load("%x", "%xt", (64,), "f16"),
        view("%w", "%y_ptr", (64,), "f16"),
        tile("%yt", "%w", "0", (64,), (64,), "f16"),
        store("%x", "%yt", (64,), "f16"),
    ]
    places = [140, 0, 64, 128, 192]
    calls = "\n".join(
        f"%n{place} = arith.constant {place} : index\n%to{place} = arith.addi %start, %n{place} : index\n"
        f"func.call @copy(%from, %to{place}) : (index, index) -> ()"
        for place in places
    )
    main = f"""
    func.func @main(%in: memref<64xf16> {{ktg.name = "in"}},
        %out: memref<256xf16> {{ktg.name = "out", ktg.result = 0 : i64}}) {{
      %c2 = arith.constant 2 : index
      %source = memref.alloc() {{alignment = 128 : i64, ktdp.address = 1024 : i64}} : memref<64xf16>
      "ktg.transfer"(%in, %source) : (memref<64xf16>, memref<64xf16>) -> ()
      %early = memref.alloc() {{alignment = 128 : i64, ktdp.address = 128 : i64}} : memref<128xf16>
      %s = memref.extract_aligned_pointer_as_index %source : memref<64xf16> -> index
      %from = arith.divui %s, %c2 : index
      %e = memref.extract_aligned_pointer_as_index %early : memref<128xf16> -> index
      %first = arith.divui %e, %c2 : index
      func.call @copy(%from, %first) : (index, index) -> ()
      %late = memref.alloc() {{alignment = 128 : i64, ktdp.address = 0 : i64}} : memref<256xf16>
      %l = memref.extract_aligned_pointer_as_index %late : memref<256xf16> -> index
      %start = arith.divui %l, %c2 : index
      {calls}
      "ktg.transfer"(%late, %out) : (memref<256xf16>, memref<256xf16>) -> ()
      return
    }}"""
    x = random(64).astype(np.float16)
    done = run(kernel(copy, "%x_ptr: index, %y_ptr: index", [1], "copy") + main, {"in": x})
    assert (done.results[0].reshape(4, 64) == x).all()


def test_a_fold_with_a_ragged_last_block_sees_every_position_once() -> None:
    text = """
    func.func @main(%x: tensor<3x10xf32>) -> tensor<3xf32> {
      %r = "ktg.fold"(%x) <{fold_dims = array<i64: 1>, extent = 10 : i64, tile = 4 : i64}> ({
        %z = arith.constant dense<0.0> : tensor<3xf32>
        "ktg.yield"(%z) : (tensor<3xf32>) -> ()
      }, {
      ^bb0(%b: tensor<3x4xf32>, %s: tensor<3xf32>):
        %e = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
          iterator_types = ["parallel", "reduction"]} ins(%b : tensor<3x4xf32>) outs(%s : tensor<3xf32>) {
        ^bb0(%one: f32, %sum: f32):
          %t = arith.addf %sum, %one : f32
          linalg.yield %t : f32
        } -> tensor<3xf32>
        "ktg.yield"(%e) : (tensor<3xf32>) -> ()
      }, {
      ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
        %e = arith.addf %a, %b : tensor<3xf32>
        "ktg.yield"(%e) : (tensor<3xf32>) -> ()
      }, {
      ^bb0(%s: tensor<3xf32>):
        "ktg.yield"(%s) : (tensor<3xf32>) -> ()
      }) : (tensor<3x10xf32>) -> tensor<3xf32>
      return %r : tensor<3xf32>
    }"""
    x = random(3, 10)
    assert np.allclose(run(text, {"x": x}).results[0], x.astype(float).sum(axis=1), atol=1e-5)


def test_a_gather_of_rows() -> None:
    text = """
    func.func @main(%w: tensor<7x4xf16>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf16> {
      %r = "ktg.gather"(%w, %i) : (tensor<7x4xf16>, tensor<2x3xi64>) -> tensor<2x3x4xf16>
      return %r : tensor<2x3x4xf16>
    }"""
    w, i = random(7, 4).astype(np.float16), np.random.default_rng(0).integers(0, 7, (2, 3))
    assert (run(text, {"w": w, "i": i}).results[0] == w[i]).all()


def test_the_arrays_of_the_caller_stay_as_they_are() -> None:
    x = random(4, 8)
    before = x.copy()
    run(rows_kernel(["%r = arith.negf %x : tensor<1x8xf32>"], 4, 8), {"x_ptr": x, "y_ptr": x})
    assert (x == before).all()


def test_a_host_function_is_no_launch() -> None:
    path = Path(__file__).parents[2] / "spec" / "cases" / "relayout_scratchpads.ktir"
    case = parse_case(path.read_text(), str(path))
    module = parse_module(path.read_text(), str(path))
    assert execute(module, "main", case.inputs).statistics.launches == 2
