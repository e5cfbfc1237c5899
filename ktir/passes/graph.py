"""What every pass on graphs asks first: which functions are graphs, and which machine is meant."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType

from ktir.dialect.context import KtirContext
from ktir.dialect.ktg import KernelOp
from ktir.machine import Machine, load

DEFAULT_MACHINE = "spyre"
"""The machine that decisions are taken for where the context names none."""


def machine_of(ctx: Context) -> Machine:
    """The machine of a context, the default one where it has none."""
    machine = ctx.machine if isinstance(ctx, KtirContext) else None
    return machine if machine is not None else load(DEFAULT_MACHINE)


def graph_functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """Functions over tensors that have a body."""
    for op in list(module.body.block.ops):
        if isinstance(op, func.FuncOp) and not op.is_declaration and is_graph(op):
            yield op


def is_graph(function: func.FuncOp) -> bool:
    """Whether a function is a graph: it takes and gives tensors, and has no grid of its own."""
    types = [*function.function_type.inputs, *function.function_type.outputs]
    return bool(types) and all(isinstance(type, TensorType) for type in types) and "grid" not in function.attributes


def kernels_of(function: func.FuncOp) -> list[KernelOp]:
    """The kernels of a graph, in order."""
    return [op for op in function.body.block.ops if isinstance(op, KernelOp)]
