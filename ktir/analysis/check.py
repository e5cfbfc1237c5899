"""``ktir check``: what can be said about a program without running it.

An *error* is proven: every run that gets there fails or gives a wrong answer. A *warning* is legal and seldom meant. A
*note* with the code ``Unknown`` is a question that stays open. A correct program gets no error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ktir import errors
from ktir.analysis.accesses import Fault
from ktir.analysis.agreement import check_agreement
from ktir.analysis.alignment import check_alignment
from ktir.analysis.bounds import check_bounds
from ktir.analysis.coverage import check_coverage
from ktir.analysis.findings import Answer, Topic, answer, distinct, proven, unknown
from ktir.analysis.initialisation import check_initialisation
from ktir.analysis.inter_tile import check_exchanges
from ktir.analysis.launches import Program
from ktir.analysis.limits import check_limits
from ktir.analysis.ownership import check_ownership
from ktir.analysis.placement import check_placement
from ktir.analysis.races import check_races
from ktir.analysis.scratchpad import check_scratchpad
from ktir.analysis.undefined import check_undefined
from ktir.errors import Diagnostic
from ktir.machine import Machine


@dataclass(frozen=True, slots=True)
class Tally:
    """How many questions were asked on one topic, and how many of them stay open."""

    asked: int
    unknown: int

    @property
    def decided(self) -> int:
        """Questions that have an answer."""
        return self.asked - self.unknown


@dataclass(frozen=True)
class Examination:
    """What is known of a program; ``findings`` are distinct, the graver first, then in order of the text."""

    findings: Sequence[Diagnostic]
    tallies: Mapping[Topic, Tally]


Analysis = Callable[[Program, Machine | None], Iterator[Answer]]


def check_divisors(program: Program) -> Iterator[Answer]:
    """An answer for each integer division by something that is zero at some point."""
    for launch in program.launches:
        for fault in launch.faults:
            yield answer("divisors", [fault_found(fault)])


def fault_found(fault: Fault) -> Diagnostic:
    if not fault.certain:
        return unknown(fault.operation, f"it is not decided whether {fault.message}")
    return proven(fault.operation, getattr(errors, fault.code), fault.message, fault.remedy)


ANALYSES: Mapping[tuple[Topic, ...], Analysis] = {
    ("agreement",): lambda program, _: check_agreement(program),
    ("alignment",): check_alignment,
    ("bounds",): lambda program, _: check_bounds(program),
    ("coverage",): lambda program, _: check_coverage(program),
    ("divisors",): lambda program, _: check_divisors(program),
    ("exchanges",): lambda program, _: check_exchanges(program),
    ("initialisation", "ownership"): lambda program, _: check_initialisation(program),
    ("initialisation",): lambda program, _: check_undefined(program),
    ("limits",): check_limits,
    ("ownership",): check_ownership,
    ("placement",): check_placement,
    ("races",): lambda program, _: check_races(program),
    ("scratchpad",): check_scratchpad,
}
"""What answers questions on which topics."""


def examine(
    module: ModuleOp,
    machine: Machine | None,
    topics: Sequence[Topic] | None = None,
    numbers: Mapping[str, int] | None = None,
) -> Examination:
    """Asks all questions, or those on some topics; of all runs, or of those in which arguments are ``numbers``.

    Without a ``machine`` the grid, the scratchpad, the loops and the reach of a core have no limits.
    """
    program = Program.of(module, numbers)
    asked_for = [analyse for on, analyse in ANALYSES.items() if topics is None or not set(on).isdisjoint(topics)]
    given = [each for analyse in asked_for for each in analyse(program, machine)]
    answers = [each for each in given if topics is None or each.topic in topics]
    asked: Counter[Topic] = Counter(each.topic for each in answers)
    open_: Counter[Topic] = Counter(each.topic for each in answers if not each.decided)
    findings = distinct([finding for each in answers for finding in each.findings])
    return Examination(findings, {topic: Tally(asked[topic], open_[topic]) for topic in sorted(asked)})
