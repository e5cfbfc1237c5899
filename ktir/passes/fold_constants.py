"""Compute at compile time what depends on no input, as long as it is the same number everywhere.

A tensor of one number (a fill, a splat constant) that a structured operation reads becomes a scalar constant in its
body; an operation whose inputs are all gone that way, and that does not reduce, is folded to a fill. Views of a tensor
of one number are such tensors themselves. Tensors of different numbers are left alone: importers fold those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ktir.analysis.tensor_views import VIEWS, is_free, shape_of, view_source
from ktir.dialect.ktg import GatherOp
from ktir.passes.fuse import is_pointwise
from ktir.passes.graph import erase_unused, graph_functions
from ktir.passes.tensors import groups_attribute

Number = FloatAttr[Any] | IntegerAttr[Any]


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """``ktir-fold-constants``"""

    name = "ktir-fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in graph_functions(op):
            for each in list(graph.body.block.ops):
                _fold(graph, each)
            erase_unused(graph)


def _fold(graph: func.FuncOp, op: Operation) -> None:
    if isinstance(op, VIEWS):
        number = number_of(op.results[0])
        if number is not None:
            _replace_by_fill(op, number)
    elif isinstance(op, GatherOp):
        _read_row(op)
    elif isinstance(op, linalg.GenericOp):
        _take_numbers_in(op)
        if not op.inputs and is_pointwise(op) and len(op.results) == 1:
            _fold_generic(op)


def number_of(value: SSAValue) -> Number | None:
    """The number that a tensor holds everywhere, or None."""
    while (source := view_source(value)) is not None:
        value = source
    owner = value.owner
    if not isinstance(owner, Operation) or not is_free(value):
        return None
    if isinstance(owner, linalg.FillOp | tensor.SplatOp):
        return _constant(owner.operands[0])
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        element = cast("TensorType[Attribute]", value.type).element_type
        return _number(cast("float", owner.value.get_values()[0]), element)
    return None


def _constant(value: SSAValue) -> Number | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr | IntegerAttr):
        return cast("Number", owner.value)
    return None


def _number(value: float, element: Attribute) -> Number:
    if isinstance(element, AnyFloat):
        return FloatAttr(float(value), element)
    return IntegerAttr(int(value), cast("IntegerType", element))


def _take_numbers_in(op: linalg.GenericOp) -> None:
    """Inputs that are one number become constants of the body, where other operands still give the loops extents."""
    maps = [attribute.data for attribute in op.indexing_maps]
    for position in reversed(range(len(op.inputs))):
        number = number_of(op.inputs[position])
        others = {dim for at, map in enumerate(maps) if at != position for dim in map.used_dims()}
        if number is None or len(others) != maps[0].num_dims:
            continue
        block = op.body.block
        constant = arith.ConstantOp(number)
        block.insert_ops_before([constant], cast("Operation", block.first_op))
        block.args[position].replace_all_uses_with(constant.result)
        block.erase_arg(block.args[position])
        del maps[position]
        inputs, outputs = [value for at, value in enumerate(op.inputs) if at != position], list(op.outputs)
        op.operands = [*inputs, *outputs]
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(inputs), len(outputs)])
    op.indexing_maps = ArrayAttr(AffineMapAttr(map) for map in maps)


def _read_row(op: GatherOp) -> None:
    """A gather of one row over and over is a broadcast of that row."""
    number = number_of(op.indices)
    rows, width = shape_of(op.table)
    if not isinstance(number, IntegerAttr) or not 0 <= number.value.data < rows:
        return
    element = cast("TensorType[Attribute]", op.table.type).element_type
    row_type, flat = TensorType(element, [1, width]), TensorType(element, [width])
    row = tensor.ExtractSliceOp(op.table, [number.value.data, 0], [1, width], [1, 1], row_type)
    joined = tensor.CollapseShapeOp.build(
        operands=[row.result], result_types=[flat], properties={"reassociation": groups_attribute([[0, 1]])}
    )
    empty = tensor.EmptyOp([], op.result.type)
    added = DenseArrayBase.from_list(i64, list(range(len(shape_of(op.indices)))))
    spread = linalg.BroadcastOp(joined.result, empty.tensor, added)
    _replace(op, [row, joined, empty, spread])


def _replace(op: Operation, new: list[Operation]) -> None:
    """Put ``new`` in the place of ``op``; the last of them makes its result."""
    for each in new:
        each.location = op.location
    block = cast("Block", op.parent)
    block.insert_ops_before(new, op)
    op.results[0].replace_all_uses_with(new[-1].results[0])
    block.erase_op(op)


def _fold_generic(op: linalg.GenericOp) -> None:
    block = op.body.block
    if any(next(iter(argument.uses), None) is not None for argument in block.args):
        return
    number = _evaluate(block)
    if number is not None:
        _replace_by_fill(op, number)


def _replace_by_fill(op: Operation, number: Number) -> None:
    result = op.results[0]
    constant = arith.ConstantOp(number)
    empty = tensor.EmptyOp([], result.type)
    _replace(op, [constant, empty, linalg.FillOp([constant.result], [empty.tensor], [result.type])])


# ----------------------------------------------------------------------------------------------------------- arithmetic

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
}
_WIDTHS: dict[str, type[np.floating[Any]]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _evaluate(block: Block) -> Number | None:
    """The number that a body yields, in the precision of each operation; None if some operation is not known."""
    values: dict[SSAValue, Any] = {}
    for op in block.ops:
        if isinstance(op, linalg.YieldOp):
            value = values.get(op.operands[0])
            return None if value is None else _number(value, op.operands[0].type)
        value = _evaluate_op(op, values)
        if value is None:
            return None
        values[op.results[0]] = value
    return None


def _evaluate_op(op: Operation, values: dict[SSAValue, Any]) -> Any:
    if isinstance(op, arith.ConstantOp):
        number = _constant(op.result)
        return None if number is None else _rounded(number.value.data, op.result.type)
    operands = [values.get(value) for value in op.operands]
    if any(operand is None for operand in operands) or not op.results:
        return None
    kind = op.results[0].type
    if isinstance(op, arith.ExtFOp | arith.TruncFOp):
        return _rounded(operands[0], kind)
    known = _BINARY.get(op.name)
    if known is None or (isinstance(op, arith.DivfOp) and operands[1] == 0):
        return None
    with np.errstate(all="ignore"):
        return _rounded(known(*operands), kind)


def _rounded(value: Any, kind: Attribute) -> Any:
    """``value`` in the element type ``kind``; None for types that numpy does not have."""
    if isinstance(kind, IntegerType):
        return int(value) if abs(int(value)) < 2 ** (kind.bitwidth - 1) else None
    known = _WIDTHS.get(str(kind))
    return None if known is None else known(value)
