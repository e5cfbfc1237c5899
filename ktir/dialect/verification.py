"""Verifies IR and says where it is wrong.

xDSL's own walk stops at a message without a place and does not look at the order of definitions and uses. This one
visits every operation, innermost first, checks that each operand is defined before its use, and raises the first fault
with the location of the operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, DenseArrayBase, ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from ktir.dialect.locations import location_of
from ktir.dialect.text.limits import recursion_room, without_collections
from ktir.errors import VerifyError


def verify(root: Operation) -> None:
    """Raises :class:`VerifyError` for the first operation in ``root``, itself included, that breaks a rule."""
    with recursion_room(), without_collections():
        for fault in faults(root):
            raise fault


def faults(root: Operation) -> Iterator[VerifyError]:
    """Every fault in ``root``, at most one per operation."""
    yield from _faults(root, set(root.operands))


def _faults(op: Operation, visible: set[SSAValue]) -> Iterator[VerifyError]:
    for number, operand in enumerate(op.operands):
        if operand not in visible and not _is_in_graph(operand):
            yield _fault(op, f"operand #{number} does not dominate this use")
            break
    for region in op.regions:
        yield from _region_faults(op, region, visible)
    try:
        op.verify(verify_nested_ops=False)
        _verify_index_lists(op)
    except VerifyException as fault:
        yield _fault(op, str(fault))
    except Exception as fault:  # a stock verifier that trips over what it should have reported
        yield _fault(op, f"does not verify: {fault or type(fault).__name__}")


def _verify_index_lists(op: Operation) -> None:
    """Each list of indices, some of them values, has as many values as its static part leaves open.

    The static part is a property ``static_sizes``, ``staticStep``, ..; the values are an operand group of that name
    without ``static``, or with ``dynamic`` in its place.
    """
    for name, static in op.properties.items():
        if not name.startswith("static") or not isinstance(static, DenseArrayBase):
            continue
        groups = [name.replace("static", "dynamic")]
        if name.startswith("static_"):
            groups.append(name.removeprefix("static_"))
        values: Any = next((found for each in groups if (found := getattr(op, each, None)) is not None), None)
        left_open = list(static.iter_values()).count(DYNAMIC_INDEX)
        if values is not None and left_open != len(values):
            raise VerifyException(f"expected {left_open} dynamic values for '{name}', but got {len(values)}")


def _region_faults(op: Operation, region: Region, visible: set[SSAValue]) -> Iterator[VerifyError]:
    blocks = list(region.blocks)
    if len(blocks) == 1 and blocks[0].is_empty and not op.has_trait(NoTerminator, value_if_unregistered=True):
        yield _fault(
            op, f"Operation {op.name} contains empty block in single-block region that expects at least a terminator"
        )
    outer = visible if len(blocks) == 1 else visible | {value for block in blocks for value in _definitions(block)}
    for block in blocks:
        defined: list[SSAValue] = list(block.args)
        inner = outer
        added = [value for value in defined if value not in inner]
        inner.update(added)
        for nested in block.ops:
            yield from _faults(nested, inner)
            fresh = [result for result in nested.results if result not in inner]
            inner.update(fresh)
            added += fresh
        inner.difference_update(added)


def _definitions(block: Block) -> Iterator[SSAValue]:
    yield from block.args
    for op in block.ops:
        yield from op.results


def _is_in_graph(value: SSAValue) -> bool:
    """Whether ``value`` is defined directly in a module, where order has no meaning."""
    return isinstance(value, OpResult) and isinstance(value.op.parent_op(), ModuleOp)


def _fault(op: Operation, message: str) -> VerifyError:
    text = " ".join(line.strip() for line in message.splitlines() if line.strip()) or "does not verify"
    for prefix in ("Operation does not verify: ", f"'{op.name}' ", "op "):
        text = text.removeprefix(prefix)
    text = f"'{op.name}' op {text}"
    return VerifyError(text, location=location_of(op), remedy=_remedy(op))


FLOAT_COUNTERPARTS = {
    "arith.addi": "arith.addf",
    "arith.cmpi": "arith.cmpf",
    "arith.divsi": "arith.divf",
    "arith.maxsi": "arith.maximumf",
    "arith.minsi": "arith.minimumf",
    "arith.muli": "arith.mulf",
    "arith.subi": "arith.subf",
}
"""Integer operations that people write on floats, and what they mean."""


def _remedy(op: Operation) -> str | None:
    """What to write instead, where that is known."""
    on_floats = any(isinstance(get_element_type_or_self(type), AnyFloat) for type in op.operand_types)
    return f"use {FLOAT_COUNTERPARTS[op.name]}" if on_floats and op.name in FLOAT_COUNTERPARTS else None
