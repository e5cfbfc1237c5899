"""Operations of the dataflow program: one program per hardware unit, linked by bounded queues and tile buffers.

Words. A *unit* executes its operations in order. A *queue* carries vectors from one unit to another of the same core
and corelet. A *buffer* is a byte range; with ``slots`` it is a ring of tiles that one unit fills and others read. A
*descriptor* is an affine box of element addresses: ``counts`` and as many byte strides, innermost last, from a byte
offset. Every offset, stride and size counts bytes, every count counts elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, IntegerType, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasAncestor, HasParent, IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.dfp.types import BufferType, QueueType

Value = SSAValue | Operation

IntegerList = DenseArrayBase[IntegerType]
"""Integers of 64 bits."""


def integers(values: Sequence[int]) -> IntegerList:
    """The attribute that holds ``values``."""
    return DenseArrayBase.from_list(i64, values)


def _integer(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i64)


def values_of(attribute: IntegerList) -> tuple[int, ...]:
    """The integers that ``attribute`` holds."""
    return attribute.get_values()


def _check_positive(op: Operation, **numbers: int) -> None:
    for name, number in numbers.items():
        if number <= 0:
            raise VerifyException(f"{op.name}: expected {name} to be positive, got {number}")


def _check_box(op: Operation, counts: IntegerList, **strides: IntegerList) -> None:
    extents = values_of(counts)
    if any(extent <= 0 for extent in extents):
        raise VerifyException(f"{op.name}: expected positive counts, got {list(extents)}")
    for name, attribute in strides.items():
        if len(values_of(attribute)) != len(extents):
            raise VerifyException(
                f"{op.name}: expected {len(extents)} {name}, one per count, got {len(values_of(attribute))}"
            )


# ------------------------------------------------------------------------------------------------------------ structure


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """A whole program of a machine: declarations of buffers and queues, then one ``dfp.unit`` per unit."""

    name = "dfp.program"
    sym_name = prop_def(StringAttr)
    machine = prop_def(StringAttr)
    cores = prop_def(IntegerAttr[IntegerType])
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict-with-keyword $body"

    def __init__(self, name: str, machine: str, cores: int, body: Region | None = None) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "machine": StringAttr(machine), "cores": _integer(cores)},
            regions=[body or Region(Block())],
        )

    def verify_(self) -> None:
        _check_positive(self, cores=self.cores.value.data)
        for op in self.body.block.ops:
            if not isinstance(op, BufferOp | QueueOp | UnitOp):
                raise VerifyException(f"dfp.program holds buffers, queues and units, got {op.name}")


@irdl_op_definition
class BufferOp(IRDLOperation):
    """A byte range of a memory.

    ``bytes`` is the size of one slot; the range is ``offset`` to ``offset + max(1, slots) * bytes``. A buffer of a
    memory that every core has stands at the same address in each. With ``slots = 0`` it is a plain region, ordered by
    barriers alone; with ``slots >= 1`` a ring of tiles: ``producer`` reserves and commits slots, each unit of
    ``consumers`` acquires and releases them. ``launches = [first, last]`` says that the range belongs to this buffer
    only from barrier ``first`` to the end of launch ``last``, so that other buffers may use it at other times.
    """

    name = "dfp.buffer"
    sym_name = prop_def(StringAttr)
    memory = prop_def(StringAttr)
    offset = prop_def(IntegerAttr[IntegerType])
    bytes = prop_def(IntegerAttr[IntegerType])
    slots = opt_prop_def(IntegerAttr[IntegerType])
    producer = opt_prop_def(StringAttr)
    consumers = opt_prop_def(ArrayAttr[StringAttr])
    launches = opt_prop_def(IntegerList)
    result = result_def(BufferType())
    traits = traits_def(HasParent(ProgramOp))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(
        self,
        name: str,
        memory: str,
        offset: int,
        size: int,
        *,
        slots: int = 0,
        producer: str | None = None,
        consumers: Sequence[str] = (),
        launches: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "memory": StringAttr(memory),
                "offset": _integer(offset),
                "bytes": _integer(size),
                "slots": _integer(slots) if slots else None,
                "producer": StringAttr(producer) if producer else None,
                "consumers": ArrayAttr([StringAttr(unit) for unit in consumers]) if consumers else None,
                "launches": integers(launches) if launches else None,
            },
            result_types=[BufferType()],
        )

    @property
    def slot_count(self) -> int:
        """Tiles in the ring; 0 for a plain region."""
        return self.slots.value.data if self.slots else 0

    @property
    def extent(self) -> tuple[int, int]:
        """First byte and the byte after the last, in its memory."""
        start = self.offset.value.data
        return start, start + max(1, self.slot_count) * self.bytes.value.data

    @property
    def consumer_units(self) -> tuple[str, ...]:
        """Names of the units that read the ring."""
        return tuple(unit.data for unit in self.consumers) if self.consumers else ()

    @property
    def launch_range(self) -> tuple[int, int] | None:
        """First and last launch in which the range belongs to this buffer, or None for always."""
        if self.launches is None:
            return None
        first, last = values_of(self.launches)
        return first, last

    def verify_(self) -> None:
        _check_positive(self, bytes=self.bytes.value.data)
        if self.offset.value.data < 0 or self.slot_count < 0:
            raise VerifyException("dfp.buffer: expected offset and slots not to be negative")
        if self.slot_count and not (self.producer and self.consumer_units):
            raise VerifyException("dfp.buffer: a ring of tiles needs a producer and consumers")
        if self.launches is not None:
            bounds = values_of(self.launches)
            if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1]:
                raise VerifyException(f"dfp.buffer: expected launches = [first, last] in order, got {list(bounds)}")


@irdl_op_definition
class QueueOp(IRDLOperation):
    """A hardware queue from unit ``from`` to unit ``to``: one instance per core and corelet, ``depth`` vectors."""

    name = "dfp.queue"
    sym_name = prop_def(StringAttr)
    source = prop_def(StringAttr, prop_name="from")
    target = prop_def(StringAttr, prop_name="to")
    depth = prop_def(IntegerAttr[IntegerType])
    vector_bytes = prop_def(IntegerAttr[IntegerType])
    result = result_def(QueueType())
    traits = traits_def(HasParent(ProgramOp))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, name: str, source: str, target: str, depth: int, vector_bytes: int = 128) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "from": StringAttr(source),
                "to": StringAttr(target),
                "depth": _integer(depth),
                "vector_bytes": _integer(vector_bytes),
            },
            result_types=[QueueType()],
        )

    def verify_(self) -> None:
        _check_positive(self, depth=self.depth.value.data, vector_bytes=self.vector_bytes.value.data)


@irdl_op_definition
class UnitOp(IRDLOperation):
    """The program of the unit named ``unit`` on ``cores``, on one corelet (0 for a unit that a core has once).

    The block argument is the core number.
    """

    name = "dfp.unit"
    unit = prop_def(StringAttr)
    cores = prop_def(IntegerList)
    corelet = prop_def(IntegerAttr[IntegerType])
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), HasParent(ProgramOp))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$unit attr-dict-with-keyword $body"

    def __init__(self, unit: str, cores: Sequence[int], corelet: int = 0, body: Region | None = None) -> None:
        super().__init__(
            properties={"unit": StringAttr(unit), "cores": integers(cores), "corelet": _integer(corelet)},
            regions=[body or Region(Block(arg_types=[IndexType()]))],
        )

    def verify_(self) -> None:
        cores = values_of(self.cores)
        if not cores or len(set(cores)) != len(cores) or min(cores) < 0:
            raise VerifyException(f"dfp.unit: expected distinct core numbers, got {list(cores)}")
        if [argument.type for argument in self.body.block.args] != [IndexType()]:
            raise VerifyException("dfp.unit: expected one block argument, the core number as index")


class UnitOperation(IRDLOperation):
    """Base of what stands in the program of a unit."""

    traits = traits_def(HasAncestor(UnitOp))


@irdl_op_definition
class TableOp(UnitOperation):
    """A constant that differs from core to core: entry ``core`` of ``values``, one per core of the program."""

    name = "dfp.table"
    core = operand_def(IndexType())
    values = prop_def(IntegerList)
    result = result_def(IndexType())
    traits = traits_def(HasAncestor(UnitOp), Pure())

    def __init__(self, core: Value, values: Sequence[int]) -> None:
        super().__init__(operands=[core], properties={"values": integers(values)}, result_types=[IndexType()])

    @classmethod
    def parse(cls, parser: Parser) -> TableOp:
        core = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        op = cls(core, values)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.core)
        printer.print_string(" ")
        with printer.in_square_brackets():
            printer.print_list(values_of(self.values), printer.print_int)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ForOp(UnitOperation):
    """A counted loop: the block argument runs from 0 to ``count``, exclusive; ``count`` is a constant of the core."""

    name = "dfp.for"
    count = operand_def(IndexType())
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), HasAncestor(UnitOp))

    def __init__(self, count: Value, body: Region | None = None) -> None:
        super().__init__(operands=[count], regions=[body or Region(Block(arg_types=[IndexType()]))])

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        if parser.parse_integer() != 0:
            parser.raise_error("expected the loop to start at 0")
        parser.parse_keyword("to")
        count = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region((variable.resolve(IndexType()),))
        if not body.blocks:
            body.add_block(Block(arg_types=[IndexType()]))
        op = cls(count, body)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        printer.print_string(" = 0 to ")
        printer.print_ssa_value(self.count)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        if [argument.type for argument in self.body.block.args] != [IndexType()]:
            raise VerifyException("dfp.for: expected one block argument of type index")


@irdl_op_definition
class BarrierOp(UnitOperation):
    """Waits until every unit of the program has reached its barrier of this launch; starts launch ``launch``."""

    name = "dfp.barrier"
    launch = prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, launch: int) -> None:
        super().__init__(properties={"launch": _integer(launch)})


# ---------------------------------------------------------------------------------------------------------- slot tokens


class SlotOperation(UnitOperation):
    """Base of the four operations on the slots of a ring of tiles."""

    buffer = operand_def(BufferType())
    assembly_format = "$buffer attr-dict"

    def __init__(self, buffer: Value) -> None:
        super().__init__(operands=[buffer])


@irdl_op_definition
class ReserveOp(SlotOperation):
    """The producer waits for a free slot; its accesses address this slot until the commit."""

    name = "dfp.reserve"


@irdl_op_definition
class CommitOp(SlotOperation):
    """The producer hands the slot it reserved to all consumers."""

    name = "dfp.commit"


@irdl_op_definition
class AcquireOp(SlotOperation):
    """A consumer waits for the next full slot; it may hold several, its accesses address the oldest."""

    name = "dfp.acquire"


@irdl_op_definition
class ReleaseOp(SlotOperation):
    """A consumer gives its oldest slot back; the slot is free when every consumer has."""

    name = "dfp.release"


# -------------------------------------------------------------------------------------------------------- data movement


@irdl_op_definition
class CopyOp(UnitOperation):
    """Copies a box of elements from one memory to another: as many elements on both sides, in row-major order."""

    name = "dfp.copy"
    source = operand_def(BufferType())
    source_offset = operand_def(IndexType())
    target = operand_def(BufferType())
    target_offset = operand_def(IndexType())
    counts = prop_def(IntegerList)
    src_strides = prop_def(IntegerList)
    dst_strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    slot = opt_prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `[` $source_offset `]` `to` $target `[` $target_offset `]` attr-dict"

    def __init__(
        self,
        source: Value,
        source_offset: Value,
        target: Value,
        target_offset: Value,
        *,
        counts: Sequence[int],
        src_strides: Sequence[int],
        dst_strides: Sequence[int],
        element: Attribute,
        slot: int = 0,
    ) -> None:
        super().__init__(
            operands=[source, source_offset, target, target_offset],
            properties={
                "counts": integers(counts),
                "src_strides": integers(src_strides),
                "dst_strides": integers(dst_strides),
                "element": element,
                "slot": _integer(slot) if slot else None,
            },
        )

    def verify_(self) -> None:
        _check_box(self, self.counts, src_strides=self.src_strides, dst_strides=self.dst_strides)


class IndirectOperation(UnitOperation):
    """Base of gather and scatter: ``count`` rows whose number is read from an index buffer.

    Row ``r`` of the indexed side starts at its offset plus ``index[r] * row_stride``; row ``r`` of the other side at
    its offset plus ``r * line_stride``. ``index[r]`` is the ``index_element`` at ``index_offset`` plus ``r`` elements.
    ``row_counts`` with the two lists of strides is the box of one row.
    """

    source = operand_def(BufferType())
    source_offset = operand_def(IndexType())
    index = operand_def(BufferType())
    index_offset = operand_def(IndexType())
    target = operand_def(BufferType())
    target_offset = operand_def(IndexType())
    count = prop_def(IntegerAttr[IntegerType])
    index_element = prop_def(Attribute)
    row_stride = prop_def(IntegerAttr[IntegerType])
    line_stride = prop_def(IntegerAttr[IntegerType])
    row_counts = prop_def(IntegerList)
    row_src_strides = prop_def(IntegerList)
    row_dst_strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$source `[` $source_offset `]` `rows` $index `[` $index_offset `]`"
        " `to` $target `[` $target_offset `]` attr-dict"
    )

    def __init__(
        self,
        source: Value,
        source_offset: Value,
        index: Value,
        index_offset: Value,
        target: Value,
        target_offset: Value,
        *,
        count: int,
        index_element: Attribute,
        row_stride: int,
        line_stride: int,
        row_counts: Sequence[int],
        row_src_strides: Sequence[int],
        row_dst_strides: Sequence[int],
        element: Attribute,
    ) -> None:
        super().__init__(
            operands=[source, source_offset, index, index_offset, target, target_offset],
            properties={
                "count": _integer(count),
                "index_element": index_element,
                "row_stride": _integer(row_stride),
                "line_stride": _integer(line_stride),
                "row_counts": integers(row_counts),
                "row_src_strides": integers(row_src_strides),
                "row_dst_strides": integers(row_dst_strides),
                "element": element,
            },
        )

    def verify_(self) -> None:
        _check_positive(self, count=self.count.value.data)
        _check_box(self, self.row_counts, row_src_strides=self.row_src_strides, row_dst_strides=self.row_dst_strides)
        if not isinstance(self.index_element, IntegerType):
            raise VerifyException(f"{self.name}: expected an integer index_element, got {self.index_element}")


@irdl_op_definition
class GatherOp(IndirectOperation):
    """Copies rows of ``source`` picked by an index buffer to consecutive lines of ``target``."""

    name = "dfp.gather"


@irdl_op_definition
class ScatterOp(IndirectOperation):
    """Copies consecutive lines of ``source`` to rows of ``target`` picked by an index buffer."""

    name = "dfp.scatter"


@irdl_op_definition
class StreamOp(UnitOperation):
    """Pushes a box of elements of a buffer, in row-major order of ``counts``; a stride of 0 repeats elements."""

    name = "dfp.stream"
    source = operand_def(BufferType())
    offset = operand_def(IndexType())
    queue = operand_def(QueueType())
    counts = prop_def(IntegerList)
    strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    slot = opt_prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `[` $offset `]` `to` $queue attr-dict"

    def __init__(
        self,
        source: Value,
        offset: Value,
        queue: Value,
        *,
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
        slot: int = 0,
    ) -> None:
        super().__init__(
            operands=[source, offset, queue],
            properties={
                "counts": integers(counts),
                "strides": integers(strides),
                "element": element,
                "slot": _integer(slot) if slot else None,
            },
        )

    def verify_(self) -> None:
        _check_box(self, self.counts, strides=self.strides)


@irdl_op_definition
class DrainOp(UnitOperation):
    """Pops as many elements as its box holds and writes them, in row-major order of ``counts``."""

    name = "dfp.drain"
    queue = operand_def(QueueType())
    target = operand_def(BufferType())
    offset = operand_def(IndexType())
    counts = prop_def(IntegerList)
    strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$queue `to` $target `[` $offset `]` attr-dict"

    def __init__(
        self,
        queue: Value,
        target: Value,
        offset: Value,
        *,
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
    ) -> None:
        super().__init__(
            operands=[queue, target, offset],
            properties={"counts": integers(counts), "strides": integers(strides), "element": element},
        )

    def verify_(self) -> None:
        _check_box(self, self.counts, strides=self.strides)


@irdl_op_definition
class SendOp(UnitOperation):
    """Sends a box of elements over the ring to core ``destination``, in row-major order."""

    name = "dfp.send"
    source = operand_def(BufferType())
    offset = operand_def(IndexType())
    destination = operand_def(IndexType())
    counts = prop_def(IntegerList)
    strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    slot = opt_prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `[` $offset `]` `to` $destination attr-dict"

    def __init__(
        self,
        source: Value,
        offset: Value,
        destination: Value,
        *,
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
        slot: int = 0,
    ) -> None:
        super().__init__(
            operands=[source, offset, destination],
            properties={
                "counts": integers(counts),
                "strides": integers(strides),
                "element": element,
                "slot": _integer(slot) if slot else None,
            },
        )

    def verify_(self) -> None:
        _check_box(self, self.counts, strides=self.strides)


@irdl_op_definition
class ReceiveOp(UnitOperation):
    """Writes the next elements that core ``source`` sent here; messages of a pair of cores arrive in order."""

    name = "dfp.receive"
    target = operand_def(BufferType())
    offset = operand_def(IndexType())
    source = operand_def(IndexType())
    counts = prop_def(IntegerList)
    strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$target `[` $offset `]` `from` $source attr-dict"

    def __init__(
        self,
        target: Value,
        offset: Value,
        source: Value,
        *,
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
    ) -> None:
        super().__init__(
            operands=[target, offset, source],
            properties={"counts": integers(counts), "strides": integers(strides), "element": element},
        )

    def verify_(self) -> None:
        _check_box(self, self.counts, strides=self.strides)


# ---------------------------------------------------------------------------------------------------------- vector unit


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the region of a vector operation with the value it computes."""

    name = "dfp.yield"
    value = operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: Value) -> None:
        super().__init__(operands=[value])


@irdl_op_definition
class SfuMapOp(UnitOperation):
    """Applies a scalar region to one element of each input stream at a time and pushes what it yields.

    As many elements as ``shape`` has are popped from each input and pushed. Block arguments have the element types of
    the inputs; the same queue may stand for two inputs only by two pops in operand order per element. ``dfp.index``
    is the position in ``shape``.
    """

    name = "dfp.sfu_map"
    inputs = var_operand_def(QueueType())
    output = operand_def(QueueType())
    shape = prop_def(IntegerList)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`(` $inputs `)` `to` $output attr-dict-with-keyword $body"

    def __init__(self, inputs: Sequence[Value], output: Value, shape: Sequence[int], body: Region) -> None:
        super().__init__(operands=[inputs, output], properties={"shape": integers(shape)}, regions=[body])

    def verify_(self) -> None:
        _check_box(self, self.shape)
        block = self.body.block
        if len(block.args) != len(self.inputs):
            raise VerifyException(
                f"dfp.sfu_map: expected {len(self.inputs)} block arguments, one per input, got {len(block.args)}"
            )
        if len(set(self.inputs)) != len(self.inputs):
            raise VerifyException("dfp.sfu_map: expected a queue of its own for each input")
        if not isinstance(block.last_op, YieldOp):
            raise VerifyException("dfp.sfu_map: expected dfp.yield at the end of the region")


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The position along dimension ``dim`` of the shape of the enclosing ``dfp.sfu_map``."""

    name = "dfp.index"
    dim = prop_def(IntegerAttr[IntegerType])
    result = result_def(IndexType())
    traits = traits_def(HasAncestor(SfuMapOp), Pure())
    assembly_format = "$dim attr-dict"

    def __init__(self, dim: int) -> None:
        super().__init__(properties={"dim": _integer(dim)}, result_types=[IndexType()])

    def verify_(self) -> None:
        parent = self.parent_op()
        if isinstance(parent, SfuMapOp) and not 0 <= self.dim.value.data < len(values_of(parent.shape)):
            raise VerifyException(f"dfp.index: the shape has no dimension {self.dim.value.data}")


@irdl_op_definition
class SfuReduceOp(UnitOperation):
    """Reduces a stream of ``outer * length * inner`` elements over ``length``; pushes ``outer * inner`` elements.

    The region combines accumulator (first argument) and element. The accumulator starts from the elements of
    ``initial`` (``outer * inner`` of them, popped first) or else from the first element. A region that is one
    associative operation, apart from widening casts, accumulates in f32 in any order and rounds once; any other is
    applied in index order.
    """

    name = "dfp.sfu_reduce"
    input = operand_def(QueueType())
    output = operand_def(QueueType())
    initial = opt_operand_def(QueueType())
    outer = prop_def(IntegerAttr[IntegerType])
    length = prop_def(IntegerAttr[IntegerType])
    inner = prop_def(IntegerAttr[IntegerType])
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `to` $output (`init` `(` $initial^ `)`)? attr-dict-with-keyword $body"

    def __init__(
        self,
        input: Value,
        output: Value,
        *,
        outer: int,
        length: int,
        inner: int,
        body: Region,
        initial: Value | None = None,
    ) -> None:
        super().__init__(
            operands=[input, output, [initial] if initial is not None else []],
            properties={"outer": _integer(outer), "length": _integer(length), "inner": _integer(inner)},
            regions=[body],
        )

    def verify_(self) -> None:
        _check_positive(self, outer=self.outer.value.data, length=self.length.value.data, inner=self.inner.value.data)
        block = self.body.block
        if len(block.args) != 2:
            raise VerifyException("dfp.sfu_reduce: expected two block arguments, accumulator and element")
        if not isinstance(block.last_op, YieldOp) or block.last_op.value.type != block.args[0].type:
            raise VerifyException("dfp.sfu_reduce: expected dfp.yield of the accumulator's type at the end")
        if self.initial is None and block.args[0].type != block.args[1].type:
            raise VerifyException("dfp.sfu_reduce: without init, accumulator and element have one type")


# ---------------------------------------------------------------------------------------------------------- matrix unit


class PeOperation(UnitOperation):
    """Base of the matrix unit's operations: accumulators are ``rows x n`` in f32, stationary is ``k x n``."""

    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class PeLoadOp(PeOperation):
    """Pops a stationary block of ``k x n`` elements, row-major; it replaces the former one."""

    name = "dfp.pe_load"
    queue = operand_def(QueueType())
    k = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    element = prop_def(Attribute)
    assembly_format = "$queue attr-dict"

    def __init__(self, queue: Value, *, k: int, n: int, element: Attribute) -> None:
        super().__init__(operands=[queue], properties={"k": _integer(k), "n": _integer(n), "element": element})

    def verify_(self) -> None:
        _check_positive(self, k=self.k.value.data, n=self.n.value.data)


@irdl_op_definition
class PeClearOp(PeOperation):
    """Sets ``rows x n`` accumulators to zero."""

    name = "dfp.pe_clear"
    rows = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    assembly_format = "attr-dict"

    def __init__(self, *, rows: int, n: int) -> None:
        super().__init__(properties={"rows": _integer(rows), "n": _integer(n)})

    def verify_(self) -> None:
        _check_positive(self, rows=self.rows.value.data, n=self.n.value.data)


class PeRowsOperation(PeOperation):
    """Base of what moves ``rows x n`` accumulators to or from a queue."""

    queue = operand_def(QueueType())
    rows = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    element = prop_def(Attribute)
    assembly_format = "$queue attr-dict"

    def __init__(self, queue: Value, *, rows: int, n: int, element: Attribute) -> None:
        super().__init__(operands=[queue], properties={"rows": _integer(rows), "n": _integer(n), "element": element})

    def verify_(self) -> None:
        _check_positive(self, rows=self.rows.value.data, n=self.n.value.data)


@irdl_op_definition
class PePreloadOp(PeRowsOperation):
    """Pops ``rows x n`` elements into the accumulators."""

    name = "dfp.pe_preload"


@irdl_op_definition
class PeEmitOp(PeRowsOperation):
    """Pushes ``rows x n`` accumulators, rounded once to ``element``; they keep their values."""

    name = "dfp.pe_emit"


@irdl_op_definition
class PeMacOp(PeOperation):
    """Pops ``rows x k`` elements and adds their product with the stationary block to the accumulators."""

    name = "dfp.pe_mac"
    queue = operand_def(QueueType())
    rows = prop_def(IntegerAttr[IntegerType])
    k = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    element = prop_def(Attribute)
    assembly_format = "$queue attr-dict"

    def __init__(self, queue: Value, *, rows: int, k: int, n: int, element: Attribute) -> None:
        super().__init__(
            operands=[queue],
            properties={"rows": _integer(rows), "k": _integer(k), "n": _integer(n), "element": element},
        )

    def verify_(self) -> None:
        _check_positive(self, rows=self.rows.value.data, k=self.k.value.data, n=self.n.value.data)
