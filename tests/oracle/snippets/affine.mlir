func.func @apply_symbols(%n: index) { %0 = affine.apply affine_map<()[s0] -> (s0 * 4)>()[%n] func.return }
// -----
func.func @apply_semi_affine(%n: index) { %0 = affine.apply affine_map<(d0)[s0] -> (d0 * s0)>(%n)[%n] func.return }
// -----
func.func @apply_several_operands(%n: index, %m: index) { %0 = affine.apply affine_map<(d0, d1) -> (d0 + d1 mod 4)>(%n, %m) func.return }
// -----
func.func @min_several(%n: index) { %0 = affine.min affine_map<(d0)[s0] -> (d0, s0, 64)>(%n)[%n] func.return }
// -----
func.func @max(%n: index) { %0 = affine.max affine_map<(d0) -> (d0, 64)>(%n) func.return }
// -----
func.func @for() { affine.for %i = 0 to 16 { %0 = arith.addi %i, %i : index } func.return }
// -----
func.func @for_step() { affine.for %i = 0 to 16 step 4 { %0 = arith.addi %i, %i : index } func.return }
// -----
func.func @for_bound(%n: index) { affine.for %i = 0 to %n { %0 = arith.addi %i, %i : index } func.return }
// -----
func.func @for_map(%n: index) { affine.for %i = affine_map<(d0) -> (d0 + 1)>(%n) to affine_map<()[s0] -> (s0 * 2)>()[%n] { %0 = arith.addi %i, %i : index } func.return }
// -----
func.func @for_min(%n: index) { affine.for %i = max affine_map<(d0) -> (d0, 0)>(%n) to min affine_map<(d0) -> (d0, 16)>(%n) { %0 = arith.addi %i, %i : index } func.return }
// -----
func.func @for_carried(%x: f32) -> f32 {
  %0 = affine.for %i = 0 to 16 iter_args(%a = %x) -> (f32) {
    %1 = arith.addf %a, %a : f32
    affine.yield %1 : f32
  }
  func.return %0 : f32
}
// -----
func.func @if(%n: index) { affine.if affine_set<(d0) : (d0 - 4 >= 0)>(%n) { %0 = arith.addi %n, %n : index } func.return }
// -----
func.func @if_else(%n: index, %x: f32) -> f32 {
  %0 = affine.if affine_set<(d0)[s0] : (d0 - s0 == 0)>(%n)[%n] -> f32 {
    affine.yield %x : f32
  } else {
    affine.yield %x : f32
  }
  func.return %0 : f32
}
// -----
func.func @load(%a: memref<16xf32>) { affine.for %i = 0 to 4 { %0 = affine.load %a[%i * 4 + 1] : memref<16xf32> } func.return }
// -----
func.func @store(%a: memref<16xf32>, %x: f32) { affine.for %i = 0 to 4 { affine.store %x, %a[%i + 2] : memref<16xf32> } func.return }
// -----
func.func @load_symbol(%a: memref<16xf32>, %n: index) { %0 = affine.load %a[symbol(%n) + 1] : memref<16xf32> func.return }
// -----
func.func @delinearize(%n: index) { %0:2 = affine.delinearize_index %n into (4, 8) : index, index func.return }
// -----
func.func @linearize(%n: index) { %0 = affine.linearize_index disjoint [%n, %n] by (4, 8) : index func.return }
// -----
func.func private @map_zero() attributes {m = affine_map<(d0) -> (d0 - d0)>}
// -----
func.func private @map_negative() attributes {m = affine_map<(d0, d1) -> (-d0 - d1 * 3 - 5)>}
// -----
func.func private @map_symbols_first() attributes {m = affine_map<(d0)[s0] -> (s0 + d0, 3 + s0 + d0)>}
// -----
func.func private @map_nested_mod() attributes {m = affine_map<(d0) -> (((d0 mod 64) mod 8) floordiv 2)>}
// -----
func.func private @map_ceildiv() attributes {m = affine_map<(d0)[s0] -> ((d0 + s0) ceildiv 64, (d0 * 8) ceildiv 4)>}
// -----
func.func private @map_semi_mod() attributes {m = affine_map<(d0)[s0] -> (d0 mod s0, d0 floordiv s0, d0 ceildiv (s0 + 1))>}
// -----
func.func private @map_semi_product() attributes {m = affine_map<(d0)[s0, s1] -> (s0 * s1 * d0, (d0 + 1) * s0)>}
// -----
func.func private @map_multiply_constant() attributes {m = affine_map<(d0) -> (4 * (d0 + 2) * 3, -(-(d0)))>}
// -----
func.func private @map_remainder() attributes {m = affine_map<(d0) -> (d0 - (d0 floordiv 8) * 8)>}
// -----
func.func private @map_unused() attributes {m = affine_map<(d0, d1, d2)[s0, s1] -> (d1)>}
// -----
func.func private @map_names() attributes {m = affine_map<(i, j)[n] -> (j, i + n)>}
// -----
func.func private @set_less() attributes {s = affine_set<(d0) : (d0 <= 7, d0 >= 0)>}
// -----
func.func private @set_equal() attributes {s = affine_set<(d0, d1) : (d0 == d1, d0 + d1 == 4)>}
// -----
func.func private @set_symbols() attributes {s = affine_set<(i)[g] : (i - g * 8 >= 0, g * 8 + 7 - i >= 0)>}
// -----
func.func private @set_empty() attributes {s = affine_set<() : ()>}
// -----
func.func private @set_false() attributes {s = affine_set<(d0) : (1 == 0)>}
// -----
func.func private @set_mod() attributes {s = affine_set<(d0)[s0] : (d0 mod 4 == 0, d0 floordiv 8 - s0 == 0)>}
// -----
func.func private @same_map_twice() attributes {a = affine_map<(d0) -> (d0)>, b = affine_map<(x) -> (x)>, c = affine_map<(d0) -> (d0 + 1)>}
// -----
func.func @parallel(%m: memref<100xf32>) {
  affine.parallel (%i) = (0) to (100) {
    %0 = affine.load %m[%i] : memref<100xf32>
  }
  affine.parallel (%i, %j) = (0, 4) to (10, 20) step (2, 3) {
  } {x = 1 : i32}
  affine.parallel () = () to () {
  }
  func.return
}
// -----
func.func @parallel_bounds(%n: index) {
  affine.parallel (%i, %j) = (max(0, %n), 4) to (%n + 8, min(%n, 3)) {
    affine.parallel (%k) = (%i) to (symbol(%n)) {
    }
  }
  func.return
}
// -----
func.func @parallel_reduction(%x: f32, %y: i32) -> (f32, i32) {
  %0:2 = affine.parallel (%i) = (0) to (100) reduce ("maximumf", "addi") -> (f32, i32) {
    affine.yield %x, %y : f32, i32
  }
  func.return %0#0, %0#1 : f32, i32
}
// -----
func.func @linearize_without_promise(%i: index, %j: index) {
  %0 = affine.linearize_index [%i, %j] by (2, 4) : index
  %1 = affine.linearize_index [%i, %j] by (%j) : index
  %2 = affine.linearize_index disjoint [%i, %j] by (2, 4) : index
  func.return
}
