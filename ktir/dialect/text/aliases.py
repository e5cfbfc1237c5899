"""Names at the top and the end of a text: ``#map``, ``#set``, ``#distinct`` and ``#loc``.

As in MLIR, an alias stands after those that it is made of, those of one depth in alphabetical order of their kinds, and
locations of operations are defined at the end of the text; those of block arguments, which are also written out where
they stand, at its top.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

from ktir.dialect.overlay.builtin import DistinctAttr
from ktir.maths.affine import map_text, set_text

Named = AffineMapAttr | AffineSetAttr | DistinctAttr | LocationAttr
"""An attribute that has an alias."""


def plain_affine(attribute: AffineMapAttr | AffineSetAttr) -> str:
    """``affine_map<..>`` or ``affine_set<..>``"""
    if isinstance(attribute, AffineMapAttr):
        return f"affine_map<{map_text(attribute.data)}>"
    return f"affine_set<{set_text(attribute.data)}>"


class Aliases:
    """The attributes of a text that get a name, in the order in which they are first printed."""

    def __init__(self) -> None:
        self.seen: dict[Named, int] = {}
        self.deferred: set[Named] = set()
        self.numbers: dict[Named, int] = {}
        self.texts: dict[int, tuple[Named, str]] = {}

    def get(self, attribute: Named) -> str:
        """What stands for the name of ``attribute`` until all names are known."""
        self.seen.setdefault(attribute, 0)
        number = self.numbers.setdefault(attribute, len(self.numbers))
        return f"\x00{number}\x00"

    def at_top(self, attribute: Named) -> str:
        """As above, for an attribute that is to be defined at the top; worked out once for each object."""
        known = self.texts.get(id(attribute))
        if known is None:
            self.note(attribute)
            known = self.texts[id(attribute)] = (attribute, self.get(attribute))
        return known[1]

    def note(self, attribute: Named, *, deferred: bool = False) -> int:
        """Notes an attribute and those inside it; returns how deep it nests."""
        if attribute not in self.seen:
            if deferred:
                self.deferred.add(attribute)
            self.seen[attribute] = 0
            depths = [self.note(part, deferred=deferred) for part in parts_of(attribute)]
            self.seen[attribute] = 1 + max(depths) if depths else 0
        elif not deferred:
            self._keep_at_top(attribute)
        return self.seen[attribute]

    def _keep_at_top(self, attribute: Named) -> None:
        self.deferred.discard(attribute)
        for part in parts_of(attribute):
            self._keep_at_top(part)

    def names(self) -> dict[Named, str]:
        """``loc``, ``loc1``, .., ``map``, ``map1``, .., ``set``, ``set1``, ..; deeper ones after others."""
        order = sorted(self.seen, key=lambda each: (self.seen[each], _kind(each)))
        counts: dict[str, int] = {}
        names: dict[Named, str] = {}
        for attribute in order:
            kind = _kind(attribute)
            number = counts[kind] = counts.get(kind, -1) + 1
            names[attribute] = f"{kind}{number or ''}"
        return names

    def definitions(self, *, deferred: bool) -> Iterator[tuple[Named, str]]:
        """Attributes and names that are defined at the end of the text, or at its top."""
        return ((each, name) for each, name in self.names().items() if (each in self.deferred) == deferred)

    def resolved(self, text: str) -> str:
        """``text`` with names in place of what stood for them."""
        names = self.names()
        by_number = [names[attribute] for attribute in self.numbers]
        return re.sub("\x00(\\d+)\x00", lambda match: by_number[int(match[1])], text)

    def written_out(self, text: str, definition: Callable[[Named], str]) -> str:
        """``text`` with what names stand for in place of names."""

        def written_out(match: re.Match[str]) -> str:
            return definition(list(self.numbers)[int(match[1])])

        while "\x00" in text:  # what a name stands for may hold other names
            text = re.sub("#\x00(\\d+)\x00", written_out, text)
        return text


def _kind(attribute: Named) -> str:
    match attribute:
        case AffineMapAttr():
            return "map"
        case AffineSetAttr():
            return "set"
        case DistinctAttr():
            return "distinct"
        case _:
            return "loc"


# ----------------------------------------------------------------------------------------------------------- locations


def parts_of(attribute: Named) -> list[Named]:
    """What ``attribute`` is made of and that has a name of its own."""
    match attribute:
        case NameLoc(location=UnknownLoc() | NoneAttr()):
            return []
        case NameLoc():
            return [cast(LocationAttr, attribute.location)]
        case CallSiteLoc():
            return [cast(LocationAttr, attribute.callee), cast(LocationAttr, attribute.caller)]
        case FusedLoc():
            return [*cast(ArrayAttr[LocationAttr], attribute.locations)]
        case DistinctAttr() if isinstance(attribute.referenced, Named):
            return [attribute.referenced]
        case _:
            return []


def location_text(location: LocationAttr, text_of: Callable[[Attribute], str], part: Callable[[Named], str]) -> str:
    """``location`` without ``loc(..)`` around it; ``part`` writes a location inside, ``text_of`` any attribute."""
    match location:
        case UnknownLoc():
            return "unknown"
        case FileLineColLoc():
            return f"{text_of(location.filename)}:{location.line.data}:{location.column.data}"
        case NameLoc():
            inner = parts_of(location)
            return text_of(location.desc) + (f"({part(inner[0])})" if inner else "")
        case CallSiteLoc():
            callee, caller = parts_of(location)
            return f"callsite({part(callee)} at {part(caller)})"
        case FusedLoc():
            metadata = "" if isinstance(location.metadata, NoneAttr) else f"<{text_of(location.metadata)}>"
            return f"fused{metadata}[{', '.join(map(part, parts_of(location)))}]"
        case _:
            return text_of(location).removeprefix("loc(").removesuffix(")")
