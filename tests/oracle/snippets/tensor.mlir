func.func @gather(%a: tensor<7x128xf16>, %i: tensor<1x4x1xindex>) -> tensor<1x4x128xf16> {
  %0 = tensor.gather %a[%i] gather_dims([0]) : (tensor<7x128xf16>, tensor<1x4x1xindex>) -> tensor<1x4x128xf16>
  func.return %0 : tensor<1x4x128xf16>
}
// -----
func.func @gather_unique(%a: tensor<7x128xf16>, %i: tensor<4x1xi32>) -> tensor<4x1x128xf16> {
  %0 = tensor.gather %a[%i] gather_dims([0]) unique : (tensor<7x128xf16>, tensor<4x1xi32>) -> tensor<4x1x128xf16>
  func.return %0 : tensor<4x1x128xf16>
}
// -----
func.func @scatter(%s: tensor<1x4x128xf16>, %d: tensor<7x128xf16>, %i: tensor<1x4x1xindex>) -> tensor<7x128xf16> {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique : (tensor<1x4x128xf16>, tensor<7x128xf16>, tensor<1x4x1xindex>) -> tensor<7x128xf16>
  func.return %0 : tensor<7x128xf16>
}
// -----
func.func @pad_dynamic(%a: tensor<?x8xf32>, %n: index, %f: f32) -> tensor<?x?xf32> {
  %0 = tensor.pad %a low[%n, 0] high[0, %n] {
  ^bb0(%i: index, %j: index):
    tensor.yield %f : f32
  } : tensor<?x8xf32> to tensor<?x?xf32>
  func.return %0 : tensor<?x?xf32>
}
// -----
func.func @pad_nofold(%a: tensor<4xf32>, %f: f32) -> tensor<4xf32> {
  %0 = tensor.pad %a nofold low[0] high[0] {
  ^bb0(%i: index):
    tensor.yield %f : f32
  } : tensor<4xf32> to tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @concat(%a: tensor<4x8xf32>, %b: tensor<4x3xf32>) -> tensor<4x11xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x3xf32>) -> tensor<4x11xf32>
  func.return %0 : tensor<4x11xf32>
}
// -----
func.func @concat_one(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.concat dim(0) %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @generate_static() -> tensor<4xf32> {
  %0 = tensor.generate {
  ^bb0(%i: index):
    %1 = arith.constant 1.0 : f32
    tensor.yield %1 : f32
  } : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @rank(%a: tensor<*xf32>) { %0 = tensor.rank %a : tensor<*xf32> func.return }
// -----
func.func @bitcast(%a: tensor<4xi32>) { %0 = tensor.bitcast %a : tensor<4xi32> to tensor<4xui32> func.return }
// -----
func.func @extract_slice_reduced(%a: tensor<4x8x16xf32>) { %0 = tensor.extract_slice %a[1, 0, 2] [1, 8, 4] [1, 1, 3] : tensor<4x8x16xf32> to tensor<8x4xf32> func.return }
// -----
func.func @extract_slice_dynamic(%a: tensor<?x?xf32>, %n: index) { %0 = tensor.extract_slice %a[%n, 0] [4, %n] [1, %n] : tensor<?x?xf32> to tensor<4x?xf32> func.return }
// -----
func.func @insert_slice_dynamic(%a: tensor<4x?xf32>, %d: tensor<?x?xf32>, %n: index) { %0 = tensor.insert_slice %a into %d[%n, 0] [4, %n] [1, 1] : tensor<4x?xf32> into tensor<?x?xf32> func.return }
// -----
func.func @insert_slice_reduced(%a: tensor<8xf32>, %d: tensor<4x8xf32>) { %0 = tensor.insert_slice %a into %d[2, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32> func.return }
// -----
func.func @collapse_scalar(%a: tensor<1x1xf32>) { %0 = tensor.collapse_shape %a [] : tensor<1x1xf32> into tensor<f32> func.return }
// -----
func.func @collapse_dynamic(%a: tensor<?x4x?xf32>) { %0 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x4x?xf32> into tensor<?x?xf32> func.return }
// -----
func.func @expand_scalar(%a: tensor<f32>) { %0 = tensor.expand_shape %a [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32> func.return }
// -----
func.func @expand_dynamic(%a: tensor<?xf32>, %n: index) { %0 = tensor.expand_shape %a [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32> func.return }
// -----
func.func @reshape(%a: tensor<4x8xf32>, %s: tensor<1xindex>) { %0 = tensor.reshape %a(%s) : (tensor<4x8xf32>, tensor<1xindex>) -> tensor<32xf32> func.return }
// -----
func.func @splat(%f: f32) { %0 = tensor.splat %f : tensor<4x8xf32> func.return }
// -----
func.func @splat_dynamic(%f: f32, %n: index) { %0 = tensor.splat %f[%n] : tensor<?x8xf32> func.return }
// -----
func.func @from_elements(%f: f32) { %0 = tensor.from_elements %f, %f, %f : tensor<3xf32> func.return }
// -----
func.func @from_elements_scalar(%f: f32) { %0 = tensor.from_elements %f : tensor<f32> func.return }
// -----
func.func @dim(%a: tensor<?x4xf32>, %n: index) { %0 = tensor.dim %a, %n : tensor<?x4xf32> func.return }
// -----
func.func @cast(%a: tensor<4x8xf32>) { %0 = tensor.cast %a : tensor<4x8xf32> to tensor<?x?xf32> func.return }
// -----
func.func @empty_dynamic(%n: index) { %0 = tensor.empty(%n, %n) : tensor<?x4x?xf16> func.return }
// -----
func.func @empty_encoded() { %0 = tensor.empty() : tensor<4xf16, "layout"> func.return }
// -----
func.func @extract(%a: tensor<4x8xf32>, %n: index) { %0 = tensor.extract %a[%n, %n] : tensor<4x8xf32> func.return }
// -----
func.func @extract_scalar(%a: tensor<f32>) { %0 = tensor.extract %a[] : tensor<f32> func.return }
// -----
func.func @insert(%f: f32, %a: tensor<4xf32>, %n: index) { %0 = tensor.insert %f into %a[%n] : tensor<4xf32> func.return }
// -----
func.func @parallel_insert(%a: tensor<4xf32>, %n: index) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %0 = scf.forall (%i) in (4) shared_outs(%o = %e) -> (tensor<16xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %a into %o[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  func.return %0 : tensor<16xf32>
}
