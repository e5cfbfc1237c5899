"""Emission of level-G operations: structured operations with their maps, and views, on static shapes.

A *dims* argument says which loop of a structured operation each dimension of an operand follows. Dimensions of one
element that meet a longer loop are broadcast: their map entry is the constant 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    TensorType,
    UnknownLoc,
    i1,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ktir.frontend.torch.elements import Element, compute_element, element_of, is_float, shape_of, tensor_type
from ktir.frontend.torch.scalars import Number, ScalarBody, ScalarBuilder

Shape = Sequence[int]


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a structured operation: dimension ``i`` of ``value`` follows loop ``dims[i]``."""

    value: SSAValue
    dims: tuple[int, ...]

    @staticmethod
    def aligned(value: SSAValue, rank: int) -> Operand:
        """Dimensions matched from the right, as PyTorch broadcasts."""
        own = len(shape_of(value))
        return Operand(value, tuple(range(rank - own, rank)))


@dataclass(frozen=True, slots=True)
class Combiner:
    """An associative operation with its neutral element, per kind of element."""

    name: str
    neutral_float: float
    neutral_integer: int | None

    def neutral(self, kind: Element) -> Number:
        if is_float(kind):
            return self.neutral_float
        if self.neutral_integer is not None:
            return self.neutral_integer
        assert isinstance(kind, IntegerType)
        most = 2 ** (kind.width.data - 1) - 1
        if kind == i1:
            return int(self.neutral_float > 0)
        return most if self.neutral_float > 0 else -most - 1

    def apply(self, body: ScalarBuilder, left: SSAValue, right: SSAValue) -> SSAValue:
        match self.name:
            case "add":
                return body.add(left, right)
            case "multiply":
                return body.multiply(left, right)
            case "maximum":
                return body.maximum(left, right)
            case _:
                return body.minimum(left, right)


SUM = Combiner("add", 0.0, 0)
PRODUCT = Combiner("multiply", 1.0, 1)
MAXIMUM = Combiner("maximum", -inf, None)
MINIMUM = Combiner("minimum", inf, None)


class GraphBuilder:
    """Appends operations to ``block``; every one gets the current ``location``."""

    def __init__(self, block: Block, location: LocationAttr | None = None) -> None:
        self.block = block
        self.location: LocationAttr = location or UnknownLoc()

    def nested(self, block: Block) -> GraphBuilder:
        """A builder for a block inside a region of an operation that is being built."""
        return GraphBuilder(block, self.location)

    def emit(self, op: Operation) -> SSAValue:
        op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    # ------------------------------------------------------------------------------------------------------ creation

    def empty(self, shape: Shape, kind: Element) -> SSAValue:
        return self.emit(tensor.EmptyOp((), TensorType(kind, shape)))

    def scalar(self, number: Number, kind: Element) -> SSAValue:
        """A constant of a scalar type."""
        return ScalarBuilder(self.block, self.location).constant(number, kind)

    def filled(self, shape: Shape, kind: Element, number: Number) -> SSAValue:
        """A tensor whose elements all are ``number``."""
        destination = self.empty(shape, kind)
        return self.emit(linalg.FillOp([self.scalar(number, kind)], [destination]))

    # ---------------------------------------------------------------------------------------------------- structured

    def pointwise(self, operands: Sequence[Operand], shape: Shape, kind: Element, body: ScalarBody) -> SSAValue:
        """A tensor of ``shape`` and ``kind`` whose elements are ``body`` of the operands' elements."""
        destination = self.empty(shape, kind)
        maps = [_indexing_map(operand, shape) for operand in operands]

        def whole(scalars: ScalarBuilder, arguments: list[SSAValue]) -> SSAValue:
            return scalars.convert(body(scalars, arguments[:-1]), kind)

        return self._generic(operands, destination, [*maps, AffineMap.identity(len(shape))], shape, (), whole)

    def reduce(
        self, value: SSAValue, dims: Sequence[int], combiner: Combiner, start: SSAValue | None = None
    ) -> SSAValue:
        """``value`` reduced over ``dims``, which vanish; f32 for floats, otherwise the element type of ``value``.

        ``start`` holds what the reduction starts from, the neutral element if it is None.
        """
        shape, kind = shape_of(value), compute_element(element_of(value))
        kept = [d for d in range(len(shape)) if d not in dims]
        if start is None:
            start = self.filled([shape[d] for d in kept], kind, combiner.neutral(kind))
        maps = [AffineMap.identity(len(shape)), _dim_map(len(shape), kept)]

        def body(scalars: ScalarBuilder, arguments: list[SSAValue]) -> SSAValue:
            return combiner.apply(scalars, scalars.convert(arguments[0], kind), arguments[1])

        operand = Operand(value, tuple(range(len(shape))))
        return self._generic([operand], start, maps, shape, tuple(dims), body)

    def contract(
        self, left: Operand, right: Operand, shape: Shape, summed: int, start: SSAValue | None = None
    ) -> SSAValue:
        """Products of ``left`` and ``right`` added over the loops from ``summed`` on; the earlier ones are the result.

        ``shape`` are the extents of all loops. The result is f32 for floats; integers are accumulated in their type.
        """
        kind = compute_element(element_of(left.value))
        if start is None:
            start = self.filled(shape[:summed], kind, 0)
        maps = [_indexing_map(left, shape), _indexing_map(right, shape), _dim_map(len(shape), list(range(summed)))]

        def body(scalars: ScalarBuilder, arguments: list[SSAValue]) -> SSAValue:
            product = scalars.multiply(scalars.convert(arguments[0], kind), scalars.convert(arguments[1], kind))
            return scalars.add(product, arguments[2])

        return self._generic([left, right], start, maps, shape, tuple(range(summed, len(shape))), body)

    def _generic(
        self,
        operands: Sequence[Operand],
        destination: SSAValue,
        maps: Sequence[AffineMap],
        shape: Shape,
        reduced: tuple[int, ...],
        body: ScalarBody,
    ) -> SSAValue:
        inputs = [operand.value for operand in operands]
        block = Block(arg_types=[element_of(value) for value in (*inputs, destination)])
        scalars = ScalarBuilder(block, self.location)
        scalars.finish(body(scalars, list(block.args)))
        iterators = [
            IteratorTypeAttr.reduction() if d in reduced else IteratorTypeAttr.parallel() for d in range(len(shape))
        ]
        return self.emit(
            linalg.GenericOp(
                inputs,
                [destination],
                Region(block),
                [AffineMapAttr(indexing) for indexing in maps],
                iterators,
                [destination.type],
            )
        )

    # --------------------------------------------------------------------------------------------------------- views

    def reshape(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The elements of ``value`` in row-major order as a tensor of ``shape``: a collapse, then an expand."""
        source = shape_of(value)
        if tuple(source) == tuple(shape):
            return value
        groups = _common_groups(source, shape)
        collapsed = self._collapse(value, [group[0] for group in groups])
        return self._expand(collapsed, shape, [group[1] for group in groups])

    def _collapse(self, value: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
        source = shape_of(value)
        shape = [prod(source[d] for d in group) for group in groups]
        if len(shape) == len(source):
            return value
        return self.emit(
            tensor.CollapseShapeOp.build(
                operands=[value],
                result_types=[TensorType(element_of(value), shape)],
                properties={"reassociation": _reassociation(groups) if shape else ArrayAttr(())},
            )
        )

    def _expand(self, value: SSAValue, shape: Shape, groups: Sequence[Sequence[int]]) -> SSAValue:
        if len(shape) == len(shape_of(value)):
            return value
        if not shape_of(value):
            return self._spread(value, shape, range(len(shape)))
        result = TensorType(element_of(value), shape)
        return self.emit(tensor.ExpandShapeOp(value, (), _reassociation(groups), list(shape), result))

    def _spread(self, value: SSAValue, shape: Shape, added: Sequence[int]) -> SSAValue:
        """``value`` repeated along the dimensions ``added`` of ``shape``."""
        destination = self.empty(shape, element_of(value))
        return self.emit(linalg.BroadcastOp(value, destination, DenseArrayBase.from_list(i64, list(added))))

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Dimension ``i`` of the result is dimension ``permutation[i]`` of ``value``."""
        if list(permutation) == sorted(permutation):
            return value
        shape = [shape_of(value)[d] for d in permutation]
        destination = self.empty(shape, element_of(value))
        return self.emit(linalg.TransposeOp(value, destination, DenseArrayBase.from_list(i64, list(permutation))))

    def broadcast(self, value: SSAValue, shape: Shape) -> SSAValue:
        """``value`` with dimensions of one element repeated, and dimensions added in front, up to ``shape``."""
        own = shape_of(value)
        lead = len(shape) - len(own)
        added = [d for d in range(len(shape)) if d < lead or own[d - lead] != shape[d]]
        if not added:
            return value
        kept = self.reshape(value, [extent for d, extent in enumerate(shape) if d not in added])
        return self._spread(kept, shape, added)

    def slice(self, value: SSAValue, dim: int, start: int, length: int, step: int = 1) -> SSAValue:
        """``length`` positions of dimension ``dim`` from ``start`` on, every ``step``-th."""
        shape = [*shape_of(value)]
        if (start, length, step) == (0, shape[dim], 1):
            return value
        offsets, strides = [0] * len(shape), [1] * len(shape)
        offsets[dim], strides[dim], shape[dim] = start, step, length
        result = TensorType(element_of(value), shape)
        return self.emit(tensor.ExtractSliceOp(value, offsets, shape, strides, result))

    def concat(self, values: Sequence[SSAValue], dim: int) -> SSAValue:
        if len(values) == 1:
            return values[0]
        shape = [*shape_of(values[0])]
        shape[dim] = sum(shape_of(value)[dim] for value in values)
        return self.emit(tensor.ConcatOp(values, dim, TensorType(element_of(values[0]), shape)))

    def cast(self, value: SSAValue, kind: Element) -> SSAValue:
        """Every element of ``value`` converted to ``kind``."""
        if element_of(value) == kind:
            return value
        shape = shape_of(value)
        operand = Operand(value, tuple(range(len(shape))))
        return self.pointwise([operand], shape, kind, lambda scalars, arguments: scalars.convert(arguments[0], kind))

    def keep_dims(self, value: SSAValue, dims: Sequence[int], rank: int) -> SSAValue:
        """Put dimensions of one element back where a reduction over ``dims`` of ``rank`` dimensions took them away."""
        extents = iter(shape_of(value))
        return self.reshape(value, [1 if d in dims else next(extents) for d in range(rank)])


def _dim_map(loops: int, dims: Sequence[int]) -> AffineMap:
    return AffineMap(loops, 0, tuple(AffineDimExpr(d) for d in dims))


def _indexing_map(operand: Operand, shape: Shape) -> AffineMap:
    own = tensor_type(operand.value).get_shape()
    entries: list[AffineExpr] = [
        AffineConstantExpr(0) if extent == 1 and shape[loop] != 1 else AffineDimExpr(loop)
        for extent, loop in zip(own, operand.dims, strict=True)
    ]
    return AffineMap(len(shape), 0, tuple(entries))


def _reassociation(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr([ArrayAttr([IntegerAttr(d, i64) for d in group]) for group in groups])


def _common_groups(source: Shape, target: Shape) -> list[tuple[list[int], list[int]]]:
    """The finest pairing of runs of dimensions of ``source`` and ``target`` that hold equally many elements.

    Both shapes hold the same number of elements, none is empty. Left-over dimensions of one element join the last
    group; where one side has no dimensions at all there are no groups.
    """
    if not source or not target:
        return []
    groups: list[tuple[list[int], list[int]]] = []
    s = t = 0
    while s < len(source) and t < len(target):
        left, right = [s], [t]
        held_left, held_right = source[s], target[t]
        while held_left != held_right:
            if held_left < held_right:
                s += 1
                left.append(s)
                held_left *= source[s]
            else:
                t += 1
                right.append(t)
                held_right *= target[t]
        groups.append((left, right))
        s, t = s + 1, t + 1
    groups[-1][0].extend(range(s, len(source)))
    groups[-1][1].extend(range(t, len(target)))
    return groups
