func.func @for_unsigned(%n: i32) { scf.for unsigned %i = %n to %n step %n : i32 { } func.return }
// -----
func.func @for_integer(%n: i32) { scf.for %i = %n to %n step %n : i32 { %0 = arith.addi %i, %i : i32 } func.return }
// -----
func.func @for_bare_result(%n: index, %x: f32) -> f32 {
  %0 = scf.for %i = %n to %n step %n iter_args(%a = %x) -> f32 {
    scf.yield %a : f32
  }
  func.return %0 : f32
}
// -----
func.func @for_two_results(%n: index, %x: f32) -> (f32, index) {
  %0:2 = scf.for %i = %n to %n step %n iter_args(%a = %x, %b = %n) -> (f32, index) {
    scf.yield %a, %i : f32, index
  }
  func.return %0#0, %0#1 : f32, index
}
// -----
func.func @for_attributes(%n: index) { scf.for %i = %n to %n step %n { %0 = arith.addi %i, %i : index } {some.note = 1 : i64} func.return }
// -----
func.func @if_bare_result(%c: i1, %x: f32) -> f32 {
  %0 = scf.if %c -> f32 {
    scf.yield %x : f32
  } else {
    scf.yield %x : f32
  }
  func.return %0 : f32
}
// -----
func.func @if_two_results(%c: i1, %x: f32) -> f32 {
  %0:2 = scf.if %c -> (f32, i1) {
    scf.yield %x, %c : f32, i1
  } else {
    scf.yield %x, %c : f32, i1
  }
  func.return %0#0 : f32
}
// -----
func.func @if_else(%c: i1, %n: index) { scf.if %c { %0 = arith.addi %n, %n : index } else { %1 = arith.muli %n, %n : index } func.return }
// -----
func.func @if_empty(%c: i1) { scf.if %c { } func.return }
// -----
func.func @if_attributes(%c: i1, %n: index) { scf.if %c { %0 = arith.addi %n, %n : index } {some.note} func.return }
// -----
func.func @while(%n: i32, %c: i1) -> i32 {
  %0 = scf.while (%a = %n) : (i32) -> i32 {
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%b: i32):
    %1 = arith.addi %b, %b : i32
    scf.yield %1 : i32
  }
  func.return %0 : i32
}
// -----
func.func @while_nothing(%c: i1) {
  scf.while : () -> () {
    scf.condition(%c)
  } do {
    scf.yield
  }
  func.return
}
// -----
func.func @while_two(%n: i32, %f: f32, %c: i1) {
  %0:2 = scf.while (%a = %n, %b = %f) : (i32, f32) -> (f32, i32) {
    scf.condition(%c) %b, %a : f32, i32
  } do {
  ^bb0(%b: f32, %a: i32):
    scf.yield %a, %b : i32, f32
  }
  func.return
}
// -----
func.func @while_attributes(%c: i1) {
  scf.while : () -> () {
    scf.condition(%c)
  } do {
    scf.yield
  } attributes {some.note}
  func.return
}
// -----
func.func @parallel(%n: index) {
  scf.parallel (%i, %j) = (%n, %n) to (%n, %n) step (%n, %n) {
    %0 = arith.addi %i, %j : index
    scf.reduce
  }
  func.return
}
// -----
func.func @parallel_reduce(%n: index, %x: f32) -> f32 {
  %0 = scf.parallel (%i) = (%n) to (%n) step (%n) init (%x) -> f32 {
    scf.reduce(%x : f32) {
    ^bb0(%a: f32, %b: f32):
      %1 = arith.addf %a, %b : f32
      scf.reduce.return %1 : f32
    }
  }
  func.return %0 : f32
}
// -----
func.func @parallel_two(%n: index, %x: f32, %k: i32) {
  %0:2 = scf.parallel (%i) = (%n) to (%n) step (%n) init (%x, %k) -> (f32, i32) {
    scf.reduce(%x, %k : f32, i32) {
    ^bb0(%a: f32, %b: f32):
      %1 = arith.addf %a, %b : f32
      scf.reduce.return %1 : f32
    }, {
    ^bb0(%a: i32, %b: i32):
      %1 = arith.addi %a, %b : i32
      scf.reduce.return %1 : i32
    }
  }
  func.return
}
// -----
func.func @forall() {
  scf.forall (%i, %j) in (4, 8) {
    %0 = arith.addi %i, %j : index
  }
  func.return
}
// -----
func.func @forall_bounds(%n: index) {
  scf.forall (%i, %j) = (0, %n) to (%n, 16) step (1, 4) {
    %0 = arith.addi %i, %j : index
  }
  func.return
}
// -----
func.func @forall_shared(%n: index, %x: tensor<16xf32>, %p: tensor<4xf32>) -> tensor<16xf32> {
  %0 = scf.forall (%i) in (%n) shared_outs(%o = %x) -> (tensor<16xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  func.return %0 : tensor<16xf32>
}
// -----
func.func @forall_attributes() {
  scf.forall (%i) in (4) {
    %0 = arith.addi %i, %i : index
  } {some.note}
  func.return
}
// -----
func.func @execute_region(%x: i32) -> i32 {
  %0 = scf.execute_region -> i32 {
    scf.yield %x : i32
  }
  func.return %0 : i32
}
// -----
func.func @execute_region_blocks(%c: i1) {
  scf.execute_region {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    cf.br ^bb2
  ^bb2:
    scf.yield
  }
  func.return
}
// -----
func.func @index_switch(%n: index, %x: i32) -> i32 {
  %0 = scf.index_switch %n -> i32
  case 2 {
    scf.yield %x : i32
  }
  case 5 {
    scf.yield %x : i32
  }
  default {
    scf.yield %x : i32
  }
  func.return %0 : i32
}
// -----
func.func @index_switch_nothing(%n: index) {
  scf.index_switch %n
  case 1 {
    scf.yield
  }
  default {
  }
  func.return
}
// -----
func.func @branches(%c: i1, %n: i32) -> i32 {
  cf.br ^bb1(%n : i32)
^bb1(%a: i32):
  cf.cond_br %c, ^bb1(%a : i32), ^bb2(%a, %n : i32, i32)
^bb2(%b: i32, %d: i32):
  func.return %b : i32
}
// -----
func.func @switch(%n: i32) {
  cf.switch %n : i32, [
    default: ^bb1,
    42: ^bb2,
    43: ^bb1
  ]
^bb1:
  func.return
^bb2:
  cf.br ^bb1
}
// -----
func.func @assert(%c: i1) {
  cf.assert %c, "must hold"
  func.return
}
// -----
func.func @loop_of_blocks(%c: i1) {
  cf.br ^bb1
^bb1:
  cf.cond_br %c, ^bb1, ^bb2
^bb2:
  func.return
}
// -----
func.func @unreachable(%c: i1) {
  func.return
^bb1:
  func.return
}
// -----
func.func @numbered_blocks() {
  cf.br ^0
^0:
  func.return
}
// -----
func.func @names_of_neighbours(%a: index, %c: i1) -> index {
  %c0 = arith.constant 0 : index
  %c0_0 = arith.constant 0 : index
  %0:2 = scf.for %i = %c0 to %a step %a iter_args(%x = %c0, %y = %c0_0) -> (index, index) {
    %c0_1 = arith.constant 0 : index
    %r = scf.if %c -> (index) {
      %c0_2 = arith.constant 0 : index
      %true = arith.constant true
      scf.yield %c0_2 : index
    } else {
      %c0_2 = arith.constant 0 : index
      %s = arith.addi %c0_2, %i : index
      scf.yield %s : index
    }
    scf.yield %r, %c0_1 : index, index
  }
  %1:2 = scf.for %i = %c0 to %a step %a iter_args(%x = %c0, %y = %c0_0) -> (index, index) {
    %c0_1 = arith.constant 0 : index
    scf.yield %x, %c0_1 : index, index
  }
  func.return %1#1 : index
}
func.func @names_start_again(%a: index) {
  %c0 = arith.constant 0 : index
  %cst = arith.constant dense<1.0> : tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%cst, %cst : tensor<4x4xf32>, tensor<4x4xf32>) outs(%cst : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %2 = arith.addf %x, %y : f32
    linalg.yield %2 : f32
  } -> tensor<4x4xf32>
  cf.br ^next(%c0 : index)
^next(%b: index):
  %3 = arith.addi %b, %c0 : index
  func.return
}
