"""Blocks of real models, written as their authors write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class SwiGlu(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class RmsNorm(nn.Module):
    """RMS norm as Llama writes it out: in f32, rounded before the weight."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class RotaryAttention(nn.Module):
    """Causal self-attention with rotary positions and ``heads / key_heads`` query heads for each key head."""

    def __init__(self, hidden: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, hidden // heads
        self.query = nn.Linear(hidden, heads * self.size, bias=False)
        self.key = nn.Linear(hidden, key_heads * self.size, bias=False)
        self.value = nn.Linear(hidden, key_heads * self.size, bias=False)
        self.out = nn.Linear(heads * self.size, hidden, bias=False)
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, self.size, 2) / self.size), persistent=False)

    def _apply(self, fn, recurse=True):  # the table stays f32 when the module becomes half
        table = self.frequencies
        super()._apply(fn, recurse)
        self.frequencies = table
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        angles = torch.outer(torch.arange(length).float(), self.frequencies)
        cos, sin = (f(torch.cat((angles, angles), -1)).to(x.dtype) for f in (torch.cos, torch.sin))
        q = rotated(self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2), cos, sin)
        k = rotated(self.key(x).view(batch, length, self.key_heads, self.size).transpose(1, 2), cos, sin)
        v = self.value(x).view(batch, length, self.key_heads, self.size).transpose(1, 2)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(seen.transpose(1, 2).reshape(batch, length, -1))


class LlamaLayer(nn.Module):
    def __init__(self, hidden: int, heads: int, key_heads: int, inner: int) -> None:
        super().__init__()
        self.before, self.attention = RmsNorm(hidden), RotaryAttention(hidden, heads, key_heads)
        self.after, self.mlp = RmsNorm(hidden), SwiGlu(hidden, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.after(x))


class Llama(nn.Module):
    """Two layers between an embedding and the logits."""

    def __init__(self, vocabulary: int, hidden: int, heads: int, key_heads: int, inner: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(LlamaLayer(hidden, heads, key_heads, inner) for _ in range(2))
        self.norm = RmsNorm(hidden)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.embedding.weight)


class Pooled(nn.Module):
    """Mean over the tokens that the mask shows, then normalised: the end of a sentence embedding."""

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shown = mask.unsqueeze(-1).expand(tokens.size()).to(tokens.dtype)
        mean = (tokens * shown).sum(1) / torch.clamp(shown.sum(1), min=1e-9)
        return F.normalize(mean, p=2, dim=1)
