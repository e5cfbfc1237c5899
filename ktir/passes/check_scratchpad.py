"""Check that scratchpads are not overrun, and that buffers in use there lie apart."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckScratchpadPass(CheckPass):
    """``ktir-check-scratchpad``"""

    name = "ktir-check-scratchpad"
    topic = "scratchpad"
