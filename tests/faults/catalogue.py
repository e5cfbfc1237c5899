"""Faulty programs and calls, one fault each, with the error that must come out and the line it must name.

Beside them stand valid programs that are easily taken for faulty. The line at fault is marked ``// @here``. The first
56 are inputs that other tools of this kind accept silently, hang on, or answer with a message about something else.

Words. stage: who notices. ``parse``: reading the text. ``run``: executing it, with checks. ``warn``: the run ends and
carries a warning. ``valid``: nobody may notice anything. ``static``: it is not run. The field of that name is what
the checker says of it: ``CODE`` for an error, ``?CODE`` for a warning, None for nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import ml_dtypes
import numpy as np

Arguments = Mapping[str, Any]

ALIASES = """\
#id0 = affine_map<() -> ()>
#id1 = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#t2 = affine_map<(d0, d1) -> (d1, d0)>
#s1 = affine_set<(d0) : (d0 >= 0, -d0 >= 0)>
#s16 = affine_set<(d0) : (d0 >= 0, -d0 + 15 >= 0)>
#s32 = affine_set<(d0) : (d0 >= 0, -d0 + 31 >= 0)>
#s64 = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>
#s128 = affine_set<(d0) : (d0 >= 0, -d0 + 127 >= 0)>
#s256 = affine_set<(d0) : (d0 >= 0, -d0 + 255 >= 0)>
#s4096 = affine_set<(d0) : (d0 >= 0, -d0 + 4095 >= 0)>
#r64 = affine_set<(d0, d1) : (d0 >= 0, -d0 >= 0, d1 >= 0, -d1 + 63 >= 0)>
#m64 = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 63 >= 0)>
#all4 = affine_set<(i)[g] : (i >= 0, -i + 3 >= 0)>
#two = affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>
#eight = affine_set<(i)[g] : (i >= 0, -i + 7 >= 0)>
#g0 = affine_set<(g) : (g == 0)>
"""


def kernel(body: str, grid: str = "[1]", arguments: str = "%x_ptr: index, %y_ptr: index") -> str:
    """A kernel ``@k`` with the usual aliases above it."""
    lines = "\n".join(f"  {line}" for line in body.strip("\n").split("\n"))
    return f"{ALIASES}func.func @k({arguments}) attributes {{grid = {grid}}} {{\n{lines}\n  return\n}}\n"


def view(
    name: str,
    pointer: str,
    size: int,
    type_: str = "f16",
    space: str = "global",
    set_: str | None = None,
    stride: int = 1,
) -> str:
    """A view of one dimension."""
    return (
        f"%{name} = ktdp.construct_memory_view {pointer}, sizes: [{size}], strides: [{stride}] "
        f"{{coordinate_set = {set_ or f'#s{size}'}, memory_space = #ktdp.memory_space<{space}>}} : "
        f"memref<{size}x{type_}>\n"
    )


def tile(name: str, base: str, at: str, size: int = 64, of: str = "memref<64xf16>", set_: str | None = None) -> str:
    return (
        f"%{name} = ktdp.construct_access_tile %{base}[{at}] {{access_tile_order = #id1, "
        f"access_tile_set = {set_ or f'#s{size}'}}} : {of} -> !ktdp.access_tile<{size}xindex>\n"
    )


def copy(middle: str = "%r = arith.addf %v, %v : tensor<64xf16>\n", type_: str = "f16", out: str = "f16") -> str:
    """One core loads 64 elements of x into %v, computes %r, stores it to y."""
    return (
        view("x", "%x_ptr", 64, type_)
        + view("y", "%y_ptr", 64, out)
        + tile("xt", "x", "0", of=f"memref<64x{type_}>")
        + f"%v = ktdp.load %xt : <64xindex> -> tensor<64x{type_}>\n"
        + middle
        + tile("yt", "y", "0", of=f"memref<64x{out}>")
        + f"ktdp.store %r, %yt : tensor<64x{out}>, <64xindex>\n"
    )


def blocks(
    block: int = 128, start: str = "arith.muli %id, %block : index", *, cores: int = 32, load: str = "", store: str = ""
) -> str:
    """Each of 32 cores doubles its block of 128 out of 4096 elements."""
    of = "memref<4096xf16>"
    return (
        "%id = ktdp.get_compute_tile_id : index\n"
        f"%block = arith.constant {block} : index\n"
        f"%start = {start}\n"
        + view("x", "%x_ptr", 4096)
        + view("y", "%y_ptr", 4096)
        + tile("xt", "x", "%start", 128, of)
        + f"%v = ktdp.load %xt : <128xindex> -> tensor<128xf16>{load}\n"
        + "%r = arith.addf %v, %v : tensor<128xf16>\n"
        + tile("yt", "y", "%start", 128, of)
        + f"ktdp.store %r, %yt : tensor<128xf16>, <128xindex>{store}\n"
    )


def groups(
    producers: str = "#all4", consumers: str = "#all4", around: tuple[str, str] = ("", ""), here: str = ""
) -> str:
    """Four cores add up their rows of 64."""
    row = "tensor<1x64xf16>"
    future = f"<({row}), groups = #g0>"
    return (
        "%id = ktdp.get_compute_tile_id : index\n"
        "%c0 = arith.constant 0 : index\n"
        "%x = ktdp.construct_memory_view %x_ptr, sizes: [4, 64], strides: [64, 1] {coordinate_set = #m64, "
        "memory_space = #ktdp.memory_space<global>} : memref<4x64xf16>\n"
        "%y = ktdp.construct_memory_view %y_ptr, sizes: [4, 64], strides: [64, 1] {coordinate_set = #m64, "
        "memory_space = #ktdp.memory_space<global>} : memref<4x64xf16>\n"
        "%xt = ktdp.construct_access_tile %x[%id, 0] {access_tile_order = #id2, access_tile_set = #r64} : "
        "memref<4x64xf16> -> !ktdp.access_tile<1x64xindex>\n"
        f"%v = ktdp.load %xt : <1x64xindex> -> {row}\n"
        f"%zero = arith.constant dense<0.0> : {row}\n"
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {producers} -> {future} {{\n"
        "^bb0(%gid: index):\n"
        f"  ktdp.yield_partial %v : {row}\n"
        "}\n"
        f"{around[0]}"
        f"%s = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {consumers}, identity(%zero : {row}) : "
        f"{future} -> {row} {{{here}\n"
        f"^bb0(%l: {row}, %q: {row}):\n"
        f"  %lq = arith.addf %l, %q : {row}\n"
        f"  ktdp.yield_reduced %lq : {row}\n"
        "}\n"
        "%yt = ktdp.construct_access_tile %y[%id, 0] {access_tile_order = #id2, access_tile_set = #r64} : "
        "memref<4x64xf16> -> !ktdp.access_tile<1x64xindex>\n"
        f"ktdp.store %s, %yt : {row}, <1x64xindex>\n"
        f"{around[1]}"
    )


def two_arrays(size: int = 64, type_: Any = np.float16) -> Callable[[], Arguments]:
    return lambda: {"x_ptr": np.arange(size).astype(type_), "y_ptr": np.zeros(size, type_)}


END = "the end of the text"
ENTRY = "func.func @k"


@dataclass(frozen=True)
class Fault:
    """One program or call; ``error`` is the name of the class, or of the warning. Where no mark can stand, ``at`` is a
    text of the line at fault, or ``END`` for the end of the program; a call that names no function has no line."""

    name: str
    text: str
    stage: Literal["parse", "run", "warn", "valid", "static"]
    error: str | None = None
    static: str | None = None
    arguments: Callable[[], Arguments] = field(default_factory=two_arrays)
    function: str = "k"
    machine: str | None = None
    result: Callable[[], np.ndarray] | None = None
    at: str | None = None
    max_bytes: int = 1 << 30

    @property
    def line(self) -> int | None:
        lines = self.text.split("\n")
        if self.at == END:
            return len(lines)
        marked = [n for n, text in enumerate(lines, 1) if (self.at or "// @here") in text]
        return marked[0] if marked else None


def doubled(size: int = 64, type_: Any = np.float16) -> Callable[[], np.ndarray]:
    return lambda: (2 * np.arange(size)).astype(type_)


big = two_arrays(4096)
rows = two_arrays(256)
GOOD = kernel(copy())
cut = GOOD[: GOOD.rindex("ktdp.store")]

OF_16 = "memref<16xf16>"

FAULTS: tuple[Fault, ...] = (
    # ------------------------------------------------------------------------------------------------------------- text
    Fault("01_cut_in_the_middle", GOOD[: int(len(GOOD) * 0.6)], "parse", "ParseError", at=END),
    Fault("02_closing_brace_missing", GOOD.rstrip().removesuffix("}"), "parse", "ParseError", at=END),
    Fault(
        "03_loaded_as_another_type",
        kernel(copy("", out="f32").replace("-> tensor<64xf16>", "-> tensor<64xf32> // @here").replace("%r,", "%v,")),
        "run",
        "ElementTypeMismatch",
        "ElementTypeMismatch",
        lambda: {"x_ptr": np.zeros(64, np.float16), "y_ptr": np.zeros(64, np.float32)},
    ),
    Fault(
        "04_integer_addition_of_floats",
        kernel(copy("%r = arith.addi %v, %v : tensor<64xf16> // @here\n")),
        "parse",
        "ParseError",
    ),
    Fault(
        "05_undefined_value", kernel(copy("%r = arith.addf %v, %zz : tensor<64xf16> // @here\n")), "parse", "ParseError"
    ),
    Fault(
        "06_unknown_operation",
        kernel(copy("%r = arith.frobnicate %v : tensor<64xf16> // @here\n")),
        "parse",
        "ParseError",
    ),
    Fault(
        "07_array_shorter_than_its_view",
        kernel(copy().replace("-> tensor<64xf16>", "-> tensor<64xf16> // @here")),
        "run",
        "ArgumentError",
        None,
        lambda: {"x_ptr": np.zeros(32, np.float16), "y_ptr": np.zeros(64, np.float16)},
    ),
    Fault("08_f32_array_for_an_f16_view", GOOD, "run", "ArgumentError", None, two_arrays(64, np.float32), at=ENTRY),
    Fault("09_f64_array_for_an_f16_view", GOOD, "run", "ArgumentError", None, two_arrays(64, np.float64), at=ENTRY),
    Fault(
        "10_argument_missing", GOOD, "run", "ArgumentError", None, lambda: {"x_ptr": np.zeros(64, np.float16)}, at=ENTRY
    ),
    Fault("11_argument_unknown", GOOD, "run", "ArgumentError", None, lambda: {**two_arrays()(), "zzz": 1}, at=ENTRY),
    Fault(
        "12_blocks_too_large", kernel(blocks(256, load=" // @here"), "[32]"), "run", "OutOfBounds", "OutOfBounds", big
    ),
    Fault(
        "13_pointer_to_nowhere",
        kernel(copy().replace("-> tensor<64xf16>", "-> tensor<64xf16> // @here")),
        "run",
        "OutOfBounds",
        None,
        lambda: {"x_ptr": 10**9, "y_ptr": np.zeros(64, np.float16)},
    ),
    Fault(
        "14_tile_before_the_view",
        kernel(copy().replace("%x[0]", "%x[-64]").replace("-> tensor<64xf16>", "-> tensor<64xf16> // @here")),
        "run",
        "OutOfBounds",
        "OutOfBounds",
    ),
    Fault("15_tile_as_large_as_half_a_scratchpad", GOOD, "valid", result=doubled(), machine="spyre"),
    Fault(
        "16_nan_stays_in_its_lane",
        kernel(copy("%r = arith.maximumf %v, %v : tensor<64xf16>\n")),
        "valid",
        arguments=lambda: {"x_ptr": np.r_[np.nan, np.ones(63)].astype(np.float16), "y_ptr": np.zeros(64, np.float16)},
        result=lambda: np.r_[np.nan, np.ones(63)].astype(np.float16),
    ),
    Fault(
        "17_loaded_as_a_dynamic_tensor",
        kernel(
            view("x", "%x_ptr", 64) + tile("xt", "x", "0") + "%v = ktdp.load %xt : <64xindex> -> tensor<?xf16> // @here"
        ),
        "parse",
        "VerifyError",
    ),
    Fault(
        "18_undefined_size",
        kernel(
            view("x", "%x_ptr", 64).replace("[64]", "[%nope]").replace("memref<64", "memref<?").replace("#s64", "#n1")
        ).replace("func.func", "#n1 = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>\nfunc.func"),
        "parse",
        "ParseError",
        at="%nope",
    ),
    Fault(
        "19_view_off_a_stick",
        kernel(
            "%one = arith.constant 1 : index\n%p = arith.addi %x_ptr, %one : index\n"
            + copy().replace("view %x_ptr", "view %p")
        ),
        "valid",
        arguments=lambda: {"x_ptr": np.arange(65).astype(np.float16), "y_ptr": np.zeros(64, np.float16)},
        result=lambda: (2 * np.arange(1, 65)).astype(np.float16),
    ),
    Fault(
        "20_half_of_a_set",
        kernel(
            view("x", "%x_ptr", 64)
            + tile("xt", "x", "0", set_="affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0, -d0 + 31 >= 0)>").rstrip()
            + " // @here\n"
            + "%v = ktdp.load %xt : <64xindex> -> tensor<64xf16>"
        ),
        "run",
        "TileShapeMismatch",
        "TileShapeMismatch",
    ),
    Fault(
        "21_constraint_that_excludes_nothing",
        kernel(
            copy().replace(
                "#s64} : memref<64xf16> ->",
                "affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0, -d0 * 2 + 126 >= 0)>} : memref<64xf16> ->",
                1,
            )
        ),
        "valid",
        result=doubled(),
    ),
    Fault(
        "22_step_of_zero",
        kernel(
            "%c0 = arith.constant 0 : index\n%c4 = arith.constant 4 : index\n"
            "scf.for %i = %c0 to %c4 step %c0 { // @here\n}\n" + copy()
        ),
        "run",
        "LoopStepNotPositive",
        "LoopStepNotPositive",
    ),
    Fault(
        "23_while_true",
        kernel(
            "%true = arith.constant true\nscf.while (%a = %true) : (i1) -> () { // @here\n  scf.condition(%a)\n"
            "} do {\n  scf.yield %true : i1\n}\n" + copy()
        ),
        "run",
        "LimitExceeded",
    ),
    Fault(
        "24_a_billion_iterations",
        kernel(
            "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%n = arith.constant 1000000000 : index\n"
            "%f = arith.constant 1.0 : f32\n"
            "%t = scf.for %i = %c0 to %n step %c1 iter_args(%a = %f) -> (f32) {\n"
            "  %s = arith.addf %a, %f : f32\n  scf.yield %s : f32\n}\n" + copy()
        ),
        "run",
        "LimitExceeded",
        at="scf.for",
    ),
    Fault(
        "25_three_of_four_never_produce",
        kernel(
            groups()
            .replace(
                "%f = ",
                "%none = arith.constant 0 : index\n%first = arith.cmpi eq, %id, %none : index\nscf.if %first {\n%f = ",
            )
            .replace("ktdp.inter_tile_reduce(%f)", "ktdp.inter_tile_reduce(%f)")
            .replace(" {\n^bb0(%l", " { // @here\n^bb0(%l")
            + "}\n",
            "[4]",
        ),
        "run",
        "Deadlock",
        None,
        rows,
    ),
    Fault(
        "26_group_beyond_the_grid",
        kernel(groups("#eight", "#eight", here=" // @here"), "[4]"),
        "run",
        "Deadlock",
        "Deadlock",
        rows,
    ),
    Fault("27_two_produce_four_consume", kernel(groups("#two"), "[4]"), "valid", arguments=rows),
    Fault(
        "28_shapes_that_only_broadcast",
        kernel(
            copy(
                "%one = arith.constant dense<1.0> : tensor<1xf16>\n%r = arith.addf %v, %one : tensor<64xf16> // @here\n"
            )
        ),
        "parse",
        "ParseError",
    ),
    Fault(
        "29_inner_extents_differ",
        kernel(
            "%a = arith.constant dense<1.0> : tensor<8x32xf16>\n%b = arith.constant dense<1.0> : tensor<16x32xf16>\n"
            "%o = arith.constant dense<0.0> : tensor<8x32xf16>\n"
            "%p = linalg.matmul ins(%a, %b : tensor<8x32xf16>, tensor<16x32xf16>) outs(%o : tensor<8x32xf16>) "
            "-> tensor<8x32xf16> // @here"
        ),
        "parse",
        "VerifyError",
    ),
    Fault(
        "30_defined_twice",
        kernel(copy("%r = arith.addf %v, %v : tensor<64xf16>\n%r = arith.mulf %v, %v : tensor<64xf16> // @here\n")),
        "parse",
        "ParseError",
    ),
    Fault(
        "31_set_larger_than_its_type",
        kernel(
            view("x", "%x_ptr", 4096)
            + tile("xt", "x", "0", 128, "memref<4096xf16>", "#s256").rstrip()
            + " // @here\n"
            + "%v = ktdp.load %xt : <128xindex> -> tensor<128xf16>"
        ),
        "run",
        "TileShapeMismatch",
        "TileShapeMismatch",
        big,
    ),
    Fault(
        "32_loaded_as_half_a_tile",
        kernel(
            view("x", "%x_ptr", 128)
            + tile("xt", "x", "0", 128, "memref<128xf16>")
            + "%v = ktdp.load %xt : <128xindex> -> tensor<64xf16> // @here"
        ),
        "parse",
        "VerifyError",
    ),
    Fault("33_no_such_function", GOOD, "run", "FunctionNotFound", function="k2"),
    Fault(
        "34_grid_of_nothing",
        kernel(copy(), "[0]").replace("grid = [0]} {", "grid = [0]} { // @here"),
        "run",
        "IllegalGrid",
        "IllegalGrid",
    ),
    Fault(
        "35_grid_beyond_every_machine",
        kernel(copy(), "[100000, 1]").replace("1]} {", "1]} { // @here"),
        "run",
        "IllegalGrid",
        "IllegalGrid",
    ),
    Fault(
        "35b_grid_beyond_the_machine",
        kernel(copy(), "[64]").replace("grid = [64]} {", "grid = [64]} { // @here"),
        "run",
        "GridExceedsMachine",
        "GridExceedsMachine",
        machine="spyre",
    ),
    Fault(
        "36_all_cores_store_the_same",
        kernel(blocks(0, store=" // @here"), "[32]"),
        "warn",
        "WriteConflict",
        "WriteConflict",
        big,
    ),
    Fault(
        "37_empty_as_an_operand",
        kernel(copy("%e = tensor.empty() : tensor<64xf16>\n%r = arith.addf %v, %e : tensor<64xf16> // @here\n")),
        "run",
        "UninitialisedRead",
        "UninitialisedRead",
    ),
    Fault(
        "38_f16_overflows_to_infinity",
        GOOD,
        "valid",
        arguments=lambda: {"x_ptr": np.full(64, 60000, np.float16), "y_ptr": np.zeros(64, np.float16)},
        result=lambda: np.full(64, np.inf, np.float16),
    ),
    Fault(
        "39_bf16",
        kernel(copy("%r = arith.addf %v, %v : tensor<64xbf16>\n", "bf16", "bf16")),
        "valid",
        arguments=two_arrays(64, ml_dtypes.bfloat16),
        result=doubled(64, ml_dtypes.bfloat16),
    ),
    Fault("40_not_a_program", "the quick brown fox // @here\n", "parse", "ParseError"),
    Fault(
        "41_division_by_zero",
        kernel(
            "%c4 = arith.constant 4 : index\n%c0 = arith.constant 0 : index\n"
            "%q = arith.divui %c4, %c0 : index // @here\n" + copy().replace("%x[0]", "%x[%q]")
        ),
        "run",
        "DivisionByZero",
        "DivisionByZero",
    ),
    Fault(
        "42_i32_wraps",
        kernel(
            copy(
                "%most = arith.constant 2147483647 : i32\n%one = arith.constant 1 : i32\n"
                "%least = arith.addi %most, %one : i32\n"
                "%s = arith.sitofp %least : i32 to f16\n%r = tensor.splat %s : tensor<64xf16>\n"
            )
        ),
        "valid",
        result=lambda: np.full(64, -np.inf, np.float16),
    ),
    Fault(
        "43_stored_as_another_type",
        kernel(
            copy("%w = arith.extf %v : tensor<64xf16> to tensor<64xf32>\n").replace(
                "ktdp.store %r, %yt : tensor<64xf16>, <64xindex>",
                "ktdp.store %w, %yt : tensor<64xf32>, <64xindex> // @here",
            )
        ),
        "run",
        "ElementTypeMismatch",
        "ElementTypeMismatch",
    ),
    Fault(
        "44_scratchpad_address_beyond_it",
        kernel(
            "%far = arith.constant 5000000 : index\n"
            + view("lx", "%far", 64, space="ct_local")
            + copy(
                "%r = arith.addf %v, %v : tensor<64xf16>\n"
                + tile("lt", "lx", "0")
                + "ktdp.store %r, %lt : tensor<64xf16>, <64xindex> // @here\n"
            )
        ),
        "run",
        "ScratchpadOverflow",
        "ScratchpadOverflow",
        machine="spyre",
    ),
    Fault(
        "45_scratchpad_of_no_core",
        kernel(
            "%c0 = arith.constant 0 : index\n"
            + view("lx", "%c0", 64, space="ct_local, ct_id = 77")
            + copy(
                "%r = arith.addf %v, %v : tensor<64xf16>\n"
                + tile("lt", "lx", "0")
                + "ktdp.store %r, %lt : tensor<64xf16>, <64xindex> // @here\n"
            )
        ),
        "run",
        "OutOfBounds",
        "OutOfBounds",
    ),
    Fault("46_no_return", GOOD.replace("  return\n", ""), "parse", "VerifyError", at="ktdp.store"),
    Fault(
        "47_output_a_block_early",
        kernel(
            copy()
            .replace("%y[0]", "%y[-64]")
            .replace("tensor<64xf16>, <64xindex>", "tensor<64xf16>, <64xindex> // @here")
        ),
        "run",
        "OutOfBounds",
        "OutOfBounds",
    ),
    Fault(
        "48_no_such_memory", kernel(view("x", "%x_ptr", 64, space="sram").rstrip() + " // @here"), "parse", "ParseError"
    ),
    Fault(
        "49_array_for_a_number",
        kernel("%i = arith.index_cast %n : i32 to index\n" + copy(), arguments="%x_ptr: index, %y_ptr: index, %n: i32"),
        "run",
        "ArgumentError",
        None,
        lambda: {**two_arrays()(), "n": np.zeros(4, np.float16)},
        at=ENTRY,
    ),
    Fault(
        "50_step_below_zero",
        kernel(
            "%c0 = arith.constant 0 : index\n%c4 = arith.constant 4 : index\n%down = arith.constant -1 : index\n"
            "scf.for %i = %c4 to %c0 step %down { // @here\n}\n" + copy()
        ),
        "run",
        "LoopStepNotPositive",
        "LoopStepNotPositive",
    ),
    Fault("51_dots_and_numbers_in_names", GOOD.replace("%xt", "%x.1").replace("%v", "%0"), "valid", result=doubled()),
    Fault(
        "52_generic_form",
        kernel(copy('%r = "arith.addf"(%v, %v) : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>\n')),
        "valid",
        result=doubled(),
    ),
    Fault(
        "54_two_operations_on_a_line",
        kernel(copy().replace("tensor<64xf16>\n%yt", "tensor<64xf16> %yt")),
        "valid",
        result=doubled(),
    ),
    Fault(
        "55_mixed_precision_product",
        kernel(
            "%a = arith.constant dense<40.0> : tensor<8x64xf16>\n%b = arith.constant dense<40.0> : tensor<64x8xf16>\n"
            "%o = arith.constant dense<0.0> : tensor<8x8xf32>\n"
            "%p = linalg.matmul ins(%a, %b : tensor<8x64xf16>, tensor<64x8xf16>) outs(%o : tensor<8x8xf32>) "
            "-> tensor<8x8xf32>\n"
            "%r = tensor.collapse_shape %p [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>\n"
            + view("y", "%y_ptr", 64, "f32")
            + tile("yt", "y", "0", of="memref<64xf32>")
            + "ktdp.store %r, %yt : tensor<64xf32>, <64xindex>"
        ),
        "valid",
        arguments=two_arrays(64, np.float32),
        result=lambda: np.full(64, 102400, np.float32),
    ),
)
