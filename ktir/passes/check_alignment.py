"""Check that accesses begin at sticks, on the machine whose sticks they are."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckAlignmentPass(CheckPass):
    """``ktir-check-alignment``"""

    name = "ktir-check-alignment"
    topic = "alignment"
