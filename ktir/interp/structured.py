"""Structured operations: a body of scalar operations run over a box of iterations, all at once.

Words. *space*: the box of iterations; an array *in the space* has the axes (cores, d0, d1, ..), with extent 1 where it
does not vary. *projection*: an indexing map whose results are distinct dimensions or constants, so that an operand is
brought into the space by moving axes. *combiner*: the one associative operation through which a body adds an element to
its accumulator.

Strategies, fastest first: contraction (BLAS), reduction with one combiner, bodies without reduction (element by
element), fold in index order. Only the first two may change the order of a floating-point sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from ktir.errors import Diagnostic, ExecutionError, OutOfBounds, VerifyError
from ktir.interp.casts import cast, distinct
from ktir.interp.combiners import BIT_COMBINERS, COMBINERS, Combiner
from ktir.interp.compile import Code, FunctionCompiler, Step, element_of, is_shaped, shape_of
from ktir.interp.numerics import BOOL, Array, ElementType, as_array, is_array, narrow, widen
from ktir.interp.products import matrix_product
from ktir.interp.values import Frame, Origin, Site, Tainted, Value

Extents = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor operand: its slot, its indexing map, its elements."""

    slot: int
    map: AffineMap
    element: ElementType
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """What a structured operation is made of. ``reduced`` holds the dimensions with a reduction iterator."""

    ins: tuple[Operand, ...]
    outs: tuple[Operand, ...]
    results: tuple[int, ...]
    rank: int
    reduced: frozenset[int]
    site: Site

    def extents(self, regs: Sequence[Value]) -> Extents:
        """The box of iterations, from the operands at hand."""
        found = [-1] * self.rank
        for operand in (*self.ins, *self.outs):
            for expression, size in zip(operand.map.results, shape_at(regs[operand.slot]), strict=True):
                if not isinstance(expression, AffineDimExpr):
                    continue
                known = found[expression.position]
                if known not in (-1, size):
                    raise self.site.fail(
                        ExecutionError,
                        f"has operands that disagree on dimension d{expression.position}: {known} and {size}",
                        "give all operands the extents that the indexing maps ask for",
                    )
                found[expression.position] = size
        if -1 in found:
            raise self.site.fail(
                ExecutionError, f"has no operand that fixes dimension d{found.index(-1)}", "add one to the operands"
            )
        return tuple(found)


def shape_at(value: Value) -> tuple[int, ...]:
    """The shape of a tensor, without the core axis."""
    return np.shape(value.values if isinstance(value, Tainted) else value)[1:]


# ------------------------------------------------------------------------------------------------------ into the space


def is_projection(map: AffineMap) -> bool:
    dims = [each.position for each in map.results if isinstance(each, AffineDimExpr)]
    return len(set(dims)) == len(dims) and all(
        isinstance(each, AffineDimExpr) or (isinstance(each, AffineConstantExpr) and each.value == 0)
        for each in map.results
    )


def into_space(values: Array, map: AffineMap, extents: Extents, site: Site) -> Array:
    """``values`` with the axes of the space."""
    if not is_projection(map):
        return _gathered(values, map, extents, site)
    kept = [(each.position, axis) for axis, each in enumerate(map.results) if isinstance(each, AffineDimExpr)]
    constant = tuple(0 if isinstance(each, AffineConstantExpr) else slice(None) for each in map.results)
    if len(kept) != len(map.results):
        values = values[(slice(None), *constant)]
        kept = [(position, axis) for axis, (position, _) in enumerate(kept)]
    order = sorted(range(len(kept)), key=lambda axis: kept[axis][0])
    if order != list(range(len(order))):
        values = values.transpose(0, *(axis + 1 for axis in order))
    present = {position for position, _ in kept}
    if len(present) == len(extents):
        return values
    return values.reshape(values.shape[0], *(extents[d] if d in present else 1 for d in range(len(extents))))


def _gathered(values: Array, map: AffineMap, extents: Extents, site: Site) -> Array:
    places = [position_in_space(dimension, extents)[0] for dimension in range(len(extents))]
    index: list[Any] = []
    for axis, expression in enumerate(map.results):
        at = np.asarray(expression.eval(places, ())) if places else np.asarray(expression.eval((), ()))
        if at.size and (at.min() < 0 or at.max() >= values.shape[axis + 1]):
            raise site.fail(
                OutOfBounds,
                f"indexes dimension {axis} of extent {values.shape[axis + 1]} from {at.min()} to {at.max()}",
                "correct the indexing map or the extents",
            )
        index.append(at.astype(np.int64))
    shape = np.broadcast_shapes(*(each.shape for each in index)) if index else ()
    taken = values[(slice(None), *index)]
    return taken.reshape(values.shape[0], *(shape if len(shape) == len(extents) else (1,) * len(extents)))


def position_in_space(dimension: int, extents: Extents) -> Array:
    """The iteration number along ``dimension``, in the space."""
    shape = [1] * (len(extents) + 1)
    shape[dimension + 1] = extents[dimension]
    return np.arange(extents[dimension], dtype=np.int64).reshape(shape)


def out_of_space(values: Array, operand: Operand, extents: Extents) -> Array:
    """An array in the space as the tensor that ``operand`` is; dimensions that its map leaves out have extent 1."""
    dims = [each.position for each in operand.map.results if isinstance(each, AffineDimExpr)]
    dropped = tuple(d + 1 for d in range(len(extents)) if d not in dims)
    shape = tuple(1 if axis in dropped else (values.shape[0], *extents)[axis] for axis in range(len(extents) + 1))
    values = np.broadcast_to(values, shape)
    if dropped:
        values = values.reshape(values.shape[0], *(extents[d] for d in range(len(extents)) if d in dims))
    ranked = sorted(dims)
    if ranked != dims:
        values = values.transpose(0, *(ranked.index(d) + 1 for d in dims))
    constants = tuple(None if isinstance(each, AffineConstantExpr) else slice(None) for each in operand.map.results)
    return values[(slice(None), *constants)] if None in constants else values


# ------------------------------------------------------------------------------------------------------------- the body


@dataclass(frozen=True, slots=True)
class Body:
    """The compiled body. ``index_slots`` are filled with iteration numbers, ``scalars`` with what it captures;
    ``reads_out`` says for each accumulator whether the body looks at it."""

    code: Code
    index_slots: tuple[tuple[int, int], ...]
    scalars: tuple[int, ...]
    reads_out: tuple[bool, ...]

    def enter(self, frame: Frame, extents: Extents) -> dict[int, Value]:
        """Prepares the registers; what has to be put back with :meth:`leave`."""
        regs = frame.regs
        for dimension, slot in self.index_slots:
            regs[slot] = position_in_space(dimension, extents)
        saved: dict[int, Value] = {}
        for slot in self.scalars:
            value = regs[slot]
            if is_array(value) and len(value) > 1:
                saved[slot] = value
                regs[slot] = value.reshape(-1, *(1,) * len(extents))
            elif isinstance(value, Tainted):
                saved[slot] = value
                ones = (1,) * len(extents)
                regs[slot] = Tainted(np.reshape(value.values, (-1, *ones)), value.mask.reshape(-1, *ones), value.origin)
        return saved

    @staticmethod
    def leave(frame: Frame, saved: Mapping[int, Value]) -> None:
        for slot, value in saved.items():
            frame.regs[slot] = value


def compile_body(compiler: FunctionCompiler, op: Operation, block: Block, accumulators: int, rank: int) -> Body:
    indices: list[tuple[int, int]] = []
    for inner in block.walk():
        if inner.name == "linalg.index":
            dimension = inner.properties["dim"]
            assert isinstance(dimension, IntegerAttr)
            number = dimension.value.data
            if not 0 <= number < rank:
                raise compiler.site(inner).fail(
                    VerifyError, f"asks for the position in loop {number} of {rank}", "name one of the loops, from 0"
                )
            indices.append((number, compiler.slot(inner.results[0])))
    code = compiler.block(block, op)
    by_slot = {slot: value for value, slot in compiler.slots.items() if slot in set(code.captured)}
    scalars = tuple(slot for slot in code.captured if not is_shaped(by_slot[slot].type))
    reads = tuple(bool(argument.uses) for argument in block.args[len(block.args) - accumulators :])
    return Body(code, tuple(indices), scalars, reads)


def lane(value: Value, map: AffineMap, extents: Extents, site: Site) -> Value:
    """A tensor, tainted or not, in the space."""
    if isinstance(value, Tainted):
        if value.is_unwritten():
            raise value.origin.error(site)
        full = np.broadcast_to(value.mask, np.shape(value.values))
        return Tainted(into_space(value.values, map, extents, site), into_space(full, map, extents, site), value.origin)
    return into_space(value, map, extents, site)


def as_result(value: Value, operand: Operand, extents: Extents) -> Value:
    """What the body yields, as the tensor that ``operand`` is."""
    if isinstance(value, Tainted):
        values = as_result(value.values, operand, extents)
        mask = out_of_space(_in_space(value.mask, extents), operand, extents)
        return Tainted(values, mask, value.origin)
    array = _in_space(as_array(value, operand.element.dtype), extents)
    return out_of_space(array, operand, extents)


def _in_space(values: Array, extents: Extents) -> Array:
    rank = len(extents) + 1
    return values if values.ndim == rank else values.reshape(values.shape + (1,) * (rank - values.ndim))


# ------------------------------------------------------------------------------------------------------- the strategies


def compile_structure(compiler: FunctionCompiler, op: Operation, block: Block, structure: Structure) -> Step:
    """The fastest step that means what the body says."""
    contraction = find_contraction(block, structure)
    if contraction is not None:
        return contraction_step(structure, *contraction)
    body = compile_body(compiler, op, block, len(structure.outs), structure.rank)
    if not structure.reduced:
        return elementwise_step(structure, body)
    joining = find_joining(block, structure)
    if joining is not None:
        return reduction_step(structure, body, compiler, joining)
    return fold_step(structure, body)


def elementwise_step(structure: Structure, body: Body) -> Step:
    site = structure.site
    ins = tuple((operand.slot, operand.map) for operand in structure.ins)
    outs = structure.outs

    def step(frame: Frame) -> None:
        regs = frame.regs
        extents = structure.extents(regs)
        saved = body.enter(frame, extents)
        arguments: list[Value] = [lane(regs[slot], map, extents, site) for slot, map in ins]
        for operand, reads in zip(outs, body.reads_out, strict=True):
            arguments.append(lane(regs[operand.slot], operand.map, extents, site) if reads else None)
        yielded = body.code.call(frame, arguments)
        body.leave(frame, saved)
        for out, operand, value in zip(structure.results, outs, yielded, strict=True):
            regs[out] = as_result(value, operand, extents)

    return step


@dataclass(frozen=True, slots=True)
class Joining:
    """``combiner`` joins ``element``, a value of the body, with the accumulator."""

    combiner: Combiner
    element: SSAValue


def find_joining(block: Block, structure: Structure) -> Joining | None:
    """The combiner of a body with one accumulator, where using it in any order is allowed.

    On narrow floats a body with further operations is folded step by step instead (Q22).
    """
    if len(structure.outs) != 1 or block.last_op is None:
        return None
    accumulator = block.args[len(structure.ins)]
    last = block.last_op.operands[0].owner
    if not isinstance(last, Operation) or last.name not in COMBINERS or len(list(accumulator.uses)) != 1:
        return None
    others = [value for value in last.operands if value is not accumulator]
    if len(others) != 1:
        return None
    element = structure.outs[0].element
    if element.wide != element.dtype and isinstance(others[0], OpResult):
        return None
    table = BIT_COMBINERS if element.bits == 1 else COMBINERS
    return Joining(table[last.name], others[0])


def reduction_step(structure: Structure, body: Body, compiler: FunctionCompiler, joining: Joining) -> Step:
    """Computes all elements at once, then reduces them with the combiner in the wide type and rounds once."""
    site, (out,) = structure.site, structure.outs
    element_slot = compiler.slot(joining.element)
    code = Code(body.code.steps[:-1], body.code.arguments, (element_slot,), body.code.captured, site)
    axes = tuple(d + 1 for d in sorted(structure.reduced))
    combiner, dtype = joining.combiner, out.element.dtype
    ins = tuple((operand.slot, operand.map) for operand in structure.ins)

    def step(frame: Frame) -> None:
        regs = frame.regs
        extents = structure.extents(regs)
        init = regs[out.slot]
        if isinstance(init, Tainted) and init.is_unwritten():
            raise init.origin.error(site)
        saved = body.enter(frame, extents)
        arguments: list[Value] = [lane(regs[slot], map, extents, site) for slot, map in ins]
        (element,) = code.call(frame, [*arguments, None])
        body.leave(frame, saved)
        mask, origin = None, None
        if isinstance(element, Tainted):
            full = _spread_over(_in_space(element.mask, extents), axes, extents)
            mask, origin = full.any(axis=axes, keepdims=True), element.origin
            element = element.values
        values = _spread_over(_in_space(as_array(element, dtype), extents), axes, extents)
        plain = init.values if isinstance(init, Tainted) else init
        if all(extents[axis - 1] for axis in axes):
            reduced = combiner.reduce(widen(values), axes)
            total = combiner(widen(plain), out_of_space(reduced, out, _collapsed(extents, structure)))
        else:
            total = plain
        result = narrow(np.asarray(total, out.element.wide), dtype)
        masks: list[Array] = []
        if mask is not None:
            masks.append(out_of_space(np.asarray(mask), out, _collapsed(extents, structure)))
        if isinstance(init, Tainted):
            masks.append(init.mask)
            origin = origin or init.origin
        regs[structure.results[0]] = tainted_result(result, masks, origin)

    return step


def _collapsed(extents: Extents, structure: Structure) -> Extents:
    return tuple(1 if d in structure.reduced else size for d, size in enumerate(extents))


def _spread_over(values: Array, axes: tuple[int, ...], extents: Extents) -> Array:
    """``values`` with the full extent along ``axes``, so that a reduction counts every iteration."""
    shape = tuple(extents[axis - 1] if axis in axes else size for axis, size in enumerate(values.shape))
    return values if shape == values.shape else np.broadcast_to(values, shape)


def tainted_result(result: Array, masks: Sequence[Array], origin: Origin | None) -> Value:
    """``result``, tainted where one of the masks says so."""
    if origin is None or not masks:
        return result
    mask = masks[0]
    for other in masks[1:]:
        mask = mask | other
    if not mask.any():
        return result
    return Tainted(result, np.broadcast_to(mask, np.broadcast_shapes(mask.shape, result.shape)), origin)


def fold_step(structure: Structure, body: Body) -> Step:
    """Runs the body once per reduced iteration, in index order, for all other iterations at once."""
    site, outs = structure.site, structure.outs
    reduced = sorted(structure.reduced)

    def step(frame: Frame) -> None:
        regs = frame.regs
        extents = structure.extents(regs)
        small = _collapsed(extents, structure)
        arguments = [lane(regs[operand.slot], operand.map, extents, site) for operand in structure.ins]
        states: list[Value] = [lane(regs[operand.slot], operand.map, small, site) for operand in outs]
        saved = body.enter(frame, extents)
        counters = {slot: regs[slot] for _, slot in body.index_slots}
        for place in product(*(range(extents[d]) for d in reduced)):
            at = dict(zip(reduced, place, strict=True))
            for slot, counter in counters.items():
                regs[slot] = piece(counter, at)
            states = body.code.call(frame, [*(piece(value, at) for value in arguments), *states])
        body.leave(frame, saved)
        for out, operand, value in zip(structure.results, outs, states, strict=True):
            regs[out] = as_result(value, operand, small)

    return step


def piece(value: Value, at: Mapping[int, int]) -> Value:
    """The part of an array in the space at given positions of some dimensions."""
    if isinstance(value, Tainted):
        return Tainted(piece(value.values, at), piece(value.mask, at), value.origin)
    index = tuple(
        slice(at[axis - 1], at[axis - 1] + 1) if axis - 1 in at and size > 1 else slice(None)
        for axis, size in enumerate(value.shape)
    )
    return value[index]


# --------------------------------------------------------------------------------------------------------- contractions


def find_contraction(block: Block, structure: Structure) -> tuple[int, int] | None:
    """The two operands whose product a body sums up, ``acc + a * b``, each at most converted to a wider type."""
    if not structure.reduced or len(structure.outs) != 1 or block.last_op is None:
        return None
    if not all(is_projection(operand.map) for operand in (*structure.ins, *structure.outs)):
        return None
    total = block.last_op.operands[0].owner
    accumulator = block.args[len(structure.ins)]
    if not isinstance(total, Operation) or total.name not in ("arith.addf", "arith.addi"):
        return None
    others = [value for value in total.operands if value is not accumulator]
    if len(others) != 1 or len(list(accumulator.uses)) != 1:
        return None
    times = others[0].owner
    if not isinstance(times, Operation) or times.name not in ("arith.mulf", "arith.muli"):
        return None
    sources = [_argument_behind(value) for value in times.operands]
    if any(source is None or source.block is not block for source in sources):
        return None
    first, second = (source.index for source in sources if source is not None)
    if max(first, second) >= len(structure.ins) or structure.outs[0].element.bits == 1:
        return None
    return first, second


def _argument_behind(value: SSAValue) -> BlockArgument | None:
    while isinstance(value, OpResult) and value.op.name in ("arith.extf", "arith.extsi"):
        value = value.op.operands[0]
    return value if isinstance(value, BlockArgument) else None


def contraction_step(structure: Structure, first: int, second: int, *, named: bool = False) -> Step:
    """``out + sum(a * b)`` by matrix products in the wide type of the result, rounded once."""
    left, right, (out,) = structure.ins[first], structure.ins[second], structure.outs
    element, site = out.element, structure.site
    plan = ProductPlan.of(left.map, right.map, out.map)
    result = structure.results[0]

    def step(frame: Frame) -> None:
        regs = frame.regs
        extents = structure.extents(regs)
        a, b, init = regs[left.slot], regs[right.slot], regs[out.slot]
        masks: list[Array] = []
        origin: Origin | None = None
        if isinstance(init, Tainted):
            if not init.is_unwritten():
                masks.append(init.mask)
                origin, init = init.origin, init.values
            elif named:
                frame.run.warn(ACCUMULATES_ONTO_EMPTY(site))
                init = np.zeros(1, element.dtype)
            else:
                raise init.origin.error(site)
        for value, operand in ((a, left), (b, right)):
            if isinstance(value, Tainted):
                lanes = lane(value, operand.map, extents, site).mask
                reached = lanes.any(axis=tuple(d + 1 for d in sorted(structure.reduced)), keepdims=True)
                masks.append(out_of_space(reached, out, _collapsed(extents, structure)))
                origin = origin or value.origin
        a, b = (value.values if isinstance(value, Tainted) else value for value in (a, b))
        if named:
            a, b = _as_multiplied(a, left.element, element), _as_multiplied(b, right.element, element)
        total = plan.product(_computable(a, element), _computable(b, element), extents)
        if not is_zero(init):
            total = np.add(total, widen(init), out=total if len(total) >= len(init) else None)
        regs[result] = tainted_result(narrow(total, element.dtype), masks, origin)

    return step


def _as_multiplied(values: Array, element: ElementType, result: ElementType) -> Array:
    """Operands of a named contraction become elements of its result; here those that lose something by it."""
    narrows = element.kind == result.kind == "float" and element.bits > result.bits
    return narrow(values, result.dtype) if narrows else values


def is_zero(values: Array) -> bool:
    """Whether an array consists of one zero, repeated."""
    single = distinct(values)
    return single.size == 1 and not single.any()


def _computable(values: Array, element: ElementType) -> Array:
    return values if values.dtype == element.wide else cast(values, element.wide)


def ACCUMULATES_ONTO_EMPTY(site: Site) -> Diagnostic:
    return Diagnostic(
        "AccumulatesOntoEmpty",
        "warning",
        f"'{site.operation}' adds to a tensor.empty, which is taken for zero",
        site.location,
        "fill the accumulator with linalg.fill",
    )


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a contraction becomes a batched matrix product: the dimensions by the operands they occur in."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[int, ...]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]

    @staticmethod
    def of(left: AffineMap, right: AffineMap, out: AffineMap) -> ProductPlan:
        a, b, c = (
            tuple(each.position for each in map.results if isinstance(each, AffineDimExpr))
            for map in (left, right, out)
        )
        return ProductPlan(
            a,
            b,
            c,
            batch=tuple(d for d in c if d in a and d in b),
            rows=tuple(d for d in c if d in a and d not in b),
            columns=tuple(d for d in c if d in b and d not in a),
            inner=tuple(d for d in a if d in b and d not in c),
        )

    def product(self, a: Array, b: Array, extents: Extents) -> Array:
        """The sum of products, with the axes of the result."""
        left = self._arranged(a, self.left, self.rows, self.inner, extents)
        right = self._arranged(b, self.right, self.inner, self.columns, extents)
        lead = max(len(left), len(right))
        if len(right) == 1 and lead > 1 and not self.batch:
            left = left.reshape(1, 1, -1, left.shape[-1])
        whole = matrix_product(left, right)
        grouped = (*self.batch, *self.rows, *self.columns)
        whole = whole.reshape(lead, *(extents[d] for d in grouped))
        free = [d for d in self.out if d not in grouped]
        shape = (lead, *(extents[d] for d in grouped), *(1 for _ in free))
        whole = whole.reshape(shape)
        order = [*grouped, *free]
        return whole.transpose(0, *(order.index(d) + 1 for d in self.out))

    def _arranged(
        self, values: Array, dims: tuple[int, ...], outer: tuple[int, ...], inner: tuple[int, ...], extents: Extents
    ) -> Array:
        """``values`` as (cores, batch, outer, inner); dimensions that occur nowhere else are summed up first."""
        values = values.reshape(len(values), *(extents[d] for d in dims))
        lonely = tuple(d for d in dims if d not in (*self.batch, *outer, *inner))
        if lonely:
            values = values.sum(axis=tuple(dims.index(d) + 1 for d in lonely), dtype=values.dtype)
            dims = tuple(d for d in dims if d not in lonely)
        values = values.transpose(0, *(dims.index(d) + 1 for d in (*self.batch, *outer, *inner)))
        sizes = (prod(extents[d] for d in group) for group in (self.batch, outer, inner))
        return values.reshape(len(values), *sizes)


def operand_of(compiler: FunctionCompiler, value: SSAValue, map: AffineMap) -> Operand:
    return Operand(compiler.slot(value), map, element_of(value.type), shape_of(value.type))


__all__ = ["BOOL", "Structure", "compile_structure", "contraction_step", "operand_of"]
