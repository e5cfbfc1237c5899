"""Check that what a kernel takes from a scratchpad is what a kernel before it put there."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckOwnershipPass(CheckPass):
    """``ktir-check-ownership``"""

    name = "ktir-check-ownership"
    topic = "ownership"
