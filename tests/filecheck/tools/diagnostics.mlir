// RUN: ktir-opt %s --split-input-file --verify-diagnostics
// RUN: not ktir-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: diagnostics.mlir:7:23: error: values used but not defined: %y
func.func @undefined(%x: index) {
  // expected-error @below {{not defined}}
  %0 = arith.addi %x, %y : index
  func.return
}
// -----
func.func @several(%x: index) {
  // expected-error-re @+1 {{operand #{{[01]}} does not dominate}}
  %0 = arith.addi %0, %x : index
  // expected-error @+1 {{'arith.addi' op operand #1}}
  %1 = arith.addi %x, %1 : index
  func.return
}
// -----
func.func @warned(%x: index) {
  // expected-warning @+1 {{'coordinate_set' is missing}}
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {memory_space = #ktdp.memory_space<global>} : memref<4xf16>
  func.return
}
