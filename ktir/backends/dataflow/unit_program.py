"""A ``dfp.program`` made ready to run: flat code per unit, with every operand resolved.

Verifier, token machine, functional and timed simulation all walk this form, so they agree on what an operation reads,
writes, pops and pushes. Code is shared by the cores that run it; what differs from core to core sits in expressions.

Words. *code*: the program of one ``dfp.unit`` as a flat list of instructions, loop marks and branches. *actor*: one
unit of one core and corelet, running its code. *access*: a descriptor together with its buffer. *flow*: so many
elements of a type popped from or pushed to a queue. *launch*: what lies between two barriers; its number is that of
the barrier that starts it, 0 before the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.expression import Expression, PerCore
from ktir.backends.dataflow.iteration_space import Condition, Space
from ktir.location import Location
from ktir.machine import Machine


def dtype_name(element: Attribute) -> str:
    """The name of an element type as machine files spell it: ``f16``, ``i64``."""
    return (
        f"i{element.bitwidth}"
        if isinstance(element, IntegerType)
        else str(element).removeprefix("!ktdp.").removeprefix("!")
    )


@dataclass(frozen=True, slots=True)
class Symbol:
    """An address that is known at launch: a multiple of ``alignment``, at most ``bound``."""

    name: str
    alignment: int
    bound: int
    location: Location | None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A declared buffer; ``number`` is its place in the program. ``per_core``: every core has one at the address.

    ``base``: the range starts at ``offset`` from the value of this symbol. ``writes``: every byte ``once``, or as often
    as it likes where it is an ``accumulate``. ``stored``: the boxes of bytes that are written once, where not all are.
    ``text_place``: the KTIR line it is for; ``location`` may be the model's.
    """

    number: int
    name: str
    memory: str
    per_core: bool
    offset: int
    size: int
    slots: int
    producer: str | None
    consumers: tuple[str, ...]
    launches: tuple[int, int] | None
    location: Location | None
    base: Symbol | None = None
    writes: str | None = None
    stored: tuple[tuple[int, ...], ...] = ()
    text_place: Location | None = None

    @property
    def extent(self) -> tuple[int, int]:
        """First byte and the byte after the last."""
        return self.offset, self.offset + max(1, self.slots) * self.size


@dataclass(frozen=True, slots=True)
class Queue:
    """A declared queue; one instance for each core and corelet."""

    number: int
    name: str
    source: str
    target: str
    depth: int
    vector_bytes: int
    location: Location | None


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of a buffer that an instruction reads or writes, from ``offset`` in its slot.

    ``indirect`` boxes are one row of a gather or scatter; where the row lies is only known at run time.
    """

    buffer: Buffer
    offset: Expression
    box: Box
    element: str
    writes: bool
    slot: int = 0
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
    """``elements`` of type ``element`` that an instruction pops from or pushes to ``queue``."""

    queue: Queue
    elements: int
    element: str
    width: int

    @property
    def vectors(self) -> int:
        """Vectors of the queue that the elements fill, the last perhaps in part."""
        return -(-self.elements * self.width // self.queue.vector_bytes)


@dataclass(frozen=True, slots=True)
class Link:
    """The network ``net`` and the cores at its other side: ``sources`` are received from, ``targets`` are sent to.

    A negative core number stands for nobody.
    """

    net: str
    sources: tuple[Expression, ...] = ()
    targets: tuple[Expression, ...] = ()

    @property
    def peers(self) -> tuple[Expression, ...]:
        """The core numbers of both sides."""
        return self.sources + self.targets


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation of a unit, resolved. ``loops`` are the places of the loops around it in the code, outermost first;
    ``counts`` are their iterations, ``conditions`` those of the branches it stands in."""

    number: int
    op: Operation
    kind: str
    location: Location | None
    loops: tuple[int, ...]
    counts: tuple[PerCore, ...]
    conditions: tuple[Condition, ...] = ()
    accesses: tuple[Access, ...] = ()
    pops: tuple[Flow, ...] = ()
    pushes: tuple[Flow, ...] = ()
    ring: Buffer | None = None
    link: Link | None = None
    launch: int = 0

    @property
    def depth(self) -> int:
        """Loops around the instruction."""
        return len(self.counts)

    def space(self, core: int) -> Space:
        """The iterations in which ``core`` executes the instruction."""
        return Space.of(core, self.counts, self.conditions, self.location)

    def executions(self, core: int) -> int:
        """How often ``core`` executes the instruction."""
        return self.space(core).points

    def executions_on(self, cores: Sequence[int]) -> int:
        """How often ``cores`` together execute the instruction."""
        counts = [count for count in self.counts if isinstance(count, int)]
        if not self.conditions and len(counts) == len(self.counts):
            return len(cores) * prod(max(0, count) for count in counts)
        return sum(self.executions(core) for core in cores)


@dataclass(frozen=True, slots=True)
class LoopStart:
    """Enters loop ``depth``; ``end`` is the place after its last node."""

    depth: int
    count: PerCore
    end: int


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """Goes back to ``body`` while the loop at ``depth`` has iterations left."""

    depth: int
    body: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Goes on to ``end`` unless all ``conditions`` hold."""

    conditions: tuple[Condition, ...]
    end: int


Node = Instruction | LoopStart | LoopEnd | Branch


@dataclass(slots=True)
class UnitCode:
    """The program of one ``dfp.unit``: ``nodes`` in order; ``depth`` loops at most enclose an instruction."""

    number: int
    unit: str
    corelet: int
    cores: tuple[int, ...]
    location: Location | None
    nodes: list[Node] = field(default_factory=list[Node])
    depth: int = 0

    @property
    def launched(self) -> Iterator[tuple[int, Node]]:
        """The nodes with the number of their launch; a barrier belongs to the launch that it begins."""
        launch = 0
        for node in self.nodes:
            if isinstance(node, Instruction) and node.kind == "barrier":
                launch = node.launch
            yield launch, node

    @property
    def instructions(self) -> Iterator[Instruction]:
        """The instructions in order of the text."""
        return (node for node in self.nodes if isinstance(node, Instruction))


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program of ``machine``."""

    name: str
    machine: Machine
    cores: int
    buffers: tuple[Buffer, ...]
    queues: tuple[Queue, ...]
    units: tuple[UnitCode, ...]
    location: Location | None
    symbols: tuple[Symbol, ...] = ()

    @property
    def instructions(self) -> Iterator[tuple[int, UnitCode, Instruction]]:
        """Every instruction with the number of its launch and its code, in order of the text."""
        return ((launch, code, node) for launch, code, node in self.nodes if isinstance(node, Instruction))

    @property
    def nodes(self) -> Iterator[tuple[int, UnitCode, Node]]:
        """Every node with the number of its launch and its code, in order of the text."""
        return ((launch, code, node) for code in self.units for launch, node in code.launched)

    @property
    def actors(self) -> list[tuple[int, UnitCode]]:
        """Every (core, code) in a fixed order: by core, then in order of the text."""
        return [(core, code) for core in range(self.cores) for code in self.units if core in code.cores]
