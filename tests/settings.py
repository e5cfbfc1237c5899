"""How much the generated suites try: one setting for all of them.

``make test`` runs a twentieth of the full counts, ``make test-full`` sets ``KTIR_TEST_SCALE=1``.
"""

from __future__ import annotations

import os

SCALE = float(os.environ.get("KTIR_TEST_SCALE", "0.05"))


def examples(full_count: int) -> int:
    """How many generated inputs to try where the full suite tries ``full_count``; at least five."""
    return max(5, round(full_count * SCALE))


FULL = SCALE >= 1
"""Whether this is the full suite: what is too long for ``make test`` whatever its count is tried only then."""
