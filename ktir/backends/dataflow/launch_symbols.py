"""Addresses that are known only at launch, patched in three ordered steps.

1. The host works out the corrections: where each buffer at a symbolic address begins (:func:`compute_corrections`).
2. They go to the device as one tensor (:func:`transfer`).
3. The device applies them to its programs before it runs them (:func:`apply_corrections`).

Each step takes what the one before it gives, so that none can be left out or come too early. A program with symbols
that were not patched can be verified and timed, for neither depends on the address, but not run on data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.unit_program import Access, Buffer, Instruction, Node, Program, UnitCode
from ktir.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Corrections:
    """Step 1: by number of each buffer at a symbolic address, its first byte."""

    addresses: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CorrectionTensor:
    """Step 2: the corrections as the device has them, rows of (buffer, first byte); ``nbytes`` cross the bus."""

    rows: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes that the host sends."""
        return self.rows.nbytes


def launch(program: Program, values: Mapping[str, int]) -> Program:
    """The three steps one after the other."""
    return apply_corrections(program, transfer(compute_corrections(program, values)))


def compute_corrections(program: Program, values: Mapping[str, int]) -> Corrections:
    """What the host works out from the ``values`` of the symbols by name.

    Raises :class:`ArgumentError` for a symbol without a value, a value that is not aligned or beyond its bound, and for
    buffers that would share bytes of which the program writes some.
    """
    for symbol in program.symbols:
        if symbol.name not in values:
            raise ArgumentError(f"symbol {symbol.name} has no value", location=symbol.location)
        value = values[symbol.name]
        if value % symbol.alignment or not 0 <= value <= symbol.bound:
            raise ArgumentError(
                f"symbol {symbol.name} is {value}, not a multiple of {symbol.alignment} from 0 to {symbol.bound}",
                location=symbol.location,
            )
    addresses = {b.number: values[b.base.name] + b.offset for b in program.buffers if b.base is not None}
    _check_apart(program, addresses)
    return Corrections(addresses)


def _check_apart(program: Program, addresses: Mapping[int, int]) -> None:
    """Where symbols lead must not be where another buffer of the memory is, if one of the two is written."""
    written = {
        access.buffer.number
        for code in program.units
        for instruction in code.instructions
        for access in instruction.accesses
        if access.writes
    }
    for left, right in combinations(program.buffers, 2):
        moved = left.number in addresses or right.number in addresses
        if not moved or left.memory != right.memory or not {left.number, right.number} & written:
            continue
        first, second = _placed(left, addresses), _placed(right, addresses)
        if first[0] < second[1] and second[0] < first[1]:
            raise ArgumentError(
                f"buffers {left.name} at {list(first)} and {right.name} at {list(second)} share bytes",
                location=left.location,
                remedy="launch with addresses that keep them apart",
            )


def _placed(buffer: Buffer, addresses: Mapping[int, int]) -> tuple[int, int]:
    start, stop = buffer.extent
    first = addresses.get(buffer.number, start)
    return first, first + stop - start


def transfer(corrections: Corrections) -> CorrectionTensor:
    """The corrections on their way to the device."""
    return CorrectionTensor(np.array(sorted(corrections.addresses.items()), np.int64).reshape(-1, 2))


def apply_corrections(program: Program, tensor: CorrectionTensor) -> Program:
    """The program as the device runs it. Raises :class:`ArgumentError` if a symbolic buffer has no correction."""
    starts = {int(number): int(start) for number, start in tensor.rows}
    missing = [b.name for b in program.buffers if b.base is not None and b.number not in starts]
    if missing:
        raise ArgumentError(f"the corrections lack buffer {missing[0]}", location=program.location)
    patch = _Patch({b.number: replace(b, offset=starts[b.number], base=None) for b in program.buffers if b.base})
    return replace(
        program,
        buffers=tuple(map(patch.buffer, program.buffers)),
        units=tuple(map(patch.code, program.units)),
        symbols=(),
    )


@dataclass(frozen=True, slots=True)
class _Patch:
    """Puts the placed buffers where the symbolic ones stood."""

    placed: Mapping[int, Buffer]

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.placed.get(buffer.number, buffer)

    def code(self, code: UnitCode) -> UnitCode:
        return replace(code, nodes=[self._node(node) for node in code.nodes])

    def _node(self, node: Node) -> Node:
        if not isinstance(node, Instruction):
            return node
        changes: dict[str, Any] = {"accesses": tuple(map(self._access, node.accesses))}
        if node.ring is not None:
            changes["ring"] = self.buffer(node.ring)
        return replace(node, **changes)

    def _access(self, access: Access) -> Access:
        return replace(access, buffer=self.buffer(access.buffer))
