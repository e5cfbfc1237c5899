"""Every entry of the catalogue: the class and line of the error, and what the checker says of it beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from ktir.analysis.check import examine
from ktir.dialect.text.parser import parse_module
from ktir.errors import Diagnostic, KtirError
from ktir.interp.executor import Execution, execute
from ktir.machine.loader import load
from tests.faults.catalogue import Fault
from tests.faults.every import EVERY

STEPS = 20_000
"""Operations after which a run is stopped."""


def run(fault: Fault) -> Execution:
    machine = load(fault.machine) if fault.machine else None
    module = parse_module(fault.text, fault.name)
    return execute(
        module,
        fault.function,
        fault.arguments(),
        machine=machine,
        checks=True,
        max_steps=STEPS,
        max_bytes=fault.max_bytes,
    )


def named(faults: tuple[Fault, ...], *stages: str) -> list[pytest.param]:
    return [pytest.param(f, id=f.name) for f in faults if f.stage in stages]


def place(error: KtirError | Diagnostic) -> int | None:
    return error.location.line if error.location else None


@pytest.mark.parametrize("fault", named(EVERY, "parse", "run"))
def test_a_fault_is_an_error_of_its_class_at_its_line(fault: Fault) -> None:
    with pytest.raises(KtirError) as caught:
        if fault.stage == "parse":
            parse_module(fault.text, fault.name)
        else:
            run(fault)
    assert caught.value.code == fault.error, caught.value
    assert place(caught.value) == fault.line, caught.value
    assert caught.value.remedy or fault.stage == "parse"


@pytest.mark.parametrize("fault", named(EVERY, "warn"))
def test_a_doubtful_program_runs_with_a_warning_at_its_line(fault: Fault) -> None:
    found = {(d.code, place(d)) for d in run(fault).diagnostics}
    assert (fault.error, fault.line) in found


@pytest.mark.parametrize("fault", named(EVERY, "valid"))
def test_a_valid_program_runs_and_gives_its_result(fault: Fault) -> None:
    outputs = run(fault).outputs
    if fault.result is not None:
        np.testing.assert_array_equal(outputs["y_ptr"].astype(np.float64), fault.result().astype(np.float64))


@pytest.mark.parametrize("fault", named(EVERY, "run", "warn", "valid", "static"))
def test_the_checker_says_what_it_can_prove(fault: Fault) -> None:
    machine = load(fault.machine) if fault.machine else None
    found = examine(parse_module(fault.text, fault.name), machine).findings
    errors = [d for d in found if d.severity == "error"]
    if fault.static is None:
        assert not errors
    elif fault.static.startswith("?"):
        assert (fault.static[1:], fault.line) in {(d.code, place(d)) for d in found if d.severity == "warning"}
        assert not errors
    else:
        assert (fault.static, fault.line) in {(d.code, place(d)) for d in errors}, [str(d) for d in found]
