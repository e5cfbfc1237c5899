"""Properties of address allocation over time, on generated tenants."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.maths.lifetimes import Allocation, Occupied, Room, Tenant, allocate, merged
from tests.settings import examples


@st.composite
def tenant_lists(draw: st.DrawFn) -> list[Tenant]:
    spans = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 500)), max_size=12))
    return [Tenant(f"t{i}", size, min(a, b), max(a, b)) for i, (a, b, size) in enumerate(spans)]


def rooms_with_tenants(tenants: list[Tenant], allocation: Allocation) -> list[Occupied]:
    return [Occupied(tenant, allocation.rooms[tenant.name]) for tenant in tenants]


@settings(max_examples=examples(200))
@given(tenant_lists(), st.sampled_from([1, 16, 128]))
def test_tenants_that_meet_never_share_an_address(tenants: list[Tenant], alignment: int) -> None:
    allocation = allocate(tenants, alignment=alignment)
    placed = rooms_with_tenants(tenants, allocation)
    for number, left in enumerate(placed):
        assert len(left.room) == left.tenant.size and left.room.start % alignment == 0
        assert left.room.stop <= allocation.high_water or left.tenant.size == 0
        for right in placed[number + 1 :]:
            assert not (left.tenant.meets(right.tenant) and left.room.overlaps(right.room))


@settings(max_examples=examples(100))
@given(tenant_lists(), st.integers(0, 300), st.integers(1, 300))
def test_an_occupied_room_is_left_alone_while_its_tenant_lives(tenants: list[Tenant], start: int, size: int) -> None:
    resident = Occupied(Tenant("resident", size, 3, 6), Room(start, start + size))
    allocation = allocate(tenants, occupied=[resident])
    for each in rooms_with_tenants(tenants, allocation):
        assert not (each.tenant.meets(resident.tenant) and each.room.overlaps(resident.room))


@given(tenant_lists())
def test_tenants_of_one_moment_need_no_more_than_their_sum(tenants: list[Tenant]) -> None:
    together = [Tenant(t.name, t.size, 0, 0) for t in tenants]
    assert allocate(together).high_water == sum(t.size for t in together)


def test_tenants_that_never_meet_share_addresses() -> None:
    allocation = allocate([Tenant("a", 100, 0, 1), Tenant("b", 100, 2, 3)])
    assert allocation.rooms["a"] == allocation.rooms["b"] and allocation.high_water == 100


@given(st.lists(st.builds(lambda a, n: Room(a, a + n), st.integers(0, 60), st.integers(1, 20)), max_size=8))
def test_merged_rooms_are_disjoint_and_cover_the_same_addresses(rooms: list[Room]) -> None:
    result = merged(rooms)
    assert all(left.stop <= right.start for left, right in pairwise(result))
    assert {a for r in result for a in range(r.start, r.stop)} == {a for r in rooms for a in range(r.start, r.stop)}
