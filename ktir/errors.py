"""Errors a user can meet. One class per fault: its name is the stable id that tests and tools rely on.

The classes are grouped by the layer that raises them. All live here so that any layer can catch what a lower one raises
without importing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ktir.location import Location


class KtirError(Exception):
    """Base of every error the toolchain raises on purpose.

    ``location`` is where the IR or the model source is at fault; ``remedy`` says what the reader can do;
    ``related`` are further places that belong to the same fault, each with a short note.
    """

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        remedy: str | None = None,
        related: tuple[tuple[Location, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message, self.location, self.remedy, self.related = message, location, remedy, related

    @property
    def code(self) -> str:
        """The stable name of the fault."""
        return type(self).__name__

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        notes = "".join(f"\n{place}: note: {note}" for place, note in self.related)
        advice = f"\nhelp: {self.remedy}" if self.remedy else ""
        return f"{where}error: {self.message} [{self.code}]{notes}{advice}"


class SeveralFaults(KtirError):
    """More than one fault was found in one go; ``faults`` are all of them, the message is the first one's."""

    def __init__(self, faults: Sequence[KtirError]) -> None:
        super().__init__(f"{faults[0].message}, and {len(faults) - 1} more", location=faults[0].location)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))

    @staticmethod
    def raise_from(faults: Sequence[KtirError]) -> None:
        """Raises what there is: nothing, the only fault itself, or all together."""
        if len(faults) > 1:
            raise SeveralFaults(faults)
        for fault in faults:
            raise fault


Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding that does not stop the work. ``code`` is the name of the error class it would be raised as."""

    code: str
    severity: Severity
    message: str
    location: Location | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        advice = f"\nhelp: {self.remedy}" if self.remedy else ""
        return f"{where}{self.severity}: {self.message} [{self.code}]{advice}"


# ------------------------------------------------------------------------------------------------ text and verification


class ParseError(KtirError):
    """The text is not IR."""


class NestingTooDeep(ParseError):
    """Regions, types or expressions are nested beyond what the parser follows."""


class VerifyError(KtirError):
    """The IR breaks a rule of its dialect."""


class NotMigratable(KtirError):
    """Old KTIR that no rule turns into new KTIR; names the rule that is missing."""


class PipelineError(KtirError):
    """A pass pipeline names an unknown pass, or options a pass does not have."""


class PassFailed(KtirError):
    """A pass gave up on IR that it should have handled or refused with a reason of its own."""


class RoundTripError(KtirError):
    """Printing IR and reading the text again gives other IR."""


class UnknownOperation(KtirError):
    """An operation of a dialect that nobody registered, or one without a meaning at this level."""


class FunctionNotFound(KtirError):
    """The module holds no function of that name."""


class ValueNotFound(KtirError):
    """The program has no value, and the function no argument, of that name."""


# ---------------------------------------------------------------------------------------------------------------- maths


class IllegalSplit(KtirError):
    """A dimension cannot be cut as asked."""


class IllegalLayout(KtirError):
    """A tensor cannot be laid out in sticks as asked."""


class UnboundedSet(KtirError):
    """An integer set has no finite number of points, so it cannot be enumerated."""


# -------------------------------------------------------------------------------------------------------------- machine


class MachineFileError(KtirError):
    """A machine description is malformed: unknown key, missing source or confidence, no path between two memories."""


class UnknownMachine(KtirError):
    """No machine description of that name."""


class NotCapable(KtirError):
    """The machine has no unit for an operation on an element type, or no path between two memories."""


# ------------------------------------------------------------------------------------------------------------ execution


class ArgumentError(KtirError):
    """An argument of a launch is missing, unknown, of the wrong element type or too short."""


class ExecutionError(KtirError):
    """Base of what goes wrong while a program runs."""


class OutOfBounds(ExecutionError):
    """An access outside its view, its buffer or its memory."""


class UninitialisedRead(ExecutionError):
    """A value was used that nobody wrote."""


class PaddingRead(ExecutionError):
    """The content of a padding lane reached a result."""


class WriteConflict(ExecutionError):
    """Two cores wrote the same element in one launch."""


class ReadWriteRace(ExecutionError):
    """One core read what another wrote in the same launch, with nothing that orders the two."""


class RemoteReadRace(ReadWriteRace):
    """A core read another core's scratchpad in the launch in which it was written."""


class ScratchpadOverflow(ExecutionError):
    """More bytes than a core's scratchpad holds."""


class DistributedViewHole(ExecutionError):
    """An access to a distributed view touched coordinates that no partition owns."""


class DistributedViewOverlap(ExecutionError):
    """Two partitions of a distributed view own the same coordinates."""


class IncompleteCoverage(ExecutionError):
    """An output view of which some elements are never written."""


class ScratchpadOverlap(ExecutionError):
    """Two buffers of a scratchpad share bytes while both are in use."""


class BufferOverlap(ExecutionError):
    """Two buffers of ``@main`` were given the same bytes while both are in use."""


class UnalignedAddress(ExecutionError):
    """A buffer or an access that does not begin at a stick, or is not whole sticks."""


class ViewTypeMismatch(ExecutionError):
    """A view whose memref type says another layout or memory space than the operation does."""


class AccumulatesOntoEmpty(ExecutionError):
    """A contraction accumulates onto ``tensor.empty``, which is taken for zero."""


class SpanTooLarge(ExecutionError):
    """A core reaches over more bytes of one tensor than it can address."""


class LoopCountTooLarge(ExecutionError):
    """A loop with more iterations than the loop counter of a unit holds."""


class GridExceedsMachine(ExecutionError):
    """A kernel's grid has more tiles than the machine has cores."""


class IllegalGrid(ExecutionError):
    """A grid with no axes or with an extent that is not positive."""


class TileShapeMismatch(ExecutionError):
    """The points of an access tile do not fill the shape of its type."""


class ElementTypeMismatch(ExecutionError):
    """A tile of one element type is loaded from or stored to a view of another."""


class Deadlock(ExecutionError):
    """Nothing can go on: every core or unit waits for another."""


class LoopStepNotPositive(ExecutionError):
    """An ``scf.for`` whose step is zero or negative."""


class DivisionByZero(ExecutionError):
    """An integer division or remainder by zero."""


class IntegerOverflow(ExecutionError):
    """An integer result that MLIR leaves undefined was used: overflow against a flag, a shift beyond the width, a float
    beyond the range of the integer."""


class LimitExceeded(ExecutionError):
    """A run went past ``max_steps`` or ``max_bytes``."""


# ------------------------------------------------------------------------------------------------------------- planning


class OwnershipMismatch(KtirError):
    """A kernel takes from a core's scratchpad a slice of a tensor that the kernel before it did not leave there."""


class CannotPlan(KtirError):
    """No legal plan within the rules: says which resource stands in the way."""


class NotLowerable(KtirError):
    """An operation has no lowering to the level below; names the operation and the reason."""


# ----------------------------------------------------------------------------------------------------- dataflow program


class DataflowError(KtirError):
    """Base of what the verifier of dataflow programs finds."""


class QueueMisuse(DataflowError):
    """A queue or buffer without exactly one producer and its listed consumers, or between units with no path (V2)."""


class QueueImbalance(DataflowError):
    """Pushes and pops of a queue, or commits and acquires of a buffer, do not add up over the program (V3)."""


class DataflowDeadlock(DataflowError, Deadlock):
    """The program stops before its end with the depths it declares (V4)."""


class SlotMisuse(DataflowError):
    """A unit uses a tile it does not hold, gives back more than it took, or waits for what only it would do (V5)."""


class DataflowRace(DataflowError, ReadWriteRace):
    """Two units touch the same bytes, one of them writing, with nothing that orders the two (V6)."""


class UnwrittenRead(DataflowError, UninitialisedRead):
    """A unit reads bytes that nobody wrote (V9)."""


class PartnerMismatch(DataflowError):
    """Cores that send to and receive from each other disagree, or a chain of cores leads back to itself (V10)."""


class OutputWrites(DataflowError):
    """Bytes of an output that are written more often than once, or never (V11)."""


class CapacityExceeded(DataflowError):
    """Buffers overlap or do not fit their memory; too many descriptor dimensions (V7)."""


class DescriptorOutOfBounds(DataflowError):
    """A descriptor reaches outside its buffer, or is not aligned as the machine asks (V8)."""


# ------------------------------------------------------------------------------------------------------------- frontend


class UnsupportedOperator(KtirError):
    """The model uses an operator outside the imported set; names it with its shapes."""


class UnsupportedInput(KtirError):
    """A model or call that cannot be captured as asked: dynamic shapes, other element types, other arguments."""


class StaleProgram(KtirError):
    """A tensor whose value went into a program at compile time has another value now."""


class PackageError(KtirError):
    """A saved package is missing a part or was made by another version."""


class ReportError(KtirError):
    """A file is no report, or one of another version."""


# ---------------------------------------------------------------------------------------------- files, cases, arguments


class FileUnusable(KtirError):
    """A file cannot be read or written, or an output would overwrite an input."""


class CaseError(KtirError):
    """The header of a conformance case is malformed or cannot be evaluated."""


class UnexpectedResult(KtirError):
    """A program ran and gave other values than its case expects."""


class MissingDependency(KtirError):
    """A part of the toolchain needs a package that is not installed; the remedy names it."""
