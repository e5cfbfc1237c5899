"""Ways through a network: as long as the distance, over links of neighbours, in the order they are passed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktir.machine.description import Net, Topology


def net(kind: Topology, *, directions: int = 2, columns: int = 0) -> Net:
    return Net("n", kind, "core", width=32, directions=directions, hop_cycles=1, depth=16, columns=columns)


@st.composite
def ends(draw: st.DrawFn) -> tuple[int, int, int]:
    nodes = draw(st.integers(2, 40))
    return nodes, draw(st.integers(0, nodes - 1)), draw(st.integers(0, nodes - 1))


def leads(route: list[tuple[int, int]], source: int, target: int) -> bool:
    stops = [source, *(link[1] for link in route)]
    return route == list(pairwise(stops)) and stops[-1] == target


@given(ends())
def test_a_ring_is_walked_the_shorter_way(given_ends: tuple[int, int, int]) -> None:
    nodes, source, target = given_ends
    route = net("ring").route(source, target, nodes)
    assert leads(route, source, target)
    assert len(route) == min((target - source) % nodes, (source - target) % nodes)
    assert all((b - a) % nodes in (1, nodes - 1) for a, b in route)


@given(ends())
def test_a_ring_of_one_direction_is_walked_upwards(given_ends: tuple[int, int, int]) -> None:
    nodes, source, target = given_ends
    route = net("ring", directions=1).route(source, target, nodes)
    assert leads(route, source, target)
    assert all((b - a) % nodes == 1 for a, b in route)


@given(ends())
def test_a_line_has_no_link_between_its_ends(given_ends: tuple[int, int, int]) -> None:
    nodes, source, target = given_ends
    route = net("line").route(source, target, nodes)
    assert leads(route, source, target)
    assert len(route) == abs(target - source)


@given(ends(), st.integers(1, 8))
def test_a_mesh_is_walked_along_the_row_and_then_along_the_column(
    given_ends: tuple[int, int, int], columns: int
) -> None:
    nodes, source, target = given_ends
    route = net("mesh", columns=columns).route(source, target, nodes)
    assert leads(route, source, target)
    down, along = abs(target // columns - source // columns), abs(target % columns - source % columns)
    assert len(route) == down + along
    assert [abs(b - a) == 1 for a, b in route[:along]] == [True] * along
    assert [abs(b - a) == columns for a, b in route[along:]] == [True] * down


@pytest.mark.parametrize("kind", ["ring", "line"])
def test_the_way_to_oneself_is_empty(kind: Topology) -> None:
    assert net(kind).route(3, 3, 8) == []
