// RUN: ktir-opt -p ktir-fuse,ktir-assign-layout,ktir-split-cores,ktir-tile,ktir-lower-to-ktdp,ktir-allocate-global %s | filecheck %s

// Four blocks of rows by eight blocks of two sticks. A block is loaded in whole sticks.
// CHECK:      func.func @pointwise_0
// CHECK-SAME: grid = [32]
// CHECK:      ktdp.load {{.*}} -> tensor<17x2x64xf16>
// CHECK:      tensor.collapse_shape {{.*}} into tensor<17x128xf16>
// CHECK:      ktdp.store
// The cores that own the last columns cut off what lies beyond them, and fill the stick with zeros before the store.
// CHECK:      scf.if
// CHECK:      ktdp.load {{.*}} -> tensor<17x2x64xf16>
// CHECK:      tensor.extract_slice {{.*}} to tensor<17x104xf16>
// CHECK:      linalg.generic
// CHECK:      tensor.insert_slice {{.*}} into tensor<17x128xf16>
// CHECK:      ktdp.store
// The last block of rows is shorter.
// CHECK:      scf.if
// CHECK:      ktdp.load {{.*}} -> tensor<16x2x64xf16>

// CHECK:      func.func @main
// CHECK:      memref.alloc() {{.*}}ktdp.address = 0 : i64
// CHECK:      ktg.transfer
// CHECK:      call @pointwise_0
// CHECK:      ktg.transfer
func.func @main(%x: tensor<67x1000xf16> {ktg.name = "x"}) -> tensor<67x1000xf16> {
  %e = tensor.empty() : tensor<67x1000xf16>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<67x1000xf16>) outs(%e : tensor<67x1000xf16>) {
  ^bb0(%i: f16, %o: f16):
    %n = arith.negf %i : f16
    linalg.yield %n : f16
  } -> tensor<67x1000xf16>
  func.return %a : tensor<67x1000xf16>
}
