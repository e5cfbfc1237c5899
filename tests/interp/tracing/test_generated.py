"""On generated programs: watching changes no bit, and a program does not differ from itself."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import execute
from ktir.interp.tracing.bisect import Conditions, Version, bisect
from ktir.interp.tracing.explain import Explain
from ktir.interp.tracing.recording import Recording
from ktir.interp.tracing.trace import Trace
from tests.naive.differential import arrays
from tests.naive.programs import program
from tests.settings import examples


@given(st.integers(0, 2**62))
@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_watching_changes_no_bit_and_a_program_is_the_same_as_itself(seed: int) -> None:
    generated = program(seed)
    module = parse_module(generated.text, "program.ktir", context=create_context(experimental=True))
    arguments = arrays(generated.arguments)
    plain = execute(module, "k", arguments)
    observers = (Trace(detail="execution"), Recording(), Explain(0))
    watched = execute(module, "k", arguments, observers=observers, source=generated.text)
    assert plain.outputs.keys() == watched.outputs.keys()
    for name, array in plain.outputs.items():
        assert array.tobytes() == watched.outputs[name].tobytes()
    trace, _, explain = observers
    assert str(trace) and str(explain) and trace.data and explain.data
    for each in explain.data["tensors"]:
        assert 0 <= each["share_read"] <= 1 and 0 <= each["share_written"] <= 1
    version = Version("program.ktir", module, "k", generated.text)
    found = bisect(version, version, Conditions(arguments))
    assert found.same and not found.only_first and not found.only_second and not found.repeated
