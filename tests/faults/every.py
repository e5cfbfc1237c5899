"""All entries of the catalogue."""

from __future__ import annotations

from tests.faults.catalogue import FAULTS
from tests.faults.memory import MEMORY

EVERY = FAULTS + MEMORY
