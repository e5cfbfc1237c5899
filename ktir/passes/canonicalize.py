"""Tidy up: fold constants of index arithmetic, share equal operations, drop what nothing uses."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination


@dataclass(frozen=True)
class KtirCanonicalizePass(ModulePass):
    """``ktir-canonicalize``"""

    name = "ktir-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        CanonicalizePass().apply(ctx, op)
        CommonSubexpressionElimination().apply(ctx, op)
        CanonicalizePass().apply(ctx, op)
