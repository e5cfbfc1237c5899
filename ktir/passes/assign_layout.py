"""Write down how every tensor between kernels lies in memory.

Floats lie in sticks along their last dimension, integers and single numbers dense. Two exceptions. A parameter that is
only the second factor of matrix products has its sticks along the columns of the product, whichever way the model
stores it: it is laid out once, before the first launch; one that is a gathered table as well (an embedding that is also
the output weight) keeps the rows of the table together. A concatenation whose parts do not begin at whole sticks lies
dense. Layouts that a kernel already names are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ktir.analysis.iteration_space import IterationSpace, Load, iteration_space
from ktir.analysis.layout_rules import Layout, default_layout, element_bytes, layouts_of
from ktir.analysis.tensor_views import Unfit, shape_of
from ktir.dialect.ktg import KernelOp
from ktir.machine import Machine
from ktir.maths.ownership import ceil_div
from ktir.maths.stick_layout import DeviceDim, StickLayout
from ktir.passes.contraction import is_contraction
from ktir.passes.fingerprint import Memo
from ktir.passes.graph import graph_functions, kernels_of, machine_of, space_of

PARAMETER = "ktg.parameter"
"""Attribute of an argument that is the same in every call."""


@dataclass(frozen=True)
class AssignLayoutPass(ModulePass):
    """``ktir-assign-layout``"""

    name = "ktir-assign-layout"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in graph_functions(op):
            _Layouts(graph, machine_of(ctx)).assign()


class _Layouts:
    def __init__(self, graph: func.FuncOp, machine: Machine) -> None:
        self.graph, self.machine = graph, machine
        self.known: dict[SSAValue, Layout] = {}
        self.memo = Memo()

    def assign(self) -> None:
        for number, argument in enumerate(self.graph.body.block.args):
            columns = self._columns(argument) if self._is_parameter(number) else None
            self.known[argument] = self._default(argument) if columns is None else columns
        for op in self.graph.body.block.ops:
            if isinstance(op, tensor.ConcatOp):
                self._concatenation(op)
        for kernel in kernels_of(self.graph):
            self._results(kernel)
        for kernel in kernels_of(self.graph):
            kernel.operand_layouts = ArrayAttr(self._of(value).attribute for value in kernel.operands)
            self._check(kernel)

    def _of(self, value: SSAValue) -> Layout:
        return self.known.get(value) or self._default(value)

    def _default(self, value: SSAValue) -> Layout:
        type = cast("TensorType[Attribute]", value.type)
        return Layout.of(default_layout(type, self.machine), type.get_shape())

    def _results(self, kernel: KernelOp) -> None:
        types = [cast("TensorType[Attribute]", value.type) for value in kernel.results]
        said = layouts_of(kernel.result_layouts, types, self.machine)
        for value, layout in zip(kernel.results, said, strict=True):
            self.known.setdefault(value, layout)
        kernel.result_layouts = ArrayAttr(self.known[value].attribute for value in kernel.results)

    # -- concatenations

    def _concatenation(self, op: tensor.ConcatOp) -> None:
        whole = self._default(op.result)
        if not all(self._is_possible(whole.part(offset), value) for value, offset in _parts(op)):
            whole = Layout.of(None, shape_of(op.result))
        self.known[op.result] = whole
        for value, offset in _parts(op):
            self.known[value] = whole.part(offset)

    def _is_possible(self, part: Layout, value: SSAValue) -> bool:
        if not isinstance(value.owner, KernelOp) or part.axes(shape_of(value)) is None:
            return False
        kernel = value.owner
        entries: list[Attribute] = [part.attribute if result is value else NoneAttr() for result in kernel.results]
        kept, kernel.result_layouts = kernel.result_layouts, ArrayAttr(entries)
        possible = self._space(kernel) is not None
        kernel.result_layouts = kept
        return possible

    # -- parameters of matrix products

    def _is_parameter(self, number: int) -> bool:
        attributes = self.graph.arg_attrs
        return attributes is not None and PARAMETER in attributes.data[number].data

    def _columns(self, argument: BlockArgument) -> Layout | None:
        """Sticks along the dimension of a matrix that becomes the columns of every product it is a factor of."""
        if len(shape_of(argument)) != 2:
            return None
        dims = {dim for use in argument.uses for dim in self._column_dims(use.operation, use.index)}
        dim = next(iter(dims)) if len(dims) == 1 else None
        return None if dim is None else Layout.of(self._sticks_along(argument, dim), shape_of(argument))

    def _sticks_along(self, argument: SSAValue, dim: int) -> StickLayout:
        shape = shape_of(argument)
        lanes = self.machine.stick_bytes // element_bytes(cast("TensorType[Attribute]", argument.type).element_type)
        sticks = DeviceDim(dim, ceil_div(shape[dim], lanes), lanes)
        return StickLayout((sticks, DeviceDim(1 - dim, shape[1 - dim], 1), DeviceDim(dim, lanes, 1)), shape, "zero")

    def _column_dims(self, user: Operation, operand: int) -> Iterator[int | None]:
        """For each use of an operand in a kernel, the dimension of it that is the product's columns, or None."""
        if not isinstance(user, KernelOp):
            yield None
            return
        yield from self.memo.get(f"columns of {operand}", user, lambda kernel: self._found_columns(kernel, operand))

    def _found_columns(self, kernel: KernelOp, operand: int) -> list[int | None]:
        space = self._space(kernel)
        if space is None:
            return [None]
        argument = kernel.body.block.args[operand]
        loads = [load for load in space.loads.values() if load.operand == operand]
        factors = [self._column_dim(space, load, argument, use.operation) for load in loads for use in load.value.uses]
        return factors + [None for table in space.tables.values() if table.operand == operand]

    @staticmethod
    def _column_dim(space: IterationSpace, load: Load, argument: SSAValue, op: Operation) -> int | None:
        if not is_contraction(op):
            return None
        total = space.names(op.results[0])
        columns = [name for name in total if name in space.names(load.value)]
        if len(columns) != 1 or total[-1] != columns[0]:
            return None
        names = space.value_dims[argument]
        return next((dim for dim, each in enumerate(names) if each == (columns[0],)), None)

    # -- checking

    def _space(self, kernel: KernelOp) -> IterationSpace | None:
        try:
            return iteration_space(kernel, self.machine)
        except Unfit:
            return None

    def _check(self, kernel: KernelOp) -> None:
        """Raise :class:`CannotPlan` where the layouts leave the kernel without an iteration space."""
        self.memo.get("check", kernel, lambda each: space_of(each, self.machine))


def _parts(op: tensor.ConcatOp) -> list[tuple[SSAValue, tuple[int, ...]]]:
    """The operands of a concatenation and where each begins."""
    dim, rank = op.dim.value.data, len(shape_of(op.result))
    parts: list[tuple[SSAValue, tuple[int, ...]]] = []
    start = 0
    for value in op.inputs:
        parts.append((value, tuple(start if at == dim else 0 for at in range(rank))))
        start += shape_of(value)[dim]
    return parts
