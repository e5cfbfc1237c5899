// RUN: ktir-opt %s --strict --verify-roundtrip | ktir-opt --strict | filecheck %s
// RUN: ktir-opt %s --mlir-print-op-generic | ktir-opt | filecheck %s

// Aliases of maps come first, then those of sets, each in the order in which they are printed.
// CHECK:      #map = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-NEXT: #map1 = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT: #set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 63 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
#swapped = affine_map<(i, j) -> (j, i)>
#tile = affine_set<(i, j) : (i >= 0, 1 - i >= 0, j >= 0, j <= 63)>

// The grid is an array of plain numbers; attributes stand in alphabetical order; tile types are short.
// CHECK-LABEL: func.func @copy(%x: index) attributes {grid = [32, 1]} {
func.func @copy(%x: index) attributes {grid = [32, 1]} {
  // CHECK-NEXT: %t, %u = ktdp.get_compute_tile_id : index, index
  %t, %u = ktdp.get_compute_tile_id : index, index
  // CHECK-NEXT: %v = ktdp.construct_memory_view %x, sizes: [2, 64], strides: [%t, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<2x64xf16>
  %v = ktdp.construct_memory_view %x, sizes : [2, 64], strides: [%t, 1] {memory_space = #ktdp.memory_space<global>, coordinate_set = #tile} : memref<2x64xf16>
  // CHECK-NEXT: %a = ktdp.construct_access_tile %v[%t + %u * 2, 0] {access_tile_order = #map, access_tile_set = #set} : memref<2x64xf16> -> !ktdp.access_tile<2x64xindex>
  %a = ktdp.construct_access_tile %v[%t + 2 * %u, 0] {access_tile_set = #tile, access_tile_order = #order} : memref<2x64xf16> -> !ktdp.access_tile<2x64xindex>
  // CHECK-NEXT: %b = ktdp.construct_access_tile %v[symbol(%t) floordiv 64, -%u] {access_tile_order = #map1, access_tile_set = #set}
  %b = ktdp.construct_access_tile %v[symbol(%t) floordiv 64, -%u] {access_tile_set = #tile, access_tile_order = #swapped} : memref<2x64xf16> -> !ktdp.access_tile<2x64xindex>
  // CHECK-NEXT: %l = ktdp.load %a : <2x64xindex> -> tensor<2x64xf16>
  %l = ktdp.load %a : !ktdp.access_tile<2x64xindex> -> tensor<2x64xf16>
  // CHECK-NEXT: ktdp.store %l, %b : tensor<2x64xf16>, <2x64xindex>
  ktdp.store %l, %b : tensor<2x64xf16>, !ktdp.access_tile<2x64xindex>
  // CHECK-NEXT: return
  func.return
}

// Captured values come before the variables in the maps, so a sum is printed in that order.
// CHECK-LABEL: func.func @gather
func.func @gather(%x: index, %o: index) {
  %v = ktdp.construct_memory_view %x, sizes: [2, 64], strides: [64, 1] {memory_space = #ktdp.spyre_memory_space<HBM>, coordinate_set = #tile} : memref<2x64xf16>
  %i = ktdp.construct_memory_view %x, sizes: [2, 64], strides: [64, 1] {memory_space = #ktdp.spyre_memory_space<LX, core = 2>, coordinate_set = #tile} : memref<2x64xi32>
  // CHECK: %a = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) %v[ind(%i[%o + %m, %k]), (%o * 2 + %k)] {variables_space_order = #map, variables_space_set = #set} : memref<2x64xf16>, memref<2x64xi32> -> !ktdp.access_tile<2x64xindex>
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) %v[ind(%i[%m + %o, %k]), (%k + %o * 2)] {variables_space_set = #tile, variables_space_order = #order} : memref<2x64xf16>, memref<2x64xi32> -> !ktdp.access_tile<2x64xindex>
  func.return
}

// CHECK-LABEL: func.func @types(%a: !ktdp.access_tile<index>, %b: !ktdp.access_tile<?x0xindex>, %c: !ktdp.runtime_arg<i32, granularity=3, upperbound=300>, %d: memref<4xf32, #ktdp.memory_space<ct_local>>)
func.func @types(%a: !ktdp.access_tile<index>, %b: !ktdp.access_tile<?x0xindex>, %c: !ktdp.runtime_arg<i32, upperbound = 300, granularity = 3>, %d: memref<4xf32, #ktdp.memory_space<ct_local>>) {
  func.return
}

// CHECK-LABEL: func.func private @layout
// CHECK-SAME: l = #ktdp.stick_layout<[1 : 16 : 64, 0 : 67 : 1, 1 : 64 : 1], extent = [67, 1000], pad = zero>
// CHECK-SAME: m = #ktdp.stick_layout<[0 : 64 : 1], extent = [10], pad = 1.5>
func.func private @layout() attributes {l = #ktdp.stick_layout<[1 : 16 : 64, 0 : 67 : 1, 1 : 64 : 1], extent = [67, 1000], pad = zero>, m = #ktdp.stick_layout<[0 : 64 : 1], extent = [10], pad = 1.5>}
