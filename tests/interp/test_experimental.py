"""The experimental operations between compute tiles: what each core gets, and that they have to be asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ktir
from ktir import errors
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.tools.ktir_main import main
from ktir.tools.ktir_opt import main as opt

HEAD = """\
#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + 3 >= 0)>
#two = affine_set<(d0, d1) : (d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 3 >= 0)>
#tiles = affine_set<(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0)>
#first = affine_set<(i)[g] : (i - 2 * g == 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @k(%x: index, %y: index) attributes {grid = [4]} {
  %id = ktdp.get_compute_tile_id : index
  %a = ktdp.construct_memory_view %x, sizes: [8, 4], strides: [4, 1] {coordinate_set = #all,
    memory_space = #ktdp.memory_space<global>} : memref<8x4xf32>
  %t = ktdp.construct_access_tile %a[2 * %id, 0] {access_tile_order = #id, access_tile_set = #two} : memref<8x4xf32>
    -> !ktdp.access_tile<2x4xindex>
  %v = ktdp.load %t : <2x4xindex> -> tensor<2x4xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4xf32>
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #PRODUCERS -> <(tensor<2x4xf32>), groups = #groups> {
  ^bb0(%g: index):
    ktdp.yield_partial %v : tensor<2x4xf32>
  }
"""
FUTURE = "<(tensor<2x4xf32>), groups = #groups>"


def program(op: str, shape: tuple[int, int], producers: str = "tiles") -> str:
    """Each of four cores, in two groups, contributes its two rows of x and stores its result to y."""
    m, n = shape
    box = f"affine_set<(d0, d1) : (d0 >= 0, -d0 + {m - 1} >= 0, d1 >= 0, -d1 + {n - 1} >= 0)>"
    whole = f"affine_set<(d0, d1) : (d0 >= 0, -d0 + {4 * m - 1} >= 0, d1 >= 0, -d1 + {n - 1} >= 0)>"
    return HEAD.replace("PRODUCERS", producers) + (
        f"  %r = {op}\n"
        f"  %b = ktdp.construct_memory_view %y, sizes: [{4 * m}, {n}], strides: [{n}, 1] {{coordinate_set = {whole}, "
        f"memory_space = #ktdp.memory_space<global>}} : memref<{4 * m}x{n}xf32>\n"
        f"  %u = ktdp.construct_access_tile %b[{m} * %id, 0] {{access_tile_order = #id, access_tile_set = {box}}} : "
        f"memref<{4 * m}x{n}xf32> -> !ktdp.access_tile<{m}x{n}xindex>\n"
        f"  ktdp.store %r, %u : tensor<{m}x{n}xf32>, <{m}x{n}xindex>\n  return\n}}\n"
    )


GATHER = program(
    f"ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #tiles, gather_dimensions = [1] : {FUTURE} "
    "-> tensor<2x8xf32>",
    (2, 8),
)
SCATTER = program(
    f"ktdp.inter_tile_scatter(%f) consumer_tiles_per_group = #tiles, scatter_dimensions = [0] : {FUTURE} "
    "-> tensor<1x4xf32>",
    (1, 4),
    "first",
)
ALL_TO_ALL = program(
    "ktdp.inter_tile_all_to_all(%f) consumer_tiles_per_group = #tiles, split_dimensions = [1], "
    f"concat_dimensions = [0] : {FUTURE} -> tensor<4x2xf32>",
    (4, 2),
)
REDUCE_SCATTER = program(
    "ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #tiles, scatter_dimensions = [0, 1], "
    f"identity(%zero : tensor<2x4xf32>) : {FUTURE} -> tensor<1x4xf32> {{\n"
    "  ^bb0(%l: tensor<2x4xf32>, %q: tensor<2x4xf32>):\n    %s = arith.addf %l, %q : tensor<2x4xf32>\n"
    "    ktdp.yield_reduced %s : tensor<2x4xf32>\n  }",
    (1, 4),
)
X = np.arange(32, dtype=np.float32).reshape(8, 4)
ROWS = X.reshape(4, 2, 4)
"""The contribution of each core."""
FIRST, SECOND = ROWS[[0, 0, 2, 2]], ROWS[[1, 1, 3, 3]]
"""The contributions of the two cores of the group of each core."""
PLACE = (0, 1, 0, 1)
"""Which one of its group each core is."""


def columns(rows: np.ndarray, place: int) -> np.ndarray:
    return rows[:, 2 * place : 2 * place + 2]


CASES = {
    "gather": (GATHER, [np.concatenate(pair, axis=1) for pair in zip(FIRST, SECOND, strict=True)]),
    "scatter": (SCATTER, [rows[k : k + 1] for rows, k in zip(FIRST, PLACE, strict=True)]),
    "all_to_all": (
        ALL_TO_ALL,
        [np.concatenate([columns(a, k), columns(b, k)]) for a, b, k in zip(FIRST, SECOND, PLACE, strict=True)],
    ),
    "reduce_scatter": (REDUCE_SCATTER, [(FIRST + SECOND)[c][k : k + 1] for c, k in enumerate(PLACE)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("checks", [True, False])
def test_each_core_gets_its_share(name: str, checks: bool) -> None:
    text, expected = CASES[name]
    whole = np.concatenate(expected)
    arguments = {"x": X, "y": np.zeros(whole.shape, np.float32)}
    found = ktir.run(text, "k", arguments, checks=checks, experimental=True)
    np.testing.assert_array_equal(np.asarray(found.outputs["y"]).reshape(whole.shape), whole)


@pytest.mark.parametrize("name", CASES)
def test_they_have_to_be_asked_for(name: str) -> None:
    with pytest.raises(errors.ParseError) as caught:
        ktir.parse(CASES[name][0])
    assert "--experimental" in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert f"inter_tile_{name}" in CASES[name][0].split("\n")[caught.value.location.line - 1]


@pytest.mark.parametrize("name", CASES)
def test_text_and_ir_are_the_same(name: str) -> None:
    context = create_context(experimental=True)
    once = print_module(parse_module(CASES[name][0], context=context))
    assert print_module(parse_module(once, context=create_context(experimental=True))) == once


WRONG = {
    "axes out of order": (REDUCE_SCATTER, "[0, 1]", "[1, 0]"),
    "an axis that is not there": (GATHER, "gather_dimensions = [1]", "gather_dimensions = [2]"),
    "no axes": (SCATTER, "scatter_dimensions = [0]", "scatter_dimensions = []"),
    "a rank of its own": (GATHER, "-> tensor<2x8xf32>\n", "-> tensor<16xf32>\n"),
    "an extent that no list names": (GATHER, "gather_dimensions = [1]", "gather_dimensions = [0]"),
    "no multiple": (SCATTER, f"{FUTURE} -> tensor<1x4xf32>", f"{FUTURE} -> tensor<3x4xf32>"),
}


@pytest.mark.parametrize("name", WRONG)
def test_types_that_no_delivery_has(name: str) -> None:
    text, before, after = WRONG[name]
    assert before in text
    with pytest.raises(errors.VerifyError):
        ktir.parse(text.replace(before, after).split("  %b = ")[0] + "  return\n}\n", experimental=True)


def test_a_number_of_consumers_that_does_not_fit_the_type() -> None:
    three = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)>"
    text = SCATTER.replace("consumer_tiles_per_group = #tiles", f"consumer_tiles_per_group = {three}")
    with pytest.raises(errors.ExecutionError) as caught:
        ktir.run(text, "k", {"x": X, "y": np.zeros((4, 4), np.float32)}, experimental=True)
    assert "4 consumers" in caught.value.message


def test_several_producers_cannot_be_scattered() -> None:
    text = SCATTER.replace("producer_tiles_per_group = #first", "producer_tiles_per_group = #tiles")
    with pytest.raises(errors.Deadlock):
        ktir.run(text, "k", {"x": X, "y": np.zeros((4, 4), np.float32)}, experimental=True)


@pytest.mark.parametrize("command", ["run", "check", "ktir-opt"])
def test_the_commands_take_the_switch(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gather.ktir"
    file.write_text(GATHER)
    arguments = [command, str(file), *(("--random", "x=8x4xf32", "--arg", "y=f32[8,8]") if command == "run" else ())]
    call = (lambda given: opt(given[1:])) if command == "ktir-opt" else main
    assert call([*arguments, "--experimental"]) == 0, capsys.readouterr()
    assert call(arguments) != 0
    assert "experimental" in capsys.readouterr().err
