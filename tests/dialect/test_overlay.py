"""Stock operations that are built by a program are the same as those that are read from their own text."""

from collections.abc import Callable

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, ModuleOp, TensorType, f16, f32, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.test import TestOp as Source
from xdsl.ir import Block, Operation, Region, SSAValue

from ktir.dialect import overlay
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module


def values(*types: TensorType | IndexType) -> tuple[Operation, list[SSAValue]]:
    """An operation that defines a value of each type."""
    source = Source(result_types=types)
    return source, list(source.results)


def add_body(element: object) -> Region:
    block = Block(arg_types=[element, element])  # pyright: ignore[reportArgumentType]
    block.args[0].name_hint, block.args[1].name_hint = "in", "init"  # as the short form names them
    total = arith.AddfOp(block.args[1], block.args[0])
    block.add_ops([total, linalg.YieldOp(total.result)])
    return Region(block)


def transpose() -> list[Operation]:
    source, (a, b) = values(TensorType(f32, [4, 8]), TensorType(f32, [8, 4]))
    return [source, linalg.TransposeOp(a, b, DenseArrayBase.from_list(i64, [1, 0]))]


def broadcast() -> list[Operation]:
    source, (a, b) = values(TensorType(f32, [4]), TensorType(f32, [4, 8]))
    return [source, linalg.BroadcastOp(a, b, DenseArrayBase.from_list(i64, [1]))]


def reduce() -> list[Operation]:
    source, (a, b) = values(TensorType(f32, [4, 8]), TensorType(f32, [4]))
    return [source, linalg.ReduceOp(a, b, DenseArrayBase.from_list(i64, [1]), add_body(f32))]


def matmul() -> list[Operation]:
    source, (a, b, c) = values(TensorType(f16, [4, 8]), TensorType(f16, [8, 2]), TensorType(f32, [4, 2]))
    return [source, linalg.MatmulOp([a, b], [c])]


def add() -> list[Operation]:
    source, (a, b) = values(TensorType(f32, [4]), TensorType(f32, [4]))
    return [source, linalg.AddOp([a, a], [b])]


def loop() -> list[Operation]:
    source, (n,) = values(IndexType())
    return [source, scf.ForOp(n, n, n, [], Region(Block([scf.YieldOp()], arg_types=[IndexType()])))]


def compare() -> list[Operation]:
    source, (a, b) = values(TensorType(f32, [4]), TensorType(f32, [4]))
    return [source, arith.CmpfOp(a, b, "olt")]


@pytest.mark.parametrize("build", [transpose, broadcast, reduce, matmul, add, loop, compare])
@pytest.mark.parametrize("generic", [False, True])
def test_built_and_read_are_the_same(build: Callable[[], list[Operation]], generic: bool) -> None:
    overlay.repair_all()
    module = ModuleOp(build())
    context = create_context(allow_unregistered=True)
    text = print_module(module, generic=generic)
    again = parse_module(text, context=context)
    assert print_module(again, generic=generic) == text
    assert print_module(again, generic=not generic) == print_module(module, generic=not generic)


def test_without_names_at_the_top() -> None:
    text = "#map = affine_map<(d0) -> (d0 + 1)>\nfunc.func private @f() attributes {m = #map}\n"
    written = "module {\n  func.func private @f() attributes {m = affine_map<(d0) -> (d0 + 1)>}\n}\n"
    assert print_module(parse_module(text), local_scope=True) == written
