"""One call of an operator in the captured graph, with its arguments by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Node

from ktir.errors import UnsupportedOperator
from ktir.frontend.torch.elements import Element, element, short_name
from ktir.frontend.torch.sources import source_of
from ktir.location import Location

Described = torch.Tensor
"""A tensor that only says its shape and dtype (a fake tensor of the capture)."""


def described(node: Node) -> Described | None:
    """What the capture knows of the value of ``node``, None if it is no tensor."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


def shape_and_type(value: object) -> str:
    """``float16[2, 64, 384]`` for a tensor or the node of one; lists entry by entry; others as Python has it."""
    if isinstance(value, Node):
        value = value.meta.get("val")
    if isinstance(value, torch.Tensor):
        return f"{short_name(value.dtype)}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"({', '.join(shape_and_type(entry) for entry in cast('list[object]', value))})"
    return repr(value)


@dataclass(frozen=True)
class Call:
    """``arguments`` has an entry for each parameter of the operator's schema, defaults filled in."""

    node: Node
    arguments: Mapping[str, Any]

    @staticmethod
    def of(node: Node) -> Call:
        schema = cast("Any", node.target)._schema.arguments
        given = dict(zip((argument.name for argument in schema), node.args, strict=False)) | node.kwargs
        return Call(
            node, {a.name: given.get(a.name, a.default_value if a.has_default_value() else None) for a in schema}
        )

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def name(self) -> str:
        return str(self.node.target)

    @property
    def location(self) -> Location | None:
        return source_of(self.node)

    @property
    def result(self) -> Described:
        """Shape and dtype of the only (or first) result."""
        value = self.node.meta["val"]
        return cast("Described", value[0] if isinstance(value, list | tuple) else value)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.result.shape)

    @property
    def element(self) -> Element:
        return element(self.result.dtype, self.location)

    def tensors(self) -> Iterator[Node]:
        """Nodes among the arguments, those in lists too."""
        for value in self.arguments.values():
            for entry in cast("list[object]", value) if isinstance(value, list | tuple) else [value]:
                if isinstance(entry, Node):
                    yield entry

    def refuse(self, reason: str, remedy: str | None = None) -> UnsupportedOperator:
        """The error for this call: names the operator, its arguments with their shapes, and the source line."""
        arguments = ", ".join(
            f"{name}={shape_and_type(value)}" for name, value in self.arguments.items() if value is not None
        )
        return UnsupportedOperator(f"{self.name}({arguments}): {reason}", location=self.location, remedy=remedy)
