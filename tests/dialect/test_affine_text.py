"""Canonical affine expressions: same value, stable form, and text that reads back as the same tree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.maths.affine import (
    canonical_expression,
    canonical_map,
    constraint,
    expression_text,
    map_text,
    sorted_expression,
)
from tests.settings import examples

DIMS, SYMBOLS = 3, 2
Kind = AffineBinaryOpKind


def binary(kinds: list[AffineBinaryOpKind], left: st.SearchStrategy, right: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(AffineBinaryOpExpr, st.sampled_from(kinds), left, right)


leaves = st.one_of(
    st.integers(-80, 80).map(AffineConstantExpr),
    st.integers(0, DIMS - 1).map(AffineDimExpr),
    st.integers(0, SYMBOLS - 1).map(AffineSymExpr),
)
constants = st.integers(1, 64).map(AffineConstantExpr)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        binary([Kind.Add], inner, inner),
        binary([Kind.Mul], inner, st.integers(-8, 8).map(AffineConstantExpr)),
        binary([Kind.FloorDiv, Kind.CeilDiv, Kind.Mod], inner, constants),
    ),
    max_leaves=12,
)
points = st.tuples(*[st.integers(-100, 100)] * (DIMS + SYMBOLS))


def value(expression: AffineExpr, point: tuple[int, ...]) -> int:
    return expression.eval(point[:DIMS], point[DIMS:])


@given(trees, points)
@settings(max_examples=examples(4000), deadline=None)
def test_canonical_form_keeps_the_value(tree: AffineExpr, point: tuple[int, ...]) -> None:
    assert value(canonical_expression(tree), point) == value(tree, point)
    assert value(sorted_expression(tree), point) == value(tree, point)


@given(trees)
@settings(max_examples=examples(4000), deadline=None)
def test_canonical_form_is_final(tree: AffineExpr) -> None:
    once = canonical_expression(tree)
    assert canonical_expression(once) == once


@given(st.lists(trees, min_size=1, max_size=4))
@settings(max_examples=examples(2000), deadline=None)
def test_text_of_a_map_reads_back_as_the_map(results: list[AffineExpr]) -> None:
    map = canonical_map(AffineMap(DIMS, SYMBOLS, tuple(results)))
    module = parse_module(f"func.func private @f() attributes {{m = affine_map<{map_text(map)}>}}")
    assert next(iter(module.ops)).attributes["m"].data == map
    assert map_text(map) in print_module(module)


@given(st.sampled_from(AffineConstraintKind), trees, trees, points)
@settings(max_examples=examples(2000), deadline=None)
def test_constraints_hold_where_the_comparison_does(
    kind: AffineConstraintKind, left: AffineExpr, right: AffineExpr, point: tuple[int, ...]
) -> None:
    compared = {"ge": int.__ge__, "le": int.__le__, "eq": int.__eq__}[kind.name]
    canonical = constraint(kind, left, right)
    difference = value(canonical.lhs, point)
    holds = difference == 0 if canonical.kind is AffineConstraintKind.eq else difference >= 0
    assert holds == compared(value(left, point), value(right, point))


def test_text_is_mlirs() -> None:
    d0, d1, s0 = AffineDimExpr(0), AffineDimExpr(1), AffineSymExpr(0)
    texts = {
        "-d0": -1 * d0,
        "d0 - d1 * 2": d0 + d1 * -2,
        "-d0 + s0 - 1": -1 * d0 + s0 - 1,
        "(d0 + d1) floordiv 64": (d0 + d1) // 64,
    }
    assert {expression_text(canonical_expression(each)): each for each in texts.values()} == texts


def test_an_empty_set_of_constraints_holds_everywhere() -> None:
    module = parse_module("func.func private @f() attributes {s = affine_set<() : ()>}")
    assert "affine_set<() : (0 == 0)>" in print_module(module)


@pytest.mark.parametrize(
    "tile",
    [
        "ktdp.construct_access_tile %v[%i * 0 + 1, %j] {access_tile_set = affine_set<(d0, d1) : (d0 == 0, d1 == 0)>, "
        "access_tile_order = affine_map<(d0, d1) -> (d0, d1)>} : memref<4x8xf16> -> !ktdp.access_tile<1x1xindex>",
        "ktdp.construct_indirect_access_tile intermediate_variables(%k, %l) %v[ind(%w[%k + %i * 0]), (%l + %j mod 1)] "
        "{variables_space_set = affine_set<(d0, d1) : (d0 == 0, d1 == 0)>, variables_space_order = "
        "affine_map<(d0, d1) -> (d0, d1)>} : memref<4x8xf16>, memref<4xi32> -> !ktdp.access_tile<1x1xindex>",
    ],
    ids=["direct", "indirect"],
)
def test_a_value_that_cancels_out_is_no_operand(tile: str) -> None:
    arguments = "%v: memref<4x8xf16>, %w: memref<4xi32>, %i: index, %j: index"
    module = parse_module(f"func.func @f({arguments}) {{\n  %t = {tile}\n  func.return\n}}\n")
    (op,) = (op for op in module.walk() if op.name.startswith("ktdp.construct"))
    assert "i" not in [operand.name_hint for operand in op.operands]
    for generic in (False, True):
        assert parse_module(print_module(module, generic=generic)).is_structurally_equivalent(module)
