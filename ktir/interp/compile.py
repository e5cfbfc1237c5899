"""Turns a function into Python closures, once; running it then walks no tree.

Every SSA value gets a *slot* in the registers of a frame. Every operation becomes a *step*, a closure that reads slots,
works for all cores of the frame at once and fills slots. The files ``*_ops.py`` hold one table each, from operation
name to the function that compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ktir.dialect.locations import location_of
from ktir.errors import KtirError, LimitExceeded, UnknownOperation
from ktir.interp.numerics import Array, Binary, ElementType, Function, Ternary, Unary, as_array, element_type
from ktir.interp.values import Frame, Site, Tainted, Value

if TYPE_CHECKING:
    from ktir.interp.observation import Observation

Step = Callable[[Frame], None]
Rule = Callable[[Any, Sequence[Value], Sequence[Array | None]], Array]
"""Which elements of a result are undefined: from the result, the operands and their masks."""

FILES: Mapping[str, Sequence[str]] = MappingProxyType({"ktdp": ("ktdp", "inter_tile", "inter_tile_shares")})
"""The files with the tables of a dialect, without their ``_ops``, where it is not one with the dialect's name."""
DIALECTS = frozenset(("arith", "math", "linalg", "tensor", "scf", "func", "memref", "affine", "ktdp", "ktg"))


@dataclass(frozen=True, slots=True)
class Code:
    """A compiled block: ``steps`` in order, then the values in the slots ``results`` are what it yields.

    ``largest`` are the bytes of the largest tensor whose size its type says, and the operation that makes it.
    """

    steps: tuple[Step, ...]
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    captured: tuple[int, ...]
    site: Site
    largest: tuple[int, Site | None] = (0, None)

    def run(self, frame: Frame) -> None:
        """Executes the steps once. Raises :class:`LimitExceeded` past the run's ``max_steps`` and ``max_bytes``."""
        run = frame.run
        if self.largest[0] > run.max_bytes:
            require_bytes(self.largest[0], run.max_bytes, self.largest[1] or self.site)
        run.steps += len(self.steps) + 1  # the terminator, so that an endless loop with an empty body ends
        if run.steps > run.max_steps:
            raise self.past_limit(run.max_steps)
        try:
            for step in self.steps:
                step(frame)
        except MemoryError:
            raise self.site.fail(
                LimitExceeded, "needs more memory than there is", "use smaller tensors, or a grid of fewer tiles"
            ) from None

    def past_limit(self, limit: int) -> KtirError:
        return self.site.fail(
            LimitExceeded,
            f"goes past {limit} executed operations",
            "raise max_steps if the run is meant to be long",
        )

    def call(self, frame: Frame, arguments: Sequence[Value]) -> list[Value]:
        """Executes the block on ``arguments``; what it yields."""
        regs = frame.regs
        for slot, value in zip(self.arguments, arguments, strict=True):
            regs[slot] = value
        self.run(frame)
        return [regs[slot] for slot in self.results]


def require_bytes(size: int, limit: int, site: Site) -> None:
    """Raises :class:`LimitExceeded` where a tensor has more bytes than a run may use."""
    if size > limit:
        raise site.fail(
            LimitExceeded,
            f"makes a tensor of {size} bytes, more than {limit}",
            "use a smaller tile, or raise max_bytes",
        )


CompileOperation = Callable[["FunctionCompiler", Operation], "Step | None"]


@cache
def operations_of(dialect: str) -> Mapping[str, CompileOperation]:
    """All operations of a dialect that have a meaning, by name. Loaded when the first one is compiled."""
    table: dict[str, CompileOperation] = {}
    for file in FILES.get(dialect, (dialect,)) if dialect in DIALECTS else ():
        table |= import_module(f"ktir.interp.{file}_ops").OPERATIONS
    return MappingProxyType(table)


TERMINATORS = frozenset(
    {
        "func.return",
        "scf.yield",
        "linalg.yield",
        "tensor.yield",
        "ktg.yield",
        "ktdp.yield_partial",
        "ktdp.yield_reduced",
    }
    | {"ktdp.region_terminator", "scf.reduce.return", "affine.yield", "scf.condition"}
)


class FunctionCompiler:
    """Compiles the blocks of one function. ``lookup`` gives the compiled form of another function by name.

    With an ``observation`` the code tells observers what it does, and runs everything in the order of the program.
    """

    def __init__(self, lookup: Callable[[str, Site], Any], observation: Observation | None = None) -> None:
        self.lookup, self.observation = lookup, observation
        self.slots: dict[SSAValue, int] = {}

    @property
    def size(self) -> int:
        """Registers the function needs."""
        return len(self.slots)

    def slot(self, value: SSAValue) -> int:
        return self.slots.setdefault(value, len(self.slots))

    def fresh(self) -> int:
        """A slot that no SSA value owns."""
        return self.slots.setdefault(_Anonymous(), len(self.slots))  # pyright: ignore[reportArgumentType]

    def site(self, op: Operation) -> Site:
        hint = next((result.name_hint for result in op.results if result.name_hint), "")
        return Site(op.name, hint or "", location_of(op))

    def region(self, region: Region, op: Operation) -> Code:
        """Compiles the single block of ``region``."""
        if len(region.blocks) != 1:
            raise self.site(op).fail(
                UnknownOperation, "has a region of several blocks", "use structured control flow (scf)"
            )
        return self.block(region.block, op)

    def block(self, block: Block, op: Operation) -> Code:
        arguments = tuple(self.slot(argument) for argument in block.args)
        watched = self.observation if self.observation is not None and self.observation.holds(block) else None
        last_uses = _last_uses(block)
        steps: list[Step] = []
        results: tuple[int, ...] = ()
        for inner in block.ops:
            if inner.name in TERMINATORS:
                results = tuple(self.slot(value) for value in inner.operands)
                continue
            compile_operation = operations_of(inner.name.partition(".")[0]).get(inner.name)
            if compile_operation is None:
                raise self.site(inner).fail(
                    UnknownOperation, "has no meaning for the executor", "lower it, or write it with other operations"
                )
            step = compile_operation(self, inner)
            if step is not None:
                if watched is not None:
                    step = watched.around(step, self, inner)
                    step = step if steps else watched.at_entry(step, self, block)
                dead = tuple(self.slot(value) for value in last_uses.get(inner, ()))
                steps.append(_releasing(step, dead) if dead else step)
        captured = self.captured(block)
        if watched is not None:
            captured = tuple(dict.fromkeys((*captured, *watched.counters(self, block))))
        return Code(tuple(steps), arguments, results, captured, self.site(op), self.largest(block))

    def largest(self, block: Block) -> tuple[int, Site | None]:
        """The bytes of the largest tensor that an operation of ``block`` itself makes, and the operation."""
        sizes = [(bytes_of(result.type), op) for op in block.ops for result in op.results]
        size, op = max(sizes, key=lambda each: each[0], default=(0, None))
        return size, None if op is None else self.site(op)

    def captured(self, block: Block) -> tuple[int, ...]:
        """Slots of the values that ``block`` uses, at any depth, and does not define."""
        inside: set[SSAValue] = set(block.args)
        used: dict[SSAValue, None] = {}
        for op in block.walk():
            used |= dict.fromkeys(op.operands)
            inside |= set(op.results)
            for region in op.regions:
                for inner in region.blocks:
                    inside |= set(inner.args)
        return tuple(self.slot(value) for value in used if value not in inside)

    # --------------------------------------------------------------------------------- the common shapes of a step

    def unary(self, op: Operation, function: Unary, rule: Rule, operands: Sequence[SSAValue] | None = None) -> Step:
        """:meth:`emit` for a function of one value."""
        return self.emit(op, function, rule, operands)

    def binary(self, op: Operation, function: Binary, rule: Rule, operands: Sequence[SSAValue] | None = None) -> Step:
        """:meth:`emit` for a function of two values."""
        return self.emit(op, function, rule, operands)

    def ternary(self, op: Operation, function: Ternary, rule: Rule, operands: Sequence[SSAValue] | None = None) -> Step:
        """:meth:`emit` for a function of three values."""
        return self.emit(op, function, rule, operands)

    def emit(self, op: Operation, function: Function, rule: Rule, operands: Sequence[SSAValue] | None = None) -> Step:
        """A step that fills the one result of ``op`` with ``function`` of its operands."""
        site = self.site(op)
        slots = tuple(self.slot(value) for value in (op.operands if operands is None else operands))
        return emit_to(self.slot(op.results[0]), _keeping_rank(function, op.results[0].type), rule, slots, site)


def _keeping_rank(function: Callable[..., Any], kind: Attribute) -> Callable[..., Any]:
    """``function``, with an array even where the result is an integer tensor of rank 0 that is uniform."""
    if not is_shaped(kind) or shape_of(kind) or element_of(kind).kind != "int":
        return function
    dtype = element_of(kind).dtype
    return lambda *values: as_array(function(*values), dtype)


class _Anonymous:
    """Identity of a slot that no SSA value owns."""


def emit_to(out: int, function: Function, rule: Rule, slots: tuple[int, ...], site: Site) -> Step:
    if len(slots) == 1:
        (only,) = slots

        def unary(frame: Frame) -> None:
            regs = frame.regs
            value = regs[only]
            regs[out] = spread(site, function, rule, [value]) if type(value) is Tainted else function(value)

        return unary
    if len(slots) == 2:
        first, second = slots

        def binary(frame: Frame) -> None:
            regs = frame.regs
            a, b = regs[first], regs[second]
            if type(a) is Tainted or type(b) is Tainted:
                regs[out] = spread(site, function, rule, [a, b])
            else:
                regs[out] = function(a, b)

        return binary

    def many(frame: Frame) -> None:
        regs = frame.regs
        values = [regs[slot] for slot in slots]
        if any(type(value) is Tainted for value in values):
            regs[out] = spread(site, function, rule, values)
        else:
            regs[out] = function(*values)

    return many


def spread(site: Site, function: Function, rule: Rule, values: Sequence[Value]) -> Value:
    """``function`` of operands some of which are tainted, with the elements of its result that are so too."""
    plain = [value.values if isinstance(value, Tainted) else value for value in values]
    masks = [value.mask if isinstance(value, Tainted) else None for value in values]
    origin = next(value.origin for value in values if isinstance(value, Tainted))
    result = function(*plain)
    mask = rule(result, plain, masks)
    if not mask.any():
        return result
    if origin.whole and mask.all():
        raise origin.error(site)
    return Tainted(result, mask, origin)


def any_lane(result: Any, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
    """Element by element: undefined where any operand is. Operands and result have one shape."""
    found: Array | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found | mask
    assert found is not None
    return np.broadcast_to(found, np.broadcast_shapes(found.shape, np.shape(result)))


def moved(function: Function) -> Rule:
    """For an operation that only moves elements: its mask moves with them."""

    def rule(result: Any, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
        return function(
            *(
                value if isinstance(value, int) else _full_mask(value, mask)
                for value, mask in zip(values, masks, strict=True)
            )
        )

    return rule


def _full_mask(value: Array, mask: Array | None) -> Array:
    return np.zeros(np.shape(value), np.bool_) if mask is None else np.broadcast_to(mask, np.shape(value))


def _releasing(step: Step, dead: tuple[int, ...]) -> Step:
    def release(frame: Frame) -> None:
        step(frame)
        regs = frame.regs
        for slot in dead:
            regs[slot] = None

    return release


def _last_uses(block: Block) -> Mapping[Operation, Sequence[SSAValue]]:
    """Tensors and the like that ``block`` defines, by the operation of the block after which nobody reads them."""
    inside: dict[Operation, Operation] = {}
    for op in block.ops:
        for inner in op.walk():
            inside[inner] = op
    position = {op: number for number, op in enumerate(block.ops)}
    found: dict[Operation, list[SSAValue]] = {}
    for op in block.ops:
        for result in op.results:
            users = [inside[use.operation] for use in result.uses if use.operation in inside]
            last = max(users, key=position.__getitem__, default=op)
            if is_shaped(result.type) and last.name not in TERMINATORS:
                found.setdefault(last, []).append(result)
    return found


def is_shaped(attribute: Attribute) -> bool:
    return hasattr(attribute, "get_shape")


def shape_of(attribute: Attribute) -> tuple[int, ...]:
    """Extents of a shaped type."""
    return tuple(attribute.get_shape())  # type: ignore[attr-defined]


def bytes_of(attribute: Attribute) -> int:
    """Bytes of a tensor whose type says its size; 0 for everything else."""
    if not isinstance(attribute, TensorType):
        return 0
    shape = shape_of(cast(Attribute, attribute))
    return 0 if DYNAMIC_INDEX in shape else prod(shape) * element_of(cast(Attribute, attribute)).itemsize


def element_of(attribute: Attribute) -> ElementType:
    """Element type of a shaped type, or the type itself of a scalar."""
    return element_type(getattr(attribute, "element_type", attribute))
