"""Watches: every change of a value, once, with the cores that have it."""

from __future__ import annotations

import numpy as np
import pytest

from ktir.errors import ArgumentError, ValueNotFound
from ktir.interp.tracing.watch import Change, Watch
from tests.interp.kernels import kernel
from tests.interp.tracing.programs import CORES, DOUBLE, PER_CORE, inputs, line_with, observed


def changes(text: str, *watched: str) -> list[Change]:
    told: list[Change] = []
    watch = Watch(watched, told.append)
    observed(text, inputs() if "%x" in text else {}, watch)
    assert told == watch.changes
    return told


def test_a_value_of_one_core_is_told_at_each_change_with_its_iteration() -> None:
    found = changes(DOUBLE, "%row@1")
    assert [each.text for each in found] == [str(PER_CORE + number) for number in range(PER_CORE)]
    assert [each.iteration for each in found] == [(("%i", number),) for number in range(PER_CORE)]
    assert {each.cores for each in found} == {(1,)}
    assert {each.location.line for each in found if each.location} == {line_with(DOUBLE, "%row =")}


def test_cores_with_the_same_value_are_told_together() -> None:
    assert [(each.text, each.cores) for each in changes(DOUBLE, "i")] == [
        (str(number), tuple(range(CORES))) for number in range(PER_CORE)
    ]


def test_what_stays_the_same_is_not_told_again() -> None:
    text = DOUBLE.replace("%row =", "%half = arith.divui %i, %two : index\n%row =").replace(
        "%c1 =", "%two = arith.constant 2 : index\n%c1 ="
    )
    assert [each.text for each in changes(text, "%half")] == ["0", "1"]


def test_large_tensors_are_summarised_and_undefined_elements_show() -> None:
    (first, *_) = changes(DOUBLE, "%v@0")
    assert first.shape == (1, 16) and first.dtype == "f32" and "..." not in first.text
    text = kernel(["%e = tensor.empty() : tensor<100xf32>", "%z = arith.constant dense<1.5> : tensor<100xf32>"], "")
    empty, full = changes(text, "%e", "%z")
    assert "..." in full.text and full.text.startswith("[1.5, 1.5, 1.5,") and "?" in empty.text


def test_arguments_and_views_can_be_watched() -> None:
    assert [each.text for each in changes(DOUBLE, "%x@2")] == ["0"]
    (view,) = changes(DOUBLE, "%xv")
    assert view.text == "view of global memory at element 0, sizes [12, 16], strides [16, 1]"


def test_an_unknown_name_is_an_error_with_names_that_look_like_it() -> None:
    with pytest.raises(ValueNotFound, match="no value %rwo") as caught:
        changes(DOUBLE, "%rwo")
    assert "%row" in (caught.value.remedy or "")


@pytest.mark.parametrize("text", ["", "%", "%a@", "%a@b", "a b"])
def test_what_is_no_watch_is_an_error(text: str) -> None:
    with pytest.raises((ArgumentError, ValueNotFound)):
        changes(DOUBLE, text)


def test_a_core_that_is_not_there_is_an_error() -> None:
    watch = Watch([f"%row@{CORES}"])
    observed(DOUBLE, inputs(), watch)
    with pytest.raises(ArgumentError, match=f"no core {CORES}"):
        watch.require_cores()


def test_many_different_values_are_counted() -> None:
    text = kernel(["%core = ktdp.get_compute_tile_id : index"], "", [32])
    found = changes(text, "%core")
    assert sorted(core for each in found for core in each.cores) == list(range(32))
    assert len(found) < 8 and np.unique([each.text for each in found]).size == len(found)
