"""Lines of the model's source: where in the user's program an operator was called."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.fx import Node
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc

from ktir.location import Location

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_NOT_THE_MODEL = (str(Path(torch.__file__).parent), str(Path(__file__).parent))


def source_of(node: Node) -> Location | None:
    """The innermost line outside PyTorch and this package that led to ``node``, or None where PyTorch kept no trace."""
    frames = [(m["file"], int(m["line"])) for m in _FRAME.finditer(str(node.meta.get("stack_trace") or ""))]
    own = [frame for frame in frames if not frame[0].startswith(_NOT_THE_MODEL)] or frames
    return Location(own[-1][0], own[-1][1], 1) if own else None


def location_attribute(location: Location | None) -> LocationAttr:
    """The attribute that carries ``location`` on an operation."""
    if location is None:
        return UnknownLoc()
    return FileLineColLoc(StringAttr(location.file), IntAttr(location.line), IntAttr(location.column))
