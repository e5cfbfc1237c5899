"""Refuses programs with elements that the machine does not have, before anything is lowered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import AnyFloat, IndexType, MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ktir.backends.dataflow.element_types import RAW
from ktir.backends.dataflow.unit_program import dtype_name
from ktir.dialect.locations import location_of
from ktir.errors import NotLowerable
from ktir.machine import Machine


def require_elements(machine: Machine, function: Operation) -> None:
    """Raises :class:`NotLowerable` at the first value of ``function`` whose elements are of no type of ``machine``.

    Integers that are no elements of a tensor are worked out ahead, in any width.
    """
    for op in function.walk():
        for value in _values(op):
            element = _element(value.type)
            if element is None or isinstance(element, IndexType) or _has(machine, element):
                continue
            known = ", ".join(name for name in machine.dtypes if name in RAW)
            raise NotLowerable(
                f"{machine.name} has no elements of type {element}",
                location=location_of(op),
                remedy=f"convert where the data comes from to one of {known}",
            )


def _values(op: Operation) -> Iterator[SSAValue]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def _element(type: Attribute) -> Attribute | None:
    """The type of the elements; None for what has none."""
    if isinstance(type, TensorType | MemRefType):
        return cast("TensorType[Attribute] | MemRefType[Attribute]", type).element_type
    return type if isinstance(type, AnyFloat) else None


def _has(machine: Machine, element: Attribute) -> bool:
    known = machine.dtypes.get(dtype_name(element))
    return known is not None and known.bits % 8 == 0
