"""Check that no two cores touch the same bytes of a launch, one of them writing, without order."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckRacesPass(CheckPass):
    """``ktir-check-races``"""

    name = "ktir-check-races"
    topic = "races"
