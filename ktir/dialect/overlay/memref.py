"""Repairs of ``memref``: operations that the stock dialect writes in generic form only have their short text."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import memref
from xdsl.dialects.memref import MemRef
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation
from xdsl.irdl.operations import get_accessors_from_op_def

SHORT_TEXTS: Mapping[type[IRDLOperation], str] = {
    memref.ExtractAlignedPointerAsIndexOp: "$source attr-dict `:` type($source) `->` type($aligned_pointer)",
    memref.CastOp: "$source attr-dict `:` type($source) `to` type($dest)",
    memref.MemorySpaceCastOp: "$source attr-dict `:` type($source) `to` type($dest)",
    memref.CopyOp: "$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
}


def _repaired() -> Dialect:
    for kind, text in SHORT_TEXTS.items():
        kind.get_irdl_definition().assembly_format = text
        for name, accessor in get_accessors_from_op_def(kind.get_irdl_definition(), None).items():
            if name in ("parse", "print"):
                setattr(kind, name, accessor)
    return MemRef


MEMREF = _repaired()
