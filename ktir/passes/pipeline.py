"""The standard pipelines, as texts that ``ktir-opt -p`` reads too."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir.passes.registry import all_passes

GRAPH = ("ktir-import-cleanup", "ktir-fold-constants", "ktir-fuse")
"""From an imported graph to kernels without decisions."""

DECIDE = ("ktir-assign-layout", "ktir-split-cores", "ktir-tile", "ktir-place")
"""Decisions by simple rules; each leaves alone what is decided already."""

LOWER = ("ktir-lower-to-ktdp", "ktir-allocate-scratchpad", "ktir-allocate-global", "ktir-canonicalize")
"""From decided kernels to KTIR with addresses."""

PIPELINES = {"compile": (*GRAPH, *DECIDE, *LOWER), "graph": GRAPH, "decide": DECIDE, "lower": LOWER}
"""Pass names by pipeline name."""


def passes(names: Sequence[str]) -> list[ModulePass]:
    """Passes with their default options."""
    known = all_passes()
    return [known[name]()() for name in names]


def compile_pipeline() -> list[ModulePass]:
    """Every pass from an imported graph to KTIR, in order."""
    return passes(PIPELINES["compile"])


def run_pipeline(name: str, ctx: Context, module: ModuleOp) -> None:
    """Run a standard pipeline on ``module``, in place; every pass leaves a module that verifies."""
    for each in passes(PIPELINES[name]):
        each.apply(ctx, module)
        module.verify()
