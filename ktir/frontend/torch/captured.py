"""A captured model: the level-G module and how calls of the model map to calls of its function.

Words. leaf: a tensor or other value in the flattened ``(args, kwargs)`` of a call. binding: where an argument or an
output of the function comes from or goes to. The function computes; everything that is only about Python objects
(output class, None, numbers, constants, outputs that are views of inputs, inputs that change) is done here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, cast

import torch
from torch.utils import _pytree as pytree
from xdsl.dialects.builtin import ModuleOp

from ktir.errors import StaleProgram, UnsupportedInput
from ktir.frontend.torch.elements import short_name

MOVES: Final = frozenset(
    {
        "alias.default",
        "clone.default",
        "detach.default",
        "expand.default",
        "permute.default",
        "select.int",
        "slice.Tensor",
        "squeeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "t.default",
        "transpose.int",
        "unsqueeze.default",
        "view.default",
    }
)
"""Overloads of ATen that only move elements: what :class:`Move` may stand for."""


@dataclass(frozen=True)
class Move:
    """One step from an input to an output: the overload ``operator`` of ATen, applied with ``arguments``."""

    operator: str
    arguments: tuple[Any, ...]

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.operator not in MOVES:
            raise UnsupportedInput(f"{self.operator} is no operator that only moves elements")
        packet, overload = self.operator.split(".")
        return getattr(getattr(torch.ops.aten, packet), overload)(tensor, *self.arguments)


@dataclass(frozen=True)
class View:
    """Moves one after the other; ``copies`` tells whether the result has memory of its own."""

    moves: tuple[Move, ...]

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return reduce(lambda moved, move: move(moved), self.moves, tensor)

    @property
    def copies(self) -> bool:
        return any(move.operator == "clone.default" for move in self.moves)


@dataclass(frozen=True)
class InputBinding:
    """Argument ``name`` of the function is leaf number ``leaf`` of the call."""

    name: str
    leaf: int


@dataclass(frozen=True)
class LeafSpec:
    """What a leaf was when the model was captured: a tensor's shape and dtype, or a plain value."""

    tensor: tuple[tuple[int, ...], torch.dtype] | None
    value: object = None

    def describe(self) -> str:
        if self.tensor is None:
            return repr(self.value)
        return f"{short_name(self.tensor[1])}{list(self.tensor[0])}"


@dataclass(frozen=True)
class Computed:
    """Result number ``index`` of the function."""

    index: int


@dataclass(frozen=True)
class Alias:
    """A view (or a copy of a view) of leaf number ``leaf``, or of parameter ``parameter``, as it is before the call."""

    view: View
    leaf: int | None = None
    parameter: str | None = None


@dataclass(frozen=True)
class Changed(Alias):
    """A view of a leaf or parameter as it is after the model changed it."""


@dataclass(frozen=True)
class Constant:
    """A tensor that depends on no input; each call gets a copy."""

    tensor: torch.Tensor


@dataclass(frozen=True)
class Literal:
    """None or a Python number."""

    value: object


OutputBinding = Computed | Alias | Constant | Literal


@dataclass(frozen=True)
class Mutation:
    """After the call, leaf ``leaf`` or parameter ``parameter`` holds ``source``."""

    source: OutputBinding
    leaf: int | None = None
    parameter: str | None = None


@dataclass(frozen=True)
class Captured:
    """The result of a capture.

    ``module`` has one function, ``@main``, whose arguments are named by ``ktg.name``: those of ``inputs``, then
    ``parameters`` (weights, buffers and folded constants; the model's own tensors where they are its weights).
    ``weights`` are all tensors the model holds, by name. ``operators`` counts the imported ATen overloads. ``folded``
    are the buffers whose values went into constants, with the version they had.
    """

    module: ModuleOp
    inputs: tuple[InputBinding, ...]
    parameters: Mapping[str, torch.Tensor]
    weights: Mapping[str, torch.Tensor]
    outputs: tuple[OutputBinding, ...]
    result_names: tuple[str, ...]
    mutations: tuple[Mutation, ...]
    leaves: tuple[LeafSpec, ...]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    keywords: tuple[str, ...]
    operators: Counter[str]
    folded: Mapping[str, int]

    def require_current(self) -> None:
        """Raises :class:`StaleProgram` if a buffer that was folded does not hold any more what it held."""
        for name, version in self.folded.items():
            if version_of(self.weights[name]) != version:
                raise StaleProgram(
                    f"buffer {name} was changed after its value went into the program", remedy="compile the model again"
                )

    def leaves_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves of a call; raises :class:`UnsupportedInput` if it differs from the captured one.

        Keyword arguments may come in any order. Raises :class:`StaleProgram` as :meth:`require_current` does.
        """
        self.require_current()
        unknown = set(kwargs) ^ set(self.keywords)
        if unknown:
            raise UnsupportedInput(
                f"the model was captured with the keywords {sorted(self.keywords)}, this call has {sorted(kwargs)}",
                remedy="call it as it was captured, or compile it for these arguments",
            )
        leaves, spec = pytree.tree_flatten((tuple(args), {name: kwargs[name] for name in self.keywords}))
        if spec != self.in_spec:
            raise UnsupportedInput(
                f"the arguments of this call are {spec}, at the capture they were {self.in_spec}",
                remedy="call it as it was captured, or compile it for these arguments",
            )
        for number, (leaf, expected) in enumerate(zip(leaves, self.leaves, strict=True)):
            _check_leaf(number, leaf, expected)
        return leaves

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The user inputs of the function for this call, by argument name; without the parameters."""
        return self._inputs(self.leaves_of(args, kwargs))

    def _inputs(self, leaves: Sequence[Any]) -> dict[str, torch.Tensor]:
        return {binding.name: leaves[binding.leaf] for binding in self.inputs}

    def unflatten(
        self, results: Sequence[torch.Tensor], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What the model returns, from the results of the function; writes changed inputs back first.

        ``args`` and ``kwargs`` of the call are needed where outputs are views of inputs or inputs change.
        """
        needs_leaves = self.mutations or any(isinstance(output, Alias) for output in self.outputs)
        leaves = self.leaves_of(args, kwargs or {}) if needs_leaves else []
        return self._outputs(results, leaves)

    def call(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        execute: Callable[[dict[str, torch.Tensor]], Sequence[torch.Tensor]],
    ) -> Any:
        """One call of the model: ``execute`` gets the user inputs by name and gives the function's results in order."""
        leaves = self.leaves_of(args, kwargs)
        self._refuse_overlap(leaves)
        with torch.no_grad():
            return self._outputs(execute(self._inputs(leaves)), leaves)

    def _outputs(self, results: Sequence[torch.Tensor], leaves: Sequence[Any]) -> Any:
        before = [None if isinstance(o, Changed) else self._value(o, results, leaves) for o in self.outputs]
        changes = [self._value(mutation.source, results, leaves).clone() for mutation in self.mutations]
        with torch.no_grad():
            for mutation, value in zip(self.mutations, changes, strict=True):
                self._target(mutation.leaf, mutation.parameter, leaves).copy_(value)
        values = [
            self._value(output, results, leaves) if isinstance(output, Changed) else value
            for output, value in zip(self.outputs, before, strict=True)
        ]
        return pytree.tree_unflatten(values, self.out_spec)

    def _value(self, output: OutputBinding, results: Sequence[torch.Tensor], leaves: Sequence[Any]) -> Any:
        match output:
            case Computed(index):
                return results[index]
            case Alias(view, leaf, parameter):  # Changed as well
                return view(self._target(leaf, parameter, leaves))
            case Constant(tensor):
                return tensor.clone()
            case Literal(value):
                return value

    def _target(self, leaf: int | None, parameter: str | None, leaves: Sequence[Any]) -> torch.Tensor:
        return leaves[leaf] if leaf is not None else self.weights[cast("str", parameter)]

    def _refuse_overlap(self, leaves: Sequence[Any]) -> None:
        """A changed input must not share memory with another one: the function sees them as separate tensors."""
        for mutation in self.mutations:
            if mutation.leaf is None:
                continue
            span = _span(leaves[mutation.leaf])
            for binding in self.inputs:
                other = leaves[binding.leaf]
                if binding.leaf != mutation.leaf and _overlap(span, _span(other)):
                    raise UnsupportedInput(
                        f"input {binding.name} shares memory with an input that the model changes",
                        remedy="pass a clone of one of the two",
                    )


def version_of(tensor: torch.Tensor) -> int:
    """How often ``tensor`` was changed in place; 0 for tensors of inference mode, which do not count."""
    return 0 if tensor.is_inference() else tensor._version


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """First and last byte that the elements of ``tensor`` lie in; empty for no elements."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _check_leaf(number: int, leaf: object, expected: LeafSpec) -> None:
    if expected.tensor is None:
        same = leaf is expected.value or (type(leaf) is type(expected.value) and leaf == expected.value)
    else:
        same = isinstance(leaf, torch.Tensor) and (tuple(leaf.shape), leaf.dtype) == expected.tensor
    if not same:
        got = f"{short_name(leaf.dtype)}{list(leaf.shape)}" if isinstance(leaf, torch.Tensor) else repr(leaf)
        raise UnsupportedInput(
            f"argument {number} was {expected.describe()} when the model was captured and is {got} in this call",
            remedy="compile the model for these arguments",
        )
