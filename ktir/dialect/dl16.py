"""DL16 as an element type: modules in which it stands in the place of f16.

The format itself is described where it is computed with, ``interp/dl16.py`` and ``backends/dataflow/dl16.py``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import Float16Type, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.rewriter import Rewriter

from ktir.dialect.ktdp.types import RuntimeArgType


@irdl_attr_definition
class Dl16Type(ParametrizedAttribute, TypeAttribute):
    """The element type of tensors in DL16; no text has it."""

    name = "ktdp.dl16"


def with_dl16(module: ModuleOp) -> ModuleOp:
    """A copy of ``module`` in which every f16 is a DL16."""
    copy = module.clone()
    for op in list(copy.walk()):
        for value in [
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ]:
            _retype(value)
    return copy


def _retype(value: SSAValue) -> None:
    kind = _replaced(value.type)
    if kind is not value.type:
        Rewriter.replace_value_with_new_type(value, kind)


def _replaced(kind: Attribute) -> Attribute:
    match kind:
        case Float16Type():
            return Dl16Type()
        case TensorType() if isinstance(kind.element_type, Float16Type):
            return TensorType(Dl16Type(), kind.shape, kind.encoding)
        case MemRefType() if isinstance(kind.element_type, Float16Type):
            return MemRefType(Dl16Type(), kind.shape, kind.layout, kind.memory_space)
        case RuntimeArgType() if isinstance(kind.payload, Float16Type):
            return RuntimeArgType(Dl16Type(), kind.granularity, kind.upperbound)
        case _:
            return kind
