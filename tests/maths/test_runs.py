"""Boxes have the bytes of the runs they were made of, and few boxes are enough for what layouts make."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.maths.runs import MOST_BOXES, boxes_of, runs_of
from tests.settings import examples

gaps = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=30)


@settings(max_examples=examples(400))
@given(gaps, st.integers(0, 5))
def test_boxes_have_the_same_runs(gaps: list[tuple[int, int]], first: int) -> None:
    runs, at = list[tuple[int, int]](), first
    for width, gap in gaps:
        runs.append((at, at + width))
        at += width + gap
    array = np.array(runs, np.int64).reshape(-1, 2)
    boxes = boxes_of(array)
    assert boxes is not None and runs_of(boxes).tolist() == array.tolist()


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3), st.integers(1, 9))
def test_a_grid_is_one_box(dims: list[tuple[int, int]], width: int) -> None:
    pitch, starts = width + 1, np.zeros(1, np.int64)
    for count, gap in dims:
        starts = np.sort((starts[:, None] + np.arange(count) * pitch).ravel())
        pitch = pitch * count + gap
    assert len(boxes_of(np.stack([starts, starts + width], axis=1)) or ()) == 1


def test_rows_with_an_incomplete_last_column_of_sticks_are_two_boxes() -> None:
    """[67, 1000] halves in columns of 64: 15 whole columns, then 67 rows of 40 halves."""
    last = 15 * 67 * 128
    runs = np.array([[0, last], *([last + row * 128, last + row * 128 + 80] for row in range(67))], np.int64)
    assert boxes_of(runs) == [(0, last), (last, 80, 67, 128)]


def test_what_has_no_order_is_not_described() -> None:
    starts = np.cumsum(np.arange(2, 2 * MOST_BOXES + 10) ** 2)
    assert boxes_of(np.stack([starts, starts + 1], axis=1)) is None
