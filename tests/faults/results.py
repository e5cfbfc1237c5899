"""Faults of results: integers that nobody defines, padding, numbers of a run that are too large; and of the order of
what cores do."""

from __future__ import annotations

import numpy as np

from tests.faults.catalogue import ENTRY, Fault, copy, groups, kernel, rows, tile, two_arrays, view
from tests.faults.memory import looped

INTEGERS = two_arrays(64, np.int32)


def on_integers(middle: str, type_: str = "i32", out: str = "i32") -> str:
    """``%r`` computed from 64 integers ``%v``."""
    return kernel(copy(middle, type_, out))


def splat(name: str, value: str, type_: str = "i32") -> str:
    return f"%{name} = arith.constant dense<{value}> : tensor<64x{type_}>\n"


PADDED = "#ktdp.stick_layout<[0 : 64 : 1], extent = [40], pad = undef>"
"""Forty elements in a stick of 64."""

RESULTS: tuple[Fault, ...] = (
    Fault(
        "90_overflow_against_a_flag",
        on_integers(splat("c", "2147483647") + "%r = arith.addi %v, %c overflow<nsw> : tensor<64xi32> // @here\n"),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "91_overflow_without_a_flag_wraps",
        on_integers(splat("c", "2147483647") + "%r = arith.addi %v, %c : tensor<64xi32>\n"),
        "valid",
        arguments=INTEGERS,
        result=lambda: np.arange(64, dtype=np.int32) + np.int32(2147483647),
    ),
    Fault(
        "92_shift_by_the_width",
        on_integers(splat("c", "32") + "%r = arith.shli %v, %c : tensor<64xi32> // @here\n"),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "93_least_integer_by_minus_one",
        on_integers(
            splat("a", "-2147483648") + splat("b", "-1") + "%r = arith.divsi %a, %b : tensor<64xi32> // @here\n"
        ),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "94_float_beyond_the_integer",
        on_integers(splat("a", "3.0e9", "f32") + "%r = arith.fptosi %a : tensor<64xf32> to tensor<64xi32> // @here\n"),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "95_undefined_lanes_that_nobody_takes",
        on_integers(
            splat("c", "32")
            + splat("z", "0")
            + "%s = arith.shli %v, %c : tensor<64xi32>\n%m = arith.cmpi slt, %v, %z : tensor<64xi32>\n"
            "%r = arith.select %m, %s, %v : tensor<64xi1>, tensor<64xi32>\n"
        ),
        "valid",
        arguments=INTEGERS,
        result=lambda: np.arange(64, dtype=np.int32),
    ),
    Fault(
        "96_undefined_number_as_an_index",
        kernel(
            "%c64 = arith.constant 64 : index\n%one = arith.constant 1 : index\n"
            "%i = arith.shli %one, %c64 : index // @here\n" + copy().replace("%x[0]", "%x[%i]")
        ),
        "run",
        "IntegerOverflow",
    ),
    Fault(
        "97_sum_that_overflows_unsigned",
        on_integers(splat("c", "-1") + "%r = arith.addi %v, %c overflow<nuw> : tensor<64xi32> // @here\n"),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "98_cut_that_loses_bits_against_a_flag",
        on_integers(
            splat("c", "300") + "%b = arith.trunci %c overflow<nsw> : tensor<64xi32> to tensor<64xi8> // @here\n"
            "%r = arith.extsi %b : tensor<64xi8> to tensor<64xi32>\n"
        ),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "99_read_before_a_write_without_order",
        kernel(
            groups()
            .replace("%y_ptr, sizes", "%x_ptr, sizes")
            .replace("%x[%id, 0]", "%x[(%id + 1) mod 4, 0]")
            # the exchange comes first, so that nothing orders the read and the write
            .replace("-> tensor<1x64xf16>\n%zero", "-> tensor<1x64xf16> // @here\n%zero")
            .replace("ktdp.yield_partial %v", "ktdp.yield_partial %zero")
            .replace(
                "consumer_tiles_per_group = #all4",
                "consumer_tiles_per_group = #all4, "
                "producer_dependency_per_consumer = affine_set<(p)[c] : (p - c == 0)>",
            ),
            "[4]",
        ),
        "run",
        "ReadWriteRace",
        "ReadWriteRace",
        rows,
    ),
    Fault(
        "100_read_before_a_write_in_order",
        kernel(
            groups().replace("%y_ptr, sizes", "%x_ptr, sizes").replace("%x[%id, 0]", "%x[(%id + 1) mod 4, 0]"), "[4]"
        ),
        "valid",
        arguments=rows,
    ),
    Fault(
        "101_one_tensor_larger_than_the_limit",
        kernel(
            "%e = tensor.empty() : tensor<100000x100000xf32> // @here\n%c = arith.constant 1.0 : f32\n"
            "%f = linalg.fill ins(%c : f32) outs(%e : tensor<100000x100000xf32>) -> tensor<100000x100000xf32>\n"
            + copy()
        ),
        "run",
        "LimitExceeded",
    ),
    Fault(
        "102_a_size_that_is_too_large_at_run_time",
        kernel(
            "%n = arith.constant 100000 : index\n%c = arith.constant 1.0 : f32\n"
            "%f = tensor.splat %c[%n, %n] : tensor<?x?xf32> // @here\n" + copy()
        ),
        "run",
        "LimitExceeded",
    ),
    Fault(
        "103_a_negative_size",
        kernel("%n = arith.constant -1 : index\n%e = tensor.empty(%n) : tensor<?xf32> // @here\n" + copy()),
        "run",
        "OutOfBounds",
    ),
    Fault(
        "104_a_scratchpad_larger_than_the_limit",
        kernel(
            "%far = arith.constant 1000000000 : index\n"
            + view("own", "%far", 64, space="ct_local")
            + copy(
                tile("ot", "own", "0") + "ktdp.store %v, %ot : tensor<64xf16>, <64xindex> // @here\n"
                "%r = arith.addf %v, %v : tensor<64xf16>\n"
            )
        ),
        "run",
        "LimitExceeded",
    ),
    Fault(
        "105_no_multiple_of_its_granularity",
        kernel(copy(), arguments="%x_ptr: index, %y_ptr: index, %n: !ktdp.runtime_arg<i32, granularity=64>"),
        "run",
        "ArgumentError",
        None,
        lambda: {**two_arrays()(), "n": 65},
        at=ENTRY,
    ),
    Fault(
        "106_above_its_upper_bound",
        kernel(copy(), arguments="%x_ptr: index, %y_ptr: index, %n: !ktdp.runtime_arg<i32, upperbound=300>"),
        "run",
        "ArgumentError",
        None,
        lambda: {**two_arrays()(), "n": 301},
        at=ENTRY,
    ),
    Fault(
        "107_as_promised",
        kernel(
            copy(), arguments="%x_ptr: index, %y_ptr: index, %n: !ktdp.runtime_arg<i32, granularity=3, upperbound=300>"
        ),
        "valid",
        arguments=lambda: {**two_arrays()(), "n": 300},
    ),
    Fault(
        "108_hole_in_a_gathered_distributed_view",
        kernel(
            view("a", "%x_ptr", 32, set_="affine_set<(d0) : (d0 >= 0, -d0 + 31 >= 0)>")
            + view("b", "%x_ptr", 16, set_="affine_set<(d0) : (d0 - 48 >= 0, -d0 + 63 >= 0)>")
            + "%x = ktdp.construct_distributed_memory_view (%a, %b : memref<32xf16>, memref<16xf16>) : memref<64xf16>\n"
            + view("i", "%i_ptr", 16, "i32")
            + "%t = ktdp.construct_indirect_access_tile intermediate_variables(%m) %x[ind(%i[%m])] "
            "{variables_space_order = #id1, variables_space_set = #s16} : memref<64xf16>, memref<16xi32> "
            "-> !ktdp.access_tile<16xindex>\n"
            "%v = ktdp.load %t : <16xindex> -> tensor<16xf16> // @here",
            arguments="%x_ptr: index, %i_ptr: index",
        ),
        "run",
        "DistributedViewHole",
        None,
        lambda: {"x_ptr": np.zeros(64, np.float16), "i_ptr": np.resize(np.array([3, 40, 60], np.int32), 16)},
    ),
    Fault(
        "109_an_operation_without_a_meaning_here",
        kernel('%c = "memref.get_global"() {name = @g} : () -> memref<64xf16> // @here\n' + copy()),
        "run",
        "UnknownOperation",
    ),
    Fault(
        "110_an_experimental_operation_that_nobody_asked_for",
        kernel(
            groups().replace(
                "%s = ktdp.inter_tile_reduce(%f)",
                "%q2 = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #all4, gather_dimensions = [0] : "
                "<(tensor<1x64xf16>), groups = #g0> -> tensor<4x64xf16> // @here\n%s = ktdp.inter_tile_reduce(%f)",
            ),
            "[4]",
        ),
        "parse",
        "ParseError",
    ),
    Fault(
        "111_rows_in_turn",
        kernel(looped(4).replace(" // @here", "")),
        "valid",
        arguments=rows,
    ),
    Fault(
        "112_padding_reaches_a_result",
        kernel(
            copy().replace("-> tensor<64xf16>", "-> tensor<64xf16> // @here", 1),
            arguments=f"%x_ptr: index {{ktdp.stick_layout = {PADDED}}}, %y_ptr: index",
        ),
        "run",
        "PaddingRead",
    ),
    Fault(
        "113_padding_is_cut_off",
        kernel(
            copy(
                "%c = tensor.extract_slice %v[0] [40] [1] : tensor<64xf16> to tensor<40xf16>\n"
                "%z = arith.constant dense<0.0> : tensor<64xf16>\n"
                "%r = tensor.insert_slice %c into %z[0] [40] [1] : tensor<40xf16> into tensor<64xf16>\n"
            ),
            arguments=f"%x_ptr: index {{ktdp.stick_layout = {PADDED}}}, %y_ptr: index",
        ),
        "valid",
        result=lambda: np.r_[np.arange(40), np.zeros(24)].astype(np.float16),
    ),
    Fault(
        "114_padding_goes_to_padding",
        kernel(
            copy(),
            arguments=f"%x_ptr: index {{ktdp.stick_layout = {PADDED}}}, %y_ptr: index {{ktdp.stick_layout = {PADDED}}}",
        ),
        "valid",
    ),
    Fault(
        "115_padding_is_summed_up",
        kernel(
            copy(
                "%z = arith.constant dense<0.0> : tensor<f16>\n"
                "%s = linalg.reduce { arith.addf } ins(%v : tensor<64xf16>) outs(%z : tensor<f16>) dimensions = [0]\n"
                "%t = tensor.extract %s[] : tensor<f16>\n%r = tensor.splat %t : tensor<64xf16>\n"
            ).replace("-> tensor<64xf16>", "-> tensor<64xf16> // @here", 1),
            arguments=f"%x_ptr: index {{ktdp.stick_layout = {PADDED}}}, %y_ptr: index",
        ),
        "run",
        "PaddingRead",
    ),
    Fault(
        "116_padding_in_a_product",
        kernel(
            copy(
                "%a = tensor.expand_shape %v [[0, 1]] output_shape [1, 64] : tensor<64xf16> into tensor<1x64xf16>\n"
                "%b = arith.constant dense<1.0> : tensor<64x64xf16>\n"
                "%z = arith.constant dense<0.0> : tensor<1x64xf16>\n"
                "%p = linalg.matmul ins(%a, %b : tensor<1x64xf16>, tensor<64x64xf16>) outs(%z : tensor<1x64xf16>) "
                "-> tensor<1x64xf16>\n"
                "%r = tensor.collapse_shape %p [[0, 1]] : tensor<1x64xf16> into tensor<64xf16>\n"
            ).replace("-> tensor<64xf16>", "-> tensor<64xf16> // @here", 1),
            arguments=f"%x_ptr: index {{ktdp.stick_layout = {PADDED}}}, %y_ptr: index",
        ),
        "run",
        "PaddingRead",
    ),
    Fault(
        "117_half_of_the_output_is_never_written",
        kernel(
            view("x", "%x_ptr", 64)
            + view("y", "%y_ptr", 64).rstrip()
            + " // @here\n"
            + tile("xt", "x", "0", 16)
            + "%v = ktdp.load %xt : <16xindex> -> tensor<16xf16>\n"
            + tile("yt", "y", "0", 16)
            + "ktdp.store %v, %yt : tensor<16xf16>, <16xindex>\n"
        ),
        "valid",
        None,
        "?IncompleteCoverage",
    ),
    Fault(
        "118_more_iterations_than_a_counter_holds",
        kernel(
            "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%n = arith.constant 70000 : index\n"
            "scf.for %i = %c0 to %n step %c1 { // @here\n}\n" + copy()
        ),
        "static",
        None,
        "?LoopCountTooLarge",
        machine="spyre",
    ),
    Fault(
        "119_a_thousand_times_what_a_core_reaches",
        kernel(
            "%far = arith.constant 200000000 : index\n"
            "%x = ktdp.construct_memory_view %x_ptr, sizes: [200000064], strides: [1] {coordinate_set = "
            "affine_set<(d0) : (d0 >= 0, -d0 + 200000063 >= 0)>, memory_space = #ktdp.memory_space<global>} : "
            "memref<200000064xf16>\n"
            + tile("at", "x", "0", of="memref<200000064xf16>")
            + "%a = ktdp.load %at : <64xindex> -> tensor<64xf16>\n"
            + tile("bt", "x", "%far", of="memref<200000064xf16>")
            + "%b = ktdp.load %bt : <64xindex> -> tensor<64xf16>\n"
            "%r = arith.addf %a, %b : tensor<64xf16>\n"
            + view("y", "%y_ptr", 64)
            + tile("yt", "y", "0")
            + "ktdp.store %r, %yt : tensor<64xf16>, <64xindex>\n"
        ),
        "static",
        None,
        "SpanTooLarge",
        machine="spyre",
        at="%x = ktdp.construct_memory_view",
    ),
    Fault(
        "120_negative_number_said_not_to_be",
        on_integers(
            splat("c", "-1")
            + "%w = arith.extui %c nneg : tensor<64xi32> to tensor<64xi64> // @here\n"
            + "%n = arith.trunci %w : tensor<64xi64> to tensor<64xi32>\n%r = arith.addi %v, %n : tensor<64xi32>\n"
        ),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "121_exact_quotient_with_a_remainder",
        on_integers(splat("c", "2") + "%r = arith.divsi %v, %c exact : tensor<64xi32> // @here\n"),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "122_exact_shift_that_loses_bits",
        on_integers(splat("c", "1") + "%r = arith.shrui %v, %c exact : tensor<64xi32> // @here\n"),
        "run",
        "IntegerOverflow",
        None,
        INTEGERS,
    ),
    Fault(
        "123_exact_where_nothing_is_left",
        on_integers(
            splat("c", "-4")
            + splat("t", "2")
            + "%e = arith.muli %v, %c : tensor<64xi32>\n%d = arith.divsi %e, %c exact : tensor<64xi32>\n"
            "%s = arith.shrsi %e, %t exact : tensor<64xi32>\n%r = arith.addi %d, %s : tensor<64xi32>\n"
        ),
        "valid",
        arguments=INTEGERS,
        result=lambda: np.zeros(64, np.int32),
    ),
)
