"""Each operator of the set, on shapes with and without multiples of 64, equals eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.frontend.torch.reference import check

HALVES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


UNARY: dict[str, Callable[[torch.Tensor], Any]] = {
    "signs": lambda x: (
        -x,
        x.abs(),
        x.relu(),
        x.square(),
        x**3,
        x.clamp(-0.5, 0.5),
        x.clamp(min=0.1),
        x.clamp(max=0.1),
    ),
    "roots": lambda x: (x.abs().sqrt(), (x.abs() + 0.1).rsqrt(), x.abs() ** 0.5, (x.abs() + 0.5) ** -1, x.abs() ** 1.7),
    "exponentials": lambda x: (x.exp(), x.sigmoid(), x.tanh(), x.expm1(), 2**x),
    "logarithms": lambda x: ((x.abs() + 0.1).log(), (x.abs() + 0.1).log2(), x.abs().log1p()),
    "waves": lambda x: (x.sin(), x.cos(), x.erf(), x.floor(), x.ceil(), x.round()),
    "activations": lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.leaky_relu(x), F.elu(x)),
    "numbers": lambda x: (x + 1, 2 - x, x * 0.1, x / 3, 1 / (x.abs() + 1), x - 2 * x, F.hardtanh(x)),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_one_operand(dtype: torch.dtype) -> None:
    check(lambda x: {name: model(x) for name, model in UNARY.items()}, randn(5, 67, dtype=dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_two_operands_broadcast(dtype: torch.dtype) -> None:
    def model(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
        return (
            x + y,
            x - y,
            x * z,
            x / (z.abs() + 1),
            torch.minimum(x, y),
            torch.maximum(x, z),
            torch.add(x, y, alpha=3),
        )

    check(model, randn(3, 4, 6, dtype=dtype), randn(6, dtype=dtype), randn(4, 1, dtype=dtype))


def test_mixed_types_promote_as_in_eager() -> None:
    def model(h: torch.Tensor, x: torch.Tensor, i: torch.Tensor, b: torch.Tensor) -> Any:
        return h + x, h * i, i + b, i / 2, i * 1.5, b * h, h + b, torch.where(b, h, x), i - 1, i * i, -i, i.abs(), i**2

    check(model, randn(4, 6, dtype=torch.float16), randn(6), torch.arange(6) - 3, torch.rand(4, 6) > 0.5)


def test_special_values_stay_special() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 3e38])

    def model(x: torch.Tensor) -> Any:
        rows = (
            x.exp(),
            x.log(),
            x.sqrt(),
            x.rsqrt(),
            x.sigmoid(),
            x.tanh(),
            x.relu(),
            x.clamp(0, 1),
            F.silu(x),
            x.erf(),
        )
        return rows, x.isnan(), x.isinf(), torch.maximum(x, x.neg()), x == x, x != x, x < 1, x >= 0, x.sum(), x.amax()

    check(model, x)


def test_comparisons_and_bits() -> None:
    def model(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor, b: torch.Tensor) -> Any:
        compared = x > y, x >= 0.1, x == y, x != y, x < y, x <= 0, i > 2, i == 3, b > ~b
        return *compared, (x > 0) & b, (x > 0) | b, ~b, b ^ (x > 0), x.logical_not(), i & 3, i | 1, i ^ 5, ~i, b & True

    check(model, randn(4, 6), randn(6), torch.arange(24).reshape(4, 6), torch.rand(4, 6) > 0.5)


def test_a_scalar_is_rounded_before_it_is_compared() -> None:
    """0.1 is no f16: eager compares with the nearest f16, so equality holds there."""
    check(lambda x: (x == 0.1, x > 0.1, torch.where(x > 0, x, 0.1), x.clamp(min=0.1)), torch.tensor([0.1, 0.2]).half())


def test_casts() -> None:
    def model(x: torch.Tensor, h: torch.Tensor, i: torch.Tensor, b: torch.Tensor) -> Any:
        floats = x.half(), x.bfloat16(), h.float(), h.bfloat16(), i.half(), b.float(), i.bfloat16()
        return *floats, x.long(), x.int(), h.long(), x.bool(), i.bool(), i.int(), b.long(), b.int(), i.int().long()

    check(
        model,
        randn(3, 5) * 9,
        randn(3, 5, dtype=torch.float16),
        torch.arange(15).reshape(3, 5) - 5,
        torch.rand(3) > 0.5,
    )


VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "reshape": lambda x: (x.view(12, 5) * 2, x.reshape(-1) * 2, x.unsqueeze(-1).squeeze(-1) + 1, x[:, None] + 1),
    "reshape_crosswise": lambda x: (x.reshape(5, 12) + 1, x.reshape(2, 3, 10) + 1, x.reshape(1, 60, 1) + 1),
    "permute": lambda x: (x.permute(2, 0, 1) * 2, x.transpose(0, 1).reshape(-1) + 0, x.mT + 1),
    "slices": lambda x: (x[:, 1:3] + 0, x[..., ::2] * 1, x[1] * 1, x[:, -1] + 1, x[-2:, 0] * 2, x.narrow(1, 1, 2) * 2),
    "parts": lambda x: (
        *(p * 1 for p in x.split(2, 1)),
        *(p + 1 for p in x.chunk(3, 2)),
        *(p + 1 for p in x.unbind(0)),
    ),
    "joins": lambda x: (torch.cat([x, x * 2], 1), torch.stack([x, x + 1], 1), torch.cat([x, x[:, :1]], 1)),
    "repeats": lambda x: (
        x.expand(2, 3, 4, 5) + 1,
        x.repeat(2, 1, 3),
        x.repeat_interleave(3, 1),
        x[:, :1].expand(3, 7, 5) * 2,
    ),
    "padding": lambda x: (F.pad(x * 1, (1, 2, 0, 1)), F.pad(x * 1, (-1, 0)), F.pad(x * 1, (0, 3), value=2.5)),
    "no_dimensions": lambda x: (x.sum().reshape(1, 1) + 1, x.sum() * 2, x[0, 0, :1].reshape(()) + 1),
}


def test_views() -> None:
    check(lambda x: {name: model(x) for name, model in VIEWS.items()}, randn(3, 4, 5))


def test_reads_at_positions() -> None:
    def model(table: torch.Tensor, i: torch.Tensor) -> Any:
        rows, columns = torch.arange(3)[:, None], torch.arange(4)
        return table[i], F.embedding(i, table), table[rows, columns], table[columns, rows], table[torch.arange(1, 9, 2)]

    check(model, randn(10, 6), torch.randint(0, 10, (3, 4)))


def test_reductions() -> None:
    def model(x: torch.Tensor, i: torch.Tensor, b: torch.Tensor) -> Any:
        sums = (
            x.sum(),
            x.sum(0),
            x.sum((0, 2), keepdim=True),
            x.sum(-1),
            i.sum(),
            i.sum(0),
            b.sum(1),
            x.mean(1),
            x.mean(),
        )
        extrema = (
            x.amax(1),
            x.amin((0, 1)),
            x.max(),
            x.min(),
            i.amax(0),
            b.any(1),
            b.all(),
            b.any(),
            b.all(0, keepdim=True),
        )
        return sums, extrema, x.norm(dim=1), F.normalize(x, dim=-1), x.var(1), x.std(2), x.var((0, 1), correction=0)

    check(model, randn(3, 4, 67), torch.arange(12).reshape(3, 4), torch.rand(3, 4) > 0.5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_reductions_of_half_types_are_rounded_once(dtype: torch.dtype) -> None:
    check(
        lambda x: (x.sum(), x.sum(0), x.mean(1), x.mean(), x.sum(-1, dtype=torch.float32), x.amax(0)),
        randn(3, 4, 67, dtype=dtype),
    )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_softmax_over_each_axis(dtype: torch.dtype) -> None:
    def model(*tensors: torch.Tensor) -> Any:
        return [(x.softmax(dim), x.log_softmax(dim)) for x in tensors for dim in (0, 1, 2, -1)]

    check(model, randn(3, 5, 67, dtype=dtype), randn(2, 64, 128, dtype=dtype))


def test_softmax_of_a_row_that_is_forbidden_is_nan_as_in_eager() -> None:
    x = randn(3, 7)
    x[1] = float("-inf")
    check(lambda x: x.softmax(-1), x)


@pytest.mark.parametrize(("width", "dtype"), [(67, torch.float32), (128, torch.float16), (67, torch.bfloat16)], ids=str)
def test_norms(width: int, dtype: torch.dtype) -> None:
    layer, rms = torch.nn.LayerNorm(width, dtype=dtype), torch.nn.RMSNorm(width, eps=1e-5, dtype=dtype)
    for parameter in (*layer.parameters(), *rms.parameters()):
        torch.nn.init.normal_(parameter)

    class Norms(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.rms = layer, rms

        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(x), self.rms(x), F.layer_norm(x, (5, width)), F.rms_norm(x, (width,))

    check(Norms(), randn(2, 5, width, dtype=dtype) * 3 + 1)


def test_written_out_rms_norm() -> None:
    weight = randn(67, dtype=torch.float16)

    def model(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype)

    check(model, randn(2, 5, 67, dtype=torch.float16), weight)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_products(dtype: torch.dtype) -> None:
    def model(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, v: torch.Tensor) -> Any:
        batched = b @ c, a @ b[:, :67], torch.bmm(b, c), torch.baddbmm(c, b, c, beta=2, alpha=0.5), c.mT @ v
        return (
            *batched,
            a @ v,
            v @ a.mT,
            v @ v,
            torch.mm(a, a.mT),
            torch.addmm(v, a, b[0]),
            torch.einsum("ij,bjk->bik", a, c),
        )

    check(model, *(randn(*shape, dtype=dtype) for shape in ((5, 67), (3, 67, 67), (3, 67, 9), (67,))))


def test_linear() -> None:
    def model(weight: torch.Tensor, bias: torch.Tensor, *inputs: torch.Tensor) -> Any:
        return [F.linear(x, weight, b) for x in inputs for b in (bias, None)]

    shapes = (130, 67), (130,), (67,), (5, 67), (2, 5, 67)
    check(model, *(randn(*shape, dtype=torch.float16) for shape in shapes))


def test_products_of_integers_are_exact() -> None:
    check(lambda a, b: a @ b, torch.randint(-9, 9, (5, 7)), torch.randint(-9, 9, (7, 3)))
