"""Products of matrices, many at once.

torch and numpy both hand them to a BLAS and differ in the last bits, as any two orders of a sum do. Over many small
products torch's threads wait for each other once, numpy's at each product, which costs a hundred times the work where
other programs keep the processors busy. So torch does the work if the process has it when the first product is
computed. That is decided once: within a process a product always has the same bits.
"""

from __future__ import annotations

import sys
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ktir.interp.casts import shared
from ktir.interp.numerics import F32, F64, Array
from ktir.interp.threads import PRODUCTS_OF_AN_ELEMENT, shared_if_worth


@cache
def engine() -> Any | None:
    """torch, if it was there at the first product; else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "bmm") else None


def matrix_product(left: Array, right: Array) -> Array:
    """``left @ right`` over the last two axes; all axes before them broadcast."""
    torch = engine() if left.dtype in (F32, F64) else None
    shape = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    if torch is None or 0 in (*shape, left.shape[-1]):
        return np.matmul(left, right)
    result = np.empty((prod(shape[:-2]), *shape[-2:]), left.dtype)
    factors = [
        shared(torch, each).expand(*shape[:-2], *each.shape[-2:]).reshape(-1, *each.shape[-2:])
        for each in (left, right)
    ]
    target, work = torch.from_numpy(result), result.size * left.shape[-1] // PRODUCTS_OF_AN_ELEMENT
    shared_if_worth(torch, work, lambda: torch.bmm(*factors, out=target))
    return result.reshape(shape)


__all__ = ["matrix_product"]
