"""Where an operation stands in the text it came from.

The parser stamps every operation that has no location of its own with file, line and column of its name. Named, fused
and call-site locations are looked through for the first place in a file.
"""

from __future__ import annotations

from typing import Final, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
)
from xdsl.ir import Attribute, Operation

from ktir.location import Location


def location_of(operation: Operation) -> Location | None:
    """File, line and column of ``operation``, or of the nearest operation around it that has them."""
    around: Operation | None = operation
    while around is not None:
        if (place := place_of(around.location)) is not None:
            return place
        around = around.parent_op()
    return None


def place_of(location: Attribute) -> Location | None:
    """The first place in a file that ``location`` holds."""
    match location:
        case FileLineColLoc():
            return Location(location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            return place_of(location.location)
        case CallSiteLoc():
            return place_of(location.callee)
        case FusedLoc():
            members = cast(ArrayAttr[Attribute], location.locations)
            places = (place_of(each) for each in members)
            return next((place for place in places if place is not None), None)
        case _:
            return None


TEXT: Final = StringAttr("ktir")
"""Marks a location that was given the place of its operation in the text of the module, last."""


def with_text_place(location: LocationAttr, place: Location) -> LocationAttr:
    """``location``, which stays the first, and the place of its operation in the text of its module."""
    return FusedLoc(ArrayAttr([location, location_attribute(place)]), TEXT)


def text_place_of(operation: Operation) -> Location | None:
    """Where ``operation``, or the operation it was made of, stands in KTIR."""
    location = operation.location
    if isinstance(location, FusedLoc) and location.metadata == TEXT:
        return place_of(cast("ArrayAttr[Attribute]", location.locations).data[-1])
    return location_of(operation)


def source_place_of(operation: Operation) -> Location | None:
    """Where the model says what ``operation`` is for; None where it was not made from a model."""
    location = operation.location
    if isinstance(location, FusedLoc) and location.metadata == TEXT:
        return place_of(cast("ArrayAttr[Attribute]", location.locations).data[0])
    return None


def location_attribute(place: Location) -> LocationAttr:
    """``place`` as an attribute of the IR."""
    return FileLineColLoc(StringAttr(place.file), IntAttr(place.line), IntAttr(place.column))
