// RUN: ktir-opt %s --split-input-file --verify-diagnostics --strict

// A fault of each kind as ktir-opt reports it; tests/dialect/ktdp/test_verifier.py has every rule.
#s = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>
func.func @verified(%x: index) {
  // expected-error @+1 {{'ktdp.construct_memory_view' op static_sizes and static_strides must have equal length}}
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1, 1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<4xf16>
  // expected-error @+1 {{'ktdp.construct_memory_view' op sizes[0]=4 does not match memref dimension 5}}
  %w = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<5xf16>
  func.return
}
// -----
func.func @parsed(%v: memref<4xf16>) {
  // expected-error @+1 {{Access tile set is missing in the operation}}
  %a = ktdp.construct_access_tile %v[0] {access_tile_order = affine_map<(d0) -> (d0)>} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
// expected-error @+1 {{core affinity is only valid for LX or L0 memory spaces, but got memory space 'HBM' with core = 2}}
func.func private @attribute(memref<4xf16, #ktdp.spyre_memory_space<HBM, core = 2>>)
// -----
// expected-error @below {{invalid kind of type specified: expected builtin.tensor, but found 'index'}}
// expected-error @below {{failed to parse KTDP_TileFutureType parameter 'partialTypes'}}
func.func private @two_errors(!ktdp.tile_future<(index), groups = affine_set<(g) : (g == 0)>>)
