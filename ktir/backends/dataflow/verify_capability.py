"""V1: the machine has every unit, and the unit every operation, on the element types and memories it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from xdsl.dialects.builtin import AnyFloat

from ktir.backends.dataflow.scalar_region import compile_region
from ktir.backends.dataflow.unit_program import Instruction, Program, UnitCode, dtype_name
from ktir.dialect import dfp
from ktir.dialect.locations import location_of
from ktir.errors import KtirError, NotCapable
from ktir.machine import Machine, Unit

_ANY_UNIT: Final = frozenset({"barrier", "reserve", "commit", "acquire", "release"})
_NAMES: Final = {"pe_mac": "mac"}


def capability_faults(program: Program) -> Iterator[KtirError]:
    """Faults of rule V1."""
    machine = program.machine
    for code in program.units:
        if code.unit not in machine.units:
            yield NotCapable(f"{machine.name} has no unit {code.unit}", location=code.location)
            continue
        unit = machine.unit(code.unit)
        corelets = machine.corelets if unit.scope == "corelet" else 1
        if not 0 <= code.corelet < corelets:
            yield NotCapable(
                f"{code.unit} exists {corelets} times in a core, there is no number {code.corelet}",
                location=code.location,
            )
        for instruction in code.instructions:
            yield from _instruction_faults(machine, unit, code, instruction)


def _instruction_faults(machine: Machine, unit: Unit, code: UnitCode, instruction: Instruction) -> Iterator[KtirError]:
    if instruction.kind in _ANY_UNIT:
        return
    name = _NAMES.get(instruction.kind, instruction.kind)
    if name not in unit.ops:
        yield NotCapable(f"{code.unit} has no dfp.{instruction.kind}", location=instruction.location)
        return
    yield from _memory_faults(machine, unit, instruction)
    if instruction.kind == "pe_mac" and not machine.capable(unit.name, "mac", instruction.pops[0].element):
        yield NotCapable(
            f"{machine.name}: {unit.name} does not multiply {instruction.pops[0].element}",
            location=instruction.location,
        )
    if instruction.kind in ("sfu_map", "sfu_reduce", "sfu_scan"):
        yield from _vector_faults(machine, unit, instruction)


def _memory_faults(machine: Machine, unit: Unit, instruction: Instruction) -> Iterator[KtirError]:
    moves = instruction.accesses[-2:] if instruction.kind in ("copy", "gather", "scatter") else instruction.accesses
    for access in moves:
        places = unit.targets if access.writes else unit.sources
        if access.buffer.memory not in places:
            verb = "write" if access.writes else "read"
            yield NotCapable(
                f"{machine.name}: {unit.name} does not {verb} {access.buffer.memory}", location=instruction.location
            )


def _computes(machine: Machine, unit: Unit, element: str) -> bool:
    """Whether the vector unit has lanes for ``element``."""
    return element in machine.dtypes and machine.dtypes[element].rate_as in unit.lanes


def _vector_faults(machine: Machine, unit: Unit, instruction: Instruction) -> Iterator[KtirError]:
    block = cast("dfp.SfuMapOp | dfp.FoldOperation", instruction.op).body.block
    for flow in (*instruction.pops, *instruction.pushes):
        if not _computes(machine, unit, flow.element):
            yield NotCapable(
                f"{machine.name}: {unit.name} has no operations on {flow.element}", location=instruction.location
            )
    for op in block.ops:
        for result in op.results:
            name = dtype_name(result.type)
            if isinstance(result.type, AnyFloat) and not _computes(machine, unit, name):
                yield NotCapable(
                    f"{machine.name}: {unit.name} has no operations on {name}",
                    location=location_of(op) or instruction.location,
                )
        if not isinstance(op, dfp.YieldOp) and op.name not in unit.issues:
            kinds = ", ".join(dtype_name(result.type) for result in op.results)
            yield NotCapable(
                f"{machine.name}: {unit.name} has no {op.name} on {kinds}",
                location=location_of(op) or instruction.location,
            )
    try:
        compile_region(block)
    except KtirError as error:
        yield error
