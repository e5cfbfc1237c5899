"""One compiler for every machine that is described: other units, words, topologies and sizes, same results.

They differ in all that a description can say: 4 to 72 cores, words of 32 and 128 bytes, one compute unit or two,
corelets or none, a ring, a line or a mesh. Tolerances as in ``test_models.py``.
"""

import pytest
import torch
from torch import nn

import ktir
from ktir.machine import available
from tests.frontend.torch.blocks import SwiGlu

MODELS = {
    "swiglu": lambda: (SwiGlu(128, 256), torch.randn(24, 128)),
    "softmax": lambda: (nn.Softmax(dim=-1), torch.randn(33, 200)),
    "layer norm": lambda: (nn.LayerNorm(150), torch.randn(5, 150)),
}


@pytest.mark.parametrize("machine", available())
@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_on_every_machine(machine: str, name: str) -> None:
    torch.manual_seed(0)
    model, x = MODELS[name]()
    expected = model(x)
    program = ktir.compile(model.half().eval(), (x.half(),), machine=machine)
    limit = 4 * 2**-11 * expected.abs().max()
    for executor in ("ktir", "dataflow"):
        assert (program.call(executor, x.half()).float() - expected).abs().max() <= limit, executor
    assert program.timing.total_ns >= program.timing.bound_ns > 0


def test_an_unknown_executor_is_refused() -> None:
    program = ktir.compile(nn.Softmax(dim=-1).eval(), (torch.randn(4, 64),))
    with pytest.raises(ktir.KtirError, match="no executor is called 'card'"):
        program.call("card", torch.randn(4, 64))  # type: ignore[arg-type]
