"""From a simulation that has ended to its numbers: times in nanoseconds, bytes, bounds, hot spots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ktir.backends.dataflow.bounds import launch_bounds
from ktir.backends.dataflow.simulation_state import FIRST, READ, RING, WRITTEN
from ktir.backends.dataflow.timing import (
    HotSpot,
    Interval,
    LaunchTime,
    Tenant,
    Timing,
    UnitTime,
    UnitTotal,
    balance_of,
)
from ktir.backends.dataflow.token_machine import Actor
from ktir.backends.dataflow.unit_program import Program
from ktir.dialect.locations import source_place_of, text_place_of
from ktir.location import Location

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation


def timing_of(simulation: Simulation, now: int) -> Timing:
    """The result of a simulation that ended at ``now``."""
    simulation.end_launch(now)
    ns = simulation.machine.clock.nanoseconds
    bounds = {bound.launch: bound for bound in launch_bounds(simulation.program, simulation.costs)}
    tenants = tuple(_tenants(simulation.program))
    spent = _unit_totals(simulation)
    counted = [(launch, stop, launch.totals()) for launch, stop in simulation.launches]
    launches = tuple(
        LaunchTime(
            launch=launch.number,
            cores=len(launch.cores),
            start_ns=ns(launch.start),
            stop_ns=ns(stop),
            bound_ns=ns(bounds[launch.number].ticks),
            bound_by=bounds[launch.number].resource,
            ddr_read=totals[READ],
            ddr_written=totals[WRITTEN],
            ddr_compulsory=bounds[launch.number].ddr_bytes,
            ring=totals[RING],
            ring_compulsory=bounds[launch.number].ring_bytes,
            scratchpad=occupied(tenants, launch.number),
            units=spent[launch.number],
            work=bounds[launch.number].work,
            ddr_requests=bounds[launch.number].ddr_requests,
            ddr_ns=ns(bounds[launch.number].ddr_ticks),
        )
        for launch, stop, totals in counted
        if launch.number in bounds
    )
    by_resource: dict[str, float] = {}
    for launch in launches:
        by_resource[launch.bound_by] = by_resource.get(launch.bound_by, 0.0) + launch.bound_ns
    return Timing(
        machine=simulation.machine.name,
        presets=dict(simulation.machine.presets),
        total_ns=ns(now),
        bound_ns=sum(launch.bound_ns for launch in launches),
        bound_by=max(by_resource, key=lambda name: by_resource[name], default="nothing"),
        launches=launches,
        units=tuple(_unit_time(simulation, actor) for actor in simulation.tokens.actors),
        intervals=tuple(_intervals(simulation)),
        hot_spots=_hot_spots(simulation),
        ddr_read=sum(launch.ddr_read for launch in launches),
        ddr_written=sum(launch.ddr_written for launch in launches),
        ddr_compulsory=sum(launch.ddr_compulsory for launch in launches),
        ring=sum(launch.ring for launch in launches),
        ring_compulsory=sum(launch.ring_compulsory for launch in launches),
        scratchpad_used=max((b.extent[1] for b in simulation.program.buffers if b.per_core), default=0),
        scratchpad_bytes=simulation.machine.scratchpad_bytes,
        tenants=tenants,
        events=simulation.event_count,
    )


def _unit_time(simulation: Simulation, actor: Actor) -> UnitTime:
    spent, number, ns = simulation.spent, actor.number, simulation.machine.clock.nanoseconds
    return UnitTime(
        actor.core,
        actor.code.unit,
        actor.code.corelet,
        ns(spent.busy[number]),
        ns(spent.starved[number]),
        ns(spent.blocked[number]),
        ns(spent.stalled[number]),
    )


def _intervals(simulation: Simulation) -> list[Interval]:
    ns = simulation.machine.clock.nanoseconds
    return [
        Interval(actor.core, actor.code.unit, actor.code.corelet, launch, ns(start), ns(stop))
        for actor in simulation.tokens.actors
        for launch, start, stop in simulation.clocks[actor.number].intervals
    ]


def _unit_totals(simulation: Simulation) -> dict[int, tuple[UnitTotal, ...]]:
    """For each launch how the kinds of units spent it: what they had spent at its end less that at its start."""
    found: dict[int, tuple[UnitTotal, ...]] = {}
    actors = simulation.tokens.actors
    before: tuple[tuple[int, ...], ...] = ((0, 0, 0, 0),) * len(actors)
    for launch, _ in simulation.launches:
        kinds: dict[str, list[tuple[int, list[int]]]] = {}
        for actor, old, new in zip(actors, before, launch.until_end, strict=True):
            kinds.setdefault(actor.code.unit, []).append((actor.core, [b - a for a, b in zip(old, new, strict=True)]))
        found[launch.number] = tuple(_unit_total(simulation, name, parts) for name, parts in kinds.items())
        before = launch.until_end
    return found


def _unit_total(simulation: Simulation, unit: str, parts: Sequence[tuple[int, Sequence[int]]]) -> UnitTotal:
    ns = simulation.machine.clock.nanoseconds
    busy: dict[int, int] = {}
    for core, (ticks, *_) in parts:
        busy[core] = busy.get(core, 0) + ticks
    working, starved, blocked, stalled = (ns(sum(each[way] for _, each in parts)) for way in range(4))
    return UnitTotal(unit, len(parts), working, starved, blocked, stalled, balance_of(list(busy.values())))


def _tenants(program: Program) -> Iterator[Tenant]:
    last = max((each.launch for code in program.units for each in code.instructions), default=0)
    for buffer in program.buffers:
        if buffer.per_core:
            start, stop = buffer.extent
            first, until = buffer.launches or (0, last)
            slots = max(1, buffer.slots)
            yield Tenant(buffer.name, start, stop - start, slots, first, until, buffer.text_place)


def occupied(tenants: Sequence[Tenant], launch: int) -> int:
    """Bytes of a scratchpad that have a tenant in ``launch``; those that tenants share count once."""
    reached = total = 0
    for start, stop in sorted((t.offset, t.offset + t.bytes) for t in tenants if t.first <= launch <= t.last):
        total += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return total


def _hot_spots(simulation: Simulation) -> tuple[HotSpot, ...]:
    busy: dict[tuple[Location | None, Location | None, str, str, int], int] = {}
    for launch, _ in simulation.launches:
        counts = launch.totals()[FIRST:]
        for (unit, instruction), ticks in zip(simulation.instructions.get(launch.number, ()), counts, strict=True):
            if ticks:
                op = instruction.op
                key = text_place_of(op), source_place_of(op), unit, instruction.kind, launch.number
                busy[key] = busy.get(key, 0) + ticks
    ns = simulation.machine.clock.nanoseconds
    return tuple(HotSpot(*key, ns(ticks)) for key, ticks in sorted(busy.items(), key=lambda item: -item[1]))
