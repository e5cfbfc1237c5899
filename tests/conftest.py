"""Settings of the whole suite.

Generated tests have no time limit of their own: machines and their load differ. ``make test`` tries the same examples
every time, so that its verdict is about the change at hand; ``make test-full`` looks for new ones.
"""

from __future__ import annotations

from hypothesis import settings

from tests.settings import FULL

settings.register_profile("suite", deadline=None, print_blob=True, derandomize=not FULL)
settings.load_profile("suite")
