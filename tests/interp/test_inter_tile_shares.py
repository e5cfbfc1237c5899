"""Contributions that are cut and joined along the same axis."""

from __future__ import annotations

import numpy as np

from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import execute

ALL_TO_ALL = """\
#all = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#one = affine_set<(g) : (g == 0)>
#two = affine_set<(d0) : (d0 >= 0, 1 - d0 >= 0)>
#four = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @k(%x_ptr: index, %y_ptr: index) attributes {grid = [2]} {
  %id = ktdp.get_compute_tile_id : index
  %x = ktdp.construct_memory_view %x_ptr, sizes: [4], strides: [1] {coordinate_set = #four, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  %y = ktdp.construct_memory_view %y_ptr, sizes: [4], strides: [1] {coordinate_set = #four, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  %t = ktdp.construct_access_tile %x[%id * 2] {access_tile_order = #m, access_tile_set = #two} : memref<4xf32> -> !ktdp.access_tile<2xindex>
  %v = ktdp.load %t : <2xindex> -> tensor<2xf32>
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #all -> <(tensor<2xf32>), groups = #one> {
  ^bb0(%g: index):
    ktdp.yield_partial %v : tensor<2xf32>
  }
  %r = ktdp.inter_tile_all_to_all(%f) consumer_tiles_per_group = #all, split_dimensions = [0], concat_dimensions = [0] : <(tensor<2xf32>), groups = #one> -> tensor<2xf32>
  %u = ktdp.construct_access_tile %y[%id * 2] {access_tile_order = #m, access_tile_set = #two} : memref<4xf32> -> !ktdp.access_tile<2xindex>
  ktdp.store %r, %u : tensor<2xf32>, <2xindex>
  return
}
"""  # noqa: E501


def test_all_to_all_along_one_axis_exchanges_what_two_cores_hold() -> None:
    module = parse_module(ALL_TO_ALL, "k.ktir", context=create_context(experimental=True))
    x = np.array([0, 1, 10, 11], np.float32)
    outputs = execute(module, "k", {"x_ptr": x, "y_ptr": np.zeros(4, np.float32)}).outputs
    assert outputs["y_ptr"].tolist() == [0, 10, 1, 11]
