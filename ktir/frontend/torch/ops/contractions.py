"""Matrix products: one contraction into f32, then one point-wise operation that adds, scales and rounds.

Loops of a contraction are the dimensions of the result followed by the summed one. Batch dimensions are kept as they
are; those of one element are broadcast by the operand's map.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ktir.frontend.torch.builder import Operand, Shape
from ktir.frontend.torch.calls import Call
from ktir.frontend.torch.elements import compute_element, element_of, shape_of
from ktir.frontend.torch.importer import Handler, Importer
from ktir.frontend.torch.scalars import Number, ScalarBuilder


def _linear(importer: Importer, call: Call) -> SSAValue:
    """``input @ weight^T + bias`` with the weight as it is stored, (out, in)."""
    value, weight = importer.tensor(call["input"]), importer.tensor(call["weight"])
    rank = len(call.shape)
    summed = shape_of(weight)[-1]
    rows = tuple(range(len(shape_of(value)) - 1))
    columns = (rank - 1,) if len(shape_of(weight)) == 2 else ()
    product = importer.build.contract(
        Operand(value, (*rows, rank)), Operand(weight, (*columns, rank)), (*call.shape, summed), rank
    )
    return _finish(importer, call, product, call["bias"])


def _matmul(left_name: str, right_name: str, added_name: str | None = None) -> Handler:
    """The product of two tensors as ``torch.matmul`` defines it for any ranks, plus an added tensor."""

    def handler(importer: Importer, call: Call) -> SSAValue:
        left, right = importer.unexpanded(call[left_name]), importer.unexpanded(call[right_name])
        if element_of(left) == i1:
            raise call.refuse("products of booleans are not imported")
        product = _product(importer, call.shape, left, right)
        added = None if added_name is None else call[added_name]
        alpha, beta = call.arguments.get("alpha", 1), call.arguments.get("beta", 1)
        return _finish(importer, call, product, added, alpha=alpha, beta=beta)

    return handler


def _product(importer: Importer, shape: Shape, left: SSAValue, right: SSAValue) -> SSAValue:
    left_vector, right_vector = len(shape_of(left)) == 1, len(shape_of(right)) == 1
    rank = len(shape)
    summed = shape_of(left)[-1]
    batch = rank - (not left_vector) - (not right_vector)
    left_batch = len(shape_of(left)) - 2
    right_batch = len(shape_of(right)) - 2
    left_dims = (rank,) if left_vector else (*range(batch - left_batch, batch), batch, rank)
    column = batch + (not left_vector)
    right_dims = (rank,) if right_vector else (*range(batch - right_batch, batch), rank, column)
    return importer.build.contract(Operand(left, left_dims), Operand(right, right_dims), (*shape, summed), rank)


def _finish(
    importer: Importer, call: Call, product: SSAValue, added: Any, *, alpha: Number = 1, beta: Number = 1
) -> SSAValue:
    """``alpha * product + beta * added``, rounded once."""
    rank = len(call.shape)
    if added is None and alpha == 1:
        return importer.build.cast(product, call.element)
    operands = [Operand.aligned(product, rank)]
    if added is not None and beta != 0:
        operands.append(importer.operand(added, rank))
    compute = compute_element(call.element)

    def body(s: ScalarBuilder, values: list[SSAValue]) -> SSAValue:
        result = values[0] if alpha == 1 else s.multiply(values[0], s.constant(alpha, compute))
        if len(values) == 1:
            return result
        addend = s.convert(values[1], compute)
        return s.add(result, addend if beta == 1 else s.multiply(addend, s.constant(beta, compute)))

    return importer.build.pointwise(operands, call.shape, call.element, body)


CONTRACTIONS: Final = MappingProxyType[str, Handler](
    {
        "aten.linear.default": _linear,
        "aten.matmul.default": _matmul("self", "other"),
        "aten.mm.default": _matmul("self", "mat2"),
        "aten.bmm.default": _matmul("self", "mat2"),
        "aten.mv.default": _matmul("self", "vec"),
        "aten.dot.default": _matmul("self", "tensor"),
        "aten.addmm.default": _matmul("mat1", "mat2", "self"),
        "aten.addmv.default": _matmul("mat", "vec", "self"),
        "aten.baddbmm.default": _matmul("batch1", "batch2", "self"),
    }
)
