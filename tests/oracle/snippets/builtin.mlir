module { module @inner { func.func private @f() } }
// -----
module @m attributes {a.b = 1 : i32} { }
// -----
func.func public @visible() { func.return }
// -----
func.func nested @nested() { func.return }
// -----
func.func private @result_attributes(f32 {a.b}) -> (f32 {a.c = 1 : i64}, i32)
// -----
func.func @no_inline() attributes {no_inline} { func.return }
// -----
func.func @"quoted name"() { func.return }
// -----
func.func @returns_several(%a: i32) -> (i32, f32) { %0 = arith.constant 1.0 : f32 func.return %a, %0 : i32, f32 }
// -----
func.func @call_several(%a: i32) { %0:2 = func.call @g(%a) : (i32) -> (i32, f32) func.return }
func.func private @g(i32) -> (i32, f32)
// -----
func.func @indirect(%f: (i32) -> i32, %a: i32) { %0 = func.call_indirect %f(%a) : (i32) -> i32 func.return }
// -----
func.func @constant() { %f = func.constant @constant : () -> () func.return }
// -----
func.func @unrealized(%a: index) { %0 = builtin.unrealized_conversion_cast %a : index to i64 func.return }
// -----
func.func @unrealized_many(%a: index) { %0:2 = builtin.unrealized_conversion_cast %a, %a : index, index to i64, i64 func.return }
// -----
func.func @unrealized_none() { %0 = builtin.unrealized_conversion_cast to i64 func.return }
// -----
"t.t"() : () -> ()
// -----
%0 = "t.one"() : () -> i32
// -----
%0:3 = "t.three"() : () -> (i32, f32, index)
"t.use"(%0#1, %0#2) : (f32, index) -> ()
// -----
"t.region"() ({ "t.inner"() : () -> () }) : () -> ()
// -----
"t.regions"() ({ ^bb0(%a: i32): "t.inner"(%a) : (i32) -> () }, { }) {x = 1 : i32} : () -> ()
// -----
"t.properties"() <{a = 1 : i32}> : () -> ()
// -----
"t.t"() {a = unit, b} : () -> ()
// -----
"t.t"() {a = [], b = [1, 2], c = [1 : i32, "x"], d = [[1.0], [@s]]} : () -> ()
// -----
"t.t"() {a = {}, b = {y = 1, x = "s"}} : () -> ()
// -----
"t.t"() {a = true, b = false, c = 1 : i1} : () -> ()
// -----
"t.t"() {a = "quote \22 and \0A newline \5C", b = "tab\09"} : () -> ()
// -----
"t.t"() {a = @symbol, b = @outer::@inner, c = @"odd name"} : () -> ()
// -----
"t.t"() {a = i32, b = tensor<4xf32>, c = (i32) -> f32, d = () -> ()} : () -> ()
// -----
"t.t"() {a = array<i32: 1, 2>, b = array<i64>, c = array<i1: true, false>, d = array<f32: 1.0, 2.5>} : () -> ()
// -----
"t.t"() {a = 1 : index, b = -1 : si32, c = 255 : ui8, d = 0x10 : i32} : () -> ()
// -----
"t.t"() {a = 1.0, b = 1.0 : f32, c = 1.0e10 : f64, d = 2.0 : bf16} : () -> ()
// -----
"t.t"() {"odd key" = 1, key.with.dots = 2, _x = 3} : () -> ()
// -----
"t.t"() {a = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>, b = dense<1.0> : vector<4xf32>} : () -> ()
// -----
"t.t"() {a = strided<[1, 2]>, b = strided<[?, 1], offset: 4>, c = strided<[], offset: ?>} : () -> ()
// -----
"t.t"() {a = affine_map<(d0) -> (d0)>, b = [affine_map<() -> ()>], c = affine_set<(d0) : (d0 >= 0)>} : () -> ()
// -----
"t.t"() {a = #opaque.attribute<"text">, c = #opaque.plain} : () -> ()
// -----
func.func @opaque_type(%a: !opaque.type<"text", 4>, %b: !opaque.plain) { func.return }
// -----
func.func @vectors(%a: vector<4xf32>, %b: vector<2x[4]xf32>, %c: vector<f32>) { func.return }
// -----
func.func @tensors(%a: tensor<f32>, %b: tensor<?x?xf32>, %c: tensor<0xf32>, %d: tensor<4x!opaque.t>, %e: tensor<4xf32, #opaque.encoding>) { func.return }
// -----
func.func @floats(%a: f8E5M2, %b: f8E4M3FN, %c: f8E4M3, %d: f4E2M1FN, %e: f6E2M3FN, %f: tf32, %g: f80, %h: f128) { func.return }
// -----
func.func @functions(%a: () -> (), %b: (i32, f32) -> (i32, f32), %c: () -> (() -> ())) { func.return }
// -----
func.func @tuples(%a: tuple<>, %b: tuple<i32>, %c: tuple<i32, tuple<f32>>) { func.return }
// -----
func.func @integers(%a: i1, %b: i7, %c: i128, %d: si16, %e: ui64) { func.return }
// -----
#attribute = {x = 1 : i32}
!type = memref<4xf32>
"t.t"() {a = #attribute, b = !type} : () -> ()
// -----
#map = affine_map<(d0) -> (d0 + 1)>
#other = [#map, #map]
"t.t"() {a = #other} : () -> ()
// -----
func.func @comments(%a: i32) { // a comment
  // another %b
  func.return // end
}
// -----
func.func private @distinct_attributes() attributes {a = distinct[0]<42 : i32>, b = distinct[0]<42 : i32>, c = distinct[1]<42 : i32>}
// -----
func.func private @distinct_unit() attributes {a = distinct[0]<>, b = distinct[1]<>}
// -----
#d = distinct[1]<distinct[0]<"inner">>
func.func private @distinct_nested() attributes {a = [distinct[0]<"inner">, #d]}
// -----
func.func private @sparse_rows() attributes {a = sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>, b = sparse<[0, 2], [1.0, 2.0]> : tensor<4xf32>}
// -----
func.func private @sparse_splats() attributes {a = sparse<0, 1.5> : tensor<1xf16>, b = sparse<[[1, 1]], [3]> : tensor<4x4xi32>, c = sparse<[[0, 1], [2, 3]], true> : vector<4x4xi1>}
// -----
func.func private @sparse_empty() attributes {a = sparse<> : tensor<4xf32>}
// -----
func.func private @typed_strings() attributes {a = "x" : i32, b = "y" : !foo.bar, c = ["z" : tensor<2xf32>]}
// -----
func.func private @opaque_attributes() attributes {a = #foo<bar>, b = #foo.bar, c = #foo<"quoted">, d = #foo.bar<a, b>, e = #foo<bar<1>>, f = #foo<bar baz>}
// -----
func.func private @opaque_types(!foo<bar>, !foo.bar, !foo<"x">, !foo.bar<1>, !foo<a b>, !foo<bar<1>>, !foo<a.b>)
// -----
func.func private @bytes_of_bits() attributes {a = dense<"0x01"> : tensor<8xi1>, b = dense<"0x010001"> : tensor<3xi1>, c = dense<"0x05"> : tensor<3xi1>}
// -----
func.func private @bytes_of_small_integers() attributes {a = dense<"0x17"> : tensor<2xi4>, b = dense<"0x0F"> : tensor<1xsi4>, c = dense<"0x0103"> : tensor<2xi2>, d = dense<"0x0F"> : tensor<1xui4>}
// -----
func.func private @locations_as_attributes() attributes {a = loc("k.py":1:2), b = loc(unknown), c = [loc("x")]}
// -----
"t.t"() ({
^bb0(%a: i32):
  "t.u"(%a)[^bb1, ^bb1] : (i32) -> ()
^bb1:
  "t.v"() : () -> ()
}) : () -> ()
// -----
func.func private @float_arrays() attributes {a = array<f32: 1.0, 0x7FC00000, -0.0>, b = array<f16: 65520.0, 0x0001>, c = array<f64: 0x7FF0000000000000>}
