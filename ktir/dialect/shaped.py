"""Questions about types that are asked for every operation, answered by its class alone.

xDSL's ``isa`` with a generic type builds a constraint at each call, which costs more than the rest of a verifier.
"""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute


def is_tensor(type: Attribute) -> TypeGuard[TensorType[Attribute]]:
    """Whether ``type`` is a ranked tensor."""
    return isinstance(type, TensorType)


def is_memref(type: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """Whether ``type`` is a ranked memref."""
    return isinstance(type, MemRefType)
