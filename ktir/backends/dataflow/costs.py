"""What each instruction costs on a machine, in ticks and bytes: the numbers the timed simulation and the bounds share.

Sources: unit rates, ports and fills come from the machine description; a descriptor is charged the words it touches;
the matrix unit does passes of a few rows, ``ceil(rows / rows_per_pass)`` of them; the vector unit issues every
operation of the region once per vector of the widest element that enters or leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, cast

from ktir.backends.dataflow.timing import Arithmetic
from ktir.backends.dataflow.unit_program import Access, Instruction, Program, UnitCode
from ktir.dialect import dfp
from ktir.errors import NotCapable
from ktir.machine import Machine, Unit

_PARTIAL_BYTES: Final = 4
"""Of a partial result on its way along a chain: f32."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one execution of an instruction. ``work`` and the ports are ticks, the rest bytes and counts.

    ``work``: the unit alone. ``read_port``, ``write_port``: how long the scratchpad's ports are taken. ``ddr_bytes``,
    ``requests``: what device memory sees. ``peak_ticks``: what the arithmetic would take at the machine's peak, on
    this one unit. ``operations``: the arithmetic ones, as :mod:`ktir.backends.dataflow.timing` counts them, on elements
    that the machine rates as ``element``. ``slack``: how much earlier than its array the matrix unit takes new ones.
    """

    work: int = 0
    read_port: int = 0
    write_port: int = 0
    ddr_bytes: int = 0
    ddr_writes: bool = False
    requests: int = 0
    ring_bytes: int = 0
    peak_ticks: int = 0
    operations: int = 0
    element: str = ""
    fill: int = 0
    slack: int = 0


class CostModel:
    """Costs of the instructions of a program on its machine."""

    def __init__(self, program: Program) -> None:
        self.program, self.machine = program, program.machine
        self.tick = self.machine.clock.ticks_per_cycle

    def cost(self, code: UnitCode, instruction: Instruction) -> Cost:
        """The cost of one execution."""
        unit = self.machine.unit(code.unit)
        match instruction.kind:
            case "copy" | "gather" | "scatter":
                return self._transfer(unit, code, instruction)
            case "stream" | "drain" | "send" | "multicast" | "receive":
                return self._local(unit, code, instruction)
            case "chain":
                return self._chain(unit, code, instruction)
            case "sfu_map" | "sfu_reduce" | "sfu_scan":
                return self._vector(unit, instruction)
            case "pe_mac":
                return self._multiply(unit, instruction)
            case "pe_load" | "pe_preload" | "pe_emit":
                moved = sum(flow.vectors * flow.queue.vector_bytes for flow in (*instruction.pops, *instruction.pushes))
                return Cost(work=self._cycles(moved, unit.load_bytes_per_cycle))
            case _:
                return Cost()

    def _cycles(self, amount: int, per_cycle: int) -> int:
        """Ticks for ``amount`` at ``per_cycle``."""
        return -(-amount * self.tick // max(1, per_cycle))

    def touched(self, code: UnitCode, access: Access) -> int:
        """Bytes of whole words that the access touches, at the worst misalignment of any core."""
        word = self.machine.memory(access.buffer.memory).word
        base = access.buffer.offset + (access.buffer.size if access.buffer.slots else 0)
        misaligned = 0
        for core in code.cores:
            remainder = access.offset.remainder(core, word)
            if remainder is None:
                misaligned = word - access.box.width
                break
            misaligned = max(misaligned, (remainder + base) % word)
        return access.box.touches(word, misaligned) * word

    def _transfer(self, unit: Unit, code: UnitCode, instruction: Instruction) -> Cost:
        moves = instruction.accesses[-2:]
        rows = instruction.accesses[0].box.elements if len(instruction.accesses) > 2 else 1
        read = write = ddr = requests = 0
        ddr_writes = False
        for access in moves:
            memory = self.machine.memory(access.buffer.memory)
            moved = self.touched(code, access) * (rows if access.indirect else 1)
            if access.buffer.per_core:
                if access.writes:
                    write += self._cycles(moved, memory.write_port)
                else:
                    read += self._cycles(moved, memory.read_port)
            else:
                ddr += moved
                ddr_writes = access.writes
                requests += access.box.runs(memory.burst or moved) * (rows if access.indirect else 1)
        if len(instruction.accesses) > 2:
            index = instruction.accesses[0]
            memory = self.machine.memory(index.buffer.memory)
            read += self._cycles(self.touched(code, index), memory.read_port)
        work = self._cycles(max(ddr, moves[0].box.bytes), unit.bytes_per_cycle)
        return Cost(work, read, write, ddr, ddr_writes, requests)

    def _local(self, unit: Unit, code: UnitCode, instruction: Instruction) -> Cost:
        access = instruction.accesses[0]
        memory = self.machine.memory(access.buffer.memory)
        touched = self.touched(code, access)
        moved = max(touched, -(-access.box.bytes // memory.word) * memory.word)
        port = self._cycles(touched, memory.write_port if access.writes else memory.read_port)
        ring = access.box.bytes if instruction.link is not None and instruction.link.targets else 0
        work = self._cycles(moved, unit.bytes_per_cycle)
        return Cost(work, 0 if access.writes else port, port if access.writes else 0, ring_bytes=ring)

    def _chain(self, unit: Unit, code: UnitCode, instruction: Instruction) -> Cost:
        """A part of a chain reads its box at the port and passes partial results of four bytes on."""
        read, written = instruction.accesses
        memory = self.machine.memory(read.buffer.memory)
        ports = self._cycles(self.touched(code, read), memory.read_port)
        partial = read.box.elements * _PARTIAL_BYTES
        return Cost(
            work=self._cycles(partial, unit.bytes_per_cycle),
            read_port=ports,
            write_port=self._cycles(self.touched(code, written), memory.write_port),
            ring_bytes=partial,
        )

    def _vector(self, unit: Unit, instruction: Instruction) -> Cost:
        flows = (*instruction.pops, *instruction.pushes)
        lanes, element = min((self._lanes(unit, flow.element, instruction), flow.element) for flow in flows)
        elements = max(flow.elements for flow in flows)
        vectors = ceil(elements / lanes)
        block = cast("dfp.SfuMapOp | dfp.FoldOperation", instruction.op).body.block
        issues = sum(self._issues(unit, op.name, instruction) for op in block.ops if not isinstance(op, dfp.YieldOp))
        ports = max(flow.vectors for flow in flows)
        work = max(vectors * issues * unit.issue_scale, ports) * self.tick
        tail = unit.reduce_latency * self.tick if instruction.kind != "sfu_map" else 0
        return Cost(
            work=work + tail,
            peak_ticks=vectors * issues * unit.issue_scale * self.tick,
            operations=elements * issues,
            element=self.machine.dtypes[element].rate_as if element in self.machine.dtypes else element,
        )

    def _lanes(self, unit: Unit, element: str, instruction: Instruction) -> int:
        row = self.machine.dtypes[element].rate_as if element in self.machine.dtypes else element
        if row not in unit.lanes:
            raise NotCapable(
                f"{self.machine.name}: {unit.name} has no operations on {element}", location=instruction.location
            )
        return unit.lanes[row]

    def _issues(self, unit: Unit, op: str, instruction: Instruction) -> int:
        if op not in unit.issues:
            raise NotCapable(f"{self.machine.name}: {unit.name} has no {op}", location=instruction.location)
        return unit.issues[op]

    def _multiply(self, unit: Unit, instruction: Instruction) -> Cost:
        op = cast("dfp.PeMacOp", instruction.op)
        rows, k, n = op.rows.value.data, op.k.value.data, op.n.value.data
        rate = int(self.machine.rate(unit.name, "mac", instruction.pops[0].element))
        passes = ceil(rows / unit.rows_per_pass)
        one_pass = self._cycles(unit.rows_per_pass * k * n, rate)
        feed = self._cycles(
            instruction.pops[0].vectors * instruction.pops[0].queue.vector_bytes, unit.load_bytes_per_cycle
        )
        return Cost(
            work=max(passes * one_pass, feed),
            peak_ticks=rows * k * n * self.tick // rate,
            operations=2 * rows * k * n,
            element=self.machine.dtypes[instruction.pops[0].element].rate_as,
            fill=unit.fill_cycles * self.tick,
            slack=one_pass,
        )


def peak_operations(machine: Machine, unit: str, kind: Arithmetic, element: str) -> float:
    """Operations a second of all instances of a compute unit on elements that the machine rates as ``element``."""
    described = machine.unit(unit)
    if kind == "multiply":
        per_cycle = float(2 * described.mac_per_cycle.get(element, 0))
    else:
        per_cycle = described.lanes.get(element, 0) / max(1, described.issue_scale)
    return per_cycle * machine.instances(unit) * machine.clock_hz


def ddr_ticks(machine: Machine, amount: int) -> int:
    """Ticks that the whole device memory needs for ``amount`` bytes at its sustained rate, rounded down."""
    per_tick = machine.global_memory.sustained_gbs / (machine.clock.ghz * machine.clock.ticks_per_cycle)
    return int(amount / per_tick)
