"""A lowered program with data: arguments go to device memory, the functional simulator runs, results come back.

The host's part is here: dense arrays are copied to and from laid-out buffers, padding is filled as the layout says.
Where a program was lowered with DL16 in the place of f16, arrays of f16 are rounded to it and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow import dl16, functional
from ktir.backends.dataflow.element_types import RAW, to_raw
from ktir.backends.dataflow.lower import LoweredProgram, Placed
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.unit_program import Program
from ktir.errors import ArgumentError, DescriptorOutOfBounds
from ktir.machine.memory_arena import ALIGNMENT, POISON, Arena
from ktir.maths.stick_layout import StickLayout

Array = NDArray[Any]

DTYPES: Mapping[str, np.dtype[Any]] = {
    **{name: dtype for name, dtype in RAW.items() if name != dl16.NAME},
    "i1": np.dtype(np.bool_),
    **{f"si{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
}
"""What arrays of the host have for each element type."""


@dataclass(frozen=True)
class Result:
    """``outputs`` by argument name, dense; ``statistics`` of the functional simulator."""

    outputs: dict[str, Array]
    statistics: functional.Statistics


class Runner:
    """A lowered program ready to run, any number of times: what needs no data is done once."""

    def __init__(self, lowered: LoweredProgram, *, unit_order_seed: int | None = None) -> None:
        self.lowered = lowered
        module = dl16.program_in_dl16(lowered.module) if lowered.numerics == dl16.NAME else lowered.module
        program = compile_program(module, lowered.machine)
        _check_placement(lowered, program)
        self.prepared = functional.prepare(program, unit_order_seed=unit_order_seed)

    def run(self, arguments: Mapping[str, Array], *, max_bytes: int = 1 << 34) -> Result:
        """As :func:`run`."""
        size = -(-self.lowered.ddr_bytes // ALIGNMENT) * ALIGNMENT
        Arena("device", limit=max_bytes).require_room(size)
        ddr = Arena.over("device", np.empty(size, np.uint8), granule=1)
        filled = place_arguments(self.lowered, arguments, ddr)
        for start, stop in gaps(filled, size):
            ddr.bytes[start:stop] = POISON
        statistics = self.prepared.run(ddr, initialised=filled)
        placed, outputs = self.lowered.outputs, dict[str, Array]()
        stays = _much([each for each in placed if each.layout is None], size)
        for each in placed:
            array = read_back(each, ddr)
            if self.lowered.numerics == dl16.NAME and each.element == "f16":
                array = to_raw(dl16.from_dl16(array.view(np.uint16)), "f16")
            outputs[each.name] = array if stays or each.layout is not None else array.copy()
        return Result(outputs, statistics)


def _check_placement(lowered: LoweredProgram, program: Program) -> None:
    """Buffers of device memory and arrays of the host lie in one another or apart: a shifted one has a part of two."""
    arrays = [(each.name, each.offset, each.offset + each.size) for each in (*lowered.inputs, *lowered.outputs)]
    arrays += [("a constant", offset, offset + len(content)) for offset, content in lowered.constants]
    for buffer in program.buffers:
        start, stop = buffer.extent
        for name, first, last in arrays if not buffer.per_core and buffer.base is None else ():
            inside = first <= start < stop <= last or start <= first < last <= stop
            if start < last and first < stop and not inside:
                raise DescriptorOutOfBounds(
                    f"buffer {buffer.name} at bytes {[start, stop]} has a part of {name}, which is at {[first, last]}",
                    location=buffer.location,
                    remedy="place the buffer where the host places its array",
                )


def run(
    lowered: LoweredProgram,
    arguments: Mapping[str, Array],
    *,
    unit_order_seed: int | None = None,
    max_bytes: int = 1 << 34,
) -> Result:
    """Runs ``lowered`` on arrays by argument name; arrays are not changed.

    Raises :class:`ArgumentError` for an array that is missing or of another shape or element type, and what
    :func:`ktir.backends.dataflow.functional.execute` raises.
    """
    return Runner(lowered, unit_order_seed=unit_order_seed).run(arguments, max_bytes=max_bytes)


def gaps(ranges: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """The ranges of [0, ``size``) between ``ranges``."""
    reached = 0
    for start, stop in sorted(ranges):
        if start > reached:
            yield reached, start
        reached = max(reached, stop)
    if reached < size:
        yield reached, size


def place_arguments(lowered: LoweredProgram, arguments: Mapping[str, Array], ddr: Arena) -> list[tuple[int, int]]:
    """Copies constants and arguments to device memory; the byte ranges that have a value then."""
    filled = [(offset, offset + len(content)) for offset, content in lowered.constants]
    for offset, content in lowered.constants:
        ddr.bytes[offset : offset + len(content)] = np.frombuffer(content, np.uint8)
    for placed in lowered.inputs:
        if placed.name not in arguments:
            raise ArgumentError(f"argument {placed.name} is missing")
        array = np.asarray(arguments[placed.name])
        dtype = DTYPES[placed.element]
        if array.dtype != dtype or array.shape != placed.shape:
            raise ArgumentError(
                f"argument {placed.name} is {array.dtype} of shape {array.shape}, "
                f"the program takes {placed.element} of shape {placed.shape}",
                remedy="convert the array, or lower the kernel for its shape",
            )
        content = np.ascontiguousarray(array if placed.layout is None else laid_out(array, placed.layout))
        if lowered.numerics == dl16.NAME and placed.element == "f16":
            content = dl16.to_dl16(content.astype(np.float32))
        ddr.bytes[placed.offset : placed.offset + content.nbytes] = content.reshape(-1).view(np.uint8)
        filled.append((placed.offset, placed.offset + content.nbytes))
    return filled


def _much(dense: Iterable[Placed], size: int) -> bool:
    """Whether arrays are a third of ``size`` bytes at least, and no two have bytes in common.

    A first touch of fresh memory costs as much as some operations on it, so results may stay where they are; but not
    where a small one would keep all of a large memory alive.
    """
    spans = sorted((each.offset, each.offset + each.size) for each in dense)
    apart = all(first[1] <= second[0] for first, second in pairwise(spans))
    return apart and 3 * sum(stop - start for start, stop in spans) >= size


def read_back(placed: Placed, ddr: Arena) -> Array:
    """The logical elements of an array in device memory: where they lie, if they are dense there."""
    dtype = DTYPES[placed.element]
    content = ddr.bytes[placed.offset : placed.offset + placed.size].view(dtype)
    if placed.layout is None:
        return content.reshape(placed.shape)
    return content[_places(placed.layout)].reshape(placed.shape)


def laid_out(array: Array, layout: StickLayout) -> Array:
    """The buffer of a tensor in sticks; its padding as ``layout.pad`` says, zero where nobody cares."""
    fill = {"undef": 0.0, "zero": 0.0, "neg_inf": -np.inf}[layout.pad] if isinstance(layout.pad, str) else layout.pad
    buffer = np.full(layout.elements, fill, array.dtype)
    buffer[_places(layout)] = array.reshape(layout.extent)
    return buffer


def _places(layout: StickLayout) -> Array:
    """For each element of the tensor its place in the buffer."""
    places = np.zeros(layout.extent, np.int64)
    for dim, extent in enumerate(layout.extent):
        index = np.arange(extent)
        along = sum((index // walk.step % walk.size) * walk.stride for walk in layout.walks(dim))
        places += np.asarray(along).reshape([-1 if d == dim else 1 for d in range(len(layout.extent))])
    return places


__all__ = ["DTYPES", "Result", "Runner", "laid_out", "place_arguments", "read_back", "run"]
