func.func @isnan(%a: f32) -> i1 { %0 = math.isnan %a : f32 func.return %0 : i1 }
// -----
func.func @isinf(%a: tensor<4xf16>) -> tensor<4xi1> { %0 = math.isinf %a : tensor<4xf16> func.return %0 : tensor<4xi1> }
// -----
func.func @isfinite(%a: tensor<?xf32>) -> tensor<?xi1> { %0 = math.isfinite %a : tensor<?xf32> func.return %0 : tensor<?xi1> }
// -----
func.func @isnormal(%a: bf16) -> i1 { %0 = math.isnormal %a : bf16 func.return %0 : i1 }
// -----
func.func @erfc(%a: tensor<4xf32>) { %0 = math.erfc %a : tensor<4xf32> func.return }
// -----
func.func @clampf(%a: tensor<4xf32>) { %0 = math.clampf %a to [%a, %a] : tensor<4xf32> func.return }
// -----
func.func @clampf_fastmath(%a: f32) { %0 = math.clampf %a to [%a, %a] fastmath<nnan> : f32 func.return }
// -----
func.func @exp_fastmath(%a: f32) { %0 = math.exp %a fastmath<fast> : f32 func.return }
// -----
func.func @fpowi(%a: tensor<4xf32>, %b: tensor<4xi32>) { %0 = math.fpowi %a, %b : tensor<4xf32>, tensor<4xi32> func.return }
// -----
func.func @ipowi(%a: i32) { %0 = math.ipowi %a, %a : i32 func.return }
// -----
func.func @ctlz(%a: tensor<4xi32>) { %0 = math.ctlz %a : tensor<4xi32> %1 = math.cttz %a : tensor<4xi32> %2 = math.ctpop %a : tensor<4xi32> func.return }
// -----
func.func @trigonometry(%a: f32) { %0 = math.tan %a : f32 %1 = math.asin %a : f32 %2 = math.acos %a : f32 %3 = math.atan %a : f32 func.return }
// -----
func.func @hyperbolic(%a: f32) { %0 = math.sinh %a : f32 %1 = math.cosh %a : f32 %2 = math.asinh %a : f32 %3 = math.acosh %a : f32 %4 = math.atanh %a : f32 func.return }
// -----
func.func @cbrt(%a: tensor<4xf32>) { %0 = math.cbrt %a : tensor<4xf32> func.return }
// -----
func.func @log10(%a: f64) { %0 = math.log10 %a : f64 func.return }
// -----
func.func @sincos(%a: f32) { %0, %1 = math.sincos %a : f32 func.return }
// -----
func.func @absi(%a: tensor<4xi64>) { %0 = math.absi %a : tensor<4xi64> func.return }
// -----
func.func @fma_vector(%a: vector<4xf32>) { %0 = math.fma %a, %a, %a fastmath<contract> : vector<4xf32> func.return }
// -----
func.func @powf_bf16(%a: tensor<2x2xbf16>) { %0 = math.powf %a, %a : tensor<2x2xbf16> func.return }
// -----
func.func @rsqrt_index_order(%a: tensor<4xf32>) { %0 = math.rsqrt %a {b.x, a.y} : tensor<4xf32> func.return }
