"""The layout a tensor has when nobody decided otherwise.

Tensors of floats lie in sticks along their last dimension; integers, truth values and single numbers lie dense. The
passes that fuse and plan ask here, so that they and the pass that writes the layouts down agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, IndexType, IntegerType, TensorType, UnitAttr
from xdsl.ir import Attribute

from ktir.dialect.ktdp import StickLayoutAttr
from ktir.machine import Machine
from ktir.maths.access import Axis, dense_axes, layout_axes
from ktir.maths.stick_layout import StickLayout

DENSE = UnitAttr()
"""Entry of ``operand_layouts`` and ``result_layouts`` for a row-major buffer without sticks."""


def dtype_name(element_type: Attribute) -> str:
    """The machine's name of an element type: ``f16``, ``i64``, .. ; ``index`` counts as ``i64``."""
    return "i64" if isinstance(element_type, IndexType) else str(element_type)


def element_bytes(element_type: Attribute) -> int:
    """Bytes of one element in memory; a truth value takes one."""
    if isinstance(element_type, IndexType):
        return 8
    width = cast("AnyFloat | IntegerType", element_type).bitwidth
    return max(1, width // 8)


def default_layout(type: TensorType[Attribute], machine: Machine) -> StickLayout | None:
    """Sticks along the last dimension for floats, None (dense) for everything else."""
    if not isinstance(type.element_type, AnyFloat) or type.get_num_dims() == 0:
        return None
    return StickLayout.default(type.get_shape(), machine.stick_bytes // element_bytes(type.element_type))


def layout_attribute(layout: StickLayout | None) -> Attribute:
    """The entry of ``operand_layouts`` or ``result_layouts`` that says ``layout``."""
    return DENSE if layout is None else StickLayoutAttr(layout)


def layouts_of(
    entries: ArrayAttr | None, types: Sequence[TensorType[Attribute]], machine: Machine
) -> list[StickLayout | None]:
    """What a kernel says about its operands or results, the default where it says nothing."""
    said: Sequence[Attribute | None] = [None] * len(types) if entries is None else list(entries.data)
    return [_layout_of(entry, type, machine) for entry, type in zip(said, types, strict=True)]


def _layout_of(entry: Attribute | None, type: TensorType[Attribute], machine: Machine) -> StickLayout | None:
    match entry:
        case StickLayoutAttr():
            return entry.layout
        case UnitAttr():
            return None
        case _:
            return default_layout(type, machine)


def axes_of(layout: StickLayout | None, shape: Sequence[int]) -> tuple[Axis, ...]:
    """How each dimension of a buffer of that layout is found."""
    return dense_axes(shape) if layout is None else layout_axes(layout)
