// RUN: ktir-opt %s --ktir-check-bounds --split-input-file --verify-diagnostics
// RUN: not ktir-opt %s --ktir-check-bounds --split-input-file 2>&1 | filecheck %s

// CHECK: 14:8: error: core 0 reads coordinate 64 of dimension 0 of %v, whose size there is 64 [OutOfBounds]
// CHECK: 18:8: error: core 0 reads coordinate -1 of dimension 0 of %v, whose size there is 64 [OutOfBounds]

#s = affine_set<(d0) : (d0 >= 0, 63 - d0 >= 0)>
#o = affine_set<(d0) : (d0 == 0)>
#m = affine_map<(d0) -> (d0)>
func.func @two_faults(%x: index) attributes {grid = [1]} {
  %v = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<64xf16>
  %t = ktdp.construct_access_tile %v[64] {access_tile_order = #m, access_tile_set = #o} : memref<64xf16> -> !ktdp.access_tile<1xindex>
  // expected-error @below {{core 0 reads coordinate 64 of dimension 0 of %v, whose size there is 64}}
  %a = ktdp.load %t : <1xindex> -> tensor<1xf16>
  %u = ktdp.construct_access_tile %v[-1] {access_tile_order = #m, access_tile_set = #o} : memref<64xf16> -> !ktdp.access_tile<1xindex>
  // Both are errors of the same pass.
  // expected-error @below {{core 0 reads coordinate -1 of dimension 0 of %v, whose size there is 64}}
  %b = ktdp.load %u : <1xindex> -> tensor<1xf16>
  return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 63 - d0 >= 0)>
#o = affine_set<(d0) : (d0 == 0)>
#m = affine_map<(d0) -> (d0)>
func.func @open(%x: index, %n: index) attributes {grid = [1]} {
  %v = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<64xf16>
  %t = ktdp.construct_access_tile %v[%n] {access_tile_order = #m, access_tile_set = #o} : memref<64xf16> -> !ktdp.access_tile<1xindex>
  // expected-note @below {{whether the coordinates of dimension 0 stay inside %v is not decided}}
  %a = ktdp.load %t : <1xindex> -> tensor<1xf16>
  return
}
