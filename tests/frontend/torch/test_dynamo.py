"""The Dynamo door: one graph, specialised by what it is called with."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from ktir.errors import UnsupportedInput, UnsupportedOperator
from ktir.frontend.torch.capture import capture
from ktir.frontend.torch.captured import Captured
from tests.frontend.torch.reference import compare, copies, run

Captures = list[Captured]


@pytest.fixture
def captures() -> Captures:
    torch._dynamo.reset()
    torch.manual_seed(9)
    return []


def fast(model: Any, captures: Captures, **options: Any) -> Any:
    """``model`` compiled with the backend; what it captures is put into ``captures``."""

    def compile(module: Any, args: Any, kwargs: Any, **_: Any) -> Any:
        captured = capture(module, args, kwargs)
        captures.append(captured)
        return lambda *args, **kwargs: run(captured, args, kwargs)

    return torch.compile(model, backend="ktir", options={"compile": compile}, **options)


def same(model: Any, compiled: Any, *args: Any, **kwargs: Any) -> None:
    eager_args, eager_kwargs = copies((args, kwargs))
    with torch.no_grad():
        compare((compiled(*args, **kwargs), args), (model(*eager_args, **eager_kwargs), eager_args))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(5, 5), nn.LayerNorm(5)])
        self.register_buffer("ids", torch.arange(5))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> Any:
        for layer in self.inner:
            x = layer(x)
        return {"x": x * scale, "none": None, "ids": self.ids + 1}


def test_weights_and_inputs_have_their_names(captures: Captures) -> None:
    model = Block()
    same(model, fast(model, captures, fullgraph=True), torch.randn(3, 5))
    [captured] = captures
    assert {"inner.0.weight", "inner.1.bias"} <= set(captured.parameters)
    assert [binding.name for binding in captured.inputs] == ["x"]


def test_other_sizes_and_numbers_are_compiled_when_they_come(captures: Captures) -> None:
    model = Block()
    compiled = fast(model, captures)
    for rows, scale in ((3, 1.0), (4, 2.5), (3, 3.5)):
        same(model, compiled, torch.randn(rows, 5), scale=scale)


def test_other_element_types_and_ranks(captures: Captures) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).sum(-1)

    compiled = fast(model, captures)
    for x in (torch.randn(4, 9), torch.randn(2, 5, 9).half(), torch.arange(9)):
        same(model, compiled, x)


def test_modules_of_one_shape_keep_their_own_weights(captures: Captures) -> None:
    one, other, x = nn.Linear(3, 3), nn.Linear(3, 3), torch.randn(2, 3)
    for layer in (one, other):
        layer.compile(backend="ktir", options={"compile": fast_compile(captures)})
    with torch.no_grad():
        compare(one(x), one.forward(x))
        compare(other(x), other.forward(x))


def fast_compile(captures: Captures) -> Any:
    def compile(module: Any, args: Any, kwargs: Any, **_: Any) -> Any:
        captures.append(capture(module, args, kwargs))
        captured = captures[-1]
        return lambda *args, **kwargs: run(captured, args, kwargs)

    return compile


def test_a_buffer_that_was_folded_and_then_changed_is_compiled_again(captures: Captures) -> None:
    model, x = Block(), torch.randn(3, 5)
    compiled = fast(model, captures)
    same(model, compiled, x)
    model.ids.add_(1)
    same(model, compiled, x)
    assert len(captures) == 2


def test_changed_inputs_and_views_of_them(captures: Captures) -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> Any:
        x.mul_(y)
        return x.view(-1), x + y, y

    same(model, fast(model, captures), torch.randn(3, 4), torch.randn(3, 4))


def test_inference_mode(captures: Captures) -> None:
    model = Block()
    compiled = fast(model, captures)
    with torch.inference_mode():
        compare(compiled(torch.ones(2, 5)), model(torch.ones(2, 5)))


def test_errors_reach_the_caller_as_they_are(captures: Captures) -> None:
    with pytest.raises(UnsupportedOperator, match="cumsum"):
        fast(lambda x: x.cumsum(0), captures)(torch.ones(3))
    with pytest.raises(UnsupportedInput, match="float64"):
        fast(lambda x: x + 1, captures)(torch.ones(3, dtype=torch.float64))


def test_unknown_option_is_refused() -> None:
    torch._dynamo.reset()
    with pytest.raises(Exception, match="no option speed"):
        torch.compile(lambda x: x + 1, backend="ktir", options={"speed": 11})(torch.ones(3))
