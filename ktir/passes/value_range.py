"""What a program asks of the integers in an argument: that they are numbers of rows, where a gather reads rows by them.

``ktdp.value_range = array<i64: low, high>`` on an argument of ``@main`` promises ``low <= value < high`` of each of its
elements. It is the caller's promise; a run with checks finds out who breaks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, SSAValue

from ktir.analysis.launches import VALUE_RANGE
from ktir.analysis.tensor_views import VIEWS
from ktir.dialect.ktg import GatherOp, KernelOp


def value_range(argument: SSAValue) -> dict[str, Attribute]:
    """The attribute for an argument of a graph; nothing where no gather reads rows by it."""
    rows = min(gathered_rows(argument), default=None)
    return {} if rows is None else {VALUE_RANGE: DenseArrayBase.from_list(i64, [0, rows])}


def gathered_rows(indices: SSAValue) -> Iterator[int]:
    """The number of rows of each table whose rows are read by ``indices``, in whatever shape."""
    for use in indices.uses:
        match use.operation:
            case KernelOp() as kernel:
                yield from gathered_rows(kernel.body.block.args[use.index])
            case GatherOp() as gather if use.index == 1:
                yield cast("TensorType[Attribute]", gather.table.type).get_shape()[0]
            case operation if isinstance(operation, VIEWS):
                yield from gathered_rows(operation.results[0])
            case _:
                pass
