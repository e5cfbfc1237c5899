"""What a capture keeps of the Python side of a model, and what it refuses."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ktir.dialect.locations import location_of
from ktir.errors import StaleProgram, UnsupportedInput, UnsupportedOperator
from ktir.frontend.torch.capture import capture
from tests.frontend.torch.reference import check, run

Pair = namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(8)


# ------------------------------------------------------------------------------------------------------------- outputs


def test_output_structure_numbers_none_and_constants() -> None:
    def model(x: torch.Tensor) -> Any:
        return {"sum": x.sum(), "none": None}, [3, 2.5, "text"], Pair(x * 2, torch.arange(4)), x > 0

    captured = check(model, torch.randn(3, 4))
    assert captured.result_names[0] == "output.0.sum"


def test_constant_outputs_are_not_shared_between_calls() -> None:
    captured = capture(lambda x: (torch.ones(3), x + 1), (torch.zeros(2),))
    first = run(captured, (torch.zeros(2),))[0]
    first.add_(1)
    assert torch.equal(run(captured, (torch.zeros(2),))[0], torch.ones(3))


def test_outputs_that_are_views_of_inputs_share_their_memory() -> None:
    x = torch.randn(3, 4)
    same, row, flat, copy = run(capture(lambda x: (x, x[1], x.view(-1), x.clone()), (x,)), (x,))
    assert same.data_ptr() == flat.data_ptr() == x.data_ptr()
    before = x.clone()
    x.add_(1)
    assert torch.equal(row, x[1]) and torch.equal(copy, before)


def test_one_result_returned_twice_is_one_tensor() -> None:
    x = torch.randn(3)
    one, other = run(capture(lambda x: (lambda y: (y, y))(x + 1), (x,)), (x,))
    assert one is other


def test_tensors_without_elements() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> Any:
        return (
            x + 1,
            x.sum(1),
            torch.cat([x[0], y], 0),
            torch.zeros(0) * 2,
            y @ torch.zeros(3, 0),
            x.sum(),
            x.softmax(1),
        )

    check(model, torch.zeros(2, 0, 3), torch.ones(2, 3))


# ----------------------------------------------------------------------------------------------------- changed tensors


def test_changed_inputs() -> None:
    check(lambda x, y: (x.add_(1), x * y, x.view(-1), y), torch.randn(3, 4), torch.randn(3, 4))
    check(lambda x, y: (x.copy_(y), y.mul_(2), x[1].fill_(3))[1] * 1, torch.randn(3, 4), torch.randn(3, 4))
    check(lambda x, y: (x[:, 1:3].copy_(y[:, :2]), x + 0)[1], torch.randn(3, 4), torch.randn(3, 4))
    check(lambda x: (x.clone(), x.add_(1))[0], torch.randn(3))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("offset", torch.full((2,), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x + self.count + self.offset


def test_changed_buffers_are_written_back() -> None:
    model, x = Counter(), torch.randn(2)
    captured = capture(model, (x,))
    assert torch.equal(run(captured, (x,)), x + 1.25)
    assert torch.equal(run(captured, (x,)), x + 2.25)
    assert model.count.item() == 2


def test_a_buffer_changed_after_it_was_folded_is_noticed() -> None:
    model, x = Counter(), torch.randn(2)
    captured = capture(model, (x,))
    model.offset.zero_()
    with pytest.raises(StaleProgram, match="offset"):
        run(captured, (x,))


def test_weights_are_the_models_own() -> None:
    model = nn.Linear(3, 2)
    captured = capture(model, (torch.randn(1, 3),))
    with torch.no_grad():
        model.weight.zero_()
    assert torch.equal(run(captured, (torch.randn(1, 3),))[0], model.bias.detach())


def test_changed_input_that_overlaps_another_is_refused() -> None:
    base = torch.randn(8)
    with pytest.raises(UnsupportedInput, match="shares memory"):
        run(capture(lambda x, y: (x.mul_(2), x + y)[1], (base[:4], base[2:6])), (base[:4], base[2:6]))


# --------------------------------------------------------------------------------------------------------------- calls


def test_arguments_and_keywords() -> None:
    def model(
        x: torch.Tensor, *, scale: float, other: dict[str, torch.Tensor], bias: torch.Tensor | None = None
    ) -> Any:
        y = x * scale + other["a"]
        return y if bias is None else y + bias

    a = torch.randn(3)
    captured = check(model, torch.randn(2, 3), scale=2.5, other={"a": a}, bias=None)
    got = run(captured, (torch.ones(2, 3),), {"bias": None, "other": {"a": a}, "scale": 2.5})
    assert torch.allclose(got, 2.5 + a.expand(2, 3))
    for kwargs in (
        {"scale": 2.0, "other": {"a": a}, "bias": None},
        {"scale": 2.5, "other": {"b": a}, "bias": None},
        {"scale": 2.5, "other": {"a": a}},
        {"scale": 2.5, "other": {"a": a}, "bias": a},
    ):
        with pytest.raises(UnsupportedInput):
            captured.flatten((torch.ones(2, 3),), kwargs)


def test_a_call_that_differs_from_the_capture_is_refused() -> None:
    captured = capture(lambda x: x + 1, (torch.zeros(3),))
    for other in (torch.zeros(4), torch.zeros(3, dtype=torch.float16), 3, None):
        with pytest.raises(UnsupportedInput, match=r"float32\[3\]"):
            captured.flatten((other,), {})


def test_an_input_may_have_the_name_of_a_weight() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.full((3,), 2.0))

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * self.weight

    check(Scale(), torch.randn(3))


def test_exported_program_and_graph_module() -> None:
    model, x = nn.Sequential(nn.Linear(5, 4), nn.GELU()), torch.randn(2, 5)
    with torch.no_grad():
        for form in (torch.export.export(model, (x,)), torch.fx.symbolic_trace(model)):
            assert torch.allclose(run(capture(form, (x,)), (x,)), model(x), atol=1e-5)


def test_positions_and_tables_are_folded() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(x.shape[1]).cos()

    captured = check(model, torch.randn(2, 70))
    assert dict(captured.operators) == {"aten.add.Tensor": 1}


# ------------------------------------------------------------------------------------------------------------ refusals


def test_unknown_operator_names_itself_its_shapes_and_the_line() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        return torch.cumsum(y, 0)  # the line at fault

    with pytest.raises(UnsupportedOperator, match=r"aten\.cumsum.*float16\[5, 7\]") as caught:
        capture(model, (torch.zeros(5, 7).half(),))
    location = caught.value.location
    assert location is not None and location.file == __file__
    assert "the line at fault" in Path(__file__).read_text().splitlines()[location.line - 1]


def test_operations_carry_the_models_line() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.exp()  # the line of exp

    captured = capture(model, (torch.zeros(5),))
    [exp] = [op for op in captured.module.walk() if op.name == "math.exp"]
    location = location_of(exp)
    assert location is not None
    assert "the line of exp" in Path(location.file).read_text().splitlines()[location.line - 1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.uint8], ids=str)
def test_other_element_types_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(UnsupportedInput, match=str(dtype).removeprefix("torch.")):
        capture(lambda x: x + x, (torch.ones(3, dtype=dtype),))


def test_control_flow_on_values_is_refused() -> None:
    with pytest.raises(UnsupportedInput):
        capture(lambda x: x + 1 if x.sum() > 0 else x, (torch.ones(3),))


def test_dynamic_shapes_are_refused() -> None:
    program = torch.export.export(nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("n")},))
    with pytest.raises(UnsupportedInput, match="dynamic"):
        capture(program, (torch.ones(4, 3),))


def test_dropout_in_training_is_refused() -> None:
    with pytest.raises(UnsupportedOperator):
        capture(nn.Dropout().train(), (torch.ones(3),))
