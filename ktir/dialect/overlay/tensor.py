"""Repairs of ``tensor``: rules that MLIR checks and the stock classes do not.

* ``collapse_shape`` and ``expand_shape`` regroup dimensions without changing the number of elements, 0-d tensors too.
* ``extract_slice`` and ``insert_slice`` name one offset, size and stride per dimension, stay inside the tensor, and
  have the type that their sizes say; unit dimensions may be dropped.
* ``extract`` and ``insert`` name one index per dimension; ``empty`` one size per dynamic dimension.
* ``generate`` exists, and so do those of :mod:`ktir.dialect.overlay.tensor_ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IndexType, IntegerAttr, TensorType
from xdsl.dialects.tensor import Tensor
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.repair import extended, redefine
from ktir.dialect.overlay.tensor_ops import OPERATIONS


def _groups(reassociation: ArrayAttr[Any]) -> list[list[int]]:
    return [[entry.value.data for entry in group if isinstance(entry, IntegerAttr)] for group in reassociation]


def _verify_regrouping(collapsed: TensorType, expanded: TensorType, reassociation: ArrayAttr[Any]) -> None:
    """``reassociation`` says which dimensions of ``expanded`` make up each dimension of ``collapsed``."""
    groups, few, many = _groups(reassociation), collapsed.get_shape(), expanded.get_shape()
    if collapsed.get_element_type() != expanded.get_element_type():
        raise VerifyException("source and result must have the same element type")
    if not few:
        if groups or any(extent != 1 for extent in many):
            raise VerifyException(
                "invalid to reshape tensor/memref with non-unit extent dimensions to zero-rank tensor"
            )
        return
    if len(groups) != len(few):
        raise VerifyException(
            f"expected rank of the collapsed type({len(few)}) to be the number of reassociation maps({len(groups)})"
        )
    if [dimension for group in groups for dimension in group] != list(range(len(many))) or not all(groups):
        raise VerifyException(
            f"expected reassociation to name the dimensions 0 to {len(many) - 1} of the expanded type in order"
        )
    for number, (extent, group) in enumerate(zip(few, groups, strict=True)):
        parts = [many[dimension] for dimension in group]
        dynamic = DYNAMIC_INDEX in parts
        if dynamic != (extent == DYNAMIC_INDEX):
            raise VerifyException(
                f"expected dimension {number} of collapsed type to be {'dynamic' if dynamic else 'static'} as the "
                "dimensions it is made of"
            )
        if not dynamic and prod(parts) != extent:
            raise VerifyException(f"expected dimension {number} of collapsed type to be static value of {prod(parts)}")


def _verify_collapse(op: tensor.CollapseShapeOp) -> None:
    _verify_regrouping(op.result.type, _ranked(op.src.type), op.reassociation)


def _verify_expand(op: tensor.ExpandShapeOp) -> None:
    shape, static = op.result.type.get_shape(), op.static_output_shape.get_values()
    if len(static) != len(shape):
        raise VerifyException(
            f"expected number of static shape dims to be equal to the output rank ({len(shape)}) but found "
            f"{len(static)} inputs instead"
        )
    if any(given not in (DYNAMIC_INDEX, extent) for given, extent in zip(static, shape, strict=True)):
        raise VerifyException(f"output_shape {list(static)} does not match the result type {op.result.type}")
    if list(static).count(DYNAMIC_INDEX) != len(op.dynamic_output_shape):
        raise VerifyException("number of dynamic output sizes does not match the dynamic entries of output_shape")
    _verify_regrouping(_ranked(op.src.type), op.result.type, op.reassociation)


# -------------------------------------------------------------------------------------------------------------- slices


def _verify_slice(op: Any, whole: TensorType, part: TensorType) -> None:
    lists = {
        "offset": (op.static_offsets.get_values(), op.offsets),
        "size": (op.static_sizes.get_values(), op.sizes),
        "stride": (op.static_strides.get_values(), op.strides),
    }
    for name, (static, dynamic) in lists.items():
        if len(static) != whole.get_num_dims():
            raise VerifyException(f"expected {whole.get_num_dims()} {name} values, got {len(static)}")
        if list(static).count(DYNAMIC_INDEX) != len(dynamic):
            raise VerifyException(f"number of dynamic {name} operands does not match the dynamic entries")
    if whole.get_element_type() != part.get_element_type():
        raise VerifyException(f"expected element type to be {whole.get_element_type()}")
    sizes = lists["size"][0]
    if not _drops_only_units(sizes, part.get_shape()):
        expected = TensorType(whole.get_element_type(), sizes)
        raise VerifyException(f"expected type to be '{expected}' or a rank-reduced version. (size mismatch)")
    _verify_inside(whole.get_shape(), *(static for static, _ in lists.values()))


def _drops_only_units(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether ``shape`` is ``sizes`` without some of its ones."""
    remaining = list(shape)
    for size in sizes:
        if remaining and remaining[0] == size:
            remaining.pop(0)
        elif size != 1:
            return False
    return not remaining


def _verify_inside(
    extents: Sequence[int], offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> None:
    for number, (extent, *known) in enumerate(zip(extents, offsets, sizes, strides, strict=True)):
        offset, size, stride = known
        if offset != DYNAMIC_INDEX and offset < 0:
            raise VerifyException(f"expected offset {number} to be non-negative, but got {offset}")
        if size != DYNAMIC_INDEX and size < 0:
            raise VerifyException(f"expected size {number} to be non-negative, but got {size}")
        if DYNAMIC_INDEX in (extent, *known) or size == 0:
            continue
        last = offset + (size - 1) * stride
        if not 0 <= last < extent:
            raise VerifyException(
                f"slice along dimension {number} runs out-of-bounds: {last} >= {extent}"
                if last >= 0
                else f"slice along dimension {number} runs out-of-bounds: {last} < 0"
            )


def _verify_extract_slice(op: tensor.ExtractSliceOp) -> None:
    _verify_slice(op, _ranked(op.source.type), _ranked(op.result.type))


def _verify_insert_slice(op: tensor.InsertSliceOp) -> None:
    _verify_slice(op, _ranked(op.dest.type), _ranked(op.source.type))


def _ranked(type: Any) -> TensorType:
    if type.name != TensorType.name:
        raise VerifyException(f"expected a ranked tensor, but got {type}")
    return type


# ------------------------------------------------------------------------------------------------------------- elements


def _verify_extract(op: tensor.ExtractOp) -> None:
    _verify_index_count(op.indices, _ranked(op.tensor.type))


def _verify_insert(op: tensor.InsertOp) -> None:
    _verify_index_count(op.indices, _ranked(op.dest.type))


def _verify_index_count(indices: Sequence[Any], type: TensorType) -> None:
    if len(indices) != type.get_num_dims():
        raise VerifyException(f"incorrect number of indices: expected {type.get_num_dims()}, but got {len(indices)}")


def _verify_empty(op: tensor.EmptyOp) -> None:
    expected = op.tensor.type.get_shape().count(DYNAMIC_INDEX)
    if len(op.dynamic_sizes) != expected:
        raise VerifyException(f"incorrect number of dynamic sizes, has {len(op.dynamic_sizes)}, expected {expected}")


# ------------------------------------------------------------------------------------------------------------- generate


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """A tensor whose elements a region computes from their indices."""

    name = "tensor.generate"

    dynamic_extents = var_operand_def(IndexType)
    result = result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(tensor.YieldOp))

    def __init__(self, dynamic_extents: Sequence[SSAValue], body: Region, result_type: Attribute) -> None:
        super().__init__(operands=[dynamic_extents], result_types=[result_type], regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> GenerateOp:
        position = parser.pos
        names: list[UnresolvedOperand] = []
        if (first := parser.parse_optional_unresolved_operand()) is not None:
            names.append(first)
            while parser.parse_optional_punctuation(",") is not None:
                names.append(parser.parse_unresolved_operand())
        extents = parser.resolve_operands(names, [IndexType()] * len(names), position)
        body = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(extents, body, parser.parse_type())
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.dynamic_extents, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        type = _ranked(self.result.type)
        dynamic = type.get_shape().count(DYNAMIC_INDEX)
        if len(self.dynamic_extents) != dynamic:
            raise VerifyException(f"must have as many index operands as dynamic extents in the result type: {dynamic}")
        if [argument.type for argument in self.body.block.args] != [IndexType()] * type.get_num_dims():
            raise VerifyException("must have one body argument per input dimension, all of type index")
        last = self.body.block.last_op
        if last is None or [value.type for value in last.operands] != [type.get_element_type()]:
            raise VerifyException("body must be terminated with a `yield` operation of one element")


def _repaired() -> Dialect:
    redefine(tensor.CollapseShapeOp, verify=_verify_collapse)
    redefine(tensor.ExpandShapeOp, verify=_verify_expand)
    redefine(tensor.ExtractSliceOp, verify=_verify_extract_slice)
    redefine(tensor.InsertSliceOp, verify=_verify_insert_slice)
    redefine(tensor.ExtractOp, verify=_verify_extract)
    redefine(tensor.InsertOp, verify=_verify_insert)
    redefine(tensor.EmptyOp, verify=_verify_empty)
    return extended(Tensor, [GenerateOp, *OPERATIONS])


TENSOR = _repaired()
