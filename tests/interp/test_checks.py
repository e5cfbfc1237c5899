"""Each fault of a program or a call comes out as its own error, at the line that is at fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ktir import errors
from ktir.interp.checks import Checker
from ktir.machine.loader import load as load_machine
from ktir.machine.memory_arena import SHORT_EPOCHS
from tests.interp.kernels import LOCAL, box, kernel, line_of, load, rows_kernel, run, shaped, store, tile, view

T164 = "tensor<1x64xf32>"


def x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def fails(
    kind: type[errors.KtirError], text: str, at: str, arguments: dict[str, Any] | None = None, **options: Any
) -> str:
    """The message of the error of ``kind`` that comes out at the line with ``at``."""
    with pytest.raises(kind) as caught:
        run(text, arguments or {}, **options)
    error = caught.value
    assert type(error) is kind
    assert error.location is not None and error.location.line == line_of(text, at), str(error)
    assert error.remedy
    return str(error)


DOUBLE = rows_kernel([f"%r = arith.addf %x, %x : {T164}"], 4, 64)


def test_a_right_program_raises_nothing() -> None:
    done = run(DOUBLE, {"x_ptr": x(4, 64), "y_ptr": np.zeros((4, 64), np.float32)})
    assert (done.outputs["y_ptr"] == 2 * x(4, 64)).all() and not done.diagnostics


# ------------------------------------------------------------------------------------------------------------ arguments


def test_missing_unknown_and_mistyped_arguments_are_refused() -> None:
    y = np.zeros((4, 64), np.float32)
    assert "x_ptr" in fails(errors.ArgumentError, DOUBLE, "func.func", {"y_ptr": y})
    assert "zz" in fails(errors.ArgumentError, DOUBLE, "func.func", {"x_ptr": x(4, 64), "y_ptr": y, "zz": 1})
    assert "float64" in fails(errors.ArgumentError, DOUBLE, "func.func", {"x_ptr": x(4, 64, dtype=float), "y_ptr": y})
    assert "float16" in fails(
        errors.ArgumentError, DOUBLE, "func.func", {"x_ptr": x(4, 64, dtype=np.float16), "y_ptr": y}
    )
    fails(errors.ArgumentError, DOUBLE, "func.func", {"x_ptr": "text", "y_ptr": y})


def test_a_short_array_is_an_error_of_the_call_at_the_load_that_needs_more() -> None:
    message = fails(
        errors.ArgumentError, DOUBLE, "%x = ktdp.load", {"x_ptr": x(3, 64), "y_ptr": np.zeros((4, 64), np.float32)}
    )
    assert "x_ptr" in message and "core 3" in message


def test_numbers_must_fit_their_type() -> None:
    text = kernel(["%c = arith.constant 0 : i8"], "%n: i8, %s: f32")
    run(text, {"n": 255, "s": 1})
    fails(errors.ArgumentError, text, "func.func", {"n": 256, "s": 1.0})
    fails(errors.ArgumentError, text, "func.func", {"n": 1.5, "s": 1.0})


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(errors.FunctionNotFound, match="the module has: k"):
        run(DOUBLE, {}, "other")


# --------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("at", ["%c1, 0", "%cm, 0", "0, %c1"])
def test_a_tile_outside_its_view(at: str) -> None:
    text = kernel(
        [
            "%c1 = arith.constant 1 : index", "%cm = arith.constant -1 : index", view("%v", "%x_ptr", (4, 64)),
            tile("%t", "%v", at, (4, 64), (4, 64)), load("%x", "%t", (4, 64)),
        ],
        "%x_ptr: index",
    )  # fmt: skip
    assert "%v" in fails(errors.OutOfBounds, text, "ktdp.load", {"x_ptr": x(4, 64)})


def test_a_view_that_leaves_its_array_does_not_reach_the_next_one() -> None:
    text = kernel(
        [
            "%c = arith.constant 128 : index", "%p = arith.addi %x_ptr, %c : index", view("%v", "%p", (4, 64)),
            tile("%t", "%v", "0, 0", (4, 64), (4, 64)), load("%x", "%t", (4, 64)),
            view("%w", "%y_ptr", (4, 64)), tile("%u", "%w", "0, 0", (4, 64), (4, 64)), store("%x", "%u", (4, 64)),
        ],
        "%x_ptr: index, %y_ptr: index",
    )  # fmt: skip
    arguments = {"x_ptr": x(4, 64), "y_ptr": x(4, 64)}
    with pytest.raises((errors.OutOfBounds, errors.ArgumentError), match="x_ptr"):
        run(text, arguments)
    with pytest.raises(errors.OutOfBounds, match="x_ptr"):
        run(text, arguments, checks=False)


@pytest.mark.parametrize("checks", [True, False])
def test_an_address_where_nothing_is(checks: bool) -> None:
    text = DOUBLE
    arguments = {"x_ptr": 10**9, "y_ptr": np.zeros((4, 64), np.float32)}
    fails(errors.OutOfBounds, text, "%x = ktdp.load", arguments, checks=checks)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("index", [-1, 8])
def test_indices_from_data_are_always_checked(index: int, checks: bool) -> None:
    text = kernel(
        [
            view("%v", "%x_ptr", (8, 16)), view("%i", "%i_ptr", (2,), "i32"),
            "%t = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) %v[ind(%i[%m]), (%k)] "
            f"{{variables_space_set = {box(2, 16)}, variables_space_order = affine_map<(d0, d1) -> (d0, d1)>}} "
            ": memref<8x16xf32>, memref<2xi32> -> !ktdp.access_tile<2x16xindex>",
            load("%x", "%t", (2, 16)),
        ],
        "%x_ptr: index, %i_ptr: index",
    )  # fmt: skip
    arguments = {"x_ptr": x(8, 16), "i_ptr": np.array([3, index], np.int32)}
    assert str(index) in fails(errors.OutOfBounds, text, "ktdp.load", arguments, checks=checks)


# ------------------------------------------------------------------------------------------------------- undefined data


def test_an_empty_tensor_as_operand() -> None:
    text = rows_kernel(["%e = tensor.empty() : tensor<1x64xf32>", f"%r = arith.addf %x, %e : {T164}"], 4, 64)
    assert "tensor.empty" in fails(errors.UninitialisedRead, text, "arith.addf", {"x_ptr": x(4, 64), "y_ptr": x(4, 64)})


def test_an_empty_tensor_stored() -> None:
    text = rows_kernel(["%r = tensor.empty() : tensor<1x64xf32>"], 4, 64)
    fails(errors.UninitialisedRead, text, "ktdp.store", {"x_ptr": x(4, 64), "y_ptr": x(4, 64)})


SCRATCH = [
    "%c0 = arith.constant 0 : index", view("%s", "%c0", (4, 64), "f32", LOCAL),
    tile("%st", "%s", "0, 0", (4, 64), (4, 64)),
]  # fmt: skip


def _through_scratchpad(*between: str, result: str = "%z") -> str:
    return kernel(
        [
            view("%v", "%x_ptr", (4, 64)), tile("%t", "%v", "0, 0", (4, 64), (4, 64)), load("%x", "%t", (4, 64)),
            *SCRATCH, *between, tile("%t2", "%v", "0, 0", (4, 64), (4, 64)), store(result, "%t2", (4, 64)),
        ],
        "%x_ptr: index",
    )  # fmt: skip


def test_reading_a_scratchpad_that_nobody_wrote() -> None:
    text = _through_scratchpad(load("%z", "%st", (4, 64)))
    fails(errors.UninitialisedRead, text, "%z = ktdp.load", {"x_ptr": x(4, 64)})
    written = _through_scratchpad(store("%x", "%st", (4, 64)), load("%z", "%st", (4, 64)))
    assert (run(written, {"x_ptr": x(4, 64)}).outputs["x_ptr"] == x(4, 64)).all()


def test_undefined_lanes_that_are_cut_off_or_replaced_do_no_harm() -> None:
    half = [
        tile("%half", "%s", "0, 0", (4, 32), (4, 64)),
        "%x0 = tensor.extract_slice %x[0, 0] [4, 32] [1, 1] : tensor<4x64xf32> to tensor<4x32xf32>",
        store("%x0", "%half", (4, 32)),
        load("%w", "%st", (4, 64)),
        "%w1 = arith.addf %w, %w : tensor<4x64xf32>",
    ]
    cut = [
        "%k = tensor.extract_slice %w1[0, 0] [4, 32] [1, 1] : tensor<4x64xf32> to tensor<4x32xf32>",
        "%z = tensor.insert_slice %k into %x[0, 32] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>",
    ]
    done = run(_through_scratchpad(*half, *cut), {"x_ptr": x(4, 64)})
    assert (done.outputs["x_ptr"][:, 32:] == 2 * x(4, 64)[:, :32]).all()
    message = fails(
        errors.UninitialisedRead, _through_scratchpad(*half, result="%w1"), "%w = ktdp.load", {"x_ptr": x(4, 64)}
    )
    assert "[0, 32]" in message


# --------------------------------------------------------------------------------------------------- several cores


ALL_TO_ROW_0 = kernel(
    [
        "%t = ktdp.get_compute_tile_id : index", "%c0 = arith.constant 0 : index", view("%v", "%x_ptr", (4, 64)),
        tile("%xt", "%v", "%t, 0", (1, 64), (4, 64)), load("%x", "%xt", (1, 64)),
        view("%w", "%y_ptr", (4, 64)), tile("%yt", "%w", "%c0, 0", (1, 64), (4, 64)), store("%x", "%yt", (1, 64)),
    ],
    "%x_ptr: index, %y_ptr: index", [4],
)  # fmt: skip


def test_two_cores_that_write_one_element() -> None:
    fails(errors.WriteConflict, ALL_TO_ROW_0, "ktdp.store", {"x_ptr": x(4, 64), "y_ptr": x(4, 64)})


def test_two_cores_that_write_the_same_bits_are_warned_of() -> None:
    done = run(ALL_TO_ROW_0, {"x_ptr": np.ones((4, 64), np.float32), "y_ptr": x(4, 64)})
    assert [found.code for found in done.diagnostics] == ["WriteConflict"]


@pytest.mark.parametrize("step", [1, -1])
def test_reading_what_a_neighbour_writes_in_the_same_launch(step: int) -> None:
    """Whichever of the two comes first when cores run together."""
    lines = [
        "%t = ktdp.get_compute_tile_id : index", "%c1 = arith.constant 1 : index", "%c4 = arith.constant 4 : index",
        "%c3 = arith.constant 3 : index", "%n0 = arith.addi %t, %c1 : index", "%n = arith.remui %n0, %c4 : index",
        view("%v", "%x_ptr", (4, 64)), tile("%own", "%v", "%t, 0", (1, 64), (4, 64)),
        tile("%next", "%v", "%n, 0", (1, 64), (4, 64)), "%z = arith.constant dense<1.0> : tensor<1x64xf32>",
        view("%w", "%y_ptr", (4, 64)), tile("%yt", "%w", "%t, 0", (1, 64), (4, 64)),
    ]  # fmt: skip
    moves = [load("%x", "%next", (1, 64)), store("%z", "%own", (1, 64))]
    text = kernel([*lines, *moves[::step], store("%x", "%yt", (1, 64))], "%x_ptr: index, %y_ptr: index", [4])
    fails(errors.ReadWriteRace, text, "ktdp.load", {"x_ptr": x(4, 64), "y_ptr": x(4, 64)})


def test_reading_a_remote_scratchpad_in_the_launch_that_writes_it() -> None:
    text = kernel(
        [
            "%c0 = arith.constant 0 : index", "%z = arith.constant dense<1.0> : tensor<64xf32>",
            view("%own", "%c0", (64,), "f32", LOCAL), tile("%o", "%own", "%c0", (64,), (64,)), store("%z", "%o", (64,)),
            view("%far", "%c0", (64,), "f32", "#ktdp.memory_space<ct_local, ct_id = 0>"),
            tile("%f", "%far", "%c0", (64,), (64,)), load("%x", "%f", (64,)),
        ],
        "", [2],
    )  # fmt: skip
    assert "core 1" in fails(errors.RemoteReadRace, text, "ktdp.load")


def test_a_compute_tile_that_does_not_exist() -> None:
    text = kernel(
        [
            "%c0 = arith.constant 0 : index",
            view("%far", "%c0", (64,), "f32", "#ktdp.memory_space<ct_local, ct_id = 77>"),
            tile("%f", "%far", "%c0", (64,), (64,)), load("%x", "%f", (64,)),
        ],
        "", [2],
    )  # fmt: skip
    assert "77" in fails(errors.OutOfBounds, text, "ktdp.load")


def _reduce(producers: str, guard: bool) -> str:
    groups = "affine_set<(g) : (g == 0)>"
    future = f"!ktdp.tile_future<(tensor<1x64xf32>), groups = {groups}>"
    exchange = [
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {producers} -> {future} {{",
        "^bb0(%g: index):", "  ktdp.yield_partial %x : tensor<1x64xf32>", "}",
        f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {producers}, identity(%e : tensor<1x64xf32>) "
        f": {future} -> tensor<1x64xf32> {{",
        "^bb0(%a: tensor<1x64xf32>, %b: tensor<1x64xf32>):", "  %s = arith.addf %a, %b : tensor<1x64xf32>",
        "  ktdp.yield_reduced %s : tensor<1x64xf32>", "}",
        tile("%yt", "%w", "%t, 0", (1, 64), (4, 64)), store("%r", "%yt", (1, 64)),
    ]  # fmt: skip
    lines = [
        "%t = ktdp.get_compute_tile_id : index", "%c0 = arith.constant 0 : index",
        "%e = arith.constant dense<0.0> : tensor<1x64xf32>", view("%v", "%x_ptr", (4, 64)),
        tile("%xt", "%v", "%t, 0", (1, 64), (4, 64)), load("%x", "%xt", (1, 64)), view("%w", "%y_ptr", (4, 64)),
    ]  # fmt: skip
    if guard:
        lines += ["%only = arith.cmpi eq, %t, %c0 : index", "scf.if %only {", *exchange, "}"]
    else:
        lines += exchange
    return kernel(lines, "%x_ptr: index, %y_ptr: index", [4])


FOUR = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0)>"
TWO = "affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>"
EIGHT = "affine_set<(i)[g] : (i >= 0, -i + 7 >= 0)>"


def test_a_reduction_over_all_cores() -> None:
    done = run(_reduce(FOUR, False), {"x_ptr": x(4, 64), "y_ptr": np.zeros((4, 64), np.float32)})
    assert (done.outputs["y_ptr"] == x(4, 64).sum(axis=0)).all()


@pytest.mark.parametrize(("producers", "guard"), [(FOUR, True), (EIGHT, False)])
def test_waiting_for_a_tile_that_never_comes(producers: str, guard: bool) -> None:
    fails(errors.Deadlock, _reduce(producers, guard), "ktdp.inter_tile_reduce", {"x_ptr": x(4, 64), "y_ptr": x(4, 64)})


def test_what_a_tile_outside_the_group_gets_must_not_be_stored() -> None:
    fails(
        errors.UninitialisedRead,
        _reduce(TWO, False),
        "%r = ktdp.inter_tile_reduce",
        {"x_ptr": x(4, 64), "y_ptr": x(4, 64)},
    )


# ------------------------------------------------------------------------------------------------------------ the rest


def test_holes_of_distributed_views() -> None:
    lines = [
        "%c2 = arith.constant 128 : index", "%q = arith.addi %x_ptr, %c2 : index",
        view("%a", "%x_ptr", (1, 64)), view("%b", "%q", (1, 64), owned=box((2, 3), 64)),
        "%d = ktdp.construct_distributed_memory_view(%a, %b : memref<1x64xf32>, memref<1x64xf32>) : memref<3x64xf32>",
        tile("%t", "%d", "0, 0", (3, 64), (3, 64)), load("%x", "%t", (3, 64)),
        view("%w", "%y_ptr", (3, 64)), tile("%u", "%w", "0, 0", (3, 64), (3, 64)), store("%x", "%u", (3, 64)),
    ]  # fmt: skip
    text = kernel(lines, "%x_ptr: index, %y_ptr: index")
    arguments = {"x_ptr": x(4, 64) + 1, "y_ptr": np.zeros((3, 64), np.float32)}
    assert "[1, 0]" in fails(errors.DistributedViewHole, text, "%x = ktdp.load", arguments)
    got = run(text, arguments, checks=False).outputs["y_ptr"]
    assert (got == np.stack([x(4, 64)[0] + 1, np.zeros(64), x(4, 64)[2] + 1])).all()


@pytest.mark.parametrize("step", [0, -1])
def test_loop_steps_that_do_not_advance(step: int) -> None:
    text = kernel(
        ["%c0 = arith.constant 0 : index", f"%s = arith.constant {step} : index", "%c4 = arith.constant 4 : index",
         "scf.for %i = %c0 to %c4 step %s {", "}"], "",
    )  # fmt: skip
    fails(errors.LoopStepNotPositive, text, "scf.for")


@pytest.mark.parametrize("op", ["divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"])
def test_division_by_zero(op: str) -> None:
    text = kernel(
        ["%t = ktdp.get_compute_tile_id : index", "%c4 = arith.constant 4 : index", f"%q = arith.{op} %c4, %t : index"],
        "", [2],
    )  # fmt: skip
    fails(errors.DivisionByZero, text, f"arith.{op}")


def test_endless_loops_meet_a_limit() -> None:
    loop = ["scf.for %i = %c0 to %n step %c1 {", "  %a = arith.addi %i, %i : index", "}"]
    constants = [
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        "%n = arith.constant 1000000000 : index",
    ]
    fails(errors.LimitExceeded, kernel([*constants, *loop], ""), "scf.for", max_steps=10_000)
    forever = [
        "%z = arith.constant 0 : i32", "%w = scf.while (%a = %z) : (i32) -> i32 {", "  %true = arith.constant true",
        "  scf.condition(%true) %a : i32", "} do {", "^bb0(%b: i32):", "  scf.yield %b : i32", "}",
    ]  # fmt: skip
    fails(errors.LimitExceeded, kernel(forever, ""), "scf.while", max_steps=10_000)


def test_memory_limits() -> None:
    with pytest.raises(errors.LimitExceeded, match="max_bytes"):
        run(DOUBLE, {"x_ptr": x(4, 64), "y_ptr": x(4, 64)}, max_bytes=1024)


def test_scratchpads_have_the_size_of_the_machine() -> None:
    text = kernel(
        ["%c = arith.constant 2600000 : index", "%c0 = arith.constant 0 : index",
         "%z = arith.constant dense<1.0> : tensor<64xf32>",
         view("%s", "%c", (64,), "f32", LOCAL), tile("%t", "%s", "%c0", (64,), (64,)), store("%z", "%t", (64,))], "",
    )  # fmt: skip
    run(text)
    fails(errors.ScratchpadOverflow, text, "ktdp.store", machine=load_machine("spyre"))


@pytest.mark.parametrize("grid", [[0], [], [4, -1]])
def test_grids_without_tiles(grid: list[int]) -> None:
    text = kernel(["%c = arith.constant 0 : index"], "", grid)
    fails(errors.IllegalGrid, text, "func.func")


def test_grids_beyond_the_machine() -> None:
    text = kernel(["%c = arith.constant 0 : index"], "", [33])
    run(text)
    fails(errors.GridExceedsMachine, text, "func.func", machine=load_machine("spyre"))


def test_element_types_of_view_and_tensor() -> None:
    text = kernel(
        [view("%v", "%x_ptr", (64,), "f16"), "%c0 = arith.constant 0 : index",
         tile("%t", "%v", "%c0", (64,), (64,), "f16"),
         load("%x", "%t", (64,), "f32")], "%x_ptr: index",
    )  # fmt: skip
    fails(errors.ElementTypeMismatch, text, "ktdp.load", {"x_ptr": x(64, dtype=np.float16)})


def test_sets_that_do_not_fill_their_tile() -> None:
    lines = [view("%v", "%x_ptr", (64,)), "%c0 = arith.constant 0 : index",
             tile("%t", "%v", "%c0", (64,), (64,)).replace("-d0 + 63", "-d0 + 31"),
             load("%x", "%t", (64,))]  # fmt: skip
    fails(errors.TileShapeMismatch, kernel(lines, "%x_ptr: index"), "ktdp.construct_access_tile", {"x_ptr": x(64)})


def test_accumulating_onto_an_empty_tensor_is_zero_with_a_warning() -> None:
    text = rows_kernel(
        [f"%e = tensor.empty() : {shaped('tensor', (1, 64), 'f32')}",
         "%w = arith.constant dense<1.0> : tensor<64x64xf32>",
         "%r = linalg.matmul ins(%x, %w : tensor<1x64xf32>, tensor<64x64xf32>) outs(%e : tensor<1x64xf32>) "
         "-> tensor<1x64xf32>"],
        4, 64,
    )  # fmt: skip
    for checks in (True, False):
        done = run(text, {"x_ptr": x(4, 64), "y_ptr": x(4, 64)}, checks=checks)
        assert (done.outputs["y_ptr"] == x(4, 64).sum(axis=1, keepdims=True)).all()
        assert [found.code for found in done.diagnostics] == ["AccumulatesOntoEmpty"]


def test_races_are_found_after_any_number_of_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks of writes hold more epochs than their short form has room for."""
    begin = Checker.begin_launch

    def late(checker: Checker, tiles: int) -> None:
        begin(checker, tiles)
        checker.epoch = checker.launch_epoch = SHORT_EPOCHS + 5

    text = rows_kernel([f"%r = arith.addf %x, %x : {T164}"], 4, 64)
    racing = text.replace("%t = ktdp.get_compute_tile_id : index", "%t = arith.constant 0 : index")
    monkeypatch.setattr(Checker, "begin_launch", late)
    arguments = {"x_ptr": x(4, 64), "y_ptr": np.zeros((4, 64), np.float32)}
    assert [each.code for each in run(racing, arguments).diagnostics] == ["WriteConflict"]
    assert not run(text, arguments).diagnostics


# ---------------------------------------------------------------------------------------------- reads of a whole launch


def reads_in_turn(count: int, last: str) -> str:
    """Each of two cores reads ``count`` times, one after the other, row 1 the last time and row 0 before, and then
    writes the row ``last``."""
    return kernel(
        [
            "%id = ktdp.get_compute_tile_id : index", "%c0 = arith.constant 0 : index",
            "%one = arith.constant 1 : index", f"%n = arith.constant {count} : index",
            view("%x", "%x_ptr", (4, 64), "f32"),
            "%end = scf.while (%i = %c0) : (index) -> index {", "  %more = arith.cmpi slt, %i, %n : index",
            "  scf.condition(%more) %i : index", "} do {", "^bb0(%i: index):",
            tile("%t", "%x", f"%i floordiv {count - 1}, 0", (1, 64), (4, 64)), load("%v", "%t", (1, 64)),
            "%next = arith.addi %i, %one : index", "scf.yield %next : index", "}",
            "%z = arith.constant dense<1.0> : tensor<1x64xf32>",
            tile("%o", "%x", last, (1, 64), (4, 64)), store("%z", "%o", (1, 64)),
        ],
        "%x_ptr: index", [2],
    )  # fmt: skip


@pytest.mark.parametrize("count", [3, 5000])
def test_no_read_is_forgotten(count: int) -> None:
    assert "core" in fails(
        errors.ReadWriteRace, reads_in_turn(count, "3 - 2 * %id, 0"), "%v = ktdp.load", {"x_ptr": x(4, 64)}
    )
    done = run(reads_in_turn(count, "%id + 2, 0"), {"x_ptr": x(4, 64)})
    assert (done.outputs["x_ptr"][2:] == 1).all()
