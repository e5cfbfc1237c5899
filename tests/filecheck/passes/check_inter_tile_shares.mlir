// RUN: ktir-opt %s --ktir-check-inter-tile --experimental --split-input-file --verify-diagnostics

#four = affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#own = affine_set<(p)[c] : (p - c == 0)>
// Every rule kept: gathers with and without dependencies, an exchange of all with all, a scatter of a sum.
func.func @fine(%p: tensor<8x4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  %a = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #four, gather_dimensions = [0] : <(tensor<8x4xf16>), groups = #zero> -> tensor<32x4xf16>
  %h = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  %b = ktdp.inter_tile_gather(%h) consumer_tiles_per_group = #four, gather_dimensions = [0], producer_dependency_per_consumer = #own : <(tensor<8x4xf16>), groups = #zero> -> tensor<8x4xf16>
  %k = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  %c = ktdp.inter_tile_all_to_all(%k) consumer_tiles_per_group = #four, split_dimensions = [0], concat_dimensions = [1] : <(tensor<8x4xf16>), groups = #zero> -> tensor<2x16xf16>
  %m = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  %d = ktdp.inter_tile_reduce_scatter(%m) consumer_tiles_per_group = #four, scatter_dimensions = [0], identity(%p : tensor<8x4xf16>) : <(tensor<8x4xf16>), groups = #zero> -> tensor<2x4xf16> {
  ^bb0(%x: tensor<8x4xf16>, %y: tensor<8x4xf16>):
    ktdp.yield_reduced %x : tensor<8x4xf16>
  }
  func.return
}
// -----
#four = affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#two = affine_set<(p)[c] : (p - c >= 0, c + 1 - p >= 0, 3 - p >= 0)>
func.func @shared_producers(%p: tensor<8x4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  // expected-error @below {{the dependencies of two consumers of group 0 name the same producer}}
  %a = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #four, gather_dimensions = [0], producer_dependency_per_consumer = #two : <(tensor<8x4xf16>), groups = #zero> -> tensor<16x4xf16>
  func.return
}
// -----
#three = affine_set<(i)[g] : (i >= 0, 2 - i >= 0)>
#pair = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#uneven = affine_set<(p)[c] : (p - c >= 0, c * 2 - p >= 0)>
func.func @uneven_dependencies(%p: tensor<8x4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #three -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  // expected-error @below {{consumers of group 0 depend on 1 and 2 producers}}
  %a = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #pair, gather_dimensions = [0], producer_dependency_per_consumer = #uneven : <(tensor<8x4xf16>), groups = #zero> -> tensor<8x4xf16>
  func.return
}
// -----
#grows = affine_set<(i)[g] : (i - g * 2 >= 0, g * 3 + 1 - i >= 0)>
#all = affine_set<(i)[g] : (i - g * 2 >= 0, g * 2 + 1 - i >= 0)>
#two = affine_set<(g) : (g >= 0, 1 - g >= 0)>
func.func @uneven_groups(%p: tensor<8x4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #grows -> <(tensor<8x4xf16>), groups = #two> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  // expected-error @below {{groups must have the same number of producers, but have 2 and 3}}
  %a = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #all, gather_dimensions = [0] : <(tensor<8x4xf16>), groups = #two> -> tensor<16x4xf16>
  func.return
}
// -----
#three = affine_set<(i)[g] : (i >= 0, 2 - i >= 0)>
#one = affine_set<(i)[g] : (i == 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @not_divisible(%p: tensor<8x4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #one -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  // expected-error @below {{the extent 8 along scatter_dimensions is not divisible by the 3 consumers of group 0}}
  %a = ktdp.inter_tile_scatter(%f) consumer_tiles_per_group = #three, scatter_dimensions = [0] : <(tensor<8x4xf16>), groups = #zero> -> tensor<4x4xf16>
  func.return
}
// -----
#four = affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @too_small(%p: tensor<8x4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<8x4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<8x4xf16>
  }
  // expected-error @below {{the result tensor<16x4xf16> is not what 4 contributions of tensor<8x4xf16> give each of the 4 consumers of group 0}}
  %a = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #four, gather_dimensions = [0] : <(tensor<8x4xf16>), groups = #zero> -> tensor<16x4xf16>
  func.return
}
