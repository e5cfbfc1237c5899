"""Check that types say what their operations say: elements, shapes of tiles, layouts of views."""

from __future__ import annotations

from dataclasses import dataclass

from ktir.passes.check_pass import CheckPass


@dataclass(frozen=True)
class CheckAgreementPass(CheckPass):
    """``ktir-check-agreement``"""

    name = "ktir-check-agreement"
    topic = "agreement"
