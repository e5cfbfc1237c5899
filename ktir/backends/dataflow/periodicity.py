"""After how much of an operation, and after how many iterations of a loop, a program goes on in the same way.

Two questions that skipping asks of the code alone. An operation is the same to others after a *grain*: the quanta in
which everything it moves, or is charged for, comes out even. An iteration is like an earlier one unless a condition or
the number of a core depends on the index of the loop (an *influence*); a remainder makes it periodic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm
from typing import cast

from ktir.backends.dataflow.expression import Expression, at
from ktir.backends.dataflow.iteration_space import Condition
from ktir.backends.dataflow.token_machine import Actor, Place, TokenMachine
from ktir.backends.dataflow.unit_program import Branch, Instruction, LoopStart, UnitCode

Amounts = Callable[[Instruction, int], Sequence[int]]
"""What else the quanta of a phase of an instruction are charged for, and have to divide evenly."""


class Periodicity:
    """Grains and influences of the codes of ``machine``, whose actors are granted at most ``most`` quanta at once."""

    def __init__(self, machine: TokenMachine, most: int, amounts: Amounts = lambda instruction, phase: ()) -> None:
        self.most, self.amounts = most, amounts
        self._influences = {code.number: _influences(code) for code in machine.program.units}
        self._uniform: dict[int, dict[int, bool]] = {code.number: {} for code in machine.program.units}
        self._grains: dict[tuple[int, int], int] = {}
        self._residues: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}

    def grain(self, actor: Actor, instruction: Instruction) -> int:
        """The quanta after which everything that the phase of ``actor`` moves comes out even."""
        key = (id(instruction), actor.phase_number)
        if key not in self._grains:
            phase = actor.phases[actor.phase_number]
            self._grains[key] = phase.grain(*self.amounts(instruction, actor.phase_number))
        return self._grains[key]

    def residues(self, actor: Actor, instruction: Instruction) -> tuple[tuple[int, int], ...]:
        """Depths of the loops around an instruction whose index matters only up to a multiple, with the modulus."""
        key = (id(instruction), actor.core)
        if key not in self._residues:
            influences = self._influences[actor.code.number]
            moduli = [influences[loop].modulus(actor.core) for loop in instruction.loops]
            self._residues[key] = tuple((depth, modulus) for depth, modulus in enumerate(moduli) if modulus > 1)
        return self._residues[key]

    def uniform(self, actor: Actor, component: int) -> bool:
        """Whether ``component`` of the place of ``actor`` goes on in the same way whatever it is, and on every core."""
        instruction = actor.cursor.instruction
        assert instruction is not None
        if component == instruction.depth:
            return True
        loop = instruction.loops[component]
        if loop not in self._uniform[actor.code.number]:
            self._uniform[actor.code.number][loop] = _is_uniform(actor.code, loop)
        return self._uniform[actor.code.number][loop]

    def room(self, actor: Actor, component: int, before: int, after: int) -> int:
        """How often ``actor`` may go from ``before`` to ``after`` again, in a loop or, past those, in its operation."""
        instruction, stride = actor.cursor.instruction, after - before
        assert instruction is not None and stride > 0
        if component == instruction.depth:
            assert actor.phase is not None
            return (actor.phase.quanta - self.most - after) // stride
        influence = self._influences[actor.code.number][instruction.loops[component]]
        return influence.room(actor, before, stride, (actor.cursor.limits[component] - 1 - after) // stride)


@dataclass(frozen=True, slots=True)
class _Influence:
    """What depends on the index of one loop, at ``depth``, besides addresses: conditions, and numbers of cores.

    Each comes with the counts of the loops around it.
    """

    depth: int
    conditions: tuple[tuple[Condition, Instruction], ...]
    peers: tuple[Expression, ...]

    def modulus(self, core: int) -> int:
        """The iterations after which everything that is periodic in the index repeats."""
        values = (*(condition.value for condition, _ in self.conditions), *self.peers)
        laws = [value.law(core, self.depth) for value in values]
        return lcm(*(law.period for law in laws if not law.shift))

    def room(self, actor: Actor, first: int, stride: int, most: int) -> int:
        """How often, at most ``most`` times, the index may go on by ``stride`` with everything as from ``first`` on."""
        core = actor.core
        if any(peer.law(core, self.depth).shift for peer in self.peers):
            return 0
        for condition, instruction in self.conditions:
            if condition.value.law(core, self.depth).shift:
                most = self._room(condition, instruction, actor, first, stride, most)
        return most

    def _room(
        self, condition: Condition, instruction: Instruction, actor: Actor, first: int, stride: int, most: int
    ) -> int:
        """The most periods over which a condition is met always or never, by halving."""
        outer = actor.cursor.indices[: self.depth]
        inner = [max(0, at(count, actor.core) - 1) for count in instruction.counts[self.depth + 1 :]]
        low = [*outer, first, *(0 for _ in inner)]

        def same(times: int) -> bool:
            high = [*outer, first + (times + 1) * stride, *inner]
            return condition.decided(*condition.value.interval(actor.core, low, high)) is not None

        least = 0
        while least < most:
            middle = (least + most + 1) // 2
            if same(middle):
                least = middle
            else:
                most = middle - 1
        return least


def step(before: Place, after: Place) -> tuple[int, int] | None:
    """The component in which an actor went on from one place to the other, and how far; None if not in one alone."""
    component = next((number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]), -1)
    if component < 0 or before[component + 1 :] != after[component + 1 :] or after[component] < before[component]:
        return None
    return component, after[component] - before[component]


def _is_uniform(code: UnitCode, loop: int) -> bool:
    """Whether the body of the loop at place ``loop`` has neither branches nor counts that differ from core to core."""
    body = code.nodes[loop + 1 : cast("LoopStart", code.nodes[loop]).end]
    return not any(
        isinstance(each, Branch) or (isinstance(each, LoopStart) and not isinstance(each.count, int)) for each in body
    )


def _influences(code: UnitCode) -> dict[int, _Influence]:
    """By the place of each loop of ``code``, what depends on its index."""
    conditions: dict[int, list[tuple[Condition, Instruction]]] = {}
    peers: dict[int, list[Expression]] = {}
    depths: dict[int, int] = {}
    for instruction in code.instructions:
        for depth, loop in enumerate(instruction.loops):
            depths[loop] = depth
            conditions.setdefault(loop, []).extend(
                (condition, instruction) for condition in instruction.conditions if depth in condition.value.depths
            )
            link = instruction.link
            peers.setdefault(loop, []).extend(peer for peer in link.peers if depth in peer.depths) if link else None
    return {
        loop: _Influence(depth, tuple(conditions[loop]), tuple(peers.get(loop, ()))) for loop, depth in depths.items()
    }
