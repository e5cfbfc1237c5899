"""Refuse programs that the reference's legality pass refuses: exchanges that do not fit together, foreign operations.

The rules about exchanges are those of :mod:`ktir.analysis.inter_tile`. Besides, every operation must be of a dialect
that KTIR is made of. Every operation at fault is reported, with the first rule that it breaks, in the words of the
reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ktir.analysis.inter_tile import breaches
from ktir.dialect.locations import location_of
from ktir.errors import SeveralFaults, VerifyError

DIALECTS = frozenset(("arith", "builtin", "func", "ktdp", "linalg", "math", "memref", "scf", "tensor"))
"""What a KTIR kernel may consist of."""


@dataclass(frozen=True)
class CheckInterTilePass(ModulePass):
    """Raises a :class:`VerifyError` for each operation that the reference does not accept in KTIR."""

    name = "ktir-check-inter-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        SeveralFaults.raise_from([*illegal_operations(op), *inter_tile_faults(op)])


@dataclass(frozen=True)
class CheckLegalityPass(CheckInterTilePass):
    """The same under the name that the reference dialect gives it."""

    name = "ktir-check-legality"


def inter_tile_faults(module: ModuleOp) -> Iterator[VerifyError]:
    """The first breach of a rule about exchanges for each operation."""
    for breach in breaches(module):
        yield fault(breach.operation, breach.message)


def illegal_operations(module: ModuleOp) -> Iterator[VerifyError]:
    """Operations of dialects that KTIR is not made of."""
    for operation in module.walk():
        name = operation.op_name.data if isinstance(operation, UnregisteredOp) else operation.name
        dialect = name.partition(".")[0]
        if dialect not in DIALECTS:
            yield fault(operation, f"is not legal in KTIR: it has no dialect '{dialect}'", name)


def fault(operation: Operation, message: str, name: str | None = None) -> VerifyError:
    return VerifyError(f"'{name or operation.name}' op {message}", location=location_of(operation))
