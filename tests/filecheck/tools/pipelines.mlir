// RUN: ktir-opt %s -p 'builtin.module(cse,func.func(canonicalize))' | filecheck %s
// RUN: ktir-opt %s --cse --canonicalize | filecheck %s
// RUN: ktir-opt %s --pass-pipeline cse,canonicalize --mlir-print-ir-after-all -o %t 2>&1 | filecheck %s --check-prefix DUMP
// RUN: ktir-opt - < %s -p cse,canonicalize | filecheck %s
// RUN: not ktir-opt %s -p nothing 2>&1 | filecheck %s --check-prefix UNKNOWN

// DUMP: // -----// IR Dump After {{.*}} (cse) //----- //
// DUMP: // -----// IR Dump After {{.*}} (canonicalize) //----- //
// UNKNOWN: error: 'nothing' does not refer to a registered pass

// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %0 = arith.addf %x, %x : f32
// CHECK-NEXT:    %1 = arith.addf %0, %0 : f32
// CHECK-NEXT:    return %1 : f32
func.func @twice(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  %1 = arith.addf %x, %x : f32
  %2 = arith.addf %0, %1 : f32
  func.return %2 : f32
}
