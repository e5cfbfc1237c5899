"""Captured models run as they mean: level G on the KTIR executor, compared with eager PyTorch.

Tolerances. Integers, booleans and pure moves are exact. f32: sums of up to a few hundred products in another order,
and transcendental functions of numpy against those of torch: a few units of 1e-6 relative to the largest entry. f16
and bf16: each operator rounds once in both, but a sum in another order may round to the neighbouring number, and
attention in eager rounds in other places; so a few units in the last place (2^-11, 2^-8) of the largest entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ktir.arrays import to_numpy, to_torch
from ktir.frontend.torch.capture import capture
from ktir.frontend.torch.captured import Captured
from ktir.interp.executor import execute

TOLERANCE = {torch.float32: 2e-5, torch.float16: 4 * 2**-11, torch.bfloat16: 4 * 2**-8}
"""Largest error as a fraction of the largest entry of the output (at least 0.01)."""


def run(captured: Captured, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """What the captured model returns, with its function executed at level G."""
    captured.module.verify()

    def compute(inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        values = {name: to_numpy(tensor.detach()) for name, tensor in {**captured.parameters, **inputs}.items()}
        return [to_torch(result) for result in execute(captured.module, "main", values).results]

    return captured.call(args, kwargs or {}, compute)


def copies(values: Any) -> Any:
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, values)


def check(model: Callable[..., Any], *args: Any, factor: float = 1.0, **kwargs: Any) -> Captured:
    """The model gives what eager gives: values within tolerance, dtypes, shapes, structure, and changed inputs."""
    eager_args, eager_kwargs = copies((args, kwargs))
    with torch.no_grad():
        captured = capture(model, args, kwargs)
        got = run(captured, args, kwargs)
        want = model(*eager_args, **eager_kwargs)
    compare(got, want, factor)
    compare((args, kwargs), (eager_args, eager_kwargs), factor)
    return captured


def compare(got: Any, want: Any, factor: float = 1.0) -> None:
    """``got`` has the structure, types and (within tolerance) the values of ``want``."""
    got_leaves, got_spec = pytree.tree_flatten(got)
    want_leaves, want_spec = pytree.tree_flatten(want)
    assert got_spec == want_spec
    for number, (one, other) in enumerate(zip(got_leaves, want_leaves, strict=True)):
        if isinstance(other, torch.Tensor):
            _compare_tensors(number, one, other, factor)
        else:
            assert type(one) is type(other) and one == other


def _compare_tensors(number: int, got: torch.Tensor, want: torch.Tensor, factor: float) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), f"output {number}"
    if not want.dtype.is_floating_point:
        assert torch.equal(got, want), f"output {number}"
        return
    one, other = got.double(), want.double()
    same = (one == other) | (one.isnan() & other.isnan())
    finite = other[other.isfinite()]
    largest = max(0.01, float(finite.abs().max()) if finite.numel() else 0.0)
    error = float((one - other).abs()[~same].max()) if bool((~same).any()) else 0.0
    allowed = factor * TOLERANCE[want.dtype] * largest
    assert error <= allowed, f"output {number} is off by {error:.3g}, allowed {allowed:.3g}"
