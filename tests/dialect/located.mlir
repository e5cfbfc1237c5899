#loc = loc("k.py":17:1)
#loc1 = loc("k.py":18:2)
#map = affine_map<(d0) -> (d0 + 1)>
#loc5 = loc("x"(#loc1))
module {
  func.func @f(%arg0: index loc("x"(#loc1)), %arg1: f32 loc("k.py":17:1)) -> f32 {
    %0 = arith.addf %arg1, %arg1 : f32 loc(#loc2)
    %1 = arith.mulf %0, %arg1 : f32 loc(#loc6)
    %c0 = arith.constant 0 : index loc(#loc)
    %2 = scf.for %arg2 = %c0 to %arg0 step %arg0 iter_args(%arg3 = %1) -> (f32) {
      %3 = affine.apply #map(%arg2) loc(#loc8)
      scf.yield %arg3 : f32 loc(#loc2)
    } loc(#loc7)
    return %2 : f32 loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("k.py":19:3)
#loc3 = loc("k.py":20:4)
#loc4 = loc("odd \22name\22":1:1)
#loc6 = loc("tmp0"(#loc3))
#loc7 = loc(fused<"why">[#loc1, #loc2])
#loc8 = loc(callsite(#loc2 at #loc1))
