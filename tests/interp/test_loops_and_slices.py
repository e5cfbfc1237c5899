"""Parallel loops, affine control flow and slices of buffers do what their iterations in order would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ktir.dialect.text.parser import parse_module
from ktir.errors import LoopStepNotPositive, OutOfBounds, UninitialisedRead
from ktir.interp.executor import execute


def run(text: str, checks: bool = True, **arguments: Any) -> Any:
    return execute(parse_module(text), "k", arguments, checks=checks)


PARALLEL = """
func.func @k(%n: index, %by: index) -> (i64, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %sum, %signed = scf.parallel (%i, %j) = (%c0, %c1) to (%n, %c3) step (%by, %c1) init (%zero, %one) -> (i64, i64) {
    %a = arith.index_cast %i : index to i64
    %b = arith.index_cast %j : index to i64
    %both = arith.muli %a, %b : i64
    scf.reduce(%both, %b : i64, i64) {
      ^bb0(%l: i64, %r: i64):
        %s = arith.addi %l, %r : i64
        scf.reduce.return %s : i64
    }, {
      ^bb0(%l: i64, %r: i64):
        %d = arith.subi %r, %l : i64
        scf.reduce.return %d : i64
    }
  }
  func.return %sum, %signed : i64, i64
}
"""


@pytest.mark.parametrize(("n", "by"), [(5, 1), (7, 3), (0, 1)])
def test_parallel_joins_what_its_iterations_give(n: int, by: int) -> None:
    total, signed = 0, 1
    for i in range(0, n, by):
        for j in (1, 2):
            total, signed = total + i * j, j - signed
    assert [int(value) for value in run(PARALLEL, n=n, by=by).results] == [total, signed]


def test_parallel_needs_a_positive_step() -> None:
    with pytest.raises(LoopStepNotPositive):
        run(PARALLEL, n=5, by=0)


FORALL = """
func.func @k(%t: tensor<4x6xf32>, %n: index) -> tensor<4x6xf32> {
  %r = scf.forall (%i, %j) in (%n, 3) shared_outs(%o = %t) -> (tensor<4x6xf32>) {
    %column = affine.apply affine_map<(d0) -> (d0 * 2)>(%j)
    %part = tensor.extract_slice %o[%i, %column] [1, 2] [1, 1] : tensor<4x6xf32> to tensor<1x2xf32>
    %double = arith.addf %part, %part : tensor<1x2xf32>
    %other = affine.apply affine_map<(d0) -> (4 - d0 * 2)>(%j)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %double into %o[%i, %other] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<4x6xf32>
    }
  }
  func.return %r : tensor<4x6xf32>
}
"""


def test_forall_reads_its_outputs_as_they_were() -> None:
    t = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected = t.copy()
    expected[:3] = 2 * t[:3].reshape(3, 3, 2)[:, ::-1].reshape(3, 6)
    (found,) = run(FORALL, t=t, n=3).results
    np.testing.assert_array_equal(found, expected)


def test_forall_keeps_to_its_tensors() -> None:
    with pytest.raises(OutOfBounds):
        run(FORALL, t=np.zeros((4, 6), np.float32), n=5)


AFFINE = """
func.func @k(%n: index, %m: index) -> (i64, i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %sum = affine.for %i = max affine_map<(d0) -> (d0, 2)>(%m) to min affine_map<(d0) -> (d0 * 2, 20)>(%n) step 3
      iter_args(%a = %zero) -> (i64) {
    %x = arith.index_cast %i : index to i64
    %s = arith.addi %a, %x : i64
    affine.yield %s : i64
  }
  %inside = affine.if affine_set<(d0)[s0] : (d0 - 4 >= 0, s0 - d0 >= 0)>(%n)[%m] -> i64 {
    affine.yield %one : i64
  } else {
    affine.yield %zero : i64
  }
  func.return %sum, %inside : i64, i64
}
"""


@pytest.mark.parametrize(("n", "m"), [(5, 0), (30, 4), (1, 9), (4, 4)])
def test_affine_loops_and_branches(n: int, m: int) -> None:
    total, inside = (int(value) for value in run(AFFINE, n=n, m=m).results)
    assert total == sum(range(max(m, 2), min(2 * n, 20), 3))
    assert inside == (4 <= n <= m)


def test_an_affine_branch_parts_cores() -> None:
    text = """
func.func @k(%y_ptr: index) attributes {grid = [4]} {
  %core = ktdp.get_compute_tile_id : index
  %y = ktdp.construct_memory_view %y_ptr, sizes: [4], strides: [1] {
    coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global> }
    : memref<4xi64>
  %one = arith.constant dense<1> : tensor<1xi64>
  %two = arith.constant dense<2> : tensor<1xi64>
  %value = affine.if affine_set<(d0) : (d0 mod 2 == 0)>(%core) -> tensor<1xi64> {
    affine.yield %one : tensor<1xi64>
  } else {
    affine.yield %two : tensor<1xi64>
  }
  %to = ktdp.construct_access_tile %y[%core] { access_tile_set = affine_set<(d0) : (d0 == 0)>,
    access_tile_order = affine_map<(d0) -> (d0)> } : memref<4xi64> -> !ktdp.access_tile<1xindex>
  ktdp.store %value, %to : tensor<1xi64>, !ktdp.access_tile<1xindex>
  func.return
}
"""
    np.testing.assert_array_equal(run(text, y_ptr=np.zeros(4, np.int64)).outputs["y_ptr"], [1, 2, 1, 2])


SLICES = """
func.func @k(%x: memref<6x8xf32>, %y: memref<2x4xf32>, %at: index) {{
  %part = memref.subview %x[%at, 1] [2, 4] [2, 1] : memref<6x8xf32> to memref<2x4xf32, strided<[16, 1], offset: ?>>
  {copy}
  func.return
}}
"""
OUT = "memref.copy %part, %y : memref<2x4xf32, strided<[16, 1], offset: ?>> to memref<2x4xf32>"
IN = "memref.copy %y, %part : memref<2x4xf32> to memref<2x4xf32, strided<[16, 1], offset: ?>>"


def test_a_slice_of_a_tensor_is_read_and_written_in_place() -> None:
    x, y = np.arange(48, dtype=np.float32).reshape(6, 8), -np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(run(SLICES.format(copy=OUT), x=x, y=y, at=1).outputs["y"], x[1:4:2, 1:5])
    expected = x.copy()
    expected[2:5:2, 1:5] = y
    np.testing.assert_array_equal(run(SLICES.format(copy=IN), x=x, y=y, at=2).outputs["x"], expected)
    with pytest.raises(OutOfBounds):
        run(SLICES.format(copy=OUT), x=x, y=y, at=4)


BUFFER = """
func.func @k(%x: memref<2x4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {{
  %b = memref.alloc() {{ktdp.address = 0 : i64}} : memref<2x4xf32>
  %row = memref.subview %b[0, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %y, %row : memref<4xf32> to memref<4xf32, strided<[1]>>
  %read = memref.subview %b[{row}, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<4xf32, strided<[1], offset: ?>>
  {again}
  memref.copy %read, %z : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32>
  func.return
}}
"""


def test_only_the_slice_that_is_read_has_to_be_written() -> None:
    arrays = {"x": np.zeros((2, 4), np.float32), "y": np.arange(4, dtype=np.float32), "z": np.zeros(4, np.float32)}
    np.testing.assert_array_equal(run(BUFFER.format(row=0, again=""), **arrays).outputs["z"], arrays["y"])
    with pytest.raises(UninitialisedRead):
        run(BUFFER.format(row=1, again=""), **arrays)


def test_a_new_buffer_at_an_old_address_holds_nothing() -> None:
    arrays = {"x": np.zeros((2, 4), np.float32), "y": np.arange(4, dtype=np.float32), "z": np.zeros(4, np.float32)}
    with pytest.raises(UninitialisedRead):
        run(BUFFER.format(row=0, again="%c = memref.alloc() {ktdp.address = 0 : i64} : memref<2x4xf32>"), **arrays)
