"""What is read before it is written: padding, scratchpads, pieces of buffers."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktir.analysis.check import examine
from ktir.analysis.initialisation import padding_runs
from ktir.dialect.text.parser import parse_module
from ktir.errors import Diagnostic
from ktir.maths.stick_layout import StickLayout
from tests.faults.catalogue import kernel, tile, view

RELAYOUT = (Path(__file__).parents[2] / "spec" / "cases" / "relayout_scratchpads.ktir").read_text()


def found(source: str, *topics: str) -> list[Diagnostic]:
    return list(examine(parse_module(source, "k.ktir"), None, topics).findings)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(1, 4))
def test_padding_is_what_stands_for_no_element(extent: list[int], lanes: int) -> None:
    layout = StickLayout.default(extent, lanes)
    padding = np.zeros(layout.elements, np.bool_)
    for start, stop in zip(*padding_runs(layout), strict=True):
        padding[start:stop] = True
    places = product(*map(range, layout.physical_shape))
    assert padding.tolist() == [layout.tensor_index(place) is None for place in places]


def test_a_piece_that_another_core_stored_elsewhere_is_missed() -> None:
    assert found(RELAYOUT, "ownership") == []
    shifted = RELAYOUT.replace("%on_3 = ktdp.construct_memory_view %c0", "%on_3 = ktdp.construct_memory_view %c64")
    (finding,) = found(shifted, "ownership")
    assert (finding.severity, finding.code) == ("warning", "UninitialisedRead")
    assert "bytes 8192 to 8320 of the scratchpad of core 3" in finding.message


def test_a_piece_that_the_producer_does_not_own_is_missed() -> None:
    fewer = RELAYOUT.replace(
        "func.func @double_rows(%x_ptr: index) attributes {grid = [8]}",
        "func.func @double_rows(%x_ptr: index) attributes {grid = [7]}",
    )
    (finding,) = found(fewer, "ownership")
    assert "of the scratchpad of core 7" in finding.message


def test_nothing_is_said_of_what_a_kernel_alone_finds_in_a_scratchpad() -> None:
    alone = kernel(
        "%c0 = arith.constant 0 : index\n"
        + view("lx", "%c0", 64, space="ct_local")
        + tile("t", "lx", "0")
        + "%v = ktdp.load %t : <64xindex> -> tensor<64xf16>"
    )
    assert [d.code for d in found(alone, "ownership")] == ["Unknown"]


@pytest.mark.parametrize(("pad", "findings"), [("64", []), ("32", [])])
def test_padding_may_be_read(pad: str, findings: list[str]) -> None:
    """A tensor of 40 elements in sticks of 64: a kernel writes the elements, the next one reads whole sticks."""
    layout = f"ktdp.stick_layout = #ktdp.stick_layout<[0 : {-(-40 // int(pad))} : {pad}, 0 : {pad} : 1], extent = [40]>"
    forty = "affine_set<(d0) : (d0 >= 0, 39 - d0 >= 0)>"
    writer = (
        "%one = arith.constant dense<1.0> : tensor<40xf16>\n"
        + view("b", "%p", 64)
        + tile("t", "b", "0", 40, set_=forty)
        + "ktdp.store %one, %t : tensor<40xf16>, <40xindex>"
    )
    reader = view("b", "%p", 64) + tile("t", "b", "0") + "%v = ktdp.load %t : <64xindex> -> tensor<64xf16>"
    aliases, write = kernel(writer, arguments="%p: index").split("func.func")
    read = kernel(reader, arguments="%p: index").split("func.func")[1].replace("@k", "@r")
    main = f"""\
func.func @main() {{
  %b = memref.alloc() {{alignment = 128 : i64, {layout}}} : memref<{-(-40 // int(pad))}x{pad}xf16>
  %p = memref.extract_aligned_pointer_as_index %b : memref<{-(-40 // int(pad))}x{pad}xf16> -> index
  %two = arith.constant 2 : index
  %e = arith.divui %p, %two : index
  func.call @k(%e) : (index) -> ()
  func.call @r(%e) : (index) -> ()
  return
}}
"""
    whole = f"{aliases}func.func{write}func.func{read}{main}"
    assert [d.code for d in found(whole, "initialisation")] == findings
    shorter = whole.replace("extent = [40]", "extent = [48]")
    assert [d.code for d in found(shorter, "initialisation")] == ["UninitialisedRead"]
