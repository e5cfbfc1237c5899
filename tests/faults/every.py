"""All entries of the catalogue."""

from __future__ import annotations

from tests.faults.catalogue import FAULTS

EVERY = FAULTS
