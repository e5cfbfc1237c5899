"""What the passes ``ktir-check-*`` share: they ask about a module, change nothing, and report everything they find.

Each asks the questions of one analysis; what is wrong for sure ends the pass pipeline, the rest is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir import errors
from ktir.analysis.check import examine
from ktir.analysis.findings import Topic
from ktir.dialect.context import KtirContext
from ktir.errors import Diagnostic, KtirError, SeveralFaults


@dataclass(frozen=True)
class CheckPass(ModulePass):
    """Asks all questions about one topic, on the machine of the context."""

    topic: ClassVar[Topic]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = ctx.machine if isinstance(ctx, KtirContext) else None
        report(ctx, examine(op, machine, (self.topic,)).findings)


def report(ctx: Context, found: Iterable[Diagnostic]) -> None:
    """Leaves warnings and notes with the context; raises the errors, all of them."""
    wrong: list[KtirError] = []
    for each in found:
        if each.severity == "error":
            wrong.append(getattr(errors, each.code)(each.message, location=each.location, remedy=each.remedy))
        elif isinstance(ctx, KtirContext):
            ctx.diagnostics.append(each)
    SeveralFaults.raise_from(wrong)
