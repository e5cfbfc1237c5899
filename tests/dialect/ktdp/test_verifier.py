"""Every rule of the dialect's verifiers and parsers, with the words of the reference.

A row is a text that is legal, what is changed in it, and the words of the error that the change must give at that line.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.ktdp import AccessTileType
from ktir.dialect.text.parser import parse_module
from ktir.errors import ParseError, VerifyError


@dataclass(frozen=True)
class Row:
    """``old`` is replaced by ``new`` in ``text``, which stands in a function with the values of ``VALUES``."""

    name: str
    text: str
    old: str
    new: str
    message: str


SET = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 7 >= 0)>"
SYMBOLIC = "affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + s0 >= 0)>"
LINE = "affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>"
MAP = "affine_map<(d0, d1) -> (d0, d1)>"
ALONG = "affine_map<(d0) -> (d0)>"
PROJECTION = "affine_map<(d0, d1) -> (d0)>"

VALUES = (
    "%x: index, %n: index, %v: memref<4x8xf16>, %w: memref<4x8xi32>, %u: memref<*xf16>, %h: memref<4x8xf32>, "
    "%line: memref<4xf16>, %t: !ktdp.access_tile<4x8xindex>, %l: tensor<4x8xf16>, %any: tensor<*xf16>, "
    "%short: tensor<4xf16>, %f32: tensor<4x8xf32>, %r: !ktdp.runtime_arg<i32, granularity=2>, "
    "%q: !ktdp.runtime_arg<i32, upperbound=9>"
)

VIEW = (
    '%y = "ktdp.construct_memory_view"(%x) <{coordinate_set = '
    f"{SET}, memory_space = #ktdp.memory_space<global>, operandSegmentSizes = array<i32: 1, 0, 0>, static_sizes = "
    "array<i64: 4, 8>, static_strides = array<i64: 8, 1>}> : (index) -> memref<4x8xf16>"
)
DISTRIBUTED = (
    '%y = "ktdp.construct_distributed_memory_view"(%v, %v) : (memref<4x8xf16>, memref<4x8xf16>) -> memref<4x8xf16>'
)
TILE = (
    f"%y = ktdp.construct_access_tile %v[%n, 0] {{access_tile_order = {MAP}, access_tile_set = {SET}}} : "
    "memref<4x8xf16> -> !ktdp.access_tile<4x8xindex>"
)
GENERIC_TILE = (
    f'%y = "ktdp.construct_access_tile"(%v, %n) <{{access_tile_order = {MAP}, access_tile_set = {SET}, base_map = '
    "affine_map<(d0) -> (d0, 0)>, operandSegmentSizes = array<i32: 1, 1, 0>}> : (memref<4x8xf16>, index) -> "
    "!ktdp.access_tile<4x8xindex>"
)
INDIRECT = (
    "%y = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[ind(%w[%a, %b]), (%b + %n)] "
    f"{{variables_space_order = {MAP}, variables_space_set = {SET}}} : memref<4x8xf16>, memref<4x8xi32> -> "
    "!ktdp.access_tile<4x8xindex>"
)
GENERIC_INDIRECT = (
    '%y = "ktdp.construct_indirect_access_tile"(%v, %w, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>, '
    "per_dim_subscript_kinds = [true, false], per_dim_subscript_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, "
    f"affine_map<(d0, d1, d2) -> (d0 + d2)>], variables_space_order = {MAP}, variables_space_set = {SET}}}> "
    '({ ^bb0(%a: index, %b: index): "ktdp.region_terminator"() : () -> () }) : (memref<4x8xf16>, memref<4x8xi32>, '
    "index) -> !ktdp.access_tile<4x8xindex>"
)
LOAD = '%y = "ktdp.load"(%t) : (!ktdp.access_tile<4x8xindex>) -> tensor<4x8xf16>'
STORE = '"ktdp.store"(%l, %t) : (tensor<4x8xf16>, !ktdp.access_tile<4x8xindex>) -> ()'
EXTRACT = "%y = ktdp.runtime_arg_extract value from %r : <i32, granularity=2> -> i32"
TILE_ID = '%y = "ktdp.get_compute_tile_id"() : () -> index'
GROUPS = "groups = affine_set<(g) : (g == 0)>"
TILES = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0)>"
FUTURE = f"<(tensor<4x8xf16>), {GROUPS}>"
PRODUCE = (
    f"%p = ktdp.inter_tile_produce producer_tiles_per_group = {TILES} -> {FUTURE} {{ ^bb0(%g: index): "
    "ktdp.yield_partial %l : tensor<4x8xf16> }"
)
DEPENDENCY = "affine_set<(p)[c] : (p - c == 0)>"
CONSUME = (
    f"{PRODUCE} %y = ktdp.inter_tile_consume(%p) consumer_tiles_per_group = {TILES}, producer_dependency_per_consumer "
    f"= {DEPENDENCY} : {FUTURE} -> tensor<4x8xf16>"
)
REDUCE = (
    f"{PRODUCE} %y = ktdp.inter_tile_reduce(%p) consumer_tiles_per_group = {TILES}, producer_dependency_per_consumer = "
    f"{DEPENDENCY}, identity(%l : tensor<4x8xf16>) : {FUTURE} -> tensor<4x8xf16> "
    "{ ^bb0(%c: tensor<4x8xf16>, %d: tensor<4x8xf16>): ktdp.yield_reduced %c : tensor<4x8xf16> }"
)


def typed(type: str) -> str:
    """An operation that holds a type and means nothing."""
    return f"func.func private @of(!ktdp.{type})"


ARGUMENT = typed("runtime_arg<i32, granularity=2, upperbound=8>")
HELD = typed(f"tile_future<(tensor<4xf16>), {GROUPS}>")
OLD = "func.func private @of(memref<4xf16, #ktdp.spyre_memory_space<LX, core = 2>>)"
NEW = "func.func private @of(memref<4xf16, #ktdp.memory_space<ct_local, ct_id = 2>>)"

ROWS = (
    # types
    Row(
        "tile of f16", typed("access_tile<4xindex>"), "index", "f16", "tile element type must be 'index', but got: f16"
    ),
    Row("tile without x", typed("access_tile<128xindex>"), "xindex", "", "expected 'x' in dimension list"),
    Row(
        "payload",
        ARGUMENT,
        "i32",
        "tensor<4xi32>",
        "runtime_arg underlying type must be a builtin type (index, integer, or float), but got",
    ),
    Row("granularity 0", ARGUMENT, "y=2", "y=0", "runtime_arg granularity must be positive, but got: 0"),
    Row("upper bound -1", ARGUMENT, "d=8", "d=-1", "runtime_arg upperbound must be positive, but got: -1"),
    Row("granularity twice", ARGUMENT, "upperbound", "granularity", "duplicate 'granularity' keyword"),
    Row("upper bound twice", ARGUMENT, "granularity", "upperbound", "duplicate 'upperbound' keyword"),
    Row("unknown keyword", ARGUMENT, "granularity", "grain", "expected 'granularity' or 'upperbound' keyword"),
    Row("no partials", HELD, "tensor<4xf16>", "", "tile_future must carry at least one partial type"),
    Row(
        "scalar partial",
        HELD,
        "tensor<4xf16>",
        "index",
        "invalid kind of type specified: expected builtin.tensor, but found 'index'",
    ),
    Row(
        "groups of two",
        HELD,
        "(g) : (g == 0)",
        "(g, h) : (g == 0)",
        "tile_future `groups` must have exactly one dimension (g)",
    ),
    Row(
        "groups of none",
        HELD,
        "(g) : (g == 0)",
        "() : (0 == 0)",
        "tile_future `groups` must have exactly one dimension (g)",
    ),
    Row(
        "groups with symbols", HELD, "(g) : (g == 0)", "(g)[s] : (g == 0)", "tile_future `groups` must have no symbols"
    ),
    # memory spaces: in the words of the attribute
    Row("core -2", OLD, "core = 2", "core = -2", "core affinity must be non-negative, but got: -2"),
    Row(
        "HBM with core",
        OLD,
        "LX",
        "HBM",
        "core affinity is only valid for LX or L0 memory spaces, but got memory space 'HBM' with core = 2",
    ),
    Row(
        "unspecified with core",
        OLD,
        "LX, core = 2",
        "unspecified, core = 0",
        "core affinity is only valid for LX or L0 memory spaces, but got memory space 'unspecified' with core = 0",
    ),
    Row(
        "global with tile",
        NEW,
        "ct_local, ct_id = 2",
        "global, ct_id = 0",
        "ct_id is only valid for ct_local memory spaces, but got memory space 'global' with ct_id = 0",
    ),
    Row("tile -5", NEW, "ct_id = 2", "ct_id = -5", "ct_id must be non-negative, but got: -5"),
    Row("unknown space", NEW, "ct_local", "sram", "expected one of global, ct_local, but got: sram"),
    # get_compute_tile_id
    Row(
        "no tile id",
        TILE_ID.removeprefix("%y = "),
        "() -> index",
        "() -> ()",
        "must return at least one index (num tile-grid dims >= 1)",
    ),
    Row("tile id of i32", TILE_ID, "index", "i32", "must be variadic of index, but got 'i32'"),
    # construct_memory_view
    Row(
        "sizes and strides",
        VIEW,
        "array<i64: 8, 1>",
        "array<i64: 8>",
        "static_sizes and static_strides must have equal length",
    ),
    Row(
        "dynamic size without operand",
        VIEW,
        "array<i64: 4, 8>",
        "array<i64: 4, -9223372036854775808>",
        "number of dynamic size operands does not match kDynamic entries in static_sizes",
    ),
    Row(
        "dynamic stride without operand",
        VIEW,
        "array<i64: 8, 1>",
        "array<i64: -9223372036854775808, 1>",
        "number of dynamic stride operands does not match kDynamic entries in static_strides",
    ),
    Row("view of no memref", VIEW, "memref<4x8xf16>", "tensor<4x8xf16>", "result must be a memref type"),
    Row("view without rank", VIEW, "memref<4x8xf16>", "memref<*xf16>", "result must be a memref type"),
    Row(
        "rank of the view",
        VIEW,
        "memref<4x8xf16>",
        "memref<4xf16>",
        "result memref rank does not match sizes/strides length",
    ),
    Row("size of the view", VIEW, "memref<4x8xf16>", "memref<4x9xf16>", "sizes[1]=8 does not match memref dimension 9"),
    Row("negative size", VIEW, "array<i64: 4, 8>", "array<i64: -4, 8>", "sizes[0] must be non-negative, but got: -4"),
    # construct_distributed_memory_view
    Row(
        "distributed over nothing ranked",
        DISTRIBUTED,
        "-> memref<4x8xf16>",
        "-> memref<*xf16>",
        "result must be a memref type",
    ),
    Row(
        "parts without rank",
        DISTRIBUTED,
        "%v) : (memref<4x8xf16>, memref<4x8xf16>)",
        "%u) : (memref<4x8xf16>, memref<*xf16>)",
        "all inputs must be memref types",
    ),
    Row(
        "parts of f32",
        DISTRIBUTED,
        "%v) : (memref<4x8xf16>, memref<4x8xf16>)",
        "%h) : (memref<4x8xf16>, memref<4x8xf32>)",
        "all input memrefs must have the same element type as the result",
    ),
    Row(
        "parts of rank 1",
        DISTRIBUTED,
        "%v) : (memref<4x8xf16>, memref<4x8xf16>)",
        "%line) : (memref<4x8xf16>, memref<4xf16>)",
        "all input memrefs must have the same rank as the result",
    ),
    # construct_access_tile, as it is parsed
    Row("no set", TILE, f", access_tile_set = {SET}", "", "Access tile set is missing in the operation"),
    Row("no order", TILE, f"access_tile_order = {MAP}, ", "", "Access tile order is missing in the operation"),
    Row("subscripts", TILE, "[%n, 0]", "[%n]", "Access tile set and Base input dimensions should match"),
    Row("symbols", TILE, SET, SYMBOLIC, "access_tile_set has 1 symbols but got 0 symbol operands"),
    Row(
        "order to one",
        TILE,
        MAP,
        PROJECTION,
        "Number of input dimensions and output dimensions in the access tile order should match",
    ),
    Row(
        "order of one",
        TILE,
        MAP,
        ALONG,
        "Number of dimensions in the access tile order and access tile set must match!",
    ),
    Row("symbols that are numbers", TILE, "[%n, 0]", "[%n, 0] symbols(4)", "Failed to parse symbol operands"),
    # construct_access_tile, in generic form
    Row("set and map", GENERIC_TILE, SET, LINE, "access_tile_set dimensions (1) must match base_map dims (2)"),
    Row(
        "operands of the map",
        GENERIC_TILE,
        "(d0) -> (d0, 0)",
        "(d0, d1) -> (d0, d1)",
        "base_map expects 2 operands but got 1",
    ),
    Row("symbols of the set", GENERIC_TILE, SET, SYMBOLIC, "access_tile_set has 1 symbols but got 0 symbol operands"),
    Row(
        "square order",
        GENERIC_TILE,
        MAP,
        PROJECTION,
        "access_tile_order must have equal number of inputs (2) and outputs (1)",
    ),
    Row(
        "order and set",
        GENERIC_TILE,
        MAP,
        ALONG,
        "access_tile_order dimensions (1) must match access_tile_set dimensions (2)",
    ),
    Row(
        "rank of the tile",
        GENERIC_TILE,
        "access_tile<4x8xindex>",
        "access_tile<4xindex>",
        "result type rank (1) must match access_tile_set dimensions (2)",
    ),
    # construct_indirect_access_tile, as it is parsed
    Row(
        "variables",
        INDIRECT,
        "intermediate_variables(%a, %b)",
        "variables(%a, %b)",
        "error parsing intermediate_variables",
    ),
    Row("comma", INDIRECT, ", (%b", " (%b", "expecting a comma between subscripts"),
    Row("subscript", INDIRECT, "(%b + %n)", "(%b + )", "error parsing the subscript"),
    Row(
        "subscript of nothing",
        INDIRECT,
        "(%b + %n)",
        "+",
        "unexpected token in subscript list, expected 'ind', '(', or ']'",
    ),
    Row("no variables' set", INDIRECT, f", variables_space_set = {SET}", "", "error parsing attributes"),
    Row("no variables' order", INDIRECT, f"variables_space_order = {MAP}, ", "", "error parsing attributes"),
    Row("symbol in a subscript", INDIRECT, "(%b + %n)", "(%b + symbol(%n))", "error canonicalizing subscripts"),
    Row("types", INDIRECT, ", memref<4x8xi32>", "", "expected 2 types (base + 1 indirect memrefs), but got 1"),
    Row("type of the tile", INDIRECT, "-> !ktdp.access_tile<4x8xindex>", "->", "error parsing result types"),
    Row("variables' symbols", INDIRECT, SET, SYMBOLIC, "variables_space_set has 1 symbols but got 0 symbol operands"),
    # construct_indirect_access_tile, in generic form
    Row(
        "variables' set and order",
        GENERIC_INDIRECT,
        f"set = {SET}",
        f"set = {LINE}",
        "variables_space_set dimensions (1) must match variables_space_order inputs (2)",
    ),
    Row(
        "variables' square order",
        GENERIC_INDIRECT,
        MAP,
        PROJECTION,
        "variables_space_order must have equal number of inputs (2) and outputs (1)",
    ),
    Row(
        "number of variables",
        GENERIC_INDIRECT,
        "^bb0(%a: index, %b: index)",
        "^bb0(%a: index)",
        "number of intermediate variables (1) must match variables_space_set dimensions (2)",
    ),
    Row(
        "symbols of the variables' set",
        GENERIC_INDIRECT,
        SET,
        SYMBOLIC,
        "variables_space_set has 1 symbols but got 0 symbol operands",
    ),
    Row(
        "kinds and maps",
        GENERIC_INDIRECT,
        "[true, false]",
        "[true]",
        "per_dim_subscript_kinds size (1) must match per_dim_subscript_maps size (2)",
    ),
    Row(
        "base of an indirect tile",
        GENERIC_INDIRECT.replace("(%v, %w", "(%u, %w").replace("(memref<4x8xf16>", "(memref<*xf16>"),
        "memref<*xf16>",
        "memref<*xf16>",
        "base must be a ranked memref or tensor type",
    ),
    Row(
        "subscripts and base",
        GENERIC_INDIRECT.replace("(%v, %w", "(%line, %w").replace("(memref<4x8xf16>", "(memref<4xf16>"),
        "memref<4xf16>",
        "memref<4xf16>",
        "number of subscripts (2) must match base rank (1)",
    ),
    Row(
        "kinds that are none",
        GENERIC_INDIRECT,
        "[true, false]",
        "[1 : i32, false]",
        "per_dim_subscript_kinds must contain BoolAttr elements",
    ),
    Row(
        "maps that are none",
        GENERIC_INDIRECT,
        "affine_map<(d0, d1, d2) -> (d0 + d2)>]",
        "7 : i32]",
        "per_dim_subscript_maps[1] must be an AffineMapAttr",
    ),
    Row(
        "number of index views",
        GENERIC_INDIRECT,
        "[true, false]",
        "[true, true]",
        "number of indirect dimensions (2) must match number of indirect memrefs (1)",
    ),
    Row(
        "dimensions of a subscript",
        GENERIC_INDIRECT,
        "affine_map<(d0, d1, d2) -> (d0 + d2)>",
        MAP,
        "subscript map for dimension 1 has 2 dimensions, but expected 3 (captured_variables + intermediate_variables)",
    ),
    Row(
        "rank of an index view",
        GENERIC_INDIRECT,
        "-> (d1, d2)>",
        "-> (d1)>",
        "indirect subscript map for dimension 0 produces 1 results, but indirect memref has rank 2",
    ),
    Row(
        "direct subscript",
        GENERIC_INDIRECT,
        "-> (d0 + d2)>",
        "-> (d0, d2)>",
        "direct subscript map for dimension 1 must produce exactly 1 result, but produces 2",
    ),
    Row(
        "rank of an indirect tile",
        GENERIC_INDIRECT,
        "access_tile<4x8xindex>",
        "access_tile<4xindex>",
        "result type rank (1) must match variables_space_set dimensions (2)",
    ),
    # load and store
    Row("loads no tensor", LOAD, "tensor<4x8xf16>", "tensor<*xf16>", "result must be a ranked tensor"),
    Row(
        "loads another shape",
        LOAD,
        "tensor<4x8xf16>",
        "tensor<4x9xf16>",
        "access tile shape must match result tensor shape",
    ),
    Row(
        "loads a dynamic shape",
        LOAD,
        "tensor<4x8xf16>",
        "tensor<4x?xf16>",
        "access tile shape must match result tensor shape",
    ),
    Row(
        "stores no tensor",
        STORE.replace("%l", "%any").replace("(tensor<4x8xf16>", "(tensor<*xf16>"),
        "tensor<*xf16>",
        "tensor<*xf16>",
        "data_tile must be a ranked tensor",
    ),
    Row(
        "stores another shape",
        STORE.replace("%l", "%short").replace("(tensor<4x8xf16>", "(tensor<4xf16>"),
        "tensor<4xf16>",
        "tensor<4xf16>",
        "data tile shape must match access tile shape",
    ),
    # runtime_arg_extract
    Row(
        "value of another type",
        EXTRACT,
        "-> i32",
        "-> i64",
        "result type (i64) must match runtime_arg underlying type (i32) when extracting value",
    ),
    Row(
        "no upper bound",
        EXTRACT,
        "value",
        "upperbound",
        "cannot extract upperbound from runtime_arg that doesn't have one",
    ),
    Row(
        "no granularity",
        EXTRACT.replace("%r : <i32, granularity=2>", "%q : <i32, upperbound=9>"),
        "value",
        "granularity",
        "cannot extract granularity from runtime_arg that doesn't have one",
    ),
    Row(
        "granularity of i32",
        EXTRACT,
        "value",
        "granularity",
        "result type must be index when extracting granularity, but got i32",
    ),
    # exchanges between tiles, as far as an operation shows them; R1 and R11 among them
    Row("group id", PRODUCE, "^bb0(%g: index): ", "", "producer region must take a single `index` group-id argument"),
    Row(
        "producers without symbol",
        PRODUCE,
        TILES,
        "affine_set<(i) : (i >= 0, -i + 3 >= 0)>",
        "`producer_tiles_per_group` must have exactly one symbol (the group index g)",
    ),
    Row(
        "R1",
        PRODUCE,
        "(g) : (g == 0)",
        "(g) : (g >= 0, -g + 1 >= 0)",
        "producer_tiles_per_group for groups 0 and 1 are not disjoint",
    ),
    Row(
        "yields too much",
        PRODUCE,
        "yield_partial %l : tensor<4x8xf16>",
        "yield_partial %l, %l : tensor<4x8xf16>, tensor<4x8xf16>",
        "yield_partial yields 2 values but the future carries 1 partial type(s)",
    ),
    Row(
        "yields f32",
        PRODUCE,
        "yield_partial %l : tensor<4x8xf16>",
        "yield_partial %f32 : tensor<4x8xf32>",
        "yield_partial operand #0 type tensor<4x8xf32> does not match future partial type tensor<4x8xf16>",
    ),
    Row(
        "parent of yield_partial",
        "func.func private @of()",
        "func.func private @of()",
        "ktdp.yield_partial %l : tensor<4x8xf16>",
        "'ktdp.yield_partial' op expects parent op 'ktdp.inter_tile_produce'",
    ),
    Row(
        "parent of yield_reduced",
        "func.func private @of()",
        "func.func private @of()",
        "ktdp.yield_reduced %l : tensor<4x8xf16>",
        "'ktdp.yield_reduced' op expects parent op 'ktdp.inter_tile_reduce'",
    ),
    Row(
        "consumes f32",
        CONSUME,
        "-> tensor<4x8xf16>",
        "-> tensor<4x8xf32>",
        "failed to verify that result types must match future partial types",
    ),
    Row(
        "consumes another shape",
        CONSUME,
        "-> tensor<4x8xf16>",
        "-> tensor<4xf16>",
        "failed to verify that result types must match future partial types",
    ),
    Row(
        "consumers without symbol",
        CONSUME,
        f"consumer_tiles_per_group = {TILES}",
        "consumer_tiles_per_group = affine_set<(i) : (i == 0)>",
        "`consumer_tiles_per_group` must have exactly one symbol (the group index g)",
    ),
    Row(
        "consumers of two dimensions",
        CONSUME,
        f"consumer_tiles_per_group = {TILES}",
        "consumer_tiles_per_group = affine_set<(i, j)[g] : (i == 0)>",
        "`consumer_tiles_per_group` must have exactly one dimension (the tile id i)",
    ),
    Row(
        "dependency of three symbols",
        CONSUME,
        DEPENDENCY,
        "affine_set<(p)[a, b, c] : (p == 0)>",
        "`producer_dependency_per_consumer` must have one symbol (c) or two symbols (c, g)",
    ),
    Row(
        "dependency of two dimensions",
        CONSUME,
        DEPENDENCY,
        "affine_set<(p, q)[c] : (p == 0)>",
        "`producer_dependency_per_consumer` must have exactly one dimension (the producer tile id p)",
    ),
    Row(
        "consumes two",
        CONSUME.replace("%y = ", ""),
        "-> tensor<4x8xf16>",
        "-> tensor<4x8xf16>, tensor<4x8xf16>",
        "failed to verify that result types must match future partial types",
    ),
    Row(
        "reduces to f32",
        REDUCE,
        "-> tensor<4x8xf16>",
        "-> tensor<4x8xf32>",
        "failed to verify that result types must match future partial types",
    ),
    Row(
        "R11",
        REDUCE,
        "identity(%l : tensor<4x8xf16>)",
        "identity(%f32 : tensor<4x8xf32>)",
        "failed to verify that identity types must match result types",
    ),
    Row(
        "consumers of a reduce",
        REDUCE,
        f"consumer_tiles_per_group = {TILES}",
        "consumer_tiles_per_group = affine_set<(i) : (i == 0)>",
        "`consumer_tiles_per_group` must have exactly one symbol (the group index g)",
    ),
    Row(
        "dependency of a reduce",
        REDUCE,
        DEPENDENCY,
        "affine_set<(p)[a, b, c] : (p == 0)>",
        "`producer_dependency_per_consumer` must have one symbol (c) or two symbols (c, g)",
    ),
    Row(
        "reducer of one",
        REDUCE,
        "(%c: tensor<4x8xf16>, %d: tensor<4x8xf16>)",
        "(%c: tensor<4x8xf16>)",
        "reducer region must take 2*N arguments, got 1",
    ),
    Row(
        "reducer of f32",
        REDUCE,
        "%d: tensor<4x8xf16>)",
        "%d: tensor<4x8xf32>)",
        "reducer region argument pair #0 must both have partial type tensor<4x8xf16>",
    ),
    Row(
        "reduces to two",
        REDUCE,
        "yield_reduced %c : tensor<4x8xf16>",
        "yield_reduced %c, %c : tensor<4x8xf16>, tensor<4x8xf16>",
        "yield_reduced yields 2 values but expected 1",
    ),
    Row(
        "reduced to f32",
        REDUCE,
        "yield_reduced %c : tensor<4x8xf16>",
        "yield_reduced %f32 : tensor<4x8xf32>",
        "yield_reduced operand #0 type tensor<4x8xf32> must match partial type tensor<4x8xf16>",
    ),
)


def function(text: str) -> str:
    return f"func.func @f({VALUES}) {{\n  {text}\n  func.return\n}}\n" if "private" not in text else text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_rule_that_is_broken_is_reported_in_the_words_of_the_reference(row: Row) -> None:
    assert row.old in row.text
    with pytest.raises((ParseError, VerifyError)) as caught:
        parse_module(function(row.text.replace(row.old, row.new)), "k.ktir", strict=True)
    messages = [caught.value.message, str(caught.value.__cause__)]
    assert any(row.message in message for message in messages), messages
    assert caught.value.location is not None


@pytest.mark.parametrize("text", sorted({row.text for row in ROWS if row.old != row.new}))
def test_what_is_changed_was_legal(text: str) -> None:
    assert parse_module(function(text), strict=True)


def test_extents_of_a_tile_are_not_negative() -> None:
    with pytest.raises(VerifyException, match="tile dimension size must be dynamic or >= 0"):
        AccessTileType([4, -2])
