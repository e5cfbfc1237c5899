"""Faults of memory and of cores that work together: races, holes, undefined values, bounds in loops and branches."""

from __future__ import annotations

import numpy as np

from tests.faults.catalogue import Fault, big, blocks, copy, doubled, groups, kernel, rows, tile, view

OF = "memref<64xf16>"
HALF = "affine_set<(d0) : (d0 >= 0, -d0 + 31 >= 0)>"


def halves(second: str) -> str:
    """A view of 64 elements made of two of 32; ``second`` is what the second one owns."""
    low = view("a", "%x_ptr", 32, set_=HALF)
    high = view("b", "%x_ptr", 32, set_=second)
    return (
        low
        + high
        + "%x = ktdp.construct_distributed_memory_view (%a, %b : memref<32xf16>, memref<32xf16>) : memref<64xf16>\n"
    )


def gathered(indices: str) -> str:
    """Elements of x at the indices that ``indices`` holds."""
    return (
        view("x", "%x_ptr", 64)
        + view("i", "%i_ptr", 16, "i32")
        + "%t = ktdp.construct_indirect_access_tile intermediate_variables(%m) %x[ind(%i[%m])] "
        "{variables_space_order = #id1, variables_space_set = #s16} : memref<64xf16>, memref<16xi32> "
        "-> !ktdp.access_tile<16xindex>\n"
        f"%v = ktdp.load %t : <16xindex> -> tensor<16xf16> // {indices}"
    )


def with_indices(*indices: int):
    found = np.resize(np.array(indices, np.int32), 16)
    return lambda: {"x_ptr": np.zeros(64, np.float16), "i_ptr": found}


def looped(rows_: int, guard: tuple[str, str] = ("", "")) -> str:
    """Copies ``rows_`` rows of 64 out of 4."""
    row = "!ktdp.access_tile<1x64xindex>"
    return (
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c4 = arith.constant 4 : index\n"
        f"%n = arith.constant {rows_} : index\n"
        + "".join(
            f"%{name} = ktdp.construct_memory_view %{name}_ptr, sizes: [4, 64], strides: [64, 1] "
            "{coordinate_set = #m64, memory_space = #ktdp.memory_space<global>} : memref<4x64xf16>\n"
            for name in "xy"
        )
        + "scf.for %i = %c0 to %n step %c1 {\n"
        + guard[0]
        + f"  %xt = ktdp.construct_access_tile %x[%i, 0] {{access_tile_order = #id2, access_tile_set = #r64}} : "
        f"memref<4x64xf16> -> {row}\n"
        "  %v = ktdp.load %xt : <1x64xindex> -> tensor<1x64xf16> // @here\n"
        "  %yt = ktdp.construct_access_tile %y[%i, 0] {access_tile_order = #id2, access_tile_set = #r64} : "
        f"memref<4x64xf16> -> {row}\n"
        "  ktdp.store %v, %yt : tensor<1x64xf16>, <1x64xindex>\n" + guard[1] + "}"
    )


def remote(second: str) -> str:
    """Each of two cores stores to its scratchpad and reads from there and from the other's."""
    return (
        "%id = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n"
        + view("own", "%c0", 64, space="ct_local")
        + view("first", "%c0", 64, space="ct_local, ct_id = 0")
        + copy(
            tile("ot", "own", "0")
            + "ktdp.store %v, %ot : tensor<64xf16>, <64xindex>\n"
            + tile("ft", "first", "0")
            + "%r = ktdp.load %ft : <64xindex> -> tensor<64xf16>"
            + second
            + "\n"
        )
    )


MEMORY: tuple[Fault, ...] = (
    Fault(
        "60_two_cores_write_one_block",
        kernel(
            blocks(
                128,
                "arith.muli %half, %block : index",
                store=" // @here",
            )
            .replace("%start =", "%two = arith.constant 2 : index\n%half = arith.divui %id, %two : index\n%start =")
            .replace("%x[%start]", "%x[%id * 128]"),
            "[32]",
        ),
        "run",
        "WriteConflict",
        "WriteConflict",
        big,
    ),
    Fault(
        "61_reads_what_the_neighbour_writes",
        kernel(
            blocks(128)
            .replace("%y_ptr, sizes", "%x_ptr, sizes")
            .replace("%x[%start]", "%x[(%id * 128 + 64) mod 3968]")
            .replace("-> tensor<128xf16>", "-> tensor<128xf16> // @here"),
            "[31]",
        ),
        "run",
        "ReadWriteRace",
        "ReadWriteRace",
        big,
    ),
    Fault(
        "62_reads_a_scratchpad_that_is_being_written",
        kernel(remote(" // @here"), "[2]"),
        "run",
        "RemoteReadRace",
        "RemoteReadRace",
    ),
    Fault("62b_reads_its_own_scratchpad_by_number", kernel(remote(""), "[1]"), "valid"),
    Fault(
        "63_hole_in_a_distributed_view",
        kernel(
            halves("affine_set<(d0) : (d0 - 32 >= 0, -d0 + 47 >= 0)>")
            + tile("xt", "x", "0")
            + "%v = ktdp.load %xt : <64xindex> -> tensor<64xf16> // @here"
        ),
        "run",
        "DistributedViewHole",
        "DistributedViewHole",
    ),
    Fault(
        "64_overlap_in_a_distributed_view",
        kernel(
            halves("affine_set<(d0) : (d0 - 16 >= 0, -d0 + 63 >= 0)>")
            .replace(
                "%b = ktdp.construct_memory_view %x_ptr, sizes: [32]",
                "%b = ktdp.construct_memory_view %x_ptr, sizes: [48]",
            )
            .replace("} : memref<32xf16>\n%x", "} : memref<48xf16>\n%x")
            .replace(
                "memref<32xf16>, memref<32xf16>) : memref<64xf16>",
                "memref<32xf16>, memref<48xf16>) : memref<64xf16> // @here",
            )
            + tile("xt", "x", "0")
            + "%v = ktdp.load %xt : <64xindex> -> tensor<64xf16>"
        ),
        "valid",
        None,
        "?DistributedViewOverlap",
    ),
    Fault(
        "65_scratchpad_read_before_it_is_written",
        kernel(
            "%c0 = arith.constant 0 : index\n"
            + view("own", "%c0", 64, space="ct_local")
            + copy(tile("ot", "own", "0") + "%r = ktdp.load %ot : <64xindex> -> tensor<64xf16> // @here\n")
        ),
        "run",
        "UninitialisedRead",
    ),
    Fault(
        "66_used_where_nothing_is_delivered",
        kernel(groups(consumers="#two", here=" // @here"), "[4]"),
        "run",
        "UninitialisedRead",
        None,
        rows,
    ),
    Fault(
        "67_negative_index",
        kernel(gathered("@here"), arguments="%x_ptr: index, %i_ptr: index"),
        "run",
        "OutOfBounds",
        None,
        with_indices(3, -1, 2),
    ),
    Fault(
        "68_index_behind_the_table",
        kernel(gathered("@here"), arguments="%x_ptr: index, %i_ptr: index"),
        "run",
        "OutOfBounds",
        None,
        with_indices(3, 64, 2),
    ),
    Fault(
        "69_index_in_the_table",
        kernel(gathered(""), arguments="%x_ptr: index, %i_ptr: index"),
        "valid",
        arguments=with_indices(0, 63, 5),
    ),
    Fault(
        "70_product_onto_an_empty_tensor",
        kernel(
            "%a = arith.constant dense<2.0> : tensor<8x8xf16>\n%e = tensor.empty() : tensor<8x8xf16>\n"
            "%p = linalg.matmul ins(%a, %a : tensor<8x8xf16>, tensor<8x8xf16>) outs(%e : tensor<8x8xf16>) "
            "-> tensor<8x8xf16> // @here\n"
            "%r = tensor.collapse_shape %p [[0, 1]] : tensor<8x8xf16> into tensor<64xf16>\n"
            + view("y", "%y_ptr", 64)
            + tile("yt", "y", "0")
            + "ktdp.store %r, %yt : tensor<64xf16>, <64xindex>"
        ),
        "warn",
        "AccumulatesOntoEmpty",
        "?AccumulatesOntoEmpty",
    ),
    Fault(
        "71_reduction_onto_an_empty_tensor",
        kernel(
            copy(
                "%e = tensor.empty() : tensor<f16>\n"
                "%s = linalg.reduce { arith.addf } ins(%v : tensor<64xf16>) outs(%e : tensor<f16>) "
                "dimensions = [0] // @here\n"
                "%t = tensor.extract %s[] : tensor<f16>\n%r = tensor.splat %t : tensor<64xf16>\n"
            )
        ),
        "run",
        "UninitialisedRead",
        "UninitialisedRead",
    ),
    Fault(
        "72_body_reads_an_empty_output",
        kernel(
            copy(
                "%e = tensor.empty() : tensor<64xf16>\n"
                '%r = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} // @here\n'
                "    ins(%v : tensor<64xf16>) outs(%e : tensor<64xf16>) {\n"
                "^bb0(%a: f16, %o: f16):\n  %s = arith.addf %a, %o : f16\n  linalg.yield %s : f16\n"
                "} -> tensor<64xf16>\n"
            )
        ),
        "run",
        "UninitialisedRead",
        "UninitialisedRead",
    ),
    Fault(
        "73_output_written_over",
        kernel(
            copy(
                "%e = tensor.empty() : tensor<64xf16>\n"
                "%r = linalg.add ins(%v, %v : tensor<64xf16>, tensor<64xf16>) outs(%e : tensor<64xf16>) "
                "-> tensor<64xf16>\n"
            )
        ),
        "valid",
        result=doubled(),
    ),
    Fault(
        "74_last_core_beyond_the_end",
        kernel(
            blocks(128)
            .replace("sizes: [4096]", "sizes: [4000]")
            .replace("#s4096", "#s4000")
            .replace("memref<4096", "memref<4000")
            .replace("-> tensor<128xf16>", "-> tensor<128xf16> // @here"),
            "[32]",
        ).replace("func.func", "#s4000 = affine_set<(d0) : (d0 >= 0, -d0 + 3999 >= 0)>\nfunc.func"),
        "run",
        "OutOfBounds",
        "OutOfBounds",
        big,
    ),
    Fault("75_one_row_too_many", kernel(looped(5)), "run", "OutOfBounds", "OutOfBounds", rows),
    Fault("76_all_rows", kernel(looped(4).replace(" // @here", "")), "valid", arguments=rows),
    Fault(
        "77_one_row_too_many_but_guarded",
        kernel(
            looped(5, ("  %in = arith.cmpi slt, %i, %c4 : index\n  scf.if %in {\n", "  }\n")).replace(" // @here", "")
        ),
        "valid",
        arguments=rows,
    ),
    Fault(
        "78_extents_in_another_order",
        kernel(
            "%x = ktdp.construct_memory_view %x_ptr, sizes: [4, 64], strides: [64, 1] {coordinate_set = #m64, "
            "memory_space = #ktdp.memory_space<global>} : memref<4x64xf16>\n"
            "%t = ktdp.construct_access_tile %x[0, 0] {access_tile_order = #id2, access_tile_set = #m64} : "
            "memref<4x64xf16> -> !ktdp.access_tile<64x4xindex> // @here\n"
            "%v = ktdp.load %t : <64x4xindex> -> tensor<64x4xf16>"
        ),
        "warn",
        "TileShapeMismatch",
        "?TileShapeMismatch",
        rows,
    ),
    Fault(
        "79_buffers_on_top_of_each_other",
        kernel(
            "%c0 = arith.constant 0 : index\n%c32 = arith.constant 32 : index\n"
            + view("a", "%c0", 64, space="ct_local")
            + view("b", "%c32", 64, space="ct_local")
            + copy(
                tile("at", "a", "0") + tile("bt", "b", "0") + "ktdp.store %v, %at : tensor<64xf16>, <64xindex>\n"
                "%w = arith.addf %v, %v : tensor<64xf16>\n"
                "ktdp.store %w, %bt : tensor<64xf16>, <64xindex> // @here\n"
                "%p = ktdp.load %at : <64xindex> -> tensor<64xf16>\n"
                "%q = ktdp.load %bt : <64xindex> -> tensor<64xf16>\n"
                "%r = arith.addf %p, %q : tensor<64xf16>\n"
            )
        ),
        "valid",
        None,
        "?ScratchpadOverlap",
    ),
    Fault(
        "80_one_row_of_a_buffer_through_a_view_of_its_own",
        kernel(
            "%c0 = arith.constant 0 : index\n%c32 = arith.constant 32 : index\n"
            + view("a", "%c0", 64, space="ct_local")
            + view("b", "%c32", 32, space="ct_local")
            + copy(
                tile("at", "a", "0")
                + tile("bt", "b", "0", 32, "memref<32xf16>")
                + "ktdp.store %v, %at : tensor<64xf16>, <64xindex>\n"
                "%one = arith.constant dense<1.0> : tensor<32xf16>\n"
                "ktdp.store %one, %bt : tensor<32xf16>, <32xindex>\n"
                "%r = ktdp.load %at : <64xindex> -> tensor<64xf16>\n"
            )
        ),
        "valid",
        result=lambda: np.r_[np.arange(32), np.ones(32)].astype(np.float16),
    ),
    Fault(
        "81_two_sources_for_one_consumer",
        kernel(
            groups().replace(
                "%s = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #all4, "
                "identity(%zero : tensor<1x64xf16>) : "
                "<(tensor<1x64xf16>), groups = #g0> -> tensor<1x64xf16> {\n"
                "^bb0(%l: tensor<1x64xf16>, %q: tensor<1x64xf16>):\n"
                "  %lq = arith.addf %l, %q : tensor<1x64xf16>\n"
                "  ktdp.yield_reduced %lq : tensor<1x64xf16>\n}\n",
                "%s = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #all4, "
                "producer_dependency_per_consumer = affine_set<(p)[c] : (p - c >= 0, -p + c + 1 >= 0, -p + 3 >= 0)> "
                ": <(tensor<1x64xf16>), groups = #g0> -> tensor<1x64xf16> // @here\n",
            ),
            "[4]",
        ),
        "run",
        "Deadlock",
        "Deadlock",
        rows,
    ),
    Fault(
        "82_groups_that_share_a_tile",
        kernel(
            groups(producers="affine_set<(i)[g] : (i - g >= 0, -i + g + 1 >= 0)> ")
            .replace("groups = #g0", "groups = affine_set<(g) : (g >= 0, -g + 2 >= 0)>")
            .replace(
                "-> <(tensor<1x64xf16>), groups = affine_set<(g) : (g >= 0, -g + 2 >= 0)>> {\n",
                "-> <(tensor<1x64xf16>), groups = affine_set<(g) : (g >= 0, -g + 2 >= 0)>> { // @here\n",
                1,
            ),
            "[4]",
        ),
        "parse",
        "VerifyError",
    ),
    Fault(
        "83_calls_itself",
        kernel(copy() + "func.call @k(%x_ptr, %y_ptr) : (index, index) -> () // @here"),
        "run",
        "LimitExceeded",
    ),
    Fault(
        "84_number_for_a_pointer_is_not_whole",
        kernel(copy()),
        "run",
        "ArgumentError",
        None,
        lambda: {"x_ptr": 1.5, "y_ptr": np.zeros(64, np.float16)},
        at="func.func @k",
    ),
    Fault(
        "85_number_beyond_its_type",
        kernel("%i = arith.index_cast %n : i32 to index\n" + copy(), arguments="%x_ptr: index, %y_ptr: index, %n: i32"),
        "run",
        "ArgumentError",
        None,
        lambda: {"x_ptr": np.zeros(64, np.float16), "y_ptr": np.zeros(64, np.float16), "n": 1 << 40},
        at="func.func @k",
    ),
    Fault(
        "86_brackets_without_end",
        "func.func @k() { %a = arith.constant " + "(" * 100_000,
        "parse",
        "NestingTooDeep",
        at="func.func @k",
    ),
    Fault(
        "87_integer_comparison_of_floats",
        kernel(
            copy("%m = arith.cmpi sge, %v, %v : tensor<64xf16> // @here\n%r = arith.addf %v, %v : tensor<64xf16>\n")
        ),
        "parse",
        "VerifyError",
    ),
    Fault(
        "88_dangling_alias",
        kernel(copy()).replace("access_tile_set = #s64}", "access_tile_set = #nowhere}", 1),
        "parse",
        "ParseError",
        at="#nowhere",
    ),
    Fault(
        "89_as_many_tiles_as_cores",
        kernel(blocks(), "[32]"),
        "valid",
        arguments=big,
        machine="spyre",
        result=lambda: 2 * np.arange(4096).astype(np.float16),
    ),
)
