"""Every pass keeps the numbers, leaves a module that verifies, and prints what reads back as the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.interp.executor import execute
from ktir.machine import Machine, load
from ktir.passes.pipeline import PIPELINES, passes
from tests.passes.graphs import Graph, graphs
from tests.settings import examples

ROUNDING = 4e-3
"""f16 keeps 11 bits; a sum in another order may round the other way, and later operations may enlarge that a little."""


def _outcome(module: ModuleOp, graph: Graph, machine: Machine | None) -> list[np.ndarray]:
    done = execute(module, "main", graph.inputs(), machine=machine)
    return [np.asarray(array, np.float64) for array in (done.results or done.outputs.values())]


def _assert_kept(text: str, graph: Graph, machine: Machine, *, stepwise: bool) -> ModuleOp:
    """Compile ``text``; after each pass, or at the end, the outcome is that of the graph."""
    module = parse_module(text)
    expected = _outcome(parse_module(text), graph, None)
    context = create_context(machine)
    names = PIPELINES["compile"]
    for name, each in zip(names, passes(names), strict=True):
        each.apply(context, module)
        module.verify()
        if stepwise or name == names[-1]:
            again = parse_module(print_module(module))
            assert module.is_structurally_equivalent(again), name
            for want, got in zip(expected, _outcome(again, graph, machine), strict=True):
                np.testing.assert_allclose(got, want, rtol=ROUNDING, atol=ROUNDING, err_msg=name)
    return module


def _grids(module: ModuleOp) -> dict[str, int]:
    kernels = [op for op in module.body.block.ops if isinstance(op, FuncOp) and "grid" in op.attributes]
    return {op.sym_name.data: op.attributes["grid"].data[0].value.data for op in kernels}  # pyright: ignore


@settings(max_examples=examples(160), deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_compiling_keeps_the_numbers(drawn: tuple[Graph, str]) -> None:
    graph, text = drawn
    _assert_kept(text, graph, load("spyre"), stepwise=False)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_every_pass_keeps_the_numbers(drawn: tuple[Graph, str]) -> None:
    graph, text = drawn
    _assert_kept(text, graph, load("spyre"), stepwise=True)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_a_scratchpad_of_48_kib_only_makes_tiles_smaller(drawn: tuple[Graph, str]) -> None:
    graph, text = drawn
    _assert_kept(text, graph, load("spyre", scratchpad="48KiB"), stepwise=False)


@pytest.mark.parametrize("shape", [(67, 1000), (1, 384), (1, 1), (3, 5, 7), (97, 101)])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_over_each_axis_of_odd_shapes(shape: tuple[int, ...], dim: int) -> None:
    graph = Graph()
    text = graph.text(graph.softmax(graph.argument(shape), dim))
    _assert_kept(text, graph, load("spyre"), stepwise=False)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 384, 1536), (67, 1000, 67), (640, 384, 384), (1, 5, 1)])
def test_products_of_odd_shapes(rows: int, inner: int, columns: int) -> None:
    graph = Graph()
    product = graph.matmul(graph.argument((rows, inner)), graph.argument((columns, inner), parameter=True))
    bias = graph.argument((columns,), parameter=True)
    text = graph.text(graph.pointwise("math.tanh", graph.pointwise("arith.addf", product, bias)))
    module = _assert_kept(text, graph, load("spyre"), stepwise=False)
    assert len(_grids(module)) == 1


def test_a_large_product_uses_nearly_all_cores() -> None:
    graph = Graph()
    product = graph.matmul(graph.argument((640, 384)), graph.argument((384, 384), parameter=True))
    module = _assert_kept(graph.text(product), graph, load("spyre"), stepwise=False)
    assert min(_grids(module).values()) >= 28


def test_equal_kernels_are_one_function() -> None:
    graph = Graph()
    value = graph.argument((64, 128))
    for _ in range(3):
        weight = graph.argument((128, 128), parameter=True)
        value = graph.pointwise("math.tanh", graph.matmul(value, weight))
    module = _assert_kept(graph.text(value), graph, load("spyre"), stepwise=False)
    assert len(_grids(module)) == 1


def test_a_reshape_across_sticks_is_copied_through_a_dense_buffer() -> None:
    graph = Graph()
    turned = graph.reshape(graph.pointwise("math.tanh", graph.argument((67, 1000))), (1000, 67))
    module = _assert_kept(graph.text(graph.pointwise("arith.negf", turned)), graph, load("spyre"), stepwise=True)
    assert any(name.startswith("copy") for name in _grids(module))


def test_half_stick_heads_need_no_copy() -> None:
    graph = Graph()
    rows = graph.argument((2 * 16, 384))
    heads = graph.transpose(graph.reshape(graph.pointwise("math.tanh", rows), (2, 16, 12, 32)), (0, 2, 1, 3))
    text = graph.text(graph.softmax(heads, 3))
    module = _assert_kept(text, graph, load("spyre"), stepwise=False)
    assert not any(name.startswith("copy") for name in _grids(module))


def test_results_that_are_views_of_arguments_are_copied() -> None:
    graph = Graph()
    argument = graph.argument((9, 70))
    text = graph.text(argument, graph.slice(argument, 0, 2, 3), graph.transpose(argument, (1, 0)))
    _assert_kept(text, graph, load("spyre"), stepwise=True)


def test_parts_of_a_concatenation_that_share_sticks() -> None:
    graph = Graph()
    one, other = graph.argument((5, 40)), graph.argument((5, 41))
    joined = graph.concat(1, graph.pointwise("math.tanh", one), other, one)
    _assert_kept(graph.text(graph.pointwise("arith.negf", joined)), graph, load("spyre"), stepwise=True)


def test_a_tensor_that_is_factor_and_addend_at_once() -> None:
    graph = Graph()
    value = graph.argument((40, 96))
    product = graph.matmul(value, graph.argument((96, 96), parameter=True))
    module = _assert_kept(
        graph.text(graph.pointwise("arith.addf", product, value)), graph, load("spyre"), stepwise=True
    )
    assert len(_grids(module)) == 1
