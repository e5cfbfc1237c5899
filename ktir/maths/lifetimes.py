"""Places for things that live for a while: which address range each gets, so that no two alive together overlap.

Terms. tenant: a named number of bytes needed from time ``first`` to time ``last``, both included. room: a half-open
range of addresses. occupied: a tenant whose room is given. Times are any ordered integers (launch numbers, positions
in a program); addresses and sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Room:
    """The addresses ``[start, stop)``."""

    start: int
    stop: int

    def __len__(self) -> int:
        return max(0, self.stop - self.start)

    def overlaps(self, other: Room) -> bool:
        """Whether the two share an address."""
        return self.start < other.stop and other.start < self.stop


@dataclass(frozen=True, slots=True)
class Tenant:
    """``size`` bytes needed in every moment of ``first..last``."""

    name: str
    size: int
    first: int
    last: int

    def meets(self, other: Tenant) -> bool:
        """Whether there is a moment in which both are needed."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Occupied:
    """A tenant that already has its room."""

    tenant: Tenant
    room: Room


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rooms by tenant name. ``high_water`` is the first address above all of them and above the occupied ones."""

    rooms: dict[str, Room]
    high_water: int


def merged(rooms: Iterable[Room]) -> list[Room]:
    """The least list of disjoint rooms, ascending, that covers the same addresses; overlapping rooms become one."""
    result: list[Room] = []
    for room in sorted(rooms):
        if result and room.start < result[-1].stop:
            result[-1] = Room(result[-1].start, max(result[-1].stop, room.stop))
        else:
            result.append(room)
    return result


def allocate(tenants: Sequence[Tenant], *, alignment: int = 1, occupied: Sequence[Occupied] = ()) -> Allocation:
    """A room for every tenant, aligned, apart from every room whose tenant it meets.

    First fit, largest first, then by name: deterministic, and never more than the sum of what meets at one time plus
    what fragmentation costs. There is no upper limit of addresses: compare ``high_water`` with the capacity.
    """
    placed = list(occupied)
    rooms: dict[str, Room] = {}
    for tenant in sorted(tenants, key=lambda t: (-t.size, t.first, t.name)):
        start = _first_fit(tenant, placed, alignment)
        room = Room(start, start + tenant.size)
        placed.append(Occupied(tenant, room))
        rooms[tenant.name] = room
    return Allocation(rooms, max((each.room.stop for each in placed), default=0))


def _first_fit(tenant: Tenant, placed: Sequence[Occupied], alignment: int) -> int:
    start = 0
    for room in sorted(each.room for each in placed if each.tenant.meets(tenant)):
        if room.start >= start + tenant.size:
            break
        start = max(start, -(-room.stop // alignment) * alignment)
    return start
