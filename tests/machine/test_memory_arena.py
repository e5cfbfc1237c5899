"""Which allocation an access belongs to, where allocations of different times share bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ktir.machine.memory_arena import Arena

SIZE = 64
places = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(lambda each: (each[0], min(each[1], SIZE)))


@given(st.lists(places, max_size=8), places)
def test_an_access_belongs_to_the_last_allocation_that_holds_it(
    placed: list[tuple[int, int]], access: tuple[int, int]
) -> None:
    arena = Arena("device memory", limit=4 * SIZE)
    made = [arena.allocate(f"buffer {number}", size, start=start) for number, (start, size) in enumerate(placed)]
    start, size = access
    holding = [each for each in made if each.start <= start < each.stop]
    whole = [each for each in holding if start + size <= each.stop]
    expected = (whole or holding or [None])[-1]
    assert arena.containing(start, start + size) is expected
    assert arena.containing(start) is (holding or [None])[-1]
