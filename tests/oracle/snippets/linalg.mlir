func.func @reduce_two(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>, %x: tensor<4xf32>, %y: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0:2 = linalg.reduce ins(%a, %b : tensor<4x8xf32>, tensor<4x8xi32>) outs(%x, %y : tensor<4xf32>, tensor<4xi32>) dimensions = [1]
    (%in: f32, %in_0: i32, %init: f32, %init_1: i32) {
      %c = arith.cmpf ogt, %in, %init : f32
      %m = arith.select %c, %in, %init : f32
      %i = arith.select %c, %in_0, %init_1 : i32
      linalg.yield %m, %i : f32, i32
    }
  func.return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}
// -----
func.func @reduce_memref(%a: memref<4x8xf32>, %x: memref<4xf32>) {
  linalg.reduce { arith.addf } ins(%a : memref<4x8xf32>) outs(%x : memref<4xf32>) dimensions = [1]
  func.return
}
// -----
func.func @reduce_fastmath(%a: tensor<4x8xf32>, %x: tensor<4xf32>) {
  %0 = linalg.reduce { arith.addf {fastmath = #arith.fastmath<fast>} } ins(%a : tensor<4x8xf32>) outs(%x : tensor<4xf32>) dimensions = [1]
  func.return
}
// -----
func.func @reduce_integer(%a: tensor<4x8xi64>, %x: tensor<8xi64>) {
  %0 = linalg.reduce { arith.maxsi } ins(%a : tensor<4x8xi64>) outs(%x : tensor<8xi64>) dimensions = [0]
  func.return
}
// -----
func.func @reduce_overflow(%a: tensor<4x8xi64>, %x: tensor<8xi64>) {
  %0 = linalg.reduce { arith.addi {overflowFlags = #arith.overflow<none>} } ins(%a : tensor<4x8xi64>) outs(%x : tensor<8xi64>) dimensions = [0]
  func.return
}
// -----
func.func @reduce_dynamic(%a: tensor<?x8x4xf16>, %x: tensor<?xf16>) {
  %0 = linalg.reduce { arith.minimumf } ins(%a : tensor<?x8x4xf16>) outs(%x : tensor<?xf16>) dimensions = [1, 2]
  func.return
}
// -----
func.func @softmax(%a: tensor<2x16x32xf32>, %o: tensor<2x16x32xf32>) -> tensor<2x16x32xf32> {
  %0 = linalg.softmax dimension(2) ins(%a : tensor<2x16x32xf32>) outs(%o : tensor<2x16x32xf32>) -> tensor<2x16x32xf32>
  func.return %0 : tensor<2x16x32xf32>
}
// -----
func.func @softmax_memref(%a: memref<16x32xf32>, %o: memref<16x32xf32>) {
  linalg.softmax dimension(1) ins(%a : memref<16x32xf32>) outs(%o : memref<16x32xf32>)
  func.return
}
// -----
func.func @map_short(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.map { arith.addf } ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>)
  func.return %0 : tensor<4xf32>
}
// -----
func.func @map_unary(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.map { math.exp } ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>)
  func.return %0 : tensor<4xf32>
}
// -----
func.func @map_long(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.map ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>)
    (%in: f32, %init: f32) {
      %1 = arith.mulf %in, %in : f32
      %2 = arith.addf %1, %in : f32
      linalg.yield %2 : f32
    }
  func.return %0 : tensor<4xf32>
}
// -----
func.func @map_no_input(%o: tensor<4xindex>) -> tensor<4xindex> {
  %0 = linalg.map outs(%o : tensor<4xindex>)
    (%init: index) {
      %1 = linalg.index 0 : index
      linalg.yield %1 : index
    }
  func.return %0 : tensor<4xindex>
}
// -----
func.func @map_memref(%a: memref<4xf32>, %o: memref<4xf32>) {
  linalg.map { math.absf } ins(%a : memref<4xf32>) outs(%o : memref<4xf32>)
  func.return
}
// -----
func.func @matmul_mixed_cast(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>, %c: tensor<4x2xi32>) {
  %0 = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %b : tensor<4x8xi8>, tensor<8x2xi8>) outs(%c : tensor<4x2xi32>) -> tensor<4x2xi32>
  func.return
}
// -----
func.func @matmul_memref(%a: memref<4x8xf32>, %b: memref<8x2xf32>, %c: memref<4x2xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x2xf32>) outs(%c : memref<4x2xf32>)
  func.return
}
// -----
func.func @matmul_bf16(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>, %c: tensor<4x2xbf16>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xbf16>, tensor<8x2xbf16>) outs(%c : tensor<4x2xbf16>) -> tensor<4x2xbf16>
  func.return
}
// -----
func.func @matmul_narrowing(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf16>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf16>) -> tensor<4x2xf16>
  func.return
}
// -----
func.func @matmul_int_to_float(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>, %c: tensor<4x2xf32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x2xi8>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}
// -----
func.func @matmul_broadcast(%a: tensor<8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) {
  %0 = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%a, %b : tensor<8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}
// -----
func.func @matmul_attributes(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) {
  %0 = linalg.matmul {some.note} ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}
// -----
func.func @batch_matmul_maps(%a: tensor<3x8x4xf32>, %b: tensor<3x8x2xf32>, %c: tensor<3x4x2xf32>) {
  %0 = linalg.batch_matmul indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>] ins(%a, %b : tensor<3x8x4xf32>, tensor<3x8x2xf32>) outs(%c : tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return
}
// -----
func.func @batch_reduce_matmul(%a: tensor<3x4x8xf32>, %b: tensor<3x8x2xf32>, %c: tensor<4x2xf32>) {
  %0 = linalg.batch_reduce_matmul ins(%a, %b : tensor<3x4x8xf32>, tensor<3x8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}
// -----
func.func @matvec(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<4xf32>) {
  %0 = linalg.matvec ins(%a, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%c : tensor<4xf32>) -> tensor<4xf32>
  func.return
}
// -----
func.func @vecmat(%a: tensor<4xf16>, %b: tensor<4x8xf16>, %c: tensor<8xf32>) {
  %0 = linalg.vecmat ins(%a, %b : tensor<4xf16>, tensor<4x8xf16>) outs(%c : tensor<8xf32>) -> tensor<8xf32>
  func.return
}
// -----
func.func @batch_matvec(%a: tensor<3x4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<3x4xf32>) {
  %0 = linalg.batch_matvec ins(%a, %b : tensor<3x4x8xf32>, tensor<3x8xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return
}
// -----
func.func @batch_vecmat(%a: tensor<3x4xf32>, %b: tensor<3x4x8xf32>, %c: tensor<3x8xf32>) {
  %0 = linalg.batch_vecmat ins(%a, %b : tensor<3x4xf32>, tensor<3x4x8xf32>) outs(%c : tensor<3x8xf32>) -> tensor<3x8xf32>
  func.return
}
// -----
func.func @dot(%a: tensor<8xf32>, %c: tensor<f32>) {
  %0 = linalg.dot ins(%a, %a : tensor<8xf32>, tensor<8xf32>) outs(%c : tensor<f32>) -> tensor<f32>
  func.return
}
// -----
func.func @contract(%a: tensor<8x4xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf32>) {
  %0 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%a, %b : tensor<8x4xf16>, tensor<8x2xf16>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}
// -----
func.func @elementwise(%a: tensor<4xf32>, %o: tensor<4xf32>) {
  %0 = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  func.return
}
// -----
func.func @elementwise_binary(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %o: tensor<4x8xf32>) {
  %0 = linalg.elementwise kind=#linalg.elementwise_kind<add> indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>] ins(%a, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return
}
// -----
func.func @div_unsigned(%a: tensor<4xi32>, %o: tensor<4xi32>) {
  %0 = linalg.div_unsigned ins(%a, %a : tensor<4xi32>, tensor<4xi32>) outs(%o : tensor<4xi32>) -> tensor<4xi32>
  func.return
}
// -----
func.func @named_integer(%a: tensor<4xi32>, %o: tensor<4xi32>) {
  %0 = linalg.add ins(%a, %a : tensor<4xi32>, tensor<4xi32>) outs(%o : tensor<4xi32>) -> tensor<4xi32>
  %1 = linalg.max ins(%a, %a : tensor<4xi32>, tensor<4xi32>) outs(%o : tensor<4xi32>) -> tensor<4xi32>
  %2 = linalg.div ins(%a, %a : tensor<4xi32>, tensor<4xi32>) outs(%o : tensor<4xi32>) -> tensor<4xi32>
  func.return
}
// -----
func.func @named_memref(%a: memref<4xf32>, %o: memref<4xf32>) {
  linalg.exp ins(%a : memref<4xf32>) outs(%o : memref<4xf32>)
  linalg.add ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
  func.return
}
// -----
func.func @named_boolean(%a: tensor<4xi1>, %o: tensor<4xi1>) {
  %0 = linalg.mul ins(%a, %a : tensor<4xi1>, tensor<4xi1>) outs(%o : tensor<4xi1>) -> tensor<4xi1>
  %1 = linalg.add ins(%a, %a : tensor<4xi1>, tensor<4xi1>) outs(%o : tensor<4xi1>) -> tensor<4xi1>
  func.return
}
// -----
func.func @select(%c: tensor<4xi1>, %a: tensor<4xf32>, %o: tensor<4xf32>) {
  %0 = linalg.select ins(%c, %a, %a : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  func.return
}
// -----
func.func @copy_cast(%a: tensor<4xf16>, %o: tensor<4xf32>) {
  %0 = linalg.copy ins(%a : tensor<4xf16>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  func.return
}
// -----
func.func @fill_memref(%x: f32, %o: memref<4xf32>) {
  linalg.fill ins(%x : f32) outs(%o : memref<4xf32>)
  func.return
}
// -----
func.func @fill_index(%x: i64, %o: tensor<4x?xi64>) {
  %0 = linalg.fill ins(%x : i64) outs(%o : tensor<4x?xi64>) -> tensor<4x?xi64>
  func.return
}
// -----
func.func @transpose_memref(%a: memref<4x8xf32>, %o: memref<8x4xf32>) {
  linalg.transpose ins(%a : memref<4x8xf32>) outs(%o : memref<8x4xf32>) permutation = [1, 0]
  func.return
}
// -----
func.func @broadcast_memref(%a: memref<8xf32>, %o: memref<4x8xf32>) {
  linalg.broadcast ins(%a : memref<8xf32>) outs(%o : memref<4x8xf32>) dimensions = [0]
  func.return
}
// -----
func.func @transpose_attributes(%a: tensor<4x8xf32>, %o: tensor<8x4xf32>) {
  %0 = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%o : tensor<8x4xf32>) permutation = [1, 0] {some.note = 1 : i64}
  func.return
}
// -----
func.func @generic_attributes(%a: tensor<4xf32>, %o: tensor<4xf32>) {
  %0 = linalg.generic {doc = "text", indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], library_call = "call"} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) attrs =  {some.note} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  func.return
}
// -----
func.func @generic_scalar(%a: f32, %o: tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : f32) outs(%o : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  func.return
}
// -----
func.func @generic_zero_dims(%a: tensor<f32>, %o: tensor<f32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%a : tensor<f32>) outs(%o : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<f32>
  func.return
}
// -----
func.func @generic_reduction(%a: tensor<4x8xf32>, %o: tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<4x8xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %out, %in : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  func.return
}
// -----
func.func @generic_strided(%a: tensor<8xf32>, %o: tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 * 2)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  func.return
}
// -----
func.func @generic_constant_index(%a: tensor<1x4xf32>, %o: tensor<3x4xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<1x4xf32>) outs(%o : tensor<3x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x4xf32>
  func.return
}
// -----
func.func @conv(%a: tensor<1x8x8x4xf32>, %k: tensor<3x3x4x2xf32>, %o: tensor<1x6x6x2xf32>) {
  %0 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%a, %k : tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) outs(%o : tensor<1x6x6x2xf32>) -> tensor<1x6x6x2xf32>
  func.return
}
// -----
func.func @pack(%a: tensor<128x256xf32>, %b: tensor<16x4x32x16xf32>) -> tensor<16x4x32x16xf32> {
  %0 = linalg.pack %a outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [32, 16] into %b : tensor<128x256xf32> -> tensor<16x4x32x16xf32>
  func.return %0 : tensor<16x4x32x16xf32>
}
// -----
func.func @pack_padded(%a: tensor<?x250xf32>, %b: tensor<?x16x?x16xf32>, %t: index, %p: f32) {
  %0 = linalg.pack %a padding_value(%p : f32) inner_dims_pos = [0, 1] inner_tiles = [%t, 16] into %b {x = 1 : i32} : tensor<?x250xf32> -> tensor<?x16x?x16xf32>
  func.return
}
// -----
func.func @unpack(%a: tensor<4x16x16x32xf32>, %b: tensor<128x250xf32>, %t: index) {
  %0 = linalg.unpack %a inner_dims_pos = [1, 0] inner_tiles = [16, 32] into %b : tensor<4x16x16x32xf32> -> tensor<128x250xf32>
  func.return
}
// -----
func.func @pack_buffers(%a: memref<128xf32>, %b: memref<4x32xf32>) {
  linalg.pack %a inner_dims_pos = [0] inner_tiles = [32] into %b : memref<128xf32> -> memref<4x32xf32>
  linalg.unpack %b inner_dims_pos = [0] inner_tiles = [32] into %a : memref<4x32xf32> -> memref<128xf32>
  func.return
}
