func.func @named_abs(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.abs ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_ceil(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.ceil ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_floor(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.floor ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_negf(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.negf ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_reciprocal(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.reciprocal ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_round(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.round ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_rsqrt(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.rsqrt ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_square(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.square ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_tanh(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.tanh ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_erf(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.erf ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_exp(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.exp ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_log(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.log ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_sqrt(%a: tensor<2x4xf16>, %o: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %0 = linalg.sqrt ins(%a : tensor<2x4xf16>) outs(%o : tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %0 : tensor<2x4xf16>
}
// -----
func.func @named_add(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.add ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
// -----
func.func @named_sub(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.sub ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
// -----
func.func @named_mul(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.mul ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
// -----
func.func @named_div(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.div ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
// -----
func.func @named_max(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.max ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
// -----
func.func @named_min(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.min ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
// -----
func.func @named_powf(%a: tensor<?x4xf16>, %o: tensor<?x4xf16>) -> tensor<?x4xf16> {
  %0 = linalg.powf ins(%a, %a : tensor<?x4xf16>, tensor<?x4xf16>) outs(%o : tensor<?x4xf16>) -> tensor<?x4xf16>
  func.return %0 : tensor<?x4xf16>
}
