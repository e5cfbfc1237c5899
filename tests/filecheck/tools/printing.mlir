// RUN: ktir-opt %s --mlir-print-local-scope | filecheck %s --check-prefix LOCAL
// RUN: ktir-opt %s -mlir-print-debuginfo | filecheck %s --check-prefix DEBUG
// RUN: ktir-opt %s -mlir-print-op-generic | filecheck %s --check-prefix GENERIC
// RUN: ktir-opt %s -p cse,canonicalize --mlir-print-ir-after-change -o %t 2>&1 | filecheck %s --check-prefix CHANGE
// RUN: ktir-opt %s -p cse,canonicalize --mlir-print-ir-before=canonicalize -o %t 2>&1 | filecheck %s --check-prefix BEFORE
// RUN: ktir-opt %s -p cse,canonicalize --mlir-print-ir-before-all -o %t 2>&1 | filecheck %s --check-prefix ALL
// RUN: ktir-opt %s -p cse --mlir-timing -o %t 2>&1 | filecheck %s --check-prefix TIMING
// RUN: ktir-opt %s --split-input-file='// part' --mlir-disable-threading | filecheck %s --check-prefix PARTS
// RUN: not ktir-opt %s --no-such-option 2>&1 | filecheck %s --check-prefix WRONG

// LOCAL-NOT:  #map
// LOCAL:      affine.apply affine_map<(d0) -> (d0 + 1)>(%n)

// DEBUG:      #map = affine_map<(d0) -> (d0 + 1)>
// DEBUG:      %{{.*}} = affine.apply #map(%n) loc(#loc{{[0-9]+}})
// DEBUG:      #loc{{[0-9]*}} = loc("{{.*}}printing.mlir":

// GENERIC:    "affine.apply"(%n) <{map = #map}> : (index) -> index

// CHANGE:     // -----// IR Dump After {{.*}} (cse) //----- //
// CHANGE-NOT: IR Dump

// BEFORE:     // -----// IR Dump Before {{.*}} (canonicalize) //----- //
// BEFORE-NOT: IR Dump

// ALL:        // -----// IR Dump Before {{.*}} (cse) //----- //
// ALL:        // -----// IR Dump Before {{.*}} (canonicalize) //----- //

// TIMING:     cse
// TIMING:     Total

// WRONG:      ktir-opt: unknown command line argument '--no-such-option'. Try: 'ktir-opt --help'

// PARTS:      func.func @f
// PARTS:      // -----
// PARTS:      func.func @g
func.func @f(%n: index) -> (index, index) {
  %0 = affine.apply affine_map<(d0) -> (d0 + 1)>(%n)
  %1 = affine.apply affine_map<(d0) -> (d0 + 1)>(%n)
  func.return %0, %1 : index, index
}
// part
func.func @g() {
  func.return
}
