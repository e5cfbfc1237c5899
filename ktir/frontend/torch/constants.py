"""Folding of what depends on no input: position ids, rotary tables, mask indices, tensors without elements.

A node is *constant* if neither a user input nor a parameter is upstream of it. Constant nodes are run by PyTorch while
the graph is imported, so their values are exactly eager's. A tensor without elements is constant whatever it was
computed from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ktir.frontend.torch.calls import described
from ktir.frontend.torch.scalars import Number

Constants = dict[Node, Any]
"""Values of the constant nodes met so far: tensors, tuples of them, or Python scalars."""

_RANDOM = frozenset({torch.Tag.nondeterministic_seeded})


def fold(node: Node, constants: Mapping[Node, Any]) -> Any:
    """The value of ``node`` if it is constant, given the constants before it; ``NotImplemented`` if it is not."""
    meta = described(node)
    if meta is not None and meta.numel() == 0:
        return torch.empty(tuple(meta.shape), dtype=meta.dtype)
    if node.op != "call_function" or not all(argument in constants for argument in node.all_input_nodes):
        return NotImplemented
    if _RANDOM & set(getattr(node.target, "tags", ())):
        return NotImplemented
    target = cast("Any", node.target)
    arguments, keywords = map_arg((node.args, node.kwargs), lambda argument: constants[argument])
    with torch.no_grad():
        return target(*arguments, **{name: _on_host(name, value) for name, value in keywords.items()})


def _on_host(name: str, value: object) -> object:
    return torch.device("cpu") if name == "device" and value is not None else value


def splat(value: object) -> Number | None:
    """The number that all elements of a constant are, None if they differ or there are none."""
    if isinstance(value, bool | int | float):
        return value
    if not isinstance(value, torch.Tensor) or value.numel() == 0 or value.is_complex():
        return None
    first = value.reshape(-1)[0]
    same = bool((value == first).all()) or bool(value.isnan().all())
    return first.item() if same else None
