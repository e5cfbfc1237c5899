"""Attention as a fold over keys equals eager's, for every kind of mask and sharing of heads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ktir.dialect.ktg import FoldOp
from ktir.frontend.torch.captured import Captured
from tests.frontend.torch.reference import check


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(6)


def heads(queries: int, keys: int, *, sharing: int = 1, dtype: torch.dtype = torch.float16) -> tuple[torch.Tensor, ...]:
    """Queries of 8 heads of 16, keys and values of ``8 / sharing`` heads; values of 24."""
    q = torch.randn(2, 8, queries, 16)
    k, v = torch.randn(2, 8 // sharing, keys, 16), torch.randn(2, 8 // sharing, keys, 24)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def fold_of(captured: Captured) -> FoldOp:
    [fold] = [op for op in captured.module.walk() if isinstance(op, FoldOp)]
    return fold


@pytest.mark.parametrize("sharing", [1, 4])
def test_shapes(sharing: int) -> None:
    def model(*triples: tuple[torch.Tensor, ...]) -> Any:
        return [
            F.scaled_dot_product_attention(*triple, is_causal=causal, enable_gqa=sharing > 1)
            for triple in triples
            for causal in (False, True)
        ]

    sizes = ((67, 67), (5, 130)) if sharing == 1 else ((128, 128), (1, 64), (70, 30))
    check(model, *(heads(queries, keys, sharing=sharing) for queries, keys in sizes))


def test_types_and_scale() -> None:
    def model(*triples: tuple[torch.Tensor, ...]) -> Any:
        return [F.scaled_dot_product_attention(*triple, scale=0.3) for triple in triples]

    check(model, *(heads(30, 70, dtype=dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16)))


@pytest.mark.parametrize("sharing", [1, 4])
def test_masks(sharing: int) -> None:
    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *masks: torch.Tensor) -> Any:
        return [F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=sharing > 1) for mask in masks]

    shapes = (2, 1, 1, 70), (2, 8, 30, 70), (1, 1, 30, 70), (30, 70), (2, 1, 30, 1)
    boolean = [torch.rand(shape) > 0.3 for shape in shapes]
    check(model, *heads(30, 70, sharing=sharing), *boolean, *(torch.randn(shape).half() for shape in shapes))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_query_that_may_see_no_key_gives_what_eager_gives(dtype: torch.dtype) -> None:
    allowed = torch.rand(30, 70) > 0.3
    allowed[3] = False
    additive = torch.zeros(30, 70, dtype=dtype).masked_fill(~allowed, float("-inf"))

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *masks: torch.Tensor) -> Any:
        return [F.scaled_dot_product_attention(q, k, v, mask) for mask in masks]

    check(model, *heads(30, 70, dtype=dtype), allowed, additive)


def test_fewer_batch_dimensions() -> None:
    def model(one: torch.Tensor, two: torch.Tensor) -> Any:
        return [F.scaled_dot_product_attention(x, x, x) for x in (one, two)]

    check(model, torch.randn(30, 16), torch.randn(4, 30, 16))


def test_repeated_key_heads_are_not_repeated_in_the_graph() -> None:
    """The usual ``repeat_kv`` and ``repeat_interleave`` leave a fold over the four heads there are."""

    def repeat(heads: torch.Tensor) -> torch.Tensor:
        batch, count, keys, size = heads.shape
        return heads[:, :, None].expand(batch, count, 4, keys, size).reshape(batch, count * 4, keys, size)

    def expanded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, repeat(k), repeat(v), is_causal=True)

    def interleaved(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))

    for model in (expanded, interleaved):
        fold = fold_of(check(model, *heads(30, 70, sharing=4)))
        assert fold.ins[1].type.get_shape() == (2, 2, 70, 16)


def test_attention_written_out() -> None:
    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, float("-inf"))
        return scores.softmax(-1, dtype=torch.float32).to(q.dtype) @ v

    check(model, *heads(30, 70), torch.rand(2, 1, 1, 70) > 0.3)
