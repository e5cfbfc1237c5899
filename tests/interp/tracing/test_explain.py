"""What a core touches: the sums over all cores are what the program moves, and pictures show the places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ktir
from ktir.conformance.case import parse_case
from ktir.errors import ArgumentError
from ktir.interp.tracing.explain import Explain
from tests.interp.kernels import box, kernel, load, order, store, tile, view
from tests.interp.tracing.programs import COLUMNS, CORES, DOUBLE, PER_CORE, ROWS, inputs, line_with, observed

CASES = sorted((Path(__file__).parents[3] / "spec" / "cases").glob("*.ktir"))


def test_a_load_has_its_box_bytes_iteration_and_place() -> None:
    explain = Explain(1)
    observed(DOUBLE, inputs(), explain)
    loads, stores = explain.data["accesses"]
    assert (loads["kind"], loads["tensor"], loads["view"]) == ("load", "x", "%xv")
    assert loads["location"]["line"] == line_with(DOUBLE, "ktdp.load")
    assert (stores["kind"], stores["tensor"], stores["bytes"]) == ("store", "y", PER_CORE * COLUMNS * 4)
    for number, each in enumerate(loads["executions"]):
        row = PER_CORE + number
        assert each["coordinates"] == [[row, row], [0, COLUMNS - 1]]
        assert (each["first_byte"], each["last_byte"]) == (row * COLUMNS * 4, (row + 1) * COLUMNS * 4 - 1)
        assert each["iteration"] == {"%i": number}


def test_the_cores_together_touch_each_element_once() -> None:
    shares = np.zeros(2)
    for core in range(CORES):
        explain = Explain(core)
        observed(DOUBLE, inputs(), explain)
        x, y = explain.data["tensors"]
        assert x["bytes"] == y["bytes"] == ROWS * COLUMNS * 4
        assert x["bytes_read"] == y["bytes_written"] == PER_CORE * COLUMNS * 4
        shares += x["share_read"], y["share_written"]
    np.testing.assert_allclose(shares, 1)


def test_the_picture_has_the_rows_of_the_core() -> None:
    explain = Explain(2)
    observed(DOUBLE, inputs(), explain)
    x, y = explain.data["tensors"]
    assert x["picture"] == ["." * COLUMNS] * 8 + ["R" * COLUMNS] * 4
    assert y["picture"] == ["." * COLUMNS] * 8 + ["W" * COLUMNS] * 4


def test_a_part_of_a_cell_is_a_small_letter() -> None:
    text = kernel([view("%v", "%x", (64, 256)), tile("%t", "%v", "9, 4", (1, 2), (64, 256)), load("%a", "%t", (1, 2))],
                  "%x: index")  # fmt: skip
    explain = Explain(0)
    observed(text, {"x": np.zeros((64, 256), np.float32)}, explain)
    (tensor,) = explain.data["tensors"]
    assert tensor["picture"][2] == "." + "r" + "." * 62
    assert {line for number, line in enumerate(tensor["picture"]) if number != 2} == {"." * 64}


def test_reading_and_writing_one_place_shows_as_both() -> None:
    lines = [view("%v", "%x", (4, 8)), tile("%t", "%v", "1, 0", (1, 8), (4, 8)), load("%a", "%t", (1, 8))]
    explain = Explain(0)
    observed(kernel([*lines, store("%a", "%t", (1, 8))], "%x: index"), {"x": np.zeros((4, 8), np.float32)}, explain)
    assert explain.data["tensors"][0]["picture"] == ["........", "BBBBBBBB", "........", "........"]


def test_gathered_rows_and_the_indices_that_name_them() -> None:
    of = (6, 8)
    text = kernel(
        [
            view("%v", "%x", of),
            view("%iv", "%index", (2,), "i32"),
            "%t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) "
            f"%v[ind(%iv[%a]), (%b)] {{variables_space_set = {box(2, 8)}, variables_space_order = {order(0, 1)}}} : "
            "memref<6x8xf32>, memref<2xi32> -> !ktdp.access_tile<2x8xindex>",
            load("%r", "%t", (2, 8)),
        ],
        "%x: index, %index: index",
    )
    explain = Explain(0)
    observed(text, {"x": np.zeros(of, np.float32), "index": np.array([4, 1], np.int32)}, explain)
    kinds = {each["kind"]: each for each in explain.data["accesses"]}
    assert kinds["index"]["tensor"] == "index"
    x = next(each for each in explain.data["tensors"] if each["name"] == "x")
    assert x["picture"] == ["........", "RRRRRRRR", "........", "........", "RRRRRRRR", "........"]
    assert x["bytes_read"] == 2 * 8 * 4


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_is_written_is_what_changed(path: Path) -> None:
    """Over all cores the stores cover the outputs of a case, whole and once."""
    case = parse_case(path.read_text(), str(path))
    module = ktir.parse(path)
    cores = range(32)
    observers = [Explain(core) for core in cores]
    ktir.run(module, case.function, case.inputs, machine=case.machine, trace=observers)
    for name, wanted in case.expected.items():
        tensors = [tensor for each in observers for tensor in each.tensors if tensor.name == name]
        assert sum(tensor.written for tensor in tensors) == tensors[0].size
        np.testing.assert_array_equal(sum(tensor.marks >> 1 for tensor in tensors), 1)
        assert tensors[0].marks.size == wanted.size


def test_a_scratchpad_is_named_with_its_core() -> None:
    explain = Explain(5)
    path = next(path for path in CASES if path.stem == "relayout_scratchpads")
    case = parse_case(path.read_text(), str(path))
    ktir.run(path, case.function, case.inputs, machine=case.machine, trace=explain)
    spaces = {each["space"] for each in explain.data["tensors"]}
    assert {"global memory", *(f"scratchpad of core {core}" for core in range(8))} == spaces
    assert "the scratchpads of cores 0..7" in str(explain)


def test_a_limit_shortens_the_text_and_not_the_data() -> None:
    short, whole = Explain(0, 1), Explain(0, None)
    observed(DOUBLE, inputs(), short, whole)
    assert f"and {PER_CORE - 1} more" in str(short) and "more" not in str(whole)
    assert short.data == whole.data


@pytest.mark.parametrize("core", [-1, CORES])
def test_a_core_that_is_not_there_is_an_error(core: int) -> None:
    explain = Explain(core)
    with pytest.raises(ArgumentError, match=f"core {core}"):
        observed(DOUBLE, inputs(), explain)
        explain.require_core()
