// RUN: ktir-opt -p 'ktir-lower-to-dfp{arguments="x_ptr=8x64xf16","y_ptr=8x64xf16"},ktir-verify-dfp' %s | filecheck %s

// Each core doubles the rows that its number names: a load, a vector step and a store, linked by two tiles. Numbers that
// differ from core to core become tables.

// CHECK:      dfp.program
// CHECK-SAME:   cores = 4
// CHECK:        [[X:%.+]] = dfp.buffer {bytes = 1024 : i64, memory = "ddr", offset = 0 : i64, sym_name = "x_ptr"}
// CHECK-NEXT:   [[Y:%.+]] = dfp.buffer {bytes = 1024 : i64, memory = "ddr", offset = 1024 : i64, sym_name = "y_ptr", writes = "once"}
// CHECK-NEXT:   [[IN:%.+]] = dfp.buffer {{.*}}consumers = ["lx_ld"]{{.*}}memory = "lx"{{.*}}producer = "hbm_ld"
// CHECK-NEXT:   [[OUT:%.+]] = dfp.buffer {{.*}}consumers = ["hbm_st"]{{.*}}memory = "lx"{{.*}}producer = "lx_st"
// CHECK:        dfp.unit "hbm_ld"
// CHECK:          [[AT:%.+]] = dfp.table {{.*}} [0, 256, 512, 768]
// CHECK:          dfp.reserve [[IN]]
// CHECK-NEXT:     dfp.copy [[X]]{{.*}}[[AT]]] to [[IN]]{{.*}}counts = array<i64: 128>
// CHECK-NEXT:     dfp.commit [[IN]]
// CHECK:        dfp.unit "hbm_st"
// CHECK:          dfp.acquire [[OUT]]
// CHECK-NEXT:     dfp.copy [[OUT]]{{.*}} to [[Y]]
// CHECK-NEXT:     dfp.release [[OUT]]
// CHECK:        dfp.unit "sfu"
// CHECK:          dfp.sfu_map
// CHECK:            arith.addf {{.*}} : f16
func.func @double(%x_ptr: index, %y_ptr: index) attributes {grid = [4]} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %core = ktdp.get_compute_tile_id : index
  %row = arith.muli %core, %c2 : index
  %x = ktdp.construct_memory_view %x_ptr, sizes: [8, 64], strides: [64, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, 7 - d0 >= 0, d1 >= 0, 63 - d1 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<8x64xf16>
  %y = ktdp.construct_memory_view %y_ptr, sizes: [8, 64], strides: [64, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, 7 - d0 >= 0, d1 >= 0, 63 - d1 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<8x64xf16>
  %from = ktdp.construct_access_tile %x[%row, %c0] {access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0, 1 - d0 >= 0, d1 >= 0, 63 - d1 >= 0)>} : memref<8x64xf16> -> !ktdp.access_tile<2x64xindex>
  %to = ktdp.construct_access_tile %y[%row, %c0] {access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0, 1 - d0 >= 0, d1 >= 0, 63 - d1 >= 0)>} : memref<8x64xf16> -> !ktdp.access_tile<2x64xindex>
  %v = ktdp.load %from : <2x64xindex> -> tensor<2x64xf16>
  %w = arith.addf %v, %v : tensor<2x64xf16>
  ktdp.store %w, %to : tensor<2x64xf16>, <2x64xindex>
  func.return
}
