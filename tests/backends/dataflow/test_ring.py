"""Cores that talk to each other: messages to one and to several, chains that add, on data and in time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f16, f32

from ktir.backends.dataflow.functional import execute
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.verify import verify
from ktir.dialect import dfp
from ktir.machine import load
from tests.backends.dataflow.programs import Memory, Program
from tests.settings import examples

SPYRE = load("spyre")
ELEMENTS = 256
SIZE = ELEMENTS * 2


def exchanged(cores: int, talk) -> Program:
    """Each core loads its part of x, talks, and stores its part of y."""
    p = Program(cores)
    x, y = p.ddr(0, cores * SIZE, "x"), p.ddr(cores * SIZE, cores * SIZE, "y", writes="once")
    mine, theirs = p.lx(0, SIZE, "mine"), p.lx(SIZE, SIZE, "theirs")
    talking = talk(p, mine, theirs)
    own = [core * SIZE for core in range(cores)]
    for name in dict.fromkeys(("hbm_ld", *talking, "hbm_st")):
        with p.unit(name) as u:
            if name == "hbm_ld":
                u.move(x, u.table(*own), mine, 0, ELEMENTS)
            p.barrier(u, 1)
            if name in talking:
                talking[name](u)
            p.barrier(u, 2)
            if name == "hbm_st":
                u.move(theirs, 0, y, u.table(*own), ELEMENTS)
    return p


def run(p: Program, cores: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    data = np.random.default_rng(seed).standard_normal((cores, ELEMENTS)).astype(np.float16)
    memory = Memory.of(2 * data.nbytes, (0, data))
    assert verify(p.module, SPYRE) == []
    execute(p.module, SPYRE, memory, unit_order_seed=seed, initialised=[(0, data.nbytes)])
    return data, memory.read(data.nbytes, np.float16, data.shape)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 32), st.data())
def test_a_message_to_several_cores_is_the_same_everywhere(cores: int, data: st.DataObject) -> None:
    sender = data.draw(st.integers(0, cores - 1))
    others = [core for core in range(cores) if core != sender]

    def talk(p, mine, theirs):
        def send(u):
            with u.loop(u.table(*(int(core == sender) for core in range(cores)))):
                u.multicast(mine, 0, others, [ELEMENTS], [2])

        def receive(u):
            with u.loop(u.table(*(int(core != sender) for core in range(cores)))):
                u.receive(theirs, 0, sender, [ELEMENTS], [2])

        def keep(u):
            pass

        return {"ring_tx": send, "ring_rx": receive, "lx_ld": keep}

    p = exchanged(cores, talk)
    assert {each.code for each in verify(p.module, SPYRE)} == {"UnwrittenRead"}, "the sender got nothing to store"
    for op in list(p.op.walk()):
        if isinstance(op, dfp.UnitOp) and op.unit.data == "hbm_st":
            op.properties["cores"] = dfp.integers(others)
    p.find(dfp.BufferOp, 1).properties.pop("writes")
    given_, found = run(p, cores, 1)
    assert all(np.array_equal(found[core], given_[sender]) for core in others)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 32), st.sampled_from([f16, f32]), st.integers(0, 2**16), st.integers(1, 31))
def test_a_chain_adds_in_f32_and_rounds_once(cores: int, element, seed: int, stride: int) -> None:
    width = 2 if element == f16 else 4
    count = SIZE // width
    order = sorted(range(cores), key=lambda core: (core * stride) % 37)
    previous = [order[order.index(core) - 1] if order.index(core) else -1 for core in range(cores)]
    following = [order[order.index(core) + 1] if core != order[-1] else -1 for core in range(cores)]

    def talk(p, mine, theirs):
        return {
            "ring_sum": lambda u: u.chain(
                mine, 0, theirs, 0, u.table(*previous), u.table(*following), [count], [width], [width], element=element
            )
        }

    p = exchanged(cores, talk)
    for op in p.op.walk():
        if isinstance(op, dfp.UnitOp) and op.unit.data == "hbm_st":
            op.properties["cores"] = dfp.integers([order[-1]])
    p.find(dfp.BufferOp, 1).properties.pop("writes")
    given_, found = run(p, cores, seed)
    dtype = np.float16 if element == f16 else np.float32
    values = given_.view(dtype).astype(np.float32)
    total = values[order[0]]
    with np.errstate(all="ignore"):
        for core in order[1:]:
            total = total + values[core]
        assert np.array_equal(found.view(dtype)[order[-1]], total.astype(dtype), equal_nan=True)


def one_to_many(cores: list[int], *, multicast: bool, vectors: int = 256) -> Program:
    p = Program(32)
    source, sink = p.lx(0, vectors * 128, "x"), p.lx(vectors * 128, vectors * 128, "y")
    with p.unit("ring_tx", [0]) as u:
        if multicast:
            u.multicast(source, 0, cores, [vectors * 64], [2])
        else:
            for core in cores:
                u.send(source, 0, core, [vectors * 64], [2])
    with p.unit("ring_rx", cores) as u:
        u.receive(sink, 0, 0, [vectors * 64], [2])
    return p


@settings(max_examples=examples(60), deadline=None)
@given(st.sets(st.integers(1, 31), min_size=1, max_size=8))
def test_p16_multicast_is_never_slower_than_unicasts_on_a_free_ring(cores: set[int]) -> None:
    one = simulate(one_to_many(sorted(cores), multicast=True).module, SPYRE)
    many = simulate(one_to_many(sorted(cores), multicast=False).module, SPYRE)
    assert one.total_ns <= many.total_ns
    assert one.ring * len(cores) == many.ring


def test_a_chain_takes_its_hops() -> None:
    """The last core ends after all hops; a chain in ring order is faster than one that jumps to and fro."""

    def time(order: list[int]) -> float:
        previous = {core: order[place - 1] if place else -1 for place, core in enumerate(order)}
        following = {core: order[place + 1] if place + 1 < len(order) else -1 for place, core in enumerate(order)}
        p = Program(32)
        source, sink = p.lx(0, 8192, "x"), p.lx(8192, 8192, "y")
        with p.unit("ring_sum", sorted(order)) as u:
            before, after = (u.table(*(way.get(core, -1) for core in range(32))) for way in (previous, following))
            u.chain(source, 0, sink, 0, before, after, [4096], [2], [2])
        return simulate(p.module, SPYRE).total_ns

    near, far = time([0, 1, 2, 3]), time([0, 16, 1, 17])
    hop = SPYRE.net("sum_ring").hop_cycles / SPYRE.clock.ghz
    assert near >= 3 * hop and far > near
