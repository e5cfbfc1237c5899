"""The ktg dialect: what its text looks like, that it is read back as it was, and what its verifiers refuse."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, linalg, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ktir.dialect.ktg import KTG, CoreSplitAttr, DimensionCut, FoldOp, KernelOp, Place, PlaceAttr

ROW_SUM = """
func.func @main(%x: tensor<5x67xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %r = "ktg.fold"(%x) <{fold_dims = array<i64: FOLD_DIM>, extent = 67 : i64, tile = TILE : i64}> ({
    %e = tensor.empty() : tensor<5xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
    ktg.yield %s : tensor<5xf32>
  }, {
  ^bb0(%block: tensor<5xTILExf32>, %s: tensor<5xf32>):
    %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]} ins(%block : tensor<5xTILExf32>) outs(%s : tensor<5xf32>) {
    ^bb1(%a: f32, %acc: f32):
      %n = arith.addf %a, %acc : f32
      linalg.yield %n : f32
    } -> tensor<5xf32>
    ktg.yield %t : tensor<5xf32>
  }, {
  ^bb0(%a: tensor<5xf32>, %b: tensor<5xf32>):
    %t = arith.addf %a, %CAPTURE : tensor<5xf32>
    ktg.yield %t : tensor<5xf32>
  }, {
  ^bb0(%s: tensor<5xf32>):
    ktg.yield %s : tensor<5xf32>
  }) : (tensor<5x67xf32>) -> tensor<5xf32>
  func.return %r : tensor<5xf32>
}
"""

KERNEL = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "ktg.kernel"(%x) <{ATTRIBUTES}> ({
  ^bb0(%a: tensor<4xf32>):
    ktg.yield %a : tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, tensor.Tensor, linalg.Linalg, KTG):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def row_sum(fold_dim: int = 1, tile: int = 16, capture: str = "b") -> str:
    return ROW_SUM.replace("FOLD_DIM", str(fold_dim)).replace("TILE", str(tile)).replace("CAPTURE", capture)


def only(module: ModuleOp, kind: type[KernelOp] | type[FoldOp]) -> KernelOp | FoldOp:
    [op] = [op for op in module.walk() if isinstance(op, kind)]
    return op


@pytest.mark.parametrize(
    "text",
    [
        row_sum(),
        KERNEL.replace(
            "ATTRIBUTES",
            'sym_name = "k", core_split = #ktg.core_split<[d0 : 4 : 1, d2 : 8 : 64]>, tiles = #ktg.tiles<[d0 : 8]>, '
            "loop_order = #ktg.loop_order<[d0, d2, d1]>, buffer_depth = 2 : i64, store_batch = 4 : i64, "
            "operand_layouts = [none], operand_places = [#ktg.place<ddr>], result_places = [#ktg.place<ring>]",
        ),
        "func.func @g(%t: tensor<9x4xf16>, %i: tensor<2x3xi64>, %m: memref<4xf32>) {\n"
        "  %r = ktg.gather %t, %i : (tensor<9x4xf16>, tensor<2x3xi64>) -> tensor<2x3x4xf16>\n"
        "  ktg.transfer %m, %m : memref<4xf32>, memref<4xf32>\n  func.return\n}",
    ],
)
def test_text_is_read_back_as_it_was(text: str) -> None:
    module = parse(text)
    assert parse(str(module)).is_structurally_equivalent(module)


def test_decisions_are_typed() -> None:
    kernel = only(parse(KERNEL.replace("ATTRIBUTES", "core_split = #ktg.core_split<[d0 : 4 : 1]>")), KernelOp)
    assert isinstance(kernel, KernelOp)
    assert kernel.core_split == CoreSplitAttr((DimensionCut("d0", 4, 1),))
    assert kernel.tiles is None
    assert str(PlaceAttr(Place.LX)) == "#ktg.place<lx>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (row_sum(tile=68), "1 <= tile <= extent"),
        (row_sum(fold_dim=0), "dimension 0 of operand 0 has 5 positions"),
        (row_sum(fold_dim=2), "fold dimension 2 of operand 0"),
        (row_sum(fold_dim=-1), "at least one operand with a fold dimension"),
        (
            row_sum(capture="r0")
            .replace("%r0", "%outside")
            .replace("%zero =", "%outside = tensor.empty() : tensor<5xf32>\n%zero ="),
            "constants only",
        ),
        (KERNEL.replace("ATTRIBUTES", "core_split = #ktg.core_split<[d0 : 0 : 1]>"), "at least 1"),
        (KERNEL.replace("ATTRIBUTES", "tiles = #ktg.tiles<[d0 : 8, d0 : 4]>"), "names a dimension twice"),
        (KERNEL.replace("ATTRIBUTES", "operand_layouts = [none, none]"), "operand_layouts expects 1 entries"),
        (KERNEL.replace("ATTRIBUTES", "buffer_depth = 0 : i64"), "buffer_depth expects a number of at least 1"),
    ],
)
def test_illegal_ir_is_refused(text: str, message: str) -> None:
    with pytest.raises((VerifyException, ParseError), match=message):
        parse(text)
