"""A step for another block size: it verifies in place of the old one, and a body that cannot be resized is refused."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Region

from ktir.dialect.ktg import FoldOp
from ktir.dialect.ktg_blocks import step_over
from ktir.errors import NotLowerable
from tests.dialect.test_ktg import only, parse, row_sum

TRANSPOSED_STEP = """
    %e = tensor.empty() : tensor<16x5xf32>
    %p = linalg.transpose ins(%block : tensor<5x16xf32>) outs(%e : tensor<16x5xf32>) permutation = [1, 0]
    %x1 = tensor.expand_shape %p [[0], [1, 2]] output_shape [16, 1, 5] : tensor<16x5xf32> into tensor<16x1x5xf32>
    %x2 = tensor.collapse_shape %x1 [[0, 1], [2]] : tensor<16x1x5xf32> into tensor<16x5xf32>
    %x3 = arith.addf %x2, %x2 : tensor<16x5xf32>
    %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]} ins(%x3 : tensor<16x5xf32>)"""


def with_step(fold: FoldOp, step: Region, tile: int) -> FoldOp:
    clone = fold.clone()
    clone.step.detach_block(clone.step.block)
    step.move_blocks(clone.step)
    clone.tile = IntegerAttr(tile, i64)
    return clone


def fold_of(text: str) -> FoldOp:
    fold = only(parse(text), FoldOp)
    assert isinstance(fold, FoldOp)
    return fold


@pytest.mark.parametrize("positions", [1, 3, 16, 67])
@pytest.mark.parametrize("transposed", [False, True])
def test_step_of_another_size_verifies(positions: int, transposed: bool) -> None:
    text = row_sum()
    if transposed:
        head, tail = text.index("    %t = linalg.generic"), text.index(" outs(%s : tensor<5xf32>)")
        text = text[:head] + TRANSPOSED_STEP.lstrip("\n") + text[tail:]
    fold = fold_of(text)
    with_step(fold, step_over(fold, positions), positions).verify()


def test_step_that_cuts_the_folded_dimension_is_refused() -> None:
    cut = (
        "%h = tensor.extract_slice %block[0, 0] [5, 8] [1, 1] : tensor<5x16xf32> to tensor<5x8xf32>\n"
        "%block2 = tensor.concat dim(1) %h, %h : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x16xf32>\n"
    )
    text = row_sum().replace("    %t = linalg.generic", cut + "    %t = linalg.generic")
    text = text.replace("ins(%block :", "ins(%block2 :")
    with pytest.raises(NotLowerable, match=r"tensor\.extract_slice"):
        step_over(fold_of(text), 3)
