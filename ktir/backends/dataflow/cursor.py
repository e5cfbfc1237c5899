"""Where a unit stands in its program."""

from __future__ import annotations

from typing import Final, cast

from ktir.backends.dataflow.expression import at
from ktir.backends.dataflow.unit_program import Branch, Instruction, LoopEnd, LoopStart, UnitCode
from ktir.errors import LimitExceeded

MOST_IDLE_LAPS: Final = 1 << 20
"""Iterations without an instruction that are walked through one by one."""


class Cursor:
    """Where an actor stands in its code: ``instruction`` is the one to execute next, None at the end.

    ``place`` is that of the instruction in the code, ``limits`` the counts of the loops. ``laps`` counts how often a
    loop went round again.
    """

    __slots__ = ("_nodes", "code", "core", "indices", "instruction", "laps", "limits", "place")

    def __init__(self, code: UnitCode, core: int) -> None:
        self.code, self.core = code, core
        self.indices = [0] * code.depth
        self.limits = [0] * code.depth
        self._nodes = code.nodes
        self.place = -1
        self.laps = 0
        self.instruction: Instruction | None = None
        self.advance()

    def advance(self) -> None:
        """Moves on to the next instruction. Raises :class:`LimitExceeded` where that is too many iterations away."""
        place, nodes, laps = self.place + 1, self._nodes, self.laps
        while place < len(nodes):
            node = nodes[place]
            if node.__class__ is Instruction:
                self.place, self.instruction = place, cast("Instruction", node)
                return
            if node.__class__ is LoopEnd:
                end = cast("LoopEnd", node)
                self.indices[end.depth] += 1
                if self.indices[end.depth] < self.limits[end.depth]:
                    place, self.laps = end.body, self.laps + 1
                    if self.laps - laps > MOST_IDLE_LAPS:
                        raise self._idle()
                else:
                    place += 1
            elif node.__class__ is LoopStart:
                start = cast("LoopStart", node)
                limit = at(start.count, self.core)
                self.limits[start.depth], self.indices[start.depth] = limit, 0
                place = place + 1 if limit > 0 else start.end
            else:
                branch = cast("Branch", node)
                taken = all(condition.holds(self.core, self.indices) for condition in branch.conditions)
                place = place + 1 if taken else branch.end
        self.place, self.instruction = place, None

    def _idle(self) -> LimitExceeded:
        return LimitExceeded(
            f"{self.code.unit} of core {self.core} goes through {MOST_IDLE_LAPS} iterations without an operation",
            location=self.code.location,
            remedy="bound the loop by the iterations in which its conditions hold",
        )

    def follow(self, other: Cursor) -> None:
        """Goes to where ``other``, in the same code, stands."""
        self.indices[:], self.limits[:] = other.indices, other.limits
        self.place, self.instruction, self.laps = other.place, other.instruction, other.laps

    def describe(self) -> str:
        """Where the actor is, for a reader: unit, core, operation and loop indices."""
        where = f"{self.code.unit} of core {self.core}" + (f" corelet {self.code.corelet}" if self.code.corelet else "")
        if self.instruction is None:
            return f"{where}, at its end"
        indices = self.indices[: self.instruction.depth]
        return f"{where}, dfp.{self.instruction.kind}" + (f" in iteration {indices}" if indices else "")
