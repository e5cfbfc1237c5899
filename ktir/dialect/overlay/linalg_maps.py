"""The maps of element-wise named operations, made once for each rank and number of operands.

xDSL makes them anew at each of the many questions that verifying an operation asks.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.dialects.linalg import abstract_ops
from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir.affine import AffineMap

from ktir.dialect.overlay.linalg_text import shape


@cache
def identities(count: int, rank: int) -> ArrayAttr[AffineMapAttr]:
    """As many identity maps of ``rank`` dimensions."""
    return ArrayAttr([AffineMapAttr(AffineMap.identity(rank))] * count)


@cache
def parallel_loops(rank: int) -> ArrayAttr[IteratorTypeAttr]:
    return ArrayAttr([IteratorTypeAttr.parallel()] * rank)


def _indexing_maps(op: Any) -> ArrayAttr[AffineMapAttr]:
    return identities(len(op.operands), len(shape(op.operands[0].type)))


def _iterator_types(op: Any) -> ArrayAttr[IteratorTypeAttr]:
    return parallel_loops(len(shape(op.operands[0].type)))


def _is_instance(stock: Any) -> Any:
    """xDSL's ``isa``; for a union of classes it is Python's own question."""

    def isa(value: Any, hint: Any) -> bool:
        return isinstance(value, hint) if isinstance(hint, UnionType) else stock(value, hint)

    return isa


def repair_maps() -> None:
    stock: Any = ElementwiseOperation
    stock.get_indexing_maps, stock.get_iterator_types = _indexing_maps, _iterator_types
    module: Any = abstract_ops
    module.isa = _is_instance(module.isa)
