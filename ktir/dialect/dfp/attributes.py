"""Attributes and checks that the operations of the dialect share: lists of integers, positive numbers, boxes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

Value = SSAValue | Operation

IntegerList = DenseArrayBase[IntegerType]
"""Integers of 64 bits."""


def integers(values: Sequence[int]) -> IntegerList:
    """The attribute that holds ``values``."""
    return DenseArrayBase.from_list(i64, values)


def integer(value: int) -> IntegerAttr[IntegerType]:
    """The attribute that holds ``value``."""
    return IntegerAttr(value, i64)


def values_of(attribute: IntegerList) -> tuple[int, ...]:
    """The integers that ``attribute`` holds."""
    return attribute.get_values()


def check_positive(op: Operation, **numbers: int) -> None:
    """Raises for a number that is not positive."""
    for name, number in numbers.items():
        if number <= 0:
            raise VerifyException(f"{op.name}: expected {name} to be positive, got {number}")


def check_box(op: Operation, counts: IntegerList, **strides: IntegerList) -> None:
    """Raises for counts that are not positive and for lists of strides of another length."""
    extents = values_of(counts)
    if any(extent <= 0 for extent in extents):
        raise VerifyException(f"{op.name}: expected positive counts, got {list(extents)}")
    for name, attribute in strides.items():
        if len(values_of(attribute)) != len(extents):
            raise VerifyException(
                f"{op.name}: expected {len(extents)} {name}, one per count, got {len(values_of(attribute))}"
            )
