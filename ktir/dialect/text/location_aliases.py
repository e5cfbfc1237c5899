"""The names that MLIR's printer gives to locations: ``#loc``, ``#loc1``, ..

Every location of an operation and every part of one has a name. Those that block arguments refer to are defined at the
top of the text, since arguments are read at once; the others at its end. Numbers go by depth, then by first use: a
location inside another has the smaller number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc, UnknownLoc
from xdsl.ir import Attribute

LOCATIONS = (UnknownLoc, FileLineColLoc, NameLoc, CallSiteLoc, FusedLoc)
"""Classes of attributes that are locations."""


def parts(location: Attribute) -> tuple[Attribute, ...]:
    """The locations that ``location`` is made of."""
    match location:
        case NameLoc():
            return (location.location,) if isinstance(location.location, LOCATIONS) else ()
        case CallSiteLoc():
            return location.callee, location.caller
        case FusedLoc():
            return cast(ArrayAttr[Attribute], location.locations).data
        case _:
            return ()


class LocationAliases:
    """The locations of a text in the order in which they are first met."""

    def __init__(self) -> None:
        self._depths: dict[Attribute, int] = {}
        self._at_the_top: set[Attribute] = set()

    def meet(self, location: Attribute, *, of_argument: bool) -> int:
        """Notes ``location``; returns how deep it nests, 0 for one without parts."""
        if location not in self._depths:
            self._depths[location] = 0
        depths = [self.meet(part, of_argument=of_argument) for part in parts(location)]
        self._depths[location] = max(depths, default=-1) + 1
        if of_argument:
            self._at_the_top.add(location)
        return self._depths[location]

    def names(self) -> dict[Attribute, str]:
        """The name of each location, without its ``#``."""
        in_order = sorted(self._depths, key=self._depths.__getitem__)
        return {location: f"loc{number or ''}" for number, location in enumerate(in_order)}

    def definitions(self, *, at_the_top: bool) -> Iterator[tuple[int, str, Attribute]]:
        """Depth, name and location of those defined in one of the two places, in order."""
        for location, name in self.names().items():
            if (location in self._at_the_top) == at_the_top:
                yield self._depths[location], name, location
