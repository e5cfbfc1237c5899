"""What a dataflow program is made of: buffers, queues, launch-time symbols, and the program of each unit.

Words. A *unit* executes its operations in order. A *queue* carries vectors from one unit to another of the same core
and corelet. A *buffer* is a byte range; with ``slots`` it is a ring of tiles that one unit fills and others read. A
*symbol* is an address that the host learns at launch. Every offset, stride and size counts bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Block, Region
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasAncestor, HasParent, NoTerminator
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.dfp.attributes import IntegerList, Value, check_positive, integer, integers, values_of
from ktir.dialect.dfp.types import BufferType, QueueType, SymbolType


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
            properties={"sym_name": StringAttr(name), "machine": StringAttr(machine), "cores": integer(cores)},
            regions=[body or Region(Block())],
        )

    def verify_(self) -> None:
        check_positive(self, cores=self.cores.value.data)
        for op in self.body.block.ops:
            if not isinstance(op, SymbolOp | BufferOp | QueueOp | UnitOp):
                raise VerifyException(f"dfp.program holds symbols, buffers, queues and units, got {op.name}")


@irdl_op_definition
class SymbolOp(IRDLOperation):
    """An address of device memory that the host learns at launch: a multiple of ``alignment``, at most ``bound``."""

    name = "dfp.symbol"
    sym_name = prop_def(StringAttr)
    alignment = prop_def(IntegerAttr[IntegerType])
    bound = prop_def(IntegerAttr[IntegerType])
    result = result_def(SymbolType())
    traits = traits_def(HasParent(ProgramOp))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, name: str, *, alignment: int, bound: int) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "alignment": integer(alignment), "bound": integer(bound)},
            result_types=[SymbolType()],
        )

    def verify_(self) -> None:
        check_positive(self, alignment=self.alignment.value.data)
        if self.bound.value.data < 0:
            raise VerifyException("dfp.symbol: expected bound not to be negative")


@irdl_op_definition
class BufferOp(IRDLOperation):
    """A byte range of a memory.

    ``bytes`` is the size of one slot; the range is ``offset`` to ``offset + max(1, slots) * bytes``. A buffer of a
    memory that every core has stands at the same address in each. With ``slots = 0`` it is a plain region, ordered by
    barriers alone; with ``slots >= 1`` a ring of tiles: ``producer`` reserves and commits slots, each unit of
    ``consumers`` acquires and releases them. ``launches = [first, last]`` says that the range belongs to this buffer
    only from barrier ``first`` to the end of launch ``last``, so that other buffers may use it at other times. With
    ``base`` the range starts at ``offset`` from an address that is known at launch. ``writes = "once"`` says that the
    program writes every byte exactly once, ``"accumulate"`` that it may write bytes of it as often as it likes. Where
    only some bytes are written once and nobody writes the rest, ``stored`` lists them in boxes ``[first, width, count,
    stride, ...]``: ``width`` bytes from ``first`` on, repeated along each pair of a count and a stride.
    """

    name = "dfp.buffer"
    base = opt_operand_def(SymbolType())
    sym_name = prop_def(StringAttr)
    memory = prop_def(StringAttr)
    offset = prop_def(IntegerAttr[IntegerType])
    bytes = prop_def(IntegerAttr[IntegerType])
    slots = opt_prop_def(IntegerAttr[IntegerType])
    producer = opt_prop_def(StringAttr)
    consumers = opt_prop_def(ArrayAttr[StringAttr])
    launches = opt_prop_def(IntegerList)
    writes = opt_prop_def(StringAttr)
    stored = opt_prop_def(ArrayAttr[IntegerList])
    result = result_def(BufferType())
    traits = traits_def(HasParent(ProgramOp))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "(`at` $base^)? attr-dict"

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
        base: Value | None = None,
        writes: str | None = None,
        stored: Sequence[Sequence[int]] = (),
    ) -> None:
        super().__init__(
            operands=[[base] if base is not None else []],
            properties={
                "writes": StringAttr(writes) if writes else None,
                "stored": ArrayAttr([integers(box) for box in stored]) if stored else None,
                "sym_name": StringAttr(name),
                "memory": StringAttr(memory),
                "offset": integer(offset),
                "bytes": integer(size),
                "slots": integer(slots) if slots else None,
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
    def stored_boxes(self) -> tuple[tuple[int, ...], ...]:
        """The bytes that are written once, where that is not all of them."""
        return tuple(values_of(box) for box in self.stored) if self.stored else ()

    @property
    def launch_range(self) -> tuple[int, int] | None:
        """First and last launch in which the range belongs to this buffer, or None for always."""
        if self.launches is None:
            return None
        first, last = values_of(self.launches)
        return first, last

    def verify_(self) -> None:
        check_positive(self, bytes=self.bytes.value.data)
        if self.offset.value.data < 0 or self.slot_count < 0:
            raise VerifyException("dfp.buffer: expected offset and slots not to be negative")
        if self.slot_count and not (self.producer and self.consumer_units):
            raise VerifyException("dfp.buffer: a ring of tiles needs a producer and consumers")
        if self.writes is not None and self.writes.data not in ("once", "accumulate"):
            raise VerifyException(f"dfp.buffer: expected writes to be once or accumulate, got {self.writes.data}")
        self._verify_stored()
        if self.launches is not None:
            bounds = values_of(self.launches)
            if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1]:
                raise VerifyException(f"dfp.buffer: expected launches = [first, last] in order, got {list(bounds)}")

    def _verify_stored(self) -> None:
        if self.stored is not None and (self.writes is None or self.writes.data != "once"):
            raise VerifyException('dfp.buffer: expected writes = "once" with stored')
        for box in self.stored_boxes:
            if len(box) < 2 or len(box) % 2 or min(box[1:]) <= 0 or box[0] < 0:
                raise VerifyException(
                    f"dfp.buffer: expected stored boxes [first, width, count, stride, ...], got {list(box)}"
                )
            last = box[0] + box[1] + sum((n - 1) * step for n, step in zip(box[2::2], box[3::2], strict=True))
            if last > self.extent[1] - self.extent[0]:
                raise VerifyException(f"dfp.buffer: the stored box {list(box)} ends behind the buffer")


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
                "depth": integer(depth),
                "vector_bytes": integer(vector_bytes),
            },
            result_types=[QueueType()],
        )

    def verify_(self) -> None:
        check_positive(self, depth=self.depth.value.data, vector_bytes=self.vector_bytes.value.data)


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
            properties={"unit": StringAttr(unit), "cores": integers(cores), "corelet": integer(corelet)},
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
