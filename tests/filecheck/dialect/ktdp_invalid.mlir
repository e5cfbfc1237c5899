// RUN: ktir-opt %s --split-input-file --verify-diagnostics --strict

#s = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>
func.func @f(%x: index) {
  // expected-error @+1 {{static_sizes and static_strides must have equal length}}
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1, 1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<4xf16>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>
func.func @f(%x: index) {
  // expected-error @+1 {{sizes[0]=4 does not match memref dimension 5}}
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<5xf16>
  func.return
}
// -----
// expected-error @+1 {{core affinity is only valid for LX or L0 memory spaces, but got memory space 'HBM' with core = 2}}
func.func private @f(memref<4xf16, #ktdp.spyre_memory_space<HBM, core = 2>>)
// -----
// expected-error @+1 {{ct_id is only valid for ct_local memory spaces}}
func.func private @f(memref<4xf16, #ktdp.memory_space<global, ct_id = 0>>)
// -----
// expected-error @+1 {{ct_id must be non-negative}}
func.func private @f(memref<4xf16, #ktdp.memory_space<ct_local, ct_id = -5>>)
// -----
// expected-error @+1 {{duplicate 'granularity' keyword}}
func.func private @f(!ktdp.runtime_arg<i32, granularity=1, granularity=2>)
// -----
// expected-error @+1 {{expected 'granularity' or 'upperbound' keyword}}
func.func private @f(!ktdp.runtime_arg<i32, bound=1>)
// -----
// expected-error @below {{invalid kind of type specified: expected builtin.tensor, but found 'index'}}
// expected-error @below {{failed to parse KTDP_TileFutureType parameter 'partialTypes'}}
func.func private @f(!ktdp.tile_future<(index), groups = affine_set<(g) : (g == 0)>>)
// -----
// expected-error @+1 {{tile_future `groups` must have exactly one dimension (g)}}
func.func private @f(!ktdp.tile_future<(tensor<4xf16>), groups = affine_set<(g, h) : (g == 0)>>)
// -----
#s = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 >= 0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{access_tile_set has 1 symbols but got 0 symbol operands}}
  %a = ktdp.construct_access_tile %v[0] {access_tile_set = #s, access_tile_order = affine_map<(d0) -> (d0)>} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{Access tile set is missing in the operation}}
  %a = ktdp.construct_access_tile %v[0] {access_tile_order = affine_map<(d0) -> (d0)>} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{result type rank (2) must match access_tile_set dimensions (1)}}
  %a = ktdp.construct_access_tile %v[0] {access_tile_set = #s, access_tile_order = affine_map<(d0) -> (d0)>} : memref<4xf16> -> !ktdp.access_tile<4x1xindex>
  func.return
}
// -----
func.func @f() {
  %c = arith.constant dense<0.0> : tensor<4xf16>
  // expected-error @+1 {{producer_tiles_per_group for groups 0 and 1 are not disjoint}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g >= 0, g + 1 - i >= 0)> -> <(tensor<4xf16>), groups = affine_set<(g) : (g >= 0, 1 - g >= 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %c : tensor<4xf16>
  }
  func.return
}
// -----
func.func @f() {
  %c = arith.constant dense<0.0> : tensor<4xf16>
  // expected-error @+1 {{yield_partial operand #0 type tensor<4xf16> does not match future partial type tensor<4xf32>}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)> -> <(tensor<4xf32>), groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %c : tensor<4xf16>
  }
  func.return
}
// -----
func.func @f() {
  %c = arith.constant dense<0.0> : tensor<4xf16>
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)> -> <(tensor<4xf16>), groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %c : tensor<4xf16>
  }
  // expected-error @+1 {{`producer_dependency_per_consumer` must have one symbol (c) or two symbols (c, g)}}
  %d = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)>, producer_dependency_per_consumer = affine_set<(p) : (p == 0)> : <(tensor<4xf16>), groups = affine_set<(g) : (g == 0)>> -> tensor<4xf16>
  func.return
}
// -----
// expected-error @+1 {{expected 'x' in dimension list}}
func.func private @f(!ktdp.access_tile<128>)
// -----
// expected-error @+1 {{tile element type must be 'index', but got: f16}}
func.func private @f(!ktdp.access_tile<4xf16>)
// -----
// expected-error @+1 {{runtime_arg underlying type must be a builtin type (index, integer, or float), but got}}
func.func private @f(!ktdp.runtime_arg<tensor<4xf16>>)
// -----
// expected-error @+1 {{runtime_arg upperbound must be positive, but got: -1}}
func.func private @f(!ktdp.runtime_arg<i32, upperbound = -1>)
// -----
// expected-error @+1 {{tile_future must carry at least one partial type}}
func.func private @f(!ktdp.tile_future<(), groups = affine_set<(g) : (g == 0)>>)
// -----
func.func @f(%v: tensor<4xf16>) {
  // expected-error @+1 {{'ktdp.yield_partial' op expects parent op 'ktdp.inter_tile_produce'}}
  ktdp.yield_partial %v : tensor<4xf16>
}
// -----
func.func @f() {
  // expected-error @+1 {{must return at least one index (num tile-grid dims >= 1)}}
  "ktdp.get_compute_tile_id"() : () -> ()
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{expecting a comma between subscripts}}
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[(%i) (%i)] {variables_space_order = #m, variables_space_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{unexpected token in subscript list, expected 'ind', '(', or ']'}}
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[+] {variables_space_order = #m, variables_space_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>, %w: memref<4xi32>) {
  // expected-error @+1 {{expected 2 types (base + 1 indirect memrefs), but got 1}}
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[ind(%w[%i])] {variables_space_order = #m, variables_space_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>, %w: memref<4xi32>) {
  // expected-error @+1 {{indirect subscript map for dimension 0 produces 2 results, but indirect memref has rank 1}}
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[ind(%w[%i, %i])] {variables_space_order = #m, variables_space_set = #s} : memref<4xf16>, memref<4xi32> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{number of intermediate variables (2) must match variables_space_set dimensions (1)}}
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j) %v[(%i)] {variables_space_order = #m, variables_space_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{Failed to parse symbol operands}}
  %a = ktdp.construct_access_tile %v[0] symbols(4) {access_tile_order = #m, access_tile_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{Access tile set and Base input dimensions should match}}
  %a = ktdp.construct_access_tile %v[0, 0] {access_tile_order = #m, access_tile_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
#s = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
#m = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%v: memref<4xf16>) {
  // expected-error @+1 {{Number of dimensions in the access tile order and access tile set must match!}}
  %a = ktdp.construct_access_tile %v[0] {access_tile_order = #m, access_tile_set = #s} : memref<4xf16> -> !ktdp.access_tile<4xindex>
  func.return
}
// -----
func.func @f(%v: memref<4xf16>, %w: memref<4x1xf16>) {
  // expected-error @+1 {{all input memrefs must have the same rank as the result}}
  %d = ktdp.construct_distributed_memory_view(%v, %w : memref<4xf16>, memref<4x1xf16>) : memref<8xf16>
  func.return
}
// -----
func.func @f(%n: !ktdp.runtime_arg<i32>) {
  // expected-error @+1 {{cannot extract granularity from runtime_arg that doesn't have one}}
  %g = ktdp.runtime_arg_extract granularity from %n : <i32> -> index
  func.return
}
// -----
#all = affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>
#one = affine_set<(g) : (g == 0)>
func.func @f(%p: tensor<1x4xf16>, %q: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #all -> <(tensor<1x4xf16>), groups = #one> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<1x4xf16>
  }
  // expected-error @+1 {{failed to verify that identity types must match result types}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #all, identity(%q : tensor<4xf16>) : <(tensor<1x4xf16>), groups = #one> -> tensor<1x4xf16> {
  ^bb0(%a: tensor<1x4xf16>, %b: tensor<1x4xf16>):
    ktdp.yield_reduced %a : tensor<1x4xf16>
  }
  func.return
}
