"""Slices that kernels hand on in scratchpads, against the owner of every single element."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from ktir.analysis.check import Examination, examine
from ktir.dialect.ktg import CoreSplitAttr, DimensionCut, DimensionTile, KernelOp, Place, PlaceAttr, TilesAttr
from ktir.dialect.text.parser import parse_module
from ktir.machine.loader import load
from ktir.maths.ownership import CoreSplit, DimensionSplit
from tests.settings import examples

EXTENTS = {"d0": 8, "d1": 256}
TYPE = "tensor<8x256xf16>"
NEGATE = """"ktg.kernel"(%x) ({
  ^bb0(%i: TYPE):
    %e = tensor.empty() : TYPE
    %n = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
        ins(%i : TYPE) outs(%e : TYPE) {
    ^bb0(%v: f16, %o: f16):
      %w = arith.negf %v : f16
      linalg.yield %w : f16
    } -> TYPE
    ktg.yield %n : TYPE
  }) : (TYPE) -> TYPE"""
GRAPH = f"""\
#m = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: TYPE) -> TYPE {{
  %a = {NEGATE}
  %b = {NEGATE.replace("(%x)", "(%a)")}
  func.return %b : TYPE
}}
""".replace("TYPE", TYPE)

cuts = st.permutations(list(EXTENTS)).flatmap(
    lambda names: st.tuples(
        *(st.builds(DimensionCut, st.just(n), st.sampled_from([1, 2, 3, 4]), grain(n)) for n in names)
    )
)


def grain(name: str) -> st.SearchStrategy[int]:
    return st.sampled_from([1, 2] if name == "d0" else [64])


def asked(first: tuple[DimensionCut, ...], second: tuple[DimensionCut, ...], kept: Place = Place.LX) -> Examination:
    """Two kernels that negate; the second takes from scratchpads what the first leaves at ``kept``."""
    return examine(graph(first, second, kept), load("spyre"), ("ownership",))


def graph(first: tuple[DimensionCut, ...], second: tuple[DimensionCut, ...], kept: Place) -> ModuleOp:
    module = parse_module(GRAPH)
    one, other = (op for op in module.walk() if isinstance(op, KernelOp))
    one.core_split, other.core_split = CoreSplitAttr(first), CoreSplitAttr(second)
    one.tiles = other.tiles = TilesAttr((DimensionTile("d0", 1), DimensionTile("d1", 64)))
    one.result_places, other.operand_places = ArrayAttr([PlaceAttr(kept)]), ArrayAttr([PlaceAttr(Place.LX)])
    return module


def split(cuts: tuple[DimensionCut, ...]) -> CoreSplit:
    return CoreSplit({c.dimension: DimensionSplit(EXTENTS[c.dimension], c.cuts, c.granule) for c in cuts})


@settings(max_examples=examples(400), deadline=None)
@given(cuts, cuts)
def test_kernels_agree_where_every_element_stays_with_its_core(
    first: tuple[DimensionCut, ...], second: tuple[DimensionCut, ...]
) -> None:
    producer, consumer = split(first), split(second)
    points = [{"d0": row, "d1": column} for row, column in product(range(8), range(0, 256, 64))]
    agree = all(producer.core(point) == consumer.core(point) for point in points)
    examination = asked(first, second)
    assert [d.code for d in examination.findings] == ([] if agree else ["OwnershipMismatch"])
    assert examination.tallies["ownership"].unknown == 0


def test_what_is_taken_from_scratchpads_must_be_left_there() -> None:
    whole = (DimensionCut("d0", 8, 1),)
    (finding,) = asked(whole, whole, Place.DDR).findings
    assert (finding.code, finding.severity) == ("OwnershipMismatch", "error")
    assert "where no kernel leaves it" in finding.message


def test_without_a_machine_the_question_stays_open() -> None:
    whole = (DimensionCut("d0", 8, 1),)
    assert [d.code for d in examine(graph(whole, whole, Place.LX), None, ("ownership",)).findings] == ["Unknown"]
