func.func @generic(%a: tensor<4x8xf16>, %b: tensor<8xf16>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<4x8xf16>, tensor<8xf16>) outs(%o : tensor<4x8xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %i = linalg.index 1 : index
    %s = arith.addf %x, %y : f16
    %e = arith.extf %s : f16 to f32
    linalg.yield %e : f32
  } -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}
// -----
func.func @generic_two_results(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %o = tensor.empty() : tensor<4xf32>
  %p = tensor.empty() : tensor<4xi1>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o, %p : tensor<4xf32>, tensor<4xi1>) {
  ^bb0(%x: f32, %y: f32, %z: i1):
    %c = arith.cmpf ogt, %x, %x : f32
    linalg.yield %x, %c : f32, i1
  } -> (tensor<4xf32>, tensor<4xi1>)
  func.return %0#0, %0#1 : tensor<4xf32>, tensor<4xi1>
}
// -----
func.func @generic_no_input(%o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%o : tensor<4xf32>) {
  ^bb0(%y: f32):
    linalg.yield %y : f32
  } -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @generic_memref(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  func.return
}
// -----
func.func @reduce_short(%a: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce { arith.addf } ins(%a : tensor<4x8xf32>) outs(%i : tensor<4xf32>) dimensions = [1]
  func.return %0 : tensor<4xf32>
}
// -----
func.func @reduce_long(%a: tensor<4x8xf32>, %i: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.reduce ins(%a : tensor<4x8xf32>) outs(%i : tensor<8xf32>) dimensions = [0]
    (%in: f32, %init: f32) {
      %c = arith.cmpf ogt, %in, %init : f32
      %m = arith.select %c, %in, %init : f32
      linalg.yield %m : f32
    }
  func.return %0 : tensor<8xf32>
}
// -----
func.func @reduce_all(%a: tensor<4x8xf16>, %i: tensor<f16>) -> tensor<f16> {
  %0 = linalg.reduce { arith.maximumf } ins(%a : tensor<4x8xf16>) outs(%i : tensor<f16>) dimensions = [0, 1]
  func.return %0 : tensor<f16>
}
// -----
func.func @reduce_other_order(%a: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce ins(%a : tensor<4x8xf32>) outs(%i : tensor<4xf32>) dimensions = [1]
    (%in: f32, %init: f32) {
      %m = arith.subf %in, %init : f32
      linalg.yield %m : f32
    }
  func.return %0 : tensor<4xf32>
}
// -----
func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
// -----
func.func @matmul_mixed(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x2xf16>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
// -----
func.func @matmul_integer(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>, %c: tensor<4x2xi32>) -> tensor<4x2xi32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x2xi8>) outs(%c : tensor<4x2xi32>) -> tensor<4x2xi32>
  func.return %0 : tensor<4x2xi32>
}
// -----
func.func @matmul_transposed(%a: tensor<8x4xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%a, %b : tensor<8x4xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
// -----
func.func @batch_matmul(%a: tensor<3x4x8xf16>, %b: tensor<3x8x2xf16>, %c: tensor<3x4x2xf32>) -> tensor<3x4x2xf32> {
  %0 = linalg.batch_matmul ins(%a, %b : tensor<3x4x8xf16>, tensor<3x8x2xf16>) outs(%c : tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return %0 : tensor<3x4x2xf32>
}
// -----
func.func @named(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.sub ins(%0, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.mul ins(%1, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %3 = linalg.max ins(%2, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %4 = linalg.min ins(%3, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %5 = linalg.exp ins(%4 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %6 = linalg.log ins(%5 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %7 = linalg.sqrt ins(%6 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %8 = linalg.copy ins(%7 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  func.return %8 : tensor<4xf32>
}
// -----
func.func @named_more(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.abs ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.ceil ins(%0 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.floor ins(%1 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %3 = linalg.negf ins(%2 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %4 = linalg.reciprocal ins(%3 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %5 = linalg.round ins(%4 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %6 = linalg.rsqrt ins(%5 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %7 = linalg.square ins(%6 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %8 = linalg.tanh ins(%7 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %9 = linalg.erf ins(%8 : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %10 = linalg.div ins(%9, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %11 = linalg.powf ins(%10, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  func.return %11 : tensor<4xf32>
}
// -----
func.func @fill(%x: f32, %o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.fill ins(%x : f32) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @broadcast_transpose(%a: tensor<4xf32>, %b: tensor<4x8xf32>, %c: tensor<8x4xf32>, %s: tensor<f32>, %d: tensor<2x3xf32>) {
  %0 = linalg.broadcast ins(%a : tensor<4xf32>) outs(%b : tensor<4x8xf32>) dimensions = [1]
  %1 = linalg.transpose ins(%0 : tensor<4x8xf32>) outs(%c : tensor<8x4xf32>) permutation = [1, 0]
  %2 = linalg.broadcast ins(%s : tensor<f32>) outs(%d : tensor<2x3xf32>) dimensions = [0, 1]
  func.return
}
// -----
func.func @scf(%n: index, %x: tensor<4xf32>, %c: i1, %i: i32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %1 = arith.addf %a, %x : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %x, %b = %c0) -> (tensor<4xf32>, index) {
    scf.yield %a, %k : tensor<4xf32>, index
  }
  scf.for %k = %i to %i step %i : i32 {
  }
  %3 = scf.if %c -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  scf.if %c {
  } else {
  }
  scf.if %c {
    scf.for %k = %c0 to %n step %c1 {
    }
  }
  func.return %3 : tensor<4xf32>
}
// -----
func.func @while(%x: i32) -> i32 {
  %0 = scf.while (%a = %x) : (i32) -> i32 {
    %c = arith.cmpi slt, %a, %x : i32
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%b: i32):
    scf.yield %b : i32
  }
  func.return %0 : i32
}
// -----
func.func @tensor(%a: tensor<4x8xf32>, %i: index, %f: f32, %s: tensor<f32>) {
  %0 = tensor.empty() : tensor<4xf16>
  %1 = tensor.empty(%i) : tensor<?x4xf16>
  %2 = tensor.extract %a[%i, %i] : tensor<4x8xf32>
  %3 = tensor.insert %f into %a[%i, %i] : tensor<4x8xf32>
  %4 = tensor.extract_slice %a[0, %i] [2, 4] [1, 1] : tensor<4x8xf32> to tensor<2x4xf32>
  %5 = tensor.extract_slice %a[1, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
  %6 = tensor.insert_slice %4 into %a[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x8xf32>
  %7 = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %8 = tensor.expand_shape %7 [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %9 = tensor.expand_shape %s [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
  %10 = tensor.splat %f : tensor<4xf32>
  %11 = tensor.from_elements %f, %f : tensor<2xf32>
  %12 = tensor.dim %a, %i : tensor<4x8xf32>
  %13 = tensor.cast %a : tensor<4x8xf32> to tensor<?x8xf32>
  %14 = tensor.concat dim(0) %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %15 = tensor.extract %s[] : tensor<f32>
  %16 = tensor.splat %f[%i] : tensor<?xf32>
  func.return
}
// -----
func.func @reshape(%a: tensor<4x8xf32>) -> tensor<2x16xf32> {
  %shape = arith.constant dense<[2, 16]> : tensor<2xindex>
  %0 = tensor.reshape %a(%shape) : (tensor<4x8xf32>, tensor<2xindex>) -> tensor<2x16xf32>
  func.return %0 : tensor<2x16xf32>
}
// -----
func.func @pad(%a: tensor<4x8xf32>, %f: f32) -> tensor<5x10xf32> {
  %0 = tensor.pad %a low[0, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %f : f32
  } : tensor<4x8xf32> to tensor<5x10xf32>
  func.return %0 : tensor<5x10xf32>
}
// -----
func.func @generate(%n: index) -> tensor<?x4xindex> {
  %0 = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    tensor.yield %i : index
  } : tensor<?x4xindex>
  func.return %0 : tensor<?x4xindex>
}
// -----
func.func private @declared(tensor<4xf32>, index) -> (f32, i1)
// -----
func.func @call(%x: f32 {ktg.name = "x"}) -> f32 {
  %0 = func.call @call(%x) : (f32) -> f32
  func.return %0 : f32
}
// -----
func.func @grid() attributes {grid = [32, 1]} {
  func.return
}
// -----
func.func @grid_of_index() attributes {grid = [8 : index], b = 4 : i64, a = [1.0, 2 : i32]} {
  func.return
}
// -----
module @named attributes {some.flag} {
  func.func @f() {
    func.return
  }
}
// -----
func.func @memref(%n: index) {
  %0 = memref.alloc() {alignment = 128 : i64} : memref<6x640x64xf16>
  %1 = memref.alloc(%n) : memref<?xf32>
  %2 = memref.extract_aligned_pointer_as_index %0 : memref<6x640x64xf16> -> index
  %3 = memref.load %1[%n] : memref<?xf32>
  memref.store %3, %1[%n] : memref<?xf32>
  %4 = memref.subview %0[0, 0, 0] [1, 640, 64] [1, 1, 1] : memref<6x640x64xf16> to memref<1x640x64xf16, strided<[40960, 64, 1]>>
  memref.dealloc %1 : memref<?xf32>
  %5 = memref.cast %0 : memref<6x640x64xf16> to memref<?x640x64xf16>
  memref.copy %0, %0 : memref<6x640x64xf16> to memref<6x640x64xf16>
  func.return
}
// -----
func.func @affine(%n: index) {
  %0 = affine.apply affine_map<(d0)[s0] -> (d0 * 4 + s0 floordiv 2 - 1)>(%n)[%n]
  %1 = affine.min affine_map<(d0) -> (d0, 64)>(%n)
  func.return
}
// -----
func.func @affine_text() attributes {m = [
    affine_map<(d0, d1)[s0] -> (d0 + d1 * -2 + s0 - 1)>,
    affine_map<(i, j) -> (-i + j, (i + j) * 3, -(i + 1))>,
    affine_map<(i) -> (i floordiv 64, i mod 64, i ceildiv 2)>,
    affine_map<(i) -> (i - i, 0 * i, 1 * i, i * 2 * 3)>,
    affine_map<(i)[s] -> (4 + i, s + i, s * 2 + i, 32 * (s + 1) - i - 1)>,
    affine_map<() -> ()>, affine_map<() -> (7)>,
    affine_map<(i)[s] -> (i * s, i floordiv s, i mod (s + 1))>,
    affine_map<(i) -> ((i * 128) floordiv 64, (i * 4 + 2) mod 2, (i mod 8) mod 4)>
  ], s = [
    affine_set<(i)[g] : (i - 32 * g >= 0, -i + 32 * (g + 1) - 1 >= 0)>,
    affine_set<(i) : (i <= 5, i >= 0)>, affine_set<(i) : (i == 3)>,
    affine_set<() : (0 == 0)>, affine_set<(i, j) : (i + j <= 4, 2 * i - j >= -3)>
  ]} {
  func.return
}
// -----
func.func @block_arguments(%c: i1) -> i32 {
  %0 = arith.constant 1 : i32
  cf.cond_br %c, ^bb1(%0 : i32), ^bb2
^bb1(%a: i32):
  func.return %a : i32
^bb2:
  cf.br ^bb1(%0 : i32)
}
// -----
func.func @nested_names(%x: index) {
  %x_1 = arith.addi %x, %x : index
  %x_1_2 = arith.addi %x_1, %x : index
  %0 = arith.addi %x_1_2, %x_1 : index
  scf.for %i = %x to %x_1 step %x_1 {
    %1 = arith.addi %i, %0 : index
  }
  scf.for %i = %x to %x_1 step %x_1 {
    %1 = arith.addi %i, %0 : index
  }
  func.return
}
// -----
func.func @types(%a: tensor<*xf32>, %b: vector<4xf32>, %c: complex<f32>, %d: tuple<i32, f32>, %e: memref<4xf32, strided<[2], offset: 1>>, %f: tensor<?x0xi1>, %g: si32, %h: ui8, %i: none, %j: f8E4M3FN, %k: (i32) -> f32) {
  func.return
}
// -----
#alias = affine_map<(d0) -> (d0)>
!t = tensor<4xf32>
func.func @aliases(%a: !t) -> !t attributes {map = #alias} {
  func.return %a : !t
}
