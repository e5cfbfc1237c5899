"""Accesses and sticks: each run of bytes, counted out, against what the checker says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.analysis.check import Tally, examine
from ktir.dialect.text.parser import parse_module
from ktir.machine.loader import load
from tests.faults.catalogue import kernel
from tests.settings import examples

STICK = 64
"""Elements of f16 in a stick of the machine."""


def access(rows: int, columns: int, pitch: int, corner: tuple[str, int], shape: tuple[int, int]) -> str:
    """A load of ``shape`` from ``corner`` of a view of ``rows`` rows, ``pitch`` elements apart."""
    sizes = affine(rows, columns)
    return kernel(
        f"%x = ktdp.construct_memory_view %x_ptr, sizes: [{rows}, {columns}], strides: [{pitch}, 1] "
        f"{{coordinate_set = {sizes}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x{columns}xf16>\n"
        f"%t = ktdp.construct_access_tile %x[{corner[0]}, {corner[1]}] {{access_tile_order = #id2, access_tile_set = "
        f"{affine(*shape)}}} : memref<{rows}x{columns}xf16> -> !ktdp.access_tile<{shape[0]}x{shape[1]}xindex>\n"
        f"%v = ktdp.load %t : <{shape[0]}x{shape[1]}xindex> -> tensor<{shape[0]}x{shape[1]}xf16>",
        arguments="%x_ptr: index, %row: index",
    )


def affine(rows: int, columns: int) -> str:
    return f"affine_set<(d0, d1) : (d0 >= 0, {rows - 1} - d0 >= 0, d1 >= 0, {columns - 1} - d1 >= 0)>"


def asked(source: str) -> tuple[list[str], Tally]:
    examination = examine(parse_module(source, "k.ktir"), load("spyre"), ("alignment",))
    return [d.code for d in examination.findings if d.severity != "note"], examination.tallies["alignment"]


@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_a_run_that_begins_inside_a_stick_and_crosses_it_is_reported(data: st.DataObject) -> None:
    draw = data.draw
    columns = draw(st.integers(1, 200))
    pitch = columns + draw(st.sampled_from([0, 0, 1, -columns % STICK]))
    shape = draw(st.integers(1, 3)), draw(st.integers(1, columns))
    corner = draw(st.integers(0, 2)), draw(st.integers(0, columns - shape[1]))
    whole = shape[1] == columns == pitch
    runs = 1 if whole else shape[0]
    length = shape[1] * (shape[0] if whole else 1)
    begins = [(corner[0] + run) * pitch + corner[1] for run in range(runs)]
    crosses = any(first % STICK and first // STICK != (first + length - 1) // STICK for first in begins)
    found, tally = asked(access(6, columns, pitch, (str(corner[0]), corner[1]), shape))
    assert (found, tally.unknown) == (["UnalignedAddress"] if crosses else [], 0)


def test_a_row_that_nobody_knows_is_aligned_where_all_rows_are() -> None:
    assert asked(access(6, 128, 128, ("%row", 64), (1, 64))) == ([], Tally(1, 0))
    assert asked(access(6, 100, 100, ("%row", 0), (1, 100)))[1] == Tally(1, 1)


def test_a_part_of_one_stick_may_be_read() -> None:
    assert asked(access(6, 64, 64, ("0", 32), (1, 32))) == ([], Tally(1, 0))
