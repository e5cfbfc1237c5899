"""Programs: calls on both executors, signatures, time and report."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from ktir.errors import UnsupportedInput
from ktir.program import Options
from ktir.signature import Outputs, flatten, unflatten
from tests.api.programs import WEIGHT, X, program, signature

INPUT = np.linspace(-1, 1, 512, dtype=np.float32).reshape(8, 64)


@pytest.mark.parametrize("executor", ["dataflow", "ktir"])
def test_a_call_gives_what_the_function_computes(executor: str) -> None:
    made = program(options=Options(executor=executor))
    np.testing.assert_array_equal(made(INPUT)["sum"], INPUT + WEIGHT)
    assert made.last_run is not None and made.last_run.executor == executor and made.last_run.operations > 0


def test_inputs_and_parameters_are_never_changed() -> None:
    given, weight = INPUT.copy(), WEIGHT.copy()
    program()(given)
    assert given.tobytes() == INPUT.tobytes() and weight.tobytes() == WEIGHT.tobytes()


def test_tensors_in_give_tensors_out() -> None:
    result = program()(torch.from_numpy(INPUT))["sum"]
    assert isinstance(result, torch.Tensor) and torch.equal(result, torch.from_numpy(INPUT + WEIGHT))


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "0 values where 1"),
        ((INPUT, INPUT), {}, "2 values where 1"),
        ((INPUT,), {"mask": INPUT}, "keywords"),
        ((INPUT[:4],), {}, r"f32\[4, 64\]"),
        ((INPUT.astype(np.float16),), {}, "f16"),
        ((3,), {}, "argument 0 is 3"),
    ],
)
def test_another_call_than_the_compiled_one_is_refused(args: tuple, kwargs: dict, words: str) -> None:
    with pytest.raises(UnsupportedInput, match=words):
        program()(*args, **kwargs)


def test_outputs_may_be_literals_constants_and_views_of_inputs() -> None:
    view = {"alias": {"leaf": 0, "shape": [64, 4], "strides": [1, 128], "offset": 64}}
    caller = signature(
        returns={"tuple": [0, {"list": [1, 2]}, {"object": "Out", "fields": {"whole": 3, "odd": 4}}]},
        outputs=[{"literal": None}, {"literal": 2.5}, {"constant": "c"}, {"computed": 0}, view],
        tensors={"c": np.arange(3)},
    )
    none, (number, constant), named = program(caller)(INPUT)
    assert none is None and number == 2.5 and constant.tolist() == [0, 1, 2]
    assert isinstance(named, Outputs)
    np.testing.assert_array_equal(named.whole, INPUT + WEIGHT)
    np.testing.assert_array_equal(named["odd"], INPUT[1::2].T)


def test_a_mutated_input_is_written_back() -> None:
    caller = signature(mutations=[{"source": {"computed": 0}, "leaf": 0}])
    for given in (INPUT.copy(), torch.from_numpy(INPUT.copy())):
        program(caller)(given)
        np.testing.assert_array_equal(np.asarray(given), INPUT + WEIGHT)


def test_values_that_are_no_tensors_must_be_the_compiled_ones() -> None:
    caller = signature(
        arguments={"tuple": [{"tuple": [0]}, {"dict": {"scale": 1}}]}, leaves=[X, {"value": 2}], inputs=[("x", 0)]
    )
    program(caller)(INPUT, scale=2)
    with pytest.raises(UnsupportedInput, match="argument 1 is 3"):
        program(caller)(INPUT, scale=3)


def test_flatten_is_the_inverse_of_unflatten() -> None:
    structure = {"tuple": [0, {"dict": {"a": 1, "b": {"list": [2, 3]}}}, {"tuple": []}]}
    value = unflatten(structure, "wxyz")
    assert value == ("w", {"a": "x", "b": ["y", "z"]}, ())
    assert list(flatten(structure, value)) == list("wxyz")


def test_the_report_tells_the_same_as_the_timing() -> None:
    made = program()
    report, timing = made.report({"answers": 42}), made.timing
    data = json.loads(report.json)
    assert made.time() == pytest.approx(timing.total_ns * 1e-9)
    assert data["total_ns"] == timing.total_ns >= timing.bound_ns > 0
    assert [launch["kernel"] for launch in data["launches"]] == ["kernel"]
    assert data["ddr_written"] == 2048 and data["counts"] == {"answers": 42}
    assert "kernel" in report.text and "answers" in report.text


def test_the_plan_lists_the_kernels() -> None:
    made = program()
    assert [(kernel.name, kernel.cores) for kernel in made.plan.kernels] == [("kernel", 2)]
    assert "kernel" in str(made.plan)
