"""Check that every element of an output is written."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckCoveragePass(CheckPass):
    """``ktir-check-coverage``"""

    name = "ktir-check-coverage"
    topic = "coverage"
