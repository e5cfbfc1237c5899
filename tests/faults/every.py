"""All entries of the catalogue."""

from __future__ import annotations

from tests.faults.catalogue import FAULTS
from tests.faults.memory import MEMORY
from tests.faults.results import RESULTS

EVERY = FAULTS + MEMORY + RESULTS
