"""Timed simulation of a dataflow program: the token machine with a clock, no tensor data.

A unit is an in-order issuer. Its operations are cut into chunks; a chunk starts when the unit is free, its inputs are
there, room in its outputs is set aside and its shared resources are granted; it ends after its service and latency.
Credits of inputs return when a chunk starts. Back-pressure needs nothing else.

Shared resources. *Device memory*: servers, each for a share of the cores, serve bursts of their requesters in turn; a
burst takes its bytes at the server's share of the sustained rate or the least time per request, whichever is longer,
and a switch of direction costs the turnaround; a launch finds it at rest. The least time per request is published by
requesting cores: those that use device memory in the launch. *Scratchpad ports*: one read and one write port per core,
first come first served. *Ring*: the shorter way round, cut through; each directed link carries one chunk at a time.

All times are integer ticks, and service times are rounded up, so that no rate exceeds the machine's.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from math import ceil
from typing import Final, cast

from xdsl.ir import Operation

from ktir.backends.dataflow.coasting import Coasting
from ktir.backends.dataflow.core_kinds import core_kinds
from ktir.backends.dataflow.costs import Cost, CostModel
from ktir.backends.dataflow.deadlock import explain
from ktir.backends.dataflow.island_repetition import IslandRepetition
from ktir.backends.dataflow.islands import launch_maps
from ktir.backends.dataflow.local_repetition import LocalRepetition
from ktir.backends.dataflow.mirrored_islands import Mirror
from ktir.backends.dataflow.periodicity import Periodicity
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.simulation_state import (
    ATTEMPT,
    DELIVER,
    FINISH,
    FIRST,
    INSIDE,
    OF_ACTORS,
    ON_NETWORK,
    READ,
    RING,
    SERVED,
    WRITTEN,
    Clock,
    Event,
    Kind,
    Launch,
    Port,
    Request,
    Server,
    Spent,
    Work,
    part,
)
from ktir.backends.dataflow.timed_results import timing_of
from ktir.backends.dataflow.timing import Timing
from ktir.backends.dataflow.token_machine import Actor, Phase, TokenMachine, TokenQueue, popped
from ktir.backends.dataflow.unit_program import Instruction, Link, Program
from ktir.dialect.text.limits import without_collections
from ktir.errors import LimitExceeded
from ktir.machine import Machine, Memory, Net

__all__ = ["Timing", "simulate", "simulate_program"]

MOST_EVENTS: Final = 10_000_000
"""Events of a launch before the simulation is given up."""
PAUSE_CYCLES: Final = 512
"""Pauses of a unit shorter than this do not cut its interval of the timeline."""


def simulate(
    program_module: Operation, machine: Machine, *, chunk_bytes: int | None = None, extrapolate: bool = True
) -> Timing:
    """Times the only ``dfp.program`` of ``program_module``; ``chunk_bytes`` defaults to a burst of device memory.

    Periods that repeat are skipped, which changes nothing but the effort; ``extrapolate=False`` simulates them all.
    Raises :class:`DataflowDeadlock` where the program stops before its end.
    """
    program = compile_program(program_module, machine)
    return simulate_program(program, chunk_bytes=chunk_bytes, extrapolate=extrapolate)


def simulate_program(program: Program, *, chunk_bytes: int | None = None, extrapolate: bool = True) -> Timing:
    """Like :func:`simulate`, for a program that is compiled already."""
    return Simulation(program, chunk_bytes or program.machine.global_memory.burst, extrapolate).run()


class Simulation:
    """A program with a clock. Public for what looks at it while it runs."""

    FOREVER: Final = 1 << 62

    def __init__(self, program: Program, chunk_bytes: int, extrapolate: bool) -> None:
        self.program, self.machine = program, program.machine
        self.tokens = TokenMachine(program)
        model = CostModel(program)
        self.works: dict[int, Work] = {}
        self.instructions: dict[int, list[tuple[str, Instruction]]] = {0: []}
        for launch, code, instruction in program.instructions:
            others = self.instructions.setdefault(launch, [])
            self.works[id(instruction)] = self._work(instruction, model.cost(code, instruction), len(others))
            others.append((code.unit, instruction))
        self.inside_counts = self._inside_counts()
        actors = len(self.tokens.actors)
        self.spent = Spent([0] * actors, [0] * actors, [0] * actors, [0] * actors)
        self.clocks = [Clock() for _ in self.tokens.actors]
        self.outstanding = [self.machine.unit(actor.code.unit).outstanding for actor in self.tokens.actors]
        self.ports = [(Port(), Port()) for _ in range(program.cores)]
        self.links: dict[tuple[str, int, int], int] = {}
        memory = self.machine.global_memory
        self.memory: Memory = memory
        self.servers = [Server(number) for number in range(memory.servers)]
        self.chunk = max(1, chunk_bytes // self.tokens.vector_bytes)
        self._set_rates(memory)
        self.events: list[Event] = []
        self.current: Event = (0, 0, 0, 0, None)
        self.pending: list[dict[int, Event]] = [{} for _ in self.tokens.actors]
        self.dead: set[int] = set()
        self.sequence = self.event_count = 0
        self.pause = PAUSE_CYCLES * self.machine.clock.ticks_per_cycle
        self.periodicity = Periodicity(self.tokens, self.chunk, self._charged)
        self.local = LocalRepetition(self) if extrapolate else None
        self.extrapolate = extrapolate
        self.islands: dict[int, IslandRepetition] = {}
        self.mirrors: list[Mirror] = []
        self.core_kinds = core_kinds(program)
        self.now = 0
        self.tokens.before_release = self._next_launch
        self.maps = launch_maps(program, self.uses_memory, self.server_of)
        self.launches: list[tuple[Launch, int]] = []
        self._begin_launch(0, 0)

    def _inside_counts(self) -> dict[int, dict[int, tuple[bool, bool]]]:
        """By launch, the counts of operations that concern their core alone, with the ports that these use."""
        counts: dict[int, dict[int, tuple[bool, bool]]] = {}
        for launch, instructions in self.instructions.items():
            works = [self.works[id(instruction)] for _, instruction in instructions]
            counts[launch] = {
                work.counted: (work.cost.read_port > 0, work.cost.write_port > 0) for work in works if work.inside
            }
        return counts

    def _work(self, instruction: Instruction, cost: Cost, number: int) -> Work:
        kind, phases = _kind(instruction, cost), len(self.tokens.phases[id(instruction)])
        parts = tuple(part(cost.work, phase, phases) for phase in range(phases))
        return Work(cost, kind, parts, FIRST + number, kind in INSIDE, kind in ON_NETWORK)

    def uses_memory(self, instruction: Instruction) -> bool:
        """Whether device memory serves the instruction."""
        return self.works[id(instruction)].kind == "memory"

    @property
    def costs(self) -> dict[int, Cost]:
        """The cost of each instruction, by its identity."""
        return {identity: work.cost for identity, work in self.works.items()}

    def _set_rates(self, memory: Memory) -> None:
        clock = self.machine.clock
        self.ticks_per_byte = memory.servers * clock.ghz * clock.ticks_per_cycle / memory.sustained_gbs
        self.turnaround = clock.ticks(memory.turnaround_ns * memory.servers)
        self.latency = clock.ticks(memory.latency_ns)
        queues = [queue.latency for queue in self.machine.queues.values()]
        self.queue_latency = max(queues, default=0) * clock.ticks_per_cycle

    # -------------------------------------------------------------------------------------------------------- main loop

    def run(self) -> Timing:
        """Simulates to the end."""
        with without_collections():
            return self._run()

    def _run(self) -> Timing:
        for actor in self.tokens.actors:
            if actor.number not in self.tokens.absent:
                self.schedule(0, ATTEMPT, actor.number, actor)
        events, local = self.events, self.local
        while events:
            event = heappop(events)
            if event[3] in self.dead:
                self.dead.remove(event[3])
                continue
            self._handle(event)
            if local is not None and event[1] in OF_ACTORS and event[4].__class__ is not Coasting:
                actor = self.tokens.actors[event[2]]
                if event[1] == FINISH:
                    local.look(actor, event[0])
                island = self.islands[actor.core]
                if island.due():
                    island.skip(event[0])
        self._rejoin()
        if self.tokens.unfinished():
            raise explain(self.tokens)
        return timing_of(self, self.now)

    def _handle(self, event: Event) -> None:
        now, order, rank, sequence, payload = event
        self.current, self.now = event, now
        self.event_count += 1
        if self.event_count > self.most_events:
            raise self._too_long(now)
        if order == ATTEMPT:
            del self.pending[rank][sequence]
            self._attempt(cast("Actor", payload), now)
        elif order == FINISH:
            del self.pending[rank][sequence]
            if payload.__class__ is Coasting:
                cast("LocalRepetition", self.local).end(cast("Coasting", payload), now)
            else:
                self._finish(*cast("tuple[Actor, Phase, int]", payload), now)
        elif order == SERVED:
            self._served(cast("Server", payload), now)
        else:
            self.tokens.fill(*cast("tuple[TokenQueue, int]", payload))
            self._wake(now)

    def _finish(self, actor: Actor, phase: Phase, quanta: int, now: int) -> None:
        """A chunk has ended."""
        if self.works[id(actor.cursor.instruction)].on_network and self.local is not None:
            self.local.disturb(actor.core)
        self.tokens.complete(actor, phase, quanta)
        self.clocks[actor.number].since = now
        if self.tokens.woken:
            self._wake(now)
        self._attempt(actor, now)

    def catch_up(self) -> None:
        """Handles the events that come before the one under way: some were put back in the past of one core."""
        current, before = self.current, self.current[:3]
        while self.events and self.events[0][:3] < before:
            event = heappop(self.events)
            if event[3] in self.dead:
                self.dead.remove(event[3])
            else:
                self._handle(event)
        self.current, self.now = current, current[0]

    # ---------------------------------------------------------------------------------------------- units inside a core

    def inside(self, actor: Actor) -> bool:
        """Whether ``actor`` is in the middle of an operation that concerns no other core and no device memory."""
        return actor.phase is not None and self.works[id(actor.cursor.instruction)].inside

    def withdraw(self, actor: Actor) -> list[Event]:
        """Takes all events of ``actor`` out, which are returned."""
        pending = self.pending[actor.number]
        events = list(pending.values())
        self.dead.update(pending)
        pending.clear()
        return events

    def clock_state(self, actor: Actor, now: int) -> tuple[int, int, bool]:
        """The times of an actor, counted from ``now``."""
        clock = self.clocks[actor.number]
        return max(0, clock.since - now), max(0, clock.array_free - now), clock.filled

    def spent_by(self, actor: Actor) -> tuple[int, ...]:
        """What an actor has spent in each way so far, in ticks."""
        spent, number = self.spent, actor.number
        return spent.busy[number], spent.starved[number], spent.blocked[number], spent.stalled[number]

    def spend(self, actor: Actor, gains: tuple[int, ...], times: int, later: int) -> None:
        """Adds ``gains`` in each way so many times, and moves the times of an actor."""
        spent, number, clock = self.spent, actor.number, self.clocks[actor.number]
        for way, gain in zip((spent.busy, spent.starved, spent.blocked, spent.stalled), gains, strict=True):
            way[number] += times * gain
        clock.since += later
        clock.array_free += later
        if gains[0] and clock.intervals:
            launch, start, stop = clock.intervals[-1]
            clock.intervals[-1] = (launch, start, stop + later)

    def core_of(self, event: Event) -> int:
        """The core of the unit, the request or the sender that an event is about."""
        order, number = event[1], event[2]
        if order in OF_ACTORS:
            return self.tokens.actors[number].core
        return number if order == SERVED else number // self.machine.cores

    def replace_event(self, place: int, event: Event) -> None:
        """Puts ``event`` where one of the same actor or thing was."""
        self.events[place] = event
        if event[1] in OF_ACTORS:
            self.pending[event[2]][event[3]] = event

    def _charged(self, instruction: Instruction, number: int) -> Sequence[int]:
        """What the chunks of a phase are charged for, beside the vectors they move."""
        work = self.works[id(instruction)]
        cost = work.cost
        return (work.parts[number], cost.read_port, cost.write_port, cost.ddr_bytes, cost.requests, cost.ring_bytes)

    def _too_long(self, now: int) -> LimitExceeded:
        simulated = self.machine.clock.nanoseconds(now) / 1e6
        return LimitExceeded(
            f"after {MOST_EVENTS} events of launch {self.launch.number} and {simulated:.3f} ms of the model it has "
            "neither ended nor come into a rhythm that could be skipped",
            location=self.program.location,
            remedy="simulate fewer iterations, or units whose times have a common multiple",
        )

    def schedule(self, time: int, order: int, rank: int, payload: object) -> None:
        """Lets an event happen at ``time``."""
        self.sequence = sequence = self.sequence + 1
        event = (time, order, rank, sequence, payload)
        heappush(self.events, event)
        if order in OF_ACTORS:
            self.pending[rank][sequence] = event

    def _wake(self, now: int) -> None:
        woken = self.tokens.woken
        if woken:
            for actor in woken:
                delay = self.queue_latency if actor.wait == "starved" and not actor.at_barrier else 0
                self.schedule(now + delay, ATTEMPT, actor.number, actor)
            woken.clear()

    def account_wait(self, actor: Actor, now: int) -> None:
        """Books the time since the actor's last change of state as waiting."""
        clock, number = self.clocks[actor.number], actor.number
        if now > clock.since:
            if actor.wait == "starved" or actor.cursor.instruction is None:
                self.spent.starved[number] += now - clock.since
            else:
                self.spent.blocked[number] += now - clock.since
            clock.since = now

    def _attempt(self, actor: Actor, now: int) -> None:
        """Lets a free actor start its next chunk if it can."""
        tokens, clock = self.tokens, self.clocks[actor.number]
        if now > clock.since:
            self.account_wait(actor, now)
        phase = actor.phase
        if phase is None:
            if clock.array_free > now and self._must_drain(actor):
                self._drain(actor, now)
                return
            phase = tokens.next_phase(actor)
            if tokens.woken:
                self._wake(now)
            if self.local is not None:
                self.local.moved_on(actor)
            if phase is None:
                return
        work = self.works[id(actor.cursor.instruction)]
        if work.on_network and self.local is not None:
            self.local.disturb(actor.core)
        quanta = tokens.grant(actor, phase, self.chunk)
        if not quanta:
            return
        if tokens.woken:
            self._wake(now)
        self._start(actor, work, phase, quanta, now)

    def _must_drain(self, actor: Actor) -> bool:
        """Whether the matrix unit is at a barrier or at its end, so that its array has to finish first."""
        instruction = actor.cursor.instruction
        return instruction is None or instruction.kind == "barrier"

    def _drain(self, actor: Actor, now: int) -> None:
        clock = self.clocks[actor.number]
        self.spent.busy[actor.number] += clock.array_free - now
        clock.since = clock.array_free
        self.schedule(clock.array_free, ATTEMPT, actor.number, actor)

    def _rejoin(self) -> None:
        """Brings the units that were absent to where those that they mirror are."""
        for mirror in self.mirrors:
            mirror.take_over()
        self.mirrors, self.tokens.absent = [], frozenset()

    def end_launch(self, now: int) -> None:
        """Closes the books of the launch under way, at a barrier or at the end, where every actor is free."""
        self._rejoin()
        for actor in self.tokens.actors:
            self.account_wait(actor, now)
        self.launch.until_end = self.spent.by_actor
        self.launches.append((self.launch, now))

    def _next_launch(self, number: int) -> None:
        """Every actor is at the barrier before launch ``number``."""
        self.end_launch(self.now)
        self._begin_launch(number, self.now)

    def _begin_launch(self, number: int, now: int) -> None:
        self.most_events = self.event_count + MOST_EVENTS
        width = FIRST + len(self.instructions.get(number, ()))
        self.launch = Launch(number, now, [[0] * width for _ in range(self.program.cores)])
        self.map = self.maps[number]
        for server in self.servers:
            server.last, server.writes = -1, None
        memory, clock = self.memory, self.machine.clock
        each = memory.request_time_ns(len(self.map.requesting)) * len(self.map.servers)
        self.request_ticks = each * clock.ghz * clock.ticks_per_cycle
        if self.local is not None:
            self.local.forget()
            self._find_islands(now)

    def _find_islands(self, now: int) -> None:
        """Watches each island of the launch for repetition, or lets it mirror one that does the same."""
        originals: dict[Hashable, tuple[int, ...]] = {}
        kinds, self.mirrors = self.core_kinds[self.launch.number], []
        for cores in self.map.islands:
            original = originals.setdefault(tuple(kinds[core] for core in cores), cores)
            if original is not cores and self.map.networked.isdisjoint(cores):
                mirror = Mirror(self, original, cores)
                if mirror.stands_alike(now):
                    self.mirrors.append(mirror)
                    continue
            island = IslandRepetition(self, cast("LocalRepetition", self.local), self.map, cores)
            for core in cores:
                self.islands[core] = island
        self.tokens.absent = frozenset(number for mirror in self.mirrors for number in mirror.numbers.values())

    # ----------------------------------------------------------------------------------------------------------- chunks

    def _start(self, actor: Actor, work: Work, phase: Phase, quanta: int, now: int) -> None:
        cost, kind, counted = work.cost, work.kind, work.counted
        done, total, ticks = actor.done, phase.quanta, work.parts[actor.phase_number]
        if quanta < total:
            ticks = popped(done + quanta, ticks, total) - popped(done, ticks, total)
        self.launch.cores.add(actor.core)
        if kind == "memory":
            self._request(actor, phase, quanta, cost, ticks, counted, now)
            return
        if kind == "matrix":
            ticks = self._multiply(actor, cost, ticks, done, quanta, total, now)
            end = now + ticks
        elif kind == "plain":
            end = now + ticks
        else:
            end = self._through_ports(actor, cost, done, quanta, total, ticks, now)
        if kind == "send":
            end = self._send(actor, cost, quanta, end, now)
        self._book(actor, counted, now, end, ticks)
        self.schedule(end, FINISH, actor.number, (actor, phase, quanta))

    def _book(self, actor: Actor, counted: int, start: int, end: int, ticks: int) -> None:
        """Books a chunk: ``ticks`` of work, the rest of the time waiting for shared resources."""
        clock = self.clocks[actor.number]
        self.spent.busy[actor.number] += ticks
        self.spent.stalled[actor.number] += end - start - ticks
        clock.since = end
        self.launch.counts[actor.core][counted] += ticks
        intervals = clock.intervals
        if intervals and intervals[-1][0] == actor.launch and start - intervals[-1][2] <= self.pause:
            intervals[-1] = (actor.launch, intervals[-1][1], end)
        elif end > start:
            intervals.append((actor.launch, start, end))

    def _through_ports(self, actor: Actor, cost: Cost, done: int, quanta: int, total: int, ticks: int, now: int) -> int:
        read, write = self.ports[actor.core]
        end = now + ticks
        for port, needed in ((read, cost.read_port), (write, cost.write_port)):
            if needed:
                taken = popped(done + quanta, needed, total) - popped(done, needed, total)
                port.free = max(port.free, now) + taken
                end = max(end, port.free)
        return end

    def _multiply(self, actor: Actor, cost: Cost, ticks: int, done: int, quanta: int, total: int, now: int) -> int:
        """Ticks until the matrix unit takes its next operation; its array may still work for ``slack`` ticks.

        A stationary block is loaded while the array works on the former one; the first rows of a block fill the array.
        """
        clock = self.clocks[actor.number]
        instruction = cast("Instruction", actor.cursor.instruction)
        if instruction.kind != "pe_mac":
            clock.filled = clock.filled and instruction.kind != "pe_load"
            drained = max(0, clock.array_free - now) if instruction.kind in ("pe_emit", "pe_preload") else 0
            return ticks + (drained if not done else 0)
        if not clock.filled:
            ticks += cost.fill
            clock.filled = True
        clock.array_free = max(clock.array_free, now) + ticks
        feed = quanta * self.machine.clock.ticks_per_cycle
        if done + quanta < total:
            return max(feed, min(ticks, clock.array_free - now))
        return max(feed, clock.array_free - now - cost.slack)

    def _send(self, actor: Actor, cost: Cost, quanta: int, ready: int, now: int) -> int:
        """Puts a chunk on the network as the sender reads it; the end of its injection.

        Cut through: each link carries the chunk once, a hop after the one before it, whoever it is for.
        """
        instruction = cast("Instruction", actor.cursor.instruction)
        link = cast("Link", instruction.link)
        net = self.machine.net(link.net)
        hop = net.hop_cycles * self.machine.clock.ticks_per_cycle
        length = quanta * self._link_ticks(net)
        arrivals: dict[tuple[int, int], int] = {}
        injected = ready
        for channel in self.tokens.channels_of(actor, instruction)[1]:
            start, (source, target) = now, channel.place
            for step in net.route(source, target, self.machine.cores):
                if step not in arrivals:
                    start = max(start, self.links.get((net.name, *step), 0))
                    self.links[net.name, *step] = start + length
                    arrivals[step] = start + hop
                start = arrivals[step]
                if step[0] == source:
                    injected = max(injected, start - hop + length)
            arrival = max(start + length, injected + hop)
            self.schedule(arrival, DELIVER, source * self.machine.cores + target, (channel, quanta))
        if arrivals:
            done, total = actor.done, cast("Phase", actor.phase).quanta
            moved = popped(done + quanta, cost.ring_bytes, total) - popped(done, cost.ring_bytes, total)
            self.launch.counts[actor.core][RING] += moved
        return injected

    def _link_ticks(self, net: Net) -> int:
        """Ticks that a vector takes a link."""
        return -(-self.machine.clock.ticks_per_cycle * self.tokens.vector_bytes // net.width)

    # ---------------------------------------------------------------------------------------------------- device memory

    def _request(self, actor: Actor, phase: Phase, quanta: int, cost: Cost, ticks: int, counted: int, now: int) -> None:
        done, total = actor.done, phase.quanta
        amount = popped(done + quanta, cost.ddr_bytes, total) - popped(done, cost.ddr_bytes, total)
        requests = popped(done + quanta, cost.requests, total) - popped(done, cost.requests, total)
        port_total = cost.read_port if cost.ddr_writes else cost.write_port
        port_ticks = popped(done + quanta, port_total, total) - popped(done, port_total, total)
        port = self.ports[actor.core][0 if cost.ddr_writes else 1]
        server = self.servers[self.server_of(actor.core)]
        server.pending[actor.number] = Request(
            actor, phase, quanta, now, amount, max(1, requests), cost.ddr_writes, ticks, port, port_ticks, counted
        )
        insort(server.order, actor.number)
        self.launch.counts[actor.core][WRITTEN if cost.ddr_writes else READ] += amount
        if not server.busy:
            self._serve(server, now)

    def server_of(self, core: int) -> int:
        """The number of the server that ``core`` uses."""
        return core * len(self.servers) // self.machine.cores

    def _serve(self, server: Server, now: int) -> None:
        """Starts the next burst: that of the requester after the one served last, in order of actors."""
        number = server.order.pop(bisect_right(server.order, server.last) % len(server.order))
        request = server.pending.pop(number)
        floor = ceil(request.requests * self.request_ticks)
        service = max(-int(-request.bytes * self.ticks_per_byte // 1), floor)
        if server.writes is not None and server.writes != request.writes:
            service += self.turnaround
        server.last, server.writes, server.busy = number, request.writes, True
        if self.local is not None and request.port_ticks:
            self.local.burst(request.actor.core, 0 if request.writes else 1)
        served = now + service
        request.port.free = max(request.port.free, now) + request.port_ticks
        end = max(served + self.latency, now + request.unit_ticks, request.port.free)
        end = self._release(request, now, end)
        self._book(request.actor, request.counted, request.issued, end, end - now)
        self.schedule(end, FINISH, number, (request.actor, request.phase, request.quanta))
        self.schedule(served, SERVED, request.actor.core, server)

    def _release(self, request: Request, now: int, end: int) -> int:
        """When the unit may go on: at the end of its descriptor, or while bursts under way leave room for another."""
        window = self.outstanding[request.actor.number]
        if window <= 1:
            return end
        clock = self.clocks[request.actor.number]
        clock.in_flight = sorted([*(each for each in clock.in_flight if each > now), end])
        if request.actor.done + request.quanta == request.phase.quanta:
            return clock.in_flight[-1]
        return now if len(clock.in_flight) < window else clock.in_flight[-window]

    def _served(self, server: Server, now: int) -> None:
        server.busy = False
        if server.order:
            self._serve(server, now)


def _kind(instruction: Instruction, cost: Cost) -> Kind:
    if cost.ddr_bytes:
        return "memory"
    if instruction.link is not None and instruction.link.targets:
        return "send"
    if instruction.kind.startswith("pe_"):
        return "matrix"
    if instruction.link is not None:
        return "receive"
    return "port" if cost.read_port or cost.write_port else "plain"
