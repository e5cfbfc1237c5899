"""Check that memory and tensors are written before they are read."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckInitialisationPass(CheckPass):
    """``ktir-check-initialisation``"""

    name = "ktir-check-initialisation"
    topic = "initialisation"
