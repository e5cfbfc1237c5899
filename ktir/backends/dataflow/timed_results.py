"""From a simulation that has ended to its numbers: times in nanoseconds, bytes, bounds, hot spots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktir.backends.dataflow.bounds import launch_bounds
from ktir.backends.dataflow.timing import HotSpot, Interval, LaunchTime, Timing, UnitTime
from ktir.backends.dataflow.token_machine import Actor

if TYPE_CHECKING:
    from ktir.backends.dataflow.timed import Simulation


def timing_of(simulation: Simulation, now: int) -> Timing:
    """The result of a simulation that ended at ``now``."""
    simulation.launches.append((simulation.launch, now))
    ns = simulation.machine.clock.nanoseconds
    bounds = {bound.launch: bound for bound in launch_bounds(simulation.program, simulation.costs)}
    launches = tuple(
        LaunchTime(
            launch=launch.number,
            cores=len(launch.cores),
            start_ns=ns(launch.start),
            stop_ns=ns(stop),
            bound_ns=ns(bounds[launch.number].ticks),
            bound_by=bounds[launch.number].resource,
            ddr_read=launch.read,
            ddr_written=launch.written,
            ddr_compulsory=bounds[launch.number].ddr_bytes,
            ring=launch.ring,
        )
        for launch, stop in simulation.launches
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
        units=tuple(_unit_time(simulation, actor, now) for actor in simulation.tokens.actors),
        intervals=tuple(_intervals(simulation)),
        hot_spots=_hot_spots(simulation),
        ddr_read=sum(launch.ddr_read for launch in launches),
        ddr_written=sum(launch.ddr_written for launch in launches),
        ddr_compulsory=sum(launch.ddr_compulsory for launch in launches),
        ring=sum(launch.ring for launch in launches),
        scratchpad_used=max((b.extent[1] for b in simulation.program.buffers if b.per_core), default=0),
        scratchpad_bytes=simulation.machine.scratchpad_bytes,
        events=simulation.event_count,
    )


def _unit_time(simulation: Simulation, actor: Actor, now: int) -> UnitTime:
    spent, number, ns = simulation.spent, actor.number, simulation.machine.clock.nanoseconds
    simulation.account_wait(actor, now)
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


def _hot_spots(simulation: Simulation) -> tuple[HotSpot, ...]:
    ns = simulation.machine.clock.nanoseconds
    spots = [
        HotSpot(instruction.location, unit, instruction.kind, ns(ticks))
        for (unit, instruction), ticks in zip(simulation.instructions, simulation.spent.by_instruction, strict=True)
        if ticks
    ]
    return tuple(sorted(spots, key=lambda spot: -spot.busy_ns))
