"""Uses of values that nobody defined: the elements of ``tensor.empty``.

``outs`` that a body does not read may be empty. A named contraction adds to its ``outs``; onto an empty tensor it is
read as adding to zero, which public kernels rely on and which is worth a warning. Any other use reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, scf, tensor
from xdsl.ir import Operation, SSAValue, Use

from ktir.analysis.findings import Answer, always_runs, answer, doubtful, proven
from ktir.analysis.launches import Program
from ktir.errors import AccumulatesOntoEmpty, Diagnostic, UninitialisedRead

CONTRACTIONS = frozenset(
    f"linalg.{name}"
    for name in ("matmul", "batch_matmul", "matvec", "vecmat", "dot", "batch_matvec", "batch_reduce_matmul", "contract")
)

RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.reshape", "tensor.cast", "tensor.extract_slice")

ACCUMULATING = frozenset(("linalg.reduce",))

OVERWRITING = ("linalg.", "tensor.insert_slice", "tensor.insert", "tensor.concat", "ktg.")


def check_undefined(program: Program) -> Iterator[Answer]:
    """An answer for every ``tensor.empty`` of a module."""
    for operation in program.module.walk():
        if isinstance(operation, tensor.EmptyOp):
            yield answer("initialisation", readers(operation.tensor))


def readers(value: SSAValue) -> Iterator[Diagnostic]:
    """The operations that read an empty tensor, or a reshaped one."""
    for use in value.uses:
        operation = use.operation
        if operation.name in RESHAPES:
            yield from readers(operation.results[0])
        elif is_output(use):
            yield from as_output(use)
        elif reads(operation) and always_runs(operation):
            yield proven(
                operation,
                UninitialisedRead,
                f"{operation.name} reads a tensor.empty, which holds nothing",
                "fill it first with linalg.fill, or use a dense constant",
            )


def is_output(use: Use) -> bool:
    """Whether an operand is what a structured operation writes its result over: the last, one for each result."""
    operation = use.operation
    outputs = len(operation.results) if operation.name.startswith("linalg.") else 0
    return use.index >= len(operation.operands) - outputs


def as_output(use: Use) -> Iterator[Diagnostic]:
    operation = use.operation
    if operation.name in CONTRACTIONS:
        yield doubtful(
            operation,
            AccumulatesOntoEmpty,
            f"{operation.name} adds to a tensor.empty, which is taken for zero",
            "fill it with zero first",
        )
    elif body_reads(operation, use) and always_runs(operation):
        yield proven(
            operation,
            UninitialisedRead,
            f"the body of {operation.name} reads its output, a tensor.empty, which holds nothing",
            "fill it first with the neutral element of the reduction",
        )


def body_reads(operation: Operation, use: Use) -> bool:
    """Whether a structured operation uses what its output held before."""
    if operation.name in ACCUMULATING:
        return True
    return operation.name == "linalg.generic" and bool(list(operation.regions[0].block.args[use.index].uses))


def reads(operation: Operation) -> bool:
    """Whether an operation takes the elements of every operand; what passes values on is not followed."""
    passing = isinstance(operation, scf.ForOp | scf.IfOp | scf.YieldOp | func.ReturnOp | func.CallOp)
    named = operation.name.startswith(OVERWRITING) and not operation.name.startswith("linalg.")
    return (not passing and not named and not operation.regions) or operation.name.startswith("linalg.")
