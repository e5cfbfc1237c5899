"""Whole blocks, captured and executed at level G, equal eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.frontend.torch.blocks import Llama, Pooled, RotaryAttention, SwiGlu
from tests.frontend.torch.reference import check

FACTOR = 4.0
"""A block is a chain of up to a dozen operators, each of which may round the other way."""


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


@pytest.mark.parametrize(
    ("model", "shape", "dtype"),
    [
        (lambda: SwiGlu(67, 130), (5, 67), torch.float32),
        (lambda: SwiGlu(128, 192), (2, 3, 128), torch.float16),
        (lambda: RotaryAttention(128, 8, 2), (2, 67, 128), torch.float16),
        (lambda: RotaryAttention(80, 4, 1), (1, 13, 80), torch.float32),
    ],
    ids=["swiglu_67_f32", "swiglu_128_f16", "attention_67_f16", "attention_80_f32"],
)
def test_blocks(model: Callable[[], nn.Module], shape: tuple[int, ...], dtype: torch.dtype) -> None:
    check(model().to(dtype).eval(), torch.randn(shape).to(dtype), factor=FACTOR)


def test_two_llama_layers() -> None:
    model = Llama(100, 256, 8, 2, 384).half().eval()
    captured = check(model, torch.randint(0, 100, (1, 33)), factor=2 * FACTOR)
    assert not [name for name in captured.operators if name in ("aten.cos.default", "aten.arange.start_step")]


def test_pooling_by_a_mask() -> None:
    check(Pooled(), torch.randn(2, 7, 67), torch.tensor([[1] * 7, [1] * 3 + [0] * 4]))


def test_encoder_layer_of_pytorch() -> None:
    layer = nn.TransformerEncoderLayer(67 - 3, 4, 130, activation="gelu", batch_first=True, norm_first=True).eval()

    def model(x: torch.Tensor) -> torch.Tensor:
        x = x + layer._sa_block(layer.norm1(x), None, None)
        return x + layer._ff_block(layer.norm2(x))

    check(model, torch.randn(2, 13, 64), factor=FACTOR)
