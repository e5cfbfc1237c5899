"""The rule that ties the operands of a structured operation together: a loop has one extent.

MLIR infers the extents of the loops from the operands through the indexing maps and refuses operands that disagree;
xDSL checks it for some operations only. Dynamic extents are not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.linalg_text import shape

__all__ = ["require_one_extent_per_loop"]


def require_one_extent_per_loop(kind: type[Operation]) -> None:
    """Adds the rule to the verifier of ``kind``, a structured operation."""
    stock: Callable[[Any], None] = kind.verify_

    def verify_(op: LinalgStructuredOperation) -> None:
        stock(op)
        _check(op)

    setattr(kind, "verify_", verify_)  # noqa: B010  the stock methods name their parameters


def _check(op: LinalgStructuredOperation) -> None:
    extents: dict[int, int] = {}
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    for number, (operand, map) in enumerate(zip((*op.inputs, *op.outputs), maps, strict=False)):
        for dim, (expression, extent) in enumerate(zip(map.results, shape(operand.type), strict=False)):
            if not isinstance(expression, AffineDimExpr) or extent == DYNAMIC_INDEX:
                continue
            expected = extents.setdefault(expression.position, extent)
            if extent != expected:
                raise VerifyException(
                    f"inferred input/output operand #{number} has shape's dimension #{dim} to be {expected}, "
                    f"but found {extent}"
                )
