"""What every pass on graphs asks first: which functions are graphs, and which machine is meant."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType

from ktir.analysis.iteration_space import IterationSpace, iteration_space
from ktir.analysis.tensor_views import Unfit
from ktir.dialect.context import KtirContext
from ktir.dialect.ktg import KernelOp
from ktir.dialect.locations import location_of
from ktir.errors import CannotPlan
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


def erase_unused(graph: func.FuncOp) -> None:
    """Erase what no result of a graph depends on; everything in a graph is a value without effects."""
    for op in reversed(list(graph.body.block.ops)):
        used = any(next(iter(result.uses), None) is not None for result in op.results)
        if not used and not isinstance(op, func.ReturnOp):
            op.detach()
            op.erase()


def space_of(kernel: KernelOp, machine: Machine) -> IterationSpace:
    """The iteration space of a kernel; raises :class:`CannotPlan` where it has none."""
    try:
        return iteration_space(kernel, machine)
    except Unfit as fault:
        raise CannotPlan(
            f"the kernel has no iteration space: {fault}",
            location=location_of(kernel),
            remedy="let ktir-fuse form the kernels, or put a copy before the view",
        ) from fault
