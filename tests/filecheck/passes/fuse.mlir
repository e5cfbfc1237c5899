// RUN: ktir-opt -p ktir-fuse %s | filecheck %s

// A point-wise operation joins the kernel of its only consumer.
// CHECK:     @chain
// CHECK:     ktg.kernel
// CHECK:     arith.negf
// CHECK-NOT: ktg.kernel
// CHECK:     arith.addf
// CHECK:     return
func.func @chain(%x: tensor<67x1000xf16>) -> tensor<67x1000xf16> {
  %e = tensor.empty() : tensor<67x1000xf16>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<67x1000xf16>) outs(%e : tensor<67x1000xf16>) {
  ^bb0(%i: f16, %o: f16):
    %n = arith.negf %i : f16
    linalg.yield %n : f16
  } -> tensor<67x1000xf16>
  %f = tensor.empty() : tensor<67x1000xf16>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<67x1000xf16>) outs(%f : tensor<67x1000xf16>) {
  ^bb0(%i: f16, %o: f16):
    %n = arith.addf %i, %i : f16
    linalg.yield %n : f16
  } -> tensor<67x1000xf16>
  func.return %b : tensor<67x1000xf16>
}

// A view of an argument that is returned is copied by a kernel.
// CHECK:     @view
// CHECK:     ktg.kernel
// CHECK:     tensor.extract_slice
// CHECK:     return
func.func @view(%x: tensor<9x70xf16>) -> tensor<3x70xf16> {
  %a = tensor.extract_slice %x[2, 0] [3, 70] [1, 1] : tensor<9x70xf16> to tensor<3x70xf16>
  func.return %a : tensor<3x70xf16>
}
