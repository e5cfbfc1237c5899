"""What must hold for every stick layout, on generated shapes."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.errors import IllegalLayout
from ktir.maths.stick_layout import DeviceDim, StickLayout
from tests.settings import examples

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4)
LANES = st.sampled_from([1, 2, 4, 8])


def layouts() -> st.SearchStrategy[StickLayout]:
    return st.builds(StickLayout.default, SHAPES, LANES)


@settings(max_examples=examples(500))
@given(layouts())
def test_elements_have_places_of_their_own_and_the_rest_is_padding(layout: StickLayout) -> None:
    indices = set(product(*map(range, layout.extent)))
    places = {layout.device_index(index): index for index in indices}
    assert len(places) == len(indices)
    for place in product(*map(range, layout.physical_shape)):
        assert layout.tensor_index(place) == places.get(place)


@settings(max_examples=examples(500))
@given(layouts())
def test_offsets_agree_with_the_walks_of_each_tensor_dimension(layout: StickLayout) -> None:
    for index in product(*map(range, layout.extent)):
        by_walk = sum(
            at // walk.step % walk.size * walk.stride for dim, at in enumerate(index) for walk in layout.walks(dim)
        )
        assert layout.offset(index) == by_walk
        assert layout.offset(index) < layout.elements


@settings(max_examples=examples(300))
@given(SHAPES, LANES)
def test_regrouping_leading_dimensions_moves_no_byte(shape: list[int], lanes: int) -> None:
    whole = StickLayout.default(shape, lanes)
    flat = StickLayout.default([prod(shape[:-1]), shape[-1]], lanes)
    order = sorted(product(*map(range, shape)))
    flat_order = sorted(product(*map(range, flat.extent)))
    assert [whole.offset(index) for index in order] == [flat.offset(index) for index in flat_order]


def test_the_default_layout_has_stick_columns_outermost() -> None:
    layout = StickLayout.default([67, 1000], 64)
    assert layout.physical_shape == (16, 67, 64)
    assert (layout.lanes, layout.stick_dim, layout.is_padded, layout.padded_extent(1)) == (64, 1, True, 1024)
    assert layout.offset((3, 70)) == 67 * 64 + 3 * 64 + 6
    assert layout.tensor_index((15, 0, 40)) is None


@pytest.mark.parametrize(
    "dims",
    [
        [],
        [DeviceDim(2, 8, 1)],
        [DeviceDim(0, 4, 1), DeviceDim(1, 4, 1)],
        [DeviceDim(1, 2, 3), DeviceDim(0, 4, 1), DeviceDim(1, 4, 1)],
        [DeviceDim(0, 0, 1), DeviceDim(1, 8, 1)],
    ],
)
def test_dims_that_do_not_reach_each_element_once_are_refused(dims: list[DeviceDim]) -> None:
    with pytest.raises(IllegalLayout):
        StickLayout(tuple(dims), (4, 8))


def test_a_0d_tensor_has_no_sticks() -> None:
    with pytest.raises(IllegalLayout):
        StickLayout.default([], 64)
