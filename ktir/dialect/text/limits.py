"""How deep a text may nest, checked before anything reads it, and what Python has to be told for that.

The readers and printers of IR follow nesting by recursion, so depth is bounded here, in one linear pass over the
characters: brackets outside strings and comments, of whatever they enclose.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager

MAX_NESTING = 256
"""Levels of brackets that a text may nest."""

RECURSION_ROOM = 24_000
"""Python frames that the deepest legal text needs, with room to spare; plain Python calls take no C stack."""

_BRACKETS = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*|->|[<>=]=|\(\)|\[\]|\{\}|<>|[][(){}<>]')


def first_too_deep(text: str) -> int | None:
    """Where ``text`` first nests deeper than :data:`MAX_NESTING`, or None."""
    if sum(map(text.count, "([{<")) <= MAX_NESTING:
        return None
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in "([{<":
            depth += 1
            if depth > MAX_NESTING:
                return match.start()
        elif token in ")]}>":
            depth = max(0, depth - 1)
    return None


@contextmanager
def recursion_room() -> Generator[None]:
    """Lets readers and printers recurse as deep as the deepest legal text asks for."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_ROOM))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def without_collections() -> Generator[None]:
    """Keeps Python's cycle collector from looking again and again through what is built, and kept, or printed."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
