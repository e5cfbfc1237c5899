func.func @subview_static(%a: memref<8x16xf32>) { %0 = memref.subview %a[0, 0] [4, 8] [1, 1] : memref<8x16xf32> to memref<4x8xf32, strided<[16, 1]>> func.return }
// -----
func.func @subview_offset(%a: memref<8x16xf32>) { %0 = memref.subview %a[2, 4] [4, 6] [1, 2] : memref<8x16xf32> to memref<4x6xf32, strided<[16, 2], offset: 36>> func.return }
// -----
func.func @subview_dynamic(%a: memref<8x16xf32>, %n: index) { %0 = memref.subview %a[%n, 0] [4, %n] [1, 1] : memref<8x16xf32> to memref<4x?xf32, strided<[16, 1], offset: ?>> func.return }
// -----
func.func @subview_reduced(%a: memref<8x16xf32>) { %0 = memref.subview %a[3, 0] [1, 16] [1, 1] : memref<8x16xf32> to memref<16xf32, strided<[1], offset: 48>> func.return }
// -----
func.func @subview_all_dynamic(%a: memref<?x?xf32>, %n: index) { %0 = memref.subview %a[%n, %n] [%n, %n] [%n, %n] : memref<?x?xf32> to memref<?x?xf32, strided<[?, ?], offset: ?>> func.return }
// -----
func.func @subview_space(%a: memref<8xf32, 3>) { %0 = memref.subview %a[2] [4] [1] : memref<8xf32, 3> to memref<4xf32, strided<[1], offset: 2>, 3> func.return }
// -----
func.func @alloc_space() { %0 = memref.alloc() : memref<4xf32, 1> func.return }
// -----
func.func @alloc_symbols(%n: index) { %0 = memref.alloc()[%n] : memref<4xf32, affine_map<(d0)[s0] -> (d0 + s0)>> func.return }
// -----
func.func @alloca() { %0 = memref.alloca() {alignment = 64 : i64} : memref<4xf32> func.return }
// -----
func.func @alloca_dynamic(%n: index) { %0 = memref.alloca(%n) : memref<?xf32> func.return }
// -----
func.func @reinterpret_cast(%a: memref<32xf32>) { %0 = memref.reinterpret_cast %a to offset: [0], sizes: [4, 8], strides: [8, 1] : memref<32xf32> to memref<4x8xf32> func.return }
// -----
func.func @reinterpret_cast_dynamic(%a: memref<*xf32>, %n: index) { %0 = memref.reinterpret_cast %a to offset: [%n], sizes: [%n, 8], strides: [8, 1] : memref<*xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>> func.return }
// -----
func.func @collapse_shape(%a: memref<4x8xf32>) { %0 = memref.collapse_shape %a [[0, 1]] : memref<4x8xf32> into memref<32xf32> func.return }
// -----
func.func @expand_shape(%a: memref<32xf32>) { %0 = memref.expand_shape %a [[0, 1]] output_shape [4, 8] : memref<32xf32> into memref<4x8xf32> func.return }
// -----
func.func @transpose(%a: memref<4x8xf32>) { %0 = memref.transpose %a (d0, d1) -> (d1, d0) : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>> func.return }
// -----
func.func @load_store(%a: memref<4x8xf32>, %n: index) { %0 = memref.load %a[%n, %n] : memref<4x8xf32> memref.store %0, %a[%n, %n] : memref<4x8xf32> func.return }
// -----
func.func @load_scalar(%a: memref<f32>) { %0 = memref.load %a[] : memref<f32> func.return }
// -----
func.func @load_nontemporal(%a: memref<4xf32>, %n: index) { %0 = memref.load %a[%n] {nontemporal = true} : memref<4xf32> func.return }
// -----
func.func @dim(%a: memref<?xf32>, %n: index) { %0 = memref.dim %a, %n : memref<?xf32> func.return }
// -----
func.func @rank(%a: memref<*xf32>) { %0 = memref.rank %a : memref<*xf32> func.return }
// -----
memref.global "private" constant @weights : memref<4xf32> = dense<1.0> {alignment = 64 : i64}
func.func @global() { %0 = memref.get_global @weights : memref<4xf32> func.return }
// -----
memref.global @buffer : memref<4xf32> = uninitialized
// -----
func.func @memory_space_cast(%a: memref<4xf32, 1>) { %0 = memref.memory_space_cast %a : memref<4xf32, 1> to memref<4xf32> func.return }
// -----
func.func @pointer(%a: memref<4xf32>) { %0 = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index func.return }
// -----
func.func @metadata(%a: memref<4x?xf32>) { %b, %o, %s:2, %t:2 = memref.extract_strided_metadata %a : memref<4x?xf32> -> memref<f32>, index, index, index, index, index func.return }
// -----
func.func @copy_dynamic(%a: memref<?xf32>, %b: memref<4xf32>) { memref.copy %a, %b : memref<?xf32> to memref<4xf32> func.return }
// -----
func.func @view(%a: memref<64xi8>, %n: index) { %0 = memref.view %a[%n][] : memref<64xi8> to memref<16xf32> func.return }
// -----
func.func @memory_types(%a: memref<4xf32, "hbm">, %b: memref<4xf32, affine_map<(d0) -> (d0)>>, %c: memref<4x?xf32, strided<[?, 1], offset: ?>, 2>, %d: memref<*xf32, 1>, %e: memref<f32>) { func.return }
