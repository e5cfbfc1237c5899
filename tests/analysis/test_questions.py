"""How many questions are decided, on the cases of the specification; ``tests/api/test_models.py`` asks of models."""

from __future__ import annotations

from pathlib import Path

import pytest

import ktir
from ktir.analysis.check import ANALYSES, examine
from ktir.analysis.findings import UNKNOWN
from ktir.dialect.text.parser import parse_module
from ktir.passes.registry import all_passes
from tests.faults.catalogue import copy, kernel, tile, view

CASES = sorted((Path(__file__).parents[2] / "spec" / "cases").glob("*.ktir"))


def test_nine_of_ten_questions_about_the_cases_are_decided_and_nothing_is_wrong() -> None:
    examinations = [ktir.examine(case, "spyre") for case in CASES]
    assert len(CASES) >= 4
    assert not [d for each in examinations for d in each.findings if d.code != UNKNOWN]
    tallies = [tally for each in examinations for tally in each.tallies.values()]
    assert sum(tally.decided for tally in tallies) >= 0.9 * sum(tally.asked for tally in tallies)


@pytest.mark.parametrize("topic", ["bounds", "coverage", "races", "agreement", "initialisation", "limits"])
def test_every_case_is_asked_about(topic: str) -> None:
    assert all(topic in ktir.examine(case, "spyre").tallies for case in CASES)


def test_what_stays_open_is_counted_and_said() -> None:
    open_ = kernel(
        view("x", "%x_ptr", 64) + tile("t", "x", "%n") + "%v = ktdp.load %t : <64xindex> -> tensor<64xf16>",
        arguments="%x_ptr: index, %n: index",
    )
    examination = examine(parse_module(open_, "k.ktir"), None)
    assert [d.code for d in examination.findings] == [UNKNOWN]
    assert (examination.tallies["bounds"].asked, examination.tallies["bounds"].decided) == (1, 0)


def test_there_is_a_pass_for_each_analysis() -> None:
    checked = {topic for topics in ANALYSES for topic in topics} - {"divisors", "exchanges"}
    assert {f"ktir-check-{topic}" for topic in checked} <= all_passes().keys()


def test_a_topic_alone_gives_the_findings_on_it() -> None:
    module = parse_module(kernel(copy().replace("%y[0]", "%y[-64]")), "k.ktir")
    everything = examine(module, None)
    assert [d.code for d in everything.findings] == ["OutOfBounds", "IncompleteCoverage"]
    for topic, tally in everything.tallies.items():
        alone = examine(module, None, (topic,))
        assert dict(alone.tallies) == {topic: tally}
        assert set(alone.findings) <= set(everything.findings)
