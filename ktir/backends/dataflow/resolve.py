"""Resolves the text of a ``dfp.program``: from operations to flat code with every operand worked out.

What an index value is follows from the operations that make it; constants of the core are kept core by core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstraintKind, AffineExpr

from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.expression import Expression, Linear, PerCore, binary, from_affine
from ktir.backends.dataflow.iteration_space import Condition
from ktir.backends.dataflow.unit_program import (
    Access,
    Branch,
    Buffer,
    Flow,
    Instruction,
    Link,
    LoopEnd,
    LoopStart,
    Program,
    Queue,
    Symbol,
    UnitCode,
    dtype_name,
)
from ktir.dialect import dfp
from ktir.dialect.locations import location_of, text_place_of
from ktir.errors import FunctionNotFound, NotCapable, QueueMisuse, VerifyError
from ktir.machine import Machine

_MOST_ITERATIONS: Final = (1 << 63) - 1
"""Iterations of a loop: an index has 64 bits."""


def _largest(number: PerCore) -> int:
    return number if isinstance(number, int) else max(number)


def find_program(module: Operation) -> dfp.ProgramOp:
    """The only ``dfp.program`` of ``module``, or ``module`` itself if it is one."""
    if isinstance(module, dfp.ProgramOp):
        return module
    found = [op for op in cast("ModuleOp", module).body.ops if isinstance(op, dfp.ProgramOp)]
    if len(found) != 1:
        raise FunctionNotFound(f"expected one dfp.program, found {len(found)}", location=location_of(module))
    return found[0]


def compile_program(module: Operation, machine: Machine) -> Program:
    """Resolves ``module``; raises :class:`VerifyError` where the program is not well formed."""
    op = find_program(module)
    cores = op.cores.value.data
    if cores > machine.cores:
        raise NotCapable(
            f"the program is for {cores} cores, {machine.name} has {machine.cores}", location=location_of(op)
        )
    return _Compiler(op, machine, cores).program()


class _Compiler:
    def __init__(self, op: dfp.ProgramOp, machine: Machine, cores: int) -> None:
        self.op, self.machine, self.cores = op, machine, cores
        self.symbols: dict[SSAValue, Symbol] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.queues: dict[SSAValue, Queue] = {}

    def program(self) -> Program:
        units: list[UnitCode] = []
        for op in self.op.body.block.ops:
            match op:
                case dfp.SymbolOp():
                    self.symbols[op.result] = Symbol(
                        op.sym_name.data, op.alignment.value.data, op.bound.value.data, location_of(op)
                    )
                case dfp.BufferOp():
                    self.buffers[op.result] = self._buffer(op)
                case dfp.QueueOp():
                    self.queues[op.result] = self._queue(op)
                case dfp.UnitOp():
                    units.append(_UnitCompiler(self, op, len(units)).code)
                case _:
                    raise VerifyError(f"{op.name} has no place in a dfp.program", location=location_of(op))
        return Program(
            name=self.op.sym_name.data,
            machine=self.machine,
            cores=self.cores,
            buffers=tuple(self.buffers.values()),
            queues=tuple(self.queues.values()),
            units=tuple(units),
            location=location_of(self.op),
            symbols=tuple(self.symbols.values()),
        )

    def _buffer(self, op: dfp.BufferOp) -> Buffer:
        if op.memory.data not in self.machine.memories:
            raise NotCapable(f"{self.machine.name} has no memory {op.memory.data}", location=location_of(op))
        per_core = self.machine.memory(op.memory.data).scope != "device"
        if per_core and op.base is not None:
            raise VerifyError(
                f"buffer {op.sym_name.data} of {op.memory.data} begins at a symbol, an address of device memory",
                location=location_of(op),
                remedy="give it an offset alone",
            )
        return Buffer(
            number=len(self.buffers),
            name=op.sym_name.data,
            memory=op.memory.data,
            per_core=per_core,
            offset=op.offset.value.data,
            size=op.bytes.value.data,
            slots=op.slot_count,
            producer=op.producer.data if op.producer else None,
            consumers=op.consumer_units,
            launches=op.launch_range,
            location=location_of(op),
            base=self.symbols[op.base] if op.base is not None else None,
            writes=op.writes.data if op.writes is not None else None,
            stored=op.stored_boxes,
            text_place=text_place_of(op),
        )

    def _queue(self, op: dfp.QueueOp) -> Queue:
        return Queue(
            number=len(self.queues),
            name=op.sym_name.data,
            source=op.source.data,
            target=op.target.data,
            depth=op.depth.value.data,
            vector_bytes=op.vector_bytes.value.data,
            location=location_of(op),
        )


class _UnitCompiler:
    """Flattens the region of one unit; remembers what each index value is."""

    def __init__(self, parent: _Compiler, op: dfp.UnitOp, number: int) -> None:
        self.parent, self.machine = parent, parent.machine
        self.values: dict[SSAValue, Expression] = {}
        self.counts: list[PerCore] = []
        self.loops: list[int] = []
        self.conditions: list[Condition] = []
        self.numbers = self.launch = 0
        self.code = UnitCode(number, op.unit.data, op.corelet.value.data, dfp.values_of(op.cores), location_of(op))
        if any(core >= parent.cores for core in self.code.cores):
            raise VerifyError(f"the program has {parent.cores} cores", location=location_of(op))
        self.values[op.body.block.args[0]] = Linear(tuple(range(parent.cores)))
        self._block(op.body.block)

    # -------------------------------------------------------------------------------------------------------- structure

    def _block(self, block: Block) -> None:
        for op in block.ops:
            builder = _INSTRUCTIONS.get(type(op))
            if builder is not None:
                self.code.nodes.append(builder(self, op))
            elif isinstance(op, dfp.ForOp):
                self._loop(op)
            elif isinstance(op, dfp.IfOp):
                self._branch(op)
            else:
                value = self._value(op)
                self.values[op.results[0]] = value

    def _loop(self, op: dfp.ForOp) -> None:
        count = self.expression(op.count)
        if not isinstance(count, Linear) or count.terms:
            raise VerifyError("the count of a dfp.for is a constant of the core", location=location_of(op))
        if _largest(count.constant) > _MOST_ITERATIONS:
            raise VerifyError(
                f"a loop of {_largest(count.constant)} iterations, of {_MOST_ITERATIONS} at most",
                location=location_of(op),
            )
        depth = len(self.counts)
        self.code.depth = max(self.code.depth, depth + 1)
        start = len(self.code.nodes)
        self.code.nodes.append(LoopStart(depth, count.constant, 0))
        self.values[op.body.block.args[0]] = Linear(0, ((depth, 1),))
        self.counts.append(count.constant)
        self.loops.append(start)
        self._block(op.body.block)
        self.counts.pop()
        self.loops.pop()
        if len(self.code.nodes) == start + 1:
            self.code.nodes.pop()  # nothing happens in it
            return
        self.code.nodes.append(LoopEnd(depth, start + 1))
        self.code.nodes[start] = LoopStart(depth, count.constant, len(self.code.nodes))

    def _branch(self, op: dfp.IfOp) -> None:
        condition = op.condition.data
        operands = [self.expression(operand) for operand in op.conditions_on]
        dims = condition.num_dims
        conditions: list[Condition] = []
        for each in condition.constraints:
            # an AffineConstraintExpr compares lhs with rhs; ours compare with zero
            left = self._affine(op, each.lhs, operands[:dims], operands[dims:])
            right = self._affine(op, each.rhs, operands[:dims], operands[dims:])
            larger, smaller = (right, left) if each.kind is AffineConstraintKind.le else (left, right)
            negative = binary(AffineBinaryOpKind.Mul, smaller, Linear(-1))
            difference = binary(AffineBinaryOpKind.Add, larger, negative)
            conditions.append(Condition(difference, each.kind is AffineConstraintKind.eq))
        start = len(self.code.nodes)
        self.code.nodes.append(Branch((), 0))
        self.conditions.extend(conditions)
        self._block(op.body.block)
        del self.conditions[len(self.conditions) - len(conditions) :]
        if len(self.code.nodes) == start + 1:
            self.code.nodes.pop()
            return
        self.code.nodes[start] = Branch(tuple(conditions), len(self.code.nodes))

    def _affine(
        self, op: Operation, expression: AffineExpr, dims: Sequence[Expression], symbols: Sequence[Expression]
    ) -> Expression:
        try:
            return from_affine(expression, dims, symbols)
        except VerifyError as error:
            error.location = location_of(op)
            raise

    def _value(self, op: Operation) -> Expression:
        match op:
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
                return Linear(op.value.value.data)
            case dfp.TableOp():
                return self._table(op)
            case affine.ApplyOp():
                operands = [self.expression(operand) for operand in op.mapOperands]
                dims = op.map.data.num_dims
                return self._affine(op, op.map.data.results[0], operands[:dims], operands[dims:])
            case arith.AddiOp() | arith.MuliOp():
                kind = AffineBinaryOpKind.Add if isinstance(op, arith.AddiOp) else AffineBinaryOpKind.Mul
                left, right = AffineExpr.dimension(0), AffineExpr.dimension(1)
                operands = [self.expression(operand) for operand in op.operands]
                return self._affine(op, AffineBinaryOpExpr(kind, left, right), operands, ())
            case _:
                raise VerifyError(f"{op.name} has no place in the program of a unit", location=location_of(op))

    def _table(self, op: dfp.TableOp) -> Expression:
        entries = dfp.values_of(op.values)
        if len(entries) != self.parent.cores:
            raise VerifyError(
                f"a table has one entry for each of {self.parent.cores} cores, not {len(entries)}",
                location=location_of(op),
            )
        core = self.expression(op.core)
        if not (isinstance(op.core, BlockArgument) and core == Linear(tuple(range(self.parent.cores)))):
            raise VerifyError("a table is indexed by the core number", location=location_of(op))
        return Linear(entries[0] if len(set(entries)) == 1 else entries)

    def expression(self, value: SSAValue) -> Expression:
        """What ``value`` is."""
        if value not in self.values:
            owner = value.owner
            place = location_of(owner) if isinstance(owner, Operation) else self.code.location
            raise VerifyError("an index comes from the unit's own program", location=place)
        return self.values[value]

    # --------------------------------------------------------------------------------------------------------- operands

    def width(self, element: Attribute, op: Operation) -> int:
        """Bytes of an element as stored."""
        name = dtype_name(element)
        if name == "index":
            return 8
        if name not in self.machine.dtypes or self.machine.dtypes[name].bits % 8:
            known = ", ".join(each.name for each in self.machine.dtypes.values() if each.bits % 8 == 0)
            raise NotCapable(
                f"{self.machine.name} does not store {name}", location=location_of(op), remedy=f"use one of {known}"
            )
        return self.machine.bytes_of(name)

    def access(
        self,
        op: Operation,
        buffer: SSAValue,
        offset: SSAValue,
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
        *,
        writes: bool,
        slot: int = 0,
        indirect: bool = False,
    ) -> Access:
        """A descriptor of ``op``."""
        return Access(
            self.parent.buffers[buffer],
            self.expression(offset),
            Box(tuple(counts), tuple(strides), self.width(element, op)),
            dtype_name(element),
            writes,
            slot,
            indirect,
        )

    def flow(self, op: Operation, queue: SSAValue, elements: int, element: Attribute) -> Flow:
        """What ``op`` pops or pushes."""
        return Flow(self.parent.queues[queue], elements, dtype_name(element), self.width(element, op))

    def instruction(
        self,
        op: Operation,
        *,
        accesses: tuple[Access, ...] = (),
        pops: tuple[Flow, ...] = (),
        pushes: tuple[Flow, ...] = (),
        ring: Buffer | None = None,
        link: Link | None = None,
        launch: int = 0,
    ) -> Instruction:
        """``op`` with what it touches."""
        self.numbers += 1
        return Instruction(
            self.numbers - 1,
            op,
            op.name.removeprefix("dfp."),
            location_of(op),
            tuple(self.loops),
            tuple(self.counts),
            tuple(self.conditions),
            accesses,
            pops,
            pushes,
            ring,
            link,
            launch,
        )

    def source(self, op: dfp.BoxSource) -> Access:
        """The box that ``op`` reads."""
        counts, strides = dfp.values_of(op.counts), dfp.values_of(op.strides)
        return self.access(op, op.source, op.offset, counts, strides, op.element, writes=False, slot=op.slot_number)

    def target(self, op: dfp.BoxTarget) -> Access:
        """The box that ``op`` writes."""
        counts, strides = dfp.values_of(op.counts), dfp.values_of(op.strides)
        return self.access(op, op.target, op.offset, counts, strides, op.element, writes=True)

    def link(self, op: Operation, *, sources: Sequence[SSAValue] = (), targets: Sequence[SSAValue] = ()) -> Link:
        """The network of the unit with the cores at the other side."""
        unit = self.machine.units.get(self.code.unit)
        nets = [name for name in (*unit.sources, *unit.targets) if name in self.machine.nets] if unit else []
        if not nets:
            raise NotCapable(f"{self.code.unit} is on no network of {self.machine.name}", location=location_of(op))
        return Link(nets[0], tuple(map(self.expression, sources)), tuple(map(self.expression, targets)))


def _barrier(unit: _UnitCompiler, op: Operation) -> Instruction:
    """A barrier begins its launch once, so that what lies between two barriers is the same for every unit."""
    launch = cast("dfp.BarrierOp", op).launch.value.data
    if unit.loops or unit.conditions:
        raise QueueMisuse(
            f"the barrier of launch {launch} stands in a loop or a condition of {unit.code.unit}",
            location=location_of(op),
            remedy="write the launches one after the other, each with its barrier",
        )
    if launch <= unit.launch:
        raise QueueMisuse(
            f"{unit.code.unit} begins launch {launch} after launch {unit.launch}",
            location=location_of(op),
            remedy="number the launches upwards from 1",
        )
    unit.launch = launch
    return unit.instruction(op, launch=launch)


def _token(unit: _UnitCompiler, op: Operation) -> Instruction:
    buffer = unit.parent.buffers[cast("dfp.SlotOperation", op).buffer]
    if not buffer.slots:
        raise VerifyError(f"buffer {buffer.name} has no slots", location=location_of(op), remedy="give it slots")
    return unit.instruction(op, ring=buffer)


def _copy(unit: _UnitCompiler, op: Operation) -> Instruction:
    return unit.instruction(op, accesses=_both_sides(unit, cast("dfp.CopyOp", op), cast("dfp.CopyOp", op).slot_number))


def _both_sides(unit: _UnitCompiler, op: dfp.CopyOp | dfp.ChainOp, slot: int = 0) -> tuple[Access, Access]:
    counts, read, written = map(dfp.values_of, (op.counts, op.src_strides, op.dst_strides))
    return (
        unit.access(op, op.source, op.source_offset, counts, read, op.element, writes=False, slot=slot),
        unit.access(op, op.target, op.target_offset, counts, written, op.element, writes=True),
    )


def _indirect(unit: _UnitCompiler, op: Operation) -> Instruction:
    """Accesses: the index list, one row of the indexed side, all lines of the other side."""
    move = cast("dfp.IndirectOperation", op)
    gathers = isinstance(move, dfp.GatherOp)
    count, row = move.count.value.data, dfp.values_of(move.row_counts)
    indices = unit.access(
        op,
        move.index,
        move.index_offset,
        (count,),
        (unit.width(move.index_element, op),),
        move.index_element,
        writes=False,
    )
    source_strides, target_strides = dfp.values_of(move.row_src_strides), dfp.values_of(move.row_dst_strides)
    lines, line = (count, *row), move.line_stride.value.data
    source_box = (row, source_strides) if gathers else (lines, (line, *source_strides))
    target_box = (lines, (line, *target_strides)) if gathers else (row, target_strides)
    source = unit.access(op, move.source, move.source_offset, *source_box, move.element, writes=False, indirect=gathers)
    target = unit.access(
        op, move.target, move.target_offset, *target_box, move.element, writes=True, indirect=not gathers
    )
    return unit.instruction(op, accesses=(indices, source, target))


def _stream(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.StreamOp", op)
    access = unit.source(move)
    pushed = unit.flow(op, move.queue, access.box.elements, move.element)
    return unit.instruction(op, accesses=(access,), pushes=(pushed,))


def _drain(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.DrainOp", op)
    access = unit.target(move)
    popped = unit.flow(op, move.queue, access.box.elements, move.element)
    return unit.instruction(op, accesses=(access,), pops=(popped,))


def _send(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.SendOp", op)
    return unit.instruction(op, accesses=(unit.source(move),), link=unit.link(op, targets=[move.destination]))


def _multicast(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.MulticastOp", op)
    return unit.instruction(op, accesses=(unit.source(move),), link=unit.link(op, targets=move.destinations))


def _receive(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.ReceiveOp", op)
    return unit.instruction(op, accesses=(unit.target(move),), link=unit.link(op, sources=[move.source]))


def _chain(unit: _UnitCompiler, op: Operation) -> Instruction:
    chain = cast("dfp.ChainOp", op)
    link = unit.link(op, sources=[chain.previous], targets=[chain.next])
    return unit.instruction(op, accesses=_both_sides(unit, chain), link=link)


def _sfu_map(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.SfuMapOp", op)
    elements = Box(dfp.values_of(work.shape), (0,) * len(dfp.values_of(work.shape)), 1).elements
    arguments = work.body.block.args
    pops = tuple(
        unit.flow(op, queue, elements, argument.type) for queue, argument in zip(work.inputs, arguments, strict=True)
    )
    result = cast("dfp.YieldOp", work.body.block.last_op).value.type
    return unit.instruction(op, pops=pops, pushes=(unit.flow(op, work.output, elements, result),))


def _fold(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.FoldOperation", op)
    outer, length, inner = work.outer.value.data, work.length.value.data, work.inner.value.data
    accumulator, element = (argument.type for argument in work.body.block.args)
    pops = [unit.flow(op, work.input, outer * length * inner, element)]
    if work.initial is not None:
        pops.append(unit.flow(op, work.initial, outer * inner, accumulator))
    results = outer * inner * (length if isinstance(op, dfp.SfuScanOp) else 1)
    return unit.instruction(op, pops=tuple(pops), pushes=(unit.flow(op, work.output, results, accumulator),))


def _pe_load(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.PeLoadOp", op)
    elements = work.k.value.data * work.n.value.data
    return unit.instruction(op, pops=(unit.flow(op, work.queue, elements, work.element),))


def _pe_clear(unit: _UnitCompiler, op: Operation) -> Instruction:
    return unit.instruction(op)


def _pe_preload(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.PePreloadOp", op)
    elements = work.rows.value.data * work.n.value.data
    return unit.instruction(op, pops=(unit.flow(op, work.queue, elements, work.element),))


def _pe_mac(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.PeMacOp", op)
    elements = work.rows.value.data * work.k.value.data
    return unit.instruction(op, pops=(unit.flow(op, work.queue, elements, work.element),))


def _pe_emit(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.PeEmitOp", op)
    elements = work.rows.value.data * work.n.value.data
    return unit.instruction(op, pushes=(unit.flow(op, work.queue, elements, work.element),))


_INSTRUCTIONS: Final[dict[type[Operation], Callable[[_UnitCompiler, Operation], Instruction]]] = {
    dfp.BarrierOp: _barrier,
    dfp.ReserveOp: _token,
    dfp.CommitOp: _token,
    dfp.AcquireOp: _token,
    dfp.ReleaseOp: _token,
    dfp.CopyOp: _copy,
    dfp.GatherOp: _indirect,
    dfp.ScatterOp: _indirect,
    dfp.StreamOp: _stream,
    dfp.DrainOp: _drain,
    dfp.SendOp: _send,
    dfp.MulticastOp: _multicast,
    dfp.ReceiveOp: _receive,
    dfp.ChainOp: _chain,
    dfp.SfuMapOp: _sfu_map,
    dfp.SfuReduceOp: _fold,
    dfp.SfuScanOp: _fold,
    dfp.PeLoadOp: _pe_load,
    dfp.PeClearOp: _pe_clear,
    dfp.PePreloadOp: _pe_preload,
    dfp.PeMacOp: _pe_mac,
    dfp.PeEmitOp: _pe_emit,
}
