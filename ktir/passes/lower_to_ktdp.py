"""Lower a planned graph to KTIR: each kernel becomes a function, ``@main`` owns the buffers and launches them in order.

Host tensors are laid out on entry (``ktg.transfer``) and read back at the end; parameters are laid out once, before the
first launch. Kernels that are the same down to their decisions share one function. A result that is an operand of
``tensor.concat`` is stored into its part of the concatenation's buffer, so the concatenation itself costs nothing.

Left alone: functions without ``ktg.kernel``. Refused: what a kernel cannot do (:class:`NotLowerable`), and operations
between kernels that ``ktir-fuse`` would have put into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ktir.analysis.layout_rules import Layout, element_bytes, layouts_of
from ktir.analysis.schedule import schedule_of
from ktir.dialect import overlay
from ktir.dialect.ktdp import StickLayoutAttr
from ktir.dialect.ktdp.attrs import LAYOUT
from ktir.dialect.ktg import KernelOp, TransferOp
from ktir.dialect.locations import location_of
from ktir.errors import CannotPlan, NotLowerable
from ktir.machine import Machine
from ktir.passes.fingerprint import Fingerprint, fingerprint
from ktir.passes.graph import graph_functions, machine_of, space_of
from ktir.passes.kernel_function import kernel_function
from ktir.passes.value_range import value_range


@dataclass(frozen=True)
class LowerToKtdpPass(ModulePass):
    """``ktir-lower-to-ktdp``"""

    name = "ktir-lower-to-ktdp"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        overlay.repair_all()
        functions = _Functions(op, machine_of(ctx))
        for graph in graph_functions(op):
            _Main(graph, functions, machine_of(ctx)).rewrite()


class _Functions:
    """The functions made of kernels, one for each different kernel."""

    def __init__(self, module: ModuleOp, machine: Machine) -> None:
        self.module, self.machine = module, machine
        self.made: dict[Fingerprint, str] = {}
        self.names = {each.sym_name.data for each in module.body.block.ops if isinstance(each, func.FuncOp)}

    def function_for(self, kernel: KernelOp, before: Operation) -> str:
        """The name of the function that does what ``kernel`` says."""
        key = fingerprint(kernel)
        if key not in self.made:
            name = self._fresh(kernel.sym_name.data if kernel.sym_name is not None else "kernel")
            function = kernel_function(name, kernel, schedule_of(kernel, space_of(kernel, self.machine)))
            Builder(InsertPoint.before(before)).insert(function)
            self.made[key] = name
        return self.made[key]

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        return name


class _Main:
    """Rewrites one graph function into the host program."""

    def __init__(self, graph: func.FuncOp, functions: _Functions, machine: Machine) -> None:
        self.graph, self.functions, self.machine = graph, functions, machine
        self.block = Block()
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.pointers: dict[SSAValue, SSAValue] = {}
        self.constants: dict[int, SSAValue] = {}
        self.location = graph.location
        """Of what is being lowered; everything that is emitted for it gets it."""

    def rewrite(self) -> None:
        old = self.graph.body.block
        result = cast("func.ReturnOp", old.last_op)
        attributes = self._argument_attributes()
        for argument in old.args:
            new = self.block.insert_arg(_memref(argument.type), len(self.block.args))
            new.name_hint = argument.name_hint
            users = [use.operation for use in argument.uses if isinstance(use.operation, KernelOp)]
            if users:
                self.location = users[0].location
                self._enter(argument, new)
        for op in list(old.ops):
            self.location = op.location
            self._lower(op)
        for number, value in enumerate(result.operands):
            out = self.block.insert_arg(_memref(value.type), len(self.block.args))
            out.name_hint = f"out{number}"
            if isinstance(value.owner, Operation):
                self.location = value.owner.location
            self._emit(TransferOp(self._buffer(value, result), out))
        self._emit(func.ReturnOp())
        self._replace(attributes)

    def _replace(self, attributes: ArrayAttr[DictionaryAttr]) -> None:
        region = Region(self.block)
        type = FunctionType.from_lists([argument.type for argument in self.block.args], [])
        function = func.FuncOp(self.graph.sym_name.data, type, region, self.graph.sym_visibility, arg_attrs=attributes)
        function.attributes.update(self.graph.attributes)
        function.location = self.graph.location
        for op in function.walk():
            op.location = op.location if location_of(op) is not None else self.graph.location
        parent = cast("Block", self.graph.parent)
        parent.insert_op_after(function, self.graph)
        parent.erase_op(self.graph)

    def _argument_attributes(self) -> ArrayAttr[DictionaryAttr]:
        inputs = self.graph.arg_attrs.data if self.graph.arg_attrs is not None else ()
        count = len(self.graph.body.block.args)
        entries = list(inputs) or [DictionaryAttr({})] * count
        asked = map(value_range, self.graph.body.block.args)
        entries = [DictionaryAttr({**entry.data, **more}) for entry, more in zip(entries, asked, strict=True)]
        results = self.graph.res_attrs.data if self.graph.res_attrs is not None else ()
        outputs = len(self.graph.function_type.outputs)
        for number in range(outputs):
            named = dict(results[number].data) if number < len(results) else {}
            default = StringAttr("output" if outputs == 1 else f"output_{number}")
            entries.append(DictionaryAttr({"ktg.name": default, **named, "ktg.result": IntegerAttr(number, i64)}))
        return ArrayAttr(entries)

    # -- buffers

    def _emit(self, op: Operation) -> SSAValue | None:
        op.location = self.location
        self.block.add_op(op)
        return op.results[0] if op.results else None

    def _allocate(self, value: SSAValue, layout: Layout) -> SSAValue:
        element = cast("TensorType[Attribute]", value.type).element_type
        sticks = layout.sticks
        shape = layout.extent if sticks is None else sticks.physical_shape
        alloc = memref.AllocOp([], [], MemRefType(element, shape), IntegerAttr(self.machine.alignment, i64))
        if sticks is not None:
            alloc.attributes[LAYOUT] = StickLayoutAttr(sticks)
        self._emit(alloc)
        self.buffers[value] = alloc.memref
        return alloc.memref

    def _enter(self, argument: SSAValue, host: SSAValue) -> None:
        layouts = set(self._layouts_wanted(argument))
        if len(layouts) > 1:
            raise CannotPlan(
                f"argument {argument.name_hint or argument} is wanted in {len(layouts)} layouts at once",
                location=location_of(self.graph),
                remedy="let ktir-assign-layout choose the layouts",
            )
        self._emit(TransferOp(host, self._allocate(argument, layouts.pop())))

    def _layouts_wanted(self, value: SSAValue) -> Iterator[Layout]:
        for use in value.uses:
            if isinstance(use.operation, KernelOp):
                types = [cast("TensorType[Attribute]", each.type) for each in use.operation.operands]
                yield layouts_of(use.operation.operand_layouts, types, self.machine)[use.index]

    def _buffer(self, value: SSAValue, user: Operation) -> SSAValue:
        if value not in self.buffers:
            fault, remedy = "a value that no kernel makes", "run ktir-fuse first"
            if isinstance(value.owner, arith.ConstantOp):
                fault, remedy = "a constant of different numbers", "make it an argument of the function"
            raise NotLowerable(f"{user.name} uses {fault}", location=location_of(user), remedy=remedy)
        return self.buffers[value]

    def _pointer(self, buffer: SSAValue) -> SSAValue:
        """The element number at which a buffer begins."""
        if buffer not in self.pointers:
            extract = memref.ExtractAlignedPointerAsIndexOp.build(operands=[buffer], result_types=[IndexType()])
            self._emit(extract)
            size = element_bytes(cast("MemRefType[Attribute]", buffer.type).element_type)
            pointer = extract.results[0]
            if size != 1:
                pointer = cast("SSAValue", self._emit(arith.DivUIOp(pointer, self._constant(size))))
            self.pointers[buffer] = pointer
        return self.pointers[buffer]

    def _constant(self, value: int) -> SSAValue:
        if value not in self.constants:
            op = arith.ConstantOp(IntegerAttr(value, IndexType()))
            first = self.block.first_op
            if first is None:
                self.block.add_op(op)
            else:
                self.block.insert_op_before(op, first)
            self.constants[value] = op.result
        return self.constants[value]

    # -- operations

    def _lower(self, op: Operation) -> None:
        match op:
            case KernelOp():
                self._launch(op)
            case tensor.ConcatOp():
                pass
            case func.ReturnOp():
                pass
            case arith.ConstantOp() | tensor.EmptyOp():
                pass
            case _:
                raise NotLowerable(
                    f"{op.name} stands outside a kernel", location=location_of(op), remedy="run ktir-fuse first"
                )

    def _launch(self, kernel: KernelOp) -> None:
        name = self.functions.function_for(kernel, self.graph)
        types = [cast("TensorType[Attribute]", value.type) for value in kernel.results]
        layouts = layouts_of(kernel.result_layouts, types, self.machine)
        for value, layout in zip(kernel.results, layouts, strict=True):
            whole = concatenated(value)
            if whole is None:
                self._allocate(value, layout)
            else:
                buffer = self.buffers.get(whole) or self._allocate(whole, Layout(layout.sticks, layout.extent, ()))
                self.buffers[value] = buffer
        values = [*kernel.operands, *kernel.results]
        pointers = [self._pointer(self._buffer(value, kernel)) for value in values]
        self._emit(func.CallOp(SymbolRefAttr(name), pointers, []))


def concatenated(value: SSAValue) -> SSAValue | None:
    """The concatenation that ``value`` is stored into, if it is an operand of one."""
    owners = [use.operation for use in value.uses]
    return owners[0].results[0] if len(owners) == 1 and isinstance(owners[0], tensor.ConcatOp) else None


def _memref(type: Attribute) -> MemRefType[Attribute]:
    tensor_type = cast("TensorType[Attribute]", type)
    return MemRefType(tensor_type.element_type, tensor_type.get_shape())
