"""Check grids, loops and reach against the language and the machine."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckLimitsPass(CheckPass):
    """``ktir-check-limits``"""

    name = "ktir-check-limits"
    topic = "limits"
