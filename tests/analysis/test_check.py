"""What the checker decides, on programs small enough to see the answer; the catalogue of faults has the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ktir.analysis.check import examine
from ktir.dialect.text.parser import parse_module
from ktir.errors import ArgumentError, Diagnostic
from ktir.machine.loader import load
from tests.faults.catalogue import ALIASES, copy, kernel, tile, view


def check(text: str, machine: str | None = None) -> Sequence[Diagnostic]:
    return examine(parse_module(text, "test.ktir"), load(machine) if machine else None).findings


def codes(text: str, machine: str | None = None) -> list[tuple[str, str]]:
    return [(d.severity, d.code) for d in check(text, machine)]


# ----------------------------------------------------------------------------------------------------- loops and ranges


RAGGED = "affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>"


def walk(body: str, low: str = "0", high: str = "64", step: str = "1", head: str = "", arguments: str = "") -> str:
    """A loop over single elements of a view of 64."""
    return kernel(
        f"%lo = arith.constant {low} : index\n"
        + (f"%hi = arith.constant {high} : index\n" if high.isdigit() else "")
        + f"%by = arith.constant {step} : index\n"
        + view("x", "%x_ptr", 64)
        + head
        + f"scf.for %i = %lo to %{'hi' if high.isdigit() else high} step %by {{\n"
        + body
        + "}",
        arguments="%x_ptr: index, %y_ptr: index" + arguments,
    )


def read(at: str) -> str:
    return tile("t", "x", at, 1) + "%v = ktdp.load %t : <1xindex> -> tensor<1xf16>\n"


@pytest.mark.parametrize(
    "at", ["%i", "63 - %i", "%i floordiv 2 + 31", "(%i * 7) mod 64", "%i - %i mod 4", "(-%i) mod 64"]
)
def test_subscripts_that_stay_inside_are_found_to(at: str) -> None:
    assert codes(walk(read(at))) == []


@pytest.mark.parametrize("at", ["%i + 1", "%i - 1", "%i * 2", "64 - %i", "%i floordiv 2 + 33", "%i mod 8 + 57"])
def test_subscripts_that_leave_the_view_in_one_iteration_are_found_to(at: str) -> None:
    assert codes(walk(read(at))) == [("error", "OutOfBounds")]


def test_a_loop_too_long_to_list_is_decided_all_the_same() -> None:
    long = walk(read("%i floordiv 1000000"), high="64000000")
    assert codes(long) == []
    assert codes(long.replace("floordiv 1000000", "floordiv 900000")) == [("error", "OutOfBounds")]


def sized(set_: str) -> str:
    return (
        f"%z = ktdp.construct_memory_view %y_ptr, sizes: [%n], strides: [1] {{coordinate_set = {set_}, "
        "memory_space = #ktdp.memory_space<global>} : memref<?xf16>\n"
    )


@pytest.mark.parametrize(("set_", "topic"), [("#s64", "bounds"), (RAGGED, "initialisation")])
def test_a_bound_that_is_an_argument_is_compared_as_a_form(set_: str, topic: str) -> None:
    """Where the coordinate set depends on the size, a tile may reach beyond the end, to what is undefined."""
    body = tile("t", "z", "%i", 1, "memref<?xf16>") + "%v = ktdp.load %t : <1xindex> -> tensor<1xf16>\n"
    assert codes(walk(body, high="n", head=sized(set_), arguments=", %n: index")) == []
    further = walk(body.replace("[%i]", "[%i + 1]"), high="n", head=sized(set_), arguments=", %n: index")
    examination = examine(parse_module(further, "test.ktir"), None)
    assert [t for t, tally in examination.tallies.items() if tally.unknown] == [topic]
    assert {d.code for d in examination.findings} == {"Unknown"}


def test_numbers_that_are_given_decide() -> None:
    copied = kernel(
        sized(RAGGED).replace("%z", "%y")
        + view("x", "%x_ptr", 64)
        + tile("t", "x", "%n", 16)
        + "%v = ktdp.load %t : <16xindex> -> tensor<16xf16>\n"
        + tile("u", "y", "0", 16, "memref<?xf16>")
        + "ktdp.store %v, %u : tensor<16xf16>, <16xindex>\n",
        arguments="%x_ptr: index, %y_ptr: index, %n: index",
    )
    module = parse_module(copied, "test.ktir")
    found = {n: [d.code for d in examine(module, None, numbers={"n": n}).findings] for n in (10, 16, 17, 49)}
    assert found == {10: [], 16: [], 17: ["IncompleteCoverage"], 49: ["OutOfBounds", "IncompleteCoverage"]}
    with pytest.raises(ArgumentError, match="no function has an integer argument m"):
        examine(module, None, numbers={"m": 1})


def test_promises_of_run_time_arguments_are_taken_for_true() -> None:
    read_at = kernel(
        "%n = ktdp.runtime_arg_extract value from %r : <i32, granularity=8, upperbound=56> -> i32\n"
        "%at = arith.index_cast %n : i32 to index\n"
        + view("x", "%x_ptr", 64)
        + tile("t", "x", "%at - 8", 16)
        + "%v = ktdp.load %t : <16xindex> -> tensor<16xf16>",
        arguments="%x_ptr: index, %r: !ktdp.runtime_arg<i32, granularity=8, upperbound=56>",
    )
    assert codes(read_at) == []
    assert codes(read_at.replace("upperbound=56", "upperbound=64")) == [("note", "Unknown")]
    assert codes(read_at.replace("%at - 8", "%at - 9")) == [("note", "Unknown")]


def test_a_pointer_carried_through_a_loop_is_followed() -> None:
    step = (
        "%c0 = arith.constant 0 : index\n%c4 = arith.constant 4 : index\n%c1 = arith.constant 1 : index\n"
        "%c16 = arith.constant 16 : index\n"
        + view("x", "%x_ptr", 64)
        + "%last = scf.for %i = %c0 to %c4 step %c1 iter_args(%at = %c0) -> (index) {\n"
        + tile("t", "x", "%at", 16)
        + "%v = ktdp.load %t : <16xindex> -> tensor<16xf16>\n%next = arith.addi %at, %c16 : index\n"
        "scf.yield %next : index\n}"
    )
    assert codes(kernel(step)) == []
    assert codes(kernel(step.replace("constant 16", "constant 17"))) == [("error", "OutOfBounds")]


def test_code_that_may_not_run_is_an_open_question() -> None:
    guarded = walk(
        "%small = arith.cmpi slt, %i, %n : index\nscf.if %small {\n" + read("%i + 1") + "}\n", arguments=", %n: index"
    )
    assert codes(guarded) == [("note", "Unknown")]


# -------------------------------------------------------------------------------------------------------- host programs


def program(kernel_body: str, transfer: str = "ktg.transfer %x, %b : memref<64xf16>, memref<64xf16>") -> str:
    """A host that copies x to a device buffer, launches a kernel on it, and copies another buffer back."""
    main = f"""\
func.func @main(%x: memref<64xf16>, %y: memref<64xf16>) {{
  %b = memref.alloc() {{alignment = 128 : i64}} : memref<64xf16>
  %c = memref.alloc() {{alignment = 128 : i64}} : memref<64xf16>
  {transfer}
  %bp = memref.extract_aligned_pointer_as_index %b : memref<64xf16> -> index
  %cp = memref.extract_aligned_pointer_as_index %c : memref<64xf16> -> index
  %two = arith.constant 2 : index
  %be = arith.divui %bp, %two : index
  %ce = arith.divui %cp, %two : index
  func.call @k(%be, %ce) : (index, index) -> ()
  ktg.transfer %c, %y : memref<64xf16>, memref<64xf16>
  return
}}
"""
    return kernel(kernel_body) + main


def test_a_host_program_whose_kernel_fits_its_buffers_has_no_findings() -> None:
    assert codes(program(copy()), "spyre") == []


def test_a_view_larger_than_its_buffer_is_out_of_bounds_where_it_is_read() -> None:
    larger = program(
        view("x", "%x_ptr", 128)
        + tile("t", "x", "0", 128, "memref<128xf16>")
        + "%v = ktdp.load %t : <128xindex> -> tensor<128xf16>"
    )
    (found,) = (d for d in check(larger) if d.severity == "error")
    assert found.code == "OutOfBounds" and "256 of a buffer of 128 bytes" in found.message


def test_a_buffer_that_nothing_filled_is_read_with_a_warning() -> None:
    assert codes(program(copy(), transfer="")) == [("warning", "UninitialisedRead")]


def test_an_output_that_is_not_covered_gets_a_warning() -> None:
    half = copy().replace(tile("yt", "y", "0"), "").split("ktdp.store")[0] + (
        "%h = tensor.extract_slice %r[0] [32] [1] : tensor<64xf16> to tensor<32xf16>\n"
        + tile("yt", "y", "0", 32)
        + "ktdp.store %h, %yt : tensor<32xf16>, <32xindex>\n"
    )
    assert codes(program(half)) == [("warning", "IncompleteCoverage")]


# ------------------------------------------------------------------------------------------------------- machine limits


def test_a_loop_beyond_the_counter_of_a_unit_gets_a_warning_on_a_machine_only() -> None:
    long = walk(read("%i mod 64"), high="70000")
    assert codes(long) == []
    assert codes(long, "spyre") == [("warning", "LoopCountTooLarge")]


def test_the_reach_of_a_core_is_what_it_touches_not_what_the_view_declares() -> None:
    wide = ALIASES + (
        "#big = affine_set<(d0) : (d0 >= 0, -d0 + 199999999 >= 0)>\n"
        "func.func @k(%x_ptr: index) attributes {grid = [1]} {\n  %far = arith.constant 199998976 : index\n"
        + view("x", "%x_ptr", 200_000_000, set_="#big")
        + tile("t", "x", "0", of="memref<200000000xf16>")
        + "%v = ktdp.load %t : <64xindex> -> tensor<64xf16>\n%far_read\n  return\n}\n"
    )
    far = tile("u", "x", "%far", of="memref<200000000xf16>") + "%w = ktdp.load %u : <64xindex> -> tensor<64xf16>"
    assert codes(wide.replace("%far_read", ""), "spyre") == []
    assert codes(wide.replace("%far_read", far), "spyre") == [("error", "SpanTooLarge")]
    assert codes(wide.replace("%far_read", far)) == []
