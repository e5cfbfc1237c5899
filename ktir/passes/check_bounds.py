"""Check that accesses stay inside their views, and views inside their buffers."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckBoundsPass(CheckPass):
    """``ktir-check-bounds``"""

    name = "ktir-check-bounds"
    topic = "bounds"
