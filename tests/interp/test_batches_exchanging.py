"""Loops whose cores exchange values give the same when their iterations run together: numbers, faults and warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.dialect.text.parser import parse_module
from ktir.errors import KtirError
from ktir.interp import batches
from ktir.interp.executor import Program
from tests.settings import examples

ROWS, CORES = 64, 4
TILE = "affine_set<(d0, d1) : (d0 >= 0, -d0 >= 0, d1 >= 0, -d1 + 3 >= 0)>"
GROUPS = "affine_set<(g) : (g >= 0, -g + {last} >= 0)>"

KERNEL = """
#group = affine_set<(i)[g] : (i - {width}*g >= 0, -i + {width}*g + {width} - 1 >= 0)>
func.func @k(%x_ptr: index) attributes {{grid = [4]}} {{
  %core = ktdp.get_compute_tile_id : index
  %x = ktdp.construct_memory_view %x_ptr, sizes: [64, 4], strides: [4, 1] {{
    coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 63 >= 0, d1 >= 0, -d1 + 3 >= 0)>,
    memory_space = #ktdp.memory_space<global> }} : memref<64x4xf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = arith.constant {trips} : index
  %none = arith.constant dense<0.0> : tensor<1x4xf16>
  scf.for %i = %c0 to %trips step %c1 {{
    {body}
    scf.yield
  }}
  {after}
  func.return
}}
"""
LOAD = """
    %row{n} = affine.apply affine_map<(d0, d1) -> (d0 * {0} + d1 * {1} + {2})>({i}, %core)
    %tile{n} = ktdp.construct_access_tile %x[%row{n}, %c0] {{ access_tile_set = {tile},
      access_tile_order = affine_map<(d0, d1) -> (d0, d1)> }} : memref<64x4xf16> -> !ktdp.access_tile<1x4xindex>
    %value{n} = ktdp.load %tile{n} : !ktdp.access_tile<1x4xindex> -> tensor<1x4xf16>
"""
STORE = """
    %row{n} = affine.apply affine_map<(d0, d1) -> (d0 * {0} + d1 * {1} + {2})>({i}, %core)
    %tile{n} = ktdp.construct_access_tile %x[%row{n}, %c0] {{ access_tile_set = {tile},
      access_tile_order = affine_map<(d0, d1) -> (d0, d1)> }} : memref<64x4xf16> -> !ktdp.access_tile<1x4xindex>
    ktdp.store %value{source}, %tile{n} : tensor<1x4xf16>, !ktdp.access_tile<1x4xindex>
"""
EXCHANGE = """
    %future{n} = ktdp.inter_tile_produce producer_tiles_per_group = #group -> <(tensor<1x4xf16>), groups = {groups}> {{
      ^bb0(%g{n}: index):
        ktdp.yield_partial %value{source} : tensor<1x4xf16>
    }}
    %value{n} = ktdp.inter_tile_reduce(%future{n}) consumer_tiles_per_group = #group,
      identity(%none : tensor<1x4xf16>) : <(tensor<1x4xf16>), groups = {groups}> -> tensor<1x4xf16> {{
      ^bb0(%a{n}: tensor<1x4xf16>, %b{n}: tensor<1x4xf16>):
        %sum{n} = arith.addf %a{n}, %b{n} : tensor<1x4xf16>
        ktdp.yield_reduced %sum{n} : tensor<1x4xf16>
    }}
"""


@st.composite
def kernels(draw: st.DrawFn) -> str:
    width, trips = draw(st.sampled_from([(1, 4), (2, 6), (4, 5)]))
    groups = GROUPS.format(last=CORES // width - 1)
    own_rows = st.sampled_from([(4, 1, 0), (4, 1, 24), (0, 1, 48), (0, 1, 52)])
    place = st.one_of(own_rows, own_rows, own_rows, st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 4)))

    def statements(kinds: list[str], first: int, counter: str) -> str:
        text, known = "", first - 1
        for number, kind in enumerate(kinds, first):
            text += {"load": LOAD, "store": STORE, "exchange": EXCHANGE}[kind].format(
                *draw(place), n=number, i=counter, tile=TILE, groups=groups, source=known
            )
            known = known if kind == "store" else number
        return text

    kind = st.sampled_from(["load", "store", "exchange"])
    inside = [
        "load",
        *draw(st.lists(kind, min_size=1, max_size=4)),
        "exchange",
        *draw(st.lists(kind, max_size=2)),
        "store",
    ]
    outside = draw(st.sampled_from([[], ["load", "store"], ["load", "exchange", "store"]]))
    return KERNEL.format(
        width=width,
        trips=trips,
        body=statements(inside, 1, "%i"),
        after=statements(outside, 20, "%c1"),
    )


def outcome(text: str, x: Any, *, checks: bool) -> Any:
    """The bits that come out and the warnings, or the fault."""
    try:
        done = Program(parse_module(text)).run("k", {"x_ptr": x}, checks=checks)
    except KtirError as fault:
        return str(fault)
    return done.outputs["x_ptr"].tobytes(), done.statistics, [str(each) for each in done.diagnostics]


@settings(max_examples=examples(200), deadline=None)
@given(kernels())
def test_iterations_that_exchange_give_the_same_together_and_one_by_one(text: str) -> None:
    x = np.random.default_rng(5).standard_normal((ROWS, 4)).astype(np.float16)
    together = [outcome(text, x, checks=checks) for checks in (False, True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "ITERATIONS_AT_MOST", 1)
        apart = [outcome(text, x, checks=checks) for checks in (False, True)]
    assert together == apart
    assert isinstance(apart[1], str) or apart[0][:2] == apart[1][:2]


def test_a_loop_that_exchanges_runs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of its own for each core and iteration: nothing stands against it."""
    body = (
        LOAD.format(4, 1, 0, n=1, i="%i", tile=TILE)
        + EXCHANGE.format(n=2, source=1, groups=GROUPS.format(last=1))
        + STORE.format(4, 1, 0, n=3, source=2, i="%i", tile=TILE)
    )
    text = KERNEL.format(width=2, trips=8, body=body, after="")
    counts: list[int] = []
    attempt = batches.Batching._attempt  # pyright: ignore[reportPrivateUsage]

    def counting(self: Any, frame: Any, first: Any, step: Any, numbers: range) -> bool:
        done = attempt(self, frame, first, step, numbers)
        counts.append(len(numbers) if done else 0)
        return done

    monkeypatch.setattr(batches.Batching, "_attempt", counting)
    x = np.random.default_rng(5).standard_normal((ROWS, 4)).astype(np.float16)
    expected = x.copy()
    for row in range(0, 32, 2):
        expected[row : row + 2] = x[row] + x[row + 1]
    for checks in (False, True):
        done = Program(parse_module(text)).run("k", {"x_ptr": x}, checks=checks)
        np.testing.assert_array_equal(done.outputs["x_ptr"], expected)
    assert counts == [8, 8]
