"""Exchanges on generated groups: the pass complains exactly where plain sets of tile numbers say it must."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.dialect.text.parser import parse_module
from ktir.passes.check_inter_tile import inter_tile_faults
from tests.settings import examples

TEXT = """
#groups = affine_set<(g) : (g >= 0, -g + {last} >= 0)>
func.func @f(%p: tensor<4xf16>) {{
  %f = ktdp.inter_tile_produce producer_tiles_per_group = {producers} -> <(tensor<4xf16>), groups = #groups> {{
  ^bb0(%g: index):
    ktdp.yield_partial %p : tensor<4xf16>
  }}
  {taker}
  func.return
}}
"""
CONSUME = (
    "%r = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = {consumers}{dependency} : "
    "<(tensor<4xf16>), groups = #groups> -> tensor<4xf16>"
)
REDUCE = (
    "%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {consumers}{dependency}, identity(%p : tensor<4xf16>) :"
    " <(tensor<4xf16>), groups = #groups> -> tensor<4xf16> {{\n"
    "  ^bb0(%a: tensor<4xf16>, %b: tensor<4xf16>):\n    ktdp.yield_reduced %a : tensor<4xf16>\n  }}"
)
STRIDE = 8
"""Tiles of a group begin at this multiple of its number."""

slices = st.tuples(st.integers(0, 3), st.integers(1, 4)).map(lambda pair: range(pair[0], pair[0] + pair[1]))
shifts = st.tuples(st.integers(-2, 2), st.integers(1, 2))
"""A dependency: consumer c takes the producers from c + shift on, so many."""


def tiles(slice: range) -> str:
    """The set of a group's tiles ``slice``."""
    return f"affine_set<(i)[g] : (i - {STRIDE} * g - {slice.start} >= 0, {STRIDE} * g + {slice.stop - 1} - i >= 0)>"


def text(kind: str, producers: range, consumers: range, shift: tuple[int, int] | None, groups: int) -> str:
    dependency = ""
    if shift is not None:
        first, count = shift
        dependency = (
            f", producer_dependency_per_consumer = affine_set<(p)[c] : (p - c - {first} >= 0, "
            f"c + {first + count - 1} - p >= 0)>"
        )
    taker = kind.format(consumers=tiles(consumers), dependency=dependency)
    return TEXT.format(producers=tiles(producers), taker=taker, last=groups - 1)


def expected(kind: str, producers: range, consumers: range, shift: tuple[int, int] | None, groups: int) -> set[str]:
    """The rules that some group breaks."""
    broken: set[str] = set()
    for group in range(groups):
        makers = {STRIDE * group + tile for tile in producers}
        takers = {STRIDE * group + tile for tile in consumers}
        if kind is REDUCE and not takers <= makers:
            broken.add("R13")
        if kind is REDUCE and takers < makers and len(takers) > 1:
            broken.add("R14")
        if shift is None:
            broken |= {"R8"} if kind is CONSUME and len(makers) > 1 else set[str]()
            continue
        sources = {taker: range(max(0, taker + shift[0]), taker + sum(shift)) for taker in takers}
        if any(not set(each) <= makers for each in sources.values()):
            broken.add("R3")
        if kind is CONSUME and any(len(each) != 1 for each in sources.values()):
            broken.add("R8")
        if not makers <= {source for each in sources.values() for source in each}:
            broken.add("R4")
    return broken


WORDS = {
    "is not in producer_tiles_per_group": "R3",
    "does not cover producer tile": "R4",
    "is required to name": "R8",
    "exactly one is required": "R8",
    "is not a subset of": "R13",
    "reduce-to-subset is unsupported": "R14",
}


def found(text: str) -> Sequence[str]:
    faults = list(inter_tile_faults(parse_module(text, strict=True)))
    assert all(fault.location is not None for fault in faults)
    return [next(rule for words, rule in WORDS.items() if words in fault.message) for fault in faults]


@settings(max_examples=examples(1500), deadline=None)
@given(st.sampled_from([CONSUME, REDUCE]), slices, slices, st.none() | shifts, st.integers(1, 3))
def test_a_rule_is_reported_when_one_is_broken(
    kind: str, producers: range, consumers: range, shift: tuple[int, int] | None, groups: int
) -> None:
    broken = expected(kind, producers, consumers, shift, groups)
    rules = found(text(kind, producers, consumers, shift, groups))
    assert bool(rules) == bool(broken) and set(rules) <= broken


def test_sets_without_bounds_are_not_judged() -> None:
    judged = text(CONSUME, range(2), range(2), (0, 1), 1)
    assert found(judged.replace(" + 0 - p >= 0)", " + 0 - p >= -64)")) == ["R3"]
    assert not found(judged.replace("c + 0 - p >= 0", "c >= 0"))


def test_a_huge_group_is_left_alone_soon() -> None:
    assert not found(text(CONSUME, range(1), range(1), None, 10**9))
