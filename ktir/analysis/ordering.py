"""Which accesses of different cores in one launch come one after the other: what exchanges between tiles order.

What a core does before it produces comes before what a consumer does after it took the contribution, and so on through
further exchanges. Nothing else orders the cores of a launch. An exchange counts where all cores run it for sure and its
sets can be listed. One inside a loop says nothing about two accesses in the same loop, whose iterations it separates in
one direction only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ktir.analysis.accesses import Access, Exchange, Launch
from ktir.analysis.inter_tile import ENUMERATION_LIMIT, dependencies, groups
from ktir.analysis.ranges import Integers, Truths
from ktir.maths.sets import Enumeration

MOST_CORES = 256
"""Grids of more tiles are not looked at: a table of pairs of cores is kept for each access."""

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Signal:
    """An exchange that counts: ``heard[p, c]`` tells whether consumer c waits for producer p."""

    exchange: Exchange
    heard: Truths


class Ordering:
    """What is ordered in one launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._known: dict[tuple[int, int], Integers] = {}

    @cached_property
    def signals(self) -> list[Signal]:
        """The exchanges that count, in order of the text."""
        if self.launch.cores > MOST_CORES:
            return []
        found = [
            Signal(exchange, heard) for exchange in self.launch.exchanges if (heard := self.heard(exchange)) is not None
        ]
        return sorted(found, key=lambda signal: signal.exchange.taken)

    def heard(self, exchange: Exchange) -> Truths | None:
        """Who waits for whom; None where not all cores surely run the exchange, or a set cannot be listed."""
        cores = self.launch.cores
        if not exchange.runs_everywhere:
            return None
        heard = np.zeros((cores, cores), np.bool_)
        enumeration = Enumeration(ENUMERATION_LIMIT)
        for group, producers, consumers in groups(exchange.taker, enumeration):
            named = dependencies(exchange.taker, group, consumers, enumeration) or dict.fromkeys(consumers, producers)
            for consumer, sources in named.items():
                if consumer < cores and sources is not None:
                    heard[[p for p in sources if p < cores and p in producers], consumer] = True
        return heard

    @property
    def is_settled(self) -> bool:
        """Whether every exchange of the launch counts for all accesses, so that the rest is not ordered."""
        plain = all(not signal.exchange.loops for signal in self.signals)
        return plain and len(self.signals) == len(self.launch.exchanges)

    def unordered(self, first: Access, second: Access) -> Truths | None:
        """For which cores p, c the first access by p and the second by c are not ordered, as ``[p, c]``; None: for all
        different ones."""
        if not self.signals:
            return None
        before = self.known_from(first) < second.order
        after = self.known_from(second) < first.order
        return ~(before | after.T) & ~np.eye(self.launch.cores, dtype=np.bool_)

    def known_from(self, access: Access) -> Integers:
        """``[p, c]``: from which place in the text on core c comes after what core p did in an access."""
        key = (access.order, id(access.loops))
        if key not in self._known:
            cores = self.launch.cores
            known = np.full((cores, cores), NEVER)
            np.fill_diagonal(known, access.order)
            for signal in self.signals:
                exchange = signal.exchange
                if not any(loop in access.loops for loop in exchange.loops):
                    told = (known < exchange.produced).astype(np.float32) @ signal.heard.astype(np.float32) > 0
                    known = np.where(told, np.minimum(known, exchange.taken), known)
            self._known[key] = known
        return self._known[key]
