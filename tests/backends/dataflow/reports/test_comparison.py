"""Comparing reports: what changed is said, sorted, and by how much; what did not is the same."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ktir.backends.dataflow.reports.comparison import compare
from ktir.errors import ReportError
from ktir.tools import ktir_main
from ktir.tools.console import FAULT, OK, USAGE


def report(**times: float) -> dict[str, Any]:
    """A report of kernels that take the given times one after the other."""
    launches: list[dict[str, Any]] = []
    at = 0.0
    for number, (name, time) in enumerate(times.items()):
        launches.append(
            {
                "launch": number,
                "kernel": name.split("__")[0],
                "start_ns": at,
                "stop_ns": at + time,
                "bound_ns": time / 2,
                "bound_by": "device memory",
                "ddr_read": 1000,
                "ddr_written": 24,
                "ring": 0,
            }
        )
        at += time
    return {
        "format": "ktir-report-1",
        "machine": "spyre",
        "presets": {"clock": "1.5GHz"},
        "total_ns": at,
        "bound_ns": at / 2,
        "bound_by": "device memory",
        "launches": launches,
        "shares": {"sfu": {"busy": 0.5}, "hbm_ld": {"busy": 0.25}},
        "ddr_read": 1000 * len(times),
        "ddr_written": 24 * len(times),
        "ring": 0,
    }


def test_a_report_is_the_same_as_itself() -> None:
    one = report(a=100.0, b=50.0)
    found = compare(one, copy.deepcopy(one))
    assert found.same() and found.total.difference_ns == 0
    assert {each.ratio for each in found.kernels} == {1.0}


def test_kernels_are_sorted_by_how_much_their_time_changed() -> None:
    found = compare(report(a=100.0, b=50.0, c=10.0), report(a=101.0, b=20.0, c=15.0))
    assert [(each.name, each.difference_ns) for each in found.kernels] == [("b", -30), ("c", 5), ("a", 1)]
    assert found.total.difference_ns == -24 and not found.same()


def test_launches_of_one_kernel_are_paired_in_order_and_others_are_new_or_gone() -> None:
    found = compare(report(a=10.0, a__2=20.0, old=5.0), report(new=7.0, a=10.0, a__2=26.0))
    changes = {
        each.name: (each.before is not None, each.after is not None, each.difference_ns) for each in found.kernels
    }
    assert changes == {
        "a": (True, True, 0),
        "a (2)": (True, True, 6),
        "old": (True, False, -5),
        "new": (False, True, 7),
    }
    assert "gone" in str(found) and "new" in str(found)


@pytest.mark.parametrize(("tolerance", "same"), [(0.0, False), (0.019, False), (0.021, True)])
def test_a_tolerance_is_a_share_of_the_time(tolerance: float, same: bool) -> None:
    assert compare(report(a=100.0), report(a=102.0)).same(tolerance) is same


def test_other_bytes_are_a_difference_whatever_the_time() -> None:
    other = report(a=100.0)
    other["launches"][0]["ddr_read"] += 1
    assert not compare(report(a=100.0), other).same(1.0)


def test_the_busiest_unit_of_each_is_named() -> None:
    other = report(a=100.0)
    other["shares"]["pe"] = {"busy": 0.9}
    found = compare(report(a=100.0), other)
    assert found.busiest == ("sfu", "pe") and found.units["pe"] == (None, 0.9)
    json.dumps(found.data)


def test_other_machines_choices_and_kernels_are_said() -> None:
    other = report(a=100.0, c=4.0)
    assert compare(report(a=100.0), report(a=90.0)).notes == []
    other["machine"], other["presets"] = "mesh", {"clock": "1GHz", "sfu": "issues"}
    found = compare(report(a=100.0, b=3.0), other)
    assert found.notes == [
        "on spyre (clock 1.5GHz) before, on mesh (clock 1GHz, sfu issues) after",
        "1 launches are gone: b",
        "1 launches are new: c",
    ]
    assert all(f"note: {note}" in str(found) for note in found.notes) and found.data["notes"] == found.notes
    slow = {**report(a=1.0), "presets": {"clock": "1.1GHz"}}
    assert compare(report(a=1.0), slow).notes == ["on spyre (clock 1.5GHz) before, on spyre (clock 1.1GHz) after"]
    (note,) = compare(report(a=1.0), report(b=1.0)).notes
    assert "different programs" in note


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("launches", 3), ("launches", ["a"]), ("launches", [{}]), ("shares", [1]), ("shares", {"pe": 1})),
        *(("presets", 1), ("total_ns", None), ("total_ns", "x"), ("ddr_read", float("inf"))),
    ],
)
def test_a_report_with_other_things_in_it_is_an_error(key: str, value: object) -> None:
    with pytest.raises(ReportError):
        compare(report(a=1.0), {**report(a=1.0), key: value})


@pytest.mark.parametrize("missing", ["format", "launches", "total_ns", "shares", "machine", "presets"])
def test_data_that_is_no_report_is_an_error(missing: str) -> None:
    wrong = report(a=1.0)
    del wrong[missing]
    with pytest.raises(ReportError):
        compare(report(a=1.0), wrong)


def test_files_are_compared_with_exit_statuses_like_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, none = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    one.write_text(json.dumps(report(a=100.0)))
    other.write_text(json.dumps({"ok": True, "report": report(a=110.0)}))  # what ktir run --time --json prints
    none.write_text("[1, 2")

    def diff(*words: object) -> int:
        return ktir_main.main(["report", "diff", *map(str, words)])

    assert diff(one, one) == OK
    assert diff(one, other) == FAULT
    assert "+10.0%" in capsys.readouterr().out
    assert diff(one, other, "--tolerance", "0.2") == OK
    for words in ((one, none), (one, tmp_path / "missing.json"), (one,), (one, one, one)):
        assert diff(*words) == USAGE
    capsys.readouterr()
    assert diff(one, other, "--json") == FAULT
    data = json.loads(capsys.readouterr().out)
    assert data["same"] is False and data["kernels"][0]["ratio"] == pytest.approx(1.1)
