// RUN: ktir-opt %s --ktir-migrate | filecheck %s --check-prefixes CHECK,NEW
// RUN: ktir-opt %s --dialect-version new | filecheck %s --check-prefixes CHECK,NEW
// RUN: ktir-opt %s --ktir-migrate | ktir-opt --strict --dialect-version old | filecheck %s --check-prefixes CHECK,OLD
// RUN: ktir-opt %s | filecheck %s --check-prefix WRITTEN
// RUN: not ktir-opt %s --strict 2>&1 | filecheck %s --check-prefix STRICT

// WRITTEN: memory_space = #ktdp.spyre_memory_space<LX, core = 2>
// STRICT: error: 'fp16' is called 'f16' now (rule M6) [ParseError]
#box = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>

// CHECK-LABEL: func.func @f
// NEW-SAME:      memref<4xf16, #ktdp.memory_space<global>>
// OLD-SAME:      memref<4xf16, #ktdp.spyre_memory_space<HBM>>
func.func @f(%x: index, %m: memref<4xfp16, #ktdp.spyre_memory_space<HBM>>) {
  // NEW-NEXT:  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<ct_local, ct_id = 2>} : memref<4xf16>
  // OLD-NEXT:  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {coordinate_set = #set, memory_space = #ktdp.spyre_memory_space<LX, core = 2>} : memref<4xf16>
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {memory_space = #ktdp.spyre_memory_space<LX, core = 2>} : memref<4xf16>
  func.return
}
