"""How analyses answer: a question about a program holds, or there are findings on it.

A finding is a proven fault, a doubt worth a warning, or that the question stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func, scf
from xdsl.ir import Operation

from ktir.dialect.locations import location_of
from ktir.errors import Diagnostic, KtirError, Severity

UNKNOWN = "Unknown"
"""The code of a question that could not be decided."""

Topic = Literal[
    "agreement",
    "alignment",
    "bounds",
    "coverage",
    "divisors",
    "exchanges",
    "initialisation",
    "limits",
    "ownership",
    "placement",
    "races",
    "scratchpad",
]
"""What questions are about; each is answered by one module."""


@dataclass(frozen=True)
class Answer:
    """One question about one place of a program, and what was found; nothing where it holds."""

    topic: Topic
    findings: tuple[Diagnostic, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether it holds, or is known not to."""
        return all(finding.code != UNKNOWN for finding in self.findings)


def answer(topic: Topic, findings: Iterable[Diagnostic]) -> Answer:
    """The answer that consists of some findings."""
    return Answer(topic, tuple(findings))


def proven(operation: Operation, error: type[KtirError], message: str, remedy: str | None = None) -> Diagnostic:
    """A fault that every run which gets there meets; ``error`` is what the executor raises."""
    return Diagnostic(error.__name__, "error", message, location_of(operation), remedy)


def doubtful(operation: Operation, error: type[KtirError], message: str, remedy: str | None = None) -> Diagnostic:
    """Something that is legal and seldom meant."""
    return Diagnostic(error.__name__, "warning", message, location_of(operation), remedy)


def unknown(operation: Operation, question: str) -> Diagnostic:
    """A question that the text alone does not answer."""
    return Diagnostic(UNKNOWN, "note", question, location_of(operation))


def distinct(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Each finding once, the graver first, then in order of the text."""
    gravity: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
    where = {d: (d.location.line, d.location.column) if d.location else (0, 0) for d in found}
    return sorted(dict.fromkeys(found), key=lambda d: (gravity[d.severity], where[d]))


def cores_text(cores: NDArray[np.int64]) -> str:
    """``core 3`` or ``cores 3, 4, 5 and 29 others``"""
    unique = np.unique(cores)
    if len(unique) == 1:
        return f"core {unique[0]}"
    shown = ", ".join(str(c) for c in unique[:3])
    return f"cores {shown}" + (f" and {len(unique) - 3} others" if len(unique) > 3 else "")


def always_runs(operation: Operation) -> bool:
    """Whether nothing round an operation may skip it."""
    around = operation.parent_op()
    while around is not None and not isinstance(around, func.FuncOp):
        if not isinstance(around, scf.ForOp):
            return False
        around = around.parent_op()
    return True
