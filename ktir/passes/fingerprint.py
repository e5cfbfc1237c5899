"""What makes two kernels the same: everything but their names, locations and the values they are applied to.

The layers of a model are the same kernel over and over; whatever is found out about one holds for all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from xdsl.ir import Attribute, Operation, Region, SSAValue

from ktir.dialect.ktg import KernelOp

T = TypeVar("T")

Fingerprint = Hashable


def fingerprint(kernel: KernelOp) -> Fingerprint:
    """Equal for kernels that are the same, and for no others."""
    return _Reader().operation(kernel)


class _Reader:
    """Numbers values by first appearance."""

    def __init__(self) -> None:
        self.numbers: dict[SSAValue, int] = {}

    def operation(self, op: Operation) -> Hashable:
        operands = tuple((self._number(value), value.type) for value in op.operands)
        for result in op.results:
            self._number(result)
        entries = _entries(op.properties) + _entries(op.attributes)
        return op.name, operands, entries, tuple(op.result_types), tuple(map(self._region, op.regions))

    def _number(self, value: SSAValue) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def _region(self, region: Region) -> Hashable:
        return tuple(
            (
                tuple((self._number(argument), argument.type) for argument in block.args),
                tuple(map(self.operation, block.ops)),
            )
            for block in region.blocks
        )


def _entries(attributes: dict[str, Attribute]) -> tuple[tuple[str, Attribute], ...]:
    return tuple((name, attributes[name]) for name in sorted(attributes) if name != "sym_name")


class Memo:
    """Answers about kernels, worked out once for all that are the same."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, Fingerprint], object] = {}

    def get(self, question: str, kernel: KernelOp, work_out: Callable[[KernelOp], T]) -> T:
        """The answer to ``question`` about ``kernel``."""
        key = (question, fingerprint(kernel))
        if key not in self._answers:
            self._answers[key] = work_out(kernel)
        return self._answers[key]  # pyright: ignore[reportReturnType]
