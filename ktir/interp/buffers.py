"""What ``memref`` values are in the host's part of a program: tensors of the caller, and buffers of the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ktir.interp.casts import cast
from ktir.interp.ktdp_ops import tensor_indices, valid_places
from ktir.interp.numerics import Array, ElementType
from ktir.machine.memory_arena import Allocation
from ktir.maths.stick_layout import StickLayout


@dataclass(slots=True)
class HostBuffer:
    """A tensor of the caller; ``stored`` once the program wrote to it."""

    name: str
    values: Array
    element: ElementType
    stored: bool = False

    @property
    def extent(self) -> tuple[int, ...]:
        """Its shape."""
        return self.values.shape


@dataclass(frozen=True, slots=True)
class DeviceBuffer:
    """A range of global memory, dense or laid out in sticks."""

    allocation: Allocation
    shape: tuple[int, ...]
    element: ElementType
    layout: StickLayout | None

    @property
    def extent(self) -> tuple[int, ...]:
        """The logical shape."""
        return self.shape if self.layout is None else self.layout.extent


@dataclass(frozen=True, slots=True)
class PartOfBuffer:
    """A slice of a buffer: ``index`` into its logical tensor, and the shape of what that gives."""

    whole: HostBuffer | DeviceBuffer | PartOfBuffer
    index: tuple[slice, ...]
    extent: tuple[int, ...]

    @property
    def element(self) -> ElementType:
        return self.whole.element


Buffer = HostBuffer | DeviceBuffer | PartOfBuffer

PAD_VALUES = {"zero": 0.0, "neg_inf": -np.inf}


def laid_out(values: Array, layout: StickLayout, before: Array) -> Array:
    """A tensor in the shape of its buffer; padding that the layout says nothing of keeps what was there ``before``."""
    indices = tensor_indices(layout)
    inside = np.broadcast_to(valid_places(layout), layout.physical_shape)
    clipped = tuple(np.minimum(index, size - 1) for index, size in zip(indices, layout.extent, strict=True))
    taken = np.broadcast_to(values[clipped], layout.physical_shape)
    if not layout.is_padded:
        return taken
    pad = before if layout.pad == "undef" else pad_value(layout, values.dtype)
    return np.where(inside, taken, pad)


def pad_value(layout: StickLayout, dtype: np.dtype[Any]) -> Array:
    value = PAD_VALUES.get(layout.pad, layout.pad) if isinstance(layout.pad, str) else layout.pad
    if dtype.kind in "ib" and value == -np.inf:
        value = np.iinfo(dtype).min
    return cast(np.array(value), dtype)


def gathered(buffer: Array, layout: StickLayout) -> Array:
    """The logical tensor that a buffer holds."""
    rank = len(layout.extent)
    axes = [
        np.arange(size).reshape([-1 if axis == d else 1 for axis in range(rank)])
        for d, size in enumerate(layout.extent)
    ]
    places = tuple(axes[dim.tensor_dim] // dim.step % dim.size for dim in layout.dims)
    return np.broadcast_to(buffer.reshape(layout.physical_shape)[places], layout.extent)
