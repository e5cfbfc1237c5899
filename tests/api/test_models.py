"""Models from PyTorch to the simulated machine: both executors against eager single precision, and against each other.

Tolerance, as a fraction of the largest entry of the output. f32: sums of some hundred products in another order. f16
and bf16: each result is rounded a few times on its way, as eager rounds too, in other places; so four units in the last
place (2^-11, 2^-8) against single precision, and twice that for models of several layers, where roundings add up.
The executors round in the same places and differ in the order of sums alone: two units in the last place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModel

import ktir
from ktir.arrays import to_numpy
from tests.frontend.torch.blocks import Llama, LlamaLayer, RmsNorm, RotaryAttention, SwiGlu
from tests.frontend.torch.test_minilm import PATH

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
TOLERANCE = {F32: 2e-5, F16: 4 * 2**-11, BF16: 4 * 2**-8}
LAYERS = 2
"""How much more than TOLERANCE a model of several layers may differ."""

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]


def made(model: nn.Module, dtype: torch.dtype, *shape: int) -> Built:
    return model.to(dtype).eval(), (torch.randn(*shape).to(dtype),)


def mini_lm_layer(length: int) -> Built:
    model = AutoModel.from_pretrained(PATH, dtype=F16, num_hidden_layers=1, attn_implementation="sdpa").eval()
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length // 2 :] = 0
    return TensorsOnly(model), (torch.randint(0, 30000, (2, length)), mask)


class TensorsOnly(nn.Module):
    """The last hidden state alone, of a model from transformers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state


MODELS: dict[str, tuple[Callable[[], Built], int]] = {
    "swiglu": (lambda: made(SwiGlu(128, 256), F16, 64, 128), 1),
    "swiglu, nothing a multiple of 64": (lambda: made(SwiGlu(100, 172), F16, 7, 100), 1),
    "swiglu f32": (lambda: made(SwiGlu(96, 160), F32, 33, 96), 1),
    "swiglu bf16": (lambda: made(SwiGlu(128, 192), BF16, 16, 128), 1),
    "softmax over the last axis": (lambda: made(nn.Softmax(-1), F16, 67, 1000), 1),
    "softmax over the first axis": (lambda: made(nn.Softmax(0), F16, 67, 1000), 1),
    "softmax over the middle axis": (lambda: made(nn.Softmax(1), F16, 3, 40, 64), 1),
    "layer norm": (lambda: made(nn.LayerNorm(384), F16, 1, 384), 1),
    "layer norm, odd": (lambda: made(nn.LayerNorm(150), F16, 5, 150), 1),
    "rms norm": (lambda: made(RmsNorm(256), F16, 67, 256), 1),
    "causal attention": (lambda: made(RotaryAttention(256, 8, 2), F16, 1, 64, 256), 1),
    "causal attention, odd length": (lambda: made(RotaryAttention(128, 4, 1), F16, 2, 37, 128), 1),
    "llama": (lambda: (Llama(128, 256, 8, 2, 512).half().eval(), (torch.randint(0, 128, (1, 32)),)), LAYERS),
    "llama layer bf16": (lambda: made(LlamaLayer(128, 4, 1, 192), BF16, 1, 24, 128), LAYERS),
    "MiniLM layer": (lambda: mini_lm_layer(64), LAYERS),
    "MiniLM layer, odd length": (lambda: mini_lm_layer(21), LAYERS),
}


def fraction(got: torch.Tensor, want: torch.Tensor) -> float:
    """The largest difference as a fraction of the largest entry."""
    return float((got.double() - want.double()).abs().max() / want.double().abs().max().clamp(min=0.01))


@pytest.mark.parametrize("name", MODELS)
def test_both_executors_give_what_pytorch_gives(name: str) -> None:
    torch.manual_seed(0)
    build, layers = MODELS[name]
    model, args = build()
    with torch.no_grad():
        wide = [arg.float() if arg.is_floating_point() else arg for arg in args]
        reference, like = copy.deepcopy(model).float()(*wide), model(*args)
        program = ktir.compile(model, args)
        dataflow, direct = program.call("dataflow", *args), program.call("ktir", *args)
    tolerance = layers * TOLERANCE[like.dtype]
    for got in (dataflow, direct):
        assert (got.shape, got.dtype) == (like.shape, like.dtype)
        assert fraction(got, reference) <= tolerance
    assert fraction(dataflow, direct) <= tolerance / 2
    assert all(launch.time_ns >= launch.bound_ns for launch in program.timing.launches)
    examination = ktir.examine(program.module, "spyre")
    assert not examination.findings
    assert examination.tallies["bounds"].asked and examination.tallies["coverage"].asked


class MeanPlus(nn.Module):
    """Numbers known at compile time among the operands of point-wise work, before, between and after others."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ones = torch.ones_like(x)
        return (ones + x.mean(-1, keepdim=True)) * torch.full_like(x, 3) + (torch.zeros_like(x) - x) / ones


class Table(nn.Module):
    """Constants of different numbers, few and many, in a product, a mask and a sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = torch.arange(x.shape[0]), torch.arange(x.shape[1])
        steps = (columns * 3 % 7).to(x.dtype)
        return torch.where(rows[:, None] >= columns % 5, x * steps, x + rows[:, None].to(x.dtype))


@pytest.mark.parametrize("model", [MeanPlus(), Table()], ids=["equal numbers", "different numbers"])
@pytest.mark.parametrize("shape", [(6, 64), (9, 5)])
def test_constants_among_operands(model: nn.Module, shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    program = ktir.compile(model, (x,))
    for executor in ("dataflow", "ktir"):
        assert fraction(program.call(executor, x), model(x)) <= TOLERANCE[F32]


def test_both_doors_give_the_same_bytes() -> None:
    torch.manual_seed(0)
    model, args = made(SwiGlu(64, 128), F16, 8, 64)
    torch._dynamo.reset()
    with torch.no_grad():
        direct = ktir.compile(model, args)(*args)
        fast = torch.compile(model, backend="ktir", dynamic=False, fullgraph=True)(*args)
    assert torch.equal(direct, fast)


def test_a_saved_model_gives_the_same_bytes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, args = made(SwiGlu(64, 128), F16, 8, 64)
    program = ktir.compile(model, args)
    loaded = ktir.load(program.save(tmp_path / "m.ktirpkg"))
    assert torch.equal(program(*args), loaded(*args))
    assert loaded.plan == program.plan
    assert loaded.time() == program.time()


class Named(nn.Module):
    """Outputs with names, one of them a view of an input, one that is no tensor."""

    def forward(self, x: torch.Tensor, *, scale: float) -> dict[str, Any]:
        return {"scaled": x * scale, "turned": x.T, "nothing": None}


def test_outputs_keep_their_structure_and_views_after_saving(tmp_path: Path) -> None:
    x = torch.randn(6, 64)
    program = ktir.compile(Named(), (x,), {"scale": 3.0})
    for each in (program, ktir.load(program.save(tmp_path / "n.ktirpkg"))):
        result = each(x, scale=3.0)
        assert list(result) == ["scaled", "turned", "nothing"] and result["nothing"] is None
        assert torch.equal(result["scaled"], x * 3) and torch.equal(result["turned"], x.T)
        with pytest.raises(ktir.KtirError):
            each(x, scale=4.0)


def test_arrays_in_give_arrays_out() -> None:
    torch.manual_seed(0)
    model, (x,) = made(SwiGlu(64, 128), BF16, 8, 64)
    program = ktir.compile(model, (x,))
    result = program(to_numpy(x))
    assert isinstance(result, np.ndarray) and result.dtype == ml_dtypes.bfloat16
    assert result.tobytes() == to_numpy(program(x)).tobytes()


def test_weights_that_change_are_seen() -> None:
    model, x = nn.Linear(64, 64).eval(), torch.randn(4, 64)
    program = ktir.compile(model, (x,))
    with torch.no_grad():
        model.weight.mul_(2)
        assert fraction(program(x), model(x)) <= TOLERANCE[F32]


def test_an_operator_outside_the_set_is_named_with_its_shapes_and_line() -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.qr(x).Q

    with pytest.raises(ktir.KtirError, match="qr") as error:
        ktir.compile(Odd(), (torch.randn(8, 8),))
    assert "[8, 8]" in str(error.value) and Path(__file__).name in str(error.value)


def test_a_model_may_run_with_dl16_in_the_place_of_f16() -> None:
    """On both executors alike; results are numbers of DL16, which has nine bits of mantissa where f16 has ten."""
    torch.manual_seed(3)
    model, args = made(nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 40)), F16, 5, 64)
    program = ktir.compile(model, args)
    plain = program(*args)
    program.options = ktir.Options(numerics="dl16")
    found, reference = (program.call(executor, *args) for executor in ("dataflow", "ktir"))
    scale = float(plain.abs().max())
    for other in (reference, plain):
        assert float((found - other).abs().max()) <= 4 * 2**-10 * scale
    normal = np.abs(found.detach().numpy()) >= 2.0**-14
    assert not (found.detach().numpy().view(np.uint16)[normal] & 1).any()
    assert (plain.detach().numpy().view(np.uint16)[normal] & 1).any()
