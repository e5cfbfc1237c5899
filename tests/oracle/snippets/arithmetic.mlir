func.func @truncf_rounding(%a: f32) { %0 = arith.truncf %a to_nearest_even : f32 to f16 func.return }
// -----
func.func @truncf_downward(%a: tensor<4xf32>) { %0 = arith.truncf %a downward : tensor<4xf32> to tensor<4xbf16> func.return }
// -----
func.func @truncf_fastmath(%a: f32) { %0 = arith.truncf %a fastmath<contract> : f32 to f16 func.return }
// -----
func.func @extf_fastmath(%a: f16) { %0 = arith.extf %a fastmath<fast> : f16 to f32 func.return }
// -----
func.func @trunci_overflow(%a: i32) { %0 = arith.trunci %a overflow<nsw, nuw> : i32 to i8 func.return }
// -----
func.func @extui_nneg(%a: tensor<4xi8>) { %0 = arith.extui %a nneg : tensor<4xi8> to tensor<4xi32> func.return }
// -----
func.func @uitofp_nneg(%a: i8) { %0 = arith.uitofp %a nneg {note} : i8 to f32 func.return }
// -----
func.func @divui_exact(%a: index) { %0 = arith.divui %a, %a exact : index func.return }
// -----
func.func @divsi_exact(%a: tensor<4xi32>) { %0 = arith.divsi %a, %a exact : tensor<4xi32> func.return }
// -----
func.func @shrui_exact(%a: i64) { %0 = arith.shrui %a, %a exact {note} : i64 func.return }
// -----
func.func @shrsi_exact(%a: tensor<4xi16>) { %0 = arith.shrsi %a, %a exact : tensor<4xi16> func.return }
// -----
func.func @addi_overflow(%a: tensor<2xi32>) { %0 = arith.addi %a, %a overflow<nsw, nuw> : tensor<2xi32> func.return }
// -----
func.func @subi_overflow(%a: i64) { %0 = arith.subi %a, %a overflow<nuw> : i64 func.return }
// -----
func.func @muli_overflow(%a: index) { %0 = arith.muli %a, %a overflow<nsw> : index func.return }
// -----
func.func @shli_overflow(%a: i32) { %0 = arith.shli %a, %a overflow<nsw> : i32 func.return }
// -----
func.func @remf(%a: tensor<4xf32>) { %0 = arith.remf %a, %a : tensor<4xf32> func.return }
// -----
func.func @remf_fastmath(%a: f32) { %0 = arith.remf %a, %a fastmath<ninf> : f32 func.return }
// -----
func.func @index_castui(%a: tensor<4xindex>) { %0 = arith.index_castui %a : tensor<4xindex> to tensor<4xi64> func.return }
// -----
func.func @index_castui_to_index(%a: i32) { %0 = arith.index_castui %a : i32 to index func.return }
// -----
func.func @negf_tensor(%a: tensor<4xbf16>) { %0 = arith.negf %a fastmath<nsz> : tensor<4xbf16> func.return }
// -----
func.func @addui_extended(%a: tensor<4xi32>) { %0, %1 = arith.addui_extended %a, %a : tensor<4xi32>, tensor<4xi1> func.return }
// -----
func.func @mulsi_extended(%a: i32) { %0, %1 = arith.mulsi_extended %a, %a : i32 func.return }
// -----
func.func @mului_extended(%a: tensor<4xi32>) { %low, %high = arith.mului_extended %a, %a : tensor<4xi32> func.return }
// -----
func.func @select_vector(%c: vector<4xi1>, %a: vector<4xf32>) { %0 = arith.select %c, %a, %a : vector<4xi1>, vector<4xf32> func.return }
// -----
func.func @select_index(%c: i1, %a: index) { %0 = arith.select %c, %a, %a : index func.return }
// -----
func.func @select_memref(%c: i1, %a: memref<4xf32>) { %0 = arith.select %c, %a, %a : memref<4xf32> func.return }
// -----
func.func @select_dynamic(%c: tensor<?xi1>, %a: tensor<?xf32>) { %0 = arith.select %c, %a, %a : tensor<?xi1>, tensor<?xf32> func.return }
// -----
func.func @cmpf_all(%a: f16) { %0 = arith.cmpf false, %a, %a : f16 %1 = arith.cmpf ord, %a, %a : f16 %2 = arith.cmpf ueq, %a, %a : f16 %3 = arith.cmpf true, %a, %a : f16 func.return }
// -----
func.func @cmpf_dynamic(%a: tensor<?x4xf32>) -> tensor<?x4xi1> { %0 = arith.cmpf ule, %a, %a fastmath<fast> : tensor<?x4xf32> func.return %0 : tensor<?x4xi1> }
// -----
func.func @cmpi_all(%a: i8) { %0 = arith.cmpi eq, %a, %a : i8 %1 = arith.cmpi ne, %a, %a : i8 %2 = arith.cmpi slt, %a, %a : i8 %3 = arith.cmpi uge, %a, %a : i8 func.return }
// -----
func.func @cmpi_index_tensor(%a: tensor<4xindex>) -> tensor<4xi1> { %0 = arith.cmpi slt, %a, %a : tensor<4xindex> func.return %0 : tensor<4xi1> }
// -----
func.func @bitcast_tensor(%a: tensor<4xi32>) { %0 = arith.bitcast %a : tensor<4xi32> to tensor<4xf32> func.return }
// -----
func.func @sitofp_dynamic(%a: tensor<?xi64>) { %0 = arith.sitofp %a : tensor<?xi64> to tensor<?xf16> func.return }
// -----
func.func @uitofp_boolean(%a: tensor<4xi1>) { %0 = arith.uitofp %a : tensor<4xi1> to tensor<4xf32> func.return }
// -----
func.func @extui_boolean(%a: tensor<4xi1>) { %0 = arith.extui %a : tensor<4xi1> to tensor<4xi32> func.return }
// -----
func.func @fptosi_vector(%a: vector<4xf32>) { %0 = arith.fptosi %a : vector<4xf32> to vector<4xi32> func.return }
// -----
func.func @int_tensor_binary(%a: tensor<4xi64>) { %0 = arith.ceildivsi %a, %a : tensor<4xi64> %1 = arith.floordivsi %a, %a : tensor<4xi64> %2 = arith.ceildivui %a, %a : tensor<4xi64> func.return }
// -----
func.func @exact(%a: i32) { %0 = arith.divsi %a, %a {some.flag} : i32 func.return }
// -----
func.func @discardable(%a: f32) { %0 = arith.addf %a, %a {some.note = "x"} : f32 func.return }
// -----
func.func @fastmath_several(%a: f32) { %0 = arith.mulf %a, %a fastmath<nnan,ninf> : f32 func.return }
// -----
func.func @fastmath_reassoc(%a: f32) { %0 = arith.addf %a, %a fastmath<reassoc,contract> : f32 func.return }
