"""What the values of a program are called: ``%name``, ``%12``, ``%3#1``, as the text it was read from has them.

The IR keeps names and drops numbers, so numbers are read again off the line an operation stands on. A value without
either, as in a module that no text was read for, has the number that it has in its function, counted from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ktir.dialect.locations import place_of

_RESULTS = re.compile(r"^\s*(?P<names>%[\w$.-]+(:\d+)?(\s*,\s*%[\w$.-]+(:\d+)?)*)\s*=\s*\"?$")
_NAME = re.compile(r"(%[\w$.-]+)(?::(\d+))?")


def value_names(module: ModuleOp, source: str | None = None) -> Mapping[SSAValue, str]:
    """The name of each value of ``module``, with its ``%``; ``source`` is the text it was read from."""
    lines = (source or "").splitlines()
    found: dict[SSAValue, str] = {}
    for function in module.walk():
        if isinstance(function, FuncOp):
            for number, value in enumerate(_values(function)):
                found[value] = f"%{value.name_hint}" if value.name_hint else f"%{number}"
    for op in module.walk():
        if any(not result.name_hint for result in op.results):
            found |= dict(zip(op.results, _written(op, lines), strict=False))
    return found


def _values(function: FuncOp) -> Iterator[SSAValue]:
    for op in function.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _written(op: Operation, lines: Sequence[str]) -> list[str]:
    """The names before an operation in the text, one for each result; none where they are not found."""
    place = place_of(op.location)
    if place is None or not 0 < place.line <= len(lines):
        return []
    match = _RESULTS.match(lines[place.line - 1][: place.column - 1])
    if match is None:
        return []
    names: list[str] = []
    for name, count in _NAME.findall(match["names"]):
        names += [f"{name}#{number}" for number in range(int(count))] if count else [name]
    return names if len(names) == len(op.results) else []


__all__ = ["value_names"]
