"""Addresses for buffers of ``@main``: those that are in use at the same time lie apart, the others share.

A buffer is in use from the first operation that touches it, or its pointer, to the last; one that holds a parameter
always, since parameters stay where they are between calls. Words as in :mod:`ktir.maths.lifetimes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ktir.analysis.layout_rules import element_bytes
from ktir.dialect.ktdp import memory_space_of
from ktir.dialect.ktdp.attrs import ADDRESS
from ktir.dialect.ktg import TransferOp
from ktir.dialect.locations import location_of
from ktir.errors import CannotPlan
from ktir.maths.lifetimes import Allocation, Occupied, Room, Tenant, allocate


def host_functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """Functions that own buffers."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and not op.is_declaration and "grid" not in op.attributes:
            yield op


def buffers(function: func.FuncOp, kind: str) -> list[memref.AllocOp]:
    """Buffers in the memory of that kind, in order."""
    return [
        op
        for op in function.body.block.ops
        if isinstance(op, memref.AllocOp) and memory_space_of(_type(op).memory_space).kind == kind
    ]


def give_addresses(function: func.FuncOp, kind: str, capacity: int, alignment: int) -> Allocation:
    """Give every buffer of that kind without an address one; raises :class:`CannotPlan` over ``capacity`` bytes."""
    times = {op: time for time, op in enumerate(function.body.block.ops)}
    open_: list[tuple[memref.AllocOp, Tenant]] = []
    occupied: list[Occupied] = []
    for number, op in enumerate(buffers(function, kind)):
        lifetime = (0, len(times)) if _holds_parameter(op, function) else _lifetime(op, times)
        tenant = Tenant(f"{number:06}", _bytes(op), *lifetime)
        if ADDRESS in op.attributes:
            start = cast("IntegerAttr", op.attributes[ADDRESS]).value.data
            occupied.append(Occupied(tenant, Room(start, start + tenant.size)))
        else:
            open_.append((op, tenant))
    allocation = allocate([tenant for _, tenant in open_], alignment=alignment, occupied=occupied)
    if allocation.high_water > capacity:
        raise CannotPlan(
            f"buffers need {allocation.high_water} bytes, the memory holds {capacity}",
            location=location_of(function),
            remedy="use smaller tensors, or a machine with more memory",
        )
    for op, tenant in open_:
        op.attributes[ADDRESS] = IntegerAttr(allocation.rooms[tenant.name].start, i64)
    return allocation


def _type(op: memref.AllocOp) -> MemRefType[Attribute]:
    return op.memref.type


def _bytes(op: memref.AllocOp) -> int:
    return prod(_type(op).get_shape()) * element_bytes(_type(op).element_type)


def _holds_parameter(op: memref.AllocOp, function: func.FuncOp) -> bool:
    """Whether a parameter of ``function`` is copied to a buffer."""
    if function.arg_attrs is None:
        return False
    copies = [use.operation for use in op.memref.uses if isinstance(use.operation, TransferOp)]
    sources = [copy.source for copy in copies if copy.destination is op.memref]
    arguments = [source for source in sources if isinstance(source, BlockArgument)]
    return any("ktg.parameter" in function.arg_attrs.data[argument.index].data for argument in arguments)


def _lifetime(op: memref.AllocOp, times: dict[Operation, int]) -> tuple[int, int]:
    """First and last time at which an operation uses a buffer, or what is made of its pointer."""
    used: set[int] = set()
    pending: list[SSAValue] = [op.memref]
    while pending:
        value = pending.pop()
        for use in value.uses:
            top = _at_top(use.operation, times)
            if not isinstance(top, memref.ExtractAlignedPointerAsIndexOp) and top.dialect_name() != "arith":
                used.add(times[top])
            pending += use.operation.results
    at = times[op]
    return min(used, default=at), max(used, default=at)


def _at_top(op: Operation, times: dict[Operation, int]) -> Operation:
    while op not in times and (parent := op.parent_op()) is not None:
        op = parent
    return op
