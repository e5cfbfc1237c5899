"""Movement inside a core and to device memory: descriptors between memories, and between a memory and a queue.

A *descriptor* is an affine box of element addresses: ``counts`` and as many byte strides, innermost last, from a byte
offset. Strides count bytes, counts count elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.dfp.attributes import IntegerList, Value, check_box, check_positive, integer, integers
from ktir.dialect.dfp.structure import UnitOperation
from ktir.dialect.dfp.types import BufferType, QueueType


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
                "slot": integer(slot) if slot else None,
            },
        )

    @property
    def slot_number(self) -> int:
        """Which of the tiles that the unit holds is read; 0 is the oldest."""
        return self.slot.value.data if self.slot else 0

    def verify_(self) -> None:
        check_box(self, self.counts, src_strides=self.src_strides, dst_strides=self.dst_strides)


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
                "count": integer(count),
                "index_element": index_element,
                "row_stride": integer(row_stride),
                "line_stride": integer(line_stride),
                "row_counts": integers(row_counts),
                "row_src_strides": integers(row_src_strides),
                "row_dst_strides": integers(row_dst_strides),
                "element": element,
            },
        )

    def verify_(self) -> None:
        check_positive(self, count=self.count.value.data)
        check_box(self, self.row_counts, row_src_strides=self.row_src_strides, row_dst_strides=self.row_dst_strides)
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


class BoxSource(UnitOperation):
    """Base of what reads one box of elements of a buffer, in row-major order of ``counts``, and gives them away.

    A stride of 0 repeats elements. ``slot = k`` reads the k-th oldest tile that the unit holds.
    """

    source = operand_def(BufferType())
    offset = operand_def(IndexType())
    counts = prop_def(IntegerList)
    strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    slot = opt_prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        source: Value,
        offset: Value,
        *receivers: Value | Sequence[Value],
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
        slot: int = 0,
    ) -> None:
        super().__init__(
            operands=[*receivers, source, offset],
            properties={
                "counts": integers(counts),
                "strides": integers(strides),
                "element": element,
                "slot": integer(slot) if slot else None,
            },
        )

    @property
    def slot_number(self) -> int:
        """Which of the tiles that the unit holds is read; 0 is the oldest."""
        return self.slot.value.data if self.slot else 0

    def verify_(self) -> None:
        check_box(self, self.counts, strides=self.strides)


class BoxTarget(UnitOperation):
    """Base of what takes as many elements as a box holds and writes them, in row-major order of ``counts``."""

    target = operand_def(BufferType())
    offset = operand_def(IndexType())
    counts = prop_def(IntegerList)
    strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        target: Value,
        offset: Value,
        giver: Value,
        *,
        counts: Sequence[int],
        strides: Sequence[int],
        element: Attribute,
    ) -> None:
        super().__init__(
            operands=[giver, target, offset],
            properties={"counts": integers(counts), "strides": integers(strides), "element": element},
        )

    def verify_(self) -> None:
        check_box(self, self.counts, strides=self.strides)


@irdl_op_definition
class StreamOp(BoxSource):
    """Pushes a box of elements of a buffer to a queue."""

    name = "dfp.stream"
    queue = operand_def(QueueType())
    assembly_format = "$source `[` $offset `]` `to` $queue attr-dict"


@irdl_op_definition
class DrainOp(BoxTarget):
    """Pops elements of a queue and writes them to a box of a buffer."""

    name = "dfp.drain"
    queue = operand_def(QueueType())
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
        super().__init__(target, offset, queue, counts=counts, strides=strides, element=element)
