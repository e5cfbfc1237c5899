"""What must hold for every core split, on generated extents."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.errors import IllegalSplit
from ktir.maths.ownership import CoreSplit, DimensionSplit, Slice
from tests.settings import examples


@st.composite
def dimension_splits(draw: st.DrawFn, most_cuts: int = 3000) -> DimensionSplit:
    extent, granule = draw(st.integers(1, 3000)), draw(st.sampled_from([1, 8, 32, 64, 100]))
    return DimensionSplit(extent, draw(st.integers(1, min(most_cuts, -(-extent // granule)))), granule)


def core_splits() -> st.SearchStrategy[CoreSplit]:
    """Up to 10^3 cores, so that a test may look at each."""
    splits = st.lists(dimension_splits(most_cuts=10), min_size=1, max_size=3)
    return splits.map(lambda drawn: CoreSplit({f"d{number}": split for number, split in enumerate(drawn)}))


@settings(max_examples=examples(1000))
@given(dimension_splits())
def test_the_slices_cover_the_dimension_once_and_in_order(split: DimensionSplit) -> None:
    covered = [iteration for digit in range(split.cuts) for iteration in range(*_bounds(split.slice(digit)))]
    assert covered == list(range(split.extent))


@settings(max_examples=examples(1000))
@given(dimension_splits())
def test_no_slice_is_a_granule_longer_than_another_and_none_is_empty(split: DimensionSplit) -> None:
    lengths = [len(split.granule_slice(digit)) for digit in range(split.cuts)]
    assert min(lengths) >= 1 and max(lengths) - min(lengths) <= 1


@settings(max_examples=examples(1000))
@given(dimension_splits(), st.data())
def test_a_granule_never_straddles_two_slices(split: DimensionSplit, data: st.DataObject) -> None:
    granule = data.draw(st.integers(0, split.granules - 1))
    members = range(granule * split.granule, min((granule + 1) * split.granule, split.extent))
    assert len({split.digit(iteration) for iteration in members}) == 1


@settings(max_examples=examples(1000))
@given(core_splits(), st.data())
def test_every_point_lies_in_the_slices_of_its_core(split: CoreSplit, data: st.DataObject) -> None:
    point = {name: data.draw(st.integers(0, dim.extent - 1)) for name, dim in split.dimensions.items()}
    owned = split.slices(split.core(point))
    assert all(point[name] in owned[name] for name in point)


@settings(max_examples=examples(500))
@given(core_splits())
def test_no_point_has_two_cores(split: CoreSplit) -> None:
    first_points = [{name: part.start for name, part in owned.items()} for owned in split]
    assert [split.core(point) for point in first_points] == list(range(split.cores))


def test_the_last_dimension_is_the_one_neighbours_differ_in() -> None:
    split = CoreSplit({"m": DimensionSplit(64, 2), "k": DimensionSplit(64, 4)})
    assert split.digits(5) == {"m": 1, "k": 1} and split.digits(6) == {"m": 1, "k": 2}


def test_slices_intersect_as_ranges_do() -> None:
    assert Slice(3, 9) & Slice(5, 20) == Slice(5, 9)
    assert len(Slice(3, 5) & Slice(7, 9)) == 0


def test_a_core_outside_the_split_owns_nothing() -> None:
    with pytest.raises(IndexError):
        CoreSplit({"m": DimensionSplit(128, 4)}).slices(4)


@pytest.mark.parametrize(("extent", "cuts", "granule"), [(67, 3, 64), (0, 2, 1), (-1, 1, 1), (8, 0, 1), (8, 1, 0)])
def test_a_split_that_would_leave_a_slice_empty_is_refused(extent: int, cuts: int, granule: int) -> None:
    with pytest.raises(IllegalSplit):
        DimensionSplit(extent, cuts, granule)


def _bounds(part: Slice) -> tuple[int, int]:
    return part.start, part.stop
