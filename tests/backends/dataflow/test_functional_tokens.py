"""What is known of a ring's tiles before a run: which bytes were written, and how many tiles are in use at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow.functional_tokens import Ring
from ktir.backends.dataflow.unit_program import Buffer
from tests.settings import examples

TILE = Buffer(0, "t", "lx", True, 0, 64, 2, "hbm_ld", ("lx_ld",), None, None)
ranges = st.tuples(st.integers(0, 15), st.integers(1, 6)).map(lambda each: (each[0], each[0] + each[1]))


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(st.booleans(), ranges), max_size=12))
def test_a_tile_that_counts_as_filled_is_read_where_it_was_written(accesses) -> None:
    """Writes that meet earlier ones are told, or the tile no longer counts as filled."""
    ring, written = Ring(0, TILE), set[int]()
    ring.know(0)
    for writes, (low, high) in accesses:
        touched = set(range(low, high))
        if writes:
            assert ring.overlaps(0, low, high) or not touched & written
            written |= touched
        else:
            ring.read(0, low, high)
            assert not ring.filled or touched <= written


@settings(max_examples=examples(200), deadline=None)
@given(st.permutations(range(8)))
def test_parts_of_a_tile_may_be_written_in_any_order(order: list[int]) -> None:
    ring = Ring(0, TILE)
    ring.know(0)
    assert not any(ring.overlaps(0, 8 * part, 8 * part + 8) for part in order)
    ring.read(0, 0, 64)
    assert ring.filled


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=15))
def test_tiles_in_use_at_once_have_slots_of_their_own(uses) -> None:
    ring = Ring(0, TILE)
    for tile, (first, length) in enumerate(uses):
        ring.know(tile)
        ring.touched(tile, first)
        ring.touched(tile, first + length)
    slots = ring.slots()
    for tile, (first, length) in enumerate(uses):
        for later in range(tile + slots, len(uses), slots):
            assert uses[later][0] > first + length
