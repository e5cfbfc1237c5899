"""Settings of the whole suite. Generated tests have no time limit of their own: machines and their load differ."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("suite", deadline=None, print_blob=True)
settings.load_profile("suite")
