"""Stick layouts: how a tensor of any shape lies in device memory.

Device memory moves whole *sticks* (128 bytes). A laid-out tensor is one dense buffer of device dimensions, outer to
inner, the innermost of which runs along one stick. Each device dimension walks one tensor dimension in equal steps, and
a tensor dimension may be walked by several device dimensions, as by the number of a stick and the place inside it.

Words. *lanes*: elements of one stick. *extent*: the tensor's logical shape. *padding*: places of the buffer that stand
for no element of the tensor, because its extent is no whole number of steps. All counts are elements, never bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from ktir.errors import IllegalLayout
from ktir.maths.ownership import ceil_div

Pad = Literal["undef", "zero", "neg_inf"] | float
"""What the padding holds: not known, zero, minus infinity, or the value itself."""


@dataclass(frozen=True, slots=True)
class DeviceDim:
    """A device dimension of ``size`` places; one place further is ``step`` elements further along ``tensor_dim``."""

    tensor_dim: int
    size: int
    step: int


@dataclass(frozen=True, slots=True)
class Walk:
    """One device dimension as seen from its tensor dimension: ``size`` places, ``step`` elements of the tensor
    dimension each, ``stride`` elements of the buffer each."""

    size: int
    step: int
    stride: int


@dataclass(frozen=True, slots=True)
class StickLayout:
    """A bijection from the elements of a tensor to places of a dense buffer.

    ``dims`` are the device dimensions, outer to inner; the last is the stick. The walks of one tensor dimension form a
    mixed radix: the finest has step 1, every coarser one steps by what the finer ones span, and all of them together
    span at least the extent. Anything else raises :class:`IllegalLayout`.
    """

    dims: tuple[DeviceDim, ...]
    extent: tuple[int, ...]
    pad: Pad = "undef"

    def __post_init__(self) -> None:
        if not self.dims:
            raise IllegalLayout("a stick layout needs a device dimension for the stick")
        for device_dim in self.dims:
            if not 0 <= device_dim.tensor_dim < len(self.extent) or device_dim.size < 1 or device_dim.step < 1:
                raise IllegalLayout(
                    f"device dimension {device_dim.tensor_dim} : {device_dim.size} : {device_dim.step} does not walk a "
                    f"dimension of a tensor of rank {len(self.extent)}",
                    remedy="name an existing tensor dimension, with a positive size and step",
                )
        for tensor_dim in range(len(self.extent)):
            self._check_walks(tensor_dim)

    def _check_walks(self, tensor_dim: int) -> None:
        span = 1
        for walk in sorted(self.walks(tensor_dim), key=lambda walk: (walk.step, walk.size)):
            if walk.step != span and walk.size > 1:
                raise IllegalLayout(
                    f"device dimensions of tensor dimension {tensor_dim} do not reach each element once: a step of "
                    f"{walk.step} follows a span of {span}",
                    remedy=f"let the coarser device dimension step by {span}",
                )
            span = max(span, walk.step * walk.size)
        if span < self.extent[tensor_dim]:
            raise IllegalLayout(
                f"device dimensions of tensor dimension {tensor_dim} span {span} of its {self.extent[tensor_dim]} "
                "elements",
                remedy="enlarge the outermost of them",
            )

    @staticmethod
    def default(extent: Sequence[int], lanes: int, pad: Pad = "zero") -> StickLayout:
        """Sticks along the last dimension, stick columns outermost: ``[ceil(N / lanes), leading dims.., lanes]``.

        The leading dimensions keep their row-major order, so the buffers of two tensors whose leading dimensions only
        regroup (5x128x384 and 640x384) are the same bytes. Raises :class:`IllegalLayout` for a 0-d tensor.
        """
        if not extent:
            raise IllegalLayout("a 0-d tensor has no dimension to lay sticks along", remedy="keep it dense")
        stick_dim = len(extent) - 1
        leading = (DeviceDim(dim, max(1, size), 1) for dim, size in enumerate(extent[:-1]))
        sticks = DeviceDim(stick_dim, max(1, ceil_div(extent[-1], lanes)), lanes)
        return StickLayout((sticks, *leading, DeviceDim(stick_dim, lanes, 1)), tuple(extent), pad)

    @property
    def lanes(self) -> int:
        """Elements of one stick."""
        return self.dims[-1].size

    @property
    def stick_dim(self) -> int:
        """The tensor dimension that the stick runs along."""
        return self.dims[-1].tensor_dim

    @property
    def physical_shape(self) -> tuple[int, ...]:
        """The buffer's shape, outer to inner; its last dimension is one stick."""
        return tuple(device_dim.size for device_dim in self.dims)

    @property
    def physical_strides(self) -> tuple[int, ...]:
        """The buffer's strides: it is dense, the stick innermost."""
        return tuple(prod(self.physical_shape[position + 1 :]) for position in range(len(self.dims)))

    @property
    def elements(self) -> int:
        """Places of the buffer, padding included."""
        return prod(self.physical_shape)

    @property
    def is_padded(self) -> bool:
        """Whether some place of the buffer stands for no element."""
        return self.elements != prod(self.extent)

    def walks(self, tensor_dim: int) -> tuple[Walk, ...]:
        """How the buffer is walked along ``tensor_dim``, coarsest step first: the sizes and strides of a view of the
        buffer by tensor dimensions."""
        strided = zip(self.dims, self.physical_strides, strict=True)
        mine = [Walk(dim.size, dim.step, stride) for dim, stride in strided if dim.tensor_dim == tensor_dim]
        return tuple(sorted(mine, key=lambda walk: -walk.step))

    def padded_extent(self, tensor_dim: int) -> int:
        """Elements of ``tensor_dim`` that the buffer has places for, padding included."""
        return prod(walk.size for walk in self.walks(tensor_dim))

    def device_index(self, index: Sequence[int]) -> tuple[int, ...]:
        """The place of the element at ``index``, one coordinate a device dimension."""
        return tuple(index[dim.tensor_dim] // dim.step % dim.size for dim in self.dims)

    def tensor_index(self, place: Sequence[int]) -> tuple[int, ...] | None:
        """The index of the element at ``place``, or None where there is only padding; inverts :meth:`device_index`."""
        index = [0] * len(self.extent)
        for dim, coordinate in zip(self.dims, place, strict=True):
            index[dim.tensor_dim] += coordinate * dim.step
        inside = all(at < size for at, size in zip(index, self.extent, strict=True))
        return tuple(index) if inside else None

    def offset(self, index: Sequence[int]) -> int:
        """How many elements after the start of the buffer the element at ``index`` lies."""
        strided = zip(self.device_index(index), self.physical_strides, strict=True)
        return sum(coordinate * stride for coordinate, stride in strided)
