"""Reports of compiled models: every hot spot has its line in the KTIR and in the model, fresh and from a package."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest
import torch

import ktir
from ktir.backends.dataflow.reports.report import Report
from ktir.backends.dataflow.timing import LaunchTime
from tests.backends.dataflow.test_timed import assert_conserved

MODEL = """\
import torch


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(128, 256), torch.nn.Linear(256, 64)

    def forward(self, x):
        wide = self.up(x)
        wide = torch.nn.functional.gelu(wide)
        return self.down(wide)
"""
LINES = {line: number for number, line in enumerate((each.strip() for each in MODEL.splitlines()), 1)}
UP, DOWN = LINES["wide = self.up(x)"], LINES["return self.down(wide)"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ktir.Program:
    path = tmp_path_factory.mktemp("model") / "written_model.py"
    path.write_text(MODEL)
    spec = importlib.util.spec_from_file_location("written_model", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["written_model"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return ktir.compile(module.Mlp().half().eval(), (torch.zeros(64, 128, dtype=torch.float16),))


def model_lines(report: Report, operation: str, file: str = "written_model.py") -> set[int]:
    """Lines of the model that a kind of operation of the machine is for."""
    spots = [spot for spot in report.timing.hot_spots if spot.operation == operation]
    assert all(spot.source is not None and spot.source.file.endswith(file) for spot in spots)
    return {spot.source.line for spot in spots if spot.source is not None}


def test_products_are_at_the_lines_of_the_model_that_multiply(program: ktir.Program, tmp_path: Path) -> None:
    loaded = ktir.load(program.save(tmp_path / "m.ktirpkg"))
    fresh, again = program.report(), loaded.report()
    for report in (fresh, again):
        assert_conserved(report.timing)
        assert model_lines(report, "pe_mac") == {UP, DOWN}
        for spot in report.timing.hot_spots:
            text = report.line(spot.location)
            assert text, f"{spot} has no line"
            if spot.operation == "pe_mac":
                assert "linalg.matmul" in text
            if spot.unit in ("hbm_ld", "hbm_st"):
                assert "ktdp.load" in text or "ktdp.store" in text
    lines = [[spot.location.line if spot.location else 0 for spot in each.timing.hot_spots] for each in (fresh, again)]
    assert lines[0] == lines[1]  # what is printed, and what is in the package
    assert f"written_model.py:{UP}" in fresh.text and f"written_model.py:{UP}" in fresh.html


class Twins(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        one = self.first(x)
        two = self.second(x)
        return one, two


def test_launches_of_one_kernel_keep_their_own_lines_of_the_model(tmp_path: Path) -> None:
    program = ktir.compile(Twins().half().eval(), (torch.zeros(32, 64, dtype=torch.float16),))
    start = inspect.getsourcelines(Twins.forward)[1]
    for each in (program, ktir.load(program.save(tmp_path / "t.ktirpkg"))):
        report = each.report()
        products = [(name, launch) for launch, name, _ in report.launches if multiplies_of(launch)]
        assert len(products) == 2 and len({name for name, _ in products}) == 1, "one kernel, launched twice"
        lines = [source.line for _, launch in products if (source := report.source(launch)) is not None]
        assert sorted(lines) == [start + 1, start + 2]
        assert model_lines(report, "pe_mac", Path(__file__).name) == set(lines)


def multiplies_of(launch: LaunchTime) -> int:
    return sum(work.operations for work in launch.work if work.kind == "multiply")


def test_each_kernel_says_what_it_computes_and_moves(program: ktir.Program) -> None:
    report = program.report()
    multiplies = {name: multiplies_of(launch) for launch, name, _ in report.launches}
    assert sorted(count for count in multiplies.values() if count) == sorted((2 * 64 * 128 * 256, 2 * 64 * 256 * 64))
    sizes = (64 * 128, 256 * 128, 256, 64 * 64, 64 * 256, 64)
    assert report.timing.ddr_compulsory >= 2 * sum(sizes)  # inputs, weights, output; and what lies between kernels
    assert all(launch.bound_by == "device memory" for launch, _, _ in report.launches)
    points = [point for point in report.roofline.points if point.kind == "multiply"]
    assert [point.operations for point in points] == [count for count in multiplies.values() if count]
    assert all(0 < point.rate <= point.roof * (1 + 1e-9) for point in report.roofline.points)
