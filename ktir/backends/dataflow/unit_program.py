"""A ``dfp.program`` made ready to run: flat code per unit, with every operand resolved.

Verifier, token machine, functional and timed simulation all walk this form, so they agree on what an operation reads,
writes, pops and pushes. Code is shared by the cores that run it; what differs from core to core sits in expressions.

Words. *code*: the program of one ``dfp.unit`` as a flat list of instructions and loop marks. *actor*: one unit of one
core and corelet, running its code. *access*: a descriptor together with its buffer. *flow*: so many elements of a type
popped from or pushed to a queue. *launch*: what lies between two barriers; its number is that of the barrier that
starts it, 0 before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpKind

from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.expression import Expression, Linear, PerCore, at, binary, from_affine
from ktir.dialect import dfp
from ktir.dialect.locations import location_of
from ktir.errors import FunctionNotFound, NotCapable, VerifyError
from ktir.location import Location
from ktir.machine import Machine


def dtype_name(element: Attribute) -> str:
    """The name of an element type as machine files spell it: ``f16``, ``i64``."""
    return f"i{element.bitwidth}" if isinstance(element, IntegerType) else str(element).removeprefix("!")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A declared buffer; ``number`` is its place in the program. ``per_core``: every core has one at the address."""

    number: int
    name: str
    memory: str
    per_core: bool
    offset: int
    size: int
    slots: int
    producer: str | None
    consumers: tuple[str, ...]
    launches: tuple[int, int] | None
    location: Location | None

    @property
    def extent(self) -> tuple[int, int]:
        """First byte and the byte after the last."""
        return self.offset, self.offset + max(1, self.slots) * self.size


@dataclass(frozen=True, slots=True)
class Queue:
    """A declared queue; one instance for each core and corelet."""

    number: int
    name: str
    source: str
    target: str
    depth: int
    vector_bytes: int
    location: Location | None


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of a buffer that an instruction reads or writes, from ``offset`` in its slot.

    ``indirect`` boxes are one row of a gather or scatter; where the row lies is only known at run time.
    """

    buffer: Buffer
    offset: Expression
    box: Box
    element: str
    writes: bool
    slot: int = 0
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
    """``elements`` of type ``element`` that an instruction pops from or pushes to ``queue``."""

    queue: Queue
    elements: int
    element: str
    width: int

    @property
    def vectors(self) -> int:
        """Vectors of the queue that the elements fill, the last perhaps in part."""
        return -(-self.elements * self.width // self.queue.vector_bytes)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation of a unit, resolved. ``depth`` loops enclose it; ``counts`` are theirs, outermost first."""

    number: int
    op: Operation
    kind: str
    location: Location | None
    counts: tuple[PerCore, ...]
    accesses: tuple[Access, ...] = ()
    pops: tuple[Flow, ...] = ()
    pushes: tuple[Flow, ...] = ()
    ring: Buffer | None = None
    peer: Expression | None = None
    launch: int = 0

    @property
    def depth(self) -> int:
        """Loops around the instruction."""
        return len(self.counts)

    def loop_counts(self, core: int) -> list[int]:
        """Iterations of the enclosing loops on ``core``."""
        return [at(count, core) for count in self.counts]

    def executions(self, core: int) -> int:
        """How often ``core`` executes the instruction."""
        times = 1
        for count in self.counts:
            times *= max(0, at(count, core))
        return times


@dataclass(frozen=True, slots=True)
class LoopStart:
    """Enters loop ``depth``; ``end`` is the place after its last node."""

    depth: int
    count: PerCore
    end: int


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """Goes back to ``body`` while the loop at ``depth`` has iterations left."""

    depth: int
    body: int


Node = Instruction | LoopStart | LoopEnd


@dataclass(slots=True)
class UnitCode:
    """The program of one ``dfp.unit``: ``nodes`` in order; ``depth`` loops at most enclose an instruction."""

    number: int
    unit: str
    corelet: int
    cores: tuple[int, ...]
    location: Location | None
    nodes: list[Node] = field(default_factory=list[Node])
    depth: int = 0

    @property
    def instructions(self) -> Iterator[Instruction]:
        """The instructions in order of the text."""
        return (node for node in self.nodes if isinstance(node, Instruction))


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program of ``machine``."""

    name: str
    machine: Machine
    cores: int
    buffers: tuple[Buffer, ...]
    queues: tuple[Queue, ...]
    units: tuple[UnitCode, ...]
    location: Location | None

    @property
    def actors(self) -> list[tuple[int, UnitCode]]:
        """Every (core, code) in a fixed order: by core, then in order of the text."""
        return [(core, code) for core in range(self.cores) for code in self.units if core in code.cores]


class Cursor:
    """Where an actor stands in its code: ``instruction`` is the one to execute next, None at the end."""

    __slots__ = ("_limits", "_nodes", "_place", "code", "core", "indices", "instruction")

    def __init__(self, code: UnitCode, core: int) -> None:
        self.code, self.core = code, core
        self.indices = [0] * code.depth
        self._limits = [0] * code.depth
        self._nodes = code.nodes
        self._place = -1
        self.instruction: Instruction | None = None
        self.advance()

    def advance(self) -> None:
        """Moves on to the next instruction."""
        place, nodes = self._place + 1, self._nodes
        while place < len(nodes):
            node = nodes[place]
            if node.__class__ is Instruction:
                self._place, self.instruction = place, cast("Instruction", node)
                return
            if node.__class__ is LoopEnd:
                end = cast("LoopEnd", node)
                self.indices[end.depth] += 1
                place = end.body if self.indices[end.depth] < self._limits[end.depth] else place + 1
            else:
                start = cast("LoopStart", node)
                limit = at(start.count, self.core)
                self._limits[start.depth], self.indices[start.depth] = limit, 0
                place = place + 1 if limit > 0 else start.end
        self._place, self.instruction = place, None

    def describe(self) -> str:
        """Where the actor is, for a reader: unit, core, operation and loop indices."""
        where = f"{self.code.unit} of core {self.core}" + (f" corelet {self.code.corelet}" if self.code.corelet else "")
        if self.instruction is None:
            return f"{where}, at its end"
        indices = self.indices[: self.instruction.depth]
        return f"{where}, dfp.{self.instruction.kind}" + (f" in iteration {indices}" if indices else "")


# ---------------------------------------------------------------------------------------------------------- compilation


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
        self.buffers: dict[SSAValue, Buffer] = {}
        self.queues: dict[SSAValue, Queue] = {}

    def program(self) -> Program:
        units: list[UnitCode] = []
        for op in self.op.body.block.ops:
            match op:
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
        )

    def _buffer(self, op: dfp.BufferOp) -> Buffer:
        if op.memory.data not in self.machine.memories:
            raise NotCapable(f"{self.machine.name} has no memory {op.memory.data}", location=location_of(op))
        return Buffer(
            number=len(self.buffers),
            name=op.sym_name.data,
            memory=op.memory.data,
            per_core=self.machine.memory(op.memory.data).scope != "device",
            offset=op.offset.value.data,
            size=op.bytes.value.data,
            slots=op.slot_count,
            producer=op.producer.data if op.producer else None,
            consumers=op.consumer_units,
            launches=op.launch_range,
            location=location_of(op),
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
        self.numbers = 0
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
            else:
                self._value(op)

    def _loop(self, op: dfp.ForOp) -> None:
        count = self.expression(op.count)
        if not isinstance(count, Linear) or count.terms:
            raise VerifyError("the count of a dfp.for is a constant of the core", location=location_of(op))
        depth = len(self.counts)
        self.code.depth = max(self.code.depth, depth + 1)
        start = len(self.code.nodes)
        self.code.nodes.append(LoopStart(depth, count.constant, 0))
        self.values[op.body.block.args[0]] = Linear(0, ((depth, 1),))
        self.counts.append(count.constant)
        self._block(op.body.block)
        self.counts.pop()
        self.code.nodes.append(LoopEnd(depth, start + 1))
        self.code.nodes[start] = LoopStart(depth, count.constant, len(self.code.nodes))

    def _value(self, op: Operation) -> None:
        match op:
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
                value: Expression = Linear(op.value.value.data)
            case dfp.TableOp():
                value = self._table(op)
            case affine.ApplyOp():
                operands = [self.expression(operand) for operand in op.mapOperands]
                dims = op.map.data.num_dims
                value = from_affine(op.map.data.results[0], operands[:dims], operands[dims:])
            case arith.AddiOp() | arith.MuliOp():
                kind = AffineBinaryOpKind.Add if isinstance(op, arith.AddiOp) else AffineBinaryOpKind.Mul
                value = binary(kind, self.expression(op.operands[0]), self.expression(op.operands[1]))
            case _:
                raise VerifyError(f"{op.name} has no place in the program of a unit", location=location_of(op))
        self.values[op.results[0]] = value

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
            raise NotCapable(f"{self.machine.name} does not store {name}", location=location_of(op))
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
        peer: Expression | None = None,
        launch: int = 0,
    ) -> Instruction:
        """``op`` with what it touches."""
        self.numbers += 1
        return Instruction(
            self.numbers - 1,
            op,
            op.name.removeprefix("dfp."),
            location_of(op),
            tuple(self.counts),
            accesses,
            pops,
            pushes,
            ring,
            peer,
            launch,
        )


def _slot(op: dfp.CopyOp | dfp.StreamOp | dfp.SendOp) -> int:
    return op.slot.value.data if op.slot else 0


def _barrier(unit: _UnitCompiler, op: Operation) -> Instruction:
    return unit.instruction(op, launch=cast("dfp.BarrierOp", op).launch.value.data)


def _token(unit: _UnitCompiler, op: Operation) -> Instruction:
    buffer = unit.parent.buffers[cast("dfp.SlotOperation", op).buffer]
    if not buffer.slots:
        raise VerifyError(f"buffer {buffer.name} has no slots", location=location_of(op), remedy="give it slots")
    return unit.instruction(op, ring=buffer)


def _copy(unit: _UnitCompiler, op: Operation) -> Instruction:
    copy = cast("dfp.CopyOp", op)
    counts = dfp.values_of(copy.counts)
    source = unit.access(
        op,
        copy.source,
        copy.source_offset,
        counts,
        dfp.values_of(copy.src_strides),
        copy.element,
        writes=False,
        slot=_slot(copy),
    )
    target = unit.access(
        op, copy.target, copy.target_offset, counts, dfp.values_of(copy.dst_strides), copy.element, writes=True
    )
    return unit.instruction(op, accesses=(source, target))


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
    access = unit.access(
        op,
        move.source,
        move.offset,
        dfp.values_of(move.counts),
        dfp.values_of(move.strides),
        move.element,
        writes=False,
        slot=_slot(move),
    )
    pushed = unit.flow(op, move.queue, access.box.elements, move.element)
    return unit.instruction(op, accesses=(access,), pushes=(pushed,))


def _drain(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.DrainOp", op)
    access = unit.access(
        op,
        move.target,
        move.offset,
        dfp.values_of(move.counts),
        dfp.values_of(move.strides),
        move.element,
        writes=True,
    )
    popped = unit.flow(op, move.queue, access.box.elements, move.element)
    return unit.instruction(op, accesses=(access,), pops=(popped,))


def _send(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.SendOp", op)
    access = unit.access(
        op,
        move.source,
        move.offset,
        dfp.values_of(move.counts),
        dfp.values_of(move.strides),
        move.element,
        writes=False,
        slot=_slot(move),
    )
    return unit.instruction(op, accesses=(access,), peer=unit.expression(move.destination))


def _receive(unit: _UnitCompiler, op: Operation) -> Instruction:
    move = cast("dfp.ReceiveOp", op)
    access = unit.access(
        op,
        move.target,
        move.offset,
        dfp.values_of(move.counts),
        dfp.values_of(move.strides),
        move.element,
        writes=True,
    )
    return unit.instruction(op, accesses=(access,), peer=unit.expression(move.source))


def _sfu_map(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.SfuMapOp", op)
    elements = Box(dfp.values_of(work.shape), (0,) * len(dfp.values_of(work.shape)), 1).elements
    arguments = work.body.block.args
    pops = tuple(
        unit.flow(op, queue, elements, argument.type) for queue, argument in zip(work.inputs, arguments, strict=True)
    )
    result = cast("dfp.YieldOp", work.body.block.last_op).value.type
    return unit.instruction(op, pops=pops, pushes=(unit.flow(op, work.output, elements, result),))


def _sfu_reduce(unit: _UnitCompiler, op: Operation) -> Instruction:
    work = cast("dfp.SfuReduceOp", op)
    outer, length, inner = work.outer.value.data, work.length.value.data, work.inner.value.data
    accumulator, element = (argument.type for argument in work.body.block.args)
    pops = [unit.flow(op, work.input, outer * length * inner, element)]
    if work.initial is not None:
        pops.append(unit.flow(op, work.initial, outer * inner, accumulator))
    return unit.instruction(op, pops=tuple(pops), pushes=(unit.flow(op, work.output, outer * inner, accumulator),))


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
    dfp.ReceiveOp: _receive,
    dfp.SfuMapOp: _sfu_map,
    dfp.SfuReduceOp: _sfu_reduce,
    dfp.PeLoadOp: _pe_load,
    dfp.PeClearOp: _pe_clear,
    dfp.PePreloadOp: _pe_preload,
    dfp.PeMacOp: _pe_mac,
    dfp.PeEmitOp: _pe_emit,
}
