"""The vector unit: scalar regions mapped over streams, reductions and scans of streams."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Region
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasAncestor, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.dfp.attributes import IntegerList, Value, check_box, check_positive, integer, integers, values_of
from ktir.dialect.dfp.structure import UnitOperation
from ktir.dialect.dfp.types import QueueType


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
        check_box(self, self.shape)
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
        super().__init__(properties={"dim": integer(dim)}, result_types=[IndexType()])

    def verify_(self) -> None:
        parent = self.parent_op()
        if isinstance(parent, SfuMapOp) and not 0 <= self.dim.value.data < len(values_of(parent.shape)):
            raise VerifyException(f"dfp.index: the shape has no dimension {self.dim.value.data}")


class FoldOperation(UnitOperation):
    """Base of what combines a stream of ``outer * length * inner`` elements along ``length``.

    The region combines accumulator (first argument) and element. The accumulator starts from the elements of
    ``initial`` (``outer * inner`` of them, popped first) or else from the first element.
    """

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
            properties={"outer": integer(outer), "length": integer(length), "inner": integer(inner)},
            regions=[body],
        )

    def verify_(self) -> None:
        check_positive(self, outer=self.outer.value.data, length=self.length.value.data, inner=self.inner.value.data)
        block = self.body.block
        if len(block.args) != 2:
            raise VerifyException(f"{self.name}: expected two block arguments, accumulator and element")
        if not isinstance(block.last_op, YieldOp) or block.last_op.value.type != block.args[0].type:
            raise VerifyException(f"{self.name}: expected dfp.yield of the accumulator's type at the end")
        if self.initial is None and block.args[0].type != block.args[1].type:
            raise VerifyException(f"{self.name}: without init, accumulator and element have one type")


@irdl_op_definition
class SfuReduceOp(FoldOperation):
    """Pushes the ``outer * inner`` last accumulators.

    A region that is one associative operation, apart from widening casts, accumulates in f32 in any order and rounds
    once; any other is applied in index order.
    """

    name = "dfp.sfu_reduce"


@irdl_op_definition
class SfuScanOp(FoldOperation):
    """Pushes every accumulator, ``outer * length * inner`` of them, each after its element was combined.

    The region is applied in index order. A region that is one associative operation, apart from widening casts, keeps
    its accumulator in f32 and rounds what it pushes; any other rounds at each step.
    """

    name = "dfp.sfu_scan"
