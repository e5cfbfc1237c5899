"""The lowering as a whole: launches to plans, plans to addresses, all of it to one ``dfp.program``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, Region, SSAValue

from ktir.backends.dataflow.lower import kernel as kernels
from ktir.backends.dataflow.lower import scalars
from ktir.backends.dataflow.lower.context import Lowering, refuse, scalar_attribute
from ktir.backends.dataflow.lower.element_types import require_elements
from ktir.backends.dataflow.lower.emit import Resolved, UnitWriter, concerns
from ktir.backends.dataflow.lower.hardware import Hardware, Numerics
from ktir.backends.dataflow.lower.launches import Launch, LaunchArguments, Placed, Trace, grid_of, trace
from ktir.backends.dataflow.lower.memory import Constants, Places
from ktir.backends.dataflow.lower.ordering import accesses_of, order_accesses
from ktir.backends.dataflow.lower.plan import (
    Block,
    Item,
    LaunchPlan,
    Loop,
    Planner,
    Step,
    Storage,
    Tile,
    insert_handshakes,
)
from ktir.backends.dataflow.lower.reuse import space_savers
from ktir.backends.dataflow.lower.single_writes import single_writes
from ktir.backends.dataflow.lower.tensors import Splat
from ktir.backends.dataflow.lower.values import PerCore, constant
from ktir.dialect import dfp, ktdp
from ktir.dialect.locations import location_of, source_place_of
from ktir.errors import CapacityExceeded
from ktir.location import Location
from ktir.machine.description import Machine
from ktir.maths.lifetimes import Allocation, Occupied, Room, Tenant, allocate


@dataclass(frozen=True)
class LoweredProgram:
    """A dataflow program and where the host puts and finds its data.

    ``inputs`` are copied to device memory before it runs, ``outputs`` are read back behind it; ``constants`` are bytes
    at device addresses that belong to the program. ``kernels`` names the launches in order; ``sources`` are the lines
    of the model that they are for, where there are some, and ``moved`` those of launches whose kernel was made for
    another line. ``numerics`` is what f16 means.
    """

    module: ModuleOp
    machine: Machine
    inputs: tuple[Placed, ...]
    outputs: tuple[Placed, ...]
    constants: tuple[tuple[int, bytes], ...]
    kernels: tuple[str, ...]
    ddr_bytes: int
    lx_bytes: int
    sources: tuple[Location | None, ...] = ()
    moved: Mapping[int, Location] = field(default_factory=dict[int, Location])
    numerics: Numerics = "f16"


def lower_to_dfp(
    module: ModuleOp,
    machine: Machine,
    function: str | None = None,
    launch: LaunchArguments | None = None,
    *,
    numerics: Numerics = "f16",
) -> LoweredProgram:
    """Lowers ``function`` (``@main``, or one kernel with its arguments) for ``machine``.

    ``numerics`` says what f16 is when the program runs on data; its text and its time are the same.

    Raises :class:`NotLowerable` where an operation has no form on the machine, :class:`CapacityExceeded` where its
    tiles do not fit the scratchpad, :class:`OutOfBounds` where it reaches outside a view, :class:`NotCapable` where the
    machine lacks what f16 shall be, and :class:`ArgumentError`, :class:`FunctionNotFound`, :class:`GridExceedsMachine`
    where the launch is not possible.
    """
    hardware = Hardware.of(machine, numerics)
    traced = trace(module, machine, function, launch or {})
    cores = max((prod(grid_of(each.kernel)) for each in traced.launches), default=1)
    step = max(128, machine.alignment)
    places = Places(traced.allocations, machine.scratchpad_bytes)
    constants = Constants(-(-traced.end // step) * step, step, numerics)
    plans = [
        plan_launch(hardware, places, constants, cores, number, each) for number, each in enumerate(traced.launches)
    ]
    constants.finish()
    once = single_writes(module, function, launch or {}, traced)
    return Assembly(hardware, places, constants, cores, plans, traced, once).program()


# ---------------------------------------------------------------------------------------------------------------- plans


def plan_launch(
    hardware: Hardware, places: Places, constants: Constants, cores: int, number: int, launch: Launch
) -> LaunchPlan:
    """What all units do in one launch."""
    kernel = launch.kernel
    grid = grid_of(kernel)
    everyone = np.arange(cores) < prod(grid)
    origin = launch.call if launch.call is not None else kernel
    plan = LaunchPlan(number, location_of(origin))
    planner = Planner(hardware, plan, everyone)
    planner.origin = kernel
    lowering = Lowering(
        kernels.lower_operation,
        planner,
        places,
        constants,
        everyone,
        coordinates_of(grid, cores),
        _stores_locally(kernel),
        {
            argument: buffer
            for argument, buffer in zip(kernel.body.block.args, launch.buffers, strict=True)
            if buffer is not None
        },
    )
    require_elements(hardware.machine, kernel)
    for argument, value in zip(kernel.body.block.args, launch.arguments, strict=True):
        _bind(lowering, kernel, argument, value)

    def body() -> None:
        lowering.lower_body(kernel.body.block)

    planner.active = np.ones(cores, dtype=np.bool_)
    planner.guarded(everyone, body)
    order_accesses(plan)
    return plan


def _bind(lowering: Lowering, kernel: func.FuncOp, argument: SSAValue, value: int | float | None) -> None:
    if value is None:
        return
    type = argument.type
    if isinstance(type, ktdp.RuntimeArgType):
        type = type.payload
    if isinstance(type, AnyFloat):
        lowering.values[argument] = Splat(scalar_attribute(lowering.hardware, value, type, kernel), (), type)
    elif scalars.is_integral(type) and isinstance(value, int):
        lowering.values[argument] = constant(value, lowering.cores)
    else:
        refuse(kernel, f"argument {argument.name_hint} of type {argument.type} is given {value}")


def coordinates_of(grid: Sequence[int], cores: int) -> tuple[PerCore, ...]:
    """Tile ids along the axes of ``grid``; the first axis varies fastest with the core number."""
    numbers = np.arange(cores, dtype=np.int64)
    return tuple(numbers // prod(grid[:axis]) % extent for axis, extent in enumerate(grid))


def _stores_locally(kernel: func.FuncOp) -> bool:
    """Whether the kernel stores to a view of a scratchpad."""
    for op in kernel.walk():
        if isinstance(op, ktdp.StoreOp):
            tile = op.access_tile.owner
            base = tile.operands[0].owner if isinstance(tile, Operation) else None
            if isinstance(base, ktdp.ConstructMemoryViewOp) and base.space.kind != "global":
                return True
    return False


# ------------------------------------------------------------------------------------------------------------- assembly


@dataclass(eq=False)
class Assembly:
    """Gives everything its address and writes the program."""

    hardware: Hardware
    places: Places
    constants: Constants
    cores: int
    plans: list[LaunchPlan]
    traced: Trace
    once: Mapping[Storage, Sequence[tuple[int, ...]]]
    buffers: dict[Storage | Tile, Resolved] = field(default_factory=dict[Storage | Tile, Resolved])
    declared: list[Operation] = field(default_factory=list[Operation])
    queues: dict[str, dfp.QueueOp] = field(default_factory=dict[str, dfp.QueueOp])
    lx_bytes: int = 0

    @property
    def machine(self) -> Machine:
        """The machine that the program is for."""
        return self.hardware.machine

    def program(self) -> LoweredProgram:
        """The program and its host side."""
        stored = self._declare_global()
        regions = self._declare_regions()
        for plan in self.plans:
            self._declare_tiles(plan, regions)
        places = [(name, corelet) for name in self.hardware.units for corelet in range(self.hardware.instances(name))]
        units = [unit for place in places if (unit := self._unit(*place)) is not None]
        body = IrBlock([*self.declared, *self.queues.values(), *units])
        names = [each.kernel.sym_name.data for each in self.traced.launches]
        sources = [source_place_of(each.call or each.kernel) for each in self.traced.launches]
        made = dfp.ProgramOp("program", self.machine.name, self.cores, Region(body))
        outputs = [
            placed
            for placed in self.traced.outputs
            if any(room.overlaps(Room(placed.offset, placed.offset + placed.size)) for room in stored)
        ]
        return LoweredProgram(
            ModuleOp([made]),
            self.machine,
            tuple(self.traced.inputs),
            tuple(outputs),
            tuple((storage.offset, content) for storage, content in self.constants.contents),
            tuple(names),
            self.constants.start,
            self.lx_bytes,
            tuple(sources),
            {
                number: place
                for number, (launch, place) in enumerate(zip(self.traced.launches, sources, strict=True))
                if place is not None and place != source_place_of(launch.kernel)
            },
            self.hardware.numerics,
        )

    def _declare(self, place: Storage | Tile, made: dfp.BufferOp) -> None:
        made.result.name_hint = name_hint(made.sym_name.data)
        self.declared.append(made)
        self.buffers[place] = Resolved(made.result)

    def _declare_global(self) -> set[Room]:
        """Buffers for the allocations in use; returns the bytes that are stored to."""
        used: dict[Storage, list[int]] = {}
        stored: set[Room] = set()
        for plan in self.plans:
            for access in accesses_of(plan):
                if access.region.memory == "global":
                    used.setdefault(access.region, []).append(plan.number)
                    stored |= {access.room} if access.writes else set()
        memory = self.machine.global_memory.name
        rooms = {storage: Room(storage.offset, storage.offset + storage.size) for storage in used}
        for storage in sorted(used, key=lambda storage: (storage.offset, storage.name)):
            shared = any(other is not storage and rooms[other].overlaps(rooms[storage]) for other in used)
            launches = (min(used[storage]), max(used[storage])) if shared else None
            writes = "once" if storage in self.once else None
            made = dfp.BufferOp(
                storage.name,
                memory,
                storage.offset,
                storage.size,
                launches=launches,
                writes=writes,
                stored=self.once.get(storage, ()),
            )
            made.location = (storage.origin or self.traced.launches[min(used[storage])].kernel).location
            self._declare(storage, made)
        return stored

    def _declare_regions(self) -> list[Occupied]:
        """One buffer for scratchpad ranges that share bytes at the same time."""
        groups: list[Occupied] = []
        members: list[list[Storage]] = []
        for room, storage in sorted(self.places.scratch.items()):
            launches = self.places.touched[storage]
            group = Occupied(Tenant(storage.name, len(room), min(launches), max(launches)), room)
            mine = [storage]
            position = 0
            while position < len(groups):
                other = groups[position]
                if other.room.overlaps(group.room) and other.tenant.meets(group.tenant):
                    group = _united(group, other)
                    mine += members[position]
                    del groups[position], members[position]
                    position = 0
                else:
                    position += 1
            groups.append(group)
            members.append(mine)
        memory = self.machine.scratchpad.name
        for group, mine in zip(groups, members, strict=True):
            made = dfp.BufferOp(
                group.tenant.name,
                memory,
                group.room.start,
                len(group.room),
                launches=(group.tenant.first, group.tenant.last),
            )
            made.location = next((each.origin.location for each in mine if each.origin is not None), made.location)
            self.declared.append(made)
            for storage in mine:
                self.buffers[storage] = Resolved(made.result, storage.offset - group.room.start)
        self.lx_bytes = max((group.room.stop for group in groups), default=0)
        return groups

    def _declare_tiles(self, plan: LaunchPlan, regions: Sequence[Occupied]) -> None:
        """Addresses for the tiles of a launch, apart from each other and from the regions that live then."""
        allocation = self._allocate(plan, regions)
        used = _end_of(allocation)
        for save_space in space_savers(self.hardware):
            if used > self.machine.scratchpad_bytes:
                save_space(plan)
                allocation = self._allocate(plan, regions)
                used = _end_of(allocation)
        self.lx_bytes = max(self.lx_bytes, used)
        if used > self.machine.scratchpad_bytes:
            self._overflow(plan, used)
        insert_handshakes(plan)
        tiles = {tile_name(plan, tile): tile for tile in plan.tiles}
        for name, tile in tiles.items():
            room = allocation.rooms[name]
            made = dfp.BufferOp(
                name,
                self.machine.scratchpad.name,
                room.start,
                len(room) // tile.slots,
                slots=tile.slots,
                producer=tile.producer,
                consumers=tile.consumers,
                launches=(plan.number, plan.number),
            )
            made.location = tile.origin.location
            self._declare(tile, made)

    def _allocate(self, plan: LaunchPlan, regions: Sequence[Occupied]) -> Allocation:
        align = self.machine.alignment
        tenants = [
            Tenant(tile_name(plan, tile), -(-tile.size // align) * align * tile.slots, plan.number, plan.number)
            for tile in plan.tiles
        ]
        return allocate(tenants, alignment=align, occupied=regions)

    def _overflow(self, plan: LaunchPlan, used: int) -> None:
        largest = sorted(plan.tiles, key=lambda tile: -tile.size * tile.slots)[:5]
        parts = ", ".join(
            f"{tile.slots} x {tile.size} bytes for {tile.origin.name}"
            + (f" at {place}" if (place := location_of(tile.origin)) is not None else "")
            for tile in largest
        )
        raise CapacityExceeded(
            f"the tiles of launch {plan.number} need {used} bytes of scratchpad, {self.machine.name} has "
            f"{self.machine.scratchpad_bytes}: {parts}",
            location=location_of(largest[0].origin) if largest else plan.location,
            remedy="use smaller tiles or more cores",
        )

    # ------------------------------------------------------------------------------------------------------------ units

    def _queue(self, name: str) -> SSAValue:
        if name not in self.queues:
            source, target = self.hardware.queues[name]
            described = self.machine.queue(source, target)
            self.queues[name] = dfp.QueueOp(name, source, target, described.depth, described.width)
            self.queues[name].result.name_hint = name
        return self.queues[name].result

    def _unit(self, name: str, corelet: int) -> dfp.UnitOp | None:
        """The program of one unit on all cores, or None if it never does anything."""
        if not any(
            concerns(item, name, corelet)
            for plan in self.plans
            for item in items_of(plan.body)
            if not isinstance(item, Loop)
        ):
            return None
        writer = UnitWriter(name, corelet, self.cores, self.buffers, self._queue)
        for plan in self.plans:
            if plan.number:
                writer.barrier(plan.number, self.traced.launches[plan.number].call)
            writer.launch(plan)
        return dfp.UnitOp(name, list(range(self.cores)), corelet, writer.region())


def _end_of(allocation: Allocation) -> int:
    """The first byte behind all tiles."""
    return max((room.stop for room in allocation.rooms.values()), default=0)


def tile_name(plan: LaunchPlan, tile: Tile) -> str:
    """The name of a tile among all launches."""
    return f"l{plan.number}_{tile.name}"


def name_hint(name: str) -> str | None:
    """``name`` where it can stand in the text as the name of a value."""
    hint = "".join(letter if letter.isalnum() else "_" for letter in name)
    return hint if hint and hint[0].isalpha() else None


def _united(left: Occupied, right: Occupied) -> Occupied:
    room = Room(min(left.room.start, right.room.start), max(left.room.stop, right.room.stop))
    first, last = min(left.tenant.first, right.tenant.first), max(left.tenant.last, right.tenant.last)
    return Occupied(Tenant(left.tenant.name, len(room), first, last), room)


def items_of(block: Block) -> Iterator[Item]:
    """All items of a block and of the loops in it."""
    for item in block.items:
        yield item
        if isinstance(item, Loop):
            yield from items_of(item.body)


def steps_of(block: Block) -> Iterator[Step]:
    """All steps of a block and of the loops in it."""
    return (item for item in items_of(block) if isinstance(item, Step))
