"""Loops whose iterations may run together give what the plain loop gives, whether or not the iterations meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.dialect.text.parser import parse_module
from ktir.errors import LimitExceeded, OutOfBounds, ReadWriteRace, WriteConflict
from ktir.interp import batches
from ktir.interp.executor import Program, execute
from tests.settings import examples

SIZE = 96

LOOP = """
func.func @k(%x_ptr: index) attributes {{grid = [{cores}]}} {{
  %core = ktdp.get_compute_tile_id : index
  %x = ktdp.construct_memory_view %x_ptr, sizes: [{rows}, {columns}], strides: [{columns}, 1] {{
    coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + {rows} - 1 >= 0, d1 >= 0, -d1 + {columns} - 1 >= 0)>,
    memory_space = #ktdp.memory_space<global> }} : memref<{rows}x{columns}xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = arith.constant {trips} : index
  %two = arith.constant dense<2.0> : tensor<{m}x{n}xf32>
  scf.for %i = %c0 to %trips step %c1 {{
    {body}
    scf.yield
  }}
  func.return
}}
"""
BODY = """
    %source_row = affine.apply affine_map<(d0, d1) -> (d0 * {read[0]} + {read[1]} + d1 * {apart})>(%i, %core)
    %source_column = affine.apply affine_map<(d0) -> (d0 * {read[2]} + {read[3]})>(%i)
    %target_row = affine.apply affine_map<(d0, d1) -> (d0 * {write[0]} + {write[1]} + d1 * {apart})>(%i, %core)
    %target_column = affine.apply affine_map<(d0) -> (d0 * {write[2]} + {write[3]})>(%i)
    %from = ktdp.construct_access_tile %x[%source_row, %source_column] {{
      access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + {m} - 1 >= 0, d1 >= 0, -d1 + {n} - 1 >= 0)>,
      access_tile_order = affine_map<(d0, d1) -> (d0, d1)> }} : memref<{rows}x{columns}xf32>
      -> !ktdp.access_tile<{m}x{n}xindex>
    %to = ktdp.construct_access_tile %x[%target_row, %target_column] {{
      access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + {m} - 1 >= 0, d1 >= 0, -d1 + {n} - 1 >= 0)>,
      access_tile_order = affine_map<(d0, d1) -> (d0, d1)> }} : memref<{rows}x{columns}xf32>
      -> !ktdp.access_tile<{m}x{n}xindex>
    %value = ktdp.load %from : !ktdp.access_tile<{m}x{n}xindex> -> tensor<{m}x{n}xf32>
    %double = arith.mulf %value, %two : tensor<{m}x{n}xf32>
    ktdp.store %double, %to : tensor<{m}x{n}xf32>, !ktdp.access_tile<{m}x{n}xindex>
"""


def kernel(**values: Any) -> str:
    return LOOP.format(**values, body=BODY.format(**values))


def affine(draw: st.DrawFn, trips: int, tile: int, size: int) -> tuple[int, int]:
    """A step and a start with which all tiles lie inside."""
    step = draw(st.integers(0, min(3, (size - tile) // max(1, trips - 1))))
    return step, draw(st.integers(0, size - tile - step * (trips - 1)))


@st.composite
def loops(draw: st.DrawFn) -> dict[str, Any]:
    rows, columns = draw(st.sampled_from([(1, SIZE), (8, 12), (12, 8)]))
    m, n = draw(st.integers(1, min(2, rows))), draw(st.integers(1, 4))
    trips = draw(st.integers(1, 6)) if rows > 1 else draw(st.integers(1, 12))
    places = [(*affine(draw, trips, m, rows), *affine(draw, trips, n, columns)) for _ in range(2)]
    return {"rows": rows, "columns": columns, "m": m, "n": n, "trips": trips, "read": places[0], "write": places[1]}


@settings(max_examples=examples(200), deadline=None)
@given(loops())
def test_iterations_that_meet_and_that_do_not_give_what_a_loop_gives(loop: dict[str, Any]) -> None:
    x = np.arange(1, loop["rows"] * loop["columns"] + 1, dtype=np.float32).reshape(loop["rows"], loop["columns"])
    expected, m, n = x.copy(), loop["m"], loop["n"]

    def tile(step: Any, i: int) -> Any:
        row, column = step[0] * i + step[1], step[2] * i + step[3]
        return expected[row : row + m, column : column + n]

    for i in range(loop["trips"]):
        tile(loop["write"], i)[...] = tile(loop["read"], i) * np.float32(2)
    program = Program(parse_module(kernel(**loop, cores=1, apart=0)))
    for checks in (False, True):
        np.testing.assert_array_equal(program.run("k", {"x_ptr": x}, checks=checks).outputs["x_ptr"], expected)


RELOAD = """
    %again = ktdp.load %to : !ktdp.access_tile<{m}x{n}xindex> -> tensor<{m}x{n}xf32>
    %four = arith.mulf %again, %two : tensor<{m}x{n}xf32>
    ktdp.store %four, %to : tensor<{m}x{n}xf32>, !ktdp.access_tile<{m}x{n}xindex>
"""


@pytest.mark.parametrize("apart", [0, 16])
def test_an_iteration_reads_what_it_stored(apart: int) -> None:
    values = {**SHAPE, "read": (1, 0, 0, 0), "write": (1, 0, 0, 8), "apart": apart, "cores": 1 + bool(apart)}
    x = np.random.default_rng(3).standard_normal((64, 16)).astype(np.float32)
    text = LOOP.format(**values, body=(BODY + RELOAD).format(**values))
    expected = x.copy()
    for start in {0, apart}:
        expected[start : start + 8, 8:12] = 4 * x[start : start + 8, :4]
    for checks in (False, True):
        done = execute(parse_module(text), "k", {"x_ptr": x}, checks=checks)
        np.testing.assert_array_equal(done.outputs["x_ptr"], expected)


SHAPE = {"rows": 64, "columns": 16, "m": 1, "n": 4, "trips": 8}


@pytest.mark.parametrize(
    ("read", "write"),
    [((1, 0, 0, 4), (1, 0, 0, 4)), ((1, 0, 0, 0), (1, 0, 0, 8)), ((0, 0, 1, 0), (0, 0, 1, 0))],
    ids=["in place", "other columns", "overlapping columns"],
)
def test_cores_with_rows_of_their_own(read: Any, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).standard_normal((64, 16)).astype(np.float32)
    module = parse_module(kernel(**SHAPE, read=read, write=write, cores=4, apart=16))
    together = execute(module, "k", {"x_ptr": x})
    monkeypatch.setattr(batches, "ITERATIONS_AT_MOST", 1)
    apart = execute(module, "k", {"x_ptr": x})
    np.testing.assert_array_equal(together.outputs["x_ptr"], apart.outputs["x_ptr"])
    assert together.statistics == apart.statistics and together.diagnostics == apart.diagnostics == []


@pytest.mark.parametrize(
    ("read", "write", "apart", "error"),
    [
        ((8, 0, 0, 0), (1, 0, 0, 0), 16, OutOfBounds),
        ((1, 0, 0, 0), (1, 0, 0, 0), 1, WriteConflict),
        ((1, 1, 0, 0), (1, 0, 0, 8), 0, WriteConflict),
        ((1, 16, 0, 0), (1, 0, 0, 0), 16, ReadWriteRace),
    ],
)
def test_faults_are_those_of_the_plain_loop(
    read: Any, write: Any, apart: int, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 80 if error is ReadWriteRace else 64
    x = np.random.default_rng(3).standard_normal((rows, 16)).astype(np.float32)
    module = parse_module(kernel(**{**SHAPE, "rows": rows}, read=read, write=write, cores=4, apart=apart))

    def fault() -> str | None:
        try:
            done = execute(module, "k", {"x_ptr": x})
        except error as found:
            return str(found)
        return str([found.message for found in done.diagnostics])

    together = fault()
    monkeypatch.setattr(batches, "ITERATIONS_AT_MOST", 1)
    assert together == fault() != "[]"


def test_the_limit_of_steps_counts_every_iteration() -> None:
    text = kernel(**{**SHAPE, "rows": 8, "trips": 8}, read=(1, 0, 0, 0), write=(1, 0, 0, 0), cores=1, apart=0)
    x = np.zeros((8, 16), np.float32)
    with pytest.raises(LimitExceeded):
        execute(parse_module(text), "k", {"x_ptr": x}, max_steps=80)
