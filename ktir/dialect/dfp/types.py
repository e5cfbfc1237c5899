"""Types of the dataflow program: handles of what units share."""

from __future__ import annotations

from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """A byte range of a memory, declared by ``dfp.buffer``."""

    name = "dfp.buffer"


@irdl_attr_definition
class QueueType(ParametrizedAttribute, TypeAttribute):
    """A bounded first-in first-out queue of vectors between two units, declared by ``dfp.queue``."""

    name = "dfp.queue"


@irdl_attr_definition
class SymbolType(ParametrizedAttribute, TypeAttribute):
    """An address that is known at launch, declared by ``dfp.symbol``."""

    name = "dfp.symbol"
