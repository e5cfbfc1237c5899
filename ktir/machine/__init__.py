"""Machine descriptions: data files with provenance, and the questions passes and simulators ask of them."""

from __future__ import annotations

from ktir.machine.description import (
    Clock,
    Confidence,
    ElementType,
    Machine,
    Memory,
    Net,
    Provenance,
    Queue,
    Scope,
    Unit,
)
from ktir.machine.loader import available, load, loads, parse_bytes

__all__ = [
    "Clock",
    "Confidence",
    "ElementType",
    "Machine",
    "Memory",
    "Net",
    "Provenance",
    "Queue",
    "Scope",
    "Unit",
    "available",
    "load",
    "loads",
    "parse_bytes",
]
