// RUN: ktir-opt %s --ktir-check-inter-tile --split-input-file --verify-diagnostics --strict
// RUN: ktir-opt %s --ktir-check-legality --split-input-file --verify-diagnostics

#four = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @two_uses(%p: tensor<4xf16>) {
  // expected-error @below {{'ktdp.inter_tile_produce' op future result must have exactly one use}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  func.return
}
// -----
#four = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>
#shifted = affine_set<(i)[g] : (i - 4 * g - 1 >= 0, 4 * g + 4 - i >= 0)>
#two = affine_set<(g) : (g >= 0, 1 - g >= 0)>
func.func @strangers(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<4xf16>), groups = #two> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{consumer_tiles_per_group for group 0 is not a subset of producer_tiles_per_group}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #shifted, identity(%p : tensor<4xf16>) : <(tensor<4xf16>), groups = #two> -> tensor<4xf16> {
  ^bb0(%a: tensor<4xf16>, %b: tensor<4xf16>):
    ktdp.yield_reduced %a : tensor<4xf16>
  }
  func.return
}
// -----
#four = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>
#pair = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 1 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @subset(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{reduce-to-subset is unsupported; only all-reduce and reduce-to-one are supported}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%p : tensor<4xf16>) : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16> {
  ^bb0(%a: tensor<4xf16>, %b: tensor<4xf16>):
    ktdp.yield_reduced %a : tensor<4xf16>
  }
  func.return
}
// -----
#four = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @no_source(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{producer_tiles_per_group for group 0 has 4 producers, so producer_dependency_per_consumer is required to name each consumer tile's single source}}
  %r = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #four : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  func.return
}
// -----
#four = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#both = affine_set<(p)[c] : (p >= 0, 1 - p >= 0)>
func.func @two_sources(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #four -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{consumer tile 0 in group 0 depends on 2 producers; inter_tile_consume delivers one contribution per consumer tile, so exactly one is required}}
  %r = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #four, producer_dependency_per_consumer = #both : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  func.return
}
// -----
#pair = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#four = affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#first = affine_set<(p)[c] : (p == 0)>
func.func @idle(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{producer_dependency_per_consumer for group 0 does not cover producer tile 1 (no consumer has it as a dependency)}}
  %r = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #four, producer_dependency_per_consumer = #first : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  func.return
}
// -----
#pair = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#next = affine_set<(p)[c, g] : (p - c - 1 - g == 0)>
func.func @not_a_producer(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{producer_dependency_per_consumer for consumer 1 group 0 references producer tile 2 which is not in producer_tiles_per_group}}
  %r = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #next : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  func.return
}
// -----
#pair = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @impure(%p: tensor<4xf16>, %t: !ktdp.access_tile<4xindex>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{reducer region must be free of side effects, but holds ktdp.store}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%p : tensor<4xf16>) : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16> {
  ^bb0(%a: tensor<4xf16>, %b: tensor<4xf16>):
    ktdp.store %a, %t : tensor<4xf16>, <4xindex>
    ktdp.yield_reduced %a : tensor<4xf16>
  }
  func.return
}
// -----
// A broadcast, a routing of one producer to two consumers, and a set without an upper bound: nothing to say.
#one = affine_set<(i)[g] : (i - 4 * g == 0)>
#four = affine_set<(i)[g] : (i - 4 * g >= 0, 4 * g + 3 - i >= 0)>
#eight = affine_set<(g) : (g >= 0, 7 - g >= 0)>
#pair = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
#half = affine_set<(p)[c] : (c - 2 * p >= 0, 2 * p + 1 - c >= 0)>
#open = affine_set<(p)[c] : (p - c >= 0)>
func.func @fine(%p: tensor<4xf16>) {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #one -> <(tensor<4xf16>), groups = #eight> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  %a = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #four : <(tensor<4xf16>), groups = #eight> -> tensor<4xf16>
  %h = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  %b = ktdp.inter_tile_consume(%h) consumer_tiles_per_group = #four, producer_dependency_per_consumer = #half : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  %k = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  %c = ktdp.inter_tile_consume(%k) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #open : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  func.return
}
// -----
// Every operation at fault is reported, each with the first rule that it breaks.
#pair = affine_set<(i)[g] : (i >= 0, 1 - i >= 0)>
#four = affine_set<(i)[g] : (i >= 0, 3 - i >= 0)>
#zero = affine_set<(g) : (g == 0)>
func.func @many(%p: tensor<4xf16>, %i: index) {
  // expected-error @below {{'affine.apply' op is not legal in KTIR: it has no dialect 'affine'}}
  %n = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
  // expected-error @below {{'ktdp.inter_tile_produce' op future result must have exactly one use}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<4xf16>), groups = #zero> {
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }
  // expected-error @below {{'ktdp.inter_tile_consume' op producer_tiles_per_group for group 0 has 2 producers}}
  %a = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #pair : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16>
  // expected-error @below {{'ktdp.inter_tile_reduce' op consumer_tiles_per_group for group 0 is not a subset of producer_tiles_per_group (tile 2 does not produce)}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #four, identity(%p : tensor<4xf16>) : <(tensor<4xf16>), groups = #zero> -> tensor<4xf16> {
  ^bb0(%x: tensor<4xf16>, %y: tensor<4xf16>):
    ktdp.yield_reduced %x : tensor<4xf16>
  }
  func.return
}
