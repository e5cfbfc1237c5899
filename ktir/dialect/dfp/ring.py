"""Movement between cores: messages from core to core, to several cores at once, and sums along a chain of cores.

Messages of a pair of cores arrive in order. A message to several cores is received by each of them with an ordinary
``dfp.receive``. A chain runs over a network of its own that adds as it carries.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.dfp.attributes import IntegerList, Value, check_box, integers
from ktir.dialect.dfp.movement import BoxSource, BoxTarget
from ktir.dialect.dfp.structure import UnitOperation
from ktir.dialect.dfp.types import BufferType


@irdl_op_definition
class SendOp(BoxSource):
    """Sends a box of elements to core ``destination``."""

    name = "dfp.send"
    destination = operand_def(IndexType())
    assembly_format = "$source `[` $offset `]` `to` $destination attr-dict"


@irdl_op_definition
class MulticastOp(BoxSource):
    """Sends a box of elements to several cores at once; each link of the way carries them once."""

    name = "dfp.multicast"
    destinations = var_operand_def(IndexType())
    assembly_format = "$source `[` $offset `]` `to` `(` $destinations `)` attr-dict"

    def verify_(self) -> None:
        super().verify_()
        if not self.destinations:
            raise VerifyException("dfp.multicast: expected a destination")


@irdl_op_definition
class ReceiveOp(BoxTarget):
    """Writes the next elements that core ``source`` sent here."""

    name = "dfp.receive"
    source = operand_def(IndexType())
    assembly_format = "$target `[` $offset `]` `from` $source attr-dict"


@irdl_op_definition
class ChainOp(UnitOperation):
    """This core's part in combining boxes of elements along a chain of cores.

    Takes the partial results of core ``previous`` (none if it is negative), combines them with the box of ``source``
    by ``combine`` (``add``, ``max`` or ``min``) and hands them to core ``next``, or, if that is negative, writes them
    to ``target``. Partial results travel as f32 and are rounded once, at the end of the chain.
    """

    name = "dfp.chain"
    source = operand_def(BufferType())
    source_offset = operand_def(IndexType())
    target = operand_def(BufferType())
    target_offset = operand_def(IndexType())
    previous = operand_def(IndexType())
    next = operand_def(IndexType())
    counts = prop_def(IntegerList)
    src_strides = prop_def(IntegerList)
    dst_strides = prop_def(IntegerList)
    element = prop_def(Attribute)
    combine = prop_def(StringAttr)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$source `[` $source_offset `]` `into` $target `[` $target_offset `]` `from` $previous `to` $next attr-dict"
    )

    def __init__(
        self,
        source: Value,
        source_offset: Value,
        target: Value,
        target_offset: Value,
        previous: Value,
        next: Value,
        *,
        counts: Sequence[int],
        src_strides: Sequence[int],
        dst_strides: Sequence[int],
        element: Attribute,
        combine: str = "add",
    ) -> None:
        super().__init__(
            operands=[source, source_offset, target, target_offset, previous, next],
            properties={
                "counts": integers(counts),
                "src_strides": integers(src_strides),
                "dst_strides": integers(dst_strides),
                "element": element,
                "combine": StringAttr(combine),
            },
        )

    def verify_(self) -> None:
        check_box(self, self.counts, src_strides=self.src_strides, dst_strides=self.dst_strides)
        if self.combine.data not in ("add", "max", "min"):
            raise VerifyException(f"dfp.chain: expected combine to be add, max or min, got {self.combine.data}")
