"""Every stage of a compiled model is text that reads back as the same IR and that real MLIR accepts, and what runs is
that text: a mutant of it gives another output or stops with an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal

import pytest
import torch
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation

import ktir
from ktir.arrays import to_numpy
from ktir.backends.dataflow.run import run
from ktir.dialect import ktdp
from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.errors import KtirError
from ktir.frontend.torch.capture import capture
from ktir.interp.executor import execute
from ktir.passes.pipeline import run_pipeline
from ktir.program import Program, lower, result_names
from tests.api.test_models import Built, made, mini_lm_layer
from tests.frontend.torch.blocks import Llama, RotaryAttention, SwiGlu
from tests.mutation.mutations import Mutation, mutations
from tests.oracle.mlir import assert_real_mlir_accepts
from tests.settings import FULL, examples

MODELS: dict[str, Callable[[], Built]] = {
    "swiglu, nothing a multiple of 64": lambda: made(SwiGlu(100, 172), torch.float16, 7, 100),
    "softmax over the first axis": lambda: made(torch.nn.Softmax(0), torch.float16, 67, 100),
    "causal attention": lambda: made(RotaryAttention(64, 2, 1), torch.float16, 1, 24, 64),
    "llama": lambda: (Llama(128, 256, 8, 2, 512).half().eval(), (torch.randint(0, 128, (1, 32)),)),
    "MiniLM layer": lambda: mini_lm_layer(64),
}
TRIED = list(MODELS) if FULL else list(MODELS)[:3]
"""The whole models, whose dataflow programs are long texts, are for the full suite."""


def stages(model: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> Iterator[tuple[str, ModuleOp]]:
    """The module after capture, after each named pipeline, and as a dataflow program."""
    machine = ktir.machine("spyre")
    module, context = capture(model, args, {}).module.clone(), create_context(machine)
    yield "captured", module
    for pipeline in ("graph", "decide", "lower"):
        run_pipeline(pipeline, context, module)
        yield pipeline, module
    with torch.no_grad():
        yield "dataflow", ktir.compile(model, args).dataflow.op


@pytest.mark.parametrize("name", TRIED)
def test_each_stage_is_text_that_reads_back_and_real_mlir_accepts(name: str) -> None:
    torch.manual_seed(0)
    for stage, module in stages(*MODELS[name]()):
        for generic in (False, True):
            again = parse_module(print_module(module, generic=generic), stage)
            assert again.is_structurally_equivalent(module), (stage, "generic" if generic else "short")
        assert_real_mlir_accepts(module)


# ------------------------------------------------------------------------------------------------------------- mutants


@cache
def original() -> tuple[Program, dict[str, Any]]:
    """A compiled model whose kernels multiply, reduce and peel tails, with the arguments of its ``@main``.

    Its rows are whole sticks, and two cores take several tiles each: what fills padding, or is the step of a loop that
    runs once, changes no output.
    """
    torch.manual_seed(0)
    model, args = made(torch.nn.Sequential(torch.nn.Linear(192, 64), torch.nn.Softmax(-1)), torch.float16, 37, 192)
    program = ktir.compile(model, args, machine=ktir.machine("spyre", cores=2, scratchpad="64KiB"))
    captured = capture(model, args, {})
    arguments = {**captured.parameters, **captured.flatten(args, {})}
    return program, {name: to_numpy(value) for name, value in arguments.items()}


def on_ktir_executor(module: ModuleOp) -> list[bytes]:
    program, arguments = original()
    return [each.tobytes() for each in execute(module, "main", arguments, machine=program.machine).results]


def on_dataflow_simulator(module: ModuleOp) -> list[bytes]:
    program, arguments = original()
    outputs = run(lower(ktir.Module(module), program.machine), arguments).outputs
    return [outputs[name].tobytes() if name in outputs else b"" for name in result_names(program.module)]


def sample(module: ModuleOp) -> list[Mutation]:
    """Mutations evenly spread over the program, as many as the scale of the suite asks for.

    An index that several places share is left out: where it is both the end of one core's work and the start of the
    next one's, another number is another split of the same work.
    """
    operations = list(module.walk())
    found = [each for each in mutations(module) if not is_shared_index(operations[each.position])]
    return found[:: max(1, len(found) // examples(len(found)))]


def is_shared_index(op: Operation) -> bool:
    return isinstance(op, arith.ConstantOp) and isinstance(op.result.type, IndexType) and len(list(op.result.uses)) > 1


@pytest.mark.parametrize("run_on", [on_ktir_executor, on_dataflow_simulator])
def test_a_mutant_of_the_compiled_module_is_noticed(run_on: Callable[[ModuleOp], list[bytes]]) -> None:
    program, _ = original()
    want = run_on(program.module.op)
    for mutation in sample(program.module.op):
        mutant = program.module.op.clone()
        mutation.apply(mutant)
        try:
            got = run_on(mutant)
        except KtirError as error:
            assert error.location is not None, (mutation.name, error)
        else:
            assert got != want, f"{mutation.name}: same output\n{program.module}"


@pytest.mark.parametrize("executor", ["ktir", "dataflow"])
def test_a_program_runs_its_module_as_it_is_now(executor: Literal["ktir", "dataflow"]) -> None:
    torch.manual_seed(0)
    model, args = made(torch.nn.ReLU(), torch.float16, 8, 64)
    program = ktir.compile(model, args)
    time = program.time()
    program.call(executor, *args)
    stores = [op for op in program.module.op.walk() if isinstance(op, ktdp.StoreOp)]
    for store in stores:
        store.detach()
        store.erase()
    with pytest.raises(KtirError, match=r"UninitialisedRead"):
        program.call(executor, *args)
    assert program.time() != time
