"""What a machine is, as the compiler sees it: scopes, memories, units, queues, nets, and questions about them.

Vendor-neutral: every name (``ddr``, ``lx_ld``, ``ring``) is data from a description file. Passes ask the machine for
paths, capabilities, rates and capacities and hold no constants of their own.

Words. *scope*: how often a thing exists (device, core, corelet). *stick*: the word of the scratchpad, the grain of
layouts. *rate*: elements, multiply-accumulates or bytes per core-clock cycle of one instance of a unit. *tick*: the
unit of simulated time, a fixed fraction of a cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Literal, TypeVar

from ktir.errors import NotCapable

T = TypeVar("T")

Confidence = Literal["published", "measured", "derived", "fitted", "assumed"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value comes from and how far to trust it."""

    source: str
    confidence: Confidence
    note: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """The core clock; ``ticks_per_cycle`` is the resolution of simulated time."""

    ghz: float
    ticks_per_cycle: int

    def ticks(self, nanoseconds: float) -> int:
        """``nanoseconds`` in ticks, rounded up."""
        return ceil(nanoseconds * self.ghz * self.ticks_per_cycle - 1e-9)

    def nanoseconds(self, ticks: int) -> float:
        """``ticks`` in nanoseconds."""
        return ticks / (self.ghz * self.ticks_per_cycle)


@dataclass(frozen=True, slots=True)
class ElementType:
    """``bits`` as stored in memory; ``rate_as`` names the row of the rate tables that counts."""

    name: str
    bits: int
    rate_as: str


@dataclass(frozen=True, slots=True)
class Scope:
    """``count`` instances in each instance of ``parent``."""

    name: str
    parent: str
    count: int


MemoryKind = Literal["dram", "scratchpad", "accumulator"]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory. Sizes in bytes; ports in bytes per cycle, 0 where the memory has no such port."""

    name: str
    scope: str
    kind: MemoryKind
    size: int
    usable: int
    word: int = 1
    align: int = 1
    read_port: int = 0
    write_port: int = 0
    burst: int = 0
    span_limit: int = 0
    peak_gbs: float = 0.0
    sustained_gbs: float = 0.0
    turnaround_ns: float = 0.0
    request_ns: tuple[tuple[int, float], ...] = ()
    latency_ns: float = 0.0
    servers: int = 1

    def request_time_ns(self, requesters: int) -> float:
        """Least time per request over the whole memory with that many requesting cores: a step function."""
        return next((time for least, time in reversed(self.request_ns) if least <= requesters), 0.0)


UnitKind = Literal["load", "store", "compute", "send", "receive"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: in-order executor of operations ``ops``, between the places ``sources`` and ``targets``."""

    name: str
    scope: str
    kind: UnitKind
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    ops: tuple[str, ...]
    bytes_per_cycle: int = 0
    outstanding: int = 1
    descriptor_dims: int = 0
    mac_per_cycle: Mapping[str, int] = field(default_factory=dict[str, int])
    rows_per_pass: int = 0
    fill_cycles: int = 0
    load_bytes_per_cycle: int = 0
    lanes: Mapping[str, int] = field(default_factory=dict[str, int])
    issues: Mapping[str, int] = field(default_factory=dict[str, int])
    issue_scale: int = 1
    reduce_latency: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A hardware queue between two units of a corelet: ``width`` bytes per vector, ``depth`` vectors."""

    name: str
    source: str
    target: str
    width: int
    depth: int
    latency: int


Topology = Literal["ring", "line", "mesh"]


@dataclass(frozen=True, slots=True)
class Net:
    """A network between the instances of scope ``nodes``; ``width`` is bytes per cycle and direction.

    A *ring* leads from each node to the next and, with two ``directions``, back; a *line* is a ring that is cut open;
    a *mesh* has rows of ``columns`` nodes.
    """

    name: str
    kind: Topology
    nodes: str
    width: int
    directions: int
    hop_cycles: int
    depth: int
    columns: int = 0

    def route(self, source: int, target: int, nodes: int) -> list[tuple[int, int]]:
        """The directed links from ``source`` to ``target`` among ``nodes``, in order.

        Ring: the shorter way, upwards if both are as long. Mesh: along the row first, then along the column.
        """
        if self.kind == "ring":
            up = (target - source) % nodes
            step = 1 if self.directions < 2 or up <= nodes - up else -1
            stops = [(source + step * hop) % nodes for hop in range((up if step > 0 else nodes - up) + 1)]
        elif self.kind == "line":
            stops = _steps(source, target, 1)
        else:
            corner = source - source % self.columns + target % self.columns
            stops = [*_steps(source, corner, 1), *_steps(corner, target, self.columns)[1:]]
        return list(pairwise(stops))


def _steps(source: int, target: int, stride: int) -> list[int]:
    step = stride if target >= source else -stride
    return list(range(source, target + (1 if step > 0 else -1), step))


@dataclass(frozen=True)
class Machine:
    """A machine description with the questions the compiler asks. ``provenance`` is keyed by dotted name."""

    name: str
    description: str
    clock: Clock
    dtypes: Mapping[str, ElementType]
    spaces: Mapping[str, str]
    scopes: Mapping[str, Scope]
    memories: Mapping[str, Memory]
    units: Mapping[str, Unit]
    queues: Mapping[str, Queue]
    nets: Mapping[str, Net]
    presets: Mapping[str, str]
    provenance: Mapping[str, Provenance]
    host_gbs: float
    program_bytes: int
    loop_count_limit: int = 0
    """Most iterations that the loop counter of a unit holds; 0 for no limit."""

    # ------------------------------------------------------------------------------------------------ the usual numbers

    @property
    def cores(self) -> int:
        """Cores of the device."""
        return self.scopes["core"].count

    @property
    def corelets(self) -> int:
        """Corelets of a core."""
        return self.scopes["corelet"].count if "corelet" in self.scopes else 1

    @property
    def clock_hz(self) -> float:
        """Core clock in hertz."""
        return self.clock.ghz * 1e9

    @property
    def global_memory(self) -> Memory:
        """The memory behind the ``global`` space."""
        return self.memories[self.spaces["global"]]

    @property
    def scratchpad(self) -> Memory:
        """The memory behind the ``ct_local`` space: one per core."""
        return self.memories[self.spaces["ct_local"]]

    @property
    def scratchpad_bytes(self) -> int:
        """Bytes of a core's scratchpad that programs may use."""
        return self.scratchpad.usable

    @property
    def stick_bytes(self) -> int:
        """The word of the scratchpad, in bytes."""
        return self.scratchpad.word

    @property
    def alignment(self) -> int:
        """What base addresses of buffers must be multiples of, in bytes."""
        return max(self.scratchpad.align, self.global_memory.align)

    @property
    def span_limit_bytes(self) -> int:
        """Most bytes a core may address contiguously in one tensor of device memory; 0 for no limit."""
        return self.global_memory.span_limit

    # -------------------------------------------------------------------------------------------------------- questions

    def bytes_of(self, dtype: str) -> int:
        """Bytes of one element as stored in memory."""
        return self._dtype(dtype).bits // 8

    def lanes(self, dtype: str) -> int:
        """Elements of ``dtype`` per stick."""
        return self.stick_bytes * 8 // self._dtype(dtype).bits

    def memory(self, name: str) -> Memory:
        """The memory of that name."""
        return _named(self.memories, name, "memory")

    def unit(self, name: str) -> Unit:
        """The unit of that name."""
        return _named(self.units, name, "unit")

    def net(self, name: str) -> Net:
        """The network of that name."""
        return _named(self.nets, name, "network")

    def queue(self, source: str, target: str) -> Queue:
        """The queue from unit ``source`` to unit ``target``; :class:`NotCapable` if there is none."""
        for queue in self.queues.values():
            if (queue.source, queue.target) == (source, target):
                return queue
        raise NotCapable(f"{self.name} has no queue from {source} to {target}")

    def path(self, source: str, target: str) -> tuple[str, ...]:
        """The units on a shortest way between two memories or units, endpoints that are units included.

        Networks between cores are not crossed. Raises :class:`NotCapable` if there is no way.
        """
        edges = self._edges()
        if source not in edges or target not in edges:
            missing = source if source not in edges else target
            raise NotCapable(f"{self.name} has no memory or unit {missing}")
        came_from: dict[str, str] = {}
        pending = deque([source])
        while pending:
            place = pending.popleft()
            for following in edges[place]:
                if following == target:
                    return self._walk_back(came_from, source, place, target)
                if following not in came_from and following != source:
                    came_from[following] = place
                    pending.append(following)
        raise NotCapable(f"{self.name} has no path from {source} to {target}")

    def _walk_back(self, came_from: Mapping[str, str], source: str, last: str, target: str) -> tuple[str, ...]:
        places = [target, last]
        while places[-1] != source:
            places.append(came_from[places[-1]])
        return tuple(place for place in reversed(places) if place in self.units)

    def _edges(self) -> dict[str, list[str]]:
        edges: dict[str, list[str]] = {name: [] for name in (*self.memories, *self.units, *self.nets)}
        for unit in self.units.values():
            for source in unit.sources:
                if source in self.memories:
                    edges[source].append(unit.name)
            for target in unit.targets:
                if target in self.memories:
                    edges[unit.name].append(target)
        for queue in self.queues.values():
            edges[queue.source].append(queue.target)
        return edges

    def capable(self, unit: str, op: str, dtype: str) -> bool:
        """Whether ``unit`` has ``op`` on ``dtype``.

        ``op`` is an operation of the unit (``copy``, ``stream``, ``mac``, ..) or the full name of a scalar operation
        of its vector table (``arith.addf``).
        """
        if dtype not in self.dtypes or unit not in self.units:
            return False
        described, row = self.units[unit], self.dtypes[dtype].rate_as
        if op == "mac":
            return row in described.mac_per_cycle
        if op in described.issues:
            return row in described.lanes
        return op in described.ops and (not described.lanes or row in described.lanes)

    def rate(self, unit: str, op: str, dtype: str) -> float:
        """What one instance of ``unit`` does per cycle: multiply-accumulates, elements of a vector operation or bytes.

        A vector operation without issues (a conversion at the port) runs at the rate of the lanes.
        """
        if not self.capable(unit, op, dtype):
            raise NotCapable(f"{self.name}: {unit} has no {op} on {dtype}")
        described, row = self.unit(unit), self.dtypes[dtype].rate_as
        if op == "mac":
            return float(described.mac_per_cycle[row])
        if op in described.issues:
            return described.lanes[row] / max(1, described.issues[op] * described.issue_scale)
        return float(described.lanes[row] if described.lanes else described.bytes_per_cycle)

    def instances(self, unit: str) -> int:
        """How many instances of ``unit`` the device has."""
        return self.cores * (self.corelets if self.unit(unit).scope == "corelet" else 1)

    def peak_flops(self, dtype: str) -> float:
        """Peak floating-point operations per second of the matrix units, two per multiply-accumulate."""
        per_cycle = sum(
            2 * unit.mac_per_cycle[self._dtype(dtype).rate_as] * self.instances(unit.name)
            for unit in self.units.values()
            if self.capable(unit.name, "mac", dtype)
        )
        return per_cycle * self.clock_hz

    def _dtype(self, name: str) -> ElementType:
        if name not in self.dtypes:
            raise NotCapable(f"{self.name} has no element type {name}")
        return self.dtypes[name]


def _named(table: Mapping[str, T], name: str, what: str) -> T:
    if name not in table:
        raise NotCapable(f"the machine has no {what} {name}", remedy=f"it has {', '.join(table)}")
    return table[name]
