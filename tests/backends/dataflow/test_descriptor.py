"""Boxes against a walk over their addresses."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow.descriptor import Box
from tests.settings import examples


def addresses(box: Box) -> list[int]:
    """First bytes of the elements in the order of the walk."""
    return [
        sum(index * stride for index, stride in zip(point, box.strides, strict=True))
        for point in product(*(range(count) for count in box.counts))
    ]


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    width = draw(st.sampled_from([1, 2, 4, 8]))
    rank = draw(st.integers(0, 3))
    counts = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    strides = tuple(width * draw(st.sampled_from([0, 1, 2, 3, 16, 64, 100, -1])) for _ in range(rank))
    return Box(counts, strides, width)


@settings(max_examples=examples(2000))
@given(boxes())
def test_span_covers_exactly_the_bytes(box: Box) -> None:
    first = addresses(box)
    assert box.span == (min(first), max(first) + box.width)
    assert box.elements == len(first)


@settings(max_examples=examples(2000))
@given(boxes())
def test_merging_keeps_the_walk(box: Box) -> None:
    assert addresses(box.merged) == addresses(box)
    assert box.dimensions <= len(box.counts)


@settings(max_examples=examples(4000))
@given(boxes(), st.integers(0, 127))
def test_touches_are_no_fewer_than_the_different_words(box: Box, misalignment: int) -> None:
    words = {(misalignment + at + byte) // 128 for at in addresses(box) for byte in (0, box.width - 1)}
    assert len(words) <= box.touches(128, misalignment) <= 2 * box.elements


@settings(max_examples=examples(2000))
@given(boxes(), st.sampled_from([8, 64, 4096]))
def test_runs_cover_the_walk(box: Box, longest: int) -> None:
    assert box.runs(longest) * longest >= box.bytes


def test_touches_of_the_usual_shapes() -> None:
    assert Box((64, 64), (128, 2), 2).touches(128) == 64
    assert Box((4096,), (2,), 2).touches(128) == 64
    assert Box((4096,), (2,), 2).touches(128, 64) == 65
    assert Box((64,), (128,), 2).touches(128) == 64
    assert Box((64, 64), (0, 2), 2).touches(128) == 1
    assert Box((64, 32), (2, 0), 2).touches(128) == 1
    assert Box((3, 128), (0, 2), 2).touches(128) == 6


def test_runs_are_cut_at_the_longest_request() -> None:
    assert Box((4096,), (2,), 2).runs(4096) == 2
    assert Box((64, 64), (512, 2), 2).runs(4096) == 64
    assert Box((64,), (128,), 2).runs(4096) == 64
