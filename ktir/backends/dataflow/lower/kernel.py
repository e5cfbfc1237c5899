"""The rule for each operation of a kernel. Integers are evaluated, tensors get storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from ktir.backends.dataflow.lower import (
    accesses,
    control_flow,
    indirect,
    insertions,
    inter_tile,
    memory,
    moves,
    pointwise,
    reshapes,
    scalars,
    structured,
)
from ktir.backends.dataflow.lower.context import (
    Lowering,
    Rule,
    is_parallel,
    refuse,
    scalar_attribute,
    shape_and_element,
    splat_value,
)
from ktir.backends.dataflow.lower.tensors import (
    Splat,
    Undefined,
)
from ktir.backends.dataflow.lower.values import CoreValue, NotAffine, constant, per_core
from ktir.dialect import ktdp


def lower_operation(lowering: Lowering, op: Operation) -> None:
    """Lowers one operation."""
    if op.results and not any(result.uses for result in op.results) and not op.regions:
        return
    if (rule := RULES.get(op.name)) is not None:
        rule(lowering, op)
    elif isinstance(op, LinalgStructuredOperation):
        _structured(lowering, op)
    elif _is_integer_arithmetic(lowering, op):
        _integer(lowering, op)
    elif op.name.split(".")[0] in ("arith", "math") and len(op.results) == 1:
        pointwise.lower_elementwise(lowering, op)
    else:
        refuse(op, "the dataflow target has no rule for it", REMEDIES.get(op.name))


REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(("affine.for", "affine.parallel", "scf.parallel", "scf.forall"), "write the loop as scf.for"),
    "affine.if": "write the condition as comparisons, and the branch as scf.if",
    "scf.while": "write the loop as scf.for with a number of iterations that each core knows",
    "scf.execute_region": "write the operations where the region stands",
}


def _is_integer_arithmetic(lowering: Lowering, op: Operation) -> bool:
    if not op.name.startswith(("arith.", "affine.")) or not op.results:
        return False
    integral = all(scalars.is_integral(value.type) for value in (*op.operands, *op.results))
    return integral and all(isinstance(lowering.values.get(operand), CoreValue) for operand in op.operands)


def _integer(lowering: Lowering, op: Operation) -> None:
    operands = [lowering.integer(operand, op) for operand in op.operands]
    try:
        value = scalars.evaluate(op, operands, lowering.cores)
    except NotAffine as fault:
        refuse(op, str(fault), "let bounds and addresses be sums of loop variables with constant factors")
    if value is None:
        refuse(op, "it is no arithmetic that can be evaluated ahead")
    lowering.values[op.results[0]] = value


# ------------------------------------------------------------------------------------------------------------ constants


def _constant(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    type, attribute = op.result.type, op.value
    if scalars.is_integral(type) and isinstance(attribute, IntegerAttr):
        number = attribute.value.data
        lowering.values[op.result] = constant(number & 1 if str(type) == "i1" else number, lowering.cores)
        return
    shape, element = shape_and_element(type, op)
    scalar = splat_value(attribute)
    if scalar is not None:
        lowering.values[op.result] = Splat(scalar, shape, element)
        return
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    source = lowering.constants.view(attribute, shape, element, lowering.cores)
    target, view = lowering.loaded_tile(shape, element)
    moves.load(lowering.planner, source, target)
    lowering.values[op.result] = view


def _empty(lowering: Lowering, op: Operation) -> None:
    shape, element = shape_and_element(op.results[0].type, op)
    lowering.values[op.results[0]] = Undefined(shape, element)


def _splat_of(lowering: Lowering, op: Operation, scalar: SSAValue, result: SSAValue) -> None:
    shape, element = shape_and_element(result.type, op)
    known = lowering.tensor(scalar, op)
    if isinstance(known, Splat):
        lowering.values[result] = Splat(known.value, shape, element)
        return
    if isinstance(known, Undefined):
        lowering.values[result] = Undefined(shape, element)
        return
    view = lowering.view(scalar, op)
    lowering.values[result] = view.shaped(shape, (0,) * len(shape))


def _fill(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, FillOp)
    if op.inputs[0].type != shape_and_element(op.results[0].type, op)[1]:
        pointwise.lower_parallel(lowering, op)
    else:
        _splat_of(lowering, op, op.inputs[0], op.results[0])


def _splat(lowering: Lowering, op: Operation) -> None:
    _splat_of(lowering, op, op.operands[0], op.results[0])


def _tile_id(lowering: Lowering, op: Operation) -> None:
    for axis, result in enumerate(op.results):
        coordinates = lowering.coordinates
        at = coordinates[axis] if axis < len(coordinates) else np.zeros(lowering.cores, dtype=np.int64)
        lowering.values[result] = per_core(at)


# ----------------------------------------------------------------------------------------------------------- structured


def _structured(lowering: Lowering, op: LinalgStructuredOperation) -> None:
    if is_parallel(op):
        pointwise.lower_parallel(lowering, op)
        return
    structured.refuse_narrowing(op)
    if (held := lowering.held.get(op)) is not None:
        held.step(lowering)
        lowering.values[op.results[0]] = Undefined(*shape_and_element(op.results[0].type, op))
    elif (roles := structured.contraction_roles(op)) is not None:
        structured.lower_contraction(lowering, op, roles)
    else:
        structured.lower_reduction(lowering, op)


def _runtime_argument(lowering: Lowering, op: Operation) -> None:
    assert isinstance(op, ktdp.RuntimeArgExtractOp)
    if op.kind_name == "value":
        lowering.values[op.result] = lowering.values.get(op.argument)
        return
    promise = cast("ktdp.RuntimeArgType", op.argument.type).promise(op.kind_name)
    if promise is None:
        refuse(op, f"its argument promises no {op.kind_name}")
    lowering.values[op.result] = constant(promise, lowering.cores)


def _scalar_to_float(lowering: Lowering, op: Operation) -> None:
    """An integer known ahead becomes a constant; one that depends on data is converted by the vector unit."""
    known = lowering.values.get(op.operands[0])
    type = op.results[0].type
    if isinstance(known, CoreValue) and (number := known.uniform) is not None and isa(type, AnyFloat):
        lowering.values[op.results[0]] = Splat(scalar_attribute(lowering.hardware, number, type, op), (), type)
    else:
        pointwise.lower_elementwise(lowering, op)


OpT = TypeVar("OpT", bound=Operation)


def _typed(kind: type[OpT], rule: Callable[[Lowering, OpT], None]) -> Rule:
    """``rule`` for operations of one class, as a rule for operations of its name."""

    def apply(lowering: Lowering, op: Operation) -> None:
        assert isinstance(op, kind)
        rule(lowering, op)

    return apply


RULES: Mapping[str, Rule] = {
    **control_flow.RULES,
    **reshapes.RULES,
    **insertions.RULES,
    **inter_tile.RULES,
    "arith.constant": _constant,
    "arith.sitofp": _scalar_to_float,
    "arith.uitofp": _scalar_to_float,
    "tensor.empty": _empty,
    "tensor.splat": _splat,
    "linalg.fill": _fill,
    "linalg.map": pointwise.lower_map,
    "linalg.reduce": structured.lower_reduction,
    "ktdp.get_compute_tile_id": _tile_id,
    "ktdp.runtime_arg_extract": _runtime_argument,
    "ktdp.construct_memory_view": _typed(ktdp.ConstructMemoryViewOp, memory.construct_memory_view),
    "ktdp.construct_distributed_memory_view": _typed(
        ktdp.ConstructDistributedMemoryViewOp, memory.construct_distributed_view
    ),
    "ktdp.construct_access_tile": _typed(ktdp.ConstructAccessTileOp, memory.construct_access_tile),
    "ktdp.construct_indirect_access_tile": _typed(ktdp.ConstructIndirectAccessTileOp, indirect.construct_indirect_tile),
    "ktdp.load": _typed(ktdp.LoadOp, accesses.load),
    "ktdp.store": _typed(ktdp.StoreOp, accesses.store),
}
