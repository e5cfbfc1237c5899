"""A small compiled program written by hand, so that the public interface can be tested without a model."""

from __future__ import annotations

import numpy as np

import ktir
from ktir.module import Module
from ktir.program import Options, Plan, Program, plan_of
from ktir.signature import Signature

TEXT = """\
#id = affine_map<(d0, d1) -> (d0, d1)>
#box = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 63 >= 0)>
#whole = affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + 63 >= 0)>
func.func @kernel(%x: index, %w: index, %y: index) attributes {grid = [2]} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %core = ktdp.get_compute_tile_id : index
  %row = arith.muli %core, %c4 : index
  %xv = ktdp.construct_memory_view %x, sizes: [8, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<8x64xf32>
  %wv = ktdp.construct_memory_view %w, sizes: [8, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<8x64xf32>
  %yv = ktdp.construct_memory_view %y, sizes: [8, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<8x64xf32>
  %xt = ktdp.construct_access_tile %xv[%row, %c0] {access_tile_order = #id, access_tile_set = #box} : memref<8x64xf32> -> !ktdp.access_tile<4x64xindex>
  %wt = ktdp.construct_access_tile %wv[%row, %c0] {access_tile_order = #id, access_tile_set = #box} : memref<8x64xf32> -> !ktdp.access_tile<4x64xindex>
  %yt = ktdp.construct_access_tile %yv[%row, %c0] {access_tile_order = #id, access_tile_set = #box} : memref<8x64xf32> -> !ktdp.access_tile<4x64xindex>
  %a = ktdp.load %xt : <4x64xindex> -> tensor<4x64xf32>
  %b = ktdp.load %wt : <4x64xindex> -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<4x64xf32>
  %s = linalg.add ins(%a, %b : tensor<4x64xf32>, tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  ktdp.store %s, %yt : tensor<4x64xf32>, <4x64xindex>
  return
}
func.func @main(%x: memref<8x64xf32> {ktg.name = "x"}, %w: memref<8x64xf32> {ktg.name = "layer.weight", ktg.parameter}, %y: memref<8x64xf32> {ktg.name = "output", ktg.result = 0 : i64}) {
  %c4 = arith.constant 4 : index
  %bx = memref.alloc() {alignment = 128 : i64, ktdp.address = 0 : i64} : memref<8x64xf32>
  %bw = memref.alloc() {alignment = 128 : i64, ktdp.address = 2048 : i64} : memref<8x64xf32>
  %by = memref.alloc() {alignment = 128 : i64, ktdp.address = 4096 : i64} : memref<8x64xf32>
  "ktg.transfer"(%x, %bx) : (memref<8x64xf32>, memref<8x64xf32>) -> ()
  "ktg.transfer"(%w, %bw) : (memref<8x64xf32>, memref<8x64xf32>) -> ()
  %px = memref.extract_aligned_pointer_as_index %bx : memref<8x64xf32> -> index
  %pw = memref.extract_aligned_pointer_as_index %bw : memref<8x64xf32> -> index
  %py = memref.extract_aligned_pointer_as_index %by : memref<8x64xf32> -> index
  %ex = arith.divui %px, %c4 : index
  %ew = arith.divui %pw, %c4 : index
  %ey = arith.divui %py, %c4 : index
  func.call @kernel(%ex, %ew, %ey) : (index, index, index) -> ()
  "ktg.transfer"(%by, %y) : (memref<8x64xf32>, memref<8x64xf32>) -> ()
  return
}
"""  # noqa: E501 - one operation a line, as printers write it

WEIGHT = np.arange(512, dtype=np.float32).reshape(8, 64)
X = {"shape": [8, 64], "dtype": "f32"}


def signature(**changes: object) -> Signature:
    """``f(x)`` returns ``{"sum": x + weight}`` unless changed."""
    parts: dict[str, object] = {
        "arguments": {"tuple": [{"tuple": [0]}, {"dict": {}}]},
        "leaves": [X],
        "inputs": [("x", 0)],
        "returns": {"dict": {"sum": 0}},
        "outputs": [{"computed": 0}],
        "mutations": [],
        "tensors": {},
    }
    return Signature(**{**parts, **changes})


def program(caller: Signature | None = None, options: Options | None = None) -> Program:
    """The text above as a program."""
    module: Module = ktir.parse(TEXT)
    plan: Plan = plan_of(module)
    return Program(
        name="adder",
        module=module,
        graph=None,
        machine=ktir.machine("spyre"),
        caller=caller or signature(),
        parameters={"layer.weight": WEIGHT},
        plan=plan,
        operators={"aten.add.Tensor": 1},
        options=options,
    )
