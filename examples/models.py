"""Small models for ``ktir compile examples/models.py:NAME``: each function returns a model and example arguments."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class SwiGLU(nn.Module):
    """The gated MLP of Llama-style models."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    """Causal self-attention with one projection for queries, keys and values."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        split = self.qkv(x).view(batch, length, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(split[0], split[1], split[2], is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, hidden))


def _half(model: nn.Module, *shape: int) -> tuple[nn.Module, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    return model.half().eval(), (torch.randn(*shape).half(),)


def swiglu() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """128 rows of 256, inner width 512."""
    return _half(SwiGLU(256, 512), 128, 256)


def softmax() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """Softmax over the last axis; neither size is a multiple of a stick."""
    return _half(nn.Softmax(-1), 67, 1000)


def layer_norm() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """Layer norm over 384."""
    return _half(nn.LayerNorm(384), 64, 384)


def attention() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """Causal attention, 64 positions, 4 heads of 32."""
    return _half(Attention(128, 4), 1, 64, 128)
