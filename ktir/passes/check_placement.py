"""Check that the addresses of buffers are aligned, inside the memory, and apart while in use."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckPlacementPass(CheckPass):
    """``ktir-check-placement``"""

    name = "ktir-check-placement"
    topic = "placement"
