// A file is written when all went well, and left as it was otherwise.
// RUN: echo before > %t
// RUN: not ktir-opt %s -o %t
// RUN: filecheck %s --check-prefix KEPT < %t
// RUN: not ktir-opt %s 2>&1 | filecheck %s --check-prefix CARET
// RUN: ktir-opt %s --split-input-file --verify-diagnostics=all --verify-each=false --mlir-timing=false -o %t
// RUN: filecheck %s --check-prefix WRITTEN < %t
// RUN: ktir-opt %s --split-input-file --verify-diagnostics --discard-value-names -mlir-print-op-generic=false | filecheck %s --check-prefix NAMES

// KEPT:    before
// CARET:   outputs.mlir:22:23: error: values used but not defined: %y
// CARET-NEXT: %0 = arith.addi %x, %y : index
// CARET-NEXT:                     ^
// WRITTEN:      func.func @named(%tile_3: index) -> index {
// WRITTEN-NEXT:   %sum_1 = arith.addi %tile_3, %tile_3 : index
// WRITTEN-NEXT:   return %sum_1 : index
// NAMES:        func.func @named(%arg0: index) -> index {
// NAMES-NEXT:     %0 = arith.addi %arg0, %arg0 : index
// NAMES-NEXT:     return %0 : index
func.func @undefined(%x: index) {
  // expected-error @below {{not defined: %y}}
  %0 = arith.addi %x, %y : index
  func.return
}
// -----
func.func @named(%tile_3: index) -> index {
  %sum_1 = arith.addi %tile_3, %tile_3 : index
  func.return %sum_1 : index
}
