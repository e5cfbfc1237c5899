"""Whether what a program leaves behind is written completely.

A view that a program writes and never reads is an output: each of its elements should be written, by all launches
together. That no two cores write the same one is the business of :mod:`ktir.analysis.races`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ktir.analysis import ranges
from ktir.analysis.accesses import Access, Tile, View
from ktir.analysis.findings import Answer, answer, doubtful, unknown
from ktir.analysis.footprint import Footprint, Region, runs, uncovered
from ktir.analysis.launches import Program
from ktir.errors import Diagnostic, IncompleteCoverage


def check_coverage(program: Program) -> Iterator[Answer]:
    """An answer for each view of each output."""
    written: dict[Region, list[Footprint]] = defaultdict(list)
    views: dict[Region, dict[View, Access]] = defaultdict(dict)
    read: set[Region] = set()
    for launch in program.launches:
        for access in launch.accesses:
            if access.footprints is None:
                if access.kind == "write":
                    yield answer("coverage", [undecided(access)])
                continue
            for footprint in access.footprints:
                if access.kind == "read":
                    read.add(footprint.region)
                else:
                    written[footprint.region].append(footprint)
                    views[footprint.region].setdefault(footprint.view, access)
    for region, outputs in views.items():
        if region[0] == "global" and region not in read:
            for view, access in outputs.items():
                yield answer("coverage", gaps(view, access, written[region]))


def gaps(view: View, access: Access, written: Sequence[Footprint]) -> Iterator[Diagnostic]:
    """Elements of a view that no store writes."""
    if any(f.view is view and is_whole(f.access, view) for f in written):
        return
    whole = whole_view(view, access).footprints
    if whole is None or not all(part.exact for part in whole):
        yield undecided(access)
        return
    for part in whole:
        if uncovered(part.start, part.stop, *runs(f.surely for f in written)) is None:
            continue
        gap = uncovered(part.start, part.stop, *runs(written))
        if gap is None:
            yield undecided(access)
            return
        yield doubtful(
            view.operation,
            IncompleteCoverage,
            f"not all of {view.name} is written: bytes {gap[0]} to {gap[1]} from its pointer are left",
            "let the stores cover the view, or make the view as large as what is stored",
        )
        return


def is_whole(access: Access, view: View) -> bool:
    """Whether an access surely goes to all of a view at once, whatever its sizes are."""
    ends = zip(access.tile.lower, access.tile.upper, view.sizes, strict=True)
    box = access.tile.exact and access.tile.steps is None and bool(access.frame.certain.any())
    return box and all(low.literal == 0 and (size - high).literal == 1 for low, high, size in ends)


def undecided(access: Access) -> Diagnostic:
    name = access.tile.view.name
    return unknown(access.operation, f"whether every element of {name} is written is not decided")


def whole_view(view: View, access: Access) -> Access:
    """An access to every element of a view, at the points at which the view is made."""
    low = tuple(ranges.constant(0) for _ in view.sizes)
    high = tuple(size - ranges.constant(1) for size in view.sizes)
    tile = Tile(view.operation, view, low, high, ())
    return replace(access, tile=tile, frame=view.frame)
