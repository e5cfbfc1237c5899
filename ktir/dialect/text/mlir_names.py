"""Names of values as MLIR gives them, which forgets those that a text was read with.

Arguments of functions and loops are ``%arg0``, ``%arg1``, .., constants say what they are (``%c4``, ``%true``,
``%cst``), some operations call their results by what they do (``%extracted``), and the rest is numbered. A region is
numbered on from where the values around it end, so that names of neighbouring regions repeat. A name that is taken gets
the next number of its scope, ``%c4_0``. The generic form has numbers alone, and no name twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue

RESULT_NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "arith.addui_extended": ("sum", "overflow"),
        "arith.mulsi_extended": ("low", "high"),
        "arith.mului_extended": ("low", "high"),
        "func.constant": ("f",),
        "linalg.broadcast": ("broadcasted",),
        "linalg.map": ("mapped",),
        "linalg.pack": ("pack",),
        "linalg.reduce": ("reduced",),
        "linalg.transpose": ("transposed",),
        "linalg.unpack": ("unpack",),
        "math.sincos": ("sin", "cos"),
        "memref.alloc": ("alloc",),
        "memref.alloca": ("alloca",),
        "memref.cast": ("cast",),
        "memref.collapse_shape": ("collapse_shape",),
        "memref.dim": ("dim",),
        "memref.expand_shape": ("expand_shape",),
        "memref.extract_aligned_pointer_as_index": ("intptr",),
        "memref.memory_space_cast": ("memspacecast",),
        "memref.reinterpret_cast": ("reinterpret_cast",),
        "memref.subview": ("subview",),
        "memref.transpose": ("transpose",),
        "memref.view": ("view",),
        "tensor.cast": ("cast",),
        "tensor.collapse_shape": ("collapsed",),
        "tensor.concat": ("concat",),
        "tensor.dim": ("dim",),
        "tensor.expand_shape": ("expanded",),
        "tensor.extract": ("extracted",),
        "tensor.extract_slice": ("extracted_slice",),
        "tensor.from_elements": ("from_elements",),
        "tensor.gather": ("gather",),
        "tensor.generate": ("generated",),
        "tensor.insert": ("inserted",),
        "tensor.insert_slice": ("inserted_slice",),
        "tensor.pad": ("padded",),
        "tensor.rank": ("rank",),
        "tensor.reshape": ("reshape",),
        "tensor.scatter": ("scatter",),
        "tensor.splat": ("splat",),
    }
)
"""What operations call their results, one name each."""


@dataclass
class Scope:
    """What the names in a region depend on: the next numbers, and the names that are taken."""

    value: int = 0
    argument: int = 0
    conflict: int = 0
    taken: frozenset[str] = field(default_factory=frozenset[str])

    def unique(self, name: str) -> str:
        candidate = name
        while candidate in self.taken:
            candidate = f"{name}_{self.conflict}"
            self.conflict += 1
        self.taken |= {candidate}
        return candidate

    def next_value(self) -> str:
        self.value += 1
        return str(self.value - 1)

    def next_argument(self) -> str:
        self.argument += 1
        return self.unique(f"arg{self.argument - 1}")


def names_of_values(root: Operation, *, generic: bool = False) -> dict[SSAValue, str]:
    """The name of every result and block argument of ``root`` and inside it; parts of one name are ``0#1``."""
    names: dict[SSAValue, str] = {}
    scope = Scope()
    _name_results(root, scope, names, generic)
    pending = [(region, scope if generic else replace(scope)) for region in root.regions]
    while pending:
        region, scope = pending.pop()
        _name_region(region, scope, names, generic)
        inner = (nested for block in region.blocks for op in block.ops for nested in op.regions)
        pending += [(nested, scope if generic else replace(scope)) for nested in inner]
    return names


def _name_region(region: Region, scope: Scope, names: dict[SSAValue, str], generic: bool) -> None:
    if not generic:
        for argument, name in _argument_names(region):
            names[argument] = scope.unique(name)
    for number, block in enumerate(region.blocks):
        for argument in block.args:
            if argument not in names:
                names[argument] = scope.next_value() if number else scope.next_argument()
        for op in block.ops:
            _name_results(op, scope, names, generic)


def _argument_names(region: Region) -> Iterator[tuple[SSAValue, str]]:
    """Arguments that the operation around names: inputs and outputs of ``linalg``."""
    op, block = region.parent_op(), region.blocks.first
    if op is None or block is None or not op.name.startswith("linalg."):
        return
    inputs = len(getattr(op, "inputs", ()))
    words = ("in", "init") if op.name in ("linalg.map", "linalg.reduce") else ("in", "out")
    for number, argument in enumerate(block.args):
        yield argument, words[number >= inputs]


def _name_results(op: Operation, scope: Scope, names: dict[SSAValue, str], generic: bool) -> None:
    results = list(op.results)
    for name, group in _groups(op, () if generic else _result_names(op)):
        stem = scope.next_value() if name is None else scope.unique(name)
        members = results[group.start : group.stop]
        if len(members) == 1:
            names[members[0]] = stem
        else:
            names |= {member: f"{stem}#{number}" for number, member in enumerate(members)}


def _groups(op: Operation, given: Sequence[tuple[int, str]]) -> Iterator[tuple[str | None, range]]:
    """Results that share a name: from each that is named up to the next one."""
    if not op.results:
        return
    starts = given if given and given[0][0] == 0 else [(0, None), *given]
    ends = [*(start for start, _ in starts[1:]), len(op.results)]
    for (start, name), end in zip(starts, ends, strict=True):
        yield name, range(start, end)


def _result_names(op: Operation) -> Sequence[tuple[int, str]]:
    """The results that the operation names."""
    if op.name == "arith.constant":
        return [(0, _constant_name(op.properties.get("value")))]
    if op.name == "memref.extract_strided_metadata":
        rank = (len(op.results) - 2) // 2
        words = ("base_buffer", "offset", "sizes", "strides") if rank else ("base_buffer", "offset")
        return list(zip((0, 1, 2, 2 + rank), words, strict=False))
    return list(enumerate(RESULT_NAMES.get(op.name, ())))


def _constant_name(value: Any) -> str:
    if getattr(value, "name", None) != IntegerAttr.name:
        return "cst"
    number, kind = value.value.data, value.type
    if kind == i1:
        return "true" if number else "false"
    return f"c{number}" if isinstance(kind, IndexType) else f"c{number}_{kind}"


def names_of_blocks(root: Operation) -> dict[Block, str]:
    """``bb0``, ``bb1``, .. in each region."""
    return {
        block: f"bb{number}"
        for op in root.walk()
        for region in op.regions
        for number, block in enumerate(region.blocks)
    }
