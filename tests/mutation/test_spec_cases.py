"""Mutants of the kernels of ``spec/cases``: each changes the output or stops with an error that names a line."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ktir.conformance.case import Case, parse_case
from ktir.dialect.text.parser import parse_module
from ktir.errors import KtirError
from ktir.interp.executor import execute
from tests.mutation.mutations import Mutation, mutations

FILES = sorted((Path(__file__).parents[2] / "spec" / "cases").glob("*.ktir"))


@cache
def case(path: Path) -> Case:
    return parse_case(path.read_text(), str(path))


@cache
def original(path: Path) -> dict[str, bytes]:
    return outputs(path, None)


def outputs(path: Path, mutation: Mutation | None) -> dict[str, bytes]:
    """The bytes of every expected output after a run; of its input where nothing was stored."""
    module = parse_module(path.read_text(), str(path))
    if mutation is not None:
        mutation.apply(module)
    read = case(path)
    stored = execute(module, read.function, read.inputs, max_steps=100_000).outputs
    return {name: np.asarray(stored.get(name, read.inputs[name])).tobytes() for name in read.expected}


def mutants() -> list[pytest.param]:
    return [
        pytest.param(path, mutation, id=f"{path.stem}: {mutation.name} ({mutation.position})")
        for path in FILES
        for mutation in mutations(parse_module(path.read_text(), str(path)))
    ]


@pytest.mark.parametrize(("path", "mutation"), mutants())
def test_a_mutant_is_noticed(path: Path, mutation: Mutation) -> None:
    try:
        changed = outputs(path, mutation)
    except KtirError as error:
        assert error.location is not None, error
        return
    assert changed != original(path), "the mutant gives the same output as the program"
