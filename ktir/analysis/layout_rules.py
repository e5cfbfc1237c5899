"""The layouts of a kernel's operands and results: as the kernel says, or by the rule where it says nothing.

The rule: tensors of floats lie in sticks along their last dimension; integers, truth values and single numbers lie
dense (row-major, without padding). The passes that fuse and plan ask here, so that they and the pass that writes the
layouts down agree.

Entries of ``operand_layouts`` and ``result_layouts``: a ``#ktdp.stick_layout``; ``unit`` for dense; ``none`` for the
rule; and for a result that is a part of a larger buffer (an operand of a concatenation) a dictionary with the
``layout`` of that buffer, the ``extent`` of the tensor it holds and the ``offset`` of the part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute

from ktir.dialect.ktdp import StickLayoutAttr
from ktir.machine import Machine
from ktir.maths.access import Axis, dense_axes, layout_axes
from ktir.maths.stick_layout import StickLayout

DENSE = UnitAttr()
"""The entry for a row-major buffer without sticks."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a tensor lies: at ``offset`` in a tensor of ``extent`` that lies in ``sticks``, or dense if None.

    ``is_part`` tells that the buffer holds more than this tensor.
    """

    sticks: StickLayout | None
    extent: tuple[int, ...]
    offset: tuple[int, ...]
    is_part: bool = False

    @staticmethod
    def of(sticks: StickLayout | None, shape: Sequence[int]) -> Layout:
        """A tensor that has its buffer for itself."""
        return Layout(sticks, tuple(shape), (0,) * len(shape))

    @property
    def attribute(self) -> Attribute:
        """The entry that says this layout."""
        whole = DENSE if self.sticks is None else StickLayoutAttr(self.sticks)
        if not self.is_part:
            return whole
        extent, offset = (DenseArrayBase.from_list(i64, list(each)) for each in (self.extent, self.offset))
        return DictionaryAttr({"layout": whole, "extent": extent, "offset": offset})

    def part(self, offset: Sequence[int]) -> Layout:
        """The layout of a tensor that begins at ``offset`` in this one."""
        return Layout(self.sticks, self.extent, tuple(offset), is_part=True)

    def axes(self, shape: Sequence[int]) -> tuple[tuple[Axis, ...], int] | None:
        """How each dimension of a tensor of ``shape`` is found, and the place of its first element.

        None where the part ends inside a digit of the layout.
        """
        whole = dense_axes(self.extent) if self.sticks is None else layout_axes(self.sticks)
        cuts = [axis.cut(first, size) for axis, first, size in zip(whole, self.offset, shape, strict=True)]
        if any(cut is None for cut in cuts):
            return None
        found = [cut for cut in cuts if cut is not None]
        return tuple(axis for axis, _ in found), sum(moved for _, moved in found)


def element_bytes(element_type: Attribute) -> int:
    """Bytes of one element in memory; a truth value takes one."""
    if isinstance(element_type, IndexType):
        return 8
    return max(1, cast("AnyFloat | IntegerType", element_type).bitwidth // 8)


def default_layout(type: TensorType[Attribute], machine: Machine) -> StickLayout | None:
    """The layout by the rule; None is dense."""
    if not isinstance(type.element_type, AnyFloat) or type.get_num_dims() == 0:
        return None
    return StickLayout.default(type.get_shape(), machine.stick_bytes // element_bytes(type.element_type))


def layouts_of(
    entries: ArrayAttr[Any] | None, types: Sequence[TensorType[Attribute]], machine: Machine
) -> list[Layout]:
    """What a kernel says about its operands or results, the rule where it says nothing."""
    said: list[Attribute | None] = [None] * len(types) if entries is None else list(entries.data)
    return [_layout_of(entry, type, machine) for entry, type in zip(said, types, strict=True)]


def _layout_of(entry: Attribute | None, type: TensorType[Attribute], machine: Machine) -> Layout:
    match entry:
        case StickLayoutAttr():
            return Layout.of(entry.layout, type.get_shape())
        case UnitAttr():
            return Layout.of(None, type.get_shape())
        case DictionaryAttr(data=fields):
            extent, offset = (_numbers(fields[name]) for name in ("extent", "offset"))
            sticks = fields["layout"]
            layout = sticks.layout if isinstance(sticks, StickLayoutAttr) else None
            return Layout(layout, extent, offset, is_part=True)
        case _:
            return Layout.of(default_layout(type, machine), type.get_shape())


def _numbers(attribute: Attribute) -> tuple[int, ...]:
    return tuple(int(each) for each in cast("DenseArrayBase[Any]", attribute).get_values())
