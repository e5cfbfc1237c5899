"""An axis must find the same places as the layout and the view it stands for, whatever way it was made."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.maths.access import UNIT, Axis, dense_axes, layout_axes, regroup
from ktir.maths.stick_layout import StickLayout
from tests.settings import examples

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=3)
LANES = st.sampled_from([1, 2, 4, 8])
LAYOUTS = st.builds(StickLayout.default, SHAPES, LANES)


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """An axis of a layout, possibly split, joined or cut."""
    axis = draw(st.sampled_from(layout_axes(draw(LAYOUTS))))
    for _ in range(draw(st.integers(0, 2))):
        divisors = [size for size in range(1, axis.extent + 1) if axis.extent % size == 0]
        split = axis.split(draw(st.sampled_from(divisors)))
        axis = axis if split is None else draw(st.sampled_from(split))
        start = draw(st.integers(0, axis.extent - 1))
        cut = axis.cut(start, draw(st.integers(1, axis.extent - start)))
        axis = axis if cut is None else cut[0]
    return axis


@settings(max_examples=examples(1000))
@given(LAYOUTS)
def test_the_axes_of_a_layout_find_its_places(layout: StickLayout) -> None:
    found = layout_axes(layout)
    for index in product(*map(range, layout.extent)):
        assert sum(axis.offset(at) for axis, at in zip(found, index, strict=True)) == layout.offset(index)


@settings(max_examples=examples(2000))
@given(axes(), st.data())
def test_a_split_axis_finds_the_same_places(axis: Axis, data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from([size for size in range(1, axis.extent + 1) if axis.extent % size == 0]))
    halves = axis.split(inner)
    if halves is None:
        return
    for index in range(axis.extent):
        assert halves[0].offset(index // inner) + halves[1].offset(index % inner) == axis.offset(index)


@settings(max_examples=examples(2000))
@given(axes(), st.data())
def test_a_cut_axis_finds_the_same_places(axis: Axis, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, axis.extent - 1))
    stride = data.draw(st.integers(1, 3))
    size = data.draw(st.integers(1, 1 + (axis.extent - 1 - start) // stride))
    found = axis.cut(start, size, stride)
    if found is None:
        return
    cut, offset = found
    for index in range(size):
        assert offset + cut.offset(index) == axis.offset(start + index * stride)


@settings(max_examples=examples(2000))
@given(axes(), st.data())
def test_a_cover_holds_its_tile_at_the_front(axis: Axis, data: st.DataObject) -> None:
    tile = data.draw(st.integers(1, axis.extent))
    first = tile * data.draw(st.integers(0, (axis.extent - 1) // tile))
    length = min(tile, axis.extent - first)
    cover = axis.cover(tile, length)
    if cover is None:
        return
    assert all(0 <= digit.start(first) <= digit.walk.size - digit.count for digit in cover.digits)
    places = product(*(range(digit.start(first), digit.start(first) + digit.count) for digit in cover.digits))
    offsets = [sum(at * digit.walk.stride for at, digit in zip(place, cover.digits, strict=True)) for place in places]
    assert offsets[:length] == [axis.offset(first + index) for index in range(length)]
    assert cover.is_exact == (not axis.walks or len(offsets) == length)


@settings(max_examples=examples(2000))
@given(axes(), st.data())
def test_pieces_hold_their_tile_and_nothing_else(axis: Axis, data: st.DataObject) -> None:
    tile = data.draw(st.integers(1, axis.extent))
    first = tile * data.draw(st.integers(0, (axis.extent - 1) // tile))
    length = min(tile, axis.extent - first)
    pieces = axis.pieces(tile, length)
    if pieces is None:
        assert axis.cover(tile) is None
        return
    assert sum(cover.length for _, cover in pieces) == length
    for begin, cover in pieces:
        assert cover.is_exact
        ranges = ((digit, digit.start(first + begin)) for digit in cover.digits)
        places = product(*(range(start, start + digit.count) for digit, start in ranges))
        offsets = [sum(at * d.walk.stride for at, d in zip(place, cover.digits, strict=True)) for place in places]
        expected = [axis.offset(first + begin + index) for index in range(cover.length)]
        assert offsets == (expected if axis.walks else expected[:1])


@settings(max_examples=examples(1000))
@given(axes())
def test_single_elements_and_the_whole_dimension_always_have_a_cover(axis: Axis) -> None:
    assert axis.cover(1) is not None and axis.cover(axis.extent) is not None


@settings(max_examples=examples(1000))
@given(SHAPES, st.data())
def test_a_dense_buffer_can_be_read_in_any_shape(shape: list[int], data: st.DataObject) -> None:
    total = prod(shape)
    inner = data.draw(st.sampled_from([size for size in range(1, total + 1) if total % size == 0]))
    found = regroup(dense_axes(shape), [total // inner, inner])
    assert found is not None
    assert all(found[0].offset(index // inner) + found[1].offset(index % inner) == index for index in range(total))


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [([5, 128, 384], [640, 384]), ([640, 384], [640, 12, 32]), ([640, 12, 64], [640, 768]), ([4, 96], [4, 3, 32])],
)
def test_views_within_whole_sticks_need_no_copy(shape: list[int], sizes: list[int]) -> None:
    layout = StickLayout.default(shape, 64)
    found = regroup(layout_axes(layout), sizes)
    assert found is not None
    flat = [prod(sizes[at + 1 :]) for at in range(len(sizes))]
    strides = [prod(shape[at + 1 :]) for at in range(len(shape))]
    for number in range(0, prod(shape), 61):
        index = [number // stride % size for stride, size in zip(strides, shape, strict=True)]
        places = [number // stride % size for stride, size in zip(flat, sizes, strict=True)]
        assert layout.offset(index) == sum(axis.offset(at) for axis, at in zip(found, places, strict=True))


def test_rows_that_end_inside_a_stick_cannot_be_read_as_one() -> None:
    assert regroup(layout_axes(StickLayout.default([67, 1000], 64)), [1000, 67]) is None
    assert regroup([UNIT], [2]) is None


def test_half_sticks_are_tiles_and_a_stick_and_a_half_is_not() -> None:
    axis = layout_axes(StickLayout.default([8, 384], 64))[1]
    half, odd = axis.cover(32), axis.cover(96)
    assert half is not None and [digit.count for digit in half.digits] == [1, 32]
    assert odd is None
