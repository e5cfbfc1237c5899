"""Structured operations with reductions: which are contractions for the matrix unit, which go through the vector unit.

A *contraction* multiplies two operands and adds up over the loops that its output lacks. Its loops are batch (in both
operands and the output), rows (first operand and output), columns (second operand and output) or depth (both operands).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isinf, prod
from typing import cast

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.context import Lowering, only_reader, refuse, shape_and_element
from ktir.backends.dataflow.lower.hardware import MATRIX_IN, MATRIX_OUT, VECTOR_OUT, vector_queue
from ktir.backends.dataflow.lower.plan import Pe, ScalarBody, SfuReduce, View, element_bytes
from ktir.backends.dataflow.lower.pointwise import Streams, ViewOf, iteration_space, operand_view
from ktir.backends.dataflow.lower.tensors import Box, Splat, Tensor
from ktir.backends.dataflow.lower.values import CoreValue, constant, variable
from ktir.machine.description import Machine

ROWS_PER_BLOCK = 512
"""Rows that one stationary block serves before the next is loaded."""


# --------------------------------------------------------------------------------------------------------- contractions


@dataclass(frozen=True)
class Contraction:
    """Loops by role. ``lhs`` and ``rhs`` are positions of the operands among the inputs."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]


def classify(lhs: AffineMap, rhs: AffineMap, out: AffineMap) -> Contraction | None:
    """The roles of the loops, or None where a loop is in one operand alone or a map is no projection."""
    if not all(isinstance(r, AffineDimExpr | AffineConstantExpr) for map in (lhs, rhs, out) for r in map.results):
        return None
    in_lhs, in_rhs, in_out = (
        {r.position for r in map.results if isinstance(r, AffineDimExpr)} for map in (lhs, rhs, out)
    )
    loops = range(lhs.num_dims)
    if any((loop in in_lhs) + (loop in in_rhs) + (loop in in_out) < 2 for loop in loops):
        return None
    return Contraction(
        tuple(loop for loop in loops if loop in in_lhs & in_rhs & in_out),
        tuple(loop for loop in loops if loop in in_lhs & in_out and loop not in in_rhs),
        tuple(loop for loop in loops if loop in in_rhs & in_out and loop not in in_lhs),
        tuple(loop for loop in loops if loop in in_lhs & in_rhs and loop not in in_out),
    )


def multiplies_and_adds(block: Block) -> bool:
    """Whether a body adds the product of its first two arguments, perhaps widened, to the third."""
    if len(block.args) != 3 or block.last_op is None or len(block.last_op.operands) != 1:
        return False
    total = block.last_op.operands[0].owner
    if not isinstance(total, arith.AddfOp | arith.AddiOp):
        return False
    product = next((o.owner for o in total.operands if isinstance(o.owner, arith.MulfOp | arith.MuliOp)), None)
    if not isinstance(product, Operation) or block.args[2] not in total.operands:
        return False
    return {_unwidened(operand) for operand in product.operands} == set(block.args[:2])


def _unwidened(value: SSAValue) -> SSAValue:
    owner = value.owner
    return owner.operands[0] if isinstance(owner, arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp) else value


Dims = tuple[tuple[int, tuple[int, ...]], ...]
"""Loops of one role: extent, and the byte stride of each operand that has the loop."""


def lower_contraction(lowering: Lowering, op: LinalgStructuredOperation, roles: Contraction) -> None:
    """Emits the matrix unit's steps for ``op``; its result is written where its reader wants it."""
    shape, element = shape_and_element(op.results[0].type, op)
    initial = lowering.tensor(op.outputs[0], op)
    contraction = Contracted.of(lowering, op, roles)
    start = None if begins_at_zero(op, initial) else contraction.accumulated(_stored(lowering, initial))
    target, view = lowering.place(op.results[0], shape, element)
    written = contraction.accumulated(target)
    lowering.planner.each_corelet(
        shares_of(lowering, roles, contraction.extents),
        lambda share: contraction.shared(share).emit(start and share.of(start), share.of(written)),
    )
    lowering.values[op.results[0]] = view


@dataclass(frozen=True)
class Share:
    """The part of a contraction that one corelet does: ``size`` iterations of ``loop`` from ``start`` on."""

    loop: int
    start: int
    size: int

    def of(self, view: View) -> View:
        """The part of a view over all loops."""
        shape = [*view.shape[: self.loop], self.size, *view.shape[self.loop + 1 :]]
        return view.moved(view.strides[self.loop] * self.start).shaped(shape, view.strides)

    def extents(self, whole: Sequence[int]) -> tuple[int, ...]:
        """The loops of the part."""
        return (*whole[: self.loop], self.size, *whole[self.loop + 1 :])


LEAST_PRODUCTS = 1 << 15
"""Multiplications for each corelet below which a contraction is left to one."""


def shares_of(lowering: Lowering, roles: Contraction, extents: Sequence[int]) -> list[Share]:
    """One share for each corelet: of the columns, so that each loads its own stationary blocks, if they are many; else
    of the batch or the rows."""
    hardware = lowering.hardware
    corelets = hardware.corelets if prod(extents) >= hardware.corelets * LEAST_PRODUCTS else 1
    sticks, passes = 64, max(1, hardware.machine.unit(hardware.matrix).rows_per_pass)
    for loops, grain in ((roles.columns, sticks), (roles.batch, 1), (roles.rows, passes), (roles.columns, 1)):
        for loop in loops:
            if extents[loop] >= corelets * grain:
                return [Share(loop, start, size) for start, size in moves.dealt(extents[loop], corelets, grain)]
    return [Share(roles.depth[0], 0, extents[roles.depth[0]])]


def _stored(lowering: Lowering, tensor: Tensor) -> View:
    return tensor if isinstance(tensor, View) else lowering.stored(tensor)


def begins_at_zero(op: LinalgStructuredOperation, initial: Tensor) -> bool:
    """Whether ``op`` adds to zeros; a named contraction takes ``tensor.empty`` for zeros (specification, Q26)."""
    onto_empty = isinstance(op.outputs[0].owner, EmptyOp) and not isinstance(op, GenericOp)
    return onto_empty or is_zero(initial)


def is_zero(tensor: Tensor) -> bool:
    """Whether ``tensor`` is known to be zero everywhere."""
    if not isinstance(tensor, Splat):
        return False
    match tensor.value:
        case FloatAttr():
            return tensor.value.value.data == 0.0
        case IntegerAttr():
            return tensor.value.value.data == 0
        case _:
            return False


@dataclass(eq=False)
class Contracted:
    """A contraction over views of all loops."""

    lowering: Lowering
    op: LinalgStructuredOperation
    roles: Contraction
    extents: tuple[int, ...]
    maps: list[AffineMap]
    lhs: View
    rhs: View

    @staticmethod
    def of(lowering: Lowering, op: LinalgStructuredOperation, roles: Contraction) -> Contracted:
        """Looks the operands up and checks that the matrix unit has their type."""
        extents, maps = iteration_space(op)
        views = [lowering.view(operand, op) for operand in op.inputs]
        for view in views:
            name = str(view.element)
            if not lowering.machine.capable(lowering.hardware.matrix, "mac", name):
                refuse(op, f"the matrix unit does not multiply {name}", "cast the operands to f16 or f32")
        over = tuple(range(len(extents)))
        lhs, rhs = (operand_view(op, view, map, extents, over) for view, map in zip(views, maps, strict=False))
        return Contracted(lowering, op, roles, extents, maps, lhs, rhs)

    def shared(self, share: Share) -> Contracted:
        """The part of one corelet."""
        return replace(self, extents=share.extents(self.extents), lhs=share.of(self.lhs), rhs=share.of(self.rhs))

    def accumulated(self, view: View) -> View:
        """The output as a view of all loops."""
        return operand_view(self.op, view, self.maps[2], self.extents, tuple(range(len(self.extents))))

    def _dims(self, loops: Sequence[int], views: Sequence[View]) -> Dims:
        box = Box(
            tuple(self.extents[loop] for loop in loops),
            tuple(tuple(view.strides[loop] for loop in loops) for view in views),
        ).coalesced()
        return tuple(zip(box.counts, zip(*box.strides, strict=True), strict=True))

    def emit(self, start: View | None, target: View) -> None:
        """Blocks over columns, rows and depth, inside loops over the batch."""
        initial = start if start is not None else target
        lowering = self.lowering
        budget = accumulators_of(lowering.machine)
        rows_total = prod(self.extents[loop] for loop in self.roles.rows)
        row_limit = min(rows_total, ROWS_PER_BLOCK, budget)
        column_limit = max(1, budget // row_limit)
        if column_limit > 64:
            column_limit -= column_limit % 64
        batch = self._dims(self.roles.batch, (self.lhs, self.rhs, initial, target))
        columns = self._dims(self.roles.columns, (self.rhs, initial, target))
        rows = self._dims(self.roles.rows, (self.lhs, initial, target))
        depth = self._dims(self.roles.depth, (self.lhs, self.rhs))

        def at_batch(_: Dims, b: Sequence[CoreValue]) -> None:
            def at_columns(n: Dims, c: Sequence[CoreValue]) -> None:
                def at_rows(m: Dims, r: Sequence[CoreValue]) -> None:
                    lhs = self.lhs.moved(b[0] + r[0])
                    rhs = self.rhs.moved(b[1] + c[0])
                    begun = start.moved(b[2] + c[1] + r[1]) if start is not None else None
                    self._block(m, n, depth, lhs, rhs, begun, target.moved(b[3] + c[2] + r[2]))

                blocks(lowering, rows, row_limit, at_rows)

            blocks(lowering, columns, column_limit, at_columns)

        blocks(lowering, batch, 1, at_batch)

    def _block(
        self, rows: Dims, columns: Dims, depth: Dims, lhs: View, rhs: View, start: View | None, target: View
    ) -> None:
        planner = self.lowering.planner
        m, n = _size(rows), _size(columns)
        if start is None:
            planner.add(planner.hardware.matrix, Pe("clear", None, None, rows=m, n=n))
        else:
            moves.stream(planner, _block_view(start, (rows, 1), (columns, 1)), MATRIX_IN)
            planner.add(planner.hardware.matrix, Pe("preload", MATRIX_IN, start.element, rows=m, n=n))
        self._multiply(rows, columns, depth, lhs, rhs)
        planner.add(planner.hardware.matrix, Pe("emit", MATRIX_OUT, target.element, rows=m, n=n))
        moves.drain(planner, MATRIX_OUT, _block_view(target, (rows, 2), (columns, 2)))

    def add_products(self) -> None:
        """Adds all products to the accumulators, which hold the whole output."""
        columns = self._dims(self.roles.columns, (self.rhs,))
        rows, depth = self._dims(self.roles.rows, (self.lhs,)), self._dims(self.roles.depth, (self.lhs, self.rhs))
        self._multiply(rows, columns, depth, self.lhs, self.rhs)

    def _multiply(self, rows: Dims, columns: Dims, depth: Dims, lhs: View, rhs: View) -> None:
        """One stationary block, and the rows that meet it."""
        planner = self.lowering.planner
        m, k, n = _size(rows), _size(depth), _size(columns)
        moves.stream(planner, _block_view(rhs, (depth, 1), (columns, 0)), MATRIX_IN)
        planner.add(planner.hardware.matrix, Pe("load", MATRIX_IN, rhs.element, k=k, n=n))
        moves.stream(planner, _block_view(lhs, (rows, 0), (depth, 0)), MATRIX_IN)
        planner.add(planner.hardware.matrix, Pe("mac", MATRIX_IN, lhs.element, rows=m, k=k, n=n))


@dataclass(frozen=True)
class HeldSum:
    """A loop-carried sum of products that stays in the matrix unit's accumulators for the whole loop.

    ``product`` is the contraction in the loop's body; nothing but the next iteration reads what it adds to.
    """

    product: LinalgStructuredOperation
    roles: Contraction
    extents: tuple[int, ...]
    maps: tuple[AffineMap, ...]

    def fits(self, accumulators: int) -> bool:
        """Whether one block of ``accumulators`` holds the sum."""
        batch = prod(self.extents[loop] for loop in self.roles.batch)
        outputs = prod(self.extents[loop] for loop in (*self.roles.rows, *self.roles.columns))
        return batch == 1 and outputs <= accumulators

    def _size(self, share: Share) -> tuple[int, int]:
        """Rows and columns of a share."""
        extents = share.extents(self.extents)
        return prod(extents[loop] for loop in self.roles.rows), prod(extents[loop] for loop in self.roles.columns)

    def _view(self, view: View, share: Share) -> View:
        """The outputs of a share, rows before columns."""
        every = share.of(operand_view(self.product, view, self.maps[2], self.extents, tuple(range(len(self.extents)))))
        over = (*self.roles.rows, *self.roles.columns)
        return every.shaped([every.shape[loop] for loop in over], [every.strides[loop] for loop in over])

    def begin(self, lowering: Lowering, initial: Tensor) -> None:
        """Sets the accumulators in front of the loop."""
        planner, matrix = lowering.planner, lowering.hardware.matrix
        stored = None if is_zero(initial) else _stored(lowering, initial)

        def begin(share: Share) -> None:
            rows, columns = self._size(share)
            if stored is None:
                planner.add(matrix, Pe("clear", None, None, rows=rows, n=columns))
                return
            moves.stream(planner, self._view(stored, share), MATRIX_IN)
            planner.add(matrix, Pe("preload", MATRIX_IN, stored.element, rows=rows, n=columns))

        planner.each_corelet(shares_of(lowering, self.roles, self.extents), begin)

    def step(self, lowering: Lowering) -> None:
        """Adds the product of an iteration."""
        whole = Contracted.of(lowering, self.product, self.roles)
        lowering.planner.each_corelet(
            shares_of(lowering, self.roles, self.extents), lambda share: whole.shared(share).add_products()
        )

    def finish(self, lowering: Lowering, target: View) -> None:
        """Writes the sum behind the loop."""
        planner = lowering.planner

        def finish(share: Share) -> None:
            rows, columns = self._size(share)
            planner.add(planner.hardware.matrix, Pe("emit", MATRIX_OUT, target.element, rows=rows, n=columns))
            moves.drain(planner, MATRIX_OUT, self._view(target, share))

        planner.each_corelet(shares_of(lowering, self.roles, self.extents), finish)


def accumulators_of(machine: Machine) -> int:
    """Sums in f32 that the matrix unit holds."""
    return max((m.size for m in machine.memories.values() if m.kind == "accumulator"), default=1 << 16) // 4


def contraction_roles(op: Operation) -> Contraction | None:
    """The roles of the loops of ``op`` if the matrix unit can do it."""
    if not isinstance(op, LinalgStructuredOperation) or len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    if not multiplies_and_adds(op.body.block) or not isinstance(op.body.block.args[2].type, AnyFloat):
        return None
    roles = classify(*(attribute.data for attribute in op.get_indexing_maps()))
    return roles if roles is not None and roles.depth else None


def refuse_narrowing(op: LinalgStructuredOperation) -> None:
    """Refuses a named contraction of floats wider than its result: it rounds what it multiplies, which no unit does."""
    if isinstance(op, GenericOp) or len(op.inputs) != 2 or len(op.outputs) != 1:
        return
    result = shape_and_element(op.outputs[0].type, op)[1]
    for operand in op.inputs:
        element = shape_and_element(operand.type, op)[1]
        if isinstance(element, AnyFloat) and isinstance(result, AnyFloat) and element.bitwidth > result.bitwidth:
            refuse(
                op, f"it rounds elements of {element} to {result} before it multiplies", "arith.truncf them before it"
            )


def held_sum(machine: Machine, loop: scf.ForOp, number: int) -> HeldSum | None:
    """The sum that iteration argument ``number`` of ``loop`` carries, if it can stay in the accumulators."""
    argument, last = loop.body.block.args[number + 1], loop.body.block.last_op
    product = only_reader(argument)
    if product is None or last is None or last.operands[number].owner is not product:
        return None
    roles = contraction_roles(product)
    assert isinstance(product, Operation)
    if roles is None or not isinstance(product, LinalgStructuredOperation) or product.outputs[0] is not argument:
        return None
    others = any(op is not product and contraction_roles(op) is not None for op in loop.walk())
    alone = product.parent is loop.body.block and only_reader(product.results[0]) is last and not others
    extents, maps = iteration_space(product)
    held = HeldSum(product, roles, extents, tuple(maps))
    wide = isinstance(product.body.block.args[2].type, Float32Type)
    return held if alone and wide and held.fits(accumulators_of(machine)) else None


def _size(dims: Dims) -> int:
    return prod(count for count, _ in dims)


def _block_view(view: View, *groups: tuple[Dims, int]) -> View:
    """The loops of some roles of an operand, which has the given position among the strides of each role."""
    dims = [(count, strides[operand]) for dims, operand in groups for count, strides in dims]
    return view.shaped([count for count, _ in dims], [stride for _, stride in dims])


def blocks(lowering: Lowering, dims: Dims, limit: int, emit: Callable[[Dims, Sequence[CoreValue]], None]) -> None:
    """``emit`` on runs of at most ``limit`` elements of ``dims``, with the byte offset of each operand's run."""
    operands = len(dims[0][1]) if dims else 0
    nothing = [constant(0, lowering.cores)] * operands
    if _size(dims) <= limit:
        return emit(dims, nothing)
    (count, strides), inner = dims[0], dims[1:]
    step = limit if not inner else max(1, limit // _size(inner))
    whole, rest = divmod(count, step)

    def part(size: int, offsets: Sequence[CoreValue]) -> None:
        def shifted(piece: Dims, at: Sequence[CoreValue]) -> None:
            emit(piece, [a + b for a, b in zip(offsets, at, strict=True)])

        blocks(lowering, inner if size == 1 and inner else ((size, strides), *inner), limit, shifted)

    if whole:
        loop = lowering.planner.open_loop("b", np.full(lowering.cores, whole, dtype=np.int64))
        at = variable(loop.variable)
        part(step, [at * (stride * step) for stride in strides])
        lowering.planner.close_loop(loop)
    if rest:
        part(rest, [constant(stride * step * whole, lowering.cores) for stride in strides])
    return None


# ----------------------------------------------------------------------------------------------------------- reductions


NEUTRAL: dict[str, float] = {
    "arith.addf": 0.0,
    "arith.addi": 0,
    "arith.mulf": 1.0,
    "arith.muli": 1,
    "arith.maximumf": float("-inf"),
    "arith.maxnumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.minnumf": float("inf"),
}
INNER_LIMIT = 1024
"""Accumulators that one vector reduction keeps."""


@dataclass(frozen=True)
class Reduced:
    """A reduction: its loops, one input over all of them, and the scalar body of accumulator and element."""

    extents: tuple[int, ...]
    kept: tuple[int, ...]
    folded: tuple[int, ...]
    input: View
    body: ScalarBody
    combiner: str | None


def lower_reduction(lowering: Lowering, op: Operation) -> None:
    """``linalg.reduce``, or a generic whose loops are partly reductions, through the vector unit: each result apart."""
    form = _short_form if op.name == "linalg.reduce" else _generic_form
    for number, result in enumerate(op.results):
        reduced, initial = form(lowering, op, number)
        shape, element = shape_and_element(result.type, op)
        needs_start = not _is_neutral(lowering, initial, reduced.combiner) or reduced.input.element != element
        start = _stored(lowering, initial) if needs_start else None
        target, view = lowering.place(result, shape, element)
        emit_reduction(lowering, reduced, start, target)
        lowering.values[result] = view


def _is_neutral(lowering: Lowering, tensor: Tensor, combiner: str | None) -> bool:
    """Whether ``tensor`` does nothing to what it is combined with. In DL16 there is no infinity, it would be a NaN."""
    if combiner is None or combiner not in NEUTRAL or not isinstance(tensor, Splat):
        return False
    value = tensor.value
    if lowering.hardware.numerics == "dl16" and isinstance(tensor.element, Float16Type) and isinf(NEUTRAL[combiner]):
        return False
    return isinstance(value, FloatAttr | IntegerAttr) and value.value.data == NEUTRAL[combiner]


def _short_form(lowering: Lowering, op: Operation, number: int) -> tuple[Reduced, Tensor]:
    """``linalg.reduce``: the operand's dimensions are the loops; the region takes elements, then accumulators."""
    count = len(op.results)
    source = lowering.view(op.operands[number], op)
    folded = tuple(int(dim) for dim in cast("DenseArrayBase[IntegerType]", op.properties["dimensions"]).get_values())
    kept = tuple(dim for dim in range(len(source.shape)) if dim not in folded)
    block = op.regions[0].block
    _check_apart(op, block, number, [block.args[number], block.args[count + number]])
    body = _cloned(op, block, number, accumulator=count + number, elements=[number])
    return (
        Reduced(source.shape, kept, folded, source, body, _combiner(block, block.args[count + number], number)),
        lowering.tensor(op.operands[count + number], op),
    )


def _slice(block: Block, number: int) -> list[Operation]:
    """The operations that the ``number``-th result of a body depends on, in order."""
    assert block.last_op is not None
    needed = {block.last_op.operands[number]}
    found: list[Operation] = []
    for inner in reversed(list(block.ops)):
        if needed.intersection(inner.results):
            needed.update(_operands_in(inner))
            found.append(inner)
    return found[::-1]


def _operands_in(op: Operation) -> list[SSAValue]:
    """What an operation and those in its regions use."""
    return [operand for inner in op.walk() for operand in inner.operands]


def _arguments_of(block: Block, number: int) -> set[SSAValue]:
    """The arguments of a body that its ``number``-th result depends on."""
    assert block.last_op is not None
    used = {block.last_op.operands[number], *(o for inner in _slice(block, number) for o in _operands_in(inner))}
    return used.intersection(block.args)


def _check_apart(op: Operation, block: Block, number: int, allowed: Sequence[SSAValue]) -> None:
    """Refuses a result that needs what belongs to another one."""
    if _arguments_of(block, number).difference(allowed):
        refuse(op, "its results depend on each other", "reduce to one result at a time")


def _combiner(block: Block, accumulator: SSAValue, number: int) -> str | None:
    """The one operation that combines accumulator and element, None for longer bodies."""
    last = block.last_op.operands[number].owner if block.last_op is not None else None
    if not isinstance(last, Operation) or accumulator not in last.operands or len(last.operands) != 2:
        return None
    others = [operand for operand in last.operands if operand is not accumulator]
    return last.name if len(others) == 1 and _unwidened(others[0]).owner is block else None


def _cloned(op: Operation, block: Block, number: int, *, accumulator: int, elements: Sequence[int]) -> ScalarBody:
    """What ``block`` yields as its ``number``-th result, as a function of the accumulator and the elements."""

    def build(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        mapper: dict[SSAValue, SSAValue] = {block.args[accumulator]: args[0]}
        mapper |= {block.args[element]: arg for element, arg in zip(elements, args[1:], strict=True)}
        operations: list[Operation] = []
        for inner in _slice(block, number):
            made = inner.clone(value_mapper=mapper)
            mapper.update(zip(inner.results, made.results, strict=True))
            operations.append(made)
        if block.last_op is None:
            refuse(op, "its body yields nothing")
        return operations, mapper[block.last_op.operands[number]]

    return build


def _generic_form(lowering: Lowering, op: Operation, number: int) -> tuple[Reduced, Tensor]:
    """A generic reduction: what happens to the elements before they are combined becomes a tensor of its own."""
    assert isinstance(op, LinalgStructuredOperation)
    extents, maps = iteration_space(op)
    inputs, block = len(op.inputs), op.body.block
    out_map = maps[inputs + number]
    kept = tuple(r.position for r in out_map.results if isinstance(r, AffineDimExpr))
    folded = tuple(loop for loop in range(len(extents)) if loop not in kept)
    accumulator = block.args[inputs + number]
    arguments = _arguments_of(block, number)
    _check_apart(op, block, number, [*block.args[:inputs], accumulator])
    used = [n for n, argument in enumerate(block.args[:inputs]) if argument in arguments]
    combiner = _combiner(block, accumulator, number)
    over = tuple(range(len(extents)))
    if len(used) == 1 and (combiner is not None or not _splits(block, accumulator, number)):
        source = operand_view(op, lowering.view(op.inputs[used[0]], op), maps[used[0]], extents, over)
        body = _cloned(op, block, number, accumulator=inputs + number, elements=used)
        return Reduced(extents, kept, folded, source, body, combiner), lowering.tensor(op.outputs[number], op)
    if not _splits(block, accumulator, number):
        refuse(
            op, "its body mixes several inputs with the accumulator", "compute the elements in an operation before it"
        )
    source, last = _elements_first(lowering, op, extents, maps, number, used)

    def combine(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        operands = [args[0] if operand is accumulator else args[1] for operand in last.operands]
        made = type(last).create(operands=operands, result_types=[args[0].type], properties=dict(last.properties))
        return [made], made.results[0]

    return Reduced(extents, kept, folded, source, combine, last.name), lowering.tensor(op.outputs[number], op)


def _splits(block: Block, accumulator: SSAValue, number: int) -> bool:
    """Whether the last operation alone uses the accumulator."""
    last = block.last_op.operands[number].owner if block.last_op is not None else None
    if not isinstance(last, Operation) or len(last.operands) != 2 or len(list(accumulator.uses)) != 1:
        return False
    return accumulator in last.operands


def _elements_first(
    lowering: Lowering,
    op: LinalgStructuredOperation,
    extents: tuple[int, ...],
    maps: Sequence[AffineMap],
    result: int,
    used: Sequence[int],
) -> tuple[View, Operation]:
    """A tile with what is combined for a result, for every point of the loops, and the operation that combines."""
    block = op.body.block
    last = block.last_op.operands[result].owner if block.last_op is not None else None
    assert isinstance(last, Operation)
    accumulator = block.args[len(op.inputs) + result]
    (wanted,) = [operand for operand in last.operands if operand is not accumulator]
    over = tuple(range(len(extents)))
    streams = Streams(lowering, op, extents)
    for number in used:
        streams.add(lowering.tensor(op.inputs[number], op), ViewOf(lowering, op, maps[number], extents, over))

    def build(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        mapper: dict[SSAValue, SSAValue] = {block.args[n]: arg for n, arg in zip(used, args, strict=True)}
        operations: list[Operation] = []
        for inner in _slice(block, result)[:-1]:
            made = inner.clone(value_mapper=mapper)
            mapper.update(zip(inner.results, made.results, strict=True))
            operations.append(made)
        return operations, mapper[wanted]

    return lowering.dense(streams.pending(wanted.type, build, False)), last


def emit_reduction(lowering: Lowering, reduced: Reduced, start: View | None, target: View) -> None:
    """Streams the input with the reduced loops between outer and inner ones, so that memory is walked in order."""
    outer, inner = _outer_and_inner(reduced)
    source = reduced.input
    folded = sorted(reduced.folded, key=lambda loop: -abs(source.strides[loop]))
    at = {loop: position for position, loop in enumerate(reduced.kept)}

    def dims(loops: Sequence[int]) -> Box:
        others = [target] if start is None else [target, start]
        return Box(
            tuple(reduced.extents[loop] for loop in loops),
            (
                tuple(source.strides[loop] for loop in loops),
                *(tuple(view.strides[at[loop]] for loop in loops) for view in others),
            ),
        ).coalesced()

    length_box = Box(
        tuple(reduced.extents[loop] for loop in folded), (tuple(source.strides[loop] for loop in folded),)
    ).coalesced()
    walk = Walk(dims(outer), length_box, dims(inner), source, target, start)
    lowering.planner.each_corelet(walk.shares(lowering), lambda share: _reduce_pieces(lowering, reduced, share))


@dataclass(frozen=True)
class Walk:
    """How a reduction walks memory: boxes of loops outside, along and inside the reduced ones, over source, target and
    start."""

    outer: Box
    length: Box
    inner: Box
    source: View
    target: View
    start: View | None

    def shares(self, lowering: Lowering) -> list[Walk]:
        """One for each corelet that is worth using."""
        elements = prod(prod(box.counts) for box in (self.outer, self.length, self.inner))
        vector = lowering.machine.stick_bytes // element_bytes(self.source.element)
        corelets = lowering.hardware.corelets
        if elements < moves.LEAST_VECTORS * vector * corelets:
            return [self]
        if self.outer.counts[0] >= corelets:
            parts = moves.dealt(self.outer.counts[0], corelets, 1)
            return [self.moved(self.outer, begin, outer=_resized(self.outer, size)) for begin, size in parts]
        grain = vector if len(self.inner.counts) == 1 else 1
        if self.inner.counts[0] >= corelets * grain:
            parts = moves.dealt(self.inner.counts[0], corelets, grain)
            return [self.moved(self.inner, begin, inner=_resized(self.inner, size)) for begin, size in parts]
        return [self]

    def moved(self, along: Box, by: int, outer: Box | None = None, inner: Box | None = None) -> Walk:
        """The walk from iteration ``by`` of the first loop ``along`` on, over other boxes."""
        return Walk(
            outer or self.outer,
            self.length,
            inner or self.inner,
            self.source.moved(along.strides[0][0] * by),
            self.target.moved(along.strides[1][0] * by),
            self.start.moved(along.strides[2][0] * by) if self.start is not None else None,
        )


def _resized(box: Box, count: int) -> Box:
    return Box((count, *box.counts[1:]), box.strides)


def _outer_and_inner(reduced: Reduced) -> tuple[list[int], list[int]]:
    """Kept loops whose elements lie closer together than those of every reduced loop are inner, the rest outer."""
    nearest = min((abs(reduced.input.strides[loop]) for loop in reduced.folded if reduced.extents[loop] > 1), default=0)
    inner: list[int] = []
    size = 1
    for loop in reversed(reduced.kept):
        size *= reduced.extents[loop]
        if not 0 < abs(reduced.input.strides[loop]) < nearest or size > INNER_LIMIT:
            break
        inner.insert(0, loop)
    return list(reduced.kept[: len(reduced.kept) - len(inner)]), inner


def _reduce_pieces(lowering: Lowering, reduced: Reduced, walk: Walk) -> None:
    """One vector reduction where the descriptor holds all loops, else loops over the outermost."""
    planner = lowering.planner
    outer, length, inner = walk.outer, walk.length, walk.inner
    source, target, start = walk.source, walk.target, walk.start
    real = [box for box in (outer, length, inner) if prod(box.counts) > 1]
    if (
        sum(len(box.counts) for box in real) > planner.hardware.descriptor_dims
        and len(outer.counts)
        and prod(outer.counts) > 1
    ):
        loop = planner.open_loop("r", np.full(planner.cores, outer.counts[0], dtype=np.int64))
        at = variable(loop.variable)
        rest = Box(outer.counts[1:] or (1,), tuple(strides[1:] or (0,) for strides in outer.strides))
        moved = [view.moved(at * strides[0]) for view, strides in zip((source, target), outer.strides, strict=False)]
        begun = start.moved(at * outer.strides[2][0]) if start is not None else None
        _reduce_pieces(lowering, reduced, Walk(rest, length, inner, moved[0], moved[1], begun))
        return planner.close_loop(loop)
    sizes = [prod(box.counts) for box in (outer, length, inner)]
    kept = [box for box in (outer, inner) if prod(box.counts) > 1] or [outer]
    written = target.shaped(
        [count for box in kept for count in box.counts], [stride for box in kept for stride in box.strides[1]]
    )
    if start is not None:
        begun = start.shaped(
            [count for box in kept for count in box.counts], [stride for box in kept for stride in box.strides[2]]
        )
        moves.stream(planner, begun, vector_queue(1))
    read = source.shaped(
        [count for box in real for count in box.counts] or [1],
        [stride for box in real for stride in box.strides[0]] or [0],
    )
    moves.stream(planner, read, vector_queue(0))
    types: list[Attribute] = [target.element, source.element]
    planner.add(
        planner.hardware.vector,
        SfuReduce(
            vector_queue(0),
            VECTOR_OUT,
            vector_queue(1) if start is not None else None,
            sizes[0],
            sizes[1],
            sizes[2],
            moves.region_of(types, reduced.body),
        ),
    )
    moves.drain(planner, VECTOR_OUT, written)
    return None
