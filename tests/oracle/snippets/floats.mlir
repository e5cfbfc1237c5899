func.func @f8() { %0 = arith.constant 1.5 : f8E4M3FN %1 = arith.constant 0.25 : f8E5M2 func.return }
// -----
func.func @f8_dense() { %0 = arith.constant dense<[1.5, -2.0]> : tensor<2xf8E4M3FN> func.return }
// -----
func.func @hex_negative_infinity_bf16() { %0 = arith.constant dense<0xFF80> : tensor<4xbf16> func.return }
// -----
func.func @hex_nan() { %0 = arith.constant 0x7FC00000 : f32 func.return }
// -----
func.func @hex_in_list() { %0 = arith.constant dense<[0x7F800000, 1.0, 0xFF800000]> : tensor<3xf32> func.return }
// -----
func.func @hex_in_nested_list() { %0 = arith.constant dense<[[0x3C00, 0xBC00], [0x0001, 0x8000]]> : tensor<2x2xf16> func.return }
// -----
func.func @hex_f64() { %0 = arith.constant 0x7FF0000000000000 : f64 func.return }
// -----
func.func @hex_f64_dense() { %0 = arith.constant dense<0xFFF0000000000000> : tensor<2xf64> func.return }
// -----
func.func @hex_integer_dense() { %0 = arith.constant dense<[0x10, 0xFF]> : tensor<2xi32> func.return }
// -----
func.func @negative_zero() { %0 = arith.constant -0.0 : f32 func.return }
// -----
func.func @smallest_half() { %0 = arith.constant 5.960464e-08 : f16 func.return }
// -----
func.func @largest_half() { %0 = arith.constant 65504.0 : f16 func.return }
// -----
func.func @third() { %0 = arith.constant 0.333333343 : f32 %1 = arith.constant 0.33333333333333331 : f64 func.return }
// -----
func.func @large() { %0 = arith.constant 1.0e+30 : f32 %1 = arith.constant 123456789.0 : f32 %2 = arith.constant 1.0e+300 : f64 func.return }
// -----
func.func @float_list_dense() { %0 = arith.constant dense<[[0.1, 0.2], [3.0, -4.5e-5]]> : tensor<2x2xf32> func.return }
// -----
func.func @splat_of_list() { %0 = arith.constant dense<[1.0, 1.0, 1.0]> : tensor<3xf32> func.return }
// -----
func.func @integer_splat() { %0 = arith.constant dense<7> : tensor<2x3xi8> func.return }
// -----
func.func @boolean_splat() { %0 = arith.constant dense<true> : tensor<4xi1> func.return }
// -----
func.func @dense_string_half() { %0 = arith.constant dense<"0x003C00C0"> : tensor<2xf16> func.return }
// -----
func.func @dense_large() { %0 = arith.constant dense<"0x0000803F0000004000004040000080400000A0400000C0400000E040000000410000104100002041"> : tensor<10xf32> func.return }
// -----
func.func @dense_vector() { %0 = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32> func.return }
// -----
func.func @empty_dense() { %0 = arith.constant dense<> : tensor<0x4xf16> func.return }
// -----
func.func @signed_dense() { "t.t"() {a = dense<[-1, 2]> : tensor<2xsi8>, b = dense<255> : tensor<2xui8>} : () -> () func.return }
// -----
func.func @wide_integers() { %0 = arith.constant 18446744073709551615 : i64 %1 = arith.constant -9223372036854775808 : i64 %2 = arith.constant 170141183460469231731687303715884105727 : i128 func.return }
// -----
func.func @small_integers() { %0 = arith.constant 255 : i8 %1 = arith.constant -1 : i4 %2 = arith.constant false func.return }
// -----
func.func @complex_dense() { "t.t"() {a = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>} : () -> () func.return }
// -----
func.func private @zeros_of_both_signs() attributes {a = dense<[0.0, -0.0]> : tensor<2xf32>, b = dense<[-0.0, -0.0]> : tensor<2xf32>}
// -----
func.func private @overflow() attributes {a = dense<[1.5, -1.0e9]> : tensor<2xf8E4M3FN>, b = -1.0e9 : f8E4M3FN, c = dense<65520.0> : tensor<2xf16>, d = -1.0e39 : f32, e = dense<1.0e39> : tensor<1xbf16>}
// -----
func.func private @hexadecimal_tf32() attributes {a = 0x3FC00 : tf32, b = dense<0x7FE00> : tensor<2xtf32>, c = 0x7FC01 : tf32}
// -----
func.func private @one_nan_or_two() attributes {a = 0x80 : f8E5M2FNUZ, b = 0xFF : f8E8M0FNU, c = dense<[0x7F, 0xFF]> : tensor<2xf8E4M3FN>, d = dense<0x80> : tensor<2xf8E4M3B11FNUZ>}
// -----
func.func private @payloads() attributes {a = dense<[0x7F800001, 0xFFC00003]> : tensor<2xf32>, b = 0x7C01 : f16, c = dense<0xFF81> : tensor<4xbf16>, d = dense<[0x7D, 0xFE]> : tensor<2xf8E5M2>}
