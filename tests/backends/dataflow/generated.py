"""Dataflow programs made at random, correct by construction: pipelines of all units with loop nests of their own.

A *shape* fixes everything but the number of outer iterations, so that the same program can be had for any count. Each
core loads tiles, may pass them on around the ring, streams them through the vector unit, and stores the results. Units
walk the same tiles by different nests: one flat loop, two nested ones, or two loops one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f16
from xdsl.ir import SSAValue

from ktir.dialect import dfp
from tests.backends.dataflow.programs import Program, Unit, binary

TILE = 64
"""Elements of a vector."""


@dataclass(frozen=True)
class Shape:
    """``inner`` tiles for each outer iteration, of ``vectors`` vectors; ``slots`` of the rings of tiles, ``depth`` of
    the queues. ``nests`` says for each unit how it walks the tiles. ``passes``: tiles go around the ring. ``extra``:
    conditions under which more is loaded. ``launches``: how often all is done."""

    cores: int
    inner: int
    vectors: int
    slots: int
    depth: int
    nests: dict[str, str]
    passes: bool
    extra: tuple[str, ...]
    corelets: int
    launches: int
    op: type


UNITS = ("hbm_ld", "lx_ld", "sfu", "lx_st", "hbm_st", "ring_tx", "ring_rx")


def random_shape(seed: int, *, most_cores: int = 4) -> Shape:
    """A shape, the same for the same seed."""
    choose = random.Random(seed)
    return Shape(
        cores=choose.choice([1, 2, most_cores]),
        inner=choose.choice([1, 2, 3]),
        vectors=choose.choice([1, 4, 16]),
        slots=choose.choice([1, 2, 3]),
        depth=choose.choice([1, 3, 16]),
        nests={unit: choose.choice(["flat", "nested", "turned"]) for unit in UNITS},
        passes=choose.random() < 0.4,
        extra=tuple(kind for kind in ("first", "last", "even", "third", "corner") if choose.random() < 0.2),
        corelets=choose.choice([1, 1, 2]),
        launches=choose.choice([1, 1, 2]),
        op=choose.choice([arith.AddfOp, arith.DivfOp]),
    )


def build(shape: Shape, count: int) -> Program:
    """The program of a shape with ``count`` outer iterations."""
    return _Builder(shape, count).program()


class _Builder:
    def __init__(self, shape: Shape, count: int) -> None:
        self.shape, self.count, self.p = shape, count, Program(shape.cores)
        size = shape.vectors * 128
        self.size, self.elements = size, shape.vectors * TILE
        self.source = self.p.ddr(0, 1 << 20, "x")
        self.sink = self.p.ddr(1 << 20, 1 << 20, "z")
        self.spare = self.p.lx(1 << 19, 4096, "spare")
        step = shape.slots * size
        consumer = ["ring_tx"] if shape.passes else ["lx_ld"]
        self.loaded = [
            self.p.lx(corelet * step, size, f"in{corelet}", slots=shape.slots, producer="hbm_ld", consumers=consumer)
            for corelet in range(1 if shape.passes else shape.corelets)
        ]
        self.arrived = [
            self.p.lx((2 + c) * step, size, f"ring{c}", slots=shape.slots, producer="ring_rx", consumers=["lx_ld"])
            for c in range(1 if shape.passes else 0)
        ]
        self.corelets = range(1 if shape.passes else shape.corelets)
        self.made = [
            self.p.lx((4 + c) * step, size, f"out{c}", slots=shape.slots, producer="lx_st", consumers=["hbm_st"])
            for c in self.corelets
        ]
        self.feed = self.p.queue("lx_ld", "sfu", shape.depth, "q")
        self.drawn = self.p.queue("sfu", "lx_st", shape.depth, "o")

    def program(self) -> Program:
        steps: dict[str, Callable[[Unit, int], None]] = {
            "hbm_ld": self._load,
            "lx_ld": self._stream,
            "sfu": self._work,
            "lx_st": self._drain,
            "hbm_st": self._store,
        }
        if self.shape.passes:
            steps |= {"ring_tx": self._send, "ring_rx": self._receive}
        for name, step in steps.items():
            for corelet in self.corelets if name in ("lx_ld", "sfu", "lx_st") else (0,):
                with self.p.unit(name, corelet=corelet) as u:
                    for launch in range(self.shape.launches):
                        if launch:
                            self.p.barrier(u, launch)
                        self._walk(u, name, lambda step=step, u=u, corelet=corelet: step(u, corelet))
        return self.p

    def _walk(self, u: Unit, name: str, step: Callable[[], None]) -> None:
        """All tiles, by the unit's own nest; the extra loads need the index of the outer loop."""
        inner, nest = self.shape.inner, self.shape.nests[name]
        if name == "hbm_ld" and self.shape.extra:
            nest = "nested"
        if nest == "flat":
            with u.loop(self.count * inner):
                step()
        elif nest == "nested":
            with u.loop(self.count) as i, u.loop(inner) as j:
                step()
                if name == "hbm_ld":
                    for kind in self.shape.extra:
                        self._extra(u, kind, i, j)
        else:
            with u.loop(inner):
                with u.loop(self.count // 2):
                    step()
                with u.loop(self.count - self.count // 2):
                    step()

    def _extra(self, u: Unit, kind: str, i: SSAValue, j: SSAValue) -> None:
        conditions = {
            "first": lambda i, j: i.eq(0),
            "last": lambda i, j: i.ge(self.count - 1),
            "even": lambda i, j: (i % 2).eq(0),
            "third": lambda i, j: ((i + j) % 3).eq(1),
            "corner": lambda i, j: (i * 2 - j).ge(self.count),
        }
        with u.when(conditions[kind], i, j):
            u.move(self.source, 0, self.spare, 0, 2048)

    def _load(self, u: Unit, corelet: int) -> None:
        for tile in self.loaded:
            u.add(dfp.ReserveOp(tile))
            u.move(
                self.source, u.table(*(core * self.size for core in range(self.shape.cores))), tile, 0, self.elements
            )
            u.add(dfp.CommitOp(tile))

    def _send(self, u: Unit, corelet: int) -> None:
        cores = self.shape.cores
        u.add(dfp.AcquireOp(self.loaded[0]))
        u.send(self.loaded[0], 0, u.table(*((core + 1) % cores for core in range(cores))), [self.elements], [2])
        u.add(dfp.ReleaseOp(self.loaded[0]))

    def _receive(self, u: Unit, corelet: int) -> None:
        cores = self.shape.cores
        u.add(dfp.ReserveOp(self.arrived[0]))
        u.receive(self.arrived[0], 0, u.table(*((core - 1) % cores for core in range(cores))), [self.elements], [2])
        u.add(dfp.CommitOp(self.arrived[0]))

    def _stream(self, u: Unit, corelet: int) -> None:
        tile = (self.arrived or self.loaded)[corelet]
        u.add(dfp.AcquireOp(tile))
        u.stream(tile, 0, self.feed, [self.elements], [2])
        u.add(dfp.ReleaseOp(tile))

    def _work(self, u: Unit, corelet: int) -> None:
        u.map([self.feed], self.drawn, [self.elements], [f16], lambda b, x: binary(self.shape.op)(b, x, x))

    def _drain(self, u: Unit, corelet: int) -> None:
        u.add(dfp.ReserveOp(self.made[corelet]))
        u.drain(self.drawn, self.made[corelet], 0, [self.elements], [2])
        u.add(dfp.CommitOp(self.made[corelet]))

    def _store(self, u: Unit, corelet: int) -> None:
        for number, tile in enumerate(self.made):
            place = u.table(*((core * len(self.made) + number) * self.size for core in range(self.shape.cores)))
            u.add(dfp.AcquireOp(tile))
            u.move(tile, 0, self.sink, place, self.elements)
            u.add(dfp.ReleaseOp(tile))
