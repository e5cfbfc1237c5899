"""The machine as the lowering sees it: its units by what they are for, and what descriptors and queues hold.

The lowering knows one shape of machine: a unit loads from device memory to a scratchpad and another stores back, one
feeds the compute units from the scratchpad and one drains their results into it, a matrix unit multiplies, a vector
unit does the rest, and a network may join the cores. Which units these are is asked of the machine description; one
unit may play several parts. A machine of another shape is refused here, by name of what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ktir.errors import ArgumentError, NotCapable
from ktir.machine.description import Machine

Numerics = Literal["f16", "dl16"]
"""What f16 means: the IEEE format, or the accelerator's own."""
MAX_STREAMS = 12
"""Queues into the vector unit."""

MATRIX_IN, MATRIX_OUT, VECTOR_OUT = "q_matrix", "q_matrix_out", "q_vector_out"


def vector_queue(number: int) -> str:
    """The queue of the ``number``-th stream into the vector unit."""
    return f"q_vector_{number}"


@dataclass(frozen=True)
class Hardware:
    """Unit names by part, and limits. ``send`` and ``receive`` are None on a machine whose cores are not joined.

    ``units`` are all of them, in the order of the description. ``descriptor_dims`` is the least of all units that move
    data, ``queue_bytes`` what the smallest queue holds. ``queues`` maps the queues of this file to the units they link.
    """

    machine: Machine
    load: str
    store: str
    feed: str
    drain: str
    matrix: str
    vector: str
    send: str | None
    receive: str | None
    descriptor_dims: int
    queue_bytes: int
    queues: Mapping[str, tuple[str, str]]
    numerics: Numerics = "f16"

    @staticmethod
    def of(machine: Machine, numerics: Numerics = "f16") -> Hardware:
        """Finds the parts. :class:`NotCapable` where the machine has no unit for one, or not what f16 shall be."""
        if numerics not in get_args(Numerics):
            raise ArgumentError(f"f16 cannot be {numerics}", remedy=f"use {' or '.join(get_args(Numerics))}")
        if numerics not in machine.dtypes:
            raise NotCapable(f"{machine.name} has no {numerics}", remedy="leave f16 as it is, or take another machine")
        far, near = machine.global_memory.name, machine.scratchpad.name
        matrix, vector = _unit_with(machine, "mac"), _unit_with(machine, "sfu_map")
        feed = _same(machine, [_between(machine, near, unit) for unit in (matrix, vector)], "feed the compute units")
        drain = _same(machine, [_between(machine, unit, near) for unit in (matrix, vector)], "drain the compute units")
        limited = [unit.descriptor_dims for unit in machine.units.values() if unit.descriptor_dims]
        inputs = {vector_queue(number): (feed, vector) for number in range(MAX_STREAMS)}
        queues = {MATRIX_IN: (feed, matrix), MATRIX_OUT: (matrix, drain), **inputs, VECTOR_OUT: (vector, drain)}
        used = [machine.queue(*ends) for ends in queues.values()]
        return Hardware(
            machine,
            load=_between(machine, far, near),
            store=_between(machine, near, far),
            feed=feed,
            drain=drain,
            matrix=matrix,
            vector=vector,
            send=next((unit.name for unit in machine.units.values() if "send" in unit.ops), None),
            receive=next((unit.name for unit in machine.units.values() if unit.kind == "receive"), None),
            descriptor_dims=min(limited, default=8),
            queue_bytes=min(queue.depth * queue.width for queue in used),
            queues=queues,
            numerics=numerics,
        )

    @property
    def corelets(self) -> int:
        """How many times a core has the units that compute and those that feed and drain them."""
        computing = {self.machine.unit(unit).scope for unit in (self.feed, self.drain, self.matrix, self.vector)}
        return self.machine.corelets if computing == {"corelet"} else 1

    def instances(self, unit: str) -> int:
        """How many times a core has ``unit``, as far as work is dealt out."""
        return self.corelets if self.machine.unit(unit).scope == "corelet" else 1

    @property
    def multicasts(self) -> bool:
        """Whether one message may go to several cores."""
        return self.send is not None and "multicast" in self.machine.unit(self.send).ops

    @property
    def adder(self) -> str | None:
        """The unit that adds along a chain of cores, if there is one."""
        return next((unit.name for unit in self.machine.units.values() if "chain" in unit.ops), None)

    @property
    def units(self) -> tuple[str, ...]:
        """The units in the order in which their programs are written."""
        return tuple(self.machine.units)


def _unit_with(machine: Machine, operation: str) -> str:
    for unit in machine.units.values():
        if operation in unit.ops:
            return unit.name
    raise NotCapable(f"{machine.name} has no unit for {operation}", remedy="list the operation in the unit's ops")


def _between(machine: Machine, source: str, target: str) -> str:
    """The one unit on the way from ``source`` to ``target``, which may itself be a unit."""
    units = [unit for unit in machine.path(source, target) if unit not in (source, target)]
    if len(units) == 1:
        return units[0]
    raise NotCapable(
        f"{machine.name}: data goes from {source} to {target} through {', '.join(units) or 'nothing'}",
        remedy="the lowering needs exactly one unit on this way",
    )


def _same(machine: Machine, units: list[str], what: str) -> str:
    if len(set(units)) > 1:
        raise NotCapable(f"{machine.name}: {' and '.join(units)} {what}", remedy="the lowering needs one unit for both")
    return units[0]
