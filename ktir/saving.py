"""From a captured model, which holds Python objects, to a signature, which is plain data."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ktir.arrays import Array, dtype_name, to_numpy
from ktir.errors import PackageError
from ktir.signature import Json, Signature, structure_of

if TYPE_CHECKING:
    from ktir.frontend.torch.captured import Captured, OutputBinding

CONSTANT, WEIGHT = "constant:", "weight:"
"""Prefixes of tensors that are no arguments of the function."""


def signature_of(captured: Captured) -> Signature:
    """The calling convention of a captured model.

    Raises :class:`PackageError` for containers and values that plain data cannot hold.
    """
    pytree: Any = import_module("torch.utils._pytree")
    tensors: dict[str, Array] = {}
    arguments = pytree.tree_unflatten(list(range(captured.in_spec.num_leaves)), captured.in_spec)
    returns = pytree.tree_unflatten(list(range(captured.out_spec.num_leaves)), captured.out_spec)
    return Signature(
        arguments=structure_of(arguments),
        leaves=[_leaf(leaf.tensor, leaf.value) for leaf in captured.leaves],
        inputs=[(binding.name, binding.leaf) for binding in captured.inputs],
        returns=structure_of(returns),
        outputs=[_output(captured, output, tensors) for output in captured.outputs],
        mutations=[
            {
                "source": _output(captured, mutation.source, tensors),
                **_place(captured, mutation.leaf, mutation.parameter, tensors),
            }
            for mutation in captured.mutations
        ],
        tensors=tensors,
    )


def _leaf(tensor: tuple[tuple[int, ...], Any] | None, value: object) -> Json:
    if tensor is None:
        return {"value": _plain(value)}
    shape, dtype = tensor
    torch: Any = import_module("torch")
    return {"shape": list(shape), "dtype": dtype_name(to_numpy(torch.empty(0, dtype=dtype)))}


def _output(captured: Captured, output: OutputBinding, tensors: dict[str, Array]) -> Json:
    """One output or source of a mutation; tensors it needs are added to ``tensors``."""
    from ktir.frontend.torch import captured as kinds

    match output:
        case kinds.Computed(index):
            return {"computed": index}
        case kinds.Literal(value):
            return {"literal": _plain(value)}
        case kinds.Constant(tensor):
            name = f"{CONSTANT}{len(tensors)}"
            tensors[name] = to_numpy(tensor)
            return {"constant": name}
        case kinds.Alias(view, leaf, parameter):
            place = _place(captured, leaf, parameter, tensors)
            shown = view(_blank(captured, leaf, parameter))
            return {
                "alias": {
                    **place,
                    "shape": list(shown.shape),
                    "strides": list(shown.stride()),
                    "offset": shown.storage_offset(),
                }
            }


def _place(
    captured: Captured, leaf: int | None, parameter: str | None, tensors: dict[str, Array]
) -> Mapping[str, Json]:
    if leaf is not None:
        return {"leaf": leaf}
    assert parameter is not None  # a place is a leaf or a parameter
    if parameter in captured.parameters:
        return {"tensor": parameter}
    tensors[f"{WEIGHT}{parameter}"] = to_numpy(captured.weights[parameter])
    return {"tensor": f"{WEIGHT}{parameter}"}


def _blank(captured: Captured, leaf: int | None, parameter: str | None) -> Any:
    """A contiguous tensor without data, to see what a view makes of its strides."""
    torch: Any = import_module("torch")
    if leaf is not None:
        described = captured.leaves[leaf].tensor
        assert described is not None  # only tensors are aliased
        return torch.empty(described[0], dtype=described[1], device="meta")
    assert parameter is not None
    weight = captured.weights[parameter]
    return torch.empty(tuple(weight.shape), dtype=weight.dtype, device="meta")


def _plain(value: object) -> Json:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return cast("Json", value.item())
    raise PackageError(f"a {type(value).__name__} among the model's inputs or outputs cannot be saved")
