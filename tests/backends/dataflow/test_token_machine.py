"""Verdicts of the token machine: right on networks whose answer is known, independent of the order of the actors."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f16, f32

from ktir.backends.dataflow.deadlock import run_to_verdict
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.token_machine import TokenMachine, popped, pushed
from ktir.dialect import dfp
from ktir.machine import Machine, load
from tests.backends.dataflow.programs import Program, binary, matmul_program, pointwise_program
from tests.settings import examples

SPYRE = load("spyre")


def interleaved(chunk: int, chunks: int, depths: tuple[int, int]) -> Program:
    """Two inputs of a vector operation, streamed in turns of ``chunk`` vectors."""
    p = Program()
    source, sink = p.lx(0, 1 << 16, "x"), p.lx(1 << 16, 1 << 16, "y")
    qx, qy = p.queue("lx_ld", "sfu", depths[0], "qx"), p.queue("lx_ld", "sfu", depths[1], "qy")
    out = p.queue("sfu", "lx_st", 1)
    elements = chunk * 64
    with p.unit("lx_ld") as u, u.loop(chunks):
        u.stream(source, 0, qx, [elements], [2])
        u.stream(source, 0, qy, [elements], [2])
    with p.unit("sfu") as u:
        u.map([qx, qy], out, [elements * chunks], [f16, f16], binary(arith.AddfOp))
    with p.unit("lx_st") as u:
        u.drain(out, sink, 0, [elements * chunks], [2])
    return p


@settings(max_examples=examples(600), deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 16), st.integers(1, 16))
def test_turns_longer_than_the_first_queue_deadlock(chunk: int, chunks: int, first: int, second: int) -> None:
    verdict = run_to_verdict(compile_program(interleaved(chunk, chunks, (first, second)).module, SPYRE))
    assert (verdict is not None) == (chunk > first)


def run_in_random_order(machine: TokenMachine, choice: random.Random) -> bool:
    """Whether the program reaches its end when actors take random steps of random size."""
    ready = list(machine.actors)
    while ready:
        actor = ready.pop(choice.randrange(len(ready)))
        phase = machine.next_phase(actor)
        if phase is not None:
            instruction = actor.cursor.instruction
            quanta = machine.grant(actor, phase, choice.randint(1, 5))
            if quanta:
                if instruction is not None and instruction.link is not None:
                    for channel in machine.channels_of(actor, instruction)[1]:
                        machine.fill(channel, quanta)
                machine.complete(actor, phase, quanta)
                ready.append(actor)
        ready.extend(machine.woken)
        machine.woken.clear()
    return not machine.unfinished()


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(1, 20), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**16))
def test_the_verdict_does_not_depend_on_the_order(depth: int, slots: int, cores: int, seed: int) -> None:
    program = compile_program(pointwise_program(2, depth=depth, slots=slots, cores=cores).module, SPYRE)
    verdict = run_to_verdict(program)
    assert run_in_random_order(TokenMachine(program), random.Random(seed)) == (verdict is None)


@pytest.mark.parametrize("depth", [1, 3, 16])
def test_matmul_runs_at_any_depth(depth: int) -> None:
    program = compile_program(matmul_program(32, 128, 64, slots=1).module, SPYRE)
    assert run_to_verdict(program, [depth] * len(program.queues)) is None


@settings(max_examples=examples(1000))
@given(st.integers(1, 50), st.integers(1, 50))
def test_uneven_streams_take_before_they_give_and_end_even(vectors: int, quanta: int) -> None:
    taken = [popped(done, vectors, quanta) for done in range(quanta + 1)]
    given_ = [pushed(done, vectors, quanta) for done in range(quanta + 1)]
    assert taken[0] == given_[0] == 0 and taken[-1] == given_[-1] == vectors
    assert taken == sorted(taken) and given_ == sorted(given_)
    assert all(back <= front for back, front in zip(given_, taken, strict=True))


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from([1, 8, 64]), st.integers(1, 4), st.booleans())
def test_reductions_of_any_shape_run_with_queues_of_one_vector(outer, length, inner, depth, start) -> None:
    p = Program()
    source, sink = p.lx(0, 1 << 16, "x"), p.lx(1 << 16, 1 << 16, "y")
    q, init = p.queue("lx_ld", "sfu", depth, "q"), p.queue("lx_ld", "sfu", depth, "init")
    out = p.queue("sfu", "lx_st", depth)
    elements = outer * length * inner
    with p.unit("lx_ld") as u:
        if start:
            u.stream(source, 0, init, [inner], [2])
        u.stream(source, 0, q, [elements], [2])
    with p.unit("sfu") as u:
        groups = 1 if start else outer
        sizes = (groups, elements // (groups * inner), inner)
        u.reduce(q, out, sizes, [f16, f16], binary(arith.AddfOp), initial=init if start else None)
    with p.unit("lx_st") as u:
        u.drain(out, sink, 0, [groups * inner], [2])
    assert run_to_verdict(compile_program(p.module, SPYRE)) is None


def test_a_widening_map_moves_two_vectors_for_one(machine: Machine = SPYRE) -> None:
    p = Program()
    source, sink = p.lx(0, 1 << 16, "x"), p.lx(1 << 16, 1 << 16, "y")
    q, out = p.queue("lx_ld", "sfu", 1), p.queue("sfu", "lx_st", 2)
    with p.unit("lx_ld") as u:
        u.stream(source, 0, q, [100], [2])
    with p.unit("sfu") as u:
        u.map([q], out, [100], [f16], lambda b, x: b.insert(arith.ExtFOp(x, f32)).result)
    with p.unit("lx_st") as u:
        u.drain(out, sink, 0, [100], [4], f32)
    program = compile_program(p.module, machine)
    assert run_to_verdict(program) is None
    assert run_to_verdict(program, [1, 1]) is not None
    assert p.find(dfp.SfuMapOp).name == "dfp.sfu_map"
