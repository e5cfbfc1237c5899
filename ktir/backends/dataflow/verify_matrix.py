"""V9 for the matrix unit: it multiplies with a block that was loaded, and adds to sums that were prepared.

The stationary block and the accumulators are storage of the unit; what they hold is known by its shape. Loops are not
walked: what an iteration leaves behind is the same after the second as after the first, for an operation sets a shape
or leaves it as it is. After a condition, and where two ways meet, a shape may be *open*; it is then left to the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from ktir.backends.dataflow.expression import at
from ktir.backends.dataflow.unit_program import Branch, Instruction, LoopEnd, LoopStart, Program, UnitCode
from ktir.dialect import dfp
from ktir.errors import KtirError, UnwrittenRead

Shape = tuple[int, int]
Known = Shape | Literal["open"] | None
"""What is held: a shape, one that is open, or nothing."""

_SUMS: Final = ("pe_mac", "pe_emit")


@dataclass(frozen=True, slots=True)
class _Held:
    """The stationary block, k x n, and the accumulators, rows x n."""

    block: Known = None
    sums: Known = None

    def joined(self, other: _Held) -> _Held:
        """What is known where two ways meet."""
        return _Held(
            self.block if self.block == other.block else "open", self.sums if self.sums == other.sums else "open"
        )


def matrix_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rule V9 in the programs of matrix units."""
    for code in program.units:
        if any(isinstance(instruction.op, dfp.PeOperation) for instruction in code.instructions):
            yield from _code_faults(code)


def _code_faults(code: UnitCode) -> Iterator[KtirError]:
    """Each fault of an operation once, on the first core that has it."""
    reported: set[tuple[int, str]] = set()
    for core in code.cores:
        walk = _Walk(code, core)
        walk.over(0, len(code.nodes), _Held())
        for instruction, message in walk.faults:
            if (instruction.number, message) not in reported:
                reported.add((instruction.number, message))
                yield UnwrittenRead(
                    f"dfp.{instruction.kind} of core {core} {message}",
                    location=instruction.location,
                    remedy="dfp.pe_load a block, and dfp.pe_clear or dfp.pe_preload as many sums, before",
                )


class _Walk:
    """Follows the code of a unit on one core."""

    def __init__(self, code: UnitCode, core: int) -> None:
        self.code, self.core = code, core
        self.faults: list[tuple[Instruction, str]] = []

    def over(self, place: int, end: int, held: _Held) -> _Held:
        """What is held after the nodes from ``place`` to ``end``."""
        while place < end:
            node = self.code.nodes[place]
            if isinstance(node, LoopStart):
                for _ in range(min(2, at(node.count, self.core))):
                    before, held = held, self.over(place + 1, node.end - 1, held)
                    if held == before:
                        break
                place = node.end
            elif isinstance(node, Branch):
                held = held.joined(self.over(place + 1, node.end, held))
                place = node.end
            else:
                held = held if isinstance(node, LoopEnd) else self._after(node, held)
                place += 1
        return held

    def _after(self, instruction: Instruction, held: _Held) -> _Held:
        if instruction.kind == "pe_load":
            op = cast("dfp.PeLoadOp", instruction.op)
            return replace(held, block=(op.k.value.data, op.n.value.data))
        if instruction.kind in ("pe_clear", "pe_preload"):
            return replace(held, sums=_sums(instruction))
        sums = _sums(instruction) if instruction.kind in _SUMS else held.sums
        if held.sums not in ("open", sums):
            self.faults.append((instruction, f"works on {sums} sums, {held.sums or 'none'} were prepared"))
        if instruction.kind == "pe_mac":
            op = cast("dfp.PeMacOp", instruction.op)
            block = (op.k.value.data, op.n.value.data)
            if held.block not in ("open", block):
                self.faults.append((instruction, f"works on a block of {block}, {held.block or 'none'} is loaded"))
        return held


def _sums(instruction: Instruction) -> Shape:
    op = cast("dfp.PeClearOp | dfp.PeRowsOperation | dfp.PeMacOp", instruction.op)
    return op.rows.value.data, op.n.value.data
