func.func @constants() {
  %0 = arith.constant 0 : index
  %1 = arith.constant -7 : i32
  %2 = arith.constant true
  %3 = arith.constant 1.0 : f32
  %4 = arith.constant 0.1 : f16
  %5 = arith.constant 3.14159274 : f32
  %6 = arith.constant 0xFC00 : f16
  %7 = arith.constant 0xFF800000 : f32
  %8 = arith.constant 0x7F80 : bf16
  %9 = arith.constant 1.0e-10 : f64
  func.return
}
// -----
func.func @dense() {
  %0 = arith.constant dense<0xFF800000> : tensor<4xf32>
  %1 = arith.constant dense<[0xFC00, 1.0]> : tensor<2xf16>
  %2 = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %3 = arith.constant dense<[true, false]> : tensor<2xi1>
  %4 = arith.constant dense<[2, 4]> : tensor<2xindex>
  %5 = arith.constant dense<0.0> : tensor<4x4xbf16>
  %6 = arith.constant dense<> : tensor<0xf32>
  %7 = arith.constant dense<-1> : tensor<3xi64>
  %8 = arith.constant dense<5.0> : tensor<f32>
  func.return
}
// -----
func.func @dense_hex() {
  %0 = arith.constant dense<"0x0000803F000000400000404000008040"> : tensor<4xf32>
  func.return
}
// -----
func.func @cmpf_scalar(%a: f32, %b: f32) -> i1 {
  %0 = arith.cmpf olt, %a, %b : f32
  func.return %0 : i1
}
// -----
func.func @cmpf_tensor(%a: tensor<4xf16>, %b: tensor<4xf16>) -> tensor<4xi1> {
  %0 = arith.cmpf une, %a, %b : tensor<4xf16>
  func.return %0 : tensor<4xi1>
}
// -----
func.func @cmpf_fastmath(%a: f32, %b: f32) -> i1 {
  %0 = arith.cmpf oeq, %a, %b fastmath<nnan> : f32
  func.return %0 : i1
}
// -----
func.func @cmpi(%a: tensor<2x3xi64>, %b: tensor<2x3xi64>, %c: index) -> tensor<2x3xi1> {
  %0 = arith.cmpi sge, %a, %b : tensor<2x3xi64>
  %1 = arith.cmpi ult, %c, %c : index
  func.return %0 : tensor<2x3xi1>
}
// -----
func.func @select(%c: i1, %m: tensor<4xi1>, %a: tensor<4xf32>, %x: f16) -> tensor<4xf32> {
  %0 = arith.select %c, %a, %a : tensor<4xf32>
  %1 = arith.select %m, %0, %a : tensor<4xi1>, tensor<4xf32>
  %2 = arith.select %c, %x, %x : f16
  func.return %1 : tensor<4xf32>
}
// -----
func.func @casts_scalar(%i: i32, %f: f16, %x: index) {
  %0 = arith.sitofp %i : i32 to f32
  %1 = arith.uitofp %i : i32 to f16
  %2 = arith.fptosi %f : f16 to i64
  %3 = arith.fptoui %f : f16 to i8
  %4 = arith.extsi %i : i32 to i64
  %5 = arith.extui %i : i32 to i64
  %6 = arith.trunci %i : i32 to i8
  %7 = arith.extf %f : f16 to f32
  %8 = arith.truncf %7 : f32 to bf16
  %9 = arith.index_cast %x : index to i32
  %10 = arith.index_cast %i : i32 to index
  %11 = arith.index_castui %x : index to i64
  %12 = arith.bitcast %f : f16 to i16
  func.return
}
// -----
func.func @casts_tensor(%i: tensor<4xi32>, %f: tensor<4xf16>, %x: tensor<4xindex>) {
  %0 = arith.sitofp %i : tensor<4xi32> to tensor<4xf32>
  %1 = arith.uitofp %i : tensor<4xi32> to tensor<4xf16>
  %2 = arith.fptosi %f : tensor<4xf16> to tensor<4xi64>
  %3 = arith.fptoui %f : tensor<4xf16> to tensor<4xi8>
  %4 = arith.extsi %i : tensor<4xi32> to tensor<4xi64>
  %5 = arith.extui %i : tensor<4xi32> to tensor<4xi64>
  %6 = arith.trunci %i : tensor<4xi32> to tensor<4xi8>
  %7 = arith.extf %f : tensor<4xf16> to tensor<4xf32>
  %8 = arith.truncf %7 : tensor<4xf32> to tensor<4xbf16>
  %9 = arith.index_cast %x : tensor<4xindex> to tensor<4xi32>
  %10 = arith.index_castui %i : tensor<4xi32> to tensor<4xindex>
  %11 = arith.bitcast %f : tensor<4xf16> to tensor<4xi16>
  func.return
}
// -----
func.func @float_binary(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  %1 = arith.subf %0, %b : f32
  %2 = arith.mulf %1, %b fastmath<fast> : f32
  %3 = arith.divf %2, %b : f32
  %4 = arith.maximumf %3, %b : f32
  %5 = arith.minimumf %4, %b : f32
  %6 = arith.maxnumf %5, %b : f32
  %7 = arith.minnumf %6, %b : f32
  %8 = arith.negf %7 : f32
  %9 = arith.remf %8, %b : f32
  func.return %9 : f32
}
// -----
func.func @int_binary(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.subi %0, %b : i32
  %2 = arith.muli %1, %b : i32
  %3 = arith.divsi %2, %b : i32
  %4 = arith.divui %3, %b : i32
  %5 = arith.ceildivsi %4, %b : i32
  %6 = arith.ceildivui %5, %b : i32
  %7 = arith.floordivsi %6, %b : i32
  %8 = arith.remsi %7, %b : i32
  %9 = arith.remui %8, %b : i32
  %10 = arith.andi %9, %b : i32
  %11 = arith.ori %10, %b : i32
  %12 = arith.xori %11, %b : i32
  %13 = arith.shli %12, %b : i32
  %14 = arith.shrsi %13, %b : i32
  %15 = arith.shrui %14, %b : i32
  %16 = arith.maxsi %15, %b : i32
  %17 = arith.minsi %16, %b : i32
  %18 = arith.maxui %17, %b : i32
  %19 = arith.minui %18, %b : i32
  %20 = arith.addi %19, %b overflow<nsw> : i32
  func.return %20 : i32
}
// -----
func.func @extended(%a: i32) -> i32 {
  %0, %1 = arith.addui_extended %a, %a : i32, i1
  %2, %3 = arith.mulsi_extended %a, %a : i32
  func.return %0 : i32
}
// -----
func.func @math(%a: tensor<4xf32>, %b: f16, %i: i32) -> tensor<4xf32> {
  %0 = math.exp %a : tensor<4xf32>
  %1 = math.exp2 %0 : tensor<4xf32>
  %2 = math.log %1 : tensor<4xf32>
  %3 = math.sqrt %2 : tensor<4xf32>
  %4 = math.rsqrt %3 : tensor<4xf32>
  %5 = math.tanh %4 : tensor<4xf32>
  %6 = math.erf %5 : tensor<4xf32>
  %7 = math.sin %6 : tensor<4xf32>
  %8 = math.cos %7 : tensor<4xf32>
  %9 = math.absf %8 : tensor<4xf32>
  %10 = math.ceil %9 : tensor<4xf32>
  %11 = math.floor %10 : tensor<4xf32>
  %12 = math.powf %11, %10 : tensor<4xf32>
  %13 = math.fma %12, %11, %10 : tensor<4xf32>
  %14 = math.log1p %13 : tensor<4xf32>
  %15 = math.log2 %14 : tensor<4xf32>
  %16 = math.roundeven %15 : tensor<4xf32>
  %17 = math.absi %i : i32
  %18 = math.expm1 %16 : tensor<4xf32>
  %19 = math.trunc %18 : tensor<4xf32>
  %20 = math.round %19 : tensor<4xf32>
  %21 = math.atan2 %20, %19 : tensor<4xf32>
  %22 = math.copysign %21, %20 : tensor<4xf32>
  func.return %22 : tensor<4xf32>
}
